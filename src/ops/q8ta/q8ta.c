/* See q8ta.h. */
#include "ops/q8ta/q8ta.h"

#include <float.h>
#include <inttypes.h>

static sconce_status byte_check(struct plan *p, const struct tensor *t, const char *what) {
  if (t->dtype == VK_INT8) return SCONCE_OK;
  return fail(p->err, SCONCE_UNSUPPORTED, "%s is %s, expected int8", what, vk_dtype_name(t->dtype));
}

/* Sums may be padded; so may scales and the bias. */
static sconce_status check_constants(struct plan *p, const struct node *n,
                                     const struct q8_args *args, uint32_t channels,
                                     uint32_t n_scales, struct q8_numbers *out) {
  const struct tensor *x, *w, *scales, *y = out_tensor(p, n);
  TRY(arg_tensor(p, n, 0, &x));
  TRY(arg_tensor(p, n, args->w, &w));
  TRY(arg_tensor(p, n, args->scales, &scales));
  char text[120];
  TRY(byte_check(p, x, "x"));
  TRY(byte_check(p, w, "the weight"));
  TRY(float_check(p, scales, "the scale"));
  if (args->y_scale)
    TRY(byte_check(p, y, "the result"));
  else
    TRY(float_check(p, y, "the result"));
  if (tensor_numel(scales) < n_scales)
    return fail(p->err, SCONCE_BAD_GRAPH, "scales %s for %u channels", tensor_text(scales, text),
                n_scales);
  out->half = is_half(scales);
  return rows_bias(p, n, args->bias, channels, &out->bias);
}

static sconce_status activation(struct plan *p, const struct node *n, uint32_t at, float *least) {
  *least = -FLT_MAX;
  if (at == 0 || arg_is_text(p, n, at, "none")) return SCONCE_OK;
  *least = 0;
  if (arg_is_text(p, n, at, "relu")) return SCONCE_OK;
  return fail(p->err, SCONCE_UNSUPPORTED, "the activation is neither none nor relu");
}

sconce_status q8_numbers_of(struct plan *p, const struct node *n, const struct q8_args *args,
                            uint32_t channels, uint32_t scales, struct q8_numbers *out) {
  double x_scale, y_scale = 1, zero = 0;
  int64_t x_zero;
  *out = (struct q8_numbers){.low = INT8_MIN, .high = INT8_MAX};
  TRY(check_constants(p, n, args, channels, scales, out));
  TRY(arg_float(p, n, 1, &x_scale));
  TRY(arg_int(p, n, 2, &x_zero));
  if (x_zero < INT8_MIN || x_zero > INT8_MAX) /* places outside x have this byte */
    return fail(p->err, SCONCE_UNSUPPORTED, "a zero point of %" PRId64 " for int8", x_zero);
  if (args->y_scale) {
    TRY(arg_float(p, n, args->y_scale, &y_scale));
    TRY(arg_float(p, n, args->y_scale + 1, &zero));
  }
  out->x_scale = (float)x_scale;
  out->x_zero = (int32_t)x_zero;
  out->inverse = (float)(1 / y_scale);
  out->zero = (float)zero;
  return activation(p, n, args->activation, &out->least);
}

/* ---- dispatches ------------------------------------------------------------------------------ */

/* The bias, or a few bytes of anything where there is none. */
static struct operand bias_of(const struct node *n, const struct q8_args *args, bool there) {
  if (there) return (struct operand){arg_id(n, args->bias)};
  return (struct operand){arg_id(n, args->scales), 0, 4};
}

sconce_status q8_emit_plain(struct plan *p, const struct node *n, const struct q8_args *args,
                            const struct kernel *row, const struct q8_conv_params *u) {
  const struct tensor *y = out_tensor(p, n);
  const uint32_t elems = 4 / vk_dtype_size(y->dtype);
  return dispatch(p, row, u, div_up(tensor_numel(y), 64 * elems),
                  OPERANDS({arg_id(n, 0)}, {arg_id(n, args->w)}, {arg_id(n, args->scales)},
                           bias_of(n, args, u->bias), {out_id(n)}));
}

sconce_status q8_emit(struct plan *p, const struct node *n, const struct q8_args *args,
                      const struct kernel *row, const void *params, uint32_t bias,
                      uint64_t workgroups) {
  return dispatch(p, row, params, workgroups,
                  OPERANDS({arg_id(n, 0)}, {n->extra[Q8_W]}, {n->extra[Q8_SUMS]},
                           {arg_id(n, args->scales)}, bias_of(n, args, bias), {out_id(n)}));
}
