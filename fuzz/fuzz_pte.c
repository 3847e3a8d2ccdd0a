/* Programs, their delegates included. */
#include "mutate.h"
#include "walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  sconce_error err;
  struct pte pte;
  if (pte_open(&pte, extent_of((struct span){data, size}), &err) == SCONCE_OK) (void)walk_pte(&pte);
  return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
  return mutate_program(data, size, max_size, seed);
}
