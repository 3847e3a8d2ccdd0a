/* Calling what the language brings along, its global functions, and its tests: see builtin.h. */
#include "llm/jinja/builtin.h"
#include "llm/jinja/code.h"

/* ---- calling --------------------------------------------------------------------------------- */

const struct jbuiltin *j_find_builtin(const struct jbuiltin *table, struct text name) {
  for (; table->name; table++)
    if (text_is(name, table->name)) return table;
  return NULL;
}

sconce_status j_bind(struct jrun *run, const struct jbuiltin *builtin, const struct jvalue *self,
                     struct jvalue *out) {
  struct jbound *bound = j_new(run, struct jbound, 1);
  if (!bound) return J_NO_ROOM;
  *bound = (struct jbound){builtin, *self};
  *out = (struct jvalue){.type = J_FUNCTION, .function = bound};
  return SCONCE_OK;
}

/* The parameter of that name in "width first blank", or -1. */
static int parameter_index(const char *parameters, struct text name) {
  for (int i = 0; *parameters; i++) {
    size_t size = strcspn(parameters, " ");
    if (text_equal((struct text){parameters, size}, name)) return i;
    parameters += size + (parameters[size] == ' ');
  }
  return -1;
}

static uint32_t count_parameters(const char *parameters) {
  uint32_t n = *parameters != 0;
  for (; *parameters; parameters++) n += *parameters == ' ';
  return n;
}

sconce_status j_call_builtin(struct jrun *run, const struct jbuiltin *builtin,
                             const struct jargs *given, struct jvalue *out) {
  if (!builtin->parameters) return builtin->call(run, given, out);
  struct jvalue at[PARAMETERS_MAX] = {{0}}; /* missing */
  uint32_t n = count_parameters(builtin->parameters);
  if (given->n > n)
    return j_fail(run, "%u arguments for '%s', which takes %u", given->n, builtin->name, n);
  for (uint32_t i = 0; i < given->n; i++) at[i] = given->at[i];
  for (uint32_t i = 0; i < given->n_pairs; i++) {
    struct text name = j_text(&given->pairs[2 * i]);
    int index = parameter_index(builtin->parameters, name);
    if (index < 0) return j_fail(run, "'%s' takes no '%.*s'", builtin->name, TEXT(name));
    if (!j_missing(&at[index]))
      return j_fail(run, "'%s' got '%.*s' twice", builtin->name, TEXT(name));
    at[index] = given->pairs[2 * i + 1];
  }
  for (uint32_t i = 0; i < builtin->required; i++)
    if (j_missing(&at[i]))
      return j_fail(run, "'%s' needs %u arguments", builtin->name, builtin->required);
  struct jargs bound = {.self = given->self, .at = at, .n = n};
  return builtin->call(run, &bound, out);
}

static int32_t index_in(const struct jbuiltin *table, struct text name) {
  const struct jbuiltin *found = j_find_builtin(table, name);
  return found ? (int32_t)(found - table) : -1;
}

enum { LIST_FILTERS = 1000 }; /* indices of the second table start here */

int32_t j_filter_index(struct text name) {
  int32_t index = index_in(j_text_filters, name);
  if (index >= 0) return index;
  index = index_in(j_list_filters, name);
  return index < 0 ? -1 : index + LIST_FILTERS;
}

const struct jbuiltin *j_filter_at(int32_t index) {
  return index >= LIST_FILTERS ? &j_list_filters[index - LIST_FILTERS] : &j_text_filters[index];
}

int32_t j_test_index(struct text name) { return index_in(j_tests, name); }

/* ---- global functions ------------------------------------------------------------------------ */

static sconce_status global_range(struct jrun *run, const struct jargs *a, struct jvalue *out) {
  enum { RANGE_MAX = 100000 }; /* as in Jinja's sandbox */
  int64_t n[3] = {0, 0, 1}, count;
  for (int i = 0; i < 3; i++)
    if (!j_missing(&a->at[i])) TRY(j_as_int(run, &a->at[i], "an argument of range", &n[i]));
  if (j_missing(&a->at[1])) n[1] = n[0], n[0] = 0;
  if (n[2] == 0) return j_fail(run, "a range with a step of 0");
  bool empty = n[2] > 0 ? n[0] >= n[1] : n[0] <= n[1];
  uint64_t span = n[2] > 0 ? (uint64_t)n[1] - (uint64_t)n[0] : (uint64_t)n[0] - (uint64_t)n[1];
  uint64_t step = n[2] > 0 ? (uint64_t)n[2] : 0 - (uint64_t)n[2];
  uint64_t all = empty ? 0 : (span - 1) / step + 1;
  if (all > RANGE_MAX) return j_fail(run, "a range of more than %d numbers", RANGE_MAX);
  struct jvalue *items = j_new(run, struct jvalue, (size_t)all);
  if (!items) return J_NO_ROOM;
  count = n[0];
  for (uint64_t i = 0; i < all; i++) {
    items[i] = j_int(count, true);
    if (i + 1 < all) count += n[2];
  }
  return j_list(run, JL_RANGE, items, (size_t)all, out);
}

/* What a dict is made of: another one, pairs, names with values. */
static sconce_status fill_dict(struct jrun *run, const struct jargs *a, struct jdict *dict) {
  const struct jvalue *items, *pair;
  size_t n, two;
  if (a->n > 1) return j_fail(run, "%u arguments for a dict", a->n);
  if (a->n && a->at[0].type == J_DICT) {
    const struct jdict *from = a->at[0].dict;
    for (size_t i = 0; i < from->n; i++)
      TRY(j_dict_set(run, dict, from->pairs[i].key, from->pairs[i].value));
  } else if (a->n) {
    TRY(j_items(run, &a->at[0], &items, &n));
    for (size_t i = 0; i < n; i++) {
      TRY(j_items(run, &items[i], &pair, &two));
      if (two != 2) return j_fail(run, "%zu values for a key and its value", two);
      TRY(j_dict_set(run, dict, pair[0], pair[1]));
    }
  }
  for (uint32_t i = 0; i < a->n_pairs; i++)
    TRY(j_dict_set(run, dict, a->pairs[2 * i], a->pairs[2 * i + 1]));
  return SCONCE_OK;
}

static sconce_status global_dict(struct jrun *run, const struct jargs *a, struct jvalue *out) {
  TRY(j_dict(run, 0, out));
  return fill_dict(run, a, out->dict);
}

static sconce_status global_namespace(struct jrun *run, const struct jargs *a, struct jvalue *out) {
  struct jspace *space = j_new(run, struct jspace, 1);
  if (!space) return J_NO_ROOM;
  *out = (struct jvalue){.type = J_SPACE, .space = space};
  return fill_dict(run, a, &space->dict);
}

static sconce_status global_raise(struct jrun *run, const struct jargs *a, struct jvalue *out) {
  struct jvalue text;
  (void)out;
  TRY(j_str(run, &a->at[0], &text));
  return j_fail(run, "%.*s", (int)(text.size < 900 ? text.size : 900), text.text);
}

static sconce_status global_strftime(struct jrun *run, const struct jargs *a, struct jvalue *out) {
  if (a->at[0].type != J_STRING)
    return j_fail(run, "a %s as the format of a date", j_type_name(&a->at[0]));
  return j_strftime(run, &a->at[0], run->date, out);
}

const struct jbuiltin j_globals[] = {
    {"range", global_range, 1, "start stop step"},  {"dict", global_dict, 0, NULL},
    {"namespace", global_namespace, 0, NULL},       {"raise_exception", global_raise, 1, "message"},
    {"strftime_now", global_strftime, 1, "format"}, {0},
};

/* ---- tests ----------------------------------------------------------------------------------- */

static sconce_status answer(struct jvalue *out, bool truth) {
  *out = j_bool(truth);
  return SCONCE_OK;
}

#define TYPE_TEST(name, condition)                                                                 \
  static sconce_status test_##name(struct jrun *run, const struct jargs *a, struct jvalue *out) {  \
    const struct jvalue *v = &a->self;                                                             \
    (void)run;                                                                                     \
    return answer(out, condition);                                                                 \
  }

TYPE_TEST(defined, v->type != J_UNDEFINED)
TYPE_TEST(undefined, v->type == J_UNDEFINED)
TYPE_TEST(none, v->type == J_NONE)
TYPE_TEST(boolean, v->type == J_BOOL)
TYPE_TEST(true, v->type == J_BOOL && v->truth)
TYPE_TEST(false, v->type == J_BOOL && !v->truth)
TYPE_TEST(integer, v->type == J_INT || (v->type == J_FLOAT && v->kind))
TYPE_TEST(float, v->type == J_FLOAT && !v->kind)
TYPE_TEST(number, j_is_number(v))
TYPE_TEST(string, v->type == J_STRING)
TYPE_TEST(mapping, v->type == J_DICT)
TYPE_TEST(escaped, v->type == J_STRING && v->kind)
TYPE_TEST(iterable, v->type == J_UNDEFINED || v->type == J_STRING || v->type == J_LIST ||
                        v->type == J_DICT || v->type == J_LOOP)
TYPE_TEST(sequence, v->type == J_UNDEFINED || v->type == J_STRING || v->type == J_DICT ||
                        (v->type == J_LIST && v->list->kind <= JL_RANGE))
TYPE_TEST(callable, v->type == J_UNDEFINED || v->type == J_MACRO || v->type == J_FUNCTION ||
                        v->type == J_LOOP)
TYPE_TEST(filter, v->type == J_STRING && j_filter_index(j_text(v)) >= 0)
TYPE_TEST(test, v->type == J_STRING && j_test_index(j_text(v)) >= 0)

static sconce_status remainder_is(struct jrun *run, const struct jvalue *v, const struct jvalue *by,
                                  int64_t want, struct jvalue *out) {
  struct jvalue rest, wanted = j_int(want, true);
  bool equal;
  TRY(j_binary(run, T_MOD, v, by, &rest));
  TRY(j_equal(run, &rest, &wanted, &equal));
  return answer(out, equal);
}

static sconce_status test_odd(struct jrun *run, const struct jargs *a, struct jvalue *out) {
  struct jvalue two = j_int(2, true);
  return remainder_is(run, &a->self, &two, 1, out);
}

static sconce_status test_even(struct jrun *run, const struct jargs *a, struct jvalue *out) {
  struct jvalue two = j_int(2, true);
  return remainder_is(run, &a->self, &two, 0, out);
}

static sconce_status test_divisibleby(struct jrun *run, const struct jargs *a, struct jvalue *out) {
  return remainder_is(run, &a->self, &a->at[0], 0, out);
}

/* Some letter has a case, and all that have one have this. */
static sconce_status test_case(struct jrun *run, const struct jargs *a, enum jcase how,
                               struct jvalue *out) {
  struct jvalue text, same, other;
  TRY(j_str(run, &a->self, &text));
  TRY(j_change_case(run, &text, how, &same));
  TRY(j_change_case(run, &text, how == JC_UPPER ? JC_LOWER : JC_UPPER, &other));
  return answer(out, text_equal(j_text(&text), j_text(&same)) &&
                         !text_equal(j_text(&text), j_text(&other)));
}

static sconce_status test_lower(struct jrun *run, const struct jargs *a, struct jvalue *out) {
  return test_case(run, a, JC_LOWER, out);
}

static sconce_status test_upper(struct jrun *run, const struct jargs *a, struct jvalue *out) {
  return test_case(run, a, JC_UPPER, out);
}

static sconce_status test_sameas(struct jrun *run, const struct jargs *a, struct jvalue *out) {
  const struct jvalue *v = &a->self, *w = &a->at[0];
  bool equal;
  if (v->type != w->type) return answer(out, false);
  if (v->type == J_LIST || v->type == J_DICT) return answer(out, v->list == w->list);
  TRY(j_equal(run, v, w, &equal));
  return answer(out, equal);
}

#define COMPARE_TEST(name, how)                                                                    \
  static sconce_status test_##name(struct jrun *run, const struct jargs *a, struct jvalue *out) {  \
    bool truth;                                                                                    \
    TRY(j_compare(run, how, &a->self, &a->at[0], &truth));                                         \
    return answer(out, truth);                                                                     \
  }

COMPARE_TEST(eq, C_EQ)
COMPARE_TEST(ne, C_NE)
COMPARE_TEST(lt, C_LT)
COMPARE_TEST(le, C_LE)
COMPARE_TEST(gt, C_GT)
COMPARE_TEST(ge, C_GE)
COMPARE_TEST(in, C_IN)

const struct jbuiltin j_tests[] = {
    {"defined", test_defined, 0, ""},    {"undefined", test_undefined, 0, ""},
    {"none", test_none, 0, ""},          {"boolean", test_boolean, 0, ""},
    {"true", test_true, 0, ""},          {"false", test_false, 0, ""},
    {"integer", test_integer, 0, ""},    {"float", test_float, 0, ""},
    {"number", test_number, 0, ""},      {"string", test_string, 0, ""},
    {"mapping", test_mapping, 0, ""},    {"escaped", test_escaped, 0, ""},
    {"iterable", test_iterable, 0, ""},  {"sequence", test_sequence, 0, ""},
    {"callable", test_callable, 0, ""},  {"filter", test_filter, 0, ""},
    {"test", test_test, 0, ""},          {"odd", test_odd, 0, ""},
    {"even", test_even, 0, ""},          {"divisibleby", test_divisibleby, 1, "num"},
    {"lower", test_lower, 0, ""},        {"upper", test_upper, 0, ""},
    {"sameas", test_sameas, 1, "other"}, {"in", test_in, 1, "seq"},
    {"eq", test_eq, 1, "other"},         {"equalto", test_eq, 1, "other"},
    {"==", test_eq, 1, "other"},         {"ne", test_ne, 1, "other"},
    {"!=", test_ne, 1, "other"},         {"lt", test_lt, 1, "other"},
    {"lessthan", test_lt, 1, "other"},   {"<", test_lt, 1, "other"},
    {"le", test_le, 1, "other"},         {"<=", test_le, 1, "other"},
    {"gt", test_gt, 1, "other"},         {"greaterthan", test_gt, 1, "other"},
    {">", test_gt, 1, "other"},          {"ge", test_ge, 1, "other"},
    {">=", test_ge, 1, "other"},         {0},
};
