/* Reads a SentencePiece .model (protobuf ModelProto). Field numbers and defaults are the format's:
 * 1 pieces {1 text, 2 score, 3 type}, 2 trainer {3 model_type, 24 suffix, 35 byte_fallback, 40 unk,
 * 41 bos, 42 eos}, 3 normalizer {2 charsmap, 3 dummy prefix, 4 strip spaces, 5 escape}. */
#include "llm/tokenizer.h"

/* ---- protobuf -------------------------------------------------------------------------------- */

enum wire { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

struct field {
  uint64_t number;
  enum wire wire;
  uint64_t value;    /* varint and fixed */
  struct span bytes; /* WIRE_BYTES */
};

static bool read_varint(struct span *s, uint64_t *out) {
  *out = 0;
  for (uint32_t i = 0; i < 10 && i < s->size; i++) {
    *out |= (uint64_t)(s->data[i] & 0x7f) << (7 * i);
    if (!(s->data[i] & 0x80)) return span_slice(*s, i + 1, s->size - i - 1, s);
  }
  return false;
}

/* Takes `size` bytes off the front. */
static bool take(struct span *s, uint64_t size, struct span *out) {
  return span_slice(*s, 0, size, out) && span_slice(*s, size, s->size - size, s);
}

/* The next field of a message that is not at its end; false if it is malformed. */
static bool read_field(struct span *message, struct field *f) {
  uint64_t tag, size = 0;
  struct span fixed;
  *f = (struct field){0};
  if (!read_varint(message, &tag) || tag >> 3 == 0) return false;
  f->number = tag >> 3;
  f->wire = (enum wire)(tag & 7);
  switch (f->wire) {
  case WIRE_VARINT:
    return read_varint(message, &f->value);
  case WIRE_BYTES:
    return read_varint(message, &size) && take(message, size, &f->bytes);
  case WIRE_64:
    if (!take(message, 8, &fixed)) return false;
    f->value = load_u64(fixed.data);
    return true;
  case WIRE_32:
    if (!take(message, 4, &fixed)) return false;
    f->value = load_u32(fixed.data);
    return true;
  default:
    return false;
  }
}

static sconce_status malformed(sconce_error *err, const char *what, struct span rest,
                               struct span file) {
  return fail(err, SCONCE_BAD_FILE, "malformed protobuf in the %s near byte %zu", what,
              (size_t)(rest.data - file.data));
}

/* ---- the model ------------------------------------------------------------------------------- */

struct spm_reader {
  sconce_tokenizer *t;
  struct span file;
  uint32_t n_pieces;
  uint64_t model_type;
  bool escape;
  sconce_error *err;
};

enum { MODEL_UNIGRAM = 1, MODEL_BPE = 2 };

/* U+2581 becomes a space, in place. */
static struct text plain_spaces(char *data, size_t size) {
  size_t n = 0;
  for (size_t i = 0; i < size; n++) {
    bool marker = size - i >= 3 && memcmp(data + i, "\xe2\x96\x81", 3) == 0;
    data[n] = marker ? ' ' : data[i];
    i += marker ? 3 : 1;
  }
  return (struct text){data, n};
}

static sconce_status set_piece(struct spm_reader *r, uint32_t id, struct span text, float score,
                               uint64_t type) {
  sconce_tokenizer *t = r->t;
  if (type < PIECE_NORMAL || type > PIECE_BYTE)
    return fail(r->err, SCONCE_BAD_FILE, "piece %u has type %llu", id, (unsigned long long)type);
  if (!(score > -3e38f && score < 3e38f))
    return fail(r->err, SCONCE_BAD_FILE, "piece %u has no finite score", id);
  char *copy = arena_copy_text(&t->arena, (const char *)text.data, text.size);
  if (!copy) return fail(r->err, SCONCE_NO_MEMORY, "out of memory for piece %u", id);
  struct piece *piece = &t->vocab.pieces[id];
  piece->text =
      type == PIECE_CONTROL ? (struct text){copy, text.size} : plain_spaces(copy, text.size);
  piece->type = (uint8_t)type;
  piece->score = score;
  piece->unreachable = text.size && memchr(text.data, ' ', text.size);
  return SCONCE_OK;
}

static sconce_status read_piece(struct spm_reader *r, uint32_t id, struct span message) {
  struct span text = {0};
  float score = 0;
  uint64_t type = PIECE_NORMAL;
  while (message.size) {
    struct field f;
    struct span at = message;
    if (!read_field(&message, &f)) return malformed(r->err, "piece", at, r->file);
    uint32_t bits = (uint32_t)f.value;
    if (f.number == 1 && f.wire == WIRE_BYTES) text = f.bytes;
    if (f.number == 2 && f.wire == WIRE_32) memcpy(&score, &bits, sizeof score);
    if (f.number == 3 && f.wire == WIRE_VARINT) type = f.value;
  }
  return set_piece(r, id, text, score, type);
}

static sconce_status read_trainer(struct spm_reader *r, struct span message) {
  sconce_tokenizer *t = r->t;
  while (message.size) {
    struct field f;
    struct span at = message;
    if (!read_field(&message, &f)) return malformed(r->err, "trainer spec", at, r->file);
    if (f.wire != WIRE_VARINT) continue;
    int32_t id = (int64_t)f.value >= 0 && f.value < r->n_pieces ? (int32_t)f.value : -1;
    switch (f.number) {
    case 3:
      r->model_type = f.value;
      break;
    case 24:
      t->spm.suffix = f.value != 0;
      break;
    case 35:
      t->spm.byte_fallback = f.value != 0;
      break;
    case 40:
      t->spm.unknown = id;
      break;
    case 41:
      t->info.bos = id;
      break;
    case 42:
      t->info.eos = id;
      break;
    default:
      break;
    }
  }
  return SCONCE_OK;
}

static sconce_status read_charsmap(struct spm_reader *r, struct span bytes) {
  struct spm_charsmap *map = &r->t->spm.charsmap;
  if (!spm_charsmap_init(map, &r->t->arena, bytes))
    return fail(r->err, SCONCE_BAD_FILE, "the charsmap of %zu bytes is malformed", bytes.size);
  if (!map->units || !map->strings.data)
    return fail(r->err, SCONCE_NO_MEMORY, "out of memory for a charsmap of %zu bytes", bytes.size);
  return SCONCE_OK;
}

static sconce_status read_normalizer(struct spm_reader *r, struct span message) {
  sconce_tokenizer *t = r->t;
  while (message.size) {
    struct field f;
    struct span at = message;
    if (!read_field(&message, &f)) return malformed(r->err, "normalizer spec", at, r->file);
    if (f.number == 2 && f.wire == WIRE_BYTES && f.bytes.size) TRY(read_charsmap(r, f.bytes));
    if (f.wire != WIRE_VARINT) continue;
    if (f.number == 3) t->spm.dummy_prefix = f.value != 0;
    if (f.number == 4) t->spm.strip_spaces = f.value != 0;
    if (f.number == 5) r->escape = f.value != 0;
  }
  return SCONCE_OK;
}

/* First the number of pieces, then everything: ids are checked against it. */
static sconce_status read_model(struct spm_reader *r) {
  uint32_t id = 0;
  for (struct span rest = r->file; rest.size;) {
    struct field f;
    struct span at = rest;
    if (!read_field(&rest, &f)) return malformed(r->err, "model", at, r->file);
    if (f.number == 1 && f.wire == WIRE_BYTES) r->n_pieces++;
  }
  if (r->n_pieces == 0) return fail(r->err, SCONCE_BAD_FILE, "a model without pieces");
  if (!vocab_init(&r->t->vocab, &r->t->arena, r->n_pieces))
    return fail(r->err, SCONCE_NO_MEMORY, "out of memory for %u pieces", r->n_pieces);
  for (struct span rest = r->file; rest.size;) {
    struct field f;
    if (!read_field(&rest, &f) || f.wire != WIRE_BYTES) continue;
    if (f.number == 1) TRY(read_piece(r, id++, f.bytes));
    if (f.number == 2) TRY(read_trainer(r, f.bytes));
    if (f.number == 3) TRY(read_normalizer(r, f.bytes));
  }
  return SCONCE_OK;
}

/* An id that the format gives by default and that this vocabulary does not have that way. */
static int32_t default_id(const sconce_tokenizer *t, int32_t id, enum piece_type type) {
  return id >= 0 && (uint32_t)id < t->vocab.n && t->vocab.pieces[id].type == type ? id : -1;
}

bool spm_detect(struct span file) {
  return file.size >= 4 && file.data[0] == 0x0a && file.data[1] >= 2 && file.data[2] == 0x0a;
}

sconce_status spm_load(sconce_tokenizer *t, struct span file, sconce_error *err) {
  struct spm_reader r = {
      .t = t, .file = file, .model_type = MODEL_UNIGRAM, .escape = true, .err = err};
  t->is_spm = true;
  t->spm = (struct spm_rules){.dummy_prefix = true, .strip_spaces = true, .unknown = 0};
  t->info.bos = 1;
  t->info.eos = 2;
  TRY(read_model(&r));
  if (r.model_type != MODEL_UNIGRAM && r.model_type != MODEL_BPE)
    return fail(err, SCONCE_UNSUPPORTED, "SentencePiece model type %llu, only unigram and BPE",
                (unsigned long long)r.model_type);
  if (!r.escape)
    return fail(err, SCONCE_UNSUPPORTED, "a SentencePiece model that does not escape white space");
  t->spm.unigram = r.model_type == MODEL_UNIGRAM;
  t->spm.unknown = default_id(t, t->spm.unknown, PIECE_UNKNOWN);
  t->info.bos = default_id(t, t->info.bos, PIECE_CONTROL);
  t->info.eos = default_id(t, t->info.eos, PIECE_CONTROL);
  t->info.add_bos = t->info.bos >= 0;
  t->info.kind = t->spm.unigram ? "sentencepiece unigram" : "sentencepiece bpe";
  return spm_finish(t, err);
}
