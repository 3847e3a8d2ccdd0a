/* Filters that work on what has items. Those that Jinja computes as it goes are computed at once
 * here, but what they give can be looped over only once, too. */
#include "llm/jinja/builtin.h"
#include "llm/jinja/lex.h"

#define FILTER(name)                                                                               \
  static sconce_status filter_##name(struct jrun *run, const struct jargs *a, struct jvalue *out)

static bool flag(const struct jvalue *v) { return !j_missing(v) && j_truth(v); }

/* A copy of the items that may be reordered or replaced. */
static sconce_status copy_items(struct jrun *run, const struct jvalue *v, struct jvalue **out,
                                size_t *n) {
  const struct jvalue *items;
  TRY(j_items(run, v, &items, n));
  *out = j_new(run, struct jvalue, *n);
  if (!*out) return J_NO_ROOM;
  if (*n) memcpy(*out, items, *n * sizeof **out);
  return j_spend(run, *n / 4);
}

FILTER(length) {
  size_t n;
  TRY(j_length(run, &a->self, &n));
  *out = j_int((int64_t)n, true);
  return SCONCE_OK;
}

FILTER(list) {
  struct jvalue *items;
  size_t n;
  TRY(copy_items(run, &a->self, &items, &n));
  return j_list(run, JL_LIST, items, n, out);
}

FILTER(first) {
  const struct jvalue *items;
  size_t n;
  TRY(j_items(run, &a->self, &items, &n));
  *out = n ? items[0] : j_undefined(JU_HINT, text_of("the first of nothing"));
  return SCONCE_OK;
}

FILTER(last) {
  const struct jvalue *items;
  size_t n;
  if (a->self.type == J_LIST && a->self.list->kind == JL_GENERATOR)
    return j_fail(run, "a generator has no last item");
  TRY(j_items(run, &a->self, &items, &n));
  *out = n ? items[n - 1] : j_undefined(JU_HINT, text_of("the last of nothing"));
  return SCONCE_OK;
}

FILTER(reverse) {
  struct jvalue *items, swap;
  size_t n;
  struct jbuffer b = {0};
  TRY(copy_items(run, &a->self, &items, &n));
  for (size_t i = 0, k = n; i + 1 < k; i++) swap = items[--k], items[k] = items[i], items[i] = swap;
  bool once = a->self.type == J_LIST && a->self.list->kind == JL_GENERATOR;
  if (a->self.type != J_STRING) return j_list(run, once ? JL_LIST : JL_GENERATOR, items, n, out);
  for (size_t i = 0; i < n; i++) TRY(j_put_string(run, &b, &items[i]));
  *out = j_taken(&b);
  return SCONCE_OK;
}

FILTER(join) {
  const struct jvalue *items;
  size_t n;
  struct jvalue between = j_string(text_of(""), true), item;
  struct jbuffer b = {0};
  if (!j_missing(&a->at[0])) TRY(j_str(run, &a->at[0], &between));
  TRY(j_items(run, &a->self, &items, &n));
  bool path = !j_missing(&a->at[1]) && a->at[1].type != J_NONE;
  for (size_t i = 0; i < n; i++) {
    if (i) TRY(j_put_string(run, &b, &between));
    item = items[i];
    if (path) TRY(j_path(run, &items[i], &a->at[1], &item));
    TRY(j_spend(run, 1));
    TRY(j_put_str(run, &b, &item));
  }
  *out = j_taken(&b);
  return SCONCE_OK;
}

FILTER(items) {
  struct jvalue *items;
  size_t n = a->self.type == J_DICT ? a->self.dict->n : 0;
  if (a->self.type != J_DICT && a->self.type != J_UNDEFINED)
    return j_fail(run, "items of a %s", j_type_name(&a->self));
  items = j_new(run, struct jvalue, n);
  if (!items) return J_NO_ROOM;
  for (size_t i = 0; i < n; i++)
    TRY(j_pair(run, a->self.dict->pairs[i].key, a->self.dict->pairs[i].value, &items[i]));
  return j_list(run, JL_GENERATOR, items, n, out);
}

FILTER(attr) {
  (void)run;
  if (a->at[0].type != J_STRING) return j_fail(run, "attr with a %s", j_type_name(&a->at[0]));
  if (a->self.type == J_UNDEFINED) return j_fail_undefined(run, &a->self);
  if (a->self.type == J_DICT) { /* keys are no attributes, methods are */
    struct jvalue empty;
    TRY(j_dict(run, 0, &empty));
    return j_member(run, &empty, j_text(&a->at[0]), out);
  }
  return j_member(run, &a->self, j_text(&a->at[0]), out);
}

/* ---- sorting --------------------------------------------------------------------------------- */

/* What an item is ordered by: itself or a part of it, in lower case unless case counts. */
static sconce_status key_of(struct jrun *run, const struct jvalue *item, const struct jvalue *path,
                            bool with_case, struct jvalue *out) {
  struct jvalue key = *item;
  if (!j_missing(path) && path->type != J_NONE) TRY(j_path(run, item, path, &key));
  *out = key;
  return key.type == J_STRING && !with_case ? j_change_case(run, &key, JC_LOWER, out) : SCONCE_OK;
}

/* The same for "age,name": a list of keys. */
static sconce_status keys_of(struct jrun *run, const struct jvalue *item,
                             const struct jvalue *paths, bool with_case, struct jvalue *out) {
  if (paths->type == J_STRING) TRY(j_spend(run, paths->size / 64));
  if (paths->type != J_STRING || !memchr(paths->text, ',', paths->size))
    return key_of(run, item, paths, with_case, out);
  struct jvalue comma = j_string(text_of(","), true), split;
  TRY(j_split(run, paths, &comma, -1, false, &split));
  struct jvalue *keys = j_new(run, struct jvalue, split.list->n);
  if (!keys) return J_NO_ROOM;
  for (size_t i = 0; i < split.list->n; i++)
    TRY(key_of(run, item, &split.list->items[i], with_case, &keys[i]));
  return j_list(run, JL_LIST, keys, split.list->n, out);
}

FILTER(sort) {
  struct jvalue *items, *keys;
  size_t n;
  TRY(copy_items(run, &a->self, &items, &n));
  keys = j_new(run, struct jvalue, n);
  if (!keys) return J_NO_ROOM;
  for (size_t i = 0; i < n; i++) TRY(keys_of(run, &items[i], &a->at[2], flag(&a->at[1]), &keys[i]));
  TRY(j_sort(run, keys, items, n, flag(&a->at[0])));
  return j_list(run, JL_LIST, items, n, out);
}

FILTER(dictsort) {
  const struct jvalue none = {0};
  if (a->self.type == J_UNDEFINED) return j_fail_undefined(run, &a->self);
  if (a->self.type != J_DICT) return j_fail(run, "dictsort of a %s", j_type_name(&a->self));
  bool by_value = j_is(&a->at[1], "value");
  if (!by_value && !j_missing(&a->at[1]) && !j_is(&a->at[1], "key"))
    return j_fail(run, "dictsort sorts by key or value");
  size_t n = a->self.dict->n;
  struct jvalue *items = j_new(run, struct jvalue, n), *keys = j_new(run, struct jvalue, n);
  if (!items || !keys) return J_NO_ROOM;
  for (size_t i = 0; i < n; i++) {
    const struct jpair *pair = &a->self.dict->pairs[i];
    TRY(j_pair(run, pair->key, pair->value, &items[i]));
    TRY(key_of(run, by_value ? &pair->value : &pair->key, &none, flag(&a->at[0]), &keys[i]));
  }
  TRY(j_sort(run, keys, items, n, flag(&a->at[2])));
  return j_list(run, JL_LIST, items, n, out);
}

FILTER(unique) {
  const struct jvalue *items;
  size_t n, kept = 0;
  struct jvalue seen, *out_items;
  TRY(j_items(run, &a->self, &items, &n));
  TRY(j_dict(run, 0, &seen));
  out_items = j_new(run, struct jvalue, n);
  if (!out_items) return J_NO_ROOM;
  for (size_t i = 0; i < n; i++) {
    struct jvalue key;
    const struct jvalue *found;
    TRY(key_of(run, &items[i], &a->at[1], flag(&a->at[0]), &key));
    TRY(j_dict_get(run, seen.dict, &key, &found));
    if (found) continue;
    TRY(j_dict_set(run, seen.dict, key, j_none()));
    out_items[kept++] = items[i];
  }
  return j_list(run, JL_GENERATOR, out_items, kept, out);
}

static sconce_status extreme(struct jrun *run, const struct jargs *a, int sign,
                             struct jvalue *out) {
  const struct jvalue *items;
  size_t n;
  struct jvalue best, key;
  TRY(j_items(run, &a->self, &items, &n));
  *out = j_undefined(JU_HINT, text_of("the least or greatest of nothing"));
  for (size_t i = 0; i < n; i++) {
    int order = 1;
    TRY(key_of(run, &items[i], &a->at[1], flag(&a->at[0]), &key));
    if (i) TRY(j_order(run, &key, &best, &order));
    if (i && order * sign <= 0) continue;
    best = key;
    *out = items[i];
  }
  return SCONCE_OK;
}

FILTER(min) { return extreme(run, a, -1, out); }
FILTER(max) { return extreme(run, a, 1, out); }

FILTER(sum) {
  const struct jvalue *items;
  size_t n;
  TRY(j_items(run, &a->self, &items, &n));
  *out = j_missing(&a->at[1]) ? j_int(0, true) : a->at[1];
  for (size_t i = 0; i < n; i++) {
    struct jvalue item = items[i], so_far = *out;
    if (!j_missing(&a->at[0]) && a->at[0].type != J_NONE)
      TRY(j_path(run, &items[i], &a->at[0], &item));
    TRY(j_binary(run, T_ADD, &so_far, &item, out));
  }
  return SCONCE_OK;
}

/* ---- grouping -------------------------------------------------------------------------------- */

FILTER(batch) {
  const struct jvalue *items;
  size_t n, rows = 0;
  int64_t width;
  TRY(j_as_int(run, &a->at[0], "the width of batch", &width));
  TRY(j_items(run, &a->self, &items, &n));
  if (width < 1) return j_fail(run, "batches of %lld", (long long)width);
  size_t w = (uint64_t)width > n + 1 ? n + 1 : (size_t)width;
  bool fill = !j_missing(&a->at[1]) && a->at[1].type != J_NONE;
  if (fill && (uint64_t)width > n + 1000000)
    return j_fail(run, "batches of %lld", (long long)width);
  struct jvalue *out_items = j_new(run, struct jvalue, n / w + 1);
  if (!out_items) return J_NO_ROOM;
  for (size_t i = 0; i < n; i += w, rows++) {
    size_t here = n - i < w ? n - i : w, all = fill ? (size_t)width : here;
    struct jvalue *row = j_new(run, struct jvalue, all);
    if (!row) return J_NO_ROOM;
    for (size_t k = 0; k < all; k++) row[k] = k < here ? items[i + k] : a->at[1];
    TRY(j_list(run, JL_LIST, row, all, &out_items[rows]));
  }
  return j_list(run, JL_GENERATOR, out_items, rows, out);
}

/* Items with an equal key, ordered by it: pairs of key and list. */
FILTER(groupby) {
  struct jvalue *items, *keys, *groups;
  size_t n, n_groups = 0;
  TRY(copy_items(run, &a->self, &items, &n));
  keys = j_new(run, struct jvalue, n);
  groups = j_new(run, struct jvalue, n);
  if (!keys || !groups) return J_NO_ROOM;
  for (size_t i = 0; i < n; i++) TRY(key_of(run, &items[i], &a->at[0], flag(&a->at[2]), &keys[i]));
  TRY(j_sort(run, keys, items, n, false));
  for (size_t i = 0, end; i < n; i = end) {
    bool equal = true;
    struct jvalue list, key;
    for (end = i + 1; end < n; end++) {
      TRY(j_equal(run, &keys[i], &keys[end], &equal));
      if (!equal) break;
    }
    TRY(j_list(run, JL_LIST, items + i, end - i, &list));
    TRY(j_path(run, &items[i], &a->at[0], &key));
    TRY(j_pair(run, key, list, &groups[n_groups++]));
  }
  return j_list(run, JL_LIST, groups, n_groups, out);
}

/* ---- filters of filters and tests ------------------------------------------------------------ */

static sconce_status call_named(struct jrun *run, bool test, const struct jvalue *name,
                                const struct jargs *args, struct jvalue *out) {
  enum { DEEP = 8 }; /* map('map', 'map', …) */
  if (name->type != J_STRING) return j_fail(run, "a %s as a name", j_type_name(name));
  int32_t index = test ? j_test_index(j_text(name)) : j_filter_index(j_text(name));
  if (index < 0)
    return fail(run->err, SCONCE_UNSUPPORTED, "there is no %s '%.*s'", test ? "test" : "filter",
                TEXT(j_text(name)));
  if (run->depth == DEEP) return j_fail(run, "filters in filters deeper than %d", DEEP);
  run->depth++;
  sconce_status status =
      j_call_builtin(run, test ? &j_tests[index] : j_filter_at(index), args, out);
  run->depth--;
  return status;
}

static const struct jvalue *named(const struct jargs *a, const char *name) {
  for (uint32_t i = 0; i < a->n_pairs; i++)
    if (j_is(&a->pairs[2 * i], name)) return &a->pairs[2 * i + 1];
  return NULL;
}

FILTER(map) {
  struct jvalue *items;
  const struct jvalue *path = named(a, "attribute"), *otherwise = named(a, "default");
  size_t n;
  if (!j_truth(&a->self)) return j_list(run, JL_GENERATOR, NULL, 0, out);
  TRY(copy_items(run, &a->self, &items, &n));
  if (a->n == 0 && !path && n) return j_fail(run, "map needs a filter or an attribute");
  for (size_t i = 0; i < n; i++) {
    struct jargs args = {.self = items[i], .n_pairs = a->n_pairs, .pairs = a->pairs};
    TRY(j_spend(run, 1));
    if (a->n) {
      args.at = a->at + 1;
      args.n = a->n - 1;
      TRY(call_named(run, false, &a->at[0], &args, &items[i]));
      continue;
    }
    TRY(j_path(run, &args.self, path, &items[i]));
    if (otherwise && items[i].type == J_UNDEFINED) items[i] = *otherwise;
  }
  return j_list(run, JL_GENERATOR, items, n, out);
}

/* Items whose part (or themselves, without a path) passes a test, or does not. */
static sconce_status choose(struct jrun *run, const struct jargs *a, bool with_path, bool want,
                            struct jvalue *out) {
  struct jvalue *items;
  size_t n, kept = 0;
  if (!j_truth(&a->self)) return j_list(run, JL_GENERATOR, NULL, 0, out);
  TRY(copy_items(run, &a->self, &items, &n));
  if (with_path && a->n == 0 && n) return j_fail(run, "selectattr needs an attribute");
  for (size_t i = 0; i < n; i++) {
    struct jargs args = {.self = items[i], .n_pairs = a->n_pairs, .pairs = a->pairs};
    struct jvalue truth;
    TRY(j_spend(run, 1));
    if (with_path) TRY(j_path(run, &items[i], &a->at[0], &args.self));
    truth = args.self;
    if (a->n > with_path) {
      args.at = a->at + with_path + 1;
      args.n = a->n - with_path - 1;
      TRY(call_named(run, true, &a->at[with_path], &args, &truth));
    }
    if (j_truth(&truth) == want) items[kept++] = items[i];
  }
  return j_list(run, JL_GENERATOR, items, kept, out);
}

FILTER(select) { return choose(run, a, false, true, out); }
FILTER(reject) { return choose(run, a, false, false, out); }
FILTER(selectattr) { return choose(run, a, true, true, out); }
FILTER(rejectattr) { return choose(run, a, true, false, out); }

const struct jbuiltin j_list_filters[] = {
    {"length", filter_length, 0, ""},
    {"count", filter_length, 0, ""},
    {"list", filter_list, 0, ""},
    {"first", filter_first, 0, ""},
    {"last", filter_last, 0, ""},
    {"reverse", filter_reverse, 0, ""},
    {"join", filter_join, 0, "d attribute"},
    {"items", filter_items, 0, ""},
    {"attr", filter_attr, 1, "name"},
    {"sort", filter_sort, 0, "reverse case_sensitive attribute"},
    {"dictsort", filter_dictsort, 0, "case_sensitive by reverse"},
    {"unique", filter_unique, 0, "case_sensitive attribute"},
    {"min", filter_min, 0, "case_sensitive attribute"},
    {"max", filter_max, 0, "case_sensitive attribute"},
    {"sum", filter_sum, 0, "attribute start"},
    {"batch", filter_batch, 1, "linecount fill_with"},
    {"groupby", filter_groupby, 1, "attribute default case_sensitive"},
    {"map", filter_map, 0, NULL},
    {"select", filter_select, 0, NULL},
    {"reject", filter_reject, 0, NULL},
    {"selectattr", filter_selectattr, 0, NULL},
    {"rejectattr", filter_rejectattr, 0, NULL},
    {0},
};
