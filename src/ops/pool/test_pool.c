/* Pooling: every kind of window, against a loop over all of its elements that asks for each whether
 * it lies inside x. */
#include "op.h"

enum kind { MEAN, MAX };
enum { LIVE = 14, RANK_LIMIT = 5 };
#define NO_DIVISOR 0

static const struct row {
  const char *name;
  enum kind kind;
  uint32_t dims;
  bool places, adaptive, portable;
  uint32_t x[RANK_LIMIT]; /* two leading dims, then `dims`; LIVE changes between calls */
  int64_t kernel[3];      /* adaptive: the size of y */
  int64_t stride[3];      /* 0: an empty list */
  int64_t pad[3];
  int64_t dilation[3]; /* 0: 1 */
  bool ceil, include;
  int64_t divisor;
  const char *why;
} rows[] = {
    {"aten.avg_pool2d.default", MEAN, 2, .x = {LIVE, 2, 5, 7}, .kernel = {2, 3}, .include = true,
     .why = "windows side by side"},
    {"aten.avg_pool2d.default", MEAN, 2, .x = {LIVE, 3, 6, 7}, .kernel = {3, 3}, .stride = {2, 1},
     .pad = {1, 1}, .include = true, .why = "padding counts"},
    {"aten.avg_pool2d.default", MEAN, 2, .x = {2, 3, LIVE, 7}, .kernel = {3, 4}, .stride = {1, 2},
     .pad = {1, 2}, .why = "padding does not count, a live height"},
    {"aten.avg_pool2d.default", MEAN, 2, .x = {LIVE, 1, 8, 8}, .kernel = {3, 3}, .stride = {2, 2},
     .pad = {1, 0}, .ceil = true, .include = true, .why = "a last window over the end"},
    {"aten.avg_pool2d.default", MEAN, 2, .x = {LIVE, 1, 5, 5}, .kernel = {2, 2}, .stride = {2, 2},
     .ceil = true, .divisor = 3, .include = true, .why = "another divisor"},
    {"aten::avg_pool2d.out", MEAN, 2, .x = {LIVE, 1, 5, 5}, .kernel = {2, 2}, .divisor = -3,
     .why = "a negative divisor"},
    {"aten.avg_pool2d.default", MEAN, 2, .x = {LIVE, 3, 11, 13}, .kernel = {11, 13},
     .include = true, .why = "a whole plane: threads share it"},
    {"aten.avg_pool1d.default", MEAN, 1, .x = {LIVE, 3, 9}, .kernel = {4}, .stride = {3},
     .pad = {2}, .why = "one dim"},
    {"aten.avg_pool3d.default", MEAN, 3, .x = {LIVE, 2, 4, 5, 3}, .kernel = {2, 3, 2},
     .stride = {1, 2, 1}, .pad = {1, 0, 1}, .why = "three dims"},
    {"aten.max_pool2d_with_indices.default", MAX, 2, true, .x = {LIVE, 2, 5, 7}, .kernel = {2, 2},
     .why = "windows side by side"},
    {"aten.max_pool2d_with_indices.default", MAX, 2, true, .x = {2, 3, 7, LIVE}, .kernel = {3, 3},
     .stride = {2, 2}, .pad = {1, 1}, .why = "overlapping ones, a live width"},
    {"aten.max_pool2d_with_indices.default", MAX, 2, true, .x = {LIVE, 1, 9, 8}, .kernel = {2, 3},
     .stride = {2, 1}, .pad = {1, 1}, .dilation = {3, 2}, .ceil = true,
     .why = "taps apart, some in front of x"},
    {"aten::max_pool2d_with_indices.out", MAX, 2, true, .portable = true, .x = {LIVE, 2, 12, 9},
     .kernel = {12, 9}, .why = "a whole plane: threads share it"},
    {"aten.max_pool2d.default", MAX, 2, .x = {LIVE, 2, 6, 6}, .kernel = {3, 2}, .stride = {3, 1},
     .why = "values alone"},
    {"aten.max_pool2d.default", MAX, 2, .x = {LIVE, 2, 10, 10}, .kernel = {9, 10},
     .why = "values alone, shared"},
    {"aten.max_pool1d.default", MAX, 1, .x = {LIVE, 2, 9}, .kernel = {3}, .pad = {1},
     .why = "one dim"},
    {"aten.max_pool3d_with_indices.default", MAX, 3, true, .x = {LIVE, 1, 4, 5, 6},
     .kernel = {2, 2, 3}, .stride = {2, 1, 2}, .pad = {0, 1, 1}, .why = "three dims"},
    {"aten.max_pool3d.default", MAX, 3, .x = {LIVE, 1, 4, 5, 6}, .kernel = {3, 1, 2},
     .stride = {1, 2, 2}, .pad = {1, 0, 0}, .why = "three dims, values alone"},
    {"aten::max_pool3d_with_indices.out", MAX, 3, true, .portable = true, .x = {LIVE, 1, 4, 5, 6},
     .kernel = {4, 5, 6}, .why = "all of three dims, shared"},
    {"aten._adaptive_avg_pool2d.default", MEAN, 2, .adaptive = true, .x = {LIVE, 2, 7, 5},
     .kernel = {3, 4}, .why = "windows of different sizes"},
    {"aten._adaptive_avg_pool2d.default", MEAN, 2, .adaptive = true, .x = {LIVE, 2, 2, 3},
     .kernel = {5, 3}, .why = "more windows than elements"},
    {"aten::_adaptive_avg_pool2d.out", MEAN, 2, .adaptive = true, .x = {LIVE, 2, 17, 19},
     .kernel = {2, 1}, .why = "large ones: threads share them"},
    {"aten._adaptive_avg_pool3d.default", MEAN, 3, .adaptive = true, .x = {LIVE, 2, 3, 4, 5},
     .kernel = {2, 3, 2}, .why = "three dims"},
    {"aten.adaptive_max_pool2d.default", MAX, 2, true, true, .x = {LIVE, 2, 7, 5}, .kernel = {3, 2},
     .why = "windows of different sizes"},
    {"aten.adaptive_max_pool3d.default", MAX, 3, true, true, .x = {LIVE, 2, 3, 4, 5},
     .kernel = {2, 3, 2}, .why = "three dims"},
    {"aten::adaptive_max_pool3d.out", MAX, 3, true, true, true, .x = {LIVE, 2, 3, 4, 5},
     .kernel = {2, 1, 2}, .why = "three dims, by its other name"},
    {"aten::adaptive_max_pool2d.out", MAX, 2, true, true, true, .x = {LIVE, 2, 16, 15},
     .kernel = {1, 2}, .why = "large ones: threads share them"},
};
enum { ROWS = sizeof rows / sizeof *rows };

/* ---- the oracle ------------------------------------------------------------------------------ */

struct range {
  int64_t from, to, step; /* of x, in padded coordinates */
  int64_t end;            /* of the padded x; what lies behind never counts */
};

static int64_t or_one(int64_t number) { return number ? number : 1; }
static int64_t stride_of(const struct row *r, uint32_t d) {
  return r->stride[0] ? r->stride[d] : r->kernel[d];
}

static struct range range_of(const struct row *r, uint32_t d, uint32_t in, uint32_t o) {
  if (r->adaptive) {
    double share = (double)in / (double)r->kernel[d];
    return (struct range){(int64_t)floor(o * share + 1e-9), (int64_t)ceil((o + 1) * share - 1e-9),
                          1, in};
  }
  int64_t from = o * stride_of(r, d) - r->pad[d], step = or_one(r->dilation[d]);
  return (struct range){from, from + r->kernel[d] * step, step, in + r->pad[d]};
}

static uint32_t outputs(const struct row *r, uint32_t d, uint32_t in) {
  if (r->adaptive) return (uint32_t)r->kernel[d];
  int64_t reach = or_one(r->dilation[d]) * (r->kernel[d] - 1), count = 0;
  for (int64_t at = -r->pad[d];; at += stride_of(r, d), count++) {
    bool whole = at + reach < in + r->pad[d];
    /* the rest of a row gets a window of its own if it starts in front of the padding's end */
    bool rest = at - stride_of(r, d) + reach + 1 < in + r->pad[d] && at < in;
    if (!whole && !(r->ceil && count && rest)) return (uint32_t)count;
  }
}

struct best {
  double sum, most, place, count, padded;
};

static double at_place(const double *plane, const uint32_t *x, const int64_t *c, bool *inside,
                       double *place) {
  *inside = true;
  *place = 0;
  for (uint32_t d = 0; d < 3; d++) {
    *inside = *inside && c[d] >= 0 && c[d] < x[d];
    *place = *place * x[d] + (double)c[d];
  }
  return *inside ? plane[(size_t)*place] : 0;
}

static struct best pool(const struct range *s, const uint32_t *x, const double *plane) {
  struct best b = {.most = -INFINITY, .place = -1};
  int64_t c[3];
  for (c[0] = s[0].from; c[0] < s[0].to; c[0] += s[0].step)
    for (c[1] = s[1].from; c[1] < s[1].to; c[1] += s[1].step)
      for (c[2] = s[2].from; c[2] < s[2].to; c[2] += s[2].step) {
        bool inside;
        double place, v = at_place(plane, x, c, &inside, &place);
        b.padded += c[0] < s[0].end && c[1] < s[1].end && c[2] < s[2].end;
        if (!inside) continue;
        b.sum += v;
        b.count++;
        if (v > b.most || isnan(v) || b.place < 0) b.most = v, b.place = place;
      }
  return b;
}

static double wanted(const struct row *r, const struct best *b, bool integers) {
  if (r->kind == MAX) return b->most;
  double divisor = r->divisor                   ? (double)r->divisor
                   : r->include && !r->adaptive ? b->padded
                                                : b->count;
  return integers ? trunc(b->sum / divisor) : b->sum / divisor;
}

/* ---- running --------------------------------------------------------------------------------- */

struct pooled {
  struct op_test t;
  uint32_t x, y, places;
  uint32_t in[3], out[3]; /* live plane */
  double *values, *want, *want_places;
};

static uint32_t list(struct op_test *t, const struct row *r, const int64_t *numbers) {
  int64_t filled[3];
  for (uint32_t d = 0; d < 3; d++) filled[d] = or_one(numbers[d]);
  return op_ints(t, filled, numbers == r->stride && !r->stride[0] ? 0 : r->dims);
}

static void add_node(struct pooled *q, const struct row *r) {
  struct op_test *t = &q->t;
  uint32_t args[12], n = 0;
  args[n++] = q->x;
  args[n++] = list(t, r, r->kernel);
  if (!r->adaptive) {
    args[n++] = list(t, r, r->stride);
    args[n++] = op_ints(t, r->pad, r->dims);
    if (r->kind == MAX) args[n++] = list(t, r, r->dilation);
    args[n++] = op_bool(t, r->ceil);
    if (r->kind == MEAN) args[n++] = op_bool(t, r->include);
    if (r->kind == MEAN && r->dims > 1) args[n++] = r->divisor ? op_int(t, r->divisor) : op_null(t);
  }
  if (r->portable) args[n++] = q->y, args[n++] = q->places;
  args[n++] = r->places ? op_list(t, IDS(q->y, q->places)) : q->y;
  op_node(t, r->name, args, n);
}

static uint64_t live_dims(const struct row *r, uint32_t live, uint32_t *dims, struct pooled *q) {
  uint32_t lead = 1;
  for (uint32_t i = 0; i < 2 + r->dims; i++) {
    dims[i] = r->x[i] == LIVE ? live : r->x[i];
    if (i < 2) lead *= dims[i];
  }
  for (uint32_t d = 0; d < 3; d++) q->in[d] = q->out[d] = 1;
  for (uint32_t d = 0; d < r->dims; d++) {
    q->in[3 - r->dims + d] = dims[2 + d];
    q->out[3 - r->dims + d] = outputs(r, d, dims[2 + d]);
  }
  return lead;
}

static void expect(const struct row *r, struct pooled *q, uint64_t planes, bool integers) {
  uint64_t in = (uint64_t)q->in[0] * q->in[1] * q->in[2], e = 0;
  for (uint64_t plane = 0; plane < planes; plane++)
    for (uint32_t o0 = 0; o0 < q->out[0]; o0++)
      for (uint32_t o1 = 0; o1 < q->out[1]; o1++)
        for (uint32_t o2 = 0; o2 < q->out[2]; o2++, e++) {
          const uint32_t o[] = {o0, o1, o2}, skip = 3 - r->dims;
          struct range s[3] = {{0, 1, 1, 1}, {0, 1, 1, 1}, {0, 1, 1, 1}};
          for (uint32_t d = 0; d < r->dims; d++)
            s[skip + d] = range_of(r, d, q->in[skip + d], o[skip + d]);
          struct best b = pool(s, q->in, q->values + plane * in);
          q->want[e] = wanted(r, &b, integers);
          q->want_places[e] = b.place;
        }
}

static double tolerance(const struct row *r, enum vk_dtype dtype) {
  return r->kind == MAX || dtype == VK_INT32 ? 0 : dtype == VK_FLOAT16 ? 1e-3 : 2e-6;
}

static void call(const struct row *r, struct pooled *q, enum vk_dtype dtype, uint32_t live) {
  uint32_t dims[RANK_LIMIT];
  uint64_t planes = live_dims(r, live, dims, q), n_got;
  uint64_t n = planes * q->in[0] * q->in[1] * q->in[2];
  uint64_t outs = planes * q->out[0] * q->out[1] * q->out[2];
  sconce_error err = {0};
  q->values = test_values(dtype == VK_INT32 ? VK_FLOAT32 : dtype, n, live + 1);
  for (uint64_t i = 0; dtype == VK_INT32 && i < n; i++)
    q->values[i] = trunc(q->values[i] * 2e9); /* sums need more than 32 bits */
  q->want = calloc((size_t)outs + 1, sizeof *q->want);
  q->want_places = calloc((size_t)outs + 1, sizeof *q->want_places);
  expect(r, q, planes, dtype == VK_INT32);
  op_set(&q->t, q->x, dims, 2 + r->dims, q->values);
  CHECK_OK(op_run(&q->t, &err), err);
  const double *got = op_get(&q->t, q->y, &n_got);
  char what[160];
  snprintf(what, sizeof what, "%s %s, live %u: %s", r->name, vk_dtype_name(dtype), live, r->why);
  CHECK_EQ(n_got, outs);
  if (n_got == outs) test_close(got, q->want, outs, tolerance(r, dtype), tolerance(r, dtype), what);
  if (r->places && n_got == outs)
    test_close(op_get(&q->t, q->places, &n_got), q->want_places, outs, 0, 0, what);
  free(q->values);
  free(q->want);
  free(q->want_places);
}

static void run(const struct row *r, enum vk_dtype dtype, const char *force) {
  static const uint32_t lives[] = {LIVE, 3, 5, 4, LIVE};
  struct pooled q;
  sconce_error err = {0};
  uint32_t dims[RANK_LIMIT], out[RANK_LIMIT];
  op_begin(&q.t);
  live_dims(r, LIVE, dims, &q);
  memcpy(out, dims, sizeof out);
  memcpy(out + 2, q.out + 3 - r->dims, r->dims * sizeof *out);
  q.x = op_input(&q.t, dtype, dims, 2 + r->dims);
  q.y = op_output(&q.t, dtype, out, 2 + r->dims);
  if (r->places) q.places = op_output(&q.t, VK_INT32, out, 2 + r->dims);
  add_node(&q, r);
  CHECK_OK(op_load(&q.t, force, &err), err);
  for (size_t i = 0; i < 5 && !test_failed(); i++) call(r, &q, dtype, lives[i]);
  if (r->x[0] == LIVE && !test_failed()) call(r, &q, dtype, 0);
  op_end(&q.t);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void every_window(void) {
  static const enum vk_dtype dtypes[] = {VK_FLOAT32, VK_FLOAT16, VK_INT32};
  for (size_t i = 0; i < ROWS; i++)
    for (size_t d = 0; d < (rows[i].adaptive ? 2 : 3); d++) run(&rows[i], dtypes[d], NULL);
}

/* Windows that threads share, by one thread each. */
static void every_row(void) {
  static const char *const names[] = {"mean_f32", "places_f16", "max_i32", "adaptive_mean_f16",
                                      "adaptive_places_f32"};
  static const enum vk_dtype dtypes[] = {VK_FLOAT32, VK_FLOAT16, VK_INT32, VK_FLOAT16, VK_FLOAT32};
  for (size_t i = 0; i < ROWS; i++)
    for (size_t k = 0; k < 5 && strstr(rows[i].why, "share"); k++)
      if (!rows[i].adaptive || dtypes[k] != VK_INT32) run(&rows[i], dtypes[k], names[k]);
}

static uint32_t pool_2x2(struct op_test *t, uint32_t x, uint32_t y, uint32_t places) {
  uint32_t two = op_ints(t, INTS(2)), none = op_ints(t, INTS(0)), one = op_ints(t, INTS(1));
  op_node(t, "aten.max_pool2d_with_indices.default",
          IDS(x, two, op_ints(t, (const int64_t[]){0}, 0), none, one, op_bool(t, false),
              op_list(t, IDS(y, places))));
  return y;
}

static void not_numbers(void) {
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t x = op_input(&t, VK_FLOAT32, DIMS(1, 2, 6)),
           y = op_output(&t, VK_FLOAT32, DIMS(1, 1, 3));
  uint32_t places = op_output(&t, VK_INT32, DIMS(1, 1, 3));
  pool_2x2(&t, x, y, places);
  CHECK_OK(op_load(&t, NULL, &err), err);
  const double low = -INFINITY;
  const double values[] = {NAN, 1, low, low, 5, -3, 2, NAN, low, low, INFINITY, 7};
  op_set(&t, x, DIMS(1, 2, 6), values);
  CHECK_OK(op_run(&t, &err), err);
  uint64_t n;
  test_close(op_get(&t, y, &n), (const double[]){NAN, low, INFINITY}, 3, 0, 0,
             "a NaN is larger than any number");
  test_close(op_get(&t, places, &n), (const double[]){7, 2, 10}, 3, 0, 0,
             "the last NaN, the first of equals");
  op_end(&t);
}

/* More workgroups than one dimension of a grid may have, and more than two of them. */
static void a_large_grid(void) {
  enum { PLANES = 4099 };
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  t.graph.caps.max_workgroups = 5;
  uint32_t x = op_input(&t, VK_FLOAT32, DIMS(PLANES, 4));
  uint32_t y = op_output(&t, VK_FLOAT32, DIMS(PLANES, 4));
  op_node(&t, "aten.max_pool1d.default",
          IDS(x, op_ints(&t, INTS(1)), op_ints(&t, INTS(1)), op_ints(&t, INTS(0)),
              op_ints(&t, INTS(1)), op_bool(&t, false), y));
  CHECK_OK(op_load(&t, NULL, &err), err);
  double *values = malloc(PLANES * 4 * sizeof *values);
  for (uint32_t i = 0; i < PLANES * 4; i++) values[i] = i;
  op_set(&t, x, DIMS(PLANES, 4), values);
  CHECK_OK(op_run(&t, &err), err);
  CHECK(t.graph.nodes[0].records[0].grid[2] > 1);
  uint64_t n;
  test_close(op_get(&t, y, &n), values, PLANES * 4, 0, 0, "every element is its window");
  free(values);
  op_end(&t);
}

/* A tensor larger than a binding is split between planes. */
static void in_parts(void) {
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  t.graph.caps.max_storage_binding = 16384;
  uint32_t x = op_input(&t, VK_FLOAT16, DIMS(700, 3, 3)),
           y = op_output(&t, VK_FLOAT16, DIMS(700, 2, 2));
  uint32_t places = op_output(&t, VK_INT32, DIMS(700, 2, 2));
  uint32_t two = op_ints(&t, INTS(2)), one = op_ints(&t, INTS(1)), none = op_ints(&t, INTS(0));
  op_node(&t, "aten.max_pool2d_with_indices.default",
          IDS(x, two, one, none, one, op_bool(&t, false), op_list(&t, IDS(y, places))));
  CHECK_OK(op_load(&t, NULL, &err), err);
  const uint32_t lives[] = {700, 500, 699};
  for (size_t i = 0; i < 3 && !test_failed(); i++) {
    double *values = test_values(VK_FLOAT16, lives[i] * 9ull, i), want[2800], at[2800];
    for (uint32_t e = 0; e < lives[i] * 4; e++) {
      const double *plane = values + e / 4 * 9;
      uint32_t first = e % 4 / 2 * 3 + e % 2;
      at[e] = first;
      for (uint32_t k = 1; k < 4; k++) {
        uint32_t place = first + k / 2 * 3 + k % 2;
        if (plane[place] > plane[(size_t)at[e]]) at[e] = place;
      }
      want[e] = plane[(size_t)at[e]];
    }
    op_set(&t, x, DIMS(lives[i], 3, 3), values);
    CHECK_OK(op_run(&t, &err), err);
    CHECK(t.graph.nodes[0].n_records >= 1);
    uint64_t n;
    test_close(op_get(&t, y, &n), want, lives[i] * 4ull, 0, 0, "values in parts");
    test_close(op_get(&t, places, &n), at, lives[i] * 4ull, 0, 0, "places in parts");
    free(values);
  }
  op_end(&t);
}

/* What a gradient of ones and twos comes back as, through the places that pooling found. */
static void gradients(void) {
  static const struct {
    int64_t kernel[2], stride[2], pad[2], dilation[2];
    bool ceil;
  } cases[] = {{{2, 3}, {2, 1}, {1, 0}, {1, 1}, false},
               {{3, 2}, {1, 2}, {1, 1}, {2, 1}, true},
               {{2, 2}, {2, 2}, {0, 0}, {1, 1}, true}};
  for (int k = 0; k < 6; k++) {
    const enum vk_dtype dtype = k % 2 ? VK_FLOAT16 : VK_FLOAT32;
    const int64_t *kernel = cases[k / 2].kernel, *stride = cases[k / 2].stride,
                  *pad = cases[k / 2].pad, *dilation = cases[k / 2].dilation;
    struct row r = {.dims = 2, .ceil = cases[k / 2].ceil};
    memcpy(r.kernel, kernel, 2 * sizeof *kernel);
    memcpy(r.stride, stride, 2 * sizeof *kernel);
    memcpy(r.pad, pad, 2 * sizeof *kernel);
    memcpy(r.dilation, dilation, 2 * sizeof *kernel);
    const uint32_t h = outputs(&r, 0, 7), w = outputs(&r, 1, 5);
    struct op_test t;
    sconce_error err = {0};
    op_begin(&t);
    uint32_t x = op_input(&t, dtype, DIMS(3, 2, 7, 5)), dy = op_input(&t, dtype, DIMS(3, 2, h, w));
    uint32_t y = op_output(&t, dtype, DIMS(3, 2, h, w)),
             places = op_output(&t, VK_INT32, DIMS(3, 2, h, w));
    uint32_t dx = op_output(&t, dtype, DIMS(3, 2, 7, 5)), ceil = op_bool(&t, r.ceil);
    uint32_t a = op_ints(&t, kernel, 2), b = op_ints(&t, stride, 2), c = op_ints(&t, pad, 2),
             d = op_ints(&t, dilation, 2);
    op_node(&t, "aten.max_pool2d_with_indices.default",
            IDS(x, a, b, c, d, ceil, op_list(&t, IDS(y, places))));
    op_node(&t, "aten.max_pool2d_with_indices_backward.default",
            IDS(dy, x, a, b, c, d, ceil, places, dx));
    CHECK_OK(op_load(&t, NULL, &err), err);
    for (uint32_t n = 3; n < 4 && !test_failed(); n--) {
      double *vx = test_values(dtype, n * 70, 5), *vy = calloc(n * 2 * h * w + 1, sizeof *vy),
             want[210] = {0};
      for (uint32_t e = 0; e < n * 2 * h * w; e++) vy[e] = 1 + e % 2;
      op_set(&t, x, DIMS(n, 2, 7, 5), vx);
      op_set(&t, dy, DIMS(n, 2, h, w), vy);
      CHECK_OK(op_run(&t, &err), err);
      uint64_t got;
      const double *at = op_get(&t, places, &got);
      for (uint32_t e = 0; e < n * 2 * h * w; e++)
        want[e / (h * w) * 35 + (uint32_t)at[e]] += vy[e];
      test_close(op_get(&t, dx, &got), want, n * 70, 0, 0, "gradients");
      CHECK_EQ(got, n * 70);
      free(vx);
      free(vy);
    }
    op_end(&t);
  }
}

static const struct {
  uint32_t x, kernel, pad;
  const char *text;
} wrong[] = {
    {4, 5, 0, "a window of 5 in a dim of 4 with a padding of 0"},
    {4, 3, 2, "a padding of 2 is more than half of a window of 3"},
    {4, 0, 0, "argument 1 has 0, expected 1 to"},
};

static void refuses(void) {
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    struct op_test t;
    sconce_error err = {0};
    op_begin(&t);
    uint32_t x = op_input(&t, VK_FLOAT32, DIMS(1, 1, wrong[i].x, wrong[i].x));
    uint32_t y = op_output(&t, VK_FLOAT32, DIMS(1, 1, 4, 4));
    op_node(&t, "aten.avg_pool2d.default",
            IDS(x, op_ints(&t, INTS(wrong[i].kernel)), op_ints(&t, INTS(1)),
                op_ints(&t, INTS(wrong[i].pad)), op_bool(&t, false), op_bool(&t, true), op_null(&t),
                y));
    sconce_status status = op_load(&t, NULL, &err);
    if (status == SCONCE_OK) {
      double values[16] = {0};
      op_set(&t, x, DIMS(1, 1, wrong[i].x, wrong[i].x), values);
      status = op_run(&t, &err);
    }
    CHECK(status != SCONCE_OK);
    if (!strstr(err.text, wrong[i].text)) test_fail(__FILE__, __LINE__, "%s", err.text);
    op_end(&t);
  }
}

const struct test suite_pool[] = {
    TEST(every_window), TEST(every_row), TEST(not_numbers), TEST(a_large_grid),
    TEST(in_parts),     TEST(refuses),   TEST(gradients),   {0},
};
