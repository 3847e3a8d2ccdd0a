/* Linear layers of quantised tensors, with bytes or with real numbers as results. */
#include "ops/q8ta/q8ta.h"

#include "q8_linear_params.wgsl.h"
#include "q8ta_tile.wgsl.h"
#include "q8ta_vector.wgsl.h"

struct problem {
  struct q8_linear_params u;
  enum vk_dtype dtype; /* of y */
  bool fits;           /* w is a constant, so that there are sums and rows of whole words */
};

/* Bytes of y: whole words, or words that others write too. Rows of float16 must not share words. */
static bool is_own(const struct problem *q) { return q->dtype == VK_INT8 && q->u.n % 4 == 0; }
static bool fits(const struct problem *q) {
  return q->fits && !(q->dtype == VK_FLOAT16 && q->u.n % 2);
}
/* Above 8 rows the tile is ahead. */
static bool vector16(const void *problem) {
  const struct problem *q = problem;
  return fits(q) && q->u.m <= 8 && q->u.k % 16 == 0;
}
static bool vector4(const void *problem) {
  const struct problem *q = problem;
  return fits(q) && q->u.m <= 8 && q->u.k % 4 == 0;
}
/* Small tiles where large ones would leave most of a device idle. */
static bool small(const void *problem) {
  const struct problem *q = problem;
  return fits(q) && q->u.k % 4 == 0 && div_up(q->u.m, 64) * div_up(q->u.n, 64) < 64;
}
static bool large(const void *problem) {
  const struct problem *q = problem;
  return fits(q) && q->u.k % 4 == 0;
}
static bool uneven(const void *problem) { return fits(problem); }
#define OWN(NAME)                                                                                  \
  static bool NAME##_own(const void *problem) { return is_own(problem) && NAME(problem); }
OWN(vector16)
OWN(vector4)
OWN(small)
OWN(large)
OWN(uneven)

/* By the dtype of y. A tile is the rows and columns of y that a workgroup takes. */
#define ROWS(SUFFIX, DTYPE, FITS, PUT)                                                             \
  {"vector16" SUFFIX,      &q8ta_vector_wgsl, "use=q8_piece4 use=q8_put_" PUT, DTYPE,              \
   .fits = vector16##FITS, .tile = {1, 16},   .workgroup_bytes = 1024},                            \
      {"vector4" SUFFIX,      &q8ta_vector_wgsl, "use=q8_piece1 use=q8_put_" PUT, DTYPE,           \
       .fits = vector4##FITS, .tile = {1, 16},   .workgroup_bytes = 1024},                         \
      {"small" SUFFIX,      &q8ta_tile_wgsl,  "T=8u WG=64u use=q8_put_" PUT, DTYPE,                \
       .fits = small##FITS, .tile = {32, 32}, .workgroup_bytes = 2048},                            \
      {"large" SUFFIX,      &q8ta_tile_wgsl,  "use=q8_put_" PUT, DTYPE,                            \
       .fits = large##FITS, .tile = {64, 64}, .threads = 256,    .workgroup_bytes = 4096},         \
      {"uneven" SUFFIX,                                                                            \
       &q8ta_tile_wgsl,                                                                            \
       "T=8u WG=64u ALIGNED=false use=q8_put_" PUT,                                                \
       DTYPE,                                                                                      \
       .fits = uneven##FITS,                                                                       \
       .tile = {32, 32},                                                                           \
       .workgroup_bytes = 2048}
static const struct kernel rows[] = {
    ROWS("", OF_I8, _own, "own"),
    ROWS("_shared", OF_I8, , "shared"),
    ROWS("_f32", OF_F32, , "f32"),
    ROWS("_f16", OF_F16, , "f16"),
    Q8_PLAIN,
    Q8_PLAIN_F32,
    Q8_PLAIN_F16,
    {0},
};

/* [x, x_scale, x_zero, w, sums, scales, (y_scale, y_zero,) bias?, (activation,) y] */
enum { W = 3, SUMS };
enum { BYTES, REALS };
static const struct q8_args all_args[] = {
    [BYTES] = {.w = W, .scales = 5, .y_scale = 6, .bias = 8, .activation = 9},
    [REALS] = {.w = W, .scales = 5, .bias = 6},
};

static sconce_status check(struct plan *p, const struct node *n, struct q8_numbers *numbers) {
  const struct q8_args *args = &all_args[n->op->code];
  const struct tensor *x, *w;
  char a[120], b[120];
  TRY(arg_tensor(p, n, 0, &x));
  TRY(arg_tensor(p, n, args->w, &w));
  if (w->rank != 2 || x->rank == 0 || x->dim_live[x->rank - 1] != w->dim_live[1])
    return fail(p->err, SCONCE_BAD_GRAPH, "x is %s, the weight %s", tensor_text(x, a),
                tensor_text(w, b));
  if (w->dim_live[1] > Q8_DEEPEST)
    return fail(p->err, SCONCE_UNSUPPORTED, "sums of %u products, at most %d", w->dim_live[1],
                Q8_DEEPEST);
  return q8_numbers_of(p, n, args, w->dim_live[0], w->dim_live[0], numbers);
}

static sconce_status prepare(struct plan *p, struct node *n) {
  const struct tensor *w;
  TRY(arg_tensor(p, n, W, &w));
  if (!q8_is_constant(w) || w->rank != 2) return SCONCE_OK;
  TRY(graph_packed(p->g, arg_id(n, W), &q8_sums, &n->extra[Q8_SUMS], p->err));
  n->extra[Q8_W] = arg_id(n, W);
  if (tensor_at(p, arg_id(n, W))->dim_max[1] % 4 == 0) return SCONCE_OK;
  return graph_packed(p->g, arg_id(n, W), &q8_rows, &n->extra[Q8_W], p->err);
}

static sconce_status shape(struct plan *p, const struct node *n) {
  struct q8_numbers numbers;
  TRY(check(p, n, &numbers));
  return rows_shape(p, out_id(n), tensor_at(p, arg_id(n, 0)),
                    tensor_at(p, arg_id(n, W))->dim_live[0]);
}

/* One place, as a convolution. */
static sconce_status emit_plain(struct plan *p, const struct node *n, const struct kernel *row,
                                const struct problem *q, const struct q8_numbers *numbers) {
  struct q8_conv_params u = {.batch = q->u.m,
                             .groups = 1,
                             .in_channels = q->u.k,
                             .out_channels = q->u.n,
                             .in_size = {1, 1},
                             .out_size = {1, 1},
                             .kernel = {1, 1},
                             .stride = {1, 1},
                             .dilation = {1, 1},
                             .w_out = q->u.k,
                             .w_in = 1,
                             .w_scales = q->u.n};
  Q8_PUT_NUMBERS(&u, numbers);
  return q8_emit_plain(p, n, &all_args[n->op->code], row, &u);
}

static sconce_status emit(struct plan *p, const struct node *n) {
  const struct q8_args *args = &all_args[n->op->code];
  struct q8_numbers numbers;
  TRY(check(p, n, &numbers));
  const struct tensor *x = tensor_at(p, arg_id(n, 0)), *w = tensor_at(p, arg_id(n, W));
  struct problem q = {.dtype = out_tensor(p, n)->dtype,
                      .fits = q8_is_constant(w),
                      .u = {.m = rows_of(x), .n = w->dim_live[0], .k = w->dim_live[1]}};
  q.u.words = (uint32_t)div_up(q.u.k, 4);
  q.u.w_scales = q.u.n;
  Q8_PUT_NUMBERS(&q.u, &numbers);
  const struct kernel *row;
  TRY(choose(p, n, rows, q.dtype, &q, &row));
  if (row->wgsl == &q8ta_plain_wgsl) return emit_plain(p, n, row, &q, &numbers);
  return q8_emit(p, n, args, row, &q.u, q.u.bias,
                 div_up(q.u.m, row->tile[0]) * div_up(q.u.n, row->tile[1]));
}

const struct op ops_q8ta_linear[] = {
    {"et_vk.q8ta_linear.default", shape, emit, prepare, .n_args = 11, .unbound = 1 << SUMS,
     .code = BYTES, .tables = TABLES(rows)},
    {"et_vk.q8ta_linear_gemv.default", shape, emit, prepare, .n_args = 11, .unbound = 1 << SUMS,
     .code = BYTES, .tables = TABLES(rows)},
    {"et_vk.linear_q8ta_q8csw.default", shape, emit, prepare, .n_args = 8, .unbound = 1 << SUMS,
     .code = REALS, .tables = TABLES(rows)},
    {0},
};
