/* Reads a Hugging Face tokenizer.json whose model is byte-level BPE. Its vocabulary writes bytes as
 * printable characters; here pieces hold the bytes themselves. */
#include "llm/hf.h"

bool hf_detect(struct span file) {
  size_t i = 0;
  while (i < file.size && (file.data[i] == ' ' || (file.data[i] >= '\t' && file.data[i] <= '\r')))
    i++;
  return i < file.size && file.data[i] == '{';
}

/* The byte that a character of the vocabulary stands for, or -1: printable Latin-1 characters are
 * themselves, the other bytes follow in order from U+0100 on. */
static int32_t byte_of(uint32_t code) {
  bool printable = (code > 0x20 && code < 0x7f) || (code > 0xa0 && code < 0x100 && code != 0xad);
  if (printable) return (int32_t)code;
  if (code < 0x100) return -1;
  code -= 0x100;
  if (code <= 0x20) return (int32_t)code;
  if (code <= 0x42) return (int32_t)(code - 0x21 + 0x7f);
  return code == 0x43 ? 0xad : -1;
}

/* Replaces such characters by their bytes, in place; false if one stands for no byte. */
static bool to_bytes(char *data, size_t *size) {
  const char *p = data, *end = data + *size;
  for (; p < end; p += utf8_decode(p, end).size)
    if (byte_of(utf8_decode(p, end).code) < 0) return false;
  char *q = data;
  for (p = data; p < end;) {
    struct utf8_char c = utf8_decode(p, end);
    *q++ = (char)byte_of(c.code);
    p += c.size;
  }
  *size = (size_t)(q - data);
  return true;
}

/* ---- vocabulary ------------------------------------------------------------------------------ */

/* Holes are allowed, but not more ids than the file has bytes: memory is bounded by the file. */
static sconce_status check_id(struct json v, struct json root, int64_t *id, sconce_error *err) {
  int64_t limit = root.end - root.at;
  if (!json_integer(v, id)) return fail(err, SCONCE_BAD_FILE, "an id that is no integer");
  if (*id < 0 || *id >= limit || *id >= INT32_MAX / 2)
    return fail(err, SCONCE_BAD_FILE, "id %lld in a file of %lld bytes", (long long)*id,
                (long long)limit);
  return SCONCE_OK;
}

static sconce_status count_ids(struct json root, struct json vocab, uint32_t *n,
                               sconce_error *err) {
  struct json_walk w;
  int64_t id;
  *n = 0;
  for (json_begin(&w, vocab); json_next(&w);) {
    TRY(check_id(w.value, root, &id, err));
    if (id >= *n) *n = (uint32_t)id + 1;
  }
  for (json_begin(&w, json_member(root, "added_tokens")); json_next(&w);) {
    TRY(check_id(json_member(w.value, "id"), root, &id, err));
    if (id >= *n) *n = (uint32_t)id + 1;
  }
  return SCONCE_OK;
}

static sconce_status read_vocab(sconce_tokenizer *t, struct json vocab, sconce_error *err) {
  struct json_walk w;
  for (json_begin(&w, vocab); json_next(&w);) {
    int64_t id = 0;
    json_integer(w.value, &id);
    size_t room = json_text_size(w.key);
    char *data = arena_new(&t->arena, char, room + 1);
    if (!data) return fail(err, SCONCE_NO_MEMORY, "out of memory for id %lld", (long long)id);
    size_t size = json_text_write(w.key, data);
    bool is_bytes = to_bytes(data, &size);
    struct piece *piece = &t->vocab.pieces[id];
    if (piece->type != PIECE_HOLE)
      return fail(err, SCONCE_BAD_FILE, "id %lld stands for two pieces", (long long)id);
    *piece = (struct piece){.text = {data, size}, .type = PIECE_NORMAL};
    if (!is_bytes) continue; /* no text ever becomes this piece */
    vocab_index(&t->vocab, (uint32_t)id);
    if (size == 1) t->vocab.byte[(uint8_t)data[0]] = (int32_t)id;
  }
  return SCONCE_OK;
}

/* ---- merges ---------------------------------------------------------------------------------- */

/* Appends the bytes of a part to t->clean; false when out of memory. *size SIZE_MAX: no bytes. */
static bool append_part(sconce_tokenizer *t, const char *data, size_t length, size_t *size) {
  struct list *out = &t->clean;
  size_t at = out->n;
  if (!list_append(out, data, length)) return false;
  *size = length;
  if (!to_bytes((char *)out->data + at, size)) *size = SIZE_MAX;
  out->n = at + (*size == SIZE_MAX ? 0 : *size);
  return true;
}

/* "left right" or ["left", "right"] -> both in t->normal, unescaped, and where the first ends. */
static bool merge_parts(sconce_tokenizer *t, struct json v, size_t *left, size_t *right) {
  struct list *raw = &t->normal;
  raw->n = 0;
  *left = *right = 0;
  if (json_is_string(v)) {
    if (!list_reserve(raw, json_text_size(v) + 1)) return false;
    size_t n = json_text_write(v, raw->data);
    const char *data = raw->data, *space = n ? memchr(data, ' ', n) : NULL;
    if (!space) return true;
    *left = (size_t)(space - data);
    *right = n - *left - 1;
    memmove((char *)raw->data + *left, space + 1, *right);
    return true;
  }
  struct json_walk w;
  struct json part[2] = {{0}};
  size_t n = 0;
  for (json_begin(&w, v); json_next(&w); n++)
    if (n < 2) part[n] = w.value;
  if (!json_is_array(v) || n != 2) return true;
  if (!list_reserve(raw, json_text_size(part[0]) + json_text_size(part[1]) + 1)) return false;
  *left = json_text_write(part[0], raw->data);
  *right = json_text_write(part[1], (char *)raw->data + *left);
  return true;
}

static sconce_status add_merge(sconce_tokenizer *t, struct json v, uint32_t rank,
                               sconce_error *err) {
  size_t length[2], size[2];
  t->clean.n = 0;
  if (!merge_parts(t, v, &length[0], &length[1]))
    return fail(err, SCONCE_NO_MEMORY, "out of memory for merge %u", rank);
  if (!length[0] || !length[1])
    return fail(err, SCONCE_BAD_FILE, "merge %u is not a pair of pieces", rank);
  const char *raw = t->normal.data;
  if (!append_part(t, raw, length[0], &size[0]) ||
      !append_part(t, raw + length[0], length[1], &size[1]))
    return fail(err, SCONCE_NO_MEMORY, "out of memory for merge %u", rank);
  int32_t left = -1, right = -1, whole = -1;
  if (size[0] != SIZE_MAX && size[1] != SIZE_MAX) {
    const char *bytes = t->clean.data;
    left = vocab_find(&t->vocab, bytes, size[0]);
    right = vocab_find(&t->vocab, bytes + size[0], size[1]);
    whole = vocab_find(&t->vocab, bytes, size[0] + size[1]);
  }
  if (left < 0 || right < 0 || whole < 0)
    return fail(err, SCONCE_BAD_FILE, "merge %u of '%.*s' and '%.*s': not in the vocabulary", rank,
                TEXT(((struct text){raw, length[0]})),
                TEXT(((struct text){raw + length[0], length[1]})));
  pair_table_add(&t->bytes.merges, left, right, rank, whole);
  return SCONCE_OK;
}

static sconce_status read_merges(sconce_tokenizer *t, struct json merges, sconce_error *err) {
  size_t n = json_count(merges);
  uint32_t rank = 0;
  struct json_walk w;
  if (!json_is_array(merges)) return fail(err, SCONCE_BAD_FILE, "the model has no list of merges");
  if (n > INT32_MAX || !pair_table_init(&t->bytes.merges, &t->arena, (uint32_t)n))
    return fail(err, SCONCE_NO_MEMORY, "out of memory for %zu merges", n);
  for (json_begin(&w, merges); json_next(&w); rank++) TRY(add_merge(t, w.value, rank, err));
  t->bytes.by_pairs = true;
  return SCONCE_OK;
}

/* ---- the file -------------------------------------------------------------------------------- */

static sconce_status check_model(struct json model, sconce_error *err) {
  static const char *const must_be_empty[] = {"continuing_subword_prefix", "end_of_word_suffix",
                                              "dropout"};
  struct json type = json_member(model, "type");
  if (!json_is_object(model)) return fail(err, SCONCE_BAD_FILE, "JSON without a \"model\"");
  if (!json_is_null(type) && !json_text_is(type, "BPE"))
    return fail(err, SCONCE_UNSUPPORTED, "a tokenizer model that is not BPE");
  for (size_t i = 0; i < sizeof must_be_empty / sizeof *must_be_empty; i++) {
    struct json v = json_member(model, must_be_empty[i]);
    if (!json_is_null(v) && !json_text_is(v, ""))
      return fail(err, SCONCE_UNSUPPORTED, "a BPE model with \"%s\"", must_be_empty[i]);
  }
  if (json_is_true(json_member(model, "byte_fallback")))
    return fail(err, SCONCE_UNSUPPORTED,
                "a tokenizer.json of a SentencePiece model (byte_fallback): use its .model file");
  if (!json_is_object(json_member(model, "vocab")))
    return fail(err, SCONCE_BAD_FILE, "the model has no \"vocab\"");
  return SCONCE_OK;
}

/* The id of unk_token, compared as both are written. */
static int32_t find_unknown(struct json model) {
  struct json name = json_member(model, "unk_token");
  size_t size = json_text_size(name);
  struct json_walk w;
  int64_t id;
  for (json_begin(&w, json_member(model, "vocab")); size && json_next(&w);)
    if (json_text_size(w.key) == size && memcmp(w.key.at, name.at, size + 2) == 0 &&
        json_integer(w.value, &id))
      return (int32_t)id;
  return -1;
}

sconce_status hf_load(sconce_tokenizer *t, struct span file, struct json config,
                      sconce_error *err) {
  struct json root;
  uint32_t n;
  TRY(json_check((struct text){(const char *)file.data, file.size}, &root, err));
  struct json model = json_member(root, "model"), vocab = json_member(model, "vocab");
  TRY(check_model(model, err));
  TRY(hf_read_steps(t, root, err));
  TRY(count_ids(root, vocab, &n, err));
  if (!vocab_init(&t->vocab, &t->arena, n))
    return fail(err, SCONCE_NO_MEMORY, "out of memory for %u ids", n);
  TRY(read_vocab(t, vocab, err));
  TRY(read_merges(t, json_member(model, "merges"), err));
  t->bytes.unknown = find_unknown(model);
  t->bytes.whole_first = json_is_true(json_member(model, "ignore_merges"));
  TRY(hf_read_added(t, root, err));
  hf_read_names(t, root, config);
  t->info.kind = "hugging face bpe";
  return SCONCE_OK;
}
