/* Rotary position embedding in its three forms: pairs with sliced tables, halves with whole tables
 * and a position, and pairs with one interleaved table. */
#include "graph/op.h"

#include "rope.wgsl.h"
#include "rope_interleaved.wgsl.h"

#include <inttypes.h>

enum form { PAIRS, HALVES };

struct problem {
  bool half, pairs;
};

static bool pairs_f32(const void *problem, const struct caps *caps) {
  const struct problem *x = problem;
  (void)caps;
  return x->pairs && !x->half;
}
static bool pairs_f16(const void *problem, const struct caps *caps) {
  const struct problem *x = problem;
  (void)caps;
  return x->pairs && x->half;
}
static bool is_f16(const void *problem, const struct caps *caps) {
  return (void)caps, ((const struct problem *)problem)->half;
}

static const struct kernel kernels[] = {
    {"pairs_f32", &rope_wgsl, "PAIRS=true use=elem_f32", 0, pairs_f32},
    {"pairs_f16", &rope_wgsl, "PAIRS=true use=elem_f16", 0, pairs_f16},
    {"halves_f16", &rope_wgsl, "use=elem_f16", 0, is_f16},
    {"halves_f32", &rope_wgsl, "use=elem_f32"},
    {0},
};
static const struct kernel kernels_interleaved[] = {
    {"f16", &rope_interleaved_wgsl, "use=elem_f16", 0, is_f16},
    {"f32", &rope_interleaved_wgsl, "use=elem_f32"},
    {0},
};

static bool is_float(const struct tensor *t) {
  return t->dtype == VK_FLOAT32 || t->dtype == VK_FLOAT16;
}

/* What one call works on: [xq, xk, cos, sin, (start), [yq, yk]]. */
struct call {
  const struct tensor *q, *k, *cos, *sin;
  uint32_t yq, yk;
  uint32_t seq, dim, width, positions; /* width of a table row, rows of a table */
  int64_t start;
};

static sconce_status check_tensors(struct plan *p, const struct call *c) {
  const struct tensor *const others[] = {c->k, c->cos, c->sin, tensor_at(p, c->yq),
                                         tensor_at(p, c->yk)};
  char a[120], b[120];
  if (!is_float(c->q))
    return fail(p->err, SCONCE_UNSUPPORTED, "the rotation of %s", tensor_text(c->q, a));
  for (uint32_t i = 0; i < 5; i++) {
    if (!others[i]) return fail(p->err, SCONCE_BAD_GRAPH, "two results are expected");
    if (others[i]->dtype != c->q->dtype)
      return fail(p->err, SCONCE_BAD_GRAPH, "%s together with %s", tensor_text(c->q, a),
                  tensor_text(others[i], b));
  }
  if (c->q->rank < 3 || c->k->rank != c->q->rank || c->k->dim_live[c->k->rank - 1] != c->dim ||
      c->k->dim_live[c->k->rank - 3] != c->seq)
    return fail(p->err, SCONCE_BAD_GRAPH, "the queries are %s, the keys %s", tensor_text(c->q, a),
                tensor_text(c->k, b));
  return SCONCE_OK;
}

static sconce_status check_tables(struct plan *p, const struct call *c, enum form form) {
  char a[120], b[120];
  if (c->cos->rank < 2 || tensor_numel(c->sin) != tensor_numel(c->cos) ||
      c->sin->dim_live[c->sin->rank - 1] != c->width)
    return fail(p->err, SCONCE_BAD_GRAPH, "the tables are %s and %s", tensor_text(c->cos, a),
                tensor_text(c->sin, b));
  bool fits = form == PAIRS ? c->width * 2 == c->dim : c->width % 2 == 0 && c->width <= c->dim;
  if (!fits)
    return fail(p->err, SCONCE_BAD_GRAPH, "rows of %u angles for heads of %u elements", c->width,
                c->dim);
  return SCONCE_OK;
}

static sconce_status read_call(struct plan *p, const struct node *n, struct call *c) {
  enum form form = (enum form)n->op->variant;
  *c = (struct call){.q = arg_tensor(p, n, 0),
                     .k = arg_tensor(p, n, 1),
                     .cos = arg_tensor(p, n, 2),
                     .sin = arg_tensor(p, n, 3),
                     .yq = arg_item(p, n, n->n_args - 1, 0),
                     .yk = arg_item(p, n, n->n_args - 1, 1)};
  if (!c->q || !c->k || !c->cos || !c->sin) return SCONCE_BAD_GRAPH;
  if (c->q->rank >= 3) {
    c->seq = c->q->dim_live[c->q->rank - 3];
    c->dim = c->q->dim_live[c->q->rank - 1];
  }
  if (c->cos->rank) c->width = c->cos->dim_live[c->cos->rank - 1];
  if (c->width) c->positions = (uint32_t)(tensor_numel(c->cos) / c->width);
  if (form == HALVES) TRY(arg_int(p, n, 4, &c->start));
  TRY(check_tensors(p, c));
  return check_tables(p, c, form);
}

static sconce_status shape(struct plan *p, const struct node *n) {
  struct call c;
  TRY(read_call(p, n, &c));
  if (c.start < 0 || c.start + c.seq > c.positions)
    return fail(p->err, SCONCE_BAD_ARGUMENT,
                "positions %" PRId64 " to %" PRId64 ", the tables have %u", c.start,
                c.start + c.seq - 1, c.positions);
  TRY(set_dims(p, c.yq, c.q->dim_live, c.q->rank));
  return set_dims(p, c.yk, c.k->dim_live, c.k->rank);
}

static sconce_status emit(struct plan *p, const struct node *n) {
  struct call c;
  TRY(read_call(p, n, &c));
  bool half = c.q->dtype == VK_FLOAT16, pairs = n->op->variant == PAIRS;
  struct rope_params u = {.n_q = (uint32_t)tensor_numel(c.q),
                          .n_k = (uint32_t)tensor_numel(c.k),
                          .heads_q = c.q->dim_live[c.q->rank - 2],
                          .heads_k = c.k->dim_live[c.k->rank - 2],
                          .dim = c.dim,
                          .rotary = pairs ? c.dim : c.width,
                          .seq = c.seq,
                          .start = (uint32_t)c.start,
                          .width = c.width};
  uint32_t elems = half ? 2 : 1;
  uint64_t words = div_up(u.n_q, elems) + div_up(u.n_k, elems);
  return dispatch(
      p, choose(p, kernels, &(struct problem){half, pairs}), &u, div_up(words, 64),
      OPERANDS({arg_id(n, 0)}, {arg_id(n, 1)}, {arg_id(n, 2)}, {arg_id(n, 3)}, {c.yq}, {c.yk}));
}

/* ---- interleaved: [x, freqs, out] ------------------------------------------------------------ */

static sconce_status check_interleaved(struct plan *p, const struct node *n) {
  const struct tensor *x = arg_tensor(p, n, 0), *f = arg_tensor(p, n, 1), *y = arg_tensor(p, n, 2);
  if (!x || !f || !y) return SCONCE_BAD_GRAPH;
  char a[120], b[120];
  if (!is_float(x))
    return fail(p->err, SCONCE_UNSUPPORTED, "the rotation of %s", tensor_text(x, a));
  uint32_t r = x->rank;
  if (r < 2 || x->dim_live[r - 1] % 2 || f->dtype != x->dtype || y->dtype != x->dtype ||
      tensor_numel(f) != (uint64_t)x->dim_live[r - 1] * x->dim_live[r - 2])
    return fail(p->err, SCONCE_BAD_GRAPH, "the table for %s is %s", tensor_text(x, a),
                tensor_text(f, b));
  return SCONCE_OK;
}

static sconce_status shape_interleaved(struct plan *p, const struct node *n) {
  TRY(check_interleaved(p, n));
  return shape_same(p, n);
}

static sconce_status emit_interleaved(struct plan *p, const struct node *n) {
  TRY(check_interleaved(p, n));
  const struct tensor *x = arg_tensor(p, n, 0), *f = arg_tensor(p, n, 1);
  bool half = x->dtype == VK_FLOAT16;
  struct rope_interleaved_params u = {.n = (uint32_t)tensor_numel(x),
                                      .table = (uint32_t)tensor_numel(f)};
  return dispatch(p, choose(p, kernels_interleaved, &(struct problem){half, true}), &u,
                  div_up(u.n, half ? 128 : 64),
                  OPERANDS({arg_id(n, 0)}, {arg_id(n, 1)}, {out_id(n)}));
}

const struct op ops_rope[] = {
    {"et_vk.apply_rotary_emb.default", shape, emit, .variant = PAIRS, .flags = OP_LIST, .n_args = 5,
     .kernels = {kernels}},
    {"et_vk.apply_rotary_emb_hf.default", shape, emit, .variant = HALVES, .flags = OP_LIST,
     .n_args = 6, .kernels = {kernels}},
    {"et_vk.apply_rotary_emb_interleaved.default", shape_interleaved, emit_interleaved, .n_args = 3,
     .kernels = {kernels_interleaved}},
    {0},
};
