/* Kernels of fused 4-bit projections for many rows of x: joined ones as one product, gate and up as
 * one. Where none fits, the parts run as they came.
 *
 * The norm in front is a dispatch of its own, since tiles would compute it again and again. */
#include "ops/linear_q4/fused.h"
#include "ops/linear_q4/linear_q4.h"

#include "q4_gemm_glu.wgsl.h"
#include "q4_matrix_join.wgsl.h"
#include "q4_scaled_join.wgsl.h"
#include "q4_sums_join.wgsl.h"

/* ---- kernels --------------------------------------------------------------------------------- */

#define JOINED(type, dtype, types) Q4_MATRICES(#type, &q4_matrix_join_wgsl, types, dtype, 1, 1)
const struct kernel q4_whole_join[] = {
    JOINED(f32, OF_F32, "use=quad_f32 use=elem_f32"),
    JOINED(f16, OF_F16, "use=quad_f16 use=elem_f16"),
    {0},
};
const struct kernel q4_scaled_join[] = {
    {"scaled_f32", &q4_scaled_join_wgsl, "use=quad_f32", OF_F32, Q4_BESIDE_MATRICES, .threads = 64},
    {"scaled_f16", &q4_scaled_join_wgsl, "use=quad_f16", OF_F16, Q4_BESIDE_MATRICES, .threads = 64},
    {0},
};
const struct kernel q4_sums_join[] = {
    {"sums_f32", &q4_sums_join_wgsl, "use=quad_f32", OF_F32, .threads = 64},
    {"sums_f16", &q4_sums_join_wgsl, "use=quad_f16", OF_F16, .threads = 64},
    {0},
};
/* ---- what all of them ask -------------------------------------------------------------------- */

static enum vk_dtype dtype_of(const struct q4_call *c) { return c->half ? VK_FLOAT16 : VK_FLOAT32; }

static bool may_bind(struct plan *p, uint32_t id) {
  return tensor_nbytes_max(tensor_at(p, id)) <= p->g->caps.max_storage_binding;
}

static sconce_status emit_norm(struct plan *p, const struct q4_call *c) {
  return c->norm ? c->norm->op->emit(p, c->norm) : SCONCE_OK;
}

static const struct kernel *tile_of(const struct plan *p, const struct node *n,
                                    const struct q4_call *c, uint32_t m) {
  const struct q4_problem q = {
      .m = m, .k = c->k, .rows = c->rows, .tile = true, .large = q4_is_large(p)};
  return row_for(p, n, q4_glu_kernels, dtype_of(c), &q);
}

static const struct q4_args PROJECTION_ARGS = {Q4_X, Q4_W, Q4_SCALES, Q4_GROUP, Q4_BIAS};

/* The first projection, whose x becomes f16 for all of them, out of the norm where there is one. */
static sconce_status emit_first_halves(struct plan *p, const struct node *n,
                                       const struct q4_call *c, struct q4_linear *l) {
  const struct q4_norm norm = {c->x, c->norm_w, c->eps};
  TRY(q4_linear_of(p, c->linear[0], PROJECTION_ARGS, l));
  return q4_emit_halves(p, n, l, c->norm ? &norm : NULL);
}

/* Products of one x that becomes f16 at most once, each by itself. With a gate it waits for up's
 * product; its sigmoid and both products are part of what follows that. */
static sconce_status emit_halved(struct plan *p, const struct node *n, const struct q4_call *c) {
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
                                      const struct q4_call *c, const struct kernel *table,
                                      uint32_t m) {
  const struct q4_problem q = {.m = m, .k = c->k, .rows = c->rows, .matrix = true};
  const struct kernel *row = row_for(p, n, table, dtype_of(c), &q);
  return row && row->matrix.m ? row : NULL;
}

/* For whatever rows of x are taken at a time? */
static bool takes_matrix(const struct plan *p, const struct node *n, const struct q4_call *c,
                         const struct kernel *table) {
  for (uint32_t m0 = 0, taken; m0 < c->m; m0 += taken) {
    taken = q4_rows_taken(c->m - m0, c->m);
    if (!matrix_of(p, n, c, table, taken)) return false;
  }
  return true;
}

static sconce_status emit_glu_matrix(struct plan *p, const struct node *n,
                                     const struct q4_call *c) {
  const struct node *gate = c->linear[0], *up = c->linear[1];
  const uint32_t y = out_id(part_at(n, c->fusion->glu)), rows = q4_rows_of_weight(p, gate);
  const uint32_t half = c->half ? 2 : 4;
  struct q4_linear l;
  struct q4_params u = {.n = rows, .k = c->k, .groups = c->groups, .shift = c->shift};
  u.w_at = (uint32_t)q4_joined_to(p, gate->args[Q4_W], up->args[Q4_W], 16);
  u.s_at = (uint32_t)q4_joined_to(p, gate->extra[0], up->extra[0], half);
  u.n_at = (uint32_t)q4_joined_to(p, gate->extra[5], up->extra[5], 4);
  u.span = (uint32_t)div_up(c->k, 64) * 64;
  if (!may_bind(p, y) || !takes_matrix(p, n, c, q4_glu_kernels)) return emit_halved(p, n, c);
  TRY(emit_first_halves(p, n, c, &l));
  for (uint32_t m0 = 0; m0 < c->m; m0 += u.m) {
    u.m = q4_rows_taken(c->m - m0, c->m);
    const struct kernel *row = matrix_of(p, n, c, q4_glu_kernels, u.m);
    TRY(dispatch(p, row, &u, q4_tiles_of(row, u.m, u.n),
                 OPERANDS(q4_halves_part(p, &l, m0, u.m), q4_joined(p, gate->args[Q4_W]),
                          q4_joined(p, gate->extra[0]), q4_joined(p, gate->extra[5]),
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
    if (ids[i] == NO_VALUE || q4_joined_to(p, ids[0], ids[i], 1) != before) return false;
    before += rows[i] * unit;
  }
  return true;
}

/* Projections of one x that lie as one product. */
struct joint {
  const struct q4_call *c;
  struct q4_linear first;   /* for matrices: whose x in halves serves all */
  uint32_t ids[4][Q4_MOST]; /* weights, scales, biases, norms */
  uint32_t rows[Q4_MOST], y[Q4_MOST];
  uint32_t elem, parts; /* bytes of an element; scratch */
  bool bias;
};

/* false: they lie apart, or there is no room. */
static bool read_joint(struct plan *p, const struct node *n, const struct q4_call *c,
                       struct joint *j) {
  const bool matrices = q4_takes_matrices(c->linear[0]);
  *j = (struct joint){.c = c, .elem = c->half ? 2 : 4, .parts = n->extra[2]};
  for (uint32_t i = 0; i < Q4_MOST; i++) j->y[i] = i ? n->extra[i - 1] : 0;
  bool fits = tensor_at(p, j->parts) != NULL;
  for (uint32_t i = 0; i < c->fusion->n; i++) {
    const struct node *linear = c->linear[i];
    j->ids[0][i] = linear->args[Q4_W];
    j->ids[1][i] = linear->extra[0];
    j->ids[2][i] = linear->args[Q4_BIAS];
    j->ids[3][i] = linear->extra[5];
    j->rows[i] = q4_rows_of_weight(p, linear);
    j->y[i] = out_id(linear);
    fits &= may_bind(p, j->y[i]);
  }
  j->bias = !arg_is_null(p, c->linear[0], Q4_BIAS);
  const uint64_t unit[] = {c->k / 2, (uint64_t)c->groups * j->elem, j->elem, 4};
  const bool used[] = {true, true, j->bias, matrices};
  for (uint32_t k = 0; k < 4; k++)
    fits = fits && (!used[k] || is_one(p, j->ids[k], j->rows, c->fusion->n, unit[k]));
  return fits;
}

static struct q4_params joint_params(const struct joint *j) {
  const struct q4_call *c = j->c;
  return (struct q4_params){.n = c->rows,
                            .cols = c->rows,
                            .k = c->k,
                            .stride = c->k / 2,
                            .group = c->shift == 31 ? c->k : 32u << c->shift,
                            .groups = c->groups,
                            .shift = c->shift,
                            .half = c->half,
                            .bias = j->bias ? 1 + (uint32_t)c->half : 0,
                            .q_cols = j->rows[0],
                            .k_cols = j->rows[1]};
}

static struct operand joint_bias(struct plan *p, const struct joint *j) {
  return j->bias ? q4_joined(p, j->ids[2][0]) : (struct operand){j->ids[1][0], 0, 4};
}

static void joint_y(struct plan *p, const struct joint *j, uint64_t m0, uint64_t m,
                    struct operand y[Q4_MOST]) {
  for (uint32_t i = 0; i < Q4_MOST; i++)
    y[i] = i < j->c->fusion->n ? rows_part(p, j->y[i], (uint64_t)j->rows[i] * j->elem, m0, m)
                               : (struct operand){j->y[i]};
}

/* Rows [m0, m0 + u->m): one kernel, or one for slices of k and one that hands their sums out. */
static sconce_status emit_joint(struct plan *p, const struct node *n, const struct joint *j,
                                struct q4_params *u, uint64_t m0) {
  const struct q4_call *c = j->c;
  const struct kernel *row = matrix_of(p, n, c, q4_kernels, u->m), *last;
  const struct operand x = q4_halves_part(p, &j->first, m0, u->m), w = q4_joined(p, j->ids[0][0]);
  const struct operand scales = q4_joined(p, j->ids[1][0]), norms = q4_joined(p, j->ids[3][0]);
  const struct operand factors = q4_factors_part(p, &j->first, m0, u->m);
  struct operand y[Q4_MOST];
  joint_y(p, j, m0, u->m, y);
  q4_slice(row, u, tensor_numel_max(tensor_at(p, j->parts)));
  const uint64_t tiles = q4_tiles_of(row, u->m, u->n) * u->slices;
  if (u->slices == 1 && !j->bias)
    return dispatch(p, matrix_of(p, n, c, q4_whole_join, u->m), u, tiles,
                    OPERANDS(x, w, scales, norms, factors, y[0], y[1], y[2]));
  TRY(choose(p, n, q4_scaled_join, dtype_of(c), NULL, &last));
  TRY(dispatch(p, row, u, tiles, OPERANDS(x, w, scales, norms, {j->parts})));
  return dispatch(p, last, u, div_up((uint64_t)u->n / 4 * u->m, 64),
                  OPERANDS({j->parts}, factors, norms, joint_bias(p, j), y[0], y[1], y[2]));
}

static sconce_status emit_join_matrix(struct plan *p, const struct node *n,
                                      const struct q4_call *c) {
  struct joint j;
  if (!read_joint(p, n, c, &j) || !takes_matrix(p, n, c, q4_kernels) ||
      !takes_matrix(p, n, c, q4_whole_join))
    return emit_halved(p, n, c);
  TRY(emit_first_halves(p, n, c, &j.first));
  struct q4_params u = joint_params(&j);
  for (uint32_t m0 = 0; m0 < c->m; m0 += u.m) {
    u.m = q4_rows_taken(c->m - m0, c->m);
    TRY(emit_joint(p, n, &j, &u, m0));
  }
  return SCONCE_OK;
}

/* ---- in tiles: as one where k is in slices --------------------------------------------------- */

/* Beyond so many rows of x the products have tiles enough by themselves. H200, a Llama of 1 B,
 * tokens/s apart and as one: 128 rows 10,572 and 11,401, 512 rows 13,429 and 13,244. */
enum { JOINT_ROWS = 256 };

/* The row for u->m rows of x, with u's slices; NULL: none, or it takes k as a whole. */
static const struct kernel *sliced_row(const struct plan *p, const struct node *n,
                                       const struct joint *j, struct q4_params *u) {
  const struct q4_problem q = {
      .m = u->m, .k = u->k, .rows = u->n, .tile = true, .large = q4_is_large(p)};
  const struct kernel *row = row_for(p, n, q4_kernels, dtype_of(j->c), &q);
  if (!row || !q4_is_tile(row)) return NULL;
  q4_slice(row, u, tensor_numel_max(tensor_at(p, j->parts)));
  return u->slices > 1 ? row : NULL;
}

/* false: not for all rows of x. */
static bool read_sliced(struct plan *p, const struct node *n, const struct q4_call *c,
                        struct joint *j) {
  if (c->m > JOINT_ROWS || !may_bind(p, c->linear[0]->args[Q4_X]) || !read_joint(p, n, c, j))
    return false;
  if (!row_for(p, n, q4_sums_join, dtype_of(c), NULL)) return false;
  struct q4_params u = joint_params(j);
  for (uint32_t m0 = 0; m0 < c->m; m0 += u.m) {
    u.m = q4_rows_taken(c->m - m0, c->m);
    if (!sliced_row(p, n, j, &u)) return false;
  }
  return true;
}

static sconce_status emit_sliced(struct plan *p, const struct node *n, const struct joint *j) {
  const struct q4_call *c = j->c;
  const struct kernel *last;
  struct q4_params u = joint_params(j);
  TRY(emit_norm(p, c));
  TRY(choose(p, n, q4_sums_join, dtype_of(c), NULL, &last));
  for (uint32_t m0 = 0; m0 < c->m; m0 += u.m) {
    u.m = q4_rows_taken(c->m - m0, c->m);
    const struct kernel *row = sliced_row(p, n, j, &u);
    const struct operand x =
        rows_part(p, c->linear[0]->args[Q4_X], (uint64_t)c->k * j->elem, m0, u.m);
    const struct operand scales = q4_joined(p, j->ids[1][0]);
    struct operand y[Q4_MOST];
    joint_y(p, j, m0, u.m, y);
    TRY(dispatch(p, row, &u, q4_tiles_of(row, u.m, u.n) * u.slices,
                 OPERANDS(x, q4_joined(p, j->ids[0][0]), scales, scales, {j->parts})));
    TRY(dispatch(p, last, &u, div_up((uint64_t)u.n / 4 * u.m, 64),
                 OPERANDS({j->parts}, joint_bias(p, j), y[0], y[1], y[2])));
  }
  return SCONCE_OK;
}

static sconce_status emit_glu_tiles(struct plan *p, const struct node *n, const struct q4_call *c) {
  const struct node *gate = c->linear[0], *up = c->linear[1];
  const uint32_t x = gate->args[Q4_X], y = out_id(part_at(n, c->fusion->glu));
  const uint32_t half = c->half ? 2 : 4, rows = q4_rows_of_weight(p, gate);
  struct q4_gemm_glu_params u = {.n = rows, .k = c->k, .stride = c->k / 2, .groups = c->groups};
  u.group = c->shift == 31 ? c->k : 32u << c->shift;
  u.w_at = (uint32_t)q4_joined_to(p, gate->args[Q4_W], up->args[Q4_W], 4);
  u.s_at = (uint32_t)q4_joined_to(p, gate->extra[0], up->extra[0], half);
  if (!may_bind(p, x) || !may_bind(p, y) || !tile_of(p, n, c, c->m)) return emit_parts(p, n);
  TRY(emit_norm(p, c));
  for (uint32_t m0 = 0; m0 < c->m; m0 += u.m) {
    u.m = q4_rows_taken(c->m - m0, c->m);
    const struct kernel *row = tile_of(p, n, c, u.m);
    TRY(dispatch(p, row, &u, div_up(u.n, row->tile[0]) * div_up(u.m, row->tile[1]),
                 OPERANDS(rows_part(p, x, (uint64_t)c->k * half, m0, u.m),
                          q4_joined(p, gate->args[Q4_W]), q4_joined(p, gate->extra[0]),
                          rows_part(p, y, (uint64_t)rows * half, m0, u.m))));
  }
  return SCONCE_OK;
}

sconce_status q4_emit_join_many(struct plan *p, const struct node *n, const struct q4_call *c) {
  struct joint j;
  if (q4_takes_matrices(c->linear[0])) return emit_join_matrix(p, n, c);
  return read_sliced(p, n, c, &j) ? emit_sliced(p, n, &j) : emit_parts(p, n);
}

sconce_status q4_emit_glu_many(struct plan *p, const struct node *n, const struct q4_call *c) {
  return (q4_takes_matrices(c->linear[0]) ? emit_glu_matrix : emit_glu_tiles)(p, n, c);
}

/* ---- preparing ------------------------------------------------------------------------------- */

static struct node *own_part(struct node *n, uint32_t order) {
  for (uint32_t i = 0; i < n->n_parts; i++)
    if (n->parts[i].order == order) return &n->parts[i];
  return NULL;
}

/* For emit_halved: one x in f16 for all; the gate's result lives from the first of both products
 * to the last part. */
void q4_share_halves(struct node *n) {
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
sconce_status q4_joined_parts(struct plan *p, struct node *n) {
  const struct q4_fusion *g = n->fused;
  const struct node *first = part_at(n, g->linear[0]);
  const struct tensor *x = tensor_at(p, first->args[Q4_X]);
  const bool matrices = q4_takes_matrices(first);
  uint32_t rows = 0;
  uint64_t most = 0;
  for (uint32_t i = 0; i < g->n; i++) {
    const struct node *linear = part_at(n, g->linear[i]);
    const struct tensor *own = tensor_at(p, linear->extra[2]);
    if (q4_takes_matrices(linear) != matrices) return SCONCE_OK;
    if (!matrices && own && tensor_numel_max(own) > most) most = tensor_numel_max(own);
    rows += q4_rows_of_weight(p, linear);
  }
  const uint32_t k = x->rank ? x->dim_max[x->rank - 1] : 0;
  const uint64_t m = k ? tensor_numel_max(x) / k : 0;
  if (m <= q4_vector_rows(p->g)) return SCONCE_OK;
  for (const struct kernel *row = q4_kernels; row->name; row++) {
    if (!q4_is_tile(row) || !kernel_runs(row, &p->g->caps)) continue;
    if (matrices != (row->matrix.m != 0)) continue;
    const uint64_t numel =
        q4_parts_of(row, matrices || m < JOINT_ROWS ? m : JOINT_ROWS, k, rows, matrices);
    if (numel > most) most = numel;
  }
  if (most == 0 || most * 4 > p->g->caps.max_storage_binding) return SCONCE_OK;
  TRY(graph_scratch(p->g, VK_FLOAT32, most, &n->extra[2], p->err));
  for (uint32_t i = 0; i < g->n; i++) own_part(n, g->linear[i])->extra[2] = n->extra[2];
  return SCONCE_OK;
}
