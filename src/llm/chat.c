/* Chat: how a family of models writes messages, for models without a template of their own (that is
 * template.c's). A conversation is rendered as parts, special tokens and text; as ids only what the
 * family's own markup names becomes a special token, so that a message cannot close its turn and
 * open another. */
#include "llm/tokenizer.h"

/* ---- where parts go -------------------------------------------------------------------------- */

struct render {
  sconce_tokenizer *t;
  const char *family;
  bool as_ids; /* text between special tokens waits in t->out until it is encoded at once */
  sconce_error *err;
};

static sconce_status put_text(struct render *r, struct text text) {
  if (list_append(&r->t->out, text.data, text.size)) return SCONCE_OK;
  return fail(r->err, SCONCE_NO_MEMORY, "out of memory while rendering a conversation");
}

static sconce_status flush(struct render *r) {
  if (!r->as_ids || r->t->out.n == 0) return SCONCE_OK;
  struct text text = {r->t->out.data, r->t->out.n};
  TRY(tokenizer_append(r->t, text, 0, r->err));
  r->t->out.n = 0;
  return SCONCE_OK;
}

static sconce_status put_special(struct render *r, const char *name) {
  if (!name) return SCONCE_OK;
  if (!r->as_ids) return put_text(r, text_of(name));
  int32_t id = sconce_tokenizer_special(r->t, name);
  if (id < 0)
    return fail(r->err, SCONCE_BAD_ARGUMENT,
                "chat family %s needs the token '%s', which the vocabulary does not have",
                r->family, name);
  TRY(flush(r));
  if (push_id(r->t, id)) return SCONCE_OK;
  return fail(r->err, SCONCE_NO_MEMORY, "out of memory while rendering a conversation");
}

static sconce_status put(struct render *r, const char *text) { return put_text(r, text_of(text)); }

/* ---- families -------------------------------------------------------------------------------- */

/* A turn is: open role header_end header_text content close close_text. */
struct family {
  const char *name;
  const char *begin; /* special tokens are the names that stand alone here; NULL: none */
  const char *open, *header_end, *header_text, *close, *close_text;
  bool trim;                  /* white space around a content goes */
  const char *default_system; /* if the conversation does not start with a system message */
  sconce_status (*render)(struct render *r, const struct family *f, const sconce_chat_desc *desc);
};

static struct text content_of(const sconce_message *m) {
  return m->size || !m->content ? (struct text){m->content, m->size} : text_of(m->content);
}

static struct text trim(struct text text) { return unicode_trim_end(unicode_trim_start(text)); }

static sconce_status put_turn(struct render *r, const struct family *f, const char *role,
                              struct text content) {
  TRY(put_special(r, f->open));
  TRY(put(r, role));
  TRY(put_special(r, f->header_end));
  TRY(put(r, f->header_text));
  TRY(put_text(r, content));
  TRY(put_special(r, f->close));
  return put(r, f->close_text);
}

static sconce_status render_turns(struct render *r, const struct family *f,
                                  const sconce_chat_desc *desc) {
  bool system = desc->n_messages && strcmp(desc->messages[0].role, "system") == 0;
  TRY(put_special(r, f->begin));
  if (f->default_system && desc->n_messages && !system)
    TRY(put_turn(r, f, "system", text_of(f->default_system)));
  for (size_t i = 0; i < desc->n_messages; i++) {
    struct text content = content_of(&desc->messages[i]);
    TRY(put_turn(r, f, desc->messages[i].role, f->trim ? trim(content) : content));
  }
  if (desc->closed) return SCONCE_OK;
  TRY(put_special(r, f->open));
  TRY(put(r, "assistant"));
  TRY(put_special(r, f->header_end));
  return put(r, f->header_text);
}

static sconce_status put_question(struct render *r, struct text system, struct text content) {
  TRY(put(r, "[INST] "));
  if (system.data) {
    TRY(put(r, "<<SYS>>\n"));
    TRY(put_text(r, system));
    TRY(put(r, "\n<</SYS>>\n\n"));
  } else {
    content = unicode_trim_start(content);
  }
  TRY(put_text(r, unicode_trim_end(content)));
  return put(r, " [/INST]");
}

/* <s>[INST] <<SYS>> system <</SYS>> user [/INST] answer </s><s>[INST] … : every exchange is a text
 * of its own, the system message is part of the first. */
static sconce_status render_llama2(struct render *r, const struct family *f,
                                   const sconce_chat_desc *desc) {
  struct text system = {0};
  for (size_t i = 0; i < desc->n_messages; i++) {
    const sconce_message *m = &desc->messages[i];
    if (strcmp(m->role, "system") == 0) {
      if (i > 0)
        return fail(r->err, SCONCE_BAD_ARGUMENT,
                    "message %zu: chat family llama2 takes a system message first only", i);
      system = content_of(m);
    } else if (strcmp(m->role, "assistant") == 0) {
      TRY(put(r, " "));
      TRY(put_text(r, trim(content_of(m))));
      TRY(put(r, " "));
      TRY(put_special(r, f->close));
    } else {
      TRY(put_special(r, f->begin));
      TRY(put_question(r, system, content_of(m)));
      system = (struct text){0};
    }
  }
  return SCONCE_OK;
}

/* Contents as they are, for models that only continue text: an answer follows what it goes on from,
 * anything else begins a line. */
static sconce_status render_plain(struct render *r, const struct family *f,
                                  const sconce_chat_desc *desc) {
  int32_t bos = r->t->info.bos;
  (void)f;
  if (r->as_ids && r->t->info.add_bos && bos >= 0 && !push_id(r->t, bos))
    return fail(r->err, SCONCE_NO_MEMORY, "out of memory while rendering a conversation");
  for (size_t i = 0; i < desc->n_messages; i++) {
    if (i > 0 && strcmp(desc->messages[i].role, "assistant") != 0) TRY(put(r, "\n"));
    TRY(put_text(r, content_of(&desc->messages[i])));
  }
  return SCONCE_OK;
}

#define CHATML                                                                                     \
  .open = "<|im_start|>", .header_text = "\n", .close = "<|im_end|>", .close_text = "\n",          \
  .render = render_turns

static const struct family families[] = {
    {.name = "chatml", CHATML},
    {.name = "smollm2",
     CHATML,
     .default_system = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"},
    {.name = "llama3",
     .begin = "<|begin_of_text|>",
     .open = "<|start_header_id|>",
     .header_end = "<|end_header_id|>",
     .header_text = "\n\n",
     .close = "<|eot_id|>",
     .close_text = "",
     .trim = true,
     .render = render_turns},
    {.name = "llama2", .begin = "<s>", .close = "</s>", .render = render_llama2},
    {.name = "plain", .render = render_plain},
};
enum { N_FAMILIES = sizeof families / sizeof *families };

const char *sconce_chat_family_name(size_t i) { return i < N_FAMILIES ? families[i].name : NULL; }

/* ---- choosing -------------------------------------------------------------------------------- */

const char *sconce_chat_family(const sconce_tokenizer *t) {
  if (!t) return "plain";
  const char *template = t->info.chat_template;
  if (template) {
    if (strstr(template, "<|start_header_id|>")) return "llama3";
    if (strstr(template, "<|im_start|>"))
      return strstr(template, "named SmolLM") ? "smollm2" : "chatml";
    if (strstr(template, "[INST]")) return "llama2";
  }
  if (sconce_tokenizer_special(t, "<|start_header_id|>") >= 0) return "llama3";
  if (sconce_tokenizer_special(t, "<|im_start|>") < 0) return "plain";
  /* SmolLM2's vocabulary is StarCoder's with ChatML tokens; no other family has both. */
  return sconce_tokenizer_special(t, "<gh_stars>") >= 0 ? "smollm2" : "chatml";
}

/* A message that is a role and a text. */
static sconce_status read_message(struct json v, size_t i, struct arena *arena, sconce_message *out,
                                  sconce_error *err) {
  struct json role = json_member(v, "role"), content = json_member(v, "content");
  if (!json_is_string(role) || !json_is_string(content) || json_member(v, "tool_calls").at)
    return fail(err, SCONCE_UNSUPPORTED,
                "message %zu is more than a role and a text, which needs a template", i);
  struct text text = json_text(content, arena);
  *out = (sconce_message){json_text(role, arena).data, text.data, text.size};
  if (out->role && out->content) return SCONCE_OK;
  return fail(err, SCONCE_NO_MEMORY, "out of memory for a conversation");
}

/* What a family can make of a conversation in JSON. */
static sconce_status read_conversation(const char *text, struct arena *arena,
                                       sconce_chat_desc *desc, sconce_error *err) {
  struct json root;
  struct json_walk w;
  TRY(json_check(text_of(text), &root, err));
  struct json messages = json_member(root, "messages");
  if (!json_is_array(messages))
    return fail(err, SCONCE_BAD_ARGUMENT, "the conversation is no object with \"messages\"");
  if (!json_is_null(json_member(root, "tools")) || json_member(root, "enable_thinking").at)
    return fail(err, SCONCE_UNSUPPORTED, "tools and a choice about thinking need a template");
  struct json prompt = json_member(root, "add_generation_prompt");
  if (prompt.at && !json_is_true(prompt)) desc->closed = true;
  sconce_message *all = arena_new(arena, sconce_message, json_count(messages));
  if (!all) return fail(err, SCONCE_NO_MEMORY, "out of memory for a conversation");
  for (json_begin(&w, messages); json_next(&w); desc->n_messages++)
    TRY(read_message(w.value, desc->n_messages, arena, &all[desc->n_messages], err));
  desc->messages = all;
  return SCONCE_OK;
}

static sconce_status render_by(sconce_tokenizer *t, const char *name, const sconce_chat_desc *desc,
                               bool as_ids, sconce_error *err) {
  if (desc->tools || desc->think)
    return fail(err, SCONCE_UNSUPPORTED, "tools and a choice about thinking need a template");
  for (size_t i = 0; i < N_FAMILIES; i++) {
    if (strcmp(families[i].name, name) != 0) continue;
    struct render r = {.t = t, .family = name, .as_ids = as_ids, .err = err};
    TRY(families[i].render(&r, &families[i], desc));
    return flush(&r);
  }
  return fail(err, SCONCE_BAD_ARGUMENT, "chat family '%s' is not known", name);
}

static sconce_status render_family(sconce_tokenizer *t, const sconce_chat_desc *desc, bool as_ids,
                                   sconce_error *err) {
  const char *name = desc->family ? desc->family : sconce_chat_family(t);
  if (!desc->conversation) return render_by(t, name, desc, as_ids, err);
  struct arena arena;
  sconce_chat_desc read = *desc;
  arena_init(&arena, &t->arena.allocator);
  sconce_status status = read_conversation(desc->conversation, &arena, &read, err);
  if (status != SCONCE_OK) error_prefix(err, "chat family %s: ", name);
  if (status == SCONCE_OK) status = render_by(t, name, &read, as_ids, err);
  arena_free(&arena);
  return status;
}

static sconce_status render(sconce_tokenizer *t, const sconce_chat_desc *desc, bool as_ids,
                            sconce_error *err) {
  t->ids.n = t->out.n = 0;
  if (desc->conversation && desc->n_messages)
    return fail(err, SCONCE_BAD_ARGUMENT, "messages twice: as they are and in JSON");
  if (desc->n_messages && !desc->messages)
    return fail(err, SCONCE_BAD_ARGUMENT, "%zu messages at NULL", desc->n_messages);
  if (desc->chat_template && desc->family)
    return fail(err, SCONCE_BAD_ARGUMENT, "a chat template and a chat family");
  for (size_t i = 0; i < desc->n_messages; i++)
    if (!desc->messages[i].role || (!desc->messages[i].content && desc->messages[i].size))
      return fail(err, SCONCE_BAD_ARGUMENT, "message %zu has no role or no content", i);
  return template_wanted(t, desc) ? template_render(t, desc, as_ids, err)
                                  : render_family(t, desc, as_ids, err);
}

sconce_status sconce_chat_text(sconce_tokenizer *t, const sconce_chat_desc *desc, const char **text,
                               size_t *size, sconce_error *err) {
  if (!t || !desc || !text || !size)
    return fail(err, SCONCE_BAD_ARGUMENT, "tokenizer, desc, text or size is NULL");
  *text = "";
  *size = 0;
  TRY(render(t, desc, false, err));
  if (!list_append(&t->out, "", 1))
    return fail(err, SCONCE_NO_MEMORY, "out of memory while rendering a conversation");
  *text = t->out.data;
  *size = t->out.n - 1;
  return SCONCE_OK;
}

sconce_status sconce_chat_encode(sconce_tokenizer *t, const sconce_chat_desc *desc,
                                 const int32_t **ids, size_t *n_ids, sconce_error *err) {
  if (!t || !desc || !ids || !n_ids)
    return fail(err, SCONCE_BAD_ARGUMENT, "tokenizer, desc, ids or n_ids is NULL");
  *ids = NULL;
  *n_ids = 0;
  TRY(render(t, desc, true, err));
  *ids = t->ids.data;
  *n_ids = t->ids.n;
  return SCONCE_OK;
}
