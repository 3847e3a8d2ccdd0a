/* Outputs of one program as inputs of another, on the device: tests/data/programs/encoder and
 * decoder, whose second inputs and results PyTorch gave when it ran the one behind the other. */
#include "gpu.h"

#include "sconce.h"

#include <stdlib.h>

#define FOLDER SCONCE_SOURCE_DIR "/tests/data/programs/"

struct program {
  sconce_model *model;
  sconce_method *method;
  sconce_state *state;
};

static sconce_status open_program(struct program *p, sconce_device *device, const char *path,
                                  sconce_error *err) {
  const sconce_model_desc desc = {.program = {.path = path}};
  TRY(sconce_model_open(&p->model, device, &desc, err));
  TRY(sconce_method_open(&p->method, p->model, NULL, err));
  return sconce_state_open(&p->state, p->method, err);
}

static void close_program(struct program *p) {
  sconce_state_close(p->state);
  sconce_method_close(p->method);
  sconce_model_close(p->model);
}

/* Ids, a row of them, as many as the file has. */
static void set_ids(const struct program *p, uint32_t input, const char *file) {
  sconce_error err = {0};
  size_t size;
  unsigned char *ids = test_read(file, &size);
  REQUIRE(ids);
  const sconce_tensor t = {SCONCE_INT64, 2, {1, (uint32_t)(size / 8)}, ids, size};
  CHECK_OK(sconce_state_set_input(p->state, input, &t, &err), err);
  free(ids);
}

static void check_output(const struct program *p, const char *file) {
  sconce_error err = {0};
  sconce_tensor y = {0};
  size_t size;
  unsigned char *want = test_read(file, &size);
  REQUIRE(want);
  CHECK_OK(sconce_state_output(p->state, 0, &y, &err), err);
  CHECK_EQ(y.size, size);
  for (size_t i = 0; y.data && y.size == size && i < size / 4; i++) {
    float number;
    memcpy(&number, want + 4 * i, 4);
    CHECK_NEAR(((const float *)y.data)[i], number, 1e-5 + 1e-5 * fabs((double)number));
  }
  free(want);
}

static void an_encoders_output_is_a_decoders_input(void) {
  static const struct {
    const char *tokens, *encoded, *more, *out;
  } calls[] = {{"programs/encoder/1.bin", "programs/encoder/0.bin", "programs/decoder/2.bin",
                "programs/decoder/0.bin"},
               {"programs/encoder/3.bin", "programs/encoder/2.bin", "programs/decoder/5.bin",
                "programs/decoder/3.bin"}};
  struct program encoder = {0}, decoder = {0};
  sconce_device *device = NULL;
  sconce_error err = {0};
  CHECK_OK(sconce_device_open(&device, NULL, &err), err);
  CHECK_OK(open_program(&encoder, device, FOLDER "encoder/model.pte", &err), err);
  CHECK_OK(open_program(&decoder, device, FOLDER "decoder/model.pte", &err), err);
  for (size_t i = 0; decoder.state && i < sizeof calls / sizeof *calls; i++) {
    sconce_tensor kept = {0};
    set_ids(&encoder, 0, calls[i].tokens);
    CHECK_OK(sconce_state_run(encoder.state, &(sconce_call){.keep_outputs = true}, &err), err);
    CHECK_OK(sconce_state_output(encoder.state, 0, &kept, &err), err);
    CHECK(kept.data == NULL);
    CHECK_OK(sconce_state_feed(decoder.state, 0, encoder.state, 0, &err), err);
    set_ids(&decoder, 1, calls[i].more);
    CHECK_OK(sconce_state_run(decoder.state, NULL, &err), err);
    check_output(&decoder, calls[i].out);
    CHECK_OK(sconce_state_run(encoder.state, NULL, &err), err); /* the same, through the host */
    check_output(&encoder, calls[i].encoded);
  }
  close_program(&decoder);
  close_program(&encoder);
  sconce_device_close(device);
}

const struct test suite_feed[] = {TEST(an_encoders_output_is_a_decoders_input), {0}};
