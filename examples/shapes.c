/* Dynamic shapes: one loaded graph, calls of 1, 2, 3 … rows, outputs with their live dims.
 *   ./shapes model.pte     where input 0 is float32 and its first dim may change */
#include <sconce.h>

#include <stdio.h>
#include <stdlib.h>

static int failed(const sconce_error *err) {
  fprintf(stderr, "%s: %s\n", sconce_status_name(err->status), err->text);
  return 1;
}

int main(int argc, char **argv) {
  sconce_device *device;
  sconce_model *model;
  sconce_method *method;
  sconce_state *state;
  sconce_error err;
  const sconce_model_desc desc = {.program.path = argc > 1 ? argv[1] : "model.pte"};
  if (sconce_device_open(&device, NULL, &err) || sconce_model_open(&model, device, &desc, &err) ||
      sconce_method_open(&method, model, NULL, &err) || sconce_state_open(&state, method, &err))
    return failed(&err);

  sconce_tensor x = sconce_method_describe(method)->inputs[0]; /* dims are the most it takes */
  const uint32_t most = x.dims[0];
  size_t row = sconce_dtype_size(x.dtype);
  for (uint32_t d = 1; d < x.rank; d++) row *= x.dims[d];
  void *zeros = calloc(most + 1, row);
  x.data = zeros;
  for (uint32_t n = 1; n <= most; n++) {
    x.dims[0] = n;
    x.size = n * row;
    sconce_tensor y;
    sconce_stats stats;
    if (sconce_state_set_input(state, 0, &x, &err) || sconce_state_run(state, NULL, &err) ||
        sconce_state_output(state, 0, &y, &err))
      return failed(&err);
    sconce_state_stats(state, &stats);
    printf("%u rows in, %u out, %u nodes planned anew\n", n, y.dims[0], stats.nodes_planned);
  }
  x.dims[0] = most + 1; /* too many: an error of this call, and the state stays as it was */
  x.size = (most + 1) * row;
  if (sconce_state_set_input(state, 0, &x, &err)) printf("%s\n", err.text);
  free(zeros);
  sconce_state_close(state);
  sconce_method_close(method);
  sconce_model_close(model);
  sconce_device_close(device);
  return 0;
}
