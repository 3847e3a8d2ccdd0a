/* Segments, named data and tensor shapes: see data.h. */
#include "format/data.h"

#include "base/checked.h"
#include "base/hash.h"
#include "format/schema.h"

#include <inttypes.h>

/* ---- segments -------------------------------------------------------------------------------- */

static sconce_status check_segment(const struct data *data, uint32_t i, sconce_error *err) {
  struct fb_table t = fb_table_at(data->segments, i);
  uint64_t offset = fb_u64(t, SEGMENT_OFFSET, 0), size = fb_u64(t, SEGMENT_SIZE, 0), start, end;
  if (size == 0) return SCONCE_OK; /* programs without constants list one, wherever it may lie */
  if (!add_u64(data->base, offset, &start) || !add_u64(start, size, &end))
    return fail(err, SCONCE_BAD_FILE,
                "segment %u at %" PRIu64 " + %" PRIu64 " with %" PRIu64 " bytes overflows",
                (unsigned)i, data->base, offset, size);
  if (end > data->file.size)
    return fail(err, SCONCE_BAD_FILE,
                "segment %u ends at %" PRIu64 ", the file has %" PRIu64 " bytes", (unsigned)i, end,
                data->file.size);
  if (end > data->end)
    return fail(err, SCONCE_BAD_FILE,
                "segment %u ends at %" PRIu64 ", the segment area ends at %" PRIu64, (unsigned)i,
                end, data->end);
  return SCONCE_OK;
}

struct extent data_segment(const struct data *data, uint32_t i) {
  struct fb_table t = fb_table_at(data->segments, i);
  uint64_t size = fb_u64(t, SEGMENT_SIZE, 0), offset = size ? fb_u64(t, SEGMENT_OFFSET, 0) : 0;
  struct extent out;
  return extent_slice(data->file, data->base + offset, size, &out) ? out : (struct extent){0};
}

/* ---- named data ------------------------------------------------------------------------------ */

struct text data_key(const struct data *data, uint32_t i) {
  return fb_text(fb_table_at(data->named, i), NAMED_DATA_KEY);
}

struct extent data_named(const struct data *data, uint32_t i) {
  if (i >= data->named.n) return (struct extent){0};
  return data_segment(data, fb_u32(fb_table_at(data->named, i), NAMED_DATA_SEGMENT_INDEX, 0));
}

/* A slot holds entry + 1; keys are unique, so the first match is the only one. */
void data_index(struct data *data, uint32_t *slots, uint32_t n_slots) {
  memset(slots, 0, (size_t)n_slots * sizeof *slots);
  for (uint32_t i = 0; i < data->named.n; i++) {
    const struct text key = data_key(data, i);
    uint64_t at = hash_key(key.data, key.size);
    while (slots[at % n_slots]) at++;
    slots[at % n_slots] = i + 1;
  }
  data->index = slots;
  data->n_index = n_slots;
}

static bool find_in_index(const struct data *data, struct text key, uint32_t *out) {
  uint32_t entry;
  for (uint64_t at = hash_key(key.data, key.size); (entry = data->index[at % data->n_index]) != 0;
       at++) {
    if (!text_equal(data_key(data, entry - 1), key)) continue;
    *out = entry - 1;
    return true;
  }
  return false;
}

bool data_find(const struct data *data, struct text key, uint32_t *out) {
  if (data->index) return find_in_index(data, key, out);
  for (uint32_t i = 0; i < data->named.n; i++) {
    if (!text_equal(data_key(data, i), key)) continue;
    *out = i;
    return true;
  }
  return false;
}

static sconce_status check_named(const struct data *data, uint32_t i, sconce_error *err) {
  struct text key = data_key(data, i);
  if (key.size == 0 || key.size > DATA_MAX_KEY)
    return fail(err, SCONCE_BAD_FILE, "the key of named data %u has %zu bytes, allowed are 1 to %u",
                (unsigned)i, key.size, DATA_MAX_KEY);
  uint32_t segment = fb_u32(fb_table_at(data->named, i), NAMED_DATA_SEGMENT_INDEX, 0);
  if (segment >= data->segments.n)
    return fail(err, SCONCE_BAD_FILE,
                "named data '%.*s' is in segment %u, the file has %u segments", TEXT(key),
                (unsigned)segment, (unsigned)data->segments.n);
  return SCONCE_OK;
}

sconce_status data_verify(const struct data *data, sconce_error *err) {
  for (uint32_t i = 0; i < data->segments.n; i++) TRY(check_segment(data, i, err));
  for (uint32_t i = 0; i < data->named.n; i++) TRY(check_named(data, i, err));
  return data_verify_unique(&data, 1, err);
}

/* ---- unique keys ----------------------------------------------------------------------------- */

/* Without memory for all keys they are checked in rounds: a round takes the keys whose hash falls
 * to it, about SLOTS / 2 of them, through a small hash table. Real files need one round; the limits
 * on keys bound the rest. */
#define SLOTS 2048u /* 16 KiB of stack */

struct slot {
  uint32_t file, entry; /* entry + 1; 0: free */
};

static sconce_status insert_key(const struct data *const *files, struct slot *slots, uint64_t hash,
                                struct slot put, sconce_error *err) {
  struct text key = data_key(files[put.file], put.entry - 1);
  for (uint32_t probe = 0; probe < SLOTS; probe++) {
    struct slot *s = &slots[(hash + probe) % SLOTS];
    if (s->entry == 0) {
      *s = put;
      return SCONCE_OK;
    }
    if (!text_equal(data_key(files[s->file], s->entry - 1), key)) continue;
    if (s->file == put.file)
      return fail(err, SCONCE_BAD_FILE, "the key '%.*s' names data %u and %u", TEXT(key),
                  (unsigned)s->entry - 1, (unsigned)put.entry - 1);
    return fail(err, SCONCE_BAD_FILE, "the key '%.*s' is in data file %u and in data file %u",
                TEXT(key), (unsigned)s->file, (unsigned)put.file);
  }
  return fail(err, SCONCE_BAD_FILE, "the keys of the named data collide"); /* never by chance */
}

sconce_status data_verify_unique(const struct data *const *files, uint32_t n_files,
                                 sconce_error *err) {
  uint64_t n_keys = 0;
  for (uint32_t f = 0; f < n_files; f++) n_keys += files[f]->named.n;
  if (n_keys > DATA_MAX_NAMED)
    return fail(err, SCONCE_BAD_FILE, "%" PRIu64 " keys of named data, at most %u", n_keys,
                DATA_MAX_NAMED);
  if (n_keys < 2) return SCONCE_OK;
  uint64_t n_rounds = n_keys / (SLOTS / 2) + 1;
  for (uint64_t round = 0; round < n_rounds; round++) {
    struct slot slots[SLOTS] = {0};
    for (uint32_t f = 0; f < n_files; f++)
      for (uint32_t i = 0; i < files[f]->named.n; i++) {
        const struct text key = data_key(files[f], i);
        uint64_t hash = hash_key(key.data, key.size);
        if (hash / SLOTS % n_rounds == round)
          TRY(insert_key(files, slots, hash, (struct slot){f, i + 1}, err));
      }
  }
  return SCONCE_OK;
}

/* ---- tensors --------------------------------------------------------------------------------- */

static const struct {
  uint8_t size;
  const char *name;
} scalars[] = {
    {1, "uint8"},           {1, "int8"},
    {2, "int16"},           {4, "int32"},
    {8, "int64"},           {2, "float16"},
    {4, "float32"},         {8, "float64"},
    {4, "complex32"},       {8, "complex64"},
    {16, "complex128"},     {1, "bool"},
    {1, "qint8"},           {1, "quint8"},
    {4, "qint32"},          {2, "bfloat16"},
    {1, "quint4x2"},        {1, "quint2x4"},
    {1, "bits1x8"},         {1, "bits2x4"},
    {1, "bits4x2"},         {1, "bits8"},
    {2, "bits16"},          {1, "float8_e5m2"},
    {1, "float8_e4m3fn"},   {1, "float8_e5m2fnuz"},
    {1, "float8_e4m3fnuz"}, {2, "uint16"},
    {4, "uint32"},          {8, "uint64"},
};
#define N_SCALARS (int)(sizeof scalars / sizeof *scalars)

uint32_t scalar_size(int type) { return type >= 0 && type < N_SCALARS ? scalars[type].size : 0; }

const char *scalar_name(int type) {
  return type >= 0 && type < N_SCALARS ? scalars[type].name : "unknown";
}

static sconce_status check_dim_order(const struct data_shape *s, sconce_error *err) {
  uint32_t seen = 0;
  for (uint32_t i = 0; i < s->rank; i++) {
    uint8_t dim = s->dim_order[i];
    if (dim >= s->rank || (seen >> dim & 1))
      return fail(err, SCONCE_BAD_FILE, "dim_order[%u] is %u, not a permutation of %u dims",
                  (unsigned)i, (unsigned)dim, (unsigned)s->rank);
    seen |= 1u << dim;
  }
  return SCONCE_OK;
}

/* The product of the nonzero sizes must fit too: strides count a size of 0 as 1. */
static sconce_status count_bytes(struct data_shape *s, sconce_error *err) {
  uint64_t product = scalar_size(s->scalar_type);
  bool empty = false;
  for (uint32_t i = 0; i < s->rank; i++) {
    if (s->sizes[i] < 0)
      return fail(err, SCONCE_BAD_FILE, "sizes[%u] is %d", (unsigned)i, (int)s->sizes[i]);
    empty |= s->sizes[i] == 0;
    if (s->sizes[i] > 0 &&
        (!mul_u64(product, (uint64_t)s->sizes[i], &product) || product > INT64_MAX))
      return fail(err, SCONCE_BAD_FILE,
                  "the bytes of a tensor of rank %u overflow at sizes[%u] = %d", (unsigned)s->rank,
                  (unsigned)i, (int)s->sizes[i]);
  }
  s->nbytes = empty ? 0 : product;
  s->numel = s->nbytes / scalar_size(s->scalar_type);
  return SCONCE_OK;
}

sconce_status data_shape_read(int scalar_type, struct fb_vec sizes, struct fb_vec dim_order,
                              struct data_shape *out, sconce_error *err) {
  *out = (struct data_shape){.scalar_type = scalar_type, .rank = sizes.n};
  if (scalar_size(scalar_type) == 0)
    return fail(err, SCONCE_BAD_FILE, "scalar type %d is unknown", scalar_type);
  if (sizes.n > DATA_MAX_RANK)
    return fail(err, SCONCE_BAD_FILE, "rank %u, at most %d", (unsigned)sizes.n, DATA_MAX_RANK);
  if (dim_order.n != sizes.n)
    return fail(err, SCONCE_BAD_FILE, "%u sizes and %u entries of dim_order", (unsigned)sizes.n,
                (unsigned)dim_order.n);
  for (uint32_t i = 0; i < sizes.n; i++) {
    out->sizes[i] = fb_i32_at(sizes, i);
    out->dim_order[i] = fb_u8_at(dim_order, i);
  }
  TRY(check_dim_order(out, err));
  return count_bytes(out, err);
}

sconce_status data_shape_compare(const struct data_shape *a, const char *a_name,
                                 const struct data_shape *b, const char *b_name,
                                 sconce_error *err) {
  if (a->scalar_type != b->scalar_type)
    return fail(err, SCONCE_BAD_FILE, "%s is %s, %s is %s", a_name, scalar_name(a->scalar_type),
                b_name, scalar_name(b->scalar_type));
  if (a->rank != b->rank)
    return fail(err, SCONCE_BAD_FILE, "%s has rank %u, %s has rank %u", a_name, (unsigned)a->rank,
                b_name, (unsigned)b->rank);
  for (uint32_t i = 0; i < a->rank; i++) {
    if (a->sizes[i] != b->sizes[i])
      return fail(err, SCONCE_BAD_FILE, "%s has sizes[%u] = %d, %s has %d", a_name, (unsigned)i,
                  (int)a->sizes[i], b_name, (int)b->sizes[i]);
    if (a->dim_order[i] != b->dim_order[i])
      return fail(err, SCONCE_BAD_FILE, "%s has dim_order[%u] = %u, %s has %u", a_name, (unsigned)i,
                  (unsigned)a->dim_order[i], b_name, (unsigned)b->dim_order[i]);
  }
  return SCONCE_OK;
}
