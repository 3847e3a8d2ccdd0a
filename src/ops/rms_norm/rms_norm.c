/* Root mean square normalisation of the last dim, times a weight that broadcasts. */
#include "ops/strides/strides.h"

#include "rms_norm.wgsl.h"
#include "rms_norm_any.wgsl.h"
#include "rms_norm_wide.wgsl.h"

#include <float.h>
#include <string.h>

static bool quads(const void *cols) { return *(const uint32_t *)cols % 4 == 0; }
static bool narrow(const void *cols) { return quads(cols) && *(const uint32_t *)cols <= 256; }

/* tile[0]: rows of a workgroup. A short row leaves most of 256 threads without work. */
#define NARROW(DTYPE, TYPE)                                                                        \
  {"narrow_" TYPE, &rms_norm_wgsl, "WG=64u use=group_tree use=quad_" TYPE,                         \
   DTYPE,          .fits = narrow, .tile = {1}}
#define SUBGROUPS(DTYPE, TYPE)                                                                     \
  {"subgroups_" TYPE,                                                                              \
   &rms_norm_wgsl,                                                                                 \
   "use=group_subgroup use=quad_" TYPE,                                                            \
   DTYPE,                                                                                          \
   NEEDS_SUBGROUPS,                                                                                \
   quads,                                                                                          \
   .tile = {1},                                                                                    \
   .threads = 256,                                                                                 \
   .workgroup_bytes = 256}
#define QUADS(DTYPE, TYPE)                                                                         \
  {"quads_" TYPE, &rms_norm_wgsl, "use=group_tree use=quad_" TYPE, DTYPE, .fits = quads,           \
   .tile = {1},   .threads = 256, .workgroup_bytes = 1024}
#define ANY(DTYPE, TYPE, ROWS)                                                                     \
  {"any_" TYPE,    &rms_norm_any_wgsl, "use=group_tree use=elem_" TYPE, DTYPE,                     \
   .tile = {ROWS}, .threads = 32,      .workgroup_bytes = 256}
static const struct kernel kernels[] = {
    NARROW(OF_F32, "f32"),    NARROW(OF_F16, "f16"), SUBGROUPS(OF_F32, "f32"),
    SUBGROUPS(OF_F16, "f16"), QUADS(OF_F32, "f32"),  QUADS(OF_F16, "f16"),
    ANY(OF_F16, "f16", 2),    ANY(OF_F32, "f32", 1), {0},
};

/* A weight that is no vector: gates, modulations, norms without weight before a product. */
#define WIDE(DTYPE, TYPE, ROWS)                                                                    \
  {"wide_" TYPE,   &rms_norm_wide_wgsl, "use=group_tree use=elem_" TYPE, DTYPE,                    \
   .tile = {ROWS}, .threads = 32,       .workgroup_bytes = 256}
static const struct kernel kernels_wide[] = {WIDE(OF_F16, "f16", 2), WIDE(OF_F32, "f32", 1), {0}};

/* [x, weight, eps, out] */
static sconce_status read_args(struct plan *p, const struct node *n, const struct tensor *x[2]) {
  const struct tensor *y = out_tensor(p, n);
  TRY(arg_tensors(p, n, 0, 2, x));
  char a[120], b[120];
  if (!tensor_is_float(x[0]))
    return fail(p->err, SCONCE_UNSUPPORTED, "the norm of %s", tensor_text(x[0], a));
  if (x[0]->rank == 0 || x[1]->dtype != x[0]->dtype || y->dtype != x[0]->dtype)
    return fail(p->err, SCONCE_BAD_GRAPH, "the norm of %s with the weight %s", tensor_text(x[0], a),
                tensor_text(x[1], b));
  return SCONCE_OK;
}

static sconce_status shape(struct plan *p, const struct node *n) {
  const struct tensor *x[2];
  uint32_t dims[RANK_MAX], rank;
  TRY(read_args(p, n, x));
  TRY(broadcast_dims(p, x, 2, dims, &rank));
  return set_dims(p, out_id(n), dims, rank);
}

static bool is_vector_for(const struct tensor *w, const struct tensor *x) {
  return w->rank == 1 && w->dim_live[0] == x->dim_live[x->rank - 1];
}

static sconce_status emit_wide(struct plan *p, const struct node *n, const struct tensor *x[2],
                               float eps) {
  const struct tensor *y = out_tensor(p, n);
  const uint32_t cols = y->dim_live[y->rank - 1], cols_x = x[0]->dim_live[x[0]->rank - 1];
  struct nest nest = {.rank = y->rank, .n_operands = 2};
  memcpy(nest.size, y->dim_live, y->rank * sizeof *nest.size);
  for (uint32_t k = 0; k < 2; k++) nest_broadcast(&nest, k, x[k]);
  const uint32_t step = nest.stride[1][y->rank - 1];
  nest.rank--; /* rows only */
  nest_merge(&nest);
  struct rms_norm_wide_params u = {.rows = (uint32_t)(tensor_numel(y) / cols),
                                   .cols = cols,
                                   .cols_x = cols_x,
                                   .step_w = step,
                                   .eps = eps,
                                   .rank = nest.rank};
  memcpy(u.dims, nest.size, sizeof u.dims);
  memcpy(u.stride_x, nest.stride[0], sizeof u.stride_x);
  memcpy(u.stride_w, nest.stride[1], sizeof u.stride_w);
  const struct kernel *row;
  TRY(choose(p, n, kernels_wide, x[0]->dtype, NULL, &row));
  return dispatch(p, row, &u, div_up(u.rows, row->tile[0]),
                  OPERANDS({arg_id(n, 0)}, {arg_id(n, 1)}, {out_id(n)}));
}

static sconce_status emit(struct plan *p, const struct node *n) {
  const struct tensor *x[2];
  double eps;
  TRY(read_args(p, n, x));
  TRY(arg_float_or(p, n, 2, (double)FLT_EPSILON, &eps));
  const uint32_t cols = x[0]->dim_live[x[0]->rank - 1];
  if (cols == 0) return SCONCE_OK; /* at load y may have elements nevertheless */
  if (!is_vector_for(x[1], x[0])) return emit_wide(p, n, x, (float)eps);
  const uint32_t rows = (uint32_t)(tensor_numel(x[0]) / cols);
  const struct kernel *row;
  TRY(choose(p, n, kernels, x[0]->dtype, &cols, &row));
  struct rms_norm_params u = {
      .rows = rows, .quads = cols / 4, .cols = (float)cols, .eps = (float)eps};
  return dispatch(p, row, &u, div_up(rows, row->tile[0]),
                  OPERANDS({arg_id(n, 0)}, {arg_id(n, 1)}, {out_id(n)}));
}

const struct op ops_rms_norm[] = {
    {"et_vk.rms_norm.default", shape, emit, .n_args = 4, .flags = OP_ROWS,
     .tables = TABLES(kernels, kernels_wide)},
    {0},
};
