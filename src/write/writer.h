/* What stands behind the handles of sconce_write.h: writer.c has the file, graph.c the graphs. */
#ifndef WRITE_WRITER_H
#define WRITE_WRITER_H

#include "write/parts.h"

/* A value of a graph as the program around it sees it. */
struct writer_value {
  enum vk_kind kind;  /* VK_TENSOR, VK_SYMINT, or VK_NULL for what cannot be input or output */
  sconce_dtype dtype; /* outside: of 64 bits what has 32 inside; ExecuTorch's numbers */
  uint32_t rank;
  int32_t dims[SCONCE_MAX_RANK];
  int32_t buffer; /* of the writer, or -1 */
};

struct writer_border { /* an input or an output */
  int32_t id;
  bool dynamic;
};

struct writer_update {
  int32_t to, from; /* value ids: of a buffer, of its new contents */
};

struct sconce_graph {
  sconce_writer *writer;
  struct write_vk vk;
  struct write_list values;          /* writer_value, by id */
  struct write_list inputs, outputs; /* writer_border, in the order of the graph's */
  struct write_list updates;         /* writer_update */
  bool ended;
};

struct writer_buffer {
  struct writer_value value;
  int32_t initial; /* data_buffer_idx; 0: zeros */
  uint64_t offset; /* in the memory that methods share */
};

struct writer_method { /* what save verifies */
  struct text name;
  struct span graph;
};

struct sconce_writer {
  struct arena arena;
  struct write_pte pte; /* its state has the writer's first failure */
  struct write_ptd ptd; /* the same data once more */
  struct write_list buffers, methods;
  uint64_t buffers_end; /* of the memory that methods share */
};

/* False, with the writer's failure, if there is no such tensor. */
bool writer_tensor(struct write_state *s, sconce_dtype dtype, const uint32_t *dims, uint32_t rank,
                   struct writer_value *out);
bool writer_dtype(sconce_dtype dtype, enum vk_dtype *inside);
uint64_t writer_size(const struct writer_value *value); /* bytes outside; UINT64_MAX: too many */

#endif
