/* Every operator family, one line each. */
#include "graph/op.h"

extern const struct op ops_binary[];
extern const struct op ops_linear_q4[];
extern const struct op ops_rms_norm[];
extern const struct op ops_rope[];
extern const struct op ops_symint[];
extern const struct op ops_unary[];

const struct op *const op_families[] = {
    ops_binary,
    ops_linear_q4,
    ops_rms_norm,
    ops_rope,
    ops_symint,
    ops_unary,
    NULL,
};
