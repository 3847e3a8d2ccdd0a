/* Every operator family, one line each. */
#include "graph/op.h"

extern const struct op ops_binary[];
extern const struct op ops_rms_norm[];
extern const struct op ops_rope[];
extern const struct op ops_sdpa[];
extern const struct op ops_symint[];

const struct op *const op_families[] = {
    ops_binary, ops_rms_norm, ops_rope, ops_sdpa, ops_symint, NULL,
};
