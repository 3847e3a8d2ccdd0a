/* Passes around 4-bit projections: those of one x as one (join), SwiGLU, the norm in front, the
 * residual behind. All make the same kind of fused node; its q4_fusion says what is in it. */
#include "ops/linear_q4/fused.h"

#include <string.h>

static const char *const PROJECTION = "et_vk.linear_q4gsw.default";

/* What is in a fused node, or of a projection as it came; false if it is neither. */
static bool fusion_at(const struct rewrite *r, uint32_t i, struct q4_fusion *g) {
  const struct node *n = node_of(r, i, ops_linear_q4_fused->name);
  if (n) return *g = *(const struct q4_fusion *)n->fused, true;
  n = node_of(r, i, PROJECTION);
  if (!n) return false;
  *g = (struct q4_fusion){1, {n->order}, NO_NODE, NO_NODE, NO_NODE};
  return true;
}

static sconce_status make(struct rewrite *r, const struct q4_fusion *g, struct fusion *f) {
  struct q4_fusion *copy = arena_new(&r->g->arena, struct q4_fusion, 1);
  if (!copy) return fail(r->err, SCONCE_NO_MEMORY, "no memory for a fused node");
  *copy = *g;
  f->op = ops_linear_q4_fused;
  f->name = ops_linear_q4_fused->name;
  f->fused = copy;
  return fuse(r, f);
}

/* A constant that only this node reads: it may move next to another. */
static bool is_own_constant(const struct rewrite *r, uint32_t id) {
  if (id >= r->g->n_values || r->g->values[id].kind != VK_TENSOR) return false;
  const struct tensor *t = &r->g->values[id].tensor;
  return t->constant && !t->written && !t->output && r->readers[id] == 1 && !r->shared[id];
}

static bool is_null(const struct rewrite *r, uint32_t id) {
  return id >= r->g->n_values || r->g->values[id].kind == VK_NULL;
}

/* May these two be computed by one kernel? Both read the same x in groups of the same size. */
static bool alike(const struct rewrite *r, const struct node *a, const struct node *b) {
  const struct value *v = r->g->values;
  if (viewed(r, a->args[Q4_X]) != viewed(r, b->args[Q4_X])) return false;
  if (is_null(r, a->args[Q4_BIAS]) != is_null(r, b->args[Q4_BIAS])) return false;
  const uint32_t ga = a->args[Q4_GROUP], gb = b->args[Q4_GROUP];
  if (ga == NO_VALUE || gb == NO_VALUE || v[ga].kind != v[gb].kind || v[ga].i != v[gb].i)
    return false;
  const uint32_t wa = a->args[Q4_W], wb = b->args[Q4_W];
  return is_own_constant(r, wa) && is_own_constant(r, wb) &&
         is_own_constant(r, a->args[Q4_SCALES]) && is_own_constant(r, b->args[Q4_SCALES]) &&
         (is_null(r, a->args[Q4_BIAS]) ||
          (is_own_constant(r, a->args[Q4_BIAS]) && is_own_constant(r, b->args[Q4_BIAS]))) &&
         v[wa].tensor.rank == 2 && v[wb].tensor.rank == 2 &&
         v[wa].tensor.dim_max[1] == v[wb].tensor.dim_max[1];
}

/* Projections of one x, in the order of the chain. */
static sconce_status join_at(struct rewrite *r, uint32_t i) {
  const struct node *first = node_of(r, i, PROJECTION);
  if (!first) return SCONCE_OK;
  struct q4_fusion g = {1, {first->order}, NO_NODE, NO_NODE, NO_NODE};
  struct fusion f = {.nodes = {i}, .n = 1};
  for (uint32_t k = i + 1; k < r->g->n_nodes && k - i <= FUSION_REACH && g.n < Q4_MOST; k++) {
    const struct node *n = &r->g->nodes[k];
    if (n->op != first->op || !alike(r, first, n)) continue;
    struct fusion more = f;
    more.nodes[more.n++] = k;
    if (!may_fuse(r, &more)) break;
    f.nodes[f.n++] = k;
    g.linear[g.n++] = n->order;
  }
  return g.n > 1 ? make(r, &g, &f) : SCONCE_OK;
}

static const struct node *find_linear(const struct rewrite *r, uint32_t node, uint32_t value,
                                      struct q4_fusion *g) {
  if (node == NO_NODE || !fusion_at(r, node, g) || g->norm != NO_NODE || g->add != NO_NODE ||
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
    struct q4_fusion a, b;
    const struct node *g = find_linear(r, makers[0], gate, &a);
    const struct node *u = find_linear(r, makers[1], up, &b);
    if (!g || !u || !is_null(r, g->args[Q4_BIAS]) || !is_null(r, u->args[Q4_BIAS])) continue;
    if (makers[0] != makers[1] && (a.n > 1 || b.n > 1 || !alike(r, g, u))) continue;
    if (r->g->values[g->args[Q4_W]].tensor.dim_max[0] !=
        r->g->values[u->args[Q4_W]].tensor.dim_max[0])
      continue;
    struct q4_fusion whole = {2, {g->order, u->order}, NO_NODE, NO_NODE, last->order};
    struct fusion f = {.nodes = {i, silu[0], silu[1], makers[0]}, .n = 4};
    if (makers[0] != makers[1]) f.nodes[f.n++] = makers[1];
    return shows_only(r, &f, out_id(last)) ? make(r, &whole, &f) : SCONCE_OK;
  }
  return SCONCE_OK;
}

/* add(rest, projection), neither of them broadcast. */
static sconce_status residual_at(struct rewrite *r, uint32_t i) {
  const struct node *add = plain_sum_at(r, i);
  if (!add) return SCONCE_OK;
  for (uint32_t side = 0; side < 2; side++) {
    const uint32_t y = viewed(r, add->args[side]);
    const uint32_t linear = maker_of(r, add->args[side]);
    const struct node *n = node_of(r, linear, PROJECTION);
    struct fusion f = {.nodes = {linear, i}, .n = 2};
    if (!n || out_id(n) != y || !is_null(r, n->args[Q4_BIAS]) ||
        viewed(r, add->args[1 - side]) == y || !shows_only(r, &f, out_id(add)))
      continue;
    struct q4_fusion g = {1, {n->order}, NO_NODE, add->order, NO_NODE};
    return make(r, &g, &f);
  }
  return SCONCE_OK;
}

/* A norm that only one fused node of projections reads. Each of its workgroups computes the norm
 * again: that is cheaper than a dispatch for a layer's projections, not for the rows of a
 * vocabulary. */
static sconce_status norm_at(struct rewrite *r, uint32_t i) {
  const struct node *norm = node_of(r, i, "et_vk.rms_norm.default");
  struct q4_fusion g;
  if (!norm || norm->n_args != 4) return SCONCE_OK;
  uint32_t reader = only_reader(r, out_id(norm));
  if (reader == NO_NODE || !fusion_at(r, reader, &g) || g.n < 2 || g.norm != NO_NODE)
    return SCONCE_OK;
  const struct node *n = &r->g->nodes[reader];
  const struct node *linear = n->n_parts ? part_at(n, g.linear[0]) : n;
  if (viewed(r, linear->args[Q4_X]) != out_id(norm) || !same_dims(r, norm->args[0], out_id(norm)))
    return SCONCE_OK;
  g.norm = norm->order;
  return make(r, &g, &(struct fusion){.nodes = {i, reader}, .n = 2});
}

/* Joined projections first: SwiGLU and the norm take what they find. */
const struct pass passes_linear_q4[] = {
    {"join", join_at}, {"swiglu", swiglu_at}, {"residual", residual_at}, {"norm", norm_at}, {0},
};
