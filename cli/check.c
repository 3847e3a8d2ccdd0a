/* sconce check: models against goldens, as text, JSON and JUnit. The library finds and runs the
 * cases; this file prints. */
#include "check.h"

#include "sconce_dev.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct report {
  bool json, verbose;
  bool counts; /* a line on the terminal says how far it is */
  FILE *junit;
  unsigned passed, failed;
};

/* ---- one case -------------------------------------------------------------------------------- */

/* JSON has no infinity. */
static void json_number(const char *key, double v) {
  if (isfinite(v))
    printf(", \"%s\": %.9g", key, v);
  else
    printf(", \"%s\": null", key);
}

static void print_json(const struct report *r, const sconce_check_result *c) {
  printf("%s\n    {\"name\": ", r->passed + r->failed ? "," : "");
  cli_json_text(stdout, c->name);
  printf(", \"passed\": %s, \"calls\": %u", c->why.status ? "false" : "true", c->calls);
  json_number("worst_abs", c->worst_abs);
  json_number("worst_rel", c->worst_rel);
  printf(", \"seconds\": %.3f", c->seconds);
  if (c->why.status) {
    printf(", \"status\": \"%s\", \"why\": ", sconce_status_name(c->why.status));
    cli_json_text(stdout, c->why.text);
  }
  putchar('}');
}

/* A driver's words may have many lines; a case has one. */
static void print_folded(const char *text) {
  while (*text) {
    size_t n = strcspn(text, " \t\n"), blanks = strspn(text + n, " \t\n");
    fwrite(text, 1, n, stdout);
    text += n + blanks;
    if (blanks && *text) putchar(' ');
  }
}

static void print_text(const struct report *r, const sconce_check_result *c) {
  sconce_status status = c->why.status;
  if (status == SCONCE_OK && !r->verbose) return;
  printf("%s %s: ", status ? "FAIL" : "ok", c->name);
  if (status) printf("%s: ", sconce_status_name(status));
  if (status) print_folded(c->why.text);
  /* What did not load has no worst error. */
  if (status == SCONCE_OK || status == SCONCE_WRONG_RESULT)
    printf("%sworst abs %.3g, rel %.3g, %u %s, %.2f s", status ? "; " : "", c->worst_abs,
           c->worst_rel, c->calls, c->calls == 1 ? "call" : "calls", c->seconds);
  putchar('\n');
}

static void xml_text(FILE *out, const char *text) {
  for (; *text; text++) {
    if (*text == '<' || *text == '>' || *text == '&' || *text == '"')
      fprintf(out, "&#%d;", *text);
    else
      fputc((unsigned char)*text < 0x20 ? ' ' : *text, out);
  }
}

static void write_junit(FILE *out, const sconce_check_result *c) {
  fputs("<testcase classname=\"check\" name=\"", out);
  xml_text(out, c->name);
  fprintf(out, "\" time=\"%.3f\">", c->seconds);
  if (c->why.status) {
    fprintf(out, "<failure type=\"%s\" message=\"", sconce_status_name(c->why.status));
    xml_text(out, c->why.text);
    fputs("\"/>", out);
  }
  fputs("</testcase>\n", out);
}

static void take(void *user, const sconce_check_result *c) {
  struct report *r = user;
  if (r->counts) cli_status("");
  if (r->json)
    print_json(r, c);
  else
    print_text(r, c);
  if (r->junit) write_junit(r->junit, c);
  if (c->why.status)
    r->failed++;
  else
    r->passed++;
  fflush(stdout); /* a long check shows how far it is, in a pipe too */
  if (!r->counts) return;
  char text[64];
  snprintf(text, sizeof text, "%u cases, %u failed", r->passed + r->failed, r->failed);
  cli_status(text);
}

/* ---- all of them ----------------------------------------------------------------------------- */

static int check_all(sconce_device *device, const struct cli_list *paths, sconce_check_desc *desc,
                     struct report *r) {
  sconce_error err = {0};
  const sconce_device_info *info = sconce_device_describe(device);
  int result = CLI_DONE;
  if (r->json) {
    fputs("{\"device\": ", stdout);
    cli_json_text(stdout, info->name);
    fputs(", \"cases\": [", stdout);
  }
  if (r->junit) fputs("<?xml version=\"1.0\"?>\n<testsuite name=\"sconce check\">\n", r->junit);
  for (int i = 0; i < paths->n; i++) {
    desc->path = paths->items[i];
    if (sconce_check(device, desc, &err) == SCONCE_OK) continue;
    result = cli_fail(&err);
    if (err.status == SCONCE_DEVICE_LOST) break;
  }
  if (r->counts) cli_status("");
  if (r->junit) fputs("</testsuite>\n", r->junit);
  if (r->passed + r->failed == 0 && result == CLI_DONE) fputs("sconce: no case found\n", stderr);
  if (r->json) printf("\n  ], \"passed\": %u, \"failed\": %u}\n", r->passed, r->failed);
  const bool nothing = result != CLI_DONE && r->passed + r->failed == 0; /* that has been told */
  if (!r->json && !nothing) printf("%u passed, %u failed\n", r->passed, r->failed);
  return r->failed || !r->passed ? CLI_FAILED : result;
}

static bool read_tolerance(const char *text, double *out) {
  char *end;
  *out = strtod(text, &end);
  if (*text && !*end && isfinite(*out) && *out > 0) return true;
  fprintf(stderr, "sconce: --tolerance is '%s', expected a number above 0\n", text);
  return false;
}

static bool read_steps(const char *text, uint64_t *out) {
  const long n = cli_number("--max-steps", text, 1, CLI_MAX_STEPS);
  *out = (uint64_t)n;
  return n > 0;
}

static int check(const struct cli_list *paths, sconce_check_desc *desc, struct report *r,
                 const char *junit, struct cli_device which) {
  sconce_device *device;
  sconce_error err = {0};
  if (junit && !(r->junit = console_open(junit, "w"))) {
    fprintf(stderr, "sconce: cannot write %s: %s\n", junit, strerror(errno));
    return CLI_FAILED;
  }
  int result = CLI_FAILED;
  if (!which.precision) which.precision = "exact";
  if (cli_open_device(&device, &which, &err) != SCONCE_OK) {
    cli_fail(&err);
  } else {
    result = check_all(device, paths, desc, r);
    sconce_device_close(device);
  }
  if (r->junit && fclose(r->junit) != 0) {
    fprintf(stderr, "sconce: cannot write %s\n", junit);
    result = CLI_FAILED;
  }
  return result;
}

static int check_self(const struct cli_verb *verb, const struct cli_list *paths,
                      const struct report *r, const sconce_check_desc *desc, bool quick,
                      const char *seconds, struct cli_device which) {
  enum { QUICK = 15, DAY = 86400 };
  struct self_options options = {r->json, r->verbose, desc->filter, quick ? QUICK : 0};
  if (paths->n || desc->golden)
    return cli_usage(verb, "--self takes no models, given %s",
                     paths->n ? paths->items[0] : desc->golden);
  const long n = seconds ? cli_number("--seconds", seconds, 1, DAY) : 0;
  if (n < 0) return CLI_USAGE;
  if (n) options.seconds = (double)n;
  if (!which.precision) which.precision = "fast"; /* then every kernel may run */
  return cli_check_self(&options, which);
}

int cli_check(int argc, char **argv) {
  const char *junit = NULL, *tolerance = NULL, *seconds = NULL, *max_steps = NULL;
  bool self = false, quick = false;
  struct cli_list paths = {0};
  struct cli_device which = {0};
  struct report r = {0};
  sconce_check_desc desc = {.each = take, .user = &r};
  const struct cli_option options[] = {
      {"", .list = &paths},
      {"--self", NULL, "the kernels themselves, on this device; needs no files", .flag = &self},
      {"--quick", NULL, "of --self: a sample that takes about 15 seconds", .flag = &quick},
      {"--seconds", "N", "of --self: about as long, 1 to 86400; default: all of it",
       .value = &seconds},
      {"--golden", "FILE", "what MODEL.pte should compute", .value = &desc.golden},
      {"--tolerance", "T", "how far a number may be off, absolute (goldens only)",
       .value = &tolerance},
      {"--max-steps", "N", CLI_MAX_STEPS_HELP, .value = &max_steps},
      {"--filter", "TEXT", "only cases whose name contains TEXT", .value = &desc.filter},
      {"--json", NULL, "one object for programs", .flag = &r.json},
      {"--junit", "FILE", "the same for CI", .value = &junit},
      {"-v, --verbose", NULL, "a line for each case that passes, too", .flag = &r.verbose},
      {"--device", "NAME", "part of an adapter's name, or its index in `sconce devices`",
       .value = &which.name},
      {"--precision", "exact|fast",
       "what to hold to the goldens: exact, f32 throughout (default); or fast, products in f16, "
       "which may be off by 2e-3 of the largest value",
       .value = &which.precision},
      {0}};
  const struct cli_verb verb = {
      "check",
      "DIR… [--filter TEXT] [--json] [--junit FILE] [-v]\n"
      "MODEL.pte --golden X.golden.json [--tolerance T] […]\n"
      "--self [--quick] [--seconds N] [--filter TEXT] [--json] [-v]",
      "Runs models on the device and compares what they compute with what was shipped with them. A "
      "DIR is searched for folders with a case.json, and for X.golden.json beside X.pte: " CLI_PAGE(
          "checking.md") ". Prints a line for each case that fails; on a terminal a count shows "
                         "how far it is. A case that this build or this device does not support "
                         "has failed, and so has a "
                         "search that finds nothing. With --self every kernel that this device can "
                         "run is compared "
                         "with plain loops in double; one that is wrong is named, kept for this "
                         "adapter, driver and "
                         "version, and not chosen any more.",
      options};
  int result;
  if (cli_parse(argc, argv, &verb, &result)) {
    r.counts = !r.json && !r.verbose && console_is_terminal(stderr);
    if (self)
      result = check_self(&verb, &paths, &r, &desc, quick, seconds, which);
    else if (quick || seconds)
      result = cli_usage(&verb, "--quick and --seconds are for --self");
    else if (paths.n == 0)
      result = cli_usage(&verb, "no folder to check");
    else if (desc.golden && paths.n != 1)
      result = cli_usage(&verb, "--golden is about one model, given %d", paths.n);
    else if ((tolerance && !read_tolerance(tolerance, &desc.tolerance)) ||
             (max_steps && !read_steps(max_steps, &desc.max_steps)))
      result = CLI_USAGE;
    else
      result = check(&paths, &desc, &r, junit, which);
  }
  free(paths.items);
  return result;
}
