/* A handle is used by one thread at a time. Builds with SCONCE_CHECK_THREADS mark it while a call
 * is in it, and refuse a second thread with a sentence; others pay a byte a handle and nothing
 * more. */
#ifndef BASE_ALONE_H
#define BASE_ALONE_H

#include "base/status.h"

#include <stdatomic.h>

#ifdef SCONCE_CHECK_THREADS
struct alone {
  _Atomic(const void *) thread; /* which one is inside; NULL: none */
  unsigned depth;               /* calls of its own that lie in one another */
};

/* Until the function returns; `err` is its error. */
#define ALONE(mark, what)                                                                          \
  struct alone *inside_ __attribute__((cleanup(alone_leave))) = NULL;                              \
  TRY(alone_enter(mark, what, &inside_, err))

SCONCE_CHECK sconce_status alone_enter(struct alone *mark, const char *what, struct alone **inside,
                                       sconce_error *err);
void alone_leave(struct alone *const *inside);
#else
struct alone {
  char none;
};
#define ALONE(mark, what) (void)0
#endif

#endif
