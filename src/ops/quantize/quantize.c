/* Quantising and dequantising: one scale and zero point for a tensor, or one for each block of it.
 *
 * Rounding is PyTorch's, to the last bit: floats are multiplied by
 * the rounded inverse of the scale. */
#include "ops/quantize/blocks.h"
#include "ops/strides/strides.h"

#include "dequantize.wgsl.h"
#include "dequantize_blocks.wgsl.h"
#include "quantize.wgsl.h"
#include "quantize_blocks.wgsl.h"

/* Rows are for a dtype of x; the problem is the dtype of y. */
static bool to_byte(const void *to) {
  return *(const enum vk_dtype *)to == VK_INT8 || *(const enum vk_dtype *)to == VK_UINT8;
}
static bool to_i32(const void *to) { return *(const enum vk_dtype *)to == VK_INT32; }
static bool to_f32(const void *to) { return *(const enum vk_dtype *)to == VK_FLOAT32; }
static bool to_f16(const void *to) { return *(const enum vk_dtype *)to == VK_FLOAT16; }

#define ROW(WGSL, FROM, DTYPE, TO)                                                                 \
  {#FROM "_" #TO, &WGSL##_wgsl, "use=quad_" #FROM " use=into_" #TO, DTYPE, .fits = to_##TO}
#define TO_INTEGERS(NAME, WGSL)                                                                    \
  static const struct kernel NAME[] = {ROW(WGSL, f32, OF_F32, byte),                               \
                                       ROW(WGSL, f32, OF_F32, i32),                                \
                                       ROW(WGSL, f16, OF_F16, byte),                               \
                                       ROW(WGSL, f16, OF_F16, i32),                                \
                                       {0}}
#define TO_FLOATS(NAME, WGSL)                                                                      \
  static const struct kernel NAME[] = {ROW(WGSL, i8, OF_I8, f32),                                  \
                                       ROW(WGSL, i8, OF_I8, f16),                                  \
                                       ROW(WGSL, u8, OF_U8, f32),                                  \
                                       ROW(WGSL, u8, OF_U8, f16),                                  \
                                       ROW(WGSL, i32, OF_I32, f32),                                \
                                       ROW(WGSL, i32, OF_I32, f16),                                \
                                       {0}}
TO_INTEGERS(quantize_rows, quantize);
TO_INTEGERS(quantize_blocks_rows, quantize_blocks);
TO_FLOATS(dequantize_rows, dequantize);
TO_FLOATS(dequantize_blocks_rows, dequantize_blocks);

/* ---- arguments ------------------------------------------------------------------------------- */

/* The range of quantised values; torchao may leave it to the dtype. */
static sconce_status range_of(struct plan *p, const struct node *n, enum vk_dtype dtype,
                              double *low, double *high) {
  const bool byte = dtype == VK_UINT8, wide = dtype == VK_INT32;
  const double least = byte ? 0 : wide ? INT32_MIN : INT8_MIN;
  const double most = byte ? UINT8_MAX : wide ? INT32_MAX : INT8_MAX;
  TRY(arg_float_or(p, n, places_of(n)->low, least, low));
  TRY(arg_float_or(p, n, places_of(n)->high, most, high));
  if (*low >= least && *high <= most) return SCONCE_OK;
  return fail(p->err, SCONCE_BAD_GRAPH, "quantised values from %g to %g in a tensor of %s", *low,
              *high, vk_dtype_name(dtype));
}

static sconce_status shape(struct plan *p, const struct node *n) {
  const struct tensor *x;
  struct blocks_params u;
  TRY(arg_tensor(p, n, 0, &x));
  if (n->op->code != NUMBERS) TRY(blocks_of(p, n, x, &u));
  return shape_same(p, n);
}

/* ---- emit ------------------------------------------------------------------------------------ */

static sconce_status row_of(struct plan *p, const struct node *n, const struct tensor *x,
                            const struct kernel **row) {
  const enum vk_dtype to = out_tensor(p, n)->dtype;
  *row = row_for(p, n, n->op->tables[0], x->dtype, &to);
  if (*row) return SCONCE_OK;
  return fail(p->err, SCONCE_UNSUPPORTED, "%s to %s", vk_dtype_name(x->dtype), vk_dtype_name(to));
}

static sconce_status emit_blocks(struct plan *p, const struct node *n, const struct kernel *row,
                                 struct blocks_params *u) {
  const struct tensor *y = out_tensor(p, n);
  const uint64_t numel = tensor_numel(y), most = flat_part(p, tensor_numel_max(y), 4);
  const uint64_t part = most ? most : numel;
  const struct operand scales = {arg_id(n, places_of(n)->scale)};
  struct operand zeros = {arg_id(n, places_of(n)->zero)};
  if (!u->zeros) zeros = (struct operand){scales.value, 0, 4};
  for (uint64_t at = 0; at < numel; at += part) {
    u->first = (uint32_t)at;
    u->n = (uint32_t)(numel - at < part ? numel - at : part);
    TRY(dispatch(p, row, u, div_up(u->n, 256),
                 OPERANDS(flat_operand(p, arg_id(n, 0), at, part), scales, zeros,
                          flat_operand(p, out_id(n), at, part))));
  }
  return SCONCE_OK;
}

/* The kernels for whole tensors; `n_of` is where their n is in params. */
static sconce_status emit_flat(struct plan *p, const struct node *n, const struct kernel *row,
                               void *params, uint32_t *n_of) {
  const struct tensor *y = out_tensor(p, n);
  const uint64_t numel = tensor_numel(y), most = flat_part(p, tensor_numel_max(y), 4);
  const uint64_t part = most ? most : numel;
  for (uint64_t at = 0; at < numel; at += part) {
    *n_of = (uint32_t)(numel - at < part ? numel - at : part);
    TRY(dispatch(
        p, row, params, div_up(*n_of, 256),
        OPERANDS(flat_operand(p, arg_id(n, 0), at, part), flat_operand(p, out_id(n), at, part))));
  }
  return SCONCE_OK;
}

static sconce_status emit_quantize(struct plan *p, const struct node *n) {
  const struct tensor *x;
  const struct kernel *row;
  double low, high, scale, zero;
  TRY(arg_tensor(p, n, 0, &x));
  TRY(row_of(p, n, x, &row));
  TRY(range_of(p, n, out_tensor(p, n)->dtype, &low, &high));
  if (n->op->code != NUMBERS) {
    struct blocks_params u = {.low = (float)low, .high = (float)high};
    TRY(blocks_of(p, n, x, &u));
    return emit_blocks(p, n, row, &u);
  }
  TRY(arg_float(p, n, places_of(n)->scale, &scale));
  TRY(arg_float(p, n, places_of(n)->zero, &zero));
  struct quantize_params u = {
      .inverse = (float)(1 / scale), .zero = (float)zero, .low = (float)low, .high = (float)high};
  return emit_flat(p, n, row, &u, &u.n);
}

static sconce_status emit_dequantize(struct plan *p, const struct node *n) {
  const struct tensor *x;
  const struct kernel *row;
  TRY(arg_tensor(p, n, 0, &x));
  TRY(row_of(p, n, x, &row));
  if (n->op->code != NUMBERS) {
    struct blocks_params u = {0};
    TRY(blocks_of(p, n, x, &u));
    return emit_blocks(p, n, row, &u);
  }
  double scale, zero;
  TRY(arg_float(p, n, places_of(n)->scale, &scale));
  TRY(arg_float(p, n, places_of(n)->zero, &zero));
  struct dequantize_params u = {.scale = (float)scale, .zero = (float)zero};
  return emit_flat(p, n, row, &u, &u.n);
}

#define QUANTIZE(NAME, PORTABLE, N_ARGS, KIND, ROWS)                                               \
  {NAME,                                                                                           \
   shape,                                                                                          \
   emit_quantize,                                                                                  \
   .also = PORTABLE,                                                                               \
   .n_args = N_ARGS,                                                                               \
   .code = KIND,                                                                                   \
   .tables = TABLES(ROWS)}
#define DEQUANTIZE(NAME, PORTABLE, N_ARGS, KIND, ROWS)                                             \
  {NAME,                                                                                           \
   shape,                                                                                          \
   emit_dequantize,                                                                                \
   .also = PORTABLE,                                                                               \
   .n_args = N_ARGS,                                                                               \
   .code = KIND,                                                                                   \
   .tables = TABLES(ROWS)}

/* Dtypes among the arguments are not read: the tensors have theirs. */
const struct op ops_quantize[] = {
    /* [x, scale, zero, low, high, dtype, y] */
    QUANTIZE("quantized_decomposed.quantize_per_tensor.default",
             "quantized_decomposed::quantize_per_tensor.out", 7, NUMBERS, quantize_rows),
    QUANTIZE("quantized_decomposed.quantize_per_tensor.tensor",
             "quantized_decomposed::quantize_per_tensor.Tensor_out", 7, TENSORS,
             quantize_blocks_rows),
    QUANTIZE("quantized_decomposed.quantize_per_token.default",
             "quantized_decomposed::quantize_per_token.out", 7, TOKENS, quantize_blocks_rows),
    /* [x, scales, zeros, axis, low, high, dtype, y] */
    QUANTIZE("quantized_decomposed.quantize_per_channel.default",
             "quantized_decomposed::quantize_per_channel.out", 8, CHANNELS, quantize_blocks_rows),
    /* [x, scales, zeros, low, high, dtype, group, y] */
    QUANTIZE("quantized_decomposed.quantize_per_channel_group.default", NULL, 8, GROUPS,
             quantize_blocks_rows),
    /* [x, block, scales, zeros?, dtype, low?, high?, y] */
    QUANTIZE("torchao.quantize_affine.default", "torchao::quantize_affine.out", 8, BLOCKS,
             quantize_blocks_rows),
    /* The same with the dtype of y before it, and zeros that may be missing. */
    DEQUANTIZE("quantized_decomposed.dequantize_per_tensor.default",
               "quantized_decomposed::dequantize_per_tensor.out", 8, NUMBERS, dequantize_rows),
    DEQUANTIZE("quantized_decomposed.dequantize_per_tensor.tensor",
               "quantized_decomposed::dequantize_per_tensor.Tensor_out", 8, TENSORS,
               dequantize_blocks_rows),
    DEQUANTIZE("quantized_decomposed.dequantize_per_token.default",
               "quantized_decomposed::dequantize_per_token.out", 8, TOKENS, dequantize_blocks_rows),
    DEQUANTIZE("quantized_decomposed.dequantize_per_channel.default",
               "quantized_decomposed::dequantize_per_channel.out", 9, CHANNELS,
               dequantize_blocks_rows),
    DEQUANTIZE("quantized_decomposed.dequantize_per_channel_group.default", NULL, 9, GROUPS,
               dequantize_blocks_rows),
    DEQUANTIZE("torchao.dequantize_affine.default", "torchao::dequantize_affine.out", 9, BLOCKS,
               dequantize_blocks_rows),
    {0},
};
