/* Linear with weights of bytes and activations that are floats: y[m, n] = Σ x[m, k] w[n, k] scale,
 * with a scale for each row of the weight or for groups in it; or with w (k, n) and a scale for
 * each k. */
#include "ops/linear/rows.h"

#include "q8w_params.wgsl.h"
#include "q8w_plain.wgsl.h"
#include "q8w_tile.wgsl.h"
#include "q8w_vector.wgsl.h"

struct problem {
  struct q8w_params u;
  uint32_t x, w, scales, bias, y;
  enum vk_dtype from, to; /* of x and of y */
  bool words;             /* every row of y starts on a word */
};

static bool fits(const struct problem *q, uint32_t bytes) {
  const uint32_t group = q->u.groups > 1 ? q->u.group : bytes;
  return q->from == q->to && q->words && q->u.k && q->u.k % bytes == 0 && group % bytes == 0;
}
/* Above 8 rows the tile is ahead. */
static bool vector16(const void *problem) {
  const struct problem *q = problem;
  return fits(q, 16) && q->u.m <= 8 && !q->u.by_k;
}
static bool vector4(const void *problem) {
  const struct problem *q = problem;
  return fits(q, 4) && q->u.m <= 8 && !q->u.by_k;
}
static bool tile(const void *problem) {
  const struct problem *q = problem;
  return fits(q, 4) && !q->u.by_k;
}
static bool tile_kn(const void *problem) {
  const struct problem *q = problem;
  return fits(q, 4) && q->u.by_k && q->u.n % 4 == 0;
}
static bool from_f32(const void *problem) {
  return ((const struct problem *)problem)->from == VK_FLOAT32;
}
static bool from_f16(const void *problem) {
  return ((const struct problem *)problem)->from == VK_FLOAT16;
}

/* By the dtype of y. A tile is the columns of y that a workgroup takes, and the rows. */
#define VECTOR(NAME, USES, DTYPE, NEEDS, FITS)                                                     \
  {NAME, &q8w_vector_wgsl, "L=16u " USES, DTYPE, NEEDS, FITS, {64, 1}, 256, 4096}
#define ROWS(T, DTYPE)                                                                             \
  VECTOR("vector16_" T, "use=q8w_piece4 use=lanes_subgroup use=quad_" T " use=elem_" T, DTYPE,     \
         NEEDS_SUBGROUPS, vector16),                                                               \
      VECTOR("vector4_" T, "use=q8w_piece1 use=lanes_subgroup use=quad_" T " use=elem_" T, DTYPE,  \
             NEEDS_SUBGROUPS, vector4),                                                            \
      VECTOR("vector16_memory_" T, "use=q8w_piece4 use=lanes_memory use=quad_" T " use=elem_" T,   \
             DTYPE, 0, vector16),                                                                  \
      VECTOR("vector4_memory_" T, "use=q8w_piece1 use=lanes_memory use=quad_" T " use=elem_" T,    \
             DTYPE, 0, vector4),                                                                   \
      {"tile_" T,        &q8w_tile_wgsl, "use=quad_" T " use=elem_" T, DTYPE, .fits = tile,        \
       .tile = {64, 64}, .threads = 256, .workgroup_bytes = 16384},                                \
      {"tile_kn_" T,   &q8w_tile_wgsl,          "K_LAST=false use=quad_" T " use=elem_" T,         \
       DTYPE,          .fits = tile_kn,         .tile = {64, 64},                                  \
       .threads = 256, .workgroup_bytes = 16384}
static const struct kernel rows[] = {
    ROWS("f32", OF_F32),
    ROWS("f16", OF_F16),
    {"plain_f32", &q8w_plain_wgsl, "use=elem_f32", OF_F32, .fits = from_f32, .threads = 64,
     .reference = true},
    {"plain_f16", &q8w_plain_wgsl, "X_HALF=1u use=elem_f16", OF_F16, .fits = from_f16,
     .threads = 64, .reference = true},
    {"plain_f16_f32", &q8w_plain_wgsl, "X_HALF=1u use=elem_f32", OF_F32, .fits = from_f16,
     .threads = 64, .reference = true},
    {"plain_f32_f16", &q8w_plain_wgsl, "use=elem_f16", OF_F16, .fits = from_f32, .threads = 64,
     .reference = true},
    {0},
};

/* ---- emit ------------------------------------------------------------------------------------ */

static uint64_t workgroups_of(const struct kernel *row, const struct problem *q) {
  if (row->wgsl == &q8w_plain_wgsl)
    return div_up((uint64_t)q->u.m * q->u.cols, row->threads * (4 / vk_dtype_size(q->to)));
  return div_up(q->u.n, row->tile[0]) * div_up(q->u.m, row->tile[1]);
}

/* Rows [m0, m0 + q.u.m) of x, in as many dispatches as w needs; only w of (n, k) can be split. */
static sconce_status emit_part(struct plan *p, const struct kernel *row, struct problem q,
                               uint64_t m0) {
  const uint32_t n = q.u.n;
  const uint64_t x_row = (uint64_t)q.u.k * vk_dtype_size(q.from);
  const uint64_t y_row = (uint64_t)q.u.cols * vk_dtype_size(q.to);
  const uint64_t step = q.u.by_k ? n : rows_split(p, n, q.u.k, 0);
  for (uint64_t n0 = 0; n0 < n; n0 += step) {
    q.u.first = (uint32_t)n0;
    q.u.n = (uint32_t)(n - n0 < step ? n - n0 : step);
    struct operand w = {q.w};
    if (!q.u.by_k) w = rows_part(p, q.w, q.u.k, n0, q.u.n);
    TRY(dispatch(p, row, &q.u, workgroups_of(row, &q),
                 OPERANDS(rows_part(p, q.x, x_row, m0, q.u.m), w, {q.scales},
                          {q.u.bias ? q.bias : q.scales, 0, q.u.bias ? 0 : 4},
                          rows_part(p, q.y, y_row, m0, q.u.m))));
  }
  return SCONCE_OK;
}

static sconce_status emit_problem(struct plan *p, const struct node *n, struct problem *q) {
  const uint32_t m = q->u.m;
  const struct kernel *row;
  TRY(choose(p, n, rows, q->to, q, &row));
  const uint64_t step = rows_split(p, m, (uint64_t)q->u.k * vk_dtype_size(q->from),
                                   (uint64_t)q->u.n * vk_dtype_size(q->to));
  for (uint64_t m0 = 0; m0 < m; m0 += step) {
    q->u.m = (uint32_t)(m - m0 < step ? m - m0 : step);
    TRY(emit_part(p, row, *q, m0));
  }
  return SCONCE_OK;
}

/* ---- [x, w, scales, (bias?,) y], or [x, w, scales, zeros?, (dtype,) y] --------------------------
 */

enum { BY_ROW, WITH_BIAS, MIXED, BY_K };

static sconce_status problem_of(struct plan *p, const struct node *n, struct problem *q) {
  const struct tensor *in[3], *y = out_tensor(p, n);
  TRY(arg_tensors(p, n, 0, 3, in));
  const struct tensor *x = in[0], *w = in[1], *scales = in[2];
  const bool by_k = n->op->code == BY_K;
  char a[120], b[120];
  TRY(float_check(p, x, "x"));
  TRY(float_check(p, scales, "the scale"));
  TRY(float_check(p, y, "the result"));
  if (n->op->code >= MIXED && !arg_is_null(p, n, 3))
    return fail(p->err, SCONCE_UNSUPPORTED, "zero points for a weight of bytes");
  if (w->dtype != VK_INT8 || w->rank != 2 || x->rank == 0 ||
      x->dim_live[x->rank - 1] != w->dim_live[by_k ? 0 : 1])
    return fail(p->err, SCONCE_BAD_GRAPH, "x is %s, the weight %s", tensor_text(x, a),
                tensor_text(w, b));
  const uint32_t k = w->dim_live[by_k ? 0 : 1], cols = w->dim_live[by_k ? 1 : 0];
  const uint32_t groups = scales->rank == 2 && !by_k ? scales->dim_live[1] : 1;
  if (groups == 0 || tensor_numel(scales) < (uint64_t)groups * w->dim_live[0])
    return fail(p->err, SCONCE_BAD_GRAPH, "scales %s for a weight %s", tensor_text(scales, a),
                tensor_text(w, b));
  *q = (struct problem){.x = arg_id(n, 0),
                        .w = arg_id(n, 1),
                        .scales = arg_id(n, 2),
                        .y = out_id(n),
                        .from = x->dtype,
                        .to = y->dtype};
  q->u = (struct q8w_params){.m = rows_of(x),
                             .n = cols,
                             .k = k,
                             .cols = cols,
                             .groups = groups,
                             .group = k ? (uint32_t)div_up(k, groups) : 1,
                             .half = is_half(scales),
                             .by_k = by_k};
  q->bias = arg_id(n, 3);
  if (n->op->code == WITH_BIAS) TRY(rows_bias(p, n, 3, cols, &q->u.bias));
  q->words = !is_half(y) || cols % 2 == 0 || q->u.m == 1;
  return SCONCE_OK;
}

static sconce_status shape(struct plan *p, const struct node *n) {
  struct problem q = {0};
  TRY(problem_of(p, n, &q));
  return rows_shape(p, out_id(n), tensor_at(p, q.x), q.u.n);
}

static sconce_status emit(struct plan *p, const struct node *n) {
  struct problem q = {0};
  TRY(problem_of(p, n, &q));
  return emit_problem(p, n, &q);
}

const struct op ops_linear_q8[] = {
    {"aten._weight_int8pack_mm.default", shape, emit, .n_args = 4, .code = BY_ROW, .flags = OP_ROWS,
     .tables = TABLES(rows)},
    {"et_vk.linear_q8csw.default", shape, emit, .n_args = 5, .code = WITH_BIAS, .flags = OP_ROWS,
     .tables = TABLES(rows)},
    {"quantized_decomposed.mixed_linear.default", shape, emit,
     .also = "quantized_decomposed::mixed_linear.out", .n_args = 6, .code = MIXED,
     .tables = TABLES(rows)},
    {"quantized_decomposed.mixed_mm.default", shape, emit,
     .also = "quantized_decomposed::mixed_mm.out", .n_args = 5, .code = BY_K,
     .tables = TABLES(rows)},
    {0},
};
