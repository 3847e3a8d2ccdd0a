/* Every operator family, one line each. */
#include "graph/op.h"

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
  X(permute) \
  X(reduce) \
  X(rms_norm) \
  X(rope) \
  X(sample) \
  X(sdpa) \
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
