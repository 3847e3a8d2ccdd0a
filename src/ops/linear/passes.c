/* Passes: a product, the activation behind it and the sum behind either are one node, since all
 * kernels of floats can end with both; and a product that is cut into parts, as Q, K and V of one
 * weight are, writes each where it is read. */
#include "graph/rewrite.h"
#include "ops/linear/product.h"
#include "ops/move/lattice.h"

#include <string.h>

/* Parts by their order, NO_NODE: not there. */
struct found {
  uint32_t linear, act, add;
};

/* ---- emit ------------------------------------------------------------------------------------ */

static sconce_status read_act(struct plan *p, const struct node *act, uint32_t *code) {
  const char *name = act->op->name;
  *code = ACT_GELU;
  if (strcmp(name, "aten.relu.default") == 0) *code = ACT_RELU;
  if (strcmp(name, "aten.silu.default") == 0) *code = ACT_SILU;
  if (*code != ACT_GELU || arg_is_text(p, act, 1, "none")) return SCONCE_OK;
  *code = ACT_GELU_TANH;
  if (arg_is_text(p, act, 1, "tanh")) return SCONCE_OK;
  return fail(p->err, SCONCE_UNSUPPORTED, "the approximation is neither none nor tanh");
}

/* What is added; false if either of them is broadcast. */
static bool find_rest(struct plan *p, const struct node *add, uint32_t y, uint32_t *rest) {
  const struct tensor *sum = out_tensor(p, add), *a = tensor_at(p, y);
  *rest = tensor_at(p, add->args[0])->root == a->root ? add->args[1] : add->args[0];
  const struct tensor *b = tensor_at(p, *rest);
  return tensor_numel(b) == tensor_numel(sum) && tensor_numel(a) == tensor_numel(sum);
}

static sconce_status emit_fused(struct plan *p, const struct node *n) {
  const struct found *f = n->fused;
  const struct node *linear = part_at(n, f->linear);
  const struct node *act = part_at(n, f->act), *add = part_at(n, f->add);
  struct product q;
  if (tensor_numel(out_tensor(p, linear)) == 0) return SCONCE_OK;
  TRY(product_read(p, linear, &q));
  if (act) TRY(read_act(p, act, &q.u.act));
  if (act) q.y = out_id(act);
  if (add && !find_rest(p, add, q.y, &q.rest)) return emit_parts(p, n);
  if (add) q.y = out_id(add);
  return product_emit(p, linear, &q);
}

const struct op ops_linear_fused[] = {
    {"sconce.linear", .emit = emit_fused, .tables = TABLES(product_kernels, product_sums)},
    {0},
};

/* ---- the pass -------------------------------------------------------------------------------- */

static bool is_float(const struct rewrite *r, uint32_t id) {
  return id < r->g->n_values && r->g->values[id].kind == VK_TENSOR &&
         tensor_is_float(&r->g->values[id].tensor);
}

/* The node that makes `value`, if it is a product of floats that no sum ends yet. */
static bool find_linear(const struct rewrite *r, uint32_t value, uint32_t *node, struct found *f) {
  static const char *const products[] = {"aten.linear.default", "aten.mm.default",
                                         "aten.addmm.default"};
  *node = maker_of(r, value);
  const struct node *n = node_of(r, *node, ops_linear_fused->name), *last;
  if (n) {
    *f = *(const struct found *)n->fused;
    last = part_at(n, f->act);
    return f->add == NO_NODE && last && out_id(last) == viewed(r, value);
  }
  for (size_t i = 0; i < sizeof products / sizeof *products && !n; i++)
    n = node_of(r, *node, products[i]);
  if (!n) return false;
  *f = (struct found){n->order, NO_NODE, NO_NODE};
  return out_id(n) == viewed(r, value) && is_float(r, out_id(n)) &&
         r->g->values[out_id(n)].tensor.dtype == r->g->values[value].tensor.dtype;
}

static sconce_status make(struct rewrite *r, const struct found *found, struct fusion *f) {
  struct found *copy = arena_new(&r->g->arena, struct found, 1);
  if (!copy) return fail(r->err, SCONCE_NO_MEMORY, "no memory for a fused node");
  *copy = *found;
  f->op = ops_linear_fused;
  f->name = ops_linear_fused->name;
  f->fused = copy;
  return fuse(r, f);
}

static sconce_status act_at(struct rewrite *r, uint32_t i) {
  static const struct {
    const char *name;
    uint32_t n_args;
  } acts[] = {{"aten.relu.default", 2}, {"aten.gelu.default", 3}, {"aten.silu.default", 2}};
  for (size_t k = 0; k < sizeof acts / sizeof *acts; k++) {
    const struct node *act = node_of(r, i, acts[k].name);
    struct found found;
    struct fusion f = {.nodes = {0, i}, .n = 2};
    if (!act || act->n_args != acts[k].n_args || !same_dims(r, act->args[0], out_id(act)) ||
        !find_linear(r, act->args[0], &f.nodes[0], &found) || found.act != NO_NODE ||
        !shows_only(r, &f, out_id(act)))
      continue;
    found.act = act->order;
    return make(r, &found, &f);
  }
  return SCONCE_OK;
}

/* add(rest, product), neither of them broadcast. */
static sconce_status add_at(struct rewrite *r, uint32_t i) {
  const struct node *add = plain_sum_at(r, i);
  if (!add) return SCONCE_OK;
  for (uint32_t side = 0; side < 2; side++) {
    struct found found;
    struct fusion f = {.nodes = {0, i}, .n = 2};
    const uint32_t y = viewed(r, add->args[side]);
    if (!find_linear(r, add->args[side], &f.nodes[0], &found) ||
        viewed(r, add->args[1 - side]) == y || !shows_only(r, &f, out_id(add)))
      continue;
    found.add = add->order;
    return make(r, &found, &f);
  }
  return SCONCE_OK;
}

static sconce_status linear_at(struct rewrite *r, uint32_t i) {
  TRY(act_at(r, i));
  return add_at(r, i);
}

/* ---- parts of a product ---------------------------------------------------------------------- */

enum { CUTS_MOST = 4, WAY_MOST = 8 };

/* The parts' values, and the order of the product. */
struct cut {
  uint32_t linear, n, y[CUTS_MOST];
};

/* Element (row, column) of a part that has these rows. */
static bool begin_back(const struct plan *p, uint32_t y, int64_t rows, struct lattice *l) {
  const struct tensor *t = tensor_at(p, y);
  const int64_t numel = t ? (int64_t)tensor_numel(t) : 0;
  if (rows == 0 || numel == 0 || numel % rows) return false;
  *l = (struct lattice){y, 0, {1, rows, numel / rows}, {0, numel / rows, 1}};
  return true;
}

/* Is it columns [base, base + count) of all rows of what the product gives? */
static bool is_columns(const struct plan *p, const struct node *linear, const struct lattice *l) {
  const struct tensor *y = out_tensor(p, linear);
  const int64_t cols = y->rank ? y->dim_live[y->rank - 1] : 1;
  return l->value == out_id(linear) && (l->count[1] == 1 || l->stride[1] == cols) &&
         (l->count[2] == 1 || l->stride[2] == 1) && l->base + l->count[2] <= cols &&
         l->count[1] * cols == (int64_t)tensor_numel(y);
}

static const struct node *part_making(const struct node *n, uint32_t value) {
  for (uint32_t i = 0; i < n->n_parts; i++)
    if (out_id(&n->parts[i]) == value) return &n->parts[i];
  return NULL;
}

/* One part of a product: its columns still lie where they did, and may be bound. */
static bool read_cut(struct plan *p, const struct node *n, const struct node *linear, uint32_t y,
                     struct product *q) {
  struct lattice l;
  if (!begin_back(p, y, q->u.m, &l)) return false;
  for (uint32_t steps = 0; l.value != out_id(linear); steps++) {
    const struct node *maker = part_making(n, l.value);
    if (steps == n->n_parts || !maker || !lattice_back(p, maker, &l)) return false;
  }
  const struct tensor *w = tensor_at(p, q->w), *bias = tensor_at(p, q->bias);
  const uint64_t align = p->g->caps.storage_alignment, base = (uint64_t)l.base;
  if (q->u.bias && (q->u.bias_n != 1 || q->u.bias_m)) return false;
  if (!is_columns(p, linear, &l) || base * q->u.k * vk_dtype_size(w->dtype) % align ||
      (q->u.bias && base * vk_dtype_size(bias->dtype) % align))
    return false;
  q->y = y;
  q->from = (uint32_t)l.base;
  q->u.n = (uint32_t)l.count[2];
  q->beside = true;
  return true;
}

static sconce_status emit_cut(struct plan *p, const struct node *n) {
  const struct cut *c = n->fused;
  const struct node *linear = part_at(n, c->linear);
  struct product whole, q[CUTS_MOST];
  if (tensor_numel(out_tensor(p, linear)) == 0) return SCONCE_OK;
  TRY(product_read(p, linear, &whole));
  for (uint32_t i = 0; i < c->n; i++) {
    q[i] = whole;
    if (!read_cut(p, n, linear, c->y[i], &q[i])) return emit_parts(p, n);
  }
  for (uint32_t i = 0; i < c->n; i++) TRY(product_emit(p, linear, &q[i]));
  return SCONCE_OK;
}

const struct op ops_linear_cut[] = {
    {"sconce.linear_cut", .emit = emit_cut, .flags = OP_SEES,
     .tables = TABLES(product_kernels, product_sums)},
    {0},
};

/* From a selection back to the product; the nodes on the way join f. */
static uint32_t find_product(const struct rewrite *r, uint32_t i, struct fusion *f) {
  static const char *const name = "aten.linear.default";
  for (uint32_t steps = 0; steps < WAY_MOST && i != NO_NODE; steps++) {
    const struct node *n = &r->g->nodes[i];
    if (!n->op || n->n_args == 0) return NO_NODE;
    f->nodes[f->n++] = i;
    if (node_of(r, i, name)) return i;
    i = n->args[0] < r->g->n_values ? r->maker[n->args[0]] : NO_NODE;
  }
  return NO_NODE;
}

/* The last of the selections that cut a product into parts. */
static sconce_status cut_at(struct rewrite *r, uint32_t i) {
  static const char *const select = "aten.select_copy.int";
  const struct node *last = node_of(r, i, select);
  struct fusion f = {.op = ops_linear_cut, .name = ops_linear_cut->name};
  struct cut cut = {0};
  if (!last || last->args[0] >= r->g->n_values) return SCONCE_OK;
  const uint32_t from = last->args[0], readers = r->readers[from];
  const uint32_t at = readers > 1 && readers <= CUTS_MOST ? find_product(r, i, &f) : NO_NODE;
  if (at == NO_NODE || !is_float(r, out_id(&r->g->nodes[at]))) return SCONCE_OK;
  sconce_error quiet = {0};
  struct plan p = {r->g, &r->g->nodes[at], &quiet};
  const struct node *linear = &r->g->nodes[at];
  const struct tensor *y = tensor_at(&p, out_id(linear));
  const uint64_t cols = y->rank ? y->dim_live[y->rank - 1] : 1;
  if (cols == 0) return SCONCE_OK;
  for (uint32_t k = at; k <= i && i - at < FUSION_REACH; k++) {
    const struct node *n = node_of(r, k, select);
    struct lattice l;
    if (!n || n->args[0] != from) continue;
    if (cut.n == CUTS_MOST || !begin_back(&p, out_id(n), (int64_t)(tensor_numel(y) / cols), &l))
      return SCONCE_OK;
    cut.y[cut.n++] = out_id(n);
    for (uint32_t steps = 0; l.value != out_id(linear); steps++) {
      const uint32_t maker = r->maker[l.value];
      if (steps == WAY_MOST || maker == NO_NODE || !r->g->nodes[maker].op ||
          !lattice_back(&p, &r->g->nodes[maker], &l))
        return SCONCE_OK;
    }
    if (!is_columns(&p, linear, &l)) return SCONCE_OK;
    if (k != i) f.nodes[f.n++] = k;
  }
  if (cut.n != readers || !shows_only_these(r, &f, cut.y, cut.n)) return SCONCE_OK;
  cut.linear = linear->order;
  struct cut *copy = arena_new(&r->g->arena, struct cut, 1);
  if (!copy) return fail(r->err, SCONCE_NO_MEMORY, "no memory for a fused node");
  *copy = cut;
  f.fused = copy;
  return fuse(r, &f);
}

const struct pass passes_linear[] = {{"cut", cut_at}, {"linear", linear_at}, {0}};
