/* See weights.h. */
#include "run/weights.h"

#include "base/checked.h"

#include <inttypes.h>

/* One constant; a buffer holds several where a kernel reads them together. */
struct weight_part {
  struct extent bytes;
  const struct packing *packing; /* NULL: as in the file */
  enum vk_dtype dtype;
  uint32_t rank, dims[RANK_MAX];
  uint64_t base; /* where in the buffer */
};

void weights_init(struct weights *w, struct gpu *gpu, struct source *sources,
                  const sconce_allocator *allocator) {
  *w = (struct weights){.gpu = gpu, .allocator = allocator, .sources = sources};
}

void weights_free(struct weights *w) {
  if (w->slots) block_resize(w->allocator, w->slots, w->n_slots * sizeof *w->slots, 0);
  *w = (struct weights){0};
}

/* ---- the table ------------------------------------------------------------------------------- */

static struct weight_part part_of(const struct tensor *t) {
  struct weight_part p = {.bytes = t->bytes,
                          .packing = t->packing,
                          .dtype = t->dtype,
                          .rank = t->rank,
                          .base = t->base};
  memcpy(p.dims, t->dim_max, t->rank * sizeof *p.dims);
  return p;
}

/* Plain bytes mean the same whatever their dims are; another layout depends on dims and dtype. */
static bool same_part(const struct weight_part *a, const struct weight_part *b) {
  if (!extent_equal(a->bytes, b->bytes) || a->packing != b->packing || a->base != b->base)
    return false;
  return !a->packing || (a->dtype == b->dtype && a->rank == b->rank &&
                         memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) == 0);
}

static bool same_weight(const struct weight *a, const struct weight *b) {
  if (a->hash != b->hash || a->size != b->size || a->initial != b->initial ||
      a->n_parts != b->n_parts)
    return false;
  for (uint32_t i = 0; i < a->n_parts; i++)
    if (!same_part(&a->parts[i], &b->parts[i])) return false;
  return true;
}

static uint64_t hash_of(const struct weight *weight) {
  uint64_t h = weight->size ^ weight->initial;
  for (uint32_t i = 0; i < weight->n_parts; i++) {
    const struct extent *e = &weight->parts[i].bytes;
    h = (h ^ (uint64_t)(uintptr_t)e->data ^ e->offset ^ ((uint64_t)e->file << 48)) *
        UINT64_C(0x9e3779b97f4a7c15);
    h ^= h >> 29;
  }
  return h;
}

static sconce_status grow(struct weights *w, sconce_error *err) {
  if (w->n < w->n_slots) return SCONCE_OK;
  const uint32_t n = w->n_slots ? 2 * w->n_slots : 64;
  struct weight **slots = block_resize(w->allocator, NULL, 0, n * sizeof *slots);
  if (!slots) return fail(err, SCONCE_NO_MEMORY, "no memory for %u weights", n);
  memset(slots, 0, n * sizeof *slots);
  for (uint32_t i = 0; i < w->n_slots; i++)
    for (struct weight *at = w->slots[i], *next; at; at = next) {
      next = at->next;
      at->next = slots[at->hash & (n - 1)];
      slots[at->hash & (n - 1)] = at;
    }
  if (w->slots) block_resize(w->allocator, w->slots, w->n_slots * sizeof *slots, 0);
  w->slots = slots;
  w->n_slots = n;
  return SCONCE_OK;
}

static size_t size_with_parts(uint32_t n) {
  return sizeof(struct weight) + n * sizeof(struct weight_part);
}

static void weight_free(struct weights *w, struct weight *weight) {
  gpu_buffer_close(weight->buffer);
  block_resize(w->allocator, weight, size_with_parts(weight->n_parts), 0);
}

/* What a graph's buffer holds, without a buffer yet. */
static struct weight *describe(struct weights *w, const struct graph *g, uint32_t buffer) {
  uint32_t n = 0;
  for (uint32_t id = g->buffers[buffer].value; id != NO_VALUE; id = g->values[id].tensor.joined)
    n++;
  struct weight *weight = block_resize(w->allocator, NULL, 0, size_with_parts(n));
  if (!weight) return NULL;
  *weight = (struct weight){.size = g->buffers[buffer].size,
                            .initial = g->buffers[buffer].kind == BUFFER_STATE,
                            .n_parts = n,
                            .parts = (struct weight_part *)(weight + 1)};
  n = 0;
  for (uint32_t id = g->buffers[buffer].value; id != NO_VALUE; id = g->values[id].tensor.joined)
    weight->parts[n++] = part_of(&g->values[id].tensor);
  weight->hash = hash_of(weight);
  return weight;
}

sconce_status weights_take(struct weights *w, const struct graph *g, uint32_t buffer,
                           struct weight **out, sconce_error *err) {
  *out = NULL;
  TRY(grow(w, err));
  struct weight *made = describe(w, g, buffer);
  if (!made) return fail(err, SCONCE_NO_MEMORY, "no memory for a weight");
  struct weight **slot = &w->slots[made->hash & (w->n_slots - 1)], *found = *slot;
  while (found && !same_weight(found, made)) found = found->next;
  if (found) {
    weight_free(w, made);
    found->users++;
    *out = found;
    return SCONCE_OK;
  }
  sconce_status status = SCONCE_OK;
  if (!made->initial)
    status = gpu_buffer_open(w->gpu, GPU_WEIGHTS, made->size, "weights", &made->buffer, err);
  if (status != SCONCE_OK) {
    weight_free(w, made);
    return status;
  }
  made->users = 1;
  made->next = *slot;
  *slot = made;
  w->n++;
  *out = made;
  return SCONCE_OK;
}

void weights_give_back(struct weights *w, struct weight *weight) {
  if (!weight || --weight->users > 0) return;
  struct weight **at = &w->slots[weight->hash & (w->n_slots - 1)];
  while (*at != weight) at = &(*at)->next;
  *at = weight->next;
  w->n--;
  weight_free(w, weight);
}

/* ---- loading --------------------------------------------------------------------------------- */

/* STEP: bytes of one submit; a file of 500 MiB took 20 MiB of staging at its peak, with 16 MiB a
 * step it was 79. POLL_NS: how long one poll goes on. */
enum { STEP = 4 << 20, POLL_NS = 5000000, FENCES = 4 };

void load_init(struct load *l, struct weights *w, struct weight **todo, uint32_t n) {
  *l = (struct load){.weights = w, .todo = todo};
  w->loads++;
  for (uint32_t i = 0; i < n; i++) {
    struct weight *weight = todo[i];
    if (weight->there || weight->load == w->loads) continue; /* caches begin with the same bytes */
    weight->load = w->loads;
    todo[l->n++] = weight;
    for (uint32_t k = 0; k < weight->n_parts; k++) l->bytes_all += weight->parts[k].bytes.size;
  }
}

static void room_free(struct load *l, struct room *room) {
  if (room->bytes) block_resize(l->weights->allocator, room->bytes, room->size, 0);
  *room = (struct room){0};
}

static sconce_status make_room(struct load *l, struct room *room, uint64_t size,
                               const struct packing *packing, sconce_error *err) {
  if (room->size >= size && room->bytes) return SCONCE_OK;
  room_free(l, room);
  if (size <= SIZE_MAX)
    room->bytes = block_resize(l->weights->allocator, NULL, 0, size ? (size_t)size : 1);
  if (!room->bytes)
    return fail(err, SCONCE_NO_MEMORY, "no memory for %" PRIu64 " bytes of %s", size,
                packing->name);
  room->size = size ? (size_t)size : 1;
  return SCONCE_OK;
}

void load_free(struct load *l) {
  for (uint32_t i = 0; i < l->n_fences; i++) gpu_fence_close(l->fences[i]);
  if (l->weights) {
    room_free(l, &l->source);
    room_free(l, &l->laid_out);
  }
  *l = (struct load){0};
}

static bool all_zero(struct span bytes) {
  size_t words = bytes.size / 8;
  for (size_t i = 0; i < words; i++)
    if (load_u64(bytes.data + 8 * i)) return false;
  for (size_t i = 8 * words; i < bytes.size; i++)
    if (bytes.data[i]) return false;
  return true;
}

/* Drivers keep what is written until a submit has copied it: without one now and then a file would
 * be in memory twice. */
static sconce_status send(struct load *l, sconce_error *err) {
  l->unsent = 0;
  TRY(gpu_submit(l->weights->gpu, &(struct gpu_batch){0}, err));
  if (l->n_fences == FENCES) return SCONCE_OK; /* within one step: rare, and short */
  TRY(gpu_fence_begin(l->weights->gpu, &l->fences[l->n_fences], err));
  l->n_fences++;
  return SCONCE_OK;
}

/* *free: another submit may be made. */
static sconce_status poll_fences(struct load *l, bool *free, sconce_error *err) {
  bool done = true;
  while (l->n_fences && done) {
    TRY(gpu_fence_poll(l->fences[0], &done, err));
    if (!done) break;
    gpu_fence_close(l->fences[0]);
    l->n_fences--;
    memmove(l->fences, l->fences + 1, l->n_fences * sizeof *l->fences);
  }
  *free = l->n_fences < FENCES;
  return SCONCE_OK;
}

/* New buffers are zero, and contents that are all zero need none. */
static sconce_status put(struct load *l, struct weight *weight, uint64_t offset, struct span bytes,
                         sconce_error *err) {
  if (all_zero(bytes)) return SCONCE_OK;
  if (!weight->buffer)
    TRY(gpu_buffer_open(l->weights->gpu, GPU_WEIGHTS, weight->size, "initial state",
                        &weight->buffer, err));
  TRY(gpu_write(weight->buffer, offset, bytes.data, bytes.size, err));
  l->unsent += bytes.size;
  return l->unsent >= STEP ? send(l, err) : SCONCE_OK;
}

/* A piece of the part's bytes as the file has them; data NULL: not there yet. */
static sconce_status get(struct load *l, const struct weight_part *p, size_t size, struct span *out,
                         sconce_error *err) {
  const struct extent *e = &p->bytes;
  if (e->held == e->size) {
    *out = size ? (struct span){e->data + l->part_done, size} : (struct span){0};
    return SCONCE_OK;
  }
  return source_get(&l->weights->sources[e->file], e->offset + l->part_done, size, out, err);
}

/* Has the next piece of plain bytes read while this one, up to `done` of the part, is written. */
static sconce_status expect_next(struct load *l, uint64_t done, sconce_error *err) {
  const struct weight *weight = l->todo[l->at];
  const struct weight_part *p = &weight->parts[l->part];
  if (done == p->bytes.size) {
    done = 0;
    if (l->part + 1 < weight->n_parts)
      p++;
    else if (l->at + 1 < l->n && l->todo[l->at + 1]->n_parts && !l->todo[l->at + 1]->there)
      p = l->todo[l->at + 1]->parts;
    else
      return SCONCE_OK;
  }
  const struct extent *e = &p->bytes;
  const uint64_t left = e->size - done;
  if (p->packing || e->held == e->size) return SCONCE_OK;
  return source_expect(&l->weights->sources[e->file], e->offset + done,
                       left < STEP ? (size_t)left : STEP, err);
}

static sconce_status put_plain(struct load *l, struct weight *weight, const struct weight_part *p,
                               bool *wait, sconce_error *err) {
  const uint64_t left = p->bytes.size - l->part_done;
  const size_t n = left < STEP ? (size_t)left : STEP;
  struct span piece;
  TRY(get(l, p, n, &piece, err));
  *wait = n && !piece.data;
  if (*wait) return SCONCE_OK;
  TRY(expect_next(l, l->part_done + n, err));
  TRY(put(l, weight, p->base + l->part_done, piece, err));
  l->part_done += n;
  l->bytes_done += n;
  return SCONCE_OK;
}

static sconce_status lay_out(struct load *l, struct weight *weight, const struct weight_part *p,
                             const uint8_t *bytes, sconce_error *err) {
  const struct unpacked from = {p->dtype, p->rank, p->dims, bytes};
  const uint64_t size = p->packing->size(&from);
  const size_t most = size < PACK_MOST ? (size_t)size : PACK_MOST;
  TRY(make_room(l, &l->laid_out, most, p->packing, err));
  uint8_t *piece = l->laid_out.bytes;
  for (uint64_t at = 0; at < size; at += most) {
    const uint64_t end = size - at < most ? size : at + most;
    p->packing->fill(&from, at, end, piece);
    TRY(put(l, weight, p->base + at, (struct span){piece, (size_t)(end - at)}, err));
  }
  return SCONCE_OK;
}

/* Another layout needs all of the source. */
static sconce_status put_packed(struct load *l, struct weight *weight, const struct weight_part *p,
                                bool *wait, sconce_error *err) {
  const struct extent *e = &p->bytes;
  bool done = e->held == e->size;
  const uint8_t *bytes = e->data;
  if (!done) {
    TRY(make_room(l, &l->source, e->size, p->packing, err));
    l->held.copy = l->source.bytes;
    TRY(source_hold(&l->weights->sources[e->file], NULL, e->offset, e->size, &l->held, &done, err));
    bytes = l->held.bytes;
  }
  *wait = !done;
  if (*wait) return SCONCE_OK;
  TRY(expect_next(l, e->size, err));
  TRY(lay_out(l, weight, p, bytes, err));
  l->held = (struct held){0};
  l->part_done = e->size;
  l->bytes_done += e->size;
  return SCONCE_OK;
}

/* One piece; *wait: a source wants bytes. */
static sconce_status step(struct load *l, bool *wait, sconce_error *err) {
  struct weight *weight = l->todo[l->at];
  *wait = false;
  if (weight->there || l->part == weight->n_parts) {
    weight->there = true;
    l->at++;
    l->part = 0;
    l->part_done = 0;
    return SCONCE_OK;
  }
  const struct weight_part *p = &weight->parts[l->part];
  if (!p->packing)
    TRY(put_plain(l, weight, p, wait, err));
  else
    TRY(put_packed(l, weight, p, wait, err));
  if (!*wait && l->part_done == p->bytes.size) {
    l->part++;
    l->part_done = 0;
  }
  return SCONCE_OK;
}

sconce_status load_poll(struct load *l, bool *done, sconce_error *err) {
  const uint64_t start = os_clock_ns();
  bool wait = false, free;
  while (l->at < l->n && !wait && os_clock_ns() - start < POLL_NS) {
    TRY(poll_fences(l, &free, err));
    if (!free) break;
    TRY(step(l, &wait, err));
  }
  if (l->at == l->n && l->unsent) TRY(send(l, err));
  TRY(poll_fences(l, &free, err));
  *done = l->at == l->n && l->n_fences == 0;
  if (l->at == l->n) { /* a load outlives its work */
    room_free(l, &l->source);
    room_free(l, &l->laid_out);
  }
  return SCONCE_OK;
}
