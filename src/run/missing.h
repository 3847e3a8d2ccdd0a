/* All operators of a method that this build does not have, for the message of a load that failed at
 * the first of them. */
#ifndef RUN_MISSING_H
#define RUN_MISSING_H

#include "run/model.h"

/* Puts them behind what the error says, with where each stands first; nothing if there is only the
 * one that the error is about. */
void missing_append(sconce_model *model, const struct pte_method *m, sconce_error *err);

#endif
