/* sconce generate: text from a prompt, as it comes. */
#define _POSIX_C_SOURCE 200809L
#include "llm.h"

#include <stdlib.h>
#include <string.h>

struct output {
  bool json;
};

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
  return fflush(stdout) == 0 && !console_interrupted();
}

/* ", 12.3 tokens/s", where there were enough of them to tell. */
static const char *speed(char out[48], size_t n, double seconds) {
  out[0] = 0;
  if (n > 1 && seconds > 0) snprintf(out, 48, ", %.1f tokens/s", (double)n / seconds);
  return out;
}

static void report(const struct llm_cost *p, const sconce_generate_result *r, bool json) {
  char a[48], b[48], kept[48] = "", part[48] = "";
  const size_t there = p->n - p->n_left;
  if (json) {
    printf("{\"event\": \"done\", \"stop\": \"%s\", \"prompt_tokens\": %zu, "
           "\"reused_tokens\": %zu, \"new_tokens\": %zu, \"prompt_s\": %.4f, \"new_s\": %.4f}\n",
           llm_stop_name(r->stop), there, p->n_reused, r->n_new, p->seconds, r->new_s);
    return;
  }
  if (p->n_reused) snprintf(kept, sizeof kept, " (%zu kept)", p->n_reused);
  if (p->n_left) snprintf(part, sizeof part, "%zu of ", there);
  fprintf(stderr, "\nprompt %s%zu token%s%s%s; %zu new token%s%s (%s)\n", part, p->n, CLI_S(p->n),
          kept, speed(a, there > p->n_reused ? there - p->n_reused : 0, p->seconds), r->n_new,
          CLI_S(r->n_new), speed(b, r->n_new, r->new_s), llm_stop_name(r->stop));
}

/* Prompt, then text. The prompt is echoed when it is known to fit. */
static int complete(struct llm *llm, const char *prompt, size_t size, sconce_generate_desc *desc,
                    struct output *out) {
  sconce_error err = {0}, unsaved = {0};
  sconce_generate_result result = {.stop = SCONCE_STOP_CALLER};
  struct llm_cost cost;
  const uint32_t context = sconce_session_describe(llm->session)->context;
  if (desc->n_prompt > context) {
    fprintf(stderr, "sconce: a prompt of %zu tokens, the context has %u positions\n",
            desc->n_prompt, context);
    return CLI_FAILED;
  }
  if (!out->json) fwrite(prompt, 1, size, stdout);
  fflush(stdout);
  sconce_status status = llm_prompt(llm, desc->prompt, desc->n_prompt, &cost, &err);
  if (status == SCONCE_OK) {
    llm_cache_save(llm, &cost, &unsaved); /* what is wrong is said behind the text */
    status = sconce_session_generate(llm->session, desc, &result, &err);
  }
  if (status != SCONCE_OK && status != SCONCE_CANCELLED) return cli_fail(&err);
  report(&cost, &result, out->json);
  if (console_interrupted()) return CLI_INTERRUPTED;
  return unsaved.status ? cli_fail(&unsaved) : CLI_DONE;
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
  desc.prompt = copy;
  desc.n_prompt = n;
  desc.on_text = on_text;
  desc.user = &out;
  console_catch_interrupt(true);
  int result = complete(llm, prompt, size, &desc, &out);
  console_catch_interrupt(false);
  free(copy);
  return result;
}

struct words {
  struct llm_options options;
  const char *prompt, *prompt_file, *n, *dash;
  struct cli_list stops;
  bool ignore_end, no_bos;
};

/* The prompt's text, for the caller to free: -p, a file, or what comes through a pipe. An editor
 * ends a file with a newline that nobody means: one goes. */
static char *read_prompt(const struct words *w, size_t *size) {
  const char *path = w->dash ? w->dash : w->prompt_file;
  if (!path && !w->prompt && !console_is_terminal(stdin)) path = "-";
  char *text = path ? cli_read_file(path, CLI_TEXT_MAX, size) : strdup(w->prompt ? w->prompt : "");
  if (!text) return NULL;
  if (!path) *size = strlen(text);
  if (path && *size && text[*size - 1] == '\n') --*size;
  if (path && *size && text[*size - 1] == '\r') --*size;
  return text;
}

static int open_and_run(const struct words *w, const sconce_sampler_desc *sampler,
                        uint32_t max_new) {
  size_t size = 0;
  char *text = read_prompt(w, &size);
  if (!text) return CLI_FAILED;
  struct llm llm;
  int result = llm_open(&llm, &w->options, sampler);
  if (result == CLI_DONE) {
    sconce_generate_desc desc = {.max_new = max_new,
                                 .stops = w->stops.items,
                                 .n_stops = (size_t)w->stops.n,
                                 .ignore_end = w->ignore_end};
    const sconce_tokenizer_info *info = sconce_tokenizer_describe(llm.tokenizer);
    bool bos = !w->no_bos && info->bos >= 0 && (info->add_bos || size == 0);
    result = run(&llm, text, size, bos, desc, (struct output){w->options.json});
  }
  llm_close(&llm);
  free(text);
  return result;
}

static int check_and_run(const struct cli_verb *verb, const struct words *w) {
  long n = cli_number("-n", w->n, 0, 100000000);
  sconce_sampler_desc sampler;
  if (n < 0 || llm_sampler(&w->options, &sampler) != CLI_DONE) return CLI_USAGE;
  sampler.logprobs = w->options.json;
  if (w->dash && strcmp(w->dash, "-") != 0)
    return cli_usage(verb, "unexpected '%s': the model comes after -m, the prompt after -p",
                     w->dash);
  if (!w->options.model) return cli_usage(verb, "no model: give one with -m");
  if ((w->prompt != NULL) + (w->prompt_file != NULL) + (w->dash != NULL) > 1)
    return cli_usage(verb, "more than one prompt: -p, -f or -, not both");
  return open_and_run(w, &sampler, (uint32_t)n);
}

int cli_generate(int argc, char **argv) {
  struct words w = {.n = "0"};
  const struct cli_option options[] = {
      {"", .value = &w.dash},
      {"-p, --prompt", "TEXT", "the prompt", .value = &w.prompt},
      {"-f, --prompt-file", "FILE",
       "the prompt from a file, less its last newline; - is standard "
       "input",
       .value = &w.prompt_file},
      {"-n", "N", "at most N new tokens (default: until the end, or until the context is full)",
       .value = &w.n},
      {"--stop", "TEXT", "stop before this text; may be repeated", .list = &w.stops},
      {"--ignore-eos", NULL, "go on after the end of the text", .flag = &w.ignore_end},
      {"--no-bos", NULL, "no begin token in front of the prompt", .flag = &w.no_bos},
      {"--json", NULL,
       "one JSON event a line: {\"event\": \"text\", …}, …, {\"event\": \"done\", …}",
       .flag = &w.options.json},
      LLM_CACHE_OPTION(w.options, "keep the computed prompt here: the next run that begins with "
                                  "the same text computes only what differs"),
      LLM_SAMPLER_OPTIONS(w.options),
      LLM_MODEL_OPTIONS(w.options),
      {0}};
  const struct cli_verb verb = {
      "generate", "-m model.pte [-p TEXT | -f FILE | -] [OPTION]…",
      "Writes the prompt and what the model adds to it. Without -p and -f the prompt is what comes "
      "through a pipe; on a terminal it is empty, and the model starts by itself. Ctrl-C stops, "
      "also in a long prompt; a second one ends the program at once.",
      options};
  int result;
  if (cli_parse(argc, argv, &verb, &result)) result = check_and_run(&verb, &w);
  free(w.stops.items);
  free(w.options.data.items);
  return result;
}
