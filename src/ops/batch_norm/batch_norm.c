/* Batch normalisation: each channel by a mean and a variance that are given, or by its own. */
#include "ops/compound/expand.h"
#include "ops/moments/moments.h"
#include "ops/planes/planes.h"

#include "batch_norm.wgsl.h"

#include <inttypes.h>

/* ---- kernels --------------------------------------------------------------------------------- */

struct problem {
  uint32_t inner;
  bool own; /* numbers from moments */
};

static bool given(const void *problem) { return !((const struct problem *)problem)->own; }
static bool own(const void *problem) { return ((const struct problem *)problem)->own; }
static bool whole(const void *problem) { return ((const struct problem *)problem)->inner % 4 == 0; }
static bool given_whole(const void *problem) { return given(problem) && whole(problem); }
static bool own_whole(const void *problem) { return own(problem) && whole(problem); }

#define ROW(NAME, SET, DTYPE, OF)                                                                  \
  {#NAME "_" #DTYPE, &batch_norm_wgsl, SET " use=elem_" #DTYPE " use=quad_" #DTYPE, OF,            \
   .fits = NAME}
#define ROWS(DTYPE, OF)                                                                            \
  ROW(given_whole, "WHOLE=true", DTYPE, OF), ROW(given, "", DTYPE, OF),                            \
      ROW(own_whole, "STATS=true WHOLE=true", DTYPE, OF), ROW(own, "STATS=true", DTYPE, OF)
static const struct kernel kernels[] = {ROWS(f32, OF_F32), ROWS(f16, OF_F16), {0}};

/* ---- arguments ------------------------------------------------------------------------------- */

/* GIVEN: [x, w, b, mean, variance, momentum, eps, …, out]
 * EITHER: [x, w, b, mean, variance, training, momentum, eps, …, out], not for training
 * OWN: [x, w, b, training, momentum, eps, …, out], only for training
 * out is [y, mean, rstd]; portable operators name these three before it, too. Where mean and
 * variance are given the last two are empty. */
enum { GIVEN, EITHER, OWN };
enum { X, WEIGHT, BIAS, MEAN, VARIANCE };

struct norm {
  struct planes planes; /* n: items times channels */
  uint32_t channels, affine;
  double eps, count; /* count: elements of a channel */
};

static uint32_t result(struct plan *p, const struct node *n, uint32_t k) {
  return arg_item(p, n, n->n_args - 1, k);
}

static sconce_status check_numbers(struct plan *p, const struct node *n, uint32_t i,
                                   const struct tensor *x, bool optional) {
  if (optional && arg_is_null(p, n, i)) return SCONCE_OK;
  const struct tensor *t;
  TRY(arg_tensor(p, n, i, &t));
  char text[120];
  if (t->dtype != x->dtype || tensor_numel(t) != x->dim_live[1])
    return fail(p->err, SCONCE_BAD_GRAPH, "argument %u is %s for %u channels of %s", i,
                tensor_text(t, text), x->dim_live[1], vk_dtype_name(x->dtype));
  return SCONCE_OK;
}

static sconce_status check_training(struct plan *p, const struct node *n) {
  bool training = n->op->code == OWN;
  if (n->op->code != GIVEN) TRY(arg_bool(p, n, n->op->code == OWN ? 3 : 5, &training));
  if (training == (n->op->code == OWN)) return SCONCE_OK;
  return fail(p->err, SCONCE_UNSUPPORTED, "%s",
              training ? "training changes the running mean and variance"
                       : "no mean and variance, and not for training");
}

static sconce_status norm_of(struct plan *p, const struct node *n, struct norm *m) {
  static const uint32_t eps_at[] = {[GIVEN] = 6, [EITHER] = 7, [OWN] = 5};
  const struct tensor *x;
  TRY(arg_tensor(p, n, X, &x));
  char text[120];
  if (x->rank < 2 || (x->dtype != VK_FLOAT32 && x->dtype != VK_FLOAT16))
    return fail(p->err, SCONCE_UNSUPPORTED, "the norm of %s", tensor_text(x, text));
  TRY(check_training(p, n));
  TRY(check_numbers(p, n, WEIGHT, x, true));
  TRY(check_numbers(p, n, BIAS, x, true));
  for (uint32_t i = MEAN; i <= VARIANCE && n->op->code != OWN; i++)
    TRY(check_numbers(p, n, i, x, false));
  *m = (struct norm){.planes = {.n = (uint64_t)x->dim_live[0] * x->dim_live[1], .numel = 1},
                     .channels = x->dim_live[1]};
  for (uint32_t i = 2; i < x->rank; i++) m->planes.numel *= x->dim_live[i];
  m->affine = (arg_is_null(p, n, WEIGHT) ? 0 : 1u) | (arg_is_null(p, n, BIAS) ? 0 : 2u);
  m->count = (double)x->dim_live[0] * (double)m->planes.numel;
  return arg_float(p, n, eps_at[n->op->code], &m->eps);
}

/* ---- shape and emit -------------------------------------------------------------------------- */

static sconce_status shape(struct plan *p, const struct node *n) {
  const struct tensor *x;
  TRY(arg_tensor(p, n, X, &x));
  struct norm m;
  TRY(norm_of(p, n, &m));
  if (arg_count(p, n, n->n_args - 1) != 3)
    return fail(p->err, SCONCE_BAD_GRAPH, "%u results, expected 3", arg_count(p, n, n->n_args - 1));
  const uint32_t stats[] = {n->op->code == OWN ? m.channels : 0};
  TRY(set_dims(p, result(p, n, 0), x->dim_live, x->rank));
  TRY(set_dims(p, result(p, n, 1), stats, 1));
  return set_dims(p, result(p, n, 2), stats, 1);
}

static sconce_status prepare(struct plan *p, struct node *n) {
  const struct tensor *x;
  TRY(arg_tensor(p, n, X, &x));
  if (n->op->code != OWN || x->rank < 2) return SCONCE_OK; /* emit will say why */
  return moments_prepare(p, n, 0, x->dim_max[1], moments_count(x->dim_max, x->rank, ~2u));
}

static sconce_status emit_own(struct plan *p, const struct node *n, const struct norm *m) {
  TRY(moments_emit(p, n, arg_id(n, X), ~2u, 0));
  TRY(moments_out(p, n, 0, MOMENT_MEAN, m->count, 0, result(p, n, 1)));
  return moments_out(p, n, 0, MOMENT_FACTOR, m->count, m->eps, result(p, n, 2));
}

static sconce_status emit(struct plan *p, const struct node *n) {
  const struct tensor *x;
  TRY(arg_tensor(p, n, X, &x));
  struct norm m;
  TRY(norm_of(p, n, &m));
  const bool by_own = n->op->code == OWN;
  if (by_own) TRY(emit_own(p, n, &m));
  const uint64_t numel = m.planes.numel, bytes = numel * vk_dtype_size(x->dtype);
  struct batch_norm_params u = {.inner = (uint32_t)numel,
                                .channels = m.channels,
                                .affine = m.affine,
                                .eps = (float)m.eps,
                                .count = (float)m.count};
  const struct kernel *row;
  TRY(choose(p, n, kernels, x->dtype, &(struct problem){u.inner, by_own}, &row));
  uint64_t part = planes_part(p, m.planes.n, &bytes, 1);
  if (part == 0) part = m.planes.n;
  for (uint64_t first = 0; first < m.planes.n; first += part) {
    const uint64_t count = m.planes.n - first < part ? m.planes.n - first : part;
    const struct operand from = planes_operand(p, arg_id(n, X), numel, first, count);
    u.n = (uint32_t)(count * numel);
    u.first = (uint32_t)(first % m.channels);
    TRY(dispatch(p, row, &u, div_up(u.n, 256),
                 OPERANDS(from, m.affine & 1 ? (struct operand){arg_id(n, WEIGHT)} : from,
                          m.affine & 2 ? (struct operand){arg_id(n, BIAS)} : from,
                          {by_own ? n->extra[0] : arg_id(n, MEAN)},
                          by_own ? from : (struct operand){arg_id(n, VARIANCE)},
                          planes_operand(p, result(p, n, 0), numel, first, count))));
  }
  return SCONCE_OK;
}

EXPAND_WIDE(given_floats, "aten._native_batch_norm_legit_no_training.default", VK_FLOAT32)
EXPAND_WIDE(given_out_floats, "aten::_native_batch_norm_legit_no_training.out", VK_FLOAT32)
EXPAND_WIDE(either_floats, "aten._native_batch_norm_legit.default", VK_FLOAT32)
EXPAND_WIDE(either_out_floats, "aten::_native_batch_norm_legit.out", VK_FLOAT32)
EXPAND_WIDE(own_floats, "aten._native_batch_norm_legit.no_stats", VK_FLOAT32)
EXPAND_WIDE(own_out_floats, "aten::_native_batch_norm_legit.no_stats_out", VK_FLOAT32)

#define BATCH_NORM(NAME, CODE, N_ARGS, EXPAND)                                                     \
  {NAME,                                                                                           \
   shape,                                                                                          \
   emit,                                                                                           \
   prepare,                                                                                        \
   EXPAND,                                                                                         \
   expand_mixes_floats,                                                                            \
   .code = CODE,                                                                                   \
   .n_args = N_ARGS,                                                                               \
   .flags = OP_LIST,                                                                               \
   .tables = TABLES(kernels, moments_kernels, moments_join_kernels, moments_out_kernels)}

const struct op ops_batch_norm[] = {
    BATCH_NORM("aten._native_batch_norm_legit_no_training.default", GIVEN, 8, given_floats),
    BATCH_NORM("aten::_native_batch_norm_legit_no_training.out", GIVEN, 11, given_out_floats),
    BATCH_NORM("aten._native_batch_norm_legit.default", EITHER, 9, either_floats),
    BATCH_NORM("aten::_native_batch_norm_legit.out", EITHER, 12, either_out_floats),
    BATCH_NORM("aten._native_batch_norm_legit.no_stats", OWN, 7, own_floats),
    BATCH_NORM("aten::_native_batch_norm_legit.no_stats_out", OWN, 10, own_out_floats),
    {0},
};
