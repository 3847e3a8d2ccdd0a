/* Rows of a table by index: elements as they are, and codes of 2, 4 or 8 bits with scales. */
#include "ops/linear/rows.h"

#include "embedding.wgsl.h"
#include "embedding_q.wgsl.h"

#include <inttypes.h>
#include <string.h>

static const struct kernel kernels[] = {
    {"f32", &embedding_wgsl, "use=elem_f32", OF_F32},
    {"f16", &embedding_wgsl, "use=elem_f16", OF_F16},
    {"i32", &embedding_wgsl, "use=elem_i32", OF_I32},
    {"bytes", &embedding_wgsl, "use=elem_u8", OF_U8 | OF_I8 | OF_BOOL},
    {0},
};
enum codes { LOW_FIRST, HIGH_FIRST, BYTES, SIGNED_BYTES, TWO_BITS };
static uint32_t per_byte(enum codes codes) {
  return codes == TWO_BITS ? 4 : codes == LOW_FIRST || codes == HIGH_FIRST ? 2 : 1;
}
#define HAS(NAME, CODES)                                                                           \
  static bool NAME(const void *codes) { return *(const enum codes *)codes == (CODES); }
HAS(low_first, LOW_FIRST)
HAS(high_first, HIGH_FIRST)
HAS(bytes, BYTES)
HAS(signed_bytes, SIGNED_BYTES)
HAS(two_bits, TWO_BITS)
#define PAIR(NAME, FITS, SET)                                                                      \
  {NAME "_f32", &embedding_q_wgsl, SET "use=elem_f32", OF_F32, .fits = FITS}, {                    \
    NAME "_f16", &embedding_q_wgsl, SET "use=elem_f16", OF_F16, .fits = FITS                       \
  }
static const struct kernel kernels_q[] = {
    PAIR("q4", low_first, ""),        PAIR("q4_high", high_first, "EVEN_HIGH=1u "),
    PAIR("u8", bytes, "BITS=8u "),    PAIR("i8", signed_bytes, "BITS=8u SIGNED=1u "),
    PAIR("q2", two_bits, "BITS=2u "), {0},
};

/* ---- indices --------------------------------------------------------------------------------- */

static sconce_status shape_of(struct plan *p, const struct node *n, const struct tensor *indices,
                              uint32_t d) {
  uint32_t dims[RANK_MAX] = {0};
  if (indices->rank >= RANK_MAX)
    return fail(p->err, SCONCE_UNSUPPORTED, "indices of rank %u", indices->rank);
  memcpy(dims, indices->dim_live, sizeof dims);
  dims[indices->rank] = d;
  return set_dims(p, out_id(n), dims, indices->rank + 1);
}

static sconce_status check_int32(struct plan *p, const struct tensor *indices) {
  if (indices->dtype == VK_INT32) return SCONCE_OK;
  return fail(p->err, SCONCE_UNSUPPORTED, "indices of %s, expected int32",
              vk_dtype_name(indices->dtype));
}

/* What the host knows is checked here; what only the GPU knows reads as zeros in the kernel. */
static sconce_status check_indices(struct plan *p, const struct tensor *indices, uint32_t vocab) {
  const uint8_t *host = indices->host;
  TRY(check_int32(p, indices));
  for (uint64_t i = 0; host && i < tensor_numel(indices); i++) {
    int32_t index;
    memcpy(&index, host + 4 * i, 4);
    if (index < 0 || (uint32_t)index >= vocab)
      return fail(p->err, SCONCE_BAD_ARGUMENT, "token %" PRId32 " of a vocabulary of %u", index,
                  vocab);
  }
  return SCONCE_OK;
}

/* ---- aten.embedding: [table, indices, padding, scale_grad, sparse, y] --------------------------
 */

static sconce_status shape(struct plan *p, const struct node *n) {
  const struct tensor *table, *indices;
  TRY(arg_tensor(p, n, 0, &table));
  TRY(arg_tensor(p, n, 1, &indices));
  if (table->rank != 2)
    return fail(p->err, SCONCE_BAD_GRAPH, "a table of rank %u, expected 2", table->rank);
  TRY(check_indices(p, indices, table->dim_live[0]));
  return shape_of(p, n, indices, table->dim_live[1]);
}

static sconce_status emit(struct plan *p, const struct node *n) {
  const struct tensor *table, *indices, *y = out_tensor(p, n);
  TRY(arg_tensor(p, n, 0, &table));
  TRY(arg_tensor(p, n, 1, &indices));
  if (table->rank != 2 || y->dtype != table->dtype)
    return fail(p->err, SCONCE_BAD_GRAPH, "a table of %s and rank %u, a result of %s",
                vk_dtype_name(table->dtype), table->rank, vk_dtype_name(y->dtype));
  TRY(check_int32(p, indices));
  struct embedding_params u = {
      .n = (uint32_t)tensor_numel(y), .d = table->dim_live[1], .vocab = table->dim_live[0]};
  const uint32_t size = vk_dtype_size(table->dtype);
  const uint64_t row_bytes = (uint64_t)u.d * size;
  const uint64_t step = rows_split(p, u.vocab, row_bytes, 0);
  const struct kernel *row;
  TRY(choose(p, n, kernels, y->dtype, NULL, &row));
  for (uint64_t first = 0; first < u.vocab; first += step) {
    u.first = (uint32_t)first;
    u.rows = (uint32_t)(u.vocab - first < step ? u.vocab - first : step);
    TRY(dispatch(p, row, &u, div_up(u.n, 256 / size),
                 OPERANDS(rows_part(p, arg_id(n, 0), row_bytes, first, u.rows), {arg_id(n, 1)},
                          {out_id(n)})));
  }
  return SCONCE_OK;
}

/* ---- codes with scales ------------------------------------------------------------------------
 */

struct table {
  uint32_t w, scales, zeros, indices; /* value ids; zeros: NO_VALUE if there are none */
  enum codes codes;
  uint32_t d, group;
};

static sconce_status check_table(struct plan *p, const struct table *t, const struct tensor *w,
                                 const struct tensor *scales, uint32_t groups) {
  char a[120], b[120];
  TRY(float_check(p, scales, "the scales"));
  const uint64_t codes = (uint64_t)w->dim_max[1] * per_byte(t->codes);
  if (t->group == 0 || codes < t->d ||
      tensor_numel_max(scales) < (uint64_t)w->dim_max[0] * groups ||
      (uint64_t)groups * t->group < t->d)
    return fail(p->err, SCONCE_BAD_GRAPH,
                "a table %s with scales %s in groups of %u for %u columns", tensor_text(w, a),
                tensor_text(scales, b), t->group, t->d);
  const struct tensor *zeros = tensor_at(p, t->zeros);
  if (!zeros) return SCONCE_OK;
  TRY(float_check(p, zeros, "the zero points"));
  if (tensor_numel_max(zeros) != tensor_numel_max(scales))
    return fail(p->err, SCONCE_BAD_GRAPH, "zero points %s for scales %s", tensor_text(zeros, a),
                tensor_text(scales, b));
  return SCONCE_OK;
}

static sconce_status emit_table(struct plan *p, const struct node *n, const struct table *t) {
  const struct tensor *w = tensor_at(p, t->w), *scales = tensor_at(p, t->scales);
  const struct tensor *indices = tensor_at(p, t->indices), *y = out_tensor(p, n);
  if (!w || !scales || !indices || w->rank != 2 || scales->rank < 1 || scales->rank > 2)
    return fail(p->err, SCONCE_BAD_GRAPH, "a table, its scales and indices are expected");
  const uint32_t groups = scales->rank == 2 ? scales->dim_max[1] : 1;
  TRY(check_table(p, t, w, scales, groups));
  TRY(float_check(p, y, "the result"));
  TRY(check_int32(p, indices));
  const struct tensor *zeros = tensor_at(p, t->zeros);
  struct embedding_q_params u = {.n = (uint32_t)tensor_numel(y),
                                 .d = t->d,
                                 .vocab = w->dim_max[0],
                                 .stride = w->dim_max[1],
                                 .group = t->group,
                                 .groups = groups,
                                 .half = is_half(scales),
                                 .zeros = zeros ? 1 + is_half(zeros) : 0};
  const struct kernel *row;
  TRY(choose(p, n, kernels_q, y->dtype, &t->codes, &row));
  const uint64_t w_row = u.stride, s_row = (uint64_t)groups * vk_dtype_size(scales->dtype);
  const uint64_t z_row = zeros ? (uint64_t)groups * vk_dtype_size(zeros->dtype) : s_row;
  const uint64_t step = rows_split(p, u.vocab, w_row, s_row > z_row ? s_row : z_row);
  for (uint64_t first = 0; first < u.vocab; first += step) {
    u.first = (uint32_t)first;
    u.rows = (uint32_t)(u.vocab - first < step ? u.vocab - first : step);
    TRY(dispatch(p, row, &u, div_up(u.n, is_half(y) ? 128 : 64),
                 OPERANDS(rows_part(p, t->w, w_row, first, u.rows),
                          rows_part(p, t->scales, s_row, first, u.rows),
                          rows_part(p, zeros ? t->zeros : t->scales, z_row, first, u.rows),
                          {t->indices}, {out_id(n)})));
  }
  return SCONCE_OK;
}

/* et_vk.embedding_q4gsw: [w, scales, group, indices, is_linear, y] */
static sconce_status q4gsw_shape(struct plan *p, const struct node *n) {
  const struct tensor *w, *indices, *y = out_tensor(p, n);
  TRY(arg_tensor(p, n, 0, &w));
  TRY(arg_tensor(p, n, 3, &indices));
  TRY(check_indices(p, indices, w->dim_max[0]));
  return shape_of(p, n, indices, y->rank ? y->dim_max[y->rank - 1] : 0);
}

static sconce_status q4gsw_emit(struct plan *p, const struct node *n) {
  const struct tensor *y = out_tensor(p, n);
  int64_t group;
  bool even_low;
  TRY(arg_int(p, n, 2, &group));
  TRY(arg_bool(p, n, 4, &even_low));
  if (group < 1 || group > INT32_MAX)
    return fail(p->err, SCONCE_BAD_GRAPH, "groups of %" PRId64, group);
  struct table t = {.w = arg_id(n, 0),
                    .scales = arg_id(n, 1),
                    .zeros = NO_VALUE,
                    .indices = arg_id(n, 3),
                    .codes = even_low ? LOW_FIRST : HIGH_FIRST,
                    .d = y->dim_live[y->rank - 1],
                    .group = (uint32_t)group};
  return emit_table(p, n, &t);
}

/* quantized_decomposed.embedding_byte, _4bit and _2bit: [w, scales, zeros?, qmin, qmax, indices,
 * (dtype,) y] */
static sconce_status portable_shape(struct plan *p, const struct node *n) {
  const struct tensor *w, *indices;
  TRY(arg_tensor(p, n, 0, &w));
  TRY(arg_tensor(p, n, 5, &indices));
  if (w->rank != 2 || n->n_args < 7 || n->n_args > 8)
    return fail(p->err, SCONCE_BAD_GRAPH, "a table of rank %u and %u arguments", w->rank,
                n->n_args);
  TRY(check_indices(p, indices, w->dim_max[0]));
  return shape_of(p, n, indices, w->dim_max[1] * per_byte((enum codes)n->op->code));
}

static sconce_status portable_emit(struct plan *p, const struct node *n) {
  const struct tensor *w, *scales, *y = out_tensor(p, n);
  TRY(arg_tensor(p, n, 0, &w));
  TRY(arg_tensor(p, n, 1, &scales));
  struct table t = {.w = arg_id(n, 0),
                    .scales = arg_id(n, 1),
                    .zeros = arg_is_null(p, n, 2) ? NO_VALUE : arg_id(n, 2),
                    .indices = arg_id(n, 5),
                    .codes = n->op->code,
                    .d = y->dim_live[y->rank - 1]};
  if (t.codes == BYTES && w->dtype == VK_INT8) t.codes = SIGNED_BYTES;
  const uint32_t groups = scales->rank == 2 ? scales->dim_max[1] : 1;
  t.group = groups ? (uint32_t)div_up(t.d, groups) : 0;
  return emit_table(p, n, &t);
}

#define PORTABLE(NAME, ALSO, CODES)                                                                \
  {NAME, portable_shape, portable_emit, .also = ALSO, .code = CODES, .tables = TABLES(kernels_q)}
const struct op ops_embedding[] = {
    {"aten.embedding.default", shape, emit, .also = "aten::embedding.out", .n_args = 6,
     .tables = TABLES(kernels)},
    {"et_vk.embedding_q4gsw.default", q4gsw_shape, q4gsw_emit, .n_args = 6,
     .tables = TABLES(kernels_q)},
    PORTABLE("quantized_decomposed.embedding_byte.default",
             "quantized_decomposed.embedding_byte.dtype quantized_decomposed::embedding_byte.out "
             "quantized_decomposed::embedding_byte.dtype_out",
             BYTES),
    PORTABLE("quantized_decomposed.embedding_4bit.default",
             "quantized_decomposed.embedding_4bit.dtype quantized_decomposed::embedding_4bit.out "
             "quantized_decomposed::embedding_4bit.dtype_out",
             HIGH_FIRST),
    PORTABLE("quantized_decomposed.embedding_2bit.default",
             "quantized_decomposed.embedding_2bit.dtype quantized_decomposed::embedding_2bit.out "
             "quantized_decomposed::embedding_2bit.dtype_out",
             TWO_BITS),
    {0},
};
