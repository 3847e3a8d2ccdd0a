/* Cross entropy with its gradient: et_vk.fused_ce. */
#include "ops/planes/planes.h"

#include "ce_rows.wgsl.h"
#include "ce_sum.wgsl.h"

#include <inttypes.h>
#include <string.h>

/* tile[0]: rows of a workgroup. */
static const struct kernel row_kernels[] = {
    {"f32", &ce_rows_wgsl, "use=elem_f32", OF_F32, .tile = {1}, .threads = 256,
     .workgroup_bytes = 2048},
    {"f16", &ce_rows_wgsl, "use=elem_f16", OF_F16, .tile = {2}, .threads = 256,
     .workgroup_bytes = 2048},
    {0},
};
static const struct kernel sum_kernels[] = {
    {"f32", &ce_sum_wgsl, "use=elem_f32", OF_F32, .threads = 256, .workgroup_bytes = 1024},
    {"f16", &ce_sum_wgsl, "use=elem_f16", OF_F16, .threads = 256, .workgroup_bytes = 1024},
    {0},
};

/* [logits (rows, cols), labels (rows), n_valid, [loss, gradient]] */
enum { LOGITS, LABELS, N_VALID, OUT, ARGS };

/* Labels that the host knows must lie within a row. */
static sconce_status check_labels(struct plan *p, const struct tensor *labels, uint32_t cols) {
  for (uint64_t i = 0; labels->host && i < tensor_numel(labels); i++) {
    int32_t label;
    memcpy(&label, (const uint8_t *)labels->host + 4 * i, 4);
    if (label >= 0 && (uint32_t)label >= cols)
      return fail(p->err, SCONCE_BAD_ARGUMENT, "label %" PRId32 " of %u classes", label, cols);
  }
  return SCONCE_OK;
}

static sconce_status rows_and_cols(struct plan *p, const struct node *n, uint64_t *rows,
                                   uint32_t *cols) {
  const struct tensor *x, *labels;
  TRY(arg_tensor(p, n, LOGITS, &x));
  TRY(arg_tensor(p, n, LABELS, &labels));
  char one[120], two[120];
  *cols = x->rank ? x->dim_live[x->rank - 1] : 0;
  *rows = tensor_numel(labels);
  if (*cols == 0 || *rows * *cols != tensor_numel(x) || labels->dtype != VK_INT32)
    return fail(p->err, SCONCE_BAD_ARGUMENT, "logits are %s, labels %s", tensor_text(x, one),
                tensor_text(labels, two));
  return SCONCE_OK;
}

static sconce_status shape(struct plan *p, const struct node *n) {
  const struct tensor *x, *labels;
  uint64_t rows;
  uint32_t cols;
  TRY(rows_and_cols(p, n, &rows, &cols));
  TRY(arg_tensor(p, n, LOGITS, &x));
  TRY(arg_tensor(p, n, LABELS, &labels));
  TRY(check_labels(p, labels, cols));
  if (arg_count(p, n, OUT) != 2)
    return fail(p->err, SCONCE_BAD_GRAPH, "%u results, expected 2", arg_count(p, n, OUT));
  TRY(set_dims(p, arg_item(p, n, OUT, 0), x->dim_live, 0));
  return set_dims(p, arg_item(p, n, OUT, 1), x->dim_live, x->rank);
}

/* The loss of each row. */
static sconce_status prepare(struct plan *p, struct node *n) {
  const struct tensor *labels;
  TRY(arg_tensor(p, n, LABELS, &labels));
  return graph_scratch(p->g, VK_FLOAT32, tensor_numel_max(labels), &n->extra[0], p->err);
}

static sconce_status emit(struct plan *p, const struct node *n) {
  uint64_t rows;
  uint32_t cols;
  double n_valid;
  char text[120];
  TRY(rows_and_cols(p, n, &rows, &cols));
  TRY(arg_float(p, n, N_VALID, &n_valid));
  const struct tensor *x, *loss = tensor_at(p, arg_item(p, n, OUT, 0));
  const struct kernel *row, *sum;
  TRY(arg_tensor(p, n, LOGITS, &x));
  TRY(choose(p, n, row_kernels, x->dtype, NULL, &row));
  TRY(choose(p, n, sum_kernels, x->dtype, NULL, &sum));
  if (!loss || loss->dtype != x->dtype)
    return fail(p->err, SCONCE_BAD_GRAPH, "the loss of %s", tensor_text(x, text));
  struct ce_rows_params u = {.cols = cols, .scale = (float)(1 / n_valid)};
  const uint64_t bytes = (uint64_t)cols * vk_dtype_size(x->dtype);
  uint64_t part = planes_part(p, rows, &bytes, 1);
  if (part < rows) part -= part % 2; /* two rows of halves may share a word */
  if (part == 0) part = rows;
  for (uint64_t first = 0; first < rows; first += part) {
    u.first = (uint32_t)first;
    u.rows = (uint32_t)(rows - first < part ? rows - first : part);
    TRY(dispatch(p, row, &u, div_up(u.rows, row->tile[0]),
                 OPERANDS(planes_operand(p, arg_id(n, LOGITS), cols, first, u.rows),
                          {arg_id(n, LABELS)}, {n->extra[0]},
                          planes_operand(p, arg_item(p, n, OUT, 1), cols, first, u.rows))));
  }
  struct ce_sum_params s = {.n = (uint32_t)rows};
  return dispatch(p, sum, &s, 1, OPERANDS({n->extra[0]}, {arg_item(p, n, OUT, 0)}));
}

const struct op ops_train_loss[] = {
    {"et_vk.fused_ce.default", shape, emit, prepare, .n_args = ARGS, .flags = OP_LIST,
     .tables = TABLES(row_kernels, sum_kernels)},
    {0},
};
