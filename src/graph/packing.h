/* Layouts of constants other than the file's. An operator brings the one that its kernels read and
 * asks for it with graph_packed; the engine knows no layout by name. */
#ifndef GRAPH_PACKING_H
#define GRAPH_PACKING_H

#include "format/vkgraph.h"

enum { PACK_MOST = 4 << 20, PACK_UNIT = 16 }; /* bytes: of a piece; where pieces are cut */

/* A constant as the file has it. */
struct unpacked {
  enum vk_dtype dtype;
  uint32_t rank;
  const uint32_t *dims;
  const uint8_t *bytes; /* all of it, exactly as many as the dims say; NULL when size is asked */
};

/* What is packed depends on nothing but the constant's bytes, dtype and dims: where these three and
 * the struct itself are the same, one copy serves all who ask. */
struct packing {
  const char *name; /* for messages */
  /* Bytes that the constant takes in this layout, whatever its dtype and dims are: graph_packed
   * does not look at them. */
  uint64_t (*size)(const struct unpacked *from);
  /* Writes the bytes [first, end) of the result to `out`, every one of them, and keeps nothing.
   *
   * It may rely on this: first is a multiple of PACK_UNIT, and so is end unless it is the size, so
   * that no element and no vector of four words is cut; end - first is at most PACK_MOST.
   * It may not rely on the order of the ranges, on each being asked for once, on the thread that
   * asks, or on the alignment of the bytes. */
  void (*fill)(const struct unpacked *from, uint64_t first, uint64_t end, uint8_t *out);
};

#endif
