/* A convolution as its kernels see it: one to three axes of space, forward or transposed. */
#ifndef OPS_CONV_CONV_H
#define OPS_CONV_CONV_H

#include "graph/op.h"

enum {
  CONV_X,
  CONV_W,
  CONV_BIAS,
  CONV_STRIDE,
  CONV_PADDING,
  CONV_DILATION,
  CONV_TRANSPOSED,
  CONV_OUTPUT_PADDING,
  CONV_GROUPS,
  CONV_LOW, /* of conv_with_clamp; the result of a plain one */
  CONV_HIGH,
};
enum { CONV_AXES = 3, CONV_PHASES_MAX = 64 }; /* depth, height, width */

struct conv_axis {
  uint32_t in, out, kernel;
  uint32_t stride, padding, dilation;
  uint32_t extra; /* output_padding */
};

struct conv {
  uint32_t batch, groups;
  uint32_t ic, oc; /* channels of a group */
  bool transposed;
  struct conv_axis axis[CONV_AXES]; /* those that x has not are 1 everywhere */
};

/* What one dispatch computes of an axis: pixels q of y at q · out_step + out_first, each a sum over
 * `taps`, tap t of which reads x at q · in_step + in_first + t · in_tap and has the weight
 * w_first + t · w_step. A forward convolution is one phase; of a transposed one each remainder of a
 * pixel by the stride is a phase of its own, since it sees taps of its own. */
struct conv_phase {
  uint32_t pixels, taps;
  uint32_t in_step;
  int32_t in_first, in_tap;
  uint32_t out_step, out_first;
  uint32_t w_first, w_step;
};

/* Reads the arguments and checks them against each other; dims are the live ones. */
SCONCE_CHECK sconce_status conv_read(struct plan *p, const struct node *n, struct conv *c);

/* How many dispatches that makes; 0: too many, which is for a kernel that knows no phases. */
uint32_t conv_phases(const struct conv *c);
/* Phase i of all axes. */
void conv_phase(const struct conv *c, uint32_t i, struct conv_phase out[CONV_AXES]);

static inline uint64_t conv_pixels_in(const struct conv *c) {
  return (uint64_t)c->axis[0].in * c->axis[1].in * c->axis[2].in;
}
static inline uint64_t conv_pixels_out(const struct conv *c) {
  return (uint64_t)c->axis[0].out * c->axis[1].out * c->axis[2].out;
}
static inline uint64_t conv_taps(const struct conv *c) {
  return (uint64_t)c->axis[0].kernel * c->axis[1].kernel * c->axis[2].kernel;
}

#endif
