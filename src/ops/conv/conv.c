/* Convolutions: their arguments, their shapes, and how a transposed one falls into phases. */
#include "ops/conv/emit.h"
#include "ops/linear/rows.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>

/* Numbers in lists, and pixels along an axis with its padding: products and sums of them then fit
 * the integers here and in the kernels. */
enum { NUMBER_MAX = 1 << 24, EXTENT_MAX = 1 << 30 };

/* ---- arguments ------------------------------------------------------------------------------- */

/* A list with a number for each of `axes` axes, one number for all, or none. */
static sconce_status read_list(struct plan *p, const struct node *n, uint32_t arg, const char *what,
                               uint32_t axes, int64_t least, uint32_t out[CONV_AXES]) {
  int64_t list[CONV_AXES];
  uint32_t count;
  TRY(arg_ints(p, n, arg, list, CONV_AXES, &count));
  if (count > 1 && count != axes)
    return fail(p->err, SCONCE_BAD_GRAPH, "%u numbers of %s for %u axes", count, what, axes);
  for (uint32_t i = 0; i < CONV_AXES; i++) {
    const uint32_t missing = CONV_AXES - axes;
    out[i] = (uint32_t)least;
    if (i < missing || count == 0) continue;
    const int64_t number = list[count == 1 ? 0 : i - missing];
    if (number < least || number > NUMBER_MAX)
      return fail(p->err, number < least ? SCONCE_BAD_GRAPH : SCONCE_UNSUPPORTED,
                  "%s of %" PRId64 ", expected %" PRId64 " to %d", what, number, least, NUMBER_MAX);
    out[i] = (uint32_t)number;
  }
  return SCONCE_OK;
}

static sconce_status read_lists(struct plan *p, const struct node *n, uint32_t axes,
                                struct conv *c) {
  uint32_t stride[CONV_AXES], padding[CONV_AXES], dilation[CONV_AXES], extra[CONV_AXES];
  TRY(read_list(p, n, CONV_STRIDE, "stride", axes, 1, stride));
  TRY(read_list(p, n, CONV_PADDING, "padding", axes, 0, padding));
  TRY(read_list(p, n, CONV_DILATION, "dilation", axes, 1, dilation));
  TRY(read_list(p, n, CONV_OUTPUT_PADDING, "output padding", axes, 0, extra));
  for (uint32_t i = 0; i < CONV_AXES; i++) {
    struct conv_axis *a = &c->axis[i];
    a->stride = stride[i];
    a->padding = padding[i];
    a->dilation = dilation[i];
    a->extra = c->transposed ? extra[i] : 0;
    if (a->extra && a->extra >= a->stride && a->extra >= a->dilation)
      return fail(p->err, SCONCE_BAD_GRAPH,
                  "output padding of %u, with a stride of %u and a dilation of %u", a->extra,
                  a->stride, a->dilation);
  }
  return SCONCE_OK;
}

static sconce_status find_extent(struct plan *p, bool transposed, struct conv_axis *a) {
  const int64_t span = (int64_t)a->dilation * ((int64_t)a->kernel - 1) + 1;
  const int64_t padded = (int64_t)a->in + 2 * (int64_t)a->padding;
  int64_t out = (padded - span) / a->stride + 1;
  if (transposed)
    out = ((int64_t)a->in - 1) * a->stride - 2 * (int64_t)a->padding + span + a->extra;
  if (a->kernel == 0 || (transposed ? out < 1 : padded < span))
    return fail(p->err, SCONCE_BAD_GRAPH,
                "a kernel of %u with dilation %u does not fit %u pixels with padding %u", a->kernel,
                a->dilation, a->in, a->padding);
  if (span > EXTENT_MAX || padded > EXTENT_MAX || out > EXTENT_MAX)
    return fail(p->err, SCONCE_UNSUPPORTED,
                "a kernel over %" PRId64 " of %" PRId64 " pixels makes %" PRId64 ", at most %d",
                span, padded, out, EXTENT_MAX);
  a->out = (uint32_t)out;
  return SCONCE_OK;
}

/* Channels of x and of the weight, which is (out, in of a group, …), or if transposed
 * (in, out of a group, …). */
static sconce_status read_channels(struct plan *p, const struct node *n, const struct tensor *x,
                                   const struct tensor *w, struct conv *c) {
  int64_t groups;
  TRY(arg_int(p, n, CONV_GROUPS, &groups));
  const uint32_t in = x->dim_live[1], rows = w->dim_live[0];
  char a[120], b[120];
  if (groups < 1 || groups > UINT32_MAX || in % groups || rows % groups ||
      (c->transposed ? rows != in : w->dim_live[1] != in / groups))
    return fail(p->err, SCONCE_BAD_GRAPH, "x is %s, the weight %s, in %" PRId64 " groups",
                tensor_text(x, a), tensor_text(w, b), groups);
  c->groups = (uint32_t)groups;
  c->ic = in / c->groups;
  c->oc = c->transposed ? w->dim_live[1] : rows / c->groups;
  if ((uint64_t)c->groups * c->oc > UINT32_MAX)
    return fail(p->err, SCONCE_UNSUPPORTED, "%u groups of %u channels", c->groups, c->oc);
  return SCONCE_OK;
}

sconce_status conv_read(struct plan *p, const struct node *n, struct conv *c) {
  const struct tensor *x, *w;
  TRY(arg_tensor(p, n, CONV_X, &x));
  TRY(arg_tensor(p, n, CONV_W, &w));
  char a[120], b[120];
  if (x->rank != w->rank || x->rank < 3 || x->rank > 2 + CONV_AXES)
    return fail(p->err, SCONCE_BAD_GRAPH, "x is %s, the weight %s", tensor_text(x, a),
                tensor_text(w, b));
  *c = (struct conv){.batch = x->dim_live[0]};
  TRY(arg_bool(p, n, CONV_TRANSPOSED, &c->transposed));
  TRY(read_channels(p, n, x, w, c));
  const uint32_t axes = x->rank - 2;
  TRY(read_lists(p, n, axes, c));
  for (uint32_t i = 0; i < CONV_AXES; i++) {
    const bool there = i + axes >= CONV_AXES;
    const uint32_t dim = there ? i + axes - CONV_AXES + 2 : 0;
    c->axis[i].in = there ? x->dim_live[dim] : 1;
    c->axis[i].kernel = there ? w->dim_live[dim] : 1;
    TRY(find_extent(p, c->transposed, &c->axis[i]));
  }
  return SCONCE_OK;
}

/* ---- phases ---------------------------------------------------------------------------------- */

static uint32_t common_divisor(uint32_t a, uint32_t b) {
  while (b) {
    const uint32_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

static struct conv_phase forward(const struct conv_axis *a) {
  return (struct conv_phase){.pixels = a->out,
                             .taps = a->kernel,
                             .in_step = a->stride,
                             .in_first = -(int32_t)a->padding,
                             .in_tap = (int32_t)a->dilation,
                             .out_step = 1,
                             .w_step = 1};
}

/* Pixel o of y gets x[i] · w[k] wherever i · stride − padding + k · dilation = o. For o = q ·
 * stride + r that leaves every w_step-th k from w_first on, and i = q + in_first − t · in_tap. */
static struct conv_phase backward(const struct conv_axis *a, uint32_t r) {
  const uint32_t divisor = common_divisor(a->stride, a->dilation);
  struct conv_phase f = {.in_step = 1,
                         .in_tap = -(int32_t)(a->dilation / divisor),
                         .out_step = a->stride,
                         .out_first = r,
                         .w_step = a->stride / divisor};
  f.pixels = r < a->out ? (a->out - r + a->stride - 1) / a->stride : 0;
  const int64_t at = (int64_t)r + a->padding;
  if (at % divisor) return f; /* between all taps */
  while ((at - (int64_t)f.w_first * a->dilation) % a->stride) f.w_first++;
  if (f.w_first < a->kernel) f.taps = (a->kernel - f.w_first + f.w_step - 1) / f.w_step;
  f.in_first = (int32_t)((at - (int64_t)f.w_first * a->dilation) / a->stride);
  return f;
}

uint32_t conv_phases(const struct conv *c) {
  uint64_t n = 1;
  for (uint32_t i = 0; i < CONV_AXES && c->transposed && n <= CONV_PHASES_MAX; i++)
    n *= c->axis[i].stride;
  return n <= CONV_PHASES_MAX ? (uint32_t)n : 0;
}

void conv_phase(const struct conv *c, uint32_t i, struct conv_phase out[CONV_AXES]) {
  for (uint32_t k = CONV_AXES; k-- > 0;) {
    const struct conv_axis *a = &c->axis[k];
    out[k] = c->transposed ? backward(a, i % a->stride) : forward(a);
    if (c->transposed) i /= a->stride;
  }
}

/* ---- shape ----------------------------------------------------------------------------------- */

static sconce_status shape(struct plan *p, const struct node *n) {
  struct conv c;
  uint32_t bias;
  TRY(conv_read(p, n, &c));
  TRY(rows_bias(p, n, CONV_BIAS, c.groups * c.oc, &bias));
  const uint32_t rank = tensor_at(p, arg_id(n, CONV_X))->rank;
  uint32_t dims[2 + CONV_AXES] = {c.batch, c.groups * c.oc};
  for (uint32_t i = 2; i < rank; i++) dims[i] = c.axis[i + CONV_AXES - rank].out;
  return set_dims(p, out_id(n), dims, rank);
}

enum { PLAIN, CLAMPED };

/* ---- operators ------------------------------------------------------------------------------- */

sconce_status conv_bounds(struct plan *p, const struct node *n, uint32_t low, uint32_t high,
                          struct conv_end *end) {
  double least, most;
  TRY(arg_float_or(p, n, low, -INFINITY, &least));
  TRY(arg_float_or(p, n, high, INFINITY, &most));
  if (least >= -(double)FLT_MAX) end->bits |= END_LOW, end->low = (float)fmin(least, FLT_MAX);
  if (most <= (double)FLT_MAX) end->bits |= END_HIGH, end->high = (float)fmax(most, -FLT_MAX);
  return SCONCE_OK;
}

static sconce_status emit(struct plan *p, const struct node *n) {
  struct conv_end end = {.y = out_id(n), .rest = NO_VALUE};
  if (n->op->code == CLAMPED) TRY(conv_bounds(p, n, CONV_LOW, CONV_HIGH, &end));
  return conv_emit(p, n, &end);
}

const struct op ops_conv[] = {
    {"aten.convolution.default", shape, emit, conv_prepare, .also = "aten::convolution.out",
     .n_args = 10, .tables = TABLES(conv_kernels)},
    {"et_vk.conv_with_clamp.default", shape, emit, conv_prepare,
     .also = "conv_with_clamp.default et_vk::conv_with_clamp.out", .n_args = 12, .code = CLAMPED,
     .tables = TABLES(conv_kernels)},
    {0},
};
