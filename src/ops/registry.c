/* Every operator family and every pass, one line each. */
#include "graph/rewrite.h"

/* clang-format off */
#define FAMILIES(X) \
  X(batch_norm) \
  X(binary) \
  X(conv) \
  X(conv_backward) \
  X(conv_fused) \
  X(compound) \
  X(copy) \
  X(cumsum) \
  X(distance) \
  X(embedding) \
  X(fill) \
  X(gather) \
  X(grid) \
  X(group_norm) \
  X(index_put) \
  X(last_rows) \
  X(layer_norm) \
  X(linear) \
  X(linear_cut) \
  X(linear_fused) \
  X(linear_dq8) \
  X(linear_q4) \
  X(linear_q4_fused) \
  X(linear_q8) \
  X(linear_qcs4w) \
  X(moments) \
  X(pad) \
  X(permute) \
  X(places) \
  X(pool) \
  X(pool_back) \
  X(q8ta_conv) \
  X(q8ta_elementwise) \
  X(q8ta_linear) \
  X(qparams) \
  X(quantize) \
  X(reduce) \
  X(refused) \
  X(rms_norm) \
  X(rope) \
  X(sample) \
  X(scatter) \
  X(sdpa) \
  X(sdpa_chain) \
  X(sdpa_fused) \
  X(slice) \
  X(slice_put) \
  X(softmax) \
  X(symint) \
  X(topk) \
  X(train_adamw) \
  X(train_backward) \
  X(train_loss) \
  X(train_requant) \
  X(triangle) \
  X(unary) \
  X(unfold) \
  X(upsample) \
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
  X(copy) \
  X(move) \
  X(linear_q4) \
  X(sdpa) \
  X(sdpa_chain) \
  X(conv) \
  X(linear) \
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
