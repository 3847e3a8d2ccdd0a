/* Gathering: methods, their delegates, and how often each operator occurs. */
#include "inspect/inspect.h"

#include "base/hash.h"
#include "graph/op.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static sconce_status no_memory(sconce_error *err, const char *what, uint64_t n) {
  return fail(err, SCONCE_NO_MEMORY, "no memory for %" PRIu64 " %s", n, what);
}

/* ---- delegates ------------------------------------------------------------------------------- */

/* A graph is shown whether or not its .ptd files were given; data that is there must fit. */
static sconce_status check_constants(struct inspect_delegate *d, struct data_lookup named,
                                     sconce_error *err) {
  d->vk.named = named;
  for (uint32_t i = 0; i < d->vk.n_values; i++) {
    if (vkgraph_kind(&d->vk, i) != VK_TENSOR) continue;
    struct vk_tensor t = vkgraph_value(&d->vk, i).tensor;
    if (t.constant_id < 0) continue;
    struct vk_constant c = vkgraph_constant(&d->vk, (uint32_t)t.constant_id);
    struct extent found;
    if (!c.named) continue;
    if (!named.find || !named.find(named.user, c.key, &found))
      d->n_missing++;
    else if (found.size < t.nbytes)
      return fail(err, SCONCE_BAD_GRAPH,
                  "value %u needs %" PRIu64 " bytes, the data named '%.*s' has %" PRIu64, i,
                  t.nbytes, TEXT(c.key), found.size);
  }
  return SCONCE_OK;
}

/* Delegates may share a blob; pte_open has bounded how often. */
static sconce_status open_graph(struct inspect *x, struct inspect_delegate *d,
                                struct data_lookup named, sconce_error *err) {
  TRY(vkgraph_open(&d->vk, d->blob, (struct data_lookup){0}, err));
  TRY(check_constants(d, named, err));
  d->is_graph = true;
  x->n_missing += d->n_missing;
  return SCONCE_OK;
}

static sconce_status gather_delegates(struct inspect *x, struct inspect_method *m,
                                      sconce_error *err) {
  m->n_delegates = m->m.n_delegates;
  m->delegates = arena_new(&x->arena, struct inspect_delegate, m->n_delegates);
  if (!m->delegates) return no_memory(err, "delegates", m->n_delegates);
  for (uint32_t i = 0; i < m->n_delegates; i++) {
    struct pte_delegate view = pte_delegate(&m->m, i);
    struct inspect_delegate *d = &m->delegates[i];
    *d = (struct inspect_delegate){
        .id = view.id, .blob = model_blob(x->model, view.blob), .specs = view.specs};
    if (!text_is(d->id, "VulkanBackend")) {
      m->n_foreign++;
      continue;
    }
    struct data_lookup named = {ptd_lookup, &x->model->source};
    sconce_status status = open_graph(x, d, named, err);
    if (status == SCONCE_OK) continue;
    error_prefix(err, "method '%.*s', delegate %u: ", TEXT(m->name), i);
    return status;
  }
  return SCONCE_OK;
}

/* ---- operators ------------------------------------------------------------------------------- */

/* Rows by name; a slot holds row + 1. */
struct counter {
  struct arena *arena;
  struct inspect_operator *rows;
  uint32_t n, room;
  uint32_t *slots;
  uint64_t n_slots;
  sconce_error *err;
};

static const char *runs_of(struct text name) {
  if (op_refusal(name)) return NULL;
  const struct op *op = op_find(name);
  if (!op) return "load"; /* graph_add_node's own */
  return op->flags & OP_HOST ? "host" : op->flags & OP_VIEW ? "view" : "gpu";
}

static sconce_status add_row(struct counter *c, struct text name, bool portable) {
  if (c->n == c->room) {
    uint32_t room = c->room ? 2 * c->room : 32;
    struct inspect_operator *rows = arena_new(c->arena, struct inspect_operator, room);
    if (!rows) return no_memory(c->err, "operators", room);
    if (c->n) memcpy(rows, c->rows, c->n * sizeof *rows);
    c->rows = rows;
    c->room = room;
  }
  char *copy = arena_copy_text(c->arena, name.data, name.size);
  if (!copy) return no_memory(c->err, "operators", 1);
  c->rows[c->n++] = (struct inspect_operator){
      .name = {copy, name.size}, .portable = portable, .count = 1, .runs = runs_of(name)};
  return SCONCE_OK;
}

static sconce_status count_call(struct counter *c, struct text name, bool portable) {
  uint64_t at = hash_key(name.data, name.size);
  for (uint32_t row; (row = c->slots[at % c->n_slots]) != 0; at++) {
    struct inspect_operator *op = &c->rows[row - 1];
    if (op->portable != portable || !text_equal(op->name, name)) continue;
    op->count++;
    return SCONCE_OK;
  }
  c->slots[at % c->n_slots] = c->n + 1;
  return add_row(c, name, portable);
}

static sconce_status count_code(struct counter *c, struct inspect_method *m) {
  char name[PTE_OPERATOR_SIZE];
  for (uint32_t chain = 0; chain < m->m.n_chains; chain++)
    for (uint32_t i = 0; i < pte_n_instructions(&m->m, chain); i++) {
      struct pte_instruction in = pte_instruction(&m->m, chain, i);
      if (in.kind != PTE_KERNEL_CALL) continue;
      TRY(count_call(c, text_of(pte_operator_text(&m->m, in.index, name)), true));
      m->n_calls++;
    }
  for (uint32_t d = 0; d < m->n_delegates; d++) {
    const struct vkgraph *g = &m->delegates[d].vk; /* without calls if it is no graph */
    for (uint32_t i = 0; i < g->n_calls; i++) TRY(count_call(c, vkgraph_call(g, i).name, false));
    m->n_calls += g->n_calls;
  }
  return SCONCE_OK;
}

static bool before(const struct inspect_operator *a, const struct inspect_operator *b) {
  if (a->portable != b->portable) return b->portable;
  if (a->count != b->count) return a->count > b->count;
  size_t size = a->name.size < b->name.size ? a->name.size : b->name.size;
  int order = memcmp(a->name.data, b->name.data, size);
  return order ? order < 0 : a->name.size < b->name.size;
}

/* Shell's sort: in place, without the C library's allocation. */
static void sort_rows(struct inspect_operator *rows, uint32_t n) {
  for (uint32_t gap = n; gap > 1;) {
    gap = gap < 5 ? 1 : (gap * 5 - 1) / 11;
    for (uint32_t i = gap; i < n; i++) {
      struct inspect_operator row = rows[i];
      uint32_t k = i;
      for (; k >= gap && before(&row, &rows[k - gap]); k -= gap) rows[k] = rows[k - gap];
      rows[k] = row;
    }
  }
}

sconce_status inspect_operators(struct inspect *x, struct inspect_method *m, sconce_error *err) {
  struct counter c = {.arena = &x->arena, .err = err, .n_slots = 1};
  for (uint32_t i = 0; i < m->m.n_chains; i++) c.n_slots += 2 * pte_n_instructions(&m->m, i);
  for (uint32_t i = 0; i < m->n_delegates; i++) c.n_slots += 2 * m->delegates[i].vk.n_calls;
  c.slots = arena_new(&x->arena, uint32_t, c.n_slots);
  if (!c.slots) return no_memory(err, "calls", c.n_slots / 2);
  TRY(count_code(&c, m));
  sort_rows(c.rows, c.n);
  m->operators = c.rows;
  m->n_operators = c.n;
  for (uint32_t i = 0; i < c.n; i++)
    if (!c.rows[i].runs) m->n_unsupported += c.rows[i].count;
  return SCONCE_OK;
}

/* ---- methods --------------------------------------------------------------------------------- */

static sconce_status gather_method(struct inspect *x, struct inspect_method *m, uint32_t i,
                                   sconce_error *err) {
  m->m = pte_method(&x->model->pte, i);
  m->name = m->m.name;
  m->is_constant = pte_method_is_constant(&m->m);
  TRY(gather_delegates(x, m, err));
  TRY(inspect_operators(x, m, err));
  return m->is_constant ? SCONCE_OK : inspect_memory(x, m, err);
}

sconce_status inspect_gather(struct inspect *x, const char *method, sconce_error *err) {
  uint32_t n = x->model->pte.n_methods;
  x->methods = arena_new(&x->arena, struct inspect_method, n);
  if (!x->methods) return no_memory(err, "methods", n);
  for (uint32_t i = 0; i < n; i++) {
    if (method && !text_is(pte_method(&x->model->pte, i).name, method)) continue;
    TRY(gather_method(x, &x->methods[x->n_methods++], i, err));
  }
  if (method && x->n_methods == 0)
    return fail(err, SCONCE_BAD_ARGUMENT, "no method '%s' among %u, the first is '%.*s'", method, n,
                TEXT(pte_method(&x->model->pte, 0).name));
  return SCONCE_OK;
}

sconce_status inspect_gather_graph(struct inspect *x, sconce_error *err) {
  x->methods = arena_new(&x->arena, struct inspect_method, 1);
  struct inspect_delegate *d = arena_new(&x->arena, struct inspect_delegate, 1);
  if (!x->methods || !d) return no_memory(err, "delegates", 1);
  *d = (struct inspect_delegate){.id = text_of("VulkanBackend"), .blob = x->file};
  TRY(open_graph(x, d, (struct data_lookup){0}, err));
  x->n_methods = 1;
  *x->methods = (struct inspect_method){.delegates = d, .n_delegates = 1};
  TRY(inspect_operators(x, x->methods, err));
  return inspect_memory(x, x->methods, err);
}

/* ---- verdicts -------------------------------------------------------------------------------- */

bool method_blocked(const struct inspect_method *m, char out[200]) {
  *out = 0;
  if (m->n_foreign)
    snprintf(out, 200,
             "%u of %u delegates %s for another backend: export with the VulkanPartitioner or the "
             "WebGPUPartitioner",
             m->n_foreign, m->n_delegates, m->n_foreign == 1 ? "is" : "are");
  else if (m->n_unsupported)
    snprintf(out, 200, "%u of %u calls %s of an operator that this build does not have",
             m->n_unsupported, m->n_calls, m->n_unsupported == 1 ? "is" : "are");
  else if (m->memory.unknown)
    snprintf(out, 200, "%s", m->memory.unknown);
  return *out;
}
