/* Attention: by head with a mask, and over caches that keep their rows from call to call. */
#include "random.h"

/* A row of the result is a mean of rows of v, whose weights follow the scores. */
static bool bound_attention(const struct var *q, const struct var *k, const struct var *v,
                            double scale, struct var *y) {
  const double depth = scale * q->offset[2], scores = depth * q->most * k->most;
  const double off =
      depth * (q->error * k->most + k->error * q->most + q->error * k->error) + 2e-6 * scores;
  y->most = v->most;
  y->grain = 1e-12;
  y->error = v->error + 2 * v->most * (expm1(2 * off) + 1e-5);
  return scores < 300;
}

/* One row: q against `keys` rows of k and v, `stride` apart; a mask adds to scores. */
struct row {
  const double *q, *k, *v;
  uint32_t dim, keys, stride;
  double scale;
  double (*mask)(uint32_t key);
};

static void attend(const struct row *r, double *y) {
  double score[ROOM], most = -INFINITY, sum = 0;
  for (uint32_t c = 0; c < r->keys; c++) {
    score[c] = r->mask ? r->mask(c) : 0;
    for (uint32_t d = 0; d < r->dim; d++) score[c] += r->scale * r->q[d] * r->k[c * r->stride + d];
    most = fmax(most, score[c]);
  }
  for (uint32_t c = 0; c < r->keys; c++) sum += exp(score[c] - most);
  for (uint32_t d = 0; d < r->dim; d++) {
    y[d] = 0;
    for (uint32_t c = 0; c < r->keys; c++)
      y[d] += exp(score[c] - most) / sum * r->v[c * r->stride + d];
  }
}

/* ---- by head: q (H, S, D), k and v (H, T, D) ----------------------------------------------------
 */

/* Of a fixed number of keys some are masked out, never the first. */
static double mask_of(uint32_t key) { return key % 3 == 1 ? -INFINITY : weight(key); }

static bool pick_heads(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  const struct var *q = x[0], *k = x[1], *v = x[2];
  s->n = 3;
  s->which = below(seed, 2);
  s->move.n = 0;
  if (!is_float(q) || q->dtype != k->dtype || q->dtype != v->dtype) return false;
  if (!is_some(q, 2) || !same_dim(q, k, 2) || !same_dim(q, k, 0)) return false;
  for (uint32_t i = 0; i < 3; i++)
    if (!same_dim(k, v, i)) return false;
  if (k->offset[1] == 0 || (s->which && !is_fixed(k, 1))) return false;
  *y = *q;
  return bound_attention(q, k, v, s->which ? 0.25 : 1 / sqrt(q->offset[2]), y);
}

static void interpret_heads(const struct step *s, const struct seen *in, double *y) {
  const uint32_t dim = in->to[2], keys = in->dims[1][1];
  for (uint32_t h = 0; h < in->to[0]; h++)
    for (uint32_t i = 0; i < in->to[1]; i++)
      attend(&(struct row){.q = in->data[0] + at(in->to, h, i, 0),
                           .k = in->data[1] + (size_t)h * keys * dim,
                           .v = in->data[2] + (size_t)h * keys * dim,
                           .dim = dim,
                           .keys = keys,
                           .stride = dim,
                           .scale = s->which ? 0.25 : 1 / sqrt(dim),
                           .mask = s->which ? mask_of : NULL},
             y + at(in->to, h, i, 0));
}

static void add_heads(struct op_test *t, const struct step *s, const struct var *const *x,
                      const uint32_t *ids, uint32_t y) {
  uint32_t wide[3], mask = op_null(t);
  double values[ROOM];
  for (int i = 0; i < 3; i++) wide[i] = widened(t, x[i], ids[i], 0, 1);
  for (uint32_t i = 0; i < x[1]->offset[1]; i++) values[i] = mask_of(i);
  if (s->which) mask = op_constant(t, x[0]->dtype, DIMS(1, x[1]->offset[1]), values);
  const uint32_t to = wide_result(t, x[0], 0, 1);
  op_node(t, "et_vk.sdpa.default",
          IDS(wide[0], wide[1], wide[2], mask, s->which ? op_double(t, 0.25) : op_null(t), to));
  narrowed(t, to, 0, 1, y);
}

/* ---- over caches: q (S, Hq, D), k and v (S, Hkv, D), at a live position -------------------------
 */

enum { FUSED, APART, ALL_KEYS, FORMS };

static uint32_t cache_rows(const struct var *q) { return POSITIONS + dim_most(q, 0); }

static bool pick_cached(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  const struct var *q = x[0], *k = x[1], *v = x[2];
  s->n = 3;
  s->which = below(seed, FORMS);
  s->move.n = 0;
  if (!is_float(q) || q->dtype != k->dtype || q->dtype != v->dtype) return false;
  for (uint32_t i = 0; i < 3; i++)
    if (!same_dim(k, v, i)) return false;
  if (!same_dim(q, k, 0) || !is_some(q, 1) || !is_some(q, 2) || !is_some(k, 1)) return false;
  if (q->offset[1] % k->offset[1] || !same_dim(q, k, 2)) return false;
  if (2 * cache_rows(q) * k->offset[1] * k->offset[2] > ROOM) return false;
  *y = *q;
  return bound_attention(q, k, v, 1 / sqrt(q->offset[2]), y);
}

/* The rows of this call go into both caches; the rest is as earlier calls left it. */
static void interpret_cached(const struct step *s, const struct seen *in, double *y) {
  const uint32_t seq = in->to[0], heads = in->to[1], dim = in->to[2], kv = in->dims[1][1];
  const uint32_t stride = kv * dim, start = in->position;
  double *cache[2] = {in->kept, in->kept + ROOM / 2};
  for (int i = 0; i < 2; i++)
    memcpy(cache[i] + start * stride, in->data[1 + i], (size_t)seq * stride * sizeof *y);
  for (uint32_t i = 0; i < seq; i++)
    for (uint32_t h = 0; h < heads; h++)
      attend(&(struct row){.q = in->data[0] + at(in->to, i, h, 0),
                           .k = cache[0] + h / (heads / kv) * dim,
                           .v = cache[1] + h / (heads / kv) * dim,
                           .dim = dim,
                           .keys = s->which == ALL_KEYS ? start + seq : start + i + 1,
                           .stride = stride,
                           .scale = 1 / sqrt(dim)},
             y + at(in->to, i, h, 0));
}

static void add_cached(struct op_test *t, const struct step *s, const struct var *const *x,
                       const uint32_t *ids, uint32_t y) {
  const enum vk_dtype dtype = x[0]->dtype;
  const uint32_t dims[] = {1, cache_rows(x[0]), x[1]->offset[1], x[1]->offset[2]};
  const uint32_t start = ids[POSITION], none = op_null(t), no = op_int(t, 0),
                 causal = op_bool(t, s->which != ALL_KEYS);
  const double zeros[ROOM] = {0};
  uint32_t wide[3], cache[2];
  for (int i = 0; i < 3; i++) wide[i] = widened(t, x[i], ids[i], 0, 1);
  for (int i = 0; i < 2; i++) cache[i] = op_constant(t, dtype, dims, 4, zeros);
  const uint32_t to = wide_result(t, x[0], 0, 1);
  if (s->which == APART) {
    for (int i = 0; i < 2; i++)
      op_node(t, "update_cache.default",
              IDS(wide[1 + i], cache[i], start, op_tensor(t, dtype, DIMS(1))));
    op_node(t, "llama.custom_sdpa.default",
            IDS(wide[0], cache[0], cache[1], start, none, no, causal, none, to));
  } else {
    op_node(t, "sdpa_with_kv_cache.default",
            IDS(wide[0], wide[1], wide[2], cache[0], cache[1], start, op_int(t, 1), none, no,
                causal, none, to));
  }
  narrowed(t, to, 0, 1, y);
}

const struct random_kind random_attention[] = {
    {"attention", pick_heads, interpret_heads, add_heads},
    {"attention over a cache", pick_cached, interpret_cached, add_cached},
    {0},
};
