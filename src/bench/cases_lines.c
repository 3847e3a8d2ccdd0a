/* What goes over whole lines, for the grid of kernel benches: norms, softmax, sums, extrema and
 * running sums of the lines that encoders, image models and vocabularies have, and of one long one.
 */
#include "bench/kernels.h"

#include <stdio.h>

static const struct {
  uint32_t rows, cols;
  bool quick;
} lines[] = {
    {128, 384, true},                         /* MiniLM */
    {197, 768, false},                        /* ViT */
    {12 * 197, 197, true},                    /* its attention */
    {512, 2048, false},    {1, 128256, true}, /* the logits of a vocabulary */
    {1, 4194304, false},
};

static void count(struct case_builder *b, uint64_t passes) {
  b->bytes += passes * b->c->m * b->c->n * vk_dtype_size(b->c->dtype);
}

/* y as large as x, which a kernel reads at least once. */
static uint32_t whole(struct case_builder *b) {
  count(b, 2);
  return op_output(&b->t, b->c->dtype, DIMS(b->c->m, b->c->n));
}

static uint32_t input(struct case_builder *b) {
  return case_input(b, b->c->dtype, DIMS(b->c->m, b->c->n));
}

static void build_layer_norm(struct case_builder *b) {
  const struct kernel_case *c = b->c;
  uint32_t x = input(b), w = case_weight(b, c->dtype, DIMS(c->n));
  uint32_t bias = case_weight(b, c->dtype, DIMS(c->n));
  uint32_t mean = op_tensor(&b->t, c->dtype, DIMS(c->m, 1));
  uint32_t rstd = op_tensor(&b->t, c->dtype, DIMS(c->m, 1));
  op_node(&b->t, "aten.native_layer_norm.default",
          DIMS(x, op_ints(&b->t, INTS(c->n)), w, bias, op_double(&b->t, 1e-5),
               op_list(&b->t, IDS(whole(b), mean, rstd))));
}

/* A row is a group of one channel. */
static void build_group_norm(struct case_builder *b) {
  const struct kernel_case *c = b->c;
  uint32_t x = case_input(b, c->dtype, DIMS(1, c->m, c->n));
  uint32_t y = op_output(&b->t, c->dtype, DIMS(1, c->m, c->n));
  uint32_t mean = op_tensor(&b->t, c->dtype, DIMS(1, c->m));
  uint32_t rstd = op_tensor(&b->t, c->dtype, DIMS(1, c->m));
  op_node(&b->t, "aten.native_group_norm.default",
          DIMS(x, op_null(&b->t), op_null(&b->t), op_int(&b->t, 1), op_int(&b->t, c->m),
               op_int(&b->t, c->n), op_int(&b->t, c->m), op_double(&b->t, 1e-5),
               op_list(&b->t, IDS(y, mean, rstd))));
  count(b, 2);
}

static void build_softmax(struct case_builder *b) {
  uint32_t x = input(b);
  op_node(&b->t, "aten._softmax.default",
          DIMS(x, op_int(&b->t, 1), op_bool(&b->t, false), whole(b)));
}

static void build_cumsum(struct case_builder *b) {
  uint32_t x = input(b);
  op_node(&b->t, "aten.cumsum.default", DIMS(x, op_int(&b->t, 1), op_null(&b->t), whole(b)));
}

static void build_sum(struct case_builder *b) {
  uint32_t x = input(b), y = op_output(&b->t, b->c->dtype, DIMS(b->c->m, 1));
  op_node(&b->t, "aten.sum.dim_IntList",
          DIMS(x, op_ints(&b->t, INTS(1)), op_bool(&b->t, true), op_null(&b->t), y));
  count(b, 1);
}

static void build_amax(struct case_builder *b) {
  uint32_t x = input(b), y = op_output(&b->t, b->c->dtype, DIMS(b->c->m, 1));
  op_node(&b->t, "aten.amax.default", DIMS(x, op_ints(&b->t, INTS(1)), op_bool(&b->t, true), y));
  count(b, 1);
}

static const struct {
  const char *name, *op;
  void (*build)(struct case_builder *b);
  uint32_t n_tables;
} operators[] = {
    {"layer_norm", "aten.native_layer_norm.default", build_layer_norm, 2},
    {"group_norm", "aten.native_group_norm.default", build_group_norm, 3},
    {"softmax", "aten._softmax.default", build_softmax, 1},
    {"sum", "aten.sum.dim_IntList", build_sum, 2},
    {"amax", "aten.amax.default", build_amax, 2},
    {"cumsum", "aten.cumsum.default", build_cumsum, 1},
};

sconce_status cases_lines(const struct case_dtype *dtype,
                          sconce_status (*each)(void *user, const struct kernel_case *c,
                                                sconce_error *err),
                          void *user, sconce_error *err) {
  for (size_t o = 0; o < sizeof operators / sizeof *operators; o++)
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
      struct kernel_case c = {.build = operators[o].build,
                              .op = operators[o].op,
                              .n_tables = operators[o].n_tables,
                              .dtype = dtype->dtype,
                              .m = lines[i].rows,
                              .n = lines[i].cols,
                              .quick = dtype->dtype == VK_FLOAT32 && lines[i].quick,
                              .tolerance = dtype->tolerance};
      snprintf(c.name, sizeof c.name, "%s %ux%u %s", operators[o].name, c.m, c.n, dtype->name);
      TRY(each(user, &c, err));
    }
  return SCONCE_OK;
}
