/* See constants.h. What the graph computes with lies in row-major order, in 32 bits or less. */
#include "run/constants.h"

#include "base/checked.h"
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

sconce_status constant_want(struct graph *g, struct constants *all, uint32_t value,
                            struct extent bytes, const struct data_shape *shape,
                            sconce_error *err) {
  struct host_constant *c = arena_new(&g->arena, struct host_constant, 1);
  if (!c) return fail(err, SCONCE_NO_MEMORY, "no memory for a constant");
  *c = (struct host_constant){.next = all->wanted, .value = value, .bytes = bytes, .raw = !shape};
  if (shape) c->shape = *shape;
  all->wanted = c;
  return SCONCE_OK;
}

sconce_status constants_want_scalars(struct graph *g, struct constants *all, sconce_error *err) {
  for (uint32_t i = 0; i < g->n_nodes; i++) {
    const struct node *n = &g->nodes[i];
    const uint32_t id = n->op->flags & OP_READS ? arg_id(n, 0) : NO_VALUE;
    if (id == NO_VALUE || g->values[id].kind != VK_TENSOR) continue;
    const struct tensor *t = &g->values[id].tensor;
    if (!t->constant || t->written || t->bytes.held == t->bytes.size) continue;
    if (t->bytes.size > HOST_READ_MAX)
      return fail(err, SCONCE_UNSUPPORTED, "a scalar from a constant of %" PRIu64 " bytes",
                  t->bytes.size);
    TRY(constant_want(g, all, id, t->bytes, NULL, err));
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

/* A constant as graphs want it, once in a model: by its place in the files and what it became. */
struct made_constant {
  struct made_constant *next; /* in its slot */
  uint32_t users;
  struct extent from;
  struct data_shape shape; /* in the file */
  enum vk_dtype dtype;     /* in the graph */
  size_t size;
  uint64_t done;  /* bytes of the file that were converted */
  uint8_t *bytes; /* (size) */
};

/* Element `from` of a piece becomes element `to`, in the dtype that the graph computes with. */
static sconce_status convert(const struct made_constant *m, const uint8_t *bytes, uint64_t from,
                             uint64_t to, sconce_error *err) {
  const enum vk_dtype dtype = m->dtype;
  const size_t size = vk_dtype_size(dtype);
  if (size == scalar_size(m->shape.scalar_type)) {
    memcpy(m->bytes + to * size, bytes + from * size, size);
    return SCONCE_OK;
  }
  double number;
  TRY(element(m->shape.scalar_type, bytes, from, &number, err));
  const float single = (float)number;
  const uint16_t half = half_from_float(single);
  const int32_t whole = dtype == VK_INT32 ? (int32_t)number : 0;
  const void *made = dtype == VK_FLOAT16 ? (const void *)&half
                     : dtype == VK_INT32 ? (const void *)&whole
                                         : (const void *)&single;
  memcpy(m->bytes + to * size, made, size);
  return SCONCE_OK;
}

/* The next elements in the file's order; `to` is where each lies in row-major order. */
static sconce_status convert_piece(struct made_constant *m, struct span piece, sconce_error *err) {
  const struct data_shape *s = &m->shape;
  const uint32_t size = scalar_size(s->scalar_type);
  uint64_t stride[DATA_MAX_RANK], to = 0, step = 1, rest = m->done / size;
  int32_t at[DATA_MAX_RANK];
  for (uint32_t d = s->rank; d-- > 0; step *= (uint64_t)s->sizes[d]) stride[d] = step;
  for (uint32_t i = s->rank; i-- > 0;) {
    const uint32_t d = s->dim_order[i];
    at[d] = (int32_t)(rest % (uint64_t)s->sizes[d]);
    rest /= (uint64_t)s->sizes[d];
    to += stride[d] * (uint64_t)at[d];
  }
  for (uint64_t from = 0; from < piece.size / size; from++) {
    TRY(convert(m, piece.data, from, to, err));
    for (uint32_t i = s->rank; i-- > 0;) {
      const uint32_t d = s->dim_order[i];
      to += stride[d];
      if (++at[d] < s->sizes[d]) break;
      to -= stride[d] * (uint64_t)s->sizes[d];
      at[d] = 0;
    }
  }
  m->done += piece.size;
  return SCONCE_OK;
}

/* Goes on until *done: of the file no more than a piece is in memory. */
static sconce_status convert_all(sconce_model *model, struct made_constant *m, bool *done,
                                 sconce_error *err) {
  while (m->done < m->shape.nbytes) {
    const uint64_t left = m->shape.nbytes - m->done;
    struct span piece = {m->from.data, (size_t)left};
    if (m->from.held == m->from.size) {
      piece.data += m->done;
    } else {
      if (left > SCONCE_PIECE_MAX) piece.size = SCONCE_PIECE_MAX;
      TRY(source_get(&model->sources[m->from.file], m->from.offset + m->done, piece.size, &piece,
                     err));
    }
    *done = piece.data != NULL;
    if (!*done) return SCONCE_OK;
    TRY(convert_piece(m, piece, err));
  }
  return SCONCE_OK;
}

/* ---- sharing --------------------------------------------------------------------------------- */

static bool same_shape(const struct data_shape *a, const struct data_shape *b) {
  return a->scalar_type == b->scalar_type && a->rank == b->rank &&
         memcmp(a->sizes, b->sizes, a->rank * sizeof *a->sizes) == 0 &&
         memcmp(a->dim_order, b->dim_order, a->rank) == 0;
}

static struct made_constant **slot_of(sconce_model *model, struct extent from) {
  const uint64_t key = (uint64_t)(uintptr_t)from.data ^ from.offset ^ ((uint64_t)from.file << 48);
  return &model->made[(key * UINT64_C(0x9e3779b97f4a7c15)) >> 32 & (MADE_SLOTS - 1)];
}

/* They stand beside the arenas, under the limit of one. */
static bool has_room(sconce_model *model, size_t more) {
  const uint64_t most = model->arena.most, held = model->made_bytes;
  if (!most || (held <= most && more <= most - held)) return true;
  model->arena.over = held + more;
  return false;
}

/* What another graph made, or a new one of which nothing is converted yet. */
static struct made_constant *made_take(sconce_model *model, const struct host_constant *c,
                                       enum vk_dtype dtype) {
  struct made_constant **slot = slot_of(model, c->bytes), *m = *slot;
  while (m && !(m->dtype == dtype && extent_equal(m->from, c->bytes) &&
                same_shape(&m->shape, &c->shape)))
    m = m->next;
  if (!m) {
    size_t size, all;
    if (c->shape.numel > SIZE_MAX ||
        !mul_size((size_t)c->shape.numel, vk_dtype_size(dtype), &size) ||
        !add_size(size, sizeof *m, &all))
      return NULL;
    if (!has_room(model, all)) return NULL;
    m = block_resize(&model->arena.allocator, NULL, 0, all);
    if (!m) return NULL;
    model->made_bytes += all;
    *m = (struct made_constant){.next = *slot,
                                .from = c->bytes,
                                .shape = c->shape,
                                .dtype = dtype,
                                .size = size,
                                .bytes = (uint8_t *)(m + 1)};
    *slot = m;
  }
  m->users++;
  return m;
}

static void made_free(sconce_model *model, struct made_constant **at) {
  struct made_constant *m = *at;
  *at = m->next;
  model->made_bytes -= sizeof *m + m->size;
  block_resize(&model->arena.allocator, m, sizeof *m + m->size, 0);
}

static void made_give_back(sconce_model *model, struct made_constant *m) {
  if (--m->users > 0) return;
  struct made_constant **at = slot_of(model, m->from);
  while (*at != m) at = &(*at)->next;
  made_free(model, at);
}

/* ---- reading --------------------------------------------------------------------------------- */

static sconce_status read_raw(sconce_model *model, struct graph *g, struct host_constant *c,
                              bool *done, sconce_error *err) {
  TRY(source_hold(&model->sources[c->bytes.file], &g->arena, c->bytes.offset, c->bytes.size,
                  &c->held, done, err));
  if (!*done) return SCONCE_OK;
  struct tensor *t = &g->values[c->value].tensor;
  t->bytes.data = c->held.bytes;
  t->bytes.held = t->bytes.size;
  return SCONCE_OK;
}

static sconce_status make(sconce_model *model, struct graph *g, struct host_constant *c, bool *done,
                          sconce_error *err) {
  struct tensor *t = &g->values[c->value].tensor;
  if (!c->made) c->made = made_take(model, c, t->dtype);
  if (!c->made)
    return arena_tell(&model->arena,
                      fail(err, SCONCE_NO_MEMORY, "no memory for a constant of %" PRIu64 " bytes",
                           tensor_nbytes_max(t)),
                      err);
  TRY(convert_all(model, c->made, done, err));
  if (*done) t->bytes = extent_of((struct span){c->made->bytes, c->made->size});
  return SCONCE_OK;
}

sconce_status constants_read(struct graph *g, sconce_model *model, struct constants *all,
                             bool *done, sconce_error *err) {
  *done = true;
  for (struct host_constant *c; (c = all->wanted);) {
    TRY(c->raw ? read_raw(model, g, c, done, err) : make(model, g, c, done, err));
    if (!*done) return SCONCE_OK;
    all->wanted = c->next;
    c->next = all->there;
    all->there = c;
  }
  return SCONCE_OK;
}

void constants_give_back(sconce_model *model, struct constants *all) {
  struct host_constant *lists[] = {all->wanted, all->there};
  for (int i = 0; i < 2; i++)
    for (struct host_constant *c = lists[i]; c; c = c->next)
      if (c->made) made_give_back(model, c->made);
  *all = (struct constants){0};
}

void constants_free(sconce_model *model) {
  for (uint32_t i = 0; i < MADE_SLOTS; i++)
    while (model->made[i]) made_free(model, &model->made[i]);
}
