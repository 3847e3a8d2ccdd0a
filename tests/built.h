/* Graphs built by hand, without a file or a device: small words over trial/op.h. */
#ifndef TEST_BUILT_H
#define TEST_BUILT_H

#include "harness.h"
#include "trial/op.h"

#define NODE(NAME, ...) node(b, NAME, IDS(__VA_ARGS__))

struct built {
  struct op_test t;
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
  op_begin_on(&b->t, NULL, NULL);
  b->t.graph.caps = *caps;
  return b;
}

static inline void end(struct built *b) {
  op_end(&b->t);
  free(b);
}

static inline uint32_t tensor(struct built *b, const uint32_t *dims, uint32_t rank) {
  return op_tensor(&b->t, VK_FLOAT32, dims, rank);
}

static inline uint32_t input(struct built *b, const uint32_t *dims, uint32_t rank) {
  return op_input(&b->t, VK_FLOAT32, dims, rank);
}

/* Of what is there already. */
static inline void make_output(struct built *b, uint32_t id) {
  b->t.graph.values[id].tensor.output = true;
  b->t.outputs[b->t.graph.n_outputs++] = id;
}

static inline uint32_t output(struct built *b, const uint32_t *dims, uint32_t rank) {
  return op_output(&b->t, VK_FLOAT32, dims, rank);
}

/* No input: a node may give it. */
static inline uint32_t symint(struct built *b) {
  return graph_add_value(&b->t.graph, VK_SYMINT, &b->err);
}

static inline uint32_t number(struct built *b, int64_t i) { return op_int(&b->t, i); }

static inline uint32_t list(struct built *b, const uint32_t *ids, uint32_t n) {
  return op_list(&b->t, ids, n);
}

/* Returns its result. */
static inline uint32_t node(struct built *b, const char *name, const uint32_t *args, uint32_t n) {
  op_node(&b->t, name, args, n);
  CHECK_OK(b->t.built.status, b->t.built);
  return args[n - 1];
}

#endif
