/* Attention over tensors by head: [q, k, v, mask or Null, scale or Null, out] with q
 * (batch…, heads, queries, dim), k and v (batch…, kv heads, keys, dim). */
#include "attention.h"

#include <math.h>

/* From the end; HEADS and TOKENS change places against a cache. */
enum { BY_HEAD_HEADS = 3, BY_HEAD_TOKENS = 2 };

static uint32_t heads_of(const struct tensor *t) {
  uint32_t n = 1;
  for (uint32_t i = 0; i + 2 < t->rank; i++) n *= t->dim_live[i];
  return n;
}

static sconce_status check(struct plan *p, const struct tensor *q, const struct tensor *k,
                           const struct tensor *v) {
  char a[120], b[120], c[120];
  bool same = tensor_is_float(q) && k->dtype == q->dtype && v->dtype == q->dtype && q->rank >= 3 &&
              k->rank == q->rank && v->rank == q->rank;
  for (uint32_t i = 0; same && i < q->rank; i++) {
    same = k->dim_live[i] == v->dim_live[i];
    if (q->rank - i > BY_HEAD_HEADS || q->rank - i == DIM) same &= k->dim_live[i] == q->dim_live[i];
  }
  if (same && dim_of(k, BY_HEAD_HEADS) && dim_of(q, BY_HEAD_HEADS) % dim_of(k, BY_HEAD_HEADS) == 0)
    return SCONCE_OK;
  return fail(p->err, SCONCE_BAD_GRAPH, "attention of %s over %s and %s", tensor_text(q, a),
              tensor_text(k, b), tensor_text(v, c));
}

/* Strides of a mask that repeats along dims of 1 and in front. */
sconce_status attention_mask(struct plan *p, const struct tensor *q, struct attention *a) {
  const struct tensor *m = tensor_at(p, a->bias);
  if (!m) return fail(p->err, SCONCE_BAD_GRAPH, "the mask is no tensor");
  const uint32_t full[4] = {a->heads / a->mask_heads, a->mask_heads, a->seq, a->keys};
  bool fits = m->dtype == q->dtype && m->rank <= 4;
  uint32_t stride = 1;
  for (uint32_t i = 0; fits && i < m->rank; i++) { /* from the right */
    uint32_t size = m->dim_live[m->rank - 1 - i];
    fits = size == 1 || size == full[3 - i];
    a->mask[3 - i] = size == 1 ? 0 : stride;
    stride *= size;
  }
  char text[120];
  if (fits) return SCONCE_OK;
  return fail(p->err, SCONCE_BAD_GRAPH, "the mask %s for [%u, %u, %u, %u]", tensor_text(m, text),
              full[0], full[1], full[2], full[3]);
}

static sconce_status read_call(struct plan *p, const struct node *n, struct attention *a) {
  const struct tensor *q, *k, *v;
  TRY(arg_tensor(p, n, 0, &q));
  TRY(arg_tensor(p, n, 1, &k));
  TRY(arg_tensor(p, n, 2, &v));
  TRY(check(p, q, k, v));
  uint32_t keys = dim_of(k, BY_HEAD_TOKENS);
  *a = (struct attention){.q = arg_id(n, 0),
                          .k = arg_id(n, 1),
                          .v = arg_id(n, 2),
                          .out = out_id(n),
                          .bias = arg_is_null(p, n, 3) ? NO_VALUE : arg_id(n, 3),
                          .seq = dim_of(q, BY_HEAD_TOKENS),
                          .heads = heads_of(q),
                          .heads_per_kv = dim_of(q, BY_HEAD_HEADS) / dim_of(k, BY_HEAD_HEADS),
                          .dim = dim_of(q, DIM),
                          .keys = keys,
                          .rows = keys,
                          .first = keys,
                          .head_major = true,
                          .dtype = q->dtype,
                          .mask_heads = dim_of(q, BY_HEAD_HEADS)};
  if (a->bias != NO_VALUE && tensor_numel(q)) TRY(attention_mask(p, q, a));
  return arg_float_or(p, n, 4, 1 / sqrt(a->dim), &a->scale);
}

sconce_status by_head_shape(struct plan *p, const struct node *n) {
  struct attention a;
  TRY(read_call(p, n, &a));
  return shape_same(p, n);
}

sconce_status by_head_prepare(struct plan *p, struct node *n) {
  struct attention a;
  TRY(read_call(p, n, &a));
  return attention_prepare(p, n, &a);
}

sconce_status by_head_emit(struct plan *p, const struct node *n) {
  struct attention a;
  TRY(read_call(p, n, &a));
  return attention_emit(p, n, &a);
}
