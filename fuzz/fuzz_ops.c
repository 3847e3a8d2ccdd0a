/* Graphs over the whole registry, from the file to the plan: each byte decides something, an
 * operator, the kind of an argument, a rank, a dim that may be 0, a dtype. What the operators
 * expect is not known here: most graphs are refused, and all of them must be with a sentence. */
#include "graph/op.h"
#include "try_plan.h"
#include "write/write.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TENSORS_MAX = 24, CALLS_MAX = 4, ARGS_MAX = 16 };

struct maker {
  const uint8_t *at, *end;
  struct write_vk graph;
  int32_t tensors[TENSORS_MAX]; /* that may be read */
  uint32_t n_tensors;
  const uint8_t *constants;
};

static uint32_t below(struct maker *m, uint32_t n) { return m->at < m->end ? *m->at++ % n : 0; }

static uint32_t make_dims(struct maker *m, int32_t dims[VK_MAX_RANK]) {
  static const int32_t sizes[] = {1, 2, 3, 4, 8, 16, 32, 64, 0, 5, 7, 33, 128, 4, 8, 1};
  const uint32_t rank = below(m, 12) < 9 ? below(m, 5) : below(m, VK_MAX_RANK + 1);
  for (uint32_t d = 0; d < rank; d++) dims[d] = sizes[below(m, 16)];
  return rank;
}

static enum vk_dtype make_dtype(struct maker *m) {
  static const enum vk_dtype dtypes[] = {VK_FLOAT32, VK_FLOAT32, VK_FLOAT32, VK_FLOAT16,
                                         VK_INT32,   VK_INT8,    VK_UINT8,   VK_BOOL};
  return dtypes[below(m, 8)];
}

static int32_t keep(struct maker *m, int32_t id) {
  if (m->n_tensors < TENSORS_MAX) m->tensors[m->n_tensors++] = id;
  return id;
}

static int32_t make_tensor(struct maker *m) {
  int32_t dims[VK_MAX_RANK];
  const uint32_t rank = make_dims(m, dims);
  return write_vk_tensor(&m->graph, make_dtype(m), dims, rank);
}

static int32_t make_constant(struct maker *m) {
  enum { MOST = 1 << 16 };
  int32_t dims[VK_MAX_RANK];
  const uint32_t rank = make_dims(m, dims);
  const enum vk_dtype dtype = make_dtype(m);
  uint64_t size = vk_dtype_size(dtype);
  for (uint32_t d = 0; d < rank; d++) size = size > MOST ? size : size * (uint32_t)dims[d];
  if (size > MOST) return keep(m, write_vk_value(&m->graph, literal_null()));
  int32_t bytes = write_vk_inline(&m->graph, write_bytes(m->constants, (size_t)size));
  return keep(m, write_vk_constant(&m->graph, dtype, dims, rank, bytes));
}

static int64_t make_int(struct maker *m) {
  static const int64_t odd[] = {INT64_MAX, INT64_MIN, INT32_MAX, INT32_MIN, UINT32_MAX, -1, 64, 31};
  const uint32_t way = below(m, 8);
  return way == 7 ? odd[below(m, 8)] : (int64_t)below(m, 12) - 3;
}

static int32_t make_list(struct maker *m, bool of_values) {
  int64_t ints[8];
  int32_t ids[8];
  const uint32_t n = below(m, 7);
  for (uint32_t i = 0; i < n; i++) {
    ints[i] = make_int(m);
    ids[i] = m->tensors[below(m, m->n_tensors)];
  }
  return write_vk_value(&m->graph, of_values ? literal_values(ids, n) : literal_ints(ints, n));
}

static int32_t make_argument(struct maker *m) {
  static const double doubles[] = {0, 1, -1, 0.5, 1e-5, 1e300, -0.0, 3.5};
  switch (below(m, 12)) {
  case 0:
    return write_vk_value(&m->graph, literal_null());
  case 1:
    return write_vk_value(&m->graph, literal_int(make_int(m)));
  case 2:
    return write_vk_value(&m->graph, literal_double(doubles[below(m, 8)]));
  case 3:
    return write_vk_value(&m->graph, literal_bool(below(m, 2)));
  case 4:
    return make_list(m, false);
  case 5:
    return make_list(m, true);
  case 6:
    return write_vk_value(&m->graph, literal_string(below(m, 2) ? "none" : "tanh"));
  case 7:
    return make_constant(m);
  default:
    return m->tensors[below(m, m->n_tensors)];
  }
}

static const struct op *pick(struct maker *m) {
  uint32_t n = 0, chosen = below(m, 256) | below(m, 4) << 8, at = 0;
  for (const struct op *const *family = op_families; *family; family++)
    for (const struct op *op = *family; op->name; op++) n += !op_is_ours(op);
  for (const struct op *const *family = op_families; *family; family++)
    for (const struct op *op = *family; op->name; op++)
      if (!op_is_ours(op) && at++ == chosen % n) return op;
  return op_families[0];
}

static int32_t make_node(struct maker *m) {
  const struct op *op = pick(m);
  uint32_t n = op->n_args ? op->n_args : 1 + below(m, ARGS_MAX - 1);
  if (n > ARGS_MAX || below(m, 32) == 31) n = 1 + below(m, ARGS_MAX);
  int32_t args[ARGS_MAX], first = make_tensor(m);
  for (uint32_t i = 0; i + 1 < n; i++) args[i] = make_argument(m);
  args[n - 1] = first;
  if (below(m, 8) == 7) { /* several results */
    int32_t both[] = {first, make_tensor(m), make_tensor(m)};
    args[n - 1] = write_vk_value(&m->graph, literal_values(both, 1 + below(m, 3)));
  }
  write_vk_call(&m->graph, op->name, args, n);
  return keep(m, first);
}

/* The program's own borders are those of the graph: what differs is another target's matter. */
static sconce_status make_program(struct maker *m, struct arena *arena, struct span *out) {
  struct write_blob blob, file;
  struct write_pte w;
  sconce_error err;
  int32_t dims[3][VK_MAX_RANK], ids[3];
  struct write_pte_tensor io[3];
  static const int scalar[] = {SCALAR_BOOL, SCALAR_BYTE, SCALAR_CHAR,
                               SCALAR_INT,  SCALAR_HALF, SCALAR_FLOAT};
  for (uint32_t i = 0; i < 2; i++) {
    const uint32_t rank = make_dims(m, dims[i]);
    const enum vk_dtype dtype = make_dtype(m);
    io[i] = (struct write_pte_tensor){.scalar_type = scalar[dtype],
                                      .dynamism = below(m, 2) ? PTE_DYNAMIC_BOUND : PTE_STATIC,
                                      .sizes = dims[i],
                                      .rank = rank};
    ids[i] = keep(m, write_vk_tensor(&m->graph, dtype, dims[i], rank));
  }
  for (uint32_t n = 1 + below(m, CALLS_MAX); n > 0; n--) (void)make_node(m);
  /* A result of a known shape, so that the borders agree. */
  dims[2][0] = 4;
  io[2] = (struct write_pte_tensor){.scalar_type = SCALAR_FLOAT, .sizes = dims[2], .rank = 1};
  ids[2] = write_vk_tensor(&m->graph, VK_FLOAT32, dims[2], 1);
  int32_t four = write_vk_value(&m->graph, literal_ints((int64_t[]){4}, 1));
  write_vk_call(&m->graph, "aten.full.default",
                ID_LIST(four, write_vk_value(&m->graph, literal_double(1)),
                        write_vk_value(&m->graph, literal_null()),
                        write_vk_value(&m->graph, literal_null()),
                        write_vk_value(&m->graph, literal_null()),
                        write_vk_value(&m->graph, literal_null()), ids[2]));
  write_vk_inputs(&m->graph, ids, 2);
  write_vk_outputs(&m->graph, ids + 2, 1);
  TRY(write_vk_finish(&m->graph, &blob, &err));
  write_pte_init(&w, arena);
  write_pte_delegated(&w, "forward", &blob, io, 2, 1);
  TRY(write_pte_finish(&w, &file, &err));
  return write_blob_to_memory(&file, arena, out, &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const uint8_t constants[1 << 16];
  struct arena arena;
  struct span file = {0};
  arena_init(&arena, NULL);
  struct maker m = {.at = data, .end = data + size, .constants = constants};
  write_vk_init(&m.graph, &arena);
  if (make_program(&m, &arena, &file) == SCONCE_OK) try_plan(file.data, file.size);
  arena_free(&arena);
  return 0;
}
