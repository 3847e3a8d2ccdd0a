/* The schemas as rows. A row's place is its field id; `required` marks what the readers cannot do
 * without. What no reader looks at is UNUSED and stays unverified. */
#include "format/schema.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define UNUSED(name) {#name, FB_UNUSED, 0, 0, false, NULL}
#define SCALAR(name, width) {#name, FB_SCALAR, width, 0, false, NULL}
#define STRING(name, required) {#name, FB_STRING, 1, 0, required, NULL}
#define VECTOR(name, width, required) {#name, FB_VECTOR, width, 0, required, NULL}
#define ONE(type) ((const struct fb_type *const[]){&type})
#define TABLE(name, type, required) {#name, FB_TABLE, 4, 1, required, ONE(type)}
#define TABLES(name, type, required) {#name, FB_TABLES, 4, 1, required, ONE(type)}
#define UNION(name, members) {#name, FB_UNION, 4, COUNT(members), false, members}
#define REQUIRED true
#define OPTIONAL false

/* DEFINE(foo, "Foo", rows…) is `static const struct fb_type foo`. */
#define FIELDS(type, ...) static const struct fb_field type##_fields[] = {__VA_ARGS__}
#define TYPE(type, label) {label, type##_fields, COUNT(type##_fields)}
#define DEFINE(type, label, ...)                                                                   \
  FIELDS(type, __VA_ARGS__);                                                                       \
  static const struct fb_type type = TYPE(type, label)

/* ---- shared ---------------------------------------------------------------------------------- */

static const struct fb_type null_value = {"Null", NULL, 0};
DEFINE(int_value, "Int", SCALAR(int_val, 8));
DEFINE(bool_value, "Bool", SCALAR(bool_val, 1));
DEFINE(double_value, "Double", SCALAR(double_val, 8));
DEFINE(string_value, "String", STRING(string_val, OPTIONAL));
DEFINE(int_list, "IntList", VECTOR(items, 8, OPTIONAL));
DEFINE(double_list, "DoubleList", VECTOR(items, 8, OPTIONAL));
DEFINE(bool_list, "BoolList", VECTOR(items, 1, OPTIONAL));
DEFINE(data_segment_type, "DataSegment", SCALAR(offset, 8), SCALAR(size, 8));

/* ---- .pte ------------------------------------------------------------------------------------ */

DEFINE(allocation, "AllocationDetails", SCALAR(memory_id, 4), SCALAR(memory_offset_low, 4),
       SCALAR(memory_offset_high, 4));
DEFINE(extra_info, "ExtraTensorInfo", SCALAR(mutable_data_segments_idx, 8),
       STRING(fully_qualified_name, OPTIONAL), SCALAR(location, 1), SCALAR(device_type, 1),
       SCALAR(device_index, 1));
DEFINE(tensor, "Tensor", SCALAR(scalar_type, 1), SCALAR(storage_offset, 4),
       VECTOR(sizes, 4, REQUIRED), VECTOR(dim_order, 1, REQUIRED), UNUSED(requires_grad),
       SCALAR(data_buffer_idx, 4), TABLE(allocation_info, allocation, OPTIONAL), UNUSED(layout),
       SCALAR(shape_dynamism, 1), TABLE(extra_tensor_info, extra_info, OPTIONAL));
DEFINE(tensor_list, "TensorList", VECTOR(items, 4, OPTIONAL));
DEFINE(optional_tensor_list, "OptionalTensorList", VECTOR(items, 4, OPTIONAL));

static const struct fb_type *const kernel_types[] = {
    &null_value,           &int_value, &bool_value,  &double_value, &tensor,
    &string_value,         &int_list,  &double_list, &bool_list,    &tensor_list,
    &optional_tensor_list,
};
DEFINE(evalue, "EValue", SCALAR(val_type, 1), UNION(val, kernel_types));

DEFINE(kernel_call, "KernelCall", SCALAR(op_index, 4), VECTOR(args, 4, OPTIONAL));
DEFINE(delegate_call, "DelegateCall", SCALAR(delegate_index, 4), VECTOR(args, 4, OPTIONAL));
DEFINE(move_call, "MoveCall", SCALAR(move_from, 4), SCALAR(move_to, 4));
DEFINE(jump_false_call, "JumpFalseCall", SCALAR(cond_value_index, 4),
       SCALAR(destination_instruction, 4));
DEFINE(free_call, "FreeCall", SCALAR(value_index, 4));

static const struct fb_type *const instruction_types[] = {
    &kernel_call, &delegate_call, &move_call, &jump_false_call, &free_call,
};
DEFINE(instruction, "Instruction", SCALAR(instr_args_type, 1),
       UNION(instr_args, instruction_types));

DEFINE(chain, "Chain", UNUSED(inputs), UNUSED(outputs), TABLES(instructions, instruction, REQUIRED),
       UNUSED(stacktrace));
DEFINE(operator_type, "Operator", STRING(name, REQUIRED), STRING(overload, OPTIONAL));
DEFINE(processed, "BackendDelegateDataReference", SCALAR(location, 1), SCALAR(index, 4));
DEFINE(compile_spec, "CompileSpec", STRING(key, REQUIRED), VECTOR(value, 1, OPTIONAL));
DEFINE(delegate, "BackendDelegate", STRING(id, REQUIRED), TABLE(processed, processed, REQUIRED),
       TABLES(compile_specs, compile_spec, OPTIONAL));
DEFINE(plan, "ExecutionPlan", STRING(name, REQUIRED), UNUSED(container_meta_type),
       TABLES(values, evalue, REQUIRED), VECTOR(inputs, 4, REQUIRED), VECTOR(outputs, 4, REQUIRED),
       TABLES(chains, chain, REQUIRED), TABLES(operators, operator_type, OPTIONAL),
       TABLES(delegates, delegate, OPTIONAL), VECTOR(non_const_buffer_sizes, 8, OPTIONAL),
       UNUSED(non_const_buffer_device));

DEFINE(buffer, "Buffer", VECTOR(storage, 1, OPTIONAL));
DEFINE(inline_data, "BackendDelegateInlineData", VECTOR(data, 1, REQUIRED));
DEFINE(subsegment_offsets, "SubsegmentOffsets", SCALAR(segment_index, 4),
       VECTOR(offsets, 8, OPTIONAL));
DEFINE(program_named_data, "NamedData", STRING(key, REQUIRED), SCALAR(segment_index, 4));

FIELDS(schema_program, SCALAR(version, 4), TABLES(execution_plan, plan, REQUIRED),
       TABLES(constant_buffer, buffer, OPTIONAL),
       TABLES(backend_delegate_data, inline_data, OPTIONAL),
       TABLES(segments, data_segment_type, OPTIONAL),
       TABLE(constant_segment, subsegment_offsets, OPTIONAL),
       TABLES(mutable_data_segments, subsegment_offsets, OPTIONAL),
       TABLES(named_data, program_named_data, OPTIONAL));
const struct fb_type schema_program = TYPE(schema_program, "Program");

/* ---- .ptd ------------------------------------------------------------------------------------ */

DEFINE(tensor_layout, "TensorLayout", SCALAR(scalar_type, 1), VECTOR(sizes, 4, OPTIONAL),
       VECTOR(dim_order, 1, OPTIONAL));
DEFINE(named_data, "NamedData", STRING(key, REQUIRED), SCALAR(segment_index, 4),
       TABLE(tensor_layout, tensor_layout, OPTIONAL));
FIELDS(schema_flat_tensor, SCALAR(version, 4), TABLES(segments, data_segment_type, OPTIONAL),
       TABLES(named_data, named_data, OPTIONAL));
const struct fb_type schema_flat_tensor = TYPE(schema_flat_tensor, "FlatTensor");

/* ---- VK00 ------------------------------------------------------------------------------------ */

DEFINE(vk_tensor, "VkTensor", SCALAR(datatype, 1), VECTOR(dims, 4, OPTIONAL),
       SCALAR(constant_id, 4), SCALAR(mem_obj_id, 4), SCALAR(storage_type, 1),
       SCALAR(memory_layout, 1), SCALAR(staging_datatype, 1));
DEFINE(value_list, "ValueList", VECTOR(items, 4, OPTIONAL));
DEFINE(symint, "SymInt", SCALAR(value, 4));

static const struct fb_type *const graph_types[] = {
    &null_value,  &int_value, &double_value, &bool_value,   &vk_tensor, &int_list,
    &double_list, &bool_list, &value_list,   &string_value, &symint,
};
DEFINE(vk_value, "VkValue", SCALAR(value_type, 1), UNION(value, graph_types));
DEFINE(operator_call, "OperatorCall", SCALAR(node_id, 4), STRING(name, REQUIRED),
       VECTOR(args, 4, REQUIRED));
DEFINE(vk_bytes, "VkBytes", SCALAR(offset, 8), SCALAR(length, 8), STRING(named_key, OPTIONAL));
FIELDS(schema_vkgraph, STRING(version, OPTIONAL), TABLES(chain, operator_call, OPTIONAL),
       TABLES(values, vk_value, OPTIONAL), VECTOR(input_ids, 4, OPTIONAL),
       VECTOR(output_ids, 4, OPTIONAL), TABLES(constants, vk_bytes, OPTIONAL), UNUSED(shaders),
       UNUSED(storage_type_override), UNUSED(memory_layout_override));
const struct fb_type schema_vkgraph = TYPE(schema_vkgraph, "VkGraph");
