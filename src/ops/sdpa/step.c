/* New tokens: rotary embedding, append to the caches and attention. One token is one kernel, and
 * attn_merge where the keys are split; several, or one on a software device, have rotation and
 * append in one, and attention behind it. What fits neither runs as the nodes came. */
#include "attention.h"
#include "graph/rewrite.h"

#include "attn_step.wgsl.h"
#include "rope_append.wgsl.h"

#include <math.h>

enum { Q, K, COS, SIN, START }; /* of the rotation */
enum { DIM_MAX = 256 };

struct problem {
  const struct attention *a;
  bool whole; /* all keys in one chunk */
  bool pairs; /* neighbours turn together */
};

/* Heads of 64 and 128 have rows of their own: what is known when a shader is compiled need not be
 * divided by when it runs, and short shaders start sooner. On an H200 one chunk of up to 384 keys
 * of 64 elements is ahead, with a workgroup for each head; beyond that it is worth reading keys and
 * values once for four heads. */
#define DIMS(X)                                                                                    \
  X(d64_pairs, dim == 64 && x->pairs, 384)                                                         \
  X(d64, dim == 64 && !x->pairs, 384)                                                              \
  X(d128_pairs, dim == 128 && x->pairs, 192)                                                       \
  X(d128, dim == 128 && !x->pairs, 192)                                                            \
  X(to64, dim <= 64, 384)                                                                          \
  X(to128, dim <= 128, 192)                                                                        \
  X(to256, dim <= DIM_MAX, 128)                                                                    \
  X(memory, dim <= DIM_MAX, 128)
#define FITS(NAME, LIMIT)                                                                          \
  static bool NAME(const void *problem) {                                                          \
    const struct problem *x = problem;                                                             \
    const uint32_t dim = x->a->dim;                                                                \
    return LIMIT;                                                                                  \
  }
#define FITS_BOTH(WIDTH, LIMIT, MOST)                                                              \
  FITS(whole_##WIDTH, x->whole && (LIMIT) && x->a->keys <= MOST)                                   \
  FITS(split_##WIDTH, !x->whole && (LIMIT))
DIMS(FITS_BOTH)

/* tile: heads and most keys of a workgroup. */
#define F32 "use=quad_f32 use=elem_f32 "
#define F16 "use=quad_f16 use=elem_f16 "
#define WHOLE_PART "FINAL=true use=part_quad "
#define SPLIT_PART "use=part_f32 "
#define WIDE(NAME, SET, DTYPE, FITS, HEADS, LANES)                                                 \
  {NAME,                                                                                           \
   &attn_step_wgsl,                                                                                \
   SET "use=attn_chunk_wide use=attn_rows" #HEADS " LANES=" LANES,                                 \
   DTYPE,                                                                                          \
   NEEDS_SUBGROUPS | NEEDS_WIDE,                                                                   \
   FITS,                                                                                           \
   {HEADS, UINT32_MAX},                                                                            \
   256,                                                                                            \
   14592}
#define WIDE_ALL(WIDTH, LANES)                                                                     \
  WIDE("whole_f32_" #WIDTH, F32 WHOLE_PART, OF_F32, whole_##WIDTH, 1, LANES),                      \
      WIDE("whole_f16_" #WIDTH, F16 WHOLE_PART, OF_F16, whole_##WIDTH, 1, LANES),                  \
      WIDE("split_f32_" #WIDTH, F32 SPLIT_PART, OF_F32, split_##WIDTH, 4, LANES),                  \
      WIDE("split_f16_" #WIDTH, F16 SPLIT_PART, OF_F16, split_##WIDTH, 4, LANES)
#define MEMORY(NAME, SET, DTYPE, FITS)                                                             \
  {NAME, &attn_step_wgsl, SET "use=attn_chunk use=group_tree", DTYPE, 0, FITS, {4, 128}, 256, 16384}
static const struct kernel kernels[] = {
    WIDE_ALL(d64_pairs, "4u QUADS=16u PAIRS=1u"),
    WIDE_ALL(d64, "4u QUADS=16u PAIRS=0u"),
    WIDE_ALL(d128_pairs, "8u QUADS=32u PAIRS=1u"),
    WIDE_ALL(d128, "8u QUADS=32u PAIRS=0u"),
    WIDE_ALL(to64, "4u"),
    WIDE_ALL(to128, "8u"),
    WIDE_ALL(to256, "16u"),
    MEMORY("whole_f32_memory", F32 WHOLE_PART, OF_F32, whole_memory),
    MEMORY("whole_f16_memory", F16 WHOLE_PART, OF_F16, whole_memory),
    MEMORY("split_f32_memory", F32 SPLIT_PART, OF_F32, split_memory),
    MEMORY("split_f16_memory", F16 SPLIT_PART, OF_F16, split_memory),
    {0},
};

static bool in_pairs(const void *problem) { return ((const struct problem *)problem)->pairs; }
static const struct kernel append_kernels_many[] = {
    {"pairs_f32", &rope_append_wgsl, "PAIRS=true use=elem_f32 use=quad_f32", OF_F32,
     .fits = in_pairs},
    {"pairs_f16", &rope_append_wgsl, "PAIRS=true use=elem_f16 use=quad_f16", OF_F16,
     .fits = in_pairs},
    {"halves_f32", &rope_append_wgsl, "use=elem_f32 use=quad_f32", OF_F32},
    {"halves_f16", &rope_append_wgsl, "use=elem_f16 use=quad_f16", OF_F16},
    {0},
};

/* ---- emit ------------------------------------------------------------------------------------ */

struct step {
  struct attention a;
  const struct node *rope, *sdpa;
  int64_t start; /* tokens in the caches */
  bool pairs;
  uint32_t rotary, width, at; /* at: where the first token's row of the tables begins */
};

static bool is_pairs(const struct node *rope) { return rope->n_args == 5; }

/* false: not a shape for these kernels. */
static bool read_step(const struct plan *p, const struct node *n, struct step *s) {
  const uint32_t *orders = n->fused;
  *s = (struct step){.rope = part_at(n, orders[0]), .sdpa = part_at(n, orders[1])};
  if (!attention_cached(p, s->sdpa, &s->a, &s->start)) return false;
  const struct tensor *cos = tensor_at(p, s->rope->args[COS]),
                      *sin = tensor_at(p, s->rope->args[SIN]);
  const struct tensor *q = tensor_at(p, s->rope->args[Q]);
  if (!cos || !sin || !q || cos->rank == 0 || cos->dtype != q->dtype || sin->dtype != q->dtype)
    return false;
  const uint32_t width = cos->dim_live[cos->rank - 1];
  int64_t row = 0;
  s->pairs = is_pairs(s->rope);
  s->rotary = s->pairs ? s->a.dim : width;
  if (!s->pairs && !arg_is_int(p, s->rope, START, &row)) return false;
  const uint64_t rows = (uint64_t)row + s->a.seq;
  if (row < 0 || rows * width > tensor_numel(cos) || rows * width > tensor_numel(sin)) return false;
  s->at = (uint32_t)row * width;
  s->width = width;
  return s->a.seq && s->a.heads && s->a.heads_per_kv && s->a.bias == NO_VALUE && s->a.dim &&
         s->a.dim % 4 == 0 && s->a.dim <= DIM_MAX && s->a.keys == s->start + s->a.seq &&
         (s->pairs ? width == s->a.dim / 2 : s->rotary % 8 == 0) && s->rotary <= s->a.dim;
}

/* Keys of a workgroup where there are `sets` of them for each chunk. On an H200 it is best to have
 * one workgroup for each of its 132 processors, and two once that makes more than 448 keys. */
static uint32_t chunk_of(uint32_t keys, uint64_t sets, uint32_t most) {
  const uint32_t least = attention_chunk(keys);
  uint64_t chunk = div_up(div_up(keys * sets, 128), 64) * 64;
  if (chunk > 448) chunk = div_up(div_up(keys * sets, 256), 64) * 64;
  if (chunk < least) return least;
  return chunk < most ? (uint32_t)chunk : most;
}

static sconce_status emit_many(struct plan *p, const struct node *n, const struct step *s) {
  const struct problem problem = {&s->a, false, s->pairs};
  const struct kernel *row = row_for(p, n, append_kernels_many, s->a.dtype, &problem);
  if (!row) return emit_parts(p, n);
  const uint32_t dim = s->a.dim / 4, kv_heads = s->a.heads / s->a.heads_per_kv;
  const struct rope_append_params u = {.n_q = s->a.seq * s->a.heads * dim,
                                       .n_k = s->a.seq * kv_heads * dim,
                                       .heads_q = s->a.heads,
                                       .heads_k = kv_heads,
                                       .dim = dim,
                                       .rotary = s->rotary / 4,
                                       .width = s->width,
                                       .start = s->at / s->width,
                                       .to = (uint32_t)s->start * kv_heads * dim};
  const uint32_t *rope = s->rope->args;
  TRY(dispatch(p, row, &u, div_up((uint64_t)u.n_q + 2 * (uint64_t)u.n_k, 64),
               OPERANDS({rope[Q]}, {rope[K]}, {s->sdpa->args[2]}, {rope[COS]}, {rope[SIN]},
                        {s->a.q}, {s->a.k}, {s->a.v})));
  return attention_emit(p, s->sdpa, &s->a);
}

static sconce_status emit_step(struct plan *p, const struct node *n) {
  struct step s;
  if (!read_step(p, n, &s)) return emit_parts(p, n);
  /* A software device attends in a kernel without barriers where it can, which takes any number. */
  if (s.a.seq > 1 || (attention_is_serial(p, s.sdpa, &s.a) && !p->g->force))
    return emit_many(p, n, &s);
  struct problem problem = {&s.a, true, s.pairs};
  const struct kernel *row = row_for(p, n, kernels, s.a.dtype, &problem);
  problem.whole = row != NULL;
  if (!row) row = row_for(p, n, kernels, s.a.dtype, &problem);
  if (!row) return emit_parts(p, n);
  const uint64_t sets = div_up(s.a.heads_per_kv, row->tile[0]) * (s.a.heads / s.a.heads_per_kv);
  const uint32_t chunk = problem.whole ? s.a.keys : chunk_of(s.a.keys, sets, row->tile[1]);
  const uint32_t chunks = (uint32_t)div_up(s.a.keys, chunk);
  const struct tensor *scratch = tensor_at(p, s.sdpa->extra[0]);
  if (!problem.whole &&
      (!scratch || (uint64_t)s.a.heads * chunks * (s.a.dim + 4) > tensor_numel_max(scratch)))
    return emit_parts(p, n);
  struct attn_step_params u = {.heads = s.a.heads,
                               .heads_per_kv = s.a.heads_per_kv,
                               .dim = s.a.dim / 4,
                               .keys = s.a.keys,
                               .chunk = chunk,
                               .chunks = chunks,
                               .lanes = attention_lanes(s.a.dim),
                               .token = s.a.heads / s.a.heads_per_kv * s.a.dim / 4,
                               .pairs = s.pairs,
                               .rotary = s.rotary,
                               .at = s.at,
                               .scale = (float)s.a.scale,
                               .never = -INFINITY};
  const uint32_t *rope = s.rope->args;
  TRY(dispatch(p, row, &u, sets * chunks,
               OPERANDS({rope[Q]}, {rope[K]}, {s.sdpa->args[2]}, {rope[COS]}, {rope[SIN]}, {s.a.k},
                        {s.a.v}, {problem.whole ? s.a.out : s.sdpa->extra[0]})));
  return problem.whole ? SCONCE_OK : attention_merge(p, s.sdpa, &s.a, chunks);
}

const struct op ops_sdpa_fused[] = {
    {"sconce.attention_step", .emit = emit_step,
     .tables = TABLES(kernels, append_kernels_many, attention_kernels, attention_merges)},
    {0},
};

/* ---- pass ------------------------------------------------------------------------------------ */

/* Tables of rank 3 are for (batch, heads, seq, dim), or have rows for each head: see rope.c. */
static bool has_other_tables(const struct rewrite *r, const struct node *rope) {
  const uint32_t tables = rope->args[2];
  return tables == NO_VALUE || r->g->values[tables].kind != VK_TENSOR ||
         r->g->values[tables].tensor.rank != 2;
}

/* A rotation whose two results go into attention with an append, and nowhere else. */
static sconce_status rotary_at(struct rewrite *r, uint32_t i) {
  const struct node *sdpa = node_of(r, i, "sdpa_with_kv_cache.default");
  if (!sdpa) sdpa = node_of(r, i, "llama.sdpa_with_kv_cache.default");
  if (!sdpa) return SCONCE_OK;
  const uint32_t at = maker_of(r, sdpa->args[0]);
  const struct node *rope = node_of(r, at, "et_vk.apply_rotary_emb.default");
  if (!rope) rope = node_of(r, at, "et_vk.apply_rotary_emb_hf.default");
  if (!rope || has_other_tables(r, rope) || maker_of(r, sdpa->args[1]) != at ||
      maker_of(r, sdpa->args[2]) == at)
    return SCONCE_OK;
  const struct value *results = &r->g->values[out_id(rope)];
  if (results->list.n != 2 || viewed(r, sdpa->args[0]) != results->list.ids[0] ||
      viewed(r, sdpa->args[1]) != results->list.ids[1])
    return SCONCE_OK;
  struct fusion f = {.op = ops_sdpa_fused, .name = ops_sdpa_fused->name, .nodes = {at, i}, .n = 2};
  if (!shows_only(r, &f, out_id(sdpa))) return SCONCE_OK;
  uint32_t *orders = arena_new(&r->g->arena, uint32_t, 2);
  if (!orders) return fail(r->err, SCONCE_NO_MEMORY, "no memory for a fused node");
  orders[0] = rope->order;
  orders[1] = sdpa->order;
  f.fused = orders;
  return fuse(r, &f);
}

const struct pass passes_sdpa[] = {{"rotary", rotary_at}, {0}};
