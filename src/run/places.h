/* Which value lies where in a program's planned memory.
 *
 * Views of static shape leave no instruction: the viewing tensor has the memory of the viewed one,
 * and nobody writes it. So what is read before anything wrote it is a view of what was written last
 * at its place. */
#ifndef RUN_PLACES_H
#define RUN_PLACES_H

#include "base/arena.h"
#include "format/pte.h"

struct places {
  const struct pte_method *m;
  uint32_t *slots; /* indices of values, hashed by memory and offset; UINT32_MAX: none */
  uint32_t mask;   /* slots - 1 */
};

/* false: no memory. */
bool places_init(struct places *places, const struct pte_method *m, struct arena *arena);
/* Something wrote value `index`; does nothing for what has no planned memory. */
void places_wrote(struct places *places, uint32_t index);
/* The value that `index` is a view of, or UINT32_MAX. */
uint32_t places_viewed(const struct places *places, uint32_t index);

#endif
