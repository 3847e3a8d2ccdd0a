/* sconce check --self: the library's own checks on this device, as text and JSON; what is wrong is
 * kept and not chosen again. */
#include "check.h"

#include "kept.h"
#include "sconce_dev.h"

#include <stdlib.h>
#include <string.h>

struct own {
  const struct self_options *options;
  bool counts;        /* a line on the terminal says how far it is */
  unsigned failed;    /* checks */
  unsigned shown;     /* rows in the JSON */
  size_t n_labels;    /* bytes */
  char labels[16384]; /* wrong ones that can be avoided */
  char *old;          /* kept from earlier checks, less those found again */
  char *unproven;     /* …and less those that were right this time */
  unsigned stays;     /* wrong ones that cannot */
};

static void next_check(void *user, const char *name) {
  const struct own *o = user;
  if (o->counts) cli_status(name);
}

static void failed_check(void *user, const char *name, const char *why) {
  struct own *o = user;
  if (o->counts) cli_status("");
  if (o->options->json) {
    printf("%s\n    {\"check\": ", o->failed ? "," : "");
    cli_json_text(stdout, name);
    fputs(", \"why\": ", stdout);
    cli_json_text(stdout, why);
    putchar('}');
  } else {
    printf("FAIL %s: %s\n", name, why);
  }
  o->failed++;
  fflush(stdout);
}

static void keep_label(struct own *o, const char *label) {
  const size_t n = strlen(label);
  if (o->n_labels + n + 2 > sizeof o->labels) return;
  if (o->n_labels) o->labels[o->n_labels++] = ',';
  memcpy(o->labels + o->n_labels, label, n + 1);
  o->n_labels += n;
}

/* Takes a label out of a list with commas. */
static void drop_label(char *list, const char *label) {
  const size_t n = strlen(label);
  for (char *at = list; at && *at; at += strcspn(at, ","), at += *at == ',') {
    if (strncmp(at, label, n) != 0 || (at[n] && at[n] != ',')) continue;
    char *rest = at + n + (at[n] == ',');
    memmove(at, rest, strlen(rest) + 1);
    if (!*at && at > list) at[-1] = 0;
    return;
  }
}

static void json_row(struct own *o, const sconce_self_row *r) {
  printf("%s\n    {\"kernel\": ", o->shown++ ? "," : "\n  ], \"kernels\": [");
  cli_json_text(stdout, r->label);
  printf(", \"result\": \"%s\", \"runs\": %llu",
         r->wrong  ? "wrong"
         : r->runs ? "right"
                   : "skipped",
         (unsigned long long)r->runs);
  if (r->wrong) printf(", \"avoided\": %s", r->stays ? "false" : "true");
  if (r->why) printf(", \"why\": ");
  if (r->why) cli_json_text(stdout, r->why);
  putchar('}');
}

static void take_row(void *user, const sconce_self_row *r) {
  struct own *o = user;
  if (o->counts) cli_status("");
  if (r->wrong && !r->stays) keep_label(o, r->label);
  if (r->wrong) drop_label(o->old, r->label);
  if (r->wrong || r->runs) drop_label(o->unproven, r->label);
  if (r->wrong && r->stays) o->stays++;
  if (o->options->json)
    json_row(o, r);
  else if (r->wrong)
    printf("WRONG %s: %s%s\n", r->label, r->why,
           r->stays ? "; nothing else fits what it is for, so it stays" : "");
  else if (o->options->verbose)
    printf("%s %s%s%s\n", r->runs ? "ok" : "skip", r->label, r->why ? ": " : "",
           r->why ? r->why : "");
}

static void print_summary(const struct own *o, const sconce_device_info *info,
                          const sconce_self_result *r) {
  if (o->options->json) {
    printf("\n  ], \"tried\": %u, \"skipped\": %u, \"wrong\": %u, \"checks\": %u, "
           "\"checks_failed\": %u, \"checks_left\": %u, \"seconds\": %.1f}\n",
           r->tried, r->skipped, r->wrong, r->checks, r->checks_failed, r->checks_left, r->seconds);
    return;
  }
  printf("%s, %s %s: %u kernels tried, %u skipped, %u wrong; %u checks in %.1f s", info->name,
         info->library, info->library_version, r->tried, r->skipped, r->wrong, r->checks,
         r->seconds);
  if (r->checks_left) printf(", %u more had no time", r->checks_left);
  puts("");
  if (o->n_labels) puts("the wrong ones are kept and not chosen any more: see `sconce devices`");
}

/* Only a whole check says that a kernel kept from an earlier one is right. */
static bool keep(const struct own *o, const sconce_device_info *info, bool whole) {
  const char *old = whole ? o->unproven : o->old;
  const size_t room = (old ? strlen(old) : 0) + o->n_labels + 2;
  char *all = malloc(room);
  if (!all) return false;
  const size_t n = old ? strlen(old) : 0;
  snprintf(all, room, "%s%s%s", n ? old : "", n && o->n_labels ? "," : "", o->labels);
  const bool kept = kept_write(info, all);
  free(all);
  return kept;
}

static int check_device(sconce_device *device, struct own *o) {
  const sconce_device_info *info = sconce_device_describe(device);
  sconce_self_desc desc = {.seconds = o->options->seconds,
                           .filter = o->options->filter,
                           .each = take_row,
                           .failed = failed_check,
                           .progress = next_check,
                           .user = o};
  sconce_self_result r = {0};
  sconce_error err = {0};
  if (o->options->json) {
    fputs("{\"device\": ", stdout);
    cli_json_text(stdout, info->name);
    fputs(", \"driver\": ", stdout);
    cli_json_text(stdout, info->driver);
    fputs(", \"failed\": [", stdout);
  }
  const sconce_status status = sconce_check_self(device, &desc, &r, &err);
  if (o->counts) cli_status("");
  print_summary(o, info, &r);
  const bool whole = status == SCONCE_OK && !o->options->filter && !r.checks_left;
  const bool kept = keep(o, info, whole);
  if (status != SCONCE_OK) return cli_fail(&err);
  return r.wrong || r.checks_failed || !r.checks || !kept ? CLI_FAILED : CLI_DONE;
}

int cli_check_self(const struct self_options *options, struct cli_device which) {
  struct own *o = calloc(1, sizeof *o);
  sconce_device *device;
  sconce_error err = {0};
  int result = CLI_FAILED;
  if (!o) return result;
  o->options = options;
  o->counts = !options->json && console_is_terminal(stderr);
  which.every_kernel = true;
  if (cli_open_device(&device, &which, &err) != SCONCE_OK) {
    cli_fail(&err);
  } else {
    o->old = kept_find(sconce_device_describe(device));
    o->unproven = kept_find(sconce_device_describe(device));
    result = check_device(device, o);
    free(o->old);
    free(o->unproven);
    sconce_device_close(device);
  }
  free(o);
  return result;
}
