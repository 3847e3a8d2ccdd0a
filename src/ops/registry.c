/* Every operator family, one line each. */
#include "graph/op.h"

extern const struct op ops_binary[];
extern const struct op ops_copy[];
extern const struct op ops_embedding[];
extern const struct op ops_fill[];
extern const struct op ops_gather[];
extern const struct op ops_linear[];
extern const struct op ops_linear_dq8[];
extern const struct op ops_linear_q4[];
extern const struct op ops_permute[];
extern const struct op ops_reduce[];
extern const struct op ops_rms_norm[];
extern const struct op ops_rope[];
extern const struct op ops_sdpa[];
extern const struct op ops_slice[];
extern const struct op ops_softmax[];
extern const struct op ops_symint[];
extern const struct op ops_unary[];
extern const struct op ops_where[];

const struct op *const op_families[] = {
    ops_binary,    ops_copy,    ops_embedding, ops_fill,     ops_gather, ops_linear, ops_linear_dq8,
    ops_linear_q4, ops_permute, ops_reduce,    ops_rms_norm, ops_rope,   ops_sdpa,   ops_slice,
    ops_softmax,   ops_symint,  ops_unary,     ops_where,    NULL,
};
