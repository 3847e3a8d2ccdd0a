/* Rows of a table by index: floats, and codes of 4 or 8 bits with scales. */
#include "ops/linear/rows.h"

#include "embedding.wgsl.h"
#include "embedding_q.wgsl.h"

#include <inttypes.h>
#include <string.h>

static const struct kernel kernels[] = {
    {"f32", &embedding_wgsl, "use=elem_f32"},
    {"f16", &embedding_wgsl, "use=elem_f16"},
    {0},
};
/* By codes, then by y's dtype. */
enum codes { LOW_FIRST, HIGH_FIRST, BYTES, SIGNED_BYTES };
static const struct kernel kernels_q[] = {
    {"q4_f32", &embedding_q_wgsl, "use=elem_f32"},
    {"q4_f16", &embedding_q_wgsl, "use=elem_f16"},
    {"q4_high_f32", &embedding_q_wgsl, "EVEN_HIGH=1u use=elem_f32"},
    {"q4_high_f16", &embedding_q_wgsl, "EVEN_HIGH=1u use=elem_f16"},
    {"u8_f32", &embedding_q_wgsl, "BITS=8u use=elem_f32"},
    {"u8_f16", &embedding_q_wgsl, "BITS=8u use=elem_f16"},
    {"i8_f32", &embedding_q_wgsl, "BITS=8u SIGNED=1u use=elem_f32"},
    {"i8_f16", &embedding_q_wgsl, "BITS=8u SIGNED=1u use=elem_f16"},
    {0},
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

/* What the host knows is checked here; what only the GPU knows reads as zeros in the kernel. */
static sconce_status check_indices(struct plan *p, const struct tensor *indices, uint32_t vocab) {
  if (indices->dtype != VK_INT32)
    return fail(p->err, SCONCE_UNSUPPORTED, "indices of %s, expected int32",
                vk_dtype_name(indices->dtype));
  const uint8_t *host = p->first ? NULL : indices->host;
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
  const struct tensor *table = arg_tensor(p, n, 0), *indices = arg_tensor(p, n, 1);
  if (!table || !indices) return SCONCE_BAD_GRAPH;
  if (table->rank != 2)
    return fail(p->err, SCONCE_BAD_GRAPH, "a table of rank %u, expected 2", table->rank);
  return shape_of(p, n, indices, table->dim_live[1]);
}

static sconce_status emit(struct plan *p, const struct node *n) {
  const struct tensor *table = arg_tensor(p, n, 0), *indices = arg_tensor(p, n, 1);
  const struct tensor *y = arg_tensor(p, n, n->n_args - 1);
  if (!table || !indices || !y) return SCONCE_BAD_GRAPH;
  TRY(float_check(p, table, "the table"));
  if (table->rank != 2 || y->dtype != table->dtype)
    return fail(p->err, SCONCE_BAD_GRAPH, "a table of %s and rank %u, a result of %s",
                vk_dtype_name(table->dtype), table->rank, vk_dtype_name(y->dtype));
  TRY(check_indices(p, indices, table->dim_live[0]));
  struct embedding_params u = {
      .n = (uint32_t)tensor_numel(y), .d = table->dim_live[1], .vocab = table->dim_live[0]};
  const uint64_t row = (uint64_t)u.d * vk_dtype_size(table->dtype);
  const uint64_t step = rows_split(p, u.vocab, row, 0);
  for (uint64_t first = 0; first < u.vocab; first += step) {
    u.first = (uint32_t)first;
    u.rows = (uint32_t)(u.vocab - first < step ? u.vocab - first : step);
    TRY(dispatch(
        p, &kernels[is_half(y)], &u, div_up(u.n, is_half(y) ? 128 : 64),
        OPERANDS(rows_part(p, arg_id(n, 0), row, first, u.rows), {arg_id(n, 1)}, {out_id(n)})));
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
  const bool bytes = t->codes == BYTES || t->codes == SIGNED_BYTES;
  const uint64_t codes = (uint64_t)w->dim_max[1] * (bytes ? 1 : 2);
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
  const struct tensor *indices = tensor_at(p, t->indices), *y = arg_tensor(p, n, n->n_args - 1);
  if (!w || !scales || !indices || !y || w->rank != 2 || scales->rank < 1 || scales->rank > 2)
    return fail(p->err, SCONCE_BAD_GRAPH, "a table, its scales and indices are expected");
  const uint32_t groups = scales->rank == 2 ? scales->dim_max[1] : 1;
  TRY(check_table(p, t, w, scales, groups));
  TRY(float_check(p, y, "the result"));
  TRY(check_indices(p, indices, w->dim_max[0]));
  const struct tensor *zeros = tensor_at(p, t->zeros);
  struct embedding_q_params u = {.n = (uint32_t)tensor_numel(y),
                                 .d = t->d,
                                 .vocab = w->dim_max[0],
                                 .stride = w->dim_max[1],
                                 .group = t->group,
                                 .groups = groups,
                                 .half = is_half(scales),
                                 .zeros = zeros ? 1 + is_half(zeros) : 0};
  const struct kernel *row = &kernels_q[2 * t->codes + is_half(y)];
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
  const struct tensor *indices = arg_tensor(p, n, 3), *y = arg_tensor(p, n, n->n_args - 1);
  if (!indices || !y) return SCONCE_BAD_GRAPH;
  return shape_of(p, n, indices, y->rank ? y->dim_max[y->rank - 1] : 0);
}

static sconce_status q4gsw_emit(struct plan *p, const struct node *n) {
  const struct tensor *y = arg_tensor(p, n, n->n_args - 1);
  if (!y) return SCONCE_BAD_GRAPH;
  int64_t group;
  bool low_first;
  TRY(arg_int(p, n, 2, &group));
  TRY(arg_bool(p, n, 4, &low_first));
  if (group < 1 || group > INT32_MAX)
    return fail(p->err, SCONCE_BAD_GRAPH, "groups of %" PRId64, group);
  struct table t = {.w = arg_id(n, 0),
                    .scales = arg_id(n, 1),
                    .zeros = NO_VALUE,
                    .indices = arg_id(n, 3),
                    .codes = low_first ? LOW_FIRST : HIGH_FIRST,
                    .d = y->dim_live[y->rank - 1],
                    .group = (uint32_t)group};
  return emit_table(p, n, &t);
}

/* quantized_decomposed.embedding_byte and _4bit: [w, scales, zeros?, qmin, qmax, indices, (dtype,)
 * y] */
static sconce_status portable_shape(struct plan *p, const struct node *n) {
  const struct tensor *w = arg_tensor(p, n, 0), *indices = arg_tensor(p, n, 5);
  if (!w || !indices) return SCONCE_BAD_GRAPH;
  if (w->rank != 2 || n->n_args < 7 || n->n_args > 8)
    return fail(p->err, SCONCE_BAD_GRAPH, "a table of rank %u and %u arguments", w->rank,
                n->n_args);
  return shape_of(p, n, indices, w->dim_max[1] * (n->op->variant == HIGH_FIRST ? 2 : 1));
}

static sconce_status portable_emit(struct plan *p, const struct node *n) {
  const struct tensor *w = arg_tensor(p, n, 0), *scales = arg_tensor(p, n, 1);
  const struct tensor *y = arg_tensor(p, n, n->n_args - 1);
  if (!w || !scales || !y) return SCONCE_BAD_GRAPH;
  struct table t = {.w = arg_id(n, 0),
                    .scales = arg_id(n, 1),
                    .zeros = arg_is_null(p, n, 2) ? NO_VALUE : arg_id(n, 2),
                    .indices = arg_id(n, 5),
                    .codes = n->op->variant,
                    .d = y->dim_live[y->rank - 1]};
  if (t.codes == BYTES && w->dtype == VK_INT8) t.codes = SIGNED_BYTES;
  const uint32_t groups = scales->rank == 2 ? scales->dim_max[1] : 1;
  t.group = groups ? (uint32_t)div_up(t.d, groups) : 0;
  return emit_table(p, n, &t);
}

#define PORTABLE(name, codes)                                                                      \
  {                                                                                                \
    name, portable_shape, portable_emit, .variant = codes, .kernels = { kernels_q }                \
  }
const struct op ops_embedding[] = {
    {"aten.embedding.default", shape, emit, .n_args = 6, .kernels = {kernels}},
    {"aten::embedding.out", shape, emit, .n_args = 6, .kernels = {kernels}},
    {"et_vk.embedding_q4gsw.default", q4gsw_shape, q4gsw_emit, .n_args = 6, .kernels = {kernels_q}},
    PORTABLE("quantized_decomposed.embedding_byte.default", BYTES),
    PORTABLE("quantized_decomposed.embedding_byte.dtype", BYTES),
    PORTABLE("quantized_decomposed::embedding_byte.out", BYTES),
    PORTABLE("quantized_decomposed::embedding_byte.dtype_out", BYTES),
    PORTABLE("quantized_decomposed.embedding_4bit.default", HIGH_FIRST),
    PORTABLE("quantized_decomposed.embedding_4bit.dtype", HIGH_FIRST),
    PORTABLE("quantized_decomposed::embedding_4bit.out", HIGH_FIRST),
    PORTABLE("quantized_decomposed::embedding_4bit.dtype_out", HIGH_FIRST),
    {0},
};
