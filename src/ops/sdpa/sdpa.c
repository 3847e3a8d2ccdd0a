/* Attention over a cache, with an append before it or without; the family's names. */
#include "attention.h"

#include "ops/compound/expand.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* [q, k, v, k_cache, v_cache, start, seq_len, mask, dropout, causal, scale, out] with an append,
 * [q, k_cache, v_cache, start, mask, dropout, causal, scale, out] without. seq_len is a placeholder
 * in real files: q tells. WHOLE: the arguments of PLAIN, but all rows of k and v are keys, wherever
 * in the text the queries are: the mask decides. */
enum { PLAIN, APPEND, WHOLE };
struct cached {
  struct attention a;
  int64_t start;
  bool causal;
};

static sconce_status check_heads(struct plan *p, const struct tensor *q, const struct tensor *k,
                                 const struct tensor *v) {
  char a[120], b[120];
  bool batch = (q->rank == 4 && q->dim_live[0] != 1) || (k->rank == 4 && k->dim_live[0] != 1);
  if (batch)
    return fail(p->err, SCONCE_UNSUPPORTED, "%s over a cache of %s: a batch is not supported",
                tensor_text(q, a), tensor_text(k, b));
  if (q->dtype != k->dtype || dim_of(q, DIM) != dim_of(k, DIM) || dim_of(k, HEADS) == 0 ||
      dim_of(q, HEADS) % dim_of(k, HEADS))
    return fail(p->err, SCONCE_BAD_GRAPH, "%s over a cache of %s", tensor_text(q, a),
                tensor_text(k, b));
  TRY(check_rows(p, v, k));
  if (dim_of(v, TOKENS) != dim_of(k, TOKENS))
    return fail(p->err, SCONCE_BAD_GRAPH, "a key cache of %s and a value cache of %s",
                tensor_text(k, a), tensor_text(v, b));
  return SCONCE_OK;
}

static sconce_status check_new_tokens(struct plan *p, const struct node *n) {
  const struct tensor *q, *cache;
  TRY(arg_tensor(p, n, 0, &q));
  TRY(arg_tensor(p, n, 3, &cache));
  for (uint32_t i = 1; i <= 2; i++) {
    const struct tensor *x;
    TRY(arg_tensor(p, n, i, &x));
    TRY(check_rank(p, x, "new tokens"));
    TRY(check_rows(p, x, cache));
    if (dim_of(x, TOKENS) != dim_of(q, TOKENS))
      return fail(p->err, SCONCE_BAD_GRAPH, "%u queries with %u new tokens", dim_of(q, TOKENS),
                  dim_of(x, TOKENS));
  }
  return SCONCE_OK;
}

/* An additive mask [queries, keys] decides alone which rows of the cache count. */
static sconce_status read_mask(struct plan *p, struct cached *c) {
  const struct tensor *m = tensor_at(p, c->a.bias), *q = tensor_at(p, c->a.q);
  char text[120];
  if (!m) return fail(p->err, SCONCE_BAD_GRAPH, "the mask is no tensor");
  if (c->causal) return fail(p->err, SCONCE_BAD_GRAPH, "a mask and causal attention together");
  uint32_t cols = m->rank >= 2 ? dim_of(m, DIM) : 0;
  if (m->dtype != q->dtype || tensor_numel(m) != (uint64_t)c->a.seq * cols)
    return fail(p->err, SCONCE_BAD_GRAPH, "the mask %s for %u queries and %u keys",
                tensor_text(m, text), c->a.seq, c->a.keys);
  c->a.keys = cols < c->a.rows ? cols : c->a.rows;
  c->a.mask[2] = cols;
  c->a.mask[3] = 1;
  return SCONCE_OK;
}

static sconce_status read_cached(struct plan *p, const struct node *n, struct cached *c) {
  bool append = n->op->code == APPEND;
  uint32_t cache = append ? 3 : 1, mask = append ? 7 : 4;
  const struct tensor *q, *k, *v;
  TRY(arg_tensor(p, n, 0, &q));
  TRY(arg_tensor(p, n, cache, &k));
  TRY(arg_tensor(p, n, cache + 1, &v));
  TRY(check_rank(p, q, "queries"));
  TRY(check_rank(p, k, "key cache"));
  TRY(check_rank(p, v, "value cache"));
  TRY(check_heads(p, q, k, v));
  if (append) TRY(check_new_tokens(p, n));
  double dropout;
  TRY(arg_int(p, n, cache + 2, &c->start));
  TRY(arg_float_or(p, n, mask + 1, 0, &dropout));
  TRY(arg_bool(p, n, mask + 2, &c->causal));
  if (dropout != 0) return fail(p->err, SCONCE_UNSUPPORTED, "a dropout of %g", dropout);
  if (n->op->code == WHOLE && c->causal)
    return fail(p->err, SCONCE_UNSUPPORTED, "causal attention whose keys have no position");
  if (n->op->code == WHOLE) c->start = 0;
  uint32_t seq = dim_of(q, TOKENS), rows = dim_of(k, TOKENS), heads = dim_of(q, HEADS);
  c->a = (struct attention){.q = arg_id(n, 0),
                            .k = arg_id(n, cache),
                            .v = arg_id(n, cache + 1),
                            .out = out_id(n),
                            .bias = arg_is_null(p, n, mask) ? NO_VALUE : arg_id(n, mask),
                            .seq = seq,
                            .heads = heads,
                            .heads_per_kv = heads / dim_of(k, HEADS),
                            .dim = dim_of(q, DIM),
                            .wide = dim_of(q, DIM),
                            .keys = n->op->code == WHOLE ? rows : (uint32_t)c->start + seq,
                            .rows = rows,
                            .dtype = q->dtype};
  if (c->a.bias != NO_VALUE) TRY(read_mask(p, c));
  c->a.first = c->causal ? (uint32_t)c->start : c->a.keys;
  return arg_float_or(p, n, mask + 3, 1 / sqrt(c->a.dim), &c->a.scale);
}

bool attention_cached(const struct plan *p, const struct node *n, struct attention *a,
                      int64_t *start) {
  struct plan quiet = {.g = p->g, .node = p->node}; /* no place for a sentence */
  struct cached c;
  if (read_cached(&quiet, n, &c) != SCONCE_OK) return false;
  *a = c.a;
  *start = c.start;
  return true;
}

static sconce_status shape_cached(struct plan *p, const struct node *n) {
  struct cached c;
  TRY(read_cached(p, n, &c));
  const bool whole = n->op->code == WHOLE;
  const uint32_t least = whole ? c.a.rows : (uint32_t)c.start + c.a.seq;
  if (!whole) TRY(check_position(p, c.start, c.a.seq, c.a.rows));
  char text[120];
  if (c.a.keys < least) /* fewer than the mask should have columns for */
    return fail(p->err, SCONCE_BAD_GRAPH, "the mask %s for %u queries and %u keys",
                tensor_text(tensor_at(p, c.a.bias), text), c.a.seq, least);
  return shape_same(p, n);
}

static sconce_status prepare_cached(struct plan *p, struct node *n) {
  struct cached c;
  TRY(read_cached(p, n, &c));
  return attention_prepare(p, n, &c.a);
}

static sconce_status emit_cached(struct plan *p, const struct node *n) {
  struct cached c;
  TRY(read_cached(p, n, &c));
  if (n->op->code == APPEND)
    TRY(append_emit(p, n,
                    &(struct append){{arg_id(n, 1), arg_id(n, 2)},
                                     {arg_id(n, 3), arg_id(n, 4)},
                                     (uint64_t)c.start}));
  return attention_emit(p, n, &c.a);
}

/* ---- a batch --------------------------------------------------------------------------------- */

static bool has_batch(const struct expansion *x) {
  const struct value *q = x->args[0] == NO_VALUE ? NULL : &x->g->values[x->args[0]];
  return q && q->kind == VK_TENSOR && q->tensor.rank == 4 && q->tensor.dim_max[0] > 1;
}

static sconce_status add_slice(const struct expansion *x, uint32_t arg, uint32_t from, uint32_t to,
                               uint32_t *out) {
  const struct tensor *t;
  uint32_t zero, one;
  TRY(expand_given(x, arg, &t));
  struct tensor item = *t;
  item.dim_max[0] = 1;
  TRY(expand_tensor(x, t->dtype, &item, out));
  TRY(expand_number(x, VK_INT, 0, &zero));
  TRY(expand_number(x, VK_INT, 1, &one));
  return ADD("aten.slice_copy.Tensor", x->args[arg], zero, from, to, one, *out);
}

/* Each item of a batch by itself: [q, k, v, start, mask, dropout, causal, scale, out]. */
static sconce_status expand_batch(const struct expansion *x) {
  enum { ARGS = 9, BATCH_MAX = 256 };
  uint32_t items[BATCH_MAX], args[ARGS], list, zero;
  const uint32_t n = x->g->values[x->args[0]].tensor.dim_max[0];
  if (n > BATCH_MAX) return fail(x->err, SCONCE_UNSUPPORTED, "attention of a batch of %u", n);
  memcpy(args, x->args, sizeof args);
  for (uint32_t b = 0; b < n; b++) {
    uint32_t from, to;
    TRY(expand_number(x, VK_INT, b, &from));
    TRY(expand_number(x, VK_INT, b + 1, &to));
    for (uint32_t i = 0; i < 3; i++) TRY(add_slice(x, i, from, to, &args[i]));
    const struct tensor q = x->g->values[args[0]].tensor;
    TRY(expand_tensor(x, q.dtype, &q, &items[b]));
    args[ARGS - 1] = items[b];
    TRY(graph_add_node(x->g, text_of("custom_sdpa.default"), x->index, args, ARGS, x->err));
  }
  TRY(expand_list(x, items, n, &list));
  TRY(expand_number(x, VK_INT, 0, &zero));
  return ADD("aten.cat.default", list, zero, x->args[ARGS - 1]);
}

const struct op ops_sdpa[] = {
    {"sdpa_with_kv_cache.default", shape_cached, emit_cached, prepare_cached,
     .also = "llama.sdpa_with_kv_cache.default", .n_args = 12, .flags = OP_APPENDS,
     .writes = 1 << 3 | 1 << 4, .code = APPEND,
     .tables = TABLES(attention_kernels, attention_merges, append_kernels, append_pair_kernels)},
    {"custom_sdpa.default", shape_cached, emit_cached, prepare_cached, expand_batch, has_batch,
     .also = "llama.custom_sdpa.default", .n_args = 9, .code = PLAIN,
     .tables = TABLES(attention_kernels, attention_merges)},
    {"et_vk.gemma4_sdpa.default", shape_cached, emit_cached, prepare_cached, .n_args = 9,
     .code = WHOLE, .tables = TABLES(attention_kernels, attention_merges)},
    {"update_cache.default", update_shape, update_emit, .also = "llama.update_cache.default",
     .n_args = 4, .flags = OP_APPENDS, .writes = 1 << 1, .tables = TABLES(append_kernels)},
    {"et_vk.sdpa.default", by_head_shape, by_head_emit, by_head_prepare, .also = "sdpa.default",
     .n_args = 6, .tables = TABLES(attention_kernels, attention_merges)},
    {0},
};
