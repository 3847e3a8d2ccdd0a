/* Linear with 4-bit weights in groups: y[m, n] = Σ x[m, k] (code[n, k] − 8) scale[n, k / group].
 *
 * The weight stays as in the file, u8 (n, c8(k) / 2) with even k in the low nibble; the scales,
 * (groups, n or more) in the file, are laid out by row of the weight. All rows of the tables read
 * these two layouts. */
#include "ops/linear_q4/linear_q4.h"

#include "q4_gemm.wgsl.h"
#include "q4_gemv.wgsl.h"
#include "q4_matrix.wgsl.h"
#include "q4_plain.wgsl.h"

#include <inttypes.h>

bool q4_shift(uint32_t group, uint32_t k, uint32_t *shift) {
  *shift = 31;
  if (group >= k) return true;
  for (*shift = 0; *shift < 26 && 32u << *shift < group;) ++*shift;
  return 32u << *shift == group;
}

uint32_t q4_vector_rows(const struct graph *g) {
  if (g->caps.software && !g->force) return 32;
  if (!caps_offer(&g->caps, NEEDS_SUBGROUPS | NEEDS_WIDE)) return 4;
  return caps_offer(&g->caps, Q4_BESIDE_MATRICES) ? 8 : 16;
}

bool q4_is_large(const struct plan *p) {
  return !p->g->force && caps_offer(&p->g->caps, NEEDS_SUBGROUPS | NEEDS_WIDE);
}

uint64_t q4_workgroups(uint32_t m, uint64_t rows, const struct kernel *row, uint32_t *blocks) {
  uint64_t across = div_up(rows, row->tile[0]);
  uint64_t turns = across * m / 2048;
  *blocks = turns < 1 ? 1 : turns > 8 ? 8 : (uint32_t)turns;
  return div_up(across, *blocks) * m;
}

/* H200, microseconds a product in a chain (sconce bench --kernels), r1u2t32 / r4u2t32: k 2048 with
 * n 2048 4.4 / 5.2, n 3072 4.9 / 5.4, n 16384 10.2 / 8.7; k 8192 with n 2048 8.8 / 13.0,
 * r4u1t128 8.4. With four rows of x r4u2t32 is ahead of both, by a third and more. */
enum { LONG_K = 4096, FEW_ROWS = 4096, T64_K = 1024 };

bool q4_few_rows(const void *problem) {
  const struct q4_problem *q = problem;
  return q->vector && q->m == 1 && q->k < LONG_K && q->rows <= FEW_ROWS;
}
bool q4_long_rows(const void *problem) {
  const struct q4_problem *q = problem;
  return q->vector && q->m == 1 && q->k >= LONG_K;
}
bool q4_vector(const void *problem) { return ((const struct q4_problem *)problem)->vector; }
bool q4_vector64(const void *problem) {
  return q4_vector(problem) && ((const struct q4_problem *)problem)->k >= T64_K;
}

/* Tiles by the rows of x: each thread has 8 by 8 results for many, fewer for few, where most of a
 * large tile would be for nothing. Where k is in slices too, few rows leave most of a large device
 * idle; there narrow tiles are ahead of broad ones. H200, f32, k 2048 with n 2048 and 3072, k 8192
 * with n 2048, k 2048 with twice n 8192 and SwiGLU, µs (sconce bench --kernels --quick):
 *   16 rows  tile16 17.7 25.8 48.9 115  narrow16 15.3 21.1 39.2
 *   32 rows  tile32 23.2 32.9 62.7 115  narrow32 21.3 30.0 56.2 94
 *   64 rows  tile64 44.4 70.6 141 264   narrow64 30.7 43.1 88 162
 *  128 rows  tile128 53 94 157 288      narrow64 50 87 165 320
 * On lavapipe the broad ones are ahead, by up to a half. */
bool q4_tile(const void *problem) { return ((const struct q4_problem *)problem)->tile; }
static bool has_rows(const void *problem, uint32_t most) {
  return q4_tile(problem) && ((const struct q4_problem *)problem)->m <= most;
}
bool q4_tile16(const void *problem) { return has_rows(problem, 16); }
bool q4_tile32(const void *problem) { return has_rows(problem, 32); }

bool q4_broad(const void *problem) {
  const struct q4_problem *q = problem;
  return q->tile && !(q->large && q->m <= 64);
}
bool q4_broad16(const void *problem) { return q4_broad(problem) && has_rows(problem, 16); }
bool q4_broad32(const void *problem) { return q4_broad(problem) && has_rows(problem, 32); }
bool q4_broad64(const void *problem) { return q4_broad(problem) && has_rows(problem, 64); }
static bool fits_plain(const void *problem) {
  return !((const struct q4_problem *)problem)->residual;
}

bool q4_matrix(const void *problem) { return ((const struct q4_problem *)problem)->matrix; }
static bool has_matrix_rows(const void *problem, uint32_t most) {
  return q4_matrix(problem) && ((const struct q4_problem *)problem)->m <= most;
}
bool q4_matrix16(const void *problem) { return has_matrix_rows(problem, 16); }
bool q4_matrix32(const void *problem) { return has_matrix_rows(problem, 32); }
bool q4_matrix64(const void *problem) { return has_matrix_rows(problem, 64); }
/* A tile is the rows of the weight that one workgroup takes at a time, and the rows of x. */
#define ROWS(NAME, DTYPE, WORDS, TYPES, SUMS, PLAIN)                                               \
  Q4_SERIAL("serial_" NAME, &q4_gemv_wgsl, TYPES, DTYPE, WORDS),                                   \
      Q4_WIDE("r1u2t32_" NAME, &q4_gemv_wgsl, TYPES, DTYPE, q4_few_rows, 1, 2, 32),                \
      Q4_WIDE("r4u1t128_" NAME, &q4_gemv_wgsl, TYPES, DTYPE, q4_long_rows, 4, 1, 128),             \
      Q4_WIDE("r4u2t32_" NAME, &q4_gemv_wgsl, TYPES, DTYPE, q4_vector, 4, 2, 32),                  \
      Q4_MEMORY("t64_" NAME, &q4_gemv_wgsl, TYPES, DTYPE, q4_vector64, 64),                        \
      Q4_MEMORY("t16_" NAME, &q4_gemv_wgsl, TYPES, DTYPE, q4_vector, 16),                          \
      Q4_MATRICES(NAME, &q4_matrix_wgsl, SUMS, DTYPE, 1, 0),                                       \
      Q4_TILE("tile16_" NAME, &q4_gemm_wgsl, TYPES, DTYPE, q4_broad16, 1, 128, 32, 4, 4, 1),       \
      Q4_TILE("narrow16_" NAME, &q4_gemm_wgsl, TYPES, DTYPE, q4_tile16, 1, 64, 16, 4, 4, 1),       \
      Q4_TILE("tile32_" NAME, &q4_gemm_wgsl, TYPES, DTYPE, q4_broad32, 1, 128, 32, 4, 8, 1),       \
      Q4_TILE("narrow32_" NAME, &q4_gemm_wgsl, TYPES, DTYPE, q4_tile32, 1, 64, 16, 4, 8, 1),       \
      Q4_TILE("tile64_" NAME, &q4_gemm_wgsl, TYPES, DTYPE, q4_broad64, 1, 128, 16, 8, 8, 2),       \
      Q4_TILE("tile128_" NAME, &q4_gemm_wgsl, TYPES, DTYPE, q4_broad, 1, 256, 16, 16, 8, 2),       \
      Q4_TILE("narrow64_" NAME, &q4_gemm_wgsl, TYPES, DTYPE, q4_tile, 1, 128, 16, 8, 8, 1), {      \
    "plain_" NAME, &q4_plain_wgsl, PLAIN, DTYPE, 0, fits_plain, .threads = 64, .reference = true   \
  }
/* By the dtype of x, which is y's and the scales'. */
const struct kernel q4_kernels[] = {
    ROWS("f32", OF_F32, 4, "use=quad_f32 use=elem_f32", "use=elem_f32", "X_HALF=0u use=elem_f32"),
    ROWS("f16", OF_F16, 2, "use=quad_f16 use=elem_f16", "use=elem_f16", "X_HALF=1u use=elem_f16"),
    {0},
};
/* x in float32, y and the scales in float16. */
const struct kernel q4_kernels_f32_f16[] = {
    ROWS("f32_f16", OF_F32, 2, "use=quad_f32 use=elem_f16", "use=elem_f16",
         "X_HALF=0u use=elem_f16"),
    {0},
};

/* x in float16, y in float32: what the exporter makes of a model in halves. */
const struct kernel q4_kernels_f16_f32[] = {
    {"plain_f16_f32", &q4_plain_wgsl, "X_HALF=1u use=elem_f32", OF_F16, 0, fits_plain,
     .threads = 64, .reference = true},
    {0},
};

/* ---- emit ------------------------------------------------------------------------------------ */

/* Workgroups; sets u->blocks. */
static uint64_t workgroups_of(const struct kernel *row, struct q4_params *u, bool half_y) {
  if (row->wgsl == &q4_plain_wgsl)
    return div_up((uint64_t)u->m * u->cols, row->threads * (half_y ? 2 : 1));
  return q4_workgroups(u->m, u->n, row, &u->blocks);
}

/* Rows [m0, m0 + u.m) of x, in as many dispatches as the weight needs. */
static sconce_status emit_part(struct plan *p, const struct q4_linear *l, const struct kernel *row,
                               struct q4_params u, uint64_t m0) {
  const struct tensor *x = tensor_at(p, l->x), *y = tensor_at(p, l->y);
  const uint64_t w_row = u.stride, s_row = (uint64_t)u.groups << (u.half ? 1 : 2);
  const uint64_t x_row = (uint64_t)l->k * vk_dtype_size(x->dtype);
  const uint64_t y_row = (uint64_t)l->n * vk_dtype_size(y->dtype);
  const uint64_t step = rows_split(p, l->n, w_row, s_row);
  for (uint64_t n0 = 0; n0 < l->n; n0 += step) {
    u.first = (uint32_t)n0;
    u.n = (uint32_t)(l->n - n0 < step ? l->n - n0 : step);
    const uint64_t workgroups = workgroups_of(row, &u, is_half(y));
    TRY(dispatch(p, row, &u, workgroups,
                 OPERANDS(rows_part(p, l->x, x_row, m0, u.m), rows_part(p, l->w, w_row, n0, u.n),
                          rows_part(p, l->scales, s_row, n0, u.n),
                          {u.bias ? l->bias : l->scales, 0, u.bias ? 0 : 4},
                          rows_part(p, l->y, y_row, m0, u.m))));
  }
  return SCONCE_OK;
}

static struct q4_problem problem_of(const struct q4_linear *l, uint32_t m, uint32_t vectors,
                                    uint32_t stride, bool plain_types, bool words) {
  uint32_t shift;
  const bool easy = plain_types && words && l->k;
  const bool units = easy && l->k % 32 == 0 && stride == l->k / 2 &&
                     q4_shift(l->group, l->k, &shift); /* of 32 codes, each of one group */
  struct q4_problem q = {.m = m, .k = l->k, .rows = l->n, .residual = l->residual};
  q.vector = units && !l->residual && m <= vectors;
  q.tile = easy && l->k % 4 == 0 && (l->group % 8 == 0 || l->group >= l->k) && stride % 4 == 0;
  q.matrix = units && m > vectors && l->halves != NO_VALUE;
  return q;
}

sconce_status q4_emit(struct plan *p, const struct node *n, struct q4_linear *l) {
  const struct tensor *x = tensor_at(p, l->x), *y = tensor_at(p, l->y);
  const struct tensor *w = tensor_at(p, l->w), *scales = tensor_at(p, l->scales);
  const bool mixed = scales->dtype != y->dtype || (is_half(x) && !is_half(y));
  const bool words = !is_half(y) || l->m == 1 || l->n % 2 == 0; /* where every row of y starts */
  const struct kernel *table = is_half(x) == is_half(y) ? q4_kernels
                               : is_half(y)             ? q4_kernels_f32_f16
                                                        : q4_kernels_f16_f32;
  struct q4_params u = {.k = l->k,
                        .stride = w->dim_max[1],
                        .group = l->group,
                        .groups = l->groups,
                        .cols = l->n,
                        .bias = l->bias_kind,
                        .half = is_half(scales),
                        .bias_m = l->residual ? l->n : 0,
                        .gated = l->gated};
  (void)q4_shift(l->group, l->k, &u.shift); /* rows that read it fit only where it is one */
  const uint64_t step = rows_split(p, l->m, (uint64_t)l->k * vk_dtype_size(x->dtype),
                                   (uint64_t)l->n * vk_dtype_size(y->dtype));
  const bool whole = rows_split(p, l->n, u.stride, (uint64_t)u.groups << (u.half ? 1 : 2)) >= l->n;
  for (uint32_t m0 = 0; m0 < l->m; m0 += u.m) {
    struct q4_problem q =
        problem_of(l, l->m - m0, q4_vector_rows(p->g), w->dim_max[1], !mixed, words);
    /* Rows of halves and quads of columns begin where a binding may. */
    q.large = q4_is_large(p);
    q.matrix &= step >= l->m && whole && l->n % 4 == 0;
    if (q.tile) q.m = q4_rows_taken(q.m, step);
    u.m = q.m < step ? q.m : (uint32_t)step;
    const struct kernel *row;
    TRY(choose(p, n, table, x->dtype, &q, &row));
    TRY(q4_is_tile(row) ? q4_emit_tiles(p, n, l, row, &u, m0) : emit_part(p, l, row, u, m0));
  }
  return SCONCE_OK;
}

/* ---- et_vk.linear_q4gsw: [x, w, scales, group, bias?, y] --------------------------------------
 */

enum { X, W, SCALES, GROUP, BIAS };

bool q4_fits(const struct tensor *w, const struct tensor *scales, int64_t group, uint32_t k) {
  return tensor_is_float(scales) && w->dtype == VK_UINT8 && w->rank == 2 && group >= 1 &&
         group <= INT32_MAX && 2ull * w->dim_max[1] >= k && scales->rank == 2 &&
         scales->dim_max[0] >= div_up(k, (uint64_t)group) && scales->dim_max[1] >= w->dim_max[0];
}

/* q4_fits, with a sentence about what does not. */
static sconce_status check(struct plan *p, const struct tensor *w, const struct tensor *scales,
                           int64_t group, uint32_t k) {
  char a[120], b[120];
  if (q4_fits(w, scales, group, k)) return SCONCE_OK;
  TRY(float_check(p, scales, "the scales"));
  if (w->dtype != VK_UINT8 || w->rank != 2)
    return fail(p->err, SCONCE_BAD_GRAPH, "the weight is %s, expected uint8 [n, k / 2]",
                tensor_text(w, a));
  if (group < 1 || group > INT32_MAX)
    return fail(p->err, SCONCE_BAD_GRAPH, "groups of %" PRId64, group);
  if (2ull * w->dim_max[1] < k)
    return fail(p->err, SCONCE_BAD_GRAPH, "x has %u columns, the weight is %s", k,
                tensor_text(w, a));
  return fail(p->err, SCONCE_BAD_GRAPH, "scales %s for a weight %s in groups of %" PRId64,
              tensor_text(scales, a), tensor_text(w, b), group);
}

static sconce_status prepare(struct plan *p, struct node *n) {
  const struct tensor *scales;
  TRY(arg_tensor(p, n, SCALES, &scales));
  TRY(graph_packed(p->g, arg_id(n, SCALES), &q4_scales, &n->extra[0], p->err));
  return q4_scratch(p, n, X, W, SCALES);
}

static sconce_status shape(struct plan *p, const struct node *n) {
  const struct tensor *x, *w;
  TRY(arg_tensor(p, n, X, &x));
  TRY(arg_tensor(p, n, W, &w));
  return rows_shape(p, out_id(n), x, w->dim_max[0]);
}

sconce_status q4_linear_of(struct plan *p, const struct node *n, struct q4_args at,
                           struct q4_linear *out) {
  const struct tensor *x, *w;
  TRY(arg_tensor(p, n, at.x, &x));
  TRY(arg_tensor(p, n, at.w, &w));
  const struct tensor *scales;
  TRY(arg_tensor(p, n, at.scales, &scales));
  const struct tensor *y = out_tensor(p, n);
  int64_t group;
  TRY(arg_int(p, n, at.group, &group));
  TRY(float_check(p, x, "x"));
  if (x->rank == 0 || (y->dtype != x->dtype && (!is_half(x) || y->dtype != VK_FLOAT32)))
    return fail(p->err, SCONCE_BAD_GRAPH, "x is %s of rank %u, the result %s",
                vk_dtype_name(x->dtype), x->rank, vk_dtype_name(y->dtype));
  *out = (struct q4_linear){.x = arg_id(n, at.x),
                            .w = arg_id(n, at.w),
                            .scales = n->extra[0],
                            .y = out_id(n),
                            .bias = arg_id(n, at.bias),
                            .m = rows_of(x),
                            .k = x->dim_live[x->rank - 1],
                            .n = w->dim_max[0],
                            .group = (uint32_t)group,
                            .groups = scales->dim_max[0],
                            .parts = n->extra[2],
                            .halves = n->extra[3],
                            .factors = n->extra[4],
                            .norms = n->extra[5]};
  TRY(check(p, w, scales, group, out->k));
  return rows_bias(p, n, at.bias, out->n, &out->bias_kind);
}

static sconce_status emit(struct plan *p, const struct node *n) {
  struct q4_linear l;
  TRY(q4_linear_of(p, n, (struct q4_args){X, W, SCALES, GROUP, BIAS}, &l));
  return q4_emit(p, n, &l);
}

const struct op ops_linear_q4[] = {
    {"et_vk.linear_q4gsw.default", shape, emit, prepare, .n_args = 6, .flags = OP_ROWS,
     .unbound = 1 << SCALES, .tables = TABLES(Q4_TABLES)},
    {0},
};
