/* Added tokens of a tokenizer.json, and the names that it and tokenizer_config.json give. */
#include "llm/hf.h"

static sconce_status read_token(sconce_tokenizer *t, struct json v, sconce_error *err) {
  int64_t id = 0;
  json_integer(json_member(v, "id"), &id);
  struct text text = json_text(json_member(v, "content"), &t->arena);
  if (!text.data)
    return fail(err, SCONCE_NO_MEMORY, "out of memory for added token %lld", (long long)id);
  if (text.size == 0 || text.size > MATCH_SIZE_MAX)
    return fail(err, SCONCE_BAD_FILE, "added token %lld has %zu bytes, 1 to %d are allowed",
                (long long)id, text.size, MATCH_SIZE_MAX);
  if (json_is_true(json_member(v, "single_word")))
    return fail(err, SCONCE_UNSUPPORTED, "added token '%.*s' is a single_word", TEXT(text));
  struct piece *piece = &t->vocab.pieces[id];
  bool special = json_is_true(json_member(v, "special"));
  /* A piece that the hash knows keeps its text. */
  if (piece->type == PIECE_HOLE || special) piece->type = special ? PIECE_CONTROL : PIECE_USER;
  if (!piece->text.size) piece->text = text;
  piece->strip_left = json_is_true(json_member(v, "lstrip"));
  piece->strip_right = json_is_true(json_member(v, "rstrip"));
  return SCONCE_OK;
}

/* The tokens of one pass over the text, with or without the special ones. */
static sconce_status collect(sconce_tokenizer *t, struct json tokens, uint32_t pass, bool special,
                             sconce_error *err) {
  size_t most = json_count(tokens);
  uint32_t n = 0;
  struct json_walk w;
  struct match_key *keys = arena_new(&t->arena, struct match_key, most);
  if (!keys) return fail(err, SCONCE_NO_MEMORY, "out of memory for %zu added tokens", most);
  for (json_begin(&w, tokens); json_next(&w);) {
    bool normalized = json_is_true(json_member(w.value, "normalized"));
    int64_t id = 0;
    if (normalized != (pass == ADDED_NORMALIZED)) continue;
    if (!special && json_is_true(json_member(w.value, "special"))) continue;
    json_integer(json_member(w.value, "id"), &id);
    keys[n].text = json_text(json_member(w.value, "content"), &t->arena);
    if (!keys[n].text.data)
      return fail(err, SCONCE_NO_MEMORY, "out of memory for %zu added tokens", most);
    keys[n++].id = (int32_t)id;
  }
  matcher_init(&t->added[pass][special], keys, n);
  return SCONCE_OK;
}

sconce_status hf_read_added(sconce_tokenizer *t, struct json root, sconce_error *err) {
  struct json tokens = json_member(root, "added_tokens");
  struct json_walk w;
  for (json_begin(&w, tokens); json_next(&w);) TRY(read_token(t, w.value, err));
  for (uint32_t pass = 0; pass < N_ADDED_PASSES; pass++) {
    TRY(collect(t, tokens, pass, false, err));
    TRY(collect(t, tokens, pass, true, err));
  }
  return SCONCE_OK;
}

/* ---- bos and eos ----------------------------------------------------------------------------- */

/* A token by name, which is a string or an object with "content"; -1 if absent or unknown. */
static int32_t token_of(sconce_tokenizer *t, struct json name) {
  char text[MATCH_SIZE_MAX + 1];
  if (json_is_object(name)) name = json_member(name, "content");
  size_t size = json_text_size(name);
  if (size == 0 || size >= sizeof text) return -1;
  text[json_text_write(name, text)] = 0;
  return sconce_tokenizer_special(t, text);
}

/* The token that a template post-processor puts in front of a text. */
static int32_t leading_token(sconce_tokenizer *t, struct json processor) {
  struct json_walk w;
  struct json template = processor;
  if (json_text_is(json_member(processor, "type"), "Sequence"))
    for (json_begin(&w, json_member(processor, "processors")); json_next(&w);)
      if (json_text_is(json_member(w.value, "type"), "TemplateProcessing")) template = w.value;
  json_begin(&w, json_member(template, "single"));
  if (!json_next(&w)) return -1;
  return token_of(t, json_member(json_member(w.value, "SpecialToken"), "id"));
}

static int32_t first_of(const sconce_tokenizer *t, const char *const *names, size_t n) {
  for (size_t i = 0; i < n; i++) {
    int32_t id = sconce_tokenizer_special(t, names[i]);
    if (id >= 0) return id;
  }
  return -1;
}

void hf_read_names(sconce_tokenizer *t, struct json root, struct json config) {
  /* Without a configuration: the names that known families use, the more telling ones first. */
  static const char *const begins[] = {"<|begin_of_text|>", "<s>", "<bos>", "<|im_start|>",
                                       "<|endoftext|>"};
  static const char *const ends[] = {"<|im_end|>", "<|end_of_text|>", "</s>", "<eos>",
                                     "<|endoftext|>"};
  int32_t leading = leading_token(t, json_member(root, "post_processor"));
  t->info.bos = token_of(t, json_member(config, "bos_token"));
  t->info.eos = token_of(t, json_member(config, "eos_token"));
  if (t->info.bos < 0) t->info.bos = leading;
  if (!config.at && t->info.bos < 0) t->info.bos = first_of(t, begins, 5);
  if (t->info.eos < 0) t->info.eos = first_of(t, ends, 5);
  t->info.add_bos = t->info.bos >= 0 &&
                    (leading == t->info.bos || json_is_true(json_member(config, "add_bos_token")));
}
