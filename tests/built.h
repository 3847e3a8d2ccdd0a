/* Graphs built by hand, without a file or a device. */
#ifndef TEST_BUILT_H
#define TEST_BUILT_H

#include "graph/op.h"
#include "harness.h"

#define DIMS(...)                                                                                  \
  (uint32_t)(sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t)), (const uint32_t[]) {           \
    __VA_ARGS__                                                                                    \
  }
#define NODE(NAME, ...) node(b, NAME, DIMS(__VA_ARGS__))

struct built {
  struct graph g;
  uint32_t inputs[8], outputs[8];
  uint8_t *bytes; /* of constants, or NULL; ended with the graph */
  size_t used;
  sconce_error err;
};

static const struct caps usual = {.max_storage_binding = 128 << 20,
                                  .max_buffer = 256 << 20,
                                  .max_storage_buffers = 8,
                                  .max_workgroup_bytes = 16384,
                                  .max_invocations = 256,
                                  .max_workgroups = 65535,
                                  .storage_alignment = 256};

static inline struct built *begin(const struct caps *caps) {
  struct built *b = calloc(1, sizeof *b);
  graph_init(&b->g, NULL, caps);
  b->g.inputs = b->inputs;
  b->g.outputs = b->outputs;
  return b;
}

static inline void end(struct built *b) {
  graph_free(&b->g);
  free(b->bytes);
  free(b);
}

static inline uint32_t tensor(struct built *b, uint32_t rank, const uint32_t *dims) {
  return graph_add_tensor(&b->g, VK_FLOAT32, rank, dims, &b->err);
}

static inline uint32_t input(struct built *b, uint32_t rank, const uint32_t *dims) {
  uint32_t id = tensor(b, rank, dims);
  b->g.values[id].tensor.input = true;
  return b->inputs[b->g.n_inputs++] = id;
}

static inline void make_output(struct built *b, uint32_t id) {
  b->g.values[id].tensor.output = true;
  b->outputs[b->g.n_outputs++] = id;
}

static inline uint32_t number(struct built *b, int64_t i) {
  if (test_swap_scalars && i != INT64_MAX) {
    uint32_t id = graph_add_value(&b->g, VK_DOUBLE, &b->err);
    b->g.values[id].d = (double)i;
    return id;
  }
  uint32_t id = graph_add_value(&b->g, VK_INT, &b->err);
  b->g.values[id].i = i;
  return id;
}

static inline uint32_t list(struct built *b, uint32_t n, const uint32_t *ids) {
  uint32_t id = graph_add_value(&b->g, VK_VALUE_LIST, &b->err);
  uint32_t *copy = arena_new(&b->g.arena, uint32_t, n);
  memcpy(copy, ids, n * sizeof *copy);
  b->g.values[id].list.n = n;
  b->g.values[id].list.ids = copy;
  return id;
}

/* Returns its result. */
static inline uint32_t node(struct built *b, const char *name, uint32_t n, const uint32_t *args) {
  test_note_operator(name);
  CHECK_OK(graph_add_node(&b->g, text_of(name), b->g.n_nodes, args, n, &b->err), b->err);
  return args[n - 1];
}

#endif
