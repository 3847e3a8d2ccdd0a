/* A file's inspection as one text, for tests. */
#ifndef REPORT_H
#define REPORT_H

#include "harness.h"
#include "sconce_dev.h"

struct report {
  char *text; /* terminated; NULL: nothing was written */
  size_t size, cap;
  sconce_error err;
};
/* Runs sconce_inspect; the caller frees with report_free. */
sconce_status report_make(struct report *r, const sconce_inspect_desc *desc);
void report_free(struct report *r);

/* A plan, the last one, is there for programs that can be planned only. */
enum { REPORT_FORMATS = 5 };
extern const sconce_inspect_format report_formats[REPORT_FORMATS];

/* The number after `"key": ` in a JSON report, or -1. */
long long report_number(const struct report *r, const char *key);

#endif
