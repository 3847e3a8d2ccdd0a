/* Texts of a template: valid UTF-8, with who wrote which byte. Positions and sizes are bytes unless
 * the name says characters. */
#ifndef LLM_JINJA_TEXT_H
#define LLM_JINJA_TEXT_H

#include "llm/jinja/value.h"
#include "llm/unicode.h"

/* ---- looking --------------------------------------------------------------------------------- */

static inline uint32_t j_character_size(const char *lead) {
  uint8_t byte = (uint8_t)*lead;
  return byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}
size_t j_count_characters(struct text text);
/* The byte where character n starts; the size if there are no more. */
size_t j_character_at(struct text text, size_t n);
bool j_is_space(uint32_t code); /* Python's white space */
/* How many bytes of white space the text starts or ends with. */
size_t j_space_before(struct text text);
size_t j_space_behind(struct text text);
/* Where `what` occurs first, or SIZE_MAX; the empty text is everywhere. */
SCONCE_CHECK sconce_status j_find(struct jrun *run, struct text text, struct text what, size_t *at);
SCONCE_CHECK sconce_status j_find_last(struct jrun *run, struct text text, struct text what,
                                       size_t *at);

/* ---- taking apart ---------------------------------------------------------------------------- */

/* Shares the bytes; 0 <= at <= at + size <= string->size. */
struct jvalue j_part(const struct jvalue *string, size_t at, size_t size);

enum { J_LEFT = 1, J_RIGHT = 2 };
/* Without white space, or without the characters of `of` (NULL: white space), at these sides. */
SCONCE_CHECK sconce_status j_strip(struct jrun *run, const struct jvalue *string,
                                   const struct jvalue *of, unsigned sides, struct jvalue *out);
/* By `by`, or by runs of white space if it is NULL; `most` cuts at most (< 0: any number), counted
 * from the right if `from_right`. */
SCONCE_CHECK sconce_status j_split(struct jrun *run, const struct jvalue *string,
                                   const struct jvalue *by, int64_t most, bool from_right,
                                   struct jvalue *out);
SCONCE_CHECK sconce_status j_split_lines(struct jrun *run, const struct jvalue *string,
                                         bool keep_ends, struct jvalue *out);

/* ---- putting together ------------------------------------------------------------------------ */

/* Grows in the arena; zero-initialise. */
struct jbuffer {
  char *data;
  uint8_t *marks; /* NULL while all of it has one origin, `own` */
  size_t n, cap;
  bool own;
};
SCONCE_CHECK sconce_status j_put(struct jrun *run, struct jbuffer *b, struct text text, bool own);
SCONCE_CHECK sconce_status j_put_string(struct jrun *run, struct jbuffer *b,
                                        const struct jvalue *string);
SCONCE_CHECK sconce_status j_put_code(struct jrun *run, struct jbuffer *b, uint32_t code, bool own);
SCONCE_CHECK sconce_status j_put_spaces(struct jrun *run, struct jbuffer *b, size_t n, bool own);
struct jvalue j_taken(const struct jbuffer *b); /* what was put there, shared */

SCONCE_CHECK sconce_status j_replace(struct jrun *run, const struct jvalue *string,
                                     const struct jvalue *old, const struct jvalue *new,
                                     int64_t most, struct jvalue *out);
enum jcase { JC_UPPER, JC_LOWER, JC_CAPITAL, JC_TITLE, JC_WORDS }; /* WORDS: the filter title */
SCONCE_CHECK sconce_status j_change_case(struct jrun *run, const struct jvalue *string,
                                         enum jcase how, struct jvalue *out);
SCONCE_CHECK sconce_status j_escape(struct jrun *run, const struct jvalue *string,
                                    struct jvalue *out); /* HTML; the result is safe */
SCONCE_CHECK sconce_status j_indent(struct jrun *run, const struct jvalue *string,
                                    const struct jvalue *by, bool first, bool blank,
                                    struct jvalue *out);

/* ---- write.c: values as text ----------------------------------------------------------------- */

/* Python's str; a string is itself. */
SCONCE_CHECK sconce_status j_str(struct jrun *run, const struct jvalue *v, struct jvalue *out);
SCONCE_CHECK sconce_status j_put_str(struct jrun *run, struct jbuffer *b, const struct jvalue *v);
SCONCE_CHECK sconce_status j_put_repr(struct jrun *run, struct jbuffer *b, const struct jvalue *v);
size_t j_float_text(double x, char out[40]);

struct jjson {
  bool ascii, sort;
  bool lines;                      /* one item a line, indented */
  struct text indent, item, colon; /* ", " and ": " */
};
SCONCE_CHECK sconce_status j_to_json(struct jrun *run, const struct jvalue *v,
                                     const struct jjson *style, struct jvalue *out);

#endif
