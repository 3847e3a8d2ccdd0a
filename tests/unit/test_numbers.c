/* The scalars of a program: their kinds, and those that are counted in place. */
#include "built.h"

#include <math.h>

static sconce_status call(struct built *b, uint32_t rows) {
  graph_begin(&b->t.graph);
  sconce_status status =
      graph_set_dims(&b->t.graph, b->t.inputs[0], (uint32_t[]){rows, 4}, 2, &b->err);
  if (status == SCONCE_OK) status = graph_plan(&b->t.graph, &b->err);
  if (status != SCONCE_OK) graph_rollback(&b->t.graph);
  return status;
}

/* A program's scalars are integers, doubles or booleans, whatever the last call made of them. */
static void numbers_keep_their_kind(void) {
#define I(N)                                                                                       \
  {                                                                                                \
    NUMBER_INT, { .i = (N) }                                                                       \
  }
#define B(N)                                                                                       \
  {                                                                                                \
    NUMBER_BOOL, { .i = (N) }                                                                      \
  }
#define D(N)                                                                                       \
  {                                                                                                \
    NUMBER_DOUBLE, { .d = (N) }                                                                    \
  }
  static const struct {
    const char *op; /* of executorch_prim, one to three arguments */
    uint32_t n;
    struct number args[3], want;
  } rows[] = {
      {"add.Scalar", 2, {I(2), D(0.5)}, D(2.5)},
      {"sub.Scalar", 2, {D(1), I(3)}, D(-2)},
      {"mul.Scalar", 2, {D(0.5), D(4)}, D(2)},
      {"add.Scalar", 2, {I(2), I(3)}, I(5)},
      {"truediv.Scalar", 2, {I(7), I(2)}, D(3.5)},
      {"floordiv.Scalar", 2, {D(-7), I(2)}, D(-4)},
      {"mod.Scalar", 2, {I(-7), I(3)}, I(-1)}, /* ExecuTorch's: the dividend's sign */
      {"mod.int", 2, {I(-7), I(3)}, I(-1)},
      {"floordiv.int", 2, {I(-7), I(2)}, I(-3)},
      {"eq.Scalar", 2, {I(2), D(2)}, B(1)},
      {"eq.Scalar", 2, {B(1), B(0)}, B(0)},
      {"lt.Scalar", 2, {D(1.5), I(2)}, B(1)},
      {"ge.Scalar", 2, {D(NAN), I(2)}, B(0)},
      {"neg.Scalar", 1, {D(1.5)}, D(-1.5)},
      {"sym_float.Scalar", 1, {I(3)}, D(3)},
      {"sym_int.Scalar", 1, {D(-2.7)}, I(-2)},
      {"ceil.Scalar", 1, {D(2.1)}, I(3)},
      {"trunc.Scalar", 1, {D(2.9)}, I(2)},
      {"round.Scalar", 1, {D(2.5)}, I(2)},
      {"sym_not.Scalar", 1, {B(1)}, B(0)},
      {"sym_ite.Scalar", 3, {B(0), I(1), D(9)}, D(9)},
      {"sym_ite.Scalar", 3, {B(1), I(1), D(9)}, I(1)},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct built *b = begin(&usual);
    uint32_t args[4];
    char name[80];
    for (uint32_t k = 0; k <= rows[i].n; k++) args[k] = symint(b);
    snprintf(name, sizeof name, "executorch_prim::%s", rows[i].op);
    CHECK_OK(graph_add_node(&b->t.graph, text_of(name), 0, args, rows[i].n + 1, &b->err), b->err);
    CHECK_OK(graph_finish(&b->t.graph, &b->err), b->err);
    graph_begin(&b->t.graph);
    for (uint32_t k = 0; k < rows[i].n; k++)
      CHECK_OK(graph_set_number(&b->t.graph, args[k], rows[i].args[k], &b->err), b->err);
    CHECK_OK(graph_plan(&b->t.graph, &b->err), b->err);
    const struct value *got = &b->t.graph.values[args[rows[i].n]];
    if (got->number != rows[i].want.kind || got->i != rows[i].want.i)
      test_fail(__FILE__, __LINE__, "row %zu, %s: kind %d, %lld", i, name, (int)got->number,
                (long long)got->i);
    end(b);
  }
}

/* What a call counts in place it counts at each visit. */
static void a_scalar_that_counts(void) {
  struct built *b = begin(&usual);
  uint32_t i = symint(b), x = input(b, DIMS(8, 4)), y = output(b, DIMS(4)), z = output(b, DIMS(4));
  NODE("aten.select_copy.int", x, number(b, 0), i, y);
  NODE("add", i, number(b, 2), i);
  NODE("aten.select_copy.int", x, number(b, 0), i, z);
  NODE("sub", i, number(b, 1), i);
  CHECK_OK(graph_finish(&b->t.graph, &b->err), b->err);
  for (int64_t k = 0; k < 3; k++) {
    CHECK_OK(call(b, 8), b->err);
    CHECK_EQ(b->t.graph.values[i].i, k + 1);
  }
  CHECK_FAILS(call(b, 4), SCONCE_BAD_ARGUMENT, b->err, "index 5 of a dim of 4");
  CHECK_EQ(b->t.graph.values[i].i, 3); /* as before the call */
  end(b);
}

const struct test suite_numbers[] = {
    TEST(numbers_keep_their_kind), TEST(a_scalar_that_counts), {0}};
