/* Every kernel table of the house: for tests and checks. */
#ifndef RUN_TABLES_H
#define RUN_TABLES_H

#include "graph/wgsl.h"

extern const struct kernel
    *const kernel_tables[]; /* ends with NULL; tables end with an empty row */

#endif
