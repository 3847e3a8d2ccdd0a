/* Kernels of fused 4-bit projections: those of one x as one, SwiGLU, the norm in front, the
 * residual behind. Where none fits, the parts run as they came. */
#include "ops/linear_q4/fused.h"
#include "ops/linear_q4/linear_q4.h"

#include "q4_add.wgsl.h"
#include "q4_gemm_glu.wgsl.h"
#include "q4_glu.wgsl.h"
#include "q4_join.wgsl.h"
#include "q4_matrix_glu.wgsl.h"

#include <float.h>

/* ---- kernels --------------------------------------------------------------------------------- */

#define SINGLE(wgsl, type, dtype, types)                                                           \
  Q4_WIDE("r1u2t32_" #type, wgsl, types, dtype, q4_few_rows, 1, 2, 32)
#define ROWS(wgsl, type, dtype, types)                                                             \
  Q4_WIDE("r4u1t128_" #type, wgsl, types, dtype, q4_long_rows, 4, 1, 128),                         \
      Q4_WIDE("r4u2t32_" #type, wgsl, types, dtype, q4_vector, 4, 2, 32),                          \
      Q4_MEMORY("t64_" #type, wgsl, types, dtype, q4_vector64, 64),                                \
      Q4_MEMORY("t16_" #type, wgsl, types, dtype, q4_vector, 16)
#define F32_TYPES "use=quad_f32 use=elem_f32"
#define F16_TYPES "use=quad_f16 use=elem_f16"
#define F32 f32, OF_F32, F32_TYPES
#define F16 f16, OF_F16, F16_TYPES
#define EACH(macro, wgsl, ...) macro(wgsl, __VA_ARGS__)
#define TABLE(name, wgsl)                                                                          \
  static const struct kernel name[] = {Q4_SERIAL("serial_f32", wgsl, F32_TYPES, OF_F32, 4),        \
                                       Q4_SERIAL("serial_f16", wgsl, F16_TYPES, OF_F16, 2),        \
                                       EACH(SINGLE, wgsl, F32),                                    \
                                       EACH(SINGLE, wgsl, F16),                                    \
                                       EACH(ROWS, wgsl, F32),                                      \
                                       EACH(ROWS, wgsl, F16),                                      \
                                       {0}}
TABLE(join_kernels, &q4_join_wgsl);
TABLE(add_kernels, &q4_add_wgsl);
#define TILES(wgsl, type, dtype, types)                                                            \
  Q4_TILE("tile32_" #type, wgsl, types, dtype, q4_broad32, 2, 128, 16, 8, 4, 2),                   \
      Q4_TILE("narrow32_" #type, wgsl, types, dtype, q4_tile32, 2, 64, 8, 8, 4, 2),                \
      Q4_TILE("tile64_" #type, wgsl, types, dtype, q4_broad64, 2, 128, 16, 8, 8, 2),               \
      Q4_TILE("tile128_" #type, wgsl, types, dtype, q4_broad, 2, 256, 16, 16, 8, 2),               \
      Q4_TILE("narrow64_" #type, wgsl, types, dtype, q4_tile, 2, 128, 8, 16, 4, 2)
#define MATRICES(wgsl, type, dtype, types) Q4_MATRICES(#type, wgsl, types, dtype, 2, 1)
const struct kernel q4_glu_kernels[] = {Q4_SERIAL("serial_f32", &q4_glu_wgsl, F32_TYPES, OF_F32, 2),
                                        Q4_SERIAL("serial_f16", &q4_glu_wgsl, F16_TYPES, OF_F16, 1),
                                        EACH(ROWS, &q4_glu_wgsl, F32),
                                        EACH(ROWS, &q4_glu_wgsl, F16),
                                        EACH(MATRICES, &q4_matrix_glu_wgsl, F32),
                                        EACH(MATRICES, &q4_matrix_glu_wgsl, F16),
                                        EACH(TILES, &q4_gemm_glu_wgsl, F32),
                                        EACH(TILES, &q4_gemm_glu_wgsl, F16),
                                        {0}};

/* ---- emit ------------------------------------------------------------------------------------ */

uint64_t q4_joined_to(struct plan *p, uint32_t first, uint32_t id, uint32_t unit) {
  return (tensor_at(p, id)->base - tensor_at(p, first)->base) / unit;
}

static bool fits_binding(struct plan *p, uint32_t first) {
  return graph_joined_size(p->g, first) <= p->g->caps.max_storage_binding;
}

/* false: not a shape for these kernels. Only what they rely on is looked at; the parts check the
 * rest when they are shaped. */
static bool read_linear(struct plan *p, struct q4_call *c, uint32_t i) {
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

static bool read_call(struct plan *p, const struct node *n, struct q4_call *c) {
  *c = (struct q4_call){.fusion = n->fused};
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
struct operand q4_joined(struct plan *p, uint32_t first) {
  return (struct operand){first, 0, graph_joined_size(p->g, first)};
}

uint32_t q4_rows_of_weight(struct plan *p, const struct node *linear) {
  return tensor_at(p, linear->args[Q4_W])->dim_max[0];
}

static const struct kernel *row_of(const struct plan *p, const struct node *n,
                                   const struct q4_call *c, const struct kernel *table) {
  const struct q4_problem q = {.m = c->m, .k = c->k, .rows = c->rows, .vector = true};
  return row_for(p, n, table, c->half ? VK_FLOAT16 : VK_FLOAT32, &q);
}

static sconce_status emit_join(struct plan *p, const struct node *n, const struct q4_call *c) {
  const struct kernel *row = row_of(p, n, c, join_kernels);
  if (!row) return emit_parts(p, n);
  for (uint32_t i = 0; i < c->fusion->n; i++) /* a set's rows are all of one weight */
    if (q4_rows_of_weight(p, c->linear[i]) % row->tile[1]) return emit_parts(p, n);
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
      rows += q4_rows_of_weight(p, linear);
      u.w_at[i] = (uint32_t)q4_joined_to(p, first->args[Q4_W], linear->args[Q4_W], 16);
      u.s_at[i] = (uint32_t)q4_joined_to(p, first->extra[0], linear->extra[0], c->half ? 2 : 4);
      if (u.bias)
        u.b_at[i] =
            (uint32_t)q4_joined_to(p, first->args[Q4_BIAS], linear->args[Q4_BIAS], c->half ? 2 : 4);
      y[i] = out_id(linear);
    }
    u.ends[i] = rows;
  }
  const uint64_t workgroups = q4_workgroups(c->m, rows, row, &u.blocks);
  return dispatch_few(p, row, u.m, &u, workgroups,
                      OPERANDS({c->x}, {c->norm_w}, q4_joined(p, first->args[Q4_W]),
                               q4_joined(p, first->extra[0]),
                               u.bias ? q4_joined(p, first->args[Q4_BIAS]) : (struct operand){c->x},
                               {y[0]}, {y[1]}, {y[2]}));
}

static uint32_t rest_of(struct plan *p, const struct node *linear, const struct node *add) {
  const uint32_t y = tensor_at(p, out_id(linear))->root;
  return tensor_at(p, add->args[0])->root == y ? add->args[1] : add->args[0];
}

/* The residual is a bias with rows. */
static sconce_status emit_add_tiles(struct plan *p, const struct node *n, const struct q4_call *c) {
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

static sconce_status emit_glu(struct plan *p, const struct node *n, const struct q4_call *c) {
  if (c->m > q4_vector_rows(p->g)) return q4_emit_glu_many(p, n, c);
  const struct kernel *row = row_of(p, n, c, q4_glu_kernels);
  if (!row) return emit_parts(p, n);
  const struct node *gate = c->linear[0], *up = c->linear[1];
  struct q4_glu_params u = {.m = c->m,
                            .n = q4_rows_of_weight(p, gate),
                            .k = c->k,
                            .groups = c->groups,
                            .shift = c->shift,
                            .norm = c->norm != NULL,
                            .eps = (float)c->eps};
  u.w_at = (uint32_t)q4_joined_to(p, gate->args[Q4_W], up->args[Q4_W], 16);
  u.s_at = (uint32_t)q4_joined_to(p, gate->extra[0], up->extra[0], c->half ? 2 : 4);
  const uint64_t workgroups = q4_workgroups(c->m, 2 * (uint64_t)u.n, row, &u.blocks);
  return dispatch_few(p, row, u.m, &u, workgroups,
                      OPERANDS({c->x}, {c->norm_w}, q4_joined(p, gate->args[Q4_W]),
                               q4_joined(p, gate->extra[0]), {out_id(part_at(n, c->fusion->glu))}));
}

static sconce_status emit_add(struct plan *p, const struct node *n, const struct q4_call *c) {
  if (c->m > q4_vector_rows(p->g)) return emit_add_tiles(p, n, c);
  const struct kernel *row = row_of(p, n, c, add_kernels);
  if (!row) return emit_parts(p, n);
  const struct node *linear = c->linear[0], *add = part_at(n, c->fusion->add);
  const uint32_t rest = rest_of(p, linear, add);
  struct q4_add_params u = {.m = c->m,
                            .n = q4_rows_of_weight(p, linear),
                            .k = c->k,
                            .groups = c->groups,
                            .shift = c->shift};
  const uint64_t workgroups = q4_workgroups(c->m, u.n, row, &u.blocks);
  return dispatch_few(
      p, row, u.m, &u, workgroups,
      OPERANDS({c->x}, {linear->args[Q4_W]}, {linear->extra[0]}, {rest}, {out_id(add)}));
}

static sconce_status emit_fused(struct plan *p, const struct node *n) {
  struct q4_call c;
  if (!read_call(p, n, &c)) return emit_parts(p, n);
  if (c.m > q4_vector_rows(p->g) && c.fusion->glu == NO_NODE && c.fusion->add == NO_NODE)
    return q4_emit_join_many(p, n, &c);
  if (c.fusion->glu != NO_NODE) return emit_glu(p, n, &c);
  return c.fusion->add != NO_NODE ? emit_add(p, n, &c) : emit_join(p, n, &c);
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
  q4_share_halves(n);
  if (!together) /* the pass looked: no constant is used twice */
    return fail(p->err, SCONCE_BAD_GRAPH, "weights of a fused projection cannot lie together");
  if (g->glu != NO_NODE || g->add != NO_NODE) return SCONCE_OK;
  for (uint32_t i = g->n; i < Q4_MOST; i++)
    TRY(graph_scratch(p->g, VK_FLOAT32, 4, &n->extra[i - 1], p->err));
  return q4_joined_parts(p, n);
}

const struct op ops_linear_q4_fused[] = {
    {"sconce.linear_q4", .emit = emit_fused, .prepare = prepare_fused,
     .tables = TABLES(join_kernels, q4_glu_kernels, add_kernels, Q4_JOINT_TABLES, Q4_TABLES)},
    {0},
};
