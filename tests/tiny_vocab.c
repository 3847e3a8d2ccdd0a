/* Tiny vocabularies: see tiny_vocab.h. */
#include "tiny_vocab.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void blob_add(struct blob *b, const void *data, size_t size) {
  if (size > b->cap - b->size) {
    b->cap = (b->size + size) * 2;
    b->data = realloc(b->data, b->cap);
  }
  if (size) memcpy(b->data + b->size, data, size);
  b->size += size;
}
void blob_text(struct blob *b, const char *text) { blob_add(b, text, strlen(text)); }
void blob_free(struct blob *b) {
  free(b->data);
  *b = (struct blob){0};
}

/* Every piece is the concatenation of two earlier ones, where merges split it: see splits. */
const char *const tiny_pieces[] = {"he", "ll", "hell", "hello", " w", "or",       " wor",  "ld",
                                   "th", "  ", "    ", "\n\n",  "12", "\xc3\xa9", " \xf0", "'s"};
static const int splits[] = {1, 1, 2, 4, 1, 1, 2, 1, 1, 1, 2, 1, 1, 1, 1, 1};

/* ---- tiktoken -------------------------------------------------------------------------------- */

static void add_base64(struct blob *b, const unsigned char *data, size_t size) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (size_t i = 0; i < size; i += 3) {
    unsigned bits = (unsigned)data[i] << 16;
    if (i + 1 < size) bits |= (unsigned)data[i + 1] << 8;
    if (i + 2 < size) bits |= data[i + 2];
    char out[4] = {digits[bits >> 18], digits[bits >> 12 & 63], '=', '='};
    if (i + 1 < size) out[2] = digits[bits >> 6 & 63];
    if (i + 2 < size) out[3] = digits[bits & 63];
    blob_add(b, out, 4);
  }
}

static size_t piece_bytes(int id, unsigned char *out) {
  if (id < 256) {
    out[0] = (unsigned char)id;
    return 1;
  }
  size_t size = strlen(tiny_pieces[id - 256]);
  memcpy(out, tiny_pieces[id - 256], size);
  return size;
}

void tiny_tiktoken(struct blob *b) {
  for (int id = 0; id < TINY_N; id++) {
    unsigned char bytes[16];
    char rank[16];
    add_base64(b, bytes, piece_bytes(id, bytes));
    snprintf(rank, sizeof rank, " %d\n", id);
    blob_text(b, rank);
  }
}

/* ---- Hugging Face ---------------------------------------------------------------------------- */

/* The printable character that stands for a byte, escaped where JSON wants it. */
static void add_byte_character(struct blob *b, unsigned char byte) {
  unsigned next = 256, code = byte;
  for (unsigned i = 0; i <= byte; i++) {
    int printable = (i > 0x20 && i < 0x7f) || (i > 0xa0 && i != 0xad);
    if (i == byte && !printable) code = next;
    if (!printable) next++;
  }
  char text[16];
  snprintf(text, sizeof text, "\\u%04x", code);
  if (byte % 2 || code >= 0x80 || byte == '"' || byte == '\\')
    blob_text(b, text);
  else
    blob_add(b, &byte, 1);
}

static void add_byte_text(struct blob *b, const char *data, size_t size) {
  for (size_t i = 0; i < size; i++) add_byte_character(b, (unsigned char)data[i]);
}

static void add_merges(struct blob *b, bool arrays) {
  for (int i = 0; i < TINY_N_PIECES; i++) {
    size_t left = (size_t)splits[i], size = strlen(tiny_pieces[i]);
    blob_text(b, i ? ",\n" : "");
    blob_text(b, arrays ? "[\"" : "\"");
    add_byte_text(b, tiny_pieces[i], left);
    blob_text(b, arrays ? "\" , \"" : " ");
    add_byte_text(b, tiny_pieces[i] + left, size - left);
    blob_text(b, arrays ? "\"]" : "\"");
  }
}

void tiny_hf(struct blob *b, const struct tiny_hf *o) {
  blob_text(b, "{\"version\": \"1.0\", \"added_tokens\": [");
  blob_text(b, o->added ? o->added : "");
  blob_text(b, "],\n\"normalizer\": ");
  blob_text(b, o->normalizer ? o->normalizer : "null");
  blob_text(b, ", \"pre_tokenizer\": ");
  blob_text(b,
            o->pre_tokenizer
                ? o->pre_tokenizer
                : "{\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": true}");
  blob_text(b, ",\n\"model\": {\"type\": \"BPE\", ");
  blob_text(b, o->model ? o->model : "");
  blob_text(b, "\"merges\": [");
  add_merges(b, o->merge_arrays);
  blob_text(b, "], \"vocab\": {");
  for (int id = 0; id < TINY_N; id++) {
    unsigned char bytes[16];
    char end[32];
    blob_text(b, id ? ", \"" : "\"");
    add_byte_text(b, (const char *)bytes, piece_bytes(id, bytes));
    snprintf(end, sizeof end, "\": %d", id);
    blob_text(b, end);
  }
  blob_text(b, "}}}\n");
}

/* ---- SentencePiece and llama2.c -------------------------------------------------------------- */

const char *const tiny_words[] = {" t",       "he", " the", "lo", "hel", "hello",       " hello",
                                  "  ",       " ",  "e",    "t",  "h",   "l",           "o",
                                  "\xc3\xa9", "w",  "wo",   " w", " wo", "\xe4\xbd\xa0"};

static const char *spm_piece(int id, char name[8], float *score) {
  static const char *const first[] = {"<unk>", "<s>", "</s>"};
  *score = 0;
  if (id < 3) return first[id];
  if (id >= 259) {
    *score = -(float)(id - 258);
    return tiny_words[id - 259];
  }
  snprintf(name, 8, "<0x%02X>", (unsigned)(id - 3));
  return name;
}

static void add_i32(struct blob *b, int32_t value) { blob_add(b, &value, 4); }

void tiny_llama2c(struct blob *b, bool long_header) {
  if (long_header) add_i32(b, TINY_SPM_N + 5), add_i32(b, 1), add_i32(b, 2);
  add_i32(b, 6);
  for (int id = 0; id < TINY_SPM_N; id++) {
    char name[8];
    float score;
    const char *piece = spm_piece(id, name, &score);
    blob_add(b, &score, 4);
    add_i32(b, (int32_t)strlen(piece));
    blob_text(b, piece);
  }
}

static void add_varint(struct blob *b, size_t value) {
  for (; value >= 0x80; value >>= 7)
    blob_add(b, &(unsigned char){(unsigned char)(value | 0x80)}, 1);
  blob_add(b, &(unsigned char){(unsigned char)value}, 1);
}

static void add_varint_field(struct blob *b, unsigned number, unsigned value) {
  add_varint(b, number << 3);
  add_varint(b, value);
}

static void add_bytes_field(struct blob *b, unsigned number, const void *data, size_t size) {
  add_varint(b, number << 3 | 2);
  add_varint(b, size);
  blob_add(b, data, size);
}

/* A double array whose only key is "A": the root's offset is 0, the leaf lies 0x80 away. */
static void add_charsmap(struct blob *b) {
  uint32_t units[256] = {['A'] = 'A' | 1u << 8 | 0x80u << 10, ['A' ^ 0x80] = 0x80000000u};
  struct blob map = {0};
  add_i32(&map, sizeof units);
  blob_add(&map, units, sizeof units);
  blob_add(&map, "the", 4);
  add_bytes_field(b, 2, map.data, map.size);
  blob_free(&map);
}

static void add_spm_piece(struct blob *b, const char *text, float score, unsigned type) {
  struct blob piece = {0}, marked = {0};
  for (; *text; text++)
    if (*text == ' ')
      blob_text(&marked, "\xe2\x96\x81");
    else
      blob_add(&marked, text, 1);
  add_bytes_field(&piece, 1, marked.data, marked.size);
  blob_add(&piece, "\x15", 1); /* field 2, 32 bits */
  blob_add(&piece, &score, 4);
  add_varint_field(&piece, 3, type);
  add_bytes_field(b, 1, piece.data, piece.size);
  blob_free(&piece);
  blob_free(&marked);
}

void tiny_spm(struct blob *b, const struct tiny_spm *o) {
  for (int id = 0; id < TINY_SPM_N; id++) {
    char name[8];
    float score;
    const char *piece = spm_piece(id, name, &score);
    add_spm_piece(b, piece, score,
                  id == 0               ? 2
                  : id < 3              ? 3
                  : id >= 259           ? 1
                  : o->no_byte_fallback ? 3
                                        : 6);
  }
  if (o->user) add_spm_piece(b, o->user, 0, 4);
  struct blob spec = {0};
  add_varint_field(&spec, 3, (unsigned)o->model_type);
  add_varint_field(&spec, 24, o->suffix);
  add_varint_field(&spec, 35, !o->no_byte_fallback);
  add_bytes_field(b, 2, spec.data, spec.size);
  spec.size = 0;
  add_bytes_field(&spec, 1, "tiny", 4);
  if (o->rewrite) add_charsmap(&spec);
  add_varint_field(&spec, 3, !o->no_dummy_prefix);
  add_varint_field(&spec, 4, o->strip_spaces);
  add_bytes_field(b, 3, spec.data, spec.size);
  blob_free(&spec);
}
