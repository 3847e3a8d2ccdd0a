/* Programs, from the file to the plan: see try_plan.h. */
#include "mutate.h"
#include "try_plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  try_plan(data, size);
  return 0;
}

/* Half of the time it is the delegate's graph that changes. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
  return mutate_program(data, size, max_size, seed % 2 ? seed * 8 + 1 : seed / 2);
}
