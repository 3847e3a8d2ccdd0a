/* Damage to real files, as table rows: a path through the schema says which field, a number what it
 * becomes, and the reader must refuse the result with a sentence.
 *
 *   {"operator index out of range", "portable.pte",
 *    {{"execution_plan/0/chains/0/instructions/1/instr_args/op_index", 99}},
 *    SCONCE_BAD_FILE, "operator 99, there are 8"}
 *
 * A path is field names and element numbers from the root. Its last step may be "#" for a vector's
 * count, "@" for the offset that leads to a thing, "!" for the field's place in its vtable (0 makes
 * it absent). A path "+24:8" is 8 bytes at offset 24 of the file or blob. */
#ifndef EDIT_H
#define EDIT_H

#include "harness.h"
#include "walk.h"

enum edit_kind { EDIT_PTE, EDIT_PTD, EDIT_VKGRAPH /* of a .pte's first delegate */ };

struct edit_patch {
  const char *path; /* NULL ends the list */
  uint64_t value;
};

struct edit_row {
  const char *why;
  const char *file; /* in tests/data/format */
  struct edit_patch set[4];
  sconce_status want; /* SCONCE_OK: must still open */
  const char *fragment;
};

/* Ends with a row without `why`. */
void edit_run(enum edit_kind kind, const struct edit_row *rows);

/* A file of tests/data/format, or its first delegate, in memory of exactly its size; free() it. */
struct edit_bytes {
  uint8_t *data;
  size_t size;
};
struct edit_bytes edit_load(enum edit_kind kind, const char *file);
struct edit_bytes edit_copy(struct span bytes);
/* Opens as the kind says and walks all of it. Named data of a blob comes from that .pte. */
sconce_status edit_open(enum edit_kind kind, const char *file, struct span bytes,
                        sconce_error *err);
/* Applies one patch; false if the path leads nowhere. */
bool edit_apply(enum edit_kind kind, struct edit_bytes bytes, struct edit_patch patch);

#endif
