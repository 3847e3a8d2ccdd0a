/* What a template can call: filters, tests, methods of values, global functions. */
#ifndef LLM_JINJA_BUILTIN_H
#define LLM_JINJA_BUILTIN_H

#include "llm/jinja/text.h"

/* Arguments as they were given, or one for each parameter (then absent ones are j_missing). */
struct jargs {
  struct jvalue self;      /* what the filter, test or method is applied to */
  const struct jvalue *at; /* (n) */
  uint32_t n;
  const struct jvalue *pairs; /* (2 * n_pairs) names and values */
  uint32_t n_pairs;
};

struct jbuiltin {
  const char *name;
  sconce_status (*call)(struct jrun *run, const struct jargs *args, struct jvalue *out);
  uint8_t required;       /* so many of the parameters */
  const char *parameters; /* "width first"; NULL: it takes its arguments as they were given */
};

struct jbound {
  const struct jbuiltin *builtin;
  struct jvalue self;
};

enum { PARAMETERS_MAX = 6 };

/* Binds the arguments to parameters and calls. */
SCONCE_CHECK sconce_status j_call_builtin(struct jrun *run, const struct jbuiltin *builtin,
                                          const struct jargs *args, struct jvalue *out);
const struct jbuiltin *j_find_builtin(const struct jbuiltin *table, struct text name); /* or NULL */
SCONCE_CHECK sconce_status j_bind(struct jrun *run, const struct jbuiltin *builtin,
                                  const struct jvalue *self, struct jvalue *out);

/* Tables end with a row without a name. */
extern const struct jbuiltin j_text_filters[], j_list_filters[], j_tests[], j_globals[];
int32_t j_filter_index(struct text name); /* -1: no such */
int32_t j_test_index(struct text name);
const struct jbuiltin *j_filter_at(int32_t index);
extern const struct jbuiltin j_string_methods[], j_dict_methods[], j_list_methods[];
extern const struct jbuiltin j_loop_methods[];

/* ---- access.c: parts of values --------------------------------------------------------------- */

/* value.name, and value[key]: undefined if there is no such thing. */
SCONCE_CHECK sconce_status j_member(struct jrun *run, const struct jvalue *v, struct text name,
                                    struct jvalue *out);
SCONCE_CHECK sconce_status j_item(struct jrun *run, const struct jvalue *v,
                                  const struct jvalue *key, struct jvalue *out);
/* bounds: start, stop, step; none where they were left out. */
SCONCE_CHECK sconce_status j_slice(struct jrun *run, const struct jvalue *v,
                                   const struct jvalue bounds[3], struct jvalue *out);
/* "a.b.0" of a value, as filters take it; an integer is an index. */
SCONCE_CHECK sconce_status j_path(struct jrun *run, const struct jvalue *v,
                                  const struct jvalue *path, struct jvalue *out);

/* ---- operators.c ----------------------------------------------------------------------------- */

/* `token` is one of T_ADD … T_MOD, T_POWER, T_FLOOR. */
SCONCE_CHECK sconce_status j_binary(struct jrun *run, uint8_t token, const struct jvalue *a,
                                    const struct jvalue *b, struct jvalue *out);
SCONCE_CHECK sconce_status j_negate(struct jrun *run, const struct jvalue *v, struct jvalue *out);
/* `how` is an enum jcompare. */
SCONCE_CHECK sconce_status j_compare(struct jrun *run, uint8_t how, const struct jvalue *a,
                                     const struct jvalue *b, bool *out);

/* ---- format.c and date.c
 * -------------------------------------------------------------------------------- */

/* "%s is %d" % values, and "{} is {}".format(values). */
SCONCE_CHECK sconce_status j_percent(struct jrun *run, const struct jvalue *format,
                                     const struct jvalue *values, struct jvalue *out);
SCONCE_CHECK sconce_status j_format(struct jrun *run, const struct jvalue *format,
                                    const struct jargs *args, struct jvalue *out);
SCONCE_CHECK sconce_status j_strftime(struct jrun *run, const struct jvalue *format, int64_t date,
                                      struct jvalue *out);

#endif
