/* The blob of a "VulkanBackend" delegate: a VH00 header, a VK00 flatbuffer with one graph, and a
 * (usually empty) area of inline constants.
 *
 * vkgraph_open verifies structure and meaning: value ids, kinds, dims, constants against their
 * bytes, and that every argument of the chain is defined before it is used. The blob is borrowed.
 */
#ifndef FORMAT_VKGRAPH_H
#define FORMAT_VKGRAPH_H

#include "format/data.h"

enum vk_dtype { /* VkDataType */
                VK_BOOL = 0,
                VK_UINT8 = 1,
                VK_INT8 = 2,
                VK_INT32 = 3,
                VK_FLOAT16 = 4,
                VK_FLOAT32 = 5,
                VK_FLOAT64 = 6,
                VK_INT64 = 7,
                VK_UNSET = 127, /* staging only: same as datatype */
};
uint32_t vk_dtype_size(enum vk_dtype type);    /* bytes of an element; 0: no such type */
const char *vk_dtype_name(enum vk_dtype type); /* "float32"; "unknown" */

enum vk_kind { /* numbers of the union GraphTypes */
               VK_NULL = 1,
               VK_INT,
               VK_DOUBLE,
               VK_BOOLEAN,
               VK_TENSOR,
               VK_INT_LIST, /* literal integers, unlike a program's IntList */
               VK_DOUBLE_LIST,
               VK_BOOL_LIST,
               VK_VALUE_LIST, /* of value ids, never of another ValueList */
               VK_STRING,
               VK_SYMINT,
};
const char *vk_kind_name(enum vk_kind kind); /* "ValueList" */

#define VK_MAX_RANK 8
#define VK_MAX_VALUES (1u << 22)
#define VK_MAX_CONSTANTS 65536u /* entries, and tensors that refer to them */

struct vk_tensor {
  enum vk_dtype dtype;
  uint32_t rank;
  uint32_t dims[VK_MAX_RANK];          /* upper bounds, outermost first */
  uint64_t numel, nbytes;              /* of the bounds */
  int32_t constant_id;                 /* -1: not a constant */
  int32_t mem_obj_id;                  /* -1: memory of its own; a hint */
  uint8_t storage_type, memory_layout; /* hints for another backend; 255: default */
  enum vk_dtype staging;
};

struct vk_value {
  enum vk_kind kind;
  union {
    int64_t i; /* Int, SymInt (its initial value) */
    double d;
    bool b;
    struct text text;
    struct vk_tensor tensor;
    struct fb_vec items; /* i64, f64, bool, i32 */
  };
};

struct vk_call {
  uint32_t node_id;   /* a debug handle */
  struct text name;   /* "aten.add.Tensor" */
  struct fb_vec args; /* i32 value ids; the last one is the output */
};

struct vkgraph {
  struct extent blob;          /* at least its flatbuffer is held */
  struct extent constant_area; /* inline constants */
  struct fb_table root;
  struct fb_vec values, chain, constants;
  struct fb_vec inputs, outputs; /* u32 value ids, Tensor or SymInt */
  uint32_t n_values, n_calls, n_constants, n_inputs, n_outputs;
  struct data_lookup named;
};

/* With a lookup every named constant must be found and hold at least its tensor's bytes; without
 * one (find NULL) named constants stay unresolved. A zeroed *out on failure. */
SCONCE_CHECK sconce_status vkgraph_open(struct vkgraph *out, struct extent blob,
                                        struct data_lookup named, sconce_error *err);
/* How many of a blob's first bytes vkgraph_open must find in memory: all but its constants. Needs
 * VKGRAPH_HEAD_SIZE of them, or all if there are fewer. */
enum { VKGRAPH_HEAD_SIZE = 30 };
SCONCE_CHECK sconce_status vkgraph_front(struct extent blob, uint64_t *size, sconce_error *err);
bool vkgraph_probe(struct span blob);

enum vk_kind vkgraph_kind(const struct vkgraph *g, uint32_t i); /* 0: no such value */
struct vk_value vkgraph_value(const struct vkgraph *g, uint32_t i);
struct vk_call vkgraph_call(const struct vkgraph *g, uint32_t i);

struct vk_constant {
  bool named;
  struct text key; /* if named */
  uint64_t offset; /* else: into constant_area */
  uint64_t length; /* what the writer says; the dims decide */
};
struct vk_constant vkgraph_constant(const struct vkgraph *g, uint32_t i);
/* The bytes of a constant tensor, exactly nbytes; false if it is none or was not found. */
bool vkgraph_tensor_bytes(const struct vkgraph *g, const struct vk_tensor *t, struct extent *out);

#endif
