/* Running sums along a dim. Floats of 2 bytes are added up in 4 and rounded at the end. */
#include "ops/halves/halves.h"
#include "ops/parts/parts.h"

#include "cumsum.wgsl.h"
#include "cumsum_group.wgsl.h"
#include "cumsum_total.wgsl.h"

/* ---- kernels --------------------------------------------------------------------------------- */

struct problem {
  enum vk_dtype to; /* float32 or int32 */
  uint32_t lines, size, inner;
};

/* One thread per line: where there are lines enough to fill a device and they lie side by side, or
 * where they are short. Not where lines are in parts. */
static bool alone(const struct problem *q) {
  return q->size <= 32 || (q->lines >= 4096 && q->inner >= 16 && q->size <= PART_DENSE);
}
static bool floats(const void *problem) {
  return ((const struct problem *)problem)->to == VK_FLOAT32;
}
static bool ints(const void *problem) { return ((const struct problem *)problem)->to == VK_INT32; }
static bool floats_alone(const void *problem) { return floats(problem) && alone(problem); }
static bool ints_alone(const void *problem) { return ints(problem) && alone(problem); }

/* tile[0]: lines of a workgroup, or parts of lines. */
#define THREAD(NAME, TO, SET, OF)                                                                  \
  {NAME "_thread", &cumsum_wgsl, SET, OF, .fits = TO##_alone, .tile = {64}}
#define GROUP(NAME, SHADER, TO, SET, OF)                                                           \
  {NAME, &SHADER, SET, OF, .fits = TO, .tile = {1}, .workgroup_bytes = 256, .reference = true}
#define SUMS(NAME, TO, SET, OF)                                                                    \
  THREAD(NAME, TO, SET, OF), GROUP(NAME, cumsum_group_wgsl, TO, SET, OF)
#define SUMS_OF(NAME, IN, OF)                                                                      \
  SUMS(NAME "_to_f32", floats, "IN=" IN, OF), SUMS(NAME "_to_i32", ints, "Sum=i32 IN=" IN, OF)
#define TOTALS_OF(NAME, IN, OF)                                                                    \
  GROUP(NAME "_to_f32", cumsum_total_wgsl, floats, "IN=" IN, OF),                                  \
      GROUP(NAME "_to_i32", cumsum_total_wgsl, ints, "Sum=i32 IN=" IN, OF)
#define EVERY(ROWS)                                                                                \
  {ROWS("f32", "F32", OF_F32),        ROWS("f16", "F16", OF_F16),                                  \
   ROWS("i32", "I32", OF_I32),        ROWS("u8", "BYTES", OF_U8 | OF_BOOL),                        \
   ROWS("i8", "SIGNED_BYTES", OF_I8), {0}}
static const struct kernel kernels[] = EVERY(SUMS_OF);
static const struct kernel total_kernels[] = EVERY(TOTALS_OF);

/* ---- shape and emit -------------------------------------------------------------------------- */

/* [x, dim, dtype, out]: sums have the dtype of out. */
static sconce_status lines_of(struct plan *p, const struct node *n, const uint32_t *dims,
                              struct cumsum_params *u) {
  const struct tensor *x;
  TRY(arg_tensor(p, n, 0, &x));
  uint32_t dim = 0;
  if (x->rank) TRY(arg_dim(p, n, 1, x->rank, &dim));
  *u = (struct cumsum_params){.lines = 1, .size = x->rank ? dims[dim] : 1, .inner = 1};
  for (uint32_t i = 0; i < x->rank; i++) {
    if (i != dim) u->lines *= dims[i];
    if (i > dim) u->inner *= dims[i];
  }
  u->each = PART_DENSE;
  u->parts = parts_of(u->lines, u->size, u->each);
  return SCONCE_OK;
}

/* extra[0]: sums that are rounded at the end; extra[1]: totals of parts, extra[2]: their sums. */
static sconce_status prepare(struct plan *p, struct node *n) {
  const struct tensor *x, *y = out_tensor(p, n);
  struct cumsum_params u;
  TRY(arg_tensor(p, n, 0, &x));
  TRY(lines_of(p, n, x->dim_max, &u));
  const bool halves = y->dtype == VK_FLOAT16;
  if (halves) TRY(graph_scratch(p->g, VK_FLOAT32, tensor_numel_max(y), &n->extra[0], p->err));
  if (u.size <= PART_DENSE) return SCONCE_OK;
  const uint64_t most = parts_most(u.lines, u.size, PART_DENSE);
  const enum vk_dtype to = halves ? VK_FLOAT32 : y->dtype;
  TRY(graph_scratch(p->g, to, most, &n->extra[1], p->err));
  return graph_scratch(p->g, to, most, &n->extra[2], p->err);
}

/* The sums of all parts up to each. */
static sconce_status emit_totals(struct plan *p, const struct node *n, enum vk_dtype from,
                                 enum vk_dtype to, const struct cumsum_params *u) {
  const uint32_t totals = n->extra[1], sums = n->extra[2];
  const struct cumsum_params v = {
      .lines = u->lines, .size = u->parts, .inner = 1, .parts = 1, .each = u->parts};
  const struct problem whole = {to, u->lines, u->size, u->inner},
                       of_parts = {to, v.lines, v.size, v.inner};
  const struct kernel *row;
  TRY(choose(p, n, total_kernels, from, &whole, &row));
  TRY(dispatch(p, row, u, (uint64_t)u->lines * u->parts, OPERANDS({arg_id(n, 0)}, {totals})));
  TRY(choose(p, n, kernels, to, &of_parts, &row));
  return dispatch(p, row, &v, div_up(v.lines, row->tile[0]),
                  OPERANDS({totals}, {sums}, {totals})); /* the last stands in */
}

static sconce_status emit(struct plan *p, const struct node *n) {
  const struct tensor *x, *y = out_tensor(p, n);
  TRY(arg_tensor(p, n, 0, &x));
  struct cumsum_params u;
  TRY(lines_of(p, n, x->dim_live, &u));
  const bool halves = y->dtype == VK_FLOAT16;
  const enum vk_dtype to = halves ? VK_FLOAT32 : y->dtype;
  const struct problem problem = {to, u.lines, u.size, u.inner};
  const struct kernel *row = row_for(p, n, kernels, x->dtype, &problem);
  char one[120], two[120];
  if (!row)
    return fail(p->err, SCONCE_UNSUPPORTED, "sums of %s in %s", tensor_text(x, one),
                tensor_text(y, two));
  const bool parts = u.parts > 1;
  const uint32_t id = arg_id(n, 0), sums = halves ? n->extra[0] : out_id(n);
  if (parts) TRY(emit_totals(p, n, x->dtype, to, &u));
  TRY(dispatch(p, row, &u, div_up((uint64_t)u.lines * u.parts, row->tile[0]),
               OPERANDS({id}, {sums}, {parts ? n->extra[2] : id})));
  return halves ? halves_emit(p, n, sums, out_id(n)) : SCONCE_OK;
}

const struct op ops_cumsum[] = {
    {"aten.cumsum.default", shape_same, emit, prepare, .also = "aten::cumsum.out", .n_args = 4,
     .tables = TABLES(kernels, total_kernels, halves_kernels)},
    {0},
};
