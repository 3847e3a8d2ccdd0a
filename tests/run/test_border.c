/* What callers have and what the graph computes with: 64 bits outside, 32 inside. */
#include "gpu.h"

#include "sconce.h"
#include "write/write.h"

#include <float.h>

struct opened {
  struct arena arena;
  sconce_device *device;
  sconce_model *model;
  sconce_method *method;
  sconce_state *state; /* NULL: something failed */
};

static void open_program(struct opened *o,
                         sconce_status (*make)(struct arena *, struct span *, sconce_error *)) {
  sconce_error err = {0};
  struct span file = {0};
  *o = (struct opened){0};
  arena_init(&o->arena, NULL);
  CHECK_OK(make(&o->arena, &file, &err), err);
  CHECK_OK(sconce_device_open(&o->device, NULL, &err), err);
  const sconce_model_desc desc = {.program = {.data = file.data, .size = file.size}};
  if (o->device) CHECK_OK(sconce_model_open(&o->model, o->device, &desc, &err), err);
  if (o->model) CHECK_OK(sconce_method_open(&o->method, o->model, NULL, &err), err);
  if (o->method) CHECK_OK(sconce_state_open(&o->state, o->method, &err), err);
}

static void close_program(struct opened *o) {
  sconce_state_close(o->state);
  sconce_method_close(o->method);
  sconce_model_close(o->model);
  sconce_device_close(o->device);
  arena_free(&o->arena);
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* Inputs of int64 and of float64, each returned in a copy. */
static sconce_status wide_copies(struct arena *arena, struct span *out, sconce_error *err) {
  static const int32_t dims_3[] = {3};
  static const int types[] = {SCALAR_LONG, SCALAR_DOUBLE};
  struct write_pte w;
  struct write_blob file;
  write_pte_init(&w, arena);
  write_pte_method(&w, "forward");
  const uint32_t memory = (uint32_t)write_pte_buffer(&w, 256);
  int32_t ids[4];
  for (uint32_t i = 0; i < 4; i++)
    ids[i] = write_pte_tensor(&w, &(struct write_pte_tensor){.scalar_type = types[i % 2],
                                                             .sizes = dims_3,
                                                             .rank = 1,
                                                             .memory_id = memory,
                                                             .memory_offset = 64 * i});
  write_pte_inputs(&w, ids, 2);
  write_pte_outputs(&w, ids + 2, 2);
  const int32_t clone = write_pte_operator(&w, "aten::clone", "out");
  const int32_t none = write_pte_value(&w, literal_null());
  for (uint32_t i = 0; i < 2; i++)
    write_pte_call_kernel(&w, clone, ID_LIST(ids[i], none, ids[i + 2], ids[i + 2]));
  TRY(write_pte_finish(&w, &file, err));
  return write_blob_to_memory(&file, arena, out, err);
}

static sconce_status give_wide(sconce_state *s, const int64_t *whole, const double *real,
                               sconce_error *err) {
  const sconce_tensor a = {SCONCE_INT64, 1, {3}, whole, 24}, b = {SCONCE_FLOAT64, 1, {3}, real, 24};
  if (whole) TRY(sconce_state_set_input(s, 0, &a, err));
  if (real) TRY(sconce_state_set_input(s, 1, &b, err));
  return sconce_state_run(s, NULL, err);
}

static void check_wide(sconce_state *s, const int64_t *whole, const double *real) {
  sconce_error err = {0};
  sconce_tensor y[2] = {{0}};
  for (uint32_t k = 0; k < 2; k++) CHECK_OK(sconce_state_output(s, k, &y[k], &err), err);
  for (uint32_t i = 0; y[0].data && y[1].data && i < 3; i++) {
    const double got = ((const double *)y[1].data)[i], want = (double)(float)real[i];
    CHECK_EQ(((const int64_t *)y[0].data)[i], whole[i]);
    CHECK_SAYS(got == want || (isnan(got) && isnan(want)), "%g, want %g", got, want);
  }
}

/* Each row: what is given in place of the values before, NULL for none, and what is said. */
static void what_does_not_fit_is_an_error_of_its_call(void) {
  static const int64_t ends[] = {INT32_MIN, -1, INT32_MAX};
  static const double reals[] = {FLT_MAX, -1e-300, 0x1.fffffefp127}; /* the last rounds down */
  static const double odd[] = {(double)INFINITY, (double)-INFINITY, (double)NAN};
  static const struct {
    const char *says;
    int64_t whole[3];
    double real[3];
  } rows[] = {
      {"input 0: element 2 is 2147483648, the method takes", {1, 2, INT64_C(1) << 31}, {0}},
      {"input 0: element 0 is -2147483649, the method takes", {-(INT64_C(1) << 31) - 1}, {0}},
      {"input 0: element 1 is 4294967297, the method takes", {1, (INT64_C(1) << 32) + 1}, {0}},
      {"input 1: element 1 is 1.0000000000000001e+300, the method computes with", {0}, {1, 1e300}},
      {"input 1: element 2 is -3.5", {0}, {1, 2, -3.5e38}},
      {"input 1: element 0 is 3.4028235677973366e+38", {0}, {0x1.ffffffp127}}, /* rounds up */
  };
  struct opened o;
  sconce_error err = {0};
  open_program(&o, wide_copies);
  if (o.state) {
    CHECK_OK(give_wide(o.state, ends, reals, &err), err);
    check_wide(o.state, ends, reals);
  }
  for (size_t i = 0; o.state && i < sizeof rows / sizeof *rows; i++) {
    const bool real = strncmp(rows[i].says, "input 1", 7) == 0;
    CHECK_FAILS(give_wide(o.state, real ? NULL : rows[i].whole, real ? rows[i].real : NULL, &err),
                SCONCE_BAD_ARGUMENT, err, rows[i].says);
    CHECK_OK(sconce_state_run(o.state, NULL, &err), err); /* with what the inputs had */
    check_wide(o.state, ends, reals);
  }
  if (o.state) {
    CHECK_OK(give_wide(o.state, NULL, odd, &err), err);
    check_wide(o.state, ends, odd);
  }
  close_program(&o);
}

const struct test suite_border[] = {TEST(what_does_not_fit_is_an_error_of_its_call), {0}};
