/* Log: see log.h. */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

void log_write(const sconce_log *log, sconce_log_level level, const char *format, ...) {
  if (!log || !log->write) return;
  if (level > (log->level ? log->level : SCONCE_LOG_WARNING)) return;
  char text[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  log->write(log->user, level, text);
}
