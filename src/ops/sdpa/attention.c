/* Attention kernels: few queries over split keys, many queries in one stream, and everything else.
 */
#include "attention.h"

#include "attn_merge.wgsl.h"
#include "attn_plain.wgsl.h"
#include "attn_split.wgsl.h"
#include "attn_stream.wgsl.h"

#include <math.h>
#include <string.h>

enum {
  SPLIT_SEQ = 16, /* most queries for which keys are split */
  SPLIT_DIM = 512,
  CHUNK_SHORT = 64,
  CHUNK_LONG = 128,
  CHUNK_LONG_FROM = 1024, /* keys */
};
/* Scratch for split keys; fewer queries are split where this would not do. */
static const uint64_t SPLIT_BYTES = 32u << 20;

struct problem {
  const struct attention *a;
  uint64_t scratch; /* elements there are for split keys */
};

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
  return a->dim % 4 == 0 && a->dim <= SPLIT_DIM && a->seq <= SPLIT_SEQ &&
         (uint64_t)a->seq * a->heads * chunks_of(a->keys) * (a->dim + 4) <= x->scratch;
}
static uint32_t dim_of_head(const void *problem) {
  return ((const struct problem *)problem)->a->dim;
}
static bool split256(const void *problem) { return split(problem) && dim_of_head(problem) <= 256; }
static bool split64(const void *problem) { return split(problem) && dim_of_head(problem) <= 64; }
static bool split128(const void *problem) { return split(problem) && dim_of_head(problem) <= 128; }

static bool stream(const void *problem, uint32_t most) {
  return dim_of_head(problem) % 4 == 0 && dim_of_head(problem) <= most;
}
static bool stream64(const void *problem) { return stream(problem, 64); }
static bool stream128(const void *problem) { return stream(problem, 128); }
static bool stream256(const void *problem) { return stream(problem, 256); }
static bool stream512(const void *problem) { return stream(problem, 512); }

/* tile: 4 rows a workgroup and keys; 64 rows and keys; rows of out. */
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
#define STREAM(NAME, SET, DTYPE, FITS)                                                             \
  {NAME, &attn_stream_wgsl, SET, DTYPE, 0, FITS, {64}, 128, 16384}
const struct kernel attention_kernels[] = {
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
    STREAM("stream64_f32", F32, OF_F32, stream64),
    STREAM("stream64_f16", F16, OF_F16, stream64),
    STREAM("stream128_f32", "QUADS=4u " F32, OF_F32, stream128),
    STREAM("stream128_f16", "QUADS=4u " F16, OF_F16, stream128),
    STREAM("stream256_f32", "QUADS=8u " F32, OF_F32, stream256),
    STREAM("stream256_f16", "QUADS=8u " F16, OF_F16, stream256),
    STREAM("stream512_f32", "QUADS=16u " F32, OF_F32, stream512),
    STREAM("stream512_f16", "QUADS=16u " F16, OF_F16, stream512),
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
  if (a->dim % 4 || a->dim > SPLIT_DIM) return SCONCE_OK;
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
                          .chunk = attention_chunk(a->keys),
                          .chunks = chunks_of(a->keys),
                          .lanes = attention_lanes(a->dim),
                          .scale = (float)a->scale,
                          .never = -INFINITY};
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

static sconce_status emit_split(struct plan *p, const struct node *n, const struct attention *a,
                                const struct kernel *row) {
  struct attn_params u = params_of(a, 4);
  uint64_t sets =
      div_up((uint64_t)a->seq * a->heads_per_kv, row->tile[0]) * (a->heads / a->heads_per_kv);
  uint32_t bias = a->bias == NO_VALUE ? a->q : a->bias;
  TRY(dispatch(p, row, &u, sets * u.chunks,
               OPERANDS({a->q}, {a->k}, {a->v}, {bias}, {n->extra[0]})));
  return attention_merge(p, n, a, u.chunks);
}

sconce_status attention_emit(struct plan *p, const struct node *n, const struct attention *a) {
  const struct tensor *scratch = tensor_at(p, n->extra[0]);
  struct problem problem = {a, scratch ? tensor_numel_max(scratch) : 0};
  const struct kernel *row;
  TRY(choose(p, n, attention_kernels, a->dtype, &problem, &row));
  if (row->wgsl == &attn_split_wgsl) return emit_split(p, n, a, row);
  bool plain = row->wgsl == &attn_plain_wgsl;
  struct attn_params u = params_of(a, plain ? 1 : 4);
  const uint64_t workgroups =
      plain
          ? div_up((uint64_t)a->seq * a->heads, row->tile[0]) * div_up(a->dim, 256)
          : div_up((uint64_t)a->seq * a->heads_per_kv, row->tile[0]) * (a->heads / a->heads_per_kv);
  return dispatch(
      p, row, &u, workgroups,
      OPERANDS({a->q}, {a->k}, {a->v}, {a->bias == NO_VALUE ? a->q : a->bias}, {a->out}));
}
