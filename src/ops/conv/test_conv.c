/* Convolutions, against loops in double: a forward one gathers, a transposed one scatters. */
#include "op.h"

#include "ops/conv/emit.h"
#include "ops/conv/pack.h"

struct axis {
  uint32_t in, kernel, stride, padding, dilation, extra;
};
struct shape {
  uint32_t axes, batch, groups, ic, oc; /* channels of a group */
  bool transposed;
  struct axis axis[3]; /* depth, height, width; {1, 1, 1, 0, 1, 0} where x has none */
  const char *why;
};
#define NONE {1, 1, 1, 0, 1, 0}
/* clang-format off */
static const struct shape shapes[] = {
    {2, 1, 1, 1, 1, 0, {NONE, {1, 1, 1, 0, 1, 0}, {1, 1, 1, 0, 1, 0}}, "the smallest"},
    {2, 1, 1, 3, 5, 0, {NONE, {7, 3, 1, 1, 1, 0}, {5, 3, 1, 1, 1, 0}}, "3x3, odd planes"},
    {2, 2, 1, 8, 12, 0, {NONE, {6, 3, 2, 1, 1, 0}, {8, 3, 2, 1, 1, 0}}, "strided, a batch"},
    {2, 3, 1, 6, 9, 0, {NONE, {5, 1, 1, 0, 1, 0}, {5, 1, 1, 0, 1, 0}}, "1x1, quads cross images"},
    {2, 1, 1, 70, 68, 0, {NONE, {8, 1, 1, 0, 1, 0}, {9, 1, 1, 0, 1, 0}}, "1x1, tiles with edges"},
    {2, 1, 1, 37, 130, 0, {NONE, {12, 3, 1, 1, 1, 0}, {12, 3, 1, 1, 1, 0}}, "two tiles of 128"},
    {2, 1, 1, 150, 9, 0, {NONE, {3, 3, 1, 1, 1, 0}, {4, 3, 1, 1, 1, 0}}, "many channels"},
    {2, 1, 1, 4, 6, 0, {NONE, {9, 3, 2, 0, 2, 0}, {11, 2, 3, 4, 3, 0}}, "dilated, axes differ"},
    {2, 1, 1, 2, 16, 0, {NONE, {4, 7, 1, 3, 1, 0}, {4, 7, 1, 3, 1, 0}}, "more kernel than x"},
    {2, 1, 2, 6, 12, 0, {NONE, {6, 3, 1, 1, 1, 0}, {6, 3, 1, 1, 1, 0}}, "two groups"},
    {2, 2, 5, 3, 2, 0, {NONE, {5, 3, 1, 1, 1, 0}, {7, 3, 2, 1, 1, 0}}, "two channels a group"},
    {2, 1, 3, 3, 4, 0, {NONE, {5, 3, 1, 1, 1, 0}, {6, 3, 1, 1, 1, 0}}, "four channels a group"},
    {2, 1, 6, 1, 1, 0, {NONE, {9, 3, 1, 1, 1, 0}, {10, 3, 1, 1, 1, 0}}, "depthwise"},
    {2, 2, 5, 1, 1, 0, {NONE, {9, 3, 2, 1, 1, 0}, {7, 5, 2, 2, 1, 0}}, "depthwise, strided, odd"},
    {2, 1, 3, 1, 3, 0, {NONE, {8, 2, 1, 2, 3, 0}, {6, 3, 1, 1, 2, 0}}, "depthwise, three each"},
    {2, 1, 3, 1, 8, 0, {NONE, {6, 3, 1, 1, 1, 0}, {6, 3, 1, 1, 1, 0}}, "eight for each channel"},
    {2, 1, 1, 0, 9, 0, {NONE, {4, 3, 1, 1, 1, 0}, {4, 3, 1, 1, 1, 0}}, "no channels: the bias"},
    {2, 1, 1, 3, 5, 0, {NONE, {0, 3, 1, 2, 1, 0}, {4, 3, 1, 1, 1, 0}}, "no pixels: the bias"},
    {1, 1, 1, 5, 7, 0, {NONE, NONE, {13, 3, 2, 2, 1, 0}}, "1-D"},
    {1, 2, 4, 1, 1, 0, {NONE, NONE, {11, 4, 1, 3, 2, 0}}, "1-D depthwise, a batch"},
    {1, 1, 1, 8, 8, 0, {NONE, NONE, {6, 1, 1, 0, 1, 0}}, "1-D, 1x1"},
    {3, 2, 1, 3, 5, 0, {{4, 3, 1, 1, 1, 0}, {5, 2, 2, 0, 1, 0}, {6, 3, 1, 1, 2, 0}}, "3-D"},
    {3, 1, 2, 1, 2, 0, {{4, 2, 2, 1, 1, 0}, {5, 3, 1, 1, 1, 0}, {4, 3, 1, 1, 1, 0}}, "3-D, alone"},
    {2, 1, 1, 5, 9, 1, {NONE, {4, 2, 2, 0, 1, 0}, {5, 2, 2, 0, 1, 0}}, "transposed, a tap a phase"},
    {2, 2, 1, 4, 10, 1, {NONE, {4, 3, 2, 1, 1, 1}, {3, 5, 3, 2, 1, 2}}, "transposed, odd phases"},
    {2, 1, 2, 3, 8, 1, {NONE, {5, 3, 1, 1, 1, 0}, {4, 3, 1, 1, 1, 0}}, "transposed, two groups"},
    {2, 1, 1, 3, 4, 1, {NONE, {3, 3, 2, 1, 2, 1}, {4, 2, 4, 0, 6, 1}}, "transposed, with holes"},
    {2, 1, 3, 1, 1, 1, {NONE, {4, 4, 2, 1, 1, 0}, {3, 4, 2, 1, 1, 0}}, "transposed depthwise"},
    {1, 2, 1, 6, 3, 1, {NONE, NONE, {5, 8, 4, 2, 1, 0}}, "transposed 1-D"},
    {3, 1, 1, 2, 3, 1, {{2, 3, 2, 1, 1, 1}, {3, 2, 1, 0, 1, 0}, {2, 3, 2, 0, 1, 0}}, "3-D, back"},
    {1, 1, 1, 2, 3, 1, {NONE, NONE, {3, 3, 70, 5, 1, 1}}, "transposed: too many phases"},
    {2, 2, 3, 1, 1, 0, {NONE, {9, 3, 2, 1, 1, 0}, {8, 3, 2, 1, 1, 0}}, "depthwise 3x3, strided"},
    {2, 1, 2, 1, 3, 0, {NONE, {9, 3, 1, 2, 2, 0}, {10, 3, 2, 3, 3, 0}}, "depthwise 3x3, dilated"},
    {2, 2, 4, 1, 1, 0, {NONE, {5, 3, 1, 1, 1, 0}, {2, 3, 1, 1, 1, 0}}, "depthwise 3x3, narrow"},
};
/* clang-format on */
enum { SHAPES = sizeof shapes / sizeof *shapes };

static uint32_t out_of(const struct shape *s, const struct axis *a) {
  const uint32_t span = a->dilation * (a->kernel - 1) + 1;
  if (s->transposed) return (a->in - 1) * a->stride + span + a->extra - 2 * a->padding;
  return (a->in + 2 * a->padding - span) / a->stride + 1;
}

/* ---- the oracle ------------------------------------------------------------------------------ */

struct loop {
  uint32_t n[6], at[6]; /* pixels of x or y along each axis, then taps */
};
static bool next(struct loop *l) {
  for (int i = 5; i >= 0; i--) {
    if (++l->at[i] < l->n[i]) return true;
    l->at[i] = 0;
  }
  return false;
}

static uint64_t index3(const uint32_t *at, const uint32_t *n) {
  return ((uint64_t)at[0] * n[1] + at[1]) * n[2] + at[2];
}

/* One channel of x into one of y: every pair of a pixel and a tap that meet. */
static void add_channel(const struct shape *s, const uint32_t *in, const uint32_t *out,
                        const double *x, const double *w, double *y) {
  const uint32_t taps[] = {s->axis[0].kernel, s->axis[1].kernel, s->axis[2].kernel};
  const uint32_t *from = s->transposed ? in : out, *to = s->transposed ? out : in;
  struct loop l = {.n = {from[0], from[1], from[2], taps[0], taps[1], taps[2]}};
  do {
    uint32_t other[3];
    bool inside = true;
    for (int i = 0; i < 3; i++) { /* the pixel of the larger side that this one meets */
      const struct axis *a = &s->axis[i];
      int64_t at = (int64_t)l.at[i] * a->stride - a->padding + (int64_t)l.at[3 + i] * a->dilation;
      inside &= at >= 0 && at < to[i];
      other[i] = (uint32_t)at;
    }
    if (!inside) continue;
    const uint64_t here = index3(l.at, from), there = index3(other, to);
    y[s->transposed ? there : here] += x[s->transposed ? here : there] * w[index3(l.at + 3, taps)];
  } while (next(&l));
}

/* y[n, channel] of live dims; bounds last. */
static void expect(const struct shape *s, const uint32_t *in, const uint32_t *out, const double *x,
                   const double *w, const double *bias, const double bounds[2], double *y) {
  const uint64_t x_plane = (uint64_t)in[0] * in[1] * in[2];
  const uint64_t y_plane = (uint64_t)out[0] * out[1] * out[2];
  const uint64_t taps = (uint64_t)s->axis[0].kernel * s->axis[1].kernel * s->axis[2].kernel;
  for (uint32_t n = 0; n < s->batch; n++)
    for (uint32_t g = 0; g < s->groups; g++)
      for (uint32_t o = 0; o < s->oc; o++, y += y_plane) {
        for (uint64_t i = 0; i < y_plane; i++) y[i] = bias ? bias[g * s->oc + o] : 0;
        for (uint32_t c = 0; c < s->ic; c++)
          add_channel(s, in, out, x + ((uint64_t)(n * s->groups + g) * s->ic + c) * x_plane,
                      w + taps * (s->transposed ? (g * s->ic + c) * s->oc + o
                                                : (g * s->oc + o) * s->ic + c),
                      y);
        for (uint64_t i = 0; i < y_plane && bounds; i++)
          y[i] = fmin(fmax(y[i], bounds[0]), bounds[1]);
      }
}

/* ---- graphs ---------------------------------------------------------------------------------- */

struct graph_ids {
  uint32_t x, w, y;
};
enum { NO_BIAS = 1, BOUNDED = 2, INPUT_WEIGHT = 4, FOLDED = 8, ONCE = 16 };

static uint32_t list(struct op_test *t, const struct shape *s, size_t field) {
  int64_t numbers[3];
  for (uint32_t i = 0; i < s->axes; i++)
    numbers[i] = *(const uint32_t *)((const char *)&s->axis[3 - s->axes + i] + field);
  bool same = true;
  for (uint32_t i = 1; i < s->axes; i++) same &= numbers[i] == numbers[0];
  return op_ints(t, numbers, same && s->ic % 2 ? 1 : s->axes); /* one number is for all axes */
}
#define LIST(field) list(t, s, offsetof(struct axis, field))

static void dims_of(const struct shape *s, bool output, uint32_t *dims) {
  dims[0] = s->batch;
  dims[1] = s->groups * (output ? s->oc : s->ic);
  for (uint32_t i = 0; i < s->axes; i++) {
    const struct axis *a = &s->axis[3 - s->axes + i];
    dims[2 + i] = output ? out_of(s, a) : a->in;
  }
}

static struct graph_ids build(struct op_test *t, const struct shape *s, enum vk_dtype dtype,
                              enum vk_dtype w_dtype, unsigned how, const double *w,
                              const double *bias, const double bounds[2]) {
  uint32_t dx[5], dy[5], dw[5];
  dims_of(s, false, dx);
  dims_of(s, true, dy);
  dw[0] = s->groups * (s->transposed ? s->ic : s->oc);
  dw[1] = s->transposed ? s->oc : s->ic;
  for (uint32_t i = 0; i < s->axes; i++) dw[2 + i] = s->axis[3 - s->axes + i].kernel;
  struct graph_ids g = {.x = op_input(t, dtype, dx, 2 + s->axes)};
  g.w = how & INPUT_WEIGHT ? op_input(t, w_dtype, dw, 2 + s->axes)
                           : op_constant(t, w_dtype, dw, 2 + s->axes, w);
  uint32_t b = how & NO_BIAS ? op_null(t) : op_constant(t, w_dtype, DIMS(s->groups * s->oc), bias);
  g.y = op_output(t, dtype, dy, 2 + s->axes);
  uint32_t args[12] = {g.x,
                       g.w,
                       b,
                       LIST(stride),
                       LIST(padding),
                       LIST(dilation),
                       op_bool(t, s->transposed),
                       LIST(extra),
                       op_int(t, s->groups),
                       g.y};
  if (how & BOUNDED) {
    args[9] = op_double(t, bounds[0]);
    args[10] = isinf(bounds[1]) ? op_null(t) : op_double(t, bounds[1]);
    args[11] = g.y;
  }
  op_node(t, how & BOUNDED ? "et_vk.conv_with_clamp.default" : "aten.convolution.default", args,
          how & BOUNDED ? 12 : 10);
  return g;
}

/* Does some record of the plan have this row? */
static bool took(const struct op_test *t, const char *row) {
  for (uint32_t i = 0; i < t->graph.n_nodes; i++)
    for (uint32_t k = 0; k < t->graph.nodes[i].n_records; k++)
      if (strcmp(t->graph.nodes[i].records[k].row->name, row) == 0) return true;
  return false;
}

/* One call with x of these live dims. */
static void call(struct op_test *t, const struct graph_ids *g, const struct shape *s,
                 const double *x, const double *w, const double *bias, const double bounds[2],
                 enum vk_dtype dtype) {
  uint32_t dx[5], in[3], out[3];
  uint64_t numel = (uint64_t)s->batch * s->groups * s->oc, n, taps = 1;
  sconce_error err = {0};
  dims_of(s, false, dx);
  for (int i = 0; i < 3; i++) {
    in[i] = s->axis[i].in;
    out[i] = out_of(s, &s->axis[i]);
    numel *= out[i];
    taps *= s->axis[i].kernel;
  }
  op_set(t, g->x, dx, 2 + s->axes, x);
  CHECK_OK(op_run(t, &err), err);
  const double *got = op_get(t, g->y, &n);
  CHECK_EQ(n, numel);
  double *want = malloc((size_t)(numel + 1) * sizeof *want);
  expect(s, in, out, x, w, bias, bounds, want);
  if (!test_failed())
    test_close(got, want, n, 3e-7 * (double)(taps * s->ic) + 2e-6,
               dtype == VK_FLOAT16 ? 6e-4 : 2e-6, s->why);
  free(want);
}

/* Loads once and calls with several live shapes; returns whether `force` was taken. */
static bool run(const struct shape *s, enum vk_dtype dtype, enum vk_dtype w_dtype, unsigned how,
                const char *force) {
  const double clamp[] = {-0.5, s->ic % 3 ? INFINITY : 0.75};
  const double *bounds = how & BOUNDED ? clamp : NULL;
  uint64_t x_n = (uint64_t)s->batch * s->groups * s->ic, w_n = (uint64_t)s->groups * s->oc * s->ic;
  for (int i = 0; i < 3; i++) x_n *= s->axis[i].in, w_n *= s->axis[i].kernel;
  double *x = test_values(dtype, x_n, 1), *w = test_values(w_dtype, w_n, 2);
  double *values = test_values(w_dtype, (uint64_t)s->groups * s->oc, 3);
  const double *bias = how & NO_BIAS ? NULL : values;
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  if (how & FOLDED) t.graph.caps.max_workgroups = 7;
  struct graph_ids g = build(&t, s, dtype, w_dtype, how, w, values, bounds);
  CHECK_OK(op_load(&t, force, &err), err);
  bool taken = false;
  for (int i = 0; i < (force || how & ONCE ? 1 : 4) && !test_failed(); i++) {
    struct shape live = *s;
    if (i == 1) live.axis[2].in = s->axis[2].in > 1 && s->axes > 1 ? s->axis[2].in - 1 : 1;
    if (i == 1) live.axis[1].in = s->axis[1].in > 2 ? s->axis[1].in - 2 : s->axis[1].in;
    if (i == 2) live.batch = s->batch - 1; /* none, where there was one */
    const struct axis *a = live.axis;
    bool fits = true;
    for (int k = 0; k < 3; k++) {
      const uint32_t span = a[k].dilation * (a[k].kernel - 1) + 1, pads = 2 * a[k].padding;
      fits &= s->transposed ? (a[k].in - 1) * a[k].stride + span + a[k].extra > pads
                            : a[k].in + pads >= span;
    }
    if (how & INPUT_WEIGHT) {
      const struct tensor *weight = &t.graph.values[g.w].tensor;
      op_set(&t, g.w, weight->dim_max, weight->rank, w);
    }
    if (fits) call(&t, &g, &live, x, w, bias, bounds, dtype);
    taken |= force && took(&t, force);
  }
  op_end(&t);
  free(x);
  free(w);
  free(values);
  return taken;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void every_shape(void) {
  for (size_t i = 0; i < SHAPES && !test_failed(); i++) {
    run(&shapes[i], VK_FLOAT32, VK_FLOAT32, i % 2 ? BOUNDED : NO_BIAS, NULL);
    run(&shapes[i], VK_FLOAT16, VK_FLOAT16, i % 2 ? 0 : BOUNDED | NO_BIAS, NULL);
  }
}

/* A weight that is computed, or of another dtype, is read as it lies. */
static void plain_weights(void) {
  for (size_t i = 1; i < SHAPES && !test_failed(); i += 2) {
    run(&shapes[i], VK_FLOAT32, VK_FLOAT32, INPUT_WEIGHT | BOUNDED, NULL);
    run(&shapes[i], VK_FLOAT16, VK_FLOAT32, 0, NULL);
    run(&shapes[i], VK_FLOAT32, VK_FLOAT16, INPUT_WEIGHT, NULL);
  }
}

static void every_row(void) {
  for (const struct kernel *row = conv_kernels; row->name && !test_failed(); row++) {
    const bool half = !strstr(row->name, "f32");
    const enum vk_dtype dtype = half ? VK_FLOAT16 : VK_FLOAT32;
    int taken = 0;
    for (size_t i = (size_t)(row - conv_kernels) % 3; i < SHAPES; i += 3)
      taken += run(&shapes[i], dtype, dtype, i % 2 ? BOUNDED : 0, row->name);
    if (!taken) test_fail(__FILE__, __LINE__, "no shape takes %s", row->name);
  }
}

/* More workgroups than a dimension of the grid has. */
static void folded_grids(void) {
  static const char *const rows[] = {"gemm16_f32", "direct_f32", "depthwise1_f32", "plain_f32"};
  for (size_t i = 0; i < sizeof rows / sizeof *rows && !test_failed(); i++) {
    int taken = 0;
    for (size_t k = 4; k < 13; k++)
      taken += run(&shapes[k], VK_FLOAT32, VK_FLOAT32, FOLDED, rows[i]);
    if (!taken) test_fail(__FILE__, __LINE__, "no shape takes %s", rows[i]);
  }
}

/* x or y in parts: images, channels of one image, groups. */
static void large_operands(void) {
  struct gpu *gpu = test_gpu();
  if (!gpu || gpu_info(gpu)->max_storage_binding > 1 << 20) {
    test_skip("bindings may be larger than 1 MiB");
    return;
  }
  /* clang-format off */
  static const struct shape parts[] = {
      {2, 5, 1, 4, 6, 0, {NONE, {128, 3, 1, 1, 1, 0}, {128, 3, 1, 1, 1, 0}}, "images"},
      {2, 1, 1, 3, 37, 0, {NONE, {128, 1, 1, 0, 1, 0}, {96, 1, 1, 0, 1, 0}}, "channels"},
      {2, 2, 1, 2, 33, 0, {NONE, {128, 1, 1, 0, 1, 0}, {128, 1, 1, 0, 1, 0}}, "both"},
      {2, 1, 40, 1, 1, 0, {NONE, {128, 3, 1, 1, 1, 0}, {64, 3, 1, 1, 1, 0}}, "channels alone"},
      {2, 1, 9, 4, 9, 0, {NONE, {96, 1, 1, 0, 1, 0}, {64, 1, 1, 0, 1, 0}}, "groups"},
      {2, 1, 1, 3, 20, 1, {NONE, {64, 2, 2, 0, 1, 0}, {64, 2, 2, 0, 1, 0}}, "phases of channels"},
  };
  /* clang-format on */
  for (size_t i = 0; i < sizeof parts / sizeof *parts && !test_failed(); i++) {
    run(&parts[i], VK_FLOAT32, VK_FLOAT32, ONCE, NULL);
    run(&parts[i], VK_FLOAT32, VK_FLOAT32, ONCE | INPUT_WEIGHT, NULL);
  }
  struct op_test t;
  sconce_error err = {0};
  static const struct shape whole = {
      2, 1, 1, 40, 4, false, {NONE, {96, 1, 1, 0, 1, 0}, {96, 1, 1, 0, 1, 0}}, "one image of x"};
  double *w = test_values(VK_FLOAT32, 160, 1);
  op_begin(&t);
  build(&t, &whole, VK_FLOAT32, VK_FLOAT32, NO_BIAS, w, NULL, NULL);
  CHECK_FAILS(op_try(&t, &err), SCONCE_UNSUPPORTED, err,
              "has 1474560 bytes, the device binds at most 1048576");
  op_end(&t);
  free(w);
}

/* (taps, in, out), whatever the pieces are in which it is asked for. */
static void weights_are_packed_in_pieces(void) {
  static const uint32_t dims[][4] = {{3, 2, 2, 3}, {70, 5, 1, 2}, {4, 33, 3, 1}};
  static uint16_t in[800], want[1200], got[1200];
  for (uint32_t i = 0; i < 800; i++) in[i] = (uint16_t)(i + 1);
  for (uint32_t i = 0; i < 6 && !test_failed(); i++) {
    const uint32_t *d = dims[i / 2], transposed = i % 2, taps = d[2] * d[3];
    const uint32_t ic = d[!transposed], oc = d[transposed], line = (oc + 3) / 4 * 4;
    const struct packing *packing = transposed ? &conv_transposed : &conv_forward;
    const struct unpacked from = {VK_FLOAT16, 4, d, (const uint8_t *)in};
    const uint32_t size = 2 * taps * ic * line;
    CHECK_EQ(packing->size(&from), size);
    for (uint32_t at = 0; at < size / 2; at++) {
      const uint32_t tap = at / line / ic, c = at / line % ic, o = at % line;
      want[at] = o < oc ? in[(transposed ? c * oc + o : o * ic + c) * taps + tap] : 0;
    }
    for (uint32_t piece = 16; piece < size + 32; piece += 16 * (1 + piece / 64)) {
      memset(got, 0xff, sizeof got);
      for (uint32_t at = 0; at < size; at += piece)
        packing->fill(&from, at, at + piece < size ? at + piece : size, (uint8_t *)got + at);
      if (memcmp(got, want, size) != 0)
        test_fail(__FILE__, __LINE__, "form %u in pieces of %u bytes", i, piece);
    }
  }
}

/* Sums that overflow, and NaN, come through bounds as torch.clamp lets them. */
static void odd_numbers(void) {
  static const struct shape s = {
      1, 1, 1, 2, 8, false, {NONE, NONE, {4, 1, 1, 0, 1, 0}}, "odd numbers"};
  const double x[] = {1, NAN, INFINITY, -INFINITY, 1, 1, 1, 1};
  const double bounds[] = {0, INFINITY};
  double *w = malloc(16 * sizeof *w);
  for (int i = 0; i < 16; i++) w[i] = 1;
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  struct graph_ids g = build(&t, &s, VK_FLOAT32, VK_FLOAT32, NO_BIAS | BOUNDED, w, NULL, bounds);
  REQUIRE_OK(op_load(&t, NULL, &err), err);
  op_set(&t, g.x, DIMS(1, 2, 4), x);
  CHECK_OK(op_run(&t, &err), err);
  uint64_t n;
  const double *y = op_get(&t, g.y, &n);
  for (int c = 0; c < 8; c++) {
    CHECK_NEAR(y[4 * c], 2, 0);
    CHECK(isnan(y[4 * c + 1]));
    CHECK(isinf(y[4 * c + 2]) && y[4 * c + 2] > 0);
    CHECK_NEAR(y[4 * c + 3], 0, 0);
  }
  op_end(&t);
  free(w);
}

static void errors(void) {
  struct bad {
    struct shape s;
    sconce_status status;
    const char *fragment;
  };
#define ROW(axes_, groups_, transposed_, ...)                                                      \
  {axes_, 1, groups_, 2, 3, transposed_, {NONE, __VA_ARGS__}, ""}
  static const struct bad cases[] = {
      {ROW(2, 1, false, {5, 3, 0, 1, 1, 0}, {5, 3, 2, 1, 1, 0}), SCONCE_BAD_GRAPH, "stride of 0"},
      {ROW(2, 1, false, {5, 3, 1, 1, 0, 0}, {5, 3, 1, 1, 1, 0}), SCONCE_BAD_GRAPH, "dilation of 0"},
      {ROW(2, 1, true, {5, 3, 2, 1, 1, 2}, {5, 3, 2, 1, 1, 0}), SCONCE_BAD_GRAPH,
       "output padding of 2, with a stride of 2 and a dilation of 1"},
      {ROW(2, 1, false, {3, 3, 1 << 25, 0, 1, 0}, {5, 3, 2, 1, 1, 0}), SCONCE_UNSUPPORTED,
       "stride of 33554432, expected 1 to 16777216"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases && !test_failed(); i++) {
    struct shape s = cases[i].s; /* dims of y come from a shape that works */
    double w[2 * 3 * 9] = {0};
    struct op_test t;
    sconce_error err = {0};
    op_begin(&t);
    uint32_t x = op_input(&t, VK_FLOAT32, DIMS(1, 2, s.axis[1].in, 5));
    uint32_t wi =
        op_constant(&t, VK_FLOAT32, DIMS(s.transposed ? 2 : 3, s.transposed ? 3 : 2, 3, 3), w);
    uint32_t y = op_output(&t, VK_FLOAT32, DIMS(1, 3, 16, 16));
#define PAIR(field) op_ints(&t, INTS(s.axis[1].field, s.axis[2].field))
    op_node(&t, "aten.convolution.default",
            IDS(x, wi, op_null(&t), PAIR(stride), PAIR(padding), PAIR(dilation),
                op_bool(&t, s.transposed), PAIR(extra), op_int(&t, 1), y));
    CHECK_FAILS(op_try(&t, &err), cases[i].status, err, cases[i].fragment);
    op_end(&t);
  }
}

/* Tensors that do not go together. */
static void mismatches(void) {
  static const struct {
    uint32_t x[4], w[4], bias, groups;
    enum vk_dtype x_dtype, y_dtype;
    sconce_status status;
    const char *fragment;
  } cases[] = {
      {{1, 4, 5, 5},
       {6, 3, 3, 3},
       6,
       1,
       VK_FLOAT32,
       VK_FLOAT32,
       SCONCE_BAD_GRAPH,
       "x is float32 [1, 4, 5, 5], the weight float32 [6, 3, 3, 3], in 1 groups"},
      {{1, 4, 5, 5}, {6, 1, 3, 3}, 6, 4, VK_FLOAT32, VK_FLOAT32, SCONCE_BAD_GRAPH, "in 4 groups"},
      {{1, 4, 5, 5}, {6, 4, 3, 3}, 6, 0, VK_FLOAT32, VK_FLOAT32, SCONCE_BAD_GRAPH, "in 0 groups"},
      {{1, 4, 5, 5},
       {6, 4, 3, 3},
       5,
       1,
       VK_FLOAT32,
       VK_FLOAT32,
       SCONCE_BAD_GRAPH,
       "a bias of 5 for 6"},
      {{1, 4, 5, 5}, {6, 4, 3, 3}, 6, 1, VK_INT32, VK_FLOAT32, SCONCE_UNSUPPORTED, "x is int32"},
      {{1, 4, 5, 5},
       {6, 4, 3, 3},
       6,
       1,
       VK_FLOAT32,
       VK_FLOAT16,
       SCONCE_BAD_GRAPH,
       "x is float32, the result float16"},
      {{1, 4, 2, 5},
       {6, 4, 3, 3},
       6,
       1,
       VK_FLOAT32,
       VK_FLOAT32,
       SCONCE_BAD_GRAPH,
       "a kernel of 3 with dilation 1 does not fit 2 pixels with padding 0"},
  };
  double zeros[6 * 4 * 9] = {0};
  for (size_t i = 0; i < sizeof cases / sizeof *cases && !test_failed(); i++) {
    struct op_test t;
    sconce_error err = {0};
    op_begin(&t);
    uint32_t x = op_input(&t, cases[i].x_dtype, cases[i].x, 4);
    uint32_t w = op_constant(&t, VK_FLOAT32, cases[i].w, 4, zeros);
    uint32_t bias = op_constant(&t, VK_FLOAT32, DIMS(cases[i].bias), zeros);
    uint32_t y = op_output(&t, cases[i].y_dtype, DIMS(1, 6, 3, 3));
    uint32_t ones = op_ints(&t, INTS(1)), none = op_ints(&t, INTS(0));
    op_node(&t, "aten.convolution.default",
            IDS(x, w, bias, ones, none, ones, op_bool(&t, false), none, op_int(&t, cases[i].groups),
                y));
    CHECK_FAILS(op_try(&t, &err), cases[i].status, err, cases[i].fragment);
    op_end(&t);
  }
}

const struct test suite_conv[] = {
    TEST(every_shape),    TEST(plain_weights),
    TEST(every_row),      TEST(folded_grids),
    TEST(large_operands), TEST(weights_are_packed_in_pieces),
    TEST(odd_numbers),    TEST(errors),
    TEST(mismatches),     {0},
};
