/* Sums, relu and pixel shuffle of quantised tensors: each byte becomes a real number, and the
 * result a byte again, in the steps that PyTorch takes. Nothing but bytes is in memory. */
#include "ops/strides/strides.h"

#include "q8ta_add.wgsl.h"
#include "q8ta_move.wgsl.h"

#include <float.h>
#include <inttypes.h>
#include <string.h>

/* The words of all operands belong together. */
static bool words(const void *problem) { return *(const bool *)problem; }

#define TABLE(NAME, WGSL)                                                                          \
  static const struct kernel NAME[] = {                                                            \
      {"i8", &WGSL, "use=quad_i8", OF_I8, .fits = words},                                          \
      {"i8_any", &WGSL, "WORDS=false use=quad_i8", OF_I8},                                         \
      {"u8", &WGSL, "use=quad_u8", OF_U8, .fits = words},                                          \
      {"u8_any", &WGSL, "WORDS=false use=quad_u8", OF_U8},                                         \
      {0},                                                                                         \
  }
TABLE(add_rows, q8ta_add_wgsl);
TABLE(move_rows, q8ta_move_wgsl);

/* ---- arguments ------------------------------------------------------------------------------- */

static sconce_status number(struct plan *p, const struct node *n, uint32_t i, float *out) {
  double wide;
  TRY(arg_float(p, n, i, &wide));
  *out = (float)wide;
  return SCONCE_OK;
}

/* PyTorch inverts in double and rounds then. */
static sconce_status inverse(struct plan *p, const struct node *n, uint32_t i, float *out) {
  double scale;
  TRY(arg_float(p, n, i, &scale));
  *out = (float)(1 / scale);
  return SCONCE_OK;
}

static sconce_status bytes_check(struct plan *p, const struct tensor *x, const struct tensor *y) {
  if (x->dtype == y->dtype && (x->dtype == VK_INT8 || x->dtype == VK_UINT8)) return SCONCE_OK;
  return fail(p->err, SCONCE_UNSUPPORTED, "%s to %s, expected int8 or uint8",
              vk_dtype_name(x->dtype), vk_dtype_name(y->dtype));
}

/* All values of the dtype. */
static void range_of(const struct tensor *y, float *low, float *high) {
  *low = y->dtype == VK_UINT8 ? 0 : INT8_MIN;
  *high = y->dtype == VK_UINT8 ? UINT8_MAX : INT8_MAX;
}

/* One dispatch, or several over ranges where tensors exceed a binding and run in step. */
static sconce_status emit_words(struct plan *p, const struct kernel *row, void *params,
                                uint32_t *n_of, bool flat, const uint32_t *ids, uint32_t n_ids) {
  const struct tensor *y = tensor_at(p, ids[n_ids - 1]);
  const uint64_t numel = tensor_numel(y);
  uint64_t part = flat ? flat_part(p, tensor_numel_max(y), 1) : numel;
  if (part == 0 || part > numel) part = numel;
  for (uint64_t at = 0; at < numel; at += part) {
    struct operand operands[3];
    *n_of = (uint32_t)(numel - at < part ? numel - at : part);
    for (uint32_t i = 0; i < n_ids; i++)
      operands[i] =
          part == numel ? (struct operand){ids[i], 0, 0} : flat_operand(p, ids[i], at, part);
    TRY(dispatch(p, row, params, div_up(*n_of, 256), operands));
  }
  return SCONCE_OK;
}

/* ---- sums ------------------------------------------------------------------------------------ */

/* Where the arguments are: [a, b, a scale, a zero, b scale, b zero, y scale, y zero, alpha, y], or
 * [a, scale, zero, low, high, b, scale, zero, low, high, scale, zero, low, high, y]. */
enum { Q8TA, DECOMPOSED };
static const struct places {
  uint32_t b, a_scale, b_scale, y_scale;
} places[] = {[Q8TA] = {1, 2, 4, 6}, [DECOMPOSED] = {5, 1, 6, 10}};

static sconce_status add_shape(struct plan *p, const struct node *n) {
  const uint32_t b = places[n->op->code].b;
  const struct tensor *x[2];
  TRY(arg_tensor(p, n, 0, &x[0]));
  TRY(arg_tensor(p, n, b, &x[1]));
  uint32_t dims[RANK_MAX], rank;
  TRY(broadcast_dims(p, x, 2, dims, &rank));
  return set_dims(p, out_id(n), dims, rank);
}

static sconce_status add_numbers(struct plan *p, const struct node *n, struct q8ta_add_params *u) {
  const struct places *at = &places[n->op->code];
  TRY(number(p, n, at->a_scale, &u->a_scale));
  TRY(number(p, n, at->a_scale + 1, &u->a_zero));
  TRY(number(p, n, at->b_scale, &u->b_scale));
  TRY(number(p, n, at->b_scale + 1, &u->b_zero));
  TRY(inverse(p, n, at->y_scale, &u->inverse));
  TRY(number(p, n, at->y_scale + 1, &u->zero));
  u->alpha = 1;
  range_of(out_tensor(p, n), &u->low, &u->high);
  if (n->op->code == Q8TA) return number(p, n, 8, &u->alpha);
  TRY(number(p, n, 12, &u->low));
  return number(p, n, 13, &u->high);
}

static sconce_status add_emit(struct plan *p, const struct node *n) {
  const uint32_t at_b = places[n->op->code].b;
  const struct tensor *a, *b, *y = out_tensor(p, n);
  TRY(arg_tensor(p, n, 0, &a));
  TRY(arg_tensor(p, n, at_b, &b));
  TRY(bytes_check(p, a, y));
  TRY(bytes_check(p, b, y));
  struct q8ta_add_params u = {0};
  TRY(add_numbers(p, n, &u));
  struct nest nest = {.rank = y->rank, .n_operands = 2};
  memcpy(nest.size, y->dim_live, y->rank * sizeof *nest.size);
  nest_broadcast(&nest, 0, a);
  nest_broadcast(&nest, 1, b);
  nest_merge(&nest);
  const bool flat = nest.rank == 1 && nest.stride[0][0] == 1 && nest.stride[1][0] == 1;
  u.rank = nest.rank;
  memcpy(u.size, nest.size, sizeof u.size);
  memcpy(u.a_step, nest.stride[0], sizeof u.a_step);
  memcpy(u.b_step, nest.stride[1], sizeof u.b_step);
  const uint32_t ids[] = {arg_id(n, 0), arg_id(n, at_b), out_id(n)};
  const struct kernel *row;
  TRY(choose(p, n, add_rows, y->dtype, &flat, &row));
  return emit_words(p, row, &u, &u.n, flat, ids, 3);
}

/* ---- relu and pixel shuffle: [x, x scale, x zero, y scale, y zero, (factor,) y] ----------------
 */

static sconce_status move_emit(struct plan *p, const struct node *n, struct nest *nest,
                               float inverted, float least) {
  const struct tensor *x, *y = out_tensor(p, n);
  TRY(arg_tensor(p, n, 0, &x));
  TRY(bytes_check(p, x, y));
  struct q8ta_move_params u = {.least = least, .inverse = inverted};
  range_of(y, &u.low, &u.high);
  TRY(number(p, n, 1, &u.x_scale));
  TRY(number(p, n, 2, &u.x_zero));
  TRY(number(p, n, 4, &u.zero));
  nest_merge(nest);
  const bool flat = nest->rank == 1 && nest->stride[0][0] == 1;
  u.rank = nest->rank;
  memcpy(u.size, nest->size, sizeof u.size);
  memcpy(u.step, nest->stride[0], sizeof u.step);
  const uint32_t ids[] = {arg_id(n, 0), out_id(n)};
  const struct kernel *row;
  TRY(choose(p, n, move_rows, y->dtype, &flat, &row));
  return emit_words(p, row, &u, &u.n, flat, ids, 2);
}

static sconce_status relu_emit(struct plan *p, const struct node *n) {
  const struct tensor *x;
  struct nest nest = {.n_operands = 1};
  float inverted;
  TRY(arg_tensor(p, n, 0, &x));
  TRY(inverse(p, n, 3, &inverted));
  nest_push(&nest, (uint32_t)tensor_numel(x), 1, 0);
  return move_emit(p, n, &nest, inverted, 0);
}

/* x as (planes, r, r, h, w): y is (planes, h, r, w, r). */
static sconce_status factor_of(struct plan *p, const struct node *n, const struct tensor *x,
                               uint32_t *factor) {
  int64_t r;
  TRY(arg_int(p, n, 5, &r));
  const uint32_t channels = x->rank >= 3 ? x->dim_live[x->rank - 3] : 0;
  if (x->rank < 3 || r < 1 || r > UINT16_MAX || channels % (r * r))
    return fail(p->err, SCONCE_BAD_GRAPH, "%u channels of a tensor of rank %u by %" PRId64,
                channels, x->rank, r);
  *factor = (uint32_t)r;
  return SCONCE_OK;
}

static sconce_status shuffle_shape(struct plan *p, const struct node *n) {
  uint32_t r = 1, dims[RANK_MAX];
  const struct tensor *x;
  TRY(arg_tensor(p, n, 0, &x));
  TRY(factor_of(p, n, x, &r));
  memcpy(dims, x->dim_live, sizeof dims);
  dims[x->rank - 3] /= r * r;
  dims[x->rank - 2] *= r;
  dims[x->rank - 1] *= r;
  return set_dims(p, out_id(n), dims, x->rank);
}

static sconce_status shuffle_emit(struct plan *p, const struct node *n) {
  uint32_t r = 1;
  const struct tensor *x;
  TRY(arg_tensor(p, n, 0, &x));
  TRY(factor_of(p, n, x, &r));
  const uint32_t h = x->dim_live[x->rank - 2], w = x->dim_live[x->rank - 1], plane = h * w;
  struct nest nest = {.n_operands = 1};
  nest_push(&nest, (uint32_t)(tensor_numel(x) / plane / (r * r)), plane * r * r, 0);
  nest_push(&nest, h, w, 0);
  nest_push(&nest, r, plane * r, 0);
  nest_push(&nest, w, 1, 0);
  nest_push(&nest, r, plane, 0);
  double inverted; /* the scale itself is what PyTorch inverts */
  TRY(arg_float(p, n, 3, &inverted));
  return move_emit(p, n, &nest, (float)(1 / (1 / inverted)), -FLT_MAX);
}

const struct op ops_q8ta_elementwise[] = {
    {"et_vk.q8ta_add.default", add_shape, add_emit, .n_args = 10, .code = Q8TA,
     .tables = TABLES(add_rows)},
    {"quantized_decomposed.add.default", add_shape, add_emit,
     .also = "quantized_decomposed::add.out", .n_args = 15, .code = DECOMPOSED,
     .tables = TABLES(add_rows)},
    {"et_vk.q8ta_relu.default", shape_same, relu_emit, .n_args = 6, .tables = TABLES(move_rows)},
    {"et_vk.q8ta_pixel_shuffle.default", shuffle_shape, shuffle_emit, .n_args = 7,
     .tables = TABLES(move_rows)},
    {0},
};
