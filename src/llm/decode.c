/* Ids to text: pieces, whole sequences and streams. A sequence is a stream that is read at once, so
 * both give the same text. */
#include "llm/tokenizer.h"

static const struct piece *piece_of(const sconce_tokenizer *t, int32_t id) {
  return id >= 0 && (uint32_t)id < t->vocab.n ? &t->vocab.pieces[id] : NULL;
}

const char *sconce_tokenizer_piece(const sconce_tokenizer *t, int32_t id, size_t *size) {
  const struct piece *piece = t ? piece_of(t, id) : NULL;
  *size = piece ? piece->text.size : 0;
  return *size ? piece->text.data : "";
}

int32_t sconce_tokenizer_special(const sconce_tokenizer *t, const char *text) {
  if (!t || !text) return -1;
  for (uint32_t pass = 0; pass < N_ADDED_PASSES; pass++) {
    int32_t id = matcher_find(&t->added[pass][true], text_of(text));
    if (id >= 0) return id;
  }
  if (!t->is_spm) return -1;
  int32_t id = matcher_find(&t->spm.pieces, text_of(text)); /* <start_of_turn> is such a piece */
  return id >= 0 && t->vocab.pieces[id].type == PIECE_USER ? id : -1;
}

bool sconce_tokenizer_is_special(const sconce_tokenizer *t, int32_t id) {
  const struct piece *piece = t ? piece_of(t, id) : NULL;
  return piece && piece->type == PIECE_CONTROL;
}

bool sconce_tokenizer_is_end(const sconce_tokenizer *t, int32_t id) {
  static const char *const names[] = {"<|eot_id|>",    "<|eom_id|>",    "<|end_of_text|>",
                                      "<|im_end|>",    "<|endoftext|>", "</s>",
                                      "<end_of_turn>", "<|end|>",       "<eos>"};
  if (!t || id < 0) return false;
  if (id == t->info.eos) return true;
  const struct piece *piece = piece_of(t, id);
  if (!piece || piece->type != PIECE_CONTROL) return false;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (text_is(piece->text, names[i])) return true;
  return false;
}

/* ---- streams --------------------------------------------------------------------------------- */

/* The bytes an id adds to a text. */
static struct text bytes_of(sconce_stream *s, int32_t id) {
  const sconce_tokenizer *t = s->tokenizer;
  const struct piece *piece = piece_of(t, id);
  if (!piece) return (struct text){0};
  bool names = s->flags & SCONCE_DECODE_SPECIAL;
  if (piece->type == PIECE_CONTROL) return names ? piece->text : (struct text){0};
  struct text text = piece->text;
  if (piece->type == PIECE_UNKNOWN) text = text_of(" \xe2\x81\x87 "); /* SentencePiece's ⁇ */
  bool first = !s->started && !(s->flags & SCONCE_DECODE_CONTINUES);
  s->started = true;
  if (first && t->is_spm && t->spm.dummy_prefix && text.size && text.data[0] == ' ')
    return (struct text){text.data + 1, text.size - 1};
  return text;
}

/* Appends what is complete of the held bytes and `more`, holds the rest; with `end` nothing is
 * held. False when out of memory, which cannot happen after reserve_for_stream if out is empty. */
static bool append_complete(sconce_stream *s, struct text more, bool end, struct list *out) {
  struct list *raw = &s->tokenizer->clean;
  raw->n = 0;
  if (!list_append(raw, s->held, s->n_held) || !list_append(raw, more.data, more.size))
    return false;
  if (!list_reserve(out, 3 * raw->n + 1)) return false;
  const char *p = raw->data, *stop = p + raw->n;
  s->n_held = 0;
  while (p < stop) {
    struct utf8_char c = utf8_decode(p, stop);
    if (c.state == UTF8_CUT && !end) {
      s->n_held = (uint8_t)(stop - p);
      memcpy(s->held, p, s->n_held);
      break;
    }
    if (!list_append(out, c.state == UTF8_OK ? p : "\xef\xbf\xbd", c.state == UTF8_OK ? c.size : 3))
      return false;
    p += c.size;
  }
  ((char *)out->data)[out->n] = 0;
  return true;
}

/* A caller may have zeroed more or less than it should: never trust n_held. */
static const char *stream_step(sconce_stream *s, struct text more, bool end, size_t *size) {
  struct list *out = &s->tokenizer->out;
  if (s->n_held >= sizeof s->held) s->n_held = 0;
  out->n = 0;
  *size = 0;
  if (!append_complete(s, more, end, out)) return "";
  *size = out->n;
  return out->data;
}

const char *sconce_stream_push(sconce_stream *s, int32_t id, size_t *size) {
  *size = 0;
  return s && s->tokenizer ? stream_step(s, bytes_of(s, id), false, size) : "";
}

const char *sconce_stream_end(sconce_stream *s, size_t *size) {
  *size = 0;
  return s && s->tokenizer ? stream_step(s, (struct text){0}, true, size) : "";
}

sconce_status sconce_tokenizer_decode(sconce_tokenizer *t, const int32_t *ids, size_t n_ids,
                                      uint32_t flags, const char **text, size_t *size,
                                      sconce_error *err) {
  if (!t || !text || !size || (!ids && n_ids))
    return fail(err, SCONCE_BAD_ARGUMENT, "tokenizer, ids, text or size is NULL");
  sconce_stream s = {.tokenizer = t, .flags = flags};
  *text = "";
  *size = 0;
  t->out.n = 0;
  for (size_t i = 0; i < n_ids; i++) {
    if (!piece_of(t, ids[i]))
      return fail(err, SCONCE_BAD_ARGUMENT, "id %d at %zu, the vocabulary has %u", ids[i], i,
                  t->vocab.n);
    if (!append_complete(&s, bytes_of(&s, ids[i]), false, &t->out))
      return fail(err, SCONCE_NO_MEMORY, "out of memory while decoding %zu ids", n_ids);
  }
  if (!append_complete(&s, (struct text){0}, true, &t->out))
    return fail(err, SCONCE_NO_MEMORY, "out of memory while decoding %zu ids", n_ids);
  *text = t->out.data;
  *size = t->out.n;
  return SCONCE_OK;
}
