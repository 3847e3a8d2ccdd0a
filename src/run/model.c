/* Models: files opened, verified and kept while methods use them. */
#include "run/model.h"

#include <inttypes.h>
#include <string.h>

static sconce_status read_all(sconce_model *m, const sconce_model_desc *desc, struct span *file,
                              sconce_error *err) {
  if (desc->read_size > SIZE_MAX)
    return fail(err, SCONCE_NO_MEMORY, "a file of %" PRIu64 " bytes", desc->read_size);
  size_t size = (size_t)desc->read_size;
  m->owned = block_resize(&m->arena.allocator, NULL, 0, size);
  if (!m->owned && size) return fail(err, SCONCE_NO_MEMORY, "no memory for %zu bytes", size);
  m->owned_size = size;
  enum { STEP = 16 << 20 };
  for (size_t at = 0; at < size; at += STEP) {
    size_t n = size - at < STEP ? size - at : STEP;
    if (desc->read(desc->read_user, at, m->owned + at, n) != SCONCE_OK)
      return fail(err, SCONCE_IO_ERROR, "reading %zu bytes at %zu failed", n, at);
  }
  *file = (struct span){m->owned, size};
  return SCONCE_OK;
}

static sconce_status file_bytes(sconce_model *m, const sconce_model_desc *desc, struct span *file,
                                sconce_error *err) {
  if (desc->path) {
    TRY(os_map_open(&m->map, desc->path, err));
    *file = m->map.bytes;
    return SCONCE_OK;
  }
  if (desc->read) return read_all(m, desc, file, err);
  if (!desc->data) return fail(err, SCONCE_BAD_ARGUMENT, "no path, no data and no read function");
  *file = (struct span){desc->data, desc->size};
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

static sconce_status open_data(sconce_model *m, const sconce_model_desc *desc, sconce_error *err) {
  uint32_t n = desc->n_data_paths;
  m->data_maps = arena_new(&m->arena, struct os_map, n);
  m->data_files = arena_new(&m->arena, struct ptd, n);
  if (!m->data_maps || !m->data_files)
    return fail(err, SCONCE_NO_MEMORY, "no memory for %u files", n);
  for (uint32_t i = 0; i < n; i++) {
    TRY(os_map_open(&m->data_maps[i], desc->data_paths[i], err));
    m->data.n_files = i + 1;
    sconce_status status = ptd_open(&m->data_files[i], m->data_maps[i].bytes, err);
    if (status != SCONCE_OK) {
      error_prefix(err, "%s: ", desc->data_paths[i]);
      return status;
    }
  }
  m->data.files = m->data_files;
  TRY(ptd_set_verify(&m->data, err));
  for (uint32_t i = 0; i < n; i++) TRY(index_keys(m, &m->data_files[i].data, err));
  return SCONCE_OK;
}

static sconce_status open_program(sconce_model *m, const sconce_model_desc *desc,
                                  sconce_error *err) {
  struct span file;
  TRY(file_bytes(m, desc, &file, err));
  sconce_status status = pte_open(&m->pte, file, err);
  if (status == SCONCE_OK) status = index_keys(m, &m->pte.data, err);
  if (status != SCONCE_OK && desc->path) error_prefix(err, "%s: ", desc->path);
  return status;
}

sconce_status model_open(sconce_model **out, const sconce_allocator *allocator,
                         const sconce_model_desc *desc, sconce_error *err) {
  *out = NULL;
  sconce_model *m = block_resize(allocator, NULL, 0, sizeof *m);
  if (!m) return fail(err, SCONCE_NO_MEMORY, "no memory for a model");
  *m = (sconce_model){0};
  arena_init(&m->arena, allocator);
  m->source = (struct ptd_source){&m->data, &m->pte};
  sconce_status status = open_data(m, desc, err);
  if (status == SCONCE_OK) status = open_program(m, desc, err);
  if (status != SCONCE_OK)
    sconce_model_close(m);
  else
    *out = m;
  return status;
}

sconce_status sconce_model_open(sconce_model **out, sconce_device *device,
                                const sconce_model_desc *desc, sconce_error *err) {
  if (!out || !device || !desc)
    return fail(err, SCONCE_BAD_ARGUMENT, "out, device or desc is NULL");
  TRY(model_open(out, &device->allocator, desc, err));
  (*out)->device = device;
  sconce_status status = ptd_set_match(&(*out)->data, &(*out)->pte, err);
  if (status == SCONCE_OK) return SCONCE_OK;
  if (desc->path) error_prefix(err, "%s: ", desc->path);
  sconce_model_close(*out);
  *out = NULL;
  return status;
}

void sconce_model_close(sconce_model *m) {
  if (!m) return;
  for (uint32_t i = 0; i < m->data.n_files; i++) os_map_close(&m->data_maps[i]);
  os_map_close(&m->map);
  block_resize(&m->arena.allocator, m->owned, m->owned_size, 0);
  sconce_allocator allocator = m->arena.allocator;
  arena_free(&m->arena);
  block_resize(&allocator, m, sizeof *m, 0);
}

uint32_t sconce_model_n_methods(const sconce_model *m) { return m ? m->pte.n_methods : 0; }

const char *sconce_model_method_name(const sconce_model *m, uint32_t i) {
  if (!m || i >= m->pte.n_methods) return NULL;
  return pte_method(&m->pte, i).name.data; /* flatbuffer strings end with a NUL */
}

sconce_status sconce_model_constant(const sconce_model *m, const char *name, uint32_t output,
                                    sconce_number *out, sconce_error *err) {
  if (!m || !name || !out) return fail(err, SCONCE_BAD_ARGUMENT, "model, method or out is NULL");
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
