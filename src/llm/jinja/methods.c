/* Methods of texts, dicts, lists and loops, as Python's; none changes anything. */
#include "llm/jinja/builtin.h"

#define METHOD(name)                                                                               \
  static sconce_status method_##name(struct jrun *run, const struct jargs *a, struct jvalue *out)

/* An argument that must be a text. */
static sconce_status want_text(struct jrun *run, const struct jvalue *v, const char *what) {
  if (v->type == J_UNDEFINED && !j_missing(v)) return j_fail_undefined(run, v);
  return v->type == J_STRING ? SCONCE_OK : j_fail(run, "%s with a %s", what, j_type_name(v));
}

static sconce_status answer(struct jvalue *out, bool truth) {
  *out = j_bool(truth);
  return SCONCE_OK;
}

/* ---- texts ----------------------------------------------------------------------------------- */

static sconce_status strip(struct jrun *run, const struct jargs *a, unsigned sides,
                           struct jvalue *out) {
  const struct jvalue *of = &a->at[0];
  bool space = j_missing(of) || of->type == J_NONE;
  if (!space) TRY(want_text(run, of, "strip"));
  return j_strip(run, &a->self, space ? NULL : of, sides, out);
}

METHOD(strip) { return strip(run, a, J_LEFT | J_RIGHT, out); }
METHOD(lstrip) { return strip(run, a, J_LEFT, out); }
METHOD(rstrip) { return strip(run, a, J_RIGHT, out); }

static sconce_status split(struct jrun *run, const struct jargs *a, bool from_right,
                           struct jvalue *out) {
  const struct jvalue *by = &a->at[0];
  int64_t most = -1;
  bool space = j_missing(by) || by->type == J_NONE;
  if (!space) TRY(want_text(run, by, "split"));
  if (!j_missing(&a->at[1])) TRY(j_as_int(run, &a->at[1], "maxsplit", &most));
  return j_split(run, &a->self, space ? NULL : by, most, from_right, out);
}

METHOD(split) { return split(run, a, false, out); }
METHOD(rsplit) { return split(run, a, true, out); }

METHOD(splitlines) {
  return j_split_lines(run, &a->self, !j_missing(&a->at[0]) && j_truth(&a->at[0]), out);
}

METHOD(upper) { return j_change_case(run, &a->self, JC_UPPER, out); }
METHOD(lower) { return j_change_case(run, &a->self, JC_LOWER, out); }
METHOD(capitalize) { return j_change_case(run, &a->self, JC_CAPITAL, out); }
METHOD(title) { return j_change_case(run, &a->self, JC_TITLE, out); }

METHOD(replace) {
  int64_t most = -1;
  TRY(want_text(run, &a->at[0], "replace"));
  TRY(want_text(run, &a->at[1], "replace"));
  if (!j_missing(&a->at[2])) TRY(j_as_int(run, &a->at[2], "the count of replace", &most));
  return j_replace(run, &a->self, &a->at[0], &a->at[1], most, out);
}

static bool starts_with(struct text text, struct text what, bool at_end) {
  if (what.size > text.size) return false;
  const char *at = at_end ? text.data + text.size - what.size : text.data;
  return what.size == 0 || memcmp(at, what.data, what.size) == 0;
}

/* One text, or a tuple of which any will do. */
static sconce_status has_end(struct jrun *run, const struct jargs *a, bool at_end,
                             struct jvalue *out) {
  const struct jvalue *what = &a->at[0], *all = what;
  size_t n = 1;
  if (what->type == J_LIST && what->list->kind == JL_TUPLE)
    all = what->list->items, n = what->list->n;
  for (size_t i = 0; i < n; i++) {
    TRY(want_text(run, &all[i], at_end ? "endswith" : "startswith"));
    TRY(j_spend(run, 1 + all[i].size / 64));
    if (starts_with(j_text(&a->self), j_text(&all[i]), at_end)) return answer(out, true);
  }
  return answer(out, false);
}

METHOD(startswith) { return has_end(run, a, false, out); }
METHOD(endswith) { return has_end(run, a, true, out); }

METHOD(removeprefix) {
  TRY(want_text(run, &a->at[0], "removeprefix"));
  uint32_t cut = starts_with(j_text(&a->self), j_text(&a->at[0]), false) ? a->at[0].size : 0;
  *out = j_part(&a->self, cut, a->self.size - cut);
  return j_spend(run, a->at[0].size / 64);
}

METHOD(removesuffix) {
  TRY(want_text(run, &a->at[0], "removesuffix"));
  uint32_t cut = starts_with(j_text(&a->self), j_text(&a->at[0]), true) ? a->at[0].size : 0;
  *out = j_part(&a->self, 0, a->self.size - cut);
  return j_spend(run, a->at[0].size / 64);
}

/* Where a text is found, in characters; -1: nowhere. */
static sconce_status find(struct jrun *run, const struct jargs *a, bool last, struct jvalue *out) {
  size_t at;
  TRY(want_text(run, &a->at[0], "find"));
  TRY(last ? j_find_last(run, j_text(&a->self), j_text(&a->at[0]), &at)
           : j_find(run, j_text(&a->self), j_text(&a->at[0]), &at));
  *out = j_int(-1, true);
  if (at == SIZE_MAX) return SCONCE_OK;
  *out = j_int((int64_t)j_count_characters((struct text){a->self.text, at}), true);
  return j_spend(run, at / 64);
}

METHOD(find) { return find(run, a, false, out); }
METHOD(rfind) { return find(run, a, true, out); }

METHOD(index) {
  TRY(find(run, a, false, out));
  return out->integer < 0 ? j_fail(run, "index: the text is not there") : SCONCE_OK;
}

METHOD(count) {
  struct text text = j_text(&a->self);
  int64_t n = 0;
  TRY(want_text(run, &a->at[0], "count"));
  if (a->at[0].size == 0) {
    *out = j_int((int64_t)j_count_characters(text) + 1, true);
    return j_spend(run, text.size / 64);
  }
  for (size_t at;; n++) {
    TRY(j_find(run, text, j_text(&a->at[0]), &at));
    if (at == SIZE_MAX) break;
    text = (struct text){text.data + at + a->at[0].size, text.size - at - a->at[0].size};
  }
  *out = j_int(n, true);
  return SCONCE_OK;
}

METHOD(join) {
  const struct jvalue *items;
  size_t n;
  struct jbuffer b = {0};
  TRY(j_items(run, &a->at[0], &items, &n));
  for (size_t i = 0; i < n; i++) {
    TRY(want_text(run, &items[i], "join"));
    TRY(j_spend(run, 1));
    if (i) TRY(j_put_string(run, &b, &a->self));
    TRY(j_put_string(run, &b, &items[i]));
  }
  *out = j_taken(&b);
  return SCONCE_OK;
}

METHOD(format) { return j_format(run, &a->self, a, out); }

/* (before, what, behind), or the text and two empty ones. */
static sconce_status partition(struct jrun *run, const struct jargs *a, bool last,
                               struct jvalue *out) {
  size_t at, size = a->self.size;
  TRY(want_text(run, &a->at[0], "partition"));
  if (a->at[0].size == 0) return j_fail(run, "partition by an empty text");
  TRY(last ? j_find_last(run, j_text(&a->self), j_text(&a->at[0]), &at)
           : j_find(run, j_text(&a->self), j_text(&a->at[0]), &at));
  struct jvalue *three = j_new(run, struct jvalue, 3);
  if (!three) return J_NO_ROOM;
  size_t what = at == SIZE_MAX ? 0 : a->at[0].size;
  if (at == SIZE_MAX) at = last ? 0 : size;
  three[0] = j_part(&a->self, 0, at);
  three[1] = j_part(&a->self, at, what);
  three[2] = j_part(&a->self, at + what, size - at - what);
  return j_list(run, JL_TUPLE, three, 3, out);
}

METHOD(partition) { return partition(run, a, false, out); }
METHOD(rpartition) { return partition(run, a, true, out); }

enum class { DIGITS, LETTERS, EITHER, SPACES, UPPERS, LOWERS };

static bool in_class(uint32_t code, enum class class, bool *counts) {
  uint32_t up[3], low[3];
  bool upper = unicode_lower(code, low) != 1 || low[0] != code;
  bool lower = unicode_upper(code, up) != 1 || up[0] != code;
  *counts = true;
  switch (class) {
  case DIGITS:
    return unicode_is_number(code);
  case LETTERS:
    return unicode_is_letter(code);
  case EITHER:
    return unicode_is_letter(code) || unicode_is_number(code);
  case SPACES:
    return j_is_space(code);
  default: /* what has no case does not count */
    *counts = upper || lower;
    return !*counts || (class == UPPERS ? upper : lower);
  }
}

/* Are all characters of a class, and is there one? */
static sconce_status all_in(struct jrun *run, const struct jvalue *v, enum class class,
                            struct jvalue *out) {
  bool any = false;
  TRY(j_spend(run, v->size / 4));
  for (uint32_t at = 0; at < v->size;) {
    struct utf8_char c = utf8_decode(v->text + at, v->text + v->size);
    bool counts;
    if (!in_class(c.code, class, &counts)) return answer(out, false);
    any |= counts;
    at += c.size;
  }
  return answer(out, any);
}

METHOD(isdigit) { return all_in(run, &a->self, DIGITS, out); }
METHOD(isalpha) { return all_in(run, &a->self, LETTERS, out); }
METHOD(isalnum) { return all_in(run, &a->self, EITHER, out); }
METHOD(isspace) { return all_in(run, &a->self, SPACES, out); }
METHOD(isupper) { return all_in(run, &a->self, UPPERS, out); }
METHOD(islower) { return all_in(run, &a->self, LOWERS, out); }

/* Filled up to a width in characters. */
static sconce_status justify(struct jrun *run, const struct jargs *a, bool left, char fill,
                             struct jvalue *out) {
  int64_t width;
  size_t n;
  struct jbuffer b = {0};
  TRY(j_as_int(run, &a->at[0], "a width", &width));
  TRY(j_length(run, &a->self, &n));
  if (a->n > 1 && !j_missing(&a->at[1])) {
    TRY(want_text(run, &a->at[1], "a fill"));
    if (a->at[1].size != 1) return j_fail(run, "a fill of %u bytes", a->at[1].size);
    fill = *a->at[1].text;
  }
  size_t pad = width > 0 && (uint64_t)width > n ? (size_t)width - n : 0, sign = 0;
  if (left) TRY(j_put_string(run, &b, &a->self));
  if (fill == '0' && a->n == 1 && n && (*a->self.text == '-' || *a->self.text == '+')) sign = 1;
  struct jvalue first = j_part(&a->self, 0, sign),
                rest = j_part(&a->self, sign, a->self.size - sign);
  if (!left) TRY(j_put_string(run, &b, &first));
  if (pad > run->output) pad = run->output;
  TRY(j_spend(run, pad / 8));
  for (size_t i = 0; i < pad; i++) TRY(j_put(run, &b, (struct text){&fill, 1}, true));
  if (!left) TRY(j_put_string(run, &b, &rest));
  *out = j_taken(&b);
  return SCONCE_OK;
}

METHOD(ljust) { return justify(run, a, true, ' ', out); }
METHOD(rjust) { return justify(run, a, false, ' ', out); }
METHOD(zfill) { return justify(run, a, false, '0', out); }

const struct jbuiltin j_string_methods[] = {
    {"strip", method_strip, 0, "chars"},
    {"lstrip", method_lstrip, 0, "chars"},
    {"rstrip", method_rstrip, 0, "chars"},
    {"split", method_split, 0, "sep maxsplit"},
    {"rsplit", method_rsplit, 0, "sep maxsplit"},
    {"splitlines", method_splitlines, 0, "keepends"},
    {"upper", method_upper, 0, ""},
    {"lower", method_lower, 0, ""},
    {"capitalize", method_capitalize, 0, ""},
    {"title", method_title, 0, ""},
    {"replace", method_replace, 2, "old new count"},
    {"startswith", method_startswith, 1, "prefix"},
    {"endswith", method_endswith, 1, "suffix"},
    {"removeprefix", method_removeprefix, 1, "prefix"},
    {"removesuffix", method_removesuffix, 1, "suffix"},
    {"find", method_find, 1, "sub"},
    {"rfind", method_rfind, 1, "sub"},
    {"index", method_index, 1, "sub"},
    {"count", method_count, 1, "sub"},
    {"join", method_join, 1, "iterable"},
    {"format", method_format, 0, NULL},
    {"partition", method_partition, 1, "sep"},
    {"rpartition", method_rpartition, 1, "sep"},
    {"isdigit", method_isdigit, 0, ""},
    {"isnumeric", method_isdigit, 0, ""},
    {"isdecimal", method_isdigit, 0, ""},
    {"isalpha", method_isalpha, 0, ""},
    {"isalnum", method_isalnum, 0, ""},
    {"isspace", method_isspace, 0, ""},
    {"isupper", method_isupper, 0, ""},
    {"islower", method_islower, 0, ""},
    {"ljust", method_ljust, 1, "width fillchar"},
    {"rjust", method_rjust, 1, "width fillchar"},
    {"zfill", method_zfill, 1, "width"},
    {0},
};

/* ---- dicts ----------------------------------------------------------------------------------- */

METHOD(get) {
  const struct jvalue *found;
  TRY(j_dict_get(run, a->self.dict, &a->at[0], &found));
  *out = found ? *found : j_missing(&a->at[1]) ? j_none() : a->at[1];
  return SCONCE_OK;
}

static sconce_status view(struct jrun *run, const struct jvalue *v, enum jlist_kind kind,
                          struct jvalue *out) {
  size_t n = v->dict->n;
  struct jvalue *items = j_new(run, struct jvalue, n);
  if (!items) return J_NO_ROOM;
  for (size_t i = 0; i < n; i++) {
    const struct jpair *pair = &v->dict->pairs[i];
    if (kind == JL_ITEMS)
      TRY(j_pair(run, pair->key, pair->value, &items[i]));
    else
      items[i] = kind == JL_KEYS ? pair->key : pair->value;
  }
  return j_list(run, kind, items, n, out);
}

METHOD(items) { return view(run, &a->self, JL_ITEMS, out); }
METHOD(keys) { return view(run, &a->self, JL_KEYS, out); }
METHOD(values) { return view(run, &a->self, JL_VALUES, out); }

METHOD(copy) { /* nothing changes, so the thing itself will do */
  (void)run;
  *out = a->self;
  return SCONCE_OK;
}

const struct jbuiltin j_dict_methods[] = {
    {"get", method_get, 1, "key default"}, {"items", method_items, 0, ""},
    {"keys", method_keys, 0, ""},          {"values", method_values, 0, ""},
    {"copy", method_copy, 0, ""},          {0},
};

/* ---- lists and loops ------------------------------------------------------------------------- */

static sconce_status search(struct jrun *run, const struct jargs *a, size_t *first, int64_t *n) {
  *first = SIZE_MAX;
  *n = 0;
  for (size_t i = 0; i < a->self.list->n; i++) {
    bool equal;
    TRY(j_equal(run, &a->self.list->items[i], &a->at[0], &equal));
    if (equal && ++*n == 1) *first = i;
  }
  return SCONCE_OK;
}

METHOD(list_index) {
  size_t first;
  int64_t n;
  TRY(search(run, a, &first, &n));
  if (n == 0) return j_fail(run, "index: the item is not there");
  *out = j_int((int64_t)first, true);
  return SCONCE_OK;
}

METHOD(list_count) {
  size_t first;
  int64_t n;
  TRY(search(run, a, &first, &n));
  *out = j_int(n, true);
  return SCONCE_OK;
}

const struct jbuiltin j_list_methods[] = {
    {"index", method_list_index, 1, "value"},
    {"count", method_list_count, 1, "value"},
    {"copy", method_copy, 0, ""},
    {0},
};

METHOD(cycle) {
  if (a->n == 0) return j_fail(run, "cycle of nothing");
  *out = a->at[a->self.loop->at % a->n];
  return SCONCE_OK;
}

METHOD(changed) {
  struct jloop *loop = a->self.loop;
  struct jvalue *items = j_new(run, struct jvalue, a->n), now;
  bool equal = false;
  if (!items) return J_NO_ROOM;
  for (uint32_t i = 0; i < a->n; i++) items[i] = a->at[i];
  TRY(j_list(run, JL_TUPLE, items, a->n, &now));
  if (loop->changed.type == J_LIST) TRY(j_equal(run, &loop->changed, &now, &equal));
  loop->changed = now;
  return answer(out, !equal);
}

const struct jbuiltin j_loop_methods[] = {
    {"cycle", method_cycle, 0, NULL},
    {"changed", method_changed, 0, NULL},
    {0},
};
