/* Root mean square normalisation of the last dim. */
#include "graph/op.h"

#include "rms_norm.wgsl.h"
#include "rms_norm_any.wgsl.h"

#include <float.h>

struct problem {
  uint32_t cols;
  bool half;
};

static bool quads(const void *problem, bool half) {
  const struct problem *x = problem;
  return x->half == half && x->cols % 4 == 0;
}
static bool narrow(const void *problem, bool half) {
  return quads(problem, half) && ((const struct problem *)problem)->cols <= 256;
}
static bool quads_f32(const void *x, const struct caps *c) { return (void)c, quads(x, false); }
static bool quads_f16(const void *x, const struct caps *c) { return (void)c, quads(x, true); }
static bool narrow_f32(const void *x, const struct caps *c) { return (void)c, narrow(x, false); }
static bool narrow_f16(const void *x, const struct caps *c) { return (void)c, narrow(x, true); }
static bool any_f16(const void *x, const struct caps *c) {
  return (void)c, ((const struct problem *)x)->half;
}

/* tile[0]: rows of a workgroup. A short row leaves most of 256 threads without work. */
static const struct kernel kernels[] = {
    {"narrow_f32", &rms_norm_wgsl, "WG=64u use=quad_f32 use=group_tree", 0, narrow_f32, {1}},
    {"narrow_f16", &rms_norm_wgsl, "WG=64u use=quad_f16 use=group_tree", 0, narrow_f16, {1}},
    {"subgroups_f32",
     &rms_norm_wgsl,
     "use=quad_f32 use=group_subgroup",
     NEEDS_SUBGROUPS,
     quads_f32,
     {1},
     256,
     256},
    {"subgroups_f16",
     &rms_norm_wgsl,
     "use=quad_f16 use=group_subgroup",
     NEEDS_SUBGROUPS,
     quads_f16,
     {1},
     256,
     256},
    {"quads_f32", &rms_norm_wgsl, "use=quad_f32 use=group_tree", 0, quads_f32, {1}, 256, 1024},
    {"quads_f16", &rms_norm_wgsl, "use=quad_f16 use=group_tree", 0, quads_f16, {1}, 256, 1024},
    {"any_f16", &rms_norm_any_wgsl, "use=elem_f16 use=group_tree", 0, any_f16, {2}, 32, 256},
    {"any_f32", &rms_norm_any_wgsl, "use=elem_f32 use=group_tree", 0, NULL, {1}, 32, 256},
    {0},
};

/* [x, weight, eps, out] */
static sconce_status check(struct plan *p, const struct node *n) {
  const struct tensor *x = arg_tensor(p, n, 0), *w = arg_tensor(p, n, 1), *y = arg_tensor(p, n, 3);
  if (!x || !w || !y) return SCONCE_BAD_GRAPH;
  char a[120], b[120];
  if (x->dtype != VK_FLOAT32 && x->dtype != VK_FLOAT16)
    return fail(p->err, SCONCE_UNSUPPORTED, "the norm of %s", tensor_text(x, a));
  if (x->rank == 0 || w->rank != 1 || w->dim_live[0] != x->dim_live[x->rank - 1] ||
      w->dtype != x->dtype || y->dtype != x->dtype)
    return fail(p->err, SCONCE_BAD_GRAPH, "the norm of %s with the weight %s", tensor_text(x, a),
                tensor_text(w, b));
  return SCONCE_OK;
}

static sconce_status shape(struct plan *p, const struct node *n) {
  TRY(check(p, n));
  return shape_same(p, n);
}

static sconce_status emit(struct plan *p, const struct node *n) {
  TRY(check(p, n));
  const struct tensor *x = arg_tensor(p, n, 0);
  double eps;
  TRY(arg_float_or(p, n, 2, (double)FLT_EPSILON, &eps));
  struct problem problem = {x->dim_live[x->rank - 1], x->dtype == VK_FLOAT16};
  if (problem.cols == 0) return SCONCE_OK; /* at load y may have elements nevertheless */
  uint32_t rows = (uint32_t)(tensor_numel(x) / problem.cols);
  const struct kernel *row = choose(p, kernels, &problem);
  if (!row) return p->err->status;
  struct rms_norm_params u = {
      .rows = rows, .quads = problem.cols / 4, .cols = (float)problem.cols, .eps = (float)eps};
  return dispatch(p, row, &u, div_up(rows, row->tile[0]),
                  OPERANDS({arg_id(n, 0)}, {arg_id(n, 1)}, {out_id(n)}));
}

const struct op ops_rms_norm[] = {
    {"et_vk.rms_norm.default", shape, emit, .n_args = 4, .kernels = {kernels}},
    {0},
};
