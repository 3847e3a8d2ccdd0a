/* Chat by template: the model's own, or one that the caller gives. What the template gets to see
 * are the names that Hugging Face's apply_chat_template gives it. */
#include "base/os.h"
#include "llm/jinja/jinja.h"
#include "llm/tokenizer.h"

/* ---- the model's own ------------------------------------------------------------------------- */

static sconce_status out_of_memory(sconce_error *err) {
  return fail(err, SCONCE_NO_MEMORY, "out of memory for the chat template");
}

/* A template that cannot be read stays unused, and the tokenizer says why. */
static sconce_status parse_own(sconce_tokenizer *t, struct text source,
                               const struct jinja_program **out, sconce_error *err) {
  struct jinja_program *program;
  sconce_error why = {0};
  sconce_status status = jinja_parse(&program, source, &t->arena, &why);
  if (status == SCONCE_NO_MEMORY) return out_of_memory(err);
  *out = program;
  if (status == SCONCE_OK || t->info.chat_template_error) return SCONCE_OK;
  t->info.chat_template_error = arena_copy_text(&t->arena, why.text, strlen(why.text));
  return t->info.chat_template_error ? SCONCE_OK : out_of_memory(err);
}

/* A string or an object with "content": how configurations name tokens. */
static sconce_status read_name(sconce_tokenizer *t, struct json v, struct text *out,
                               sconce_error *err) {
  if (json_is_object(v)) v = json_member(v, "content");
  if (!json_is_string(v)) return SCONCE_OK;
  *out = json_text(v, &t->arena);
  return out->data ? SCONCE_OK : out_of_memory(err);
}

/* [{"name": "default", "template": …}, …] or the template itself. */
static struct json named_template(struct json v, const char *name) {
  struct json_walk w;
  if (json_is_string(v)) return v;
  for (json_begin(&w, v); json_next(&w);)
    if (json_text_is(json_member(w.value, "name"), name)) return json_member(w.value, "template");
  return (struct json){0};
}

sconce_status template_load(sconce_tokenizer *t, struct json config, struct span file,
                            sconce_error *err) {
  TRY(read_name(t, json_member(config, "pad_token"), &t->pad, err));
  TRY(read_name(t, json_member(config, "unk_token"), &t->unknown, err));
  struct json v = json_member(config, "chat_template");
  struct text source = {(const char *)file.data, file.size}, tools = {0};
  if (!source.size) TRY(read_name(t, named_template(v, "default"), &source, err));
  if (!file.size) TRY(read_name(t, named_template(v, "tool_use"), &tools, err));
  if (source.size) {
    t->info.chat_template = arena_copy_text(&t->arena, source.data, source.size);
    if (!t->info.chat_template) return out_of_memory(err);
    TRY(parse_own(t, source, &t->template, err));
  }
  return tools.size ? parse_own(t, tools, &t->tool_template, err) : SCONCE_OK;
}

/* ---- what it gets to see --------------------------------------------------------------------- */

enum { VARIABLES_MAX = 64 };

struct variables {
  struct jinja_variable all[VARIABLES_MAX];
  size_t n;
  struct arena *arena;
  sconce_error *err;
};

static sconce_status add(struct variables *v, struct jinja_variable one) {
  if (v->n == VARIABLES_MAX)
    return fail(v->err, SCONCE_BAD_ARGUMENT, "a conversation of more than %d names", VARIABLES_MAX);
  v->all[v->n++] = one;
  return SCONCE_OK;
}

static sconce_status add_token(struct variables *v, const char *name, struct text text) {
  if (!text.data) return SCONCE_OK;
  return add(
      v, (struct jinja_variable){.name = name, .kind = JINJA_TEXT, .text = text, .trusted = true});
}

static sconce_status add_truth(struct variables *v, const char *name, bool truth) {
  return add(v, (struct jinja_variable){.name = name, .kind = JINJA_TRUTH, .truth = truth});
}

static sconce_status add_json(struct variables *v, const char *name, struct json json) {
  return add(v, (struct jinja_variable){.name = name, .kind = JINJA_JSON, .json = json});
}

static struct text piece_text(const sconce_tokenizer *t, int32_t id) {
  return id < 0 ? (struct text){0} : t->vocab.pieces[id].text;
}

static sconce_status read_json(const char *text, const char *what, struct json *root,
                               sconce_error *err) {
  sconce_status status = json_check(text_of(text), root, err);
  if (status != SCONCE_OK) error_prefix(err, "%s: ", what);
  return status;
}

static sconce_status add_conversation(struct variables *v, const char *text) {
  struct json root;
  struct json_walk w;
  TRY(read_json(text, "the conversation", &root, v->err));
  if (!json_is_array(json_member(root, "messages")))
    return fail(v->err, SCONCE_BAD_ARGUMENT, "the conversation is no object with \"messages\"");
  for (json_begin(&w, root); json_next(&w);) {
    const char *name = json_text(w.key, v->arena).data; /* zeroed behind its end */
    if (!name) return out_of_memory(v->err);
    TRY(add_json(v, name, w.value));
  }
  return SCONCE_OK;
}

/* A copy if it is no valid UTF-8. */
static sconce_status clean(sconce_tokenizer *t, struct variables *v, struct text *text) {
  const char *before = text->data;
  if (!utf8_clean(text, &t->clean)) return out_of_memory(v->err);
  if (text->data == before) return SCONCE_OK;
  text->data = arena_copy_text(v->arena, text->data, text->size);
  return text->data ? SCONCE_OK : out_of_memory(v->err);
}

static sconce_status add_messages(sconce_tokenizer *t, struct variables *v,
                                  const sconce_chat_desc *desc) {
  struct jinja_message *messages = arena_new(v->arena, struct jinja_message, desc->n_messages);
  if (!messages) return out_of_memory(v->err);
  for (size_t i = 0; i < desc->n_messages; i++) {
    const sconce_message *m = &desc->messages[i];
    messages[i].role = text_of(m->role);
    messages[i].content =
        m->size || !m->content ? (struct text){m->content, m->size} : text_of(m->content);
    TRY(clean(t, v, &messages[i].role));
    TRY(clean(t, v, &messages[i].content));
  }
  return add(v, (struct jinja_variable){.name = "messages",
                                        .kind = JINJA_MESSAGES,
                                        .messages = messages,
                                        .n_messages = desc->n_messages});
}

static sconce_status collect(sconce_tokenizer *t, struct variables *v,
                             const sconce_chat_desc *desc) {
  struct json tools;
  TRY(add_token(v, "bos_token", piece_text(t, t->info.bos)));
  TRY(add_token(v, "eos_token", piece_text(t, t->info.eos)));
  TRY(add_token(v, "pad_token", t->pad));
  TRY(add_token(v, "unk_token", t->unknown));
  TRY(add(v, (struct jinja_variable){.name = "tools", .kind = JINJA_NULL}));
  TRY(add(v, (struct jinja_variable){.name = "documents", .kind = JINJA_NULL}));
  TRY(add_truth(v, "add_generation_prompt", true));
  TRY(desc->conversation ? add_conversation(v, desc->conversation) : add_messages(t, v, desc));
  if (desc->closed) TRY(add_truth(v, "add_generation_prompt", false));
  if (desc->think) TRY(add_truth(v, "enable_thinking", desc->think == SCONCE_THINK_ON));
  if (!desc->tools) return SCONCE_OK;
  TRY(read_json(desc->tools, "the tools", &tools, v->err));
  if (!json_is_array(tools))
    return fail(v->err, SCONCE_BAD_ARGUMENT, "the tools are no list in JSON");
  return add_json(v, "tools", tools);
}

/* ---- rendering ------------------------------------------------------------------------------- */

bool template_wanted(const sconce_tokenizer *t, const sconce_chat_desc *desc) {
  return desc->chat_template || (!desc->family && (t->template || t->tool_template));
}

/* The model's template for what the variables say: some models have one for tools. */
static const struct jinja_program *choose(const sconce_tokenizer *t, const struct variables *v) {
  bool tools = false;
  for (size_t i = 0; i < v->n; i++)
    if (strcmp(v->all[i].name, "tools") == 0)
      tools = v->all[i].kind == JINJA_JSON && json_count(v->all[i].json) > 0;
  return (tools && t->tool_template) || !t->template ? t->tool_template : t->template;
}

static sconce_status render(sconce_tokenizer *t, const sconce_chat_desc *desc, bool as_ids,
                            struct arena *arena, sconce_error *err) {
  struct variables *v = arena_new(arena, struct variables, 1);
  struct jinja_program *given = NULL;
  sconce_status status = SCONCE_OK;
  if (!v) return out_of_memory(err);
  v->arena = arena;
  v->err = err;
  TRY(collect(t, v, desc));
  if (desc->chat_template) status = jinja_parse(&given, text_of(desc->chat_template), arena, err);
  struct jinja_input input = {.variables = v->all,
                              .n_variables = v->n,
                              .date = desc->date ? desc->date : os_local_seconds()};
  struct jinja_output out;
  if (status == SCONCE_OK)
    status = jinja_render(given ? given : choose(t, v), &input, arena, &out, err);
  if (status != SCONCE_OK) error_prefix(err, "chat template: ");
  TRY(status);
  if (as_ids) return tokenizer_append_marked(t, out.text, out.own, err);
  return list_append(&t->out, out.text.data, out.text.size) ? SCONCE_OK : out_of_memory(err);
}

sconce_status template_render(sconce_tokenizer *t, const sconce_chat_desc *desc, bool as_ids,
                              sconce_error *err) {
  struct arena arena;
  arena_init(&arena, &t->arena.allocator);
  sconce_status status = render(t, desc, as_ids, &arena, err);
  arena_free(&arena);
  return status;
}
