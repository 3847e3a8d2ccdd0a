/* Opens a model, runs it once on ones, prints the first numbers of each output.
 *   ./run model.pte */
#include <sconce.h>

#include <stdio.h>
#include <stdlib.h>

static int failed(const sconce_error *err) {
  fprintf(stderr, "%s: %s\n", sconce_status_name(err->status), err->text);
  return 1;
}

/* As many ones as input i takes at most; whole numbers get zeros. */
static sconce_status set_input(sconce_state *state, uint32_t i, sconce_tensor t,
                               sconce_error *err) {
  size_t n = 1;
  for (uint32_t d = 0; d < t.rank; d++) n *= t.dims[d];
  t.size = n * sconce_dtype_size(t.dtype);
  void *data = calloc(n + 1, 8);
  for (size_t k = 0; t.dtype == SCONCE_FLOAT32 && k < n; k++) ((float *)data)[k] = 1;
  t.data = data;
  sconce_status status = sconce_state_set_input(state, i, &t, err);
  free(data);
  return status;
}

int main(int argc, char **argv) {
  sconce_device *device;
  sconce_model *model;
  sconce_method *method;
  sconce_state *state;
  sconce_error err;
  const sconce_model_desc desc = {.program.path = argc > 1 ? argv[1] : "model.pte"};
  if (sconce_device_open(&device, NULL, &err) || sconce_model_open(&model, device, &desc, &err) ||
      sconce_method_open(&method, model, "forward", &err) ||
      sconce_state_open(&state, method, &err))
    return failed(&err);

  const sconce_method_info *info = sconce_method_describe(method);
  for (uint32_t i = 0; i < info->n_inputs; i++)
    if (set_input(state, i, info->inputs[i], &err)) return failed(&err);
  if (sconce_state_run(state, NULL, &err)) return failed(&err);
  for (uint32_t i = 0; i < info->n_outputs; i++) {
    sconce_tensor out;
    if (sconce_state_output(state, i, &out, &err)) return failed(&err);
    printf("output %u, %s, %zu bytes:", i, sconce_dtype_name(out.dtype), out.size);
    for (size_t k = 0; out.dtype == SCONCE_FLOAT32 && k < 4 && k < out.size / 4; k++)
      printf(" %g", ((const float *)out.data)[k]);
    puts("");
  }
  sconce_state_close(state); /* in any order */
  sconce_method_close(method);
  sconce_model_close(model);
  sconce_device_close(device);
  return 0;
}
