/* Generation: one id after another, text as it comes, and what ends it. */
#include "llm/session.h"

#include "base/os.h"

#include <string.h>

enum { HELD_MAX = 1024 }; /* bytes of text held back for stop strings */

struct writer {
  const sconce_generate_desc *desc;
  size_t n_held;
  char held[2 * HELD_MAX];
  bool stopped; /* by a stop string */
  bool refused; /* by the caller */
};

/* Is this byte inside a character, not its first? */
static bool is_inside(char byte) { return ((unsigned char)byte & 0xc0) == 0x80; }

static void show(struct writer *w, size_t n, sconce_choice choice) {
  if (n && w->desc->on_text && !w->desc->on_text(w->desc->user, w->held, n, choice))
    w->refused = true;
  memmove(w->held, w->held + n, w->n_held - n);
  w->n_held -= n;
}

/* Where the first stop string starts in the held text, or n_held. */
static size_t find_stop(const struct writer *w) {
  size_t first = w->n_held;
  for (size_t i = 0; i < w->desc->n_stops; i++) {
    size_t size = strlen(w->desc->stops[i]);
    for (size_t at = 0; size && at + size <= w->n_held && at < first; at++)
      if (memcmp(w->held + at, w->desc->stops[i], size) == 0) first = at;
  }
  return first;
}

/* The longest tail of the held text that may still become a stop string; on a character's start. */
static size_t undecided(const struct writer *w) {
  size_t tail = 0;
  for (size_t i = 0; i < w->desc->n_stops; i++) {
    const char *stop = w->desc->stops[i];
    size_t size = strlen(stop), most = size < w->n_held ? size : w->n_held;
    for (size_t n = most; n > tail; n--)
      if (memcmp(w->held + w->n_held - n, stop, n) == 0) tail = n;
  }
  while (tail && tail < w->n_held && is_inside(w->held[w->n_held - tail])) tail++;
  return tail;
}

/* Adds text and shows what can be shown; `choice` goes with the first part of it. */
static void push(struct writer *w, const char *text, size_t size, sconce_choice choice) {
  while (size && !w->stopped && !w->refused) {
    size_t room = sizeof w->held - w->n_held, n = size < room ? size : room;
    while (n < size && n > 1 && is_inside(text[n])) n--; /* shown text ends with a character */
    memcpy(w->held + w->n_held, text, n);
    w->n_held += n;
    text += n;
    size -= n;
    size_t stop = find_stop(w);
    w->stopped = stop < w->n_held;
    if (w->stopped) w->n_held = stop;
    show(w, w->stopped ? stop : w->n_held - undecided(w), choice);
  }
}

static sconce_status check(const sconce_session *s, const sconce_generate_desc *desc,
                           sconce_error *err) {
  if (!s || !desc) return fail(err, SCONCE_BAD_ARGUMENT, "session or desc is NULL");
  if (!desc->prompt && desc->n_prompt) return fail(err, SCONCE_BAD_ARGUMENT, "prompt is NULL");
  if (desc->n_stops && !desc->stops) return fail(err, SCONCE_BAD_ARGUMENT, "stops is NULL");
  if (!s->tokenizer) return fail(err, SCONCE_BAD_ARGUMENT, "the session has no tokenizer");
  for (size_t i = 0; i < desc->n_stops; i++)
    if (!desc->stops[i] || strlen(desc->stops[i]) > HELD_MAX)
      return fail(err, SCONCE_BAD_ARGUMENT, "stop string %zu is NULL or longer than %d bytes", i,
                  HELD_MAX);
  return SCONCE_OK;
}

static sconce_status step(sconce_session *s, struct writer *w, sconce_stream *stream,
                          sconce_generate_result *r, sconce_error *err) {
  if (w->desc->max_new && r->n_new == w->desc->max_new) {
    r->stop = SCONCE_STOP_COUNT;
    return SCONCE_OK;
  }
  sconce_choice choice;
  const bool full = s->info.position == s->info.context; /* one more id can be shown, not added */
  const uint64_t until = s->info.position + (uint64_t)w->desc->max_new - r->n_new;
  if (full)
    TRY(sconce_session_choose(s, &choice, err));
  else
    TRY(session_next(s, w->desc->max_new && until < UINT32_MAX ? (uint32_t)until : UINT32_MAX,
                     &choice, err));
  if (!w->desc->ignore_end && session_is_end(s, choice.id)) {
    r->stop = SCONCE_STOP_END;
    return full ? SCONCE_OK : sconce_session_rewind(s, s->info.position - 1, err);
  }
  r->n_new++;
  size_t size;
  const char *text = sconce_stream_push(stream, choice.id, &size);
  push(w, text, size, choice);
  if (w->stopped)
    r->stop = SCONCE_STOP_TEXT;
  else if (w->refused)
    r->stop = SCONCE_STOP_CALLER;
  else if (full)
    r->stop = SCONCE_STOP_CONTEXT;
  return SCONCE_OK;
}

sconce_status sconce_session_generate(sconce_session *s, const sconce_generate_desc *desc,
                                      sconce_generate_result *result, sconce_error *err) {
  TRY(check(s, desc, err));
  sconce_generate_result r = {.n_prompt = desc->n_prompt};
  r.n_reused = session_reused(s, desc->prompt, desc->n_prompt);
  uint64_t start = os_clock_ns();
  TRY(sconce_session_prompt(s, desc->prompt, desc->n_prompt, desc->progress, desc->user, err));
  uint64_t middle = os_clock_ns();
  struct writer w = {.desc = desc};
  bool starts = desc->prompt[desc->n_prompt - 1] == sconce_tokenizer_describe(s->tokenizer)->bos;
  sconce_stream stream = {.tokenizer = s->tokenizer, .flags = starts ? 0 : SCONCE_DECODE_CONTINUES};
  while (!r.stop) TRY(step(s, &w, &stream, &r, err));
  size_t size;
  const char *rest = sconce_stream_end(&stream, &size);
  sconce_choice none = {.id = -1};
  push(&w, rest, size, none);
  if (!w.stopped && !w.refused) show(&w, w.n_held, none);
  r.prompt_s = (double)(middle - start) * 1e-9;
  r.new_s = (double)(os_clock_ns() - middle) * 1e-9;
  if (result) *result = r;
  return SCONCE_OK;
}
