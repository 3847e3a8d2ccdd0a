/* Running sums along a dim. Floats of 2 bytes are added up in 4 and rounded at the end. */
#include "ops/halves/halves.h"

#include "cumsum.wgsl.h"
#include "cumsum_group.wgsl.h"

/* ---- kernels --------------------------------------------------------------------------------- */

struct problem {
  enum vk_dtype to; /* float32 or int32 */
  uint32_t lines, size, inner;
};

/* One thread per line: where there are lines enough to fill a device and they lie side by side, or
 * where they are short. */
static bool alone(const struct problem *q) {
  return q->size <= 32 || (q->lines >= 4096 && q->inner >= 16);
}
static bool floats(const void *problem) {
  return ((const struct problem *)problem)->to == VK_FLOAT32;
}
static bool ints(const void *problem) { return ((const struct problem *)problem)->to == VK_INT32; }
static bool floats_alone(const void *problem) { return floats(problem) && alone(problem); }
static bool ints_alone(const void *problem) { return ints(problem) && alone(problem); }

/* tile[0]: lines of a workgroup. */
#define PAIR(NAME, TO, SET, OF)                                                                    \
  {NAME "_thread", &cumsum_wgsl, SET, OF, .fits = TO##_alone, .tile = {64}},                       \
      {NAME, &cumsum_group_wgsl, SET, OF, .fits = TO, .tile = {1}, .workgroup_bytes = 256}
#define FROM(NAME, IN, OF)                                                                         \
  PAIR(NAME "_to_f32", floats, "IN=" IN, OF), PAIR(NAME "_to_i32", ints, "Sum=i32 IN=" IN, OF)
static const struct kernel kernels[] = {
    FROM("f32", "F32", OF_F32),        FROM("f16", "F16", OF_F16),
    FROM("i32", "I32", OF_I32),        FROM("u8", "BYTES", OF_U8 | OF_BOOL),
    FROM("i8", "SIGNED_BYTES", OF_I8), {0},
};

/* ---- shape and emit -------------------------------------------------------------------------- */

/* [x, dim, dtype, out]: sums have the dtype of out. */
static sconce_status prepare(struct plan *p, struct node *n) {
  const struct tensor *y = out_tensor(p, n);
  if (y->dtype != VK_FLOAT16) return SCONCE_OK;
  return graph_scratch(p->g, VK_FLOAT32, tensor_numel_max(y), &n->extra[0], p->err);
}

static sconce_status emit(struct plan *p, const struct node *n) {
  const struct tensor *x, *y = out_tensor(p, n);
  TRY(arg_tensor(p, n, 0, &x));
  uint32_t dim = 0;
  if (x->rank) TRY(arg_dim(p, n, 1, x->rank, &dim));
  struct cumsum_params u = {.lines = 1, .size = x->rank ? x->dim_live[dim] : 1, .inner = 1};
  for (uint32_t i = 0; i < x->rank; i++) {
    if (i != dim) u.lines *= x->dim_live[i];
    if (i > dim) u.inner *= x->dim_live[i];
  }
  const bool halves = y->dtype == VK_FLOAT16;
  const struct problem problem = {halves ? VK_FLOAT32 : y->dtype, u.lines, u.size, u.inner};
  const struct kernel *row = row_for(p, n, kernels, x->dtype, &problem);
  char one[120], two[120];
  if (!row)
    return fail(p->err, SCONCE_UNSUPPORTED, "sums of %s in %s", tensor_text(x, one),
                tensor_text(y, two));
  const uint32_t sums = halves ? n->extra[0] : out_id(n);
  TRY(dispatch(p, row, &u, div_up(u.lines, row->tile[0]), OPERANDS({arg_id(n, 0)}, {sums})));
  return halves ? halves_emit(p, n, sums, out_id(n)) : SCONCE_OK;
}

const struct op ops_cumsum[] = {
    {"aten.cumsum.default", shape_same, emit, prepare, .also = "aten::cumsum.out", .n_args = 4,
     .tables = TABLES(kernels, halves_kernels)},
    {0},
};
