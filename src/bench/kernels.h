/* Kernel benches. A case is a small graph that a function builds, and the tables whose rows are
 * tried on it; a new case is a build function and a line in cases.c. */
#ifndef BENCH_KERNELS_H
#define BENCH_KERNELS_H

#include "sconce_dev.h"
#include "trial/op.h"

enum { CASE_ROWS = 32 };

struct kernel_case;

/* What a build function fills: the graph, and what one run of it costs. */
struct case_builder {
  struct op_test t;
  const struct kernel_case *c;
  uint32_t random;
  uint64_t bytes; /* that one run cannot help reading: weights and scales, live keys and values */
  double flops;   /* of one run, a multiply-add is two */
};

struct kernel_case {
  char name[80];
  void (*build)(struct case_builder *b);
  const char *op;    /* whose tables are tried */
  uint32_t n_tables; /* of them, from the first */
  enum vk_dtype dtype;
  uint32_t m, k, n, group;                 /* products */
  uint32_t heads, kv_heads, dim, position; /* attention; m queries */
  uint32_t side, kernel, stride, groups;   /* convolutions; k channels in, n out */
  bool matrix;                             /* arithmetic counts, not bytes */
  bool quick;                              /* part of the short list */
  bool fused; /* the tables are a fused node's: the reference is the same graph without passes */
  double tolerance; /* of max |y - plain| / max |plain| */
};

/* Calls each for every case of the grid until it fails. */
SCONCE_CHECK sconce_status cases_each(sconce_status (*each)(void *user, const struct kernel_case *c,
                                                            sconce_error *err),
                                      void *user, sconce_error *err);

/* … and every convolution, in this dtype. */
struct case_dtype {
  enum vk_dtype dtype;
  const char *name;
  double tolerance; /* sums in another order; one unit in the last place of the result */
};
SCONCE_CHECK sconce_status cases_conv(const struct case_dtype *dtype,
                                      sconce_status (*each)(void *user, const struct kernel_case *c,
                                                            sconce_error *err),
                                      void *user, sconce_error *err);
/* … and every norm, softmax, reduction and running sum. */
SCONCE_CHECK sconce_status cases_lines(const struct case_dtype *dtype,
                                       sconce_status (*each)(void *user,
                                                             const struct kernel_case *c,
                                                             sconce_error *err),
                                       void *user, sconce_error *err);

/* Measures one case and calls desc->each once. */
SCONCE_CHECK sconce_status measure_case(sconce_device *device, const struct kernel_case *c,
                                        const sconce_kernels_desc *desc, sconce_error *err);

/* max |got - want| / max |want|; infinite where one is not finite or all of want is zero. */
double measure_error(enum vk_dtype dtype, const void *got, const void *want, uint64_t n);

/* ---- for build functions --------------------------------------------------------------------- */

/* Tensors with random elements: floats from -1 to 1, any bytes; 32-bit integers are 0. The rest of
 * a graph is made with trial/op.h. */
uint32_t case_input(struct case_builder *b, enum vk_dtype dtype, const uint32_t *dims,
                    uint32_t rank);
uint32_t case_weight(struct case_builder *b, enum vk_dtype dtype, const uint32_t *dims,
                     uint32_t rank);
/* Every element of a float input becomes this. */
void case_fill(struct case_builder *b, uint32_t id, double value);

#endif
