/* The gradients of a convolution are convolutions: that of x a transposed one of the result's
 * gradient with the same weight; that of the weight one of x with the result's gradient, with
 * batch and channels exchanged and stride and dilation too. */
#include "ops/compound/expand.h"
#include "ops/conv/conv.h"

#include <inttypes.h>
#include <string.h>

enum { GRAD, X, W, BIAS_SIZES, STRIDE, PADDING, DILATION, TRANSPOSED, EXTRA, GROUPS, MASK, OUTS };
enum { GROUPS_MAX = 64, LONGEST = 1 << 24 };

struct backward {
  uint32_t axes, groups;
  int64_t stride[CONV_AXES], padding[CONV_AXES], dilation[CONV_AXES];
  struct tensor grad, x, w; /* as they were given: values may move */
};

/* ---- arguments ------------------------------------------------------------------------------- */

static sconce_status list(const struct expansion *x, uint32_t i, uint32_t axes, int64_t least,
                          int64_t out[CONV_AXES]) {
  uint32_t n;
  TRY(expand_ints(x, i, out, CONV_AXES, &n));
  for (uint32_t k = 0; k < axes; k++) {
    if (n == 1) out[k] = out[0];
    if ((n != 1 && n != axes) || out[k] < least || out[k] > LONGEST)
      return fail(x->err, SCONCE_BAD_GRAPH,
                  "argument %u has %u integers for %u axes, or one of them "
                  "is out of range",
                  i, n, axes);
  }
  return SCONCE_OK;
}

static sconce_status read_args(const struct expansion *x, struct backward *b) {
  const struct tensor *grad, *from, *w;
  int64_t transposed, groups;
  TRY(expand_given(x, GRAD, &grad));
  TRY(expand_given(x, X, &from));
  TRY(expand_given(x, W, &w));
  TRY(expand_int(x, TRANSPOSED, &transposed));
  TRY(expand_int(x, GROUPS, &groups));
  *b = (struct backward){.grad = *grad, .x = *from, .w = *w, .axes = from->rank - 2};
  if (from->rank < 3 || b->axes > CONV_AXES || w->rank != from->rank || grad->rank != from->rank)
    return fail(x->err, SCONCE_BAD_GRAPH, "ranks are %u, %u and %u", grad->rank, from->rank,
                w->rank);
  if (transposed)
    return fail(x->err, SCONCE_UNSUPPORTED, "the gradients of a transposed convolution");
  if (groups < 1 || groups > GROUPS_MAX || from->dim_max[1] % groups || grad->dim_max[1] % groups)
    return fail(x->err, SCONCE_UNSUPPORTED, "%" PRId64 " groups of %u channels, at most %d", groups,
                from->dim_max[1], GROUPS_MAX);
  b->groups = (uint32_t)groups;
  TRY(list(x, STRIDE, b->axes, 1, b->stride));
  TRY(list(x, PADDING, b->axes, 0, b->padding));
  return list(x, DILATION, b->axes, 1, b->dilation);
}

static bool wanted(const struct expansion *x, uint32_t i) {
  const struct value *v = x->args[MASK] == NO_VALUE ? NULL : &x->g->values[x->args[MASK]];
  if (!v || v->kind != VK_BOOL_LIST || i >= v->list.n) return false;
  return v->list.bools[i] && expand_item(x, OUTS, i) != NO_VALUE;
}

static sconce_status new_ints(const struct expansion *x, const int64_t *ints, uint32_t n,
                              uint32_t *out) {
  uint32_t ids[CONV_AXES];
  for (uint32_t i = 0; i < n; i++) TRY(expand_number(x, VK_INT, ints[i], &ids[i]));
  return expand_list(x, ids, n, out);
}

/* ---- of x ------------------------------------------------------------------------------------ */

static sconce_status of_x(const struct expansion *x, const struct backward *b) {
  int64_t extra[CONV_AXES];
  uint32_t none, yes, more;
  for (uint32_t i = 0; i < b->axes; i++) {
    const int64_t out = b->grad.dim_max[2 + i], kernel = b->w.dim_max[2 + i];
    extra[i] = (int64_t)b->x.dim_max[2 + i] -
               ((out - 1) * b->stride[i] - 2 * b->padding[i] + b->dilation[i] * (kernel - 1) + 1);
    if (extra[i] < 0 || extra[i] > LONGEST)
      return fail(x->err, SCONCE_BAD_GRAPH, "axis %u of %u pixels became %" PRId64, i,
                  b->x.dim_max[2 + i], out);
  }
  TRY(expand_number(x, VK_NULL, 0, &none));
  TRY(expand_number(x, VK_BOOLEAN, 1, &yes));
  TRY(new_ints(x, extra, b->axes, &more));
  return ADD("aten.convolution.default", x->args[GRAD], x->args[W], none, x->args[STRIDE],
             x->args[PADDING], x->args[DILATION], yes, more, x->args[GROUPS],
             expand_item(x, OUTS, 0));
}

/* ---- of the weight --------------------------------------------------------------------------- */

/* Channels `first` and on of a tensor, with batch and channels exchanged. */
static sconce_status channels(const struct expansion *x, uint32_t from, const struct tensor *t,
                              uint32_t first, uint32_t count, uint32_t *out) {
  struct tensor part = *t, turned = *t;
  uint32_t one, start, end, zero, some;
  part.dim_max[1] = turned.dim_max[0] = count;
  turned.dim_max[1] = t->dim_max[0];
  TRY(expand_tensor(x, t->dtype, &part, &some));
  TRY(expand_tensor(x, t->dtype, &turned, out));
  TRY(expand_number(x, VK_INT, 0, &zero));
  TRY(expand_number(x, VK_INT, 1, &one));
  TRY(expand_number(x, VK_INT, first, &start));
  TRY(expand_number(x, VK_INT, first + count, &end));
  TRY(ADD("aten.slice_copy.Tensor", from, one, start, end, one, some));
  return ADD("aten.transpose_copy.int", some, zero, one, *out);
}

/* The convolution may give more taps than the weight has: those that only padding reached. */
static sconce_status crop(const struct expansion *x, const struct backward *b, struct tensor *t,
                          uint32_t *id) {
  uint32_t zero, one, dim, end, some;
  TRY(expand_number(x, VK_INT, 0, &zero));
  TRY(expand_number(x, VK_INT, 1, &one));
  for (uint32_t i = 0; i < b->axes; i++) {
    if (t->dim_max[2 + i] == b->w.dim_max[2 + i]) continue;
    t->dim_max[2 + i] = b->w.dim_max[2 + i];
    TRY(expand_tensor(x, t->dtype, t, &some));
    TRY(expand_number(x, VK_INT, 2 + i, &dim));
    TRY(expand_number(x, VK_INT, t->dim_max[2 + i], &end));
    TRY(ADD("aten.slice_copy.Tensor", *id, dim, zero, end, one, some));
    *id = some;
  }
  return SCONCE_OK;
}

static sconce_status of_group(const struct expansion *x, const struct backward *b, uint32_t group,
                              uint32_t result) {
  const uint32_t ic = b->x.dim_max[1] / b->groups, oc = b->grad.dim_max[1] / b->groups;
  struct tensor taps = b->w;
  uint32_t from, grad, made, none, no, zero, one, zeros;
  TRY(channels(x, x->args[X], &b->x, group * ic, ic, &from));
  TRY(channels(x, x->args[GRAD], &b->grad, group * oc, oc, &grad));
  taps.dim_max[0] = ic;
  taps.dim_max[1] = oc;
  for (uint32_t i = 0; i < b->axes; i++) {
    const int64_t span = b->stride[i] * ((int64_t)b->grad.dim_max[2 + i] - 1) + 1;
    const int64_t room = (int64_t)b->x.dim_max[2 + i] + 2 * b->padding[i] - span;
    const int64_t count = room / b->dilation[i] + 1;
    if (room < 0 || count < b->w.dim_max[2 + i])
      return fail(x->err, SCONCE_BAD_GRAPH, "axis %u has too few pixels for its kernel", i);
    taps.dim_max[2 + i] = (uint32_t)count;
  }
  TRY(expand_tensor(x, b->w.dtype, &taps, &made));
  TRY(expand_number(x, VK_NULL, 0, &none));
  TRY(expand_number(x, VK_BOOLEAN, 0, &no));
  TRY(expand_number(x, VK_INT, 0, &zero));
  TRY(expand_number(x, VK_INT, 1, &one));
  TRY(expand_list(x, &zero, 1, &zeros));
  TRY(ADD("aten.convolution.default", from, grad, none, x->args[DILATION], x->args[PADDING],
          x->args[STRIDE], no, zeros, one, made));
  TRY(crop(x, b, &taps, &made));
  return ADD("aten.transpose_copy.int", made, zero, one, result);
}

static sconce_status of_weight(const struct expansion *x, const struct backward *b) {
  uint32_t parts[GROUPS_MAX], all, zero;
  struct tensor part = b->w;
  if (b->groups == 1) return of_group(x, b, 0, expand_item(x, OUTS, 1));
  part.dim_max[0] /= b->groups;
  for (uint32_t i = 0; i < b->groups; i++) {
    TRY(expand_tensor(x, b->w.dtype, &part, &parts[i]));
    TRY(of_group(x, b, i, parts[i]));
  }
  TRY(expand_list(x, parts, b->groups, &all));
  TRY(expand_number(x, VK_INT, 0, &zero));
  return ADD("aten.cat.default", all, zero, expand_item(x, OUTS, 1));
}

/* ---- all three ------------------------------------------------------------------------------- */

static sconce_status of_bias(const struct expansion *x, const struct backward *b) {
  uint32_t ids[1 + CONV_AXES], dims, no, none;
  for (uint32_t i = 0; i <= b->axes; i++) TRY(expand_number(x, VK_INT, i ? i + 1 : 0, &ids[i]));
  TRY(expand_list(x, ids, 1 + b->axes, &dims));
  TRY(expand_number(x, VK_BOOLEAN, 0, &no));
  TRY(expand_number(x, VK_NULL, 0, &none));
  return ADD("aten.sum.dim_IntList", x->args[GRAD], dims, no, none, expand_item(x, OUTS, 2));
}

static sconce_status backward(const struct expansion *x) {
  struct backward b;
  TRY(read_args(x, &b));
  if (wanted(x, 0)) TRY(of_x(x, &b));
  if (wanted(x, 1)) TRY(of_weight(x, &b));
  return wanted(x, 2) ? of_bias(x, &b) : SCONCE_OK;
}

const struct op ops_conv_backward[] = {
    {"aten.convolution_backward.default", .expand = backward,
     .also = "aten::convolution_backward.out", .n_args = 12, .flags = OP_LIST},
    {0},
};
