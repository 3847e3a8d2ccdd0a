/* The sampler. The cuts (top-k, top-p, min-p) all keep the best few of an order, highest logit
 * first and lowest id among equals, so together they are one place in that order: the last kept
 * token. The draw then walks the ids upwards, which a GPU can do with a prefix sum. */
#include "sconce_llm.h"

#include "base/arena.h"
#include "base/random.h"
#include "base/status.h"

#include <math.h>
#include <string.h>

enum { PENALTY_WINDOW = 64 };

struct sconce_sampler {
  struct arena arena;
  sconce_sampler_desc desc;
  float *x;       /* (n_vocab) logits after penalty and temperature; NaN is -inf */
  float *scratch; /* (n_vocab) */
  uint32_t *heap; /* (n_vocab) ids, the best one on top */
  uint8_t *seen;  /* (n_vocab) set while penalties are applied, zero otherwise */
};

/* ---- random bits ----------------------------------------------------------------------------- */

uint32_t sconce_random(uint64_t seed, uint64_t position) { return random_bits(seed, position); }

/* ---- opening --------------------------------------------------------------------------------- */

static sconce_status check_desc(const sconce_sampler_desc *d, sconce_error *err) {
  if (!d || d->n_vocab == 0 || d->n_vocab > INT32_MAX)
    return fail(err, SCONCE_BAD_ARGUMENT, "a sampler needs the number of logits, 1 to 2^31 - 1");
  if (!(d->temperature >= 0 && d->temperature <= 1e6f))
    return fail(err, SCONCE_BAD_ARGUMENT, "temperature %g is not in 0 to 1e6",
                (double)d->temperature);
  if (!(d->top_p >= 0 && d->top_p <= 1))
    return fail(err, SCONCE_BAD_ARGUMENT, "top_p %g is not in 0 to 1", (double)d->top_p);
  if (!(d->min_p >= 0 && d->min_p <= 1))
    return fail(err, SCONCE_BAD_ARGUMENT, "min_p %g is not in 0 to 1", (double)d->min_p);
  if (!(d->repetition_penalty >= 0 && d->repetition_penalty <= 1e6f))
    return fail(err, SCONCE_BAD_ARGUMENT, "repetition_penalty %g is not in 0 to 1e6",
                (double)d->repetition_penalty);
  return SCONCE_OK;
}

sconce_status sconce_sampler_open(sconce_sampler **out, const sconce_sampler_desc *desc,
                                  sconce_error *err) {
  if (!out || !desc) return fail(err, SCONCE_BAD_ARGUMENT, "out or desc is NULL");
  *out = NULL;
  TRY(check_desc(desc, err));
  struct arena arena;
  arena_init(&arena, &desc->allocator);
  sconce_sampler *s = arena_new(&arena, sconce_sampler, 1);
  float *x = arena_new(&arena, float, desc->n_vocab);
  float *scratch = arena_new(&arena, float, desc->n_vocab);
  uint32_t *heap = arena_new(&arena, uint32_t, desc->n_vocab);
  uint8_t *seen = arena_new(&arena, uint8_t, desc->n_vocab);
  if (!s || !x || !scratch || !heap || !seen) {
    arena_free(&arena);
    return fail(err, SCONCE_NO_MEMORY, "out of memory for a sampler of %u logits", desc->n_vocab);
  }
  *s = (sconce_sampler){arena, *desc, x, scratch, heap, seen};
  if (!s->desc.penalty_window) s->desc.penalty_window = PENALTY_WINDOW;
  if (s->desc.repetition_penalty == 0) s->desc.repetition_penalty = 1;
  if (s->desc.top_p == 0) s->desc.top_p = 1;
  *out = s;
  return SCONCE_OK;
}

void sconce_sampler_close(sconce_sampler *s) {
  if (!s) return;
  struct arena arena = s->arena; /* it holds the sampler itself */
  arena_free(&arena);
}

/* ---- logits ---------------------------------------------------------------------------------- */

static void apply_penalty(sconce_sampler *s, const int32_t *history, size_t n) {
  float penalty = s->desc.repetition_penalty;
  if (penalty == 1 || !history) return;
  size_t window = n < s->desc.penalty_window ? n : s->desc.penalty_window;
  const int32_t *recent = history + (n - window);
  for (size_t i = 0; i < window; i++) { /* once per token, however often it came */
    if (recent[i] < 0 || (uint32_t)recent[i] >= s->desc.n_vocab || s->seen[recent[i]]) continue;
    float *x = &s->x[recent[i]];
    s->seen[recent[i]] = 1;
    *x = *x > 0 ? *x / penalty : *x * penalty;
  }
  for (size_t i = 0; i < window; i++)
    if (recent[i] >= 0 && (uint32_t)recent[i] < s->desc.n_vocab) s->seen[recent[i]] = 0;
}

static bool better(const float *x, uint32_t a, uint32_t b) {
  return x[a] > x[b] || (x[a] == x[b] && a < b);
}

static uint32_t best_of(const float *x, uint32_t n) {
  uint32_t best = 0;
  for (uint32_t i = 1; i < n; i++)
    if (x[i] > x[best]) best = i;
  return best;
}

/* e^x for x <= 0, off by 1e-6 of it at most for x > -20 and by 4e-6 below: additions and products
 * that compilers vectorize and that WGSL has too. 2^f by its series on [-0.5, 0.5], then the
 * exponent by hand. */
static float exp_of(float x) {
  float t = (x < -87.0f ? -87.0f : x) * 1.44269504f;
  int32_t whole = (int32_t)(t - 0.5f);
  float f = t - (float)whole;
  float y =
      1.0f + f * (0.693147181f +
                  f * (0.240226507f +
                       f * (0.0555041087f +
                            f * (0.00961812911f + f * (0.00133335581f + f * 0.000154035304f)))));
  uint32_t bits = (uint32_t)(whole + 127) << 23;
  float scale;
  memcpy(&scale, &bits, sizeof scale);
  return x < -87.0f ? 0.0f : y * scale;
}

/* Weights relative to `top`, which is finite and no less than any x; their sum. */
static double weigh(const float *x, uint32_t n, float top, float *weights) {
  double sum = 0;
  for (uint32_t i = 0; i < n; i++) weights[i] = exp_of(x[i] - top);
  for (uint32_t i = 0; i < n; i++) sum += (double)weights[i];
  return sum;
}

/* log of the chosen token's share of the softmax over the logits as they came. */
static float logprob_of(sconce_sampler *s, const float *logits, uint32_t id) {
  uint32_t n = s->desc.n_vocab;
  for (uint32_t i = 0; i < n; i++) s->x[i] = isnan(logits[i]) ? -INFINITY : logits[i];
  float top = s->x[best_of(s->x, n)];
  if (isinf(top)) return s->x[id] == top ? 0.0f : -INFINITY;
  return (float)((double)s->x[id] - (double)top - log(weigh(s->x, n, top, s->scratch)));
}

/* ---- cuts ------------------------------------------------------------------------------------ */

static void sift_down(const float *x, uint32_t *heap, uint32_t at, uint32_t n) {
  uint32_t id = heap[at];
  for (uint64_t child; (child = 2 * (uint64_t)at + 1) < n; at = (uint32_t)child) {
    if (child + 1 < n && better(x, heap[child + 1], heap[child])) child++;
    if (better(x, id, heap[child])) break;
    heap[at] = heap[child];
  }
  heap[at] = id;
}

static uint32_t pop(const float *x, uint32_t *heap, uint32_t *n) {
  uint32_t top = heap[0];
  heap[0] = heap[--*n];
  heap[*n] = top; /* what was popped lies behind the heap, the latest first */
  if (*n) sift_down(x, heap, 0, *n);
  return top;
}

/* The k-th largest of n > k values: a heap of the k largest so far, the smallest on top. */
static float kth_largest(const float *x, uint32_t n, uint32_t k, float *heap) {
  for (uint32_t i = 0; i < k; i++) {
    uint32_t at = i;
    for (uint32_t up; at > 0 && x[i] < heap[up = (at - 1) / 2]; at = up) heap[at] = heap[up];
    heap[at] = x[i];
  }
  for (uint32_t i = k; i < n; i++) {
    if (!(x[i] > heap[0])) continue;
    uint32_t at = 0;
    for (uint64_t child; (child = 2 * (uint64_t)at + 1) < k; at = (uint32_t)child) {
      if (child + 1 < k && heap[child + 1] < heap[child]) child++;
      if (x[i] <= heap[child]) break;
      heap[at] = heap[child];
    }
    heap[at] = x[i];
  }
  return heap[0];
}

/* A value below which no token survives the cuts: most of a vocabulary never enters the heap. With
 * top-p the tokens below (1 - p) / n of the whole have less than 1 - p together. *total is what
 * top-p is a share of, unless top-k decides that later. The slack is for rounding. */
static float floor_of(sconce_sampler *s, uint32_t k, float top, double *total) {
  const sconce_sampler_desc *d = &s->desc;
  float floor = -INFINITY, slack = 1e-3f;
  if (k < d->n_vocab) {
    floor = kth_largest(s->x, d->n_vocab, k, s->scratch);
  } else if (d->top_p < 1) {
    *total = weigh(s->x, d->n_vocab, top, s->scratch);
    floor = top + (float)log((1 - (double)d->top_p) * *total / d->n_vocab) - slack;
  }
  float least = d->min_p > 0 ? top + logf(d->min_p) - slack : -INFINITY;
  return least > floor && k == d->n_vocab ? least : floor;
}

/* The last token that the cuts keep, in the order of better(). */
static uint32_t last_kept(sconce_sampler *s, uint32_t best) {
  const sconce_sampler_desc *d = &s->desc;
  const float *x = s->x;
  uint32_t n = 0, k = d->top_k && d->top_k < d->n_vocab ? d->top_k : d->n_vocab;
  double total = 0, sum = 0;
  float floor = floor_of(s, k, x[best], &total);
  for (uint32_t i = 0; i < d->n_vocab; i++)
    if (x[i] >= floor) s->heap[n++] = i;
  for (uint32_t i = n / 2; i-- > 0;) sift_down(x, s->heap, i, n);
  uint32_t most = k < n ? k : n, left = n;
  for (uint32_t i = 0; i < most && k < d->n_vocab; i++)
    total += (double)exp_of(x[pop(x, s->heap, &left)] - x[best]);
  uint32_t last = best;
  for (uint32_t i = 0; i < most; i++) {
    uint32_t id = k < d->n_vocab ? s->heap[n - 1 - i] : pop(x, s->heap, &left);
    float weight = exp_of(x[id] - x[best]);
    if (i > 0 && (weight < d->min_p || weight == 0)) break;
    last = id;
    sum += (double)weight;
    if (d->top_p < 1 && sum >= (double)d->top_p * total) break;
  }
  return last;
}

/* Ids upwards until their weights pass a share of the sum; `last` bounds who takes part. */
static uint32_t draw(sconce_sampler *s, uint32_t best, uint32_t last, uint64_t position) {
  double share = (double)(sconce_random(s->desc.seed, position) >> 8) / 16777216.0, sum = 0;
  uint32_t n = s->desc.n_vocab, chosen = best;
  for (uint32_t i = 0; i < n; i++)
    s->scratch[i] = better(s->x, last, i) ? 0.0f : exp_of(s->x[i] - s->x[best]);
  for (uint32_t i = 0; i < n; i++) sum += (double)s->scratch[i];
  double target = share * sum;
  sum = 0;
  for (uint32_t i = 0; i < n; i++) {
    if (s->scratch[i] == 0) continue;
    chosen = i;
    sum += (double)s->scratch[i];
    if (sum > target) break;
  }
  return chosen;
}

/* The token without any that better() puts behind it: a cut that keeps all. */
static uint32_t worst_of(const float *x, uint32_t n) {
  uint32_t worst = 0;
  for (uint32_t i = 1; i < n; i++)
    if (better(x, worst, i)) worst = i;
  return worst;
}

static uint32_t pick(sconce_sampler *s, uint32_t best, uint64_t position) {
  const sconce_sampler_desc *d = &s->desc;
  uint32_t n = d->n_vocab;
  if (d->temperature == 0 || d->top_k == 1) return best;
  for (uint32_t i = 0; i < n; i++) s->x[i] /= d->temperature;
  if (!isfinite(s->x[best])) return best; /* +inf, or the temperature made it so */
  bool cut = (d->top_k && d->top_k < n) || d->top_p < 1 || d->min_p > 0;
  uint32_t last = cut ? last_kept(s, best) : worst_of(s->x, n);
  return draw(s, best, last, position);
}

sconce_status sconce_sampler_choose(sconce_sampler *s, const float *logits, uint64_t position,
                                    const int32_t *history, size_t n_history, sconce_choice *out,
                                    sconce_error *err) {
  if (!s || !logits || !out)
    return fail(err, SCONCE_BAD_ARGUMENT, "sampler, logits or out is NULL");
  uint32_t n = s->desc.n_vocab;
  *out = (sconce_choice){.id = -1};
  for (uint32_t i = 0; i < n; i++) s->x[i] = isnan(logits[i]) ? -INFINITY : logits[i];
  apply_penalty(s, history, n_history);
  uint32_t best = best_of(s->x, n);
  if (s->x[best] == -INFINITY)
    return fail(err, SCONCE_BAD_ARGUMENT, "none of %u logits is a number above -inf", n);
  uint32_t chosen = pick(s, best, position);
  out->id = (int32_t)chosen;
  if (s->desc.logprobs) out->logprob = logprob_of(s, logits, chosen);
  return SCONCE_OK;
}
