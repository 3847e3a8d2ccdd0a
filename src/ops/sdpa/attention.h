/* What the attention operators share: one problem, one table of kernels.
 *
 * out = softmax(q kᵀ · scale + mask) v; `heads_per_kv` heads of q share a head of k and v. Tensors
 * are (tokens, heads, dim), or (heads, tokens, dim) with head_major, where heads count all batches.
 */
#ifndef OPS_SDPA_ATTENTION_H
#define OPS_SDPA_ATTENTION_H

#include "graph/op.h"

struct attention {
  uint32_t q, k, v, out; /* values */
  uint32_t bias;         /* a mask to add, or NO_VALUE */
  uint32_t seq, heads, heads_per_kv, dim, keys;
  uint32_t wide;  /* elements of a head of v and out */
  uint32_t rows;  /* tokens that k and v have memory for */
  uint32_t first; /* query i looks at keys up to first + i; at least keys: at all of them */
  bool head_major;
  bool blind_zero;     /* a query that sees no key gives zeros; else NaN, as softmax does */
  enum vk_dtype dtype; /* of q, k, v and out */
  uint32_t mask[4];    /* strides: batch, head, query, key */
  uint32_t mask_heads, mask_batches; /* of a batch; before the mask repeats */
  double scale;
};

/* Operators list the tables of what they call: attention_emit takes from the first, attention_merge
 * and attention_emit from the second. */
extern const struct kernel attention_kernels[], attention_merges[];

/* Makes the scratch memory for every live shape; `a` is the problem at its maximum. */
SCONCE_CHECK sconce_status attention_prepare(struct plan *p, struct node *n,
                                             const struct attention *a);
SCONCE_CHECK sconce_status attention_emit(struct plan *p, const struct node *n,
                                          const struct attention *a);
/* Will attention_emit take the kernel for software devices? */
bool attention_is_serial(const struct plan *p, const struct node *n, const struct attention *a);
/* The second half where keys are split: joins the parts in the node's scratch. */
SCONCE_CHECK sconce_status attention_merge(struct plan *p, const struct node *n,
                                           const struct attention *a, uint32_t chunks);
uint32_t attention_chunk(uint32_t keys); /* keys of a workgroup where they are split */
uint32_t attention_lanes(uint32_t dim);  /* threads that share a key there: four quads each */
/* What a node of attention over caches asks for; *start: tokens that were there before. false: its
 * arguments are wrong, which its own shape and emit say aloud. */
bool attention_cached(const struct plan *p, const struct node *n, struct attention *a,
                      int64_t *start);

/* The strides of a mask a->bias for scores (lead…, seq, keys) of a's dtype; it repeats along dims
 * of 1 and in front. */
SCONCE_CHECK sconce_status attention_mask(struct plan *p, const uint32_t *lead, uint32_t n_lead,
                                          struct attention *a);

/* ---- caches: (1, tokens, heads, dim), where the 1 may be missing ----------------------------- */

enum { TOKENS = 3, HEADS = 2, DIM = 1 }; /* dims, from the end */
static inline uint32_t dim_of(const struct tensor *t, uint32_t from_end) {
  return t->dim_live[t->rank - from_end];
}
SCONCE_CHECK sconce_status check_rank(struct plan *p, const struct tensor *t, const char *what);
/* Do tokens x go into this cache? */
SCONCE_CHECK sconce_status check_rows(struct plan *p, const struct tensor *x,
                                      const struct tensor *cache);
SCONCE_CHECK sconce_status check_position(struct plan *p, int64_t start, uint32_t seq,
                                          uint32_t rows);

/* New tokens of a cache, or of a key cache and a value cache of one batch. */
struct append {
  uint32_t x[2], cache[2]; /* values; the second of each NO_VALUE if there is one cache */
  uint64_t start;          /* tokens */
};
/* append_emit takes from the second for two caches whose rows are whole words, else the first. */
extern const struct kernel append_kernels[], append_pair_kernels[];
SCONCE_CHECK sconce_status append_emit(struct plan *p, const struct node *n,
                                       const struct append *a);

/* ---- operators ------------------------------------------------------------------------------- */

sconce_status update_shape(struct plan *p, const struct node *n);
sconce_status update_emit(struct plan *p, const struct node *n);
sconce_status by_head_shape(struct plan *p, const struct node *n);
sconce_status by_head_emit(struct plan *p, const struct node *n);
sconce_status by_head_prepare(struct plan *p, struct node *n);

#endif
