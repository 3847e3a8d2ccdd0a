/* What a program means: every index, size, constant and jump target of every method. The structure
 * is verified before; each part is visited once more, so this is linear as well. */
#include "format/pte_read.h"

#include "base/checked.h"
#include "format/schema.h"

#include <inttypes.h>

#define SHARING_FACTOR 256u

/* ---- tensors --------------------------------------------------------------------------------- */

static void read_allocation(struct fb_table a, struct pte_tensor *out) {
  out->planned = a.at != NULL;
  out->memory_id = fb_u32(a, ALLOCATION_MEMORY_ID, 0);
  out->memory_offset =
      (uint64_t)fb_u32(a, ALLOCATION_OFFSET_HIGH, 0) << 32 | fb_u32(a, ALLOCATION_OFFSET_LOW, 0);
}

static sconce_status read_extra_info(struct fb_table extra, struct pte_tensor *out,
                                     sconce_error *err) {
  int8_t location = fb_i8(extra, EXTRA_LOCATION, 0);
  out->external = location == 1;
  out->fqn = fb_text(extra, EXTRA_FULLY_QUALIFIED_NAME);
  out->device_type = fb_i8(extra, EXTRA_DEVICE_TYPE, 0);
  out->device_index = fb_i8(extra, EXTRA_DEVICE_INDEX, 0);
  if (location < 0 || location > 1)
    return fail(err, SCONCE_BAD_FILE, "location %d, known are 0 and 1", location);
  if (out->external && out->fqn.size == 0)
    return fail(err, SCONCE_BAD_FILE, "the tensor is external and has no name");
  return SCONCE_OK;
}

sconce_status pte_read_tensor(struct fb_table t, struct pte_tensor *out, sconce_error *err) {
  *out = (struct pte_tensor){0};
  TRY(data_shape_read(fb_i8(t, TENSOR_SCALAR_TYPE, 0), fb_vec(t, TENSOR_SIZES),
                      fb_vec(t, TENSOR_DIM_ORDER), &out->shape, err));
  int8_t dynamism = fb_i8(t, TENSOR_SHAPE_DYNAMISM, 0);
  int32_t storage_offset = fb_i32(t, TENSOR_STORAGE_OFFSET, 0);
  if (dynamism < PTE_STATIC || dynamism > PTE_DYNAMIC_UNBOUND)
    return fail(err, SCONCE_BAD_FILE, "shape_dynamism %d, known are 0 to 2", dynamism);
  if (storage_offset != 0)
    return fail(err, SCONCE_BAD_FILE, "storage_offset %d, expected 0", (int)storage_offset);
  out->dynamism = (enum pte_dynamism)dynamism;
  out->data_buffer_idx = fb_u32(t, TENSOR_DATA_BUFFER_IDX, 0);
  read_allocation(fb_sub(t, TENSOR_ALLOCATION_INFO), out);
  return read_extra_info(fb_sub(t, TENSOR_EXTRA_TENSOR_INFO), out, err);
}

/* Only starts are stored: a constant ends where the tensor's own size says. */
static sconce_status slice(struct extent area, uint64_t offset, const struct pte_tensor *t,
                           const char *name, struct extent *out, sconce_error *err) {
  if (extent_slice(area, offset, t->shape.nbytes, out)) return SCONCE_OK;
  return fail(err, SCONCE_BAD_FILE,
              "%s %u needs %" PRIu64 " bytes at %" PRIu64 ", there are %" PRIu64 " bytes", name,
              (unsigned)t->data_buffer_idx, t->shape.nbytes, offset, area.size);
}

sconce_status pte_read_bytes(const struct pte *pte, const struct pte_tensor *t, struct extent *out,
                             sconce_error *err) {
  const char *name = t->planned ? "initial value" : "constant";
  struct fb_vec offsets = t->planned ? pte->mutable_offsets : pte->constant_offsets;
  bool legacy = !t->planned && offsets.n == 0;
  uint32_t i = t->data_buffer_idx, n = legacy ? pte->constant_buffer.n : offsets.n;
  if (i >= n)
    return fail(err, SCONCE_BAD_FILE, "data_buffer_idx is %s %u, the program has %u", name,
                (unsigned)i, (unsigned)n);
  if (legacy)
    return slice(pte_inside(pte, fb_bytes(fb_table_at(pte->constant_buffer, i), BUFFER_STORAGE)), 0,
                 t, name, out, err);
  return slice(t->planned ? pte->mutable_segment : pte->constant_segment, fb_u64_at(offsets, i), t,
               name, out, err);
}

/* memory_id counts from 1: entry 0 of the list is reserved. */
static sconce_status check_planned(const struct pte_method *m, const struct pte_tensor *t,
                                   sconce_error *err) {
  if (t->memory_id == 0 || t->memory_id >= m->buffer_sizes.n)
    return fail(err, SCONCE_BAD_FILE, "memory_id %u, the method has planned buffers 1 to %" PRId64,
                (unsigned)t->memory_id, (int64_t)m->buffer_sizes.n - 1);
  uint64_t size = (uint64_t)fb_i64_at(m->buffer_sizes, t->memory_id), end;
  if (!add_u64(t->memory_offset, t->shape.nbytes, &end) || end > size)
    return fail(err, SCONCE_BAD_FILE,
                "%" PRIu64 " bytes at %" PRIu64 " of planned buffer %u, which has %" PRIu64,
                t->shape.nbytes, t->memory_offset, (unsigned)t->memory_id, size);
  return SCONCE_OK;
}

static sconce_status check_tensor(const struct pte_method *m, uint32_t i, sconce_error *err) {
  struct pte_tensor t;
  struct extent bytes;
  TRY(pte_read_tensor(pte_value_table(m, i), &t, err));
  if (t.planned) TRY(check_planned(m, &t, err));
  if (t.external || t.data_buffer_idx == 0) return SCONCE_OK;
  return pte_read_bytes(m->pte, &t, &bytes, err);
}

/* ---- values ---------------------------------------------------------------------------------- */

/* Lists of indices refer to values of one kind, never to another list, so there are no cycles. */
static sconce_status check_items(const struct pte_method *m, const struct pte_value *list,
                                 enum pte_kind want, sconce_error *err) {
  bool optional = list->kind == PTE_OPTIONAL_TENSOR_LIST;
  for (uint32_t i = 0; i < list->items.n; i++) {
    int64_t item = pte_list_item(list, i);
    if (optional && item == -1) continue;
    if (item < 0 || item >= m->n_values)
      return fail(err, SCONCE_BAD_FILE, "item %u is value %" PRId64 ", the method has %u values",
                  (unsigned)i, item, (unsigned)m->n_values);
    enum pte_kind kind = pte_value_kind(m, (uint32_t)item);
    if (kind != want && !(optional && kind == PTE_NULL))
      return fail(err, SCONCE_BAD_FILE, "item %u is value %" PRId64 ", a %s instead of a %s",
                  (unsigned)i, item, pte_kind_name(kind), pte_kind_name(want));
  }
  return SCONCE_OK;
}

static sconce_status check_value(const struct pte_method *m, uint32_t i, sconce_error *err) {
  enum pte_kind kind = pte_value_kind(m, i);
  if (kind == PTE_TENSOR) return check_tensor(m, i, err);
  struct pte_value v = pte_value(m, i);
  if (kind == PTE_INT_LIST) return check_items(m, &v, PTE_INT, err);
  if (kind == PTE_TENSOR_LIST || kind == PTE_OPTIONAL_TENSOR_LIST)
    return check_items(m, &v, PTE_TENSOR, err);
  return SCONCE_OK;
}

static sconce_status check_values(const struct pte_method *m, sconce_error *err) {
  for (uint32_t i = 0; i < m->n_values; i++) {
    sconce_status status = check_value(m, i, err);
    if (status == SCONCE_OK) continue;
    error_prefix(err, "value %u (%s): ", (unsigned)i, pte_kind_name(pte_value_kind(m, i)));
    return status;
  }
  return SCONCE_OK;
}

static sconce_status check_indices(const struct pte_method *m, struct fb_vec list, const char *name,
                                   sconce_error *err) {
  for (uint32_t i = 0; i < list.n; i++) {
    int32_t at = fb_i32_at(list, i);
    if (at < 0 || (uint32_t)at >= m->n_values)
      return fail(err, SCONCE_BAD_FILE, "%s %u is value %d, the method has %u values", name,
                  (unsigned)i, (int)at, (unsigned)m->n_values);
  }
  return SCONCE_OK;
}

/* A caller's bytes are copied into an input, so it must not be read-only file bytes. */
static sconce_status check_inputs(const struct pte_method *m, sconce_error *err) {
  TRY(check_indices(m, m->inputs, "input", err));
  for (uint32_t i = 0; i < m->n_inputs; i++) {
    struct pte_value v = pte_value(m, fb_u32_at(m->inputs, i));
    if (v.kind == PTE_TENSOR && !v.tensor.planned &&
        (v.tensor.external || v.tensor.data_buffer_idx))
      return fail(err, SCONCE_BAD_FILE, "input %u is value %u, a constant", (unsigned)i,
                  (unsigned)fb_u32_at(m->inputs, i));
  }
  return SCONCE_OK;
}

/* ---- instructions ---------------------------------------------------------------------------- */

static sconce_status check_index(uint32_t i, uint32_t n, const char *what, sconce_error *err) {
  if (i < n) return SCONCE_OK;
  return fail(err, SCONCE_BAD_FILE, "%s %d, there are %u", what, (int)(int32_t)i, (unsigned)n);
}

static sconce_status check_jump(const struct pte_method *m, const struct pte_instruction *in,
                                uint32_t n_instructions, sconce_error *err) {
  TRY(check_index(in->value, m->n_values, "condition is value", err));
  enum pte_kind kind = pte_value_kind(m, in->value);
  if (kind != PTE_BOOL && kind != PTE_TENSOR &&
      kind != PTE_INT) /* Int: a placeholder for a result */
    return fail(err, SCONCE_BAD_FILE, "condition is value %u, a %s", (unsigned)in->value,
                pte_kind_name(kind));
  if (in->destination > n_instructions)
    return fail(err, SCONCE_BAD_FILE, "jump to instruction %d of %u", (int)(int32_t)in->destination,
                (unsigned)n_instructions);
  return SCONCE_OK;
}

static sconce_status check_instruction(const struct pte_method *m, uint32_t chain, uint32_t i,
                                       uint32_t n, sconce_error *err) {
  struct pte_instruction in = pte_instruction(m, chain, i);
  switch (in.kind) {
  case PTE_KERNEL_CALL:
    TRY(check_index(in.index, m->n_operators, "operator", err));
    return check_indices(m, in.args, "argument", err);
  case PTE_DELEGATE_CALL:
    TRY(check_index(in.index, m->n_delegates, "delegate", err));
    return check_indices(m, in.args, "argument", err);
  case PTE_MOVE_CALL:
    TRY(check_index(in.value, m->n_values, "move from value", err));
    return check_index(in.to, m->n_values, "move to value", err);
  case PTE_JUMP_FALSE_CALL:
    return check_jump(m, &in, n, err);
  case PTE_FREE_CALL:
    return check_index(in.value, m->n_values, "free of value", err);
  }
  return SCONCE_OK;
}

static sconce_status check_chains(const struct pte_method *m, sconce_error *err) {
  for (uint32_t c = 0; c < m->n_chains; c++) {
    uint32_t n = pte_n_instructions(m, c);
    for (uint32_t i = 0; i < n; i++) {
      sconce_status status = check_instruction(m, c, i, n, err);
      if (status == SCONCE_OK) continue;
      error_prefix(err, "chain %u, instruction %u: ", (unsigned)c, (unsigned)i);
      return status;
    }
  }
  return SCONCE_OK;
}

/* ---- methods --------------------------------------------------------------------------------- */

static sconce_status check_operators(const struct pte_method *m, sconce_error *err) {
  for (uint32_t i = 0; i < m->n_operators; i++) {
    struct pte_operator op = pte_operator(m, i);
    if (op.name.size + op.overload.size + 2 > PTE_OPERATOR_SIZE || op.name.size == 0)
      return fail(err, SCONCE_BAD_FILE,
                  "operator %u has a name of %zu and an overload of %zu bytes", (unsigned)i,
                  op.name.size, op.overload.size);
  }
  return SCONCE_OK;
}

static sconce_status check_delegates(const struct pte_method *m, sconce_error *err) {
  for (uint32_t i = 0; i < m->n_delegates; i++) {
    struct fb_table processed = fb_sub(fb_table_at(m->delegates, i), DELEGATE_PROCESSED);
    int8_t location = fb_i8(processed, PROCESSED_LOCATION, 0);
    uint32_t index = fb_u32(processed, PROCESSED_INDEX, 0);
    uint32_t n = location == 0 ? m->pte->inline_delegates.n : m->pte->data.segments.n;
    if (location < 0 || location > 1)
      return fail(err, SCONCE_BAD_FILE, "delegate %u has location %d, known are 0 and 1",
                  (unsigned)i, location);
    if (index >= n)
      return fail(err, SCONCE_BAD_FILE, "delegate %u is in %s %u, there are %u", (unsigned)i,
                  location == 0 ? "inline data" : "segment", (unsigned)index, (unsigned)n);
  }
  return SCONCE_OK;
}

static sconce_status check_buffers(const struct pte_method *m, sconce_error *err) {
  int64_t sum = 0;
  for (uint32_t i = 0; i < m->buffer_sizes.n; i++) {
    int64_t size = fb_i64_at(m->buffer_sizes, i);
    if (size < 0 || !add_i64(sum, size, &sum))
      return fail(err, SCONCE_BAD_FILE, "planned buffer %u has %" PRId64 " bytes", (unsigned)i,
                  size);
  }
  return SCONCE_OK;
}

static sconce_status check_method(const struct pte_method *m, sconce_error *err) {
  TRY(check_buffers(m, err));
  TRY(check_values(m, err));
  TRY(check_inputs(m, err));
  TRY(check_indices(m, m->outputs, "output", err));
  TRY(check_operators(m, err));
  TRY(check_delegates(m, err));
  return check_chains(m, err);
}

/* Each delegate's blob will be verified on its own, so thousands of delegates must not share one
 * large blob. Equal layers do share theirs, a few dozen times. */
static sconce_status check_sharing(const struct pte *pte, sconce_error *err) {
  uint64_t limit = SHARING_FACTOR * pte->data.file.size, sum = 0;
  for (uint32_t i = 0; i < pte->n_methods; i++) {
    struct pte_method m = pte_method(pte, i);
    for (uint32_t d = 0; d < m.n_delegates; d++) {
      sum += pte_delegate(&m, d).blob.size;
      if (sum > limit)
        return fail(err, SCONCE_BAD_FILE, "the delegates refer to the file more than %u times over",
                    SHARING_FACTOR);
    }
  }
  return SCONCE_OK;
}

sconce_status pte_verify(const struct pte *pte, sconce_error *err) {
  if (pte->n_methods == 0) return fail(err, SCONCE_BAD_FILE, "the program has no method");
  for (uint32_t i = 0; i < pte->n_methods; i++) {
    struct pte_method m = pte_method(pte, i);
    sconce_status status = check_method(&m, err);
    if (status == SCONCE_OK) continue;
    error_prefix(err, "method '%.*s': ", TEXT(m.name));
    return status;
  }
  return check_sharing(pte, err);
}
