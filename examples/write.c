/* A converter in small: arrays of floats become a .pte with 4-bit weights, which is then run. The
 * weights are made row by row while the file is written; no more than a row is ever in memory.
 *   ./write linear.pte     y = relu(x W^T), x up to 8 rows of 64, y of 16
 *   cc write.c $(pkg-config --cflags --libs sconce_write sconce) -lm */
#include <sconce.h>
#include <sconce_write.h>

#include <math.h>
#include <stdio.h>

enum { ROWS = 8, K = 64, N = 16, GROUP = 32 };

static int failed(const sconce_error *err) {
  fprintf(stderr, "%s: %s\n", sconce_status_name(err->status), err->text);
  return 1;
}

/* What a converter would read from a checkpoint. */
static float weight(int n, int k) { return sinf((float)(n * K + k)); }

/* Of a group of a row: 7 steps up to its largest weight. */
static float scale(int n, int group) {
  float most = 0;
  for (int k = group * GROUP; k < (group + 1) * GROUP; k++) most = fmaxf(most, fabsf(weight(n, k)));
  return most / 7;
}

static int code(int n, int k) { return 8 + (int)lrintf(weight(n, k) / scale(n, k / GROUP)); }

/* (N, K / 2) bytes, the even k in the low half. */
static sconce_status make_codes(void *user, sconce_sink *sink, sconce_error *err) {
  sconce_status status = SCONCE_OK;
  (void)user, (void)err;
  for (int n = 0; n < N && !status; n++) {
    uint8_t row[K / 2];
    for (int k = 0; k < K; k += 2) row[k / 2] = (uint8_t)(code(n, k) | code(n, k + 1) << 4);
    status = sconce_sink_put(sink, row, sizeof row);
  }
  return status;
}

/* (K / GROUP, N) */
static sconce_status make_scales(void *user, sconce_sink *sink, sconce_error *err) {
  sconce_status status = SCONCE_OK;
  (void)user, (void)err;
  for (int group = 0; group < K / GROUP && !status; group++) {
    float row[N];
    for (int n = 0; n < N; n++) row[n] = scale(n, group);
    status = sconce_sink_put(sink, row, sizeof row);
  }
  return status;
}

static sconce_status write_model(const char *path, sconce_error *err) {
  const sconce_bytes codes = {.size = N * K / 2, .make = make_codes};
  const sconce_bytes scales = {.size = K / GROUP * N * sizeof(float), .make = make_scales};
  const int64_t rows = ROWS;
  sconce_writer *w;
  if (sconce_writer_open(&w, NULL, err)) return err->status;
  sconce_writer_data(w, "linear.codes", &codes);
  sconce_writer_data(w, "linear.scales", &scales);

  sconce_graph *g = sconce_writer_graph(w);
  const int32_t x = sconce_graph_tensor(g, SCONCE_FLOAT32, SCONCE_DIMS(ROWS, K));
  const int32_t q = sconce_graph_constant(g, SCONCE_UINT8, SCONCE_DIMS(N, K / 2), "linear.codes");
  const int32_t s =
      sconce_graph_constant(g, SCONCE_FLOAT32, SCONCE_DIMS(K / GROUP, N), "linear.scales");
  const int32_t sum = sconce_graph_tensor(g, SCONCE_FLOAT32, SCONCE_DIMS(ROWS, N));
  const int32_t y = sconce_graph_tensor(g, SCONCE_FLOAT32, SCONCE_DIMS(ROWS, N));
  const int32_t group = sconce_graph_int(g, GROUP), bias = sconce_graph_null(g);
  sconce_graph_input(g, x, true); /* any number of rows */
  sconce_graph_call(g, "et_vk.linear_q4gsw.default", SCONCE_IDS(x, q, s, group, bias, sum));
  sconce_graph_call(g, "aten.relu.default", SCONCE_IDS(sum, y));
  sconce_graph_output(g, y, true);
  sconce_writer_method(w, "forward", g);
  sconce_writer_ints(w, "get_max_rows", &rows, 1);

  const sconce_status status = sconce_writer_save(w, path, err); /* every failure comes out here */
  sconce_writer_close(w);
  return status;
}

/* The largest difference from the same sums on the host, for one row of ones. */
static sconce_status run_model(const char *path, sconce_error *err) {
  sconce_device *device;
  sconce_model *model;
  sconce_method *method;
  sconce_state *state;
  sconce_tensor y;
  float ones[K], most = 0;
  for (int k = 0; k < K; k++) ones[k] = 1;
  const sconce_model_desc desc = {.program.path = path};
  const sconce_tensor x = {SCONCE_FLOAT32, 2, {1, K}, ones, sizeof ones};
  if (sconce_device_open(&device, NULL, err) || sconce_model_open(&model, device, &desc, err) ||
      sconce_method_open(&method, model, NULL, err) || sconce_state_open(&state, method, err) ||
      sconce_state_set_input(state, 0, &x, err) || sconce_state_run(state, NULL, err) ||
      sconce_state_output(state, 0, &y, err))
    return err->status;
  for (int n = 0; n < N; n++) {
    float sum = 0;
    for (int k = 0; k < K; k++) sum += (float)(code(n, k) - 8) * scale(n, k / GROUP);
    most = fmaxf(most, fabsf(((const float *)y.data)[n] - fmaxf(sum, 0)));
  }
  printf("%u x %u, %s\n", y.dims[0], y.dims[1], most < 1e-4f ? "as computed here" : "wrong");
  sconce_state_close(state);
  sconce_method_close(method);
  sconce_model_close(model);
  sconce_device_close(device);
  return SCONCE_OK;
}

int main(int argc, char **argv) {
  const char *path = argc > 1 ? argv[1] : "linear.pte";
  sconce_error err;
  if (write_model(path, &err) || run_model(path, &err)) return failed(&err);
  return 0;
}
