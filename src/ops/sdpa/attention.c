/* Attention kernels: few rows over split keys, many rows in tiles, and everything else. */
#include "attention.h"

#include "attn_matrix.wgsl.h"
#include "attn_merge.wgsl.h"
#include "attn_plain.wgsl.h"
#include "attn_serial.wgsl.h"
#include "attn_split.wgsl.h"
#include "attn_tile.wgsl.h"

#include <math.h>
#include <string.h>

enum {
  SPLIT_SEQ = 16, /* queries that there is scratch for, all keys split */
  /* (query, head) of a head of k and v: more of them are tiles, which read a key once. 16 queries
   * of a small model's prompt take lavapipe 3.4 s of its processors' time instead of 4.2. */
  SPLIT_ROWS = 8,
  SPLIT_DIM = 512,
  CHUNK_SHORT = 64,
  CHUNK_LONG = 128,
  CHUNK_LONG_FROM = 1024, /* keys */
  TILE_KEYS = 64,
  TILE_CHUNK = 256,  /* fewest keys of a workgroup of tiles */
  TILE_GROUPS = 256, /* workgroups that fill a device: two for each of an H200's processors */
};
/* Scratch for split keys; fewer queries are split where this would not do. */
static const uint64_t SPLIT_BYTES = 32u << 20;

struct problem {
  const struct attention *a;
  uint64_t scratch; /* elements there are for split keys */
};

/* Rows (query, head) that share a head of k and v. */
static uint64_t rows_of(const struct attention *a) { return (uint64_t)a->seq * a->heads_per_kv; }

/* An H200 wants about 500 workgroups at 8,000 keys (128 keys each: 15.5 µs, 256: 17 µs), and more
 * of them than 128 keys give at 512 (64: 5.5 µs). */
uint32_t attention_chunk(uint32_t keys) {
  return keys > CHUNK_LONG_FROM ? CHUNK_LONG : CHUNK_SHORT;
}
static uint32_t chunks_of(uint32_t keys) {
  return keys ? (uint32_t)div_up(keys, attention_chunk(keys)) : 1;
}
/* The most chunks of any number of keys up to this one. */
static uint32_t chunks_max(uint32_t keys) {
  uint32_t brief = keys > CHUNK_LONG_FROM ? CHUNK_LONG_FROM : keys;
  uint32_t a = chunks_of(brief), b = chunks_of(keys);
  return a > b ? a : b;
}
uint32_t attention_lanes(uint32_t dim) {
  return dim <= 64 ? 4 : dim <= 128 ? 8 : dim <= 256 ? 16 : 32;
}

static bool split(const void *problem) {
  const struct problem *x = problem;
  const struct attention *a = x->a;
  return a->dim % 4 == 0 && a->dim <= SPLIT_DIM && a->wide == a->dim && rows_of(a) <= SPLIT_ROWS &&
         (uint64_t)a->seq * a->heads * chunks_of(a->keys) * (a->dim + 4) <= x->scratch;
}
static uint32_t dim_of_head(const void *problem) {
  return ((const struct problem *)problem)->a->dim;
}
static bool split256(const void *problem) { return split(problem) && dim_of_head(problem) <= 256; }
static bool split64(const void *problem) { return split(problem) && dim_of_head(problem) <= 64; }
static bool split128(const void *problem) { return split(problem) && dim_of_head(problem) <= 128; }

static bool tile(const void *problem, uint32_t most) {
  const struct attention *a = ((const struct problem *)problem)->a;
  return a->dim % 4 == 0 && a->dim <= most && a->wide == a->dim;
}
static bool tile64(const void *problem) { return tile(problem, 64); }
static bool tile128(const void *problem) { return tile(problem, 128); }
static bool tile256(const void *problem) { return tile(problem, 256); }
static bool tile512(const void *problem) { return tile(problem, 512); }
/* Its threads hold a head of up to 256 elements. lavapipe ends the loops of a thread after 65,535
 * turns in all: twice the head's quads and some more for each key. */
static bool serial(const void *problem) {
  const struct attention *a = ((const struct problem *)problem)->a;
  return tile256(problem) && (uint64_t)a->keys * (a->dim / 2 + a->dim / 32 + 5) + a->dim < 65535;
}
static bool many(const void *problem) { return rows_of(((const struct problem *)problem)->a) > 32; }
static bool many64(const void *problem) { return many(problem) && tile64(problem); }
static bool many128(const void *problem) { return many(problem) && tile128(problem); }

/* tile: rows of a workgroup; of out for the plain ones. */
#define F32 "use=quad_f32 use=elem_f32"
#define F16 "use=quad_f16 use=elem_f16"
#define TREE " use=group_tree"
#define SPLIT_WIDE(NAME, SET, DTYPE, FITS, LANES)                                                  \
  {"split_wide_" NAME,                                                                             \
   &attn_split_wgsl,                                                                               \
   SET " use=attn_chunk_wide use=attn_rows4 LANES=" LANES,                                         \
   DTYPE,                                                                                          \
   NEEDS_SUBGROUPS | NEEDS_WIDE,                                                                   \
   FITS,                                                                                           \
   {4},                                                                                            \
   256,                                                                                            \
   12544}
#define SPLIT(NAME, SET, DTYPE)                                                                    \
  {NAME, &attn_split_wgsl, SET " use=attn_chunk" TREE, DTYPE, 0, split256, {4}, 256, 14336}
#define SPLIT512(NAME, SET, DTYPE)                                                                 \
  {NAME, &attn_split_wgsl, SET " use=attn_chunk QUERY=512u" TREE, DTYPE, 0, split, {4}, 256, 18432}
/* Products of 16 x 16 x 16 in subgroups of 32, as NVIDIA's are, and of 8 x 8 x 8. */
#define MATRIX(NAME, SET, DTYPE, FITS, SIDE, LANES, BYTES)                                         \
  {NAME,                                                                                           \
   &attn_matrix_wgsl,                                                                              \
   SET " SIDE=" #SIDE "u LANES=" #LANES "u",                                                       \
   DTYPE,                                                                                          \
   NEEDS_FAST | NEEDS_F16 | NEEDS_SUBGROUPS | NEEDS_MATRIX,                                        \
   FITS,                                                                                           \
   {4 * SIDE},                                                                                     \
   4 * LANES,                                                                                      \
   BYTES,                                                                                          \
   .matrix = {SIDE, SIDE, SIDE},                                                                   \
   .lanes = LANES}
#define MATRICES(DTYPE, SET, OF)                                                                   \
  MATRIX("matrix16_64_" DTYPE, SET, OF, many64, 16, 32, 28176),                                    \
      MATRIX("matrix16_128_" DTYPE, "WIDTH=128u " SET, OF, many128, 16, 32, 40464),                \
      MATRIX("matrix8_64_" DTYPE, SET, OF, many64, 8, 32, 21008),                                  \
      MATRIX("matrix8_64_narrow_" DTYPE, SET, OF, many64, 8, 8, 21008)
#define TILE(NAME, SET, DTYPE, FITS, ROWS, THREADS, BYTES)                                         \
  {NAME, &attn_tile_wgsl, SET, DTYPE, 0, FITS, {ROWS}, THREADS, BYTES}
/* 64 rows where workgroup memory allows; 32 for fewer of them, or longer heads. */
#define TILES(DTYPE, SET, OF)                                                                      \
  TILE("tile64_" DTYPE, SET, OF, many64, 64, 128, 17408),                                          \
      TILE("tile128_" DTYPE, "QUADS=2u " SET, OF, many128, 64, 128, 17408),                        \
      TILE("tile64_32_" DTYPE, "WG=64u ROWS=32u DEPTH=4u " SET, OF, tile64, 32, 64, 8576),         \
      TILE("tile128_32_" DTYPE, "WG=64u ROWS=32u DEPTH=4u QUADS=2u " SET, OF, tile128, 32, 64,     \
           8576),                                                                                  \
      TILE("tile256_" DTYPE, "ROWS=32u DEPTH=4u QUADS=4u " SET, OF, tile256, 32, 128, 8832),       \
      TILE("tile512_" DTYPE, "ROWS=32u DEPTH=4u QUADS=8u " SET, OF, tile512, 32, 128, 8832)
#define SERIAL(NAME, SET, DTYPE)                                                                   \
  {NAME, &attn_serial_wgsl, SET, DTYPE, NEEDS_SOFTWARE, serial, {8}, 8}
const struct kernel attention_kernels[] = {
    SERIAL("serial_f32", F32, OF_F32),
    SERIAL("serial_f16", F16, OF_F16),
    SPLIT_WIDE("f32_64", F32, OF_F32, split64, "4u"),
    SPLIT_WIDE("f16_64", F16, OF_F16, split64, "4u"),
    SPLIT_WIDE("f32_128", F32, OF_F32, split128, "8u"),
    SPLIT_WIDE("f16_128", F16, OF_F16, split128, "8u"),
    SPLIT_WIDE("f32_256", F32, OF_F32, split256, "16u"),
    SPLIT_WIDE("f16_256", F16, OF_F16, split256, "16u"),
    SPLIT("split_f32", F32, OF_F32),
    SPLIT("split_f16", F16, OF_F16),
    SPLIT512("split512_f32", F32, OF_F32),
    SPLIT512("split512_f16", F16, OF_F16),
    MATRICES("f32", F32 " use=part_set_f32", OF_F32),
    MATRICES("f16", F16 " use=part_set_f16", OF_F16),
    TILES("f32", F32 " use=part_set_f32", OF_F32),
    TILES("f16", F16 " use=part_set_f16", OF_F16),
    {"plain_f16", &attn_plain_wgsl, "use=elem_f16" TREE, OF_F16, .tile = {2},
     .workgroup_bytes = 1024, .reference = true},
    {"plain_f32", &attn_plain_wgsl, "use=elem_f32" TREE, OF_F32, .tile = {1},
     .workgroup_bytes = 1024, .reference = true},
    {0},
};
const struct kernel attention_merges[] = {
    {"merge_f16", &attn_merge_wgsl, "use=quad_f16", OF_F16, .threads = 256,
     .workgroup_bytes = 6144},
    {"merge_f32", &attn_merge_wgsl, "use=quad_f32", OF_F32, .threads = 256,
     .workgroup_bytes = 6144},
    {0},
};

sconce_status attention_prepare(struct plan *p, struct node *n, const struct attention *a) {
  if (a->dim % 4 || a->dim > SPLIT_DIM || a->wide != a->dim) return SCONCE_OK;
  uint64_t most = p->g->caps.max_storage_binding;
  if (most > SPLIT_BYTES) most = SPLIT_BYTES;
  uint64_t row = (uint64_t)a->heads * chunks_max(a->rows); /* (heads, chunks) of one query */
  uint32_t seq = a->seq < SPLIT_SEQ ? a->seq : SPLIT_SEQ;
  row *= a->dim + 4; /* values; maximum and sum */
  while (seq && row * seq * 4 > most) seq--;
  if (!seq) return SCONCE_OK;
  return graph_scratch(p->g, VK_FLOAT32, row * seq, &n->extra[0], p->err);
}

static struct attn_params params_of(const struct attention *a, uint32_t unit) {
  uint32_t dim = a->dim / unit, kv_heads = a->heads / a->heads_per_kv;
  struct attn_params u = {.seq = a->seq,
                          .heads = a->heads,
                          .heads_per_kv = a->heads_per_kv,
                          .dim = dim,
                          .q_token = a->head_major ? dim : a->heads * dim,
                          .q_head = a->head_major ? a->seq * dim : dim,
                          .k_token = a->head_major ? dim : kv_heads * dim,
                          .k_head = a->head_major ? a->rows * dim : dim,
                          .keys = a->keys,
                          .first = a->first,
                          .head_major = a->head_major,
                          .masked = a->bias != NO_VALUE,
                          .mask_heads = a->mask_heads ? a->mask_heads : 1,
                          .mask_batches = a->mask_batches ? a->mask_batches : 1,
                          .wide = a->wide,
                          .v_token = a->head_major ? a->wide : kv_heads * a->wide,
                          .v_head = a->head_major ? a->rows * a->wide : a->wide,
                          .chunk = attention_chunk(a->keys),
                          .chunks = chunks_of(a->keys),
                          .lanes = attention_lanes(a->dim),
                          .scale = (float)a->scale,
                          .never = -INFINITY,
                          .blind = a->blind_zero || a->keys == 0 ? 0 : NAN};
  memcpy(u.mask, a->mask, sizeof u.mask);
  return u;
}

sconce_status attention_merge(struct plan *p, const struct node *n, const struct attention *a,
                              uint32_t chunks) {
  struct attn_params u = params_of(a, 4);
  u.chunks = chunks;
  const struct kernel *row;
  TRY(choose(p, n, attention_merges, a->dtype, NULL, &row));
  return dispatch(p, row, &u, (uint64_t)a->seq * a->heads, OPERANDS({n->extra[0]}, {a->out}));
}

static uint32_t bias_of(const struct attention *a) { return a->bias == NO_VALUE ? a->q : a->bias; }

static sconce_status emit_split(struct plan *p, const struct node *n, const struct attention *a,
                                const struct kernel *row) {
  struct attn_params u = params_of(a, 4);
  const uint64_t sets = div_up(rows_of(a), row->tile[0]) * (a->heads / a->heads_per_kv);
  TRY(dispatch(p, row, &u, sets * u.chunks,
               OPERANDS({a->q}, {a->k}, {a->v}, {bias_of(a)}, {n->extra[0]})));
  return attention_merge(p, n, a, u.chunks);
}

/* Keys are split only where rows do not fill the device. */
static void split_tiles(const struct problem *x, uint64_t sets, struct attn_params *u) {
  const struct attention *a = x->a;
  const uint64_t parts = sets ? TILE_GROUPS / sets : 1;
  uint64_t chunk = parts > 1 ? div_up(div_up(a->keys, parts), TILE_KEYS) * TILE_KEYS : a->keys;
  if (chunk < TILE_CHUNK) chunk = TILE_CHUNK;
  const uint64_t chunks = div_up(a->keys, chunk);
  const bool whole = chunks < 2 || (uint64_t)a->seq * a->heads * chunks * (a->dim + 4) > x->scratch;
  u->chunk = whole ? a->keys : (uint32_t)chunk;
  u->chunks = whole ? 1 : (uint32_t)chunks;
}

static sconce_status emit_tiles(struct plan *p, const struct node *n, const struct problem *x,
                                const struct kernel *row) {
  const struct attention *a = x->a;
  struct attn_params u = params_of(a, 4);
  const uint64_t sets = div_up(rows_of(a), row->tile[0]) * (a->heads / a->heads_per_kv);
  split_tiles(x, sets, &u);
  const bool whole = u.chunks == 1;
  TRY(dispatch(p, row, &u, sets * u.chunks,
               OPERANDS({a->q}, {a->k}, {a->v}, {bias_of(a)}, {whole ? a->out : n->extra[0]})));
  return whole ? SCONCE_OK : attention_merge(p, n, a, u.chunks);
}

bool attention_is_serial(const struct plan *p, const struct node *n, const struct attention *a) {
  if (!p->g->caps.software) return false;
  const struct problem problem = {a, 0};
  const struct kernel *row = row_for(p, n, attention_kernels, a->dtype, &problem);
  return row && row->wgsl == &attn_serial_wgsl;
}

sconce_status attention_emit(struct plan *p, const struct node *n, const struct attention *a) {
  const struct tensor *scratch = tensor_at(p, n->extra[0]);
  struct problem problem = {a, scratch ? tensor_numel_max(scratch) : 0};
  const struct kernel *row;
  TRY(choose(p, n, attention_kernels, a->dtype, &problem, &row));
  if (row->wgsl == &attn_split_wgsl) return emit_split(p, n, a, row);
  if (row->wgsl == &attn_tile_wgsl || row->wgsl == &attn_matrix_wgsl)
    return emit_tiles(p, n, &problem, row);
  const bool serial = row->wgsl == &attn_serial_wgsl;
  struct attn_params u = params_of(a, serial ? 4 : 1);
  if (serial)
    return dispatch(p, row, &u, div_up((uint64_t)a->seq * a->heads, row->tile[0]),
                    OPERANDS({a->q}, {a->k}, {a->v}, {bias_of(a)}, {a->out}));
  return dispatch(p, row, &u,
                  div_up((uint64_t)a->seq * a->heads, row->tile[0]) * div_up(a->wide, 256),
                  OPERANDS({a->q}, {a->k}, {a->v}, {bias_of(a)}, {a->out}));
}
