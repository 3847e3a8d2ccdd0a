/* A method's instruction list as one graph: delegates' chains and portable calls become nodes.
 *
 * A program's value becomes a value of the graph when something first uses it. At a delegate's
 * border the program's value and the delegate's are one: int64 outside is int32 inside, and float32
 * may be float16 or the other way round, converted where data enters and leaves the method. Where
 * one reader of a value wants float32 and another float16 a cast stands in between. */
#include "run/model.h"

#include "base/checked.h"
#include "graph/flow.h"
#include "run/constants.h"
#include "run/lifted.h"
#include "run/missing.h"
#include "run/mutated.h"
#include "run/places.h"
#include "run/returned.h"

#include <inttypes.h>
#include <string.h>

struct program {
  sconce_model *model;
  const struct pte_method *m;
  struct graph *g;
  uint32_t *map;    /* program's value -> graph's, NO_VALUE until used */
  uint32_t *recast; /* the same in the other float dtype, NO_VALUE until somebody wants it */
  uint32_t *recast_in, *viewed_in; /* the blocks in which casts and silent views were added */
  bool *live;                      /* a scalar that some instruction gives */
  bool *input;                     /* that a caller gives */
  const void ***lists;             /* by delegate: see graph_add_delegate */
  uint32_t block; /* between labels and jumps: what one block added another may not have run */
  uint32_t tail;  /* of the chain at hand: from here on there are write-backs only */
  struct places places; /* what was written where in planned memory */
  struct constants *constants;
  sconce_error *err;
};

/* ---- values ---------------------------------------------------------------------------------- */

static bool dtype_inside(int scalar_type, enum vk_dtype *out) {
  switch (scalar_type) {
  case SCALAR_BYTE:
    *out = VK_UINT8;
    return true;
  case SCALAR_CHAR:
    *out = VK_INT8;
    return true;
  case SCALAR_INT:
  case SCALAR_LONG:
    *out = VK_INT32;
    return true;
  case SCALAR_HALF:
    *out = VK_FLOAT16;
    return true;
  case SCALAR_FLOAT:
  case SCALAR_DOUBLE:
    *out = VK_FLOAT32;
    return true;
  case SCALAR_BOOL:
    *out = VK_BOOL;
    return true;
  default:
    return false;
  }
}

/* As the graph has them: 64-bit elements are narrowed and other orders of dims put in rows by the
 * host, all else goes to the device as it is. */
static sconce_status constant_bytes(struct program *p, const struct pte_tensor *t,
                                    struct extent bytes, uint32_t value) {
  struct tensor *to = &p->g->values[value].tensor;
  to->constant = true;
  to->bytes = bytes;
  if (constant_fits(&t->shape)) return SCONCE_OK;
  return constant_want(p->g, p->constants, value, bytes, &t->shape, p->err);
}

/* The initial bytes that the file or a .ptd holds for a tensor. */
static bool initial_bytes(struct program *p, const struct pte_tensor *t, struct extent *out) {
  if (!t->external) return pte_tensor_bytes(&p->model->pte, t, out);
  struct ptd_entry entry;
  if (!ptd_find(&p->model->data, t->fqn, &entry)) return false;
  *out = entry.bytes;
  return true;
}

/* Memory beyond the first is where exporters put buffers that several methods change. */
static void mark_buffer(const struct pte_tensor *said, struct tensor *t) {
  if (said->memory_id < 2) return;
  t->written = true;
  t->place = (struct place){said->memory_id, said->memory_offset};
}

static sconce_status value_of(struct program *p, uint32_t index, uint32_t *out);

static sconce_status add_tensor(struct program *p, const struct pte_tensor *t, uint32_t *out) {
  enum vk_dtype dtype;
  if (!dtype_inside(t->shape.scalar_type, &dtype))
    return fail(p->err, SCONCE_UNSUPPORTED, "a tensor of type %s",
                scalar_name(t->shape.scalar_type));
  if (t->shape.rank > RANK_MAX)
    return fail(p->err, SCONCE_UNSUPPORTED, "a tensor of rank %u, at most %d", t->shape.rank,
                RANK_MAX);
  uint32_t dims[RANK_MAX];
  for (uint32_t i = 0; i < t->shape.rank; i++) dims[i] = (uint32_t)t->shape.sizes[i];
  *out = graph_add_tensor(p->g, dtype, t->shape.rank, dims, p->err);
  if (*out == NO_VALUE) return SCONCE_NO_MEMORY;
  struct extent bytes;
  if (!initial_bytes(p, t, &bytes)) return SCONCE_OK;
  if (t->planned) mark_buffer(t, &p->g->values[*out].tensor);
  return constant_bytes(p, t, bytes, *out);
}

/* A buffer that calls change and that begins with zeros has no bytes in the file: it is what a
 * call reads before anything gave it. */
static sconce_status add_buffer(struct program *p, uint32_t index) {
  static const uint8_t nothing[1];
  const struct pte_tensor said = pte_value(p->m, index).tensor;
  uint32_t id;
  TRY(value_of(p, index, &id));
  struct tensor *t = &p->g->values[id].tensor;
  t->constant = t->written = true;
  t->bytes = (struct extent){.data = nothing};
  mark_buffer(&said, t);
  return SCONCE_OK;
}

static bool is_float(enum vk_dtype dtype) { return dtype == VK_FLOAT32 || dtype == VK_FLOAT16; }

static uint32_t recast_of(const struct program *p, uint32_t index) {
  return p->recast_in[index] == p->block ? p->recast[index] : NO_VALUE;
}

/* The program's value, which is there in the other float dtype. */
static sconce_status recast(struct program *p, uint32_t index, enum vk_dtype dtype, uint32_t *out) {
  struct graph *g = p->g;
  const uint32_t from = p->map[index];
  *out = recast_of(p, index);
  if (*out != NO_VALUE) return SCONCE_OK;
  const struct tensor *t = &g->values[from].tensor;
  *out = graph_add_tensor(g, dtype, t->rank, t->dim_max, p->err);
  if (*out == NO_VALUE) return SCONCE_NO_MEMORY;
  p->recast[index] = *out;
  p->recast_in[index] = p->block;
  t = &g->values[from].tensor; /* the array may have moved */
  const struct pte_tensor said = pte_value(p->m, index).tensor;
  struct extent bytes;
  if (t->constant && dtype == VK_FLOAT16 && !said.planned && initial_bytes(p, &said, &bytes)) {
    /* once, on the host; what has a place in memory may yet change */
    g->values[*out].tensor.constant = true;
    return constant_want(g, p->constants, *out, bytes, &said.shape, p->err);
  }
  const uint32_t none = graph_add_value(g, VK_NULL, p->err);
  if (none == NO_VALUE) return SCONCE_NO_MEMORY;
  const uint32_t args[] = {from, none, none, *out};
  return graph_add_node(g, text_of("aten::_to_copy.out"), g->n_nodes, args, 4, p->err);
}

static sconce_status add_view(struct program *p, uint32_t index, uint32_t viewed) {
  const struct pte_tensor t = pte_value(p->m, index).tensor;
  uint32_t from;
  TRY(value_of(p, viewed, &from));
  uint32_t dims[RANK_MAX];
  int64_t *sizes = arena_new(&p->g->arena, int64_t, t.shape.rank);
  if (!sizes || t.shape.rank > RANK_MAX)
    return fail(p->err, SCONCE_UNSUPPORTED, "a view of rank %u", t.shape.rank);
  for (uint32_t i = 0; i < t.shape.rank; i++) dims[i] = (uint32_t)(sizes[i] = t.shape.sizes[i]);
  const uint32_t list = graph_add_value(p->g, VK_INT_LIST, p->err);
  const uint32_t to =
      graph_add_tensor(p->g, p->g->values[from].tensor.dtype, t.shape.rank, dims, p->err);
  if (list == NO_VALUE || to == NO_VALUE) return SCONCE_NO_MEMORY;
  p->g->values[list].list.n = t.shape.rank;
  p->g->values[list].list.ints = sizes;
  p->map[index] = to;
  p->viewed_in[index] = p->block;
  const uint32_t args[] = {from, list, to};
  return graph_add_node(p->g, text_of("aten::view_copy.out"), p->g->n_nodes, args, 3, p->err);
}

/* Before anybody reads a value that nothing wrote: it is an input, or has initial bytes, or is a
 * view, or a buffer that begins with zeros. */
static sconce_status find_viewed(struct program *p, uint32_t index) {
  if (p->viewed_in[index] && p->viewed_in[index] != p->block) p->map[index] = NO_VALUE;
  if (p->map[index] != NO_VALUE) return SCONCE_OK;
  const struct pte_value v = pte_value(p->m, index);
  struct extent bytes;
  if (v.kind != PTE_TENSOR || !v.tensor.planned || initial_bytes(p, &v.tensor, &bytes))
    return SCONCE_OK;
  const uint32_t viewed = places_viewed(&p->places, index);
  if (viewed != UINT32_MAX) return add_view(p, index, viewed);
  if (v.tensor.dynamism != PTE_STATIC || v.tensor.shape.numel == 0 || p->input[index])
    return SCONCE_OK;
  return add_buffer(p, index);
}

/* As a portable kernel reads it: in the program's own dtype. */
static sconce_status read_value(struct program *p, uint32_t index, uint32_t *out) {
  TRY(find_viewed(p, index));
  TRY(value_of(p, index, out));
  const struct value *v = &p->g->values[*out];
  struct pte_value said = pte_value(p->m, index);
  enum vk_dtype dtype;
  if (v->kind != VK_TENSOR || !is_float(v->tensor.dtype) || said.kind != PTE_TENSOR ||
      !dtype_inside(said.tensor.shape.scalar_type, &dtype) || dtype == v->tensor.dtype ||
      !is_float(dtype))
    return SCONCE_OK;
  return recast(p, index, dtype, out);
}

/* Items are values of their own, read again at each use: a ValueList. */
static sconce_status add_index_list(struct program *p, const struct pte_value *v, uint32_t *out) {
  uint32_t *ids = arena_new(&p->g->arena, uint32_t, v->items.n);
  if (!ids) return fail(p->err, SCONCE_NO_MEMORY, "no memory for a list");
  for (uint32_t i = 0; i < v->items.n; i++) {
    int64_t item = pte_list_item(v, i);
    ids[i] = NO_VALUE;
    if (item >= 0)
      TRY(read_value(p, (uint32_t)item, &ids[i])); /* of a scalar or tensor: no deeper */
  }
  *out = graph_add_value(p->g, VK_VALUE_LIST, p->err);
  if (*out == NO_VALUE) return SCONCE_NO_MEMORY;
  p->g->values[*out].list.n = v->items.n;
  p->g->values[*out].list.ids = ids;
  return SCONCE_OK;
}

static sconce_status add_literal_list(struct program *p, const struct pte_value *v, uint32_t *out) {
  bool doubles = v->kind == PTE_DOUBLE_LIST;
  void *items = arena_alloc(&p->g->arena, v->items.n, doubles ? sizeof(double) : sizeof(bool), 8);
  if (!items) return fail(p->err, SCONCE_NO_MEMORY, "no memory for a list");
  for (uint32_t i = 0; i < v->items.n; i++) {
    if (doubles)
      ((double *)items)[i] = fb_f64_at(v->items, i);
    else
      ((bool *)items)[i] = fb_bool_at(v->items, i);
  }
  *out = graph_add_value(p->g, doubles ? VK_DOUBLE_LIST : VK_BOOL_LIST, p->err);
  if (*out == NO_VALUE) return SCONCE_NO_MEMORY;
  p->g->values[*out].list.n = v->items.n;
  p->g->values[*out].list.doubles = items;
  return SCONCE_OK;
}

static sconce_status add_live(struct program *p, const struct pte_value *v, uint32_t *out) {
  *out = graph_add_value(p->g, VK_SYMINT, p->err);
  if (*out == NO_VALUE) return SCONCE_NO_MEMORY;
  struct value *to = &p->g->values[*out];
  to->number = v->kind == PTE_DOUBLE ? NUMBER_DOUBLE
               : v->kind == PTE_BOOL ? NUMBER_BOOL
                                     : NUMBER_INT;
  if (v->kind == PTE_DOUBLE)
    to->d = v->d;
  else
    to->i = v->kind == PTE_BOOL ? v->b : v->i;
  return SCONCE_OK;
}

static sconce_status add_scalar(struct program *p, const struct pte_value *v, uint32_t *out) {
  enum vk_kind kind = v->kind == PTE_INT      ? VK_INT
                      : v->kind == PTE_DOUBLE ? VK_DOUBLE
                      : v->kind == PTE_BOOL   ? VK_BOOLEAN
                      : v->kind == PTE_STRING ? VK_STRING
                                              : VK_NULL;
  *out = graph_add_value(p->g, kind, p->err);
  if (*out == NO_VALUE) return SCONCE_NO_MEMORY;
  struct value *to = &p->g->values[*out];
  if (kind == VK_INT) to->i = v->i;
  if (kind == VK_DOUBLE) to->d = v->d;
  if (kind == VK_BOOLEAN) to->b = v->b;
  if (kind == VK_STRING) to->text = v->text;
  return SCONCE_OK;
}

static sconce_status value_of(struct program *p, uint32_t index, uint32_t *out) {
  *out = p->map[index];
  if (*out != NO_VALUE) return SCONCE_OK;
  struct pte_value v = pte_value(p->m, index);
  sconce_status status;
  switch (v.kind) {
  case PTE_TENSOR:
    status = add_tensor(p, &v.tensor, out);
    break;
  case PTE_INT_LIST:
  case PTE_TENSOR_LIST:
  case PTE_OPTIONAL_TENSOR_LIST:
    status = add_index_list(p, &v, out);
    break;
  case PTE_DOUBLE_LIST:
  case PTE_BOOL_LIST:
    status = add_literal_list(p, &v, out);
    break;
  default:
    status = p->live[index] ? add_live(p, &v, out) : add_scalar(p, &v, out);
    break;
  }
  if (status != SCONCE_OK) {
    error_prefix(p->err, "value %u: ", index);
    return status;
  }
  p->map[index] = *out;
  return SCONCE_OK;
}

/* ---- delegates ------------------------------------------------------------------------------- */

/* The exporter takes the floats that an int8 product gives for int8: there the program knows. */
static bool is_product(const struct program *p, uint32_t index, const struct vk_value *inside) {
  const struct pte_value v = pte_value(p->m, index);
  enum vk_dtype dtype;
  return inside->kind == VK_TENSOR && inside->tensor.dtype == VK_INT8 && v.kind == PTE_TENSOR &&
         dtype_inside(v.tensor.shape.scalar_type, &dtype) && is_float(dtype);
}

/* Could the program's value stand for the delegate's? Same dims; dtypes as the border converts:
 * floats inside may be halves; what a 4-bit product of halves gives is float32 to the exporter. */
static bool matches(struct program *p, uint32_t index, const struct vk_value *inside) {
  struct pte_value v = pte_value(p->m, index);
  if (inside->kind == VK_SYMINT) return v.kind == PTE_INT;
  if (v.kind != PTE_TENSOR || inside->kind != VK_TENSOR) return false;
  if (v.tensor.shape.rank != inside->tensor.rank) return false;
  for (uint32_t i = 0; i < inside->tensor.rank; i++)
    if ((uint32_t)v.tensor.shape.sizes[i] != inside->tensor.dims[i]) return false;
  enum vk_dtype dtype;
  if (!dtype_inside(v.tensor.shape.scalar_type, &dtype)) return false;
  return dtype == inside->tensor.dtype || (is_float(dtype) && is_float(inside->tensor.dtype));
}

/* Gives the delegate's border value the graph's value of the program's; the first to come decides
 * the dtype inside. */
static sconce_status join(struct program *p, uint32_t index, const struct vkgraph *vk, uint32_t id,
                          bool input, uint32_t *map) {
  struct vk_value inside = vkgraph_value(vk, id);
  if (input) TRY(find_viewed(p, index));
  if (!input && is_product(p, index, &inside)) inside.tensor.dtype = VK_FLOAT32;
  if (p->map[index] == NO_VALUE && inside.kind == VK_TENSOR) {
    struct pte_value v = pte_value(p->m, index);
    struct extent bytes;
    bool has_bytes = v.kind == PTE_TENSOR && initial_bytes(p, &v.tensor, &bytes);
    if (!has_bytes && map[id] == NO_VALUE) {
      uint32_t added = graph_add_tensor(p->g, inside.tensor.dtype, inside.tensor.rank,
                                        inside.tensor.dims, p->err);
      if (added == NO_VALUE) return SCONCE_NO_MEMORY;
      p->map[index] = added;
    }
  }
  if (inside.kind == VK_SYMINT && p->map[index] == NO_VALUE && map[id] == NO_VALUE) {
    p->map[index] = graph_add_value(p->g, VK_SYMINT, p->err);
    if (p->map[index] == NO_VALUE) return SCONCE_NO_MEMORY;
    p->g->values[p->map[index]].i = pte_value(p->m, index).i;
  }
  if (map[id] != NO_VALUE && p->map[index] == NO_VALUE) { /* one delegate value, two of ours */
    p->map[index] = map[id];
    return SCONCE_OK;
  }
  uint32_t mine;
  TRY(value_of(p, index, &mine));
  if (map[id] != NO_VALUE && map[id] != mine && map[id] != recast_of(p, index))
    return fail(p->err, SCONCE_UNSUPPORTED,
                "an output of the delegate is one of its inputs under "
                "another name");
  const struct value *value = &p->g->values[mine];
  if (value->kind != inside.kind)
    return fail(p->err, SCONCE_BAD_GRAPH, "value %u is %s outside and %s inside a delegate", index,
                vk_kind_name(value->kind), vk_kind_name(inside.kind));
  if (inside.kind == VK_TENSOR && value->tensor.dtype != inside.tensor.dtype) {
    if (input && is_float(value->tensor.dtype) && is_float(inside.tensor.dtype))
      return recast(p, index, inside.tensor.dtype, &map[id]);
    return fail(p->err, SCONCE_UNSUPPORTED, "value %u is %s outside and %s inside a delegate",
                index, vk_dtype_name(value->tensor.dtype), vk_dtype_name(inside.tensor.dtype));
  }
  map[id] = mine;
  return SCONCE_OK;
}

/* The exporter leaves placeholders without a reader out of input_ids but not out of the call, so
 * inputs are matched in order, skipping what does not fit. *end: the argument behind the last. */
static sconce_status join_inputs(struct program *p, const struct pte_instruction *call, uint32_t n,
                                 const struct vkgraph *vk, uint32_t *map, uint32_t *end) {
  uint32_t at = 0;
  for (uint32_t i = 0; i < vk->n_inputs; i++) {
    uint32_t id = fb_u32_at(vk->inputs, i);
    struct vk_value inside = vkgraph_value(vk, id);
    uint32_t spare = n - at - (vk->n_inputs - i); /* how many may still be skipped */
    while (spare > 0 && !matches(p, (uint32_t)fb_i32_at(call->args, at), &inside)) at++, spare--;
    uint32_t index = (uint32_t)fb_i32_at(call->args, at++);
    if (!matches(p, index, &inside))
      return fail(p->err, SCONCE_BAD_GRAPH, "argument %u does not fit input %u of the delegate",
                  at - 1, i);
    TRY(join(p, index, vk, id, true, map));
  }
  *end = at;
  return SCONCE_OK;
}

/* Has the value something before this instruction, for certain? */
static bool is_given(struct program *p, uint32_t index) {
  const struct pte_value v = pte_value(p->m, index);
  struct extent bytes;
  if (p->map[index] != NO_VALUE || p->input[index] || p->live[index]) return true;
  return v.kind == PTE_TENSOR ? initial_bytes(p, &v.tensor, &bytes) : v.kind != PTE_INT;
}

/* The delegate's outputs from `first` on, and the call's arguments from `from` on. */
struct returns {
  const struct pte_instruction *call;
  const struct vkgraph *vk;
  uint32_t first, from;
  uint32_t *which; /* of each argument; with room for all of them */
};

static bool fits_output(struct program *p, const struct returns *b, uint32_t at, uint32_t output) {
  const uint32_t index = (uint32_t)fb_i32_at(b->call->args, at);
  struct vk_value inside = vkgraph_value(b->vk, fb_u32_at(b->vk->outputs, output));
  if (is_product(p, index, &inside)) inside.tensor.dtype = VK_FLOAT32;
  return matches(p, index, &inside);
}

static sconce_status no_fit(struct program *p, uint32_t at) {
  return fail(p->err, SCONCE_BAD_GRAPH, "argument %u fits no output of the delegate", at);
}

/* More arguments than outputs: some are outputs once more. */
static sconce_status find_repeated(struct program *p, const struct returns *b, bool *fits,
                                   uint8_t *ways) {
  const uint32_t n_outputs = b->vk->n_outputs - b->first;
  const struct returned r = {fits, b->call->args.n - b->from, n_outputs, ways};
  uint32_t at;
  for (uint32_t i = 0; i < r.n_args; i++)
    for (uint32_t k = 0; k <= i && k < n_outputs; k++)
      fits[(size_t)i * n_outputs + k] = fits_output(p, b, b->from + i, b->first + k);
  const enum returned_found found = returned_find(&r, b->which, &at);
  if (found == RETURNED_ONE) return SCONCE_OK;
  if (found == RETURNED_NONE) return no_fit(p, b->from + at);
  return fail(p->err, SCONCE_UNSUPPORTED,
              "argument %u is an output once more, and the file does not say which: leave out the "
              "clone that the model returns",
              b->from + at);
}

/* Can the arguments be the outputs? Then b->which is known. */
static sconce_status fit_outputs(struct program *p, const struct returns *b) {
  const uint32_t n_outputs = b->vk->n_outputs - b->first, n = b->call->args.n - b->from;
  if (n == n_outputs) {
    for (uint32_t i = 0; i < n; i++) {
      if (!fits_output(p, b, b->from + i, b->first + i)) return no_fit(p, b->from + i);
      b->which[i] = i;
    }
    return SCONCE_OK;
  }
  uint64_t n_ways = returned_ways(n, n_outputs), n_fits = (uint64_t)n * n_outputs, looks, more;
  if (!mul_u64(16, n_fits, &looks) || !mul_u64(n_ways, n_outputs, &more) ||
      !add_u64(looks, more, &looks) || !graph_look(p->g, looks))
    return fail(p->err, SCONCE_UNSUPPORTED, "%u arguments could be too many outputs", n);
  const struct arena_mark start = arena_mark(&p->g->arena);
  bool *fits = arena_new(&p->g->arena, bool, n_fits);
  uint8_t *ways = arena_new(&p->g->arena, uint8_t, n_ways);
  const sconce_status status =
      fits && ways ? find_repeated(p, b, fits, ways)
                   : fail(p->err, SCONCE_NO_MEMORY, "no memory for %u arguments", n);
  arena_rewind(&p->g->arena, start);
  return status;
}

/* Is it a view, by its place alone, of an argument in front, so that the place is in use? */
static bool views_argument(struct program *p, const struct returns *b, uint32_t at) {
  const uint32_t viewed = places_viewed(&p->places, (uint32_t)fb_i32_at(b->call->args, at));
  if (viewed == UINT32_MAX) return false;
  for (uint32_t i = 0; i < at && graph_look(p->g, 1); i++)
    if ((uint32_t)fb_i32_at(b->call->args, i) == viewed) return true;
  return false;
}

/* Finds where the call's outputs begin: at b->from, or behind `end`. The exporter names an output
 * that a method returns twice once in the delegate, but twice in the call, so the arguments in
 * front that nothing gives are outputs too. One of them may have the place of an older value and be
 * a view of it, or use that place again: the second is tried first, the first where it does not
 * fit. */
static sconce_status find_outputs(struct program *p, uint32_t end, struct returns *b) {
  const uint32_t most = b->from;
  sconce_error *const err = p->err;
  while (b->from > end && !is_given(p, (uint32_t)fb_i32_at(b->call->args, b->from - 1)) &&
         !views_argument(p, b, b->from - 1))
    b->from--;
  for (;; b->from++) {
    sconce_error tried = {0};
    p->err = &tried; /* what does not fit at first is no failure */
    const sconce_status status = fit_outputs(p, b);
    p->err = err;
    if (!status) return SCONCE_OK;
    const uint32_t index = (uint32_t)fb_i32_at(b->call->args, b->from);
    if (b->from == most || places_viewed(&p->places, index) == UINT32_MAX)
      return fail(err, status, "%s", tried.text);
  }
}

static sconce_status join_outputs(struct program *p, const struct returns *b, uint32_t *map) {
  for (uint32_t at = b->from; at < b->call->args.n; at++) {
    const uint32_t index = (uint32_t)fb_i32_at(b->call->args, at);
    const uint32_t output = b->first + b->which[at - b->from];
    p->recast[index] = NO_VALUE; /* of what it was before */
    TRY(join(p, index, b->vk, fb_u32_at(b->vk->outputs, output), false, map));
    places_wrote(&p->places, index);
  }
  return SCONCE_OK;
}

/* New contents of buffers come in front of the outputs that a call takes. */
static sconce_status write_buffers(struct program *p, const struct vkgraph *vk, uint32_t n,
                                   const uint32_t *map) {
  uint32_t *values = arena_new(&p->g->arena, uint32_t, n);
  if (!values) return fail(p->err, SCONCE_NO_MEMORY, "no memory for %u outputs", n);
  for (uint32_t i = 0; i < n; i++) values[i] = map[fb_u32_at(vk->outputs, i)];
  return mutated_write_back(p->g, values, n, p->err);
}

static sconce_status add_delegate(struct program *p, const struct pte_instruction *call) {
  struct pte_delegate d = pte_delegate(p->m, call->index);
  if (!text_is(d.id, "VulkanBackend"))
    return fail(p->err, SCONCE_UNSUPPORTED,
                "delegate %u is for '%.*s': export with the VulkanPartitioner or the "
                "WebGPUPartitioner",
                call->index, TEXT(d.id));
  struct vkgraph vk;
  TRY(model_graph(p->model, d.blob, &vk, p->err));
  if (call->args.n < vk.n_inputs)
    return fail(p->err, SCONCE_BAD_GRAPH, "%u arguments for %u inputs and %u outputs", call->args.n,
                vk.n_inputs, vk.n_outputs);
  const uint32_t room = call->args.n - vk.n_inputs;
  const uint32_t extra = vk.n_outputs > room ? vk.n_outputs - room : 0;
  uint32_t *map = arena_new(&p->g->arena, uint32_t, vk.n_values);
  const void ***lists = &p->lists[call->index];
  if (!*lists) *lists = arena_new(&p->g->arena, const void *, vk.n_values);
  if (!map || !*lists)
    return fail(p->err, SCONCE_NO_MEMORY, "no memory for %u values", vk.n_values);
  for (uint32_t i = 0; i < vk.n_values; i++) map[i] = NO_VALUE;
  const uint32_t outputs = call->args.n - (vk.n_outputs - extra);
  struct returns border = {call, &vk, extra, outputs, NULL};
  border.which = arena_new(&p->g->arena, uint32_t, call->args.n);
  if (!border.which)
    return fail(p->err, SCONCE_NO_MEMORY, "no memory for %u arguments", call->args.n);
  uint32_t end = 0;
  TRY(join_inputs(p, call, outputs, &vk, map, &end));
  TRY(find_outputs(p, end, &border));
  TRY(join_outputs(p, &border, map));
  TRY(graph_add_delegate(p->g, &vk, map, *lists, p->err));
  return write_buffers(p, &vk, extra, map);
}

/* ---- instructions ---------------------------------------------------------------------------- */

/* Results of a portable call that are a list stand among its arguments as well. They are no views,
 * whatever was at their place before. */
static sconce_status add_results(struct program *p, uint32_t list) {
  const struct pte_value v = pte_value(p->m, list);
  for (uint32_t i = 0; v.kind == PTE_TENSOR_LIST && i < v.items.n; i++) {
    const int64_t item = pte_list_item(&v, i);
    uint32_t id;
    if (item >= 0) TRY(value_of(p, (uint32_t)item, &id));
  }
  return SCONCE_OK;
}

static void wrote_results(struct program *p, uint32_t index) {
  const struct pte_value v = pte_value(p->m, index);
  places_wrote(&p->places, index);
  for (uint32_t i = 0; v.kind == PTE_TENSOR_LIST && i < v.items.n; i++)
    if (pte_list_item(&v, i) >= 0) places_wrote(&p->places, (uint32_t)pte_list_item(&v, i));
}

/* [buffer, made, non_blocking, buffer]: true if the call is not needed any more. What a caller gets
 * keeps its own memory. */
static bool write_through(struct program *p, const struct pte_instruction *call,
                          const uint32_t args[4]) {
  const uint32_t made = (uint32_t)fb_i32_at(call->args, 1);
  if (!graph_look(p->g, (uint64_t)p->m->outputs.n + p->m->n_values)) return false;
  for (uint32_t i = 0; i < p->m->outputs.n; i++)
    if (p->map[(uint32_t)fb_i32_at(p->m->outputs, i)] == args[1]) return false;
  if (args[0] != args[3] || p->map[made] != args[1] ||
      !lifted_write_through(p->g, args[0], args[1]))
    return false;
  for (uint32_t i = 0; i < p->m->n_values; i++)
    if (p->map[i] == args[1]) p->map[i] = args[0];
  return true;
}

/* A portable call repeats its output in a last slot for the return value. Only the rows that loops
 * gather stand in front. */
static sconce_status add_kernel(struct program *p, const struct pte_instruction *call,
                                uint32_t index) {
  enum { ARGS_MAX = 64 };
  uint32_t args[ARGS_MAX], n = call->args.n;
  if (n > ARGS_MAX) return fail(p->err, SCONCE_UNSUPPORTED, "%u arguments", n);
  if (n >= 2 && fb_i32_at(call->args, n - 1) == fb_i32_at(call->args, n - 2)) n--;
  if (n) TRY(add_results(p, (uint32_t)fb_i32_at(call->args, n - 1)));
  char name[PTE_OPERATOR_SIZE];
  pte_operator_text(p->m, call->index, name);
  const uint32_t given = strcmp(name, "executorch_prim::et_copy_index.tensor") == 0 ? 0 : n - 1;
  for (uint32_t i = 0; i < n; i++) {
    const uint32_t value = (uint32_t)fb_i32_at(call->args, i);
    TRY(i != given ? read_value(p, value, &args[i]) : value_of(p, value, &args[i]));
  }
  const bool lifted = index >= p->tail && n == 4 && write_through(p, call, args);
  sconce_status status =
      lifted ? SCONCE_OK : graph_add_node(p->g, text_of(name), index, args, n, p->err);
  if (status != SCONCE_OK) error_prefix(p->err, "%s: ", name);
  for (uint32_t i = 0; i < n; i++) /* any of them may have been written */
    p->recast[(uint32_t)fb_i32_at(call->args, i)] = NO_VALUE;
  if (n) wrote_results(p, (uint32_t)fb_i32_at(call->args, n - 1));
  return status;
}

/* Where branches end a result gets the contents of one or the other. */
static sconce_status add_move(struct program *p, const struct pte_instruction *in) {
  uint32_t args[2];
  TRY(read_value(p, in->value, &args[0]));
  if (p->viewed_in[in->to]) p->map[in->to] = NO_VALUE, p->viewed_in[in->to] = 0;
  TRY(value_of(p, in->to, &args[1]));
  p->recast[in->to] = NO_VALUE;
  places_wrote(&p->places, in->to);
  if (p->g->values[args[1]].kind == VK_TENSOR)
    return graph_add_node(p->g, text_of("aten.alias_copy.default"), p->g->n_nodes, args, 2, p->err);
  if (p->g->values[args[1]].kind != VK_SYMINT)
    return fail(p->err, SCONCE_UNSUPPORTED, "value %u of kind %s is moved", in->to,
                vk_kind_name(p->g->values[args[1]].kind));
  return graph_add_own(p->g, &flow_move, args, 2, p->err);
}

static sconce_status add_jump(struct program *p, const struct pte_instruction *in, uint32_t label) {
  uint32_t args[2] = {NO_VALUE, label};
  TRY(read_value(p, in->value, &args[0]));
  p->block++;
  return graph_add_own(p->g, &flow_jump, args, 2, p->err);
}

/* labels: by instruction of the chain. */
static sconce_status add_instruction(struct program *p, const struct pte_instruction *in,
                                     uint32_t index, const uint32_t *labels) {
  switch (in->kind) {
  case PTE_DELEGATE_CALL:
    return add_delegate(p, in);
  case PTE_KERNEL_CALL:
    return add_kernel(p, in, index);
  case PTE_MOVE_CALL:
    return add_move(p, in);
  case PTE_FREE_CALL:
    return SCONCE_OK;
  default:
    return add_jump(p, in, labels[in->destination]);
  }
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static sconce_status find_labels(struct program *p, uint32_t chain, uint32_t **out) {
  const uint32_t n = pte_n_instructions(p->m, chain);
  uint32_t *labels = arena_new(&p->g->arena, uint32_t, (size_t)n + 1);
  if (!labels) return fail(p->err, SCONCE_NO_MEMORY, "no memory for %u instructions", n);
  for (uint32_t i = 0; i <= n; i++) labels[i] = NO_VALUE;
  for (uint32_t i = 0; i < n; i++) {
    const struct pte_instruction in = pte_instruction(p->m, chain, i);
    if (in.kind != PTE_JUMP_FALSE_CALL || labels[in.destination] != NO_VALUE) continue;
    labels[in.destination] = flow_add_label(p->g, p->err);
    if (labels[in.destination] == NO_VALUE) return SCONCE_NO_MEMORY;
  }
  *out = labels;
  return SCONCE_OK;
}

static sconce_status add_label(struct program *p, uint32_t label) {
  if (label == NO_VALUE) return SCONCE_OK;
  p->block++;
  return graph_add_own(p->g, &flow_label, &label, 1, p->err);
}

static bool is_write_back(const struct program *p, const struct pte_instruction *in) {
  char name[PTE_OPERATOR_SIZE];
  if (in->kind != PTE_KERNEL_CALL) return false;
  pte_operator_text(p->m, in->index, name);
  return strcmp(name, "aten::copy_") == 0;
}

static uint32_t find_tail(const struct program *p, uint32_t chain) {
  uint32_t tail = pte_n_instructions(p->m, chain);
  while (tail > 0) {
    const struct pte_instruction in = pte_instruction(p->m, chain, tail - 1);
    if (!is_write_back(p, &in)) break;
    tail--;
  }
  return chain + 1 == p->m->n_chains ? tail : UINT32_MAX;
}

static sconce_status add_chain(struct program *p, uint32_t chain) {
  const uint32_t n = pte_n_instructions(p->m, chain);
  uint32_t *labels = NULL;
  p->tail = find_tail(p, chain);
  TRY(find_labels(p, chain, &labels));
  for (uint32_t i = 0; i < n; i++) {
    struct pte_instruction in = pte_instruction(p->m, chain, i);
    TRY(add_label(p, labels[i]));
    TRY(graph_check_time(p->g, p->err));
    sconce_status status = add_instruction(p, &in, i, labels);
    if (status == SCONCE_OK) continue;
    error_prefix(p->err, "instruction %u: ", i);
    return status;
  }
  return add_label(p, labels[n]);
}

/* A portable call gives its last argument, and a move the value that it names. */
static void find_live(struct program *p, uint32_t chain) {
  for (uint32_t i = 0; i < pte_n_instructions(p->m, chain); i++) {
    const struct pte_instruction in = pte_instruction(p->m, chain, i);
    if (in.kind == PTE_MOVE_CALL) p->live[in.to] = true;
    if (in.kind == PTE_KERNEL_CALL && in.args.n)
      p->live[(uint32_t)fb_i32_at(in.args, in.args.n - 1)] = true;
  }
}

static sconce_status add_code(struct program *p) {
  for (uint32_t chain = 0; chain < p->m->n_chains; chain++) find_live(p, chain);
  for (uint32_t chain = 0; chain < p->m->n_chains; chain++) TRY(add_chain(p, chain));
  return SCONCE_OK;
}

/* Inputs that a delegate was the first to use have its dtype; the others get the program's. */
static sconce_status set_border(struct program *p, struct fb_vec indices, bool input,
                                uint32_t **out) {
  *out = arena_new(&p->g->arena, uint32_t, indices.n);
  if (!*out) return fail(p->err, SCONCE_NO_MEMORY, "no memory for %u values", indices.n);
  for (uint32_t i = 0; i < indices.n; i++) {
    uint32_t id;
    if (!input) TRY(find_viewed(p, (uint32_t)fb_i32_at(indices, i)));
    TRY(value_of(p, (uint32_t)fb_i32_at(indices, i), &id));
    (*out)[i] = id;
    if (p->g->values[id].kind != VK_TENSOR) continue;
    if (input && p->g->values[id].tensor.input)
      return fail(p->err, SCONCE_UNSUPPORTED, "input %u is an earlier input again", i);
    struct tensor *t = &p->g->values[id].tensor;
    if (input) {
      t->input = true;
      t->written |= t->defined;
    } else
      t->output = true;
  }
  return SCONCE_OK;
}

/* What callers and the file give. */
static sconce_status begin_places(struct program *p) {
  struct extent bytes;
  if (!places_init(&p->places, p->m, &p->g->arena))
    return fail(p->err, SCONCE_NO_MEMORY, "no memory for %u values", p->m->n_values);
  for (uint32_t i = 0; i < p->m->n_values; i++) {
    const struct pte_value v = pte_value(p->m, i);
    if (v.kind == PTE_TENSOR && v.tensor.planned && initial_bytes(p, &v.tensor, &bytes))
      places_wrote(&p->places, i);
  }
  for (uint32_t i = 0; i < p->m->inputs.n; i++) {
    p->input[(uint32_t)fb_i32_at(p->m->inputs, i)] = true;
    places_wrote(&p->places, (uint32_t)fb_i32_at(p->m->inputs, i));
  }
  return SCONCE_OK;
}

sconce_status program_build(struct graph *g, sconce_model *model, const struct pte_method *method,
                            struct draw *draw, struct constants *constants, sconce_error *err) {
  struct program p = {
      .model = model, .m = method, .g = g, .block = 1, .constants = constants, .err = err};
  p.map = arena_new(&g->arena, uint32_t, method->n_values);
  p.recast = arena_new(&g->arena, uint32_t, method->n_values);
  p.recast_in = arena_new(&g->arena, uint32_t, method->n_values);
  p.viewed_in = arena_new(&g->arena, uint32_t, method->n_values);
  p.live = arena_new(&g->arena, bool, method->n_values);
  p.input = arena_new(&g->arena, bool, method->n_values);
  p.lists = arena_new(&g->arena, const void **, method->n_delegates);
  if (!p.map || !p.recast || !p.recast_in || !p.viewed_in || !p.live || !p.input || !p.lists)
    return fail(err, SCONCE_NO_MEMORY, "no memory for %u values", method->n_values);
  for (uint32_t i = 0; i < method->n_values; i++) p.map[i] = p.recast[i] = NO_VALUE;
  TRY(begin_places(&p));
  sconce_status status = add_code(&p);
  if (status == SCONCE_UNSUPPORTED) missing_append(model, method, err);
  TRY(status);
  TRY(set_border(&p, method->inputs, true, &g->inputs));
  TRY(set_border(&p, method->outputs, false, &g->outputs));
  g->n_inputs = method->n_inputs;
  g->n_outputs = method->n_outputs;
  TRY(constants_want_scalars(g, constants, err));
  return draw_add(g, draw, err);
}

sconce_status program_graph(struct graph *g, sconce_model *model, const struct pte_method *method,
                            struct draw *draw, sconce_error *err) {
  struct constants constants = {0};
  bool done;
  TRY(program_build(g, model, method, draw, &constants, err));
  TRY(constants_read(g, model, &constants, &done, err));
  if (!done) return fail(err, SCONCE_BAD_ARGUMENT, "a constant's bytes are not there yet");
  return graph_finish(g, err);
}
