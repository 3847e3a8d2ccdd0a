/* Every operator family, one line each. */
#include "graph/op.h"

extern const struct op ops_binary[];
extern const struct op ops_embedding[];
extern const struct op ops_linear[];
extern const struct op ops_linear_dq8[];
extern const struct op ops_linear_q4[];
extern const struct op ops_symint[];

const struct op *const op_families[] = {
    ops_binary,
    ops_embedding,
    ops_linear,
    ops_linear_dq8,
    ops_linear_q4,
    ops_symint,
    NULL,
};
