/* Convolutions of quantised tensors: general, pointwise, depthwise and transposed. x is (batch,
 * channels, height, width) in plain order, whatever layout the file has in mind. */
#include "ops/q8ta/q8ta.h"

#include "q8ta_conv.wgsl.h"
#include "q8ta_dw.wgsl.h"

#include <inttypes.h>
#include <string.h>

struct problem {
  struct q8_conv_params u;
  bool fits;  /* rows of w are whole words, and w is a constant, so that there are sums */
  bool words; /* planes of y are whole words */
};

static uint64_t places_of(const struct q8_conv_params *u) {
  return (uint64_t)u->batch * u->out_size[0] * u->out_size[1];
}
static bool uneven(const void *problem) { return ((const struct problem *)problem)->fits; }
static bool large(const void *problem) {
  const struct problem *q = problem;
  return q->fits && q->u.in_channels % 4 == 0;
}
/* Small tiles where large ones would leave most of a device idle, or be empty for the most part. */
static bool small(const void *problem) {
  const struct problem *q = problem;
  const uint64_t across = div_up(places_of(&q->u), 64), down = div_up(q->u.out_channels, 64);
  return large(q) && (q->u.out_channels <= 32 || q->u.groups * down * across < 64);
}
#define OWN(NAME)                                                                                  \
  static bool NAME##_own(const void *problem) {                                                    \
    return ((const struct problem *)problem)->words && NAME(problem);                              \
  }
OWN(small)
OWN(large)
OWN(uneven)

/* A tile is the channels and places of y that a workgroup takes. */
#define ROWS(SUFFIX, FITS, PUT)                                                                    \
  {"small" SUFFIX,      &q8ta_conv_wgsl,  "T=8u WG=64u use=q8_put_" PUT, OF_I8,                    \
   .fits = small##FITS, .tile = {32, 32}, .workgroup_bytes = 2048},                                \
      {"large" SUFFIX,      &q8ta_conv_wgsl,  "use=q8_put_" PUT, OF_I8,                            \
       .fits = large##FITS, .tile = {64, 64}, .threads = 256,    .workgroup_bytes = 4096},         \
      {"uneven" SUFFIX,                                                                            \
       &q8ta_conv_wgsl,                                                                            \
       "T=8u WG=64u WHOLE=false use=q8_put_" PUT,                                                  \
       OF_I8,                                                                                      \
       .fits = uneven##FITS,                                                                       \
       .tile = {32, 32},                                                                           \
       .workgroup_bytes = 2048}
static const struct kernel dw_rows[] = {
    {"dw", &q8ta_dw_wgsl, NULL, OF_I8, .fits = uneven}, Q8_PLAIN, {0}};
static const struct kernel rows[] = {
    ROWS("", _own, "own"), ROWS("_shared", , "shared"), Q8_PLAIN, {0}};

/* ---- arguments: [x, x_scale, x_zero, w, sums, scales, y_scale, y_zero, bias?, kernel, stride,
 * padding, (output padding,) dilation, groups, (activation,) y]
 * ------------------------------------
 */

enum { GENERAL, DEPTHWISE, TRANSPOSED };
enum { W = 3, SUMS, SCALES, Y_SCALE, BIAS = 8, KERNEL, STRIDE, PADDING };

static struct q8_args args_of(const struct node *n) {
  return (struct q8_args){.w = W,
                          .scales = SCALES,
                          .y_scale = Y_SCALE,
                          .bias = BIAS,
                          .activation = n->n_args < 16 ? 0 : n->n_args - 2};
}

/* Two numbers, or one for both. */
static sconce_status pair(struct plan *p, const struct node *n, uint32_t i, const char *what,
                          int64_t least, uint32_t out[2]) {
  int64_t list[2];
  uint32_t count;
  TRY(arg_ints(p, n, i, list, 2, &count));
  if (count == 0)
    return fail(p->err, SCONCE_BAD_GRAPH, "argument %u, the %s, is an empty list", i, what);
  for (uint32_t k = 0; k < 2; k++) {
    const int64_t value = list[count == 2 ? k : 0];
    if (value < least || value > INT16_MAX)
      return fail(p->err, SCONCE_BAD_GRAPH, "a %s of %" PRId64, what, value);
    out[k] = (uint32_t)value;
  }
  return SCONCE_OK;
}

static sconce_status geometry(struct plan *p, const struct node *n, struct q8_conv_params *u,
                              uint32_t more[2]) {
  const bool transposed = n->op->code == TRANSPOSED;
  more[0] = more[1] = 0;
  TRY(pair(p, n, KERNEL, "kernel size", 1, u->kernel));
  TRY(pair(p, n, STRIDE, "stride", 1, u->stride));
  TRY(pair(p, n, PADDING, "padding", 0, u->padding));
  if (transposed) TRY(pair(p, n, PADDING + 1, "padding of the output", 0, more));
  TRY(pair(p, n, PADDING + 1 + transposed, "dilation", 1, u->dilation));
  int64_t groups;
  TRY(arg_int(p, n, PADDING + 2 + transposed, &groups));
  const struct tensor *x;
  char text[120];
  TRY(arg_tensor(p, n, 0, &x));
  if (x->rank != 4 || groups < 1 || x->dim_live[1] % groups || x->dim_live[1] == 0)
    return fail(p->err, SCONCE_BAD_GRAPH, "x is %s, for %" PRId64 " groups", tensor_text(x, text),
                groups);
  u->transposed = transposed;
  u->groups = (uint32_t)groups;
  u->batch = x->dim_live[0];
  u->in_channels = (uint32_t)(x->dim_live[1] / groups);
  memcpy(u->in_size, x->dim_live + 2, sizeof u->in_size);
  return SCONCE_OK;
}

static sconce_status out_size(struct plan *p, struct q8_conv_params *u, const uint32_t more[2]) {
  for (uint32_t i = 0; i < 2; i++) {
    const int64_t reach = (int64_t)u->dilation[i] * (u->kernel[i] - 1), size = u->in_size[i];
    const int64_t padded = size + 2 * (int64_t)u->padding[i] - reach - 1;
    int64_t out = padded < 0 ? 0 : padded / u->stride[i] + 1;
    if (u->transposed)
      out = (size - 1) * u->stride[i] - 2 * (int64_t)u->padding[i] + reach + more[i] + 1;
    if (size == 0) out = 0;
    if (out < 0 || (out == 0 && size > 0) || out > UINT32_MAX)
      return fail(p->err, SCONCE_BAD_ARGUMENT,
                  "%u places with a kernel of %u, dilation %u and padding %u leave none",
                  u->in_size[i], u->kernel[i], u->dilation[i], u->padding[i]);
    u->out_size[i] = (uint32_t)out;
  }
  return SCONCE_OK;
}

/* How bytes lie in w: (kernel, channels), or (channels of y, taps, channels of x) with rows that
 * may be longer. */
static sconce_status weights(struct plan *p, const struct node *n, struct q8_conv_params *u) {
  const struct tensor *w;
  TRY(arg_tensor(p, n, W, &w));
  const uint32_t taps = u->kernel[0] * u->kernel[1];
  const bool depthwise = n->op->code == DEPTHWISE;
  const uint64_t deep = (uint64_t)taps * u->in_channels;
  const uint32_t channels = depthwise ? u->groups : w->dim_live[0];
  char text[120];
  bool fits = depthwise ? w->rank == 3 && w->dim_live[0] == u->kernel[0] &&
                              w->dim_live[1] == u->kernel[1] && w->dim_live[2] == channels &&
                              u->in_channels == 1
                        : w->rank == 2 && w->dim_live[1] >= deep && channels % u->groups == 0;
  if (!fits)
    return fail(p->err, SCONCE_BAD_GRAPH,
                "the weight is %s, for a kernel of %u by %u and %u channels in %u groups",
                tensor_text(w, text), u->kernel[0], u->kernel[1], u->in_channels * u->groups,
                u->groups);
  if (deep > Q8_DEEPEST)
    return fail(p->err, SCONCE_UNSUPPORTED, "sums of %" PRIu64 " products, at most %d", deep,
                Q8_DEEPEST);
  u->out_channels = channels / u->groups;
  u->w_out = depthwise ? 1 : w->dim_live[1];
  u->w_tap = depthwise ? channels : u->in_channels;
  u->w_in = 1;
  u->words = (uint32_t)div_up(deep, 4);
  /* of a transposed one, groups have the same scales */
  u->w_scales = u->transposed ? u->out_channels : channels;
  return SCONCE_OK;
}

static sconce_status params_of(struct plan *p, const struct node *n, struct q8_conv_params *u) {
  const struct q8_args args = args_of(n);
  struct q8_numbers numbers;
  uint32_t more[2];
  *u = (struct q8_conv_params){0};
  TRY(geometry(p, n, u, more));
  TRY(out_size(p, u, more));
  TRY(weights(p, n, u));
  TRY(q8_numbers_of(p, n, &args, u->groups * u->out_channels, u->w_scales, &numbers));
  Q8_PUT_NUMBERS(u, &numbers);
  return SCONCE_OK;
}

static sconce_status prepare(struct plan *p, struct node *n) {
  const bool depthwise = n->op->code == DEPTHWISE;
  const struct tensor *w;
  TRY(arg_tensor(p, n, W, &w));
  if (!q8_is_constant(w) || w->rank != (depthwise ? 3 : 2)) return SCONCE_OK;
  TRY(graph_packed(p->g, arg_id(n, W), &q8_sums, &n->extra[Q8_SUMS], p->err));
  n->extra[Q8_W] = arg_id(n, W);
  if (!depthwise) return SCONCE_OK;
  return graph_packed(p->g, arg_id(n, W), &q8_planes, &n->extra[Q8_W], p->err);
}

/* ---- shape and emit -------------------------------------------------------------------------- */

static sconce_status shape(struct plan *p, const struct node *n) {
  struct q8_conv_params u;
  TRY(params_of(p, n, &u));
  const uint32_t dims[] = {u.batch, u.groups * u.out_channels, u.out_size[0], u.out_size[1]};
  return set_dims(p, out_id(n), dims, 4);
}

static uint64_t workgroups_of(const struct kernel *row, const struct q8_conv_params *u) {
  if (row->wgsl == &q8ta_dw_wgsl) return div_up(places_of(u) * u->groups, 256);
  return u->groups * div_up(u->out_channels, row->tile[0]) * div_up(places_of(u), row->tile[1]);
}

static sconce_status emit(struct plan *p, const struct node *n) {
  const struct q8_args args = args_of(n);
  const bool depthwise = n->op->code == DEPTHWISE;
  struct problem q;
  TRY(params_of(p, n, &q.u));
  q.fits = q8_is_constant(tensor_at(p, arg_id(n, W))) && (depthwise || q.u.w_out == 4 * q.u.words);
  q.words = q.u.out_size[0] * q.u.out_size[1] % 4 == 0;
  const struct kernel *row;
  TRY(choose(p, n, n->op->tables[0], VK_INT8, &q, &row));
  if (row->wgsl == &q8ta_plain_wgsl) return q8_emit_plain(p, n, &args, row, &q.u);
  if (depthwise) q.u.words = (uint32_t)div_up(q.u.kernel[1], 4);
  return q8_emit(p, n, &args, row, &q.u, q.u.bias, workgroups_of(row, &q.u));
}

#define CONV(NAME, OTHERS, N_ARGS, FORM, ROWS)                                                     \
  {NAME,                                                                                           \
   shape,                                                                                          \
   emit,                                                                                           \
   prepare,                                                                                        \
   .also = OTHERS,                                                                                 \
   .n_args = N_ARGS,                                                                               \
   .code = FORM,                                                                                   \
   .unbound = 1 << SUMS,                                                                           \
   .tables = TABLES(ROWS)}
/* The names that end in _q8to are those of earlier exporters, which knew no activation. */
const struct op ops_q8ta_conv[] = {
    CONV("et_vk.q8ta_conv2d.default",
         "et_vk.q8ta_conv2d_pw.default et_vk.q8ta_conv2d_general.default "
         "et_vk.q8ta_conv2d_im2col.default",
         16, GENERAL, rows),
    CONV("et_vk.conv2d_q8ta_q8csw_q8to.default", NULL, 15, GENERAL, rows),
    CONV("et_vk.q8ta_conv2d_dw.default", NULL, 16, DEPTHWISE, dw_rows),
    CONV("et_vk.conv2d_q8ta_q8csw_q8to_dw.default", NULL, 15, DEPTHWISE, dw_rows),
    CONV("et_vk.q8ta_conv2d_transposed.default", NULL, 17, TRANSPOSED, rows),
    {0},
};
