/* What tests of sessions open: a device, a model, its tokenizer, a session. */
#ifndef TESTS_RUN_SESSION_FIXTURE_H
#define TESTS_RUN_SESSION_FIXTURE_H

#include "gpu.h"
#include "tiny_vocab.h"

#include "run/device.h"
#include "sconce_llm.h"

#define TOY "tests/data/goldens/toy.pte"
#define TOY_STATIC "tests/data/goldens/toy-static.pte"
#define STORIES "models/stories15M/stories15M-4w.pte"

struct fixture {
  sconce_device *device;
  sconce_model *model;
  sconce_method *method;
  sconce_tokenizer *tokenizer;
  sconce_session *session;
};

static inline sconce_status open_method(struct fixture *f, const char *name,
                                        const sconce_allocator *allocator, sconce_error *err) {
  *f = (struct fixture){0};
  char path[1024];
  snprintf(path, sizeof path, "%s/%s", SCONCE_SOURCE_DIR, name);
  sconce_device_desc desc = {0};
  if (allocator) desc.allocator = *allocator;
  TRY(sconce_device_open(&f->device, &desc, err));
  gpu_compile_all(f->device->gpu);
  TRY(sconce_model_open(&f->model, f->device, &(sconce_model_desc){.program.path = path}, err));
  return sconce_method_open(&f->method, f->model, NULL, err);
}

/* Eight pieces for the toy's eight ids, 4 and 5 are the halves of "é"; then the other bytes, which
 * the toy never says. */
static inline sconce_status open_tokenizer(sconce_tokenizer **out, int32_t eos, sconce_error *err) {
  static const char *const pieces[8] = {"<unk>", "ab", "é", "a", "<0xC3>", "<0xA9>", "b", "日"};
  struct blob b = {0};
  bool twice = eos == 4 || eos == 5; /* an end is no byte, so that the byte is needed again */
  int32_t head[4] = {8 + 254 + twice, -1, eos, 8};
  blob_add(&b, head, sizeof head);
  for (unsigned i = 0; i < 8 + 256; i++) {
    char byte[8];
    snprintf(byte, sizeof byte, "<0x%02X>", (i - 8) & 255);
    if ((i == 8 + 0xc3 && eos != 4) || (i == 8 + 0xa9 && eos != 5)) continue;
    const char *piece = i < 8 ? pieces[i] : byte;
    int32_t score_and_size[2] = {0, (int32_t)strlen(piece)};
    blob_add(&b, score_and_size, 8);
    blob_text(&b, piece);
  }
  sconce_status status =
      sconce_tokenizer_open(out, &(sconce_tokenizer_desc){.data = b.data, .size = b.size}, err);
  blob_free(&b);
  return status;
}

static inline sconce_status open_session(struct fixture *f, float temperature, uint64_t seed,
                                         const sconce_allocator *allocator, sconce_error *err) {
  sconce_session_desc desc = {.model = f->model, .tokenizer = f->tokenizer};
  desc.sampler.temperature = temperature;
  desc.sampler.seed = seed;
  if (allocator) desc.allocator = *allocator;
  return sconce_session_open(&f->session, &desc, err);
}

static inline void close_all(struct fixture *f) {
  sconce_session_close(f->session);
  sconce_tokenizer_close(f->tokenizer);
  sconce_method_close(f->method);
  sconce_model_close(f->model);
  if (f->device) {
    CHECK_EQ(gpu_stats(f->device->gpu)->buffers, 0);
    CHECK_EQ(gpu_stats(f->device->gpu)->groups, 0);
    test_note_kernels(f->device->gpu);
  }
  sconce_device_close(f->device);
}

/* A greedy session on a model; with the toy's tokenizer if it is a toy. */
static inline bool open_all(struct fixture *f, const char *name) {
  sconce_error err = {0};
  CHECK_OK(open_method(f, name, NULL, &err), err);
  if (f->method && strcmp(name, STORIES) != 0)
    CHECK_OK(open_tokenizer(&f->tokenizer, -1, &err), err);
  if (f->method) CHECK_OK(open_session(f, 0, 0, NULL, &err), err);
  return f->session != NULL;
}

static inline void reopen_session(struct fixture *f, float temperature, uint64_t seed) {
  sconce_error err = {0};
  sconce_session_close(f->session);
  f->session = NULL;
  CHECK_OK(open_session(f, temperature, seed, NULL, &err), err);
}

static inline uint32_t position(const struct fixture *f) {
  return sconce_session_describe(f->session)->position;
}

#endif
