/* What differs between systems for the command: its words, its files, the terminal, Ctrl-C, time.
 * console_posix.c and console_win.c are behind it, and the build takes one. Words, paths and what
 * is printed are UTF-8 everywhere; streams and files carry bytes, and lines end in "\n". */
#ifndef CLI_CONSOLE_H
#define CLI_CONSOLE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* First of all in main: prepares the streams, and replaces the words by ones that are UTF-8. */
void console_start(int *argc, char ***argv);

bool console_is_terminal(FILE *stream); /* stdin, stdout or stderr */
int console_width(void);                /* columns of the terminal; 80 where it does not say */

/* fopen and access as C has them, for any path. Files are never translated: no mode needs a "b". */
FILE *console_open(const char *path, const char *mode);
/* An ordinary file to read. Others are refused, and nobody waits for the other end of a pipe; *why
 * is a few words. */
FILE *console_open_regular(const char *path, const char **why);
bool console_can_read(const char *path); /* false: errno says why */
/* True if it is there afterwards; false: errno says why. */
bool console_make_folder(const char *path);
/* A file of this name in the folder for what a user's programs remember ($XDG_STATE_HOME/sconce;
 * %LOCALAPPDATA%\sconce), which is made; false where there is no such folder. */
bool console_state_file(const char *name, char *out, size_t size);
/* "~" and what begins with "~/" lie in the user's folder, as in a shell ($HOME; %USERPROFILE%);
 * all others stay as they are. False: an empty path, or one that is longer than size. */
bool console_expand(const char *path, char *out, size_t size);
void console_remove(const char *path); /* a file, if it is there */
bool console_sync(FILE *file);         /* what was written is on the disk; false: errno says why */
/* `from` takes the place of `to` at once; false: errno says why. */
bool console_replace(const char *from, const char *to);
/* What follows the last separator. */
const char *console_file_name(const char *path);

/* While this is on, Ctrl-C sets the flag, which stays until it is on again; a second one ends the
 * program, since nobody looked at the first. */
void console_catch_interrupt(bool on);
bool console_interrupted(void);
/* Called by the first Ctrl-C, on a signal's or a thread's behalf; NULL: nobody any more. */
void console_tell_interrupt(void (*call)(void *user), void *user);
/* Ends the program as Ctrl-C does, so that a shell's loop ends too; returns if it cannot. */
void console_end_interrupted(void);

double console_seconds(void); /* monotonic */
void console_nap(void);       /* as short as the system can */

#endif
