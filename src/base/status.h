/* Errors: a status the caller can act on, and one sentence with the values in it. */
#ifndef BASE_STATUS_H
#define BASE_STATUS_H

#include "sconce.h"

#if defined(__MINGW32__) && !defined(__clang__) /* "printf" is Microsoft's there, without %zu */
#define PRINTF_LIKE(text, first) __attribute__((format(gnu_printf, text, first)))
#elif defined(__GNUC__) || defined(__clang__)
#define PRINTF_LIKE(text, first) __attribute__((format(printf, text, first)))
#else
#define PRINTF_LIKE(text, first)
#endif

/* Sets the error and returns its status, so that a check is one statement:
 *   if (n > max) return fail(err, SCONCE_BAD_FILE, "%u values, at most %u", n, max);
 * err may be NULL. Bytes from files may be printed as they are: what is no visible character
 * becomes '?', a new line a blank, but for the words of drivers. */
sconce_status fail(sconce_error *err, sconce_status status, const char *format, ...)
    PRINTF_LIKE(3, 4);

/* Puts "where" in front of a sentence that a leaf wrote; keeps the status. */
void error_prefix(sconce_error *err, const char *format, ...) PRINTF_LIKE(2, 3);

#define TRY(expr)                                                                                  \
  do {                                                                                             \
    sconce_status try_status_ = (expr);                                                            \
    if (try_status_ != SCONCE_OK) return try_status_;                                              \
  } while (0)

#endif
