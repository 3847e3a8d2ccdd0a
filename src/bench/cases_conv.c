/* Convolutions for the grid of kernel benches: layers of ResNet-18 and -50 and of MobileNet-V2 for
 * an image of 224 by 224, each alone and those that end a block with the sum and activation behind.
 */
#include "bench/kernels.h"

#include <stdio.h>

static const struct {
  uint32_t side, in, out, kernel, stride, groups;
  bool quick;
} layers[] = {
    {224, 3, 64, 7, 2, 1, true}, /* ResNets */
    {56, 64, 64, 1, 1, 1, false},     {56, 64, 64, 3, 1, 1, true},
    {56, 64, 256, 1, 1, 1, false},    {56, 256, 64, 1, 1, 1, false},
    {56, 256, 512, 1, 2, 1, false},   {56, 64, 128, 3, 2, 1, false},
    {28, 128, 128, 3, 1, 1, false},   {28, 128, 512, 1, 1, 1, false},
    {28, 512, 128, 1, 1, 1, false},   {28, 128, 256, 3, 2, 1, false},
    {14, 256, 256, 3, 1, 1, true},    {14, 256, 1024, 1, 1, 1, false},
    {14, 1024, 256, 1, 1, 1, false},  {14, 1024, 2048, 1, 2, 1, false},
    {14, 256, 512, 3, 2, 1, false},   {7, 512, 512, 3, 1, 1, true},
    {7, 512, 2048, 1, 1, 1, true},    {7, 2048, 512, 1, 1, 1, false},
    {224, 3, 32, 3, 2, 1, true}, /* MobileNet-V2 */
    {112, 32, 32, 3, 1, 32, true},    {112, 32, 16, 1, 1, 1, false},
    {112, 16, 96, 1, 1, 1, true},     {112, 96, 96, 3, 2, 96, false},
    {56, 96, 24, 1, 1, 1, false},     {56, 24, 144, 1, 1, 1, false},
    {56, 144, 144, 3, 1, 144, true},  {56, 144, 24, 1, 1, 1, true},
    {28, 32, 192, 1, 1, 1, false},    {28, 192, 192, 3, 1, 192, false},
    {28, 192, 32, 1, 1, 1, false},    {14, 64, 384, 1, 1, 1, false},
    {14, 384, 384, 3, 1, 384, false}, {14, 384, 64, 1, 1, 1, false},
    {14, 576, 96, 1, 1, 1, false},    {7, 160, 960, 1, 1, 1, true},
    {7, 960, 960, 3, 1, 960, true},   {7, 960, 160, 1, 1, 1, true},
    {7, 320, 1280, 1, 1, 1, false},
};

static uint32_t side_out(const struct kernel_case *c) {
  return (c->side + c->kernel / 2 * 2 - c->kernel) / c->stride + 1;
}

static uint32_t pair(struct case_builder *b, uint32_t number) {
  return op_list(&b->t, DIMS(op_int(&b->t, number), op_int(&b->t, number)));
}

static void convolve(struct case_builder *b, uint32_t y) {
  const struct kernel_case *c = b->c;
  const uint64_t out = side_out(c), size = vk_dtype_size(c->dtype);
  uint32_t x = case_input(b, c->dtype, DIMS(1, c->k, c->side, c->side));
  uint32_t w = case_weight(b, c->dtype, DIMS(c->n, c->k / c->groups, c->kernel, c->kernel));
  uint32_t bias = case_weight(b, c->dtype, DIMS(c->n));
  op_node(&b->t, "aten.convolution.default",
          DIMS(x, w, bias, pair(b, c->stride), pair(b, c->kernel / 2), pair(b, 1),
               op_bool(&b->t, false), pair(b, 0), op_int(&b->t, c->groups), y));
  const uint64_t weights = (uint64_t)c->n * (c->k / c->groups) * c->kernel * c->kernel;
  b->bytes += (weights + (uint64_t)c->k * c->side * c->side) * size;
  b->flops += 2.0 * (double)(weights * out * out);
}

static void build_conv(struct case_builder *b) {
  const uint32_t out = side_out(b->c);
  convolve(b, op_output(&b->t, b->c->dtype, DIMS(1, b->c->n, out, out)));
}

/* … + rest, relu. */
static void build_block(struct case_builder *b) {
  const enum vk_dtype dtype = b->c->dtype;
  const uint32_t n = b->c->n, out = side_out(b->c);
  uint32_t y = op_tensor(&b->t, dtype, DIMS(1, n, out, out));
  uint32_t rest = case_input(b, dtype, DIMS(1, n, out, out));
  uint32_t sum = op_tensor(&b->t, dtype, DIMS(1, n, out, out));
  convolve(b, y);
  op_node(&b->t, "aten.add.Tensor", DIMS(y, rest, op_int(&b->t, 1), sum));
  op_node(&b->t, "aten.relu.default", DIMS(sum, op_output(&b->t, dtype, DIMS(1, n, out, out))));
}

sconce_status cases_conv(const struct case_dtype *dtype,
                         sconce_status (*each)(void *user, const struct kernel_case *c,
                                               sconce_error *err),
                         void *user, sconce_error *err) {
  for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
    for (int block = 0; block < 2; block++) {
      struct kernel_case c = {.build = block ? build_block : build_conv,
                              .op = block ? "sconce.conv" : "aten.convolution.default",
                              .n_tables = 1,
                              .fused = block,
                              .dtype = dtype->dtype,
                              .side = layers[i].side,
                              .k = layers[i].in,
                              .n = layers[i].out,
                              .kernel = layers[i].kernel,
                              .stride = layers[i].stride,
                              .groups = layers[i].groups,
                              .matrix = layers[i].groups == 1,
                              .quick = dtype->dtype == VK_FLOAT32 && layers[i].quick && !block,
                              .tolerance = dtype->tolerance};
      if (block && (c.stride > 1 || c.groups > 1 || c.n < c.k)) continue; /* no block ends so */
      snprintf(c.name, sizeof c.name, "conv%s %ux%u %u->%u k%u s%u%s %s", block ? "+add+relu" : "",
               c.side, c.side, c.k, c.n, c.kernel, c.stride, c.groups > 1 ? " depthwise" : "",
               dtype->name);
      TRY(each(user, &c, err));
    }
  return SCONCE_OK;
}
