/* Reports: see report.h. */
#include "report.h"

const sconce_inspect_format report_formats[REPORT_FORMATS] = {
    SCONCE_INSPECT_TEXT, SCONCE_INSPECT_GRAPH, SCONCE_INSPECT_DOT, SCONCE_INSPECT_JSON,
    SCONCE_INSPECT_PLAN};

static void append(void *user, const char *text, size_t size) {
  struct report *r = user;
  if (r->size + size >= r->cap) {
    r->cap = 2 * (r->size + size) + 1;
    if (!(r->text = realloc(r->text, r->cap))) abort();
  }
  memcpy(r->text + r->size, text, size);
  r->size += size;
  r->text[r->size] = 0;
}

sconce_status report_make(struct report *r, const sconce_inspect_desc *desc) {
  *r = (struct report){0};
  return sconce_inspect(desc, append, r, &r->err);
}

void report_free(struct report *r) {
  free(r->text);
  *r = (struct report){0};
}

long long report_number(const struct report *r, const char *key) {
  char quoted[64];
  snprintf(quoted, sizeof quoted, "\"%s\": ", key);
  const char *at = r->text ? strstr(r->text, quoted) : NULL;
  return at ? strtoll(at + strlen(quoted), NULL, 10) : -1;
}
