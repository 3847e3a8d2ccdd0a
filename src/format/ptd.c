/* Data files: see ptd.h. */
#include "format/ptd.h"

#include "base/checked.h"
#include "format/schema.h"

#include <inttypes.h>

/* The header sits behind the identifier, inside the flatbuffer's bytes, and is mandatory. Positions
 * in the file: 8 magic, 12 length, 16 flatbuffer_offset, 24 flatbuffer_size (without the header),
 * 32 segment_base_offset, 40 segment_data_size. */
enum { HEADER_AT = 8, HEADER_MIN = 40 };

static sconce_status check_magic(struct extent file, sconce_error *err) {
  if (file.held < HEADER_AT + HEADER_MIN)
    return fail(err, SCONCE_BAD_FILE, "%" PRIu64 " bytes are too few for a data file", file.held);
  const char *id = (const char *)file.data + 4;
  if (memcmp(id, "FT01", 4) != 0)
    return fail(err, SCONCE_BAD_FILE, "not a data file: identifier '%.4s' instead of FT01", id);
  if (memcmp(id + 4, "FH01", 4) != 0)
    return fail(err, SCONCE_BAD_FILE, "the data file's header starts with '%.4s' instead of FH01",
                id + 4);
  return SCONCE_OK;
}

/* Fills the segment area and gives the flatbuffer's end. */
static sconce_status read_header(struct data *data, uint64_t *program_end, sconce_error *err) {
  const uint8_t *header = data->file.data + HEADER_AT;
  uint32_t size = load_u32(header + 4);
  uint64_t offset = load_u64(header + 8), program_size = load_u64(header + 16);
  uint64_t data_size = load_u64(header + 32);
  data->base = load_u64(header + 24);
  if (size < HEADER_MIN || offset < HEADER_AT + (uint64_t)size)
    return fail(err, SCONCE_BAD_FILE,
                "the header has %u bytes and the flatbuffer starts at %" PRIu64, (unsigned)size,
                offset);
  if (!add_u64(offset, program_size, program_end) || *program_end > data->file.size)
    return fail(err, SCONCE_BAD_FILE,
                "the flatbuffer starts at %" PRIu64 " and has %" PRIu64
                " bytes, the file has %" PRIu64 " bytes",
                offset, program_size, data->file.size);
  if (data_size == 0) return SCONCE_OK;
  if (data->base < *program_end || !add_u64(data->base, data_size, &data->end) ||
      data->end > data->file.size)
    return fail(err, SCONCE_BAD_FILE,
                "segments start at %" PRIu64 " and have %" PRIu64
                " bytes, the flatbuffer ends at %" PRIu64 " and the file has %" PRIu64 " bytes",
                data->base, data_size, *program_end, data->file.size);
  return SCONCE_OK;
}

static sconce_status read_layout(const struct ptd *ptd, uint32_t i, struct data_shape *out,
                                 sconce_error *err) {
  struct fb_table t = fb_sub(fb_table_at(ptd->data.named, i), NAMED_DATA_TENSOR_LAYOUT);
  return data_shape_read(fb_i8(t, LAYOUT_SCALAR_TYPE, 0), fb_vec(t, LAYOUT_SIZES),
                         fb_vec(t, LAYOUT_DIM_ORDER), out, err);
}

static bool has_layout(const struct ptd *ptd, uint32_t i) {
  return fb_has(fb_table_at(ptd->data.named, i), NAMED_DATA_TENSOR_LAYOUT);
}

static sconce_status check_layout(const struct ptd *ptd, uint32_t i, sconce_error *err) {
  struct data_shape shape;
  if (!has_layout(ptd, i)) return SCONCE_OK;
  TRY(read_layout(ptd, i, &shape, err));
  uint64_t size = data_named(&ptd->data, i).size;
  if (shape.nbytes != size)
    return fail(err, SCONCE_BAD_FILE,
                "its layout needs %" PRIu64 " bytes, its segment has %" PRIu64, shape.nbytes, size);
  return SCONCE_OK;
}

sconce_status ptd_front(struct extent file, uint64_t *size, sconce_error *err) {
  struct data data = {.file = file};
  TRY(check_magic(file, err));
  return read_header(&data, size, err);
}

static sconce_status open_file(struct ptd *out, sconce_error *err) {
  uint64_t program_end = 0;
  TRY(check_magic(out->data.file, err));
  TRY(read_header(&out->data, &program_end, err));
  if (program_end > out->data.file.held)
    return fail(err, SCONCE_BAD_ARGUMENT, "%" PRIu64 " bytes of a flatbuffer of %" PRIu64,
                out->data.file.held, program_end);
  struct span bytes = {out->data.file.data, (size_t)program_end};
  TRY(fb_verify(bytes, "FT01", &schema_flat_tensor, 0, &out->root, err));
  out->data.segments = fb_vec(out->root, FLAT_TENSOR_SEGMENTS);
  out->data.named = fb_vec(out->root, FLAT_TENSOR_NAMED_DATA);
  TRY(data_verify(&out->data, err));
  for (uint32_t i = 0; i < out->data.named.n; i++) {
    sconce_status status = check_layout(out, i, err);
    if (status == SCONCE_OK) continue;
    error_prefix(err, "named data '%.*s': ", TEXT(data_key(&out->data, i)));
    return status;
  }
  return SCONCE_OK;
}

sconce_status ptd_open(struct ptd *out, struct extent file, sconce_error *err) {
  *out = (struct ptd){.data.file = file};
  sconce_status status = open_file(out, err);
  if (status != SCONCE_OK) *out = (struct ptd){0};
  return status;
}

bool ptd_probe(struct span file) { return file.size >= 8 && memcmp(file.data + 4, "FT", 2) == 0; }

struct ptd_entry ptd_entry(const struct ptd *ptd, uint32_t i) {
  struct ptd_entry out = {
      .key = data_key(&ptd->data, i),
      .bytes = data_named(&ptd->data, i),
      .has_layout = has_layout(ptd, i),
  };
  if (out.has_layout) (void)read_layout(ptd, i, &out.shape, NULL);
  return out;
}

/* ---- sets ------------------------------------------------------------------------------------ */

sconce_status ptd_set_verify(const struct ptd_set *set, sconce_error *err) {
  const struct data *files[PTD_MAX_FILES];
  if (set->n_files > PTD_MAX_FILES)
    return fail(err, SCONCE_BAD_ARGUMENT, "%u data files, at most %d", (unsigned)set->n_files,
                PTD_MAX_FILES);
  for (uint32_t i = 0; i < set->n_files; i++) files[i] = &set->files[i].data;
  return data_verify_unique(files, set->n_files, err);
}

bool ptd_find(const struct ptd_set *set, struct text key, struct ptd_entry *out) {
  for (uint32_t f = 0; f < set->n_files; f++) {
    uint32_t i;
    if (!data_find(&set->files[f].data, key, &i)) continue;
    *out = ptd_entry(&set->files[f], i);
    return true;
  }
  return false;
}

static sconce_status match_tensor(const struct ptd_set *set, const struct pte_tensor *t,
                                  sconce_error *err) {
  struct ptd_entry entry;
  if (!ptd_find(set, t->fqn, &entry))
    return fail(err, SCONCE_BAD_FILE,
                "external tensor '%.*s' is in none of the %u data files; is a .ptd file missing?",
                TEXT(t->fqn), (unsigned)set->n_files);
  if (!entry.has_layout)
    return fail(err, SCONCE_BAD_FILE, "external tensor '%.*s' has no layout in its data file",
                TEXT(t->fqn));
  sconce_status status =
      data_shape_compare(&t->shape, "the program's", &entry.shape, "the data file's", err);
  if (status != SCONCE_OK) error_prefix(err, "external tensor '%.*s': ", TEXT(t->fqn));
  return status;
}

sconce_status ptd_set_match(const struct ptd_set *set, const struct pte *pte, sconce_error *err) {
  for (uint32_t i = 0; i < pte->n_methods; i++) {
    struct pte_method m = pte_method(pte, i);
    for (uint32_t k = 0; k < m.n_values; k++) {
      if (pte_value_kind(&m, k) != PTE_TENSOR) continue;
      struct pte_value v = pte_value(&m, k);
      if (v.tensor.external) TRY(match_tensor(set, &v.tensor, err));
    }
  }
  return SCONCE_OK;
}

bool ptd_lookup(void *source, struct text key, struct extent *out) {
  const struct ptd_source *s = source;
  struct ptd_entry entry;
  if (s->set && ptd_find(s->set, key, &entry)) {
    *out = entry.bytes;
    return true;
  }
  return s->pte && pte_find_named(s->pte, key, out);
}
