/* What `sconce run` shows of outputs. */
#ifndef CLI_OUTPUTS_H
#define CLI_OUTPUTS_H

#include "sconce.h"

struct outputs_desc {
  const char *folder;      /* for output0.npy, …; may be NULL */
  const char *labels_path; /* a line for each index of the last dim; may be NULL */
  uint32_t top;            /* largest values to show; 0: the first ones */
};

/* Prints every output of the last call; false after a complaint. */
bool outputs_show(sconce_state *state, uint32_t n, const struct outputs_desc *desc);

#endif
