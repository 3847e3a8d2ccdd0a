/* What operators ask and do: arguments, shapes, records. */
#include "graph/op.h"

#include "base/checked.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- arguments ------------------------------------------------------------------------------- */

uint32_t arg_id(const struct node *n, uint32_t i) { return i < n->n_args ? n->args[i] : NO_VALUE; }

static const struct value *value_at(const struct plan *p, uint32_t id) {
  return id < p->g->n_values ? &p->g->values[id] : NULL;
}

static const struct value *arg_value(const struct plan *p, const struct node *n, uint32_t i) {
  return value_at(p, arg_id(n, i));
}

bool arg_is_null(const struct plan *p, const struct node *n, uint32_t i) {
  const struct value *v = arg_value(p, n, i);
  return !v || v->kind == VK_NULL;
}

const struct tensor *tensor_at(const struct plan *p, uint32_t id) {
  const struct value *v = value_at(p, id);
  return v && v->kind == VK_TENSOR ? &v->tensor : NULL;
}

bool arg_is_tensor(const struct plan *p, const struct node *n, uint32_t i) {
  return tensor_at(p, arg_id(n, i)) != NULL;
}

sconce_status arg_tensor(struct plan *p, const struct node *n, uint32_t i,
                         const struct tensor **out) {
  *out = tensor_at(p, arg_id(n, i));
  if (*out) return SCONCE_OK;
  const struct value *v = arg_value(p, n, i);
  return fail(p->err, SCONCE_BAD_GRAPH, "argument %u is %s, expected a tensor", i,
              v ? vk_kind_name(v->kind) : "missing");
}

sconce_status arg_tensors(struct plan *p, const struct node *n, uint32_t first, uint32_t count,
                          const struct tensor **out) {
  for (uint32_t i = 0; i < count; i++) TRY(arg_tensor(p, n, first + i, &out[i]));
  return SCONCE_OK;
}

/* The engine saw to it when it added the node. */
const struct tensor *out_tensor(const struct plan *p, const struct node *n) {
  return &p->g->values[out_id(n)].tensor;
}

/* Any number as a double; the integer too if it is one. */
static bool number_of(const struct value *v, double *d, int64_t *i, bool *integral) {
  *integral = true;
  *i = 0;
  switch (v ? v->kind : VK_NULL) {
  case VK_INT:
    *i = v->i, *d = (double)v->i;
    return true;
  case VK_BOOLEAN:
    *i = v->b, *d = v->b;
    return true;
  case VK_SYMINT:
    if (v->number != NUMBER_DOUBLE) {
      *i = v->i, *d = (double)v->i;
      return true;
    } /* fall through */
  case VK_DOUBLE:
    *d = v->d;
    *integral = floor(v->d) == v->d && fabs(v->d) < 9.2e18;
    if (*integral) *i = (int64_t)v->d;
    return true;
  default:
    return false;
  }
}

static enum number_kind kind_of(const struct value *v) {
  return v->kind == VK_SYMINT    ? v->number
         : v->kind == VK_DOUBLE  ? NUMBER_DOUBLE
         : v->kind == VK_BOOLEAN ? NUMBER_BOOL
                                 : NUMBER_INT;
}

sconce_status arg_number(struct plan *p, const struct node *n, uint32_t i, struct number *out) {
  double d;
  TRY(arg_float(p, n, i, &d));
  const struct value *v = arg_value(p, n, i);
  *out = (struct number){.kind = kind_of(v), .i = v->kind == VK_BOOLEAN ? v->b : v->i};
  if (out->kind == NUMBER_DOUBLE) out->d = d;
  return SCONCE_OK;
}

bool arg_is_float(const struct plan *p, const struct node *n, uint32_t i, double *out) {
  int64_t integer;
  bool integral;
  return number_of(arg_value(p, n, i), out, &integer, &integral);
}

bool arg_is_int(const struct plan *p, const struct node *n, uint32_t i, int64_t *out) {
  double d;
  bool integral;
  return number_of(arg_value(p, n, i), &d, out, &integral) && integral;
}

sconce_status arg_float(struct plan *p, const struct node *n, uint32_t i, double *out) {
  if (arg_is_float(p, n, i, out)) return SCONCE_OK;
  const struct value *v = arg_value(p, n, i);
  return fail(p->err, SCONCE_BAD_GRAPH, "argument %u is %s, expected a number", i,
              v ? vk_kind_name(v->kind) : "missing");
}

static sconce_status int_of(struct plan *p, const struct value *v, uint32_t i, int64_t *out) {
  double d;
  bool integral;
  if (!number_of(v, &d, out, &integral))
    return fail(p->err, SCONCE_BAD_GRAPH, "argument %u is %s, expected an integer", i,
                v ? vk_kind_name(v->kind) : "missing");
  if (!integral)
    return fail(p->err, SCONCE_BAD_GRAPH, "argument %u is %g, expected an integer", i, d);
  return SCONCE_OK;
}

sconce_status arg_int(struct plan *p, const struct node *n, uint32_t i, int64_t *out) {
  return int_of(p, arg_value(p, n, i), i, out);
}

sconce_status arg_bool(struct plan *p, const struct node *n, uint32_t i, bool *out) {
  int64_t number;
  TRY(arg_int(p, n, i, &number));
  *out = number != 0;
  return SCONCE_OK;
}

sconce_status arg_int_or(struct plan *p, const struct node *n, uint32_t i, int64_t absent,
                         int64_t *out) {
  *out = absent;
  return arg_is_null(p, n, i) ? SCONCE_OK : arg_int(p, n, i, out);
}

sconce_status arg_float_or(struct plan *p, const struct node *n, uint32_t i, double absent,
                           double *out) {
  *out = absent;
  return arg_is_null(p, n, i) ? SCONCE_OK : arg_float(p, n, i, out);
}

sconce_status arg_ints(struct plan *p, const struct node *n, uint32_t i, int64_t *out, uint32_t cap,
                       uint32_t *count) {
  const struct value *v = arg_value(p, n, i);
  bool literal = v && v->kind == VK_INT_LIST;
  if (!literal && !(v && v->kind == VK_VALUE_LIST))
    return fail(p->err, SCONCE_BAD_GRAPH, "argument %u is %s, expected a list of integers", i,
                v ? vk_kind_name(v->kind) : "missing");
  if (v->list.n > cap)
    return fail(p->err, SCONCE_UNSUPPORTED, "argument %u has %u integers, at most %u", i, v->list.n,
                cap);
  *count = v->list.n;
  for (uint32_t k = 0; k < v->list.n; k++) {
    if (literal)
      out[k] = v->list.ints[k];
    else
      TRY(int_of(p, value_at(p, v->list.ids[k]), i, &out[k]));
  }
  return SCONCE_OK;
}

/* Item k of a list of numbers. */
static bool list_number(const struct plan *p, const struct value *v, uint32_t k, double *out) {
  int64_t integer;
  bool integral;
  switch (v->kind) {
  case VK_INT_LIST:
    *out = (double)v->list.ints[k];
    return true;
  case VK_DOUBLE_LIST:
    *out = v->list.doubles[k];
    return true;
  default:
    return number_of(value_at(p, v->list.ids[k]), out, &integer, &integral);
  }
}

sconce_status arg_floats(struct plan *p, const struct node *n, uint32_t i, double *out,
                         uint32_t cap, uint32_t *count) {
  const struct value *v = arg_value(p, n, i);
  if (!v || (v->kind != VK_INT_LIST && v->kind != VK_DOUBLE_LIST && v->kind != VK_VALUE_LIST))
    return fail(p->err, SCONCE_BAD_GRAPH, "argument %u is %s, expected a list of numbers", i,
                v ? vk_kind_name(v->kind) : "missing");
  if (v->list.n > cap)
    return fail(p->err, SCONCE_UNSUPPORTED, "argument %u has %u numbers, at most %u", i, v->list.n,
                cap);
  *count = v->list.n;
  for (uint32_t k = 0; k < v->list.n; k++)
    if (!list_number(p, v, k, &out[k]))
      return fail(p->err, SCONCE_BAD_GRAPH, "item %u of argument %u is no number", k, i);
  return SCONCE_OK;
}

sconce_status arg_dim(struct plan *p, const struct node *n, uint32_t i, uint32_t rank,
                      uint32_t *out) {
  int64_t dim;
  TRY(arg_int(p, n, i, &dim));
  int64_t from = dim < 0 ? dim + rank : dim;
  if (from < 0 || from >= rank)
    return fail(p->err, SCONCE_BAD_GRAPH, "dim %" PRId64 " of a tensor of rank %u", dim, rank);
  *out = (uint32_t)from;
  return SCONCE_OK;
}

bool arg_is_text(const struct plan *p, const struct node *n, uint32_t i, const char *text) {
  const struct value *v = arg_value(p, n, i);
  return v && v->kind == VK_STRING && text_is(v->text, text);
}

uint32_t arg_count(const struct plan *p, const struct node *n, uint32_t i) {
  const struct value *v = arg_value(p, n, i);
  return v && v->kind == VK_VALUE_LIST ? v->list.n : 0;
}

uint32_t arg_item(const struct plan *p, const struct node *n, uint32_t i, uint32_t k) {
  const struct value *v = arg_value(p, n, i);
  return v && v->kind == VK_VALUE_LIST && k < v->list.n ? v->list.ids[k] : NO_VALUE;
}

sconce_status want_elements(struct plan *p, const struct node *n) {
  p->g->wanted = arg_id(n, 0);
  return SCONCE_OK;
}

/* ---- shape ----------------------------------------------------------------------------------- */

sconce_status set_dims(struct plan *p, uint32_t id, const uint32_t *dims, uint32_t rank) {
  return graph_set_dims(p->g, id, dims, rank, p->err);
}

sconce_status set_symint(struct plan *p, uint32_t id, int64_t number) {
  return graph_set_symint(p->g, id, number, p->err);
}

sconce_status set_number(struct plan *p, uint32_t id, struct number number) {
  return graph_set_number(p->g, id, number, p->err);
}

sconce_status shape_same(struct plan *p, const struct node *n) {
  const struct tensor *x;
  TRY(arg_tensor(p, n, 0, &x));
  return set_dims(p, out_id(n), x->dim_live, x->rank);
}

/* ---- emit ------------------------------------------------------------------------------------ */

/* Workgroups in one dimension, folded where the device's limit is exceeded. */
static bool fold(uint64_t workgroups, uint32_t most, uint32_t grid[3]) {
  grid[0] = grid[1] = grid[2] = 1;
  if (workgroups <= most) {
    grid[0] = (uint32_t)workgroups;
    return true;
  }
  grid[1] = (uint32_t)(div_up(workgroups, most) <= most ? div_up(workgroups, most) : most);
  uint64_t left = div_up(workgroups, grid[1]);
  grid[0] = (uint32_t)(left <= most ? left : most);
  uint64_t plane = (uint64_t)grid[0] * grid[1];
  if (div_up(workgroups, plane) > most) return false;
  grid[2] = (uint32_t)div_up(workgroups, plane);
  return true;
}

static struct record *next_record(struct plan *p) {
  struct node *n = p->node;
  if (n->n_records == n->cap_records) {
    uint32_t cap = n->cap_records ? n->cap_records * 2 : 1;
    struct record *records = arena_new(&p->g->arena, struct record, cap);
    if (!records) return NULL;
    if (n->n_records) memcpy(records, n->records, n->n_records * sizeof *records);
    n->records = records;
    n->cap_records = cap;
  }
  return &n->records[n->n_records++];
}

sconce_status dispatch(struct plan *p, const struct kernel *row, const void *params,
                       uint64_t workgroups, const struct operand *operands) {
  if (workgroups == 0) return SCONCE_OK;
  const struct wgsl *wgsl = row->wgsl;
  uint32_t n = wgsl->n_bindings - (wgsl->params_size ? 1 : 0);
  uint32_t grid[3];
  if (!fold(workgroups, p->g->caps.max_workgroups, grid))
    return fail(p->err, SCONCE_UNSUPPORTED, "%" PRIu64 " workgroups", workgroups);
  struct record *r = next_record(p);
  if (!r) return fail(p->err, SCONCE_NO_MEMORY, "no memory for a dispatch");
  *r = (struct record){.row = row, .n_operands = n, .params_size = wgsl->params_size};
  memcpy(r->grid, grid, sizeof grid);
  if (wgsl->params_size) memcpy(r->params, params, wgsl->params_size);
  for (uint32_t i = 0; i < n; i++) {
    r->operands[i] = operands[i];
    const struct tensor *t = tensor_at(p, operands[i].value);
    if (!t) return fail(p->err, SCONCE_BAD_GRAPH, "binding %u of '%s' is no tensor", i, wgsl->name);
    uint64_t size = buffer_size(operands[i].size ? operands[i].size : tensor_nbytes_max(t));
    if (size > p->g->caps.max_storage_binding)
      return fail(p->err, SCONCE_UNSUPPORTED,
                  "binding %u of '%s' has %" PRIu64 " bytes, the device binds at most %" PRIu64, i,
                  wgsl->name, size, p->g->caps.max_storage_binding);
  }
  return SCONCE_OK;
}

sconce_status dispatch_fixed(struct plan *p, const struct kernel *row, const void *params,
                             uint64_t workgroups, const struct operand *operands) {
  TRY(kernel_fixed(p->g, row, params, &row, p->err));
  return dispatch(p, row, params, workgroups, operands);
}

uint32_t number_bits(enum vk_dtype dtype, double number) {
  if (dtype == VK_BOOL) return number != 0;
  if (dtype != VK_FLOAT32 && dtype != VK_FLOAT16) /* wraps; beyond 64 bits it is 0 */
    return fabs(number) < 9e18 ? (uint32_t)(int64_t)number : 0;
  const float single = (float)number;
  uint32_t bits;
  memcpy(&bits, &single, sizeof bits);
  return bits;
}

uint64_t rows_per_binding(const struct plan *p, uint64_t row_bytes, uint64_t rows) {
  const uint64_t most = p->g->caps.max_storage_binding;
  if (row_bytes * rows <= most) return rows;
  uint64_t step = 1; /* the least rows whose bytes are a multiple of the alignment */
  while (row_bytes * step % p->g->caps.storage_alignment) step *= 2;
  return most / (row_bytes * step) * step;
}
