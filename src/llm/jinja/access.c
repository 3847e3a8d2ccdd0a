/* Parts of values: members, items, slices. As in Jinja value.name looks for a method first and for
 * a key then, value["name"] the other way round. There is nothing else to reach: no value is a host
 * object. */
#include "llm/jinja/builtin.h"

static struct jvalue no_member(const struct jvalue *v, struct text name) {
  struct jvalue out = j_undefined(JU_ATTRIBUTE, name);
  out.of = v->type;
  return out;
}

static struct jvalue no_item(const struct jvalue *v) {
  struct jvalue out = j_undefined(JU_ITEM, (struct text){0});
  out.of = v->type;
  return out;
}

/* Methods that would change a list or dict: Jinja's sandbox has none of them. */
static bool changes(const struct jvalue *v, struct text name) {
  static const char *const dict[] = {"clear", "pop", "popitem", "setdefault", "update", NULL};
  static const char *const list[] = {"append", "clear",  "pop",    "reverse", "insert",
                                     "sort",   "extend", "remove", NULL};
  bool is_list = v->type == J_LIST && v->list->kind == JL_LIST;
  if (v->type != J_DICT && !is_list) return false;
  for (const char *const *p = is_list ? list : dict; *p; p++)
    if (text_is(name, *p)) return true;
  return false;
}

static sconce_status find_method(struct jrun *run, const struct jvalue *v, struct text name,
                                 struct jvalue *out) {
  const struct jbuiltin *table = v->type == J_STRING ? j_string_methods
                                 : v->type == J_DICT ? j_dict_methods
                                 : v->type == J_LOOP ? j_loop_methods
                                                     : NULL;
  if (v->type == J_LIST && v->list->kind <= JL_TUPLE) table = j_list_methods;
  const struct jbuiltin *found = table ? j_find_builtin(table, name) : NULL;
  if (found) return j_bind(run, found, v, out);
  *out = no_member(v, name);
  if (changes(v, name)) out->kind = JU_UNSAFE;
  return SCONCE_OK;
}

static sconce_status loop_member(struct jrun *run, const struct jvalue *v, struct text name,
                                 struct jvalue *out) {
  const struct jloop *loop = v->loop;
  int64_t at = (int64_t)loop->at, n = (int64_t)loop->n;
  const struct {
    const char *name;
    struct jvalue value;
  } members[] = {{"index0", j_int(at, true)},
                 {"index", j_int(at + 1, true)},
                 {"first", j_bool(at == 0)},
                 {"last", j_bool(at + 1 == n)},
                 {"length", j_int(n, true)},
                 {"revindex", j_int(n - at, true)},
                 {"revindex0", j_int(n - at - 1, true)},
                 {"depth", j_int(1, true)},
                 {"depth0", j_int(0, true)}};
  for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
    if (!text_is(name, members[i].name)) continue;
    *out = members[i].value;
    return SCONCE_OK;
  }
  *out = j_undefined(JU_HINT, text_of("a loop has no item there"));
  if (text_is(name, "previtem")) {
    if (at) *out = loop->items[at - 1];
  } else if (text_is(name, "nextitem")) {
    if (at + 1 < n) *out = loop->items[at + 1];
  } else {
    return find_method(run, v, name, out);
  }
  return SCONCE_OK;
}

sconce_status j_member(struct jrun *run, const struct jvalue *v, struct text name,
                       struct jvalue *out) {
  const struct jvalue *found = NULL;
  if (v->type == J_UNDEFINED) return j_fail_undefined(run, v);
  if (v->type == J_LOOP) return loop_member(run, v, name, out);
  if (v->type == J_SPACE) {
    found = j_dict_find(&v->space->dict, name);
    *out = found ? *found : no_member(v, name);
    return SCONCE_OK;
  }
  TRY(find_method(run, v, name, out));
  if (v->type != J_DICT || out->type != J_UNDEFINED || out->kind == JU_UNSAFE) return SCONCE_OK;
  found = j_dict_find(v->dict, name);
  if (found) *out = *found;
  return SCONCE_OK;
}

/* Item `index` of n, counted from the end if it is below 0. */
static bool find_index(int64_t index, size_t n, size_t *at) {
  if (index < 0) index += (int64_t)n;
  *at = (size_t)index;
  return index >= 0 && (size_t)index < n;
}

static sconce_status item_at(struct jrun *run, const struct jvalue *v, int64_t index,
                             struct jvalue *out) {
  size_t at, n;
  *out = no_item(v);
  if (v->type == J_LIST && v->list->kind <= JL_RANGE) {
    if (find_index(index, v->list->n, &at)) *out = v->list->items[at];
  } else if (v->type == J_STRING) {
    TRY(j_length(run, v, &n));
    if (!find_index(index, n, &at)) return SCONCE_OK;
    at = j_character_at(j_text(v), at);
    *out = j_part(v, at, j_character_size(v->text + at));
  }
  return SCONCE_OK;
}

sconce_status j_item(struct jrun *run, const struct jvalue *v, const struct jvalue *key,
                     struct jvalue *out) {
  if (v->type == J_UNDEFINED) return j_fail_undefined(run, v);
  const struct jvalue *found = NULL;
  if (v->type == J_DICT) TRY(j_dict_get(run, v->dict, key, &found));
  if (found) {
    *out = *found;
    return SCONCE_OK;
  }
  if (key->type == J_STRING)
    return v->type == J_DICT ? find_method(run, v, j_text(key), out)
                             : j_member(run, v, j_text(key), out);
  *out = no_item(v);
  if (key->type == J_INT) return item_at(run, v, key->integer, out);
  return key->type == J_BOOL ? item_at(run, v, key->truth, out) : SCONCE_OK;
}

/* ---- slices ---------------------------------------------------------------------------------- */

/* A bound of a slice of n items, as Python cuts it: into [low, high]. */
static sconce_status bound_of(struct jrun *run, const struct jvalue *v, int64_t otherwise,
                              int64_t n, int64_t low, int64_t high, int64_t *out) {
  *out = otherwise;
  if (v->type == J_NONE) return SCONCE_OK;
  TRY(j_as_int(run, v, "a bound of a slice", out));
  if (*out < 0) *out = *out < -n ? low : *out + n;
  if (*out < low) *out = low;
  if (*out > high) *out = high;
  return SCONCE_OK;
}

static sconce_status slice_string(struct jrun *run, const struct jvalue *v, int64_t start,
                                  int64_t count, int64_t step, struct jvalue *out) {
  struct text text = j_text(v);
  if (step == 1) {
    size_t from = j_character_at(text, (size_t)start);
    struct text rest = {text.data + from, text.size - from};
    *out = j_part(v, from, j_character_at(rest, (size_t)count));
    return j_spend(run, text.size / 64);
  }
  const struct jvalue *items;
  size_t n;
  struct jbuffer b = {0};
  TRY(j_items(run, v, &items, &n));
  for (int64_t i = 0; i < count; i++) TRY(j_put_string(run, &b, &items[start + i * step]));
  *out = j_taken(&b);
  return SCONCE_OK;
}

sconce_status j_slice(struct jrun *run, const struct jvalue *v, const struct jvalue bounds[3],
                      struct jvalue *out) {
  size_t length;
  int64_t start, stop, step = 1;
  if (v->type == J_UNDEFINED) return j_fail_undefined(run, v);
  bool list = v->type == J_LIST && v->list->kind <= JL_RANGE;
  if (!list && v->type != J_STRING) return j_fail(run, "a slice of a %s", j_type_name(v));
  TRY(j_length(run, v, &length));
  int64_t n = (int64_t)length;
  if (bounds[2].type != J_NONE) TRY(j_as_int(run, &bounds[2], "the step of a slice", &step));
  if (step == 0) return j_fail(run, "a slice with a step of 0");
  if (step > n + 1) step = n + 1; /* no further items, and no overflow */
  if (step < -n - 1) step = -n - 1;
  int64_t low = step > 0 ? 0 : -1, high = step > 0 ? n : n - 1;
  TRY(bound_of(run, &bounds[0], step > 0 ? 0 : n - 1, n, low, high, &start));
  TRY(bound_of(run, &bounds[1], step > 0 ? n : -1, n, low, high, &stop));
  int64_t count = step > 0 ? (stop - start + step - 1) / step : (start - stop - step - 1) / -step;
  if (count < 0) count = 0;
  if (v->type == J_STRING) return slice_string(run, v, start, count, step, out);
  struct jvalue *items = j_new(run, struct jvalue, (size_t)count);
  if (!items) return J_NO_ROOM;
  for (int64_t i = 0; i < count; i++) items[i] = v->list->items[start + i * step];
  return j_list(run, (enum jlist_kind)v->list->kind, items, (size_t)count, out);
}

/* ---- paths ----------------------------------------------------------------------------------- */

static bool all_digits(struct text text) {
  for (size_t i = 0; i < text.size && text.size < 10; i++)
    if (text.data[i] < '0' || text.data[i] > '9') return false;
  return text.size > 0 && text.size < 10;
}

sconce_status j_path(struct jrun *run, const struct jvalue *v, const struct jvalue *path,
                     struct jvalue *out) {
  *out = *v;
  if (path->type != J_STRING) return j_item(run, v, path, out);
  for (size_t from = 0; from <= path->size;) {
    const char *dot = memchr(path->text + from, '.', path->size - from);
    size_t to = dot ? (size_t)(dot - path->text) : path->size;
    struct jvalue whole = *out, key = j_part(path, from, to - from);
    if (all_digits(j_text(&key))) {
      int64_t n = 0;
      for (uint32_t i = 0; i < key.size; i++) n = 10 * n + (key.text[i] - '0');
      key = j_int(n, true);
    }
    TRY(j_spend(run, 1 + (to - from) / 64));
    TRY(j_item(run, &whole, &key, out));
    from = to + 1;
  }
  return SCONCE_OK;
}
