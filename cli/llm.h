/* What the verbs for language models share. */
#ifndef CLI_LLM_H
#define CLI_LLM_H

#include "load.h"
#include "sconce_llm.h"

/* Words of the command line, as given. */
struct llm_options {
  const char *model, *tokenizer, *method;
  const char *temperature, *top_k, *top_p, *min_p, *penalty, *seed;
  bool verbose, json;
  bool no_text; /* ids will do: no tokenizer */
};
#define LLM_OPTIONS(o)                                                                             \
  {"-m", &(o).model, NULL}, {"--model", &(o).model, NULL}, {"-t", &(o).tokenizer, NULL},           \
      {"--tokenizer", &(o).tokenizer, NULL}, {"--method", &(o).method, NULL},                      \
      {"--temp", &(o).temperature, NULL}, {"--top-k", &(o).top_k, NULL},                           \
      {"--top-p", &(o).top_p, NULL}, {"--min-p", &(o).min_p, NULL},                                \
      {"--repeat-penalty", &(o).penalty, NULL}, {"--seed", &(o).seed, NULL},                       \
      {"-v", NULL, &(o).verbose}, {                                                                \
    "--json", NULL, &(o).json                                                                      \
  }
extern const char llm_options_help[];

struct llm {
  struct cli_load load;
  sconce_tokenizer *tokenizer;
  sconce_session *session;
  bool quiet; /* no progress: not a terminal, or --json */
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

/* A bar on stderr while a prompt is read; it goes away when all is done. */
void llm_progress(size_t done, size_t all);

/* Ctrl-C while this is on sets the flag instead of ending the program. */
void llm_catch_interrupt(bool on);
bool llm_interrupted(void);

const char *llm_stop_name(sconce_stop stop);

#endif
