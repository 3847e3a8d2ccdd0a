/* The flatbuffer of a program. Lists are always present, also empty ones, as the exporter does it;
 * what the format calls optional is absent when there is nothing to say. */
#include "write/program.h"

#include "format/schema.h"

enum { META_ENCODED_INP_STR, META_ENCODED_OUT_STR }; /* of ContainerMetadata */

uint8_t write_pte_union_kind(enum literal_kind kind) {
  static const uint8_t kinds[] = {
      [LITERAL_NULL] = PTE_NULL,           [LITERAL_INT] = PTE_INT,
      [LITERAL_BOOL] = PTE_BOOL,           [LITERAL_DOUBLE] = PTE_DOUBLE,
      [LITERAL_STRING] = PTE_STRING,       [LITERAL_INTS] = PTE_INT_LIST,
      [LITERAL_DOUBLES] = PTE_DOUBLE_LIST, [LITERAL_BOOLS] = PTE_BOOL_LIST,
      [LITERAL_VALUES] = PTE_TENSOR_LIST,  [LITERAL_OPTIONAL_VALUES] = PTE_OPTIONAL_TENSOR_LIST,
  };
  return (size_t)kind < sizeof kinds ? kinds[kind] : 0;
}

/* ---- values ---------------------------------------------------------------------------------- */

static void put_extra(struct fbw *w, uint32_t slot, const struct write_pte_tensor_kept *t) {
  uint32_t extra = FBW_TABLE(w, slot, fbw_ref(EXTRA_FULLY_QUALIFIED_NAME),
                             fbw_u64(EXTRA_MUTABLE_DATA_SEGMENTS_IDX, 0),
                             fbw_u8(EXTRA_LOCATION, t->fields.external));
  fbw_string(w, fbw_slot(w, extra, EXTRA_FULLY_QUALIFIED_NAME), t->name);
}

static void put_tensor(struct fbw *w, uint32_t slot, const struct write_pte_tensor_kept *t) {
  const struct write_pte_tensor *f = &t->fields;
  bool planned = f->memory_id != 0;
  bool extra = t->name.size || f->external;
  uint32_t table = FBW_TABLE(
      w, slot, fbw_i32(TENSOR_STORAGE_OFFSET, 0), fbw_ref(TENSOR_SIZES), fbw_ref(TENSOR_DIM_ORDER),
      fbw_i32(TENSOR_DATA_BUFFER_IDX, f->data_buffer_idx),
      fbw_ref_if(TENSOR_ALLOCATION_INFO, planned), fbw_ref_if(TENSOR_EXTRA_TENSOR_INFO, extra),
      fbw_u8(TENSOR_SCALAR_TYPE, (uint8_t)f->scalar_type), fbw_u8(TENSOR_REQUIRES_GRAD, 0),
      fbw_u8(TENSOR_LAYOUT, 0), fbw_u8(TENSOR_SHAPE_DYNAMISM, (uint8_t)f->dynamism));
  fbw_i32s(w, fbw_slot(w, table, TENSOR_SIZES), t->shape.sizes, t->shape.rank);
  fbw_bytes(w, fbw_slot(w, table, TENSOR_DIM_ORDER), t->shape.dim_order, t->shape.rank);
  if (planned)
    FBW_TABLE(w, fbw_slot(w, table, TENSOR_ALLOCATION_INFO),
              fbw_u32(ALLOCATION_MEMORY_ID, f->memory_id),
              fbw_u32(ALLOCATION_OFFSET_LOW, (uint32_t)f->memory_offset),
              fbw_u32(ALLOCATION_OFFSET_HIGH, (uint32_t)(f->memory_offset >> 32)));
  if (extra) put_extra(w, fbw_slot(w, table, TENSOR_EXTRA_TENSOR_INFO), t);
}

static void put_values(struct fbw *w, uint32_t slot, const struct write_list *values) {
  const struct write_pte_value *rows = values->items;
  uint32_t refs = fbw_refs(w, slot, values->n);
  for (uint32_t i = 0; i < values->n; i++) {
    const struct write_pte_value *v = &rows[i];
    uint8_t kind = v->is_tensor ? PTE_TENSOR : write_pte_union_kind(v->literal.kind);
    uint32_t member = fbw_union(w, refs + 4 * i, kind);
    if (v->is_tensor)
      put_tensor(w, member, &v->tensor);
    else
      literal_write(w, member, &v->literal);
  }
}

/* ---- code ------------------------------------------------------------------------------------ */

static void put_instruction(struct fbw *w, uint32_t slot, const struct write_pte_instruction *in) {
  uint32_t member = fbw_union(w, slot, in->kind), call;
  switch (in->kind) {
  case PTE_MOVE_CALL:
    FBW_TABLE(w, member, fbw_i32(MOVE_CALL_MOVE_FROM, in->a), fbw_i32(MOVE_CALL_MOVE_TO, in->b));
    break;
  case PTE_JUMP_FALSE_CALL:
    FBW_TABLE(w, member, fbw_i32(JUMP_FALSE_COND_VALUE_INDEX, in->a),
              fbw_i32(JUMP_FALSE_DESTINATION, in->b));
    break;
  case PTE_FREE_CALL:
    FBW_TABLE(w, member, fbw_i32(FREE_CALL_VALUE_INDEX, in->a));
    break;
  default: /* both calls have the same fields */
    call = FBW_TABLE(w, member, fbw_i32(KERNEL_CALL_OP_INDEX, in->a), fbw_ref(KERNEL_CALL_ARGS));
    fbw_i32s(w, fbw_slot(w, call, KERNEL_CALL_ARGS), in->args, in->n_args);
  }
}

static void put_chains(struct fbw *w, uint32_t slot, const struct write_list *chains) {
  const struct write_pte_chain *rows = chains->items;
  uint32_t refs = fbw_refs(w, slot, chains->n);
  for (uint32_t i = 0; i < chains->n; i++) {
    const struct write_pte_instruction *in = rows[i].instructions.items;
    uint32_t n = rows[i].instructions.n;
    uint32_t chain = FBW_TABLE(w, refs + 4 * i, fbw_ref(CHAIN_INPUTS), fbw_ref(CHAIN_OUTPUTS),
                               fbw_ref(CHAIN_INSTRUCTIONS));
    fbw_refs(w, fbw_slot(w, chain, CHAIN_INPUTS), 0);
    fbw_refs(w, fbw_slot(w, chain, CHAIN_OUTPUTS), 0);
    uint32_t slots = fbw_refs(w, fbw_slot(w, chain, CHAIN_INSTRUCTIONS), n);
    for (uint32_t k = 0; k < n; k++) put_instruction(w, slots + 4 * k, &in[k]);
  }
}

static void put_operators(struct fbw *w, uint32_t slot, const struct write_list *operators) {
  const struct write_pte_operator *rows = operators->items;
  uint32_t refs = fbw_refs(w, slot, operators->n);
  for (uint32_t i = 0; i < operators->n; i++) {
    uint32_t op = FBW_TABLE(w, refs + 4 * i, fbw_ref(OPERATOR_NAME), fbw_ref(OPERATOR_OVERLOAD));
    fbw_string(w, fbw_slot(w, op, OPERATOR_NAME), rows[i].name);
    fbw_string(w, fbw_slot(w, op, OPERATOR_OVERLOAD), rows[i].overload);
  }
}

static void put_specs(struct fbw *w, uint32_t slot, const struct write_list *specs) {
  const struct write_pte_spec *rows = specs->items;
  uint32_t refs = fbw_refs(w, slot, specs->n);
  for (uint32_t i = 0; i < specs->n; i++) {
    uint32_t spec =
        FBW_TABLE(w, refs + 4 * i, fbw_ref(COMPILE_SPEC_KEY), fbw_ref(COMPILE_SPEC_VALUE));
    fbw_string(w, fbw_slot(w, spec, COMPILE_SPEC_KEY), rows[i].key);
    fbw_bytes(w, fbw_slot(w, spec, COMPILE_SPEC_VALUE), rows[i].data, rows[i].size);
  }
}

static void put_delegates(struct fbw *w, uint32_t slot, const struct write_list *delegates) {
  const struct write_pte_delegate *rows = delegates->items;
  uint32_t refs = fbw_refs(w, slot, delegates->n);
  for (uint32_t i = 0; i < delegates->n; i++) {
    uint32_t d = FBW_TABLE(w, refs + 4 * i, fbw_ref(DELEGATE_ID), fbw_ref(DELEGATE_PROCESSED),
                           fbw_ref(DELEGATE_COMPILE_SPECS));
    fbw_string(w, fbw_slot(w, d, DELEGATE_ID), rows[i].id);
    FBW_TABLE(w, fbw_slot(w, d, DELEGATE_PROCESSED), fbw_i32(PROCESSED_INDEX, rows[i].index),
              fbw_u8(PROCESSED_LOCATION, rows[i].in_segment));
    put_specs(w, fbw_slot(w, d, DELEGATE_COMPILE_SPECS), &rows[i].specs);
  }
}

/* ---- methods --------------------------------------------------------------------------------- */

/* How Python nests the arguments; no runtime reads it, the exporter's own reader wants it there. */
static void put_container_meta(struct fbw *w, uint32_t slot) {
  uint32_t meta = FBW_TABLE(w, slot, fbw_ref(META_ENCODED_INP_STR), fbw_ref(META_ENCODED_OUT_STR));
  fbw_string(w, fbw_slot(w, meta, META_ENCODED_INP_STR), text_of(""));
  fbw_string(w, fbw_slot(w, meta, META_ENCODED_OUT_STR), text_of(""));
}

static void put_method(struct fbw *w, uint32_t slot, const struct write_pte_method *m) {
  uint32_t plan = FBW_TABLE(w, slot, fbw_ref(PLAN_NAME), fbw_ref(PLAN_CONTAINER_META_TYPE),
                            fbw_ref(PLAN_VALUES), fbw_ref(PLAN_INPUTS), fbw_ref(PLAN_OUTPUTS),
                            fbw_ref(PLAN_CHAINS), fbw_ref(PLAN_OPERATORS), fbw_ref(PLAN_DELEGATES),
                            fbw_ref(PLAN_NON_CONST_BUFFER_SIZES));
  fbw_string(w, fbw_slot(w, plan, PLAN_NAME), m->name);
  put_container_meta(w, fbw_slot(w, plan, PLAN_CONTAINER_META_TYPE));
  put_values(w, fbw_slot(w, plan, PLAN_VALUES), &m->values);
  fbw_i32s(w, fbw_slot(w, plan, PLAN_INPUTS), m->inputs.items, m->inputs.n);
  fbw_i32s(w, fbw_slot(w, plan, PLAN_OUTPUTS), m->outputs.items, m->outputs.n);
  put_chains(w, fbw_slot(w, plan, PLAN_CHAINS), &m->chains);
  put_operators(w, fbw_slot(w, plan, PLAN_OPERATORS), &m->operators);
  put_delegates(w, fbw_slot(w, plan, PLAN_DELEGATES), &m->delegates);
  fbw_i64s(w, fbw_slot(w, plan, PLAN_NON_CONST_BUFFER_SIZES), m->buffer_sizes.items,
           m->buffer_sizes.n);
}

static void put_methods(struct fbw *w, uint32_t slot, const struct write_list *methods) {
  const struct write_pte_method *rows = methods->items;
  uint32_t refs = fbw_refs(w, slot, methods->n);
  for (uint32_t i = 0; i < methods->n; i++) put_method(w, refs + 4 * i, &rows[i]);
}

/* ---- data ------------------------------------------------------------------------------------ */

/* Tables of one aligned byte vector: inline delegates, and constants before they had a segment. */
static void put_inline(struct fbw *w, uint32_t slot, const struct write_list *blobs) {
  const struct write_blob *rows = blobs->items;
  uint32_t refs = fbw_refs(w, slot, blobs->n);
  for (uint32_t i = 0; i < blobs->n; i++) {
    uint32_t table = FBW_TABLE(w, refs + 4 * i, fbw_ref(BUFFER_STORAGE));
    size_t size = rows[i].size > SIZE_MAX ? SIZE_MAX : (size_t)rows[i].size;
    uint32_t at = fbw_vector(w, fbw_slot(w, table, BUFFER_STORAGE), size, 1, DATA_ALIGN);
    sconce_error err = {0};
    sconce_status status = at ? write_blob_into(&rows[i], w->data + at, &err) : SCONCE_OK;
    if (status != SCONCE_OK) fail(&w->state->err, status, "%s", err.text);
  }
}

static void put_subsegments(struct fbw *w, uint32_t slot, int32_t segment,
                            const struct write_list *offsets) {
  uint32_t table =
      FBW_TABLE(w, slot, fbw_i32(SUBSEGMENT_SEGMENT_INDEX, segment), fbw_ref(SUBSEGMENT_OFFSETS));
  fbw_u64s(w, fbw_slot(w, table, SUBSEGMENT_OFFSETS), offsets->items, offsets->n);
}

static void put_named(struct fbw *w, uint32_t slot, const struct write_list *named) {
  const struct write_pte_named *rows = named->items;
  uint32_t refs = fbw_refs(w, slot, named->n);
  for (uint32_t i = 0; i < named->n; i++) {
    uint32_t entry = FBW_TABLE(w, refs + 4 * i, fbw_ref(NAMED_DATA_KEY),
                               fbw_i32(NAMED_DATA_SEGMENT_INDEX, rows[i].segment));
    fbw_string(w, fbw_slot(w, entry, NAMED_DATA_KEY), rows[i].key);
  }
}

void write_pte_program(struct fbw *w, const struct write_pte *p) {
  bool in_segment = !p->constants_inline, has_mutable = p->mutable_segment > 0;
  uint32_t root = FBW_TABLE(
      w, FBW_ROOT, fbw_u32(PROGRAM_VERSION, 0), fbw_ref(PROGRAM_EXECUTION_PLAN),
      fbw_ref(PROGRAM_CONSTANT_BUFFER), fbw_ref(PROGRAM_BACKEND_DELEGATE_DATA),
      fbw_ref(PROGRAM_SEGMENTS), fbw_ref_if(PROGRAM_CONSTANT_SEGMENT, in_segment),
      fbw_ref_if(PROGRAM_MUTABLE_DATA_SEGMENTS, has_mutable), fbw_ref(PROGRAM_NAMED_DATA));
  put_methods(w, fbw_slot(w, root, PROGRAM_EXECUTION_PLAN), &p->methods);
  put_inline(w, fbw_slot(w, root, PROGRAM_CONSTANT_BUFFER), &p->inline_constants);
  put_inline(w, fbw_slot(w, root, PROGRAM_BACKEND_DELEGATE_DATA), &p->inline_delegates);
  write_segments(w, fbw_slot(w, root, PROGRAM_SEGMENTS), &p->segments);
  if (in_segment)
    put_subsegments(w, fbw_slot(w, root, PROGRAM_CONSTANT_SEGMENT), 0, &p->constant_offsets);
  if (has_mutable) {
    uint32_t refs = fbw_refs(w, fbw_slot(w, root, PROGRAM_MUTABLE_DATA_SEGMENTS), 1);
    put_subsegments(w, refs, p->mutable_segment, &p->mutable_offsets);
  }
  put_named(w, fbw_slot(w, root, PROGRAM_NAMED_DATA), &p->named);
}
