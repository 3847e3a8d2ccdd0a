/* See lookup.h. */
#include "llm/lookup.h"

#include <string.h>

enum { MATCH_MIN = 3, MATCH_MAX = 16 }; /* ids that must have come before; more count no more */
enum { REACH = 16384 };                 /* ids that are searched, the latest: some microseconds */

static uint32_t size_of(uint32_t rows) { return rows >= 8 ? 3 : rows >= 4 ? 2 : rows >= 2 ? 1 : 0; }

void lookup_init(struct lookup *l, sconce_lookup when, uint32_t max_rows) {
  if (when == SCONCE_LOOKUP_OFF || max_rows < 2) max_rows = 1;
  *l = (struct lookup){
      .when = when, .max_rows = max_rows < LOOKUP_ROWS ? max_rows : LOOKUP_ROWS, .share = 0.5f};
}

/* How many ids before `at` are those before n, at most MATCH_MAX. */
static uint32_t match_at(const int32_t *ids, uint32_t at, uint32_t n) {
  const uint32_t most = at < MATCH_MAX ? at : MATCH_MAX;
  uint32_t k = 0;
  while (k < most && ids[at - 1 - k] == ids[n - 1 - k]) k++;
  return k;
}

/* The longest match wins, the latest among equals. What it leads to may be the guess itself, where
 * the text goes round in a circle. */
void lookup_guess(struct lookup *l, const int32_t *ids, uint32_t n) {
  uint32_t best = MATCH_MIN - 1, from = 0;
  const uint32_t end = n > REACH ? n - REACH : 0;
  l->n_guess = 0;
  if (l->max_rows < 2) return;
  for (uint32_t at = n ? n - 1 : 0; at > end && best < MATCH_MAX; at--) {
    if (ids[at - 1] != ids[n - 1]) continue;
    const uint32_t match = match_at(ids, at, n);
    if (match > best) best = match, from = at;
  }
  if (best < MATCH_MIN) return;
  l->n_guess = l->max_rows - 1;
  for (uint32_t i = 0; i < l->n_guess; i++)
    l->guess[i] = from + i < n ? ids[from + i] : l->guess[from + i - n];
}

/* A call of so many rows in calls of one. What is not known yet is told from the next smaller size,
 * or is that of a GPU, which reads the weights once. */
static double cost_of(const struct lookup *l, uint32_t size) {
  uint32_t known = size;
  while (known && l->cost[known] == 0) known--;
  const double a_row = known ? (l->cost[known] - 1) / ((1u << known) - 1) : 0.1;
  return 1 + a_row * ((1u << size) - 1);
}

/* Ids that a call gives: one, and each guess that was right up to the first that was not. */
static double ids_of(const struct lookup *l, uint32_t rows) {
  double sum = 0, all = 1;
  for (uint32_t i = 0; i < rows; i++, all *= (double)l->share) sum += all;
  return sum;
}

uint32_t lookup_rows(const struct lookup *l, uint32_t most) {
  uint32_t best = 1, room = l->n_guess + 1;
  if (room > most) room = most;
  if (room < 2) return 1;
  if (l->when == SCONCE_LOOKUP_ALWAYS) return room;
  double gain = 1.1; /* what is measured is not exact */
  for (uint32_t size = 1; 1u << size <= room && l->ns > 0; size++) {
    const double g = ids_of(l, 1u << size) / cost_of(l, size);
    if (g > gain) best = 1u << size, gain = g;
    if (l->cost[size] == 0) break; /* larger ones are tried when this one is known */
  }
  return best;
}

void lookup_saw(struct lookup *l, uint32_t right, uint32_t n) {
  const float weight = 0.2f;
  for (uint32_t i = 0; i < right; i++) l->share += weight * (1 - l->share);
  if (right < n) l->share -= weight * l->share;
}

/* A part of the way to what was measured. Clocks are rough where others use the
 * machine too, so nothing counts for more than twice what was expected. */
static void approach(double *mean, double sample, double part) {
  if (*mean == 0)
    *mean = sample;
  else
    *mean += part * (sample > 2 * *mean ? *mean : sample - *mean);
}

/* The first call of each size binds what later ones find bound. Costs are kept in calls of one row,
 * since the machine may be faster or slower later. They are forgotten slowly, and so tried again.
 */
void lookup_time(struct lookup *l, uint32_t rows, uint64_t ns) {
  const uint32_t size = size_of(rows);
  if (rows != 1u << size || l->n_times[size]++ == 0) return;
  if (size == 0) {
    approach(&l->ns, (double)ns, 0.125);
    for (uint32_t i = 1; i < LOOKUP_SIZES; i++)
      if (l->cost[i] > 1) l->cost[i] -= (l->cost[i] - 1) / 128;
  } else if (l->ns > 0) {
    const double cost = (double)ns / l->ns;
    approach(&l->cost[size], cost > 1 ? cost : 1, 0.25);
  }
}
