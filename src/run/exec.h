/* Runs the calls of one state: buffers at the maximum dims, bind groups per kernel and shape seen,
 * one parameter memory, one readback. Once each shape has been seen a call creates nothing. */
#ifndef RUN_EXEC_H
#define RUN_EXEC_H

#include "gpu/gpu.h"
#include "graph/graph.h"
#include "run/piece.h"
#include "run/pool.h"
#include "run/shared.h"

enum {
  EXEC_FLIGHTS = SCONCE_CALLS_MAX,
  EXEC_SLOT = 256, /* bytes of parameters of a dispatch: a device's alignment of bindings */
};

/* An output of one call, as it was when the call was begun. */
struct outcome {
  bool copied;             /* else it stays on the device */
  uint64_t at;             /* its offset among the bytes that were read back */
  uint32_t dims[RANK_MAX]; /* live */
  int64_t number;          /* of a SymInt */
};

/* What a dispatch was planned as, and how long it is expected to take. */
struct origin {
  const struct node *node;
  const struct kernel *row;
  float *group_ns; /* of one workgroup; where it is learned */
  float ns;
};

/* A call that was submitted: where its outputs arrive. */
struct flight {
  struct gpu_read *read;
  uint64_t size;            /* bytes that `read` holds */
  struct outcome *outcomes; /* (outputs + 1) the last one is the token */
  bool taken;
  struct watch watch; /* its dispatches, or the last piece of them */
};

struct exec {
  struct gpu *gpu;
  struct shared *shared;
  struct pool *pool; /* state that others have too; NULL: none */
  struct graph *graph;
  struct arena *arena;         /* the graph's */
  struct gpu_buffer **buffers; /* by graph buffer; some are shared */
  struct bound **bound;        /* by node: what its records are bound to */
  struct bound ***again;       /* by node: where its next visit in this submit goes on; NULL at the
                                  first, or if the graph has no jumps */
  struct params *params;       /* blocks of parameter slots, newest first */
  struct gpu_dispatch *dispatches;
  struct origin *origins;  /* of the dispatches */
  struct origin *spare[2]; /* of those before them: the pieces of a loop that are under way */
  uint32_t n_dispatches, cap_dispatches;
  uint32_t dispatches_sent; /* of this call, while it is being begun */
  uint32_t dispatches_gone; /* …and those that are not in the list any more */
  bool loops;               /* the graph jumps backwards: see piece.h */
  bool begun;               /* something of this call is bound */
  bool complete;            /* dispatches is the whole graph's list */
  struct flight flights[EXEC_FLIGHTS];
  struct flight *running[EXEC_FLIGHTS]; /* submitted and not yet waited for, oldest first */
  uint32_t n_running;
  struct flight *finished;  /* the last call waited for, or NULL */
  const uint8_t *mapped;    /* its outputs */
  struct gpu_copy *copies;  /* (outputs + 1) of one call */
  struct gpu_read *part;    /* for scalars that only the device knows; opened when needed */
  uint64_t records_written; /* parameter slots rewritten, ever */
  uint32_t submits;         /* of the last call */
  uint64_t piece_ns;        /* a piece shall not take longer: PIECE_NS, or a test's */
  struct held_call held;
  uint64_t bind_ns, submit_ns; /* of the host in exec_begin, ever */
};

/* What a call gives back. */
struct take {
  bool nothing;       /* outputs stay on the device */
  uint32_t last_rows; /* see sconce_call */
  uint32_t token;     /* a value to read back with the outputs, or NO_VALUE */
};

/* The graph is the state's own: the one that `shared` was made of, or a copy of it. The pool, or
 * NULL, outlives it. */
SCONCE_CHECK sconce_status exec_init(struct exec *x, struct shared *shared, struct pool *pool,
                                     struct graph *graph, sconce_error *err);
void exec_free(struct exec *x);
/* A record's kernel with its operands, by graph buffer, and this slot of parameters bound to it. */
SCONCE_CHECK sconce_status exec_group(const struct exec *x, struct gpu_buffer *const *buffers,
                                      const struct record *r, struct gpu_buffer *params,
                                      uint32_t slot, struct gpu_group **out, sconce_error *err);
uint32_t exec_dispatches(const struct exec *x); /* of the last call */
uint64_t exec_own(const struct exec *x);        /* bytes on the device that exec_free frees */
/* Puts state (KV caches) back to its initial contents. */
SCONCE_CHECK sconce_status exec_reset(struct exec *x, sconce_error *err);

/* The bytes of all state buffers, one after another. */
uint64_t exec_state_size(const struct exec *x);
SCONCE_CHECK sconce_status exec_get_state(struct exec *x, uint8_t *out, sconce_error *err);
SCONCE_CHECK sconce_status exec_set_state(struct exec *x, const uint8_t *in, sconce_error *err);

SCONCE_CHECK sconce_status exec_write(struct exec *x, uint32_t value, const void *data,
                                      uint64_t size, sconce_error *err);
/* The live elements of one's output become another's input, on the device. */
SCONCE_CHECK sconce_status exec_feed(struct exec *x, uint32_t input, const struct exec *from,
                                     uint32_t output, sconce_error *err);
/* In a graph with jumps: takes what graph_plan has planned before it plans on, and sends a long
 * call on the way. *taken: all of it, else ask again; block: waits until it is. */
SCONCE_CHECK sconce_status exec_take(struct exec *x, bool block, bool *taken, sconce_error *err);
/* Are a call's loops sent in pieces, so that nobody need plan them in one go? */
bool exec_is_paced(const struct exec *x);
/* Then runs all of it and begins to read a tensor's live elements: for a scalar that only
 * the device knows. Once poll, with the same value, has put them into `out` (HOST_READ_MAX bytes)
 * exec_begin goes on behind them. */
SCONCE_CHECK sconce_status exec_part_begin(struct exec *x, uint32_t value, sconce_error *err);
SCONCE_CHECK sconce_status exec_part_poll(struct exec *x, uint32_t value, void *out, bool block,
                                          bool *done, sconce_error *err);
/* After graph_plan: binds what is new, writes what changed, submits, begins the readback. Up to
 * EXEC_FLIGHTS calls may run; the device works through them in order. */
SCONCE_CHECK sconce_status exec_begin(struct exec *x, const struct take *take, sconce_error *err);
/* *done: the oldest running call's outputs can be read with exec_output until the next begin or
 * poll. */
SCONCE_CHECK sconce_status exec_poll(struct exec *x, bool block, bool *done, sconce_error *err);
/* The outputs as they are on the device, without a call; waits. */
SCONCE_CHECK sconce_status exec_read(struct exec *x, sconce_error *err);
/* Of the last call waited for; NULL before. Its data: NULL if it stayed on the device. Output
 * n_outputs is the token. */
const struct outcome *exec_outcome(const struct exec *x, uint32_t output);
const void *exec_output(const struct exec *x, uint32_t output);
/* Forgets a call that was planned, and perhaps run in part; the last call's outputs stay. */
void exec_give_up(struct exec *x);
/* Gives up all calls that were begun. */
void exec_cancel(struct exec *x);
/* Runs the graph as it is planned, a pass per dispatch, and calls each in order with the node's and
 * the kernel's name and the times of the device's clock, from 0. */
SCONCE_CHECK sconce_status exec_profile(struct exec *x, struct arena *scratch,
                                        void (*each)(void *user, const char *node,
                                                     const char *kernel, uint64_t from,
                                                     uint64_t to),
                                        void *user, sconce_error *err);
/* The same in one pass: nanoseconds of the device's clock from its start to its end. */
SCONCE_CHECK sconce_status exec_time_pass(struct exec *x, uint64_t *ns, sconce_error *err);

#endif
