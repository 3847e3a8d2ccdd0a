/* New tokens into a cache: a copy of words, whatever the dtype, unless 2-byte rows are odd. */
#include "attention.h"

#include "cache_append.wgsl.h"
#include "cache_append_halves.wgsl.h"
#include "cache_append_pair.wgsl.h"

#include <inttypes.h>

/* What decides: bytes of all that is copied and of all offsets, or'ed. */
struct problem {
  uint64_t bytes;
};
static bool quads(const void *problem) {
  return ((const struct problem *)problem)->bytes % 16 == 0;
}
static bool words(const void *problem) { return ((const struct problem *)problem)->bytes % 4 == 0; }

/* tile[0]: bytes of a thread. */
const struct kernel append_kernels[] = {
    {"quads", &cache_append_wgsl, "T=vec4<u32>", .fits = quads, .tile = {16}},
    {"words", &cache_append_wgsl, NULL, .fits = words, .tile = {4}},
    {"halves", &cache_append_halves_wgsl, NULL, .tile = {2}},
    {0},
};
const struct kernel append_pair_kernels[] = {
    {"quads", &cache_append_pair_wgsl, "T=vec4<u32>", .fits = quads, .tile = {16}},
    {"words", &cache_append_pair_wgsl, NULL, .fits = words, .tile = {4}},
    {0},
};

static uint32_t product(const struct tensor *t, uint32_t from) {
  uint32_t n = 1;
  for (uint32_t i = from; i < t->rank; i++) n *= t->dim_live[i];
  return n;
}

sconce_status append_emit(struct plan *p, const struct node *n, const struct append *a) {
  const struct tensor *x = tensor_at(p, a->x[0]), *cache = tensor_at(p, a->cache[0]);
  uint32_t size = (uint32_t)vk_dtype_size(x->dtype), at = x->rank - 3; /* the tokens' dim */
  uint64_t token = (uint64_t)product(x, at + 1) * size, bytes = tensor_nbytes(x);
  uint64_t batch = token * x->dim_live[at], stride = token * cache->dim_live[at];
  if (bytes == 0) return SCONCE_OK;
  struct problem problem = {a->start * token | batch | (bytes == batch ? 0 : stride)};
  bool pair = a->x[1] != NO_VALUE;
  if (pair && !words(&problem)) { /* odd rows: one after the other */
    TRY(append_emit(p, n,
                    &(struct append){{a->x[0], NO_VALUE}, {a->cache[0], NO_VALUE}, a->start}));
    return append_emit(p, n,
                       &(struct append){{a->x[1], NO_VALUE}, {a->cache[1], NO_VALUE}, a->start});
  }
  const struct kernel *row;
  TRY(choose(p, n, pair ? append_pair_kernels : append_kernels, x->dtype, &problem, &row));
  uint32_t unit = row->tile[0];
  struct cache_append_params u = {.n = (uint32_t)(bytes / unit),
                                  .batch = (uint32_t)(batch / unit),
                                  .stride = (uint32_t)(stride / unit),
                                  .start = (uint32_t)(a->start * token / unit)};
  uint64_t threads = u.n;
  if (row->wgsl == &cache_append_halves_wgsl) /* words from the first element to the last */
    threads = div_up((uint64_t)(u.n / u.batch - 1) * u.stride + u.batch + 1, 2);
  return dispatch(p, row, &u, div_up(threads, 64),
                  pair ? OPERANDS({a->x[0]}, {a->x[1]}, {a->cache[0]}, {a->cache[1]})
                       : OPERANDS({a->x[0]}, {a->cache[0]}));
}

/* ---- checks ---------------------------------------------------------------------------------- */

sconce_status check_rank(struct plan *p, const struct tensor *t, const char *what) {
  char text[120];
  if (!tensor_is_float(t))
    return fail(p->err, SCONCE_UNSUPPORTED, "%s: %s", what, tensor_text(t, text));
  if (t->rank != 3 && t->rank != 4)
    return fail(p->err, SCONCE_BAD_GRAPH, "%s: %s, expected rank 4 or 3", what,
                tensor_text(t, text));
  return SCONCE_OK;
}

sconce_status check_rows(struct plan *p, const struct tensor *x, const struct tensor *cache) {
  char a[120], b[120];
  bool same = x->dtype == cache->dtype && x->rank == cache->rank &&
              dim_of(x, HEADS) == dim_of(cache, HEADS) && dim_of(x, DIM) == dim_of(cache, DIM) &&
              (x->rank == 3 || x->dim_live[0] == cache->dim_live[0]);
  if (same) return SCONCE_OK;
  return fail(p->err, SCONCE_BAD_GRAPH, "%s for a cache of %s", tensor_text(x, a),
              tensor_text(cache, b));
}

sconce_status check_position(struct plan *p, int64_t start, uint32_t seq, uint32_t rows) {
  if (start >= 0 && start <= (int64_t)rows - seq) return SCONCE_OK;
  return fail(p->err, SCONCE_BAD_ARGUMENT, "%u tokens at position %" PRId64 " of a cache of %u",
              seq, start, rows);
}

/* ---- update_cache: [value, cache, start, out]; nobody reads out ------------------------------ */

static sconce_status read_update(struct plan *p, const struct node *n, const struct tensor *x[2],
                                 int64_t *start) {
  TRY(arg_tensors(p, n, 0, 2, x));
  TRY(check_rank(p, x[0], "new tokens"));
  TRY(check_rank(p, x[1], "cache"));
  TRY(check_rows(p, x[0], x[1]));
  return arg_int(p, n, 2, start);
}

sconce_status update_shape(struct plan *p, const struct node *n) {
  const struct tensor *x[2];
  int64_t start;
  TRY(read_update(p, n, x, &start));
  return check_position(p, start, dim_of(x[0], TOKENS), dim_of(x[1], TOKENS));
}

sconce_status update_emit(struct plan *p, const struct node *n) {
  const struct tensor *x[2];
  int64_t start;
  TRY(read_update(p, n, x, &start));
  return append_emit(
      p, n, &(struct append){{arg_id(n, 0), NO_VALUE}, {arg_id(n, 1), NO_VALUE}, (uint64_t)start});
}
