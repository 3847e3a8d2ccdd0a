/* --json: everything, in the order of the file. docs/inspect.md is its schema: change both. */
#include "inspect/inspect.h"

#include <inttypes.h>

#define SCHEMA 1

static void put_key(struct out *o, const char *key) { out_put(o, "\"%s\": ", key); }

static void put_string(struct out *o, const char *key, struct text value) {
  put_key(o, key);
  out_json(o, value);
}

static void put_sentence(struct out *o, const char *key, const char *value) {
  put_key(o, key);
  if (value)
    out_json(o, text_of(value));
  else
    out_put(o, "null");
}

/* Between items of a list that stand on lines of their own. */
static void put_line(struct out *o, uint32_t i, const char *indent) {
  out_put(o, "%s\n%s", i ? "," : "", indent);
}

static void put_ids(struct out *o, const char *key, struct fb_vec ids) {
  out_put(o, "\"%s\": [", key);
  for (uint32_t i = 0; i < ids.n; i++) out_put(o, "%s%d", i ? ", " : "", (int)fb_i32_at(ids, i));
  out_put(o, "]");
}

static void put_tensor(struct out *o, const struct inspect_shape *s) {
  out_put(o, "\"kind\": \"Tensor\", \"dtype\": \"%s\", \"dims\": ", s->dtype);
  put_dims(o, s->rank, s->dims);
  out_put(o, ", \"bytes\": %" PRIu64, s->bytes);
}

/* ---- values ---------------------------------------------------------------------------------- */

static void put_pte_items(struct out *o, const struct pte_value *v) {
  for (uint32_t i = 0; i < v->items.n; i++) {
    if (i) out_put(o, ", ");
    if (v->kind == PTE_DOUBLE_LIST)
      out_double(o, fb_f64_at(v->items, i));
    else if (v->kind == PTE_BOOL_LIST)
      out_put(o, fb_bool_at(v->items, i) ? "true" : "false");
    else
      out_put(o, "%" PRId64, pte_list_item(v, i));
  }
}

static void put_pte_tensor(struct out *o, const struct pte *pte, const struct pte_tensor *t) {
  static const char *const dynamism[] = {"static", "bound", "unbound"};
  struct inspect_shape s = shape_of_data(&t->shape);
  struct extent bytes;
  put_tensor(o, &s);
  out_put(o, ", \"dynamic\": \"%s\"", dynamism[t->dynamism]);
  out_put(o, ", \"stored\": %s",
          t->external                        ? "\"external\""
          : pte_tensor_bytes(pte, t, &bytes) ? "\"file\""
                                             : "null");
  if (t->fqn.size) out_put(o, ", "), put_string(o, "name", t->fqn);
}

static void put_pte_json(struct out *o, const struct pte_method *m, uint32_t i) {
  struct pte_value v = pte_value(m, i);
  out_put(o, "{");
  if (v.kind == PTE_TENSOR) {
    put_pte_tensor(o, m->pte, &v.tensor);
    out_put(o, "}");
    return;
  }
  out_put(o, "\"kind\": \"%s\", \"value\": ", pte_kind_name(v.kind));
  if (v.kind == PTE_NULL)
    out_put(o, "null");
  else if (v.kind == PTE_INT)
    out_put(o, "%" PRId64, v.i);
  else if (v.kind == PTE_BOOL)
    out_put(o, v.b ? "true" : "false");
  else if (v.kind == PTE_DOUBLE)
    out_double(o, v.d);
  else if (v.kind == PTE_STRING)
    out_json(o, v.text);
  else
    out_put(o, "["), put_pte_items(o, &v), out_put(o, "]");
  out_put(o, "}");
}

static void put_vk_items(struct out *o, const struct vk_value *v) {
  for (uint32_t i = 0; i < v->items.n; i++) {
    if (i) out_put(o, ", ");
    if (v->kind == VK_DOUBLE_LIST)
      out_double(o, fb_f64_at(v->items, i));
    else if (v->kind == VK_BOOL_LIST)
      out_put(o, fb_bool_at(v->items, i) ? "true" : "false");
    else if (v->kind == VK_INT_LIST)
      out_put(o, "%" PRId64, fb_i64_at(v->items, i));
    else
      out_put(o, "%d", (int)fb_i32_at(v->items, i));
  }
}

static void put_vk_tensor(struct out *o, const struct vkgraph *g, const struct vk_value *v) {
  const struct vk_tensor *t = &v->tensor;
  struct inspect_shape s = shape_of_vk(v);
  put_tensor(o, &s);
  if (t->constant_id < 0) return;
  struct vk_constant c = vkgraph_constant(g, (uint32_t)t->constant_id);
  out_put(o, ", \"constant\": %d", (int)t->constant_id);
  if (c.named) out_put(o, ", "), put_string(o, "key", c.key);
}

static void put_vk_json(struct out *o, const struct vkgraph *g, uint32_t i) {
  struct vk_value v = vkgraph_value(g, i);
  out_put(o, "{");
  if (v.kind == VK_TENSOR) {
    put_vk_tensor(o, g, &v);
    out_put(o, "}");
    return;
  }
  out_put(o, "\"kind\": \"%s\", \"value\": ", vk_kind_name(v.kind));
  if (v.kind == VK_NULL)
    out_put(o, "null");
  else if (v.kind == VK_INT || v.kind == VK_SYMINT)
    out_put(o, "%" PRId64, v.i);
  else if (v.kind == VK_BOOLEAN)
    out_put(o, v.b ? "true" : "false");
  else if (v.kind == VK_DOUBLE)
    out_double(o, v.d);
  else if (v.kind == VK_STRING)
    out_json(o, v.text);
  else
    out_put(o, "["), put_vk_items(o, &v), out_put(o, "]");
  out_put(o, "}");
}

/* ---- delegates ------------------------------------------------------------------------------- */

static void put_graph(struct out *o, const struct vkgraph *g) {
  out_put(o, "{");
  put_ids(o, "inputs", g->inputs);
  out_put(o, ", ");
  put_ids(o, "outputs", g->outputs);
  out_put(o, ", \"values\": [");
  for (uint32_t i = 0; i < g->n_values; i++) {
    put_line(o, i, "      ");
    put_vk_json(o, g, i);
  }
  out_put(o, "], \"nodes\": [");
  for (uint32_t i = 0; i < g->n_calls; i++) {
    struct vk_call call = vkgraph_call(g, i);
    put_line(o, i, "      {");
    put_string(o, "name", call.name);
    out_put(o, ", ");
    put_ids(o, "args", call.args);
    out_put(o, "}");
  }
  out_put(o, "]}");
}

static void put_specs(struct out *o, struct fb_vec specs) {
  struct pte_delegate view = {.specs = specs};
  out_put(o, "\"compile_specs\": [");
  for (uint32_t i = 0; i < specs.n; i++) {
    struct pte_spec spec = pte_delegate_spec(&view, i);
    out_put(o, i ? ", {" : "{");
    put_string(o, "key", spec.key);
    out_put(o, ", \"hex\": \"");
    for (size_t k = 0; k < spec.value.size; k++) out_put(o, "%02x", spec.value.data[k]);
    out_put(o, "\"}");
  }
  out_put(o, "]");
}

static void put_delegates(struct out *o, const struct inspect_method *m) {
  out_put(o, "\"delegates\": [");
  for (uint32_t i = 0; i < m->n_delegates; i++) {
    const struct inspect_delegate *d = &m->delegates[i];
    put_line(o, i, "    {");
    put_string(o, "backend", d->id);
    out_put(o, ", \"offset\": %" PRIu64 ", \"bytes\": %" PRIu64 ", ", d->blob.offset, d->blob.size);
    put_specs(o, d->specs);
    out_put(o, ", \"missing_constants\": %u, \"graph\": ", d->n_missing);
    if (d->is_graph)
      put_graph(o, &d->vk);
    else
      out_put(o, "null");
    out_put(o, "}");
  }
  out_put(o, "]");
}

/* ---- methods --------------------------------------------------------------------------------- */

static void put_instruction(struct out *o, const struct inspect_method *m,
                            const struct pte_instruction *in) {
  char name[PTE_OPERATOR_SIZE];
  switch (in->kind) {
  case PTE_KERNEL_CALL:
    put_string(o, "kernel", text_of(pte_operator_text(&m->m, in->index, name)));
    out_put(o, ", ");
    put_ids(o, "args", in->args);
    break;
  case PTE_DELEGATE_CALL:
    out_put(o, "\"delegate\": %u, ", in->index);
    put_ids(o, "args", in->args);
    break;
  case PTE_MOVE_CALL:
    out_put(o, "\"move\": %u, \"to\": %u", in->value, in->to);
    break;
  case PTE_JUMP_FALSE_CALL:
    out_put(o, "\"unless\": %u, \"go\": %u", in->value, in->destination);
    break;
  case PTE_FREE_CALL:
    out_put(o, "\"free\": %u", in->value);
    break;
  }
}

static void put_code(struct out *o, const struct inspect_method *m) {
  out_put(o, "\"values\": [");
  for (uint32_t i = 0; i < m->m.n_values; i++) {
    put_line(o, i, "    ");
    put_pte_json(o, &m->m, i);
  }
  out_put(o, "],\n   \"chains\": [");
  for (uint32_t chain = 0; chain < m->m.n_chains; chain++) {
    out_put(o, chain ? ", [" : "[");
    for (uint32_t i = 0; i < pte_n_instructions(&m->m, chain); i++) {
      struct pte_instruction in = pte_instruction(&m->m, chain, i);
      put_line(o, i, "    {");
      put_instruction(o, m, &in);
      out_put(o, "}");
    }
    out_put(o, "]");
  }
  out_put(o, "]");
}

static void put_operators(struct out *o, const struct inspect_method *m) {
  out_put(o, "\"operators\": [");
  for (uint32_t i = 0; i < m->n_operators; i++) {
    const struct inspect_operator *op = &m->operators[i];
    put_line(o, i, "    {");
    put_string(o, "name", op->name);
    out_put(o, ", \"portable\": %s, \"count\": %u, ", op->portable ? "true" : "false", op->count);
    put_sentence(o, "runs", op->runs);
    out_put(o, ", ");
    put_sentence(o, "advice", op_refusal(op->name));
    out_put(o, "}");
  }
  out_put(o, "]");
}

static void put_memory(struct out *o, const struct inspect_method *m) {
  static const char *const names[] = {"constants", "state", "inputs", "outputs", "intermediates"};
  const struct inspect_memory *memory = &m->memory;
  const uint64_t *b = memory->bytes;
  if (memory->unknown || m->is_constant) {
    out_put(o, "\"gpu_memory\": null");
    return;
  }
  out_put(o, "\"gpu_memory\": {\"persistent\": %" PRIu64 ", \"transient\": %" PRIu64,
          b[BUFFER_CONSTANT] + b[BUFFER_STATE],
          b[BUFFER_INPUT] + b[BUFFER_OUTPUT] + b[BUFFER_TRANSIENT]);
  for (int i = 0; i <= BUFFER_TRANSIENT; i++) out_put(o, ", \"%s\": %" PRIu64, names[i], b[i]);
  out_put(o, ", \"dispatches\": %u, ", memory->dispatches);
  put_sentence(o, "above_default_limits", memory->raised);
  out_put(o, "}");
}

static void put_method(struct out *o, const struct inspect_method *m) {
  char why[200];
  bool blocked = !m->is_constant && method_blocked(m, why);
  put_string(o, "name", m->name);
  out_put(o, ", \"constant\": %s, \"runs\": %s, ", m->is_constant ? "true" : "false",
          blocked ? "false" : "true");
  put_sentence(o, "reason", blocked ? why : NULL);
  out_put(o, ",\n   ");
  put_ids(o, "inputs", m->m.inputs);
  out_put(o, ", ");
  put_ids(o, "outputs", m->m.outputs);
  out_put(o, ",\n   ");
  put_memory(o, m);
  out_put(o, ",\n   ");
  put_operators(o, m);
  out_put(o, ",\n   ");
  put_code(o, m);
  out_put(o, ",\n   ");
  put_delegates(o, m);
}

/* ---- file ------------------------------------------------------------------------------------ */

static void put_weights(struct out *o, const struct inspect *x) {
  out_put(o, " \"weights\": [");
  for (uint32_t i = 0; i < x->n_weights; i++) {
    const struct inspect_weight *w = &x->weights[i];
    put_line(o, i, "  {");
    put_sentence(o, "dtype", w->dtype);
    out_put(o, ", ");
    put_sentence(o, "quantisation", quant_name(w->quant));
    out_put(o, ", \"group\": %u, \"state\": %s, \"tensors\": %u, ", w->group,
            w->state ? "true" : "false", w->tensors);
    out_put(o, "\"elements\": %" PRIu64 ", \"bytes\": %" PRIu64 "}", w->numel, w->bytes);
  }
  out_put(o, "],\n \"largest\": [");
  for (uint32_t i = 0; i < x->n_largest; i++) {
    const struct inspect_tensor *t = &x->largest[i];
    put_line(o, i, "  {");
    put_string(o, "name", t->name);
    out_put(o, ", ");
    put_string(o, "user", t->user);
    out_put(o, ", \"dtype\": \"%s\", \"dims\": ", t->dtype);
    put_dims(o, t->rank, t->dims);
    out_put(o, ", \"bytes\": %" PRIu64 ", \"count\": %u}", t->bytes, t->count);
  }
  out_put(o, "]");
}

static void put_entries(struct out *o, const struct data *data, const struct ptd *ptd) {
  out_put(o, " \"named_data\": [");
  for (uint32_t i = 0; i < data->named.n; i++) {
    struct ptd_entry e = ptd ? ptd_entry(ptd, i) : (struct ptd_entry){0};
    put_line(o, i, "  {");
    put_string(o, "key", data_key(data, i));
    out_put(o, ", \"bytes\": %" PRIu64, data_named(data, i).size);
    if (e.has_layout) {
      struct inspect_shape s = shape_of_data(&e.shape);
      out_put(o, ", \"dtype\": \"%s\", \"dims\": ", s.dtype);
      put_dims(o, s.rank, s.dims);
    }
    out_put(o, "}");
  }
  out_put(o, "]");
}

void inspect_json(const struct inspect *x, struct out *o) {
  static const char *const kinds[] = {"program", "data", "graph"};
  static const struct data nothing;
  out_put(o, "{\"schema\": %d, \"sconce\": \"%s\", ", SCHEMA, sconce_version());
  put_sentence(o, "path", x->path);
  out_put(o, ", \"kind\": \"%s\", \"bytes\": %" PRIu64 ",\n \"methods\": [", kinds[x->kind],
          x->file.size);
  for (uint32_t i = 0; i < x->n_methods; i++) {
    put_line(o, i, "  {");
    put_method(o, &x->methods[i]);
    out_put(o, "}");
  }
  out_put(o, "],\n");
  put_weights(o, x);
  out_put(o, ",\n");
  put_entries(o,
              x->kind == INSPECT_PROGRAM ? &x->model->pte.data
              : x->kind == INSPECT_DATA  ? &x->ptd.data
                                         : &nothing,
              x->kind == INSPECT_DATA ? &x->ptd : NULL);
  out_put(o, "}\n");
}
