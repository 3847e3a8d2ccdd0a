/* The gradients of convolutions, each against the sum that defines it. */
#include "op.h"

static const struct form {
  uint32_t n, ic, oc, groups, h, w, kh, kw;
  int64_t stride, padding, dilation;
  const char *why;
} forms[] = {
    {2, 3, 4, 1, 5, 6, 3, 3, 1, 1, 1, "as everywhere"},
    {1, 2, 3, 1, 7, 8, 3, 2, 2, 1, 1, "a stride that leaves pixels out"},
    {2, 4, 6, 2, 6, 5, 2, 3, 1, 0, 2, "groups, and a dilated kernel"},
    {1, 3, 3, 3, 6, 6, 3, 3, 2, 1, 1, "one channel each"},
};

static uint32_t extent(const struct form *f, uint32_t in, uint32_t k) {
  return (uint32_t)((in + 2 * f->padding - f->dilation * (k - 1) - 1) / f->stride + 1);
}

/* Adds up all products that a pixel of the result is the sum of. */
static void oracle(const struct form *f, const double *g, const double *x, const double *w,
                   double *gx, double *gw, double *gb) {
  const uint32_t oh = extent(f, f->h, f->kh), ow = extent(f, f->w, f->kw), icg = f->ic / f->groups;
  for (uint32_t n = 0; n < f->n; n++)
    for (uint32_t o = 0; o < f->oc; o++)
      for (uint32_t i = 0; i < oh * ow; i++) {
        const double grad = g[(n * f->oc + o) * oh * ow + i];
        gb[o] += grad;
        for (uint32_t c = 0; c < icg; c++)
          for (uint32_t k = 0; k < f->kh * f->kw; k++) {
            const int64_t y = i / ow * f->stride - f->padding + k / f->kw * f->dilation;
            const int64_t z = i % ow * f->stride - f->padding + k % f->kw * f->dilation;
            if (y < 0 || z < 0 || y >= f->h || z >= f->w) continue;
            const uint32_t channel = o / (f->oc / f->groups) * icg + c;
            const size_t at = (((size_t)n * f->ic + channel) * f->h + (size_t)y) * f->w + (size_t)z;
            const size_t weight = ((size_t)o * icg + c) * f->kh * f->kw + k;
            gx[at] += grad * w[weight];
            gw[weight] += grad * x[at];
          }
      }
}

static void run(const struct form *f) {
  struct op_test t;
  sconce_error err = {0};
  const uint32_t oh = extent(f, f->h, f->kh), ow = extent(f, f->w, f->kw), icg = f->ic / f->groups;
  const uint32_t n_g = f->n * f->oc * oh * ow, n_x = f->n * f->ic * f->h * f->w,
                 n_w = f->oc * icg * f->kh * f->kw;
  op_begin(&t);
  uint32_t g = op_input(&t, VK_FLOAT32, DIMS(f->n, f->oc, oh, ow)),
           x = op_input(&t, VK_FLOAT32, DIMS(f->n, f->ic, f->h, f->w)),
           w = op_input(&t, VK_FLOAT32, DIMS(f->oc, icg, f->kh, f->kw));
  uint32_t outs[] = {op_output(&t, VK_FLOAT32, DIMS(f->n, f->ic, f->h, f->w)),
                     op_output(&t, VK_FLOAT32, DIMS(f->oc, icg, f->kh, f->kw)),
                     op_output(&t, VK_FLOAT32, DIMS(f->oc))};
  uint32_t mask = graph_add_value(&t.graph, VK_BOOL_LIST, &err);
  t.graph.values[mask].list.n = 3;
  t.graph.values[mask].list.bools = (const bool[]){true, true, true};
  op_node(&t, "aten::convolution_backward.out",
          IDS(g, x, w, op_null(&t), op_ints(&t, INTS(f->stride, f->stride)),
              op_ints(&t, INTS(f->padding, f->padding)),
              op_ints(&t, INTS(f->dilation, f->dilation)), op_bool(&t, false),
              op_ints(&t, INTS(0, 0)), op_int(&t, f->groups), mask, op_list(&t, outs, 3)));
  CHECK_OK(op_load(&t, NULL, &err), err);
  double *vg = test_values(VK_FLOAT32, n_g, 1), *vx = test_values(VK_FLOAT32, n_x, 2),
         *vw = test_values(VK_FLOAT32, n_w, 3), *want[3];
  const uint32_t sizes[] = {n_x, n_w, f->oc};
  for (int i = 0; i < 3; i++) want[i] = calloc(sizes[i], sizeof *want[i]);
  oracle(f, vg, vx, vw, want[0], want[1], want[2]);
  op_set(&t, g, DIMS(f->n, f->oc, oh, ow), vg);
  op_set(&t, x, DIMS(f->n, f->ic, f->h, f->w), vx);
  op_set(&t, w, DIMS(f->oc, icg, f->kh, f->kw), vw);
  CHECK_OK(op_run(&t, &err), err);
  for (int i = 0; i < 3 && !test_failed(); i++) {
    uint64_t n;
    const double *got = op_get(&t, outs[i], &n);
    CHECK_EQ(n, sizes[i]);
    test_close(got, want[i], n, 1e-5, 1e-5, f->why);
  }
  for (int i = 0; i < 3; i++) free(want[i]);
  free(vg);
  free(vx);
  free(vw);
  op_end(&t);
}

static void every_form(void) {
  for (size_t i = 0; i < sizeof forms / sizeof *forms && !test_failed(); i++) run(&forms[i]);
}

const struct test suite_conv_backward[] = {TEST(every_form), {0}};
