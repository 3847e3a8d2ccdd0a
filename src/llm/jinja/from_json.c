/* The caller's data as values. None of it is the template's own, but for the roles of messages: the
 * words that templates build markup from ("<|" + role + "|>") are a closed list, no one's text. */
#include "llm/jinja/text.h"

static sconce_status number(struct jrun *run, struct json json, struct jvalue *out) {
  int64_t n;
  double x;
  if (json_integer(json, &n)) {
    *out = j_int(n, false);
    return SCONCE_OK;
  }
  if (!json_number(json, &x)) return j_fail(run, "JSON that is no value");
  *out = j_float(x, false);
  size_t size = 0;
  while (json.at + size < json.end && json.at[size] && strchr("-0123456789", json.at[size])) size++;
  bool integer = json.at + size == json.end || !json.at[size] || !strchr(".eE", json.at[size]);
  if (!integer) return SCONCE_OK;
  out->digits = arena_copy_text(run->arena, json.at, size);
  out->size = (uint32_t)size;
  out->kind = 1;
  return out->digits ? SCONCE_OK : fail(run->err, SCONCE_NO_MEMORY, "out of memory in a template");
}

static sconce_status string(struct jrun *run, struct json json, struct jvalue *out) {
  size_t room = json_text_size(json);
  if (room > run->output) return j_fail(run, "a text of %zu bytes, at most %zu", room, run->output);
  char *data = j_new(run, char, room + 1);
  if (!data) return J_NO_ROOM;
  *out = j_string((struct text){data, json_text_write(json, data)}, false);
  return SCONCE_OK;
}

struct open {
  struct json_walk walk;
  struct jvalue dict;   /* undefined: an array */
  struct jvalue *items; /* (n) */
  size_t n;
};

/* A scalar, or an array or object that is now open. */
static sconce_status begin(struct jrun *run, struct json json, struct open *open, bool *opened,
                           struct jvalue *out) {
  TRY(j_spend(run, 1));
  *opened = json_is_array(json) || json_is_object(json);
  if (*opened) {
    *open = (struct open){.n = 0};
    json_begin(&open->walk, json);
    if (json_is_object(json)) return j_dict(run, 0, &open->dict);
    open->items = j_new(run, struct jvalue, json_count(json));
    return open->items ? SCONCE_OK : J_NO_ROOM;
  }
  if (json_is_string(json)) return string(run, json, out);
  *out = j_none();
  if (json.at && *json.at == 'n') return SCONCE_OK;
  if (json.at && (*json.at == 't' || *json.at == 'f')) {
    *out = j_bool(*json.at == 't');
    out->own = false;
    return SCONCE_OK;
  }
  return number(run, json, out);
}

/* Puts a value where the walk stands. */
static sconce_status add(struct jrun *run, struct open *open, struct jvalue v) {
  if (open->dict.type != J_DICT) {
    open->items[open->n++] = v;
    return SCONCE_OK;
  }
  struct jvalue key;
  TRY(string(run, open->walk.key, &key));
  return j_dict_set(run, open->dict.dict, key, v);
}

sconce_status j_from_json(struct jrun *run, struct json json, struct jvalue *out) {
  struct open stack[JSON_DEPTH_MAX + 1];
  size_t depth = 0;
  bool opened;
  TRY(begin(run, json, &stack[0], &opened, out));
  if (!opened) return SCONCE_OK;
  for (depth = 1; depth;) {
    struct open *top = &stack[depth - 1];
    struct jvalue v = {0};
    if (json_next(&top->walk)) {
      if (depth > JSON_DEPTH_MAX) return j_fail(run, "JSON nested deeper than %d", JSON_DEPTH_MAX);
      TRY(begin(run, top->walk.value, &stack[depth], &opened, &v));
      if (opened)
        depth++;
      else
        TRY(add(run, top, v));
      continue;
    }
    v = top->dict;
    if (v.type != J_DICT) TRY(j_list(run, JL_LIST, top->items, top->n, &v));
    if (--depth == 0)
      *out = v;
    else
      TRY(add(run, &stack[depth - 1], v));
  }
  return SCONCE_OK;
}

/* ---- messages -------------------------------------------------------------------------------- */

static bool is_known_role(struct text role) {
  static const char *const known[] = {"system", "developer", "user",    "assistant",
                                      "model",  "tool",      "ipython", "function"};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (text_is(role, known[i])) return true;
  return false;
}

static void trust_roles(struct jvalue *messages) {
  if (messages->type != J_LIST) return;
  for (size_t i = 0; i < messages->list->n; i++) {
    const struct jvalue *message = &messages->list->items[i];
    for (size_t k = 0; message->type == J_DICT && k < message->dict->n; k++) {
      struct jpair *pair = &message->dict->pairs[k];
      if (j_is(&pair->key, "role") && pair->value.type == J_STRING)
        pair->value.own = is_known_role(j_text(&pair->value));
    }
  }
}

static sconce_status from_messages(struct jrun *run, const struct jinja_message *messages, size_t n,
                                   struct jvalue *out) {
  struct jvalue *items = j_new(run, struct jvalue, n);
  if (!items) return J_NO_ROOM;
  for (size_t i = 0; i < n; i++) {
    struct text role = messages[i].role, content = messages[i].content;
    if (role.size > run->output || content.size > run->output)
      return j_fail(run, "message %zu has %zu bytes, at most %zu", i, content.size, run->output);
    TRY(j_dict(run, 2, &items[i]));
    TRY(j_dict_set(run, items[i].dict, j_string(text_of("role"), false), j_string(role, false)));
    TRY(j_dict_set(run, items[i].dict, j_string(text_of("content"), false),
                   j_string(content, false)));
  }
  return j_list(run, JL_LIST, items, n, out);
}

sconce_status j_from_variable(struct jrun *run, const struct jinja_variable *v,
                              struct jvalue *out) {
  switch (v->kind) {
  case JINJA_JSON:
    TRY(j_from_json(run, v->json, out));
    break;
  case JINJA_MESSAGES:
    TRY(from_messages(run, v->messages, v->n_messages, out));
    break;
  case JINJA_TEXT:
    *out = j_string(v->text, v->trusted);
    break;
  case JINJA_TRUTH:
    *out = j_bool(v->truth);
    break;
  case JINJA_NULL:
    *out = j_none();
    break;
  }
  if (strcmp(v->name, "messages") == 0) trust_roles(out);
  return SCONCE_OK;
}
