/* Programs on a device, with zeros for inputs, fused and as they were exported. Both must end in
 * the same way; the numbers are compared by tests/run/test_random.c, which has an interpreter. */
#include "device.h"
#include "mutate.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

enum { NODES_MAX = 500, STEPS_MAX = 2000, OUTPUTS_MAX = 16 };
static const uint64_t DEVICE_MAX = 16 << 20;

struct ended {
  sconce_status status;
  uint32_t n;
  sconce_tensor outputs[OUTPUTS_MAX];
};

static sconce_status set_zeros(sconce_state *state, const sconce_method_info *info,
                               sconce_error *err) {
  for (uint32_t i = 0; i < info->n_inputs; i++) {
    sconce_tensor t = info->inputs[i];
    t.size = sconce_dtype_size(t.dtype);
    for (uint32_t d = 0; d < t.rank; d++) t.size *= t.dims[d];
    if (t.size > DEVICE_MAX) return SCONCE_NO_MEMORY; /* of the host; the device has its limit */
    void *zeros = calloc(1, t.size + 1);
    t.data = zeros;
    sconce_status status = zeros ? sconce_state_set_input(state, i, &t, err) : SCONCE_NO_MEMORY;
    free(zeros);
    if (status != SCONCE_OK) return status;
  }
  return SCONCE_OK;
}

static void look(sconce_state *state, const sconce_method_info *info, struct ended *out) {
  sconce_error err;
  for (uint32_t i = 0; i < info->n_outputs && i < OUTPUTS_MAX; i++)
    if (sconce_state_output(state, i, &out->outputs[out->n], &err) == SCONCE_OK) out->n++;
}

static void run(sconce_device *device, const uint8_t *data, size_t size, struct ended *out) {
  sconce_error err = {0};
  sconce_model *model = NULL;
  sconce_method *method = NULL;
  sconce_state *state = NULL;
  const sconce_model_desc desc = {.program = {.data = data, .size = size},
                                  .max_nodes = NODES_MAX,
                                  .max_device_bytes = DEVICE_MAX};
  sconce_status status = sconce_model_open(&model, device, &desc, &err);
  if (status == SCONCE_OK) status = sconce_method_open(&method, model, NULL, &err);
  if (status == SCONCE_OK) status = sconce_state_open(&state, method, &err);
  const sconce_method_info *info = method ? sconce_method_describe(method) : NULL;
  if (status == SCONCE_OK) status = set_zeros(state, info, &err);
  if (status == SCONCE_OK)
    status = sconce_state_run(state, &(sconce_call){.max_steps = STEPS_MAX}, &err);
  if (status == SCONCE_OK) look(state, info, out);
  if (status != SCONCE_OK) fuzz_not_by_the_library(&err);
  out->status = status;
  sconce_state_close(state);
  sconce_method_close(method);
  sconce_model_close(model);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static struct ended fused, plain;
  sconce_device *device = fuzz_device(NULL), *as_exported = fuzz_device("all");
  if (!device || !as_exported) return 0;
  fused = plain = (struct ended){0};
  run(device, data, size, &fused);
  if (fused.status == SCONCE_BAD_FILE) return 0; /* no graph was made */
  run(as_exported, data, size, &plain);
  if (fused.status != plain.status || fused.n != plain.n) abort();
  for (uint32_t i = 0; i < fused.n; i++) {
    const sconce_tensor *a = &fused.outputs[i], *b = &plain.outputs[i];
    if (a->dtype != b->dtype || a->rank != b->rank || a->size != b->size) abort();
    if (memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) != 0) abort();
  }
  return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
  return mutate_program(data, size, max_size, seed % 2 ? seed * 8 + 1 : seed / 2);
}
