/* Reads tiktoken ranks as Llama 3 ships them: lines of base64(bytes), a space, the rank. Ranks are
 * ids; Llama 3's 256 special tokens follow them. */
#include "llm/tokenizer.h"

#include <stdio.h>

enum { N_SPECIAL = 256 };

static int32_t base64_value(uint8_t c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Decodes whole groups of four with padding; the number of bytes, SIZE_MAX if malformed. */
static size_t base64_decode(struct text in, char *out) {
  size_t n = 0, pad = 0;
  if (in.size == 0 || in.size % 4) return SIZE_MAX;
  while (pad < 2 && in.data[in.size - 1 - pad] == '=') pad++;
  for (size_t i = 0; i < in.size; i += 4) {
    uint32_t bits = 0;
    for (size_t k = i; k < i + 4; k++) {
      int32_t value = k < in.size - pad ? base64_value((uint8_t)in.data[k]) : 0;
      if (value < 0) return SIZE_MAX;
      bits = bits << 6 | (uint32_t)value;
    }
    for (int k = 2; k >= 0; k--) out[n++] = (char)(bits >> (8 * k));
  }
  return n - pad;
}

struct line {
  struct text code;
  uint32_t rank;
};

/* Takes a line off the front; false if it is none of ours. */
static bool next_line(struct span *rest, struct line *line) {
  const uint8_t *newline = memchr(rest->data, '\n', rest->size);
  size_t size = newline ? (size_t)(newline - rest->data) : rest->size, at = 0;
  const uint8_t *p = rest->data;
  *rest = newline ? (struct span){newline + 1, rest->size - size - 1} : (struct span){0};
  if (size && p[size - 1] == '\r') size--;
  while (at < size && p[at] != ' ') at++;
  line->code = (struct text){(const char *)p, at};
  uint64_t rank = 0;
  size_t digits = at + 1;
  for (at = digits; at < size; at++) {
    if (p[at] < '0' || p[at] > '9' || at - digits >= 9) return false;
    rank = rank * 10 + (uint64_t)(p[at] - '0');
  }
  line->rank = (uint32_t)rank;
  return at > digits && line->code.size;
}

bool tiktoken_detect(struct span file) {
  struct line line;
  char bytes[96];
  if (file.size == 0) return false;
  return next_line(&file, &line) && line.code.size <= 128 &&
         base64_decode(line.code, bytes) != SIZE_MAX;
}

static sconce_status read_ranks(sconce_tokenizer *t, struct span file, uint32_t n,
                                sconce_error *err) {
  for (uint32_t number = 1; file.size; number++) {
    struct line line;
    if (!next_line(&file, &line))
      return fail(err, SCONCE_BAD_FILE, "line %u is not base64, a space and a rank", number);
    if (line.rank >= n)
      return fail(err, SCONCE_BAD_FILE, "rank %u in line %u, there are %u lines", line.rank, number,
                  n);
    struct piece *piece = &t->vocab.pieces[line.rank];
    if (piece->type != PIECE_HOLE)
      return fail(err, SCONCE_BAD_FILE, "rank %u again in line %u", line.rank, number);
    char *bytes = arena_new(&t->arena, char, line.code.size / 4 * 3 + 1);
    if (!bytes) return fail(err, SCONCE_NO_MEMORY, "out of memory for rank %u", line.rank);
    size_t size = base64_decode(line.code, bytes);
    if (size == SIZE_MAX || size == 0)
      return fail(err, SCONCE_BAD_FILE, "line %u has malformed base64", number);
    *piece = (struct piece){.text = {bytes, size}, .type = PIECE_NORMAL, .rank = line.rank};
    if (size == 1) t->vocab.byte[(uint8_t)bytes[0]] = (int32_t)line.rank;
    vocab_index(&t->vocab, line.rank);
  }
  for (int b = 0; b < 256; b++)
    if (t->vocab.byte[b] < 0)
      return fail(err, SCONCE_BAD_FILE, "no rank for byte 0x%02x", (unsigned)b);
  return SCONCE_OK;
}

/* Llama 3's names; what is not named here is reserved_special_token_0, 1, … in order. */
static sconce_status add_special(sconce_tokenizer *t, uint32_t base, sconce_error *err) {
  static const char *const names[] = {
      [0] = "<|begin_of_text|>", [1] = "<|end_of_text|>",     [4] = "<|finetune_right_pad_id|>",
      [5] = "<|step_id|>",       [6] = "<|start_header_id|>", [7] = "<|end_header_id|>",
      [8] = "<|eom_id|>",        [9] = "<|eot_id|>",          [10] = "<|python_tag|>",
  };
  uint32_t reserved = 0;
  for (uint32_t i = 0; i < N_SPECIAL; i++) {
    char name[40];
    if (i < sizeof names / sizeof *names && names[i])
      snprintf(name, sizeof name, "%s", names[i]);
    else
      snprintf(name, sizeof name, "<|reserved_special_token_%u|>", reserved++);
    if (!tokenizer_set_piece(t, base + i, PIECE_CONTROL, text_of(name)))
      return fail(err, SCONCE_NO_MEMORY, "out of memory for special tokens");
  }
  t->info.bos = (int32_t)base;
  t->info.eos = (int32_t)base + 1;
  return tokenizer_collect_special(t, err);
}

sconce_status tiktoken_load(sconce_tokenizer *t, struct span file, sconce_error *err) {
  uint32_t n = 0;
  if (file.size > UINT32_MAX / 2)
    return fail(err, SCONCE_BAD_FILE, "%zu bytes of ranks are too many", file.size);
  for (size_t i = 0; i < file.size; i++) n += file.data[i] == '\n';
  if (file.data[file.size - 1] != '\n') n++;
  if (!vocab_init(&t->vocab, &t->arena, n + N_SPECIAL))
    return fail(err, SCONCE_NO_MEMORY, "out of memory for %u ranks", n);
  TRY(read_ranks(t, file, n, err));
  t->bytes.whole_first = true;
  t->bytes.split = (struct split){.stages = {SPLIT_LLAMA3}, .n_stages = 1};
  t->info.add_bos = true;
  t->info.kind = "tiktoken";
  return add_special(t, n, err);
}
