/* One new token through a rotation and attention over caches, fused and as the nodes came: output
 * and caches, against each other and against plain loops in double. */
#include "op.h"

struct spec {
  uint32_t heads, kv_heads, dim, rotary; /* rotary 0: pairs, else columns of the tables (hf) */
  const char *why;
};
static const struct spec specs[] = {
    {2, 2, 8, 0, "a head each, small"},
    {3, 1, 8, 8, "three a group"},
    {8, 2, 48, 0, "four a group, 48"},
    {6, 2, 48, 16, "three a group, a part of 48 turns"},
    {8, 1, 64, 0, "eight a group, 64"},
    {4, 4, 64, 64, "a head each, 64, hf"},
    {4, 1, 64, 24, "a part of 64 turns"},
    {8, 2, 128, 0, "128"},
    {3, 1, 128, 128, "128, hf"},
    {4, 1, 256, 0, "256"},
    {2, 1, 256, 64, "a part of 256 turns"},
    {5, 1, 12, 0, "a group that fills no set of four"},
};
enum { SPECS = sizeof specs / sizeof *specs };

/* The fused form of these must not run, whatever the pass makes of them. */
static const struct spec odd[] = {
    {2, 1, 6, 0, "heads of no whole quads"},
    {2, 1, 16, 12, "half the columns are no whole quads"},
    {1, 1, 260, 0, "heads of more than 256"},
    {0, 1, 64, 0, "no heads"},
};

enum { ROWS = 410, SEQ = 7 };
/* Tokens and position: a prefill, then steps; the caches are filled in between by hand. */
static const uint32_t calls[][2] = {{1, 0},   {1, 1},   {7, 0},   {1, 7},   {3, 60},  {1, 63},
                                    {1, 127}, {1, 128}, {1, 129}, {0, 130}, {1, 191}, {1, 192},
                                    {2, 298}, {1, 300}, {1, 383}, {1, 384}, {1, 128}, {1, 409}};
enum { CALLS = sizeof calls / sizeof *calls };

struct model {
  struct op_test t;
  const struct spec *s;
  enum vk_dtype dtype;
  bool views;
  uint32_t q, k, v, cos, sin, start, out;
};

static double *table_values(const struct spec *s, enum vk_dtype dtype, bool sine) {
  const uint32_t width = s->rotary ? s->rotary : s->dim / 2;
  double *values = malloc((size_t)ROWS * width * sizeof *values);
  uint64_t seed = 77;
  for (uint32_t i = 0; i < ROWS * width; i++) {
    double angle = 3 * (double)test_random_float(&seed);
    values[i] = sine ? sin(angle) : cos(angle);
  }
  void *rounded = malloc((size_t)ROWS * width * 4);
  test_to_dtype(dtype, values, (uint64_t)ROWS * width, rounded);
  test_from_dtype(dtype, rounded, (uint64_t)ROWS * width, values);
  free(rounded);
  return values;
}

/* Rows from `stale` on are no numbers: what a cache held before must not show. */
static double *cache_values(const struct spec *s, enum vk_dtype dtype, uint64_t seed,
                            uint32_t stale) {
  const uint64_t row = (uint64_t)s->kv_heads * s->dim;
  double *values = test_values(dtype, ROWS * row, seed);
  for (uint64_t i = stale * row; i < ROWS * row; i++) values[i] = NAN;
  return values;
}

static uint32_t constant(struct model *b, double *values, const uint32_t *dims, uint32_t rank) {
  uint32_t id = op_constant(&b->t, b->dtype, dims, rank, values);
  free(values);
  return id;
}

/* Pairs take the rows of the tables that the tokens need, hf whole tables and a position. */
static void add_rotation(struct model *b, uint32_t results) {
  struct op_test *t = &b->t;
  const struct spec *s = b->s;
  if (s->rotary) {
    uint32_t cosine = constant(b, table_values(s, b->dtype, false), DIMS(ROWS, s->rotary));
    uint32_t sine = constant(b, table_values(s, b->dtype, true), DIMS(ROWS, s->rotary));
    op_node(t, "et_vk.apply_rotary_emb_hf.default",
            IDS(b->q, b->k, cosine, sine, b->start, results));
  } else {
    b->cos = op_input(t, b->dtype, DIMS(SEQ, s->dim / 2));
    b->sin = op_input(t, b->dtype, DIMS(SEQ, s->dim / 2));
    op_node(t, "et_vk.apply_rotary_emb.default", IDS(b->q, b->k, b->cos, b->sin, results));
  }
}

static uint32_t viewed_again(struct model *b, uint32_t x, uint32_t heads) {
  if (!b->views) return x;
  uint32_t flat = op_tensor(&b->t, b->dtype, DIMS(SEQ * heads * b->s->dim)),
           y = op_tensor(&b->t, b->dtype, DIMS(1, SEQ, heads, b->s->dim));
  op_node(&b->t, "aten.view_copy.default", IDS(x, op_ints(&b->t, INTS(-1)), flat));
  op_node(&b->t, "aten.view_copy.default",
          IDS(flat, op_ints(&b->t, INTS(1, -1, heads, b->s->dim)), y));
  return y;
}

static void load_stale(struct model *b, const struct spec *s, enum vk_dtype dtype,
                       const char *force, const char *off, bool views, uint32_t stale) {
  sconce_error err = {0};
  *b = (struct model){.s = s, .dtype = dtype, .views = views};
  struct op_test *t = &b->t;
  op_begin(t);
  b->q = op_input(t, dtype, DIMS(1, SEQ, s->heads, s->dim));
  b->k = op_input(t, dtype, DIMS(1, SEQ, s->kv_heads, s->dim));
  b->v = op_input(t, dtype, DIMS(1, SEQ, s->kv_heads, s->dim));
  b->start = op_symint(t);
  uint32_t turned[2] = {op_tensor(t, dtype, DIMS(1, SEQ, s->heads, s->dim)),
                        op_tensor(t, dtype, DIMS(1, SEQ, s->kv_heads, s->dim))};
  add_rotation(b, op_list(t, turned, 2));
  turned[0] = viewed_again(b, turned[0], s->heads);
  turned[1] = viewed_again(b, turned[1], s->kv_heads);
  b->out = op_output(t, dtype, DIMS(1, SEQ, s->heads, s->dim));
  uint32_t caches[2];
  for (uint64_t i = 0; i < 2; i++)
    caches[i] =
        constant(b, cache_values(s, dtype, 10 + i, stale), DIMS(1, ROWS, s->kv_heads, s->dim));
  op_node(t, views ? "llama.sdpa_with_kv_cache.default" : "sdpa_with_kv_cache.default",
          IDS(turned[0], turned[1], b->v, caches[0], caches[1], b->start, op_int(t, 1), op_null(t),
              op_int(t, 0), op_bool(t, true), op_null(t), b->out));
  t->graph.passes_off = off;
  CHECK_OK(op_load(t, force, &err), err);
}

static void load(struct model *b, const struct spec *s, enum vk_dtype dtype, const char *force,
                 const char *off, bool views) {
  load_stale(b, s, dtype, force, off, views, ROWS);
}

static void set_table(struct model *b, uint32_t id, bool sine, uint32_t seq, uint32_t start) {
  double *values = table_values(b->s, b->dtype, sine);
  op_set(&b->t, id, DIMS(seq, b->s->dim / 2), values + (size_t)start * b->s->dim / 2);
  free(values);
}

static void set_values(struct model *b, uint32_t id, uint32_t seq, uint32_t heads, uint64_t seed) {
  double *values = test_values(b->dtype, (uint64_t)seq * heads * b->s->dim, seed);
  op_set(&b->t, id, DIMS(1, seq, heads, b->s->dim), values);
  free(values);
}

static void call(struct model *b, uint32_t seq, uint32_t start) {
  sconce_error err = {0};
  set_values(b, b->q, seq, b->s->heads, 100 + start);
  set_values(b, b->k, seq, b->s->kv_heads, 500 + start);
  set_values(b, b->v, seq, b->s->kv_heads, 900 + start);
  if (!b->s->rotary) {
    set_table(b, b->cos, false, seq, start);
    set_table(b, b->sin, true, seq, start);
  }
  op_set_symint(&b->t, b->start, start);
  CHECK_OK(op_run(&b->t, &err), err);
}

static bool steps(const struct model *b, const char **row) {
  for (uint32_t i = 0; i < b->t.graph.n_nodes; i++)
    for (uint32_t k = 0; k < b->t.graph.nodes[i].n_records; k++) {
      const struct kernel *kernel = b->t.graph.nodes[i].records[k].row;
      if (!strcmp(kernel->wgsl->name, "attn_step")) return *row = kernel->name, true;
    }
  return false;
}

/* ---- fused against not fused ----------------------------------------------------------------- */

static double *state_of(struct model *b, uint64_t *n) {
  sconce_error err = {0};
  const uint64_t size = exec_state_size(&b->t.exec);
  uint8_t *bytes = malloc((size_t)size + 1);
  *n = size / vk_dtype_size(b->dtype);
  double *values = calloc((size_t)*n + 1, sizeof *values);
  CHECK_OK(exec_get_state(&b->t.exec, bytes, &err), err);
  test_from_dtype(b->dtype, bytes, *n, values);
  free(bytes);
  return values;
}

static void compare(struct model *a, struct model *b, bool with_state, const char *what) {
  uint64_t n, n_b;
  const double half = a->dtype == VK_FLOAT16;
  const double tolerance = half != 0 ? 3e-3 : 2e-5;
  const double *x = op_get(&a->t, a->out, &n), *y = op_get(&b->t, b->out, &n_b);
  CHECK_EQ(n, n_b);
  test_close(x, y, n, tolerance, tolerance, what);
  if (!with_state) return;
  double *p = state_of(a, &n), *q = state_of(b, &n_b);
  CHECK_EQ(n, n_b);
  /* Keys that turned: rounded once, from sums of two products. */
  test_close(p, q, n, half != 0 ? 1e-3 : 1e-6, half != 0 ? 1e-3 : 1e-6, what);
  free(p);
  free(q);
}

/* true if `force` was among the rows that ran. */
static bool run(const struct spec *s, enum vk_dtype dtype, const char *force, bool fits,
                bool views) {
  struct model fused, plain;
  bool taken = false;
  const bool one = fits && (force || !gpu_caps(test_gpu()).software); /* else as several tokens */
  load(&fused, s, dtype, force, NULL, views);
  load(&plain, s, dtype, NULL, "all", views);
  for (size_t i = 0; i < CALLS && !test_failed(); i++) {
    char what[200];
    const char *row = "";
    snprintf(what, sizeof what, "%s, %u tokens at %u, %s, %s", s->why, calls[i][0], calls[i][1],
             force ? force : "chosen", vk_dtype_name(dtype));
    call(&fused, calls[i][0], calls[i][1]);
    call(&plain, calls[i][0], calls[i][1]);
    const bool stepped = steps(&fused, &row);
    taken |= stepped && force && !strcmp(row, force);
    if (stepped != (calls[i][0] == 1 && one))
      test_fail(__FILE__, __LINE__, "%s: the fused kernel %s", what,
                stepped ? "ran" : "did not run");
    CHECK(!steps(&plain, &row));
    if (!test_failed()) compare(&fused, &plain, !force || i + 1 == CALLS, what);
  }
  op_end(&fused.t);
  op_end(&plain.t);
  return taken;
}

static void a_step_equals_its_parts(void) {
  const bool slow = test_gpu_is_slow(); /* then each in one of the types */
  for (size_t i = 0; i < SPECS && !test_failed(); i++) {
    if (!slow || i % 2 == 0) run(&specs[i], VK_FLOAT32, NULL, true, false);
    if (!slow || i % 2 == 1) run(&specs[i], VK_FLOAT16, NULL, true, i % 2);
  }
  run(&specs[2], VK_FLOAT32, NULL, true, true);
}

static void heads_that_do_not_fit_run_as_parts(void) {
  for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
    run(&odd[i], VK_FLOAT32, NULL, false, false);
    run(&odd[i], VK_FLOAT16, NULL, false, false);
  }
}

static void every_row_of_the_table(void) {
  struct gpu *gpu = test_gpu();
  const struct op *op = op_find(text_of("sconce.attention_step"));
  REQUIRE(gpu && op);
  const struct caps caps = gpu_caps(gpu);
  for (const struct kernel *row = op->tables[0]; row->name && !test_failed(); row++) {
    if (!kernel_runs(row, &caps)) continue;
    const enum vk_dtype dtype = strstr(row->name, "f16") ? VK_FLOAT16 : VK_FLOAT32;
    bool taken = false;
    for (size_t i = 0; i < SPECS && !(taken && test_gpu_is_slow()); i++)
      taken |= run(&specs[i], dtype, row->name, true, false);
    if (!taken)
      test_fail(__FILE__, __LINE__, "attn_step/%s serves no head of this test", row->name);
  }
}

/* ---- against the formula --------------------------------------------------------------------- */

/* x (heads, dim) turned by a table row. */
static void turn(const struct spec *s, double *x, uint32_t heads, const double *c,
                 const double *d) {
  for (uint32_t h = 0; h < heads; h++, x += s->dim) {
    double y[256];
    memcpy(y, x, s->dim * sizeof *y);
    for (uint32_t i = 0; !s->rotary && i < s->dim / 2; i++) {
      y[2 * i] = x[2 * i] * c[i] - x[2 * i + 1] * d[i];
      y[2 * i + 1] = x[2 * i] * d[i] + x[2 * i + 1] * c[i];
    }
    for (uint32_t i = 0; i < s->rotary; i++) {
      double other = i < s->rotary / 2 ? -x[i + s->rotary / 2] : x[i - s->rotary / 2];
      y[i] = x[i] * c[i] + other * d[i];
    }
    memcpy(x, y, s->dim * sizeof *y);
  }
}

static void attend(const struct spec *s, const double *q, const double *keys, const double *values,
                   uint32_t n, double *out) {
  const size_t stride = (size_t)s->kv_heads * s->dim;
  double *w = malloc(n * sizeof *w), most = -INFINITY, sum = 0;
  for (uint32_t i = 0; i < n; i++) {
    w[i] = 0;
    for (uint32_t d = 0; d < s->dim; d++) w[i] += q[d] * keys[i * stride + d];
    w[i] /= sqrt(s->dim);
    most = fmax(most, w[i]);
  }
  for (uint32_t i = 0; i < n; i++) sum += w[i] = exp(w[i] - most);
  for (uint32_t d = 0; d < s->dim; d++) {
    out[d] = 0;
    for (uint32_t i = 0; i < n; i++) out[d] += w[i] / sum * values[i * stride + d];
  }
  free(w);
}

/* The caches hold what the file says up to there; one step at `start`. */
static void step_by_hand(const struct spec *s, uint32_t start) {
  struct model b;
  uint64_t n;
  const uint32_t width = s->rotary ? s->rotary : s->dim / 2;
  const size_t row = (size_t)s->kv_heads * s->dim;
  load_stale(&b, s, VK_FLOAT32, NULL, NULL, false, start);
  if (!test_failed()) call(&b, 1, start);
  double *cache[2] = {cache_values(s, VK_FLOAT32, 10, start),
                      cache_values(s, VK_FLOAT32, 11, start)};
  double *q = test_values(VK_FLOAT32, (uint64_t)s->heads * s->dim, 100 + start),
         *k = test_values(VK_FLOAT32, row, 500 + start),
         *v = test_values(VK_FLOAT32, row, 900 + start);
  double *c = table_values(s, VK_FLOAT32, false), *d = table_values(s, VK_FLOAT32, true);
  turn(s, q, s->heads, c + (size_t)start * width, d + (size_t)start * width);
  turn(s, k, s->kv_heads, c + (size_t)start * width, d + (size_t)start * width);
  memcpy(cache[0] + start * row, k, row * sizeof *k);
  memcpy(cache[1] + start * row, v, row * sizeof *v);
  double *want = malloc((size_t)s->heads * s->dim * sizeof *want);
  for (uint32_t h = 0; h < s->heads; h++) {
    size_t kv = (size_t)h / (s->heads / s->kv_heads) * s->dim;
    attend(s, q + (size_t)h * s->dim, cache[0] + kv, cache[1] + kv, start + 1,
           want + (size_t)h * s->dim);
  }
  if (!test_failed()) {
    const double *got = op_get(&b.t, b.out, &n);
    CHECK_EQ(n, s->heads * s->dim);
    test_close(got, want, n, 2e-5, 2e-5, s->why);
    double *state = state_of(&b, &n);
    CHECK_EQ(n, 2 * ROWS * row);
    for (size_t i = 0; i < 2 && n == 2 * ROWS * row; i++) {
      const double *rows = state + i * ROWS * row;
      test_close(rows, cache[i], (start + 1) * row, 1e-6, 1e-6, s->why);
      for (size_t e = (start + 1) * row; e < ROWS * row && !test_failed(); e++)
        CHECK(isnan(rows[e])); /* nothing is written behind the new row */
    }
    free(state);
  }
  free(cache[0]);
  free(cache[1]);
  free(q);
  free(k);
  free(v);
  free(c);
  free(d);
  free(want);
  op_end(&b.t);
}

static void a_step_equals_the_formula(void) {
  static const uint32_t positions[] = {0, 1, 63, 127, 128, 129, 191, 192, 300, 383, 384};
  for (size_t i = 0; i < SPECS; i++)
    for (size_t k = 0; k < sizeof positions / sizeof *positions && !test_failed(); k++)
      step_by_hand(&specs[i], positions[k]);
}

/* ---- what must stay apart -------------------------------------------------------------------- */

/* The values are the turned keys: the kernel that turns them must have run before. */
static void turned_keys_as_values(void) {
  enum { HEAD = 8 };
  double *got[2] = {NULL, NULL};
  uint64_t n = 0;
  for (int off = 0; off < 2; off++) {
    struct op_test t;
    sconce_error err = {0};
    op_begin(&t);
    uint32_t q = op_input(&t, VK_FLOAT32, DIMS(1, 1, 2, HEAD)),
             k = op_input(&t, VK_FLOAT32, DIMS(1, 1, 1, HEAD));
    uint32_t c = op_input(&t, VK_FLOAT32, DIMS(1, HEAD / 2)),
             s = op_input(&t, VK_FLOAT32, DIMS(1, HEAD / 2)), start = op_symint(&t);
    uint32_t turned[2] = {op_tensor(&t, VK_FLOAT32, DIMS(1, 1, 2, HEAD)),
                          op_tensor(&t, VK_FLOAT32, DIMS(1, 1, 1, HEAD))};
    uint32_t out = op_output(&t, VK_FLOAT32, DIMS(1, 1, 2, HEAD)), caches[2];
    double *zeros = calloc(4 * HEAD, sizeof *zeros);
    for (int i = 0; i < 2; i++) caches[i] = op_constant(&t, VK_FLOAT32, DIMS(1, 4, 1, HEAD), zeros);
    free(zeros);
    op_node(&t, "et_vk.apply_rotary_emb.default", IDS(q, k, c, s, op_list(&t, turned, 2)));
    op_node(&t, "sdpa_with_kv_cache.default",
            IDS(turned[0], turned[1], turned[1], caches[0], caches[1], start, op_int(&t, 1),
                op_null(&t), op_int(&t, 0), op_bool(&t, true), op_null(&t), out));
    t.graph.passes_off = off ? "all" : NULL;
    CHECK_OK(op_load(&t, NULL, &err), err);
    double *values = test_values(VK_FLOAT32, 2 * HEAD, 4);
    if (!test_failed()) {
      op_set(&t, q, DIMS(1, 1, 2, HEAD), values);
      op_set(&t, k, DIMS(1, 1, 1, HEAD), values);
      op_set(&t, c, DIMS(1, HEAD / 2), values);
      op_set(&t, s, DIMS(1, HEAD / 2), values + HEAD);
      op_set_symint(&t, start, 0);
      CHECK_OK(op_run(&t, &err), err);
      const double *y = op_get(&t, out, &n);
      got[off] = malloc((size_t)n * sizeof **got);
      memcpy(got[off], y, (size_t)n * sizeof **got);
    }
    free(values);
    op_end(&t);
  }
  if (got[0] && got[1]) test_close(got[0], got[1], n, 1e-6, 1e-6, "turned keys as values");
  free(got[0]);
  free(got[1]);
}

/* Positions outside are refused as they are without the pass, and leave the graph usable. */
static void positions_outside_are_refused(void) {
  struct model b;
  sconce_error err = {0};
  load(&b, &specs[0], VK_FLOAT32, NULL, NULL, false);
  call(&b, 1, ROWS - 1);
  op_set_symint(&b.t, b.start, ROWS);
  CHECK_FAILS(op_run(&b.t, &err), SCONCE_BAD_ARGUMENT, err,
              "1 tokens at position 410 of a cache of 410");
  CHECK(strstr(err.text, "node 1 (sdpa_with_kv_cache.default): ") != NULL);
  op_set_symint(&b.t, b.start, -1);
  CHECK_FAILS(op_run(&b.t, &err), SCONCE_BAD_ARGUMENT, err, "1 tokens at position -1");
  call(&b, 1, 5);
  op_end(&b.t);
}

const struct test suite_step[] = {TEST(a_step_equals_its_parts),
                                  TEST(heads_that_do_not_fit_run_as_parts),
                                  TEST(every_row_of_the_table),
                                  TEST(a_step_equals_the_formula),
                                  TEST(turned_keys_as_values),
                                  TEST(positions_outside_are_refused),
                                  {0}};
