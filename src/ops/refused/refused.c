/* Operators that ExecuTorch's own runtime has and no build of this one runs, and why. */
#include "graph/op.h"

#define COMPLEX                                                                                    \
  "complex numbers have no elements here: write the model with pairs of real ones, or leave this " \
  "part to the application"
#define RANDOM                                                                                     \
  "random numbers would differ from call to call and from device to device: draw them in the "     \
  "application and give them to the method as an input"

const struct op ops_refused[] = {
    {"aten::_fft_r2c.out", .refused = COMPLEX},
    {"aten::_fft_c2r.out", .refused = COMPLEX},
    {"aten::_conj_physical.out", .refused = COMPLEX},
    {"aten::view_as_real_copy.out", .refused = COMPLEX},
    {"aten::rand.out", .refused = RANDOM},
    {"aten::randn.out", .refused = RANDOM},
    {0},
};
