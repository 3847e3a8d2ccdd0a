/* sconce bench --lookup: decoding behind a text, with lookup and without, in turn. */
#include "bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WITHOUT, WITH, REPEATS_MAX = 100 };

struct side {
  sconce_session *session;
  double speed[REPEATS_MAX], mean, sd; /* tokens per second */
  uint64_t guessed, accepted;          /* of all repeats */
  int32_t *ids;                        /* (n) of the last repeat */
};

struct text {
  int32_t *ids;
  size_t n;
};

static bool encode(const struct llm *llm, const char *path, size_t most, struct text *out) {
  size_t size;
  sconce_error err = {0};
  char *bytes = cli_read_file(path, CLI_TEXT_MAX, &size);
  if (!bytes) return false;
  const int32_t *ids;
  const uint32_t bos = sconce_tokenizer_describe(llm->tokenizer)->add_bos ? SCONCE_ENCODE_BOS : 0;
  while (size && bytes[size - 1] == '\n') size--;
  const sconce_status status =
      sconce_tokenizer_encode(llm->tokenizer, bytes, size, bos, &ids, &out->n, &err);
  free(bytes);
  if (status != SCONCE_OK) return cli_fail(&err), false;
  if (out->n == 0 || out->n > most) {
    fprintf(stderr, "sconce: %s has %zu tokens, expected 1 to %zu\n", path, out->n, most);
    return false;
  }
  out->ids = malloc(out->n * sizeof *out->ids);
  if (out->ids) memcpy(out->ids, ids, out->n * sizeof *ids);
  return out->ids != NULL;
}

/* One run; the first id comes of the prompt's logits. */
static sconce_status decode(struct side *s, const struct text *text, long n, double *seconds,
                            sconce_error *err) {
  sconce_status status = sconce_session_rewind(s->session, 0, err);
  if (status == SCONCE_OK)
    status = sconce_session_prompt(s->session, text->ids, text->n, NULL, NULL, err);
  const double start = console_seconds();
  for (long i = 0; i <= n && status == SCONCE_OK; i++) {
    sconce_choice choice;
    status = sconce_session_next(s->session, &choice, err);
    if (i) s->ids[i - 1] = choice.id;
  }
  *seconds = console_seconds() - start;
  return status;
}

static sconce_status measure(struct side sides[2], const struct text *text, long n, long repeats,
                             sconce_error *err) {
  for (long r = -1; r < repeats; r++) /* the first to warm up */
    for (int k = 0; k < 2; k++) {
      double seconds;
      const sconce_session_info *info = sconce_session_describe(sides[k].session);
      const uint64_t guessed = info->guessed, accepted = info->accepted;
      const sconce_status status = decode(&sides[k], text, n, &seconds, err);
      if (status != SCONCE_OK) return status;
      if (r < 0) continue;
      sides[k].speed[r] = (double)n / seconds;
      sides[k].guessed += info->guessed - guessed;
      sides[k].accepted += info->accepted - accepted;
    }
  return SCONCE_OK;
}

static void sum_up(struct side *s, long repeats) {
  double squares = 0;
  for (long i = 0; i < repeats; i++) s->mean += s->speed[i] / (double)repeats;
  for (long i = 0; i < repeats; i++) squares += (s->speed[i] - s->mean) * (s->speed[i] - s->mean);
  s->sd = repeats > 1 ? sqrt(squares / (double)(repeats - 1)) : 0;
}

static void print(const struct side sides[2], const struct text *text, const struct bench_llm *b) {
  static const char *const names[] = {"off", "on"};
  long same = 0;
  while (same < b->n_decode && sides[WITH].ids[same] == sides[WITHOUT].ids[same]) same++;
  const bool json = !strcmp(b->format, "json"), csv = !strcmp(b->format, "csv");
  if (json)
    printf("{\"prompt\": %zu, \"tokens\": %ld, \"same\": %ld, \"results\": [", text->n, b->n_decode,
           same);
  else if (csv)
    puts("lookup,tokens_per_s,sd,guessed,accepted");
  else
    printf("%ld tokens behind %zu, of which the first %ld are the same\n\n"
           "| lookup | tokens/s | guesses a run | right |\n|---|---|---|---|\n",
           b->n_decode, text->n, same);
  for (int k = 0; k < 2; k++) {
    const struct side *s = &sides[k];
    const double runs = (double)b->repeats, guessed = (double)s->guessed / runs,
                 accepted = (double)s->accepted / runs;
    printf(json  ? "%s{\"lookup\": \"%s\", \"tokens_per_s\": %.3f, \"sd\": %.3f, "
                   "\"guessed\": %.1f, \"accepted\": %.1f}"
           : csv ? "%s%s,%.3f,%.3f,%.1f,%.1f\n"
                 : "%s| %s | %.2f ± %.2f | %.1f | %.1f |\n",
           json && k ? ", " : "", names[k], s->mean, s->sd, guessed, accepted);
  }
  if (json) puts("]}");
}

static int run(struct side sides[2], const struct llm *llm, const struct text *text,
               const struct bench_llm *b) {
  sconce_error err = {0};
  for (int k = 0; k < 2; k++) {
    const sconce_session_desc desc = {.model = llm->load.model,
                                      .method = b->options.method,
                                      .lookup = k ? SCONCE_LOOKUP_AUTO : SCONCE_LOOKUP_OFF};
    sides[k].ids = malloc((size_t)b->n_decode * sizeof *sides[k].ids);
    if (!sides[k].ids) return CLI_FAILED;
    if (sconce_session_open(&sides[k].session, &desc, &err) != SCONCE_OK) return cli_fail(&err);
  }
  if (measure(sides, text, b->n_decode, b->repeats, &err) != SCONCE_OK) return cli_fail(&err);
  for (int k = 0; k < 2; k++) sum_up(&sides[k], b->repeats);
  print(sides, text, b);
  return CLI_DONE;
}

int bench_lookup(struct llm *llm, const struct bench_llm *b) {
  struct text text = {0};
  struct side *sides = calloc(2, sizeof *sides);
  const long context = (long)sconce_session_describe(llm->session)->context;
  int result = CLI_FAILED;
  if (b->n_decode + 1 >= context)
    fprintf(stderr, "sconce: %ld tokens do not fit the context of %ld\n", b->n_decode, context);
  else if (sides && encode(llm, b->lookup, (size_t)(context - b->n_decode - 1), &text))
    result = run(sides, llm, &text, b);
  for (int k = 0; sides && k < 2; k++) {
    sconce_session_close(sides[k].session);
    free(sides[k].ids);
  }
  free(sides);
  free(text.ids);
  return result;
}
