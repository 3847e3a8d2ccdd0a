/* Sums of bytes: one to find damage and tell files apart, one for tables. */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* At the speed of memory: four lanes of multiplications. Whoever wants two inputs with the same sum
 * can make them. `start` is 0 or the sum of what came before: the cuts between pieces are part of
 * the sum. One changed word always changes it, since every step can be undone. */
uint64_t hash_bytes(uint64_t start, const void *data, size_t size);

/* For tables whose keys come from files: SipHash-1-3 with a secret of this process, so that nobody
 * makes keys that fall together. */
uint64_t hash_key(const void *data, size_t size);
/* The same for a number, by Thorup's multiply-shift: 32 bits, quicker. */
uint32_t hash_number(uint64_t number);

#endif
