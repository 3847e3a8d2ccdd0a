/* Passes: each finds nodes that one kernel can compute together, and fuses them.
 *
 * A fused node keeps the nodes that it stands for. Their shapes are computed as always, and where
 * the fused kernel does not fit a live shape they make their own records: so a fused node is right
 * for every shape, and switching a pass off changes the dispatches and the rounding, nothing else.
 */
#ifndef GRAPH_REWRITE_H
#define GRAPH_REWRITE_H

#include "graph/op.h"

/* Nodes that are further apart are not fused, so that loading takes time in proportion to a file; a
 * layer has some 20 nodes. */
enum { FUSION_REACH = 1024 };
enum { VIEWS_REACH = 64 }; /* of views one behind the other; real files have some three */

struct rewrite {
  struct graph *g;
  uint32_t *maker;   /* by value: the node that computes it, or NO_NODE */
  uint32_t *reader;  /* by value: a node that reads it, or NO_NODE */
  uint32_t *readers; /* by value: nodes that read it; being an output counts as one more */
  bool *shared;      /* by value: nodes read another constant that has the same bytes */
  uint32_t *stamps;  /* by value: see join_notes */
  uint32_t stamp;
  sconce_error *err;
};

struct pass {
  const char *name;
  /* Looks at the pattern that ends or begins at node i, and fuses if it is there. */
  sconce_status (*at)(struct rewrite *r, uint32_t i);
};
extern const struct pass
    *const pass_families[]; /* ops/registry.c: lists that end with an empty row */

/* The first word of a list as graph->passes_off that names no pass; empty if there is none. */
struct text passes_unknown(const char *list);
/* All of their names as a text, "join, swiglu"; returns out. */
const char *passes_text(char *out, size_t size);

/* ---- asking ---------------------------------------------------------------------------------- */

/* Node i if it is (still) there and has this operator, else NULL. */
const struct node *node_of(const struct rewrite *r, uint32_t i, const char *name);
/* The node that makes a value, seen through views that come between; NO_NODE if there is none. */
uint32_t maker_of(const struct rewrite *r, uint32_t value);
/* The value that a view shows, after any number of views. */
uint32_t viewed(const struct rewrite *r, uint32_t value);
/* The only node that reads what `value` shows, directly or through views; NO_NODE if there are
 * several or the value is seen from outside. */
uint32_t only_reader(const struct rewrite *r, uint32_t value);

/* Tensors of one dtype with the same bounds? */
bool same_dims(const struct rewrite *r, uint32_t a, uint32_t b);
/* Node i if it is a + b (aten.add.Tensor with alpha 1), neither of them broadcast, else NULL. */
const struct node *plain_sum_at(const struct rewrite *r, uint32_t i);

/* A fused node's part by its place in the chain; NULL if it has none there. */
const struct node *part_at(const struct node *n, uint32_t order);

/* ---- fusing ---------------------------------------------------------------------------------- */

/* Nodes to fuse, in any order; views between them come along. */
struct fusion {
  const struct op *op;
  const char *name; /* for messages and profiles */
  const void *fused;
  uint32_t nodes[64];
  uint32_t n;
};
/* They become one node at the place of the last. Nothing happens if another node between them needs
 * what they make, or changes what they read: may_fuse tells. */
bool may_fuse(const struct rewrite *r, struct fusion *f);
/* …and is every result but `value`, or but these, read only inside the fusion? */
bool shows_only(const struct rewrite *r, struct fusion *f, uint32_t value);
bool shows_only_these(const struct rewrite *r, struct fusion *f, const uint32_t *values,
                      uint32_t n);
SCONCE_CHECK sconce_status fuse(struct rewrite *r, struct fusion *f);

#endif
