/* Attention over a cache, with an append before it or without; the family's names. */
#include "attention.h"

#include <inttypes.h>
#include <math.h>

/* [q, k, v, k_cache, v_cache, start, seq_len, mask, dropout, causal, scale, out] with an append,
 * [q, k_cache, v_cache, start, mask, dropout, causal, scale, out] without. seq_len is a placeholder
 * in real files: q tells. */
enum { PLAIN, APPEND };
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
  const struct tensor *q = arg_tensor(p, n, 0), *cache = arg_tensor(p, n, 3);
  for (uint32_t i = 1; i <= 2; i++) {
    const struct tensor *x = arg_tensor(p, n, i);
    if (!x) return SCONCE_BAD_GRAPH;
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
  if (m->dtype != q->dtype || tensor_numel(m) != (uint64_t)c->a.seq * cols ||
      (!p->first && cols < c->a.keys))
    return fail(p->err, SCONCE_BAD_GRAPH, "the mask %s for %u queries and %u keys",
                tensor_text(m, text), c->a.seq, c->a.keys);
  c->a.keys = cols < c->a.rows ? cols : c->a.rows;
  c->a.mask[2] = cols;
  c->a.mask[3] = 1;
  return SCONCE_OK;
}

static sconce_status read_cached(struct plan *p, const struct node *n, struct cached *c) {
  bool append = n->op->variant == APPEND;
  uint32_t cache = append ? 3 : 1, mask = append ? 7 : 4;
  const struct tensor *q = arg_tensor(p, n, 0), *k = arg_tensor(p, n, cache),
                      *v = arg_tensor(p, n, cache + 1), *out = arg_tensor(p, n, n->n_args - 1);
  if (!q || !k || !v || !out) return SCONCE_BAD_GRAPH;
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
  uint32_t seq = dim_of(q, TOKENS), rows = dim_of(k, TOKENS), heads = dim_of(q, HEADS);
  if (p->first)
    c->start = 0;
  else
    TRY(check_position(p, c->start, seq, rows));
  c->a = (struct attention){.q = arg_id(n, 0),
                            .k = arg_id(n, cache),
                            .v = arg_id(n, cache + 1),
                            .out = out_id(n),
                            .bias = arg_is_null(p, n, mask) ? NO_VALUE : arg_id(n, mask),
                            .seq = seq,
                            .heads = heads,
                            .group = heads / dim_of(k, HEADS),
                            .dim = dim_of(q, DIM),
                            .keys = (uint32_t)c->start + seq,
                            .rows = rows,
                            .half = q->dtype == VK_FLOAT16};
  if (c->a.bias != NO_VALUE) TRY(read_mask(p, c));
  c->a.first = c->causal ? (uint32_t)c->start : c->a.keys;
  return arg_float_or(p, n, mask + 3, 1 / sqrt(c->a.dim), &c->a.scale);
}

sconce_status attention_cached(struct plan *p, const struct node *n, struct attention *a,
                               int64_t *start) {
  struct cached c;
  TRY(read_cached(p, n, &c));
  *a = c.a;
  *start = c.start;
  return SCONCE_OK;
}

static sconce_status shape_cached(struct plan *p, const struct node *n) {
  struct cached c;
  TRY(read_cached(p, n, &c));
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
  if (n->op->variant == APPEND)
    TRY(append_emit(p, &(struct append){{arg_id(n, 1), arg_id(n, 2)},
                                        {arg_id(n, 3), arg_id(n, 4)},
                                        (uint64_t)c.start}));
  return attention_emit(p, n, &c.a);
}

#define CACHED(name, args, which, written)                                                         \
  {                                                                                                \
    name, shape_cached, emit_cached, prepare_cached, .n_args = args, .variant = which,             \
        .writes = written, .kernels = {                                                            \
          attention_kernels,                                                                       \
          attention_merges,                                                                        \
          append_pair_kernels                                                                      \
        }                                                                                          \
  }
#define UPDATE(name)                                                                               \
  {                                                                                                \
    name, update_shape, update_emit, .n_args = 4, .writes = 1 << 1, .kernels = { append_kernels }  \
  }

const struct op ops_sdpa[] = {
    CACHED("sdpa_with_kv_cache.default", 12, APPEND, 1 << 3 | 1 << 4),
    CACHED("llama.sdpa_with_kv_cache.default", 12, APPEND, 1 << 3 | 1 << 4),
    CACHED("custom_sdpa.default", 9, PLAIN, 0),
    CACHED("llama.custom_sdpa.default", 9, PLAIN, 0),
    UPDATE("update_cache.default"),
    UPDATE("llama.update_cache.default"),
    {"et_vk.sdpa.default", by_head_shape, by_head_emit, by_head_prepare, .n_args = 6,
     .kernels = {attention_kernels, attention_merges}},
    {0},
};
