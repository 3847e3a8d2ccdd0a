/* Reads llama2.c's tokenizer.bin. Two headers exist: i32 longest piece; or i32 vocabulary size,
 * bos, eos, longest piece. Then per piece f32 score, i32 size, bytes with plain spaces. The
 * vocabulary is SentencePiece's BPE with byte fallback, so it encodes like that one. */
#include "llm/tokenizer.h"

enum { HEADER_SHORT = 4, HEADER_LONG = 16 };

/* Takes the next piece off the front; false if it does not fit or is longer than the header says.
 */
static bool next_piece(struct span *rest, uint32_t size_max, float *score, struct text *text) {
  if (rest->size < 8) return false;
  uint32_t bits = load_u32(rest->data), size = load_u32(rest->data + 4);
  struct span bytes;
  if (size > size_max || !span_slice(*rest, 8, size, &bytes)) return false;
  memcpy(score, &bits, sizeof *score);
  *text = (struct text){(const char *)bytes.data, bytes.size};
  return span_slice(*rest, 8 + (uint64_t)size, rest->size - 8 - size, rest);
}

/* Counts the pieces behind a header of this size; 0 unless they fill the file exactly. */
static uint32_t count_pieces(struct span file, size_t header) {
  struct span rest;
  if (!span_slice(file, header, file.size - header, &rest)) return 0;
  uint32_t size_max = load_u32(file.data + header - 4), n = 0;
  float score;
  struct text text;
  for (; rest.size; n++)
    if (n == INT32_MAX || !next_piece(&rest, size_max, &score, &text)) return 0;
  return n;
}

static size_t header_size(struct span file, uint32_t *n) {
  if (file.size > HEADER_SHORT && (*n = count_pieces(file, HEADER_SHORT))) return HEADER_SHORT;
  if (file.size > HEADER_LONG && (*n = count_pieces(file, HEADER_LONG))) return HEADER_LONG;
  return 0;
}

bool llama2c_detect(struct span file) {
  uint32_t n;
  return header_size(file, &n) != 0;
}

/* The exporter puts line breaks around <s> and </s>. */
static struct text trim_lines(struct text text) {
  while (text.size && text.data[0] == '\n') text.data++, text.size--;
  while (text.size && text.data[text.size - 1] == '\n') text.size--;
  return text;
}

static sconce_status read_pieces(sconce_tokenizer *t, struct span rest, uint32_t size_max,
                                 uint32_t n, sconce_error *err) {
  for (uint32_t id = 0; id < n; id++) {
    struct text text = {0};
    float score = 0;
    if (!next_piece(&rest, size_max, &score, &text))
      return fail(err, SCONCE_BAD_FILE, "piece %u is cut", id);
    if (!(score > -3e38f && score < 3e38f))
      return fail(err, SCONCE_BAD_FILE, "piece %u has no finite score", id);
    enum piece_type type = spm_byte_value(text) >= 0 ? PIECE_BYTE : PIECE_NORMAL;
    if (type == PIECE_BYTE) t->spm.byte_fallback = true;
    if (id == 0) type = PIECE_UNKNOWN;
    if ((int32_t)id == t->info.bos || (int32_t)id == t->info.eos) {
      type = PIECE_CONTROL;
      text = trim_lines(text);
    }
    if (!tokenizer_set_piece(t, id, type, text))
      return fail(err, SCONCE_NO_MEMORY, "out of memory for piece %u", id);
    t->vocab.pieces[id].score = score;
  }
  return SCONCE_OK;
}

/* bos, eos and the size of the vocabulary, which may exceed the pieces: models pad it. */
static sconce_status read_header(sconce_tokenizer *t, struct span file, uint32_t n_pieces,
                                 uint32_t *n, sconce_error *err) {
  *n = load_u32(file.data);
  t->info.bos = (int32_t)load_u32(file.data + 4);
  t->info.eos = (int32_t)load_u32(file.data + 8);
  if (*n < n_pieces || *n > file.size)
    return fail(err, SCONCE_BAD_FILE, "a vocabulary of %u with %u pieces in %zu bytes", *n,
                n_pieces, file.size);
  if (t->info.bos < -1 || t->info.bos >= (int32_t)*n || t->info.eos < -1 ||
      t->info.eos >= (int32_t)*n)
    return fail(err, SCONCE_BAD_FILE, "bos %d and eos %d, the vocabulary has %u", t->info.bos,
                t->info.eos, *n);
  return SCONCE_OK;
}

sconce_status llama2c_load(sconce_tokenizer *t, struct span file, sconce_error *err) {
  uint32_t n_pieces = 0, n;
  size_t header = header_size(file, &n_pieces);
  if (!header) return fail(err, SCONCE_BAD_FILE, "no llama2.c vocabulary");
  n = n_pieces;
  t->info.bos = n > 1 ? 1 : -1;
  t->info.eos = n > 2 ? 2 : -1;
  if (header == HEADER_LONG) TRY(read_header(t, file, n_pieces, &n, err));
  t->is_spm = true;
  t->spm = (struct spm_rules){.dummy_prefix = true, .unknown = 0};
  t->info.add_bos = t->info.bos >= 0;
  t->info.kind = "llama2.c";
  if (!vocab_init(&t->vocab, &t->arena, n))
    return fail(err, SCONCE_NO_MEMORY, "out of memory for %u pieces", n);
  struct span rest = {file.data + header, file.size - header};
  TRY(read_pieces(t, rest, load_u32(file.data + header - 4), n_pieces, err));
  return spm_finish(t, err);
}
