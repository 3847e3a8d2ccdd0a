/* Group normalisation: each group of channels of each item, with its mean and its reciprocal
 * deviation. */
#include "ops/compound/expand.h"
#include "ops/moments/moments.h"
#include "ops/parts/parts.h"
#include "ops/planes/planes.h"

#include "group_norm.wgsl.h"
#include "group_norm_apply.wgsl.h"
#include "group_norm_part.wgsl.h"
#include "group_norm_quads.wgsl.h"

#include <inttypes.h>

/* ---- kernels --------------------------------------------------------------------------------- */

static bool quads(const void *problem) {
  const struct group_norm_params *u = problem;
  return u->inner % 4 == 0;
}
static bool wide(const void *problem) { /* two quads for each of 256 threads */
  const struct group_norm_params *u = problem;
  return u->inner % 4 == 0 && u->cols >= 2048;
}

#define QUADS(DTYPE) "use=elem_" #DTYPE " use=quad_" #DTYPE
/* tile[0]: rows of a workgroup. */
#define ROWS(DTYPE, OF, TILE)                                                                      \
  {"wide_" #DTYPE, &group_norm_quads_wgsl, "WG=256u " QUADS(DTYPE), OF,                            \
   .fits = wide,   .tile = {TILE},         .threads = 256,          .workgroup_bytes = 1024},      \
      {"quads_" #DTYPE, &group_norm_quads_wgsl, QUADS(DTYPE),          OF,                         \
       .fits = quads,   .tile = {TILE},         .workgroup_bytes = 256},                           \
  {                                                                                                \
    "words_" #DTYPE, &group_norm_wgsl, "use=elem_" #DTYPE, OF, .tile = {TILE},                     \
        .workgroup_bytes = 512, .reference = true                                                  \
  }
static const struct kernel kernels[] = {ROWS(f32, OF_F32, 1), ROWS(f16, OF_F16, 2), {0}};

#define LONG_ROWS(NAME, WGSL, SET, OF)                                                             \
  {NAME, &WGSL, SET, OF, .fits = wide, .threads = 256, .workgroup_bytes = 1024, .reference = true}
static const struct kernel part_kernels[] = {
    LONG_ROWS("f32", group_norm_part_wgsl, "use=quad_f32", OF_F32),
    LONG_ROWS("f16", group_norm_part_wgsl, "use=quad_f16", OF_F16),
    {0},
};
static const struct kernel apply_kernels[] = {
    LONG_ROWS("f32", group_norm_apply_wgsl, QUADS(f32), OF_F32),
    LONG_ROWS("f16", group_norm_apply_wgsl, QUADS(f16), OF_F16),
    {0},
};

/* A row of 16,384 elements keeps 256 threads busy for 16 quads; longer ones are split where rows
 * alone would not fill a large GPU. Every part reads the numbers of all parts of its row, so they
 * are few. */
enum { PART_COLS = 16384, PARTS_MAX = 64, ROWS_ENOUGH = 512 };

static uint32_t quad_parts(uint64_t rows, uint64_t cols) {
  if (rows >= ROWS_ENOUGH) return 1;
  uint64_t parts = cols / PART_COLS;
  return parts > PARTS_MAX ? PARTS_MAX : parts < 1 ? 1 : (uint32_t)parts;
}

/* ---- arguments ------------------------------------------------------------------------------- */

/* Portable operators name their three results before the list of them. */
enum { X, WEIGHT, BIAS, N, C, HXW, GROUP, EPS };

static uint32_t result(struct plan *p, const struct node *n, uint32_t k) {
  return arg_item(p, n, n->n_args - 1, k);
}

static sconce_status check_affine(struct plan *p, const struct node *n, uint32_t i,
                                  const struct tensor *x, uint32_t channels) {
  if (arg_is_null(p, n, i)) return SCONCE_OK;
  const struct tensor *t;
  TRY(arg_tensor(p, n, i, &t));
  char text[120];
  if (t->dtype != x->dtype || tensor_numel(t) != channels)
    return fail(p->err, SCONCE_BAD_GRAPH, "argument %u is %s for %u channels", i,
                tensor_text(t, text), channels);
  return SCONCE_OK;
}

/* The file's N and HxW may be live integers; x's live dims say the same. */
static sconce_status rows_of(struct plan *p, const struct node *n, const uint32_t *dims,
                             struct group_norm_params *u) {
  const struct tensor *x;
  TRY(arg_tensor(p, n, X, &x));
  int64_t groups;
  double eps;
  char text[120];
  TRY(arg_int(p, n, GROUP, &groups));
  TRY(arg_float(p, n, EPS, &eps));
  if (x->dtype != VK_FLOAT32 && x->dtype != VK_FLOAT16)
    return fail(p->err, SCONCE_UNSUPPORTED, "the norm of a %s tensor", vk_dtype_name(x->dtype));
  if (x->rank < 2 || groups < 1 || groups > dims[1] || dims[1] % groups)
    return fail(p->err, SCONCE_BAD_GRAPH, "%" PRId64 " groups of channels of %s", groups,
                tensor_text(x, text));
  TRY(check_affine(p, n, WEIGHT, x, dims[1]));
  TRY(check_affine(p, n, BIAS, x, dims[1]));
  uint64_t inner = 1, rows = (uint64_t)dims[0] * (uint64_t)groups;
  for (uint32_t i = 2; i < x->rank; i++) inner *= dims[i];
  const uint32_t depth = dims[1] / (uint32_t)groups;
  if (inner * depth * rows > UINT32_MAX)
    return fail(p->err, SCONCE_UNSUPPORTED, "a norm of %" PRIu64 " elements", inner * depth * rows);
  *u = (struct group_norm_params){.rows = (uint32_t)rows,
                                  .cols = (uint32_t)inner * depth,
                                  .inner = (uint32_t)inner,
                                  .groups = (uint32_t)groups,
                                  .depth = depth,
                                  .eps = (float)eps};
  u->affine = (arg_is_null(p, n, WEIGHT) ? 0 : 1u) | (arg_is_null(p, n, BIAS) ? 0 : 2u);
  u->parts = quad_parts(rows, u->cols);
  return SCONCE_OK;
}

static sconce_status shape(struct plan *p, const struct node *n) {
  const struct tensor *x;
  struct group_norm_params u = {0};
  TRY(arg_tensor(p, n, X, &x));
  if (arg_count(p, n, n->n_args - 1) != 3)
    return fail(p->err, SCONCE_BAD_GRAPH, "%u results, expected 3", arg_count(p, n, n->n_args - 1));
  TRY(rows_of(p, n, x->dim_live, &u));
  const uint32_t stats[] = {x->dim_live[0], u.groups};
  TRY(set_dims(p, result(p, n, 0), x->dim_live, x->rank));
  TRY(set_dims(p, result(p, n, 1), stats, 2));
  return set_dims(p, result(p, n, 2), stats, 2);
}

/* Parts of any live shape: a shorter row has fewer, fewer rows have no more each. */
static sconce_status prepare(struct plan *p, struct node *n) {
  const struct tensor *x;
  struct group_norm_params u = {0};
  TRY(arg_tensor(p, n, X, &x));
  TRY(rows_of(p, n, x->dim_max, &u));
  const uint64_t rows = u.rows < ROWS_ENOUGH ? u.rows : ROWS_ENOUGH;
  const uint64_t parts = quad_parts(1, u.cols);
  if (parts == 1 && u.cols <= PART_DENSE) return SCONCE_OK;
  TRY(graph_scratch(p->g, VK_FLOAT32, 2 * rows * parts, &n->extra[0], p->err));
  return moments_prepare(p, n, 1, u.rows, u.cols);
}

/* ---- emit ------------------------------------------------------------------------------------ */

/* What one or two dispatches read and write, in the order of group_norm_apply. */
struct operands {
  struct operand x, w, b, stats, y, mean, rstd;
};

static sconce_status emit_rows(struct plan *p, const struct node *n, enum vk_dtype dtype,
                               const struct group_norm_params *u, const struct operands *o) {
  const struct kernel *row, *part = NULL, *apply = NULL;
  if (u->parts > 1) part = row_for(p, n, part_kernels, dtype, u);
  if (part) apply = row_for(p, n, apply_kernels, dtype, u);
  if (apply) {
    const uint64_t workgroups = (uint64_t)u->rows * u->parts;
    TRY(dispatch(p, part, u, workgroups, OPERANDS(o->x, o->stats)));
    return dispatch(p, apply, u, workgroups,
                    OPERANDS(o->x, o->w, o->b, o->stats, o->y, o->mean, o->rstd));
  }
  TRY(choose(p, n, kernels, dtype, u, &row));
  return dispatch(p, row, u, div_up(u->rows, row->tile[0]),
                  OPERANDS(o->x, o->w, o->b, o->y, o->mean, o->rstd));
}

/* Rows of many workgroups that are no quads: as rows of a tensor (rows, cols). */
static sconce_status emit_long(struct plan *p, const struct node *n,
                               const struct group_norm_params *u) {
  const struct operand w = {arg_id(n, WEIGHT)}, b = {arg_id(n, BIAS)};
  TRY(moments_rows(p, n, arg_id(n, X), u->rows, u->cols, 1));
  return moments_norm(p, n, 1,
                      &(struct moments_norm){.x = arg_id(n, X),
                                             .y = result(p, n, 0),
                                             .mean = result(p, n, 1),
                                             .rstd = result(p, n, 2),
                                             .w = u->affine & 1 ? &w : NULL,
                                             .b = u->affine & 2 ? &b : NULL,
                                             .cols = u->cols,
                                             .groups = u->groups,
                                             .depth = u->depth,
                                             .inner = u->inner,
                                             .eps = u->eps});
}

/* Tensors larger than a binding are split by rows, which their moments are not: there one workgroup
 * does a row, up to what no device stops. */
static bool is_long(const struct plan *p, const struct group_norm_params *u,
                    const struct tensor *x) {
  const uint64_t bytes = tensor_numel_max(x) * vk_dtype_size(x->dtype);
  if (quads(u) || parts_of(u->rows, u->cols, PART_DENSE) == 1) return false;
  return bytes <= p->g->caps.max_storage_binding || u->cols > 16 * PART_DENSE;
}

static sconce_status emit(struct plan *p, const struct node *n) {
  const struct tensor *x;
  struct group_norm_params u = {0};
  TRY(arg_tensor(p, n, X, &x));
  TRY(rows_of(p, n, x->dim_live, &u));
  const uint32_t id = arg_id(n, X), y = result(p, n, 0), rows = u.rows, cols = u.cols;
  struct operands o = {
      .stats = {n->extra[0]}, .mean = {result(p, n, 1)}, .rstd = {result(p, n, 2)}};
  const uint64_t bytes = (uint64_t)cols * vk_dtype_size(x->dtype);
  if (is_long(p, &u, x)) return emit_long(p, n, &u);
  uint64_t part = planes_part(p, rows, &bytes, 1);
  if (part < rows) part -= part % 2; /* two rows of halves share a word of the means */
  if (part == 0) part = rows;
  for (uint64_t first = 0; first < rows; first += part) {
    u.first = (uint32_t)first;
    u.rows = (uint32_t)(rows - first < part ? rows - first : part);
    o.x = planes_operand(p, id, cols, first, u.rows);
    o.y = planes_operand(p, y, cols, first, u.rows);
    o.w = u.affine & 1 ? (struct operand){arg_id(n, WEIGHT), 0, 0} : o.x; /* stands in */
    o.b = u.affine & 2 ? (struct operand){arg_id(n, BIAS), 0, 0} : o.x;
    TRY(emit_rows(p, n, x->dtype, &u, &o));
  }
  return SCONCE_OK;
}

EXPAND_WIDE(in_floats, "aten.native_group_norm.default", VK_FLOAT32)
EXPAND_WIDE(in_floats_out, "aten::native_group_norm.out", VK_FLOAT32)

#define GROUP_NORM(NAME, N_ARGS, EXPAND)                                                           \
  {NAME,                                                                                           \
   shape,                                                                                          \
   emit,                                                                                           \
   prepare,                                                                                        \
   EXPAND,                                                                                         \
   expand_mixes_floats,                                                                            \
   .n_args = N_ARGS,                                                                               \
   .flags = OP_LIST,                                                                               \
   .tables = TABLES(kernels, part_kernels, apply_kernels, moments_kernels, moments_join_kernels,   \
                    moments_out_kernels, moments_norm_kernels)}

const struct op ops_group_norm[] = {
    GROUP_NORM("aten.native_group_norm.default", EPS + 2, in_floats),
    GROUP_NORM("aten::native_group_norm.out", EPS + 5, in_floats_out),
    {0},
};
