/* Long lines in parts: one workgroup would take long for a line, and some devices stop a shader's
 * loops after 65,535 turns in all. So the parts of a line have workgroups of their own, whose
 * results lie in scratch memory, and a second kernel joins those. */
#ifndef OPS_PARTS_H
#define OPS_PARTS_H

#include <stdint.h>

/* Elements of a part. SPARSE: of lines whose elements do not follow each other, which neighbouring
 * threads read side by side. */
enum { PART_DENSE = 16384, PART_SPARSE = 256 };

/* How many parts of `each` elements a line has; the last may be shorter. */
uint32_t parts_of(uint64_t lines, uint64_t size, uint32_t each);

/* No fewer than all the parts of any lines within these. */
uint64_t parts_most(uint64_t lines, uint64_t size, uint32_t each);

#endif
