/* What all states of a method share on the device: the constants, what states start with, and the
 * memory of intermediate results.
 *
 * A call in one piece leaves nothing behind in intermediate results, and the device works through
 * calls one after another, so states can have them in common. A call of which a part is held is
 * sent before another's. Where the host must look at a result
 * in the middle of a call, or a loop takes its time, another state's call could come in between:
 * there each has its own. */
#ifndef RUN_SHARED_H
#define RUN_SHARED_H

#include "run/weights.h"

struct shared {
  struct gpu *gpu;
  struct weights *weights;
  const struct graph *graph;
  struct weight **held;        /* by graph buffer: constants and initial state, else NULL */
  struct gpu_buffer **buffers; /* by graph buffer; NULL: each state has its own */
  struct exec *holder;         /* whose call is in part here and in part not sent, see piece.h */
  struct load load;
  bool ready;
};

/* After graph_finish, which the shared part then belongs to. */
SCONCE_CHECK sconce_status shared_begin(struct shared *h, struct gpu *gpu, struct weights *weights,
                                        struct graph *graph, sconce_error *err);
SCONCE_CHECK sconce_status shared_poll(struct shared *h, bool *done, sconce_error *err);
void shared_free(struct shared *h); /* a zeroed one is fine */
/* Waits: for tests and benches, whose bytes are in memory. */
SCONCE_CHECK sconce_status shared_finish(struct shared *h, sconce_error *err);

#endif
