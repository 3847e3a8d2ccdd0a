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
  SPLIT_DIM = 256,
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
uint32_t attention_lanes(uint32_t dim) { return dim <= 64 ? 4 : dim <= 128 ? 8 : 16; }

static bool split(const struct problem *x, bool half) {
  const struct attention *a = x->a;
  return a->half == half && a->dim % 4 == 0 && a->dim <= SPLIT_DIM && a->seq <= SPLIT_SEQ &&
         (uint64_t)a->seq * a->heads * chunks_of(a->keys) * (a->dim + 4) <= x->scratch;
}
static bool split_f32(const void *x, const struct caps *c) { return (void)c, split(x, false); }
static bool split_f16(const void *x, const struct caps *c) { return (void)c, split(x, true); }
static uint32_t dim_of_head(const void *problem) {
  return ((const struct problem *)problem)->a->dim;
}
static bool split64_f32(const void *x, const struct caps *c) {
  return split_f32(x, c) && dim_of_head(x) <= 64;
}
static bool split64_f16(const void *x, const struct caps *c) {
  return split_f16(x, c) && dim_of_head(x) <= 64;
}
static bool split128_f32(const void *x, const struct caps *c) {
  return split_f32(x, c) && dim_of_head(x) <= 128;
}
static bool split128_f16(const void *x, const struct caps *c) {
  return split_f16(x, c) && dim_of_head(x) <= 128;
}

static bool stream(const void *problem, uint32_t dim, bool half) {
  const struct attention *a = ((const struct problem *)problem)->a;
  return a->half == half && a->dim % 4 == 0 && a->dim <= dim;
}
static bool d64_f32(const void *x, const struct caps *c) { return (void)c, stream(x, 64, false); }
static bool d64_f16(const void *x, const struct caps *c) { return (void)c, stream(x, 64, true); }
static bool d128_f32(const void *x, const struct caps *c) { return (void)c, stream(x, 128, false); }
static bool d128_f16(const void *x, const struct caps *c) { return (void)c, stream(x, 128, true); }
static bool d256_f32(const void *x, const struct caps *c) { return (void)c, stream(x, 256, false); }
static bool d256_f16(const void *x, const struct caps *c) { return (void)c, stream(x, 256, true); }
static bool is_f16(const void *x, const struct caps *c) {
  return (void)c, ((const struct problem *)x)->a->half;
}
static bool is_f32(const void *x, const struct caps *c) { return !is_f16(x, c); }

/* tile: 4 rows a workgroup and keys; 64 rows and keys; rows of out. */
#define F32 "use=quad_f32 use=elem_f32"
#define F16 "use=quad_f16 use=elem_f16"
#define TREE " use=group_tree"
#define SPLIT_WIDE(name, set, fits, lanes)                                                         \
  {"split_wide_" name,                                                                             \
   &attn_split_wgsl,                                                                               \
   set " use=attn_chunk_wide use=attn_rows4 LANES=" lanes,                                         \
   NEEDS_SUBGROUPS | NEEDS_WIDE,                                                                   \
   fits,                                                                                           \
   {4},                                                                                            \
   256,                                                                                            \
   12544}
const struct kernel attention_kernels[] = {
    SPLIT_WIDE("f32_64", F32, split64_f32, "4u"),
    SPLIT_WIDE("f16_64", F16, split64_f16, "4u"),
    SPLIT_WIDE("f32_128", F32, split128_f32, "8u"),
    SPLIT_WIDE("f16_128", F16, split128_f16, "8u"),
    SPLIT_WIDE("f32_256", F32, split_f32, "16u"),
    SPLIT_WIDE("f16_256", F16, split_f16, "16u"),
    {"split_f32", &attn_split_wgsl, F32 " use=attn_chunk" TREE, 0, split_f32, {4}, 256, 14336},
    {"split_f16", &attn_split_wgsl, F16 " use=attn_chunk" TREE, 0, split_f16, {4}, 256, 14336},
    {"stream64_f32", &attn_stream_wgsl, F32, 0, d64_f32, {64}, 128, 16384},
    {"stream64_f16", &attn_stream_wgsl, F16, 0, d64_f16, {64}, 128, 16384},
    {"stream128_f32", &attn_stream_wgsl, "QUADS=4u " F32, 0, d128_f32, {64}, 128, 16384},
    {"stream128_f16", &attn_stream_wgsl, "QUADS=4u " F16, 0, d128_f16, {64}, 128, 16384},
    {"stream256_f32", &attn_stream_wgsl, "QUADS=8u " F32, 0, d256_f32, {64}, 128, 16384},
    {"stream256_f16", &attn_stream_wgsl, "QUADS=8u " F16, 0, d256_f16, {64}, 128, 16384},
    {"plain_f16", &attn_plain_wgsl, "use=elem_f16" TREE, 0, is_f16, {2}, 64, 1024},
    {"plain_f32", &attn_plain_wgsl, "use=elem_f32" TREE, 0, is_f32, {1}, 64, 1024},
    {0},
};
const struct kernel attention_merges[] = {
    {"merge_f16", &attn_merge_wgsl, "use=quad_f16", 0, is_f16, {1}, 256, 6144},
    {"merge_f32", &attn_merge_wgsl, "use=quad_f32", 0, is_f32, {1}, 256, 6144},
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
  uint32_t dim = a->dim / unit, kv_heads = a->heads / a->group;
  struct attn_params u = {.seq = a->seq,
                          .heads = a->heads,
                          .group = a->group,
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
  return dispatch(p, choose(p, attention_merges, &(struct problem){.a = a}), &u,
                  (uint64_t)a->seq * a->heads, OPERANDS({n->extra[0]}, {a->out}));
}

static sconce_status emit_split(struct plan *p, const struct node *n, const struct attention *a,
                                const struct kernel *row) {
  struct attn_params u = params_of(a, 4);
  uint64_t sets = div_up((uint64_t)a->seq * a->group, row->tile[0]) * (a->heads / a->group);
  uint32_t bias = a->bias == NO_VALUE ? a->q : a->bias;
  TRY(dispatch(p, row, &u, sets * u.chunks,
               OPERANDS({a->q}, {a->k}, {a->v}, {bias}, {n->extra[0]})));
  return attention_merge(p, n, a, u.chunks);
}

sconce_status attention_emit(struct plan *p, const struct node *n, const struct attention *a) {
  const struct tensor *scratch = tensor_at(p, n->extra[0]);
  struct problem problem = {a, scratch ? tensor_numel_max(scratch) : 0};
  const struct kernel *row = choose(p, attention_kernels, &problem);
  if (!row) return p->err->status;
  if (row->wgsl == &attn_split_wgsl) return emit_split(p, n, a, row);
  bool plain = row->wgsl == &attn_plain_wgsl;
  struct attn_params u = params_of(a, plain ? 1 : 4);
  uint64_t groups = plain
                        ? div_up((uint64_t)a->seq * a->heads, row->tile[0]) * div_up(a->dim, 256)
                        : div_up((uint64_t)a->seq * a->group, row->tile[0]) * (a->heads / a->group);
  return dispatch(
      p, row, &u, groups,
      OPERANDS({a->q}, {a->k}, {a->v}, {a->bias == NO_VALUE ? a->q : a->bias}, {a->out}));
}
