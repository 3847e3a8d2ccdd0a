/* Calls planned before the first one, to know the kernels that they will need. */
#ifndef RUN_REHEARSE_H
#define RUN_REHEARSE_H

#include "run/draw.h"

enum { REHEARSED_MAX = 128 }; /* a Llama has 30; what comes after is compiled when it is needed */

struct rehearsal {
  const struct kernel *rows[REHEARSED_MAX];
  uint32_t n;
};

/* After graph_finish; the graph is as before, ready for its first call. Plans calls at the maximum
 * dims, with a dim of dynamic inputs at 1, 2, 4 …, with scalars from 0 upwards as far as they are
 * accepted, with a token chosen greedily and drawn. A call that cannot be planned is none. `few`:
 * of calls whose dims change those with a dim and scalars up to FEW, and none with a token drawn.
 */
enum { FEW = 16 };
SCONCE_CHECK sconce_status rehearse(struct graph *g, const struct draw *draw, const bool *dynamic,
                                    bool few, struct rehearsal *out, sconce_error *err);

#endif
