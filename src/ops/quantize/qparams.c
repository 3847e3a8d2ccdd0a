/* Choosing scales and zero points from the range of a tensor, of its rows or of its blocks.
 *
 * A block has its scale from the range of its elements; blocks that would keep one team of threads
 * busy for long are looked at in parts first. */
#include "ops/quantize/blocks.h"
#include "ops/strides/strides.h"

#include "qparams.wgsl.h"
#include "qparams_params.wgsl.h"
#include "qrange.wgsl.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* A part is what a workgroup of qrange takes. */
enum { PART = 8192, MANY_BLOCKS = 64 };

static const struct kernel param_rows[] = {
    {"f32", &qparams_wgsl, "use=elem_f32", OF_F32, .threads = 256, .workgroup_bytes = 2048},
    {"f16", &qparams_wgsl, "use=elem_f16", OF_F16, .threads = 256, .workgroup_bytes = 2048},
    {0},
};
static const struct kernel part_rows[] = {
    {"parts", &qparams_wgsl, "PARTS=true use=elem_f32", .threads = 256, .workgroup_bytes = 2048},
    {0},
};
static const struct kernel range_rows[] = {
    {"f32", &qrange_wgsl, "use=elem_f32", OF_F32, .threads = 256, .workgroup_bytes = 2048},
    {"f16", &qrange_wgsl, "use=elem_f16", OF_F16, .threads = 256, .workgroup_bytes = 2048},
    {0},
};

/* ---- arguments ------------------------------------------------------------------------------- */

/* As qparams.wgsl counts them. */
enum rule { ASYMMETRIC, SYMMETRIC, UNCLIPPED, ROW_SYMMETRIC, ROW_ASYMMETRIC };

/* Which arguments there are: [x, low, high, eps, dtype, …], [x, dtype, …],
 * [x, mapping, block, dtype, low?, high?, eps?, dtype, dtype, (keepdim,) …]. The last is the list
 * of results; older exporters have no keepdim, and whether dims are kept shows in the results. */
enum { WHOLE, WHOLE_SYMMETRIC, TOKEN, TOKEN_ASYMMETRIC, AFFINE };

struct choice {
  enum rule rule;
  double low, high, eps, zero;
  uint32_t rank;
  uint32_t block[RANK_MAX]; /* elements along each dim */
};

static sconce_status mapping_of(struct plan *p, const struct node *n, enum rule *rule) {
  static const char *const names[] = {"ASYMMETRIC", "SYMMETRIC", "SYMMETRIC_NO_CLIPPING_ERR"};
  static const char *const long_names[] = {"MappingType.ASYMMETRIC", "MappingType.SYMMETRIC",
                                           "MappingType.SYMMETRIC_NO_CLIPPING_ERR"};
  for (int i = 0; i < 3; i++)
    if (arg_is_text(p, n, 1, names[i]) || arg_is_text(p, n, 1, long_names[i])) {
      *rule = (enum rule)i;
      return SCONCE_OK;
    }
  return fail(p->err, SCONCE_UNSUPPORTED, "an unknown mapping, neither symmetric nor asymmetric");
}

static sconce_status affine(struct plan *p, const struct node *n, const struct tensor *x,
                            struct choice *c) {
  int64_t block[RANK_MAX];
  TRY(mapping_of(p, n, &c->rule));
  TRY(arg_ints(p, n, 2, block, RANK_MAX, &c->rank));
  if (c->rank != x->rank)
    return fail(p->err, SCONCE_BAD_GRAPH, "blocks of rank %u for a tensor of rank %u", c->rank,
                x->rank);
  for (uint32_t i = 0; i < c->rank; i++) {
    if (block[i] < 1 || block[i] > UINT32_MAX || x->dim_live[i] % block[i])
      return fail(p->err, SCONCE_BAD_GRAPH, "blocks of %" PRId64 " along dim %u of %u", block[i], i,
                  x->dim_live[i]);
    c->block[i] = (uint32_t)block[i];
  }
  TRY(arg_float_or(p, n, 4, -128, &c->low));
  TRY(arg_float_or(p, n, 5, 127, &c->high));
  const double least = is_half(x) ? 6.103515625e-05 : 1.17549435e-38; /* that are normal */
  TRY(arg_float_or(p, n, 6, least, &c->eps));
  c->zero = trunc((c->high + c->low + 1) / 2);
  return SCONCE_OK;
}

static void blocks_are_rows(const struct tensor *x, struct choice *c) {
  c->rank = x->rank;
  for (uint32_t i = 0; i < c->rank; i++) c->block[i] = i + 1 == c->rank ? x->dim_live[i] : 1;
}

static sconce_status choice_of(struct plan *p, const struct node *n, const struct tensor *x,
                               struct choice *c) {
  *c = (struct choice){.low = -128, .high = 127, .rank = x->rank};
  switch (n->op->code) {
  case AFFINE:
    TRY(affine(p, n, x, c));
    break;
  case TOKEN:
    c->rule = ROW_SYMMETRIC, c->eps = 1e-5;
    blocks_are_rows(x, c);
    break;
  case TOKEN_ASYMMETRIC:
    c->rule = ROW_ASYMMETRIC, c->eps = 1.1920928955078125e-07; /* float32's */
    blocks_are_rows(x, c);
    break;
  default:
    c->rule = n->op->code == WHOLE ? ASYMMETRIC : SYMMETRIC;
    memcpy(c->block, x->dim_live, sizeof c->block);
    TRY(arg_float(p, n, 1, &c->low));
    TRY(arg_float(p, n, 2, &c->high));
    TRY(arg_float(p, n, 3, &c->eps));
    c->zero = c->low < 0 ? 0 : 128; /* as PyTorch has it for uint8 */
  }
  if (c->low <= 0 && c->high > 0) return SCONCE_OK;
  return fail(p->err, SCONCE_UNSUPPORTED, "quantised values from %g to %g", c->low, c->high);
}

static sconce_status results(struct plan *p, const struct node *n, const struct tensor *out[2]) {
  const uint32_t list = n->n_args - 1, least = n->op->code == AFFINE ? 9 : n->op->n_args - 1;
  for (uint32_t i = 0; i < 2; i++) out[i] = tensor_at(p, arg_item(p, n, list, i));
  if (list < least) return fail(p->err, SCONCE_BAD_GRAPH, "%u arguments", n->n_args);
  if (arg_count(p, n, list) == 2 && out[0] && out[1]) return SCONCE_OK;
  return fail(p->err, SCONCE_BAD_GRAPH, "the result is no list of a scale and a zero point");
}

/* ---- shape ----------------------------------------------------------------------------------- */

/* One element a block: in the dims of x, or without those that one block fills; else in a row. */
static sconce_status set_result(struct plan *p, uint32_t id, const struct tensor *x,
                                const struct choice *c) {
  const uint32_t rank = tensor_at(p, id)->rank;
  uint32_t kept[RANK_MAX], left[RANK_MAX], n_left = 0, all = 1;
  for (uint32_t i = 0; i < c->rank; i++) {
    kept[i] = c->block[i] ? x->dim_live[i] / c->block[i] : 1;
    all *= kept[i];
    if (c->block[i] == 1 || kept[i] != 1) left[n_left++] = kept[i];
  }
  if (rank == c->rank) return set_dims(p, id, kept, rank);
  if (rank == n_left) return set_dims(p, id, left, rank);
  return set_dims(p, id, &all, 1);
}

static sconce_status shape(struct plan *p, const struct node *n) {
  const struct tensor *x, *out[2];
  struct choice c;
  TRY(arg_tensor(p, n, 0, &x));
  TRY(results(p, n, out));
  TRY(choice_of(p, n, x, &c));
  for (uint32_t i = 0; i < 2; i++) TRY(set_result(p, arg_item(p, n, n->n_args - 1, i), x, &c));
  return SCONCE_OK;
}

/* ---- emit ------------------------------------------------------------------------------------ */

static sconce_status copy_nest(struct plan *p, struct nest *nest, uint32_t *rank, uint32_t size[8],
                               uint32_t step[8]) {
  nest_merge(nest);
  *rank = nest->rank;
  if (nest->rank > 8) return fail(p->err, SCONCE_UNSUPPORTED, "blocks in %u loops", nest->rank);
  memcpy(size, nest->size, 8 * sizeof *size);
  memcpy(step, nest->stride[0], 8 * sizeof *step);
  return SCONCE_OK;
}

static sconce_status nests_of(struct plan *p, const struct tensor *x, const struct choice *c,
                              struct qparams_params *u) {
  struct nest outer = {.n_operands = 1}, inner = {.n_operands = 1};
  uint32_t strides[RANK_MAX];
  dense_strides(x->dim_live, x->rank, strides);
  u->m = u->k = 1;
  for (uint32_t i = 0; i < c->rank; i++) {
    const uint32_t number = c->block[i] ? x->dim_live[i] / c->block[i] : 1;
    nest_push(&outer, number, strides[i] * c->block[i], 0);
    nest_push(&inner, c->block[i], strides[i], 0);
    u->m *= number;
    u->k *= c->block[i];
  }
  TRY(copy_nest(p, &outer, &u->outer, u->outer_size, u->outer_step));
  return copy_nest(p, &inner, &u->inner, u->inner_size, u->inner_step);
}

/* Ranges of parts take 2 floats each, for as many blocks as there may be. */
static sconce_status prepare(struct plan *p, struct node *n) {
  const struct tensor *x, *out[2];
  TRY(arg_tensor(p, n, 0, &x));
  TRY(results(p, n, out));
  const uint64_t parts = tensor_numel_max(x) / PART + MANY_BLOCKS;
  if (tensor_numel_max(x) <= PART) return SCONCE_OK;
  return graph_scratch(p->g, VK_FLOAT32, 2 * parts, &n->extra[0], p->err);
}

static sconce_status emit(struct plan *p, const struct node *n) {
  const struct tensor *x, *out[2];
  struct choice c;
  TRY(arg_tensor(p, n, 0, &x));
  TRY(results(p, n, out));
  TRY(choice_of(p, n, x, &c));
  TRY(float_check(p, x, "x"));
  TRY(float_check(p, out[0], "the scale"));
  const double least = is_half(out[0]) ? 5.9604644775390625e-08 : 1.17549435e-38; /* not 0 */
  struct qparams_params u = {.rule = c.rule,
                             .half = is_half(out[0]),
                             .zeros = zero_storage(out[1]->dtype),
                             .low = (float)c.low,
                             .high = (float)c.high,
                             .eps = (float)(c.eps > least ? c.eps : least),
                             .zero = (float)c.zero};
  if (u.zeros == 0)
    return fail(p->err, SCONCE_UNSUPPORTED, "zero points of %s", vk_dtype_name(out[1]->dtype));
  TRY(nests_of(p, x, &c, &u));
  const uint32_t list = n->n_args - 1;
  const struct operand scale = {arg_item(p, n, list, 0)}, zero = {arg_item(p, n, list, 1)};
  struct operand from = {arg_id(n, 0)};
  const struct kernel *row;
  if (u.m < MANY_BLOCKS && u.k > PART) {
    u.parts = (uint32_t)div_up(u.k, PART);
    TRY(choose(p, n, range_rows, x->dtype, NULL, &row));
    TRY(dispatch(p, row, &u, (uint64_t)u.m * u.parts, OPERANDS(from, {n->extra[0]})));
    from.value = n->extra[0];
  }
  TRY(choose(p, n, u.parts ? part_rows : param_rows, x->dtype, NULL, &row));
  return dispatch(p, row, &u, div_up(u.m, 4), OPERANDS(from, scale, zero));
}

#define CHOOSE(NAME, PORTABLE, N_ARGS, FORM)                                                       \
  {NAME,                                                                                           \
   shape,                                                                                          \
   emit,                                                                                           \
   prepare,                                                                                        \
   .also = PORTABLE,                                                                               \
   .n_args = N_ARGS,                                                                               \
   .code = FORM,                                                                                   \
   .flags = OP_LIST,                                                                               \
   .tables = TABLES(param_rows, part_rows, range_rows)}

const struct op ops_qparams[] = {
    CHOOSE("quantized_decomposed.choose_qparams.tensor",
           "quantized_decomposed::choose_qparams.Tensor_out", 6, WHOLE),
    CHOOSE("quantized_decomposed.choose_qparams_symmetric.tensor", NULL, 6, WHOLE_SYMMETRIC),
    CHOOSE("quantized_decomposed.choose_qparams_per_token.default", NULL, 3, TOKEN),
    CHOOSE("quantized_decomposed.choose_qparams_per_token_asymmetric.default",
           "quantized_decomposed::choose_qparams_per_token_asymmetric.out", 3, TOKEN_ASYMMETRIC),
    CHOOSE("torchao.choose_qparams_affine.default", "torchao::choose_qparams_affine.out", 0,
           AFFINE),
    {0},
};
