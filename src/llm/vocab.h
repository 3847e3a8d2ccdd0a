/* A vocabulary: the bytes of every id, the way back by hash, and sets of texts that are matched
 * longest first. Built once while a file is read, read-only afterwards. */
#ifndef LLM_VOCAB_H
#define LLM_VOCAB_H

#include "base/arena.h"
#include "base/span.h"

enum piece_type {                 /* SentencePiece's numbers */
                  PIECE_HOLE = 0, /* an id that nothing stands for */
                  PIECE_NORMAL = 1,
                  PIECE_UNKNOWN = 2,
                  PIECE_CONTROL = 3, /* stands for no text: <s>, <|eot_id|> */
                  PIECE_USER = 4,    /* never split or merged */
                  PIECE_UNUSED = 5,
                  PIECE_BYTE = 6,
};

struct piece {
  struct text text; /* what the id decodes to; of a control piece its name */
  uint32_t rank;    /* merge order, lowest first */
  float score;      /* SentencePiece's */
  uint8_t type;
  bool strip_left, strip_right; /* swallows the white space beside it in a text */
  bool unreachable; /* has a space that is no U+2581 in a SentencePiece file: no text has it */
};

struct vocab {
  struct piece *pieces; /* (n) */
  uint32_t n;
  uint32_t *slots; /* id + 1, 0 is free; open addressing */
  uint32_t mask;
  size_t size_max;   /* longest indexed piece, bytes */
  int32_t byte[256]; /* id of a single byte, or -1 */
};

bool vocab_init(struct vocab *vocab, struct arena *arena, uint32_t n);
/* Makes an id findable by its text; the first of equal texts stays, the empty text is nothing. */
void vocab_index(struct vocab *vocab, uint32_t id);
int32_t vocab_find(const struct vocab *vocab, const char *data, size_t size); /* -1: no such */

/* Order-preserving: a higher score has a lower rank, equal scores have equal ranks. */
uint32_t rank_of_score(float score);

/* A set of texts with ids, ordered, so that walking down byte by byte narrows a range. */
struct matcher {
  struct match_key {
    struct text text;
    int32_t id;
  } *keys; /* (n), ascending, no two equal */
  uint32_t n;
  uint32_t first[257]; /* keys that start with byte b: [first[b], first[b + 1]) */
};

enum { MATCH_SIZE_MAX = 1024 }; /* bytes of a key: bounds what a position of the text may cost */

/* Takes the keys over, orders them and drops repeated texts. */
void matcher_init(struct matcher *m, struct match_key *keys, uint32_t n);
/* The longest key at the start of text, its size; -1 if none. */
int32_t matcher_longest(const struct matcher *m, struct text text, size_t *size);
int32_t matcher_find(const struct matcher *m, struct text text); /* exactly this text, or -1 */

/* Keys that start with the depth bytes walked so far. */
struct match_walk {
  uint32_t low, high;
  size_t depth;
};
bool matcher_start(const struct matcher *m, struct match_walk *w, uint8_t byte);
bool matcher_step(const struct matcher *m, struct match_walk *w, uint8_t byte);
int32_t matcher_here(const struct matcher *m, const struct match_walk *w); /* key of depth bytes */

/* Which pairs of ids merge, for formats that list them. */
struct pair_table {
  struct pair {
    uint32_t left, right; /* id + 1, 0 is free */
    uint32_t rank;
    int32_t id;
  } *slots;
  uint32_t mask;
};
bool pair_table_init(struct pair_table *t, struct arena *arena, uint32_t n);
/* The last of equal pairs counts; at most n may be added. */
void pair_table_add(struct pair_table *t, int32_t left, int32_t right, uint32_t rank, int32_t id);
const struct pair *pair_table_find(const struct pair_table *t, int32_t left, int32_t right);

#endif
