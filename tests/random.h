/* Random graphs (run/test_random.c): values, steps, and the kinds of steps that have weights. */
#ifndef TESTS_RANDOM_H
#define TESTS_RANDOM_H

#include "oracles.h"

enum { INPUTS = 3, STEPS = 9, VARS = INPUTS + STEPS, LARGEST = 6, ROOM = 600, CALLS = 4 };

/* A dim is scale · n + offset for the live size n. */
struct var {
  enum vk_dtype dtype;
  uint32_t scale[3], offset[3];
  double most;  /* |x| is at most this */
  double grain; /* x is a multiple of it, if it is exact */
  double error; /* 0: exact */
};

struct step {
  uint32_t kind;  /* of run/test_random.c, and then of random_dense */
  uint32_t which; /* row of a table, or a reduction, or a dim */
  uint32_t args[3], n;
  struct oracle_move move;
};

static inline void dims_at(const struct var *v, uint32_t n, uint32_t dims[4]) {
  for (int i = 0; i < 3; i++) dims[i] = v->scale[i] * n + v->offset[i];
  dims[3] = 1;
}
static inline bool same_dim(const struct var *a, const struct var *b, uint32_t i) {
  return a->scale[i] == b->scale[i] && a->offset[i] == b->offset[i];
}
static inline bool is_fixed(const struct var *v, uint32_t i) { return v->scale[i] == 0; }
uint32_t below(uint64_t *seed, uint32_t n); /* 0 to n - 1 */

/* `x` are the operands, `data` their elements and `y` the result's, `dims` their live dims. */
struct random_kind {
  const char *name;
  bool (*pick)(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y);
  void (*interpret)(const struct step *s, const uint32_t (*dims)[4], const double *const *data,
                    const uint32_t *to, double *y);
  void (*add)(struct op_test *t, const struct step *s, const struct var *const *x,
              const uint32_t *ids, uint32_t y);
};
enum { DENSE_KINDS = 8, MORE_KINDS = 18 };
extern const struct random_kind random_dense[DENSE_KINDS], random_more[MORE_KINDS];

#endif
