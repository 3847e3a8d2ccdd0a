/* A mutator that knows the schemas: it walks from the root to some field and changes that field, so
 * that most inputs pass the structural layer and reach the semantic one. */
#ifndef FUZZ_MUTATE_H
#define FUZZ_MUTATE_H

#include "format/flatbuf.h"

#include <stddef.h>
#include <stdint.h>

/* Part of libFuzzer: its own mutation, called for the bytes that no schema describes. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

/* The flatbuffer lies at [start, end) of the input. Changes it in place, the size stays. */
void mutate_flatbuffer(uint8_t *data, size_t start, size_t end, const char id[4],
                       const struct fb_type *type, unsigned seed);

/* Once in eight times, and whenever the input is too small: libFuzzer's own mutation. */
bool mutate_plainly(unsigned seed);

/* A whole `.pte`: the program, its header, or a delegate's graph in it. Returns the new size. */
size_t mutate_program(uint8_t *data, size_t size, size_t max_size, unsigned seed);

#endif
