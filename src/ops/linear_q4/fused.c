/* Kernels of fused 4-bit projections: those of one x as one, SwiGLU, the norm in front, the
 * residual behind. Where none fits, the parts run as they came. */
#include "ops/linear_q4/fused.h"
#include "ops/linear_q4/linear_q4.h"

#include "q4_add.wgsl.h"
#include "q4_gemm_glu.wgsl.h"
#include "q4_glu.wgsl.h"
#include "q4_join.wgsl.h"
#include "q4_matrix_glu.wgsl.h"
#include "q4_matrix_join.wgsl.h"
#include "q4_scaled_join.wgsl.h"

#include <float.h>

/* ---- kernels --------------------------------------------------------------------------------- */

#define SINGLE(wgsl, type, dtype, types)                                                           \
  Q4_WIDE("r1u2t32_" #type, wgsl, types, dtype, q4_few_rows, 1, 2, 32)
#define ROWS(wgsl, type, dtype, types)                                                             \
  Q4_WIDE("r4u1t128_" #type, wgsl, types, dtype, q4_long_rows, 4, 1, 128),                         \
      Q4_WIDE("r4u2t32_" #type, wgsl, types, dtype, q4_vector, 4, 2, 32),                          \
      Q4_MEMORY("t64_" #type, wgsl, types, dtype, q4_vector64, 64),                                \
      Q4_MEMORY("t16_" #type, wgsl, types, dtype, q4_vector, 16)
#define F32 f32, OF_F32, "use=quad_f32 use=elem_f32"
#define F16 f16, OF_F16, "use=quad_f16 use=elem_f16"
#define EACH(macro, wgsl, ...) macro(wgsl, __VA_ARGS__)
#define TABLE(name, wgsl)                                                                          \
  static const struct kernel name[] = {EACH(SINGLE, wgsl, F32),                                    \
                                       EACH(SINGLE, wgsl, F16),                                    \
                                       EACH(ROWS, wgsl, F32),                                      \
                                       EACH(ROWS, wgsl, F16),                                      \
                                       {0}}
TABLE(join_kernels, &q4_join_wgsl);
TABLE(add_kernels, &q4_add_wgsl);
/* Gate and up have tiles enough without slices of k. */
#define TILES(wgsl, type, dtype, types)                                                            \
  Q4_TILE("tile32_" #type, wgsl, types, dtype, q4_tile32, 2, 128, 16, 8, 4, 2),                    \
      Q4_TILE("tile64_" #type, wgsl, types, dtype, q4_tile64, 2, 128, 16, 8, 8, 2),                \
      Q4_TILE("tile128_" #type, wgsl, types, dtype, q4_tile, 2, 256, 16, 16, 8, 2),                \
      Q4_TILE("narrow64_" #type, wgsl, types, dtype, q4_tile, 2, 128, 8, 16, 4, 2)
#define MATRICES(wgsl, type, dtype, types) Q4_MATRICES(#type, wgsl, types, dtype, 2, 1)
static const struct kernel glu_kernels[] = {EACH(ROWS, &q4_glu_wgsl, F32),
                                            EACH(ROWS, &q4_glu_wgsl, F16),
                                            EACH(MATRICES, &q4_matrix_glu_wgsl, F32),
                                            EACH(MATRICES, &q4_matrix_glu_wgsl, F16),
                                            EACH(TILES, &q4_gemm_glu_wgsl, F32),
                                            EACH(TILES, &q4_gemm_glu_wgsl, F16),
                                            {0}};

#define JOINED(wgsl, type, dtype, types) Q4_MATRICES(#type, wgsl, types, dtype, 1, 1)
static const struct kernel whole_join[] = {
    EACH(JOINED, &q4_matrix_join_wgsl, F32), EACH(JOINED, &q4_matrix_join_wgsl, F16), {0}};
static const struct kernel scaled_join[] = {
    {"scaled_f32", &q4_scaled_join_wgsl, "use=quad_f32", OF_F32,
     NEEDS_F16 | NEEDS_SUBGROUPS | NEEDS_MATRIX | NEEDS_FAST, .threads = 64},
    {"scaled_f16", &q4_scaled_join_wgsl, "use=quad_f16", OF_F16,
     NEEDS_F16 | NEEDS_SUBGROUPS | NEEDS_MATRIX | NEEDS_FAST, .threads = 64},
    {0},
};

/* ---- emit ------------------------------------------------------------------------------------ */

/* What all three kernels want to know. */
struct call {
  const struct q4_fusion *fusion;
  const struct node *linear[Q4_MOST], *norm;
  uint32_t x, norm_w;
  uint32_t m, k, groups, shift;
  uint32_t rows; /* of all weights */
  bool half;
  double eps;
};

static uint64_t joined_to(struct plan *p, uint32_t first, uint32_t id, uint32_t unit) {
  return (tensor_at(p, id)->base - tensor_at(p, first)->base) / unit;
}

static bool fits_binding(struct plan *p, uint32_t first) {
  return graph_joined_size(p->g, first) <= p->g->caps.max_storage_binding;
}

/* false: not a shape for these kernels. Only what they rely on is looked at; the parts check the
 * rest when they are shaped. */
static bool read_linear(struct plan *p, struct call *c, uint32_t i) {
  const struct node *n = c->linear[i];
  const struct tensor *w = tensor_at(p, n->args[Q4_W]), *scales = tensor_at(p, n->extra[0]);
  const struct tensor *y = tensor_at(p, out_id(n)), *bias = tensor_at(p, n->args[Q4_BIAS]);
  const struct tensor *x = tensor_at(p, n->args[Q4_X]);
  int64_t group;
  if (!w || !scales || !y || !x || !arg_is_int(p, n, Q4_GROUP, &group)) return false;
  if (x->rank == 0 || x->dim_live[x->rank - 1] != c->k || (x->dtype == VK_FLOAT16) != c->half)
    return false; /* another view of what the first one reads */
  if (i && c->groups != scales->dim_max[0]) return false;
  c->groups = scales->dim_max[0];
  if (group < 1 || group > INT32_MAX || !q4_shift((uint32_t)group, c->k, &c->shift)) return false;
  const uint32_t rows = w->dim_max[0];
  c->rows += rows;
  if (!q4_fits(w, scales, group, c->k)) return false;
  return w->dim_max[1] == c->k / 2 && rows && rows % 4 == 0 && y->dtype == scales->dtype &&
         (y->dtype == VK_FLOAT16) == c->half &&
         (!bias || (bias->dtype == y->dtype && tensor_numel(bias) >= rows));
}

/* Sums and products whose operands are as large as their result: none is broadcast. */
static bool is_elementwise(struct plan *p, const struct node *n, uint32_t order, uint64_t numel) {
  const struct node *part = part_at(n, order);
  for (uint32_t i = 0; part && i < 2; i++) {
    const struct tensor *x = tensor_at(p, part->args[i]);
    if (!x || tensor_numel(x) != numel) return false;
  }
  return !part || tensor_numel(tensor_at(p, out_id(part))) == numel;
}

static bool read_eps(const struct plan *p, const struct node *norm, double *eps) {
  *eps = (double)FLT_EPSILON;
  return arg_is_null(p, norm, 2) || arg_is_float(p, norm, 2, eps);
}

static bool read_call(struct plan *p, const struct node *n, struct call *c) {
  *c = (struct call){.fusion = n->fused};
  const struct q4_fusion *g = c->fusion;
  for (uint32_t i = 0; i < g->n; i++) c->linear[i] = part_at(n, g->linear[i]);
  c->norm = part_at(n, g->norm);
  c->x = c->norm ? c->norm->args[0] : c->linear[0]->args[Q4_X];
  c->norm_w = c->norm ? c->norm->args[1] : c->x;
  const struct tensor *x = tensor_at(p, c->x), *norm_w = tensor_at(p, c->norm_w);
  if (!x || !norm_w || x->rank == 0 || norm_w->dtype != x->dtype) return false;
  c->m = rows_of(x);
  c->k = x->dim_live[x->rank - 1];
  c->half = x->dtype == VK_FLOAT16;
  if (c->m == 0 || c->k == 0 || c->k % 32) return false;
  if (c->norm && (tensor_numel(norm_w) != c->k || !read_eps(p, c->norm, &c->eps))) return false;
  for (uint32_t i = 0; i < g->n; i++)
    if (!read_linear(p, c, i)) return false;
  const uint64_t numel = (uint64_t)c->m * c->rows / g->n;
  if (!is_elementwise(p, n, g->add, numel) || !is_elementwise(p, n, g->glu, numel)) return false;
  return fits_binding(p, c->linear[0]->args[Q4_W]) && fits_binding(p, c->linear[0]->extra[0]);
}

/* One row of x is decoding: nothing in its parameters changes from call to call. */
static sconce_status dispatch_few(struct plan *p, const struct kernel *row, uint32_t m,
                                  const void *params, uint64_t workgroups,
                                  const struct operand *operands) {
  return (m == 1 ? dispatch_fixed : dispatch)(p, row, params, workgroups, operands);
}

/* All that was joined to the first one. */
static struct operand joined(struct plan *p, uint32_t first) {
  return (struct operand){first, 0, graph_joined_size(p->g, first)};
}

static uint32_t rows_of_weight(struct plan *p, const struct node *linear) {
  return tensor_at(p, linear->args[Q4_W])->dim_max[0];
}

static const struct kernel *row_of(const struct plan *p, const struct node *n, const struct call *c,
                                   const struct kernel *table) {
  const struct q4_problem q = {.m = c->m, .k = c->k, .rows = c->rows, .vector = true};
  return row_for(p, n, table, c->half ? VK_FLOAT16 : VK_FLOAT32, &q);
}

static sconce_status emit_join(struct plan *p, const struct node *n, const struct call *c) {
  const struct kernel *row = row_of(p, n, c, join_kernels);
  if (!row) return emit_parts(p, n);
  for (uint32_t i = 0; i < c->fusion->n; i++) /* a set's rows are all of one weight */
    if (rows_of_weight(p, c->linear[i]) % row->tile[1]) return emit_parts(p, n);
  const struct node *first = c->linear[0];
  struct q4_join_params u = {.m = c->m,
                             .k = c->k,
                             .groups = c->groups,
                             .shift = c->shift,
                             .norm = c->norm != NULL,
                             .bias = !arg_is_null(p, first, Q4_BIAS),
                             .eps = (float)c->eps};
  uint32_t y[Q4_MOST] = {NO_VALUE, n->extra[0], n->extra[1]}, rows = 0;
  for (uint32_t i = 0; i < Q4_MOST; i++) {
    if (i < c->fusion->n) {
      const struct node *linear = c->linear[i];
      rows += rows_of_weight(p, linear);
      u.w_at[i] = (uint32_t)joined_to(p, first->args[Q4_W], linear->args[Q4_W], 16);
      u.s_at[i] = (uint32_t)joined_to(p, first->extra[0], linear->extra[0], c->half ? 2 : 4);
      if (u.bias)
        u.b_at[i] =
            (uint32_t)joined_to(p, first->args[Q4_BIAS], linear->args[Q4_BIAS], c->half ? 2 : 4);
      y[i] = out_id(linear);
    }
    u.ends[i] = rows;
  }
  const uint64_t workgroups = q4_workgroups(c->m, rows, row, &u.blocks);
  return dispatch_few(p, row, u.m, &u, workgroups,
                      OPERANDS({c->x}, {c->norm_w}, joined(p, first->args[Q4_W]),
                               joined(p, first->extra[0]),
                               u.bias ? joined(p, first->args[Q4_BIAS]) : (struct operand){c->x},
                               {y[0]}, {y[1]}, {y[2]}));
}

/* ---- many rows: the norm is a dispatch of its own, since tiles would compute it again and again
 * --
 */

static bool may_bind(struct plan *p, uint32_t id) {
  return tensor_nbytes_max(tensor_at(p, id)) <= p->g->caps.max_storage_binding;
}

static sconce_status emit_norm(struct plan *p, const struct call *c) {
  return c->norm ? c->norm->op->emit(p, c->norm) : SCONCE_OK;
}

static const struct kernel *tile_of(const struct plan *p, const struct node *n,
                                    const struct call *c, uint32_t m) {
  const struct q4_problem q = {.m = m, .k = c->k, .rows = c->rows, .tile = true};
  return row_for(p, n, glu_kernels, c->half ? VK_FLOAT16 : VK_FLOAT32, &q);
}

static const struct q4_args PROJECTION_ARGS = {Q4_X, Q4_W, Q4_SCALES, Q4_GROUP, Q4_BIAS};

/* The first projection, whose x becomes f16 for all of them, out of the norm where there is one. */
static sconce_status emit_first_halves(struct plan *p, const struct node *n, const struct call *c,
                                       struct q4_linear *l) {
  const struct q4_norm norm = {c->x, c->norm_w, c->eps};
  TRY(q4_linear_of(p, c->linear[0], PROJECTION_ARGS, l));
  return q4_emit_halves(p, n, l, c->norm ? &norm : NULL);
}

/* Products of one x that becomes f16 at most once, each by itself. With a gate it waits for up's
 * product; its sigmoid and both products are part of what follows that. */
static sconce_status emit_halved(struct plan *p, const struct node *n, const struct call *c) {
  const bool glu = c->fusion->glu != NO_NODE;
  bool halved = false;
  TRY(emit_norm(p, c));
  for (uint32_t i = 0; i < c->fusion->n; i++) {
    struct q4_linear l;
    TRY(q4_linear_of(p, c->linear[i], PROJECTION_ARGS, &l));
    l.halved = halved;
    if (glu && i == 1) {
      l.bias = out_id(c->linear[0]);
      l.bias_kind = 1 + c->half;
      l.residual = l.gated = true;
      l.y = out_id(part_at(n, c->fusion->glu));
    }
    TRY(q4_emit(p, c->linear[i], &l));
    halved = l.halved;
  }
  return SCONCE_OK;
}

/* NULL: the device has none, or would rather not. */
static const struct kernel *matrix_of(const struct plan *p, const struct node *n,
                                      const struct call *c, const struct kernel *table,
                                      uint32_t m) {
  const struct q4_problem q = {.m = m, .k = c->k, .rows = c->rows, .matrix = true};
  const struct kernel *row = row_for(p, n, table, c->half ? VK_FLOAT16 : VK_FLOAT32, &q);
  return row && row->matrix.m ? row : NULL;
}

/* For whatever rows of x are taken at a time? */
static bool takes_matrix(const struct plan *p, const struct node *n, const struct call *c,
                         const struct kernel *table) {
  for (uint32_t m0 = 0, taken; m0 < c->m; m0 += taken) {
    taken = q4_rows_taken(c->m - m0, c->m);
    if (!matrix_of(p, n, c, table, taken)) return false;
  }
  return true;
}

static sconce_status emit_glu_matrix(struct plan *p, const struct node *n, const struct call *c) {
  const struct node *gate = c->linear[0], *up = c->linear[1];
  const uint32_t y = out_id(part_at(n, c->fusion->glu)), rows = rows_of_weight(p, gate);
  const uint32_t half = c->half ? 2 : 4;
  struct q4_linear l;
  struct q4_params u = {.n = rows, .k = c->k, .groups = c->groups, .shift = c->shift};
  u.w_at = (uint32_t)joined_to(p, gate->args[Q4_W], up->args[Q4_W], 16);
  u.s_at = (uint32_t)joined_to(p, gate->extra[0], up->extra[0], half);
  u.n_at = (uint32_t)joined_to(p, gate->extra[5], up->extra[5], 4);
  u.span = (uint32_t)div_up(c->k, 64) * 64;
  if (!may_bind(p, y) || !takes_matrix(p, n, c, glu_kernels)) return emit_halved(p, n, c);
  TRY(emit_first_halves(p, n, c, &l));
  for (uint32_t m0 = 0; m0 < c->m; m0 += u.m) {
    u.m = q4_rows_taken(c->m - m0, c->m);
    const struct kernel *row = matrix_of(p, n, c, glu_kernels, u.m);
    TRY(dispatch(p, row, &u, q4_tiles_of(row, u.m, u.n),
                 OPERANDS(q4_halves_part(p, &l, m0, u.m), joined(p, gate->args[Q4_W]),
                          joined(p, gate->extra[0]), joined(p, gate->extra[5]),
                          q4_factors_part(p, &l, m0, u.m),
                          rows_part(p, y, (uint64_t)rows * half, m0, u.m))));
  }
  return SCONCE_OK;
}

/* Do the joined constants lie as one, without gaps? `unit`: bytes for a row of a weight. */
static bool is_one(struct plan *p, const uint32_t *ids, const uint32_t *rows, uint32_t n,
                   uint64_t unit) {
  uint64_t before = 0;
  for (uint32_t i = 0; i < n; i++) {
    if (ids[i] == NO_VALUE || joined_to(p, ids[0], ids[i], 1) != before) return false;
    before += rows[i] * unit;
  }
  return true;
}

/* Projections of one x that lie as one product. */
struct joint {
  const struct call *c;
  struct q4_linear first;   /* whose x in halves serves all */
  uint32_t ids[4][Q4_MOST]; /* weights, scales, norms, biases */
  uint32_t rows[Q4_MOST], y[Q4_MOST];
  uint32_t elem, parts; /* bytes of an element; scratch */
  bool bias;
};

/* false: they lie apart, or there is no room. */
static bool read_joint(struct plan *p, const struct node *n, const struct call *c,
                       struct joint *j) {
  *j = (struct joint){.c = c, .elem = c->half ? 2 : 4, .parts = n->extra[2]};
  for (uint32_t i = 0; i < Q4_MOST; i++) j->y[i] = i ? n->extra[i - 1] : 0;
  bool fits = tensor_at(p, j->parts) != NULL;
  for (uint32_t i = 0; i < c->fusion->n; i++) {
    const struct node *linear = c->linear[i];
    j->ids[0][i] = linear->args[Q4_W];
    j->ids[1][i] = linear->extra[0];
    j->ids[2][i] = linear->extra[5];
    j->ids[3][i] = linear->args[Q4_BIAS];
    j->rows[i] = rows_of_weight(p, linear);
    j->y[i] = out_id(linear);
    fits &= may_bind(p, j->y[i]);
  }
  j->bias = !arg_is_null(p, c->linear[0], Q4_BIAS);
  const uint64_t unit[] = {c->k / 2, (uint64_t)c->groups * j->elem, 4, j->elem};
  for (uint32_t k = 0; k < (j->bias ? 4u : 3u); k++)
    fits = fits && is_one(p, j->ids[k], j->rows, c->fusion->n, unit[k]);
  return fits;
}

/* Rows [m0, m0 + u->m): one kernel, or one for slices of k and one that hands their sums out. */
static sconce_status emit_joint(struct plan *p, const struct node *n, const struct joint *j,
                                struct q4_params *u, uint64_t m0) {
  const struct call *c = j->c;
  const struct kernel *row = matrix_of(p, n, c, q4_kernels, u->m), *last;
  const struct operand x = q4_halves_part(p, &j->first, m0, u->m), w = joined(p, j->ids[0][0]);
  const struct operand scales = joined(p, j->ids[1][0]), norms = joined(p, j->ids[2][0]);
  const struct operand factors = q4_factors_part(p, &j->first, m0, u->m);
  struct operand y[Q4_MOST];
  for (uint32_t i = 0; i < Q4_MOST; i++)
    y[i] = i < c->fusion->n ? rows_part(p, j->y[i], (uint64_t)j->rows[i] * j->elem, m0, u->m)
                            : (struct operand){j->y[i]};
  q4_slice(row, u, tensor_numel_max(tensor_at(p, j->parts)));
  const uint64_t tiles = q4_tiles_of(row, u->m, u->n) * u->slices;
  if (u->slices == 1 && !j->bias)
    return dispatch(p, matrix_of(p, n, c, whole_join, u->m), u, tiles,
                    OPERANDS(x, w, scales, norms, factors, y[0], y[1], y[2]));
  TRY(choose(p, n, scaled_join, c->half ? VK_FLOAT16 : VK_FLOAT32, NULL, &last));
  TRY(dispatch(p, row, u, tiles, OPERANDS(x, w, scales, norms, {j->parts})));
  return dispatch(
      p, last, u, div_up((uint64_t)u->n / 4 * u->m, 64),
      OPERANDS({j->parts}, factors, norms,
               j->bias ? joined(p, j->ids[3][0]) : (struct operand){j->first.scales, 0, 4}, y[0],
               y[1], y[2]));
}

static sconce_status emit_join_matrix(struct plan *p, const struct node *n, const struct call *c) {
  struct joint j;
  if (!read_joint(p, n, c, &j) || !takes_matrix(p, n, c, q4_kernels) ||
      !takes_matrix(p, n, c, whole_join))
    return emit_halved(p, n, c);
  TRY(emit_first_halves(p, n, c, &j.first));
  struct q4_params u = {.n = c->rows,
                        .cols = c->rows,
                        .k = c->k,
                        .groups = c->groups,
                        .shift = c->shift,
                        .bias = j.bias ? 1 + (uint32_t)c->half : 0,
                        .q_cols = j.rows[0],
                        .k_cols = j.rows[1]};
  for (uint32_t m0 = 0; m0 < c->m; m0 += u.m) {
    u.m = q4_rows_taken(c->m - m0, c->m);
    TRY(emit_joint(p, n, &j, &u, m0));
  }
  return SCONCE_OK;
}

static sconce_status emit_glu_tiles(struct plan *p, const struct node *n, const struct call *c) {
  const struct node *gate = c->linear[0], *up = c->linear[1];
  const uint32_t x = gate->args[Q4_X], y = out_id(part_at(n, c->fusion->glu));
  const uint32_t half = c->half ? 2 : 4, rows = rows_of_weight(p, gate);
  struct q4_gemm_glu_params u = {.n = rows, .k = c->k, .stride = c->k / 2, .groups = c->groups};
  u.group = c->shift == 31 ? c->k : 32u << c->shift;
  u.w_at = (uint32_t)joined_to(p, gate->args[Q4_W], up->args[Q4_W], 4);
  u.s_at = (uint32_t)joined_to(p, gate->extra[0], up->extra[0], half);
  if (!may_bind(p, x) || !may_bind(p, y) || !tile_of(p, n, c, c->m)) return emit_parts(p, n);
  TRY(emit_norm(p, c));
  for (uint32_t m0 = 0; m0 < c->m; m0 += u.m) {
    u.m = q4_rows_taken(c->m - m0, c->m);
    const struct kernel *row = tile_of(p, n, c, u.m);
    TRY(dispatch(p, row, &u, div_up(u.n, row->tile[0]) * div_up(u.m, row->tile[1]),
                 OPERANDS(rows_part(p, x, (uint64_t)c->k * half, m0, u.m),
                          joined(p, gate->args[Q4_W]), joined(p, gate->extra[0]),
                          rows_part(p, y, (uint64_t)rows * half, m0, u.m))));
  }
  return SCONCE_OK;
}

static uint32_t rest_of(struct plan *p, const struct node *linear, const struct node *add) {
  const uint32_t y = tensor_at(p, out_id(linear))->root;
  return tensor_at(p, add->args[0])->root == y ? add->args[1] : add->args[0];
}

/* The residual is a bias with rows. */
static sconce_status emit_add_tiles(struct plan *p, const struct node *n, const struct call *c) {
  const struct node *linear = c->linear[0], *add = part_at(n, c->fusion->add);
  struct q4_linear l;
  TRY(q4_linear_of(p, linear, (struct q4_args){Q4_X, Q4_W, Q4_SCALES, Q4_GROUP, Q4_BIAS}, &l));
  l.bias = rest_of(p, linear, add);
  l.bias_kind = 1 + is_half(tensor_at(p, l.bias));
  l.residual = true;
  l.y = out_id(add);
  return q4_emit(p, linear, &l);
}

/* ---- few rows -------------------------------------------------------------------------------- */

static sconce_status emit_glu(struct plan *p, const struct node *n, const struct call *c) {
  if (c->m > q4_vector_rows(&p->g->caps))
    return (q4_takes_matrices(c->linear[0]) ? emit_glu_matrix : emit_glu_tiles)(p, n, c);
  const struct kernel *row = row_of(p, n, c, glu_kernels);
  if (!row) return emit_parts(p, n);
  const struct node *gate = c->linear[0], *up = c->linear[1];
  struct q4_glu_params u = {.m = c->m,
                            .n = rows_of_weight(p, gate),
                            .k = c->k,
                            .groups = c->groups,
                            .shift = c->shift,
                            .norm = c->norm != NULL,
                            .eps = (float)c->eps};
  u.w_at = (uint32_t)joined_to(p, gate->args[Q4_W], up->args[Q4_W], 16);
  u.s_at = (uint32_t)joined_to(p, gate->extra[0], up->extra[0], c->half ? 2 : 4);
  const uint64_t workgroups = q4_workgroups(c->m, 2 * (uint64_t)u.n, row, &u.blocks);
  return dispatch_few(p, row, u.m, &u, workgroups,
                      OPERANDS({c->x}, {c->norm_w}, joined(p, gate->args[Q4_W]),
                               joined(p, gate->extra[0]), {out_id(part_at(n, c->fusion->glu))}));
}

static sconce_status emit_add(struct plan *p, const struct node *n, const struct call *c) {
  if (c->m > q4_vector_rows(&p->g->caps)) return emit_add_tiles(p, n, c);
  const struct kernel *row = row_of(p, n, c, add_kernels);
  if (!row) return emit_parts(p, n);
  const struct node *linear = c->linear[0], *add = part_at(n, c->fusion->add);
  const uint32_t rest = rest_of(p, linear, add);
  struct q4_add_params u = {
      .m = c->m, .n = rows_of_weight(p, linear), .k = c->k, .groups = c->groups, .shift = c->shift};
  const uint64_t workgroups = q4_workgroups(c->m, u.n, row, &u.blocks);
  return dispatch_few(
      p, row, u.m, &u, workgroups,
      OPERANDS({c->x}, {linear->args[Q4_W]}, {linear->extra[0]}, {rest}, {out_id(add)}));
}

static sconce_status emit_fused(struct plan *p, const struct node *n) {
  struct call c;
  if (!read_call(p, n, &c)) return emit_parts(p, n);
  if (c.m > q4_vector_rows(&p->g->caps) && c.fusion->glu == NO_NODE && c.fusion->add == NO_NODE)
    return q4_takes_matrices(c.linear[0]) ? emit_join_matrix(p, n, &c) : emit_parts(p, n);
  if (c.fusion->glu != NO_NODE) return emit_glu(p, n, &c);
  return c.fusion->add != NO_NODE ? emit_add(p, n, &c) : emit_join(p, n, &c);
}

static struct node *own_part(struct node *n, uint32_t order) {
  for (uint32_t i = 0; i < n->n_parts; i++)
    if (n->parts[i].order == order) return &n->parts[i];
  return NULL;
}

/* For emit_halved: one x in f16 for all; the gate's result lives from the first of both products
 * to the last part. */
static void share_halves(struct node *n) {
  const struct q4_fusion *g = n->fused;
  const struct node *first = part_at(n, g->linear[0]);
  bool all = true;
  for (uint32_t i = 0; i < g->n; i++) all &= q4_takes_matrices(part_at(n, g->linear[i]));
  if (!all) return;
  for (uint32_t i = 1; i < g->n; i++) {
    struct node *other = own_part(n, g->linear[i]);
    other->extra[3] = first->extra[3];
    other->extra[4] = first->extra[4];
  }
  if (g->glu == NO_NODE) return;
  own_part(n, g->glu)->extra[0] = own_part(n, g->linear[1])->extra[1] = out_id(first);
}

/* Sums of all projections as one product: the projections' own, so that they live as long as what
 * else these share. */
static sconce_status joined_parts(struct plan *p, struct node *n) {
  const struct q4_fusion *g = n->fused;
  const struct node *first = part_at(n, g->linear[0]);
  const struct tensor *x = tensor_at(p, first->args[Q4_X]);
  uint32_t rows = 0;
  uint64_t most = 0;
  for (uint32_t i = 0; i < g->n; i++) {
    const struct node *linear = part_at(n, g->linear[i]);
    if (!q4_takes_matrices(linear)) return SCONCE_OK;
    rows += rows_of_weight(p, linear);
  }
  const uint32_t k = x->dim_max[x->rank - 1];
  const uint64_t m = tensor_numel_max(x) / k;
  for (const struct kernel *row = q4_kernels; row->name; row++) {
    if (!row->matrix.m || !kernel_runs(row, &p->g->caps)) continue;
    const uint64_t numel = q4_parts_of(row, m, k, rows, true);
    if (numel > most) most = numel;
  }
  if (most * 4 > p->g->caps.max_storage_binding) return SCONCE_OK;
  TRY(graph_scratch(p->g, VK_FLOAT32, most, &n->extra[2], p->err));
  for (uint32_t i = 0; i < g->n; i++) own_part(n, g->linear[i])->extra[2] = n->extra[2];
  return SCONCE_OK;
}

/* Weights, scales and biases each in one buffer; results that are not there get a place to go. */
static sconce_status prepare_fused(struct plan *p, struct node *n) {
  const struct q4_fusion *g = n->fused;
  uint32_t w[Q4_MOST], scales[Q4_MOST], bias[Q4_MOST], norms[Q4_MOST];
  bool normed = true;
  for (uint32_t i = 0; i < g->n; i++) {
    const struct node *linear = part_at(n, g->linear[i]);
    w[i] = linear->args[Q4_W];
    scales[i] = linear->extra[0];
    bias[i] = linear->args[Q4_BIAS];
    norms[i] = linear->extra[5];
    normed &= q4_takes_matrices(linear);
  }
  bool biased = !arg_is_null(p, part_at(n, g->linear[0]), Q4_BIAS);
  bool together = g->n == 1 || (graph_join(p->g, w, g->n) && graph_join(p->g, scales, g->n) &&
                                (!biased || graph_join(p->g, bias, g->n)) &&
                                (!normed || graph_join(p->g, norms, g->n)));
  share_halves(n);
  if (!together) /* the pass looked: no constant is used twice */
    return fail(p->err, SCONCE_BAD_GRAPH, "weights of a fused projection cannot lie together");
  if (g->glu != NO_NODE || g->add != NO_NODE) return SCONCE_OK;
  for (uint32_t i = g->n; i < Q4_MOST; i++)
    TRY(graph_scratch(p->g, VK_FLOAT32, 4, &n->extra[i - 1], p->err));
  return joined_parts(p, n);
}

const struct op ops_linear_q4_fused[] = {
    {"sconce.linear_q4", .emit = emit_fused, .prepare = prepare_fused,
     .tables = TABLES(join_kernels, glu_kernels, add_kernels, whole_join, scaled_join, Q4_TABLES)},
    {0},
};
