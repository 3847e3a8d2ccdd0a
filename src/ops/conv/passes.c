/* A pass: a convolution, the sum behind it and the activation behind that are one node. All kernels
 * can add something to their sums and end with an activation. */
#include "graph/rewrite.h"
#include "ops/conv/emit.h"

#include <string.h>

/* Parts by their order, NO_NODE: not there. */
struct found {
  uint32_t conv, add;
  uint32_t act; /* relu, hardtanh, clamp, hardswish, silu, or the product x · sigmoid(x) */
};

/* ---- emit ------------------------------------------------------------------------------------ */

static bool same_live_dims(const struct tensor *a, const struct tensor *b) {
  return a && b && a->rank == b->rank &&
         memcmp(a->dim_live, b->dim_live, a->rank * sizeof *a->dim_live) == 0;
}

/* What is added to the convolution's result; false if either of them is broadcast. */
static bool find_rest(struct plan *p, const struct node *conv, const struct node *add,
                      uint32_t *rest) {
  const uint32_t y = tensor_at(p, out_id(conv))->root;
  *rest = tensor_at(p, add->args[0])->root == y ? add->args[1] : add->args[0];
  const struct tensor *sum = out_tensor(p, add);
  return same_live_dims(tensor_at(p, *rest), sum) &&
         tensor_numel(out_tensor(p, conv)) == tensor_numel(sum);
}

static sconce_status read_act(struct plan *p, const struct node *act, struct conv_end *end) {
  const char *name = act->op->name;
  end->y = out_id(act);
  if (strcmp(name, "aten.hardswish.default") == 0) {
    end->bits = END_HARDSWISH;
  } else if (strcmp(name, "aten.relu.default") == 0) {
    end->bits = END_LOW;
  } else if (strcmp(name, "aten.hardtanh.default") == 0 ||
             strcmp(name, "aten.clamp.default") == 0) {
    return conv_bounds(p, act, 1, 2, end);
  } else {
    end->bits = END_SILU;
  }
  return SCONCE_OK;
}

static sconce_status emit_fused(struct plan *p, const struct node *n) {
  const struct found *f = n->fused;
  const struct node *conv = part_at(n, f->conv), *add = part_at(n, f->add);
  const struct node *act = part_at(n, f->act);
  struct conv_end end = {.y = out_id(conv), .rest = NO_VALUE};
  if (tensor_numel(out_tensor(p, conv)) == 0) return SCONCE_OK;
  if (add && !find_rest(p, conv, add, &end.rest)) return emit_parts(p, n);
  if (add) end.y = out_id(add);
  if (act) TRY(read_act(p, act, &end));
  return conv_emit(p, conv, &end);
}

const struct op ops_conv_fused[] = {
    {"sconce.conv", .emit = emit_fused, .tables = TABLES(conv_kernels)},
    {0},
};

/* ---- the pass -------------------------------------------------------------------------------- */

/* The node that makes `value`, if it is a convolution that nothing ends yet. */
static bool find_conv(const struct rewrite *r, uint32_t value, uint32_t *node, struct found *f) {
  *node = maker_of(r, value);
  const struct node *n = node_of(r, *node, ops_conv_fused->name), *last;
  if (n) {
    *f = *(const struct found *)n->fused;
    last = part_at(n, f->add);
    return f->act == NO_NODE && out_id(last) == viewed(r, value);
  }
  n = node_of(r, *node, ops_conv->name);
  if (!n) return false;
  *f = (struct found){n->order, NO_NODE, NO_NODE};
  return out_id(n) == viewed(r, value);
}

static sconce_status make(struct rewrite *r, const struct found *found, struct fusion *f) {
  struct found *copy = arena_new(&r->g->arena, struct found, 1);
  if (!copy) return fail(r->err, SCONCE_NO_MEMORY, "no memory for a fused node");
  *copy = *found;
  f->op = ops_conv_fused;
  f->name = ops_conv_fused->name;
  f->fused = copy;
  return fuse(r, f);
}

/* add(rest, convolution), neither of them broadcast. */
static sconce_status add_at(struct rewrite *r, uint32_t i) {
  const struct node *add = plain_sum_at(r, i);
  if (!add) return SCONCE_OK;
  for (uint32_t side = 0; side < 2; side++) {
    struct found found;
    struct fusion f = {.nodes = {0, i}, .n = 2};
    const uint32_t y = viewed(r, add->args[side]);
    if (!find_conv(r, y, &f.nodes[0], &found) || found.add != NO_NODE ||
        viewed(r, add->args[1 - side]) == y || !shows_only(r, &f, out_id(add)))
      continue;
    found.add = add->order;
    return make(r, &found, &f);
  }
  return SCONCE_OK;
}

/* An activation that is one node. */
static sconce_status act_at(struct rewrite *r, uint32_t i) {
  static const struct {
    const char *name;
    uint32_t n_args;
  } acts[] = {{"aten.relu.default", 2},
              {"aten.hardtanh.default", 4},
              {"aten.clamp.default", 4},
              {"aten.hardswish.default", 2},
              {"aten.silu.default", 2}};
  for (size_t k = 0; k < sizeof acts / sizeof *acts; k++) {
    const struct node *act = node_of(r, i, acts[k].name);
    struct found found;
    struct fusion f = {.nodes = {0, i}, .n = 2};
    if (!act || act->n_args != acts[k].n_args || !same_dims(r, act->args[0], out_id(act)) ||
        !find_conv(r, act->args[0], &f.nodes[0], &found) || !shows_only(r, &f, out_id(act)))
      continue;
    found.act = act->order;
    return make(r, &found, &f);
  }
  return SCONCE_OK;
}

/* x · sigmoid(x), as exporters write silu. */
static sconce_status silu_at(struct rewrite *r, uint32_t i) {
  const struct node *mul = node_of(r, i, "aten.mul.Tensor");
  if (!mul || mul->n_args != 3) return SCONCE_OK;
  for (uint32_t side = 0; side < 2; side++) {
    struct found found;
    struct fusion f = {.nodes = {0, maker_of(r, mul->args[1 - side]), i}, .n = 3};
    const struct node *sigmoid = node_of(r, f.nodes[1], "aten.sigmoid.default");
    const uint32_t x = viewed(r, mul->args[side]);
    if (!sigmoid || viewed(r, sigmoid->args[0]) != x || !same_dims(r, x, out_id(mul)) ||
        !same_dims(r, x, out_id(sigmoid)) || !find_conv(r, x, &f.nodes[0], &found) ||
        !shows_only(r, &f, out_id(mul)))
      continue;
    found.act = mul->order;
    return make(r, &found, &f);
  }
  return SCONCE_OK;
}

static sconce_status conv_at(struct rewrite *r, uint32_t i) {
  TRY(add_at(r, i));
  TRY(act_at(r, i));
  return silu_at(r, i);
}

const struct pass passes_conv[] = {{"conv", conv_at}, {0}};
