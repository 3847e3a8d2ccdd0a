/* Between pte.c (header and accessors) and pte_verify.c (what a program means). */
#ifndef FORMAT_PTE_READ_H
#define FORMAT_PTE_READ_H

#include "format/pte.h"

/* Every method of a program whose structure is verified. */
sconce_status pte_verify(const struct pte *pte, sconce_error *err);

/* A Tensor as a view. After pte_verify it cannot fail. */
sconce_status pte_read_tensor(struct fb_table t, struct pte_tensor *out, sconce_error *err);
/* The content of value i: the union's table. */
struct fb_table pte_value_table(const struct pte_method *m, uint32_t i);

/* Bytes that the file must hold for a tensor that is initialised from it. */
sconce_status pte_read_bytes(const struct pte *pte, const struct pte_tensor *t, struct extent *out,
                             sconce_error *err);

/* Bytes of the flatbuffer as a part of the file. */
struct extent pte_inside(const struct pte *pte, struct span bytes);

#endif
