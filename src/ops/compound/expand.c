/* See expand.h. */
#include "ops/compound/expand.h"

#include <math.h>
#include <string.h>

static const struct value *given(const struct expansion *x, uint32_t id) {
  return id == NO_VALUE ? NULL : &x->g->values[id];
}

sconce_status expand_given(const struct expansion *x, uint32_t i, const struct tensor **out) {
  const struct value *v = given(x, x->args[i]);
  *out = v && v->kind == VK_TENSOR ? &v->tensor : NULL;
  if (*out) return SCONCE_OK;
  return fail(x->err, SCONCE_BAD_GRAPH, "argument %u is no tensor", i);
}

uint32_t expand_some(const struct expansion *x, uint32_t i) {
  const struct value *v = given(x, x->args[i]);
  return v && v->kind != VK_NULL ? x->args[i] : NO_VALUE;
}

uint32_t expand_item(const struct expansion *x, uint32_t i, uint32_t k) {
  const struct value *v = given(x, x->args[i]);
  return v && v->kind == VK_VALUE_LIST && k < v->list.n ? v->list.ids[k] : NO_VALUE;
}

/* An exporter writes 1, 1.0 and true as the same value. */
static bool integer_of(const struct value *v, int64_t *out) {
  if (v && v->kind == VK_INT) *out = v->i;
  if (v && v->kind == VK_BOOLEAN) *out = v->b;
  const bool whole = v && v->kind == VK_DOUBLE && fabs(v->d) < 9e15 && floor(v->d) == v->d;
  if (whole) *out = (int64_t)v->d;
  return whole || (v && (v->kind == VK_INT || v->kind == VK_BOOLEAN));
}

sconce_status expand_int(const struct expansion *x, uint32_t i, int64_t *out) {
  if (integer_of(given(x, x->args[i]), out)) return SCONCE_OK;
  return fail(x->err, SCONCE_UNSUPPORTED, "argument %u is no integer that the file fixes", i);
}

sconce_status expand_ints(const struct expansion *x, uint32_t i, int64_t *out, uint32_t cap,
                          uint32_t *count) {
  const struct value *v = given(x, x->args[i]);
  const bool literal = v && v->kind == VK_INT_LIST;
  if ((!literal && !(v && v->kind == VK_VALUE_LIST)) || v->list.n > cap)
    return fail(x->err, SCONCE_BAD_GRAPH, "argument %u is no list of at most %u integers", i, cap);
  *count = v->list.n;
  for (uint32_t k = 0; k < v->list.n; k++) {
    if (literal)
      out[k] = v->list.ints[k];
    else if (!integer_of(given(x, v->list.ids[k]), &out[k]))
      return fail(x->err, SCONCE_UNSUPPORTED, "item %u of argument %u is no fixed integer", k, i);
  }
  return SCONCE_OK;
}

static sconce_status tensor_of(const struct expansion *x, enum vk_dtype dtype, uint32_t rank,
                               const uint32_t *dims, uint32_t *out) {
  *out = graph_add_tensor(x->g, dtype, rank, dims, x->err);
  return *out == NO_VALUE ? SCONCE_NO_MEMORY : SCONCE_OK;
}

sconce_status expand_tensor(const struct expansion *x, enum vk_dtype dtype,
                            const struct tensor *like, uint32_t *out) {
  const struct tensor t = *like; /* values may move */
  return tensor_of(x, dtype, t.rank, t.dim_max, out);
}

sconce_status expand_broadcast(const struct expansion *x, enum vk_dtype dtype, uint32_t a,
                               uint32_t b, uint32_t *out) {
  const struct value *of[] = {given(x, a), given(x, b)};
  uint32_t dims[RANK_MAX], rank = 0;
  for (int k = 0; k < 2; k++) {
    if (!of[k] || of[k]->kind != VK_TENSOR)
      return fail(x->err, SCONCE_BAD_GRAPH, "an operand is no tensor");
    if (of[k]->tensor.rank > rank) rank = of[k]->tensor.rank;
  }
  for (uint32_t i = 0; i < rank; i++) dims[i] = 1;
  for (int k = 0; k < 2; k++)
    for (uint32_t i = 0, skip = rank - of[k]->tensor.rank; i + skip < rank; i++)
      if (dims[i + skip] == 1) dims[i + skip] = of[k]->tensor.dim_max[i];
  return tensor_of(x, dtype, rank, dims, out);
}

sconce_status expand_flat(const struct expansion *x, enum vk_dtype dtype, uint32_t of,
                          uint32_t *out) {
  const struct value *v = given(x, of);
  const uint64_t all = v && v->kind == VK_TENSOR ? tensor_numel_max(&v->tensor) : 0;
  if (all > INT32_MAX)
    return fail(x->err, SCONCE_UNSUPPORTED, "more than %d elements to count", INT32_MAX);
  return tensor_of(x, dtype, 1, (const uint32_t[]){(uint32_t)all}, out);
}

sconce_status expand_number(const struct expansion *x, enum vk_kind kind, int64_t i,
                            uint32_t *out) {
  *out = graph_add_value(x->g, kind, x->err);
  if (*out == NO_VALUE) return SCONCE_NO_MEMORY;
  if (kind == VK_BOOLEAN) x->g->values[*out].b = i != 0;
  if (kind == VK_INT || kind == VK_SYMINT) x->g->values[*out].i = i;
  return SCONCE_OK;
}

sconce_status expand_list(const struct expansion *x, const uint32_t *ids, uint32_t n,
                          uint32_t *out) {
  uint32_t *copy = arena_new(&x->g->arena, uint32_t, n);
  *out = graph_add_value(x->g, VK_VALUE_LIST, x->err);
  if (!copy || *out == NO_VALUE) return fail(x->err, SCONCE_NO_MEMORY, "no memory for a list");
  if (n) memcpy(copy, ids, n * sizeof *copy);
  x->g->values[*out].list.n = n;
  x->g->values[*out].list.ids = copy;
  return SCONCE_OK;
}

/* ---- between casts ----------------------------------------------------------------------------
 */

/* Do kernels of `wide` elements take these after a cast? */
static bool widens(const struct expansion *x, uint32_t id, enum vk_dtype wide) {
  const struct value *v = given(x, id);
  if (!v || v->kind != VK_TENSOR) return false;
  if (wide == VK_FLOAT32) return v->tensor.dtype == VK_FLOAT16;
  return v->tensor.dtype == VK_BOOL || v->tensor.dtype == VK_UINT8 || v->tensor.dtype == VK_INT8;
}

static uint32_t result_of(const struct expansion *x, uint32_t k) {
  const uint32_t item = expand_item(x, x->n_args - 1, k);
  return item == NO_VALUE && k == 0 ? x->args[x->n_args - 1] : item;
}

bool expand_gives_bytes(const struct expansion *x) { return widens(x, result_of(x, 0), VK_INT32); }

bool expand_mixes_floats(const struct expansion *x) {
  bool single = false;
  for (uint32_t i = 1; i < x->n_args; i++) {
    const uint32_t id = i + 1 == x->n_args ? result_of(x, 0) : x->args[i];
    const struct value *v = given(x, id);
    const bool again = id == result_of(x, 1) || id == result_of(x, 2);
    single |= v && v->kind == VK_TENSOR && v->tensor.dtype == VK_FLOAT32 && !again;
  }
  return single && widens(x, x->args[0], VK_FLOAT32);
}

static sconce_status add_cast(const struct expansion *x, uint32_t from, uint32_t to) {
  uint32_t none;
  TRY(expand_number(x, VK_NULL, 0, &none));
  return ADD("aten::_to_copy.out", from, none, none, to);
}

sconce_status expand_wide(const struct expansion *x, const char *name, enum vk_dtype wide) {
  enum { ARGS_MAX = 16, RESULTS_MAX = 3 };
  uint32_t args[ARGS_MAX], made[RESULTS_MAX], n = 0;
  const uint32_t last = x->n_args - 1;
  if (x->n_args > ARGS_MAX) return fail(x->err, SCONCE_UNSUPPORTED, "%u arguments", x->n_args);
  for (; n < RESULTS_MAX && result_of(x, n) != NO_VALUE; n++) {
    made[n] = result_of(x, n);
    if (widens(x, made[n], wide))
      TRY(expand_tensor(x, wide, &x->g->values[made[n]].tensor, &made[n]));
  }
  for (uint32_t i = 0; i < last; i++) {
    uint32_t k = 0;
    while (k < n && x->args[i] != expand_item(x, last, k)) k++;
    args[i] = k < n ? made[k] : x->args[i]; /* a portable call names results twice */
    if (k < n || !widens(x, args[i], wide)) continue;
    TRY(expand_tensor(x, wide, &x->g->values[args[i]].tensor, &args[i]));
    TRY(add_cast(x, x->args[i], args[i]));
  }
  args[last] = made[0];
  if (expand_item(x, last, 0) != NO_VALUE) TRY(expand_list(x, made, n, &args[last]));
  TRY(graph_add_node(x->g, text_of(name), x->index, args, x->n_args, x->err));
  for (uint32_t k = 0; k < n; k++)
    if (made[k] != result_of(x, k)) TRY(add_cast(x, made[k], result_of(x, k)));
  return SCONCE_OK;
}
