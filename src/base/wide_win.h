/* Windows takes text as UTF-16; everything of ours is UTF-8. Paths become wide here, and those that
 * are too long for the old interface get the prefix that lifts its limit. */
#ifndef BASE_WIDE_WIN_H
#define BASE_WIDE_WIN_H

#include <stdbool.h>
#include <stddef.h>
#include <wchar.h>

enum { WIDE_MAX = 4096 }; /* units, as long as a path may be on Linux */
struct wide {
  wchar_t text[WIDE_MAX];
};

/* 0, or what errno would be. Slashes become backslashes. */
int wide_path(struct wide *out, const char *path);
/* Text that is no path. */
int wide_text(struct wide *out, const char *text);
/* Back to UTF-8; false if it is longer than size. A surrogate alone becomes U+FFFD. */
bool wide_to_text(char *out, size_t size, const wchar_t *text);

/* `from` takes the place of `to` at once; 0, or what errno would be. */
int wide_replace(const struct wide *from, const struct wide *to);

/* What errno would be for an error of Windows, so that sentences are the same on all systems. */
int wide_errno(unsigned long error);

#endif
