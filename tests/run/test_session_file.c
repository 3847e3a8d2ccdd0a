/* Saved sessions, on the toy models: what a file must be, and what a save may not do. */
#include "gpu.h"

#include "run/device.h"
#include "sconce_llm.h"

#define TOY "tests/data/goldens/toy.pte"
#define TOY_STATIC "tests/data/goldens/toy-static.pte"

struct fixture {
  sconce_device *device;
  sconce_model *model;
  sconce_session *session;
};

static bool open_session(struct fixture *f) {
  sconce_error err = {0};
  const sconce_session_desc desc = {.model = f->model};
  CHECK_OK(sconce_session_open(&f->session, &desc, &err), err);
  return f->session != NULL;
}

static bool open_all(struct fixture *f, const char *name) {
  sconce_error err = {0};
  char path[1024];
  *f = (struct fixture){0};
  snprintf(path, sizeof path, "%s/%s", SCONCE_SOURCE_DIR, name);
  CHECK_OK(sconce_device_open(&f->device, NULL, &err), err);
  const sconce_model_desc desc = {.program.path = path};
  if (f->device) CHECK_OK(sconce_model_open(&f->model, f->device, &desc, &err), err);
  return f->model && open_session(f);
}

static void close_all(struct fixture *f) {
  sconce_session_close(f->session);
  sconce_model_close(f->model);
  if (f->device) test_note_kernels(f->device->gpu);
  sconce_device_close(f->device);
}

static uint32_t position(const struct fixture *f) {
  return sconce_session_describe(f->session)->position;
}

/* The toy's golden: the rows of `prompt` lie at the start of its .bin, 8 floats a token. */
static void check_golden(struct fixture *f, const char *bin, size_t row) {
  size_t size;
  unsigned char *golden = test_read(bin, &size);
  const float *logits = sconce_session_logits(f->session);
  CHECK(logits != NULL);
  for (size_t i = 0; golden && logits && i < 8; i++) {
    float want;
    memcpy(&want, golden + (row * 8 + i) * 4, 4);
    CHECK_NEAR(logits[i], want, 1e-5);
  }
  free(golden);
}

static void damaged_session_files_are_refused(void) {
  struct fixture f;
  sconce_error err = {0};
  char path[TEST_PATH_MAX];
  test_temporary(path, "");
  unsigned char *bytes = NULL;
  size_t size = 0;
  if (open_all(&f, TOY)) {
    CHECK_OK(sconce_session_prompt(f.session, (int32_t[]){1, 5, 2}, 3, NULL, NULL, &err), err);
    CHECK_OK(sconce_session_save(f.session, path, &err), err);
    bytes = test_read_path(path, &size);
    CHECK_EQ(size, 56 + 12);
  }
  for (size_t cut = 0; bytes && cut < size; cut++) {
    CHECK(test_write_path(path, bytes, cut));
    sconce_status status = sconce_session_load(f.session, path, &err);
    CHECK(status == SCONCE_BAD_FILE || (cut == 0 && status != SCONCE_OK));
  }
  for (size_t at = 0; bytes && at < 8 * size; at++) {
    bytes[at / 8] ^= (unsigned char)(1u << at % 8);
    CHECK(test_write_path(path, bytes, size));
    CHECK_FAILS(sconce_session_load(f.session, path, &err), SCONCE_BAD_FILE, err, path);
    bytes[at / 8] ^= (unsigned char)(1u << at % 8);
  }
  if (bytes) {
    CHECK_EQ(position(&f), 3);
    check_golden(&f, "goldens/toy.golden.bin", 2); /* as if nothing had happened */
    CHECK_FAILS(sconce_session_load(f.session, "/nonexistent/s", &err), SCONCE_IO_ERROR, err, "/s");
    CHECK_FAILS(sconce_session_save(f.session, "/nonexistent/s", &err), SCONCE_IO_ERROR, err, "/s");
    CHECK(test_write_path(path, bytes, size));
    CHECK_OK(sconce_session_rewind(f.session, 0, &err), err);
    CHECK_OK(sconce_session_load(f.session, path, &err), err);
    CHECK_OK(sconce_session_append(f.session, 7, &err), err);
    check_golden(&f, "goldens/toy.golden.bin", 3);
  }
  close_all(&f);
  if (bytes && open_all(&f, TOY_STATIC)) {
    CHECK_FAILS(sconce_session_load(f.session, path, &err), SCONCE_BAD_FILE, err,
                "saved from another model: 8 ids a row, 8 positions");
    CHECK_OK(sconce_session_append(f.session, 1, &err), err);
  }
  if (bytes) close_all(&f);
  free(bytes);
  remove(path);
}

static void reversed(unsigned char *at) {
  unsigned char a = at[0], b = at[1];
  at[0] = at[3], at[1] = at[2], at[2] = b, at[3] = a;
}

/* The sentence says where; what a session was is still there. */
static void a_damaged_session_says_where(void) {
  struct fixture f;
  sconce_error err = {0};
  char path[TEST_PATH_MAX];
  test_temporary(path, "");
  if (open_all(&f, TOY)) {
    CHECK_OK(sconce_session_prompt(f.session, (int32_t[]){1, 5, 2}, 3, NULL, NULL, &err), err);
    CHECK_OK(sconce_session_save(f.session, path, &err), err);
    size_t size;
    unsigned char *bytes = test_read_path(path, &size), longer[69] = {0};
    static const struct {
      size_t at, size;
      const char *text;
    } rows[] = {{60, 68, "bytes 56 to 67, ids and state, are damaged"},
                {20, 68, "bytes 0 to 55, the header, are damaged"},
                {99, 55, "it ends at byte 55, inside its header"},
                {99, 66, "it ends at byte 66, expected 68"},
                {99, 69, "it goes on behind byte 68"},
                {7, 68, "a saved session of version 2, this build reads 3"},
                {8, 68, "byte 8: saved on a machine with the other byte order"}};
    for (size_t i = 0; bytes && i < sizeof rows / sizeof *rows; i++) {
      memcpy(longer, bytes, size);
      if (rows[i].at == 8)
        reversed(longer + 8);
      else if (rows[i].at < size)
        longer[rows[i].at] ^= 1;
      CHECK(test_write_path(path, longer, rows[i].size));
      CHECK_FAILS(sconce_session_load(f.session, path, &err), SCONCE_BAD_FILE, err, rows[i].text);
    }
    CHECK_EQ(position(&f), 3);
    free(bytes);
  }
  close_all(&f);
  remove(path);
}

/* The same program with one byte of its weights changed is another model. */
static void another_models_session_is_refused(void) {
  struct fixture f;
  sconce_error err = {0};
  char path[TEST_PATH_MAX], other[TEST_PATH_MAX];
  test_temporary(path, "");
  test_temporary(other, "");
  size_t size = 0;
  unsigned char *bytes = test_read("goldens/toy.pte", &size);
  REQUIRE(bytes != NULL);
  bytes[size - 1] ^= 1;
  CHECK(test_write_path(other, bytes, size));
  free(bytes);
  if (open_all(&f, TOY)) {
    uint64_t one = 0, two = 0;
    sconce_model *model;
    CHECK_OK(sconce_session_save(f.session, path, &err), err);
    CHECK_OK(sconce_model_fingerprint(f.model, &one, &err), err);
    sconce_session_close(f.session);
    f.session = NULL;
    CHECK_OK(sconce_model_open(&model, f.device, &(sconce_model_desc){.program.path = other}, &err),
             err);
    sconce_model_close(f.model);
    f.model = model;
    CHECK_OK(sconce_model_fingerprint(model, &two, &err), err);
    CHECK(one != two);
    if (open_session(&f))
      CHECK_FAILS(sconce_session_load(f.session, path, &err), SCONCE_BAD_FILE, err,
                  "saved from another model: its fingerprint is");
  }
  close_all(&f);
  remove(path);
  remove(other);
}

/* A file of another kind stays; so does an old session when the new one cannot be written. */
static void a_save_loses_nothing(void) {
  struct fixture f;
  sconce_error err = {0};
  char path[TEST_PATH_MAX];
  test_temporary(path, "");
  if (open_all(&f, TOY)) {
    CHECK(test_write_path(path, "my thesis", 9));
    CHECK_FAILS(sconce_session_save(f.session, path, &err), SCONCE_BAD_ARGUMENT, err,
                "is there and is no saved session");
    CHECK(test_write_path(path, "", 0));
    CHECK_OK(sconce_session_append(f.session, 1, &err), err);
    CHECK_OK(sconce_session_save(f.session, path, &err), err);
    CHECK_OK(sconce_session_append(f.session, 2, &err), err);
    if (test_limit_files(20)) {
      CHECK_EQ(sconce_session_save(f.session, path, &err), SCONCE_IO_ERROR);
      CHECK(test_limit_files(UINT64_MAX));
    }
    CHECK_OK(sconce_session_load(f.session, path, &err), err);
    CHECK_EQ(position(&f), 1);
  }
  close_all(&f);
  remove(path);
}

const struct test suite_session_file[] = {
    TEST(damaged_session_files_are_refused),
    TEST(a_damaged_session_says_where),
    TEST(another_models_session_is_refused),
    TEST(a_save_loses_nothing),
    {0},
};
