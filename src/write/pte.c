/* Programs: what the caller says, kept until the file is finished. */
#include "write/program.h"

#include "base/checked.h"
#include "format/schema.h"

enum { HEADER_SIZE = 32 };

void write_pte_init(struct write_pte *w, struct arena *arena) {
  *w = (struct write_pte){.state = {.arena = arena}};
  write_segment_add(&w->state, &w->segments, &(struct write_blob){0}, 0);
  write_list_add(&w->state, &w->constant_offsets, sizeof(uint64_t));
}

/* ---- data ------------------------------------------------------------------------------------ */

int32_t write_pte_segment(struct write_pte *w, const struct write_blob *bytes, uint64_t align) {
  return write_segment_add(&w->state, &w->segments, bytes, align);
}

void write_pte_named(struct write_pte *w, const char *key, int32_t segment) {
  struct write_pte_named *row = write_list_add(&w->state, &w->named, sizeof *row);
  if (row) *row = (struct write_pte_named){write_copy_text(&w->state, key), segment};
}

int32_t write_pte_named_data(struct write_pte *w, const char *key, sconce_bytes bytes) {
  struct write_blob blob = {0};
  write_blob_add(&w->state, &blob, bytes, 1);
  int32_t segment = write_pte_segment(w, &blob, 0);
  write_pte_named(w, key, segment);
  return segment;
}

/* Appends to a segment that others share and notes where. */
static int32_t add_subsegment(struct write_pte *w, int32_t segment, struct write_list *offsets,
                              sconce_bytes bytes, uint64_t align) {
  int32_t id = write_next_id(&w->state, offsets);
  uint64_t *offset = write_list_add(&w->state, offsets, sizeof *offset);
  if (!offset) return -1;
  struct write_segment *rows = w->segments.items;
  *offset = write_blob_add(&w->state, &rows[segment].bytes, bytes, align);
  return id;
}

static int32_t add_inline(struct write_pte *w, struct write_list *list,
                          const struct write_blob *bytes) {
  int32_t id = write_next_id(&w->state, list);
  struct write_blob *row = write_list_add(&w->state, list, sizeof *row);
  if (!row) return -1;
  write_blob_append(&w->state, row, bytes, 1);
  return id;
}

int32_t write_pte_constant(struct write_pte *w, sconce_bytes bytes) {
  if (!w->constants_inline) return add_subsegment(w, 0, &w->constant_offsets, bytes, DATA_ALIGN);
  struct write_blob blob = {0};
  if (w->inline_constants.n == 0) add_inline(w, &w->inline_constants, &blob);
  write_blob_add(&w->state, &blob, bytes, 1);
  return add_inline(w, &w->inline_constants, &blob);
}

/* Initial values are copied at load, so they are not aligned. */
int32_t write_pte_mutable(struct write_pte *w, sconce_bytes bytes) {
  if (w->mutable_segment == 0) {
    w->mutable_segment = write_pte_segment(w, &(struct write_blob){0}, 0);
    write_list_add(&w->state, &w->mutable_offsets, sizeof(uint64_t));
  }
  return add_subsegment(w, w->mutable_segment, &w->mutable_offsets, bytes, 1);
}

/* ---- methods --------------------------------------------------------------------------------- */

void write_pte_method(struct write_pte *w, const char *name) {
  struct write_pte_method *m = write_list_add(&w->state, &w->methods, sizeof *m);
  if (!m) return;
  m->name = write_copy_text(&w->state, name);
  write_list_add(&w->state, &m->buffer_sizes, sizeof(int64_t));
  write_pte_chain(w);
}

/* The method begun last; NULL after a failure. */
static struct write_pte_method *current(struct write_pte *w) {
  if (write_failed(&w->state)) return NULL;
  struct write_pte_method *methods = w->methods.items;
  if (w->methods.n) return &methods[w->methods.n - 1];
  fail(&w->state.err, SCONCE_BAD_ARGUMENT, "no method was begun");
  return NULL;
}

/* A new row of a list of the current method, and its index. */
static void *add_row(struct write_pte *w, struct write_list *list, size_t size, int32_t *id) {
  *id = write_next_id(&w->state, list);
  void *row = write_list_add(&w->state, list, size);
  if (!row) *id = -1;
  return row;
}

void write_pte_chain(struct write_pte *w) {
  struct write_pte_method *m = current(w);
  if (m) write_list_add(&w->state, &m->chains, sizeof(struct write_pte_chain));
}

static int32_t add_value(struct write_pte *w, const struct write_pte_value *value) {
  struct write_pte_method *m = current(w);
  int32_t id = -1;
  struct write_pte_value *row = m ? add_row(w, &m->values, sizeof *row, &id) : NULL;
  if (row) *row = *value;
  return id;
}

int32_t write_pte_value(struct write_pte *w, struct literal value) {
  if (!write_failed(&w->state) && !write_pte_union_kind(value.kind))
    fail(&w->state.err, SCONCE_BAD_ARGUMENT, "a program has no values of literal kind %d",
         (int)value.kind);
  literal_keep(&w->state, &value);
  return add_value(w, &(struct write_pte_value){.literal = value});
}

int32_t write_pte_tensor(struct write_pte *w, const struct write_pte_tensor *tensor) {
  struct write_pte_value value = {.is_tensor = true, .tensor.fields = *tensor};
  value.tensor.shape = write_shape_keep(&w->state, tensor->sizes, tensor->dim_order, tensor->rank);
  value.tensor.name = write_copy_text(&w->state, tensor->fully_qualified_name);
  return add_value(w, &value);
}

void write_pte_inputs(struct write_pte *w, const int32_t *ids, uint32_t n) {
  struct write_pte_method *m = current(w);
  if (m) write_add_ids(&w->state, &m->inputs, ids, n);
}

void write_pte_outputs(struct write_pte *w, const int32_t *ids, uint32_t n) {
  struct write_pte_method *m = current(w);
  if (m) write_add_ids(&w->state, &m->outputs, ids, n);
}

int32_t write_pte_buffer(struct write_pte *w, int64_t size) {
  struct write_pte_method *m = current(w);
  int32_t id = -1;
  int64_t *row = m ? add_row(w, &m->buffer_sizes, sizeof *row, &id) : NULL;
  if (row) *row = size;
  return id;
}

/* ---- operators and delegates ----------------------------------------------------------------- */

int32_t write_pte_operator(struct write_pte *w, const char *name, const char *overload) {
  struct write_pte_method *m = current(w);
  int32_t id = -1;
  struct write_pte_operator *row = m ? add_row(w, &m->operators, sizeof *row, &id) : NULL;
  if (row)
    *row = (struct write_pte_operator){write_copy_text(&w->state, name),
                                       write_copy_text(&w->state, overload)};
  return id;
}

static int32_t add_delegate(struct write_pte *w, const char *id, bool in_segment, int32_t index) {
  struct write_pte_method *m = current(w);
  int32_t at = -1;
  struct write_pte_delegate *row = m ? add_row(w, &m->delegates, sizeof *row, &at) : NULL;
  if (row)
    *row = (struct write_pte_delegate){write_copy_text(&w->state, id), in_segment, index, {0}};
  return at;
}

int32_t write_pte_delegate(struct write_pte *w, const char *id, int32_t segment) {
  return add_delegate(w, id, true, segment);
}

int32_t write_pte_delegate_inline(struct write_pte *w, const char *id,
                                  const struct write_blob *bytes) {
  int32_t index = add_inline(w, &w->inline_delegates, bytes);
  return add_delegate(w, id, false, index);
}

void write_pte_compile_spec(struct write_pte *w, const char *key, const void *data, uint32_t size) {
  struct write_pte_method *m = current(w);
  if (!m) return;
  if (m->delegates.n == 0) {
    fail(&w->state.err, SCONCE_BAD_ARGUMENT, "no delegate for the compile spec '%s'", key);
    return;
  }
  struct write_pte_delegate *last =
      (struct write_pte_delegate *)m->delegates.items + m->delegates.n - 1;
  struct write_pte_spec *row = write_list_add(&w->state, &last->specs, sizeof *row);
  if (!row) return;
  *row = (struct write_pte_spec){write_copy_text(&w->state, key),
                                 write_copy(&w->state, data, size, 1), size};
}

/* ---- instructions ---------------------------------------------------------------------------- */

static int32_t add_instruction(struct write_pte *w, struct write_pte_instruction instruction) {
  struct write_pte_method *m = current(w);
  if (!m) return -1;
  struct write_pte_chain *last = (struct write_pte_chain *)m->chains.items + m->chains.n - 1;
  int32_t id = -1;
  struct write_pte_instruction *row = add_row(w, &last->instructions, sizeof *row, &id);
  if (!row) return -1;
  *row = instruction;
  row->args = write_copy(&w->state, instruction.args, instruction.n_args, sizeof(int32_t));
  return id;
}

int32_t write_pte_call_kernel(struct write_pte *w, int32_t op, const int32_t *args, uint32_t n) {
  return add_instruction(w, (struct write_pte_instruction){PTE_KERNEL_CALL, op, 0, args, n});
}

int32_t write_pte_call_delegate(struct write_pte *w, int32_t delegate, const int32_t *args,
                                uint32_t n) {
  return add_instruction(w,
                         (struct write_pte_instruction){PTE_DELEGATE_CALL, delegate, 0, args, n});
}

int32_t write_pte_move(struct write_pte *w, int32_t from, int32_t to) {
  return add_instruction(w, (struct write_pte_instruction){PTE_MOVE_CALL, from, to, NULL, 0});
}

int32_t write_pte_jump_false(struct write_pte *w, int32_t condition, int32_t destination) {
  return add_instruction(
      w, (struct write_pte_instruction){PTE_JUMP_FALSE_CALL, condition, destination, NULL, 0});
}

int32_t write_pte_free(struct write_pte *w, int32_t value) {
  return add_instruction(w, (struct write_pte_instruction){PTE_FREE_CALL, value, 0, NULL, 0});
}

/* ---- whole methods --------------------------------------------------------------------------- */

/* Takes 16-aligned room for a tensor at *end; false if it does not fit. */
static bool plan(struct write_pte_tensor *t, uint64_t *end) {
  uint64_t bytes = scalar_size(t->scalar_type);
  for (uint32_t i = 0; i < t->rank; i++)
    if (t->sizes[i] < 0 || !mul_u64(bytes, (uint64_t)t->sizes[i], &bytes)) return false;
  t->memory_offset = round_up(*end, DATA_ALIGN);
  return add_u64(t->memory_offset, bytes, end) && *end <= INT64_MAX / 2;
}

int32_t write_pte_planned(struct write_pte *w, const struct write_pte_tensor *tensor,
                          int32_t memory, uint64_t *end) {
  struct write_pte_tensor t = *tensor;
  t.memory_id = (uint32_t)memory;
  if (!plan(&t, end) && !write_failed(&w->state))
    fail(&w->state.err, SCONCE_BAD_ARGUMENT, "the sizes of a tensor do not fit into memory");
  return write_pte_tensor(w, &t);
}

void write_pte_buffer_size(struct write_pte *w, int32_t memory, uint64_t size) {
  struct write_pte_method *m = current(w);
  if (m) ((int64_t *)m->buffer_sizes.items)[memory] = (int64_t)size;
}

/* What has neither memory nor bytes is planned. */
static int32_t add_border(struct write_pte *w, const struct write_pte_tensor *t, int32_t memory,
                          uint64_t *end) {
  const bool has_place = t->memory_id || t->data_buffer_idx || t->external;
  return has_place ? write_pte_tensor(w, t) : write_pte_planned(w, t, memory, end);
}

void write_pte_delegated(struct write_pte *w, const char *method, const struct write_blob *graph,
                         const struct write_pte_tensor *tensors, uint32_t n_inputs,
                         uint32_t n_outputs) {
  write_pte_method(w, method);
  int32_t buffer = write_pte_buffer(w, 0);
  struct write_list ids = {0};
  uint64_t end = 0;
  for (uint32_t i = 0; i < n_inputs + n_outputs; i++)
    write_add_ids(&w->state, &ids, ID_LIST(add_border(w, &tensors[i], buffer, &end)));
  write_pte_buffer_size(w, buffer, end);
  if (write_failed(&w->state)) return;
  const int32_t *id = ids.items;
  write_pte_inputs(w, id, n_inputs);
  if (n_outputs) write_pte_outputs(w, id + n_inputs, n_outputs);
  int32_t delegate = write_pte_delegate(w, VK_BACKEND_ID, write_pte_segment(w, graph, 0));
  write_pte_call_delegate(w, delegate, id, ids.n);
}

void write_pte_constant_method(struct write_pte *w, const char *name, const struct literal *values,
                               uint32_t n) {
  write_pte_method(w, name);
  for (uint32_t i = 0; i < n; i++) write_pte_outputs(w, ID_LIST(write_pte_value(w, values[i])));
}

/* ---- the file -------------------------------------------------------------------------------- */

sconce_status write_pte_finish(struct write_pte *w, struct write_blob *out, sconce_error *err) {
  struct write_blob data = {0};
  write_segments_lay_out(&w->state, &w->segments, &data);
  struct fbw program;
  fbw_begin(&program, &w->state, "ET12", data.size ? HEADER_SIZE : 0);
  write_pte_program(&program, w);
  if (data.size && !write_failed(&w->state)) {
    memcpy(program.data + HEADER_AT, "eh00", 4);
    fbw_set(&program, 12, HEADER_SIZE, 4);
    fbw_set(&program, 16, program.size, 8);
    fbw_set(&program, 24, round_up(program.size, SEGMENT_ALIGN), 8);
    fbw_set(&program, 32, data.size, 8);
  }
  return write_finish(&program, data.size ? &data : NULL, SEGMENT_ALIGN, out, err);
}
