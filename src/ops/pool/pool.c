/* Pooling: the largest element or the mean of windows, in one to three dims. */
#include "ops/compound/expand.h"
#include "ops/pool/window.h"

#include "pool.wgsl.h"
#include "pool_places.wgsl.h"
#include "pool_wide.wgsl.h"
#include "pool_wide_places.wgsl.h"

#include <inttypes.h>
#include <string.h>

/* ---- kernels --------------------------------------------------------------------------------- */

struct problem {
  uint64_t outputs, taps; /* taps: of the largest window */
};

/* A workgroup for each output: where there are fewer outputs than a large GPU has threads, and each
 * has something to share. */
static bool wide(const void *problem) {
  const struct problem *q = problem;
  return q->taps >= 64 && q->outputs < 16384;
}

/* tile[0]: elements of y for a workgroup; 0: a word. */
#define PAIR(NAME, WIDE, PLAIN, SET, DTYPE, OF)                                                    \
  {NAME "_wide_" #DTYPE,     &WIDE, SET " use=elem_" #DTYPE, OF, .fits = wide,                     \
   .workgroup_bytes = 64 * 8},                                                                     \
  {                                                                                                \
    NAME "_" #DTYPE, &PLAIN, SET " use=elem_" #DTYPE " use=quad_" #DTYPE, OF, .tile = {256}        \
  }
#define FLOATS(NAME, WIDE, PLAIN, SET)                                                             \
  PAIR(NAME, WIDE, PLAIN, SET, f32, OF_F32), PAIR(NAME, WIDE, PLAIN, SET, f16, OF_F16)
#define LOWEST_INT " LOWEST=0x80000000u"

static const struct kernel max_kernels[] = {
    FLOATS("max", pool_wide_wgsl, pool_wgsl, "use=pool_max"),
    PAIR("max", pool_wide_wgsl, pool_wgsl, "use=pool_max" LOWEST_INT, i32, OF_I32),
    {0},
};
static const struct kernel place_kernels[] = {
    FLOATS("places", pool_wide_places_wgsl, pool_places_wgsl, ""),
    PAIR("places", pool_wide_places_wgsl, pool_places_wgsl, LOWEST_INT, i32, OF_I32),
    {0},
};
static const struct kernel mean_kernels[] = {
    FLOATS("mean", pool_wide_wgsl, pool_wgsl, "use=pool_mean"),
    PAIR("mean", pool_wide_wgsl, pool_wgsl, "use=pool_mean_int", i32, OF_I32),
    {0},
};
static const struct kernel adaptive_mean_kernels[] = {
    FLOATS("adaptive_mean", pool_wide_wgsl, pool_wgsl, "ADAPTIVE=true use=pool_mean"),
    {0},
};
static const struct kernel adaptive_place_kernels[] = {
    FLOATS("adaptive_places", pool_wide_places_wgsl, pool_places_wgsl, "ADAPTIVE=true"),
    {0},
};

/* ---- arguments ------------------------------------------------------------------------------- */

/* op->code: the number of dims, and what the windows are.
 * MAX: [x, kernel, stride, pad, dilation, ceil, …, out]
 * MEAN: [x, kernel, stride, pad, ceil, include padding, (divisor,) out]
 * ADAPTIVE: [x, size of y, …, out]
 * PLACES: out is [y, places]. Portable operators name their results before it, too. */
enum { DIMS = 3, MAX = 4, MEAN = 8, ADAPTIVE = 16, PLACES = 32 };

static sconce_status divisor_of(struct plan *p, const struct node *n, uint32_t i, int32_t *out) {
  enum { MOST = 1 << 30 }; /* two remainders must not overflow */
  int64_t divisor;
  *out = 0;
  if (arg_is_null(p, n, i)) return SCONCE_OK;
  TRY(arg_int(p, n, i, &divisor));
  if (divisor == 0 || divisor < -MOST || divisor > MOST)
    return fail(p->err, SCONCE_BAD_GRAPH, "a divisor of %" PRId64, divisor);
  *out = (int32_t)divisor;
  return SCONCE_OK;
}

static sconce_status read_window(struct plan *p, const struct node *n, struct window *w,
                                 struct pool_params *u) {
  const uint32_t code = n->op->code, dims = code & DIMS;
  bool include = true;
  *w = (struct window){.kernel = {1, 1, 1}, .stride = {1, 1, 1}, .dilation = {1, 1, 1}};
  *u = (struct pool_params){0};
  if (!(code & ADAPTIVE)) TRY(window_of(p, n, 1, dims, code & MAX, w));
  if (code & MEAN && !(code & ADAPTIVE)) TRY(arg_bool(p, n, 5, &include));
  u->include = include;
  if (code & MEAN && !(code & ADAPTIVE) && dims > 1) TRY(divisor_of(p, n, 6, &u->divisor));
  return SCONCE_OK;
}

/* ---- shape ----------------------------------------------------------------------------------- */

static uint32_t result(struct plan *p, const struct node *n, uint32_t k) {
  return n->op->code & PLACES ? arg_item(p, n, n->n_args - 1, k) : out_id(n);
}

static sconce_status plane_size(struct plan *p, const struct node *n, const struct planes *x,
                                uint32_t size[PLANE_DIMS]) {
  const uint32_t dims = n->op->code & DIMS;
  struct window w;
  struct pool_params u;
  TRY(read_window(p, n, &w, &u));
  memcpy(size, x->size, sizeof x->size);
  if (n->op->code & ADAPTIVE) return window_sizes(p, n, 1, dims, 0, NULL, size);
  for (uint32_t d = PLANE_DIMS - dims; d < PLANE_DIMS; d++)
    TRY(window_count(p, &w, d, x->size[d], &size[d]));
  return SCONCE_OK;
}

static sconce_status shape(struct plan *p, const struct node *n) {
  const struct tensor *x;
  TRY(arg_tensor(p, n, 0, &x));
  const uint32_t nd = n->op->code & DIMS, results = n->op->code & PLACES ? 2 : 1;
  struct planes planes;
  uint32_t size[PLANE_DIMS], dims[RANK_MAX];
  if (results == 2 && arg_count(p, n, n->n_args - 1) != 2)
    return fail(p->err, SCONCE_BAD_GRAPH, "%u results, expected 2", arg_count(p, n, n->n_args - 1));
  TRY(planes_of(p, x, nd, &planes));
  TRY(plane_size(p, n, &planes, size));
  memcpy(dims, x->dim_live, sizeof dims);
  for (uint32_t i = 0; i < nd; i++) dims[x->rank - nd + i] = size[PLANE_DIMS - nd + i];
  for (uint32_t k = 0; k < results; k++) TRY(set_dims(p, result(p, n, k), dims, x->rank));
  return SCONCE_OK;
}

/* ---- emit ------------------------------------------------------------------------------------ */

static sconce_status params_of(struct plan *p, const struct node *n, const struct planes *x,
                               const struct planes *y, struct pool_params *u) {
  struct window w;
  TRY(read_window(p, n, &w, u));
  for (uint32_t d = 0; d < PLANE_DIMS; d++) {
    if ((uint64_t)x->size[d] * (y->size[d] + 1ull) > UINT32_MAX && n->op->code & ADAPTIVE)
      return fail(p->err, SCONCE_UNSUPPORTED, "a dim of %u becomes %u", x->size[d], y->size[d]);
    u->x_size[d] = x->size[d];
    u->y_size[d] = y->size[d];
    u->kernel[d] = w.kernel[d];
    u->stride[d] = w.stride[d];
    u->pad[d] = w.pad[d];
    u->dilation[d] = w.dilation[d];
    u->dilated |= w.dilation[d] != 1;
  }
  return SCONCE_OK;
}

static uint64_t taps_of(const struct node *n, const struct pool_params *u) {
  uint64_t taps = 1;
  for (uint32_t d = 0; d < PLANE_DIMS; d++)
    taps *= n->op->code & ADAPTIVE ? div_up(u->x_size[d], u->y_size[d]) : u->kernel[d];
  return taps;
}

static sconce_status check_dtypes(struct plan *p, const struct node *n, const struct tensor *x,
                                  const struct tensor *y) {
  const struct tensor *places = tensor_at(p, result(p, n, 1));
  char one[120], two[120];
  if (x->dtype != y->dtype)
    return fail(p->err, SCONCE_UNSUPPORTED, "%s becomes %s", tensor_text(x, one),
                tensor_text(y, two));
  if (n->op->code & PLACES && (!places || places->dtype != VK_INT32))
    return fail(p->err, SCONCE_UNSUPPORTED, "the places are %s",
                places ? tensor_text(places, one) : "missing");
  return SCONCE_OK;
}

static sconce_status emit(struct plan *p, const struct node *n) {
  const struct tensor *x, *y = tensor_at(p, result(p, n, 0));
  TRY(arg_tensor(p, n, 0, &x));
  if (!y) return fail(p->err, SCONCE_BAD_GRAPH, "the result is no tensor");
  const uint32_t nd = n->op->code & DIMS, id = arg_id(n, 0);
  struct planes from, to;
  struct pool_params u;
  char text[120];
  TRY(check_dtypes(p, n, x, y));
  TRY(planes_of(p, x, nd, &from));
  TRY(planes_of(p, y, nd, &to));
  TRY(params_of(p, n, &from, &to, &u));
  const struct problem problem = {tensor_numel(y), taps_of(n, &u)};
  const struct kernel *row = row_for(p, n, n->op->tables[0], y->dtype, &problem);
  if (!row) return fail(p->err, SCONCE_UNSUPPORTED, "pooling %s", tensor_text(x, text));
  const uint64_t size = vk_dtype_size(y->dtype), bytes[] = {from.numel * size, to.numel * 4};
  uint64_t part = planes_part(p, to.n, bytes, 2);
  if (part == 0) part = to.n;
  for (uint64_t at = 0; at < to.n; at += part) {
    const uint64_t count = to.n - at < part ? to.n - at : part;
    u.n = (uint32_t)(count * to.numel);
    const struct operand operands[] = {planes_operand(p, id, from.numel, at, count),
                                       planes_operand(p, result(p, n, 0), to.numel, at, count),
                                       n->op->code & PLACES
                                           ? planes_operand(p, result(p, n, 1), to.numel, at, count)
                                           : (struct operand){0}};
    TRY(dispatch(p, row, &u, div_up(u.n, row->tile[0] ? row->tile[0] : 4 / size), operands));
  }
  return SCONCE_OK;
}

#define POOL(NAME, PORTABLE, CODE, N_ARGS, TABLE)                                                  \
  {NAME,                                                                                           \
   shape,                                                                                          \
   emit,                                                                                           \
   .also = PORTABLE,                                                                               \
   .code = CODE,                                                                                   \
   .n_args = N_ARGS,                                                                               \
   .flags = (CODE) & PLACES ? OP_LIST : 0,                                                         \
   .tables = TABLES(TABLE)}
#define PLACES_OF(NAME, DIM, N_ARGS, WORDS)                                                        \
  {NAME,                                                                                           \
   shape,                                                                                          \
   emit,                                                                                           \
   .expand = WORDS,                                                                                \
   .expands = expand_gives_bytes,                                                                  \
   .code = DIM | MAX | PLACES,                                                                     \
   .n_args = N_ARGS,                                                                               \
   .flags = OP_LIST,                                                                               \
   .tables = TABLES(place_kernels)}
EXPAND_WIDE(words_2, "aten.max_pool2d_with_indices.default", VK_INT32)
EXPAND_WIDE(words_2_out, "aten::max_pool2d_with_indices.out", VK_INT32)
EXPAND_WIDE(words_3, "aten.max_pool3d_with_indices.default", VK_INT32)
EXPAND_WIDE(words_3_out, "aten::max_pool3d_with_indices.out", VK_INT32)

#define MEANS(DIM, N_ARGS)                                                                         \
  POOL("aten.avg_pool" #DIM "d.default", "aten::avg_pool" #DIM "d.out", DIM | MEAN, N_ARGS,        \
       mean_kernels)
#define LARGEST(DIM)                                                                               \
  POOL("aten.max_pool" #DIM "d.default", NULL, DIM | MAX, 7, max_kernels),                         \
      PLACES_OF("aten.max_pool" #DIM "d_with_indices.default", DIM, 7, words_##DIM),               \
      PLACES_OF("aten::max_pool" #DIM "d_with_indices.out", DIM, 9, words_##DIM##_out)
#define ADAPTIVE_MEANS(DIM)                                                                        \
  POOL("aten._adaptive_avg_pool" #DIM "d.default", "aten::_adaptive_avg_pool" #DIM "d.out",        \
       DIM | MEAN | ADAPTIVE, 3, adaptive_mean_kernels)
#define ADAPTIVE_LARGEST(DIM)                                                                      \
  POOL("aten.adaptive_max_pool" #DIM "d.default", NULL, DIM | MAX | ADAPTIVE | PLACES, 3,          \
       adaptive_place_kernels),                                                                    \
      POOL("aten::adaptive_max_pool" #DIM "d.out", NULL, DIM | MAX | ADAPTIVE | PLACES, 5,         \
           adaptive_place_kernels)

const struct op ops_pool[] = {
    MEANS(1, 7),
    MEANS(2, 8),
    MEANS(3, 8),
    POOL("aten.max_pool1d.default", NULL, 1 | MAX, 7, max_kernels),
    LARGEST(2),
    LARGEST(3),
    ADAPTIVE_MEANS(2),
    ADAPTIVE_MEANS(3),
    ADAPTIVE_LARGEST(2),
    ADAPTIVE_LARGEST(3),
    {0},
};
