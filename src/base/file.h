/* Small files as a whole: documents, tables, shaders. Models are read in ranges (run/source.h). */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include "base/arena.h"
#include "base/span.h"
#include "base/status.h"

enum { FILE_READ_MAX = INT32_MAX }; /* bytes: nothing that is read as a whole comes near */

/* All bytes of a file, in the arena; an empty span if it has none. A file that somebody changes
 * meanwhile is an error. */
SCONCE_CHECK sconce_status file_read(struct arena *arena, const char *path, struct span *out,
                                     sconce_error *err);

#endif
