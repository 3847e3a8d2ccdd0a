/* What the verbs for language models share. */
#ifndef CLI_LLM_H
#define CLI_LLM_H

#include "load.h"
#include "sconce_llm.h"

/* Words of the command line, as given. */
struct llm_options {
  const char *model, *tokenizer, *method, *cache;
  const char *temperature, *top_k, *top_p, *min_p, *penalty, *seed;
  struct cli_list data;
  struct cli_device device;
  bool json;
  bool no_text; /* ids will do: no tokenizer */
  bool any;     /* another model will do: no session */
  bool no_lookup;
};
#define LLM_MODEL_OPTIONS(o)                                                                       \
  {.help = "the model"}, {"-m, --model", "FILE", "a .pte file", .value = &(o).model},              \
      {"-t, --tokenizer", "FILE",                                                                  \
       "its tokenizer (default: tokenizer.json, .model or .bin beside the model)",                 \
       .value = &(o).tokenizer},                                                                   \
      {"--data", "FILE", "a .ptd file with the model's constants; may be repeated",                \
       .list = &(o).data},                                                                         \
      {"--method", "NAME", "which of its methods (default: forward)", .value = &(o).method},       \
      CLI_DEVICE_OPTIONS((o).device)
#define LLM_SAMPLER_OPTIONS(o)                                                                     \
  {.help = "choosing tokens"},                                                                     \
      {"--temp", "T", "temperature; 0 takes the likeliest token (default 0.8)",                    \
       .value = &(o).temperature},                                                                 \
      {"--top-k", "K", "keep the K likeliest (default: all)", .value = &(o).top_k},                \
      {"--top-p", "P", "then the fewest that have this share together (default 0.95)",             \
       .value = &(o).top_p},                                                                       \
      {"--min-p", "P", "then those with this share of the likeliest (default 0)",                  \
       .value = &(o).min_p},                                                                       \
      {"--repeat-penalty", "R", "for tokens seen lately (default 1: none)",                        \
       .value = &(o).penalty},                                                                     \
      {"-s, --seed", "N", "same seed, same text (default: from the clock)", .value = &(o).seed}, { \
    "--no-lookup", NULL, "never verify several tokens a call where the text repeats itself",       \
        .flag = &(o).no_lookup                                                                     \
  }
#define LLM_CACHE_OPTION(o, what) {"--cache", "FILE", what, .value = &(o).cache}

struct llm {
  struct cli_load load;
  sconce_tokenizer *tokenizer;
  sconce_session *session;
  const char *cache;
  bool quiet;    /* no progress: not a terminal, or --json */
  bool software; /* the device is the CPU */
};

/* Reads the sampler's numbers; CLI_USAGE with a complaint if one is wrong. */
int llm_sampler(const struct llm_options *options, sconce_sampler_desc *out);
/* The first tokenizer that lies beside the model. */
bool llm_find_tokenizer(const char *model, char *out, size_t size);
/* Opens everything, with progress on a terminal; says which tokenizer was taken if it had to look
 * for one. CLI_DONE, or CLI_FAILED after a complaint. */
int llm_open(struct llm *llm, const struct llm_options *options,
             const sconce_sampler_desc *sampler);
void llm_close(struct llm *llm);

/* ---- prompts: prompt.c ----------------------------------------------------------------------- */

/* What a prompt cost. */
struct llm_cost {
  size_t n, n_reused;
  size_t n_left; /* where it was cancelled: what the session does not have */
  double seconds;
};
/* Brings the session to these ids, with a bar on a terminal; ends with SCONCE_CANCELLED soon after
 * Ctrl-C, and what was computed stays. */
sconce_status llm_prompt(struct llm *llm, const int32_t *ids, size_t n, struct llm_cost *cost,
                         sconce_error *err);
/* Takes up the file of --cache, or makes an empty one. A file that is none of ours is left alone:
 * then, and where none can be written, CLI_FAILED after a complaint. */
int llm_cache_open(struct llm *llm);
/* Writes it, if the prompt had something new. */
sconce_status llm_cache_save(struct llm *llm, const struct llm_cost *cost, sconce_error *err);
/* Does a file start like a kept session? Also true where there is no file. */
bool llm_may_overwrite(const char *path);

const char *llm_stop_name(sconce_stop stop);

#endif
