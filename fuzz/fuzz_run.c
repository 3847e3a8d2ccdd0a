/* Programs on a device, fused and as they were exported. Both must end in the same way and give the
 * same numbers up to rounding. What rounding may do depends on the program: where they differ it
 * runs once more, as exported, with inputs that differ by a little, and what that changes is
 * allowed as well. */
#include "device.h"
#include "mutate.h"

#include "base/half.h"
#include "check/check.h"
#include "run/model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

enum { NODES = 500, STEPS = 2000, OUTPUTS_MAX = 16, NUMBERS_MAX = 1 << 15 };
static const uint64_t DEVICE_MAX = 16 << 20;

struct ended {
  sconce_status status;
  bool half; /* something in the graph has 16 bits */
  uint32_t n, n_numbers;
  sconce_tensor outputs[OUTPUTS_MAX]; /* without their data */
  double numbers[NUMBERS_MAX];        /* …which are these, as far as there is room */
  sconce_dtype dtypes[NUMBERS_MAX];
};

/* ---- running --------------------------------------------------------------------------------- */

/* Small ones of both signs; `nudge` moves each by so much of itself, up or down. Integers may be
 * indices: 0 and 1. */
static void put(uint8_t *at, sconce_dtype dtype, uint64_t i, double nudge) {
  const double x = ((double)(i * 7 % 13) / 4 - 1.3) * (1 + (i * 5 % 3 ? nudge : -nudge));
  const float single = (float)x;
  const uint16_t half = half_from_float(single);
  if (dtype == SCONCE_FLOAT64)
    memcpy(at, &x, 8);
  else if (dtype == SCONCE_FLOAT32)
    memcpy(at, &single, 4);
  else if (dtype == SCONCE_FLOAT16)
    memcpy(at, &half, 2);
  else
    *at = i % 2;
}

static sconce_status set_inputs(sconce_state *state, const sconce_method_info *info, double nudge,
                                sconce_error *err) {
  for (uint32_t i = 0; i < info->n_inputs; i++) {
    sconce_tensor t = info->inputs[i];
    const uint32_t step = (uint32_t)sconce_dtype_size(t.dtype);
    t.size = step;
    for (uint32_t d = 0; d < t.rank; d++) t.size *= t.dims[d];
    if (t.size > DEVICE_MAX) return SCONCE_NO_MEMORY; /* of the host; the device has its limit */
    uint8_t *bytes = calloc(1, t.size + 1);
    t.data = bytes;
    for (uint64_t k = 0; bytes && step && k < t.size / step; k++)
      put(bytes + k * step, t.dtype, k + i, nudge);
    sconce_status status = bytes ? sconce_state_set_input(state, i, &t, err) : SCONCE_NO_MEMORY;
    free(bytes);
    if (status != SCONCE_OK && t.rank) return status; /* a scalar that was traced stays */
  }
  return SCONCE_OK;
}

static void look(sconce_state *state, const sconce_method_info *info, struct ended *out) {
  sconce_error err;
  for (uint32_t i = 0; i < info->n_outputs && i < OUTPUTS_MAX; i++) {
    sconce_tensor *t = &out->outputs[out->n];
    if (sconce_state_output(state, i, t, &err) != SCONCE_OK) continue;
    const size_t step = sconce_dtype_size(t->dtype), n = step && t->data ? t->size / step : 0;
    for (size_t k = 0; k < n && out->n_numbers < NUMBERS_MAX; k++) {
      out->dtypes[out->n_numbers] = t->dtype;
      out->numbers[out->n_numbers++] = check_element(t, k);
    }
    out->n++;
  }
}

static bool has_halves(const struct graph *g) {
  for (uint32_t i = 0; i < g->n_values; i++)
    if (g->values[i].kind == VK_TENSOR && g->values[i].tensor.dtype == VK_FLOAT16) return true;
  return false;
}

static void run(sconce_device *device, const uint8_t *data, size_t size, double nudge,
                struct ended *out) {
  sconce_error err = {0};
  sconce_model *model = NULL;
  sconce_method *method = NULL;
  sconce_state *state = NULL;
  const sconce_model_desc desc = {
      .program = {.data = data, .size = size}, .max_nodes = NODES, .max_device_bytes = DEVICE_MAX};
  out->n = out->n_numbers = 0;
  sconce_status status = sconce_model_open(&model, device, &desc, &err);
  if (status == SCONCE_OK) status = sconce_method_open(&method, model, NULL, &err);
  if (status == SCONCE_OK) status = sconce_state_open(&state, method, &err);
  const sconce_method_info *info = method ? sconce_method_describe(method) : NULL;
  if (status == SCONCE_OK) out->half = has_halves(&method->graph);
  if (status == SCONCE_OK) status = set_inputs(state, info, nudge, &err);
  if (status == SCONCE_OK)
    status = sconce_state_run(state, &(sconce_call){.max_steps = STEPS}, &err);
  if (status == SCONCE_OK) look(state, info, out);
  if (status != SCONCE_OK) fuzz_not_by_the_library(&err);
  out->status = status;
  sconce_state_close(state);
  sconce_method_close(method);
  sconce_model_close(model);
}

/* ---- comparing ------------------------------------------------------------------------------- */

static void compare_shapes(const struct ended *fused, const struct ended *plain) {
  if (fused->status != plain->status || fused->n != plain->n) abort();
  if (fused->n_numbers != plain->n_numbers) abort();
  for (uint32_t i = 0; i < fused->n; i++) {
    const sconce_tensor *a = &fused->outputs[i], *b = &plain->outputs[i];
    if (a->dtype != b->dtype || a->rank != b->rank || a->size != b->size) abort();
    if (memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) != 0) abort();
  }
}

/* NaN equals NaN, and infinity itself; one alone is as far away as can be. */
static double distance(double a, double b) {
  if (a == b || (isnan(a) && isnan(b))) return 0;
  return isfinite(a) && isfinite(b) ? fabs(a - b) : INFINITY;
}

/* Integers exactly; the others to so much of the largest number there is. */
static double tolerance(const struct ended *e, uint32_t i, double largest) {
  if (!check_is_float(e->dtypes[i])) return 0;
  return (e->half ? 2e-2 : 1e-3) * largest + 1e-6;
}

/* The first number that differs by more than its tolerance and `more`; n_numbers: none. */
static uint32_t find_wrong(const struct ended *a, const struct ended *b, double more) {
  double largest = 0;
  for (uint32_t i = 0; i < b->n_numbers; i++)
    if (check_is_float(b->dtypes[i]) && isfinite(b->numbers[i]) && fabs(b->numbers[i]) > largest)
      largest = fabs(b->numbers[i]);
  uint32_t i = 0;
  while (i < b->n_numbers &&
         distance(a->numbers[i], b->numbers[i]) <= tolerance(b, i, largest) + more)
    i++;
  return i;
}

static double largest_distance(const struct ended *a, const struct ended *b) {
  double most = 0;
  if (a->status != b->status || a->n_numbers != b->n_numbers) return INFINITY;
  for (uint32_t i = 0; i < a->n_numbers; i++) {
    const double d = distance(a->numbers[i], b->numbers[i]);
    if (d > most) most = d;
  }
  return most;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static struct ended fused, plain, near;
  sconce_device *device = fuzz_device(NULL), *as_exported = fuzz_device("all");
  run(device, data, size, 0, &fused);
  if (fused.status == SCONCE_BAD_FILE) return 0; /* no graph was made */
  run(as_exported, data, size, 0, &plain);
  compare_shapes(&fused, &plain);
  if (find_wrong(&fused, &plain, 0) == plain.n_numbers) return 0;
  double most = 0;
  for (int sign = -1; sign <= 1; sign += 2) {
    run(as_exported, data, size, sign * (plain.half ? 4e-3 : 1e-4), &near);
    const double d = largest_distance(&near, &plain);
    if (d > most) most = d;
  }
  const uint32_t i = find_wrong(&fused, &plain, 10 * most);
  if (i == plain.n_numbers) return 0;
  fprintf(stderr, "number %u is %.9g, as exported %.9g; a little more or less moves it by %.3g\n",
          i, fused.numbers[i], plain.numbers[i], most);
  abort();
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
  return mutate_program(data, size, max_size, seed % 2 ? seed * 8 + 1 : seed / 2);
}
