/* The report for people. */
#include "inspect/inspect.h"

#include <inttypes.h>
#include <stdio.h>

enum { NAME_SHOWN = 200, NAME_WIDTH = 52, KEY_SHOWN = 16, ENTRIES_SHOWN = 20 };

static void put_count(struct out *o, uint64_t n, const char *what) {
  const size_t size = strlen(what);
  const bool sibilant = size > 1 && strcmp(what + size - 2, "ch") == 0;
  out_put(o, "%" PRIu64 " %s%s", n, what, n == 1 ? "" : sibilant ? "es" : "s");
}

/* ---- head ------------------------------------------------------------------------------------ */

static void put_head(const struct inspect *x, struct out *o) {
  static const char *const kinds[] = {"an ExecuTorch program", "an ExecuTorch data file",
                                      "a VulkanBackend delegate"};
  if (x->path) {
    out_text(o, text_of(x->path), NAME_SHOWN);
    out_put(o, ": ");
  }
  out_put(o, "%s, ", kinds[x->kind]);
  out_size(o, x->file.size, 0);
  if (x->kind == INSPECT_PROGRAM) {
    out_put(o, ", ");
    put_count(o, x->model->pte.n_methods, "method");
  }
  out_put(o, "\n");
}

/* ---- methods --------------------------------------------------------------------------------- */

static void put_border(struct out *o, const struct inspect_method *m, const char *what,
                       struct fb_vec ids) {
  for (uint32_t i = 0; i < ids.n; i++) {
    out_put(o, "  %-12s%u: ", i ? "" : what, i);
    put_pte_value(o, &m->m, (uint32_t)fb_i32_at(ids, i));
    out_put(o, "\n");
  }
}

static void put_graph_border(struct out *o, const struct vkgraph *g, const char *what,
                             struct fb_vec ids) {
  for (uint32_t i = 0; i < ids.n; i++) {
    struct vk_value v = vkgraph_value(g, fb_u32_at(ids, i));
    struct inspect_shape s = shape_of_vk(&v);
    out_put(o, "  %-12s%u: ", i ? "" : what, i);
    if (v.kind == VK_TENSOR)
      put_shape(o, &s);
    else
      out_put(o, "SymInt");
    out_put(o, "\n");
  }
}

static uint32_t count_symints(const struct vkgraph *g) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < g->n_values; i++) n += vkgraph_kind(g, i) == VK_SYMINT;
  return n;
}

static void put_specs(struct out *o, const struct inspect_delegate *d) {
  struct pte_delegate view = {.specs = d->specs};
  if (!d->specs.n) return;
  out_put(o, "  %-12s   options: ", "");
  for (uint32_t i = 0; i < d->specs.n; i++) {
    struct pte_spec spec = pte_delegate_spec(&view, i);
    if (i) out_put(o, ", ");
    out_text(o, spec.key, NAME_SHOWN);
    if (!spec.value.size || spec.value.size > 8) continue;
    uint64_t number = 0; /* little-endian, as the exporter writes flags and sizes */
    for (size_t k = spec.value.size; k-- > 0;) number = number << 8 | spec.value.data[k];
    out_put(o, " %" PRIu64, number);
  }
  out_put(o, "\n");
}

static void put_delegates(struct out *o, const struct inspect_method *m) {
  for (uint32_t i = 0; i < m->n_delegates; i++) {
    const struct inspect_delegate *d = &m->delegates[i];
    out_put(o, "  %-12s%u: ", i ? "" : "delegates", i);
    out_text(o, d->id, NAME_SHOWN);
    out_put(o, ", ");
    out_size(o, d->blob.size, 0);
    if (d->is_graph) {
      uint32_t n = count_symints(&d->vk);
      out_put(o, ", "), put_count(o, d->vk.n_calls, "node");
      out_put(o, ", "), put_count(o, d->vk.n_values, "value");
      if (n) out_put(o, ", "), put_count(o, n, "live integer");
    } else {
      out_put(o, ": another backend's, cannot be run");
    }
    out_put(o, "\n");
    put_specs(o, d);
  }
}

static void put_operators(struct out *o, const struct inspect_method *m, bool portable) {
  bool first = true;
  for (uint32_t i = 0; i < m->n_operators; i++) {
    const struct inspect_operator *op = &m->operators[i];
    if (op->portable != portable) continue;
    out_put(o, "  %-12s%5u  ", !first ? "" : portable ? "portable" : "operators", op->count);
    out_cell(o, op->name, NAME_WIDTH);
    out_put(o, " %s\n", op->runs ? op->runs : "unsupported");
    first = false;
  }
}

/* Each piece of advice once, below the tables. */
static void put_advice(struct out *o, const struct inspect_method *m) {
  const char *said = NULL;
  for (uint32_t i = 0; i < m->n_operators; i++) {
    const char *advice = op_refusal(m->operators[i].name);
    if (!advice || advice == said) continue;
    out_put(o, "  %-12s%s: %s\n", "", m->operators[i].portable ? "portable" : "unsupported",
            advice);
    said = advice;
  }
}

static void put_memory(struct out *o, const struct inspect_memory *memory) {
  const uint64_t *b = memory->bytes;
  out_put(o, "  %-12s", "GPU memory");
  if (memory->unknown) {
    out_put(o, "unknown, since it does not run\n");
    return;
  }
  out_size(o, b[BUFFER_CONSTANT] + b[BUFFER_STATE], 0);
  out_put(o, " persistent (constants ");
  out_size(o, b[BUFFER_CONSTANT], 0);
  out_put(o, ", state ");
  out_size(o, b[BUFFER_STATE], 0);
  out_put(o, "), ");
  out_size(o, b[BUFFER_INPUT] + b[BUFFER_OUTPUT] + b[BUFFER_TRANSIENT], 0);
  out_put(o, " transient\n");
  if (!memory->raised) return;
  out_put(o, "  %-12sneeds more than WebGPU's default limits: ", "");
  out_text(o, text_of(memory->raised), SIZE_MAX);
  out_put(o, "\n");
}

static void put_verdict(struct out *o, const struct inspect_method *m) {
  char why[200];
  if (method_blocked(m, why)) {
    out_put(o, "  %-12sno: ", "runs");
    out_text(o, text_of(why), SIZE_MAX);
    out_put(o, "\n");
  } else {
    out_put(o, "  %-12syes, ", "runs");
    put_count(o, m->memory.dispatches, "dispatch");
    out_put(o, " at the largest shape\n");
  }
}

static void put_method(struct out *o, const struct inspect_method *m) {
  out_put(o, "\nmethod ");
  out_text(o, m->name, NAME_SHOWN);
  out_put(o, "\n");
  if (m->m.pte) {
    put_border(o, m, "inputs", m->m.inputs);
    put_border(o, m, "outputs", m->m.outputs);
  } else {
    put_graph_border(o, &m->delegates->vk, "inputs", m->delegates->vk.inputs);
    put_graph_border(o, &m->delegates->vk, "outputs", m->delegates->vk.outputs);
  }
  put_delegates(o, m);
  put_verdict(o, m);
  put_memory(o, &m->memory);
  put_operators(o, m, false);
  put_operators(o, m, true);
  put_advice(o, m);
}

static void put_constants(const struct inspect *x, struct out *o) {
  bool first = true;
  for (uint32_t i = 0; i < x->n_methods; i++) {
    const struct inspect_method *m = &x->methods[i];
    if (!m->is_constant) continue;
    if (first) out_put(o, "\nconstant methods\n");
    first = false;
    out_put(o, "  ");
    out_cell(o, m->name, 32);
    for (uint32_t k = 0; k < m->m.n_outputs; k++) {
      out_put(o, k ? ", " : " ");
      put_pte_value(o, &m->m, (uint32_t)fb_i32_at(m->m.outputs, k));
    }
    out_put(o, "\n");
  }
}

/* ---- weights --------------------------------------------------------------------------------- */

static void put_class(struct out *o, const struct inspect_weight *w) {
  char label[64];
  const char *quant = quant_name(w->quant);
  if (w->state)
    snprintf(label, sizeof label, "state");
  else if (w->group)
    snprintf(label, sizeof label, "%s, groups of %u", quant ? quant : "", w->group);
  else if (w->quant == QUANT_4BIT || w->quant == QUANT_8BIT)
    snprintf(label, sizeof label, "%s, a scale per channel", quant);
  else
    snprintf(label, sizeof label, "%s", quant ? quant : "plain");
  out_put(o, "  %-9s %-26s %6u ", w->dtype, label, w->tensors);
  out_put(o, "%-8s", w->tensors == 1 ? "tensor" : "tensors");
  out_size(o, w->bytes, 10);
  out_put(o, "\n");
}

static void put_weights(const struct inspect *x, struct out *o) {
  uint64_t numel = 0, bytes = 0;
  for (uint32_t i = 0; i < x->n_weights; i++) {
    const struct inspect_weight *w = &x->weights[i];
    if (w->state || w->quant == QUANT_SCALES) continue;
    numel += w->numel;
  }
  for (uint32_t i = 0; i < x->n_weights; i++)
    bytes += x->weights[i].state ? 0 : x->weights[i].bytes;
  out_put(o, "\nweights: ");
  if (!x->n_weights) {
    out_put(o, "none\n");
    return;
  }
  out_size(o, bytes, 0);
  out_put(o, ", ");
  if (numel < 1000000)
    put_count(o, numel, "parameter");
  else
    out_put(o, "%.1f million parameters", (double)numel * 1e-6);
  out_put(o, "\n");
  for (uint32_t i = 0; i < x->n_weights; i++) put_class(o, &x->weights[i]);
  if (!x->n_missing) return;
  out_put(o, "  "), put_count(o, x->n_missing, "constant");
  out_put(o, " in none of the given files: name the .ptd files too\n");
}

static void put_largest(const struct inspect *x, struct out *o) {
  if (x->n_largest) out_put(o, "\nlargest tensors\n");
  for (uint32_t i = 0; i < x->n_largest; i++) {
    const struct inspect_tensor *t = &x->largest[i];
    out_put(o, "  ");
    out_size(o, t->bytes, 10);
    out_put(o, "  %s ", t->dtype);
    put_dims(o, t->rank, t->dims);
    if (t->count > 1) out_put(o, " x %u", t->count);
    if (t->user.size) out_put(o, ", "), out_text(o, t->user, NAME_SHOWN);
    if (t->name.size) out_put(o, ", "), out_text(o, t->name, KEY_SHOWN);
    out_put(o, "\n");
  }
}

/* ---- data files ------------------------------------------------------------------------------ */

static void put_entries(const struct inspect *x, struct out *o) {
  uint32_t n = x->ptd.data.named.n;
  out_put(o, "\n");
  put_count(o, n, "key");
  out_put(o, "\n");
  for (uint32_t i = 0; i < n && i < ENTRIES_SHOWN; i++) {
    struct ptd_entry e = ptd_entry(&x->ptd, i);
    struct inspect_shape s = shape_of_data(&e.shape);
    out_put(o, "  ");
    out_cell(o, e.key, NAME_WIDTH);
    out_put(o, " ");
    if (e.has_layout)
      put_shape(o, &s);
    else
      out_put(o, "a delegate's bytes");
    out_put(o, ", ");
    out_size(o, e.bytes.size, 0);
    out_put(o, "\n");
  }
  if (n > ENTRIES_SHOWN) out_put(o, "  … %u more, see --json\n", n - ENTRIES_SHOWN);
}

void inspect_text(const struct inspect *x, struct out *o) {
  put_head(x, o);
  if (x->kind == INSPECT_DATA) {
    put_entries(x, o);
    return;
  }
  for (uint32_t i = 0; i < x->n_methods; i++)
    if (!x->methods[i].is_constant) put_method(o, &x->methods[i]);
  put_constants(x, o);
  put_weights(x, o);
  put_largest(x, o);
}
