/* Passes around 4-bit projections: those of one x as one (join), SwiGLU, the norm in front, the
 * residual behind. All make the same kind of fused node; its group says what is in it. */
#include "graph/rewrite.h"
#include "ops/linear_q4/linear_q4.h"

#include "q4_add.wgsl.h"
#include "q4_glu.wgsl.h"
#include "q4_join.wgsl.h"

#include <float.h>
#include <string.h>

enum { MOST = 3 };
enum { X, W, SCALES, GROUP, BIAS }; /* arguments of a projection */

/* Parts by their order in the chain. */
struct group {
  uint32_t n, linear[MOST];
  uint32_t norm, add, glu; /* NO_NODE: none; glu is the last product, linear[0] the gate */
};

static const char *const PROJECTION = "et_vk.linear_q4gsw.default";
static const char *const FUSED = "sconce.linear_q4";

/* ---- kernels --------------------------------------------------------------------------------- */

/* Thresholds as in linear_q4.c. */
struct problem {
  uint32_t m, k, rows; /* rows of all weights together */
  bool half;
};
static bool is(const void *problem, bool half) {
  return ((const struct problem *)problem)->half == half;
}
static bool few_rows(const void *problem, bool half) {
  const struct problem *q = problem;
  return is(q, half) && q->m == 1 && q->k < 4096 && q->rows <= 4096;
}
static bool few_f32(const void *q, const struct caps *c) { return (void)c, few_rows(q, false); }
static bool few_f16(const void *q, const struct caps *c) { return (void)c, few_rows(q, true); }
static bool at_least(const void *problem, uint32_t k, bool half) {
  return is(problem, half) && ((const struct problem *)problem)->k >= k;
}
static bool long_rows(const void *problem, bool half) {
  return at_least(problem, 4096, half) && ((const struct problem *)problem)->m == 1;
}
static bool long_f32(const void *q, const struct caps *c) { return (void)c, long_rows(q, false); }
static bool long_f16(const void *q, const struct caps *c) { return (void)c, long_rows(q, true); }
static bool k1024_f32(const void *q, const struct caps *c) {
  return (void)c, at_least(q, 1024, false);
}
static bool k1024_f16(const void *q, const struct caps *c) {
  return (void)c, at_least(q, 1024, true);
}
static bool any_f32(const void *q, const struct caps *c) { return (void)c, is(q, false); }
static bool any_f16(const void *q, const struct caps *c) { return (void)c, is(q, true); }

#define SINGLE(wgsl, suffix, types) Q4_WIDE("r1u2t32_" #suffix, wgsl, types, few_##suffix, 1, 2, 32)
#define ROWS(wgsl, suffix, types)                                                                  \
  Q4_WIDE("r4u1t128_" #suffix, wgsl, types, long_##suffix, 4, 1, 128),                             \
      Q4_WIDE("r4u2t32_" #suffix, wgsl, types, any_##suffix, 4, 2, 32),                            \
      Q4_MEMORY("t64_" #suffix, wgsl, types, k1024_##suffix, 64),                                  \
      Q4_MEMORY("t16_" #suffix, wgsl, types, any_##suffix, 16)
#define F32 "use=quad_f32 use=elem_f32"
#define F16 "use=quad_f16 use=elem_f16"
#define TABLE(name, wgsl)                                                                          \
  static const struct kernel name[] = {SINGLE(wgsl, f32, F32),                                     \
                                       SINGLE(wgsl, f16, F16),                                     \
                                       ROWS(wgsl, f32, F32),                                       \
                                       ROWS(wgsl, f16, F16),                                       \
                                       {0}}
TABLE(join_kernels, &q4_join_wgsl);
TABLE(add_kernels, &q4_add_wgsl);
static const struct kernel glu_kernels[] = {
    ROWS(&q4_glu_wgsl, f32, F32), ROWS(&q4_glu_wgsl, f16, F16), {0}};

/* ---- emit ------------------------------------------------------------------------------------ */

/* What all three kernels want to know. */
struct call {
  const struct group *group;
  const struct node *linear[MOST], *norm;
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

static bool is_power_of_two(int64_t n) { return n > 0 && !(n & (n - 1)); }

/* false: not a shape for these kernels. Only what they rely on is looked at; the parts check the
 * rest when they are shaped. */
static bool read_linear(struct plan *p, struct call *c, uint32_t i) {
  const struct node *n = c->linear[i];
  const struct tensor *w = tensor_at(p, n->args[W]), *scales = tensor_at(p, n->extra[0]);
  const struct tensor *y = tensor_at(p, out_id(n)), *bias = tensor_at(p, n->args[BIAS]);
  const struct tensor *x = tensor_at(p, n->args[X]);
  int64_t group;
  if (!w || !scales || !y || !x || arg_int(p, n, GROUP, &group) != SCONCE_OK) return false;
  if (x->rank == 0 || x->dim_live[x->rank - 1] != c->k || (x->dtype == VK_FLOAT16) != c->half)
    return false; /* another view of what the first one reads */
  const bool whole = group >= c->k;
  if (i && c->groups != scales->dim_max[0]) return false;
  c->groups = scales->dim_max[0];
  c->shift = 31;
  if (!whole && (group % 32 || !is_power_of_two(group / 32))) return false;
  for (c->shift = whole ? 31 : 0; !whole && 32ll << c->shift < group;) c->shift++;
  const uint32_t rows = w->dim_max[0];
  c->rows += rows;
  if (q4_check(p, w, scales, group, c->k) != SCONCE_OK) return false;
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

static bool read_call(struct plan *p, const struct node *n, struct call *c) {
  *c = (struct call){.group = n->fused};
  const struct group *g = c->group;
  for (uint32_t i = 0; i < g->n; i++) c->linear[i] = part_at(n, g->linear[i]);
  c->norm = part_at(n, g->norm);
  c->x = c->norm ? c->norm->args[0] : c->linear[0]->args[X];
  c->norm_w = c->norm ? c->norm->args[1] : c->x;
  const struct tensor *x = tensor_at(p, c->x), *norm_w = tensor_at(p, c->norm_w);
  if (!x || !norm_w || x->rank == 0 || norm_w->dtype != x->dtype) return false;
  c->m = rows_of(x);
  c->k = x->dim_live[x->rank - 1];
  c->half = x->dtype == VK_FLOAT16;
  if (c->m == 0 || c->m > 8 || c->k == 0 || c->k % 32) return false;
  if (c->norm && (tensor_numel(norm_w) != c->k ||
                  arg_float_or(p, c->norm, 2, (double)FLT_EPSILON, &c->eps) != SCONCE_OK))
    return false;
  for (uint32_t i = 0; i < g->n; i++)
    if (!read_linear(p, c, i)) return false;
  const uint64_t numel = (uint64_t)c->m * c->rows / g->n;
  if (!is_elementwise(p, n, g->add, numel) || !is_elementwise(p, n, g->glu, numel)) return false;
  return fits_binding(p, c->linear[0]->args[W]) && fits_binding(p, c->linear[0]->extra[0]);
}

/* x is staged once for several blocks where there are more than fill a large device. */
static uint64_t workgroups(uint32_t m, uint64_t rows, const struct kernel *row, uint32_t *blocks) {
  uint64_t across = div_up(rows, row->tile[0]);
  uint64_t turns = across * m / 2048;
  *blocks = turns < 1 ? 1 : turns > 8 ? 8 : (uint32_t)turns;
  return div_up(across, *blocks) * m;
}

/* All that was joined to the first one. */
static struct operand joined(struct plan *p, uint32_t first) {
  return (struct operand){first, 0, graph_joined_size(p->g, first)};
}

static uint32_t rows_of_weight(struct plan *p, const struct node *linear) {
  return tensor_at(p, linear->args[W])->dim_max[0];
}

static sconce_status emit_join(struct plan *p, const struct node *n, const struct call *c) {
  const struct kernel *row =
      choose(p, join_kernels, &(struct problem){c->m, c->k, c->rows, c->half});
  if (!row) return p->err->status;
  for (uint32_t i = 0; i < c->group->n; i++) /* a set's rows are all of one weight */
    if (rows_of_weight(p, c->linear[i]) % row->tile[1]) return emit_parts(p, n);
  const struct node *first = c->linear[0];
  struct q4_join_params u = {.m = c->m,
                             .k = c->k,
                             .groups = c->groups,
                             .shift = c->shift,
                             .norm = c->norm != NULL,
                             .bias = !arg_is_null(p, first, BIAS),
                             .eps = (float)c->eps};
  uint32_t y[MOST] = {NO_VALUE, n->extra[0], n->extra[1]}, rows = 0;
  for (uint32_t i = 0; i < MOST; i++) {
    if (i < c->group->n) {
      const struct node *linear = c->linear[i];
      rows += rows_of_weight(p, linear);
      u.w_at[i] = (uint32_t)joined_to(p, first->args[W], linear->args[W], 16);
      u.s_at[i] = (uint32_t)joined_to(p, first->extra[0], linear->extra[0], c->half ? 2 : 4);
      if (u.bias)
        u.b_at[i] = (uint32_t)joined_to(p, first->args[BIAS], linear->args[BIAS], c->half ? 2 : 4);
      y[i] = out_id(linear);
    }
    u.ends[i] = rows;
  }
  uint64_t groups = workgroups(c->m, rows, row, &u.blocks);
  return dispatch(p, row, &u, groups,
                  OPERANDS({c->x}, {c->norm_w}, joined(p, first->args[W]),
                           joined(p, first->extra[0]),
                           u.bias ? joined(p, first->args[BIAS]) : (struct operand){c->x}, {y[0]},
                           {y[1]}, {y[2]}));
}

static sconce_status emit_glu(struct plan *p, const struct node *n, const struct call *c) {
  const struct kernel *row =
      choose(p, glu_kernels, &(struct problem){c->m, c->k, c->rows, c->half});
  if (!row) return p->err->status;
  const struct node *gate = c->linear[0], *up = c->linear[1];
  struct q4_glu_params u = {.m = c->m,
                            .n = rows_of_weight(p, gate),
                            .k = c->k,
                            .groups = c->groups,
                            .shift = c->shift,
                            .norm = c->norm != NULL,
                            .eps = (float)c->eps};
  u.w_at = (uint32_t)joined_to(p, gate->args[W], up->args[W], 16);
  u.s_at = (uint32_t)joined_to(p, gate->extra[0], up->extra[0], c->half ? 2 : 4);
  uint64_t groups = workgroups(c->m, 2 * (uint64_t)u.n, row, &u.blocks);
  return dispatch(p, row, &u, groups,
                  OPERANDS({c->x}, {c->norm_w}, joined(p, gate->args[W]), joined(p, gate->extra[0]),
                           {out_id(part_at(n, c->group->glu))}));
}

static sconce_status emit_add(struct plan *p, const struct node *n, const struct call *c) {
  const struct kernel *row =
      choose(p, add_kernels, &(struct problem){c->m, c->k, c->rows, c->half});
  if (!row) return p->err->status;
  const struct node *linear = c->linear[0], *add = part_at(n, c->group->add);
  const uint32_t y = tensor_at(p, out_id(linear))->root;
  const uint32_t rest = tensor_at(p, add->args[0])->root == y ? add->args[1] : add->args[0];
  struct q4_add_params u = {
      .m = c->m, .n = rows_of_weight(p, linear), .k = c->k, .groups = c->groups, .shift = c->shift};
  uint64_t groups = workgroups(c->m, u.n, row, &u.blocks);
  return dispatch(p, row, &u, groups,
                  OPERANDS({c->x}, {linear->args[W]}, {linear->extra[0]}, {rest}, {out_id(add)}));
}

static sconce_status emit_fused(struct plan *p, const struct node *n) {
  struct call c;
  sconce_error quiet = *p->err; /* a shape that does not fit is no error */
  bool fits = read_call(p, n, &c);
  *p->err = quiet;
  if (!fits) return emit_parts(p, n);
  if (c.group->glu != NO_NODE) return emit_glu(p, n, &c);
  return c.group->add != NO_NODE ? emit_add(p, n, &c) : emit_join(p, n, &c);
}

/* Weights, scales and biases each in one buffer; results that are not there get a place to go. */
static sconce_status prepare_fused(struct plan *p, struct node *n) {
  const struct group *g = n->fused;
  uint32_t w[MOST], scales[MOST], bias[MOST];
  for (uint32_t i = 0; i < g->n; i++) {
    const struct node *linear = part_at(n, g->linear[i]);
    w[i] = linear->args[W];
    scales[i] = linear->extra[0];
    bias[i] = linear->args[BIAS];
  }
  bool biased = !arg_is_null(p, part_at(n, g->linear[0]), BIAS);
  bool together = g->n == 1 || (graph_join(p->g, w, g->n) && graph_join(p->g, scales, g->n) &&
                                (!biased || graph_join(p->g, bias, g->n)));
  if (!together) /* the pass looked: no constant is used twice */
    return fail(p->err, SCONCE_BAD_GRAPH, "weights of a fused projection cannot lie together");
  for (uint32_t i = g->n; i < MOST && g->glu == NO_NODE && g->add == NO_NODE; i++)
    TRY(graph_scratch(p->g, VK_FLOAT32, 4, &n->extra[i - 1], p->err));
  return SCONCE_OK;
}

const struct op ops_linear_q4_fused[] = {
    {"sconce.linear_q4", .emit = emit_fused, .prepare = prepare_fused,
     .kernels = {join_kernels, glu_kernels, add_kernels}},
    {0},
};

/* ---- passes ---------------------------------------------------------------------------------- */

/* The group of a fused node, or of a projection as it came; false if it is neither. */
static bool group_at(const struct rewrite *r, uint32_t i, struct group *g) {
  const struct node *n = node_of(r, i, FUSED);
  if (n) return *g = *(const struct group *)n->fused, true;
  n = node_of(r, i, PROJECTION);
  if (!n) return false;
  *g = (struct group){1, {n->order}, NO_NODE, NO_NODE, NO_NODE};
  return true;
}

static sconce_status make(struct rewrite *r, const struct group *g, struct fusion *f) {
  struct group *copy = arena_new(&r->g->arena, struct group, 1);
  if (!copy) return fail(r->err, SCONCE_NO_MEMORY, "no memory for a fused node");
  *copy = *g;
  f->op = ops_linear_q4_fused;
  f->name = FUSED;
  f->fused = copy;
  return fuse(r, f);
}

/* A constant that only this node reads: it may move next to another. */
static bool is_own_constant(const struct rewrite *r, uint32_t id) {
  if (id >= r->g->n_values || r->g->values[id].kind != VK_TENSOR) return false;
  const struct tensor *t = &r->g->values[id].tensor;
  if (!t->constant || t->written || t->output || r->readers[id] != 1) return false;
  for (uint32_t i = 0; i < r->g->n_values; i++) { /* others with these bytes would share them */
    const struct value *v = &r->g->values[i];
    if (i != id && v->kind == VK_TENSOR && v->tensor.constant && r->readers[i] &&
        v->tensor.bytes.data == t->bytes.data)
      return false;
  }
  return true;
}

static bool is_null(const struct rewrite *r, uint32_t id) {
  return id >= r->g->n_values || r->g->values[id].kind == VK_NULL;
}

/* May these two be computed by one kernel? Both read the same x in groups of the same size. */
static bool alike(const struct rewrite *r, const struct node *a, const struct node *b) {
  const struct value *v = r->g->values;
  if (viewed(r, a->args[X]) != viewed(r, b->args[X])) return false;
  if (is_null(r, a->args[BIAS]) != is_null(r, b->args[BIAS])) return false;
  const uint32_t ga = a->args[GROUP], gb = b->args[GROUP];
  if (ga == NO_VALUE || gb == NO_VALUE || v[ga].kind != v[gb].kind || v[ga].i != v[gb].i)
    return false;
  const uint32_t wa = a->args[W], wb = b->args[W];
  return is_own_constant(r, wa) && is_own_constant(r, wb) && is_own_constant(r, a->args[SCALES]) &&
         is_own_constant(r, b->args[SCALES]) &&
         (is_null(r, a->args[BIAS]) ||
          (is_own_constant(r, a->args[BIAS]) && is_own_constant(r, b->args[BIAS]))) &&
         v[wa].tensor.rank == 2 && v[wb].tensor.rank == 2 &&
         v[wa].tensor.dim_max[1] == v[wb].tensor.dim_max[1];
}

/* Projections of one x, in the order of the chain. */
static sconce_status join_at(struct rewrite *r, uint32_t i) {
  const struct node *first = node_of(r, i, PROJECTION);
  if (!first) return SCONCE_OK;
  struct group g = {1, {first->order}, NO_NODE, NO_NODE, NO_NODE};
  struct fusion f = {.nodes = {i}, .n = 1};
  for (uint32_t k = i + 1; k < r->g->n_nodes && g.n < MOST; k++) {
    const struct node *n = node_of(r, k, PROJECTION);
    if (!n || !alike(r, first, n)) continue;
    struct fusion more = f;
    more.nodes[more.n++] = k;
    if (!may_fuse(r, &more)) break;
    f.nodes[f.n++] = k;
    g.linear[g.n++] = n->order;
  }
  return g.n > 1 ? make(r, &g, &f) : SCONCE_OK;
}

static const struct node *find_linear(const struct rewrite *r, uint32_t node, uint32_t value,
                                      struct group *g) {
  if (node == NO_NODE || !group_at(r, node, g) || g->norm != NO_NODE || g->add != NO_NODE ||
      g->glu != NO_NODE || g->n > 2)
    return NULL;
  for (uint32_t i = 0; i < g->n; i++) {
    const struct node *n = &r->g->nodes[node];
    const struct node *linear = n->n_parts ? part_at(n, g->linear[i]) : n;
    if (out_id(linear) == value) return linear;
  }
  return NULL;
}

/* silu(g) as x · sigmoid(x): the node of the product, and what it is of. */
static bool silu_of(const struct rewrite *r, uint32_t value, uint32_t nodes[2], uint32_t *of) {
  nodes[0] = maker_of(r, value);
  const struct node *mul = node_of(r, nodes[0], "aten.mul.Tensor");
  if (!mul) return false;
  for (uint32_t k = 0; k < 2; k++) {
    nodes[1] = maker_of(r, mul->args[k]);
    const struct node *sigmoid = node_of(r, nodes[1], "aten.sigmoid.default");
    *of = viewed(r, mul->args[1 - k]);
    if (sigmoid && viewed(r, sigmoid->args[0]) == *of) return true;
  }
  return false;
}

/* mul(mul(g, sigmoid(g)), u), where g and u are projections of one x. */
static sconce_status swiglu_at(struct rewrite *r, uint32_t i) {
  const struct node *last = node_of(r, i, "aten.mul.Tensor");
  if (!last) return SCONCE_OK;
  for (uint32_t side = 0; side < 2; side++) {
    uint32_t silu[2], gate, up = viewed(r, last->args[1 - side]);
    if (!silu_of(r, last->args[side], silu, &gate) || gate == up) continue;
    uint32_t makers[2] = {maker_of(r, gate), maker_of(r, up)};
    struct group a, b;
    const struct node *g = find_linear(r, makers[0], gate, &a);
    const struct node *u = find_linear(r, makers[1], up, &b);
    if (!g || !u || !is_null(r, g->args[BIAS]) || !is_null(r, u->args[BIAS])) continue;
    if (makers[0] != makers[1] && (a.n > 1 || b.n > 1 || !alike(r, g, u))) continue;
    if (r->g->values[g->args[W]].tensor.dim_max[0] != r->g->values[u->args[W]].tensor.dim_max[0])
      continue;
    struct group whole = {2, {g->order, u->order}, NO_NODE, NO_NODE, last->order};
    struct fusion f = {.nodes = {i, silu[0], silu[1], makers[0]}, .n = 4};
    if (makers[0] != makers[1]) f.nodes[f.n++] = makers[1];
    return shows_only(r, &f, out_id(last)) ? make(r, &whole, &f) : SCONCE_OK;
  }
  return SCONCE_OK;
}

static bool same_dims(const struct rewrite *r, uint32_t a, uint32_t b) {
  if (a >= r->g->n_values || b >= r->g->n_values) return false;
  const struct value *x = &r->g->values[a], *y = &r->g->values[b];
  return x->kind == VK_TENSOR && y->kind == VK_TENSOR && x->tensor.dtype == y->tensor.dtype &&
         x->tensor.rank == y->tensor.rank &&
         memcmp(x->tensor.dim_max, y->tensor.dim_max, x->tensor.rank * sizeof *x->tensor.dim_max) ==
             0;
}

static bool is_one(const struct rewrite *r, uint32_t id) {
  if (id >= r->g->n_values) return false;
  const struct value *v = &r->g->values[id];
  return (v->kind == VK_INT && v->i == 1) || (v->kind == VK_DOUBLE && v->d == 1);
}

/* add(rest, projection), neither of them broadcast. */
static sconce_status residual_at(struct rewrite *r, uint32_t i) {
  const struct node *add = node_of(r, i, "aten.add.Tensor");
  if (!add || add->n_args != 4 || !is_one(r, add->args[2])) return SCONCE_OK;
  if (!same_dims(r, add->args[0], add->args[1]) || !same_dims(r, add->args[0], out_id(add)))
    return SCONCE_OK;
  for (uint32_t side = 0; side < 2; side++) {
    const uint32_t y = viewed(r, add->args[side]);
    const uint32_t linear = maker_of(r, add->args[side]);
    const struct node *n = node_of(r, linear, PROJECTION);
    struct fusion f = {.nodes = {linear, i}, .n = 2};
    if (!n || out_id(n) != y || !is_null(r, n->args[BIAS]) || viewed(r, add->args[1 - side]) == y ||
        !shows_only(r, &f, out_id(add)))
      continue;
    struct group g = {1, {n->order}, NO_NODE, add->order, NO_NODE};
    return make(r, &g, &f);
  }
  return SCONCE_OK;
}

/* A norm that only one group of projections reads. Each of its workgroups computes the norm again:
 * that is cheaper than a dispatch for a layer's projections, not for the rows of a vocabulary. */
static sconce_status norm_at(struct rewrite *r, uint32_t i) {
  const struct node *norm = node_of(r, i, "et_vk.rms_norm.default");
  struct group g;
  if (!norm || norm->n_args != 4) return SCONCE_OK;
  uint32_t reader = only_reader(r, out_id(norm));
  if (reader == NO_NODE || !group_at(r, reader, &g) || g.n < 2 || g.norm != NO_NODE)
    return SCONCE_OK;
  const struct node *n = &r->g->nodes[reader];
  const struct node *linear = n->n_parts ? part_at(n, g.linear[0]) : n;
  if (viewed(r, linear->args[X]) != out_id(norm) || !same_dims(r, norm->args[0], out_id(norm)))
    return SCONCE_OK;
  g.norm = norm->order;
  return make(r, &g, &(struct fusion){.nodes = {i, reader}, .n = 2});
}

/* Joined projections first: SwiGLU and the norm take what they find. */
const struct pass passes_linear_q4[] = {
    {"join", join_at}, {"swiglu", swiglu_at}, {"residual", residual_at}, {"norm", norm_at}, {0},
};
