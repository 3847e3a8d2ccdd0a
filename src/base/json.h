/* A strict JSON reader without recursion and without a tree: json_check walks the whole document
 * once; after that a value is the place where it starts, and navigation cannot fail on syntax. */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include "base/arena.h"
#include "base/span.h"
#include "base/status.h"

enum { JSON_DEPTH_MAX = 128 };

/* A value of a checked document: `at` is its first byte, or NULL for a value that is absent.
 * Asking an absent value or one of another type for something gives absent, false or the default,
 * so that a path of members needs one check at its end. */
struct json {
  const char *at, *end; /* end of the document */
};

/* Checks syntax, UTF-8, escapes and depth; trailing bytes are an error. */
SCONCE_CHECK sconce_status json_check(struct text document, struct json *root, sconce_error *err);

bool json_is_object(struct json v);
bool json_is_array(struct json v);
bool json_is_string(struct json v);
bool json_is_null(struct json v); /* null or absent */
bool json_is_true(struct json v);
bool json_integer(struct json v, int64_t *out); /* false: no integer, or more than 18 digits */

bool json_number(struct json v, double *out); /* false: no number */

struct json json_member(struct json object, const char *key); /* the first of that name */
size_t json_count(struct json v);                             /* members or elements */

/* Elements of an array, or members of an object with their keys (also values: strings). */
struct json_walk {
  struct json key, value;
  const char *next;
  bool object;
};
void json_begin(struct json_walk *w, struct json v);
bool json_next(struct json_walk *w);

/* Writes the unescaped bytes of a string; `out` has room for json_text_size bytes. */
size_t json_text_size(struct json string); /* an upper bound, 0 if v is no string */
size_t json_text_write(struct json string, char *out);
/* A copy in the arena; data is NULL when out of memory, the text is empty if v is no string. */
struct text json_text(struct json string, struct arena *arena);
bool json_text_is(struct json string, const char *text); /* text without escapes */

#endif
