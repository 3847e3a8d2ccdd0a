/* What a public state handle is made of; for src/run and the rooms around it. */
#ifndef RUN_STATE_H
#define RUN_STATE_H

#include "base/alone.h"
#include "run/exec.h"
#include "run/model.h"

/* An input or output between the caller and the graph. */
struct border {
  uint32_t value;                 /* of the graph */
  sconce_tensor bound;            /* dtype and upper bounds as the program says; data NULL */
  uint32_t live[SCONCE_MAX_RANK]; /* input: dims as last set */
  void *bytes;    /* input: elements in the graph's dtype; output: converted, or NULL */
  int32_t number; /* input: of a live scalar */
  bool set;       /* input: has data */
  bool fresh;     /* input: changed since it was last written to the device */
  bool fed;       /* input: its elements came from an output and are on the device alone */
};

struct sconce_state {
  sconce_method *method;
  struct sconce_state *next; /* of the method's */
  struct arena arena;
  struct graph graph; /* the method's, with dims and scalars of its own */
  struct exec exec;
  struct pool *pool; /* what it shares with states of other methods */
  struct border *inputs, *outputs;
  struct border unfed;              /* input 0 as it was in front of the token's feed… */
  bool fed_token;                   /* …which the call begun last asked for */
  void *elements;                   /* of a tensor that scalars are read from */
  void *side;                       /* room for the largest input while it is converted */
  struct take take;                 /* of the call begun last */
  bool pending;                     /* …which is not planned to its end: the device must tell */
  bool asked;                       /* …and was asked for what the graph wants */
  bool drawn;                       /* …which chooses a token */
  bool done;                        /* outputs of the last call can be read */
  uint64_t calls, plan_ns, wait_ns; /* see sconce_call_times */
  uint32_t losses;                  /* see sconce_state_losses */
  bool down;                        /* as of a method */
  struct alone alone;
};

/* As of a method: inputs that were set stay, all else begins anew. */
void state_take_down(sconce_state *s);
SCONCE_CHECK sconce_status state_bring_back(sconce_state *s, sconce_error *err);

/* With the lock held: a call is planned, and can be run by exec_profile or exec_time_pass. */
SCONCE_CHECK sconce_status state_start_for_clock(sconce_state *s, sconce_error *err);

static inline struct gpu *state_gpu(const sconce_state *s) { return s->method->model->device->gpu; }
/* Fails where its device is lost, or where a call of it is running. */
SCONCE_CHECK sconce_status state_check_up(const sconce_state *s, sconce_error *err);
SCONCE_CHECK sconce_status state_check_idle(const sconce_state *s, sconce_error *err);
/* Takes the lock: a call that is still being planned comes to the end of its plan. */
SCONCE_CHECK sconce_status state_settle(sconce_state *s, sconce_error *err);

/* After a call that was planned and then failed: inputs, dims and numbers as they were. */
void state_roll_back(sconce_state *s);

#endif
