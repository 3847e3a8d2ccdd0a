/* What is in a folder: for tools that walk over files. */
#ifndef BASE_OS_FOLDER_H
#define BASE_OS_FOLDER_H

#include "base/status.h"

/* Calls each with every name in a folder but "." and "..", in no order, until it fails. A link to a
 * folder is no folder: a walk that follows what `folder` says comes to an end. */
SCONCE_CHECK sconce_status os_folder_each(const char *path,
                                          sconce_status (*each)(void *user, const char *name,
                                                                bool folder, sconce_error *err),
                                          void *user, sconce_error *err);
bool os_folder_is(const char *path); /* through links */

#endif
