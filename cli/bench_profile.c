/* sconce bench -m --profile: where the time of one decoded token goes. */
#include "bench.h"
#include "sconce_dev.h"

#include <stdlib.h>
#include <string.h>

struct profile {
  struct bench_where where; /* of the last token */
  long depth, tokens;
  bool lost;                                   /* out of memory */
  double wall_us;                              /* of a token, median */
  double plan_us, bind_us, submit_us, wait_us; /* of a call, means */
};

/* ---- measuring ------------------------------------------------------------------------------- */

/* Real tokens: every one has a position of its own, so that planning costs what it costs. */
static sconce_status time_tokens(struct llm *llm, struct profile *p, double *scratch,
                                 sconce_error *err) {
  sconce_call_times before, after;
  sconce_state_times(sconce_session_state(llm->session), &before);
  for (long i = 0; i < p->tokens; i++) {
    double start = console_seconds();
    sconce_status status = bench_decode(llm, 1, err);
    if (status != SCONCE_OK) return status;
    scratch[i] = (console_seconds() - start) * 1e6;
  }
  sconce_state_times(sconce_session_state(llm->session), &after);
  p->wall_us = bench_median(scratch, (size_t)p->tokens);
  double calls = (double)(after.calls - before.calls) * 1e3;
  p->plan_us = (double)(after.plan_ns - before.plan_ns) / calls;
  p->bind_us = (double)(after.bind_ns - before.bind_ns) / calls;
  p->submit_us = (double)(after.submit_ns - before.submit_ns) / calls;
  p->wait_us = (double)(after.wait_ns - before.wait_ns) / calls;
  return SCONCE_OK;
}

/* The method's inputs stay those of the last token, which can be run again and again. */
static sconce_status measure(struct llm *llm, struct profile *p, int32_t *ids, long repeats,
                             double *scratch, sconce_error *err) {
  sconce_status status = bench_go_to(llm, ids, p->depth, err);
  if (status == SCONCE_OK) status = bench_decode(llm, 2, err);
  if (status == SCONCE_OK) status = time_tokens(llm, p, scratch, err);
  const sconce_session_info *info = sconce_session_describe(llm->session);
  if (status == SCONCE_OK) /* ends the work ahead */
    status = sconce_session_rewind(llm->session, info->position - 1, err);
  if (status != SCONCE_OK) return status;
  return bench_where(sconce_session_state(llm->session), &p->where, repeats, scratch, err);
}

/* ---- printing -------------------------------------------------------------------------------- */

static double share(const struct profile *p, double us) {
  return p->where.kernels_us > 0 ? us / p->where.kernels_us : 0;
}

struct fact {
  const char *key, *what;
  double us;
};
enum { FACTS = 9 };

static void facts_of(const struct profile *p, struct fact out[FACTS]) {
  const struct fact facts[FACTS] = {
      {"kernels_us", "kernels, a pass each: the sum of the table", p->where.kernels_us},
      {"pass_us", "the same dispatches in one pass, by the device's clock", p->where.pass_us},
      {"gap_us", "gaps: one pass less the sum", p->where.pass_us - p->where.kernels_us},
      {"wall_us", "wall clock of a token, choosing included", p->wall_us},
      {"outside_us", "outside: wall clock less one pass", p->wall_us - p->where.pass_us},
      {"plan_us", "CPU: planning, inputs written", p->plan_us},
      {"bind_us", "CPU: binding", p->bind_us},
      {"submit_us", "CPU: encoding and submitting", p->submit_us},
      {"wait_us", "CPU: waiting for the token", p->wait_us},
  };
  memcpy(out, facts, sizeof facts);
}

static void print_md(const struct profile *p, const struct fact *facts) {
  printf("One token at depth %ld:\n\n| kernel | dispatches | µs | µs each | share |\n"
         "|---|---|---|---|---|\n",
         p->depth);
  for (size_t i = 0; i < p->where.n_lines; i++)
    printf("| %s | %u | %.1f | %.2f | %.1f %% |\n", p->where.lines[i].label,
           p->where.lines[i].dispatches, p->where.lines[i].us,
           p->where.lines[i].us / p->where.lines[i].dispatches,
           100 * share(p, p->where.lines[i].us));
  printf("| all | %zu | %.1f | %.2f | |\n\n| | µs |\n|---|---|\n", p->where.n, p->where.kernels_us,
         p->where.n ? p->where.kernels_us / (double)p->where.n : 0);
  for (int i = 0; i < FACTS; i++) printf("| %s | %.1f |\n", facts[i].what, facts[i].us);
  printf("\nA pass per dispatch distorts small kernels: each starts on an idle device and pays for "
         "its own\ntimestamps, so the sum may exceed one pass and the gaps be negative; read the "
         "shares, not the sum.\nGaps are barriers and launches between dependent dispatches. "
         "Outside the pass are the first submit,\nthe readback of the logits, and choosing; the "
         "CPU encodes while the device runs, so that its lines\noverlap with the pass. Wall clock "
         "and CPU: %ld tokens from here on, median and means.\n\n",
         p->tokens);
}

static void print_csv(const struct profile *p, const struct fact *facts, bool first) {
  if (first) puts("depth,what,dispatches,us,us_each,share");
  for (size_t i = 0; i < p->where.n_lines; i++)
    printf("%ld,%s,%u,%.3f,%.3f,%.4f\n", p->depth, p->where.lines[i].label,
           p->where.lines[i].dispatches, p->where.lines[i].us,
           p->where.lines[i].us / p->where.lines[i].dispatches, share(p, p->where.lines[i].us));
  for (int i = 0; i < FACTS; i++)
    printf("%ld,(%s),%zu,%.3f,,\n", p->depth, facts[i].key, p->where.n, facts[i].us);
}

static void print_json(const struct profile *p, const struct fact *facts, const struct llm *llm,
                       const char *model, bool first) {
  const sconce_device_info *d = sconce_device_describe(llm->load.device);
  printf("%s{\"model\": ", first ? "[\n" : ",\n");
  cli_json_text(stdout, model);
  printf(", \"device\": ");
  cli_json_text(stdout, d->name);
  printf(", \"library\": \"%s %s\", \"depth\": %ld, \"tokens\": %ld, \"dispatches\": %zu",
         d->library, d->library_version, p->depth, p->tokens, p->where.n);
  for (int i = 0; i < FACTS; i++) printf(", \"%s\": %.3f", facts[i].key, facts[i].us);
  printf(", \"kernels\": [");
  for (size_t i = 0; i < p->where.n_lines; i++)
    printf("%s\n {\"kernel\": \"%s\", \"dispatches\": %u, \"us\": %.3f, \"share\": %.4f}",
           i ? "," : "", p->where.lines[i].label, p->where.lines[i].dispatches,
           p->where.lines[i].us, share(p, p->where.lines[i].us));
  printf("]}");
}

static void print_profile(const struct profile *p, const struct llm *llm, const struct bench_llm *b,
                          bool first) {
  struct fact facts[FACTS];
  facts_of(p, facts);
  if (!strcmp(b->format, "json")) {
    print_json(p, facts, llm, b->options.model, first);
  } else if (!strcmp(b->format, "csv")) {
    print_csv(p, facts, first);
  } else {
    const sconce_device_info *d = sconce_device_describe(llm->load.device);
    if (first)
      printf("%s on %s (%s, %s %s)\n\n", b->options.model, d->name, d->api, d->library,
             d->library_version);
    print_md(p, facts);
  }
  fflush(stdout);
}

int bench_profile(struct llm *llm, const struct bench_llm *b, int32_t *ids, long depth,
                  bool first) {
  const sconce_session_info *info = sconce_session_describe(llm->session);
  if (depth + 1 + b->n_decode > (long)info->context) {
    fprintf(stderr, "sconce: %ld tokens at depth %ld do not fit the context of %u\n",
            b->n_decode + 1, depth, info->context);
    return CLI_FAILED;
  }
  sconce_error err = {0};
  struct profile p = {.depth = depth, .tokens = b->n_decode};
  size_t room = (size_t)(b->repeats > b->n_decode ? b->repeats : b->n_decode);
  double *scratch = calloc(room, sizeof *scratch);
  p.lost = !scratch;
  sconce_status status = SCONCE_OK;
  if (!p.lost) status = measure(llm, &p, ids, b->repeats, scratch, &err);
  if (status == SCONCE_OK && !p.lost) print_profile(&p, llm, b, first);
  if (p.lost) fputs("sconce: out of memory\n", stderr);
  if (status != SCONCE_OK) cli_fail(&err);
  free(scratch);
  bench_where_free(&p.where);
  return status == SCONCE_OK && !p.lost ? CLI_DONE : CLI_FAILED;
}
