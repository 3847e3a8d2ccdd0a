/* Files by handle: methods around graphs, data, buffers, and what is verified before it is written.
 * A method is a call of its delegate; behind it, copies of what its buffers are to keep. */
#include "write/writer.h"

#include "base/checked.h"
#include "format/ptd.h"
#include "format/vkgraph.h"

sconce_status sconce_writer_open(sconce_writer **out, const sconce_writer_desc *desc,
                                 sconce_error *err) {
  if (!out) return fail(err, SCONCE_BAD_ARGUMENT, "no place for the writer");
  struct arena arena;
  arena_init(&arena, desc ? &desc->allocator : NULL);
  *out = arena_new(&arena, sconce_writer, 1);
  if (!*out) {
    arena_free(&arena);
    return fail(err, SCONCE_NO_MEMORY, "no memory for a writer");
  }
  (*out)->arena = arena; /* the writer lies in what it owns */
  write_pte_init(&(*out)->pte, &(*out)->arena);
  write_ptd_init(&(*out)->ptd, &(*out)->arena);
  return SCONCE_OK;
}

void sconce_writer_close(sconce_writer *writer) {
  if (!writer) return;
  struct arena arena = writer->arena;
  arena_free(&arena);
}

static bool is_open(sconce_writer *w) { return w && !write_failed(&w->pte.state); }

void sconce_writer_data(sconce_writer *writer, const char *key, const sconce_bytes *bytes) {
  if (!is_open(writer)) return;
  if (!bytes) {
    fail(&writer->pte.state.err, SCONCE_BAD_ARGUMENT, "no bytes for the data '%.*s'",
         TEXT(text_of(key)));
    return;
  }
  write_pte_named_data(&writer->pte, key, *bytes);
  write_ptd_named(&writer->ptd, key, write_ptd_segment(&writer->ptd, *bytes), NULL);
}

/* ---- buffers --------------------------------------------------------------------------------- */

int32_t sconce_writer_buffer(sconce_writer *writer, sconce_dtype dtype, const uint32_t *dims,
                             uint32_t rank, const sconce_bytes *initial) {
  if (!is_open(writer)) return -1;
  struct write_state *s = &writer->pte.state;
  struct writer_buffer buffer = {.offset = round_up(writer->buffers_end, DATA_ALIGN)};
  if (!writer_tensor(s, dtype, dims, rank, &buffer.value)) return -1;
  const uint64_t size = writer_size(&buffer.value);
  if (!add_u64(buffer.offset, size, &writer->buffers_end) || writer->buffers_end > INT64_MAX / 2)
    fail(&s->err, SCONCE_BAD_ARGUMENT, "buffers that do not fit into memory");
  else if (initial && initial->size != size)
    fail(&s->err, SCONCE_BAD_ARGUMENT, "%llu bytes to begin with, the buffer has %llu",
         (unsigned long long)initial->size, (unsigned long long)size);
  if (write_failed(s)) return -1;
  if (initial) buffer.initial = write_pte_mutable(&writer->pte, *initial);
  const int32_t id = write_next_id(s, &writer->buffers);
  struct writer_buffer *row = write_list_add(s, &writer->buffers, sizeof *row);
  if (!row) return -1;
  *row = buffer;
  return id;
}

/* ---- methods --------------------------------------------------------------------------------- */

struct around { /* a graph */
  sconce_writer *w;
  const sconce_graph *g;
  int32_t memory, shared; /* planned memory: the method's own, and that of buffers */
  uint64_t end;           /* of the first */
  struct write_list args; /* of the delegate's call: int32_t */
  int32_t *buffers;       /* by buffer: the program's value, or -1 */
};

/* The program's value for a value of the graph, at a place of its own. */
static int32_t add_value(struct around *a, int32_t id, bool dynamic) {
  const struct writer_value *v = (const struct writer_value *)a->g->values.items + id;
  if (v->kind == VK_SYMINT) return write_pte_value(&a->w->pte, literal_int(0));
  struct write_pte_tensor t = {.scalar_type = (int)v->dtype,
                               .dynamism = dynamic ? PTE_DYNAMIC_BOUND : PTE_STATIC,
                               .sizes = v->dims,
                               .rank = v->rank};
  if (v->buffer < 0) return write_pte_planned(&a->w->pte, &t, a->memory, &a->end);
  const struct writer_buffer *b = (const struct writer_buffer *)a->w->buffers.items + v->buffer;
  t.memory_id = (uint32_t)a->shared;
  t.memory_offset = b->offset;
  t.data_buffer_idx = b->initial;
  return a->buffers[v->buffer] = write_pte_tensor(&a->w->pte, &t);
}

static int32_t add_argument(struct around *a, int32_t id, bool dynamic) {
  const int32_t value = add_value(a, id, dynamic);
  write_add_ids(&a->w->pte.state, &a->args, &value, 1);
  return value;
}

static bool is_buffer(const sconce_graph *g, int32_t id) {
  const struct writer_value *v = (const struct writer_value *)g->values.items + id;
  return v->kind == VK_TENSOR && v->buffer >= 0;
}

static bool has_buffers(const sconce_graph *g) {
  const struct writer_border *in = g->inputs.items;
  for (uint32_t i = 0; i < g->inputs.n; i++)
    if (is_buffer(g, in[i].id)) return true;
  return false;
}

static void add_border(struct around *a) {
  const struct writer_border *in = a->g->inputs.items, *out = a->g->outputs.items;
  for (uint32_t i = 0; i < a->g->inputs.n; i++) {
    const int32_t value = add_argument(a, in[i].id, in[i].dynamic);
    if (!is_buffer(a->g, in[i].id)) write_pte_inputs(&a->w->pte, &value, 1);
  }
  for (uint32_t i = 0; i < a->g->outputs.n; i++) {
    const int32_t value = add_argument(a, out[i].id, out[i].dynamic);
    write_pte_outputs(&a->w->pte, &value, 1);
  }
}

/* Behind the delegate's call: aten::copy_(buffer, made, false). */
static void add_updates(struct around *a, const int32_t *made) {
  const struct writer_update *rows = a->g->updates.items;
  const struct writer_value *values = a->g->values.items;
  if (a->g->updates.n == 0) return;
  const int32_t copy = write_pte_operator(&a->w->pte, "aten::copy_", "");
  for (uint32_t i = 0; i < a->g->updates.n; i++) {
    const int32_t to = a->buffers[values[rows[i].to].buffer];
    const int32_t blocking = write_pte_value(&a->w->pte, literal_bool(false));
    write_pte_call_kernel(&a->w->pte, copy, ID_LIST(to, made[i], blocking, to));
  }
}

static void add_method(struct around *a, const char *name, struct span graph) {
  struct write_pte *pte = &a->w->pte;
  struct write_state *s = &pte->state;
  const struct writer_update *updates = a->g->updates.items;
  int32_t *made = arena_new(&a->w->arena, int32_t, a->g->updates.n);
  a->buffers = arena_new(&a->w->arena, int32_t, a->w->buffers.n);
  if (!made || !a->buffers) {
    fail(&s->err, SCONCE_NO_MEMORY, "no memory for a method");
    return;
  }
  struct write_blob blob = {0};
  write_blob_add(s, &blob, write_bytes(graph.data, graph.size), 1);
  write_pte_method(pte, name);
  a->memory = write_pte_buffer(pte, 0);
  if (has_buffers(a->g)) a->shared = write_pte_buffer(pte, (int64_t)a->w->buffers_end);
  add_border(a);
  for (uint32_t i = 0; i < a->g->updates.n; i++) made[i] = add_argument(a, updates[i].from, false);
  write_pte_buffer_size(pte, a->memory, a->end);
  const int32_t delegate = write_pte_delegate(pte, VK_BACKEND_ID, write_pte_segment(pte, &blob, 0));
  write_pte_call_delegate(pte, delegate, a->args.items, a->args.n);
  if (!write_failed(s)) add_updates(a, made);
}

/* The graph's blob in one piece, which can be verified. */
static sconce_status end_graph(sconce_graph *g, struct span *out, sconce_error *err) {
  const struct writer_border *outputs = g->outputs.items;
  const struct writer_update *updates = g->updates.items;
  struct write_blob blob;
  g->ended = true;
  for (uint32_t i = 0; i < g->outputs.n; i++) write_vk_outputs(&g->vk, &outputs[i].id, 1);
  for (uint32_t i = 0; i < g->updates.n; i++) write_vk_outputs(&g->vk, &updates[i].from, 1);
  TRY(write_vk_finish(&g->vk, &blob, err));
  return write_blob_to_memory(&blob, &g->writer->arena, out, err);
}

void sconce_writer_method(sconce_writer *writer, const char *name, sconce_graph *graph) {
  if (!is_open(writer)) return;
  struct write_state *s = &writer->pte.state;
  struct span bytes;
  if (!graph || graph->writer != writer || graph->ended) {
    fail(&s->err, SCONCE_BAD_ARGUMENT,
         "the graph of '%.*s' is not this writer's, or has a method already", TEXT(text_of(name)));
    return;
  }
  if (end_graph(graph, &bytes, &s->err) != SCONCE_OK) return;
  struct writer_method *row = write_list_add(s, &writer->methods, sizeof *row);
  if (row) *row = (struct writer_method){write_copy_text(s, name), bytes};
  if (!write_failed(s)) add_method(&(struct around){.w = writer, .g = graph}, name, bytes);
}

void sconce_writer_ints(sconce_writer *writer, const char *method, const int64_t *values,
                        uint32_t n) {
  if (!is_open(writer)) return;
  write_pte_constant_method(&writer->pte, method, NULL, 0);
  for (uint32_t i = 0; i < n; i++)
    write_pte_outputs(&writer->pte, ID_LIST(write_pte_value(&writer->pte, literal_int(values[i]))));
}

void sconce_writer_doubles(sconce_writer *writer, const char *method, const double *values,
                           uint32_t n) {
  if (!is_open(writer)) return;
  write_pte_constant_method(&writer->pte, method, NULL, 0);
  for (uint32_t i = 0; i < n; i++)
    write_pte_outputs(&writer->pte,
                      ID_LIST(write_pte_value(&writer->pte, literal_double(values[i]))));
}

void sconce_writer_bool(sconce_writer *writer, const char *method, bool value) {
  if (!is_open(writer)) return;
  write_pte_constant_method(&writer->pte, method, (struct literal[]){literal_bool(value)}, 1);
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Data that the program lacks is that of a .ptd, of which nothing is known here. */
static bool find_data(void *pte, struct text key, struct extent *out) {
  if (!pte_lookup(pte, key, out)) *out = (struct extent){.size = UINT64_MAX};
  return true;
}

static sconce_status verify_graphs(sconce_writer *w, struct pte *pte, sconce_error *err) {
  const struct writer_method *rows = w->methods.items;
  for (uint32_t i = 0; i < w->methods.n; i++) {
    struct vkgraph graph;
    const struct data_lookup named = {find_data, pte};
    sconce_status status = vkgraph_open(&graph, extent_of(rows[i].graph), named, err);
    if (status == SCONCE_OK) continue;
    error_prefix(err, "method '%.*s': ", TEXT(rows[i].name));
    return status;
  }
  return SCONCE_OK;
}

static sconce_status verify_names(const struct pte *pte, sconce_error *err) {
  for (uint32_t i = 0; i < pte->n_methods; i++) {
    const struct text name = pte_method(pte, i).name;
    for (uint32_t k = 0; k < i; k++)
      if (text_equal(pte_method(pte, k).name, name))
        return fail(err, SCONCE_BAD_ARGUMENT, "two methods are called '%.*s'", TEXT(name));
  }
  return SCONCE_OK;
}

/* Of what will be in the file only the flatbuffer in front is there. */
static struct extent extent_ahead(const struct write_blob *file) {
  struct span front = write_blob_front(file);
  return (struct extent){.data = front.data, .held = front.size, .size = file->size};
}

static sconce_status save(sconce_writer *w, const char *path, sconce_error *err) {
  struct write_blob file;
  struct pte pte;
  TRY(write_pte_finish(&w->pte, &file, err));
  TRY(pte_open(&pte, extent_ahead(&file), err));
  const uint32_t n = 2 * pte.data.named.n + 1;
  uint32_t *slots = arena_new(&w->arena, uint32_t, n);
  if (!slots) return fail(err, SCONCE_NO_MEMORY, "no memory for %u keys", pte.data.named.n);
  data_index(&pte.data, slots, n);
  TRY(verify_names(&pte, err));
  TRY(verify_graphs(w, &pte, err));
  return write_blob_to_file(&file, path, err);
}

static sconce_status save_data(sconce_writer *w, const char *path, sconce_error *err) {
  struct write_blob file;
  struct ptd ptd;
  if (w->pte.methods.n)
    return fail(err, SCONCE_BAD_ARGUMENT, "a data file has no methods, the writer has %u",
                w->pte.methods.n);
  TRY(write_ptd_finish(&w->ptd, &file, err));
  TRY(ptd_open(&ptd, extent_ahead(&file), err));
  return write_blob_to_file(&file, path, err);
}

/* What only saving needs does not stay with the writer. */
static sconce_status save_as(sconce_writer *w, const char *path, sconce_error *err,
                             sconce_status (*how)(sconce_writer *, const char *, sconce_error *)) {
  if (!w) return fail(err, SCONCE_BAD_ARGUMENT, "no writer");
  if (write_failed(&w->pte.state))
    return fail(err, w->pte.state.err.status, "%s", w->pte.state.err.text);
  const struct arena_mark before = arena_mark(&w->arena);
  sconce_status status = how(w, path, err);
  arena_rewind(&w->arena, before);
  return status;
}

sconce_status sconce_writer_save(sconce_writer *writer, const char *path, sconce_error *err) {
  return save_as(writer, path, err, save);
}

sconce_status sconce_writer_save_data(sconce_writer *writer, const char *path, sconce_error *err) {
  return save_as(writer, path, err, save_data);
}
