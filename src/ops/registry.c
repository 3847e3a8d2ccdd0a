/* Every operator family and every pass, one line each. */
#include "graph/rewrite.h"

/* clang-format off */
#define FAMILIES(X) \
  X(binary) \
  X(copy) \
  X(embedding) \
  X(fill) \
  X(gather) \
  X(layer_norm) \
  X(linear) \
  X(linear_dq8) \
  X(linear_q4) \
  X(linear_q4_fused) \
  X(permute) \
  X(reduce) \
  X(rms_norm) \
  X(rope) \
  X(sample) \
  X(sdpa) \
  X(sdpa_fused) \
  X(slice) \
  X(softmax) \
  X(symint) \
  X(unary) \
  X(where) \
  /* end */
/* clang-format on */

#define X(family) extern const struct op ops_##family[];
FAMILIES(X)
#undef X

const struct op *const op_families[] = {
#define X(family) ops_##family,
    FAMILIES(X)
#undef X
        NULL,
};

/* In the order in which they run. */
/* clang-format off */
#define PASSES(X) \
  X(linear_q4) \
  X(sdpa) \
  /* end */
/* clang-format on */

#define X(family) extern const struct pass passes_##family[];
PASSES(X)
#undef X

const struct pass *const pass_families[] = {
#define X(family) passes_##family,
    PASSES(X)
#undef X
        NULL,
};
