/* Opening a language model from the command line: see llm.h. */
#define _POSIX_C_SOURCE 200809L
#include "llm.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

const char llm_options_help[] =
    "  -m FILE             the model, a .pte file\n"
    "  -t FILE             the tokenizer; default: tokenizer.json, .model or .bin beside the "
    "model\n"
    "  --method NAME       default: forward\n"
    "  --temp T            temperature, 0 takes the likeliest token (default 0.8)\n"
    "  --top-k K           keep the K likeliest (default: all)\n"
    "  --top-p P           then the fewest that have this share together (default 0.95)\n"
    "  --min-p P           then those with this share of the likeliest (default 0)\n"
    "  --repeat-penalty R  for tokens seen lately (default 1: none)\n"
    "  --seed N            same seed, same text (default: from the clock)\n"
    "  -v                  more about the device and the model\n";

static bool number(const char *name, const char *text, double low, double high, double *out) {
  if (!text) return true;
  char *end;
  *out = strtod(text, &end);
  if (*text && !*end && *out >= low && *out <= high) return true;
  fprintf(stderr, "sconce: %s is '%s', expected %g to %g\n", name, text, low, high);
  return false;
}

int llm_sampler(const struct llm_options *o, sconce_sampler_desc *out) {
  double temperature = 0.8, top_k = 0, top_p = 0.95, min_p = 0, penalty = 1;
  double seed = (double)time(NULL);
  if (!number("--temp", o->temperature, 0, 100, &temperature) ||
      !number("--top-k", o->top_k, 0, 1e6, &top_k) || !number("--top-p", o->top_p, 0, 1, &top_p) ||
      !number("--min-p", o->min_p, 0, 1, &min_p) ||
      !number("--repeat-penalty", o->penalty, 0.1, 10, &penalty) ||
      !number("--seed", o->seed, 0, 9e15, &seed))
    return CLI_USAGE;
  *out = (sconce_sampler_desc){.temperature = (float)temperature,
                               .top_k = (uint32_t)top_k,
                               .top_p = (float)top_p,
                               .min_p = (float)min_p,
                               .repetition_penalty = (float)penalty,
                               .seed = (uint64_t)seed};
  return CLI_DONE;
}

/* ---- opening --------------------------------------------------------------------------------- */

bool llm_find_tokenizer(const char *model, char *out, size_t size) {
  static const char *const names[] = {"tokenizer.json", "tokenizer.model", "tokenizer.bin"};
  const char *slash = strrchr(model, '/');
  int folder = slash ? (int)(slash - model + 1) : 0;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    snprintf(out, size, "%.*s%s", folder, model, names[i]);
    if (access(out, R_OK) == 0) return true;
  }
  return false;
}

static int open_tokenizer(struct llm *llm, const struct llm_options *o, sconce_error *err) {
  char found[1200];
  const char *path = o->tokenizer;
  if (!path) {
    if (!llm_find_tokenizer(o->model, found, sizeof found)) {
      fprintf(stderr, "sconce: no tokenizer beside %s: name one with -t\n", o->model);
      return CLI_FAILED;
    }
    path = found;
    if (!o->json) fprintf(stderr, "tokenizer: %s\n", path);
  }
  sconce_tokenizer_desc desc = {.path = path};
  return sconce_tokenizer_open(&llm->tokenizer, &desc, err) == SCONCE_OK ? CLI_DONE : cli_fail(err);
}

int llm_open(struct llm *llm, const struct llm_options *o, const sconce_sampler_desc *sampler) {
  *llm = (struct llm){.quiet = o->json || !isatty(STDERR_FILENO)};
  sconce_error err = {0};
  if (access(o->model, R_OK) != 0) { /* before anything beside it is looked for */
    fprintf(stderr, "sconce: cannot read the model %s: %s\n", o->model, strerror(errno));
    return CLI_FAILED;
  }
  int result = o->no_text ? CLI_DONE : open_tokenizer(llm, o, &err);
  if (result != CLI_DONE) return result;
  const struct cli_load_desc load = {
      .path = o->model, .method = o->method, .verbose = o->verbose, .quiet = llm->quiet};
  bool ok = cli_load(&llm->load, &load, &err) == SCONCE_OK;
  if (ok) {
    const sconce_device_info *device = sconce_device_describe(llm->load.device);
    const bool software = device->type == SCONCE_ADAPTER_SOFTWARE;
    sconce_session_desc desc = {.host_chooses = software && sampler->temperature > 0,
                                .model = llm->load.model,
                                .method = o->method,
                                .tokenizer = llm->tokenizer,
                                .sampler = *sampler};
    ok = sconce_session_open(&llm->session, &desc, &err) == SCONCE_OK;
  }
  return ok ? CLI_DONE : cli_fail(&err);
}

void llm_close(struct llm *llm) {
  sconce_session_close(llm->session);
  sconce_tokenizer_close(llm->tokenizer);
  cli_unload(&llm->load);
}

/* ---- the terminal ---------------------------------------------------------------------------- */

void llm_progress(size_t done, size_t all) {
  enum { WIDTH = 30 };
  if (done >= all) {
    fprintf(stderr, "\r\033[K");
    return;
  }
  int full = (int)(done * WIDTH / all);
  fprintf(stderr, "\rprompt [%.*s%*s] %zu/%zu", full, "##############################",
          WIDTH - full, "", done, all);
  fflush(stderr);
}

static volatile sig_atomic_t interrupted;
static void on_interrupt(int signal_number) {
  (void)signal_number;
  interrupted = 1;
}

void llm_catch_interrupt(bool on) {
  struct sigaction action = {.sa_handler = on ? on_interrupt : SIG_DFL};
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, NULL);
  interrupted = 0;
}

bool llm_interrupted(void) { return interrupted; }

const char *llm_stop_name(sconce_stop stop) {
  switch (stop) {
  case SCONCE_STOP_END:
    return "end";
  case SCONCE_STOP_TEXT:
    return "stop text";
  case SCONCE_STOP_COUNT:
    return "count";
  case SCONCE_STOP_CONTEXT:
    return "context full";
  case SCONCE_STOP_CALLER:
    return "interrupted";
  }
  return "unknown";
}
