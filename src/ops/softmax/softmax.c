/* Softmax and its logarithm along one dim, in two steps: what lines have in common, then elements.
 * A thread of the second owns whole words also where a word holds the ends of two lines. */
#include "graph/op.h"

#include "softmax.wgsl.h"
#include "softmax_stats.wgsl.h"

struct problem {
  enum vk_dtype dtype;
  uint32_t lines, size, inner;
};

/* One thread per line where there are lines enough and neighbours read side by side. */
static bool alone(const struct problem *q) {
  return q->size <= 16 || (q->lines >= 4096 && q->inner > 1);
}

static bool f32(const void *problem, const struct caps *caps) {
  (void)caps;
  return ((const struct problem *)problem)->dtype == VK_FLOAT32;
}
static bool f32_alone(const void *problem, const struct caps *caps) {
  return f32(problem, caps) && alone(problem);
}
static bool f16_alone(const void *problem, const struct caps *caps) {
  return !f32(problem, caps) && alone(problem);
}
static bool f16(const void *problem, const struct caps *caps) { return !f32(problem, caps); }

/* tile[0]: lines that one workgroup sees. */
enum { SHARED = 64 * 4 };
static const struct kernel stats_kernels[] = {
    {"f32_thread", &softmax_stats_wgsl, "GROUP=false use=elem_f32", .fits = f32_alone,
     .tile = {64}},
    {"f16_thread", &softmax_stats_wgsl, "GROUP=false use=elem_f16", .fits = f16_alone,
     .tile = {64}},
    {"f32", &softmax_stats_wgsl, "use=elem_f32", .fits = f32, .tile = {1},
     .workgroup_bytes = SHARED},
    {"f16", &softmax_stats_wgsl, "use=elem_f16", .fits = f16, .tile = {1},
     .workgroup_bytes = SHARED},
    {0},
};
static const struct kernel plain_kernels[] = {
    {"f32", &softmax_wgsl, "use=elem_f32", .fits = f32},
    {"f16", &softmax_wgsl, "use=elem_f16", .fits = f16},
    {0},
};
static const struct kernel log_kernels[] = {
    {"log_f32", &softmax_wgsl, "LOG=true use=elem_f32", .fits = f32},
    {"log_f16", &softmax_wgsl, "LOG=true use=elem_f16", .fits = f16},
    {0},
};

/* [x, dim, half_to_float, out] */
static sconce_status lines_of(struct plan *p, const struct node *n, const uint32_t *dims,
                              struct problem *q) {
  const struct tensor *x = arg_tensor(p, n, 0), *y = arg_tensor(p, n, 3);
  if (!x || !y) return SCONCE_BAD_GRAPH;
  char one[120], two[120];
  if (x->dtype != y->dtype || (x->dtype != VK_FLOAT32 && x->dtype != VK_FLOAT16))
    return fail(p->err, SCONCE_UNSUPPORTED, "%s becomes %s", tensor_text(x, one),
                tensor_text(y, two));
  uint32_t dim = 0;
  if (x->rank) TRY(arg_dim(p, n, 1, x->rank, &dim));
  *q = (struct problem){x->dtype, 1, x->rank ? dims[dim] : 1, 1};
  for (uint32_t i = 0; i < x->rank; i++) {
    if (i != dim) q->lines *= dims[i];
    if (i > dim) q->inner *= dims[i];
  }
  return SCONCE_OK;
}

static sconce_status prepare(struct plan *p, struct node *n) {
  struct problem q;
  const struct tensor *x = arg_tensor(p, n, 0);
  if (!x) return SCONCE_BAD_GRAPH;
  TRY(lines_of(p, n, x->dim_max, &q));
  return graph_scratch(p->g, VK_FLOAT32, 2 * (uint64_t)q.lines, &n->extra[0], p->err);
}

static sconce_status emit(struct plan *p, const struct node *n) {
  struct problem q;
  const struct tensor *x = arg_tensor(p, n, 0);
  if (!x) return SCONCE_BAD_GRAPH;
  TRY(lines_of(p, n, x->dim_live, &q));
  struct softmax_stats_params s = {.lines = q.lines, .size = q.size, .inner = q.inner};
  const struct kernel *row = choose(p, stats_kernels, &q);
  TRY(dispatch(p, row, &s, row ? div_up(q.lines, row->tile[0]) : 0,
               OPERANDS({arg_id(n, 0)}, {n->extra[0]})));
  struct softmax_params u = {.n = q.lines * q.size, .size = q.size, .inner = q.inner};
  uint64_t words = div_up(u.n, 4 / vk_dtype_size(x->dtype));
  return dispatch(p, choose(p, n->op->kernels[1], &q), &u, div_up(words, 64),
                  OPERANDS({arg_id(n, 0)}, {n->extra[0]}, {out_id(n)}));
}

#define SOFTMAX(NAME, KERNELS)                                                                     \
  {                                                                                                \
    NAME, shape_same, emit, prepare, .n_args = 4, .kernels = { stats_kernels, KERNELS }            \
  }

const struct op ops_softmax[] = {
    SOFTMAX("aten._softmax.default", plain_kernels),
    SOFTMAX("aten::_softmax.out", plain_kernels),
    SOFTMAX("aten._log_softmax.default", log_kernels),
    SOFTMAX("aten::_log_softmax.out", log_kernels),
    {0},
};
