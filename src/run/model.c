/* Models: files read as far as they describe themselves, verified, and kept while methods use them.
 *
 * Of each file first its head is read, which says how long the flatbuffer is, then that; of each
 * delegate likewise. Where bytes are not there yet, opening stops, and goes on with the next poll.
 */
#include "run/model.h"

#include "base/checked.h"
#include "base/hash.h"
#include "base/os.h"
#include "run/constants.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---- turns ----------------------------------------------------------------------------------- */

bool model_take_turn(sconce_model *m) {
  const bool free = !m->reading;
  m->reading = true;
  return free;
}

void model_end_turn(sconce_model *m) { m->reading = false; }

enum { NAP_NS = 20000 };

static void wait_for_turn(sconce_model *m) {
  while (!model_take_turn(m)) {
    device_leave(m->device);
    os_sleep_ns(NAP_NS);
    device_enter(m->device);
  }
}

/* ---- files ----------------------------------------------------------------------------------- */

sconce_status front_read(struct front *f, struct source *s, struct arena *arena,
                         struct extent whole, uint32_t head_size, front_size *size_of,
                         struct extent *out, bool *done, sconce_error *err) {
  const uint64_t first = whole.size < head_size ? whole.size : head_size;
  TRY(source_hold(s, arena, whole.offset, first, &f->head, done, err));
  if (!*done) return SCONCE_OK;
  struct extent known = whole;
  known.data = f->head.bytes;
  known.held = first;
  uint64_t size;
  TRY(size_of(known, &size, err));
  TRY(source_hold(s, arena, whole.offset, size, &f->all, done, err));
  if (!*done) return SCONCE_OK;
  *out = whole;
  out->data = f->all.bytes;
  out->held = s->whole.data ? whole.size : size;
  return SCONCE_OK;
}

/* A graph asks for its constants one by one, and a file may have many thousands of keys. */
static sconce_status index_keys(sconce_model *m, struct data *data, sconce_error *err) {
  uint32_t n = 2 * data->named.n + 1; /* DATA_MAX_NAMED keeps it small */
  uint32_t *slots = arena_new(&m->arena, uint32_t, n);
  if (!slots) return fail(err, SCONCE_NO_MEMORY, "no memory for %u keys", data->named.n);
  data_index(data, slots, n);
  return SCONCE_OK;
}

static sconce_status read_data(sconce_model *m, uint32_t i, struct extent whole, bool *done,
                               sconce_error *err) {
  struct ptd *ptd = &m->data_files[i - 1];
  struct extent bytes;
  TRY(front_read(&m->files[i].front, &m->sources[i], &m->arena, whole, PTD_HEAD_SIZE, ptd_front,
                 &bytes, done, err));
  if (!*done) return SCONCE_OK;
  TRY(ptd_open(ptd, bytes, err));
  return index_keys(m, &ptd->data, err);
}

static bool find_named(void *model, struct text key, struct extent *out) {
  sconce_model *m = model;
  return ptd_lookup(&m->source, key, out) || named_lookup(&m->named, key, out);
}

static int by_place(const void *a, const void *b) {
  const struct model_blob *one = a, *two = b;
  if (one->blob.offset != two->blob.offset) return one->blob.offset < two->blob.offset ? -1 : 1;
  return one->blob.size < two->blob.size ? -1 : one->blob.size > two->blob.size;
}

static struct model_blob *find_blob(const sconce_model *m, struct extent blob) {
  const struct model_blob key = {.blob = blob};
  return m->n_blobs ? bsearch(&key, m->blobs, m->n_blobs, sizeof *m->blobs, by_place) : NULL;
}

/* A program may call a delegate any number of times: it is verified once. */
sconce_status model_graph(sconce_model *m, struct extent blob, struct vkgraph *out,
                          sconce_error *err) {
  struct model_blob *b = find_blob(m, blob);
  if (b && b->graph.blob.size) {
    *out = b->graph;
    return SCONCE_OK;
  }
  const struct data_lookup named = {find_named, m};
  sconce_status status = vkgraph_open(out, b ? b->blob : blob, named, err);
  if (m->named.no_memory) {
    status = fail(err, SCONCE_NO_MEMORY, "no memory for keys of named data");
    return arena_tell(&m->arena, status, err);
  }
  if (b) b->graph = *out;
  return status;
}

static sconce_status program_front(struct extent file, uint64_t *size, sconce_error *err) {
  return vkgraph_probe(extent_held(file)) ? vkgraph_front(file, size, err)
                                          : pte_front(file, size, err);
}

static sconce_status read_program(sconce_model *m, struct extent whole, bool *done,
                                  sconce_error *err) {
  struct extent bytes;
  TRY(front_read(&m->files[0].front, &m->sources[0], &m->arena, whole, PTE_HEAD_SIZE, program_front,
                 &bytes, done, err));
  if (!*done) return SCONCE_OK;
  if (vkgraph_probe(extent_held(bytes))) {
    m->bare = bytes;
    return SCONCE_OK;
  }
  TRY(pte_open(&m->pte, bytes, err));
  return index_keys(m, &m->pte.data, err);
}

static sconce_status read_file(sconce_model *m, uint32_t i, bool *done, sconce_error *err) {
  const struct extent whole = {.size = m->sources[i].size, .file = i};
  sconce_status status =
      i == 0 ? read_program(m, whole, done, err) : read_data(m, i, whole, done, err);
  if (status != SCONCE_OK && status != SCONCE_IO_ERROR && m->files[i].path)
    error_prefix(err, "%s: ", m->files[i].path);
  return status;
}

/* ---- delegates ------------------------------------------------------------------------------- */

/* Methods may share a delegate: each place is read once. */
static sconce_status count_blobs(sconce_model *m, sconce_error *err) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < m->pte.n_methods; i++) n += pte_method(&m->pte, i).n_delegates;
  m->blobs = arena_new(&m->arena, struct model_blob, n);
  if (!m->blobs) return fail(err, SCONCE_NO_MEMORY, "no memory for %u delegates", n);
  for (uint32_t i = 0; i < m->pte.n_methods; i++) {
    struct pte_method method = pte_method(&m->pte, i);
    for (uint32_t k = 0; k < method.n_delegates; k++) {
      struct pte_delegate d = pte_delegate(&method, k);
      if (text_is(d.id, "VulkanBackend")) m->blobs[m->n_blobs++].blob = d.blob;
    }
  }
  qsort(m->blobs, m->n_blobs, sizeof *m->blobs, by_place);
  uint32_t kept = 0;
  for (uint32_t i = 0; i < m->n_blobs; i++)
    if (kept == 0 || by_place(&m->blobs[i], &m->blobs[kept - 1]) != 0)
      m->blobs[kept++] = m->blobs[i];
  m->n_blobs = kept;
  m->counted = true;
  return SCONCE_OK;
}

/* What its header says of sizes is checked here; the rest when a method wants it. A blob that is
 * none is left for the method to complain about. */
static sconce_status read_blob(sconce_model *m, struct model_blob *b, bool *done,
                               sconce_error *err) {
  sconce_error why = {0};
  struct extent whole = b->blob;
  *done = b->blob.held == b->blob.size;
  if (*done) return SCONCE_OK;
  sconce_status status = front_read(&b->front, &m->sources[0], &m->arena, whole, VKGRAPH_HEAD_SIZE,
                                    vkgraph_front, &b->blob, done, &why);
  if (status == SCONCE_OK) return SCONCE_OK;
  if (status != SCONCE_BAD_FILE) return fail(err, status, "%s", why.text);
  b->blob.data = b->front.head.bytes;
  b->blob.held = b->front.head.done;
  *done = true;
  return SCONCE_OK;
}

struct extent model_blob(const sconce_model *m, struct extent blob) {
  const struct model_blob *found = find_blob(m, blob);
  return found ? found->blob : blob;
}

/* ---- opening --------------------------------------------------------------------------------- */

static sconce_status name_methods(sconce_model *m, sconce_error *err) {
  static const char *const forward[] = {"forward"};
  m->info = (sconce_model_info){1, forward};
  if (m->bare.size) return SCONCE_OK;
  const char **names = arena_new(&m->arena, const char *, m->pte.n_methods);
  if (!names) return fail(err, SCONCE_NO_MEMORY, "no memory for %u names", m->pte.n_methods);
  for (uint32_t i = 0; i < m->pte.n_methods; i++)
    names[i] = pte_method(&m->pte, i).name.data; /* flatbuffer strings end with a NUL */
  m->info = (sconce_model_info){m->pte.n_methods, names};
  return SCONCE_OK;
}

static sconce_status open_more(sconce_model *m, bool *done, sconce_error *err) {
  for (; m->n_read < m->n_files; m->n_read++) {
    /* Data files first: what a program asks of them is then known. */
    TRY(read_file(m, m->n_files - 1 - m->n_read, done, err));
    if (!*done) return SCONCE_OK;
  }
  if (!m->counted) {
    TRY(ptd_set_verify(&m->data, err));
    TRY(count_blobs(m, err));
  }
  for (; m->n_blobs_read < m->n_blobs; m->n_blobs_read++) {
    TRY(read_blob(m, &m->blobs[m->n_blobs_read], done, err));
    if (!*done) return SCONCE_OK;
  }
  TRY(name_methods(m, err));
  if (m->device) TRY(ptd_set_match(&m->data, &m->pte, err));
  *done = m->ready = true;
  return SCONCE_OK;
}

uint64_t host_bytes(uint64_t files) {
  enum { TIMES_FILES = 4 };
  static const uint64_t slack = UINT64_C(160) << 20; /* 100,000 nodes; stories15M takes 5 */
  return files < UINT64_MAX / 8 ? slack + TIMES_FILES * files : UINT64_MAX;
}

uint64_t model_host_bytes(const sconce_model *m) {
  uint64_t files = 0;
  for (uint32_t i = 0; i < m->n_sources; i++)
    if (!add_u64(files, m->sources[i].size, &files)) return UINT64_MAX;
  return m->max_host_bytes ? m->max_host_bytes : host_bytes(files);
}

/* Delegates may lie upon each other: what is kept of the files is not bounded by their size. */
static sconce_status open_on(sconce_model *m, bool *done, sconce_error *err) {
  m->arena.most = model_host_bytes(m);
  return arena_tell(&m->arena, open_more(m, done, err), err);
}

static sconce_status open_sources(sconce_model *m, const sconce_model_desc *desc,
                                  sconce_error *err) {
  if (desc->n_data_files > PTD_MAX_FILES || (desc->n_data_files && !desc->data_files))
    return fail(err, SCONCE_BAD_ARGUMENT, "%u data files, at most %d", desc->n_data_files,
                PTD_MAX_FILES);
  if (!desc->named_data.find != !desc->named_data.read)
    return fail(err, SCONCE_BAD_ARGUMENT, "named_data has one of find and read, it needs both");
  m->n_files = 1 + desc->n_data_files;
  m->sources = arena_new(&m->arena, struct source, m->n_files + 1);
  m->files = arena_new(&m->arena, struct model_file, m->n_files);
  m->data_files = arena_new(&m->arena, struct ptd, desc->n_data_files);
  if (!m->sources || !m->files || !m->data_files)
    return fail(err, SCONCE_NO_MEMORY, "no memory for %u files", m->n_files);
  m->data = (struct ptd_set){m->data_files, desc->n_data_files};
  for (uint32_t i = 0; i < m->n_files; i++) {
    sconce_file file = i ? desc->data_files[i - 1] : desc->program;
    if (file.path)
      file.path = m->files[i].path = arena_copy_text(&m->arena, file.path, strlen(file.path));
    if (!file.path && m->files[i].path) return fail(err, SCONCE_NO_MEMORY, "no memory for a path");
    TRY(source_open(&m->sources[i], &file, m->device, &m->arena.allocator, err));
    m->n_sources = i + 1;
  }
  named_init(&m->named, &desc->named_data, m->device, &m->sources[m->n_files], m->n_files,
             &m->arena);
  m->n_sources++;
  return SCONCE_OK;
}

static sconce_status begin(sconce_model **out, sconce_device *device,
                           const sconce_allocator *allocator, const sconce_model_desc *desc,
                           sconce_error *err) {
  *out = NULL;
  sconce_model *m = block_resize(allocator, NULL, 0, sizeof *m);
  if (!m) return fail(err, SCONCE_NO_MEMORY, "no memory for a model");
  *m = (sconce_model){.device = device,
                      .users = 1,
                      .max_device_bytes = desc->max_device_bytes,
                      .max_host_bytes = desc->max_host_bytes,
                      .max_nodes = desc->max_nodes,
                      .max_load_ms = desc->max_load_ms};
  if (device) {
    device->users++;
    m->next = device->models;
    device->models = m;
  }
  arena_init(&m->arena, allocator);
  m->source = (struct ptd_source){&m->data, &m->pte};
  sconce_status status = open_sources(m, desc, err);
  if (status != SCONCE_OK) {
    (void)model_drop(m); /* the caller still has the device */
    return status;
  }
  if (device) weights_init(&m->weights, device->gpu, m->sources, &m->arena.allocator);
  *out = m;
  return SCONCE_OK;
}

bool model_wants(const sconce_model *m, sconce_progress *progress) {
  for (uint32_t i = 0; i < m->n_sources; i++) {
    progress->wants.file = i;
    if (source_wants(&m->sources[i], &progress->wants.offset, &progress->wants.size)) return true;
  }
  progress->wants.file = 0;
  progress->wants.offset = 0;
  return false;
}

static void tell(const sconce_model *m, sconce_progress *out) {
  *out = (sconce_progress){.done = m->ready};
  for (uint32_t i = 0; i < m->n_files; i++) {
    out->bytes_done += m->files[i].front.all.done;
    out->bytes_all += m->files[i].front.all.size;
  }
  for (uint32_t i = 0; i < m->n_blobs; i++) {
    out->bytes_done += m->blobs[i].front.all.done;
    out->bytes_all += m->blobs[i].front.all.size;
  }
  if (!m->ready) (void)model_wants(m, out);
}

/* Loops over the steps; a file whose bytes must be handed in cannot be waited for. */
static sconce_status finish(sconce_model *m, sconce_error *err) {
  for (bool done = m->ready; !done;) {
    sconce_progress progress;
    TRY(open_on(m, &done, err));
    if (!done && model_wants(m, &progress))
      return fail(err, SCONCE_BAD_ARGUMENT,
                  "a file without a path, without data and without a read function: open it with "
                  "sconce_model_begin and hand its bytes in");
  }
  return SCONCE_OK;
}

static sconce_status open_all(sconce_model **out, sconce_device *device,
                              const sconce_allocator *allocator, const sconce_model_desc *desc,
                              sconce_error *err) {
  TRY(begin(out, device, allocator, desc, err));
  sconce_status status = finish(*out, err);
  if (status == SCONCE_OK) return SCONCE_OK;
  (void)model_drop(*out);
  *out = NULL;
  return status;
}

sconce_status model_open(sconce_model **out, const sconce_allocator *allocator,
                         const sconce_model_desc *desc, sconce_error *err) {
  return open_all(out, NULL, allocator, desc, err);
}

static sconce_status check_new(sconce_model **out, const sconce_device *device,
                               const sconce_model_desc *desc, sconce_error *err) {
  if (!out || !device || !desc)
    return fail(err, SCONCE_BAD_ARGUMENT, "out, device or desc is NULL");
  *out = NULL;
  return device_check_ready(device, err);
}

sconce_status sconce_model_open(sconce_model **out, sconce_device *device,
                                const sconce_model_desc *desc, sconce_error *err) {
  sconce_error local;
  if (!err) err = &local;
  TRY(check_new(out, device, desc, err));
  LOCKED(device->gpu, open_all(out, device, &device->allocator, desc, err));
}

sconce_status sconce_model_begin(sconce_model **out, sconce_device *device,
                                 const sconce_model_desc *desc, sconce_error *err) {
  sconce_error local;
  if (!err) err = &local;
  TRY(check_new(out, device, desc, err));
  LOCKED(device->gpu, begin(out, device, &device->allocator, desc, err));
}

static sconce_status poll(sconce_model *m, sconce_progress *progress, sconce_error *err) {
  bool done = m->ready;
  if (!done) TRY(open_on(m, &done, err));
  tell(m, progress);
  return SCONCE_OK;
}

sconce_status sconce_model_poll(sconce_model *m, sconce_progress *progress, sconce_error *err) {
  if (!m || !progress) return fail(err, SCONCE_BAD_ARGUMENT, "model or progress is NULL");
  ALONE(&m->alone, "model");
  sconce_error local;
  LOCKED(m->device->gpu, poll(m, progress, err ? err : &local));
}

sconce_status sconce_model_give(sconce_model *m, uint32_t file, uint64_t offset, const void *data,
                                size_t size, sconce_error *err) {
  if (!m || (!data && size)) return fail(err, SCONCE_BAD_ARGUMENT, "model or data is NULL");
  ALONE(&m->alone, "model");
  if (file >= m->n_files) return fail(err, SCONCE_BAD_ARGUMENT, "file %u of %u", file, m->n_files);
  LOCKED(m->device->gpu, source_give(&m->sources[file], offset, data, size, err));
}

bool model_drop(sconce_model *m) {
  if (--m->users > 0) return false;
  sconce_device *device = m->device;
  sconce_model **at = device ? &device->models : NULL;
  while (at && *at != m) at = &(*at)->next;
  if (at) *at = m->next;
  weights_free(&m->weights);
  constants_free(m);
  for (uint32_t i = 0; i < m->n_sources; i++) source_close(&m->sources[i]);
  sconce_allocator allocator = m->arena.allocator;
  arena_free(&m->arena);
  block_resize(&allocator, m, sizeof *m, 0);
  return device && device_drop(device);
}

void sconce_model_close(sconce_model *m) {
  if (!m) return;
  sconce_device *device = m->device;
  if (device) gpu_lock(device->gpu);
  const bool unused = model_drop(m);
  if (device) gpu_unlock(device->gpu);
  if (unused) device_free(device);
}

/* ---- the fingerprint ------------------------------------------------------------------------- */

static bool can_be_read(const struct source *s) { return s->whole.data || s->from_path || s->read; }

static sconce_status hash_file(struct source *s, uint64_t *sum, sconce_error *err) {
  for (uint64_t at = 0; at < s->size;) {
    const uint64_t left = s->size - at;
    const size_t n = left < SCONCE_PIECE_MAX ? (size_t)left : SCONCE_PIECE_MAX;
    struct span piece;
    TRY(source_get(s, at, n, &piece, err));
    device_leave(s->device);
    *sum = hash_bytes(*sum, piece.data, n);
    device_enter(s->device);
    at += n;
  }
  return SCONCE_OK;
}

static sconce_status hash_all(sconce_model *m, uint64_t *out, sconce_error *err) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < m->n_files && !m->fingerprint; i++) {
    sum = hash_bytes(sum, &m->sources[i].size, sizeof m->sources[i].size);
    if (can_be_read(&m->sources[i]))
      TRY(hash_file(&m->sources[i], &sum, err));
    else
      sum = hash_bytes(sum, m->files[i].front.all.bytes, (size_t)m->files[i].front.all.size);
  }
  for (uint32_t i = 0; i < m->n_blobs && !m->fingerprint; i++)
    if (!can_be_read(&m->sources[0]) && m->blobs[i].front.all.bytes)
      sum = hash_bytes(sum, m->blobs[i].front.all.bytes, (size_t)m->blobs[i].front.all.size);
  if (!m->fingerprint) m->fingerprint = sum ? sum : 1;
  *out = m->fingerprint;
  return SCONCE_OK;
}

static sconce_status fingerprint(sconce_model *m, uint64_t *out, sconce_error *err) {
  wait_for_turn(m);
  const sconce_status status = hash_all(m, out, err);
  model_end_turn(m);
  return status;
}

sconce_status sconce_model_fingerprint(sconce_model *m, uint64_t *out, sconce_error *err) {
  if (!m || !out) return fail(err, SCONCE_BAD_ARGUMENT, "model or out is NULL");
  if (!m->ready) return fail(err, SCONCE_BAD_ARGUMENT, "the model is still being opened");
  sconce_error local;
  LOCKED(m->device->gpu, fingerprint(m, out, err ? err : &local));
}

/* ---- asking ---------------------------------------------------------------------------------- */

sconce_device *sconce_model_device(const sconce_model *m) { return m ? m->device : NULL; }

const sconce_model_info *sconce_model_describe(const sconce_model *m) {
  return m && m->ready ? &m->info : NULL;
}

sconce_status sconce_model_constant(const sconce_model *m, const char *name, uint32_t output,
                                    sconce_number *out, sconce_error *err) {
  if (!m || !name || !out) return fail(err, SCONCE_BAD_ARGUMENT, "model, method or out is NULL");
  if (!m->ready) return fail(err, SCONCE_BAD_ARGUMENT, "the model is still being opened");
  struct pte_method method;
  if (!pte_find_method(&m->pte, text_of(name), &method) || !pte_method_is_constant(&method))
    return fail(err, SCONCE_UNSUPPORTED, "no constant method '%s'", name);
  if (output >= method.n_outputs)
    return fail(err, SCONCE_UNSUPPORTED, "output %u of '%s', which has %u", output, name,
                method.n_outputs);
  struct pte_value v = pte_value(&method, (uint32_t)fb_i32_at(method.outputs, output));
  switch (v.kind) {
  case PTE_INT:
    *out = (sconce_number){v.i, (double)v.i};
    return SCONCE_OK;
  case PTE_BOOL:
    *out = (sconce_number){v.b, v.b};
    return SCONCE_OK;
  case PTE_DOUBLE:
    *out = (sconce_number){v.d > -9e18 && v.d < 9e18 ? (int64_t)v.d : 0, v.d};
    return SCONCE_OK;
  default:
    return fail(err, SCONCE_UNSUPPORTED, "'%s' gives a %s, no number", name, pte_kind_name(v.kind));
  }
}
