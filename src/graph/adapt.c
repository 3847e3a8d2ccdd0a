/* See adapt.h. */
#include "graph/adapt.h"

#include "base/half.h"

#include <math.h>
#include <string.h>

static const struct value *value_of(const struct graph *g, uint32_t id) {
  return id == NO_VALUE ? NULL : &g->values[id];
}

static bool is_tensor(const struct graph *g, uint32_t id) {
  return id != NO_VALUE && g->values[id].kind == VK_TENSOR;
}

static bool is_number(const struct value *v) {
  return v && (v->kind == VK_INT || v->kind == VK_DOUBLE || v->kind == VK_BOOLEAN ||
               v->kind == VK_SYMINT);
}

/* ---- dtypes ---------------------------------------------------------------------------------- */

static bool is_float(enum vk_dtype dtype) { return dtype == VK_FLOAT32 || dtype == VK_FLOAT16; }

/* As PyTorch promotes two tensors; what would be 16 bits wide is 32 here. */
static enum vk_dtype promoted(enum vk_dtype a, enum vk_dtype b) {
  if (a == b) return a;
  if (is_float(a) && is_float(b)) return VK_FLOAT32;
  if (is_float(a) || b == VK_BOOL) return a;
  if (is_float(b) || a == VK_BOOL) return b;
  return VK_INT32;
}

/* A number takes part only with its kind: a fraction makes floats of integers, and nothing else. */
static enum vk_dtype with_number(enum vk_dtype tensor, const struct value *number) {
  if (is_float(tensor) || number->kind == VK_BOOLEAN) return tensor;
  if (number->kind == VK_DOUBLE) return VK_FLOAT32;
  return tensor == VK_BOOL ? VK_INT32 : tensor;
}

/* What two arguments are computed in. */
static enum vk_dtype common_dtype(const struct graph *g, const uint32_t *args) {
  const struct value *a = value_of(g, args[0]), *b = value_of(g, args[1]);
  if (is_tensor(g, args[0]) && is_tensor(g, args[1]))
    return promoted(a->tensor.dtype, b->tensor.dtype);
  if (is_tensor(g, args[0]))
    return is_number(b) ? with_number(a->tensor.dtype, b) : a->tensor.dtype;
  return is_number(a) ? with_number(b->tensor.dtype, a) : b->tensor.dtype;
}

/* Has the operator kernels for these elements? */
static bool has_kernels(const struct op *op, enum vk_dtype dtype) {
  for (const struct kernel *const *table = op->tables; *table; table++)
    for (const struct kernel *row = *table; row->name; row++)
      if (!row->dtypes || row->dtypes >> dtype & 1) return true;
  return false;
}

/* Kernels compute with these; bytes are widened, and booleans that have no kernels of their own:
 * their sum as integers is true where one of them is. */
static enum vk_dtype wide_enough(const struct op *op, enum vk_dtype dtype) {
  const bool narrow = dtype == VK_UINT8 || dtype == VK_INT8 || dtype == VK_BOOL;
  return narrow && !has_kernels(op, dtype) ? VK_INT32 : dtype;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static sconce_status add(struct graph *g, const char *name, const uint32_t *args, uint32_t n,
                         sconce_error *err) {
  return graph_add_node(g, text_of(name), g->n_nodes, args, n, err);
}

/* *id becomes the same tensor in another dtype. */
static sconce_status cast(struct graph *g, uint32_t *id, enum vk_dtype dtype, sconce_error *err) {
  const struct tensor from = g->values[*id].tensor;
  if (from.dtype == dtype) return SCONCE_OK;
  const uint32_t none = graph_add_value(g, VK_NULL, err);
  const uint32_t to = graph_add_tensor(g, dtype, from.rank, from.dim_max, err);
  if (none == NO_VALUE || to == NO_VALUE) return SCONCE_NO_MEMORY;
  const uint32_t args[] = {*id, none, none, to};
  *id = to;
  return add(g, "aten::_to_copy.out", args, 4, err);
}

/* A number that the file fixed is a constant; one that lives is written at each call. */
static sconce_status tensor_of(struct graph *g, uint32_t *id, enum vk_dtype dtype,
                               sconce_error *err) {
  const struct value number = g->values[*id];
  const uint32_t to = graph_add_tensor(g, dtype, 0, NULL, err);
  if (to == NO_VALUE) return SCONCE_NO_MEMORY;
  const uint32_t args[] = {*id, to};
  *id = to;
  if (number.kind == VK_SYMINT) return add(g, "aten::scalar_tensor.out", args, 2, err);
  const double d = number.kind == VK_DOUBLE    ? number.d
                   : number.kind == VK_BOOLEAN ? number.b
                                               : (double)number.i;
  uint32_t *bits = arena_new(&g->arena, uint32_t, 4); /* a unit of a buffer */
  if (!bits) return fail(err, SCONCE_NO_MEMORY, "no memory for a number");
  *bits = dtype == VK_FLOAT16 ? half_from_float((float)d) : number_bits(dtype, d);
  struct tensor *t = &g->values[to].tensor;
  t->constant = true;
  t->bytes = extent_of((struct span){(const uint8_t *)bits, vk_dtype_size(dtype)});
  return SCONCE_OK;
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* Does a node read what it gives? Kernels bind a buffer for writing once and for nothing else. */
static bool reads_result(const struct graph *g, const struct op *op, const uint32_t *args,
                         uint32_t n_args) {
  const uint32_t result = args[n_args - 1];
  if (!is_tensor(g, result) || op->flags & OP_SELF) return false;
  for (uint32_t i = args[0] == result && op_writes_self(g, op, result); i + 1 < n_args; i++) {
    if (i < 32 && op->writes >> i & 1) continue;
    if (args[i] == result) return true;
    const struct value *v = value_of(g, args[i]);
    for (uint32_t k = 0; v && v->kind == VK_VALUE_LIST && k < v->list.n; k++)
      if (v->list.ids[k] == result) return true;
  }
  return false;
}

static sconce_status adapt_operands(struct graph *g, const struct op *op, uint32_t args[2],
                                    enum vk_dtype dtype, sconce_error *err) {
  for (uint32_t i = 0; i < 2; i++) {
    if (is_tensor(g, args[i]) && op->flags & OP_PROMOTES) TRY(cast(g, &args[i], dtype, err));
    if (op->flags & OP_NUMBERS && is_number(value_of(g, args[i])))
      TRY(tensor_of(g, &args[i], dtype, err));
  }
  return SCONCE_OK;
}

/* *list becomes one whose tensors all have this dtype. */
static sconce_status adapt_items(struct graph *g, uint32_t *list, enum vk_dtype dtype,
                                 sconce_error *err) {
  const struct value *v = value_of(g, *list);
  bool alike = true;
  const uint32_t n = v && v->kind == VK_VALUE_LIST ? v->list.n : 0;
  for (uint32_t i = 0; i < n; i++)
    alike &= !is_tensor(g, v->list.ids[i]) || g->values[v->list.ids[i]].tensor.dtype == dtype;
  if (alike) return SCONCE_OK;
  uint32_t *ids = arena_new(&g->arena, uint32_t, n);
  if (!ids) return fail(err, SCONCE_NO_MEMORY, "no memory for a list of %u", n);
  memcpy(ids, v->list.ids, n * sizeof *ids);
  for (uint32_t i = 0; i < n; i++)
    if (is_tensor(g, ids[i])) TRY(cast(g, &ids[i], dtype, err));
  *list = graph_add_value(g, VK_VALUE_LIST, err);
  if (*list == NO_VALUE) return SCONCE_NO_MEMORY;
  g->values[*list].list.n = n;
  g->values[*list].list.ids = ids;
  return SCONCE_OK;
}

/* The dtype that the result has when the kernels have made it. */
static enum vk_dtype made_dtype(const struct graph *g, const struct op *op, const uint32_t *args,
                                uint32_t n_args, enum vk_dtype dtype) {
  if (op->flags & OP_COMPARES) return VK_BOOL;
  const struct value *mode = n_args > 3 ? value_of(g, args[2]) : NULL;
  const bool rounds = mode && mode->kind == VK_STRING;
  return op->flags & OP_DIVIDES && !rounds && !is_float(dtype) ? VK_FLOAT32 : dtype;
}

/* A comparison sees its argument as it is, unless the number beside it is a fraction. */
static enum vk_dtype followed_dtype(const struct graph *g, const struct op *op,
                                    const uint32_t *args, uint32_t n_args) {
  const enum vk_dtype of = g->values[args[0]].tensor.dtype;
  const struct value *number = n_args == 3 ? value_of(g, args[1]) : NULL;
  const bool fraction = number && number->kind == VK_DOUBLE && floor(number->d) != number->d;
  enum vk_dtype dtype = g->values[args[n_args - 1]].tensor.dtype;
  if (op->flags & OP_COMPARES) dtype = fraction && !is_float(of) ? VK_FLOAT32 : of;
  return has_kernels(op, dtype) ? dtype : VK_INT32;
}

sconce_status adapt(struct graph *g, const struct op *op, const uint32_t *args, uint32_t n_args,
                    struct adapted *out, sconce_error *err) {
  if (n_args > ADAPTED_MAX)
    return fail(err, SCONCE_UNSUPPORTED, "%u arguments, at most %d", n_args, ADAPTED_MAX);
  memcpy(out->args, args, n_args * sizeof *args);
  out->temporary = NO_VALUE;
  const uint32_t result = args[n_args - 1];
  bool beside = reads_result(g, op, args, n_args);
  if (!is_tensor(g, result)) return SCONCE_OK;
  enum vk_dtype made = g->values[result].tensor.dtype;
  if (op->flags & OP_JOINS) TRY(adapt_items(g, &out->args[0], made, err));
  if (op->flags & OP_WIDENS && is_tensor(g, args[0]))
    TRY(cast(g, &out->args[0], wide_enough(op, g->values[args[0]].tensor.dtype), err));
  const uint32_t first = op->flags & OP_CHOOSES ? 1 : 0;
  const uint32_t *two = args + first;
  if (op->flags & OP_PROMOTES && n_args > first + 2 &&
      (is_tensor(g, two[0]) || is_tensor(g, two[1]))) {
    const enum vk_dtype dtype = wide_enough(op, common_dtype(g, two));
    TRY(adapt_operands(g, op, out->args + first, dtype, err));
    const enum vk_dtype said = made;
    made = made_dtype(g, op, args, n_args, dtype);
    beside |= made != said;
  }
  if (op->flags & OP_FOLLOWS && is_tensor(g, args[0])) {
    const enum vk_dtype dtype = followed_dtype(g, op, args, n_args), said = made;
    TRY(cast(g, &out->args[0], dtype, err));
    made = op->flags & OP_COMPARES ? VK_BOOL : dtype;
    beside |= made != said;
  }
  if (!beside) return SCONCE_OK;
  const struct tensor t = g->values[result].tensor;
  out->temporary = graph_add_tensor(g, made, t.rank, t.dim_max, err);
  out->args[n_args - 1] = out->temporary;
  return out->temporary == NO_VALUE ? SCONCE_NO_MEMORY : SCONCE_OK;
}

sconce_status adapt_result(struct graph *g, const struct adapted *a, uint32_t result,
                           sconce_error *err) {
  if (a->temporary == NO_VALUE) return SCONCE_OK;
  const uint32_t over[] = {a->temporary, result};
  if (g->values[a->temporary].tensor.dtype == g->values[result].tensor.dtype)
    return add(g, "aten.alias_copy.default", over, 2, err);
  const uint32_t none = graph_add_value(g, VK_NULL, err);
  if (none == NO_VALUE) return SCONCE_NO_MEMORY;
  const uint32_t args[] = {a->temporary, none, none, result};
  return add(g, "aten::_to_copy.out", args, 4, err);
}
