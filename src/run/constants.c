/* See constants.h. What the graph computes with lies in row-major order, in 32 bits or less. */
#include "run/constants.h"

#include "base/half.h"
#include "graph/op.h"

#include <inttypes.h>
#include <string.h>

/* Dims of 1 may stand anywhere. */
static bool row_major(const struct data_shape *s) {
  uint32_t last = 0;
  for (uint32_t i = 0; i < s->rank; i++) {
    const uint32_t dim = s->dim_order[i];
    if (s->sizes[dim] == 1) continue;
    if (dim < last) return false;
    last = dim;
  }
  return true;
}

bool constant_fits(const struct data_shape *s) {
  return s->scalar_type != SCALAR_LONG && s->scalar_type != SCALAR_DOUBLE && row_major(s);
}

sconce_status constant_want(struct graph *g, struct host_constant **wanted, uint32_t value,
                            struct extent bytes, const struct data_shape *shape,
                            sconce_error *err) {
  struct host_constant *c = arena_new(&g->arena, struct host_constant, 1);
  if (!c) return fail(err, SCONCE_NO_MEMORY, "no memory for a constant");
  *c = (struct host_constant){.next = *wanted, .value = value, .bytes = bytes, .raw = !shape};
  if (shape) c->shape = *shape;
  *wanted = c;
  return SCONCE_OK;
}

sconce_status constants_want_scalars(struct graph *g, struct host_constant **wanted,
                                     sconce_error *err) {
  for (uint32_t i = 0; i < g->n_nodes; i++) {
    const struct node *n = &g->nodes[i];
    const uint32_t id = n->op->flags & OP_READS ? arg_id(n, 0) : NO_VALUE;
    if (id == NO_VALUE || g->values[id].kind != VK_TENSOR) continue;
    const struct tensor *t = &g->values[id].tensor;
    if (!t->constant || t->written || t->bytes.held == t->bytes.size) continue;
    if (t->bytes.size > HOST_READ_MAX)
      return fail(err, SCONCE_UNSUPPORTED, "a scalar from a constant of %" PRIu64 " bytes",
                  t->bytes.size);
    TRY(constant_want(g, wanted, id, t->bytes, NULL, err));
  }
  return SCONCE_OK;
}

/* ---- conversion ------------------------------------------------------------------------------ */

/* Element i as a number; integers are exact as far as a double goes, and checked before. */
static sconce_status element(int scalar_type, const uint8_t *bytes, uint64_t i, double *out,
                             sconce_error *err) {
  if (scalar_type == SCALAR_FLOAT) {
    float f;
    memcpy(&f, bytes + 4 * i, 4);
    *out = (double)f;
    return SCONCE_OK;
  }
  const uint64_t bits = load_u64(bytes + 8 * i);
  const int64_t whole = (int64_t)bits;
  if (scalar_type == SCALAR_DOUBLE) {
    memcpy(out, &bits, 8);
    return SCONCE_OK;
  }
  *out = (double)whole;
  if (whole >= INT32_MIN && whole <= INT32_MAX) return SCONCE_OK;
  return fail(err, SCONCE_UNSUPPORTED, "a constant of %" PRId64 " does not fit 32 bits", whole);
}

/* Element `from` of the file becomes element `to`, in the dtype that the graph computes with. */
static sconce_status convert(const struct host_constant *c, enum vk_dtype dtype,
                             const uint8_t *bytes, uint64_t from, uint8_t *out, uint64_t to,
                             sconce_error *err) {
  const size_t size = vk_dtype_size(dtype);
  if (size == c->shape.nbytes / c->shape.numel) {
    memcpy(out + to * size, bytes + from * size, size);
    return SCONCE_OK;
  }
  double number;
  TRY(element(c->shape.scalar_type, bytes, from, &number, err));
  const float single = (float)number;
  const uint16_t half = half_from_float(single);
  const int32_t whole = dtype == VK_INT32 ? (int32_t)number : 0;
  const void *made = dtype == VK_FLOAT16 ? (const void *)&half
                     : dtype == VK_INT32 ? (const void *)&whole
                                         : (const void *)&single;
  memcpy(out + to * size, made, size);
  return SCONCE_OK;
}

/* Goes through the elements in row-major order: `from` is where the file has each. */
static sconce_status convert_all(const struct host_constant *c, enum vk_dtype dtype,
                                 const uint8_t *bytes, uint8_t *out, sconce_error *err) {
  const struct data_shape *s = &c->shape;
  uint64_t stride[DATA_MAX_RANK], from = 0, step = 1;
  int32_t at[DATA_MAX_RANK] = {0};
  for (uint32_t i = s->rank; i-- > 0;) {
    stride[s->dim_order[i]] = step;
    step *= (uint64_t)s->sizes[s->dim_order[i]];
  }
  for (uint64_t to = 0; to < s->numel; to++) {
    TRY(convert(c, dtype, bytes, from, out, to, err));
    for (uint32_t d = s->rank; d-- > 0;) {
      from += stride[d];
      if (++at[d] < s->sizes[d]) break;
      from -= stride[d] * (uint64_t)s->sizes[d];
      at[d] = 0;
    }
  }
  return SCONCE_OK;
}

/* ---- reading --------------------------------------------------------------------------------- */

static sconce_status use(struct graph *g, sconce_model *model, const struct host_constant *c,
                         const uint8_t *bytes, sconce_error *err) {
  struct tensor *t = &g->values[c->value].tensor;
  if (c->raw) {
    t->bytes.data = bytes;
    t->bytes.held = t->bytes.size;
    return SCONCE_OK;
  }
  const uint64_t size = tensor_nbytes_max(t);
  uint8_t *made = arena_alloc(&g->arena, (size_t)size, 1, 8);
  if (!made)
    return fail(err, SCONCE_NO_MEMORY, "no memory for a constant of %" PRIu64 " bytes", size);
  TRY(convert_all(c, t->dtype, bytes, made, err));
  t->bytes = extent_of((struct span){made, (size_t)size});
  t->bytes.file = UINT32_MAX - model->n_made++; /* no other constant is this one */
  return SCONCE_OK;
}

sconce_status constants_read(struct graph *g, sconce_model *model, struct host_constant **wanted,
                             bool *done, sconce_error *err) {
  *done = true;
  for (struct host_constant *c; (c = *wanted); *wanted = c->next) {
    const uint8_t *bytes = c->bytes.data;
    if (c->bytes.held < c->bytes.size) {
      TRY(source_hold(&model->sources[c->bytes.file], &g->arena, c->bytes.offset, c->bytes.size,
                      &c->held, done, err));
      if (!*done) return SCONCE_OK;
      bytes = c->held.bytes;
    }
    TRY(use(g, model, c, bytes, err));
  }
  return SCONCE_OK;
}
