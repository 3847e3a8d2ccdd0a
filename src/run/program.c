/* A method's instruction list as one graph: delegates' chains and portable calls become nodes.
 *
 * A program's value becomes a value of the graph when something first uses it. At a delegate's
 * border the program's value and the delegate's are one: int64 outside is int32 inside and float32
 * may be float16, converted where data enters and leaves the method. Where one reader of a value
 * wants float32 and another float16 a cast stands in between. */
#include "run/model.h"

#include "base/half.h"
#include "graph/op.h"

#include <inttypes.h>
#include <string.h>

struct program {
  sconce_model *model;
  const struct pte_method *m;
  struct graph *g;
  uint32_t *map;    /* program's value -> graph's, NO_VALUE until used */
  uint32_t *recast; /* the same in the other float dtype, NO_VALUE until somebody wants it */
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

/* 64-bit constants are narrowed once, into the arena; all others stay in the file. */
static sconce_status constant_bytes(struct program *p, const struct pte_tensor *t,
                                    struct span bytes, struct tensor *to) {
  to->constant = true;
  to->bytes = bytes;
  if (t->shape.scalar_type != SCALAR_LONG && t->shape.scalar_type != SCALAR_DOUBLE)
    return SCONCE_OK;
  uint32_t *narrow = arena_new(&p->g->arena, uint32_t, (size_t)t->shape.numel);
  if (!narrow) return fail(p->err, SCONCE_NO_MEMORY, "no memory for a constant");
  for (uint64_t i = 0; i < t->shape.numel; i++) {
    uint64_t bits = load_u64(bytes.data + 8 * i);
    int64_t whole = (int64_t)bits;
    if (t->shape.scalar_type == SCALAR_LONG) {
      if (whole < INT32_MIN || whole > INT32_MAX)
        return fail(p->err, SCONCE_UNSUPPORTED, "a constant of %" PRId64 " does not fit 32 bits",
                    whole);
      narrow[i] = (uint32_t)(int32_t)whole;
    } else {
      double wide;
      memcpy(&wide, &bits, 8);
      float single = (float)wide;
      memcpy(&narrow[i], &single, 4);
    }
  }
  to->bytes = (struct span){(const uint8_t *)narrow, (size_t)t->shape.numel * 4};
  return SCONCE_OK;
}

static bool contiguous(const struct data_shape *s) {
  for (uint32_t i = 0; i < s->rank; i++)
    if (s->dim_order[i] != i) return false;
  return true;
}

/* The initial bytes that the file or a .ptd holds for a tensor. */
static bool initial_bytes(struct program *p, const struct pte_tensor *t, struct span *out) {
  if (!t->external) return pte_tensor_bytes(&p->model->pte, t, out);
  struct ptd_entry entry;
  if (!ptd_find(&p->model->data, t->fqn, &entry)) return false;
  *out = entry.bytes;
  return true;
}

static sconce_status add_tensor(struct program *p, const struct pte_tensor *t, uint32_t *out) {
  enum vk_dtype dtype;
  if (!dtype_inside(t->shape.scalar_type, &dtype))
    return fail(p->err, SCONCE_UNSUPPORTED, "a tensor of type %s",
                scalar_name(t->shape.scalar_type));
  if (t->shape.rank > RANK_MAX)
    return fail(p->err, SCONCE_UNSUPPORTED, "a tensor of rank %u, at most %d", t->shape.rank,
                RANK_MAX);
  if (!contiguous(&t->shape) && t->shape.rank > 1)
    return fail(p->err, SCONCE_UNSUPPORTED, "a tensor whose dims are not in row-major order");
  uint32_t dims[RANK_MAX];
  for (uint32_t i = 0; i < t->shape.rank; i++) dims[i] = (uint32_t)t->shape.sizes[i];
  *out = graph_add_tensor(p->g, dtype, t->shape.rank, dims, p->err);
  if (*out == NO_VALUE) return SCONCE_NO_MEMORY;
  struct span bytes;
  if (!initial_bytes(p, t, &bytes)) return SCONCE_OK;
  return constant_bytes(p, t, bytes, &p->g->values[*out].tensor);
}

static sconce_status value_of(struct program *p, uint32_t index, uint32_t *out);

/* A constant of float32 in float16, once at load; what has a place in memory may yet change. */
static sconce_status halve(struct program *p, const struct tensor *from, struct tensor *to) {
  const uint64_t n = tensor_numel_max(from);
  uint16_t *halves = arena_new(&p->g->arena, uint16_t, (size_t)n);
  if (!halves) return fail(p->err, SCONCE_NO_MEMORY, "no memory for a constant");
  for (uint64_t i = 0; i < n; i++) {
    float f;
    memcpy(&f, from->bytes.data + 4 * i, 4);
    halves[i] = half_from_float(f);
  }
  to->constant = true;
  to->bytes = (struct span){(const uint8_t *)halves, (size_t)n * 2};
  return SCONCE_OK;
}

/* The program's value, which is there in the other float dtype. */
static sconce_status recast(struct program *p, uint32_t index, enum vk_dtype dtype, uint32_t *out) {
  struct graph *g = p->g;
  const uint32_t from = p->map[index];
  *out = p->recast[index];
  if (*out != NO_VALUE) return SCONCE_OK;
  const struct tensor *t = &g->values[from].tensor;
  *out = graph_add_tensor(g, dtype, t->rank, t->dim_max, p->err);
  if (*out == NO_VALUE) return SCONCE_NO_MEMORY;
  p->recast[index] = *out;
  t = &g->values[from].tensor; /* the array may have moved */
  if (t->constant && dtype == VK_FLOAT16 && !pte_value(p->m, index).tensor.planned)
    return halve(p, t, &g->values[*out].tensor);
  const uint32_t none = graph_add_value(g, VK_NULL, p->err);
  if (none == NO_VALUE) return SCONCE_NO_MEMORY;
  const uint32_t args[] = {from, none, none, *out};
  return graph_add_node(g, text_of("aten::_to_copy.out"), g->n_nodes, args, 4, p->err);
}

/* As a portable kernel reads it: in the program's own dtype. */
static sconce_status read_value(struct program *p, uint32_t index, uint32_t *out) {
  TRY(value_of(p, index, out));
  const struct value *v = &p->g->values[*out];
  struct pte_value said = pte_value(p->m, index);
  enum vk_dtype dtype;
  if (v->kind != VK_TENSOR || v->tensor.dtype != VK_FLOAT16 || said.kind != PTE_TENSOR ||
      !dtype_inside(said.tensor.shape.scalar_type, &dtype) || dtype != VK_FLOAT32)
    return SCONCE_OK;
  return recast(p, index, VK_FLOAT32, out);
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
    status = add_scalar(p, &v, out);
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

/* Could the program's value stand for the delegate's? Same dims; dtypes as the border converts. */
static bool matches(struct program *p, uint32_t index, const struct vk_value *inside) {
  struct pte_value v = pte_value(p->m, index);
  if (inside->kind == VK_SYMINT) return v.kind == PTE_INT;
  if (v.kind != PTE_TENSOR || inside->kind != VK_TENSOR) return false;
  if (v.tensor.shape.rank != inside->tensor.rank) return false;
  for (uint32_t i = 0; i < inside->tensor.rank; i++)
    if ((uint32_t)v.tensor.shape.sizes[i] != inside->tensor.dims[i]) return false;
  enum vk_dtype dtype;
  if (!dtype_inside(v.tensor.shape.scalar_type, &dtype)) return false;
  return dtype == inside->tensor.dtype ||
         (dtype == VK_FLOAT32 && inside->tensor.dtype == VK_FLOAT16);
}

static bool is_float(enum vk_dtype dtype) { return dtype == VK_FLOAT32 || dtype == VK_FLOAT16; }

/* Gives the delegate's border value the graph's value of the program's; the first to come decides
 * the dtype inside. */
static sconce_status join(struct program *p, uint32_t index, const struct vkgraph *vk, uint32_t id,
                          bool input, uint32_t *map) {
  struct vk_value inside = vkgraph_value(vk, id);
  if (p->map[index] == NO_VALUE && inside.kind == VK_TENSOR) {
    struct pte_value v = pte_value(p->m, index);
    struct span bytes;
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
  if (map[id] != NO_VALUE && map[id] != mine && map[id] != p->recast[index])
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
 * inputs are matched in order, skipping what does not fit. */
static sconce_status join_inputs(struct program *p, const struct pte_instruction *call,
                                 const struct vkgraph *vk, uint32_t *map) {
  uint32_t n = call->args.n - vk->n_outputs, at = 0;
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
  return SCONCE_OK;
}

static sconce_status add_delegate(struct program *p, const struct pte_instruction *call) {
  struct pte_delegate d = pte_delegate(p->m, call->index);
  if (!text_is(d.id, "VulkanBackend"))
    return fail(p->err, SCONCE_UNSUPPORTED,
                "delegate %u is for '%.*s': export with the VulkanPartitioner or the "
                "WebGPUPartitioner",
                call->index, TEXT(d.id));
  struct vkgraph vk;
  struct data_lookup named = {ptd_lookup, &p->model->source};
  TRY(vkgraph_open(&vk, d.blob, named, p->err));
  if (call->args.n < vk.n_inputs + vk.n_outputs)
    return fail(
        p->err, SCONCE_BAD_GRAPH,
        "%u arguments for %u inputs and %u outputs (a buffer that the model changes: export with "
        "alias_buffer_mutations)",
        call->args.n, vk.n_inputs, vk.n_outputs);
  uint32_t *map = arena_new(&p->g->arena, uint32_t, vk.n_values);
  if (!map) return fail(p->err, SCONCE_NO_MEMORY, "no memory for %u values", vk.n_values);
  for (uint32_t i = 0; i < vk.n_values; i++) map[i] = NO_VALUE;
  TRY(join_inputs(p, call, &vk, map));
  for (uint32_t i = 0; i < vk.n_outputs; i++) {
    uint32_t at = call->args.n - vk.n_outputs + i, id = fb_u32_at(vk.outputs, i);
    uint32_t index = (uint32_t)fb_i32_at(call->args, at);
    struct vk_value inside = vkgraph_value(&vk, id);
    if (!matches(p, index, &inside))
      return fail(p->err, SCONCE_BAD_GRAPH, "argument %u does not fit output %u of the delegate",
                  at, i);
    p->recast[index] = NO_VALUE; /* of what it was before */
    TRY(join(p, index, &vk, id, false, map));
  }
  return graph_add_delegate(p->g, &vk, map, p->err);
}

/* ---- instructions ---------------------------------------------------------------------------- */

/* A portable call repeats its output in a last slot for the return value. */
static sconce_status add_kernel(struct program *p, const struct pte_instruction *call,
                                uint32_t index) {
  enum { ARGS_MAX = 64 };
  uint32_t args[ARGS_MAX], n = call->args.n;
  if (n > ARGS_MAX) return fail(p->err, SCONCE_UNSUPPORTED, "%u arguments", n);
  if (n >= 2 && fb_i32_at(call->args, n - 1) == fb_i32_at(call->args, n - 2)) n--;
  for (uint32_t i = 0; i < n; i++) {
    const uint32_t value = (uint32_t)fb_i32_at(call->args, i);
    TRY(i + 1 < n ? read_value(p, value, &args[i]) : value_of(p, value, &args[i]));
  }
  char name[PTE_OPERATOR_SIZE];
  pte_operator_text(p->m, call->index, name);
  sconce_status status = graph_add_node(p->g, text_of(name), index, args, n, p->err);
  if (status != SCONCE_OK) error_prefix(p->err, "%s: ", name);
  for (uint32_t i = 0; i < n; i++) /* any of them may have been written */
    p->recast[(uint32_t)fb_i32_at(call->args, i)] = NO_VALUE;
  return status;
}

static sconce_status add_instruction(struct program *p, const struct pte_instruction *in,
                                     uint32_t index) {
  switch (in->kind) {
  case PTE_DELEGATE_CALL:
    return add_delegate(p, in);
  case PTE_KERNEL_CALL:
    return add_kernel(p, in, index);
  case PTE_MOVE_CALL: {
    uint32_t from;
    TRY(value_of(p, in->value, &from));
    p->map[in->to] = from;
    return SCONCE_OK;
  }
  case PTE_FREE_CALL:
    return SCONCE_OK;
  default:
    return fail(p->err, SCONCE_UNSUPPORTED, "a branch");
  }
}

static sconce_status add_code(struct program *p) {
  for (uint32_t chain = 0; chain < p->m->n_chains; chain++)
    for (uint32_t i = 0; i < pte_n_instructions(p->m, chain); i++) {
      struct pte_instruction in = pte_instruction(p->m, chain, i);
      sconce_status status = add_instruction(p, &in, i);
      if (status == SCONCE_OK) continue;
      error_prefix(p->err, "instruction %u: ", i);
      return status;
    }
  return SCONCE_OK;
}

/* Inputs that a delegate was the first to use have its dtype; the others get the program's. */
static sconce_status set_border(struct program *p, struct fb_vec indices, bool input,
                                uint32_t **out) {
  *out = arena_new(&p->g->arena, uint32_t, indices.n);
  if (!*out) return fail(p->err, SCONCE_NO_MEMORY, "no memory for %u values", indices.n);
  for (uint32_t i = 0; i < indices.n; i++) {
    uint32_t id;
    TRY(value_of(p, (uint32_t)fb_i32_at(indices, i), &id));
    (*out)[i] = id;
    if (p->g->values[id].kind != VK_TENSOR) continue;
    if (input && p->g->values[id].tensor.input)
      return fail(p->err, SCONCE_UNSUPPORTED, "input %u is an earlier input again", i);
    if (input)
      p->g->values[id].tensor.input = true;
    else
      p->g->values[id].tensor.output = true;
  }
  return SCONCE_OK;
}

sconce_status program_build(struct graph *g, sconce_model *model, const struct pte_method *method,
                            struct draw *draw, sconce_error *err) {
  struct program p = {.model = model, .m = method, .g = g, .err = err};
  p.map = arena_new(&g->arena, uint32_t, method->n_values);
  p.recast = arena_new(&g->arena, uint32_t, method->n_values);
  if (!p.map || !p.recast)
    return fail(err, SCONCE_NO_MEMORY, "no memory for %u values", method->n_values);
  for (uint32_t i = 0; i < method->n_values; i++) p.map[i] = p.recast[i] = NO_VALUE;
  TRY(add_code(&p));
  TRY(set_border(&p, method->inputs, true, &g->inputs));
  TRY(set_border(&p, method->outputs, false, &g->outputs));
  g->n_inputs = method->n_inputs;
  g->n_outputs = method->n_outputs;
  return draw_add(g, draw, err);
}
