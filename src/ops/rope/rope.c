/* Rotary position embedding in its three forms: pairs with sliced tables, halves with whole tables
 * and a position (of queries and keys, or of one tensor), and pairs with one interleaved table. */
#include "graph/op.h"

#include "rope.wgsl.h"
#include "rope_interleaved.wgsl.h"

#include <inttypes.h>
#include <string.h>

enum form { PAIRS, HALVES, HALVES_OF_ONE };

static bool in_pairs(const void *form) { return *(const enum form *)form == PAIRS; }

static const struct kernel kernels[] = {
    {"pairs_f32", &rope_wgsl, "PAIRS=true use=elem_f32", OF_F32, .fits = in_pairs},
    {"pairs_f16", &rope_wgsl, "PAIRS=true use=elem_f16", OF_F16, .fits = in_pairs},
    {"halves_f16", &rope_wgsl, "use=elem_f16", OF_F16},
    {"halves_f32", &rope_wgsl, "use=elem_f32", OF_F32},
    {0},
};
static const struct kernel kernels_interleaved[] = {
    {"f16", &rope_interleaved_wgsl, "use=elem_f16", OF_F16},
    {"f32", &rope_interleaved_wgsl, "use=elem_f32", OF_F32},
    {0},
};

/* What one call works on: [xq, xk, cos, sin, (start), [yq, yk]] or [x, cos, sin, start, y], where x
 * and y are the queries and the keys.
 *
 * The exporter finds halves in two orders, and the tables' rank tells which: (positions, width)
 * goes with (batch, seq, heads, dim), and (batch or 1, seq, width) with (batch, heads, seq, dim).
 * Pairs have (seq, width), or (seq, heads, width) where each head has angles of its own.
 */
struct call {
  const struct tensor *q, *k, *cos, *sin;
  uint32_t yq, yk;
  bool heads_first;
  uint32_t seq, dim, width,
      positions;  /* width of a table row, rows of a table for each of `apart` */
  uint32_t apart; /* heads with rows of their own; 1: all have the same */
  int64_t start;
};

static sconce_status check_tensors(struct plan *p, const struct call *c) {
  const struct tensor *const others[] = {c->k, c->cos, c->sin, tensor_at(p, c->yq),
                                         tensor_at(p, c->yk)};
  char a[120], b[120];
  if (!tensor_is_float(c->q))
    return fail(p->err, SCONCE_UNSUPPORTED, "the rotation of %s", tensor_text(c->q, a));
  for (uint32_t i = 0; i < 5; i++) {
    if (!others[i]) return fail(p->err, SCONCE_BAD_GRAPH, "two results are expected");
    if (others[i]->dtype != c->q->dtype)
      return fail(p->err, SCONCE_BAD_GRAPH, "%s together with %s", tensor_text(c->q, a),
                  tensor_text(others[i], b));
  }
  const uint32_t at = c->heads_first ? 2 : 3;
  if (c->q->rank < 3 || c->k->rank != c->q->rank || c->k->dim_live[c->k->rank - 1] != c->dim ||
      c->k->dim_live[c->k->rank - at] != c->seq)
    return fail(p->err, SCONCE_BAD_GRAPH, "the queries are %s, the keys %s", tensor_text(c->q, a),
                tensor_text(c->k, b));
  return SCONCE_OK;
}

static sconce_status check_tables(struct plan *p, const struct call *c, enum form form) {
  char a[120], b[120];
  if (c->cos->rank < 2 || c->sin->rank == 0 || tensor_numel(c->sin) != tensor_numel(c->cos) ||
      c->sin->dim_live[c->sin->rank - 1] != c->width)
    return fail(p->err, SCONCE_BAD_GRAPH, "the tables are %s and %s", tensor_text(c->cos, a),
                tensor_text(c->sin, b));
  bool fits = form == PAIRS ? c->width * 2 == c->dim : c->width % 2 == 0 && c->width <= c->dim;
  if (!fits)
    return fail(p->err, SCONCE_BAD_GRAPH, "rows of %u angles for heads of %u elements", c->width,
                c->dim);
  const uint32_t *tables = c->cos->dim_live, *q = c->q->dim_live;
  if (form == PAIRS && ((c->cos->rank > 2 && c->positions != c->seq) ||
                        (c->apart > 1 && c->k->dim_live[c->k->rank - 2] != c->apart)))
    return fail(p->err, SCONCE_BAD_GRAPH, "tables %s for %u tokens of %u and %u heads",
                tensor_text(c->cos, a), c->seq, q[c->q->rank - 2], c->k->dim_live[c->k->rank - 2]);
  if (c->heads_first && (c->q->rank != 4 || c->start != 0 || tables[1] != c->seq ||
                         (tables[0] != 1 && tables[0] != q[0]) || c->k->dim_live[0] != q[0]))
    return fail(p->err, SCONCE_BAD_GRAPH, "tables %s from row %" PRId64 " on for %s",
                tensor_text(c->cos, a), c->start, tensor_text(c->q, b));
  return SCONCE_OK;
}

static void read_tables(struct call *c, enum form form) {
  const struct tensor *q = c->q, *cos = c->cos;
  c->apart = 1;
  if (form == PAIRS && cos->rank == 3 && q->rank >= 3 && cos->dim_live[0] == c->seq &&
      cos->dim_live[1] == q->dim_live[q->rank - 2] && cos->dim_live[1])
    c->apart = cos->dim_live[1];
  if (cos->rank) c->width = cos->dim_live[cos->rank - 1];
  if (c->width) c->positions = (uint32_t)(tensor_numel(cos) / c->width / c->apart);
}

static sconce_status read_call(struct plan *p, const struct node *n, struct call *c) {
  enum form form = (enum form)n->op->code;
  const bool one = form == HALVES_OF_ONE;
  const uint32_t tables = one ? 1 : 2; /* the argument behind x or xk */
  const struct tensor *x[4];
  TRY(arg_tensors(p, n, 0, tables + 2, x));
  *c = (struct call){.q = x[0],
                     .k = x[tables - 1],
                     .cos = x[tables],
                     .sin = x[tables + 1],
                     .yq = one ? out_id(n) : arg_item(p, n, n->n_args - 1, 0),
                     .yk = one ? out_id(n) : arg_item(p, n, n->n_args - 1, 1)};
  c->heads_first = form != PAIRS && c->cos->rank == 3;
  if (c->q->rank >= 3) {
    c->seq = c->q->dim_live[c->q->rank - (c->heads_first ? 2 : 3)];
    c->dim = c->q->dim_live[c->q->rank - 1];
  }
  read_tables(c, form);
  if (form != PAIRS) TRY(arg_int(p, n, tables + 2, &c->start));
  TRY(check_tensors(p, c));
  return check_tables(p, c, form);
}

/* Where a slice cut the table's rows out of a whole one: what they are called there, for people. */
static void find_whole(struct plan *p, const struct node *n, struct call *c) {
  uint32_t id = n->args[2];
  for (uint32_t i = p->g->n_nodes; i--;) {
    const struct node *m = &p->g->nodes[i];
    if (m->n_args == 0 || m->args[m->n_args - 1] != id) continue;
    const struct tensor *x = tensor_at(p, m->args[0]);
    if (x && x->rank && !strcmp(m->op->name, "aten.slice_copy.Tensor")) {
      if (arg_int(p, m, 2, &c->start) == SCONCE_OK) c->positions = x->dim_live[0];
      return;
    }
    id = m->args[0];
  }
}

static sconce_status shape(struct plan *p, const struct node *n) {
  struct call c;
  TRY(read_call(p, n, &c));
  if (c.start < 0 || c.start > (int64_t)c.positions - c.seq) {
    if (n->op->code == PAIRS) find_whole(p, n, &c);
    return fail(p->err, SCONCE_BAD_ARGUMENT,
                "%u position%s from %" PRId64
                " on, the tables have %u: outside the context that the model was exported with",
                c.seq, c.seq == 1 ? "" : "s", c.start, c.positions);
  }
  TRY(set_dims(p, c.yq, c.q->dim_live, c.q->rank));
  return set_dims(p, c.yk, c.k->dim_live, c.k->rank);
}

/* The kernel writes keys as well, here none: to memory of its own. */
static sconce_status prepare_one(struct plan *p, struct node *n) {
  return graph_scratch(p->g, VK_FLOAT32, 4, &n->extra[0], p->err);
}

static sconce_status emit(struct plan *p, const struct node *n) {
  struct call c;
  TRY(read_call(p, n, &c));
  const enum form form = (enum form)n->op->code;
  const uint32_t at = c.heads_first ? 3 : 2;
  const uint32_t heads_q = c.q->dim_live[c.q->rank - at], heads_k = c.k->dim_live[c.k->rank - at];
  const uint32_t tables = form == HALVES_OF_ONE ? 1 : 2;
  struct rope_params u = {.n_q = (uint32_t)tensor_numel(c.q),
                          .n_k = form == HALVES_OF_ONE ? 0 : (uint32_t)tensor_numel(c.k),
                          .heads_q = heads_q,
                          .heads_k = heads_k,
                          .inner_q = c.heads_first || c.apart > 1 ? 1 : heads_q,
                          .inner_k = c.heads_first || c.apart > 1 ? 1 : heads_k,
                          .batch = c.heads_first && c.cos->dim_live[0] > 1 ? c.seq : 0,
                          .dim = c.dim,
                          .rotary = form == PAIRS ? c.dim : c.width,
                          .seq = c.seq * c.apart,
                          .start = (uint32_t)c.start,
                          .width = c.width};
  uint32_t elems = c.q->dtype == VK_FLOAT16 ? 2 : 1;
  uint64_t words = div_up(u.n_q, elems) + div_up(u.n_k, elems);
  const struct kernel *row;
  TRY(choose(p, n, kernels, c.q->dtype, &form, &row));
  return dispatch(p, row, &u, div_up(words, 64),
                  OPERANDS({arg_id(n, 0)}, {arg_id(n, tables - 1)}, {arg_id(n, tables)},
                           {arg_id(n, tables + 1)}, {c.yq},
                           {form == HALVES_OF_ONE ? n->extra[0] : c.yk}));
}

/* ---- interleaved: [x, freqs, out] ------------------------------------------------------------ */

static sconce_status check_interleaved(struct plan *p, const struct node *n) {
  const struct tensor *x, *f, *y = out_tensor(p, n);
  TRY(arg_tensor(p, n, 0, &x));
  TRY(arg_tensor(p, n, 1, &f));
  char a[120], b[120];
  if (!tensor_is_float(x))
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
  const struct tensor *x, *f;
  TRY(arg_tensor(p, n, 0, &x));
  TRY(arg_tensor(p, n, 1, &f));
  bool half = x->dtype == VK_FLOAT16;
  struct rope_interleaved_params u = {.n = (uint32_t)tensor_numel(x),
                                      .table = (uint32_t)tensor_numel(f)};
  const struct kernel *row;
  TRY(choose(p, n, kernels_interleaved, x->dtype, NULL, &row));
  return dispatch(p, row, &u, div_up(u.n, half ? 128 : 64),
                  OPERANDS({arg_id(n, 0)}, {arg_id(n, 1)}, {out_id(n)}));
}

const struct op ops_rope[] = {
    {"et_vk.apply_rotary_emb.default", shape, emit, .code = PAIRS, .flags = OP_LIST, .n_args = 5,
     .tables = TABLES(kernels)},
    {"et_vk.apply_rotary_emb_hf.default", shape, emit, .code = HALVES, .flags = OP_LIST,
     .n_args = 6, .tables = TABLES(kernels)},
    {"et_vk.apply_rotary_emb_hf_single.default", shape, emit, prepare_one, .code = HALVES_OF_ONE,
     .n_args = 5, .tables = TABLES(kernels)},
    {"et_vk.apply_rotary_emb_interleaved.default", shape_interleaved, emit_interleaved, .n_args = 3,
     .tables = TABLES(kernels_interleaved)},
    {0},
};
