/* Opening a tokenizer, and encoding down to where the two ways part. */
#include "llm/tokenizer.h"

#include "base/file.h"
#include "base/os.h"
#include "base/path.h"

#include <stdio.h>

enum { TEXT_SIZE_MAX = 1 << 30 }; /* positions are 32 bits, and invalid bytes grow threefold */

/* ---- opening --------------------------------------------------------------------------------- */

bool tokenizer_set_piece(sconce_tokenizer *t, uint32_t id, enum piece_type type, struct text text) {
  struct piece *piece = &t->vocab.pieces[id];
  char *copy = arena_copy_text(&t->arena, text.data, text.size);
  if (!copy) return false;
  piece->text = (struct text){copy, text.size};
  piece->type = (uint8_t)type;
  return true;
}

sconce_status tokenizer_collect_special(sconce_tokenizer *t, sconce_error *err) {
  uint32_t n = 0;
  struct match_key *keys = arena_new(&t->arena, struct match_key, t->vocab.n);
  if (!keys) return fail(err, SCONCE_NO_MEMORY, "out of memory for %u names", t->vocab.n);
  for (uint32_t id = 0; id < t->vocab.n; id++) {
    const struct piece *piece = &t->vocab.pieces[id];
    if (piece->type != PIECE_CONTROL) continue;
    if (piece->text.size > MATCH_SIZE_MAX)
      return fail(err, SCONCE_BAD_FILE, "special token %u has %zu bytes, at most %d", id,
                  piece->text.size, MATCH_SIZE_MAX);
    keys[n++] = (struct match_key){piece->text, (int32_t)id};
  }
  matcher_init(&t->added[ADDED_RAW][true], keys, n);
  return SCONCE_OK;
}

static sconce_status load_file(sconce_tokenizer *t, struct span file, struct json config,
                               sconce_error *err) {
  if (hf_detect(file)) return hf_load(t, file, config, err);
  if (tiktoken_detect(file)) return tiktoken_load(t, file, err);
  if (spm_detect(file)) return spm_load(t, file, err);
  if (llama2c_detect(file)) return llama2c_load(t, file, err);
  return fail(err, SCONCE_BAD_FILE,
              "%zu bytes that are no tokenizer: neither JSON, nor tiktoken ranks, nor a "
              "SentencePiece model, nor a llama2.c vocabulary",
              file.size);
}

/* What belongs to a tokenizer: its file, tokenizer_config.json, chat_template.jinja. */
struct parts {
  struct span file, config, template;
};

/* A configuration may lie beside any format; only tokenizer.json takes more than the template. */
static sconce_status load(sconce_tokenizer *t, const struct parts *parts, sconce_error *err) {
  struct json root = {0};
  if (parts->config.size) {
    struct text text = {(const char *)parts->config.data, parts->config.size};
    sconce_status status = json_check(text, &root, err);
    if (status != SCONCE_OK) error_prefix(err, "tokenizer_config.json: ");
    TRY(status);
  }
  TRY(load_file(t, parts->file, root, err));
  return template_load(t, root, parts->template, err);
}

static void lists_init(sconce_tokenizer *t) {
  const sconce_allocator *allocator = &t->arena.allocator;
  list_init(&t->ids, allocator, sizeof(int32_t));
  list_init(&t->out, allocator, 1);
  list_init(&t->clean, allocator, 1);
  list_init(&t->normal, allocator, 1);
  list_init(&t->codes, allocator, sizeof(uint32_t));
  list_init(&t->path, allocator, 4 * sizeof(uint32_t));
  bpe_init(&t->bpe, allocator);
}

/* Room for the longest piece, so that a stream never allocates: each of its bytes may become a
 * U+FFFD, together with what was held back. */
static sconce_status reserve_for_stream(sconce_tokenizer *t, sconce_error *err) {
  size_t size = 0, need;
  for (uint32_t i = 0; i < t->vocab.n; i++)
    if (t->vocab.pieces[i].text.size > size) size = t->vocab.pieces[i].text.size;
  if (mul_size(size + 4, 3, &need) && list_reserve(&t->out, need + 1) &&
      list_reserve(&t->clean, size + 4))
    return SCONCE_OK;
  return fail(err, SCONCE_NO_MEMORY, "out of memory for a piece of %zu bytes", size);
}

static sconce_status open_bytes(sconce_tokenizer **out, const sconce_tokenizer_desc *desc,
                                const struct parts *parts, sconce_error *err) {
  sconce_tokenizer *t = block_resize(&desc->allocator, NULL, 0, sizeof *t);
  if (!t) return fail(err, SCONCE_NO_MEMORY, "out of memory for a tokenizer");
  *t = (sconce_tokenizer){.info = {.bos = -1, .eos = -1}};
  t->spm.unknown = t->bytes.unknown = -1;
  arena_init(&t->arena, &desc->allocator);
  lists_init(t);
  sconce_status status = load(t, parts, err);
  if (status == SCONCE_OK) status = reserve_for_stream(t, err);
  if (status != SCONCE_OK) {
    sconce_tokenizer_close(t);
    return status;
  }
  t->info.n_vocab = t->vocab.n;
  *out = t;
  return SCONCE_OK;
}

/* A file in the folder of path; nothing if there is none. */
static sconce_status read_beside(struct arena *arena, const char *path, const char *file,
                                 struct span *out, sconce_error *err) {
  char name[4096];
  struct os_reader reader;
  sconce_error none;
  int n = snprintf(name, sizeof name, "%.*s%s", (int)(path_name(path) - path), path, file);
  if (n < 0 || (size_t)n >= sizeof name || os_reader_open(&reader, name, &none) != SCONCE_OK)
    return SCONCE_OK;
  os_reader_close(&reader);
  return file_read(arena, name, out, err);
}

static sconce_status read_parts(struct arena *arena, const char *path, struct parts *out,
                                sconce_error *err) {
  TRY(file_read(arena, path, &out->file, err));
  TRY(read_beside(arena, path, "tokenizer_config.json", &out->config, err));
  return read_beside(arena, path, "chat_template.jinja", &out->template, err);
}

static sconce_status open_path(sconce_tokenizer **out, const sconce_tokenizer_desc *desc,
                               sconce_error *err) {
  struct arena arena;
  struct parts parts = {0};
  arena_init(&arena, &desc->allocator);
  sconce_status status = read_parts(&arena, desc->path, &parts, err);
  if (status == SCONCE_OK) {
    status = open_bytes(out, desc, &parts, err);
    if (status != SCONCE_OK) error_prefix(err, "%s: ", desc->path);
  }
  arena_free(&arena);
  return status;
}

sconce_status sconce_tokenizer_open(sconce_tokenizer **out, const sconce_tokenizer_desc *desc,
                                    sconce_error *err) {
  if (!out) return fail(err, SCONCE_BAD_ARGUMENT, "out is NULL");
  *out = NULL;
  if (!desc || !desc->path == !desc->data)
    return fail(err, SCONCE_BAD_ARGUMENT, "a tokenizer needs a path or data, and not both");
  if (desc->path) return open_path(out, desc, err);
  struct parts parts = {{desc->data, desc->size}, {desc->config, desc->config_size}, {0}};
  return open_bytes(out, desc, &parts, err);
}

void sconce_tokenizer_close(sconce_tokenizer *t) {
  if (!t) return;
  bpe_free(&t->bpe);
  list_free(&t->path);
  list_free(&t->codes);
  list_free(&t->normal);
  list_free(&t->clean);
  list_free(&t->out);
  list_free(&t->ids);
  sconce_allocator allocator = t->arena.allocator;
  arena_free(&t->arena);
  block_resize(&allocator, t, sizeof *t, 0);
}

const sconce_tokenizer_info *sconce_tokenizer_describe(const sconce_tokenizer *t) {
  return t ? &t->info : NULL;
}

/* ---- encoding -------------------------------------------------------------------------------- */

/* What is left to do for a part of the text between added tokens of this pass. */
struct pass {
  sconce_tokenizer *t;
  uint32_t flags;
  uint32_t number;    /* ADDED_RAW, ADDED_NORMALIZED */
  bool first;         /* nothing of the text was encoded yet */
  const char *text;   /* with `own`: the text that it speaks of */
  const uint8_t *own; /* where special tokens may be, or NULL: everywhere */
};

static bool all_own(const struct pass *pass, struct text part) {
  if (!pass->own) return true;
  return !part.size || !memchr(pass->own + (part.data - pass->text), 0, part.size);
}

/* The added token at the start of the text, or -1. */
static int32_t match_added(const struct pass *pass, struct text text, size_t *size) {
  const struct matcher *added = pass->t->added[pass->number];
  bool special = pass->flags & SCONCE_ENCODE_SPECIAL;
  if (!pass->own || !special) return matcher_longest(&added[special], text, size);
  struct text own = {text.data, 0};
  const uint8_t *marks = pass->own + (text.data - pass->text);
  while (own.size < text.size && own.size < MATCH_SIZE_MAX && marks[own.size]) own.size++;
  size_t plain_size = 0;
  int32_t plain = matcher_longest(&added[false], text, &plain_size);
  int32_t id = own.size ? matcher_longest(&added[true], own, size) : -1;
  if (plain < 0 || (id >= 0 && *size >= plain_size)) return id;
  *size = plain_size;
  return plain;
}

/* Where the next added token starts: text.size if there is none. */
static size_t find_added(const struct pass *pass, struct text text, size_t at, int32_t *id,
                         size_t *size) {
  bool special = pass->flags & SCONCE_ENCODE_SPECIAL; /* those include the others */
  const struct matcher *m = &pass->t->added[pass->number][special];
  *id = -1;
  if (m->n == 0) return text.size;
  for (; at < text.size; at++) {
    uint8_t byte = (uint8_t)text.data[at];
    if (m->first[byte] == m->first[byte + 1]) continue;
    *id = match_added(pass, (struct text){text.data + at, text.size - at}, size);
    if (*id >= 0) return at;
  }
  return text.size;
}

static bool encode_part(struct pass *pass, struct text part); /* may start the next pass */

/* Cuts added tokens out of a text and encodes what is between them. */
static bool encode_pass(struct pass *pass, struct text text) {
  sconce_tokenizer *t = pass->t;
  for (size_t at = 0; at < text.size;) {
    int32_t id;
    size_t size = 0, found = find_added(pass, text, at, &id, &size);
    const struct piece *piece = id >= 0 ? &t->vocab.pieces[id] : NULL;
    struct text part = {text.data + at, found - at};
    if (piece && piece->strip_left) part = unicode_trim_end(part);
    if (part.size && !encode_part(pass, part)) return false;
    pass->first = false;
    at = found + size;
    if (!piece) continue;
    if (!push_id(t, id)) return false;
    struct text rest = {text.data + at, text.size - at};
    if (piece->strip_right) at = text.size - unicode_trim_start(rest).size;
  }
  return true;
}

static bool encode_part(struct pass *pass, struct text part) {
  sconce_tokenizer *t = pass->t;
  if (t->is_spm)
    return spm_encode(t, part, !pass->first || !(pass->flags & SCONCE_ENCODE_CONTINUES));
  if (pass->number == ADDED_NORMALIZED) return bytes_encode(t, part);
  struct pass next = *pass;
  next.number = ADDED_NORMALIZED;
  struct text before = part;
  if (t->bytes.nfc && !unicode_nfc(&part, &t->codes, &t->normal)) return false;
  if (part.data != before.data) { /* the marks no longer fit: all of it, or nothing */
    if (!all_own(pass, before)) next.flags &= ~(uint32_t)SCONCE_ENCODE_SPECIAL;
    next.own = NULL;
  }
  return encode_pass(&next, part);
}

static sconce_status append(sconce_tokenizer *t, struct text text, uint32_t flags,
                            const uint8_t *own, sconce_error *err) {
  if (text.size >= TEXT_SIZE_MAX)
    return fail(err, SCONCE_BAD_ARGUMENT, "a text of %zu bytes, at most %d", text.size,
                TEXT_SIZE_MAX - 1);
  struct pass pass = {t, flags, ADDED_RAW, true, text.data, own};
  size_t size = text.size;
  bool ok = !(flags & SCONCE_ENCODE_BOS) || t->info.bos < 0 || push_id(t, t->info.bos);
  ok = ok && utf8_clean(&text, &t->clean);
  if (own && text.data != pass.text) { /* as above */
    pass.flags &= ~(uint32_t)SCONCE_ENCODE_SPECIAL;
    pass.own = NULL;
  }
  ok = ok && encode_pass(&pass, text);
  bpe_shrink(&t->bpe);
  if (ok) return SCONCE_OK;
  return fail(err, SCONCE_NO_MEMORY, "out of memory while encoding %zu bytes", size);
}

sconce_status tokenizer_append(sconce_tokenizer *t, struct text text, uint32_t flags,
                               sconce_error *err) {
  return append(t, text, flags, NULL, err);
}

sconce_status tokenizer_append_marked(sconce_tokenizer *t, struct text text, const uint8_t *own,
                                      sconce_error *err) {
  return append(t, text, SCONCE_ENCODE_SPECIAL, own, err);
}

sconce_status sconce_tokenizer_encode(sconce_tokenizer *t, const char *text, size_t size,
                                      uint32_t flags, const int32_t **ids, size_t *n_ids,
                                      sconce_error *err) {
  if (!t || !ids || !n_ids || (!text && size))
    return fail(err, SCONCE_BAD_ARGUMENT, "tokenizer, text, ids or n_ids is NULL");
  *ids = NULL;
  *n_ids = 0;
  t->ids.n = 0;
  TRY(tokenizer_append(t, (struct text){text, size}, flags, err));
  *ids = t->ids.data;
  *n_ids = t->ids.n;
  return SCONCE_OK;
}
