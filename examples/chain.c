/* Two models, one after the other: what the first computes stays on the device and is the second
 * one's input.
 *   ./chain first.pte second.pte     float32 inputs; output 0 of the first must fit input 0 of the
 *                              second */
#include <sconce.h>

#include <stdio.h>
#include <stdlib.h>

struct part {
  sconce_model *model;
  sconce_method *method;
  sconce_state *state;
};

static int failed(const sconce_error *err) {
  fprintf(stderr, "%s: %s\n", sconce_status_name(err->status), err->text);
  return 1;
}

static sconce_status open_part(struct part *p, sconce_device *device, const char *path,
                               sconce_error *err) {
  const sconce_model_desc desc = {.program.path = path};
  sconce_status status = sconce_model_open(&p->model, device, &desc, err);
  if (!status) status = sconce_method_open(&p->method, p->model, NULL, err);
  return status ? status : sconce_state_open(&p->state, p->method, err);
}

/* Every element of every input is 1.5. */
static sconce_status set_inputs(const struct part *p, sconce_error *err) {
  const sconce_method_info *info = sconce_method_describe(p->method);
  sconce_status status = SCONCE_OK;
  for (uint32_t k = 0; k < info->n_inputs && !status; k++) {
    sconce_tensor x = info->inputs[k];
    size_t n = 1;
    for (uint32_t d = 0; d < x.rank; d++) n *= x.dims[d];
    float *numbers = malloc((n + 1) * sizeof *numbers);
    for (size_t i = 0; i < n; i++) numbers[i] = 1.5f;
    x.data = numbers;
    x.size = n * sizeof *numbers;
    status = sconce_state_set_input(p->state, k, &x, err);
    free(numbers);
  }
  return status;
}

int main(int argc, char **argv) {
  sconce_device *device;
  struct part a = {0}, b = {0};
  sconce_error err;
  sconce_tensor y;
  if (argc < 3) return 2;
  if (sconce_device_open(&device, NULL, &err) || open_part(&a, device, argv[1], &err) ||
      open_part(&b, device, argv[2], &err))
    return failed(&err);
  const sconce_call on_the_device = {.keep_outputs = true};
  if (set_inputs(&a, &err) || set_inputs(&b, &err) ||
      sconce_state_run(a.state, &on_the_device, &err) ||
      sconce_state_feed(b.state, 0, a.state, 0, &err) || sconce_state_run(b.state, NULL, &err) ||
      sconce_state_output(b.state, 0, &y, &err))
    return failed(&err);
  printf("%g\n", ((const float *)y.data)[0]);
  for (struct part *p = &a; p; p = p == &a ? &b : NULL) {
    sconce_state_close(p->state);
    sconce_method_close(p->method);
    sconce_model_close(p->model);
  }
  sconce_device_close(device);
  return 0;
}
