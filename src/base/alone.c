/* See alone.h. */
#include "base/alone.h"

#ifdef SCONCE_CHECK_THREADS
static _Thread_local char here; /* its address tells threads apart */

sconce_status alone_enter(struct alone *mark, const char *what, struct alone **inside,
                          sconce_error *err) {
  const void *other = NULL;
  if (!mark) return SCONCE_OK; /* a handle of NULL is another mistake */
  if (!atomic_compare_exchange_strong(&mark->thread, &other, &here) && other != &here)
    return fail(err, SCONCE_BAD_ARGUMENT,
                "another thread is in a call with this %s: one thread at a time", what);
  mark->depth++;
  *inside = mark;
  return SCONCE_OK;
}

void alone_leave(struct alone *const *inside) {
  if (*inside && --(*inside)->depth == 0) atomic_store(&(*inside)->thread, NULL);
}
#else
typedef struct alone alone_is_off; /* ISO C wants something in a file */
#endif
