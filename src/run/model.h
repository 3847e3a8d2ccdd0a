/* What public model and method handles are made of; for src/run and the rooms around it. */
#ifndef RUN_MODEL_H
#define RUN_MODEL_H

#include "base/alone.h"
#include "format/ptd.h"
#include "run/device.h"
#include "run/draw.h"
#include "run/named.h"
#include "run/rehearse.h"
#include "run/shared.h"

/* The first bytes of a range, and then as many as these say: all but weights. */
struct front {
  struct held head, all;
};
typedef sconce_status front_size(struct extent whole, uint64_t *size, sconce_error *err);
/* *out has them when *done. */
SCONCE_CHECK sconce_status front_read(struct front *front, struct source *source,
                                      struct arena *arena, struct extent whole, uint32_t head_size,
                                      front_size *size_of, struct extent *out, bool *done,
                                      sconce_error *err);

/* A file, and its flatbuffer in memory. */
struct model_file {
  char *path; /* for messages, or NULL */
  struct front front;
};

/* The graph of a delegate in memory: all of its blob but the constants. */
struct model_blob {
  struct extent blob;
  struct front front;
  struct vkgraph graph; /* once a method wanted it, and it was verified */
};

enum { MADE_SLOTS = 256 }; /* a power of two */

struct sconce_model {
  sconce_device *device; /* NULL: opened by model_open, for looking only */
  sconce_model *next;    /* of the device's */
  struct arena arena;
  struct source *sources; /* (n_files + 1) the program's, those of data files, named data */
  struct model_file *files;
  uint32_t n_files, n_sources; /* sources that were opened */
  uint32_t n_read;             /* files that were read */
  struct ptd *data_files;
  struct ptd_set data;
  struct pte pte;
  struct extent bare; /* the program is this delegate's blob alone; size 0: it is a .pte */
  struct ptd_source source;
  struct named named;
  struct model_blob *blobs; /* by place in the file, each once */
  uint32_t n_blobs, n_blobs_read;
  bool counted; /* blobs are known */
  bool ready;
  bool reading; /* a thread has the turn */
  sconce_model_info info;
  struct weights weights;
  uint64_t max_device_bytes;              /* 0: the default */
  uint64_t max_host_bytes;                /* 0: the default */
  uint32_t max_nodes;                     /* 0: the default */
  uint32_t max_load_ms;                   /* 0: the default */
  struct sconce_method *methods;          /* open or being opened */
  struct made_constant *made[MADE_SLOTS]; /* of the files' constants, see run/constants.h */
  uint64_t made_bytes;                    /* that they take, at most arena.most */
  uint64_t fingerprint;                   /* 0: not known yet */
  uint32_t users;                         /* the caller and the methods */
  struct alone alone;                     /* while it is opened */
};

/* The files alone: no device, and external tensors may be missing (see ptd_set_match). Waits. */
SCONCE_CHECK sconce_status model_open(sconce_model **out, const sconce_allocator *allocator,
                                      const sconce_model_desc *desc, sconce_error *err);
/* A user less, with the lock held; the last one closes it. true: device_free is due. */
bool model_drop(sconce_model *m);
/* Methods of a model read the same files: a piece stays what it is until it was used because one
 * thread at a time goes on, from taking the turn, with the lock held, to giving it back. */
bool model_take_turn(sconce_model *m); /* false: another has it */
void model_end_turn(sconce_model *m);
/* The same blob, with its graph in memory. */
struct extent model_blob(const sconce_model *m, struct extent blob);
/* What the host may hold for one method's graph: by default, and of this model. */
uint64_t host_bytes(uint64_t files);
uint64_t model_host_bytes(const sconce_model *m);
/* A delegate's graph, by its blob as the program has it; its named data is in a file, or comes
 * through the caller's functions. */
SCONCE_CHECK sconce_status model_graph(sconce_model *m, struct extent blob, struct vkgraph *out,
                                       sconce_error *err);
/* Fills progress->wants; false: no source waits for bytes. */
bool model_wants(const sconce_model *m, sconce_progress *progress);

/* What a graph needs of its constants on the host, see run/constants.h. */
struct constants {
  struct host_constant *wanted, *there;
};

/* The program's method as one graph: delegates and portable calls inlined, inputs and outputs set,
 * the choice of a token behind a language model; not yet finished. */
SCONCE_CHECK sconce_status program_build(struct graph *g, sconce_model *model,
                                         const struct pte_method *method, struct draw *draw,
                                         struct constants *constants, sconce_error *err);
/* That, its constants and graph_finish, for tools: at once, from files whose bytes are at hand.
 * What it converts stays until the model is closed. */
SCONCE_CHECK sconce_status program_graph(struct graph *g, sconce_model *model,
                                         const struct pte_method *method, struct draw *draw,
                                         sconce_error *err);

struct sconce_method {
  sconce_model *model;
  struct sconce_method *next; /* of the model's */
  uint32_t users;             /* those who opened it, and the states */
  struct sconce_state *states;
  bool down; /* what it had on a lost device is gone, and not there again */
  struct arena arena;
  struct graph graph;
  struct pte_method program; /* zeroed for a delegate alone; then */
  struct vkgraph delegate;
  struct draw draw;
  struct constants constants;
  struct shared shared;
  struct gpu_compile *compile;
  enum { METHOD_READS, METHOD_LOADS, METHOD_READY, METHOD_FAILED } phase;
  sconce_error why; /* it failed */
  uint32_t kernels_done, kernels_all;
  sconce_method_info info;
  uint64_t begun_ns, upload_ns, compile_ns; /* see sconce_load_times */
  uint64_t built_ns;                        /* that building and planning took so far */
};
bool method_drop(sconce_method *m); /* as model_drop */
/* When the device is lost: forgets what was on it; then, with the new one, makes it again. What was
 * ready is waited for. */
void method_take_down(sconce_method *m);
SCONCE_CHECK sconce_status method_bring_back(sconce_method *m, sconce_error *err);

#endif
