/* Opening a model for a verb, with progress on a terminal when it takes long. */
#ifndef CLI_LOAD_H
#define CLI_LOAD_H

#include "cli.h"

struct cli_load {
  sconce_device *device;
  sconce_model *model;
  sconce_method *method;
};

struct cli_load_desc {
  const char *path;
  const struct cli_list *data; /* .ptd files; may be NULL */
  const char *method;
  const struct cli_device *device;
  bool quiet; /* no progress */
};

/* Is this an ExecuTorch program, by its first bytes? CLI_FAILED after a sentence that says what it
 * is instead, where that can be told, and what to do. */
int cli_check_program(const char *path);

/* On failure err says why; cli_unload follows in any case. */
sconce_status cli_load(struct cli_load *l, const struct cli_load_desc *desc, sconce_error *err);
void cli_unload(struct cli_load *l);

#endif
