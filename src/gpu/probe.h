/* Kernels that measure a device; the benches use them too. */
#ifndef GPU_PROBE_H
#define GPU_PROBE_H

#include "graph/kernel.h"

enum probe { PROBE_SUBGROUP, PROBE_CHAIN, PROBE_READ, PROBES };
extern const struct kernel probe_kernels[]; /* ends with a row without a name */

#endif
