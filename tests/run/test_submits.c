/* How often each program of tests/data/programs sends work to the device in a call, and how often
 * it waits for the device before the end: never, however many delegates and operators between them
 * it has, unless only the device knows which way to go. A call of many kernels is sent in two to
 * four, so that the device works on the first while the next is encoded. (A call that takes longer
 * than 100 ms is cut once that is known, and on software devices before it is known.) */
#include "gpu.h"

#include "base/os_folder.h"
#include "run/device.h"

#include <stdio.h>
#include <stdlib.h>

#define FOLDER SCONCE_SOURCE_DIR "/tests/data/programs"

static const struct row {
  const char *folder, *method; /* method NULL: forward */
  const char *data[3];         /* .ptd files */
  uint32_t submits, waits;
  const char *why;
} rows[] = {
    {"bert_six", NULL, {0}, 4, 0, "22 delegates, as a MiniLM; longer"},
    {"bert_small", NULL, {0}, 3, 0, "10 delegates, live dims; long"},
    {"buffers", NULL, {0}, 1, 0, "state of four kinds"},
    {"cache", NULL, {0}, 1, 0, "rows into a KV cache"},
    {"channels_last", NULL, {0}, 1, 0, ""},
    {"channels_last_3d", NULL, {0}, 1, 0, ""},
    {"channels_last_net", NULL, {0}, 1, 0, "delegates and portable convolutions"},
    {"channels_last_rows", NULL, {0}, 1, 0, ""},
    {"channels_last_state", NULL, {0}, 1, 0, ""},
    {"cond", NULL, {0}, 2, 1, "the device computes the condition"},
    {"cond_buffer", NULL, {0}, 1, 0, "branches change a buffer"},
    {"cond_given", NULL, {0}, 1, 0, "the condition is an input"},
    {"decoder", NULL, {0}, 1, 0, ""},
    {"encoder", NULL, {0}, 1, 0, ""},
    {"map", NULL, {0}, 2, 0, "a loop over rows; long"},
    {"nonzero", NULL, {0}, 2, 1, "how many rows only the device knows"},
    {"portable", NULL, {0}, 1, 0, "no delegate"},
    {"scan", NULL, {0}, 1, 0, "a loop with a carry"},
    {"shared_cache", "prefill", {0}, 1, 0, ""},
    {"swin_small", NULL, {0}, 4, 0, "11 delegates; long"},
    {"three_ptd", NULL, {"first.ptd", "second.ptd", "third.ptd"}, 1, 0, ""},
    {"two_methods_decode", "decode", {0}, 1, 0, ""},
    {"two_methods_encode", "encode", {0}, 1, 0, ""},
};
enum { ROWS = sizeof rows / sizeof *rows };

/* Zeros, with the largest dims. */
static sconce_status call(sconce_state *s, const sconce_method_info *info, sconce_error *err) {
  for (uint32_t i = 0; i < info->n_inputs; i++) {
    sconce_tensor x = info->inputs[i];
    x.size = sconce_dtype_size(x.dtype);
    for (uint32_t d = 0; d < x.rank; d++) x.size *= x.dims[d];
    void *zeros = calloc(1, x.size + 1);
    x.data = zeros;
    sconce_status status = zeros ? sconce_state_set_input(s, i, &x, err) : SCONCE_NO_MEMORY;
    free(zeros);
    TRY(status);
  }
  return sconce_state_run(s, NULL, err);
}

static uint32_t waits; /* of the calls so far */
static void listen(void *user, sconce_log_level level, const char *text) {
  (void)user, (void)level;
  waits += strstr(text, "the call waits for it") != NULL;
}

static void run(sconce_device *device, const struct row *r) {
  sconce_model *model = NULL;
  sconce_method *method = NULL;
  sconce_state *state = NULL;
  sconce_error err = {0};
  sconce_stats stats = {0};
  char path[4][400];
  sconce_file data[3] = {{0}};
  sconce_model_desc desc = {.program = {.path = path[3]}, .data_files = data};
  snprintf(path[3], sizeof path[3], "%s/%s/model.pte", FOLDER, r->folder);
  for (; desc.n_data_files < 3 && r->data[desc.n_data_files]; desc.n_data_files++) {
    char *at = path[desc.n_data_files];
    snprintf(at, sizeof path[0], "%s/%s/%s", FOLDER, r->folder, r->data[desc.n_data_files]);
    data[desc.n_data_files].path = at;
  }
  CHECK_OK(sconce_model_open(&model, device, &desc, &err), err);
  if (model) CHECK_OK(sconce_method_open(&method, model, r->method, &err), err);
  if (method) CHECK_OK(sconce_state_open(&state, method, &err), err);
  for (int round = 0; state && round < 2; round++) {
    waits = 0;
    CHECK_OK(call(state, sconce_method_describe(method), &err), err);
    sconce_state_stats(state, &stats);
    if (stats.submits != r->submits || waits != r->waits)
      test_fail(__FILE__, __LINE__, "%s: %u submits and %u waits, want %u and %u: %s", r->folder,
                stats.submits, waits, r->submits, r->waits, r->why);
  }
  sconce_state_close(state);
  sconce_method_close(method);
  sconce_model_close(model);
}

static sconce_status is_listed(void *user, const char *name, bool folder, sconce_error *err) {
  (void)err;
  bool found = !folder;
  for (size_t i = 0; i < ROWS; i++) found |= strcmp(rows[i].folder, name) == 0;
  if (!found) test_fail(__FILE__, __LINE__, "%s is not in the table", name);
  ++*(uint32_t *)user;
  return SCONCE_OK;
}

static void of_every_program(void) {
  sconce_device *device = NULL;
  sconce_error err = {0};
  uint32_t n = 0;
  CHECK_OK(os_folder_each(FOLDER, is_listed, &n, &err), err);
  CHECK(n >= ROWS);
  const sconce_device_desc desc = {.log = {.write = listen, .level = SCONCE_LOG_INFO}};
  CHECK_OK(sconce_device_open(&device, &desc, &err), err);
  if (device) device->piece_ns = UINT64_MAX / 4; /* none is so long that it is cut: test_piece.c */
  for (size_t i = 0; device && i < ROWS; i++) run(device, &rows[i]);
  sconce_device_close(device);
}

const struct test suite_submits[] = {TEST(of_every_program), {0}};
