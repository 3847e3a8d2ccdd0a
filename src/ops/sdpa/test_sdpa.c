/* Attention over caches and by head, and cache updates, against plain loops in double. */
#include "op.h"

#include <float.h>

/* ---- the oracle ------------------------------------------------------------------------------ */

/* One row: q (dim), keys and values `stride` apart, scores that `allow` lets in. */
struct row {
  const double *q, *k, *v;
  uint32_t dim, keys;
  size_t stride;
  double scale;
  const double *mask; /* (keys), or NULL */
  size_t mask_stride;
};

static void attend(const struct row *r, double *out) {
  double *s = malloc((r->keys + 1) * sizeof *s), most = -INFINITY, sum = 0;
  for (uint32_t c = 0; c < r->keys; c++) {
    s[c] = 0;
    for (uint32_t d = 0; d < r->dim; d++) s[c] += r->q[d] * r->k[c * r->stride + d];
    s[c] = s[c] * r->scale + (r->mask ? r->mask[c * r->mask_stride] : 0);
    if (s[c] > most) most = s[c];
  }
  for (uint32_t d = 0; d < r->dim; d++) out[d] = 0;
  for (uint32_t c = 0; c < r->keys; c++) {
    if (s[c] == -INFINITY) continue;
    double w = exp(s[c] - most);
    sum += w;
    for (uint32_t d = 0; d < r->dim; d++) out[d] += w * r->v[c * r->stride + d];
  }
  for (uint32_t d = 0; d < r->dim; d++)
    out[d] = sum > 0 || r->keys == 0 ? out[d] / fmax(sum, DBL_MIN) : NAN;
  free(s);
}

/* ---- over a cache ---------------------------------------------------------------------------- */

struct spec {
  uint32_t heads, kv_heads, dim, rows, filled, seq_max;
  bool causal;
  double scale;         /* 0: Null */
  uint32_t calls[8][2]; /* tokens, position; ends with {0, 0} */
  const char *why;
};
static const struct spec specs[] = {
    {4,
     2,
     8,
     48,
     0,
     20,
     true,
     0,
     {{5, 0}, {1, 5}, {1, 6}, {4, 7}, {20, 11}, {2, 3}, {1, 5}},
     "grouped heads, a chunked prefill, a rewind"},
    {6, 2, 12, 20, 0, 9, true, 0.3, {{1, 0}, {9, 1}, {3, 10}}, "three heads a group, a scale"},
    {8, 1, 64, 90, 70, 17, true, 0, {{1, 70}, {2, 71}, {17, 73}}, "one head for all, two chunks"},
    {2, 2, 16, 40, 33, 5, false, 0, {{5, 33}, {1, 38}}, "not causal"},
    {2, 2, 6, 16, 0, 4, true, 0, {{4, 0}, {1, 4}, {2, 5}}, "heads of no whole quads"},
    {3, 1, 5, 70, 66, 3, true, 0, {{3, 66}, {1, 69}, {2, 3}}, "odd rows share words"},
    {2, 1, 96, 12, 3, 2, true, 0, {{2, 3}, {1, 5}}, "quads that do not fill the lanes"},
    {2, 1, 128, 80, 64, 6, true, 0, {{6, 64}, {1, 70}}, "128"},
    {2, 1, 256, 70, 63, 3, true, 0, {{3, 63}, {1, 66}}, "256"},
    {1, 1, 260, 9, 3, 2, true, 0, {{2, 3}, {1, 5}}, "a head that only the plain row takes"},
    {4, 1, 128, 90, 30, 20, true, 0, {{20, 30}, {3, 50}, {9, 53}}, "128, more than 64 rows"},
    {8, 2, 60, 700, 600, 30, true, 0, {{30, 600}, {4, 630}, {3, 634}}, "tiles of split keys"},
    {1,
     1,
     256,
     1010,
     1000,
     2,
     true,
     0,
     {{1, 1000}, {2, 1001}},
     "more turns than a thread may have"},
    {4,
     1,
     8,
     1400,
     1020,
     40,
     true,
     0,
     {{3, 1020}, {1, 1023}, {1, 1024}, {40, 1025}, {1, 1065}},
     "short chunks, then long ones"},
};
enum { SPECS = sizeof specs / sizeof *specs };

struct cached {
  struct op_test t;
  const struct spec *s;
  enum vk_dtype dtype;
  uint32_t q, k, v, start, out;
  double *cache[2]; /* what the device's caches must hold */
};

/* Rows that nobody has written are NaN: one that is read shows. */
static double *cache_values(const struct spec *s, enum vk_dtype dtype, uint64_t seed) {
  uint64_t row = (uint64_t)s->kv_heads * s->dim;
  double *values = test_values(dtype, s->rows * row, seed);
  for (uint64_t i = s->filled * row; i < s->rows * row; i++) values[i] = NAN;
  return values;
}

/* Rows of matrices multiply in f16. */
static bool is_fast(const char *force) { return force && strncmp(force, "matrix", 6) == 0; }

static void load(struct cached *c, const struct spec *s, enum vk_dtype dtype, const char *force) {
  sconce_error err = {0};
  *c = (struct cached){.s = s, .dtype = dtype};
  struct op_test *t = &c->t;
  op_begin(t);
  t->graph.caps.fast = is_fast(force);
  c->q = op_input(t, dtype, DIMS(1, s->seq_max, s->heads, s->dim));
  c->k = op_input(t, dtype, DIMS(1, s->seq_max, s->kv_heads, s->dim));
  c->v = op_input(t, dtype, DIMS(1, s->seq_max, s->kv_heads, s->dim));
  c->start = op_symint(t);
  c->out = op_output(t, dtype, DIMS(1, s->seq_max, s->heads, s->dim));
  uint32_t caches[2];
  for (uint64_t i = 0; i < 2; i++) {
    c->cache[i] = cache_values(s, dtype, 10 + i);
    caches[i] = op_constant(t, dtype, DIMS(1, s->rows, s->kv_heads, s->dim), c->cache[i]);
  }
  uint32_t scale = s->scale > 0 ? op_double(t, s->scale) : op_null(t);
  op_node(t, "sdpa_with_kv_cache.default",
          IDS(c->q, c->k, c->v, caches[0], caches[1], c->start, op_int(t, 1), op_null(t),
              op_int(t, 0), op_bool(t, s->causal), scale, c->out));
  CHECK_OK(op_load(t, force, &err), err);
}

static void unload(struct cached *c) {
  free(c->cache[0]);
  free(c->cache[1]);
  op_end(&c->t);
}

static void expect(const struct cached *c, const double *q, uint32_t seq, uint32_t start,
                   double *out) {
  const struct spec *s = c->s;
  size_t stride = (size_t)s->kv_heads * s->dim;
  for (uint32_t i = 0; i < seq; i++)
    for (uint32_t h = 0; h < s->heads; h++) {
      size_t at = ((size_t)i * s->heads + h) * s->dim, kv = h / (s->heads / s->kv_heads) * s->dim;
      attend(&(struct row){.q = q + at,
                           .k = c->cache[0] + kv,
                           .v = c->cache[1] + kv,
                           .dim = s->dim,
                           .keys = s->causal ? start + i + 1 : start + seq,
                           .stride = stride,
                           .scale = s->scale > 0 ? s->scale : 1 / sqrt(s->dim)},
             out + at);
    }
}

static void call(struct cached *c, uint32_t seq, uint32_t start, double loud, const char *what) {
  if (test_failed()) return;
  const struct spec *s = c->s;
  sconce_error err = {0};
  uint64_t row = (uint64_t)s->kv_heads * s->dim, n = (uint64_t)seq * s->heads * s->dim, got_n;
  double *q = test_values(c->dtype, n, 100 + start);
  for (uint64_t i = 0; i < n; i++) q[i] *= loud;
  double *x[2] = {test_values(c->dtype, seq * row, 200 + start),
                  test_values(c->dtype, seq * row, 300 + start)};
  for (int i = 0; i < 2; i++) memcpy(c->cache[i] + start * row, x[i], seq * row * sizeof(double));
  op_set(&c->t, c->q, DIMS(1, seq, s->heads, s->dim), q);
  op_set(&c->t, c->k, DIMS(1, seq, s->kv_heads, s->dim), x[0]);
  op_set(&c->t, c->v, DIMS(1, seq, s->kv_heads, s->dim), x[1]);
  op_set_symint(&c->t, c->start, start);
  CHECK_OK(op_run(&c->t, &err), err);
  double *want = calloc((size_t)n + 1, sizeof *want);
  expect(c, q, seq, start, want);
  const double *got = op_get(&c->t, c->out, &got_n);
  CHECK_EQ(got_n, n);
  double tolerance = c->dtype == VK_FLOAT16 || c->t.graph.caps.fast ? 2e-3 : 1e-5;
  if (!test_failed()) test_close(got, want, n, tolerance, tolerance, what);
  free(q);
  free(x[0]);
  free(x[1]);
  free(want);
}

static void run_spec(const struct spec *s, enum vk_dtype dtype, const char *force) {
  struct cached c;
  char what[200];
  snprintf(what, sizeof what, "%s, %s, %s", s->why, force ? force : "chosen", vk_dtype_name(dtype));
  load(&c, s, dtype, force);
  for (size_t i = 0; i < 8 && s->calls[i][0]; i++)
    call(&c, s->calls[i][0], s->calls[i][1], 1, what);
  unload(&c);
}

static void every_head_size_and_position(void) {
  for (size_t i = 0; i < SPECS; i++) {
    run_spec(&specs[i], VK_FLOAT32, NULL);
    run_spec(&specs[i], VK_FLOAT16, NULL);
  }
}

/* Rows of attention and of the merge behind it; a forced row serves what it fits. */
static void every_row_where_it_fits(void) {
  struct gpu *gpu = test_gpu();
  const struct op *op = op_find(text_of("sdpa_with_kv_cache.default"));
  REQUIRE(gpu && op);
  const struct caps caps = gpu_caps(gpu);
  for (int table = 0; table < 2; table++)
    for (const struct kernel *row = op->tables[table]; row->name && !test_failed(); row++)
      for (size_t i = 0; i < SPECS && kernel_runs(row, &caps); i++)
        run_spec(&specs[i], strstr(row->name, "f16") ? VK_FLOAT16 : VK_FLOAT32, row->name);
}

/* Live shapes in any order give the same bytes as a fresh graph. */
static void a_used_graph_equals_a_fresh_one(void) {
  static const struct spec s = {4, 2, 8, 40, 20, 9, true, 0, {{0}}, "fresh"};
  for (int half = 0; half < 2; half++) {
    struct cached used, fresh;
    load(&used, &s, half ? VK_FLOAT16 : VK_FLOAT32, NULL);
    call(&used, 9, 20, 1, "most tokens");
    call(&used, 0, 29, 1, "none");
    call(&used, 1, 29, 1, "one");
    call(&used, 9, 20, 1, "most tokens again");
    load(&fresh, &s, half ? VK_FLOAT16 : VK_FLOAT32, NULL);
    call(&fresh, 9, 20, 1, "fresh");
    uint64_t n;
    const double *a = op_get(&used.t, used.out, &n), *b = op_get(&fresh.t, fresh.out, &n);
    CHECK(memcmp(a, b, (size_t)n * sizeof *a) == 0);
    unload(&used);
    unload(&fresh);
  }
}

static void loud_logits_do_not_overflow(void) {
  static const struct spec s = {2,     1, 16, 80, 70, 6, true, 40, /* scores to about 200 */ {{0}},
                                "loud"};
  static const char *const force[] = {"split_f32", "tile64_32_f32", "plain_f32"};
  for (size_t f = 0; f < 3; f++) {
    struct cached c;
    load(&c, &s, VK_FLOAT32, force[f]);
    call(&c, 6, 70, 1, force[f]);
    unload(&c);
  }
}

/* A mask that grows along the keys lets every tile outweigh those before it. */
static void run_growing(enum vk_dtype dtype, const char *force) {
  enum { SEQ = 40, KEYS = 150, D = 64 };
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  t.graph.caps.fast = is_fast(force);
  uint32_t q = op_input(&t, dtype, DIMS(1, 1, SEQ, D)),
           k = op_input(&t, dtype, DIMS(1, 1, KEYS, D));
  uint32_t v = op_input(&t, dtype, DIMS(1, 1, KEYS, D)), m = op_input(&t, dtype, DIMS(1, KEYS));
  uint32_t out = op_output(&t, dtype, DIMS(1, 1, SEQ, D));
  op_node(&t, "et_vk.sdpa.default", IDS(q, k, v, m, op_null(&t), out));
  CHECK_OK(op_load(&t, force, &err), err);
  double *x[3], mask[KEYS], want[SEQ * D];
  for (uint64_t i = 0; i < 3; i++) x[i] = test_values(dtype, (i ? KEYS : SEQ) * D, 60 + i);
  for (uint32_t i = 0; i < KEYS; i++) mask[i] = i / 4 * 1.0 - 20; /* 8 a tile of 32, 11.5 in bits */
  for (uint32_t i = 0; i < SEQ; i++)
    attend(&(struct row){x[0] + i * D, x[1], x[2], D, KEYS, D, 0.125, mask, 1}, want + i * D);
  op_set(&t, q, DIMS(1, 1, SEQ, D), x[0]);
  op_set(&t, k, DIMS(1, 1, KEYS, D), x[1]);
  op_set(&t, v, DIMS(1, 1, KEYS, D), x[2]);
  op_set(&t, m, DIMS(1, KEYS), mask);
  CHECK_OK(op_run(&t, &err), err);
  uint64_t n;
  const double *got = op_get(&t, out, &n);
  const double tolerance = dtype == VK_FLOAT16 || t.graph.caps.fast ? 2e-3 : 1e-5;
  if (!test_failed()) test_close(got, want, SEQ * D, tolerance, tolerance, force);
  for (int i = 0; i < 3; i++) free(x[i]);
  op_end(&t);
}

static void results_fade_when_maxima_grow(void) {
  struct gpu *gpu = test_gpu();
  const struct op *op = op_find(text_of("et_vk.sdpa.default"));
  REQUIRE(gpu && op);
  const struct caps caps = gpu_caps(gpu);
  for (const struct kernel *row = op->tables[0]; row->name && !test_failed(); row++)
    if (kernel_runs(row, &caps))
      run_growing(row->dtypes == OF_F16 ? VK_FLOAT16 : VK_FLOAT32, row->name);
}

static void positions_outside_the_cache_are_refused(void) {
  static const struct spec s = {2, 1, 4, 10, 10, 4, true, 0, {{0}}, "bounds"};
  sconce_error err = {0};
  struct cached c;
  load(&c, &s, VK_FLOAT32, NULL);
  call(&c, 4, 6, 1, "the last rows");
  op_set_symint(&c.t, c.start, 7);
  CHECK_FAILS(op_run(&c.t, &err), SCONCE_BAD_ARGUMENT, err,
              "4 tokens at position 7 of a cache of 10");
  op_set_symint(&c.t, c.start, -1);
  CHECK_FAILS(op_run(&c.t, &err), SCONCE_BAD_ARGUMENT, err, "4 tokens at position -1");
  call(&c, 2, 3, 1, "still usable");
  unload(&c);
}

/* ---- a mask over a cache, without an append -------------------------------------------------- */

/* Where a mask is set, it alone decides which rows of the cache count. */
static void a_mask_over_a_cache(void) {
  enum { HEADS_Q = 4, KV = 2, D = 8, ROWS = 70, SEQ = 3 };
  static const char *const force[] = {"split", "tile64_32", "plain"};
  for (size_t f = 0; f < 6; f++) {
    enum vk_dtype dtype = f < 3 ? VK_FLOAT32 : VK_FLOAT16;
    char name[40];
    snprintf(name, sizeof name, "%s_%s", force[f % 3], f < 3 ? "f32" : "f16");
    struct op_test t;
    sconce_error err = {0};
    op_begin(&t);
    uint32_t q = op_input(&t, dtype, DIMS(SEQ, HEADS_Q, D));
    uint32_t k = op_input(&t, dtype, DIMS(ROWS, KV, D)), v = op_input(&t, dtype, DIMS(ROWS, KV, D));
    uint32_t m = op_input(&t, dtype, DIMS(SEQ, ROWS)),
             out = op_output(&t, dtype, DIMS(SEQ, HEADS_Q, D));
    op_node(
        &t, "llama.custom_sdpa.default",
        IDS(q, k, v, op_double(&t, 2.0), m, op_double(&t, 0), op_int(&t, 0), op_int(&t, 1), out));
    CHECK_OK(op_load(&t, name, &err), err);
    double *vq = test_values(dtype, SEQ * HEADS_Q * D, 1),
           *vk = test_values(dtype, ROWS * KV * D, 2);
    double *vv = test_values(dtype, ROWS * KV * D, 3), *vm = test_values(dtype, SEQ * ROWS, 4);
    for (int i = 0; i < SEQ * ROWS; i += 3) vm[i] = -INFINITY;
    for (int i = ROWS; i < 2 * ROWS; i++) vm[i] = -INFINITY; /* a query that sees nothing: NaN */
    double want[SEQ * HEADS_Q * D];
    for (int i = 0; i < SEQ * HEADS_Q; i++)
      attend(&(struct row){vq + i * D, vk + i % HEADS_Q / 2 * D, vv + i % HEADS_Q / 2 * D, D, ROWS,
                           KV * D, 1, vm + i / HEADS_Q * ROWS, 1},
             want + i * D);
    if (!test_failed()) {
      op_set(&t, q, DIMS(SEQ, HEADS_Q, D), vq);
      op_set(&t, k, DIMS(ROWS, KV, D), vk);
      op_set(&t, v, DIMS(ROWS, KV, D), vv);
      op_set(&t, m, DIMS(SEQ, ROWS), vm);
      CHECK_OK(op_run(&t, &err), err);
      uint64_t n;
      double tolerance = dtype == VK_FLOAT16 ? 2e-3 : 1e-5;
      test_close(op_get(&t, out, &n), want, SEQ * HEADS_Q * D, tolerance, tolerance, name);
    }
    free(vq);
    free(vk);
    free(vv);
    free(vm);
    op_end(&t);
  }
}

/* ---- all rows are keys ----------------------------------------------------------------------- */

/* Heads of 256 and of 512 that share keys, a mask, and a position behind the rows there are. */
static void run_whole(uint32_t dim, enum vk_dtype dtype, const char *force) {
  enum { HEADS_Q = 8, ROWS = 90, SEQ = 20 };
  static const uint32_t lives[][2] = {{SEQ, ROWS}, {1, 70}, {3, 1}, {0, 5}, {2, ROWS}};
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t q = op_input(&t, dtype, DIMS(1, SEQ, HEADS_Q, dim));
  uint32_t k = op_input(&t, dtype, DIMS(1, ROWS, 1, dim)),
           v = op_input(&t, dtype, DIMS(1, ROWS, 1, dim));
  uint32_t m = op_input(&t, dtype, DIMS(SEQ, ROWS)), start = op_symint(&t);
  uint32_t out = op_output(&t, dtype, DIMS(1, SEQ, HEADS_Q, dim));
  op_node(&t, "et_vk.gemma4_sdpa.default",
          IDS(q, k, v, start, m, op_double(&t, 0), op_bool(&t, false), op_double(&t, 1), out));
  CHECK_OK(op_load(&t, force, &err), err);
  for (int i = 0; i < 5 && !test_failed(); i++) {
    const uint32_t seq = lives[i][0], keys = lives[i][1];
    double *vq = test_values(dtype, (uint64_t)seq * HEADS_Q * dim, 1);
    double *vk = test_values(dtype, (uint64_t)keys * dim, 2),
           *vv = test_values(dtype, (uint64_t)keys * dim, 3);
    double *vm = test_values(dtype, (uint64_t)seq * keys, 4);
    double *want = calloc((size_t)seq * HEADS_Q * dim + 1, sizeof *want);
    for (uint32_t e = 0; e < seq * HEADS_Q * dim; e++) vq[e] = round(vq[e] * 32) / 256;
    for (uint32_t e = 0; e < seq * keys; e++)
      if (e % keys && e % 3 == 0) vm[e] = -INFINITY;
    for (uint32_t r = 0; r < seq * HEADS_Q; r++)
      attend(&(struct row){vq + (size_t)r * dim, vk, vv, dim, keys, dim, 1,
                           vm + (size_t)(r / HEADS_Q) * keys, 1},
             want + (size_t)r * dim);
    op_set(&t, q, DIMS(1, seq, HEADS_Q, dim), vq);
    op_set(&t, k, DIMS(1, keys, 1, dim), vk);
    op_set(&t, v, DIMS(1, keys, 1, dim), vv);
    op_set(&t, m, DIMS(seq, keys), vm);
    op_set_symint(&t, start, 1000);
    CHECK_OK(op_run(&t, &err), err);
    uint64_t n;
    const double tolerance = dtype == VK_FLOAT16 ? 2e-3 : 1e-5;
    const double *got = op_get(&t, out, &n);
    CHECK_EQ(n, seq * HEADS_Q * dim);
    test_close(got, want, n, tolerance, tolerance, force ? force : "the table's choice");
    free(vq);
    free(vk);
    free(vv);
    free(vm);
    free(want);
  }
  op_end(&t);
}

static void all_rows_are_keys(void) {
  static const char *const names[] = {NULL, "split512_f32", "tile512_f32", "plain_f32"};
  static const char *const halves[] = {NULL, "split512_f16", "tile512_f16", "plain_f16"};
  for (int i = 0; i < 4; i++) {
    run_whole(512, VK_FLOAT32, names[i]);
    run_whole(512, VK_FLOAT16, halves[i]);
  }
  run_whole(256, VK_FLOAT32, NULL);
}

/* ---- by head --------------------------------------------------------------------------------- */

static const struct {
  uint32_t batch, heads, kv_heads, seq, keys, dim;
  uint32_t mask[4]; /* {0}: none */
  const char *why;
} by_head[] = {
    {1, 2, 2, 5, 9, 8, {0}, "no mask, other lengths"},
    {2, 4, 2, 3, 7, 4, {2, 4, 3, 7}, "a whole mask, grouped heads"},
    {2, 3, 3, 6, 6, 16, {1, 1, 6, 6}, "one mask for all"},
    {2, 2, 2, 20, 40, 8, {2, 1, 1, 40}, "padding by batch"},
    {1, 2, 1, 70, 33, 12, {1, 2, 70, 1}, "a bias by query"},
    {2, 2, 2, 3, 5, 3, {2, 2, 3, 5}, "odd heads"},
};

static void run_by_head(size_t i, enum vk_dtype dtype, const char *force, uint32_t seq,
                        uint32_t keys, struct op_test *t, const uint32_t ids[5]) {
  uint32_t batch = by_head[i].batch, heads = by_head[i].heads, kv = by_head[i].kv_heads,
           dim = by_head[i].dim;
  uint32_t md[4];
  memcpy(md, by_head[i].mask, sizeof md);
  if (md[2] > 1) md[2] = seq;
  if (md[3] > 1) md[3] = keys;
  uint64_t n = (uint64_t)batch * heads * seq * dim, got_n;
  uint64_t nm = (uint64_t)md[0] * md[1] * md[2] * md[3];
  double *q = test_values(dtype, n, 1),
         *k = test_values(dtype, (uint64_t)batch * kv * keys * dim, 2),
         *v = test_values(dtype, (uint64_t)batch * kv * keys * dim, 3),
         *m = test_values(dtype, nm, 4);
  for (uint64_t e = 1; e < nm; e += 4) m[e] = -INFINITY;
  op_set(t, ids[0], DIMS(batch, heads, seq, dim), q);
  op_set(t, ids[1], DIMS(batch, kv, keys, dim), k);
  op_set(t, ids[2], DIMS(batch, kv, keys, dim), v);
  if (md[0]) op_set(t, ids[3], md, 4, m);
  sconce_error err = {0};
  CHECK_OK(op_run(t, &err), err);
  double *want = calloc((size_t)n + 1, sizeof *want);
  for (uint64_t r = 0; r < (uint64_t)batch * heads * seq; r++) {
    uint64_t b = r / seq / heads, h = r / seq % heads, s = r % seq;
    uint64_t base = (b * kv + h / (heads / kv)) * keys * dim;
    uint64_t at = ((md[0] > 1 ? b : 0) * md[1] + (md[1] > 1 ? h : 0)) * md[2] + (md[2] > 1 ? s : 0);
    attend(&(struct row){q + r * dim, k + base, v + base, dim, keys, dim, 1 / sqrt(dim),
                         md[0] ? m + at * md[3] : NULL, md[3] > 1},
           want + r * dim);
  }
  const double *got = op_get(t, ids[4], &got_n);
  CHECK_EQ(got_n, n);
  double tolerance = dtype == VK_FLOAT16 ? 2e-3 : 1e-5;
  if (!test_failed())
    test_close(got, want, n, tolerance, tolerance, force ? force : by_head[i].why);
  free(q);
  free(k);
  free(v);
  free(m);
  free(want);
}

static void by_head_case(size_t i, enum vk_dtype dtype, const char *force) {
  uint32_t batch = by_head[i].batch, seq = by_head[i].seq, keys = by_head[i].keys,
           dim = by_head[i].dim;
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t ids[5] = {op_input(&t, dtype, DIMS(batch, by_head[i].heads, seq, dim)),
                     op_input(&t, dtype, DIMS(batch, by_head[i].kv_heads, keys, dim)),
                     op_input(&t, dtype, DIMS(batch, by_head[i].kv_heads, keys, dim)),
                     by_head[i].mask[0] ? op_input(&t, dtype, by_head[i].mask, 4) : op_null(&t),
                     op_output(&t, dtype, DIMS(batch, by_head[i].heads, seq, dim))};
  op_node(&t, "et_vk.sdpa.default", IDS(ids[0], ids[1], ids[2], ids[3], op_null(&t), ids[4]));
  CHECK_OK(op_load(&t, force, &err), err);
  const uint32_t live[][2] = {
      {seq, keys}, {1, keys}, {seq, 1}, {0, keys}, {(seq + 1) / 2, keys / 2}, {seq, keys}};
  for (size_t k = 0; k < sizeof live / sizeof *live && !test_failed(); k++)
    run_by_head(i, dtype, force, live[k][0], live[k][1], &t, ids);
  op_end(&t);
}

static void by_head_with_masks(void) {
  static const char *const force[] = {NULL, "split", "tile64_32", "plain"};
  for (size_t i = 0; i < sizeof by_head / sizeof *by_head; i++)
    for (size_t f = 0; f < 8; f++) {
      char name[40];
      snprintf(name, sizeof name, "%s_%s", force[f % 4] ? force[f % 4] : "", f < 4 ? "f32" : "f16");
      by_head_case(i, f < 4 ? VK_FLOAT32 : VK_FLOAT16, force[f % 4] ? name : NULL);
    }
}

/* Strides by head and by batch are two: a mask that has dims around one that it repeats along. */
static void masks_between_dims(void) {
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  const uint32_t q = op_input(&t, VK_FLOAT32, DIMS(2, 3, 2, 4, 8)),
                 m = op_input(&t, VK_FLOAT32, DIMS(2, 1, 2, 4, 4));
  op_node(&t, "et_vk.sdpa.default",
          IDS(q, q, q, m, op_null(&t), op_output(&t, VK_FLOAT32, DIMS(2, 3, 2, 4, 8))));
  CHECK_FAILS(op_try(&t, &err), SCONCE_UNSUPPORTED, err,
              "the mask float32 [2, 1, 2, 4, 4] repeats along dims between others");
  op_end(&t);
}

/* Live heads may be none: of nothing comes nothing. */
static void no_heads(void) {
  struct op_test t;
  sconce_error err = {0};
  uint64_t n;
  op_begin(&t);
  const uint32_t x = op_input(&t, VK_FLOAT32, DIMS(1, 2, 3, 4)),
                 y = op_output(&t, VK_FLOAT32, DIMS(1, 2, 3, 4));
  op_node(&t, "et_vk.sdpa.default", IDS(x, x, x, op_null(&t), op_null(&t), y));
  CHECK_OK(op_load(&t, NULL, &err), err);
  static const uint32_t lives[] = {2, 1, 0};
  for (int i = 0; i < 3 && !test_failed(); i++) {
    const uint32_t heads = lives[i];
    const double ones[24] = {1, 1, 1, 1};
    op_set(&t, x, DIMS(1, heads, 3, 4), ones);
    CHECK_OK(op_run(&t, &err), err);
    op_get(&t, y, &n);
    CHECK_EQ(n, heads * 12);
  }
  op_end(&t);
}

/* ---- update_cache ---------------------------------------------------------------------------- */

static const struct {
  uint32_t batch, rows, heads, dim;
  const char *why;
} updates[] = {
    {1, 12, 2, 4, "quads"},
    {1, 12, 1, 3, "odd rows"},
    {2, 12, 2, 6, "a batch, words"},
    {2, 11, 1, 3, "a batch that begins inside a word"},
};

/* The cache is an input and an output; the position an Int, a Double or live. */
static void run_update(size_t i, enum vk_dtype dtype, int kind) {
  static const uint32_t live[][2] = {{4, 3}, {1, 3}, {0, 3}, {2, 5}, {4, 3}};
  uint32_t batch = updates[i].batch, rows = updates[i].rows, heads = updates[i].heads,
           dim = updates[i].dim;
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t x = op_input(&t, dtype, DIMS(batch, 4, heads, dim));
  uint32_t cache = op_input(&t, dtype, DIMS(batch, rows, heads, dim));
  t.graph.values[cache].tensor.output = true;
  t.outputs[t.graph.n_outputs++] = cache;
  uint32_t start = kind == 0 ? op_symint(&t) : kind == 1 ? op_int(&t, 3) : op_double(&t, 3);
  op_node(&t, "update_cache.default", IDS(x, cache, start, op_tensor(&t, dtype, DIMS(1))));
  CHECK_OK(op_load(&t, NULL, &err), err);
  uint64_t row = (uint64_t)heads * dim, n = batch * rows * row, got_n;
  for (size_t k = 0; k < sizeof live / sizeof *live && !test_failed(); k++) {
    uint32_t seq = live[k][0], at = kind == 0 ? live[k][1] : 3;
    double *vc = test_values(dtype, n, 9), *vx = test_values(dtype, batch * seq * row, k);
    op_set(&t, x, DIMS(batch, seq, heads, dim), vx);
    op_set(&t, cache, DIMS(batch, rows, heads, dim), vc);
    if (kind == 0) op_set_symint(&t, start, at);
    CHECK_OK(op_run(&t, &err), err);
    for (uint32_t b = 0; b < batch; b++)
      memcpy(vc + (b * rows + at) * row, vx + b * seq * row, seq * row * sizeof *vc);
    test_close(op_get(&t, cache, &got_n), vc, n, 0, 0, updates[i].why);
    free(vc);
    free(vx);
  }
  op_end(&t);
}

static void updates_write_their_rows_only(void) {
  for (size_t i = 0; i < sizeof updates / sizeof *updates; i++)
    for (int kind = 0; kind < 3; kind++) {
      run_update(i, VK_FLOAT32, kind);
      run_update(i, VK_FLOAT16, kind);
    }
}

/* ---- errors ---------------------------------------------------------------------------------- */

/* clang-format off: one row a line */
static const struct {
  uint32_t q[4], k[4], cache[4];
  enum vk_dtype dtype, caches;
  bool mask;
  double dropout;
  sconce_status status;
  const char *says;
} bad[] = {
    {{1, 2, 4, 8},
     {1, 2, 3, 8},
     {1, 9, 3, 8},
     VK_FLOAT32,
     VK_FLOAT32,
     0,
     0,
     SCONCE_BAD_GRAPH,
     "float32 [1, 2, 4, 8] over a cache of float32 [1, 9, 3, 8]"},
    {{1, 2, 4, 8},
     {1, 2, 2, 8},
     {1, 9, 2, 4},
     VK_FLOAT32,
     VK_FLOAT32,
     0,
     0,
     SCONCE_BAD_GRAPH,
     "over a cache of"},
    {{1, 2, 4, 8},
     {1, 3, 2, 8},
     {1, 9, 2, 8},
     VK_FLOAT32,
     VK_FLOAT32,
     0,
     0,
     SCONCE_BAD_GRAPH,
     "2 queries with 3 new tokens"},
    {{1, 2, 4, 8},
     {1, 2, 2, 8},
     {1, 9, 2, 8},
     VK_FLOAT32,
     VK_FLOAT16,
     0,
     0,
     SCONCE_BAD_GRAPH,
     "over a cache of float16"},
    {{1, 2, 4, 8},
     {1, 2, 2, 8},
     {1, 9, 2, 8},
     VK_INT32,
     VK_INT32,
     0,
     0,
     SCONCE_UNSUPPORTED,
     "queries: int32"},
    {{2, 2, 4, 8},
     {2, 2, 2, 8},
     {2, 9, 2, 8},
     VK_FLOAT32,
     VK_FLOAT32,
     0,
     0,
     SCONCE_UNSUPPORTED,
     "a batch is not supported"},
    {{1, 2, 4, 8},
     {1, 2, 2, 8},
     {1, 9, 2, 8},
     VK_FLOAT32,
     VK_FLOAT32,
     0,
     0.5,
     SCONCE_UNSUPPORTED,
     "a dropout of 0.5"},
    {{1, 2, 4, 8},
     {1, 2, 2, 8},
     {1, 9, 2, 8},
     VK_FLOAT32,
     VK_FLOAT32,
     1,
     0,
     SCONCE_BAD_GRAPH,
     "a mask and causal attention together"},
};
/* clang-format on */

static void bad_arguments_are_refused(void) {
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    struct op_test t;
    sconce_error err = {0};
    op_begin(&t);
    uint32_t q = op_input(&t, bad[i].dtype, bad[i].q, 4),
             k = op_input(&t, bad[i].dtype, bad[i].k, 4);
    uint32_t kc = op_input(&t, bad[i].caches, bad[i].cache, 4),
             vc = op_input(&t, bad[i].caches, bad[i].cache, 4);
    uint32_t mask = bad[i].mask ? op_input(&t, bad[i].dtype, DIMS(2, 9)) : op_null(&t);
    uint32_t out = op_output(&t, bad[i].dtype, bad[i].q, 4);
    op_node(&t, "llama.sdpa_with_kv_cache.default",
            IDS(q, k, k, kc, vc, op_int(&t, 0), op_int(&t, 1), mask, op_double(&t, bad[i].dropout),
                op_bool(&t, true), op_null(&t), out));
    CHECK_FAILS(op_try(&t, &err), bad[i].status, err, bad[i].says);
    op_end(&t);
  }
}

const struct test suite_sdpa[] = {TEST(every_head_size_and_position),
                                  TEST(every_row_where_it_fits),
                                  TEST(a_used_graph_equals_a_fresh_one),
                                  TEST(results_fade_when_maxima_grow),
                                  TEST(loud_logits_do_not_overflow),
                                  TEST(positions_outside_the_cache_are_refused),
                                  TEST(a_mask_over_a_cache),
                                  TEST(by_head_with_masks),
                                  TEST(no_heads),
                                  TEST(masks_between_dims),
                                  TEST(updates_write_their_rows_only),
                                  TEST(bad_arguments_are_refused),
                                  TEST(all_rows_are_keys),
                                  {0}};
