/* The choice of the next token from each of the last rows of logits, as sconce_sampler_choose does
 * it without a penalty. No file contains it: the run layer puts it behind a language model, so that
 * the token is where the next step reads it before the host has seen it.
 *
 * The best logit takes two dispatches. A draw adds one for each 8 bits of a search, top-k's and
 * then top-p's, and two that walk to the token. What is summed are integers: no order of threads
 * shows. */
#include "graph/op.h"

#include "base/random.h"
#include "sample_best.wgsl.h"
#include "sample_digit.wgsl.h"
#include "sample_draw.wgsl.h"
#include "sample_pick.wgsl.h"
#include "sample_sum.wgsl.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum {
  LOGITS,
  IDS,
  SEED_LOW,
  SEED_HIGH,
  POSITION,
  TOP_K,
  TEMPERATURE,
  TOP_P,
  MIN_P,
  ROWS,
  OUT,
  N_ARGS
};
enum { WG = 256, BLOCKS = WG, PASSES = 2 * 4 };              /* as in the shaders */
enum { FOLD_NOTHING, FOLD_COUNTS, FOLD_WEIGHTS, FOLD_KEEP }; /* sample_search.wgsl */
enum { STATE_WORDS = 6 * BLOCKS + 8 * (PASSES + 2), HIST_WORDS = PASSES * 256 * 2 };

/* ---- kernels --------------------------------------------------------------------------------- */

static bool in_quads(const void *first) { return *(const uint32_t *)first % 4 == 0; }

#define ROW(NAME, WGSL, SET, DTYPE, WORDS)                                                         \
  {NAME, &WGSL, SET, DTYPE, .threads = WG, .workgroup_bytes = 4 * (WORDS)}
#define TABLE(NAME, WGSL, SET, WORDS)                                                              \
  {ROW(NAME "_f32", WGSL, SET "use=elem_f32 use=logits_word", OF_F32, WORDS),                      \
   ROW(NAME "_f16", WGSL, SET "use=elem_f16 use=logits_word", OF_F16, WORDS),                      \
   {0}}
#define BEST(NAME, SET, DTYPE, FITS)                                                               \
  {NAME, &sample_best_wgsl, SET, DTYPE, 0, FITS, .threads = WG, .workgroup_bytes = 4 * WG}
/* A thread a block, where a tree of barriers would take longer than the logits. */
#define SERIAL(NAME, SET, DTYPE, FITS)                                                             \
  {NAME, &sample_best_wgsl, "WG=1u " SET,        DTYPE, NEEDS_SOFTWARE,                            \
   FITS, .threads = 1,      .workgroup_bytes = 4}

/* By where the logits start. */
static const struct kernel best_kernels[] = {
    SERIAL("serial_f32_quads", "use=quad_f32 use=logits_quad", OF_F32, in_quads),
    SERIAL("serial_f16_quads", "use=quad_f16 use=logits_quad", OF_F16, in_quads),
    SERIAL("serial_f32", "use=elem_f32 use=logits_word", OF_F32, NULL),
    SERIAL("serial_f16", "use=elem_f16 use=logits_word", OF_F16, NULL),
    BEST("best_f32_quads", "use=quad_f32 use=logits_quad", OF_F32, in_quads),
    BEST("best_f16_quads", "use=quad_f16 use=logits_quad", OF_F16, in_quads),
    BEST("best_f32", "use=elem_f32 use=logits_word", OF_F32, NULL),
    BEST("best_f16", "use=elem_f16 use=logits_word", OF_F16, NULL),
    {0},
};
/* The passes of a draw, which share their parameters. */
enum { SEARCH_WORDS = 5 * WG + 4 }; /* a maximum, a sum, what was found */
static const struct kernel counts_kernels[] =
    TABLE("counts", sample_digit_wgsl, "", SEARCH_WORDS + 8 * 256);
static const struct kernel weights_kernels[] =
    TABLE("weights", sample_digit_wgsl, "WEIGHTS=true ", SEARCH_WORDS + 8 * 256);
static const struct kernel sum_kernels[] = TABLE("sum", sample_sum_wgsl, "", SEARCH_WORDS);
static const struct kernel draw_kernels[] = TABLE("draw", sample_draw_wgsl, "", SEARCH_WORDS + 4);
static const struct kernel pick_kernels[] = {
    {"serial", &sample_pick_wgsl, "WG=1u", ANY_DTYPE, NEEDS_SOFTWARE, .threads = 1,
     .workgroup_bytes = 4},
    ROW("pick", sample_pick_wgsl, "", ANY_DTYPE, WG),
    {0},
};

/* ---- arguments ------------------------------------------------------------------------------- */

struct row {
  uint64_t at;            /* of its first logit in the tensor */
  uint32_t number;        /* of the token that it makes */
  uint32_t vocab, block;  /* logits; of one block */
  uint32_t part, n_parts; /* logits that are bound together, a multiple of block */
  enum vk_dtype dtype;
  bool whole; /* the tensor is bound from its start */
};

static sconce_status check_tensors(struct plan *p, const struct node *n, const uint32_t *dims,
                                   struct row *r) {
  const struct tensor *x, *ids;
  TRY(arg_tensor(p, n, LOGITS, &x));
  TRY(arg_tensor(p, n, IDS, &ids));
  const struct tensor *out;
  TRY(arg_tensor(p, n, OUT, &out));
  char a[120], b[120], c[120];
  if (!tensor_is_float(x) || x->rank == 0 || ids->dtype != VK_INT32 || out->dtype != VK_INT32 ||
      out->rank == 0 || tensor_numel_max(out) != out->dim_max[out->rank - 1])
    return fail(p->err, SCONCE_UNSUPPORTED, "a token of %s becomes %s, and the first of %s",
                tensor_text(x, a), tensor_text(out, b), tensor_text(ids, c));
  uint64_t numel = 1;
  for (uint32_t i = 0; i < x->rank; i++) numel *= dims[i];
  if (numel == 0 || tensor_numel(ids) == 0)
    return fail(p->err, SCONCE_BAD_ARGUMENT, "%s and %s: nothing to choose from, or no place",
                tensor_text(x, a), tensor_text(ids, b));
  uint32_t vocab = dims[x->rank - 1];
  if (vocab >= 1u << 24)
    return fail(p->err, SCONCE_UNSUPPORTED, "a vocabulary of %u, less than %u are sampled", vocab,
                1u << 24);
  *r = (struct row){.at = numel - vocab, .vocab = vocab, .dtype = x->dtype};
  r->block = 4 * WG * (uint32_t)div_up(vocab, 4 * WG * BLOCKS);
  /* a part starts inside an alignment unit, and the logits in front of it are bound with it */
  const struct caps *caps = &p->g->caps;
  const uint64_t size = vk_dtype_size(x->dtype);
  r->whole = buffer_size(tensor_nbytes_max(x)) <= caps->max_storage_binding;
  uint64_t fits = (caps->max_storage_binding - caps->storage_alignment) / size;
  if (r->whole) fits = (uint64_t)BLOCKS * r->block;
  if (fits < r->block)
    return fail(p->err, SCONCE_UNSUPPORTED, "%s in blocks of %u, more than a binding holds",
                tensor_text(x, a), r->block);
  r->part = (uint32_t)(fits / r->block < BLOCKS ? fits / r->block : BLOCKS) * r->block;
  r->n_parts = (uint32_t)div_up(vocab, r->part);
  return SCONCE_OK;
}

static sconce_status arg_u32(struct plan *p, const struct node *n, uint32_t i, uint32_t *out) {
  int64_t number;
  TRY(arg_int(p, n, i, &number));
  *out = (uint32_t)(uint64_t)number;
  return SCONCE_OK;
}

/* A float whose bits are the integer. */
static sconce_status arg_bits(struct plan *p, const struct node *n, uint32_t i, const char *name,
                              float most, float *out) {
  uint32_t bits;
  TRY(arg_u32(p, n, i, &bits));
  memcpy(out, &bits, sizeof bits);
  if (!(*out >= 0 && *out <= most))
    return fail(p->err, SCONCE_BAD_ARGUMENT, "%s %g is not in 0 to %g", name, (double)*out,
                (double)most);
  return SCONCE_OK;
}

/* The last dim of the result is the tokens: one, or as many rows as are wanted and there. */
static sconce_status shape(struct plan *p, const struct node *n) {
  const struct tensor *out, *x;
  int64_t wanted;
  TRY(arg_tensor(p, n, OUT, &out));
  TRY(arg_tensor(p, n, LOGITS, &x));
  TRY(arg_int(p, n, ROWS, &wanted));
  uint32_t dims[RANK_MAX], rows = 1;
  memcpy(dims, out->dim_max, sizeof dims);
  for (uint32_t i = 0; i + 1 < x->rank; i++) rows *= x->dim_live[i];
  if (wanted < 1 || rows < 1) wanted = 1;
  if (rows > wanted) rows = (uint32_t)wanted;
  if (out->rank && dims[out->rank - 1] > rows) dims[out->rank - 1] = rows ? rows : 1;
  return set_dims(p, out_id(n), dims, out->rank);
}

static sconce_status prepare(struct plan *p, struct node *n) {
  TRY(graph_scratch(p->g, VK_INT32, STATE_WORDS, &n->extra[0], p->err));
  return graph_scratch(p->g, VK_INT32, HIST_WORDS, &n->extra[1], p->err);
}

/* ---- emit ------------------------------------------------------------------------------------ */

/* Part i of the row: where it is bound, and what the shader must know of that. */
static struct operand part_of(const struct plan *p, const struct node *n, const struct row *r,
                              uint32_t i, uint32_t *first, uint32_t *n_logits) {
  uint64_t size = vk_dtype_size(r->dtype), at = r->at + (uint64_t)i * r->part;
  uint32_t left = r->vocab - i * r->part;
  *n_logits = left < r->part ? left : r->part;
  *first = (uint32_t)at;
  if (r->whole) return (struct operand){arg_id(n, LOGITS)};
  uint64_t offset = at * size / p->g->caps.storage_alignment * p->g->caps.storage_alignment;
  *first = (uint32_t)(at - offset / size);
  return (struct operand){arg_id(n, LOGITS), offset, ((uint64_t)*first + *n_logits) * size};
}

static uint32_t tokens_of(const struct plan *p, const struct node *n) {
  const struct tensor *out = out_tensor(p, n);
  return out->dim_live[out->rank - 1];
}

static sconce_status emit_best(struct plan *p, const struct node *n, const struct row *r,
                               uint32_t clear) {
  for (uint32_t i = 0; i < r->n_parts; i++) {
    struct sample_best_params u = {.id = i * r->part, .block = r->block, .clear = clear};
    struct operand x = part_of(p, n, r, i, &u.first, &u.n);
    u.block0 = u.id / r->block;
    const struct kernel *row;
    TRY(choose(p, n, best_kernels, r->dtype, &u.first, &row));
    TRY(dispatch(p, row, &u, div_up(u.n, r->block), OPERANDS(x, {n->extra[0]}, {n->extra[1]})));
  }
  return SCONCE_OK;
}

/* One pass over all parts. */
static sconce_status emit_pass(struct plan *p, const struct node *n, const struct row *r,
                               const struct kernel *table, struct sample_params *u) {
  const struct kernel *row;
  TRY(choose(p, n, table, r->dtype, NULL, &row));
  for (uint32_t i = 0; i < r->n_parts; i++) {
    struct operand x = part_of(p, n, r, i, &u->first, &u->n);
    u->id = i * r->part;
    u->block0 = u->id / r->block;
    TRY(dispatch(p, row, u, table == draw_kernels ? 1 : div_up(u->n, r->block),
                 OPERANDS(x, {n->extra[0]}, {n->extra[1]}, {arg_id(n, IDS)}, {out_id(n)})));
  }
  u->step++;
  u->fold = FOLD_KEEP;
  return SCONCE_OK;
}

/* Halves have 13 zeros behind their digits, so three passes see all of them. */
static sconce_status emit_search(struct plan *p, const struct node *n, const struct row *r,
                                 const struct kernel *table, uint32_t fold,
                                 struct sample_params *u) {
  for (uint32_t shift = 24 + 8; shift > u->low; shift -= 8) {
    u->shift = shift - 8;
    TRY(emit_pass(p, n, r, table, u));
    u->fold = fold;
    u->starts = shift == 32;
    u->ends = u->shift == u->low;
  }
  return SCONCE_OK;
}

/* As in sample_key.wgsl. */
static uint32_t key_of(float logit) {
  uint32_t bits;
  memcpy(&bits, &logit, sizeof bits);
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}

/* The largest logit whose quotient is finite. */
static float largest(float temperature) {
  if (temperature >= 1) return FLT_MAX;
  float x = FLT_MAX * temperature;
  while (!isfinite(x / temperature)) x = nextafterf(x, 0);
  while (isfinite(nextafterf(x, INFINITY) / temperature)) x = nextafterf(x, INFINITY);
  return x;
}

static sconce_status emit_draw(struct plan *p, const struct node *n, const struct row *r,
                               struct sample_params *u) {
  uint32_t low, high, position;
  float top_p;
  TRY(arg_u32(p, n, SEED_LOW, &low));
  TRY(arg_u32(p, n, SEED_HIGH, &high));
  TRY(arg_u32(p, n, POSITION, &position));
  position -= tokens_of(p, n) - 1 - r->number;
  u->row = r->number;
  TRY(arg_bits(p, n, TOP_P, "top_p", 1, &top_p));
  TRY(arg_bits(p, n, MIN_P, "min_p", 1, &u->min_p));
  const bool by_share = top_p > 0 && top_p < 1;
  u->block = r->block;
  u->blocks = (uint32_t)div_up(r->vocab, r->block);
  u->low = r->dtype == VK_FLOAT16 ? 8 : 0;
  u->top_p = by_share ? (uint32_t)((double)top_p * 4294967296.0) : 0;
  u->share = random_bits((uint64_t)high << 32 | low, position) >> 8 << 8;
  u->lowest = key_of(-largest(u->temperature));
  u->highest = key_of(largest(u->temperature));
  /* below this only equal logits weigh anything, and devices may know no smaller numbers */
  if (u->temperature < 1e-30f) u->temperature = 1e-30f;
  for (u->tie_bits = 7; r->vocab >> u->tie_bits;) u->tie_bits++;
  u->scale = (float)(1u << (31 - u->tie_bits));
  TRY(emit_best(p, n, r, HIST_WORDS));
  if (u->top_k && u->top_k < r->vocab) TRY(emit_search(p, n, r, counts_kernels, FOLD_COUNTS, u));
  if (by_share) TRY(emit_search(p, n, r, weights_kernels, FOLD_WEIGHTS, u));
  TRY(emit_pass(p, n, r, sum_kernels, u));
  return emit_pass(p, n, r, draw_kernels, u);
}

static sconce_status emit_row(struct plan *p, const struct node *n, const struct row *r) {
  struct sample_params u = {0};
  TRY(arg_u32(p, n, TOP_K, &u.top_k));
  TRY(arg_bits(p, n, TEMPERATURE, "temperature", 1e6f, &u.temperature));
  if (u.temperature > 0 && u.top_k != 1) return emit_draw(p, n, r, &u);
  TRY(emit_best(p, n, r, 0));
  const struct sample_pick_params pick = {.blocks = (uint32_t)div_up(r->vocab, r->block),
                                          .row = r->number};
  const struct kernel *row;
  TRY(choose(p, n, pick_kernels, r->dtype, NULL, &row));
  return dispatch(p, row, &pick, 1, OPERANDS({n->extra[0]}, {arg_id(n, IDS)}, {out_id(n)}));
}

/* Row after row, in the same scratch memory; the last one's token becomes the next ids. */
static sconce_status emit(struct plan *p, const struct node *n) {
  const struct tensor *x;
  TRY(arg_tensor(p, n, LOGITS, &x));
  int64_t top_k;
  TRY(arg_int(p, n, TOP_K, &top_k));
  if (top_k < 0) return SCONCE_OK; /* nothing is chosen */
  struct row r;
  TRY(check_tensors(p, n, x->dim_live, &r));
  const uint64_t last = r.at;
  uint32_t tokens = tokens_of(p, n);
  if (tokens > last / r.vocab + 1) tokens = (uint32_t)(last / r.vocab + 1); /* at load */
  for (uint32_t i = 0; i < tokens; i++) {
    r.number = i;
    r.at = last - (uint64_t)(tokens - 1 - i) * r.vocab;
    TRY(emit_row(p, n, &r));
  }
  return SCONCE_OK;
}

const struct op ops_sample[] = {
    {"sconce.sample.default", shape, emit, prepare, .n_args = N_ARGS, .writes = 1 << IDS,
     .flags = OP_OWN,
     .tables = TABLES(best_kernels, counts_kernels, weights_kernels, sum_kernels, draw_kernels,
                      pick_kernels)},
    {0},
};
