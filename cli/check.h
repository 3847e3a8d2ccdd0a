/* The two halves of `sconce check`. */
#ifndef CLI_CHECK_H
#define CLI_CHECK_H

#include "cli.h"

struct self_options {
  bool json, verbose;
  const char *filter;
  double seconds; /* 0: all of it */
};
/* Returns the verb's result. */
int cli_check_self(const struct self_options *options, struct cli_device which);

#endif
