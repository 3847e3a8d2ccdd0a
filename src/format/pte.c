/* Opening a program, and the accessors: see pte.h. Views are made anew on each call; the file is
 * the only store. */
#include "format/pte.h"

#include "base/checked.h"
#include "format/pte_read.h"
#include "format/schema.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- open ------------------------------------------------------------------------------------ */

/* The extended header sits behind the identifier, inside the flatbuffer's bytes. Positions in the
 * file: 8 magic, 12 length, 16 program_size, 24 segment_base_offset, 32 segment_data_size. */
enum { HEADER_AT = 8, HEADER_MIN = 24, HEADER_WITH_DATA_SIZE = 32 };

static sconce_status check_identifier(struct extent file, sconce_error *err) {
  if (file.held < HEADER_AT)
    return fail(err, SCONCE_BAD_FILE, "%" PRIu64 " bytes are too few for a program", file.held);
  const char *id = (const char *)file.data + 4;
  if (memcmp(id, "ET12", 4) == 0) return SCONCE_OK;
  if (memcmp(id, "ET", 2) == 0)
    return fail(err, SCONCE_UNSUPPORTED, "a program of format '%.4s', this reader knows ET12", id);
  return fail(err, SCONCE_BAD_FILE, "not a program: identifier '%.4s' instead of ET12", id);
}

/* Segments lie behind the flatbuffer. Without segment_data_size (old writers) the file's end is
 * theirs. */
static sconce_status place_segments(struct pte *out, uint64_t data_size, sconce_error *err) {
  struct data *d = &out->data;
  if (d->base == 0 && data_size == 0) return SCONCE_OK;
  if (d->base < out->program_size || d->base > d->file.size)
    return fail(err, SCONCE_BAD_FILE,
                "segments start at %" PRIu64 ", the program ends at %" PRIu64
                " and the file has %" PRIu64 " bytes",
                d->base, out->program_size, d->file.size);
  d->end = d->file.size;
  if (data_size == 0) return SCONCE_OK;
  if (!add_u64(d->base, data_size, &d->end) || d->end > d->file.size)
    return fail(err, SCONCE_BAD_FILE,
                "segments start at %" PRIu64 " and have %" PRIu64 " bytes, the file has %" PRIu64
                " bytes: is it cut short?",
                d->base, data_size, d->file.size);
  return SCONCE_OK;
}

static sconce_status read_header(struct pte *out, sconce_error *err) {
  struct extent file = out->data.file;
  const uint8_t *header = file.data + HEADER_AT;
  out->program_size = file.size;
  if (file.held < HEADER_AT + 4 || memcmp(header, "eh00", 4) != 0) return SCONCE_OK;
  out->has_header = true;
  if (file.held < HEADER_AT + HEADER_MIN)
    return fail(err, SCONCE_BAD_FILE, "the file has %" PRIu64 " bytes and ends inside its header",
                file.size);
  uint32_t size = load_u32(header + 4);
  out->program_size = load_u64(header + 8);
  out->data.base = load_u64(header + 16);
  if (size < HEADER_MIN || size > file.size - HEADER_AT)
    return fail(err, SCONCE_BAD_FILE,
                "the header has %u bytes, at least %d and at most %" PRIu64 " fit", (unsigned)size,
                HEADER_MIN, file.size - HEADER_AT);
  if (out->program_size < HEADER_AT + (uint64_t)size || out->program_size > file.size)
    return fail(err, SCONCE_BAD_FILE,
                "the program has %" PRIu64 " bytes, the file has %" PRIu64
                " bytes: is it cut short?",
                out->program_size, file.size);
  return place_segments(out, size >= HEADER_WITH_DATA_SIZE ? load_u64(header + 24) : 0, err);
}

/* offsets[0] is reserved, so a list with one entry stores nothing and its segment is not looked at.
 */
static sconce_status find_subsegments(const struct pte *pte, struct fb_table t, const char *name,
                                      struct fb_vec *offsets, struct extent *segment,
                                      sconce_error *err) {
  *offsets = fb_vec(t, SUBSEGMENT_OFFSETS);
  if (offsets->n <= 1) return SCONCE_OK;
  uint32_t i = fb_u32(t, SUBSEGMENT_SEGMENT_INDEX, 0);
  if (i >= pte->data.segments.n)
    return fail(err, SCONCE_BAD_FILE, "%s is in segment %u, the file has %u segments", name,
                (unsigned)i, (unsigned)pte->data.segments.n);
  *segment = data_segment(&pte->data, i);
  return SCONCE_OK;
}

static sconce_status find_constants(struct pte *out, sconce_error *err) {
  TRY(find_subsegments(out, fb_sub(out->program, PROGRAM_CONSTANT_SEGMENT), "constant_segment",
                       &out->constant_offsets, &out->constant_segment, err));
  if (out->constant_offsets.n > 0 && out->constant_buffer.n > 0)
    return fail(err, SCONCE_BAD_FILE, "%u constants inline and %u in a segment, expected only one",
                (unsigned)out->constant_buffer.n, (unsigned)out->constant_offsets.n);
  struct fb_vec list = fb_vec(out->program, PROGRAM_MUTABLE_DATA_SEGMENTS);
  return find_subsegments(out, fb_table_at(list, 0), "mutable_data_segments[0]",
                          &out->mutable_offsets, &out->mutable_segment, err);
}

sconce_status pte_front(struct extent file, uint64_t *size, sconce_error *err) {
  struct pte pte = {.data.file = file};
  TRY(check_identifier(file, err));
  TRY(read_header(&pte, err));
  *size = pte.program_size;
  return SCONCE_OK;
}

static sconce_status open_program(struct pte *out, sconce_error *err) {
  TRY(check_identifier(out->data.file, err));
  TRY(read_header(out, err));
  if (out->program_size > out->data.file.held)
    return fail(err, SCONCE_BAD_ARGUMENT, "%" PRIu64 " bytes of a flatbuffer of %" PRIu64,
                out->data.file.held, out->program_size);
  struct span bytes = {out->data.file.data, (size_t)out->program_size};
  TRY(fb_verify(bytes, "ET12", &schema_program, 0, &out->program, err));
  out->data.segments = fb_vec(out->program, PROGRAM_SEGMENTS);
  out->data.named = fb_vec(out->program, PROGRAM_NAMED_DATA);
  out->plans = fb_vec(out->program, PROGRAM_EXECUTION_PLAN);
  out->n_methods = out->plans.n;
  out->inline_delegates = fb_vec(out->program, PROGRAM_BACKEND_DELEGATE_DATA);
  out->constant_buffer = fb_vec(out->program, PROGRAM_CONSTANT_BUFFER);
  TRY(data_verify(&out->data, err));
  TRY(find_constants(out, err));
  return pte_verify(out, err);
}

sconce_status pte_open(struct pte *out, struct extent file, sconce_error *err) {
  *out = (struct pte){.data.file = file};
  sconce_status status = open_program(out, err);
  if (status != SCONCE_OK) *out = (struct pte){0};
  return status;
}

bool pte_probe(struct span file) { return file.size >= 8 && memcmp(file.data + 4, "ET", 2) == 0; }

/* ---- methods --------------------------------------------------------------------------------- */

struct pte_method pte_method(const struct pte *pte, uint32_t i) {
  struct fb_table plan = fb_table_at(pte->plans, i);
  struct pte_method m = {
      .pte = pte,
      .plan = plan,
      .name = fb_text(plan, PLAN_NAME),
      .values = fb_vec(plan, PLAN_VALUES),
      .chains = fb_vec(plan, PLAN_CHAINS),
      .operators = fb_vec(plan, PLAN_OPERATORS),
      .delegates = fb_vec(plan, PLAN_DELEGATES),
      .inputs = fb_vec(plan, PLAN_INPUTS),
      .outputs = fb_vec(plan, PLAN_OUTPUTS),
      .buffer_sizes = fb_vec(plan, PLAN_NON_CONST_BUFFER_SIZES),
  };
  m.n_values = m.values.n;
  m.n_chains = m.chains.n;
  m.n_operators = m.operators.n;
  m.n_delegates = m.delegates.n;
  m.n_inputs = m.inputs.n;
  m.n_outputs = m.outputs.n;
  return m;
}

bool pte_find_method(const struct pte *pte, struct text name, struct pte_method *out) {
  for (uint32_t i = 0; i < pte->n_methods; i++) {
    *out = pte_method(pte, i);
    if (text_equal(out->name, name)) return true;
  }
  return false;
}

bool pte_method_is_constant(const struct pte_method *m) {
  for (uint32_t c = 0; c < m->n_chains; c++)
    if (pte_n_instructions(m, c) > 0) return false;
  return m->n_inputs == 0;
}

/* ---- values ---------------------------------------------------------------------------------- */

enum pte_kind pte_value_kind(const struct pte_method *m, uint32_t i) {
  return (enum pte_kind)fb_u8(fb_table_at(m->values, i), UNION_TYPE, 0);
}

struct fb_table pte_value_table(const struct pte_method *m, uint32_t i) {
  return fb_sub(fb_table_at(m->values, i), UNION_VALUE);
}

struct pte_value pte_value(const struct pte_method *m, uint32_t i) {
  struct pte_value v = {.kind = pte_value_kind(m, i)};
  struct fb_table t = pte_value_table(m, i);
  switch (v.kind) {
  case PTE_NULL:
    break;
  case PTE_INT:
    v.i = fb_i64(t, SCALAR_VAL, 0);
    break;
  case PTE_BOOL:
    v.b = fb_bool(t, SCALAR_VAL);
    break;
  case PTE_DOUBLE:
    v.d = fb_f64(t, SCALAR_VAL, 0);
    break;
  case PTE_TENSOR:
    (void)pte_read_tensor(t, &v.tensor, NULL);
    break;
  case PTE_STRING:
    v.text = fb_text(t, SCALAR_VAL);
    break;
  case PTE_INT_LIST:
  case PTE_DOUBLE_LIST:
  case PTE_BOOL_LIST:
  case PTE_TENSOR_LIST:
  case PTE_OPTIONAL_TENSOR_LIST:
    v.items = fb_vec(t, LIST_ITEMS);
    break;
  }
  return v;
}

int64_t pte_list_item(const struct pte_value *list, uint32_t i) {
  if (i >= list->items.n) return -1;
  return list->kind == PTE_INT_LIST ? fb_i64_at(list->items, i) : fb_i32_at(list->items, i);
}

const char *pte_kind_name(enum pte_kind kind) {
  static const char *const names[] = {
      "none",   "Null",    "Int",        "Bool",     "Double",     "Tensor",
      "String", "IntList", "DoubleList", "BoolList", "TensorList", "OptionalTensorList",
  };
  return (size_t)kind < sizeof names / sizeof *names ? names[kind] : "unknown";
}

bool pte_tensor_bytes(const struct pte *pte, const struct pte_tensor *t, struct extent *out) {
  if (t->external || t->data_buffer_idx == 0) return false;
  return pte_read_bytes(pte, t, out, NULL) == SCONCE_OK;
}

/* ---- code ------------------------------------------------------------------------------------ */

static struct fb_vec instructions(const struct pte_method *m, uint32_t chain) {
  return fb_vec(fb_table_at(m->chains, chain), CHAIN_INSTRUCTIONS);
}

uint32_t pte_n_instructions(const struct pte_method *m, uint32_t chain) {
  return instructions(m, chain).n;
}

struct pte_instruction pte_instruction(const struct pte_method *m, uint32_t chain, uint32_t i) {
  struct fb_table t = fb_table_at(instructions(m, chain), i);
  struct fb_table args = fb_sub(t, UNION_VALUE);
  struct pte_instruction out = {.kind = (enum pte_instruction_kind)fb_u8(t, UNION_TYPE, 0)};
  switch (out.kind) {
  case PTE_KERNEL_CALL:
  case PTE_DELEGATE_CALL: /* both have the same two fields */
    out.index = fb_u32(args, KERNEL_CALL_OP_INDEX, 0);
    out.args = fb_vec(args, KERNEL_CALL_ARGS);
    break;
  case PTE_MOVE_CALL:
    out.value = fb_u32(args, MOVE_CALL_MOVE_FROM, 0);
    out.to = fb_u32(args, MOVE_CALL_MOVE_TO, 0);
    break;
  case PTE_JUMP_FALSE_CALL:
    out.value = fb_u32(args, JUMP_FALSE_COND_VALUE_INDEX, 0);
    out.destination = fb_u32(args, JUMP_FALSE_DESTINATION, 0);
    break;
  case PTE_FREE_CALL:
    out.value = fb_u32(args, FREE_CALL_VALUE_INDEX, 0);
    break;
  }
  return out;
}

struct pte_operator pte_operator(const struct pte_method *m, uint32_t i) {
  struct fb_table t = fb_table_at(m->operators, i);
  return (struct pte_operator){fb_text(t, OPERATOR_NAME), fb_text(t, OPERATOR_OVERLOAD)};
}

const char *pte_operator_text(const struct pte_method *m, uint32_t i, char out[PTE_OPERATOR_SIZE]) {
  struct pte_operator op = pte_operator(m, i);
  snprintf(out, PTE_OPERATOR_SIZE, "%.*s%s%.*s", (int)op.name.size,
           op.name.size ? op.name.data : "", op.overload.size ? "." : "", (int)op.overload.size,
           op.overload.size ? op.overload.data : "");
  return out;
}

/* ---- delegates ------------------------------------------------------------------------------- */

struct extent pte_inside(const struct pte *pte, struct span bytes) {
  struct extent out;
  const uint64_t offset = bytes.data ? (uint64_t)(bytes.data - pte->data.file.data) : 0;
  return extent_slice(pte->data.file, offset, bytes.size, &out) ? out : (struct extent){0};
}

struct pte_delegate pte_delegate(const struct pte_method *m, uint32_t i) {
  struct fb_table t = fb_table_at(m->delegates, i), processed = fb_sub(t, DELEGATE_PROCESSED);
  const struct pte *pte = m->pte;
  uint32_t index = fb_u32(processed, PROCESSED_INDEX, 0);
  struct pte_delegate out = {.id = fb_text(t, DELEGATE_ID),
                             .specs = fb_vec(t, DELEGATE_COMPILE_SPECS)};
  if (fb_i8(processed, PROCESSED_LOCATION, 0) == 0) {
    out.blob =
        pte_inside(pte, fb_bytes(fb_table_at(pte->inline_delegates, index), INLINE_DATA_DATA));
  } else {
    out.blob = data_segment(&pte->data, index);
  }
  return out;
}

struct pte_spec pte_delegate_spec(const struct pte_delegate *d, uint32_t i) {
  struct fb_table t = fb_table_at(d->specs, i);
  return (struct pte_spec){fb_text(t, COMPILE_SPEC_KEY), fb_bytes(t, COMPILE_SPEC_VALUE)};
}

/* ---- named data ------------------------------------------------------------------------------ */

bool pte_find_named(const struct pte *pte, struct text key, struct extent *out) {
  uint32_t i;
  if (!data_find(&pte->data, key, &i)) return false;
  *out = data_named(&pte->data, i);
  return true;
}

bool pte_lookup(void *pte, struct text key, struct extent *out) {
  return pte_find_named(pte, key, out);
}
