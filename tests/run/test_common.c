/* Buffers that methods of one file have in common: tests/data/programs/shared_cache, whose
 * arithmetic tools/export/make_programs.py has. The cache begins with zeros, the count with 3. */
#include "gpu.h"

#include "gpu/gpu.h"
#include "run/device.h"
#include "sconce.h"

#define FOLDER SCONCE_SOURCE_DIR "/tests/data/programs/"
enum { ROWS = 6, WIDTH = 4 };

/* What a conversation should have, computed here. */
struct oracle {
  float cache[ROWS][WIDTH], count;
};
static const struct oracle fresh = {.count = 3};

struct opened {
  sconce_device *device;
  sconce_model *model;
  sconce_method *prefill, *decode, *peek;
  sconce_error err;
};

static bool start(struct opened *o) {
  *o = (struct opened){0};
  const sconce_model_desc desc = {.program = {.path = FOLDER "shared_cache/model.pte"}};
  CHECK_OK(sconce_device_open(&o->device, NULL, &o->err), o->err);
  if (o->device) CHECK_OK(sconce_model_open(&o->model, o->device, &desc, &o->err), o->err);
  if (!o->model) return false;
  CHECK_OK(sconce_method_open(&o->prefill, o->model, "prefill", &o->err), o->err);
  CHECK_OK(sconce_method_open(&o->decode, o->model, "decode", &o->err), o->err);
  CHECK_OK(sconce_method_open(&o->peek, o->model, "peek", &o->err), o->err);
  return o->prefill && o->decode && o->peek;
}

static void end(struct opened *o) {
  sconce_method_close(o->prefill);
  sconce_method_close(o->decode);
  sconce_method_close(o->peek);
  sconce_model_close(o->model);
  sconce_device_close(o->device);
}

/* Rows from `at` on become `times` * seed, … */
static bool put(struct opened *o, sconce_state *s, uint32_t n, int64_t at, float seed,
                const float **out) {
  float x[3 * WIDTH];
  int64_t places[3];
  for (uint32_t i = 0; i < n * WIDTH; i++) x[i] = seed + (float)i;
  for (uint32_t i = 0; i < n; i++) places[i] = at + i;
  const sconce_tensor rows = {SCONCE_FLOAT32, 3, {1, n, WIDTH}, x, n * WIDTH * sizeof *x};
  const sconce_tensor where = {SCONCE_INT64, 1, {n}, places, n * sizeof *places};
  sconce_tensor y = {0};
  CHECK_OK(sconce_state_set_input(s, 0, &rows, &o->err), o->err);
  CHECK_OK(sconce_state_set_input(s, 1, &where, &o->err), o->err);
  CHECK_OK(sconce_state_run(s, NULL, &o->err), o->err);
  CHECK_OK(sconce_state_output(s, 0, &y, &o->err), o->err);
  *out = y.data;
  return y.data && y.size == WIDTH * sizeof(float);
}

static void check_sums(const struct oracle *want, const float *sums) {
  for (uint32_t c = 0; c < WIDTH; c++) {
    float sum = 0;
    for (uint32_t r = 0; r < ROWS; r++) sum += want->cache[r][c];
    CHECK_NEAR(sums[c], sum, 1e-4);
  }
}

static void prefill(struct opened *o, sconce_state *s, struct oracle *want, uint32_t at,
                    float seed) {
  const float *sums;
  for (uint32_t i = 0; i < 3 * WIDTH; i++)
    want->cache[at + i / WIDTH][i % WIDTH] = 2 * (seed + (float)i);
  want->count += seed;
  if (put(o, s, 3, at, seed, &sums)) check_sums(want, sums);
}

static void decode(struct opened *o, sconce_state *s, struct oracle *want, uint32_t at,
                   float seed) {
  const float *sums;
  sconce_tensor y = {0};
  for (uint32_t i = 0; i < WIDTH; i++) want->cache[at][i] = 3 * (seed + (float)i);
  if (put(o, s, 1, at, seed, &sums)) check_sums(want, sums);
  CHECK_OK(sconce_state_output(s, 1, &y, &o->err), o->err);
  if (y.data) CHECK_NEAR(*(const float *)y.data, want->count * seed, 1e-4);
}

static void peek(struct opened *o, sconce_state *s, const struct oracle *want) {
  const float two = 2;
  const sconce_tensor x = {SCONCE_FLOAT32, 1, {1}, &two, sizeof two};
  sconce_tensor y = {0};
  CHECK_OK(sconce_state_set_input(s, 0, &x, &o->err), o->err);
  CHECK_OK(sconce_state_run(s, NULL, &o->err), o->err);
  CHECK_OK(sconce_state_output(s, 0, &y, &o->err), o->err);
  for (uint32_t i = 0; y.data && i < ROWS * WIDTH; i++)
    CHECK_NEAR(((const float *)y.data)[i], 2 * (&want->cache[0][0])[i], 1e-5);
  CHECK_OK(sconce_state_output(s, 1, &y, &o->err), o->err);
  if (y.data) CHECK_NEAR(*(const float *)y.data, want->count + 2, 1e-5);
}

/* Two conversations of three methods each, in turn; closed in any order. */
static void methods_have_one_cache(void) {
  struct opened o;
  struct oracle want[2] = {fresh, fresh}, alone = fresh;
  sconce_state *p[2] = {NULL}, *d[2] = {NULL}, *k[2] = {NULL}, *single = NULL;
  REQUIRE(start(&o));
  for (int i = 0; i < 2; i++) {
    CHECK_OK(sconce_state_open(&p[i], o.prefill, &o.err), o.err);
    CHECK_OK(sconce_state_join(&d[i], o.decode, p[i], &o.err), o.err);
    CHECK_OK(sconce_state_join(&k[i], o.peek, d[i], &o.err), o.err);
    REQUIRE(p[i] && d[i] && k[i]);
  }
  CHECK_OK(sconce_state_open(&single, o.decode, &o.err), o.err);
  for (int i = 0; i < 2; i++) prefill(&o, p[i], &want[i], 0, 1.5f + (float)i);
  for (uint32_t at = 3; at < 6; at++)
    for (int i = 0; i < 2; i++) decode(&o, d[i], &want[i], at, (float)(at + (uint32_t)i));
  decode(&o, single, &alone, 2, 7); /* sees nothing of the others */
  for (int i = 0; i < 2; i++) peek(&o, k[i], &want[i]);
  sconce_state_close(p[0]); /* what the others use stays */
  decode(&o, d[0], &want[0], 1, -2);
  peek(&o, k[0], &want[0]);
  CHECK_OK(sconce_state_reset(k[1], &o.err), o.err); /* of all three */
  want[1] = fresh;
  peek(&o, k[1], &want[1]);
  prefill(&o, p[1], &want[1], 2, -1);
  sconce_method_close(o.decode);
  o.decode = NULL;
  peek(&o, k[1], &want[1]);
  for (int i = 0; i < 2; i++) sconce_state_close(k[i]), sconce_state_close(d[i]);
  sconce_state_close(p[1]);
  sconce_state_close(single);
  CHECK_EQ(gpu_stats(o.device->gpu)->bytes[GPU_STATE], 0);
  end(&o);
}

/* The cache has one writer, which writes it in place: nothing is left of `aten::copy_`. */
static void a_lifted_copy_costs_nothing(void) {
  struct opened o;
  struct oracle want = fresh;
  sconce_state *p = NULL, *d = NULL;
  sconce_stats stats = {0};
  REQUIRE(start(&o));
  CHECK_OK(sconce_state_open(&p, o.prefill, &o.err), o.err);
  CHECK_OK(sconce_state_join(&d, o.decode, p, &o.err), o.err);
  prefill(&o, p, &want, 0, 4);
  sconce_state_stats(p, &stats);
  /* x * 2, its number as a float; places, marks (2), put; sum; x[0, 0, :1] (3), count + that; and
   * the count is read where it is made, so that one is copied */
  CHECK_EQ(stats.dispatches, 12);
  CHECK_EQ(stats.submits, 1);
  decode(&o, d, &want, 3, 5);
  sconce_state_stats(d, &stats);
  CHECK_EQ(stats.dispatches, 9); /* the same, but one row needs no marks, and no count is written */
  CHECK_EQ(stats.submits, 1);
  sconce_state_close(p);
  sconce_state_close(d);
  end(&o);
}

static void a_lost_device_comes_back_with_one_cache(void) {
  struct opened o;
  struct oracle want = fresh;
  sconce_state *p = NULL, *d = NULL;
  REQUIRE(start(&o));
  CHECK_OK(sconce_state_open(&p, o.prefill, &o.err), o.err);
  CHECK_OK(sconce_state_join(&d, o.decode, p, &o.err), o.err);
  prefill(&o, p, &want, 0, 4);
  gpu_lose(o.device->gpu);
  CHECK_OK(sconce_device_recover(o.device, &o.err), o.err);
  want = fresh;
  prefill(&o, p, &want, 1, 2);
  decode(&o, d, &want, 5, 3);
  prefill(&o, p, &want, 2, 9);
  sconce_state_close(p);
  decode(&o, d, &want, 0, 1);
  sconce_state_close(d);
  end(&o);
}

static void strangers_are_not_joined(void) {
  struct opened o, other;
  sconce_state *p = NULL, *none = NULL;
  sconce_model *two = NULL;
  sconce_method *encode = NULL, *decode_too = NULL;
  const sconce_model_desc desc = {.program = {.path = FOLDER "two_methods_encode/model.pte"}};
  REQUIRE(start(&o));
  CHECK_OK(sconce_state_open(&p, o.prefill, &o.err), o.err);
  CHECK_FAILS(sconce_state_join(&none, o.prefill, NULL, &o.err), SCONCE_BAD_ARGUMENT, o.err,
              "out, method or with is NULL");
  if (start(&other))
    CHECK_FAILS(sconce_state_join(&none, other.decode, p, &o.err), SCONCE_BAD_ARGUMENT, o.err,
                "the two methods are of different models");
  end(&other);
  sconce_state_close(p);
  p = NULL;
  CHECK_OK(sconce_model_open(&two, o.device, &desc, &o.err), o.err);
  CHECK_OK(sconce_method_open(&encode, two, "encode", &o.err), o.err);
  CHECK_OK(sconce_method_open(&decode_too, two, "decode", &o.err), o.err);
  CHECK_OK(sconce_state_open(&p, encode, &o.err), o.err);
  CHECK_FAILS(sconce_state_join(&none, decode_too, p, &o.err), SCONCE_BAD_ARGUMENT, o.err,
              "'decode' and 'encode' have no buffer in common: export with share_mutable_buffers");
  CHECK(!none);
  sconce_state_close(p);
  sconce_method_close(encode);
  sconce_method_close(decode_too);
  sconce_model_close(two);
  end(&o);
}

const struct test suite_common[] = {TEST(methods_have_one_cache),
                                    TEST(a_lifted_copy_costs_nothing),
                                    TEST(a_lost_device_comes_back_with_one_cache),
                                    TEST(strangers_are_not_joined),
                                    {0}};
