/* Values: see value.h. Comparing nested lists recurses, at most J_DEPTH_MAX deep, since no list is
 * nested deeper. */
#include "llm/jinja/value.h"

#include "llm/jinja/text.h"

/* ---- limits ---------------------------------------------------------------------------------- */

void *j_alloc(struct jrun *run, size_t count, size_t size) {
  size_t bytes;
  if (!mul_size(count, size, &bytes) || bytes > run->memory) {
    (void)!fail(run->err, SCONCE_NO_MEMORY, "the template needs more than %zu bytes of memory",
                run->memory_all);
    return NULL;
  }
  void *data = arena_alloc(run->arena, count, size, _Alignof(max_align_t));
  if (!data) (void)!fail(run->err, SCONCE_NO_MEMORY, "out of memory in a template");
  run->memory -= bytes;
  return data;
}

sconce_status j_spend(struct jrun *run, size_t steps) {
  if (steps <= run->steps) {
    run->steps -= steps;
    return SCONCE_OK;
  }
  run->steps = 0;
  return fail(run->err, SCONCE_BAD_FILE, "the template takes more than %llu steps",
              (unsigned long long)run->steps_all);
}

/* ---- lists ----------------------------------------------------------------------------------- */

uint8_t j_depth(const struct jvalue *v) {
  if (v->type == J_LIST) return v->list->depth;
  return v->type == J_DICT ? v->dict->depth : 0;
}

/* The depth of what holds `v`, at least `depth`. */
static sconce_status hold(struct jrun *run, const struct jvalue *v, uint8_t *depth) {
  uint8_t inner = j_depth(v);
  if (inner >= J_DEPTH_MAX) return j_fail(run, "a value nested deeper than %d", J_DEPTH_MAX);
  if (*depth <= inner) *depth = (uint8_t)(inner + 1);
  return SCONCE_OK;
}

sconce_status j_list(struct jrun *run, enum jlist_kind kind, const struct jvalue *items, size_t n,
                     struct jvalue *out) {
  struct jlist *list = j_new(run, struct jlist, 1);
  if (!list) return J_NO_ROOM;
  *list = (struct jlist){.items = items, .n = n, .kind = (uint8_t)kind, .depth = 1};
  TRY(j_spend(run, n / 4));
  for (size_t i = 0; i < n; i++) TRY(hold(run, &items[i], &list->depth));
  *out = (struct jvalue){.type = J_LIST, .list = list};
  return SCONCE_OK;
}

sconce_status j_pair(struct jrun *run, struct jvalue a, struct jvalue b, struct jvalue *out) {
  struct jvalue *two = j_new(run, struct jvalue, 2);
  if (!two) return J_NO_ROOM;
  two[0] = a;
  two[1] = b;
  return j_list(run, JL_TUPLE, two, 2, out);
}

/* ---- dictionaries ---------------------------------------------------------------------------- */

enum { FEW = 8 }; /* pairs that are found by looking at each */

static uint64_t hash_key(const struct jvalue *key) {
  if (key->type == J_STRING) {
    uint64_t hash = 1469598103934665603u;
    for (uint32_t i = 0; i < key->size; i++) hash = (hash ^ (uint8_t)key->text[i]) * 1099511628211u;
    return hash ^ hash >> 29;
  }
  double x = j_is_number(key) ? j_as_double(key) : -0.5;
  uint64_t bits;
  x = x == 0 ? 0 : x; /* -0.0 equals 0 */
  memcpy(&bits, &x, sizeof bits);
  return (bits ^ bits >> 31) * 0x9e3779b97f4a7c15u >> 16;
}

static bool same_key(const struct jvalue *a, const struct jvalue *b) {
  if (a->type == J_STRING || b->type == J_STRING)
    return a->type == b->type && text_equal(j_text(a), j_text(b));
  if (a->type == J_NONE || b->type == J_NONE) return a->type == b->type;
  if (a->type == J_FLOAT || b->type == J_FLOAT) return j_as_double(a) == j_as_double(b);
  return (a->type == J_BOOL ? a->truth : a->integer) == (b->type == J_BOOL ? b->truth : b->integer);
}

static bool is_key(const struct jvalue *v) {
  return v->type == J_STRING || v->type == J_NONE || j_is_number(v);
}

/* Bytes of a key that its hash goes through. */
static size_t key_size(const struct jvalue *key) { return key->type == J_STRING ? key->size : 0; }

/* *looked: at how many pairs. */
static const struct jvalue *look(const struct jdict *dict, const struct jvalue *key,
                                 size_t *looked) {
  *looked = 0;
  if (!is_key(key)) return NULL;
  if (!dict->slots) {
    for (size_t i = 0; i < dict->n; i++)
      if (same_key(&dict->pairs[i].key, key)) return &dict->pairs[i].value;
    return NULL;
  }
  for (size_t slot = hash_key(key) & dict->mask; dict->slots[slot];
       slot = (slot + 1) & dict->mask) {
    const struct jpair *pair = &dict->pairs[dict->slots[slot] - 1];
    ++*looked;
    if (same_key(&pair->key, key)) return &pair->value;
  }
  return NULL;
}

sconce_status j_dict_get(struct jrun *run, const struct jdict *dict, const struct jvalue *key,
                         const struct jvalue **out) {
  size_t looked;
  *out = look(dict, key, &looked);
  return j_spend(run, looked / 4 + key_size(key) / 16);
}

const struct jvalue *j_dict_find(const struct jdict *dict, struct text key) {
  struct jvalue v = j_string(key, true);
  size_t looked;
  return look(dict, &v, &looked);
}

static sconce_status index_pair(struct jrun *run, struct jdict *dict, size_t i) {
  const struct jvalue *key = &dict->pairs[i].key;
  size_t slot = hash_key(key) & dict->mask, looked = 0;
  for (; dict->slots[slot]; looked++) slot = (slot + 1) & dict->mask;
  dict->slots[slot] = (uint32_t)(i + 1);
  return j_spend(run, looked / 4 + key_size(key) / 16);
}

/* Room for one pair more; at most half of the slots are taken. */
static sconce_status grow(struct jrun *run, struct jdict *dict) {
  if (dict->n < dict->cap) return SCONCE_OK;
  size_t cap = dict->cap ? 2 * dict->cap : FEW;
  struct jpair *pairs = j_new(run, struct jpair, cap);
  if (!pairs) return J_NO_ROOM;
  if (dict->n) memcpy(pairs, dict->pairs, dict->n * sizeof *pairs);
  dict->pairs = pairs;
  dict->cap = cap;
  if (cap <= FEW) return SCONCE_OK;
  size_t slots = 16;
  while (slots < 2 * cap) slots *= 2;
  dict->slots = j_new(run, uint32_t, slots);
  if (!dict->slots) return J_NO_ROOM;
  dict->mask = slots - 1;
  for (size_t i = 0; i < dict->n; i++) TRY(index_pair(run, dict, i));
  return SCONCE_OK;
}

sconce_status j_dict(struct jrun *run, size_t room, struct jvalue *out) {
  struct jdict *dict = j_new(run, struct jdict, 1);
  if (!dict) return J_NO_ROOM;
  dict->depth = 1;
  if (room > 0 && room <= FEW) {
    dict->pairs = j_new(run, struct jpair, room);
    if (!dict->pairs) return J_NO_ROOM;
    dict->cap = room;
  }
  *out = (struct jvalue){.type = J_DICT, .dict = dict};
  return SCONCE_OK;
}

sconce_status j_dict_set(struct jrun *run, struct jdict *dict, struct jvalue key,
                         struct jvalue value) {
  if (!is_key(&key)) return j_fail(run, "%s as the key of a dict", j_type_name(&key));
  TRY(j_spend(run, 1));
  TRY(hold(run, &value, &dict->depth));
  const struct jvalue *there;
  TRY(j_dict_get(run, dict, &key, &there));
  if (there) {
    size_t i = (size_t)((const struct jpair *)(const void *)((const char *)there -
                                                             offsetof(struct jpair, value)) -
                        dict->pairs);
    dict->pairs[i].value = value;
    return SCONCE_OK;
  }
  TRY(grow(run, dict));
  dict->pairs[dict->n] = (struct jpair){key, value};
  dict->n++;
  return dict->slots ? index_pair(run, dict, dict->n - 1) : SCONCE_OK;
}

/* ---- asking ---------------------------------------------------------------------------------- */

const char *j_type_name(const struct jvalue *v) {
  static const char *const names[] = {[J_UNDEFINED] = "Undefined", [J_NONE] = "NoneType",
                                      [J_BOOL] = "bool",           [J_INT] = "int",
                                      [J_FLOAT] = "float",         [J_STRING] = "str",
                                      [J_DICT] = "dict",           [J_SPACE] = "Namespace",
                                      [J_LOOP] = "LoopContext",    [J_MACRO] = "Macro",
                                      [J_FUNCTION] = "method"};
  static const char *const lists[] = {
      [JL_LIST] = "list",          [JL_TUPLE] = "tuple",        [JL_RANGE] = "range",
      [JL_KEYS] = "dict_keys",     [JL_VALUES] = "dict_values", [JL_ITEMS] = "dict_items",
      [JL_GENERATOR] = "generator"};
  return v->type == J_LIST ? lists[v->list->kind] : names[v->type];
}

bool j_is_number(const struct jvalue *v) {
  return v->type == J_INT || v->type == J_FLOAT || v->type == J_BOOL;
}

double j_as_double(const struct jvalue *v) {
  return v->type == J_FLOAT ? v->number : v->type == J_INT ? (double)v->integer : v->truth;
}

bool j_truth(const struct jvalue *v) {
  switch (v->type) {
  case J_UNDEFINED:
  case J_NONE:
    return false;
  case J_BOOL:
    return v->truth;
  case J_INT:
    return v->integer != 0;
  case J_FLOAT:
    return v->number != 0;
  case J_STRING:
    return v->size != 0;
  case J_LIST:
    return v->list->n != 0 || v->list->kind == JL_GENERATOR;
  case J_DICT:
    return v->dict->n != 0;
  default:
    return true;
  }
}

sconce_status j_fail_undefined(struct jrun *run, const struct jvalue *v) {
  struct jvalue of = {.type = v->of, .list = &(struct jlist){0}};
  struct text name = j_text(v);
  switch (v->kind) {
  case JU_ATTRIBUTE:
    return j_fail(run, "a %s has no '%.*s'", j_type_name(&of), TEXT(name));
  case JU_ITEM:
    return j_fail(run, "a %s has no such element", j_type_name(&of));
  case JU_UNSAFE:
    return j_fail(run, "'%.*s' would change a %s, which templates may not", TEXT(name),
                  j_type_name(&of));
  case JU_HINT:
    return j_fail(run, "%.*s", TEXT(name));
  default:
    return j_fail(run, "'%.*s' is undefined", TEXT(name));
  }
}

sconce_status j_as_int(struct jrun *run, const struct jvalue *v, const char *what, int64_t *out) {
  if (v->type == J_UNDEFINED) return j_fail_undefined(run, v);
  if (v->type != J_INT && v->type != J_BOOL)
    return j_fail(run, "%s is a %s, not an integer", what, j_type_name(v));
  *out = v->type == J_INT ? v->integer : v->truth;
  return SCONCE_OK;
}

sconce_status j_length(struct jrun *run, const struct jvalue *v, size_t *out) {
  *out = 0;
  switch (v->type) {
  case J_UNDEFINED:
    return SCONCE_OK;
  case J_STRING:
    *out = j_count_characters(j_text(v));
    return j_spend(run, v->size / 64);
  case J_DICT:
    *out = v->dict->n;
    return SCONCE_OK;
  case J_LOOP:
    *out = v->loop->n;
    return SCONCE_OK;
  case J_LIST:
    *out = v->list->n;
    if (v->list->kind != JL_GENERATOR) return SCONCE_OK;
  }
  return j_fail(run, "a %s has no length", j_type_name(v));
}

static sconce_status characters(struct jrun *run, const struct jvalue *v,
                                const struct jvalue **items, size_t *n) {
  struct jvalue *out = j_new(run, struct jvalue, j_count_characters(j_text(v)));
  if (!out) return J_NO_ROOM;
  TRY(j_spend(run, v->size / 4));
  *n = 0;
  for (uint32_t at = 0, size; at < v->size; at += size) {
    size = j_character_size(v->text + at);
    out[*n] = j_part(v, at, size);
    out[(*n)++].kind = 0; /* safe is the whole only */
  }
  *items = out;
  return SCONCE_OK;
}

sconce_status j_items(struct jrun *run, const struct jvalue *v, const struct jvalue **items,
                      size_t *n) {
  *items = NULL;
  *n = 0;
  if (v->type == J_UNDEFINED) return SCONCE_OK;
  if (v->type == J_STRING) return characters(run, v, items, n);
  if (v->type == J_LIST) {
    if (v->list->spent) return SCONCE_OK;
    v->list->spent = v->list->kind == JL_GENERATOR;
    *items = v->list->items;
    *n = v->list->n;
    return SCONCE_OK;
  }
  if (v->type != J_DICT) return j_fail(run, "a %s cannot be looped over", j_type_name(v));
  struct jvalue *keys = j_new(run, struct jvalue, v->dict->n);
  if (!keys) return J_NO_ROOM;
  for (size_t i = 0; i < v->dict->n; i++) keys[i] = v->dict->pairs[i].key;
  *items = keys;
  *n = v->dict->n;
  return j_spend(run, *n / 4);
}

/* ---- comparing ------------------------------------------------------------------------------- */

static sconce_status equal_lists(struct jrun *run, const struct jlist *a, const struct jlist *b,
                                 bool *out) {
  *out = a == b;
  if (a == b || a->kind != b->kind || a->n != b->n || a->kind == JL_GENERATOR) return SCONCE_OK;
  *out = true;
  for (size_t i = 0; i < a->n && *out; i++) TRY(j_equal(run, &a->items[i], &b->items[i], out));
  return SCONCE_OK;
}

static sconce_status equal_dicts(struct jrun *run, const struct jdict *a, const struct jdict *b,
                                 bool *out) {
  *out = a->n == b->n;
  for (size_t i = 0; i < a->n && *out; i++) {
    const struct jvalue *other;
    TRY(j_dict_get(run, b, &a->pairs[i].key, &other));
    *out = other != NULL;
    if (other) TRY(j_equal(run, &a->pairs[i].value, other, out));
  }
  return SCONCE_OK;
}

sconce_status j_equal(struct jrun *run, const struct jvalue *a, const struct jvalue *b, bool *out) {
  TRY(j_spend(run, 1));
  *out = false;
  if (is_key(a) && is_key(b)) {
    *out = same_key(a, b);
    return key_size(a) == key_size(b) ? j_spend(run, key_size(a) / 64) : SCONCE_OK;
  }
  if (a->type != b->type) return SCONCE_OK;
  if (a->type == J_LIST) return equal_lists(run, a->list, b->list, out);
  if (a->type == J_DICT) return equal_dicts(run, a->dict, b->dict, out);
  *out = a->type == J_UNDEFINED || a->space == b->space; /* else the same thing, or not equal */
  return SCONCE_OK;
}

static sconce_status order_lists(struct jrun *run, const struct jlist *a, const struct jlist *b,
                                 int *out) {
  for (size_t i = 0; i < a->n && i < b->n; i++) {
    bool equal;
    TRY(j_equal(run, &a->items[i], &b->items[i], &equal));
    if (!equal) return j_order(run, &a->items[i], &b->items[i], out);
  }
  *out = (a->n > b->n) - (a->n < b->n);
  return SCONCE_OK;
}

sconce_status j_order(struct jrun *run, const struct jvalue *a, const struct jvalue *b, int *out) {
  TRY(j_spend(run, 1));
  if (a->type == J_UNDEFINED) return j_fail_undefined(run, a);
  if (b->type == J_UNDEFINED) return j_fail_undefined(run, b);
  if (a->type == J_STRING && b->type == J_STRING) { /* UTF-8 is in the order of its characters */
    size_t size = a->size < b->size ? a->size : b->size;
    int sign = size ? memcmp(a->text, b->text, size) : 0;
    *out = sign ? sign : (a->size > b->size) - (a->size < b->size);
    return j_spend(run, size / 64);
  }
  if (j_is_number(a) && j_is_number(b)) {
    if (a->type == J_INT && b->type == J_INT) {
      *out = (a->integer > b->integer) - (a->integer < b->integer);
    } else {
      double x = j_as_double(a), y = j_as_double(b);
      *out = (x > y) - (x < y);
    }
    return SCONCE_OK;
  }
  if (a->type == J_LIST && b->type == J_LIST && a->list->kind == b->list->kind &&
      a->list->kind <= JL_TUPLE)
    return order_lists(run, a->list, b->list, out);
  return j_fail(run, "a %s and a %s have no order", j_type_name(a), j_type_name(b));
}

sconce_status j_contains(struct jrun *run, const struct jvalue *all, const struct jvalue *one,
                         bool *out) {
  *out = false;
  if (all->type == J_DICT) {
    if (one->type == J_DICT || (one->type == J_LIST && one->list->kind == JL_LIST))
      return j_fail(run, "%s as the key of a dict", j_type_name(one));
    const struct jvalue *found;
    TRY(j_dict_get(run, all->dict, one, &found));
    *out = found != NULL;
    return SCONCE_OK;
  }
  if (all->type == J_STRING) {
    size_t at;
    if (one->type != J_STRING) return j_fail(run, "'in' a str with a %s", j_type_name(one));
    TRY(j_find(run, j_text(all), j_text(one), &at));
    *out = at != SIZE_MAX;
    return SCONCE_OK;
  }
  const struct jvalue *items;
  size_t n;
  TRY(j_items(run, all, &items, &n));
  for (size_t i = 0; i < n && !*out; i++) TRY(j_equal(run, &items[i], one, out));
  return SCONCE_OK;
}

/* ---- sorting --------------------------------------------------------------------------------- */

struct sorted {
  struct jvalue key, item;
};

static sconce_status merge(struct jrun *run, const struct sorted *from, struct sorted *to,
                           size_t ends[3], bool reverse) {
  size_t left = ends[0], right = ends[1];
  for (size_t i = ends[0]; i < ends[2]; i++) {
    bool take_left = right == ends[2];
    if (left < ends[1] && right < ends[2]) {
      int order;
      TRY(j_order(run, &from[left].key, &from[right].key, &order));
      take_left = reverse ? order >= 0 : order <= 0;
    }
    to[i] = take_left ? from[left++] : from[right++];
  }
  return SCONCE_OK;
}

sconce_status j_sort(struct jrun *run, struct jvalue *keys, struct jvalue *items, size_t n,
                     bool reverse) {
  struct sorted *from = j_new(run, struct sorted, n), *to = j_new(run, struct sorted, n);
  if (!from || !to) return J_NO_ROOM;
  for (size_t i = 0; i < n; i++) from[i] = (struct sorted){keys[i], items[i]};
  for (size_t width = 1; width < n; width *= 2) {
    for (size_t i = 0; i < n; i += 2 * width) {
      size_t mid = i + width < n ? i + width : n, end = i + 2 * width < n ? i + 2 * width : n;
      TRY(merge(run, from, to, (size_t[3]){i, mid, end}, reverse));
    }
    struct sorted *swap = from;
    from = to;
    to = swap;
  }
  for (size_t i = 0; i < n; i++) keys[i] = from[i].key, items[i] = from[i].item;
  return SCONCE_OK;
}
