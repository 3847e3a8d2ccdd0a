/* A long call goes to the device in pieces of some 50 ms, two at a time: cancel and close then wait
 * for those two alone, and others get their turn on the device. How long a dispatch takes is
 * learned from the calls before, by the clock of whoever waits; a call that is short as a whole is
 * not cut. Between begin and its last piece a call is `held`: whatever else is asked of its state
 * sends the rest first.
 *
 * A loop is sent as it is planned, also two pieces at a time; what is planned and does not fill a
 * piece waits for more. */
#ifndef RUN_PIECE_H
#define RUN_PIECE_H

#include "base/status.h"

#include <stdint.h>

struct exec;
struct flight;
struct origin;
struct gpu_fence;

#define PIECE_NS UINT64_C(50000000)
/* Dispatches of a call with jumps that are kept before they are sent: rounds of a loop need
 * parameter memory and bind groups for each. */
enum { TAKE_MAX = 512 };

/* When work began, and when it was last seen to go on: what is known of its time. */
struct watch {
  uint64_t since, seen;   /* by os_clock_ns */
  uint32_t first, after;  /* the dispatches */
  struct origin *origins; /* …among these; NULL: nothing is learned */
};

struct piece {
  struct gpu_fence *fence;
  struct watch watch;
};

struct held_call {
  struct flight *flight; /* whose dispatches are not all sent, or NULL */
  uint32_t at;           /* the first of them */
  uint32_t n_copies;     /* of the exec's copies, which follow the last one */
  struct piece pieces[2];
  uint32_t n_pieces; /* sent and not seen to end, oldest first */
};

/* Nanoseconds of a dispatch that has not been timed yet. */
float piece_guess(const struct exec *x);
/* Is what was bound and not sent yet worth being cut? */
bool piece_wanted(const struct exec *x);
/* The call's parameters are written; sends its first pieces and holds the rest. */
SCONCE_CHECK sconce_status piece_begin(struct exec *x, struct flight *f, uint32_t n_copies,
                                       sconce_error *err);
/* Sends on as pieces end; block: until all are sent. */
SCONCE_CHECK sconce_status piece_go_on(struct exec *x, bool block, sconce_error *err);
/* What was bound last and not sent, of a loop: is it a piece, and where does that end? */
bool piece_is_full(const struct exec *x, uint32_t *after);
/* Sends it, its parameters being written. *sent: there was room; block: waits for that. */
SCONCE_CHECK sconce_status piece_send(struct exec *x, uint32_t after, bool block, bool *sent,
                                      sconce_error *err);
/* Sends what is held, of this state or of another that has memory in common with it. */
SCONCE_CHECK sconce_status piece_flush(struct exec *x, sconce_error *err);
/* Forgets what is held. */
void piece_drop(struct exec *x);

/* These dispatches have been submitted; */
void watch_begin(struct watch *w, const struct exec *x, uint32_t first, uint32_t after);
void watch_still(struct watch *w); /* they are not done; */
/* they are: by somebody who waited, or who just looked. */
void watch_end(struct exec *x, const struct watch *w, bool waited);

#endif
