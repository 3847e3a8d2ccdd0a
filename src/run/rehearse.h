/* Calls planned before the first one, to know the kernels that they will need. */
#ifndef RUN_REHEARSE_H
#define RUN_REHEARSE_H

#include "run/draw.h"

enum { REHEARSED_MAX = 128 };

struct rehearsal {
  const struct kernel *rows[REHEARSED_MAX];
  uint32_t n;
};

/* After graph_finish, which it leaves as it was. With all dims at their maximum and, where `live`
 * says so of an input, at 1, 2, 4 …; with scalars from 0 upwards as far as they are accepted; with
 * a token chosen in each way. A call that cannot be planned is none. */
SCONCE_CHECK sconce_status rehearse(struct graph *g, const struct draw *draw, const bool *live,
                                    struct rehearsal *out, sconce_error *err);

#endif
