/* strftime_now: a date of the local clock by Python's directives, with English names. */
#include "llm/jinja/builtin.h"

#include <stdio.h>

struct date {
  int year, month, day; /* from 1 */
  int hour, minute, second;
  int weekday; /* 0 is Sunday */
  int yearday; /* from 1 */
};

/* Days are counted from 0000-03-01, so that a leap day ends its year. */
static struct date date_of(int64_t seconds) {
  int64_t days = seconds / 86400 - (seconds % 86400 < 0), rest = seconds - days * 86400;
  int64_t shifted = days + 719468;
  int64_t era = (shifted >= 0 ? shifted : shifted - 146096) / 146097,
          in_era = shifted - era * 146097;
  int64_t years = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
  int64_t in_year = in_era - (365 * years + years / 4 - years / 100);
  int64_t month = (5 * in_year + 2) / 153;
  struct date d = {
      .hour = (int)(rest / 3600), .minute = (int)(rest / 60 % 60), .second = (int)(rest % 60)};
  d.day = (int)(in_year - (153 * month + 2) / 5 + 1);
  d.month = (int)(month < 10 ? month + 3 : month - 9);
  d.year = (int)(years + era * 400 + (d.month <= 2));
  d.weekday = (int)(((days + 4) % 7 + 7) % 7);
  bool leap = (d.year % 4 == 0 && d.year % 100 != 0) || d.year % 400 == 0;
  static const int before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
  d.yearday = before[d.month - 1] + d.day + (leap && d.month > 2);
  return d;
}

static const char *const months[] = {"January",   "February", "March",    "April",
                                     "May",       "June",     "July",     "August",
                                     "September", "October",  "November", "December"};
static const char *const weekdays[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                       "Thursday", "Friday", "Saturday"};

/* Directives that are several others. */
static const char *longer(char c) {
  switch (c) {
  case 'F':
    return "%Y-%m-%d";
  case 'T':
  case 'X':
    return "%H:%M:%S";
  case 'R':
    return "%H:%M";
  case 'D':
  case 'x':
    return "%m/%d/%y";
  case 'c':
    return "%a %b %e %H:%M:%S %Y";
  default:
    return NULL;
  }
}

/* One directive; false if there is no such. `plain`: without zeros in front. */
static bool write_directive(const struct date *d, char c, bool plain, char out[24]) {
  const char *two = plain ? "%d" : "%02d";
  int twelve = d->hour % 12 ? d->hour % 12 : 12;
  const struct {
    char c;
    const char *format;
    int value;
  } numbers[] = {{'d', two, d->day},
                 {'m', two, d->month},
                 {'y', two, d->year % 100},
                 {'H', two, d->hour},
                 {'I', two, twelve},
                 {'M', two, d->minute},
                 {'S', two, d->second},
                 {'Y', "%d", d->year},
                 {'e', plain ? "%d" : "%2d", d->day},
                 {'j', plain ? "%d" : "%03d", d->yearday},
                 {'w', "%d", d->weekday},
                 {'u', "%d", d->weekday ? d->weekday : 7},
                 {'f', "%06d", 0}};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    if (numbers[i].c == c) return snprintf(out, 24, numbers[i].format, numbers[i].value) > 0;
  const char *name = c == 'A' || c == 'a'   ? weekdays[d->weekday]
                     : c == 'B' || c == 'b' ? months[d->month - 1]
                     : c == 'p'             ? (d->hour < 12 ? "AM" : "PM")
                     : c == '%'             ? "%"
                     : c == 'z' || c == 'Z' ? ""
                                            : NULL;
  if (!name) return false;
  snprintf(out, 24, c == 'a' || c == 'b' ? "%.3s" : "%s", name);
  return true;
}

static sconce_status put_date(struct jrun *run, struct jbuffer *b, struct text f,
                              const struct date *d, bool own, bool nested) {
  for (size_t i = 0; i < f.size; i++) {
    char out[24];
    size_t at = i + 1;
    bool plain = f.data[i] == '%' && at < f.size && f.data[at] == '-';
    at += plain;
    const char *more = f.data[i] == '%' && at < f.size && !nested ? longer(f.data[at]) : NULL;
    if (more) {
      TRY(put_date(run, b, text_of(more), d, true, true)); /* once: those have no longer ones */
      i = at;
    } else if (f.data[i] == '%' && at < f.size && write_directive(d, f.data[at], plain, out)) {
      TRY(j_put(run, b, text_of(out), true));
      i = at;
    } else {
      TRY(j_put(run, b, (struct text){f.data + i, 1}, own));
    }
  }
  return SCONCE_OK;
}

sconce_status j_strftime(struct jrun *run, const struct jvalue *format, int64_t date,
                         struct jvalue *out) {
  const int64_t most = 253402300799; /* the last second of 9999, Python's too */
  struct jbuffer b = {0};
  struct date d = date_of(date > most ? most : date < 0 ? 0 : date);
  TRY(put_date(run, &b, j_text(format), &d, format->own && !format->marks, false));
  *out = j_taken(&b);
  return SCONCE_OK;
}
