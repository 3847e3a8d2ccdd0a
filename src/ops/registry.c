/* Every operator family, one line each. */
#include "graph/op.h"

extern const struct op ops_binary[];
extern const struct op ops_copy[];
extern const struct op ops_permute[];
extern const struct op ops_slice[];
extern const struct op ops_symint[];
extern const struct op ops_unary[];

const struct op *const op_families[] = {
    ops_binary,
    ops_copy,
    ops_permute,
    ops_slice,
    ops_symint,
    ops_unary,
    NULL,
};
