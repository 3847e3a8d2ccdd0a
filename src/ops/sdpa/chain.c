/* A pass: attention that a file spells out. Two products by head with a softmax in between, and
 * what stands around them (factors, a mask, zeros for queries that may look nowhere, heads that
 * change places with tokens) become one node, whose kernel keeps no scores and moves no heads. */
#include "attention.h"

#include "base/half.h"
#include "graph/rewrite.h"
#include "ops/move/lattice.h"

#include <math.h>
#include <string.h>

/* Orders of parts, values, and what is the same in every call. */
struct chain {
  uint32_t scores, product; /* q kᵀ; weights · v */
  uint32_t add;             /* of the mask, or NO_NODE */
  uint32_t q, k, v, mask, out;
  bool head_major;
  bool guarded; /* zeros for queries that may look nowhere */
  double scale;
};

/* ---- where heads come from ------------------------------------------------------------------- */

/* Who makes a value: any node while passes run, later a part. */
struct makers {
  const struct rewrite *r;
  const struct node *fused;
};

static const struct node *maker_in(const struct makers *m, uint32_t value) {
  if (m->r) {
    const uint32_t at = m->r->maker[value];
    return at < m->r->g->n_nodes && m->r->g->nodes[at].op ? &m->r->g->nodes[at] : NULL;
  }
  for (uint32_t i = 0; i < m->fused->n_parts; i++)
    if (out_id(&m->fused->parts[i]) == value) return &m->fused->parts[i];
  return NULL;
}

/* x times, or divided by, a number that the file fixes. */
static bool factor_of(const struct plan *p, const struct node *n, double *factor) {
  const bool divides =
      strcmp(n->op->name, "aten.div.Scalar") == 0 || strcmp(n->op->name, "aten.div.Tensor") == 0;
  if (!divides && strcmp(n->op->name, "aten.mul.Scalar") != 0 &&
      strcmp(n->op->name, "aten.mul.Tensor") != 0)
    return false;
  const struct tensor *t = n->n_args == 3 ? tensor_at(p, n->args[1]) : NULL;
  if (!t || !t->constant || t->written || tensor_numel_max(t) != 1 || !tensor_is_float(t) ||
      t->bytes.held < vk_dtype_size(t->dtype))
    return false;
  float number = 0;
  uint16_t half;
  if (t->dtype == VK_FLOAT32) {
    memcpy(&number, t->bytes.data, sizeof number);
  } else {
    memcpy(&half, t->bytes.data, sizeof half);
    number = half_to_float(half);
  }
  *factor = divides ? 1 / (double)number : (double)number;
  return !divides || number != 0;
}

static bool step_back(struct plan *p, const struct node *n, struct lattice *l, double *scale) {
  double factor = 1;
  if (!n) return false;
  if (!factor_of(p, n, &factor)) return lattice_back(p, n, l);
  const struct tensor *x = tensor_at(p, n->args[0]), *y = tensor_at(p, out_id(n));
  if (!x || !y || x->dtype != y->dtype || tensor_numel(x) != tensor_numel(y)) return false;
  l->value = n->args[0];
  *scale *= factor;
  return true;
}

/* (heads, tokens, dim) of a whole value, by heads or by tokens. */
static bool is_whole(const struct plan *p, const struct lattice *l, bool head_major) {
  const int64_t heads = l->count[0], tokens = l->count[1], dim = l->count[2];
  struct lattice want = *l;
  want.base = 0;
  want.stride[0] = head_major ? tokens * dim : dim;
  want.stride[1] = head_major ? dim : heads * dim;
  want.stride[2] = 1;
  const struct tensor *t = tensor_at(p, l->value);
  return t && lattice_same(l, &want) && tensor_numel(t) == (uint64_t)(heads * tokens * dim);
}

/* The farthest value that holds these heads and nothing else; the nodes on the way join f. */
static bool find_source(struct plan *p, const struct rewrite *r, struct lattice l, bool head_major,
                        struct fusion *f, uint32_t *source, double *scale) {
  const struct makers makers = {.r = r};
  const uint32_t room = sizeof f->nodes / sizeof *f->nodes / 2;
  double so_far = *scale;
  uint32_t n = f->n;
  bool found = false;
  for (;;) {
    if (is_whole(p, &l, head_major)) {
      found = true;
      *source = l.value;
      *scale = so_far;
      f->n = n;
    }
    const uint32_t at = r->maker[l.value];
    if (n == room || !step_back(p, maker_in(&makers, l.value), &l, &so_far)) return found;
    f->nodes[n++] = at;
  }
}

/* Do these heads still come from there, as they did at the maximum dims? */
static bool comes_from(struct plan *p, const struct node *fused, struct lattice l, uint32_t source,
                       bool head_major) {
  const struct makers makers = {.fused = fused};
  double scale = 1;
  /* A file may show two values through each other: the steps are bounded. */
  for (uint32_t steps = 0; l.value != source; steps++)
    if (steps == fused->n_parts || !step_back(p, maker_in(&makers, l.value), &l, &scale))
      return false;
  return is_whole(p, &l, head_major);
}

/* The heads that go into the products, and those of the result as a later value shows them. */
struct heads {
  struct lattice q, k, v;
  int64_t heads, seq, keys, dim;
};

static bool find_heads(const struct plan *p, const struct node *scores, const struct node *product,
                       struct heads *h) {
  const struct tensor *q = tensor_at(p, scores->args[0]), *k = tensor_at(p, scores->args[1]);
  const struct tensor *v = tensor_at(p, product->args[1]), *y = tensor_at(p, out_id(product));
  if (!q || !k || !v || !y || q->rank != 3 || k->rank != 3 || v->rank != 3 || y->rank != 3 ||
      q->dtype != k->dtype || q->dtype != v->dtype || !tensor_is_float(q))
    return false;
  const int64_t heads = q->dim_live[0], seq = q->dim_live[1], dim = q->dim_live[2];
  const int64_t keys = k->dim_live[2];
  if (k->dim_live[1] != dim || v->dim_live[1] != keys || v->dim_live[2] != dim ||
      k->dim_live[0] != heads || v->dim_live[0] != heads || heads * seq * keys * dim == 0)
    return false;
  *h = (struct heads){.q = {scores->args[0], 0, {heads, seq, dim}, {seq * dim, dim, 1}},
                      .k = {scores->args[1], 0, {heads, keys, dim}, {keys * dim, 1, keys}},
                      .v = {product->args[1], 0, {heads, keys, dim}, {keys * dim, dim, 1}},
                      .heads = heads,
                      .seq = seq,
                      .keys = keys,
                      .dim = dim};
  return true;
}

static struct lattice result_of(const struct heads *h, uint32_t value, bool head_major) {
  return (struct lattice){
      value,
      0,
      {h->heads, h->seq, h->dim},
      {head_major ? h->seq * h->dim : h->dim, head_major ? h->dim : h->heads * h->dim, 1}};
}

/* ---- emit ------------------------------------------------------------------------------------ */

/* false: not as it was at the maximum dims. */
static bool read_chain(struct plan *p, const struct node *n, struct attention *a) {
  const struct chain *c = n->fused;
  const struct node *product = part_at(n, c->product), *add = part_at(n, c->add);
  struct heads h;
  if (!find_heads(p, part_at(n, c->scores), product, &h)) return false;
  const struct lattice out = result_of(&h, c->out, c->head_major);
  if (!comes_from(p, n, h.q, c->q, c->head_major) || !comes_from(p, n, h.k, c->k, c->head_major) ||
      !comes_from(p, n, h.v, c->v, c->head_major) || !comes_from(p, n, out, out_id(product), true))
    return false;
  *a = (struct attention){.q = c->q,
                          .k = c->k,
                          .v = c->v,
                          .out = c->out,
                          .bias = c->mask,
                          .seq = (uint32_t)h.seq,
                          .heads = (uint32_t)h.heads,
                          .heads_per_kv = 1,
                          .dim = (uint32_t)h.dim,
                          .wide = (uint32_t)h.dim,
                          .keys = (uint32_t)h.keys,
                          .rows = (uint32_t)h.keys,
                          .first = (uint32_t)h.keys,
                          .head_major = c->head_major,
                          .blind_zero = c->guarded,
                          .dtype = tensor_at(p, c->q)->dtype,
                          .scale = c->scale};
  if (!add) return true;
  const struct tensor *sum = tensor_at(p, out_id(add));
  sconce_error quiet = {0};
  struct plan asks = {p->g, p->node, &quiet};
  return sum->rank >= 2 && attention_mask(&asks, sum->dim_live, sum->rank - 2, a) == SCONCE_OK;
}

static sconce_status prepare_chain(struct plan *p, struct node *n) {
  struct attention a;
  return read_chain(p, n, &a) ? attention_prepare(p, n, &a) : SCONCE_OK;
}

static sconce_status emit_chain(struct plan *p, const struct node *n) {
  struct attention a;
  return read_chain(p, n, &a) ? attention_emit(p, n, &a) : emit_parts(p, n);
}

const struct op ops_sdpa_chain[] = {
    {"sconce.attention", .emit = emit_chain, .prepare = prepare_chain, .flags = OP_SEES,
     .tables = TABLES(attention_kernels, attention_merges)},
    {0},
};

/* ---- the pass -------------------------------------------------------------------------------- */

static const struct node *take(const struct rewrite *r, uint32_t value, const char *name,
                               struct fusion *f) {
  const uint32_t at = maker_of(r, value);
  const struct node *n = node_of(r, at, name);
  if (n) f->nodes[f->n++] = at;
  return n;
}

static bool is_number(const struct plan *p, const struct node *n, uint32_t arg, double number) {
  double is;
  return n->n_args > arg + 1 && arg_is_float(p, n, arg, &is) && is == number;
}

static bool is_last_dim(const struct plan *p, const struct node *n, uint32_t arg) {
  const struct tensor *x = tensor_at(p, n->args[0]);
  int64_t dim = 0;
  return x && arg_is_int(p, n, arg, &dim) && (dim == -1 || dim == (int64_t)x->rank - 1);
}

static bool is_last_of(struct plan *p, const struct node *n, uint32_t arg) {
  const struct tensor *x = tensor_at(p, n->args[0]);
  int64_t dims[RANK_MAX];
  uint32_t count;
  return x && arg_ints(p, n, arg, dims, RANK_MAX, &count) == SCONCE_OK && count == 1 &&
         (dims[0] == -1 || dims[0] == (int64_t)x->rank - 1);
}

/* where(no score of the query is above −inf, 0, weights), as PyTorch spells it: the scores that it
 * asks about, and the weights. */
static bool find_guard(struct plan *p, const struct rewrite *r, const struct node *where,
                       struct fusion *f, uint32_t *scores, uint32_t *weights) {
  if (where->n_args != 4) return false;
  const struct node *zero = take(r, where->args[1], "aten.full_like.default", f);
  if (!zero) zero = take(r, where->args[1], "aten::full_like.out", f);
  const struct node *none = take(r, where->args[0], "aten.logical_not.default", f);
  const struct node *any = none ? take(r, none->args[0], "aten.ne.Scalar", f) : NULL;
  const struct node *sum = any ? take(r, any->args[0], "aten.sum.dim_IntList", f) : NULL;
  const struct node *truth = sum ? take(r, sum->args[0], "aten.ne.Scalar", f) : NULL;
  const struct node *seen = truth ? take(r, truth->args[0], "aten.logical_not.default", f) : NULL;
  const struct node *out = seen ? take(r, seen->args[0], "aten.eq.Scalar", f) : NULL;
  if (!zero || !out || !is_number(p, zero, 1, 0) || !is_number(p, any, 1, 0) ||
      !is_number(p, truth, 1, 0) || !is_number(p, out, 1, -INFINITY) || !is_last_of(p, sum, 1))
    return false;
  *scores = out->args[0];
  *weights = where->args[2];
  return true;
}

/* From what the softmax reads back to q kᵀ. */
static const struct node *find_scores(struct plan *p, const struct rewrite *r, uint32_t value,
                                      struct fusion *f, struct chain *c) {
  const uint32_t at = maker_of(r, value);
  const struct node *add = node_of(r, at, "aten.add.Tensor");
  if (add) {
    const struct tensor *y = tensor_at(p, out_id(add));
    double alpha;
    if (add->n_args != 4 || !arg_is_float(p, add, 2, &alpha) || alpha != 1 || !y || y->rank > 4)
      return NULL;
    const uint32_t side = !same_dims(r, add->args[0], out_id(add));
    if (!same_dims(r, add->args[side], out_id(add))) return NULL;
    f->nodes[f->n++] = at;
    c->add = add->order;
    c->mask = add->args[1 - side];
    value = add->args[side];
  }
  double factor;
  const uint32_t by = maker_of(r, value);
  const struct node *mul = by == NO_NODE ? NULL : &r->g->nodes[by];
  if (mul && mul->op && factor_of(p, mul, &factor) && same_dims(r, mul->args[0], out_id(mul))) {
    f->nodes[f->n++] = by;
    c->scale *= factor;
    value = mul->args[0];
  }
  return take(r, value, "aten.bmm.default", f);
}

/* The farthest value that shows the result and nothing else. */
static void find_result(struct plan *p, const struct rewrite *r, const struct node *product,
                        const struct heads *h, struct fusion *f, struct chain *c) {
  const struct makers makers = {.r = r};
  uint32_t value = out_id(product), n = f->n;
  c->out = c->head_major ? value : NO_VALUE;
  while (r->readers[value] == 1 && r->reader[value] != NO_NODE &&
         n < sizeof f->nodes / sizeof *f->nodes / 2) {
    const struct node *reader = &r->g->nodes[r->reader[value]];
    if (!reader->op || reader->n_args == 0 || reader->args[0] != value) return;
    struct lattice l = {out_id(reader), 0, {1, 1, 1}, {0, 0, 0}};
    if (!lattice_back(p, reader, &l)) return;
    f->nodes[n++] = r->reader[value];
    value = out_id(reader);
    l = result_of(h, value, c->head_major);
    for (uint32_t steps = 0; l.value != out_id(product) && steps < f->n + n; steps++) {
      const struct node *maker = maker_in(&makers, l.value);
      if (!maker || !lattice_back(p, maker, &l)) break;
    }
    if (l.value != out_id(product) || !is_whole(p, &l, true)) continue;
    c->out = value;
    f->n = n;
  }
}

/* Queries and keys may come the same way. */
static void drop_doubles(struct fusion *f) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < f->n; i++) {
    uint32_t k = 0;
    while (k < n && f->nodes[k] != f->nodes[i]) k++;
    if (k == n) f->nodes[n++] = f->nodes[i];
  }
  f->n = n;
}

static bool find_chain(struct plan *p, const struct rewrite *r, uint32_t i, bool head_major,
                       struct fusion *f, struct chain *c) {
  const struct node *product = &r->g->nodes[i];
  uint32_t weights = product->args[0], scores = NO_VALUE;
  *c = (struct chain){.product = product->order,
                      .add = NO_NODE,
                      .mask = NO_VALUE,
                      .head_major = head_major,
                      .scale = 1};
  const struct node *where = take(r, weights, "aten.where.self", f);
  c->guarded = where != NULL;
  if (where && !find_guard(p, r, where, f, &scores, &weights)) return false;
  const struct node *softmax = take(r, weights, "aten._softmax.default", f);
  if (!softmax || !is_last_dim(p, softmax, 1) ||
      (where && viewed(r, scores) != viewed(r, softmax->args[0])))
    return false;
  const struct node *bmm = find_scores(p, r, softmax->args[0], f, c);
  struct heads h;
  if (!bmm || !find_heads(p, bmm, product, &h)) return false;
  c->scores = bmm->order;
  double none = 1;
  if (!find_source(p, r, h.q, head_major, f, &c->q, &c->scale) ||
      !find_source(p, r, h.k, head_major, f, &c->k, &c->scale) ||
      !find_source(p, r, h.v, head_major, f, &c->v, &none) || none != 1)
    return false;
  find_result(p, r, product, &h, f, c);
  drop_doubles(f);
  return c->out != NO_VALUE;
}

static sconce_status attention_at(struct rewrite *r, uint32_t i) {
  if (!node_of(r, i, "aten.bmm.default")) return SCONCE_OK;
  sconce_error quiet = {0};
  struct plan p = {r->g, &r->g->nodes[i], &quiet};
  for (int head_major = 0; head_major < 2; head_major++) {
    struct chain c;
    struct fusion f = {.op = ops_sdpa_chain, .name = ops_sdpa_chain->name, .nodes = {i}, .n = 1};
    if (!find_chain(&p, r, i, head_major, &f, &c) || !shows_only(r, &f, c.out)) continue;
    struct chain *copy = arena_new(&r->g->arena, struct chain, 1);
    if (!copy) return fail(r->err, SCONCE_NO_MEMORY, "no memory for a fused node");
    *copy = c;
    f.fused = copy;
    return fuse(r, &f);
  }
  return SCONCE_OK;
}

const struct pass passes_sdpa_chain[] = {{"attention", attention_at}, {0}};
