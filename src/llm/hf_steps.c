/* The normalizer and the pre_tokenizer of a tokenizer.json. What is not known is refused by name:
 * a step that is left out would give other ids without a word. */
#include "llm/hf.h"

static sconce_status unsupported(const char *what, struct json v, sconce_error *err) {
  char name[64] = "?";
  struct json type = json_member(v, "type");
  size_t size = json_text_size(type);
  if (size && size < sizeof name) name[json_text_write(type, name)] = 0;
  return fail(err, SCONCE_UNSUPPORTED, "%s '%s' is not supported", what, name);
}

/* The i-th step of a Sequence, or the step itself; absent past the last. */
static struct json step(struct json v, const char *list, uint32_t i) {
  if (!json_text_is(json_member(v, "type"), "Sequence")) return i == 0 ? v : (struct json){0};
  struct json_walk w;
  for (json_begin(&w, json_member(v, list)); json_next(&w);)
    if (i-- == 0) return w.value;
  return (struct json){0};
}

static sconce_status read_normalizer(sconce_tokenizer *t, struct json v, sconce_error *err) {
  if (json_is_null(v)) return SCONCE_OK;
  for (uint32_t i = 0; i < 64; i++) {
    struct json one = step(v, "normalizers", i);
    if (!one.at) return SCONCE_OK;
    if (!json_text_is(json_member(one, "type"), "NFC")) return unsupported("normalizer", one, err);
    t->bytes.nfc = true;
  }
  return fail(err, SCONCE_UNSUPPORTED, "more than 64 normalizers");
}

static sconce_status add_stage(sconce_tokenizer *t, enum split_kind kind, sconce_error *err) {
  struct split *split = &t->bytes.split;
  if (split->n_stages == SPLIT_STAGES_MAX)
    return fail(err, SCONCE_UNSUPPORTED, "more than %d pre-tokenizers", SPLIT_STAGES_MAX);
  split->stages[split->n_stages++] = kind;
  return SCONCE_OK;
}

/* Matches become pieces: "Isolated", or the other way round "Removed" of what does not match. */
static sconce_status read_split(sconce_tokenizer *t, struct json v, sconce_error *err) {
  struct json regex = json_member(json_member(v, "pattern"), "Regex");
  struct json behavior = json_member(v, "behavior");
  bool invert = json_is_true(json_member(v, "invert"));
  enum split_kind kind;
  if (!json_text_is(behavior, invert ? "Removed" : "Isolated"))
    return fail(err, SCONCE_UNSUPPORTED, "a Split pre-tokenizer that does not keep its matches");
  struct text text = json_text(regex, &t->arena);
  if (!text.data) return fail(err, SCONCE_NO_MEMORY, "out of memory for an expression");
  if (!split_find(text, &kind))
    return fail(err, SCONCE_UNSUPPORTED, "the pre-tokenizer's expression '%.*s' is not a known one",
                TEXT(text));
  return add_stage(t, kind, err);
}

static sconce_status read_byte_level(sconce_tokenizer *t, struct json v, sconce_error *err) {
  struct json regex = json_member(v, "use_regex"), prefix = json_member(v, "add_prefix_space");
  bool use_regex = !regex.at || json_is_true(regex);
  t->bytes.prefix_space = !prefix.at || json_is_true(prefix);
  if (t->bytes.prefix_space && t->bytes.split.n_stages)
    return fail(err, SCONCE_UNSUPPORTED, "add_prefix_space after another pre-tokenizer");
  return use_regex ? add_stage(t, SPLIT_GPT2, err) : SCONCE_OK;
}

static sconce_status read_pre_tokenizer(sconce_tokenizer *t, struct json v, sconce_error *err) {
  bool byte_level = false;
  for (uint32_t i = 0; i < 64; i++) {
    struct json one = step(v, "pretokenizers", i), type = json_member(one, "type");
    if (!one.at) break;
    if (byte_level) return unsupported("a pre-tokenizer after ByteLevel,", one, err);
    bool each = json_is_true(json_member(one, "individual_digits"));
    if (json_text_is(type, "Split"))
      TRY(read_split(t, one, err));
    else if (json_text_is(type, "Digits"))
      TRY(add_stage(t, each ? SPLIT_DIGITS : SPLIT_DIGIT_RUNS, err));
    else if (json_text_is(type, "ByteLevel"))
      TRY(read_byte_level(t, one, err));
    else
      return unsupported("pre-tokenizer", one, err);
    byte_level = json_text_is(type, "ByteLevel");
  }
  if (!byte_level) return fail(err, SCONCE_UNSUPPORTED, "a BPE model that is not byte-level");
  return SCONCE_OK;
}

sconce_status hf_read_steps(sconce_tokenizer *t, struct json root, sconce_error *err) {
  TRY(read_normalizer(t, json_member(root, "normalizer"), err));
  return read_pre_tokenizer(t, json_member(root, "pre_tokenizer"), err);
}
