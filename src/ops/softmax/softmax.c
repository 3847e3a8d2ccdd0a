/* Softmax and its logarithm along one dim, in two steps: what lines have in common (of long lines
 * what their parts have, then the lines), then elements.
 * A thread of the second owns whole words also where a word holds the ends of two lines. */
#include "ops/compound/expand.h"
#include "ops/parts/parts.h"

#include "graph/op.h"

#include "softmax.wgsl.h"
#include "softmax_join.wgsl.h"
#include "softmax_stats.wgsl.h"

struct problem {
  uint32_t lines, size, inner, parts, each;
};

/* One thread per line where there are lines enough and neighbours read side by side. */
static bool alone(const void *problem) {
  const struct problem *q = problem;
  return q->size <= 16 || (q->lines >= (q->parts > 1 ? 64 : 4096) && q->inner > 1);
}

/* tile[0]: lines, or parts of lines, that one workgroup sees. */
enum { SHARED = 64 * 4 };
static const struct kernel stats_kernels[] = {
    {"f32_thread", &softmax_stats_wgsl, "GROUP=false use=elem_f32", OF_F32, .fits = alone,
     .tile = {64}},
    {"f16_thread", &softmax_stats_wgsl, "GROUP=false use=elem_f16", OF_F16, .fits = alone,
     .tile = {64}},
    {"f32", &softmax_stats_wgsl, "use=elem_f32", OF_F32, .tile = {1}, .workgroup_bytes = SHARED,
     .reference = true},
    {"f16", &softmax_stats_wgsl, "use=elem_f16", OF_F16, .tile = {1}, .workgroup_bytes = SHARED,
     .reference = true},
    {0},
};
static const struct kernel join_kernels[] = {
    {"parts", &softmax_join_wgsl, "", .workgroup_bytes = SHARED}, {0}};
static const struct kernel plain_kernels[] = {
    {"f32", &softmax_wgsl, "use=elem_f32", OF_F32},
    {"f16", &softmax_wgsl, "use=elem_f16", OF_F16},
    {0},
};
static const struct kernel log_kernels[] = {
    {"log_f32", &softmax_wgsl, "LOG=true use=elem_f32", OF_F32},
    {"log_f16", &softmax_wgsl, "LOG=true use=elem_f16", OF_F16},
    {0},
};

/* [x, dim, half_to_float, out]; out says the same as half_to_float. */
static sconce_status lines_of(struct plan *p, const struct node *n, const uint32_t *dims,
                              struct problem *q) {
  const struct tensor *x, *y = out_tensor(p, n);
  TRY(arg_tensor(p, n, 0, &x));
  char one[120], two[120];
  if (x->dtype != y->dtype || !tensor_is_float(x))
    return fail(p->err, SCONCE_UNSUPPORTED, "%s becomes %s", tensor_text(x, one),
                tensor_text(y, two));
  uint32_t dim = 0;
  if (x->rank) TRY(arg_dim(p, n, 1, x->rank, &dim));
  *q = (struct problem){.lines = 1, .size = x->rank ? dims[dim] : 1, .inner = 1};
  for (uint32_t i = 0; i < x->rank; i++) {
    if (i != dim) q->lines *= dims[i];
    if (i > dim) q->inner *= dims[i];
  }
  q->each = q->inner == 1 ? PART_DENSE : PART_SPARSE;
  q->parts = parts_of(q->lines, q->size, q->each);
  return SCONCE_OK;
}

static sconce_status prepare(struct plan *p, struct node *n) {
  struct problem q;
  const struct tensor *x;
  TRY(arg_tensor(p, n, 0, &x));
  TRY(lines_of(p, n, x->dim_max, &q));
  TRY(graph_scratch(p->g, VK_FLOAT32, 2 * (uint64_t)q.lines, &n->extra[0], p->err));
  if (q.size <= PART_SPARSE) return SCONCE_OK;
  return graph_scratch(p->g, VK_FLOAT32, 2 * parts_most(q.lines, q.size, PART_SPARSE), &n->extra[1],
                       p->err);
}

/* The maximum and the sum of each line, in extra[0]. */
static sconce_status emit_stats(struct plan *p, const struct node *n, enum vk_dtype dtype,
                                const struct problem *q) {
  const struct softmax_stats_params s = {
      .lines = q->lines, .size = q->size, .inner = q->inner, .parts = q->parts, .each = q->each};
  const struct softmax_join_params j = {.lines = q->lines, .parts = q->parts};
  const struct operand x = {arg_id(n, 0)}, found = {n->extra[q->parts > 1]};
  const struct kernel *row;
  TRY(choose(p, n, stats_kernels, dtype, q, &row));
  TRY(dispatch(p, row, &s, div_up((uint64_t)q->lines * q->parts, row->tile[0]),
               OPERANDS(x, found)));
  if (q->parts == 1) return SCONCE_OK;
  TRY(choose(p, n, join_kernels, VK_FLOAT32, q, &row));
  return dispatch(p, row, &j, q->lines, OPERANDS(found, {n->extra[0]}));
}

static sconce_status emit(struct plan *p, const struct node *n) {
  struct problem q;
  const struct tensor *x;
  const struct kernel *row;
  TRY(arg_tensor(p, n, 0, &x));
  TRY(lines_of(p, n, x->dim_live, &q));
  TRY(emit_stats(p, n, x->dtype, &q));
  struct softmax_params u = {.n = q.lines * q.size, .size = q.size, .inner = q.inner};
  uint64_t words = div_up(u.n, 4 / vk_dtype_size(x->dtype));
  TRY(choose(p, n, n->op->tables[2], x->dtype, &q, &row));
  return dispatch(p, row, &u, div_up(words, 64),
                  OPERANDS({arg_id(n, 0)}, {n->extra[0]}, {out_id(n)}));
}

EXPAND_WIDE(wide, "aten._softmax.default", VK_FLOAT32)
EXPAND_WIDE(wide_log, "aten._log_softmax.default", VK_FLOAT32)

#define SOFTMAX(NAME, PORTABLE, EXPAND, TABLE)                                                     \
  {NAME,                                                                                           \
   shape_same,                                                                                     \
   emit,                                                                                           \
   prepare,                                                                                        \
   EXPAND,                                                                                         \
   expand_mixes_floats,                                                                            \
   .also = PORTABLE,                                                                               \
   .n_args = 4,                                                                                    \
   .tables = TABLES(stats_kernels, join_kernels, TABLE)}

const struct op ops_softmax[] = {
    SOFTMAX("aten._softmax.default", "aten::_softmax.out", wide, plain_kernels),
    SOFTMAX("aten._log_softmax.default", "aten::_log_softmax.out", wide_log, log_kernels),
    {0},
};
