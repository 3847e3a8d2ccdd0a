/* Linear with 4-bit weights in groups, for the operators that end in one. */
#ifndef OPS_LINEAR_Q4_H
#define OPS_LINEAR_Q4_H

#include "ops/linear/rows.h"

/* How scales lie on the device: by row of the weight. */
extern const struct packing q4_scales;
/* A weight with even k in the high nibbles as one with even k in the low ones. */
extern const struct packing q4_turned;
/* From scales: for each row of the weight a power of two, float32, that brings its largest scale to
 * 2^9 or more and below 2^10, so that f16 holds the row's weights. */
extern const struct packing q4_norms;

/* y = x · Wᵀ + bias. x is (m, k) in a tensor of any shape, float32 or of y's dtype. */
struct q4_linear {
  uint32_t x, w, scales, y; /* value ids; scales packed as q4_scales */
  uint32_t bias, bias_kind; /* bias_kind: see rows_bias */
  bool residual;            /* the bias has a row for each of y's; only kernels for many rows can */
  bool gated;               /* …and is not added: y is silu(bias) times the product */
  uint32_t m, k, n;
  uint32_t group, groups; /* codes that share a scale; scales of a row */
  /* Scratch for tiles, or NO_VALUE: sums in slices of k; x in f16 and its factors by row. And what
   * scales are multiplied by for f16. */
  uint32_t parts, halves, factors, norms;
  bool halved; /* halves and factors are made: by q4_emit, or for another product of the same x */
};

/* Do the weight, its scales and the size of its groups fit each other, and rows of k? */
bool q4_fits(const struct tensor *w, const struct tensor *scales, int64_t group, uint32_t k);
/* From a node whose scales are laid out in extra[0], checked; `at`: which argument is which. */
struct q4_args {
  uint32_t x, w, scales, group, bias;
};
SCONCE_CHECK sconce_status q4_linear_of(struct plan *p, const struct node *n, struct q4_args at,
                                        struct q4_linear *out);
/* n's operator lists Q4_TABLES. */
SCONCE_CHECK sconce_status q4_emit(struct plan *p, const struct node *n, struct q4_linear *l);
extern const struct kernel q4_kernels[], q4_kernels_f32_f16[], q4_kernels_f16_f32[], q4_halves[],
    q4_wholes[], q4_sums[], q4_scaled[];
#define Q4_TABLES                                                                                  \
  q4_kernels, q4_kernels_f32_f16, q4_kernels_f16_f32, q4_halves, q4_wholes, q4_sums, q4_scaled

/* ---- tiles.c: many rows of x ----------------------------------------------------------------- */

/* Makes extra[2] to extra[5]: parts, halves, factors and norms of n's q4_linear, as far as tiles of
 * this device need them. Arguments by number; without scales there is no product in f16. */
SCONCE_CHECK sconce_status q4_scratch(struct plan *p, struct node *n, uint32_t x, uint32_t w,
                                      uint32_t scales);
struct q4_params;
bool q4_is_tile(const struct kernel *row);
/* Workgroups of a tile's row for a product of m by n. */
uint64_t q4_tiles_of(const struct kernel *row, uint64_t m, uint64_t n);
/* Slices of k and what goes with them, for u->m and u->n; at most as many as `parts`, elements,
 * have room for. */
void q4_slice(const struct kernel *row, struct q4_params *u, uint64_t parts);
/* Elements that slices of a product want for up to m rows; 0: it is never sliced. `whole`: one
 * slice is kept there, too. */
uint64_t q4_parts_of(const struct kernel *row, uint64_t m, uint32_t k, uint32_t n, bool whole);
/* x in halves, for l and whoever shares them; of a norm in front, if there is one. */
struct q4_norm {
  uint32_t x, weight;
  double eps;
};
SCONCE_CHECK sconce_status q4_emit_halves(struct plan *p, const struct node *n, struct q4_linear *l,
                                          const struct q4_norm *norm);
/* Rows [m0, m0 + count) of them. */
struct operand q4_halves_part(struct plan *p, const struct q4_linear *l, uint64_t m0,
                              uint64_t count);
struct operand q4_factors_part(struct plan *p, const struct q4_linear *l, uint64_t m0,
                               uint64_t count);
/* Rows [m0, m0 + u->m) of x. */
SCONCE_CHECK sconce_status q4_emit_tiles(struct plan *p, const struct node *n, struct q4_linear *l,
                                         const struct kernel *row, struct q4_params *u,
                                         uint64_t m0);
/* Will products of many rows of x take subgroup matrices here? */
bool q4_takes_matrices(const struct node *linear);

/* What the predicates of all 4-bit tables look at. */
struct q4_problem {
  uint32_t m, k, rows; /* rows: of the weight, or of all weights of a fused node */
  bool residual;       /* a row of y is added to each */
  bool vector;         /* kernels that read units of 32 codes can do it */
  bool tile;           /* and those of tiles */
  bool matrix;         /* and those of subgroup matrices */
  bool large;          /* see q4_is_large */
};
bool q4_few_rows(const void *problem);
bool q4_long_rows(const void *problem);
bool q4_vector(const void *problem);
bool q4_vector64(const void *problem);
bool q4_tile16(const void *problem); /* up to so many rows of x */
bool q4_tile32(const void *problem);
bool q4_tile(const void *problem);
bool q4_broad16(const void *problem); /* the same, unless narrower tiles are ahead */
bool q4_broad32(const void *problem);
bool q4_broad64(const void *problem);
bool q4_broad(const void *problem);
bool q4_matrix16(const void *problem);
bool q4_matrix32(const void *problem);
bool q4_matrix64(const void *problem);
bool q4_matrix(const void *problem);

/* What kernels beside those of subgroup matrices need. */
enum { Q4_BESIDE_MATRICES = NEEDS_F16 | NEEDS_SUBGROUPS | NEEDS_MATRIX | NEEDS_FAST };
/* Rows of x up to which each is a vector; above, tiles are ahead. H200, a Llama of 1 B, tokens/s as
 * vectors and in tiles: prompts of 9 4,497 and 2,757, of 12 5,372 and 3,766, of 16 5,933 and 5,010;
 * in subgroup matrices 16 come at 6,535. Kernels for software devices, stories15M: lavapipe,
 * prompts of 32 717 and 506, of 250 665 and 695; SwiftShader, 24 124 and 96, 64 103 and 146. */
uint32_t q4_vector_rows(const struct graph *g);
/* Do few rows of x want small tiles here? On GPUs, which are told by subgroups of 32 threads or
 * more; not where a row is asked for by name. */
bool q4_is_large(const struct plan *p);
/* Rows of x for one dispatch of tiles, of `left`, at most `most`: a few beyond whole tiles of 128
 * would cost as much as a tile, and a smaller one does for them. */
uint32_t q4_rows_taken(uint32_t left, uint64_t most);

/* For kernels that read units of 32 codes: unit >> *shift is a unit's group. false: groups are no
 * 32 · 2^i, nor all of k. */
bool q4_shift(uint32_t group, uint32_t k, uint32_t *shift);
/* Workgroups for m rows of x and so many of the weight; each stages x once for several blocks where
 * there are more than fill a large device. */
uint64_t q4_workgroups(uint32_t m, uint64_t rows, const struct kernel *row, uint32_t *blocks);

/* Rows of the kernels that use q4_rows.wgsl: `rows` rows for `threads` threads, which take `units`
 * units of them at a time. Bytes: x, sums, squares. */
#define Q4_WIDE(name, wgsl, set, dtype, fits, rows, units, threads)                                \
  {name,                                                                                           \
   wgsl,                                                                                           \
   "T=" #threads "u U=" #units "u use=q4_rows use=q4_i24 use=q4_four use=q4_r" #rows               \
   " use=shuffle_r" #rows " use=sums_shuffle " set,                                                \
   dtype,                                                                                          \
   NEEDS_SUBGROUPS | NEEDS_WIDE,                                                                   \
   fits,                                                                                           \
   {256 / threads * rows, rows},                                                                   \
   256,                                                                                            \
   threads * units * 112 + 32 * rows + 32}
#define Q4_MEMORY(name, wgsl, set, dtype, fits, threads)                                           \
  {name,                                                                                           \
   wgsl,                                                                                           \
   "T=" #threads                                                                                   \
   "u use=q4_rows use=q4_f32 use=q4_codes use=q4_four use=q4_r4 use=sums_memory " set,             \
   dtype,                                                                                          \
   0,                                                                                              \
   fits,                                                                                           \
   {256 / threads * 4, 4},                                                                         \
   256,                                                                                            \
   threads * 128 + 5120}
/* The same for software devices, with q4_serial.wgsl: a thread has four rows, and what is made of
 * them in `words` words of y. Its loops turn k / 32 times for each of at most 8 blocks: lavapipe
 * gives a thread 65,535 turns, which are enough for k up to 262,000. */
#define Q4_SERIAL(name, wgsl, set, dtype, words)                                                   \
  {name,                                                                                           \
   wgsl,                                                                                           \
   "WG=16u T=1u WORDS=" #words "u use=q4_serial use=q4_codes use=q4_four use=q4_r4 " set,          \
   dtype,                                                                                          \
   NEEDS_SOFTWARE,                                                                                 \
   q4_vector,                                                                                      \
   {64, 4},                                                                                        \
   16}
/* Rows of the kernels that use q4_tile.wgsl: `wg` is tx · ty threads, each with `r` rows of x and
 * `c` quads of rows of the weights, of which there are `weights`. Bytes: 32 deep of both. */
#define Q4_TILE(name, wgsl, types, dtype, fits, weights, wg, tx, ty, r, c)                         \
  {name,                                                                                           \
   wgsl,                                                                                           \
   "WG=" #wg "u TX=" #tx "u TY=" #ty "u R=" #r "u C=" #c "u " types,                               \
   dtype,                                                                                          \
   0,                                                                                              \
   fits,                                                                                           \
   {4 * c * tx / weights, r * ty},                                                                 \
   wg,                                                                                             \
   128 * (4 * c * tx + r * ty)}

/* gm by gn subgroups of `lanes` threads, each with sa by sb matrices of side by side, of `weights`
 * weights. out: quads of a matrix that workgroup memory keeps on their way out, or 0. */
#define Q4_MATRIX(name, wgsl, types, dtype, fits, weights, out, wg, lanes_, side, gm, gn, sa, sb)  \
  {name,                                                                                           \
   wgsl,                                                                                           \
   "WG=" #wg "u LANES=" #lanes_ "u MM=" #side "u MN=" #side "u MK=" #side "u GM=" #gm "u GN=" #gn  \
   "u use=mma_" #sa "x" #sb " " types,                                                             \
   dtype,                                                                                          \
   NEEDS_F16 | NEEDS_SUBGROUPS | NEEDS_MATRIX | NEEDS_FAST,                                        \
   fits,                                                                                           \
   {gn * sb * side / weights, gm * sa * side},                                                     \
   wg,                                                                                             \
   (gn * sb + gm * sa) * side * (8 * side + 16) + out * gm * gn * side * (side + 4) * 4,           \
   {side, side, side},                                                                             \
   lanes_}
/* Subgroup matrices, by what was measured on the H200: 16 rows by 64 columns, 64 by 64 and 128 by
 * 128 (64 by 64 where workgroup memory does not do); and the same in matrices of 8 by 8. */
#define Q4_MATRICES(name, wgsl, types, dtype, weights, out)                                        \
  Q4_MATRIX("matrix16x64_" name, wgsl, types, dtype, q4_matrix16, weights, out, 64, 32, 16, 1, 2,  \
            1, 2),                                                                                 \
      Q4_MATRIX("matrix64x64_" name, wgsl, types, dtype, q4_matrix64, weights, out, 128, 32, 16,   \
                2, 2, 2, 2),                                                                       \
      Q4_MATRIX("matrix128x128_" name, wgsl, types, dtype, q4_matrix, weights, out, 256, 32, 16,   \
                2, 4, 4, 2),                                                                       \
      Q4_MATRIX("matrix64_any_" name, wgsl, types, dtype, q4_matrix, weights, out, 128, 32, 16, 2, \
                2, 2, 2),                                                                          \
      Q4_MATRIX("matrix8x32_" name, wgsl, types, dtype, q4_matrix16, weights, out, 16, 8, 8, 1, 2, \
                1, 2),                                                                             \
      Q4_MATRIX("matrix32x32_" name, wgsl, types, dtype, q4_matrix32, weights, out, 32, 8, 8, 2,   \
                2, 2, 2),                                                                          \
      Q4_MATRIX("matrix8_64x64_" name, wgsl, types, dtype, q4_matrix, weights, out, 64, 8, 8, 2,   \
                4, 4, 2)

#endif
