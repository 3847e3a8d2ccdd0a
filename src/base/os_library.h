/* Libraries opened while the program runs, and where to look for them. A build that links the
 * WebGPU library needs none of this. */
#ifndef BASE_OS_LIBRARY_H
#define BASE_OS_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

/* It is never closed: libraries keep threads of their own, which would lose their code. */
void *os_library_open(const char *path); /* NULL: os_library_error says why */
const char *os_library_error(void);
void *os_library_symbol(void *library, const char *name); /* NULL: there is none */

/* The folder of the running program, or of the shared library that holds this function, with a
 * trailing slash; false if unknown or longer than size. */
bool os_program_folder(char *out, size_t size);
bool os_module_folder(char *out, size_t size);

#endif
