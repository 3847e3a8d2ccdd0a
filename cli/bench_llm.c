/* sconce bench -m: tokens per second of prompts and of decoding, at several depths. */
#include "bench.h"
#include "llm.h"
#include "sconce_dev.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LIST_MAX = 16, REPEATS_MAX = 100 };

struct numbers {
  size_t n;
  long item[LIST_MAX];
};

static bool parse_list(const char *option, const char *text, struct numbers *out) {
  *out = (struct numbers){0};
  while (*text) {
    char *end;
    long n = strtol(text, &end, 10);
    if (end == text || n < 0 || n > 10000000 || out->n == LIST_MAX || (*end && *end != ',')) {
      fprintf(stderr, "sconce: %s is '%s', expected up to %d numbers with commas\n", option, text,
              LIST_MAX);
      return false;
    }
    out->item[out->n++] = n;
    text = *end ? end + 1 : end;
  }
  return true;
}

/* ---- one measurement ------------------------------------------------------------------------- */

struct job {
  bool decode;
  long tokens, depth;
};

/* Ids without meaning; speed does not depend on them. */
static int32_t any_id(const sconce_session_info *info, size_t i) {
  return (int32_t)(1 + (i * 7919u) % (info->n_vocab > 2 ? info->n_vocab - 2 : 1));
}

sconce_status bench_go_to(struct llm *llm, int32_t *ids, long depth, sconce_error *err) {
  const sconce_session_info *info = sconce_session_describe(llm->session);
  if (depth == 0) depth = 1; /* something must come first */
  for (long i = 0; i < depth; i++) ids[i] = any_id(info, (size_t)i);
  return sconce_session_prompt(llm->session, ids, (size_t)depth, NULL, NULL, err);
}

sconce_status bench_decode(struct llm *llm, long n, sconce_error *err) {
  sconce_choice choice;
  sconce_status status = SCONCE_OK;
  for (long i = 0; i < n && status == SCONCE_OK; i++)
    status = sconce_session_next(llm->session, &choice, err);
  return status;
}

static sconce_status measure(struct llm *llm, int32_t *ids, const struct job *job, double *seconds,
                             sconce_error *err) {
  const sconce_session_info *info = sconce_session_describe(llm->session);
  sconce_status status = bench_go_to(llm, ids, job->depth, err);
  if (status != SCONCE_OK) return status;
  double start = console_seconds();
  if (job->decode) {
    status = bench_decode(llm, job->tokens + 1, err); /* the prompt gave the logits for the first */
  } else {
    status = sconce_session_rewind(llm->session, (uint32_t)job->depth, err);
    for (long i = 0; i < job->tokens; i++)
      ids[job->depth + i] = any_id(info, (size_t)(job->depth + i) * 31 + 5);
    if (status == SCONCE_OK)
      status = sconce_session_prompt(llm->session, ids, (size_t)(job->depth + job->tokens), NULL,
                                     NULL, err);
  }
  *seconds = console_seconds() - start;
  return status;
}

/* ---- tables ---------------------------------------------------------------------------------- */

struct row {
  struct job job;
  double mean, sd; /* tokens per second */
  double share;    /* of the measured read bandwidth; 0 for prompts, and where there is none */
};

/* shares: there is a column for them. */
static void print_row(const struct row *r, const char *format, bool shares, bool first) {
  const char *kind = r->job.decode ? "tg" : "pp";
  if (!strcmp(format, "json")) {
    printf("%s{\"test\": \"%s\", \"tokens\": %ld, \"depth\": %ld, \"tokens_per_s\": %.3f, "
           "\"sd\": %.3f",
           first ? "" : ",\n ", kind, r->job.tokens, r->job.depth, r->mean, r->sd);
    if (r->share > 0) printf(", \"bandwidth_share\": %.4f", r->share);
    putchar('}');
  } else if (!strcmp(format, "csv")) {
    printf("%s,%ld,%ld,%.3f,%.3f,", kind, r->job.tokens, r->job.depth, r->mean, r->sd);
    if (r->share > 0) printf("%.4f", r->share);
    putchar('\n');
  } else {
    printf("| %s%ld @ %ld | %.2f ± %.2f |", kind, r->job.tokens, r->job.depth, r->mean, r->sd);
    if (r->share > 0) printf(" %.1f %%", 100 * r->share);
    puts(shares ? " |" : "");
  }
  fflush(stdout);
}

static void print_head(const struct llm *llm, const char *model, const char *format, bool shares) {
  const sconce_device_info *d = sconce_device_describe(llm->load.device);
  sconce_stats s;
  sconce_load_times load;
  sconce_state_stats(sconce_session_state(llm->session), &s);
  sconce_method_load_times(llm->load.method, &load);
  if (!strcmp(format, "json")) {
    printf("{\"model\": ");
    cli_json_text(stdout, model);
    printf(", \"device\": ");
    cli_json_text(stdout, d->name);
    printf(", \"library\": \"%s %s\", \"precision\": \"%s\", \"gpu_bytes\": %llu, ", d->library,
           d->library_version, cli_precision(d),
           (unsigned long long)(s.gpu_weights + s.gpu_state + s.gpu_transient));
    printf("\"uploaded\": %llu, \"upload_ms\": %.3f, \"compile_ms\": %.3f, \"results\": [\n ",
           (unsigned long long)load.uploaded, (double)load.upload_ns * 1e-6,
           (double)load.compile_ns * 1e-6);
  } else if (!strcmp(format, "csv")) {
    puts("test,tokens,depth,tokens_per_s,sd,bandwidth_share");
  } else {
    char bytes[32];
    printf("%s on %s (%s, %s %s, %s), %s on the device\n", model, d->name, d->api, d->library,
           d->library_version, cli_precision(d),
           cli_bytes(bytes, s.gpu_weights + s.gpu_state + s.gpu_transient));
    printf("loaded %s in %.0f ms (%.2f GB/s), kernels ready %.0f ms later\n\n",
           cli_bytes(bytes, load.uploaded), (double)load.upload_ns * 1e-6,
           load.upload_ns ? (double)load.uploaded / (double)load.upload_ns : 0,
           (double)load.compile_ns * 1e-6);
    puts(shares ? "| test | tokens/s | read bandwidth |\n|---|---|---|"
                : "| test | tokens/s |\n|---|---|");
  }
}

/* ---- all of them ----------------------------------------------------------------------------- */

static int run_job(struct llm *llm, int32_t *ids, const struct job *job, long repeats,
                   double bandwidth, const char *format, bool first) {
  sconce_error err = {0};
  double speed[REPEATS_MAX], seconds, sum = 0, squares = 0;
  const sconce_session_info *info = sconce_session_describe(llm->session);
  if (job->depth + job->tokens > (long)info->context) {
    fprintf(stderr, "sconce: %ld tokens at depth %ld do not fit the context of %u\n", job->tokens,
            job->depth, info->context);
    return CLI_FAILED;
  }
  if (measure(llm, ids, job, &seconds, &err) != SCONCE_OK) return cli_fail(&err); /* warm up */
  for (long i = 0; i < repeats; i++) {
    if (measure(llm, ids, job, &seconds, &err) != SCONCE_OK) return cli_fail(&err);
    speed[i] = (double)job->tokens / seconds;
    sum += speed[i];
  }
  struct row row = {.job = *job, .mean = sum / (double)repeats};
  for (long i = 0; i < repeats; i++) squares += (speed[i] - row.mean) * (speed[i] - row.mean);
  row.sd = repeats > 1 ? sqrt(squares / (double)(repeats - 1)) : 0;
  sconce_stats stats;
  sconce_state_stats(sconce_session_state(llm->session), &stats);
  if (job->decode && bandwidth > 0) row.share = row.mean * (double)stats.gpu_weights / bandwidth;
  print_row(&row, format, bandwidth > 0, first);
  return CLI_DONE;
}

double bench_bandwidth(sconce_device *device) {
  sconce_bandwidth bandwidth = {0};
  sconce_error err = {0};
  if (sconce_device_describe(device)->type == SCONCE_ADAPTER_SOFTWARE) return 0;
  if (sconce_measure_bandwidth(device, 0, &bandwidth, &err) != SCONCE_OK)
    fprintf(stderr, "sconce: bandwidth not measured: %s\n", err.text);
  return bandwidth.read_bytes_per_s;
}

static int profile_all(struct llm *llm, const struct bench_llm *b, const struct numbers *depths) {
  const sconce_session_info *info = sconce_session_describe(llm->session);
  int32_t *ids = malloc((size_t)info->context * sizeof *ids);
  int result = ids ? CLI_DONE : CLI_FAILED;
  for (size_t d = 0; d < depths->n && result == CLI_DONE; d++)
    result = bench_profile(llm, b, ids, depths->item[d], d == 0);
  if (!strcmp(b->format, "json") && result == CLI_DONE) puts("\n]");
  free(ids);
  return result;
}

static int run_all(struct llm *llm, const struct bench_llm *b, const struct numbers *prompts,
                   const struct numbers *depths) {
  const sconce_session_info *info = sconce_session_describe(llm->session);
  int32_t *ids = malloc((size_t)info->context * sizeof *ids);
  if (!ids) return CLI_FAILED;
  double bandwidth = b->n_decode ? bench_bandwidth(llm->load.device) : 0;
  int result = CLI_DONE;
  print_head(llm, b->options.model, b->format, bandwidth > 0);
  bool first = true;
  for (size_t d = 0; d < depths->n && result == CLI_DONE; d++) {
    for (size_t p = 0; p <= prompts->n && result == CLI_DONE; p++) {
      struct job job = {.decode = p == prompts->n, .depth = depths->item[d]};
      job.tokens = job.decode ? b->n_decode : prompts->item[p];
      if (job.tokens == 0) continue;
      result = run_job(llm, ids, &job, b->repeats, bandwidth, b->format, first);
      first = false;
    }
  }
  if (!strcmp(b->format, "json")) puts("\n]}");
  free(ids);
  return result;
}

int bench_llm(const struct bench_llm *b) {
  struct numbers prompts, depths;
  if (!parse_list("-p", b->prompts, &prompts) || !parse_list("-d", b->depths, &depths))
    return CLI_USAGE;
  sconce_sampler_desc greedy = {.temperature = 0};
  struct llm llm;
  struct llm_options options = b->options;
  options.no_text = options.any = !b->lookup;
  options.no_lookup = true; /* what is decoded means nothing, and goes round in circles */
  int result = llm_open(&llm, &options, &greedy);
  if (result == CLI_DONE)
    result = !llm.session ? bench_call(&llm, b)
             : b->lookup  ? bench_lookup(&llm, b)
             : b->profile ? profile_all(&llm, b, &depths)
                          : run_all(&llm, b, &prompts, &depths);
  llm_close(&llm);
  return result;
}
