/* Opening a language model from the command line: see llm.h. */
#include "llm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- numbers --------------------------------------------------------------------------------- */

static bool number(const char *name, const char *text, double low, double high, double *out) {
  if (!text) return true;
  char *end;
  *out = strtod(text, &end);
  if (*text && !*end && *out >= low && *out <= high) return true;
  fprintf(stderr, "sconce: %s is '%s', expected %g to %.10g\n", name, text, low, high);
  return false;
}

static bool read_seed(const char *text, uint64_t *out) {
  *out = (uint64_t)time(NULL);
  if (!text) return true;
  char *end;
  errno = 0;
  *out = strtoull(text, &end, 10);
  if (*text >= '0' && *text <= '9' && !*end && !errno) return true;
  fprintf(stderr, "sconce: --seed is '%s', expected 0 to 18446744073709551615\n", text);
  return false;
}

int llm_sampler(const struct llm_options *o, sconce_sampler_desc *out) {
  double temperature = 0.8, top_k = 0, top_p = 0.95, min_p = 0, penalty = 1;
  uint64_t seed;
  if (!number("--temp", o->temperature, 0, 100, &temperature) ||
      !number("--top-k", o->top_k, 0, 1e6, &top_k) || !number("--top-p", o->top_p, 0, 1, &top_p) ||
      !number("--min-p", o->min_p, 0, 1, &min_p) ||
      !number("--repeat-penalty", o->penalty, 0.1, 10, &penalty) || !read_seed(o->seed, &seed))
    return CLI_USAGE;
  *out = (sconce_sampler_desc){.temperature = (float)temperature,
                               .top_k = (uint32_t)top_k,
                               .top_p = (float)top_p,
                               .min_p = (float)min_p,
                               .repetition_penalty = (float)penalty,
                               .seed = seed};
  return CLI_DONE;
}

/* ---- the tokenizer --------------------------------------------------------------------------- */

bool llm_find_tokenizer(const char *model, char *out, size_t size) {
  static const char *const names[] = {"tokenizer.json", "tokenizer.model", "tokenizer.bin"};
  const int folder = (int)(console_file_name(model) - model);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    snprintf(out, size, "%.*s%s", folder, model, names[i]);
    if (console_can_read(out)) return true;
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

/* Another model's tokenizer gives nonsense and no error. Logits may have some rows more than there
 * are ids, for padding, and special tokens may lie behind the last row; a text's ids may not. */
static int check_fit(const struct llm *llm) {
  const uint32_t model = sconce_session_describe(llm->session)->n_vocab;
  const uint32_t ids = sconce_tokenizer_describe(llm->tokenizer)->n_vocab;
  bool fits = ids >= model - model / 4;
  for (uint32_t id = model; id < ids && fits; id++) {
    size_t size;
    sconce_tokenizer_piece(llm->tokenizer, (int32_t)id, &size);
    fits = !size || sconce_tokenizer_is_special(llm->tokenizer, (int32_t)id);
  }
  if (fits) return CLI_DONE;
  fprintf(stderr,
          "sconce: the tokenizer has %u ids and the model %u: it is another model's; name the "
          "right one with -t\n",
          ids, model);
  return CLI_FAILED;
}

/* ---- opening --------------------------------------------------------------------------------- */

static int open_session(struct llm *llm, const struct llm_options *o,
                        const sconce_sampler_desc *sampler) {
  sconce_error err = {0};
  const struct cli_load_desc load = {.path = o->model,
                                     .data = &o->data,
                                     .method = o->method,
                                     .device = &o->device,
                                     .quiet = llm->quiet};
  if (cli_load(&llm->load, &load, &err) != SCONCE_OK) return cli_fail(&err);
  llm->software = sconce_device_describe(llm->load.device)->type == SCONCE_ADAPTER_SOFTWARE;
  sconce_session_desc desc = {.host_chooses = llm->software && sampler->temperature > 0,
                              .recovers = true,
                              .lookup = o->no_lookup ? SCONCE_LOOKUP_OFF : SCONCE_LOOKUP_AUTO,
                              .model = llm->load.model,
                              .method = o->method,
                              .tokenizer = llm->tokenizer,
                              .sampler = *sampler};
  sconce_status status = sconce_session_open(&llm->session, &desc, &err);
  if (o->any && status == SCONCE_UNSUPPORTED) return CLI_DONE;
  if (status != SCONCE_OK) return cli_fail(&err);
  return llm->tokenizer ? check_fit(llm) : CLI_DONE;
}

int llm_open(struct llm *llm, const struct llm_options *o, const sconce_sampler_desc *sampler) {
  *llm = (struct llm){.quiet = o->json || !console_is_terminal(stderr), .cache = o->cache};
  sconce_error err = {0};
  int result = cli_check_program(o->model); /* before anything beside it is looked for */
  if (result == CLI_DONE && !o->no_text) result = open_tokenizer(llm, o, &err);
  if (result == CLI_DONE) result = open_session(llm, o, sampler);
  if (result == CLI_DONE) result = llm_cache_open(llm);
  return result;
}

void llm_close(struct llm *llm) {
  sconce_session_close(llm->session);
  sconce_tokenizer_close(llm->tokenizer);
  cli_unload(&llm->load);
}
