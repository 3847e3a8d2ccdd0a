/* sconce generate: text from a prompt, as it comes. */
#include "llm.h"

#include <stdlib.h>
#include <string.h>

static const char usage_head[] =
    "usage: sconce generate -m model.pte [-p TEXT | --prompt-file FILE] [OPTION]…\n\n"
    "Writes the prompt and what the model adds to it.\n\n"
    "  -p TEXT             the prompt (default: empty, the model starts by itself)\n"
    "  --prompt-file FILE  the prompt from a file\n"
    "  -n N                at most N new tokens (default: until the end or the context is full)\n"
    "  --stop TEXT         stop before this text; may be given several times\n"
    "  --ignore-eos        go on after the end of the text\n"
    "  --no-bos            no begin token in front of the prompt\n"
    "  --json              one JSON event a line: {\"event\": \"text\", …}, …, {\"event\": "
    "\"done\", …}\n";

struct output {
  bool json, quiet;
};

static bool progress(void *user, size_t done, size_t all) {
  const struct output *out = user;
  if (!out->quiet && all > 64) llm_progress(done, all);
  return !llm_interrupted();
}

static bool on_text(void *user, const char *text, size_t size, sconce_choice choice) {
  const struct output *out = user;
  if (!out->json) {
    fwrite(text, 1, size, stdout);
  } else {
    char *z = malloc(size + 1);
    if (!z) return false;
    memcpy(z, text, size);
    z[size] = 0;
    printf("{\"event\": \"text\", \"id\": %d, \"text\": ", (int)choice.id);
    cli_json_text(stdout, z);
    if (choice.id >= 0) printf(", \"logprob\": %.6g", (double)choice.logprob);
    puts("}");
    free(z);
  }
  fflush(stdout);
  return !llm_interrupted();
}

static void report(const sconce_generate_result *r, bool json) {
  double prompt = r->prompt_s > 0 ? (double)(r->n_prompt - r->n_reused) / r->prompt_s : 0;
  double decode = r->new_s > 0 ? (double)r->n_new / r->new_s : 0;
  if (json)
    printf("{\"event\": \"done\", \"stop\": \"%s\", \"prompt_tokens\": %zu, \"new_tokens\": %zu, "
           "\"prompt_s\": %.4f, \"new_s\": %.4f}\n",
           llm_stop_name(r->stop), r->n_prompt, r->n_new, r->prompt_s, r->new_s);
  else
    fprintf(stderr, "\nprompt %zu tokens, %.1f tokens/s; %zu new tokens, %.1f tokens/s (%s)\n",
            r->n_prompt, prompt, r->n_new, decode, llm_stop_name(r->stop));
}

static char *read_file(const char *path, size_t *size) {
  FILE *file = fopen(path, "rb");
  char *text = NULL;
  size_t cap = 0;
  *size = 0;
  while (file && !ferror(file) && !feof(file)) {
    char *more = realloc(text, cap = cap ? 2 * cap : 4096);
    if (!more) break;
    text = more;
    *size += fread(text + *size, 1, cap - *size, file);
  }
  bool ok = file && !ferror(file) && feof(file);
  if (file) fclose(file);
  if (ok) return text;
  free(text);
  fprintf(stderr, "sconce: cannot read %s\n", path);
  return NULL;
}

static int run(struct llm *llm, const char *prompt, size_t size, bool bos,
               sconce_generate_desc desc, struct output out) {
  sconce_error err = {0};
  const int32_t *ids;
  size_t n;
  uint32_t flags = bos ? SCONCE_ENCODE_BOS : 0;
  if (sconce_tokenizer_encode(llm->tokenizer, prompt, size, flags, &ids, &n, &err) != SCONCE_OK)
    return cli_fail(&err);
  int32_t *copy = malloc((n + 1) * sizeof *copy); /* decoding uses the tokenizer's memory */
  if (!copy) return CLI_FAILED;
  memcpy(copy, ids, n * sizeof *copy);
  if (!out.json) fwrite(prompt, 1, size, stdout);
  fflush(stdout);
  desc.prompt = copy;
  desc.n_prompt = n;
  desc.progress = progress;
  desc.on_text = on_text;
  desc.user = &out;
  sconce_generate_result result;
  llm_catch_interrupt(true);
  sconce_status status = sconce_session_generate(llm->session, &desc, &result, &err);
  llm_catch_interrupt(false);
  free(copy);
  if (status != SCONCE_OK) return cli_fail(&err);
  report(&result, out.json);
  return CLI_DONE;
}

struct words {
  struct llm_options options;
  const char *prompt, *prompt_file, *n;
  struct cli_list stops;
  bool ignore_end, no_bos;
};

static int open_and_run(const struct words *w, const sconce_sampler_desc *sampler,
                        uint32_t max_new) {
  size_t size = w->prompt ? strlen(w->prompt) : 0;
  char *text = w->prompt_file ? read_file(w->prompt_file, &size) : NULL;
  if (w->prompt_file && !text) return CLI_FAILED;
  struct llm llm;
  int result = llm_open(&llm, &w->options, sampler);
  if (result == CLI_DONE) {
    sconce_generate_desc desc = {.max_new = max_new,
                                 .stops = w->stops.items,
                                 .n_stops = (size_t)w->stops.n,
                                 .ignore_end = w->ignore_end};
    const sconce_tokenizer_info *info = sconce_tokenizer_describe(llm.tokenizer);
    bool bos = !w->no_bos && info->bos >= 0 && (info->add_bos || size == 0);
    const char *prompt = text ? text : size ? w->prompt : "";
    result = run(&llm, prompt, size, bos, desc, (struct output){w->options.json, llm.quiet});
  }
  llm_close(&llm);
  free(text);
  return result;
}

static int check_and_run(const struct words *w) {
  long n = cli_number("-n", w->n, 0, 100000000);
  sconce_sampler_desc sampler;
  if (n < 0 || llm_sampler(&w->options, &sampler) != CLI_DONE) return CLI_USAGE;
  sampler.logprobs = w->options.json;
  if (!w->options.model || (w->prompt && w->prompt_file)) {
    fputs(w->options.model ? "sconce: -p or --prompt-file, not both\n"
                           : "sconce: no model: give one with -m\n",
          stderr);
    return CLI_USAGE;
  }
  return open_and_run(w, &sampler, (uint32_t)n);
}

int cli_generate(int argc, char **argv) {
  struct words w = {.n = "0"};
  bool help;
  const struct cli_option options[] = {LLM_OPTIONS(w.options),
                                       {"-p", &w.prompt, NULL},
                                       {"--prompt", &w.prompt, NULL},
                                       {"--prompt-file", &w.prompt_file, NULL},
                                       {"-n", &w.n, NULL},
                                       {"--stop", NULL, NULL, &w.stops},
                                       {"--ignore-eos", NULL, &w.ignore_end},
                                       {"--no-bos", NULL, &w.no_bos},
                                       {0}};
  char usage[4096];
  snprintf(usage, sizeof usage, "%s%s", usage_head, llm_options_help);
  int at = cli_parse(argc, argv, options, usage, &help), result = CLI_USAGE;
  if (help)
    result = CLI_DONE;
  else if (at == argc)
    result = check_and_run(&w);
  else if (at >= 0)
    fprintf(stderr, "sconce: unexpected '%s'\n", argv[at]);
  free(w.stops.items);
  return result;
}
