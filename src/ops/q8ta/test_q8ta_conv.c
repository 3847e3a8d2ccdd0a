/* Convolutions of quantised tensors, byte for byte: sums of integers in plain loops over the
 * definition, then the steps of float32 that the kernels promise. */
#include "op.h"

enum form { GENERAL, POINTWISE, DEPTHWISE, TRANSPOSED };
static const char *const old_names[] = {"et_vk.conv2d_q8ta_q8csw_q8to.default", NULL,
                                        "et_vk.conv2d_q8ta_q8csw_q8to_dw.default", NULL};
static const char *const names[] = {"et_vk.q8ta_conv2d.default", "et_vk.q8ta_conv2d_pw.default",
                                    "et_vk.q8ta_conv2d_dw.default",
                                    "et_vk.q8ta_conv2d_transposed.default"};

struct conv {
  enum form form;
  uint32_t batch, in, out, groups;
  uint32_t size[2], kernel[2], stride[2], padding[2], dilation[2], more[2];
  bool relu, no_bias;
  const char *why;
};
static const struct conv convs[] = {
    {GENERAL, 1, 8, 8, 1, {8, 8}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {0}, .why = "as common as any"},
    {GENERAL,
     2,
     3,
     5,
     1,
     {9, 7},
     {3, 3},
     {2, 2},
     {1, 1},
     {1, 1},
     {0},
     true,
     .why = "three channels, 5 by 4 places, two images"},
    {GENERAL,
     2,
     4,
     6,
     1,
     {7, 7},
     {3, 3},
     {1, 1},
     {1, 1},
     {1, 1},
     {0},
     .why = "49 places: words across planes and images"},
    {GENERAL,
     1,
     8,
     36,
     1,
     {5, 9},
     {3, 5},
     {1, 2},
     {1, 2},
     {1, 1},
     {0},
     .no_bias = true,
     .why = "sides differ in all; 25 places"},
    {GENERAL, 1, 4, 4, 1, {9, 9}, {3, 3}, {1, 1}, {2, 2}, {2, 2}, {0}, .why = "dilated"},
    {GENERAL, 1, 8, 12, 2, {6, 6}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {0}, .why = "two groups"},
    {GENERAL,
     1,
     6,
     9,
     3,
     {4, 5},
     {2, 2},
     {1, 1},
     {0, 0},
     {1, 1},
     {0},
     .why = "groups of two channels"},
    {GENERAL,
     1,
     4,
     4,
     1,
     {2, 3},
     {5, 5},
     {1, 1},
     {2, 2},
     {1, 1},
     {0},
     .why = "more outside than inside"},
    {GENERAL,
     3,
     36,
     70,
     1,
     {13, 12},
     {3, 3},
     {1, 1},
     {1, 1},
     {1, 1},
     {0},
     true,
     .why = "several tiles each way"},
    {POINTWISE, 2, 4, 8, 1, {6, 8}, {1, 1}, {1, 1}, {0, 0}, {1, 1}, {0}, .why = "whole words"},
    {POINTWISE,
     2,
     16,
     7,
     1,
     {5, 5},
     {1, 1},
     {1, 1},
     {0, 0},
     {1, 1},
     {0},
     true,
     .why = "planes of 25 bytes"},
    {POINTWISE, 1, 5, 3, 1, {3, 1}, {1, 1}, {1, 1}, {0, 0}, {1, 1}, {0}, .why = "five channels"},
    {POINTWISE, 1, 64, 96, 1, {33, 32}, {1, 1}, {1, 1}, {0, 0}, {1, 1}, {0}, .why = "large tiles"},
    {POINTWISE, 1, 8, 8, 2, {4, 4}, {1, 1}, {1, 1}, {0, 0}, {1, 1}, {0}, .why = "in groups"},
    {DEPTHWISE, 2, 8, 8, 8, {8, 8}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {0}, .why = "as common as any"},
    {DEPTHWISE,
     1,
     5,
     5,
     5,
     {7, 9},
     {3, 3},
     {2, 2},
     {1, 1},
     {1, 1},
     {0},
     true,
     .why = "four by five places of five channels"},
    {DEPTHWISE,
     2,
     4,
     4,
     4,
     {7, 7},
     {5, 3},
     {1, 1},
     {2, 1},
     {1, 1},
     {0},
     .no_bias = true,
     .why = "a tall kernel, 49 places"},
    {DEPTHWISE, 1, 4, 4, 4, {9, 9}, {3, 3}, {1, 1}, {2, 2}, {2, 2}, {0}, .why = "dilated"},
    {DEPTHWISE, 1, 4, 4, 4, {6, 30}, {1, 9}, {1, 1}, {0, 4}, {1, 1}, {0}, .why = "a wide kernel"},
    {TRANSPOSED, 1, 8, 8, 1, {4, 4}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, .why = "doubles"},
    {TRANSPOSED,
     2,
     3,
     5,
     1,
     {4, 5},
     {3, 2},
     {2, 2},
     {0, 0},
     {1, 1},
     {0},
     true,
     .why = "9 by 10 places"},
    {TRANSPOSED,
     1,
     4,
     6,
     1,
     {3, 3},
     {4, 4},
     {3, 2},
     {1, 2},
     {1, 1},
     {2, 1},
     .why = "strides differ"},
    {TRANSPOSED,
     1,
     8,
     8,
     2,
     {3, 3},
     {3, 3},
     {1, 1},
     {1, 1},
     {2, 2},
     {0},
     .no_bias = true,
     .why = "two groups with the same scales, dilated"},
};
enum { CONVS = sizeof convs / sizeof *convs, X_ZERO = 11, Y_ZERO = -4 };
static const double x_scale = 0.02, y_scale = 0.11;

struct layer {
  uint32_t out_size[2], deep, row; /* products in a sum, bytes of a row of w */
  int8_t *x, *w;                   /* w as (out, taps, in of a group) with rows of `row` */
  double *scales, *bias, *elements, *want;
};

static uint32_t per_group(const struct conv *c) { return c->in / c->groups; }
static uint32_t n_scales(const struct conv *c) {
  return c->form == TRANSPOSED ? c->out / c->groups : c->out;
}

static void make(struct layer *l, const struct conv *c) {
  uint64_t seed = 17;
  for (int i = 0; i < 2; i++) {
    const int reach = (int)(c->dilation[i] * (c->kernel[i] - 1)), pad = 2 * (int)c->padding[i];
    l->out_size[i] = (uint32_t)(((int)c->size[i] + pad - reach - 1) / (int)c->stride[i] + 1);
    if (c->form == TRANSPOSED)
      l->out_size[i] =
          (uint32_t)((int)((c->size[i] - 1) * c->stride[i]) - pad + reach + (int)c->more[i] + 1);
  }
  l->deep = c->kernel[0] * c->kernel[1] * per_group(c);
  l->row = (l->deep + 3) / 4 * 4;
  const uint32_t numel = c->batch * c->in * c->size[0] * c->size[1], padded = (c->out + 3) / 4 * 4;
  l->x = malloc(numel);
  l->elements = malloc(numel * sizeof *l->elements);
  l->w = calloc((size_t)c->out * l->row, 1);
  l->scales = calloc(padded, sizeof *l->scales);
  l->bias = test_values(VK_FLOAT32, padded, 2);
  l->want = malloc(c->batch * c->out * l->out_size[0] * l->out_size[1] * sizeof *l->want);
  for (uint32_t i = 0; i < numel; i++) l->elements[i] = l->x[i] = (int8_t)(test_random(&seed) >> 9);
  for (uint32_t o = 0; o < c->out; o++) {
    l->scales[o] = 0.01f + 0.001f * (float)(o % 7);
    for (uint32_t k = 0; k < l->deep; k++) l->w[o * l->row + k] = (int8_t)(test_random(&seed) >> 9);
  }
}

static void drop(struct layer *l) {
  free(l->x), free(l->w), free(l->scales), free(l->bias), free(l->elements);
  free(l->want);
}

/* Adds what one byte of x contributes: places i, j of y from places a, b of x. */
static bool place_in(const struct conv *c, int axis, uint32_t place, uint32_t tap, uint32_t *at) {
  const int64_t s = c->stride[axis], pad = c->padding[axis], d = (int64_t)c->dilation[axis] * tap;
  if (c->form != TRANSPOSED) {
    const int64_t from = place * s - pad + d;
    *at = (uint32_t)from;
    return from >= 0 && from < c->size[axis];
  }
  for (uint32_t from = 0; from < c->size[axis]; from++)
    if (from * s - pad + d == place) {
      *at = from;
      return true;
    }
  return false;
}

static int64_t sum_at(const struct layer *l, const struct conv *c, uint32_t b, uint32_t o,
                      uint32_t i, uint32_t j) {
  const uint32_t first = o / (c->out / c->groups) * per_group(c);
  int64_t sum = 0;
  for (uint32_t u = 0; u < c->kernel[0]; u++)
    for (uint32_t v = 0; v < c->kernel[1]; v++)
      for (uint32_t k = 0; k < per_group(c); k++) {
        uint32_t row, col;
        if (!place_in(c, 0, i, u, &row) || !place_in(c, 1, j, v, &col)) continue;
        const uint32_t at = ((b * c->in + first + k) * c->size[0] + row) * c->size[1] + col;
        sum += (int64_t)(l->x[at] - X_ZERO) *
               l->w[o * l->row + (u * c->kernel[1] + v) * per_group(c) + k];
      }
  return sum;
}

static void expect(struct layer *l, const struct conv *c) {
  uint32_t n = 0;
  for (uint32_t b = 0; b < c->batch; b++)
    for (uint32_t o = 0; o < c->out; o++)
      for (uint32_t i = 0; i < l->out_size[0]; i++)
        for (uint32_t j = 0; j < l->out_size[1]; j++) {
          const volatile float scale = (float)x_scale * (float)l->scales[o % n_scales(c)];
          volatile float real = (float)sum_at(l, c, b, o, i, j) * scale;
          if (!c->no_bias) real = real + (float)l->bias[o];
          if (c->relu) real = fmaxf(real, 0);
          const volatile float steps = real * (float)(1 / y_scale);
          l->want[n++] = fmin(fmax(nearbyintf(steps) + (float)Y_ZERO, -128), 127);
        }
}

static uint32_t add_weight(struct op_test *t, const struct layer *l, const struct conv *c) {
  if (c->form != DEPTHWISE) return op_constant_bytes(t, VK_INT8, DIMS(c->out, l->row), l->w);
  int8_t *turned = malloc((size_t)c->out * l->deep);
  for (uint32_t o = 0; o < c->out; o++)
    for (uint32_t k = 0; k < l->deep; k++) turned[k * c->out + o] = l->w[o * l->row + k];
  uint32_t id = op_constant_bytes(t, VK_INT8, DIMS(c->kernel[0], c->kernel[1], c->out), turned);
  free(turned);
  return id;
}

static uint32_t two(struct op_test *t, const uint32_t pair[2]) {
  return op_ints(t, INTS(pair[0], pair[1]));
}

static void add_node(struct op_test *t, const struct layer *l, const struct conv *c, uint32_t x,
                     uint32_t y) {
  const uint32_t padded = (c->out + 3) / 4 * 4;
  uint32_t args[17] = {x, op_double(t, x_scale), op_int(t, X_ZERO), add_weight(t, l, c)}, n = 4;
  args[n++] = op_constant(t, VK_INT32, DIMS(1), &(double){12345}); /* sums, which nobody trusts */
  args[n++] = op_constant(t, VK_FLOAT32, DIMS((n_scales(c) + 3) / 4 * 4), l->scales);
  args[n++] = op_double(t, y_scale);
  args[n++] = op_double(t, Y_ZERO);
  args[n++] = c->no_bias ? op_null(t) : op_constant(t, VK_FLOAT32, DIMS(padded), l->bias);
  args[n++] = two(t, c->kernel);
  args[n++] = two(t, c->stride);
  args[n++] = two(t, c->padding);
  if (c->form == TRANSPOSED) args[n++] = two(t, c->more);
  args[n++] = two(t, c->dilation);
  args[n++] = op_double(t, c->groups);
  const char *old = c->no_bias && !c->relu ? old_names[c->form] : NULL; /* without an activation */
  if (!old) args[n++] = op_text(t, c->relu ? "relu" : "none");
  args[n++] = y;
  op_node(t, old ? old : names[c->form], args, n);
}

/* The maximum is one row and two columns more, so that live sizes differ from it. */
static void run(const struct conv *c, const char *force) {
  struct layer l;
  struct op_test t;
  sconce_error err = {0};
  make(&l, c);
  expect(&l, c);
  op_begin(&t);
  const uint32_t step[2] = {c->form == TRANSPOSED ? c->stride[0] : 1,
                            c->form == TRANSPOSED ? 2 * c->stride[1] : 2};
  uint32_t x = op_input(&t, VK_INT8, DIMS(c->batch, c->in, c->size[0] + 1, c->size[1] + 2));
  uint32_t y = op_output(&t, VK_INT8,
                         DIMS(c->batch, c->out, l.out_size[0] + step[0], l.out_size[1] + step[1]));
  add_node(&t, &l, c, x, y);
  CHECK_OK(op_load(&t, force, &err), err);
  static const uint32_t batches[] = {UINT32_MAX, 0, 1, UINT32_MAX};
  for (int i = force ? 3 : 0; i < 4 && !test_failed(); i++) {
    const uint32_t batch = batches[i] < c->batch ? batches[i] : c->batch;
    op_set(&t, x, DIMS(batch, c->in, c->size[0], c->size[1]), l.elements);
    CHECK_OK(op_run(&t, &err), err);
    uint64_t n;
    const double *got = op_get(&t, y, &n);
    CHECK_EQ(n, (uint64_t)batch * c->out * l.out_size[0] * l.out_size[1]);
    if (!test_failed()) test_close(got, l.want, n, 0, 0, c->why);
  }
  op_end(&t);
  drop(&l);
}

static void every_conv(void) {
  for (size_t i = 0; i < CONVS && !test_failed(); i++) run(&convs[i], NULL);
}

static void every_row(void) {
  struct gpu *gpu = test_gpu();
  REQUIRE(gpu);
  const struct caps caps = gpu_caps(gpu);
  for (size_t i = 0; i < CONVS; i++)
    for (const struct kernel *row = op_find(text_of(names[convs[i].form]))->tables[0];
         row->name && !test_failed(); row++)
      if (kernel_runs(row, &caps)) run(&convs[i], row->name);
}

/* Bytes from node to node: nothing in between is a float. */
static void chained(void) {
  static const struct conv first = {GENERAL, 1,      4,      4,   1,    {7, 7},        {3, 3},
                                    {1, 1},  {1, 1}, {1, 1}, {0}, true, .why = "first"};
  struct conv second = first;
  struct layer one, two_;
  struct op_test t;
  sconce_error err = {0};
  make(&one, &first);
  make(&two_, &second);
  expect(&one, &first);
  op_begin(&t);
  uint32_t x = op_input(&t, VK_INT8, DIMS(1, 4, 7, 7)),
           y = op_tensor(&t, VK_INT8, DIMS(1, 4, 7, 7));
  uint32_t z = op_output(&t, VK_INT8, DIMS(1, 4, 7, 7));
  add_node(&t, &one, &first, x, y);
  add_node(&t, &two_, &second, y, z);
  CHECK_OK(op_load(&t, NULL, &err), err);
  if (!test_failed()) {
    for (int i = 0; i < 196; i++) two_.x[i] = (int8_t)one.want[i];
    expect(&two_, &second);
    op_set(&t, x, DIMS(1, 4, 7, 7), one.elements);
    CHECK_OK(op_run(&t, &err), err);
    uint64_t n;
    const double *got = op_get(&t, z, &n);
    if (!test_failed()) test_close(got, two_.want, 196, 0, 0, "two in a row");
  }
  op_end(&t);
  drop(&one);
  drop(&two_);
}

static void refuses(void) {
  static const struct {
    struct conv c;
    uint32_t in; /* channels of x */
    sconce_status status;
    const char *says;
  } cases[] = {
      {{GENERAL, 1, 4, 4, 1, {2, 2}, {5, 5}, {1, 1}, {0, 0}, {1, 1}, {0}, .why = ""},
       4,
       SCONCE_BAD_ARGUMENT,
       "2 places with a kernel of 5, dilation 1 and padding 0 leave none"},
      {{GENERAL, 1, 4, 4, 1, {4, 4}, {3, 3}, {1, 1}, {0, 0}, {1, 1}, {0}, .why = ""},
       8,
       SCONCE_BAD_GRAPH,
       "the weight is int8 [4, 36], for a kernel of 3 by 3 and 8 channels"},
      {{GENERAL, 1, 4, 4, 3, {4, 4}, {1, 1}, {1, 1}, {0, 0}, {1, 1}, {0}, .why = ""},
       4,
       SCONCE_BAD_GRAPH,
       "for 3 groups"},
      {{GENERAL, 1, 4, 4, 1, {4, 4}, {1, 1}, {0, 1}, {0, 0}, {1, 1}, {0}, .why = ""},
       4,
       SCONCE_BAD_GRAPH,
       "a stride of 0"},
      {{DEPTHWISE, 1, 4, 4, 4, {4, 4}, {1, 1}, {1, 1}, {0, 0}, {1, 1}, {0}, .why = ""},
       8,
       SCONCE_BAD_GRAPH,
       "the weight is int8 [1, 1, 4]"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct conv c = cases[i].c, shape = c;
    struct layer l;
    struct op_test t;
    sconce_error err = {0};
    if (shape.groups == 3) shape.groups = 1;
    shape.stride[0] = 1;
    memcpy(shape.size, (uint32_t[]){8, 8}, sizeof shape.size);
    make(&l, &shape);
    op_begin(&t);
    uint32_t x = op_input(&t, VK_INT8, DIMS(1, cases[i].in, c.size[0], c.size[1]));
    add_node(&t, &l, &c, x, op_output(&t, VK_INT8, DIMS(1, c.out, 4, 4)));
    CHECK_FAILS(op_try(&t, &err), cases[i].status, err, cases[i].says);
    op_end(&t);
    drop(&l);
  }
}

const struct test suite_q8ta_conv[] = {
    TEST(every_conv), TEST(every_row), TEST(chained), TEST(refuses), {0}};
