/* Products of many rows of x with a 4-bit weight, in tiles: q4_gemm in f32, q4_matrix in f16.
 *
 * Few tiles leave most of a device idle; then several workgroups share a tile's k, each a slice,
 * and a short kernel adds up what they found. */
#include "ops/linear_q4/linear_q4.h"

#include "q4_gemm.wgsl.h"
#include "q4_half.wgsl.h"
#include "q4_matrix.wgsl.h"
#include "q4_matrix_put.wgsl.h"
#include "q4_scaled.wgsl.h"
#include "q4_sums.wgsl.h"

static bool has_norm(const void *norm) { return norm != NULL; }

#define HALF(NAME, SET, DTYPE, FITS)                                                               \
  {NAME,           &q4_half_wgsl,         SET, DTYPE, Q4_BESIDE_MATRICES, .fits = FITS,            \
   .threads = 256, .workgroup_bytes = 256}
const struct kernel q4_halves[] = {
    HALF("norm_f32", "NORM=true use=quad_f32 use=group_subgroup", OF_F32, has_norm),
    HALF("norm_f16", "NORM=true use=quad_f16 use=group_subgroup", OF_F16, has_norm),
    HALF("half_f32", "use=quad_f32 use=group_subgroup", OF_F32, NULL),
    HALF("half_f16", "use=quad_f16 use=group_subgroup", OF_F16, NULL),
    {0},
};
/* By the dtype of y. */
const struct kernel q4_wholes[] = {
    Q4_MATRICES("f32", &q4_matrix_put_wgsl, "use=elem_f32 use=quad_f32", OF_F32, 1, 1),
    Q4_MATRICES("f16", &q4_matrix_put_wgsl, "use=elem_f16 use=quad_f16", OF_F16, 1, 1),
    {0},
};
const struct kernel q4_sums[] = {
    {"sums_f32", &q4_sums_wgsl, "use=elem_f32", OF_F32, .threads = 64},
    {"sums_f16", &q4_sums_wgsl, "use=elem_f16", OF_F16, .threads = 64},
    {0},
};
const struct kernel q4_scaled[] = {
    {"scaled_f32", &q4_scaled_wgsl, "use=quad_f32", OF_F32, Q4_BESIDE_MATRICES, .threads = 64},
    {"scaled_f16", &q4_scaled_wgsl, "use=quad_f16", OF_F16, Q4_BESIDE_MATRICES, .threads = 64},
    {0},
};

static bool is_matrix(const struct kernel *row) { return row->wgsl == &q4_matrix_wgsl; }
bool q4_is_tile(const struct kernel *row) { return row->wgsl == &q4_gemm_wgsl || is_matrix(row); }

/* A few rows beyond whole tiles. */
enum { LARGE_TILE = 128, SMALL_TILE = 32 };
uint32_t q4_rows_taken(uint32_t left, uint64_t most) {
  const uint32_t over = left % LARGE_TILE;
  if (most < left) return (uint32_t)most;
  return left > LARGE_TILE && over <= SMALL_TILE ? left - over : left;
}

/* ---- slices of k ----------------------------------------------------------------------------- */

/* Workgroups that fill an H200: in f32 two of its 132 processors' worth, since more slices keep
 * each busier (k 8192 with n 2048, 128 rows: 263 to 470 us whole, 100 in 8 slices); in matrices
 * one, since what slices write and read again costs more there (22 us of 136). */
enum { TILES_ENOUGH = 128, SLICES_MOST = 8, SLICE_LEAST = 256, SLICE_UNIT = 64 };

/* Of a product in so many tiles; *span: of each slice. */
static uint32_t slices_for(const struct kernel *row, uint64_t tiles, uint32_t k, uint64_t most,
                           uint32_t *span) {
  uint64_t slices = 1;
  if (tiles < TILES_ENOUGH)
    slices = is_matrix(row) ? (TILES_ENOUGH + tiles / 2) / tiles : 2 * TILES_ENOUGH / tiles;
  if (slices > SLICES_MOST) slices = SLICES_MOST;
  if (slices > k / SLICE_LEAST) slices = k / SLICE_LEAST;
  if (slices > most) slices = most;
  *span = (uint32_t)div_up(div_up(k, slices ? slices : 1), SLICE_UNIT) * SLICE_UNIT;
  return (uint32_t)div_up(k, *span);
}

uint64_t q4_tiles_of(const struct kernel *row, uint64_t m, uint64_t n) {
  return div_up(n, row->tile[0]) * div_up(m, row->tile[1]);
}

/* Sums of one slice: q4_matrix writes whole tiles. */
static uint64_t slice_numel(const struct kernel *row, uint64_t m, uint64_t n) {
  return is_matrix(row) ? q4_tiles_of(row, m, n) * row->tile[0] * row->tile[1] : m * n;
}

/* ---- scratch --------------------------------------------------------------------------------- */

uint64_t q4_parts_of(const struct kernel *row, uint64_t m, uint32_t k, uint32_t n, bool whole) {
  uint64_t most = 0;
  for (uint64_t rows = row->tile[1];; rows += row->tile[1]) {
    uint32_t span;
    if (rows > m) rows = m;
    const uint32_t slices = slices_for(row, q4_tiles_of(row, rows, n), k, SLICES_MOST, &span);
    const uint64_t numel = slices * slice_numel(row, rows, n);
    if ((slices > 1 || whole) && numel > most) most = numel;
    if (rows == m || (slices == 1 && !whole)) return most;
  }
}

bool q4_takes_matrices(const struct node *linear) { return linear->extra[3] != NO_VALUE; }

static bool runs_here(const struct plan *p, const struct kernel *row) {
  return q4_is_tile(row) && kernel_runs(row, &p->g->caps);
}

/* x of m rows in f16, and what multiplies back. */
static sconce_status scratch_halves(struct plan *p, struct node *n, uint64_t m, uint32_t k,
                                    uint32_t scales) {
  const uint64_t words = m * div_up(k, 64) * 32;
  if (words * 4 > p->g->caps.max_storage_binding) return SCONCE_OK;
  TRY(graph_packed(p->g, arg_id(n, scales), &q4_norms, &n->extra[5], p->err));
  TRY(graph_scratch(p->g, VK_FLOAT32, m, &n->extra[4], p->err));
  return graph_scratch(p->g, VK_INT32, words, &n->extra[3], p->err);
}

sconce_status q4_scratch(struct plan *p, struct node *node, uint32_t x_arg, uint32_t w_arg,
                         uint32_t scales) {
  const struct tensor *x, *w;
  TRY(arg_tensor(p, node, x_arg, &x));
  TRY(arg_tensor(p, node, w_arg, &w));
  const uint32_t k = x->rank ? x->dim_max[x->rank - 1] : 0, n = w->dim_max[0];
  const uint64_t m = k ? tensor_numel_max(x) / k : 0;
  uint64_t most = 0;
  bool matrix = false;
  const bool many = n && m > q4_vector_rows(p->g);
  for (const struct kernel *row = q4_kernels; row->name && many; row++) {
    if (!runs_here(p, row) || (is_matrix(row) && scales == NO_VALUE)) continue;
    const uint64_t numel = q4_parts_of(row, m, k, n, false);
    if (numel > most && numel * 4 <= p->g->caps.max_storage_binding) most = numel;
    matrix |= is_matrix(row);
  }
  if (matrix) TRY(scratch_halves(p, node, m, k, scales));
  return most ? graph_scratch(p->g, VK_FLOAT32, most, &node->extra[2], p->err) : SCONCE_OK;
}

/* ---- emit ------------------------------------------------------------------------------------ */

/* What all dispatches of some rows of x have in common. */
struct part {
  const struct q4_linear *l;
  const struct kernel *row, *last; /* last: q4_sums or q4_scaled */
  const struct kernel *whole;      /* of q4_wholes, as large as row: where k is one slice */
  struct operand x, bias, y;
  struct operand factors; /* with x in halves */
};

/* Rows [m0, m0 + count) of what is added; something to bind where that is nothing. */
static struct operand bias_part(struct plan *p, const struct q4_linear *l, uint64_t m0,
                                uint64_t count) {
  if (l->bias_kind == 0) return (struct operand){l->scales, 0, 16};
  if (!l->residual) return (struct operand){l->bias};
  return rows_part(p, l->bias, (uint64_t)l->n * vk_dtype_size(tensor_at(p, l->bias)->dtype), m0,
                   count);
}

static sconce_status emit_tile(struct plan *p, const struct part *t, const struct q4_params *u,
                               struct operand w, struct operand scales) {
  const struct q4_linear *l = t->l;
  const bool sliced = u->slices > 1;
  TRY(dispatch(p, t->row, u, q4_tiles_of(t->row, u->m, u->n) * u->slices,
               OPERANDS(t->x, w, scales, t->bias, sliced ? (struct operand){l->parts} : t->y)));
  if (!sliced) return SCONCE_OK;
  return dispatch(p, t->last, u, div_up(div_up(u->n, 4) * u->m, 64),
                  OPERANDS({l->parts}, t->bias, t->y));
}

static sconce_status emit_matrix(struct plan *p, const struct part *t, const struct q4_params *u,
                                 struct operand w, struct operand scales) {
  const struct q4_linear *l = t->l;
  const uint64_t tiles = q4_tiles_of(t->row, u->m, u->n);
  if (u->slices == 1)
    return dispatch(p, t->whole, u, tiles,
                    OPERANDS(t->x, w, scales, {l->norms}, t->factors, t->bias, t->y));
  TRY(dispatch(p, t->row, u, tiles * u->slices, OPERANDS(t->x, w, scales, {l->norms}, {l->parts})));
  return dispatch(p, t->last, u, div_up(div_up(u->n, 4) * u->m, 64),
                  OPERANDS({l->parts}, t->factors, {l->norms}, t->bias, t->y));
}

void q4_slice(const struct kernel *row, struct q4_params *u, uint64_t parts) {
  const uint64_t most = parts / slice_numel(row, u->m, u->n);
  u->slices = slices_for(row, q4_tiles_of(row, u->m, u->n), u->k, most, &u->span);
  u->rows = (uint32_t)div_up(u->m, row->tile[1]) * row->tile[1];
  u->width = (uint32_t)div_up(u->n, row->tile[0]) * row->tile[0];
}

/* The weight in as many parts as its bindings need. */
static sconce_status emit_weights(struct plan *p, const struct part *t, struct q4_params u) {
  const struct q4_linear *l = t->l;
  const struct tensor *parts = tensor_at(p, l->parts);
  const uint64_t w_row = u.stride, s_row = (uint64_t)u.groups << (u.half ? 1 : 2);
  const uint64_t step = rows_split(p, l->n, w_row, s_row);
  for (uint64_t n0 = 0; n0 < l->n; n0 += step) {
    u.first = (uint32_t)n0;
    u.n = (uint32_t)(l->n - n0 < step ? l->n - n0 : step);
    q4_slice(t->row, &u, parts ? tensor_numel_max(parts) : 0);
    const struct operand w = rows_part(p, l->w, w_row, n0, u.n);
    const struct operand scales = rows_part(p, l->scales, s_row, n0, u.n);
    TRY((is_matrix(t->row) ? emit_matrix : emit_tile)(p, t, &u, w, scales));
  }
  return SCONCE_OK;
}

sconce_status q4_emit_halves(struct plan *p, const struct node *n, struct q4_linear *l,
                             const struct q4_norm *norm) {
  const struct kernel *row;
  const uint32_t from = norm ? norm->x : l->x;
  const struct tensor *x = tensor_at(p, from);
  struct q4_params u = {.m = l->m, .k = l->k, .eps = norm ? (float)norm->eps : 0};
  TRY(choose(p, n, q4_halves, x->dtype, norm, &row));
  l->halved = true;
  return dispatch(p, row, &u, u.m,
                  OPERANDS(rows_part(p, from, (uint64_t)l->k * vk_dtype_size(x->dtype), 0, u.m),
                           {norm ? norm->weight : from, 0, norm ? 0 : 16}, {l->halves},
                           {l->factors}));
}

struct operand q4_halves_part(struct plan *p, const struct q4_linear *l, uint64_t m0,
                              uint64_t count) {
  return rows_part(p, l->halves, div_up(l->k, 64) * 128, m0, count);
}
struct operand q4_factors_part(struct plan *p, const struct q4_linear *l, uint64_t m0,
                               uint64_t count) {
  return rows_part(p, l->factors, 4, m0, count);
}

sconce_status q4_emit_tiles(struct plan *p, const struct node *n, struct q4_linear *l,
                            const struct kernel *row, struct q4_params *u, uint64_t m0) {
  const struct tensor *x = tensor_at(p, l->x), *y = tensor_at(p, l->y);
  struct part t = {.l = l, .row = row};
  if (is_matrix(row)) {
    const struct q4_problem q = {.m = u->m, .k = l->k, .rows = l->n, .matrix = true};
    if (!l->halved) TRY(q4_emit_halves(p, n, l, NULL));
    TRY(choose(p, n, q4_wholes, y->dtype, &q, &t.whole));
    t.x = q4_halves_part(p, l, m0, u->m);
    t.factors = q4_factors_part(p, l, m0, u->m);
  } else {
    t.x = rows_part(p, l->x, (uint64_t)l->k * vk_dtype_size(x->dtype), m0, u->m);
  }
  t.y = rows_part(p, l->y, (uint64_t)l->n * vk_dtype_size(y->dtype), m0, u->m);
  t.bias = bias_part(p, l, m0, u->m);
  TRY(choose(p, n, is_matrix(row) ? q4_scaled : q4_sums, y->dtype, NULL, &t.last));
  return emit_weights(p, &t, *u);
}
