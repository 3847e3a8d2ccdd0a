/* From a file to a plan without a device, at WebGPU's default limits, with the rehearsal of a load,
 * then two calls with a third and two thirds of the dims; what the host looks at is zero. At most
 * 256 MiB, and none left. */
#ifndef FUZZ_TRY_PLAN_H
#define FUZZ_TRY_PLAN_H

#include <stddef.h>
#include <stdint.h>

void try_plan(const uint8_t *data, size_t size);
/* …with a .ptd, if it has any bytes. */
void try_plan_with(const uint8_t *data, size_t size, const uint8_t *ptd, size_t ptd_size);

#endif
