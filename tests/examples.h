/* Files built with the writer, one per corner of the formats: for its own tests, for the readers',
 * and for tools/export/check_written.py, which compares them with what ExecuTorch reads. */
#ifndef EXAMPLES_H
#define EXAMPLES_H

#include "write/write.h"

struct example {
  const char *name; /* of the file */
  sconce_status (*build)(struct arena *arena, struct write_blob *out, sconce_error *err);
};
extern const struct example examples[]; /* ends with a row without a name */

/* The bytes of one of them; fails the running test if they cannot be had. */
struct span example_bytes(struct arena *arena, const char *name);

/* The delegate's blob of delegate.pte: every kind of value, inline and named constants. */
SCONCE_CHECK sconce_status example_graph(struct arena *arena, struct write_blob *out,
                                         sconce_error *err);

/* What a converter's calls (sconce_write.h) write: methods `put`, `add` and `read` on one cache of
 * (1, 4, 1, 2), `parts` with a ValueList and SymInts, weights in a data file, constants. */
SCONCE_CHECK sconce_status example_written(const char *pte, const char *ptd, sconce_error *err);

#endif
