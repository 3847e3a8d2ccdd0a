/* Kernels of dense products, which one takes a problem, and its dispatches. Few tiles leave most of
 * a device idle; then several workgroups share a tile's k, each a slice, and a short kernel adds up
 * what they found. */
#include "ops/linear/product.h"

#include "matmul.wgsl.h"
#include "matmul_int.wgsl.h"
#include "matmul_plain.wgsl.h"
#include "matmul_sums.wgsl.h"
#include "matvec.wgsl.h"

#include <string.h>

/* ---- kernels --------------------------------------------------------------------------------- */

/* By what a thread has: 8 x 8, 8 x 4 or 4 x 4 results, or 4 x 4 with four threads for each of them.
 */
enum tile_kind { ANY_TILE, LARGE, MEDIUM, SMALL, SHARED };

struct problem {
  struct product q;
  bool mixed;          /* x and w in different dtypes */
  bool words;          /* every row of y starts on a word */
  bool half;           /* x and y have 2 bytes */
  enum tile_kind tile; /* that suits the size, or ANY_TILE */
};

/* Above 8 rows the tile is ahead. */
static bool fits_matvec(const void *problem) {
  const struct problem *a = problem;
  const struct linear_params *u = &a->q.u;
  return u->batch == 1 && u->m <= 8 && u->k && u->k % 4 == 0 && u->w_k == 1 && u->bias_m == 0 &&
         a->words && !a->mixed;
}
static bool fits_matvec64(const void *problem) {
  return fits_matvec(problem) && ((const struct problem *)problem)->q.u.k >= 256;
}

static bool fits_tile(const struct problem *a, enum tile_kind tile) {
  return a->q.u.k % 4 == 0 && a->words && !a->mixed && (a->tile == ANY_TILE || a->tile == tile);
}
#define FITS(TILE)                                                                                 \
  static bool fits_nk_##TILE(const void *problem) {                                                \
    const struct problem *a = problem;                                                             \
    return fits_tile(a, TILE) && a->q.u.w_k == 1;                                                  \
  }                                                                                                \
  static bool fits_kn_##TILE(const void *problem) {                                                \
    const struct problem *a = problem;                                                             \
    return fits_tile(a, TILE) && a->q.u.w_n == 1 && a->q.u.n % 4 == 0;                             \
  }
FITS(LARGE)
FITS(MEDIUM)
FITS(SMALL)
FITS(SHARED)

enum { LARGE_BYTES = 20480, SHARED_BYTES = 17408 };
/* A tile is the columns of y that a workgroup takes, and the rows. */
#define MATVEC(NAME, SET, DTYPE, NEEDS, FITS, COLS, BYTES)                                         \
  {NAME, &matvec_wgsl, SET, DTYPE, NEEDS, FITS, {COLS, 1}, .threads = 256, .workgroup_bytes = BYTES}
#define MATMUL(NAME, SET, DTYPE, FITS, COLS, ROWS, THREADS, BYTES)                                 \
  {NAME, &matmul_wgsl, SET, DTYPE, 0, FITS, {COLS, ROWS}, THREADS, BYTES}
#define MATMULS(T, SET, DTYPE, KIND)                                                               \
  MATMUL("matmul128_" #KIND "_" T, "use=matmul_" #KIND " " SET, DTYPE, fits_##KIND##_LARGE, 128,   \
         128, 256, LARGE_BYTES),                                                                   \
      MATMUL("matmul64_" #KIND "_" T, "WG=128u C=1u use=matmul_" #KIND " " SET, DTYPE,             \
             fits_##KIND##_MEDIUM, 64, 64, 128, 10240),                                            \
      MATMUL("matmul32_" #KIND "_" T, "WG=128u R=4u C=1u use=matmul_" #KIND " " SET, DTYPE,        \
             fits_##KIND##_SMALL, 64, 32, 128, 7680),                                              \
      MATMUL("matmul_teams_" #KIND "_" T, "TX=8u R=4u C=1u TEAMS=4u use=matmul_" #KIND " " SET,    \
             DTYPE, fits_##KIND##_SHARED, 32, 32, 256, SHARED_BYTES)
#define ROWS(T, DTYPE, TYPES)                                                                      \
  MATVEC("matvec64_" T, "L=64u use=lanes_subgroup " TYPES, DTYPE, NEEDS_SUBGROUPS, fits_matvec64,  \
         16, 1024),                                                                                \
      MATVEC("matvec16_" T, "L=16u use=lanes_subgroup " TYPES, DTYPE, NEEDS_SUBGROUPS,             \
             fits_matvec, 64, 1024),                                                               \
      MATVEC("matvec64_memory_" T, "L=64u use=lanes_memory " TYPES, DTYPE, 0, fits_matvec64, 16,   \
             4096),                                                                                \
      MATVEC("matvec16_memory_" T, "L=16u use=lanes_memory " TYPES, DTYPE, 0, fits_matvec, 64,     \
             4096),                                                                                \
      MATMULS(T, TYPES, DTYPE, nk), MATMULS(T, TYPES, DTYPE, kn), {                                \
    "plain_" T, &matmul_plain_wgsl, "use=elem_" T, DTYPE, .threads = 64, .reference = true         \
  }
const struct kernel product_kernels[] = {
    ROWS("f32", OF_F32, "use=quad_f32 use=elem_f32"),
    ROWS("f16", OF_F16, "use=quad_f16 use=elem_f16"),
    {"plain_i32", &matmul_int_wgsl, "", OF_I32, .threads = 64, .reference = true},
    {0},
};
const struct kernel product_sums[] = {
    {"sums_f32", &matmul_sums_wgsl, "use=elem_f32", OF_F32, .threads = 64},
    {"sums_f16", &matmul_sums_wgsl, "use=elem_f16", OF_F16, .threads = 64},
    {0},
};

/* ---- tiles and slices ------------------------------------------------------------------------ */

static bool is_tile(const struct kernel *row) { return row->wgsl == &matmul_wgsl; }

enum { SLICES_MOST = 12, SLICE_UNIT = 64, SLICE_LEAST = 64 };
static const uint64_t PARTS_MOST = 4u << 20; /* elements */

/* Columns and rows of a tile, products of a processor in a clock tick of 1.75 GHz of its 128 (which
 * large tiles feed better), and what begin and end of a slice take as if k were so much longer. */
static const struct {
  uint32_t cols, rows;
  double rate;
  uint32_t extra, bytes;
} tiles[] = {[LARGE] = {128, 128, 0.6, 48, LARGE_BYTES},
             [MEDIUM] = {64, 64, 0.5, 48, 0},
             [SMALL] = {64, 32, 0.35, 48, 0},
             [SHARED] = {32, 32, 0.35, 64, SHARED_BYTES}};
enum { PROCESSORS = 132 };

/* An estimate, in µs of a large GPU: the products; writing and adding up what slices found. */
static double time_of(const struct linear_params *u, enum tile_kind kind, uint32_t slices,
                      uint32_t span) {
  const uint32_t cols = tiles[kind].cols, rows = tiles[kind].rows;
  const uint64_t n_tiles = div_up(u->m, rows) * div_up(u->n, cols) * u->batch;
  const double rounds = (double)div_up(n_tiles * slices, PROCESSORS);
  double time = rounds * rows * cols * (span + tiles[kind].extra) / (224e3 * tiles[kind].rate);
  if (slices > 1) time += 2.5 + slices * (double)u->m * u->n * 8 / 3e6;
  return time;
}

static uint32_t span_of(uint32_t k, uint32_t slices) {
  return (uint32_t)div_up(div_up(k, slices), SLICE_UNIT) * SLICE_UNIT;
}

/* How many slices are best with tiles of so many rows; *time: what that takes. */
static uint32_t slices_for(const struct linear_params *u, enum tile_kind kind, uint64_t room,
                           double *time) {
  uint32_t best = 1;
  *time = time_of(u, kind, 1, u->k);
  for (uint32_t slices = 2; slices <= SLICES_MOST && u->batch == 1; slices++) {
    const uint32_t span = span_of(u->k, slices);
    if (span < SLICE_LEAST || (uint64_t)slices * u->m * u->n > room) break;
    if (div_up(u->k, span) != slices) continue;
    const double other = time_of(u, kind, slices, span);
    if (other < *time) *time = other, best = slices;
  }
  return best;
}

static uint64_t room_of(const struct plan *p, const struct node *n) {
  const struct tensor *parts = tensor_at(p, n->extra[0]);
  return parts ? tensor_numel_max(parts) : 0;
}

static enum tile_kind kind_of(const struct kernel *row) {
  enum tile_kind kind = LARGE;
  while (tiles[kind].rows != row->tile[1] || tiles[kind].cols != row->tile[0]) kind++;
  return kind;
}

static enum tile_kind suit(const struct plan *p, const struct linear_params *u, uint64_t room) {
  enum tile_kind best = ANY_TILE;
  double least = 0;
  for (enum tile_kind kind = LARGE; kind <= SHARED; kind++) {
    double time;
    if (p->g->caps.max_workgroup_bytes < tiles[kind].bytes) continue;
    slices_for(u, kind, room, &time);
    if (best == ANY_TILE || time < least) best = kind, least = time;
  }
  return best;
}

sconce_status product_prepare(struct plan *p, struct node *n, const struct product *q) {
  uint64_t room = (uint64_t)SLICES_MOST * q->u.m * q->u.n,
           most = p->g->caps.max_storage_binding / 4;
  if (q->u.batch != 1 || q->u.m <= 8 || q->u.k < 2 * SLICE_LEAST) return SCONCE_OK;
  if (most > PARTS_MOST) most = PARTS_MOST;
  if (room > most) room = most;
  return graph_scratch(p->g, VK_FLOAT32, room, &n->extra[0], p->err);
}

/* ---- emit ------------------------------------------------------------------------------------ */

static uint64_t workgroups_of(const struct kernel *row, const struct problem *a) {
  const struct linear_params *u = &a->q.u;
  if (!is_tile(row) && row->wgsl != &matvec_wgsl) /* by elements of y */
    return div_up((uint64_t)u->batch * u->m * u->cols, row->threads * (a->half ? 2 : 1));
  return div_up(u->n, row->tile[0]) * div_up(u->m, row->tile[1]) * u->batch * u->slices;
}

static sconce_status emit_one(struct plan *p, const struct node *n, const struct kernel *row,
                              struct problem *a, struct operand w, uint64_t m0) {
  const struct product *q = &a->q;
  struct linear_params *u = &a->q.u;
  const uint64_t size = a->half ? 2 : 4, rows = (uint64_t)u->m * u->batch;
  const struct operand x = rows_part(p, q->x, u->k * size, m0, rows);
  struct operand bias = {q->w, 0, 4};
  if (u->bias) bias = (struct operand){q->bias};
  if (u->bias && q->from)
    bias = rows_part(p, q->bias, vk_dtype_size(tensor_at(p, q->bias)->dtype), q->from, u->cols);
  const struct operand y = rows_part(p, q->y, u->cols * size, m0, rows);
  struct operand rest = {q->w, 0, 4};
  if (q->rest != NO_VALUE) rest = rows_part(p, q->rest, u->cols * size, m0, rows);
  double time;
  u->slices = 1;
  if (is_tile(row) && !q->beside) u->slices = slices_for(u, kind_of(row), room_of(p, n), &time);
  u->span = u->slices > 1 ? span_of(u->k, u->slices) : u->k;
  const uint64_t workgroups = workgroups_of(row, a);
  if (row->wgsl == &matmul_int_wgsl)
    return dispatch(p, row, u, workgroups, OPERANDS(x, w, bias, y));
  if (u->slices == 1) return dispatch(p, row, u, workgroups, OPERANDS(x, w, bias, rest, y));
  const struct kernel *sums;
  TRY(choose(p, n, product_sums, tensor_at(p, q->y)->dtype, NULL, &sums));
  const struct operand parts = {n->extra[0]};
  TRY(dispatch(p, row, u, workgroups, OPERANDS(x, w, bias, rest, parts)));
  return dispatch(p, sums, u, div_up(div_up(u->n, 4) * u->m, sums->threads),
                  OPERANDS(parts, bias, rest, y));
}

/* Rows [m0, m0 + u.m) of x, in as many dispatches as w needs; only w of (n, k) can be split. */
static sconce_status emit_part(struct plan *p, const struct node *node, const struct kernel *row,
                               struct problem a, uint64_t m0) {
  struct linear_params *u = &a.q.u;
  const uint32_t n = u->n;
  const uint64_t w_row = (uint64_t)u->k << (u->w_half ? 1 : 2);
  const bool splits = u->batch == 1 && u->w_k == 1;
  const uint64_t step = splits ? rows_split(p, n, w_row, 0) : n;
  for (uint64_t n0 = 0; n0 < n; n0 += step) {
    u->first = (uint32_t)n0;
    u->n = (uint32_t)(n - n0 < step ? n - n0 : step);
    const struct operand w =
        splits ? rows_part(p, a.q.w, w_row, a.q.from + n0, u->n) : (struct operand){a.q.w};
    TRY(emit_one(p, node, row, &a, w, m0));
  }
  return SCONCE_OK;
}

sconce_status product_check(struct plan *p, const struct tensor *x, const struct tensor *t,
                            const char *what) {
  if (x->dtype == VK_INT32 && t->dtype == VK_INT32) return SCONCE_OK;
  TRY(float_check(p, x, "x"));
  return float_check(p, t, what);
}

sconce_status product_emit(struct plan *p, const struct node *n, const struct product *q) {
  const struct tensor *x = tensor_at(p, q->x), *w = tensor_at(p, q->w), *y = tensor_at(p, q->y);
  TRY(product_check(p, x, w, "the weight"));
  if (y->dtype != x->dtype)
    return fail(p->err, SCONCE_BAD_GRAPH, "x is %s, the result %s", vk_dtype_name(x->dtype),
                vk_dtype_name(y->dtype));
  struct problem a = {.q = *q, .half = is_half(x), .mixed = x->dtype != w->dtype};
  struct linear_params *u = &a.q.u;
  a.words = !a.half || u->n % 2 == 0 || (u->m == 1 && u->batch == 1);
  u->w_half = is_half(w);
  u->cols = u->n;
  u->rest = q->rest != NO_VALUE;
  if (!p->g->force) a.tile = suit(p, u, q->beside ? 0 : room_of(p, n));
  const struct kernel *row;
  TRY(choose(p, n, product_kernels, x->dtype, &a, &row));
  const uint32_t m = u->m;
  const uint64_t size = a.half ? 2 : 4;
  const bool splits = u->batch == 1 && u->bias_m == 0;
  const uint64_t step = splits ? rows_split(p, m, u->k * size, u->n * size) : m;
  for (uint64_t m0 = 0; m0 < m; m0 += step) {
    u->m = (uint32_t)(m - m0 < step ? m - m0 : step);
    TRY(emit_part(p, n, row, a, m0));
  }
  return SCONCE_OK;
}
