/* Values while a template runs. They never change once they are made, but for namespaces; so texts
 * and lists may share their memory. All of it comes from one arena, through j_alloc, which keeps to
 * the limit. A text knows of its bytes who wrote them: the template (own) or the caller. */
#ifndef LLM_JINJA_VALUE_H
#define LLM_JINJA_VALUE_H

#include "base/checked.h"
#include "llm/jinja/jinja.h"

enum jtype {
  J_UNDEFINED,
  J_NONE,
  J_BOOL,
  J_INT,
  J_FLOAT,
  J_STRING,
  J_LIST, /* whatever has items in a row: see jlist */
  J_DICT,
  J_SPACE, /* namespace(): what a template may change */
  J_LOOP,
  J_MACRO,
  J_FUNCTION,
};

/* Why something is undefined; `text` is the name, but for JU_HINT the sentence. */
enum jundefined { JU_MISSING, JU_NAME, JU_ATTRIBUTE, JU_ITEM, JU_UNSAFE, JU_HINT };

struct jvalue {
  uint8_t type;
  uint8_t kind;  /* undefined: enum jundefined; string: 1 if it was called safe; float: 1 if it is
                    an integer of more than 63 bits, `digits` */
  bool own;      /* strings and numbers: all of it is the template's own */
  uint8_t of;    /* undefined: type of what did not have it */
  uint32_t size; /* bytes of text or digits */
  union {
    bool truth;
    int64_t integer;
    double number;
    const char *text;
    struct jlist *list;
    struct jdict *dict;
    struct jspace *space;
    struct jloop *loop;
    const struct jmacro *macro;
    const struct jbound *function;
  };
  union {
    const uint8_t *marks; /* (size) of a string by both: 1 where own; NULL: all as `own` says */
    const char *digits;
  };
};

enum jlist_kind { JL_LIST, JL_TUPLE, JL_RANGE, JL_KEYS, JL_VALUES, JL_ITEMS, JL_GENERATOR };

struct jlist {
  const struct jvalue *items; /* (n) */
  size_t n;
  uint8_t kind;
  uint8_t depth; /* of nesting, 1: no lists inside */
  bool spent;    /* a generator gives its items once */
};

struct jdict {
  struct jpair {
    struct jvalue key, value;
  } *pairs; /* (n), in the order they came */
  size_t n, cap;
  uint32_t *slots; /* index + 1, 0 is free; NULL while there are few pairs */
  size_t mask;
  uint8_t depth;
};

struct jspace {
  struct jdict dict;
};

struct jloop {
  const struct jvalue *items; /* (n) */
  size_t n, at;
  struct jvalue changed; /* of loop.changed */
  struct jscope *outside;
};

/* What a running template may still use, and where it says what went wrong. */
struct jrun {
  struct arena *arena;
  sconce_error *err;
  uint64_t steps; /* left */
  size_t memory;  /* left, bytes */
  size_t output;  /* the most bytes a text may have */
  uint64_t steps_all;
  size_t memory_all;
  int64_t date;
  uint32_t depth; /* filters that call filters */
};

enum { J_DEPTH_MAX = 200 }; /* of values in values, and of calls in calls */

#define j_fail(run, ...) fail((run)->err, SCONCE_BAD_ARGUMENT, __VA_ARGS__)
#define J_NO_ROOM SCONCE_NO_MEMORY /* the status of a j_alloc that failed */

/* ---- limits ---------------------------------------------------------------------------------- */

/* NULL with the error set. */
void *j_alloc(struct jrun *run, size_t count, size_t size);
#define j_new(run, type, count) ((type *)j_alloc((run), (count), sizeof(type)))
SCONCE_CHECK sconce_status j_spend(struct jrun *run, size_t steps);

/* ---- making ---------------------------------------------------------------------------------- */

static inline struct jvalue j_none(void) { return (struct jvalue){.type = J_NONE, .own = true}; }
static inline struct jvalue j_bool(bool truth) {
  return (struct jvalue){.type = J_BOOL, .own = true, .truth = truth};
}
static inline struct jvalue j_int(int64_t n, bool own) {
  return (struct jvalue){.type = J_INT, .own = own, .integer = n};
}
static inline struct jvalue j_float(double x, bool own) {
  return (struct jvalue){.type = J_FLOAT, .own = own, .number = x};
}
/* Borrowed; at most UINT32_MAX bytes. */
static inline struct jvalue j_string(struct text text, bool own) {
  return (struct jvalue){
      .type = J_STRING, .own = own, .size = (uint32_t)text.size, .text = text.data};
}
static inline struct jvalue j_undefined(enum jundefined why, struct text name) {
  return (struct jvalue){
      .type = J_UNDEFINED, .kind = (uint8_t)why, .size = (uint32_t)name.size, .text = name.data};
}
/* Takes the items over. */
SCONCE_CHECK sconce_status j_list(struct jrun *run, enum jlist_kind kind,
                                  const struct jvalue *items, size_t n, struct jvalue *out);
SCONCE_CHECK sconce_status j_pair(struct jrun *run, struct jvalue a, struct jvalue b,
                                  struct jvalue *out);

/* ---- asking ---------------------------------------------------------------------------------- */

static inline struct text j_text(const struct jvalue *string) {
  return (struct text){string->text, string->size};
}
static inline bool j_missing(const struct jvalue *v) {
  return v->type == J_UNDEFINED && v->kind == JU_MISSING;
}
static inline bool j_is(const struct jvalue *v, const char *text) {
  return v->type == J_STRING && text_is(j_text(v), text);
}
const char *j_type_name(const struct jvalue *v); /* as Python's messages say it */
bool j_truth(const struct jvalue *v);
bool j_is_number(const struct jvalue *v); /* truths are numbers */
double j_as_double(const struct jvalue *v);
uint8_t j_depth(const struct jvalue *v);

SCONCE_CHECK sconce_status j_fail_undefined(struct jrun *run, const struct jvalue *v);
/* An index or a count; truths count, floats do not. */
SCONCE_CHECK sconce_status j_as_int(struct jrun *run, const struct jvalue *v, const char *what,
                                    int64_t *out);
SCONCE_CHECK sconce_status j_length(struct jrun *run, const struct jvalue *v, size_t *out);
/* What a loop over the value sees: items, keys, characters. */
SCONCE_CHECK sconce_status j_items(struct jrun *run, const struct jvalue *v,
                                   const struct jvalue **items, size_t *n);

SCONCE_CHECK sconce_status j_equal(struct jrun *run, const struct jvalue *a, const struct jvalue *b,
                                   bool *out);
/* < 0, 0, > 0; an error where Python knows no order. */
SCONCE_CHECK sconce_status j_order(struct jrun *run, const struct jvalue *a, const struct jvalue *b,
                                   int *out);
SCONCE_CHECK sconce_status j_contains(struct jrun *run, const struct jvalue *all,
                                      const struct jvalue *one, bool *out);
/* Stable; keys[i] belongs to items[i], both are reordered. */
SCONCE_CHECK sconce_status j_sort(struct jrun *run, struct jvalue *keys, struct jvalue *items,
                                  size_t n, bool reverse);

/* ---- dictionaries ---------------------------------------------------------------------------- */

SCONCE_CHECK sconce_status j_dict(struct jrun *run, size_t room, struct jvalue *out);
/* While it is being made, or a namespace's. A key that is there gets the new value. */
SCONCE_CHECK sconce_status j_dict_set(struct jrun *run, struct jdict *dict, struct jvalue key,
                                      struct jvalue value);
/* *out NULL: it is not there. */
SCONCE_CHECK sconce_status j_dict_get(struct jrun *run, const struct jdict *dict,
                                      const struct jvalue *key, const struct jvalue **out);
/* The same for the short names of a template's source. */
const struct jvalue *j_dict_find(const struct jdict *dict, struct text key);

/* from_json.c: the caller's data; `role`s of messages that are known words count as own. */
SCONCE_CHECK sconce_status j_from_json(struct jrun *run, struct json json, struct jvalue *out);
SCONCE_CHECK sconce_status j_from_variable(struct jrun *run, const struct jinja_variable *variable,
                                           struct jvalue *out);

#endif
