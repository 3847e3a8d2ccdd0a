/* The running test and its host: see trial.h. */
#include "trial/trial.h"

#include "gpu/gpu.h"

#include <stdarg.h>

static struct trial *running;
static bool checked; /* has it compared anything? */

bool test_swap_scalars;

static bool is_over(void) {
  return running->host->is_over && running->host->is_over(running->user);
}

void test_fail(const char *file, int line, const char *format, ...) {
  if (is_over()) return;
  char said[1100], text[sizeof running->text];
  va_list args;
  va_start(args, format);
  vsnprintf(said, sizeof said, format, args);
  va_end(args);
  const char *base = strrchr(file, '/');
  snprintf(text, sizeof text, "%s:%d: %s", base ? base + 1 : file, line, said);
  if (running->outcome != TRIAL_FAILED) memcpy(running->text, text, sizeof text);
  if (running->host->failed) running->host->failed(running, text);
  running->outcome = TRIAL_FAILED;
}

void test_skip(const char *format, ...) {
  if (running->outcome == TRIAL_FAILED) return;
  va_list args;
  va_start(args, format);
  vsnprintf(running->text, sizeof running->text, format, args);
  va_end(args);
  running->outcome = TRIAL_SKIPPED;
}

bool test_failed(void) { return running->outcome == TRIAL_FAILED || is_over(); }

void test_checked(void) { checked = true; }

/* A test of the self-check runs tests: its own goes on afterwards. */
void trial_run(struct trial *t, const struct test *test) {
  struct trial *outer = running;
  const bool outer_checked = checked;
  running = t;
  checked = false;
  t->outcome = TRIAL_PASSED;
  test->run();
  if (!checked && t->outcome == TRIAL_PASSED)
    test_fail(__FILE__, __LINE__, "nothing was compared: a test that cannot run here skips");
  running = outer;
  checked = outer_checked;
}

struct gpu *test_gpu(void) { return running->host->gpu(running->user); }

bool test_gpu_is_slow(void) {
  struct gpu *gpu = test_gpu();
  return gpu && strstr(gpu_info(gpu)->name, "SwiftShader");
}

void test_note_operator(const char *name) {
  if (running && running->host->made) running->host->made(running->user, name);
}

void trial_runs(const struct graph *graph) {
  if (running && running->host->runs) running->host->runs(running->user, graph);
}

void trial_right(void) {
  if (running && running->host->right && running->outcome != TRIAL_FAILED)
    running->host->right(running->user);
}

uint32_t test_random(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(*state >> 33) ^ (uint32_t)*state;
}

float test_random_float(uint64_t *state) {
  return (float)(test_random(state) >> 8) / 8388608.0f - 1.0f;
}

bool test_has_suffix(const char *name, const char *suffix) {
  size_t n = strlen(name), k = strlen(suffix);
  return n >= k && strcmp(name + n - k, suffix) == 0;
}
