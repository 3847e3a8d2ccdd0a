/* What products of quantised tensors share: bytes times bytes, summed as integers of 32 bits,
 * exactly, and made real numbers or bytes again at the end.
 *
 * Σ (x − x_zero) · w is Σ x · w − x_zero · Σ w: kernels that multiply words of four bytes are told
 * the second sum. */
#ifndef OPS_Q8TA_H
#define OPS_Q8TA_H

#include "ops/linear/rows.h"

#include "q8_conv_params.wgsl.h"
#include "q8ta_plain.wgsl.h"

/* Where the arguments of an operator are; 0: it has none. */
struct q8_args {
  uint32_t w, scales, bias, y_scale, activation;
};

/* How sums become results, as the kernels are told. */
struct q8_numbers {
  float x_scale, inverse, zero, low, high, least;
  int32_t x_zero;
  uint32_t bias, half; /* 0 or 1 + (2 bytes); scales of 2 bytes */
};

/* The largest number of products in a sum that 32 bits hold whatever the bytes are. */
enum { Q8_DEEPEST = 65536 };

/* Reads them, and checks w, its scales and the bias for so many channels of y. [x, x_scale, x_zero,
 * …] */
SCONCE_CHECK sconce_status q8_numbers_of(struct plan *p, const struct node *n,
                                         const struct q8_args *args, uint32_t channels,
                                         uint32_t scales, struct q8_numbers *out);

#define Q8_PUT_NUMBERS(u, q)                                                                       \
  ((u)->x_scale = (q)->x_scale, (u)->inverse = (q)->inverse, (u)->zero = (q)->zero,                \
   (u)->low = (q)->low, (u)->high = (q)->high, (u)->least = (q)->least, (u)->x_zero = (q)->x_zero, \
   (u)->bias = (q)->bias, (u)->half = (q)->half)

/* Σ w of each channel, int32: of (channels, deep), or of (down, across, channels). */
extern const struct packing q8_sums;
/* (rows, cols) with rows of whole words, zeros behind them. */
extern const struct packing q8_rows;
/* (down, across, channels) as (channels, down, across) with rows of whole words. */
extern const struct packing q8_planes;
/* Where prepare puts them in extra, if the bytes of the weight are known at load. */
enum { Q8_SUMS, Q8_W };
static inline bool q8_is_constant(const struct tensor *w) { return w->constant && !w->written; }

/* Rows of the kernel for whatever else does not fit, by the dtype of y: the last of every table. */
#define Q8_PLAIN                                                                                   \
  {"plain", &q8ta_plain_wgsl, "use=q8_word_byte use=q8_requant", OF_I8, .reference = true}
#define Q8_PLAIN_F32 {"plain_f32", &q8ta_plain_wgsl, "use=q8_word_f32", OF_F32, .reference = true}
#define Q8_PLAIN_F16 {"plain_f16", &q8ta_plain_wgsl, "use=q8_word_f16", OF_F16, .reference = true}
/* With such a row, and n's own w. */
SCONCE_CHECK sconce_status q8_emit_plain(struct plan *p, const struct node *n,
                                         const struct q8_args *args, const struct kernel *row,
                                         const struct q8_conv_params *u);
/* Operands of all other rows: x, w, sums, scales, bias, y. */
SCONCE_CHECK sconce_status q8_emit(struct plan *p, const struct node *n, const struct q8_args *args,
                                   const struct kernel *row, const void *params, uint32_t bias,
                                   uint64_t workgroups);

#endif
