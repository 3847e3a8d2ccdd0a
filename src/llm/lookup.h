/* Prompt lookup: where the last ids have come before, what followed them then is a guess at what
 * follows now. A call of several rows verifies it for little more than a call of one.
 *
 * Whether that pays is known beforehand: guesses are compared with what is chosen also where they
 * are not verified, and the time of calls with one row and with several is measured. */
#ifndef LLM_LOOKUP_H
#define LLM_LOOKUP_H

#include "sconce_llm.h"

enum { LOOKUP_ROWS = 8, LOOKUP_SIZES = 4 }; /* rows of a call: at most; 1, 2, 4 and 8 */

struct lookup {
  sconce_lookup when;
  uint32_t max_rows;          /* of a call; below 2: no lookup */
  int32_t guess[LOOKUP_ROWS]; /* of the ids that come next */
  uint32_t n_guess;           /* 0: none */
  float share;                /* of guesses that were right, of late */
  double ns;                  /* of a call with one row; 0: unknown */
  double
      cost[LOOKUP_SIZES]; /* of a call with 2, 4, 8 rows (from 1 on), in such calls; 0: unknown */
  uint32_t n_times[LOOKUP_SIZES]; /* that were measured */
};

void lookup_init(struct lookup *l, sconce_lookup when, uint32_t max_rows);
/* Guesses what follows n ids. */
void lookup_guess(struct lookup *l, const int32_t *ids, uint32_t n);
/* How many rows the next call should have, of which all but one are guesses: 1 where they do not
 * pay. At most `most`. */
uint32_t lookup_rows(const struct lookup *l, uint32_t most);
/* So many of the first n guesses were right; what came behind a wrong one is not known. */
void lookup_saw(struct lookup *l, uint32_t right, uint32_t n);
/* What a call of so many rows took. */
void lookup_time(struct lookup *l, uint32_t rows, uint64_t ns);

#endif
