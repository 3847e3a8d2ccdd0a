/* Devices that are lost under two sessions and a load: what is opened again says what it would have
 * said. SCONCE_LOSE=every does it at each step. */
#include "ahead_fixture.h"
#include "system.h"

#include "base/os.h"

/* ---- a device that comes back ---------------------------------------------------------------- */

enum { TOLD = 14 }; /* ids of each session */

/* A prompt, choices, a turn of the other session in between, a rewind, a save. */
static sconce_status tell(struct pair *p, int32_t out[2][TOLD], sconce_error *err) {
  char path[TEST_PATH_MAX];
  test_temporary(path, "");
  sconce_status status = SCONCE_OK;
  for (int k = 0; k < 2 && status == SCONCE_OK; k++)
    status = sconce_session_prompt(p->session[k], (int32_t[]){1, 5, 2 + k}, 3, NULL, NULL, err);
  for (int i = 0; i < TOLD && status == SCONCE_OK; i++)
    for (int k = 0; k < 2 && status == SCONCE_OK; k++) {
      sconce_choice c = {.id = -1};
      if (i == 5) status = sconce_session_rewind(p->session[k], 5, err);
      if (i == 8 && k == 1) status = sconce_session_save(p->session[k], path, err);
      if (i == 11 && k == 1) status = sconce_session_load(p->session[k], path, err);
      if (status == SCONCE_OK && (i == 5 || (i == 11 && k == 1)))
        status = sconce_session_append(p->session[k], 3, err);
      if (status == SCONCE_OK) status = sconce_session_next(p->session[k], &c, err);
      out[k][i] = c.id;
    }
  remove(path);
  return status;
}

/* SCONCE_LOSE=every, as `make test-all` has it in a run of its own: the device is lost at each step
 * and not at some. */
static uint32_t stride(uint32_t some) {
  char room[OS_ENV_MAX];
  const char *how = os_env("SCONCE_LOSE", room, sizeof room);
  return how && strcmp(how, "every") == 0 ? 1 : some;
}

/* Greedy text repeats itself, so that lookup has guesses. */
static bool open_again(struct pair *p, bool recovers, sconce_lookup lookup) {
  if (!open_pair(p, &samplers[1])) return false;
  p->recovers = recovers;
  p->lookup = lookup;
  open_sessions(p, &samplers[lookup == SCONCE_LOOKUP_OFF]);
  return p->session[1] != NULL;
}

/* Wherever the device is lost, the ids are those that they would have been. How many steps there
 * are depends a little on how long they take: a call is cut by time, and guesses are made where
 * they pay. So the last point may lie behind the end. */
static void lose_and_recover(sconce_lookup lookup) {
  enum { MANY = 1 << 20, POINTS = 10 };
  struct pair p;
  sconce_error err = {0};
  int32_t want[2][TOLD], got[2][TOLD];
  uint32_t steps = 0, tried = 0, lost = 0;
  if (open_again(&p, false, lookup)) {
    (void)gpu_lose_after(p.device->gpu, MANY);
    CHECK_OK(tell(&p, want, &err), err);
    steps = MANY - gpu_lose_after(p.device->gpu, 0);
  }
  close_pair(&p);
  CHECK(steps > 40);
  const uint32_t step = stride(test_gpu_is_slow() ? steps / 4 + 1 : steps / POINTS + 1);
  for (uint32_t at = 1; at <= steps && !test_failed(); at += step) {
    if (open_again(&p, true, lookup)) {
      (void)gpu_lose_after(p.device->gpu, at);
      CHECK_OK(tell(&p, got, &err), err);
      CHECK_SAYS(memcmp(got, want, sizeof got) == 0, "lost at step %u of %u", at, steps);
      const uint64_t losses = sconce_state_losses(sconce_session_state(p.session[0]));
      CHECK(losses <= 1);
      CHECK_EQ(sconce_state_losses(sconce_session_state(p.session[1])), losses);
      lost += losses == 1;
    }
    tried++;
    close_pair(&p);
  }
  if (!test_failed()) CHECK(lost >= tried / 2 && lost > 1);
}

static void a_lost_device_comes_back(void) {
  for (int i = 0; i < 2; i++) lose_and_recover(lookups[i]);
}

/* The same while the method is being opened. */
static void a_device_lost_while_loading_comes_back(void) {
  struct pair p;
  sconce_error err = {0};
  int32_t want[2][TOLD], got[2][TOLD];
  if (open_again(&p, false, SCONCE_LOOKUP_OFF)) CHECK_OK(tell(&p, want, &err), err);
  close_pair(&p);
  bool lost = true;
  const uint32_t step = stride(test_gpu_is_slow() ? 20 : 5);
  for (uint32_t at = 1; lost && at < 400 && !test_failed(); at += step) {
    struct span file = {0};
    p = (struct pair){.recovers = true};
    arena_init(&p.arena, NULL);
    CHECK_OK(build(&p.arena, &file, &err), err);
    CHECK_OK(sconce_device_open(&p.device, NULL, &err), err);
    sconce_model_desc desc = {.program = {.data = file.data, .size = file.size}};
    if (p.device) CHECK_OK(sconce_model_open(&p.model, p.device, &desc, &err), err);
    if (p.model) {
      (void)gpu_lose_after(p.device->gpu, at);
      sconce_status status = sconce_method_open(&p.method, p.model, NULL, &err);
      lost = status == SCONCE_DEVICE_LOST;
      if (lost) CHECK_OK(sconce_device_recover(p.device, &err), err);
      if (lost) status = sconce_method_open(&p.method, p.model, NULL, &err);
      CHECK_OK(status, err);
    }
    p.lookup = SCONCE_LOOKUP_OFF;
    if (p.method) open_sessions(&p, &samplers[1]);
    if (p.session[1]) CHECK_OK(tell(&p, got, &err), err);
    CHECK_SAYS(memcmp(got, want, sizeof got) == 0, "lost at step %u of the load", at);
    close_pair(&p);
  }
  CHECK(!lost); /* the last one was behind the load */
}

/* ---- …on another adapter --------------------------------------------------------------------- */

/* The driver that was there when the device was lost is gone when it is opened again. */
static void a_lost_device_comes_back_on_another_adapter(void) {
  static const char *const drivers[2] = {"/usr/share/vulkan/icd.d/lvp_icd.x86_64.json",
                                         "/usr/lib/chromium/vk_swiftshader_icd.json"};
  static const char name[] = "VK_ICD_FILENAMES";
  char room[OS_ENV_MAX];
  const char *was = os_env(name, room, sizeof room);
  for (int i = 0; i < 2; i++) {
    size_t size;
    void *there = test_read_path(drivers[i], &size);
    free(there);
    if (there) continue;
    test_skip("there is no %s", drivers[i]);
    return;
  }
  struct pair p;
  sconce_error err = {0};
  int32_t want[2][TOLD], got[2][TOLD];
  test_set_env(name, drivers[0]);
  if (open_again(&p, true, SCONCE_LOOKUP_OFF)) CHECK_OK(tell(&p, want, &err), err);
  close_pair(&p);
  for (int from = 0; from < 2 && !test_failed(); from++) {
    test_set_env(name, drivers[from]);
    if (open_again(&p, true, SCONCE_LOOKUP_OFF)) {
      char before[200];
      snprintf(before, sizeof before, "%s", sconce_device_describe(p.device)->name);
      (void)gpu_lose_after(p.device->gpu, 60);
      test_set_env(name, drivers[1 - from]);
      CHECK_OK(tell(&p, got, &err), err);
      CHECK_EQ(sconce_state_losses(sconce_session_state(p.session[0])), 1);
      CHECK(strcmp(before, sconce_device_describe(p.device)->name) != 0);
      CHECK(memcmp(got, want, sizeof got) == 0);
    }
    close_pair(&p);
  }
  test_set_env(name, was);
}

const struct test suite_session_lost[] = {
    TEST(a_lost_device_comes_back),
    TEST(a_device_lost_while_loading_comes_back),
    TEST(a_lost_device_comes_back_on_another_adapter),
    {0},
};
