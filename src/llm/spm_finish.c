/* What SentencePiece models and llama2.c vocabularies derive from their pieces. */
#include "llm/tokenizer.h"

int32_t spm_byte_value(struct text text) {
  static const char digits[] = "0123456789ABCDEF";
  if (text.size != 6 || memcmp(text.data, "<0x", 3) != 0 || text.data[5] != '>') return -1;
  const char *high = memchr(digits, text.data[3], 16), *low = memchr(digits, text.data[4], 16);
  return high && low ? (int32_t)((high - digits) * 16 + (low - digits)) : -1;
}

/* Byte pieces decode to their byte. */
static sconce_status set_byte(sconce_tokenizer *t, uint32_t id, sconce_error *err) {
  struct piece *piece = &t->vocab.pieces[id];
  int32_t value = spm_byte_value(piece->text);
  if (value < 0)
    return fail(err, SCONCE_BAD_FILE, "byte piece %u is '%.*s', not <0xHH>", id, TEXT(piece->text));
  char byte = (char)value;
  char *copy = arena_copy_text(&t->arena, &byte, 1);
  if (!copy) return fail(err, SCONCE_NO_MEMORY, "out of memory for piece %u", id);
  piece->text = (struct text){copy, 1};
  if (t->vocab.byte[value] < 0) t->vocab.byte[value] = (int32_t)id;
  return SCONCE_OK;
}

static sconce_status check_bytes(const sconce_tokenizer *t, sconce_error *err) {
  for (int b = 0; t->spm.byte_fallback && b < 256; b++)
    if (t->vocab.byte[b] < 0)
      return fail(err, SCONCE_BAD_FILE, "falls back to bytes and has no piece <0x%02X>",
                  (unsigned)b);
  if (!t->spm.byte_fallback && t->spm.unknown < 0)
    return fail(err, SCONCE_BAD_FILE, "neither an unknown piece nor a fall back to bytes");
  return SCONCE_OK;
}

/* True if the piece has a space somewhere behind another character. */
static bool crosses_words(struct text text) {
  for (size_t i = 1; i < text.size; i++)
    if (text.data[i] == ' ' && text.data[i - 1] != ' ') return true;
  return false;
}

/* Pieces that are matched as wholes: in normalized text, or already by the normalizer, which sees
 * plain spaces and so never matches one that has U+2581. */
static bool is_matched(const sconce_tokenizer *t, const struct piece *piece, bool raw) {
  bool user = piece->type == PIECE_USER;
  if (!raw) return !piece->unreachable && (user || (t->spm.unigram && piece->type == PIECE_NORMAL));
  bool space = piece->text.size && memchr(piece->text.data, ' ', piece->text.size);
  return user && (!space || piece->unreachable);
}

static sconce_status collect_matched(sconce_tokenizer *t, struct matcher *out, bool raw,
                                     sconce_error *err) {
  uint32_t n = 0, at = 0;
  for (uint32_t id = 0; id < t->vocab.n; id++) n += is_matched(t, &t->vocab.pieces[id], raw);
  struct match_key *keys = arena_new(&t->arena, struct match_key, n);
  if (!keys) return fail(err, SCONCE_NO_MEMORY, "out of memory for %u pieces", n);
  for (uint32_t id = 0; id < t->vocab.n; id++) {
    const struct piece *piece = &t->vocab.pieces[id];
    if (!is_matched(t, piece, raw)) continue;
    if (piece->text.size > MATCH_SIZE_MAX)
      return fail(err, SCONCE_BAD_FILE, "piece %u has %zu bytes, at most %d", id, piece->text.size,
                  MATCH_SIZE_MAX);
    keys[at++] = (struct match_key){piece->text, (int32_t)id};
  }
  matcher_init(out, keys, n);
  return SCONCE_OK;
}

/* score_max starts at 0: scores are logarithms, so a user-defined piece costs the least there is.
 */
static void note_score(struct spm_rules *rules, float score, bool *any) {
  if (!*any || score < rules->score_min) rules->score_min = score;
  if (score > rules->score_max) rules->score_max = score;
  *any = true;
}

sconce_status spm_finish(sconce_tokenizer *t, sconce_error *err) {
  bool any = false;
  t->spm.cut_words = true;
  for (uint32_t id = 0; id < t->vocab.n; id++) {
    struct piece *piece = &t->vocab.pieces[id];
    piece->rank = rank_of_score(piece->score);
    if (piece->type == PIECE_BYTE) TRY(set_byte(t, id, err));
    if (piece->type == PIECE_UNUSED && !t->spm.unigram)
      return fail(err, SCONCE_UNSUPPORTED, "piece %u is unused, which merging does not support",
                  id);
    if (piece->type != PIECE_NORMAL && piece->type != PIECE_USER) continue;
    if (piece->type == PIECE_NORMAL) note_score(&t->spm, piece->score, &any);
    if (piece->unreachable) continue;
    if (crosses_words(piece->text)) t->spm.cut_words = false;
    vocab_index(&t->vocab, id);
  }
  TRY(check_bytes(t, err));
  TRY(collect_matched(t, &t->spm.pieces, false, err));
  TRY(collect_matched(t, &t->spm.kept, true, err));
  return tokenizer_collect_special(t, err);
}
