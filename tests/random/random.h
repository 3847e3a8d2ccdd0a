/* Random graphs (run/test_random.c): values, steps, and the kinds of steps, a family a file. */
#ifndef TESTS_RANDOM_H
#define TESTS_RANDOM_H

#include "oracles.h"

enum { INPUTS = 3, STEPS = 9, VARS = INPUTS + STEPS, LARGEST = 6, ROOM = 600, CALLS = 4 };
enum { POSITIONS = 12 }; /* a call's position is less: caches and tables have some rows more */

/* A dim is scale · n + offset for the live size n. */
struct var {
  enum vk_dtype dtype;
  uint32_t scale[3], offset[3];
  double most;  /* |x| is at most this */
  double grain; /* x is a multiple of it, if it is exact */
  double error; /* 0: exact */
};

struct step {
  uint32_t kind;  /* of all families, in their order */
  uint32_t which; /* row of a table, or a reduction, or a dim */
  uint32_t args[3], n;
  struct oracle_move move; /* its dims and numbers are free for those that move nothing */
  const char *name;        /* what the step does, if its kind does not say it all */
  bool specials;           /* its meaning for NaN and infinities is that of its oracle */
};

/* One call, as a step sees it. */
struct seen {
  uint32_t dims[3][4], to[4]; /* live dims of the operands and of the result */
  const double *data[3];      /* elements of the operands */
  enum vk_dtype dtype;        /* of the result */
  uint32_t n;                 /* the live size */
  uint32_t position;
  double *kept; /* ROOM numbers that last from call to call, 0 at first */
};

/* `x` are the operands; ids[POSITION] is a live integer, the call's position. */
enum { POSITION = 3 };
struct random_kind {
  const char *name;
  bool (*pick)(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y);
  void (*interpret)(const struct step *s, const struct seen *in, double *y);
  void (*add)(struct op_test *t, const struct step *s, const struct var *const *x,
              const uint32_t *ids, uint32_t y);
};
/* Each ends with an empty row. */
extern const struct random_kind random_elementwise[], random_compound[], random_movement[],
    random_filling[], random_reduction[], random_indexing[], random_places[], random_dense[],
    random_convolution[], random_spatial[], random_norm[], random_attention[], random_rotary[],
    random_bytes[], random_q8ta[], random_packed[], random_training[];

/* ---- what kinds share (pieces.c) ------------------------------------------------------------- */

static inline void dims_at(const struct var *v, uint32_t n, uint32_t dims[4]) {
  for (int i = 0; i < 3; i++) dims[i] = v->scale[i] * n + v->offset[i];
  dims[3] = 1;
}
static inline uint32_t dim_most(const struct var *v, uint32_t i) {
  return v->scale[i] * LARGEST + v->offset[i];
}
static inline bool same_dim(const struct var *a, const struct var *b, uint32_t i) {
  return a->scale[i] == b->scale[i] && a->offset[i] == b->offset[i];
}
static inline bool is_fixed(const struct var *v, uint32_t i) { return v->scale[i] == 0; }
/* Of one size, which is not 0. */
static inline bool is_some(const struct var *v, uint32_t i) {
  return v->scale[i] == 0 && v->offset[i] > 0;
}
static inline void fix(struct var *v, uint32_t i, uint32_t size) {
  v->scale[i] = 0;
  v->offset[i] = size;
}
static inline bool is_float(const struct var *v) {
  return v->dtype == VK_FLOAT32 || v->dtype == VK_FLOAT16;
}
static inline bool is_number(const struct var *v) { return is_float(v) || v->dtype == VK_INT32; }
static inline bool is_byte(const struct var *v) {
  return v->dtype == VK_INT8 || v->dtype == VK_UINT8;
}
static inline uint64_t numel_of(const uint32_t *d) { return (uint64_t)d[0] * d[1] * d[2]; }
static inline uint64_t at(const uint32_t *d, uint64_t a, uint64_t b, uint64_t c) {
  return (a * d[1] + b) * d[2] + c;
}

uint32_t below(uint64_t *seed, uint32_t n); /* 0 to n - 1 */

/* Quarters from -1 to 1, and tensors of them. */
double weight(uint64_t i);
uint32_t weights(struct op_test *t, enum vk_dtype dtype, const uint32_t *dims, uint32_t rank);

/* y becomes a sum of `count` products with numbers of at most `most`, multiples of `grain`. */
void add_up(struct var *y, double count, double most, double grain, double error);
/* The result has one element along a dim, which is drawn; false: x has none, or a live size. */
bool one_dim(const struct var *x, uint64_t *seed, struct step *s, struct var *y);

/* Line `line` of those along dim d: its first element, and the step to the next. */
uint64_t line_of(const uint32_t *dims, uint32_t d, uint64_t line, uint64_t *step);
uint64_t lines(const uint32_t *dims, uint32_t d);
/* Where element e of a result with dims y lies in an operand with dims x, which repeats its 1s. */
uint64_t place(const uint32_t *x, const uint32_t *y, uint64_t e);
/* Dims that repeat to one another's; false: they do not. */
bool broadcast(const struct var *a, const struct var *b, struct var *y);

/* A tensor between nodes, of x's dims. */
uint32_t between(struct op_test *t, enum vk_dtype dtype, const struct var *x);
/* x with `times` dims of 1 before dim `place`; a result of such a rank; and back to rank 3. */
uint32_t widened(struct op_test *t, const struct var *x, uint32_t id, uint32_t place,
                 uint32_t times);
uint32_t wide_result(struct op_test *t, const struct var *y, uint32_t place, uint32_t times);
void narrowed(struct op_test *t, uint32_t from, uint32_t place, uint32_t times, uint32_t y);
/* Rows start to start + size(x, dim) of a table (rows, width), as many as x has along that dim. */
uint32_t table_rows(struct op_test *t, const struct var *x, uint32_t id, uint32_t dim,
                    uint32_t table, uint32_t start);

#endif
