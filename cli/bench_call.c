/* sconce bench -m, for a model that is no language model: the time of a call, and where it goes. */
#include "bench.h"
#include "sconce_dev.h"
#include "tensor.h"

#include <stdlib.h>
#include <string.h>

struct call {
  sconce_state *state;
  double first_us, median_us, shortest_us;     /* by the wall clock, results read back */
  double plan_us, bind_us, submit_us, wait_us; /* of a call, means */
  struct bench_where where;
};

/* A scalar that was traced keeps its value. */
static bool set_inputs(sconce_state *state, const sconce_method_info *info) {
  for (uint32_t i = 0; i < info->n_inputs; i++) {
    const sconce_tensor *bound = &info->inputs[i];
    sconce_tensor tensor;
    sconce_error err = {0};
    void *data;
    if (bound->rank == 0) continue;
    if (!input_filled("rand", bound, &tensor, &data)) return false;
    sconce_status status = sconce_state_set_input(state, i, &tensor, &err);
    free(data);
    if (status != SCONCE_OK) return !cli_fail(&err);
  }
  return true;
}

static sconce_status time_calls(struct call *c, long repeats, double *us, sconce_error *err) {
  sconce_call_times before, after;
  sconce_status status = SCONCE_OK;
  for (long i = -1; i < repeats && status == SCONCE_OK; i++) {
    if (i == 0) sconce_state_times(c->state, &before);
    const double start = console_seconds();
    status = sconce_state_run(c->state, NULL, err);
    const double took = (console_seconds() - start) * 1e6;
    if (i < 0) c->first_us = took;
    if (i >= 0) us[i] = took;
  }
  if (status != SCONCE_OK) return status;
  sconce_state_times(c->state, &after);
  c->median_us = bench_median(us, (size_t)repeats);
  c->shortest_us = us[0];
  const double calls = (double)(after.calls - before.calls) * 1e3;
  c->plan_us = (double)(after.plan_ns - before.plan_ns) / calls;
  c->bind_us = (double)(after.bind_ns - before.bind_ns) / calls;
  c->submit_us = (double)(after.submit_ns - before.submit_ns) / calls;
  c->wait_us = (double)(after.wait_ns - before.wait_ns) / calls;
  return SCONCE_OK;
}

/* ---- printing -------------------------------------------------------------------------------- */

struct fact {
  const char *key, *what;
  double us;
};

static size_t facts_of(const struct call *c, struct fact out[9]) {
  const struct fact facts[9] = {
      {"first_us", "the first call", c->first_us},
      {"call_us", "a call, median", c->median_us},
      {"shortest_us", "the shortest", c->shortest_us},
      {"plan_us", "CPU: planning, inputs written", c->plan_us},
      {"bind_us", "CPU: binding", c->bind_us},
      {"submit_us", "CPU: encoding and submitting", c->submit_us},
      {"wait_us", "CPU: waiting for the results", c->wait_us},
      {"pass_us", "all dispatches in one pass, by the device's clock", c->where.pass_us},
      {"kernels_us", "kernels, a pass each: the sum of the table", c->where.kernels_us},
  };
  memcpy(out, facts, sizeof facts);
  return c->where.n ? 9 : 7;
}

static void print_md(const struct call *c, const struct fact *facts, size_t n) {
  puts("| | ms |\n|---|---|");
  for (size_t i = 0; i < n; i++) printf("| %s | %.3f |\n", facts[i].what, facts[i].us * 1e-3);
  if (c->where.n) puts("\n| kernel | dispatches | ms | share |\n|---|---|---|---|");
  for (size_t i = 0; i < c->where.n_lines; i++) {
    const struct bench_line *line = &c->where.lines[i];
    printf("| %s | %u | %.3f | %.1f %% |\n", line->label, line->dispatches, line->us * 1e-3,
           c->where.kernels_us > 0 ? 100 * line->us / c->where.kernels_us : 0);
  }
}

static void print_csv(const struct call *c, const struct fact *facts, size_t n) {
  puts("what,dispatches,us");
  for (size_t i = 0; i < n; i++) printf("(%s),,%.3f\n", facts[i].key, facts[i].us);
  for (size_t i = 0; i < c->where.n_lines; i++)
    printf("%s,%u,%.3f\n", c->where.lines[i].label, c->where.lines[i].dispatches,
           c->where.lines[i].us);
}

static void print_json(const struct call *c, const struct fact *facts, size_t n, const char *model,
                       const sconce_device_info *d) {
  printf("{\"model\": ");
  cli_json_text(stdout, model);
  printf(", \"device\": ");
  cli_json_text(stdout, d->name);
  printf(", \"library\": \"%s %s\"", d->library, d->library_version);
  for (size_t i = 0; i < n; i++) printf(", \"%s\": %.3f", facts[i].key, facts[i].us);
  printf(", \"kernels\": [");
  for (size_t i = 0; i < c->where.n_lines; i++)
    printf("%s\n {\"kernel\": \"%s\", \"dispatches\": %u, \"us\": %.3f}", i ? "," : "",
           c->where.lines[i].label, c->where.lines[i].dispatches, c->where.lines[i].us);
  puts("]}");
}

static void print_call(const struct call *c, const struct bench_llm *b,
                       const sconce_device_info *d) {
  struct fact facts[9];
  const size_t n = facts_of(c, facts);
  if (!strcmp(b->format, "json")) {
    print_json(c, facts, n, b->options.model, d);
  } else if (!strcmp(b->format, "csv")) {
    print_csv(c, facts, n);
  } else {
    printf("%s on %s (%s, %s %s), inputs of the largest dims\n\n", b->options.model, d->name,
           d->api, d->library, d->library_version);
    print_md(c, facts, n);
  }
}

int bench_call(struct llm *llm, const struct bench_llm *b) {
  sconce_error err = {0};
  struct call c = {0};
  const sconce_device_info *device = sconce_device_describe(llm->load.device);
  double *us = calloc((size_t)b->repeats, sizeof *us);
  sconce_status status = sconce_state_open(&c.state, llm->load.method, &err);
  bool ok = us && status == SCONCE_OK;
  if (ok) ok = set_inputs(c.state, sconce_method_describe(llm->load.method));
  if (ok) ok = (status = time_calls(&c, b->repeats, us, &err)) == SCONCE_OK;
  if (ok && b->profile)
    ok = (status = bench_where(c.state, &c.where, b->repeats, us, &err)) == SCONCE_OK;
  if (ok) print_call(&c, b, device);
  if (status != SCONCE_OK) cli_fail(&err);
  bench_where_free(&c.where);
  sconce_state_close(c.state);
  free(us);
  return ok ? CLI_DONE : CLI_FAILED;
}
