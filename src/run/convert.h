/* Elements between what a caller has and what the graph computes with. */
#ifndef RUN_CONVERT_H
#define RUN_CONVERT_H

#include "base/status.h"
#include "format/vkgraph.h"

/* n elements of a caller's dtype into the graph's; what does not fit is an error: integers, and
 * finite doubles beyond float32. */
SCONCE_CHECK sconce_status convert_in(enum vk_dtype to, void *out, sconce_dtype from,
                                      const void *in, uint64_t n, sconce_error *err);
/* And back. */
SCONCE_CHECK sconce_status convert_out(sconce_dtype to, void *out, enum vk_dtype from,
                                       const void *in, uint64_t n, sconce_error *err);
/* Are the bytes the same, so that nothing need be converted? */
bool convert_is_copy(enum vk_dtype inside, sconce_dtype outside);

#endif
