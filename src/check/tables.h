/* Every kernel table of the house: for tests and checks. */
#ifndef CHECK_TABLES_H
#define CHECK_TABLES_H

#include "graph/kernel.h"

/* Calls each for every row; a table that operators share comes once. */
void tables_of_operators(void (*each)(void *user, const struct kernel *row), void *user);
/* …and for the device's probes. */
void tables_each(void (*each)(void *user, const struct kernel *row), void *user);

#endif
