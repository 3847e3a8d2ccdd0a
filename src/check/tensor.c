/* Tensors that JSON describes: a dtype, a shape, and where the elements come from. */
#include "check/check.h"

#include "base/checked.h"
#include "base/half.h"

#include <inttypes.h>

/* What a line of JSON may make us allocate; elements in files are capped by the file. */
static const size_t GENERATED_MAX = (size_t)1 << 30;

static const sconce_dtype dtypes[] = {SCONCE_FLOAT32, SCONCE_FLOAT16, SCONCE_INT32,
                                      SCONCE_INT64,   SCONCE_INT8,    SCONCE_UINT8,
                                      SCONCE_BOOL,    SCONCE_INT16,   SCONCE_FLOAT64};

static sconce_status read_dtype(struct json spec, sconce_dtype *out, sconce_error *err) {
  struct json name = json_member(spec, "dtype");
  for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
    if (json_text_is(name, sconce_dtype_name(dtypes[i]))) {
      *out = dtypes[i];
      return SCONCE_OK;
    }
  return fail(err, SCONCE_BAD_FILE, "no dtype, or an unknown one");
}

sconce_status check_dims(struct json shape, sconce_dtype dtype, sconce_tensor *out,
                         sconce_error *err) {
  *out = (sconce_tensor){.dtype = dtype, .size = sconce_dtype_size(dtype)};
  if (!json_is_array(shape)) return fail(err, SCONCE_BAD_FILE, "no shape");
  struct json_walk w;
  for (json_begin(&w, shape); json_next(&w); out->rank++) {
    int64_t dim;
    if (out->rank == SCONCE_MAX_RANK)
      return fail(err, SCONCE_BAD_FILE, "a shape of more than %d dims", SCONCE_MAX_RANK);
    if (!json_integer(w.value, &dim) || dim < 0 || dim > UINT32_MAX)
      return fail(err, SCONCE_BAD_FILE, "dim %" PRIu32 " of a shape is no size", out->rank);
    out->dims[out->rank] = (uint32_t)dim;
    if (!mul_size(out->size, (size_t)dim, &out->size))
      return fail(err, SCONCE_BAD_FILE, "a shape of too many bytes");
  }
  return SCONCE_OK;
}

sconce_status check_shape(struct json spec, sconce_tensor *out, sconce_error *err) {
  sconce_dtype dtype = SCONCE_FLOAT32;
  TRY(read_dtype(spec, &dtype, err));
  return check_dims(json_member(spec, "shape"), dtype, out, err);
}

/* ---- elements from files --------------------------------------------------------------------- */

/* Bytes of the golden's .bin, which all its tensors share. */
static sconce_status take_slice(struct check_run *run, struct json offset, struct span blob,
                                sconce_tensor *t, sconce_error *err) {
  int64_t at;
  struct span part;
  if (!json_integer(offset, &at) || at < 0 || !span_slice(blob, (uint64_t)at, t->size, &part))
    return fail(err, SCONCE_BAD_FILE, "%zu bytes at its offset are not in the file of %zu bytes",
                t->size, blob.size);
  void *copy = arena_alloc(&run->arena, t->size, 1, 8); /* aligned, unlike the offset */
  if (!copy) return fail(err, SCONCE_NO_MEMORY, "no memory for %zu bytes", t->size);
  if (t->size) memcpy(copy, part.data, t->size);
  t->data = copy;
  return SCONCE_OK;
}

static sconce_status take_range(struct check_run *run, const char *path,
                                const struct os_reader *reader, struct json offset,
                                sconce_tensor *t, sconce_error *err) {
  const uint64_t size = os_reader_size(reader);
  int64_t at = 0;
  if (offset.at && (!json_integer(offset, &at) || at < 0 || (uint64_t)at > size ||
                    t->size > size - (uint64_t)at))
    return fail(err, SCONCE_BAD_FILE,
                "%zu bytes at its offset are not in the file of %" PRIu64 " bytes", t->size, size);
  if (!offset.at && size != t->size)
    return fail(err, SCONCE_BAD_FILE, "%s has %" PRIu64 " bytes, its shape needs %zu", path, size,
                t->size);
  void *copy = arena_alloc(&run->arena, t->size, 1, 8);
  if (!copy) return fail(err, SCONCE_NO_MEMORY, "no memory for %zu bytes", t->size);
  t->data = copy;
  return os_reader_read(reader, (uint64_t)at, copy, t->size, err);
}

sconce_status check_file(struct check_run *run, struct json spec, sconce_tensor *t,
                         sconce_error *err) {
  const char *path;
  struct os_reader reader;
  TRY(check_beside(run, json_member(spec, "file"), &path, err));
  TRY(os_reader_open(&reader, path, err));
  sconce_status status = take_range(run, path, &reader, json_member(spec, "offset"), t, err);
  os_reader_close(&reader);
  return status;
}

/* ---- elements from JSON ---------------------------------------------------------------------- */

static sconce_status generate(struct check_run *run, sconce_tensor *t, uint8_t **out,
                              sconce_error *err) {
  if (t->size > GENERATED_MAX)
    return fail(err, SCONCE_BAD_FILE, "an input of %zu bytes that is in no file, at most %zu",
                t->size, GENERATED_MAX);
  t->data = *out = arena_alloc(&run->arena, t->size, 1, 8);
  if (!*out) return fail(err, SCONCE_NO_MEMORY, "no memory for %zu bytes", t->size);
  return SCONCE_OK;
}

static bool store_integer(sconce_dtype dtype, uint8_t *p, int64_t v) {
  size_t size = sconce_dtype_size(dtype);
  int64_t high = dtype == SCONCE_BOOL      ? 1
                 : dtype == SCONCE_UINT8   ? UINT8_MAX
                 : size == sizeof(int64_t) ? INT64_MAX
                                           : ((int64_t)1 << (8 * size - 1)) - 1;
  int64_t low = dtype == SCONCE_BOOL || dtype == SCONCE_UINT8 ? 0 : -high - 1;
  if (v < low || v > high) return false;
  memcpy(p, &v, size); /* little-endian, as the files are */
  return true;
}

static void store_float(sconce_dtype dtype, uint8_t *p, double v) {
  float single = (float)v;
  uint16_t half = half_from_float(single);
  if (dtype == SCONCE_FLOAT64)
    memcpy(p, &v, sizeof v);
  else if (dtype == SCONCE_FLOAT32)
    memcpy(p, &single, sizeof single);
  else
    memcpy(p, &half, sizeof half);
}

static sconce_status store(sconce_dtype dtype, uint8_t *p, struct json v, sconce_error *err) {
  int64_t whole = json_is_true(v);
  double number;
  bool truth = dtype == SCONCE_BOOL && v.at && (*v.at == 't' || *v.at == 'f');
  if (check_is_float(dtype) && json_number(v, &number)) {
    store_float(dtype, p, number);
    return SCONCE_OK;
  }
  if (!check_is_float(dtype) && (truth || json_integer(v, &whole)) &&
      store_integer(dtype, p, whole))
    return SCONCE_OK;
  return fail(err, SCONCE_BAD_FILE, "a value is no %s", sconce_dtype_name(dtype));
}

static sconce_status fill(struct check_run *run, struct json value, sconce_tensor *t,
                          sconce_error *err) {
  uint8_t *p, one[8];
  size_t step = sconce_dtype_size(t->dtype);
  TRY(generate(run, t, &p, err));
  TRY(store(t->dtype, one, value, err));
  for (size_t at = 0; at < t->size; at += step) memcpy(p + at, one, step);
  return SCONCE_OK;
}

static sconce_status list(struct check_run *run, struct json values, sconce_tensor *t,
                          sconce_error *err) {
  uint8_t *p;
  size_t step = sconce_dtype_size(t->dtype), n = json_count(values);
  if (n != t->size / step)
    return fail(err, SCONCE_BAD_FILE, "%zu values, its shape needs %zu", n, t->size / step);
  TRY(generate(run, t, &p, err));
  struct json_walk w;
  for (json_begin(&w, values); json_next(&w); p += step) TRY(store(t->dtype, p, w.value, err));
  return SCONCE_OK;
}

/* x[i] = f32((i + phase) % mod - off) / f32(denom); zeros from `count` on. */
static sconce_status ramp(struct check_run *run, struct json spec, sconce_tensor *t,
                          sconce_error *err) {
  int64_t mod, phase = 0, count = INT64_MAX;
  double off = 0, denom = 1;
  if (!json_text_is(json_member(spec, "gen"), "ramp") || t->dtype != SCONCE_FLOAT32)
    return fail(err, SCONCE_BAD_FILE, "gen is something else than a ramp of float32");
  json_integer(json_member(spec, "phase"), &phase);
  json_integer(json_member(spec, "count"), &count);
  json_number(json_member(spec, "off"), &off);
  json_number(json_member(spec, "denom"), &denom);
  if (!json_integer(json_member(spec, "mod"), &mod) || mod < 1 || phase < 0)
    return fail(err, SCONCE_BAD_FILE, "a ramp without mod, or of a negative phase");
  uint8_t *p;
  TRY(generate(run, t, &p, err));
  int64_t n = (int64_t)(t->size / 4);
  for (int64_t i = 0; i < n && i < count; i++) {
    float x = (float)((double)((i + phase % mod) % mod) - off) / (float)denom;
    memcpy(p + 4 * i, &x, 4);
  }
  return SCONCE_OK;
}

/* ---- inputs ---------------------------------------------------------------------------------- */

static sconce_status scalar(struct check_run *run, struct json spec, sconce_tensor *out,
                            sconce_error *err) {
  struct json type = json_member(spec, "type");
  if (json_text_is(type, "int"))
    *out = (sconce_tensor){.dtype = SCONCE_INT64, .size = 8};
  else if (json_text_is(type, "float"))
    *out = (sconce_tensor){.dtype = SCONCE_FLOAT64, .size = 8};
  else if (json_text_is(type, "bool"))
    *out = (sconce_tensor){.dtype = SCONCE_BOOL, .size = 1};
  else
    return fail(err, SCONCE_BAD_FILE, "a scalar's type is int, float or bool");
  return fill(run, json_member(spec, "scalar"), out, err);
}

/* An output of the call before, under the dtype and shape that the case states. */
static sconce_status previous(struct check_run *run, struct json output, sconce_tensor *t,
                              sconce_error *err) {
  int64_t k;
  if (!json_integer(output, &k) || k < 0 || k > UINT32_MAX)
    return fail(err, SCONCE_BAD_FILE, "prev_output is no index");
  sconce_tensor before;
  TRY(sconce_state_output(run->state, (uint32_t)k, &before, err));
  if (before.dtype != t->dtype || before.size != t->size)
    return fail(err, SCONCE_BAD_FILE, "output %u was %zu bytes of %s, the case says %zu of %s",
                (uint32_t)k, before.size, sconce_dtype_name(before.dtype), t->size,
                sconce_dtype_name(t->dtype));
  t->data = before.data; /* valid until the call begins; setting it copies */
  return SCONCE_OK;
}

sconce_status check_input(struct check_run *run, struct json spec, struct span blob,
                          sconce_tensor *out, sconce_error *err) {
  if (!json_is_object(spec)) return fail(err, SCONCE_BAD_FILE, "no object");
  if (json_member(spec, "scalar").at) return scalar(run, spec, out, err);
  TRY(check_shape(spec, out, err));
  struct json v;
  if (json_member(spec, "file").at) return check_file(run, spec, out, err);
  if ((v = json_member(spec, "offset")).at) return take_slice(run, v, blob, out, err);
  if ((v = json_member(spec, "data")).at) return list(run, v, out, err);
  if ((v = json_member(spec, "fill")).at) return fill(run, v, out, err);
  if ((v = json_member(spec, "prev_output")).at) return previous(run, v, out, err);
  if (json_member(spec, "gen").at) return ramp(run, spec, out, err);
  return fail(err, SCONCE_BAD_FILE, "no file, offset, data, fill, gen or prev_output");
}
