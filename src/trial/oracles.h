/* What operators mean, in double: the tables and loops of the operators' own tests, for tests of
 * whole graphs as well. */
#ifndef TRIAL_ORACLES_H
#define TRIAL_ORACLES_H

#include "op.h"

/* ---- elementwise (test_unary.c, test_binary.c) ----------------------------------------------- */

/* Elements that a row is for; what has BOOL makes booleans. */
enum { F32 = 1, F16 = 2, I32 = 4, BOOL = 8, FLOATS = F32 | F16, NUMBERS = FLOATS | I32 };
enum domain { ALL, POSITIVE, MODEST, UNIT, INSIDE, ABOVE_ONE };

struct oracle_unary {
  const char *name;
  double (*of)(double x);
  unsigned dtypes;
  uint32_t n; /* numbers between x and the result; a NaN is Null */
  double numbers[3];
  enum domain domain; /* MODEST: where the device's builtin is precise */
  const char *text;   /* instead of a number */
  double abs, rel;    /* f32: 0 is exact */
};
extern const struct oracle_unary oracles_unary[];
extern const size_t n_oracles_unary;

enum third { NOTHING, ALPHA, NO_MODE, FLOOR, TRUNC };

struct oracle_binary {
  const char *name, *row;
  double (*of)(double a, double b, double alpha);
  unsigned dtypes;
  enum third third;
  double rel; /* of the device's builtin, for f32 */
};
extern const struct oracle_binary oracles_binary[];
extern const size_t n_oracles_binary;
uint32_t oracle_third(struct op_test *t, const struct oracle_binary *o, bool as_int, double alpha);
enum vk_dtype oracle_result(const struct oracle_binary *o, enum vk_dtype dtype);

/* ---- reductions (test_reduce.c) -------------------------------------------------------------- */

enum { ORACLE_RANK = 3 };
enum oracle_reduction {
  REDUCE_SUM,
  REDUCE_MEAN,
  REDUCE_PRODUCT,
  REDUCE_MAX,
  REDUCE_MIN,
  REDUCE_ARGMAX,
  REDUCE_ARGMIN,
};
/* want by output element, of which there are at most 1,000; returns how many. */
uint64_t oracle_reduce(enum oracle_reduction kind, const double *x, const uint32_t *dims,
                       unsigned reduced, double *want);

/* ---- movement (test_move.c) ------------------------------------------------------------------ */

enum oracle_movement {
  MOVE_SLICE,
  MOVE_SELECT,
  MOVE_PERMUTE,
  MOVE_TRANSPOSE,
  MOVE_T,
  MOVE_EXPAND,
  MOVE_REPEAT,
  MOVE_FLIP,
  MOVE_PAD,
  MOVE_REFLECT,
  MOVE_NEAREST,
  MOVE_ROLL,
  MOVE_NARROW,
  MOVE_SHUFFLE,
  MOVE_UNSHUFFLE,
  MOVE_DIAGONAL,
  MOVE_STRIDED,
  MOVE_TRIL,
  MOVE_TRIU,
};
enum { ORACLE_MOVE_RANK = 4, ORACLE_FILL = 3 }; /* what pads are filled with */
#define ORACLE_NONE INT64_MIN

struct oracle_move {
  enum oracle_movement kind;
  const char *name;
  uint32_t rank, x[ORACLE_MOVE_RANK]; /* the maximum */
  uint32_t n;
  int64_t a[8]; /* the operator's numbers, in its own order */
  const char *why;
};
/* Dims of the result from those of x; returns the rank. */
uint32_t oracle_move_dims(const struct oracle_move *r, const uint32_t *x, uint32_t *y);
/* The result's elements; the caller frees. */
double *oracle_moved(const struct oracle_move *r, const uint32_t *x, const double *values);
void oracle_move_node(struct op_test *t, const struct oracle_move *r, uint32_t x, uint32_t y,
                      bool as_int);

#endif
