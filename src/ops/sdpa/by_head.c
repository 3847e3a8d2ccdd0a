/* Attention over tensors by head: [q, k, v, mask or Null, scale or Null, out] with q
 * (batch…, heads, queries, dim), k and v (batch…, kv heads, keys, dim); heads of v, and so of out,
 * may be of another width. */
#include "attention.h"

#include <math.h>
#include <string.h>

/* From the end; HEADS and TOKENS change places against a cache. */
enum { BY_HEAD_HEADS = 3, BY_HEAD_TOKENS = 2 };

static uint32_t heads_of_one(const struct tensor *t) {
  return t->rank < BY_HEAD_HEADS ? 1 : dim_of(t, BY_HEAD_HEADS);
}

static uint32_t heads_of(const struct tensor *t) {
  uint32_t n = 1;
  for (uint32_t i = 0; i + 2 < t->rank; i++) n *= t->dim_live[i];
  return n;
}

static sconce_status check(struct plan *p, const struct tensor *q, const struct tensor *k,
                           const struct tensor *v) {
  char a[120], b[120], c[120];
  bool same = tensor_is_float(q) && k->dtype == q->dtype && v->dtype == q->dtype && q->rank >= 2 &&
              k->rank == q->rank && v->rank == q->rank;
  for (uint32_t i = 0; same && i < q->rank; i++) {
    const uint32_t from_end = q->rank - i;
    same = from_end == DIM || k->dim_live[i] == v->dim_live[i];
    if (from_end > BY_HEAD_HEADS || from_end == DIM) same &= k->dim_live[i] == q->dim_live[i];
  }
  const uint32_t heads = heads_of_one(q), kv_heads = heads_of_one(k);
  if (same && (kv_heads ? heads % kv_heads : heads) == 0) return SCONCE_OK;
  return fail(p->err, SCONCE_BAD_GRAPH, "attention of %s over %s and %s", tensor_text(q, a),
              tensor_text(k, b), tensor_text(v, c));
}

/* Dims of the scores in front of queries and keys become two, with a stride each, and what the mask
 * repeats along in front of them: neighbours join where the mask goes on from one to the other, or
 * repeats along both. false: there are more. */
static bool join_lead(const uint32_t *size, const uint32_t *stride, uint32_t n,
                      struct attention *a) {
  uint32_t joined[3] = {1, 1, 1}, step[3] = {0}, k = 0; /* from the right */
  for (uint32_t i = n; i-- > 0;) {
    if (size[i] == 1) continue;
    if (joined[k] > 1 && stride[i] != joined[k] * step[k] && ++k == 3) return false;
    if (joined[k] == 1) step[k] = stride[i];
    joined[k] *= size[i];
  }
  a->mask_heads = joined[0];
  a->mask_batches = joined[1];
  a->mask[1] = step[0];
  a->mask[0] = step[1];
  return step[2] == 0;
}

sconce_status attention_mask(struct plan *p, const uint32_t *lead, uint32_t n_lead,
                             struct attention *a) {
  const struct tensor *m = tensor_at(p, a->bias);
  if (!m) return fail(p->err, SCONCE_BAD_GRAPH, "the mask is no tensor");
  uint32_t size[RANK_MAX], strides[RANK_MAX] = {0}, stride = 1;
  const uint32_t rank = n_lead + 2;
  memcpy(size, lead, n_lead * sizeof *size);
  size[n_lead] = a->seq;
  size[n_lead + 1] = a->keys;
  bool fits = m->dtype == a->dtype && m->rank <= rank;
  for (uint32_t i = 1; fits && i <= m->rank; i++) { /* from the right */
    const uint32_t live = m->dim_live[m->rank - i];
    fits = live == 1 || live == size[rank - i];
    strides[rank - i] = live == 1 ? 0 : stride;
    stride *= live;
  }
  a->mask[2] = strides[n_lead];
  a->mask[3] = strides[n_lead + 1];
  char text[120];
  if (!fits)
    return fail(p->err, SCONCE_BAD_GRAPH, "the mask %s for %u heads, %u queries and %u keys",
                tensor_text(m, text), a->heads, a->seq, a->keys);
  if (join_lead(size, strides, n_lead, a)) return SCONCE_OK;
  return fail(p->err, SCONCE_UNSUPPORTED, "the mask %s repeats along dims between others",
              tensor_text(m, text));
}

static sconce_status read_call(struct plan *p, const struct node *n, struct attention *a) {
  const struct tensor *q, *k, *v;
  TRY(arg_tensor(p, n, 0, &q));
  TRY(arg_tensor(p, n, 1, &k));
  TRY(arg_tensor(p, n, 2, &v));
  TRY(check(p, q, k, v));
  const uint32_t keys = dim_of(k, BY_HEAD_TOKENS), kv_heads = heads_of_one(k);
  *a = (struct attention){.q = arg_id(n, 0),
                          .k = arg_id(n, 1),
                          .v = arg_id(n, 2),
                          .out = out_id(n),
                          .bias = arg_is_null(p, n, 3) ? NO_VALUE : arg_id(n, 3),
                          .seq = dim_of(q, BY_HEAD_TOKENS),
                          .heads = heads_of(q),
                          .heads_per_kv = kv_heads ? heads_of_one(q) / kv_heads : 1,
                          .dim = dim_of(q, DIM),
                          .wide = dim_of(v, DIM),
                          .keys = keys,
                          .rows = keys,
                          .first = keys,
                          .head_major = true,
                          .dtype = q->dtype};
  if (a->bias != NO_VALUE && tensor_numel(q)) TRY(attention_mask(p, q->dim_live, q->rank - 2, a));
  return arg_float_or(p, n, 4, 1 / sqrt(a->dim), &a->scale);
}

sconce_status by_head_shape(struct plan *p, const struct node *n) {
  struct attention a;
  TRY(read_call(p, n, &a));
  const struct tensor *q;
  TRY(arg_tensor(p, n, 0, &q));
  uint32_t dims[RANK_MAX];
  memcpy(dims, q->dim_live, sizeof dims);
  dims[q->rank - DIM] = a.wide;
  return set_dims(p, a.out, dims, q->rank);
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
