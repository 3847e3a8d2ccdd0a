/* Messages to the caller's log function; nothing is printed here. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "base/status.h"

/* `log` may be NULL or empty. */
void log_write(const sconce_log *log, sconce_log_level level, const char *format, ...)
    PRINTF_LIKE(3, 4);

#endif
