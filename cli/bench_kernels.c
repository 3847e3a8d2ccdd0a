/* sconce bench --kernels: every variant of the kernels that take the time, checked and timed. */
#include "bench.h"
#include "sconce_dev.h"

#include <string.h>

/* A hint is worth a line from here on: what differs less may differ the other way next time. */
#define HINT_FROM 1.15

struct table {
  const struct bench_kernels *bench;
  double bandwidth; /* bytes per second; 0: unknown */
  unsigned cases, rows, wrong, failed, skipped, hints;
};

/* The fastest row with a right result; NULL if there is none. */
static const sconce_kernel_row *best_of(const sconce_kernel_case *c) {
  const sconce_kernel_row *best = NULL;
  for (uint32_t i = 0; i < c->n_rows; i++)
    if (!c->rows[i].wrong && (!best || c->rows[i].us < best->us)) best = &c->rows[i];
  return best;
}

/* Numbers of one row, in the table's units; 0 where there is nothing to say. */
struct rates {
  double gb_per_s, gflop_per_s;
  double of_bandwidth, of_best;
};

static struct rates rates_of(const struct table *t, const sconce_kernel_case *c,
                             const sconce_kernel_row *r) {
  const sconce_kernel_row *best = best_of(c);
  struct rates rates = {0};
  if (r->us <= 0) return rates;
  rates.gb_per_s = (double)c->bytes * 1e-3 / r->us;
  rates.gflop_per_s = c->flops * 1e-3 / r->us;
  if (t->bandwidth > 0) rates.of_bandwidth = rates.gb_per_s * 1e9 / t->bandwidth;
  if (best) rates.of_best = best->us / r->us;
  return rates;
}

static void print_md(const struct table *t, const sconce_kernel_case *c,
                     const sconce_kernel_row *r) {
  struct rates rates = rates_of(t, c, r);
  const double rate = c->matrix ? rates.gflop_per_s : rates.gb_per_s;
  char share[32] = "";
  if (c->matrix && rates.of_best > 0)
    snprintf(share, sizeof share, "%.0f %% of the best", 100 * rates.of_best);
  else if (!c->matrix && rates.of_bandwidth > 0)
    snprintf(share, sizeof share, "%.1f %% of reads", 100 * rates.of_bandwidth);
  printf("| %s | %s%s | %.2f | %u | %.*f %s | %s | %s%.1e |\n", c->name, r->label,
         r->chosen ? " `*`" : "", r->us, r->dispatches,
         rate < 10    ? 2
         : rate < 100 ? 1
                      : 0,
         rate, c->matrix ? "GFLOP/s" : "GB/s", share, r->wrong ? "WRONG " : "", r->error);
}

static void print_csv(const struct table *t, const sconce_kernel_case *c,
                      const sconce_kernel_row *r) {
  struct rates rates = rates_of(t, c, r);
  char share[32] = "";
  if (rates.of_bandwidth > 0) snprintf(share, sizeof share, "%.4f", rates.of_bandwidth);
  printf("%s,%s,%d,%.3f,%u,%u,%llu,%llu,%.6g,%s,%.6g,%.4f,%.3e,%d\n", c->name, r->label, r->chosen,
         r->us, r->dispatches, r->runs, (unsigned long long)c->bytes,
         (unsigned long long)c->rotation, rates.gb_per_s, share, rates.gflop_per_s, rates.of_best,
         r->error, r->wrong);
}

/* JSON has no infinity: an error that is none becomes null. */
static void print_json(const struct table *t, const sconce_kernel_case *c,
                       const sconce_kernel_row *r) {
  struct rates rates = rates_of(t, c, r);
  printf("%s{\"case\": \"%s\", \"row\": \"%s\", \"chosen\": %s, \"us\": %.3f, \"dispatches\": %u, "
         "\"runs\": %u, \"bytes\": %llu, \"rotation\": %llu, \"gb_per_s\": %.6g, "
         "\"gflop_per_s\": %.6g, \"best_share\": %.4f, \"matrix\": %s, "
         "\"wrong\": %s, \"tolerance\": %g, ",
         t->rows ? ",\n " : "", c->name, r->label, r->chosen ? "true" : "false", r->us,
         r->dispatches, r->runs, (unsigned long long)c->bytes, (unsigned long long)c->rotation,
         rates.gb_per_s, rates.gflop_per_s, rates.of_best, c->matrix ? "true" : "false",
         r->wrong ? "true" : "false", c->tolerance);
  if (rates.of_bandwidth > 0) printf("\"bandwidth_share\": %.4f, ", rates.of_bandwidth);
  printf("\"error\": ");
  if (r->error < 1e300)
    printf("%.3e}", r->error);
  else
    printf("null}");
}

/* Where the table's own choice is not the best one. */
static void hint(struct table *t, const sconce_kernel_case *c) {
  const sconce_kernel_row *best = best_of(c), *chosen = NULL;
  for (uint32_t i = 0; i < c->n_rows; i++)
    if (c->rows[i].chosen) chosen = &c->rows[i];
  if (!best || !chosen || chosen->us <= HINT_FROM * best->us) return;
  t->hints++;
  if (!strcmp(t->bench->format, "md"))
    printf("| %s | hint: %s takes %.2f times as long as %s | | | | | |\n", c->name, chosen->label,
           chosen->us / best->us, best->label);
}

/* Not here is no failure: another device's limits, or too little memory. */
static void print_unmeasured(struct table *t, const sconce_kernel_case *c) {
  bool absent = c->why.status == SCONCE_UNSUPPORTED || c->why.status == SCONCE_NO_GPU_MEMORY;
  if (absent)
    t->skipped++;
  else
    t->failed++;
  fprintf(stderr, "sconce: %s %s: %s: %s\n", c->name, absent ? "skipped" : "failed",
          sconce_status_name(c->why.status), c->why.text);
}

static void print_case(void *user, const sconce_kernel_case *c) {
  struct table *t = user;
  const char *format = t->bench->format;
  t->cases++;
  for (uint32_t i = 0; i < c->n_rows; i++, t->rows++) {
    if (c->rows[i].wrong) t->wrong++;
    if (!strcmp(format, "json"))
      print_json(t, c, &c->rows[i]);
    else if (!strcmp(format, "csv"))
      print_csv(t, c, &c->rows[i]);
    else
      print_md(t, c, &c->rows[i]);
  }
  hint(t, c);
  if (c->why.status != SCONCE_OK) print_unmeasured(t, c);
  fflush(stdout);
}

static void print_head(const struct table *t, const sconce_device_info *d) {
  if (!strcmp(t->bench->format, "json")) {
    printf("{\"device\": ");
    cli_json_text(stdout, d->name);
    printf(", \"library\": \"%s %s\", \"device_clock\": %s", d->library, d->library_version,
           d->timestamps ? "true" : "false");
    if (t->bandwidth > 0) printf(", \"read_bytes_per_s\": %.0f", t->bandwidth);
    printf(", \"results\": [\n ");
  } else if (!strcmp(t->bench->format, "csv")) {
    puts("case,row,chosen,us,dispatches,runs,bytes,rotation,gb_per_s,bandwidth_share,gflop_per_s,"
         "best_share,error,wrong");
  } else {
    printf("%s (%s), %s %s; ", d->name, d->api, d->library, d->library_version);
    if (t->bandwidth > 0) printf("kernels read %.1f GB/s here; ", t->bandwidth * 1e-9);
    printf(
        "times by %s\n\n"
        "| case | row | µs | dispatches | rate | share | error |\n|---|---|---|---|---|---|---|\n",
        d->timestamps ? "the device's clock" : "wall clock");
  }
  fflush(stdout);
}

static void print_foot(const struct table *t) {
  if (!strcmp(t->bench->format, "json")) {
    printf("\n], \"cases\": %u, \"wrong\": %u, \"failed\": %u, \"skipped\": %u, \"hints\": %u}\n",
           t->cases, t->wrong, t->failed, t->skipped, t->hints);
    return;
  }
  if (strcmp(t->bench->format, "md") != 0) return;
  printf("\n%u cases, %u rows, %u wrong, %u failed, %u skipped, %u hints\n\n"
         "`*` is the row that the table chooses. µs is one run: a chain of up to 64 dependent runs "
         "in one submit,\ndivided; median of %ld. GB/s counts weights and scales, or live keys and "
         "values; GFLOP/s stands where\nthere are 64 rows or more. %s\nThe error is max "
         "|y - plain| / max |plain|, WRONG above 1e-4 (f32) or 2e-3 (f16).\n",
         t->cases, t->rows, t->wrong, t->failed, t->skipped, t->hints, t->bench->repeats,
         t->bench->quick ? "Weights stay in the caches (--quick)."
                         : "Runs take copies of the weights in turn: 128 MiB, at most 256 copies.");
}

int bench_kernels(const struct bench_kernels *b) {
  sconce_device *device;
  sconce_error err = {0};
  if (cli_open_device(&device, b->device, &err) != SCONCE_OK) return cli_fail(&err);
  struct table table = {.bench = b, .bandwidth = bench_bandwidth(device)};
  sconce_kernels_desc desc = {.filter = b->filter,
                              .quick = b->quick,
                              .repeats = (uint32_t)b->repeats,
                              .each = print_case,
                              .user = &table};
  print_head(&table, sconce_device_describe(device));
  sconce_status status = sconce_measure_kernels(device, &desc, &err);
  print_foot(&table);
  sconce_device_close(device);
  if (status != SCONCE_OK) return cli_fail(&err);
  if (table.cases == 0) fprintf(stderr, "sconce: no case's name contains '%s'\n", b->filter);
  return table.cases && !table.wrong && !table.failed ? CLI_DONE : CLI_FAILED;
}
