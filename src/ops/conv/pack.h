/* How weights lie for conv_gemm and conv_direct: (taps, input channels, output channels), those in
 * whole quads. Forward, output channels are of all groups; transposed, input channels are. */
#ifndef OPS_CONV_PACK_H
#define OPS_CONV_PACK_H

#include "graph/packing.h"

extern const struct packing conv_forward, conv_transposed;

#endif
