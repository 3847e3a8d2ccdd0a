/* A graph of one node, or a few, built by hand and run on the device: for the operators' own tests,
 * the self-check and the benches.
 *
 *   struct op_test t;
 *   op_begin(&t);
 *   uint32_t x = op_input(&t, VK_FLOAT32, DIMS(3, 64)), y = op_output(&t, VK_FLOAT32, DIMS(3, 64));
 *   op_node(&t, "aten.relu.default", IDS(x, y));
 *   REQUIRE_OK(op_load(&t, NULL, &err), err);
 *   op_set(&t, x, DIMS(2, 64), values);              // doubles, rounded to the tensor's dtype
 *   REQUIRE_OK(op_run(&t, &err), err);
 *   const double *got = op_get(&t, y, &numel);       // live elements
 *   op_end(&t);                                      // also after failures
 */
#ifndef TRIAL_OP_H
#define TRIAL_OP_H

#include "graph/op.h"
#include "run/exec.h"
#include "trial/trial.h"

enum { OP_BORDERS = 32 }; /* inputs, and outputs, at most */

struct op_test {
  struct graph graph;
  struct weights weights;
  struct shared shared;
  struct exec exec;
  bool loaded;
  struct gpu *gpu;
  uint32_t inputs[OP_BORDERS], outputs[OP_BORDERS];
  void *data[OP_BORDERS]; /* by input: elements in its dtype */
  double *results;        /* of the last op_get */
  uint64_t n_results;     /* that it has room for */
  sconce_error built;     /* the first error of a value or a node; it shows in op_load */
  struct value none;      /* what goes to a value that could not be made */
};

#define DIMS(...)                                                                                  \
  (const uint32_t[]){__VA_ARGS__}, (uint32_t)(sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))
#define IDS(...) DIMS(__VA_ARGS__)
#define INTS(...)                                                                                  \
  (const int64_t[]){__VA_ARGS__}, (uint32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

/* On test_gpu(), but exact: a test of rows for fast precision sets graph.caps.fast. */
void op_begin(struct op_test *t);
void op_begin_on(struct op_test *t, struct gpu *gpu, const sconce_allocator *allocator);
void op_end(struct op_test *t);

/* Values; dims are the maximum. NO_VALUE after an error. */
uint32_t op_input(struct op_test *t, enum vk_dtype dtype, const uint32_t *dims, uint32_t rank);
uint32_t op_output(struct op_test *t, enum vk_dtype dtype, const uint32_t *dims, uint32_t rank);
uint32_t op_tensor(struct op_test *t, enum vk_dtype dtype, const uint32_t *dims, uint32_t rank);
uint32_t op_constant(struct op_test *t, enum vk_dtype dtype, const uint32_t *dims, uint32_t rank,
                     const double *values);
uint32_t op_constant_bytes(struct op_test *t, enum vk_dtype dtype, const uint32_t *dims,
                           uint32_t rank, const void *bytes); /* copied */
/* Elements that the caller fills; NULL after an error. */
uint32_t op_constant_of(struct op_test *t, enum vk_dtype dtype, const uint32_t *dims, uint32_t rank,
                        void **elements);
void *op_elements(struct op_test *t, uint32_t tensor); /* zeros that live as long as the graph */
uint32_t op_null(struct op_test *t);
uint32_t op_int(struct op_test *t, int64_t i);
uint32_t op_double(struct op_test *t, double d);
uint32_t op_bool(struct op_test *t, bool b);
uint32_t op_text(struct op_test *t, const char *text);
uint32_t op_ints(struct op_test *t, const int64_t *ints, uint32_t n);
uint32_t op_doubles(struct op_test *t, const double *doubles, uint32_t n);
uint32_t op_list(struct op_test *t, const uint32_t *ids, uint32_t n);
uint32_t op_symint(struct op_test *t); /* an input; set with op_set_symint */

void op_node(struct op_test *t, const char *name, const uint32_t *args, uint32_t n);

/* Plans and uploads; `force` names the kernel row to take where it fits (NULL: the table's choice).
 */
SCONCE_CHECK sconce_status op_load(struct op_test *t, const char *force, sconce_error *err);

/* The same and a call as it is: for graphs that must be refused, at load or at the call. */
SCONCE_CHECK sconce_status op_try(struct op_test *t, sconce_error *err);

/* One call: set what changes, then run. */
void op_set(struct op_test *t, uint32_t input, const uint32_t *dims, uint32_t rank,
            const double *values);
void op_set_symint(struct op_test *t, uint32_t input, int64_t number);
SCONCE_CHECK sconce_status op_run(struct op_test *t, sconce_error *err);
/* Live elements of an output of the last run as doubles, valid until the next op_get. */
const double *op_get(struct op_test *t, uint32_t output, uint64_t *numel);

/* Numbers to elements of a dtype and back; f16 rounds to nearest even. */
void test_to_dtype(enum vk_dtype dtype, const double *values, uint64_t n, void *out);
void test_from_dtype(enum vk_dtype dtype, const void *bytes, uint64_t n, double *out);
/* Random values in [-1, 1), already rounded to the dtype; the caller frees. */
double *test_values(enum vk_dtype dtype, uint64_t n, uint64_t seed);

/* |got - want| <= abs + rel |want| for all, else a failure with the worst element and `what`. */
bool test_close(const double *got, const double *want, uint64_t n, double abs, double rel,
                const char *what);

#endif
