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
  if (!desc) return fail(err, SCONCE_BAD_ARGUMENT, "desc is NULL");
  if (!desc->prompt && desc->n_prompt) return fail(err, SCONCE_BAD_ARGUMENT, "prompt is NULL");
  if (desc->n_stops && !desc->stops) return fail(err, SCONCE_BAD_ARGUMENT, "stops is NULL");
  if (!s->tokenizer && desc->n_stops)
    return fail(err, SCONCE_BAD_ARGUMENT, "stop strings need a tokenizer, the session has none");
  for (size_t i = 0; i < desc->n_stops; i++)
    if (!desc->stops[i] || strlen(desc->stops[i]) > HELD_MAX)
      return fail(err, SCONCE_BAD_ARGUMENT, "stop string %zu is NULL or longer than %d bytes", i,
                  HELD_MAX);
  return SCONCE_OK;
}

/* Everything between begin and the end. */
struct generation {
  sconce_generate_desc desc;
  struct writer writer;
  sconce_stream stream;
  sconce_generate_result result;
  uint32_t computed; /* ids that the caches had at first */
  bool prompted;     /* the prompt is behind us */
  uint64_t start, middle;
};

void generation_free(sconce_session *s) {
  block_resize(&s->arena.allocator, s->generation, s->generation ? sizeof *s->generation : 0, 0);
  s->generation = NULL;
}

/* The next id, or in a full context one more that can be shown and not added. */
static sconce_status choose(sconce_session *s, bool block, bool *done, sconce_choice *out,
                            sconce_error *err) {
  const struct generation *g = s->generation;
  if (s->info.position < s->info.context) {
    const uint64_t until = s->info.position + (uint64_t)g->desc.max_new - g->result.n_new;
    return session_next(s, g->desc.max_new && until < UINT32_MAX ? (uint32_t)until : UINT32_MAX,
                        block, done, out, err);
  }
  TRY(session_sync(s, block, done, err));
  return *done ? session_choose(s, out, err) : SCONCE_OK;
}

static void show_id(struct generation *g, sconce_choice choice) {
  const sconce_generate_desc *d = &g->desc;
  size_t size;
  if (!g->stream.tokenizer) {
    g->writer.refused = d->on_text && !d->on_text(d->user, "", 0, choice);
    return;
  }
  const char *text = sconce_stream_push(&g->stream, choice.id, &size);
  push(&g->writer, text, size, choice);
}

/* One id more, unless the device must be waited for: then *done is false. */
static sconce_status step(sconce_session *s, bool block, bool *done, sconce_error *err) {
  struct generation *g = s->generation;
  struct writer *w = &g->writer;
  sconce_generate_result *r = &g->result;
  *done = true;
  if (g->desc.max_new && r->n_new == g->desc.max_new) {
    r->stop = SCONCE_STOP_COUNT;
    return SCONCE_OK;
  }
  sconce_choice choice;
  const bool full = s->info.position == s->info.context;
  TRY(choose(s, block, done, &choice, err));
  if (!*done) return SCONCE_OK;
  if (!g->desc.ignore_end && session_is_end(s, choice.id)) {
    r->stop = SCONCE_STOP_END;
    if (!full) session_rewind(s, s->info.position - 1);
    return SCONCE_OK;
  }
  r->n_new++;
  show_id(g, choice);
  if (w->stopped)
    r->stop = SCONCE_STOP_TEXT;
  else if (w->refused)
    r->stop = SCONCE_STOP_CALLER;
  else if (full)
    r->stop = SCONCE_STOP_CONTEXT;
  return SCONCE_OK;
}

/* Chunks of the prompt, until it is done or the device must be waited for. */
static sconce_status prompt(sconce_session *s, bool block, sconce_error *err) {
  struct generation *g = s->generation;
  for (bool through = true; through && !g->prompted;) {
    const uint32_t before = s->computed, all = s->info.position - g->computed;
    TRY(session_compute(s, block, &g->prompted, err));
    through = s->computed > before;
    if (!through || !g->desc.progress) continue;
    if (!g->desc.progress(g->desc.user, s->computed - g->computed, all)) sconce_session_cancel(s);
  }
  TRY(session_check_cancel(s, err));
  g->middle = os_clock_ns();
  return SCONCE_OK;
}

/* Text that was held back for a character or a stop string. */
static void show_rest(struct generation *g) {
  struct writer *w = &g->writer;
  size_t size;
  const char *rest = sconce_stream_end(&g->stream, &size);
  sconce_choice none = {.id = -1};
  push(w, rest, size, none);
  if (!w->stopped && !w->refused) show(w, w->n_held, none);
}

static void finish(struct generation *g) {
  if (g->stream.tokenizer) show_rest(g);
  g->result.prompt_s = (double)(g->middle - g->start) * 1e-9;
  g->result.new_s = (double)(os_clock_ns() - g->middle) * 1e-9;
}

static sconce_status go_on(sconce_session *s, bool block, bool *done, sconce_error *err) {
  struct generation *g = s->generation;
  *done = false;
  if (!g->prompted) {
    sconce_status status = prompt(s, block, err);
    if (status != SCONCE_OK) session_rewind(s, s->computed);
    TRY(status);
  }
  bool had = g->prompted;
  while (had && !g->result.stop) TRY(step(s, block, &had, err));
  *done = g->result.stop != 0;
  if (*done) finish(g);
  return SCONCE_OK;
}

static sconce_status poll(sconce_session *s, bool block, bool *done, sconce_generate_result *result,
                          sconce_error *err) {
  sconce_status status = session_check_cancel(s, err);
  s->calls_back = true;
  if (status == SCONCE_OK) status = go_on(s, block, done, err);
  s->calls_back = false;
  if (status == SCONCE_OK && *done && result) *result = s->generation->result;
  if (status != SCONCE_OK && s->n_running) session_rewind(s, s->computed);
  if (status != SCONCE_OK || *done) generation_free(s);
  return status;
}

sconce_status sconce_session_generate_begin(sconce_session *s, const sconce_generate_desc *desc,
                                            sconce_error *err) {
  ALONE(s ? &s->alone : NULL, "session");
  TRY(session_idle(s, err));
  TRY(check(s, desc, err));
  struct generation *g = block_resize(&s->arena.allocator, NULL, 0, sizeof *g);
  if (!g) return fail(err, SCONCE_NO_MEMORY, "no memory for a generation");
  const size_t reused = session_reused(s, desc->prompt, desc->n_prompt);
  const sconce_status status = session_prompt(s, desc->prompt, desc->n_prompt, err);
  if (status != SCONCE_OK) {
    block_resize(&s->arena.allocator, g, sizeof *g, 0);
    return status;
  }
  const bool starts = s->tokenizer && desc->prompt[desc->n_prompt - 1] ==
                                          sconce_tokenizer_describe(s->tokenizer)->bos;
  *g = (struct generation){
      .desc = *desc,
      .stream = {.tokenizer = s->tokenizer, .flags = starts ? 0 : SCONCE_DECODE_CONTINUES},
      .result = {.n_prompt = desc->n_prompt, .n_reused = reused},
      .computed = s->computed,
      .start = os_clock_ns(),
  };
  g->writer.desc = &g->desc;
  s->generation = g;
  return SCONCE_OK;
}

sconce_status sconce_session_generate_poll(sconce_session *s, bool *done,
                                           sconce_generate_result *result, sconce_error *err) {
  if (!s || !done) return fail(err, SCONCE_BAD_ARGUMENT, "session or done is NULL");
  ALONE(s ? &s->alone : NULL, "session");
  if (!s->generation) return fail(err, SCONCE_BAD_ARGUMENT, "no generation is under way");
  if (s->calls_back)
    return fail(err, SCONCE_BAD_ARGUMENT, "a poll from a function that the session called");
  return poll(s, false, done, result, err);
}

sconce_status sconce_session_generate(sconce_session *s, const sconce_generate_desc *desc,
                                      sconce_generate_result *result, sconce_error *err) {
  ALONE(s ? &s->alone : NULL, "session");
  TRY(sconce_session_generate_begin(s, desc, err));
  for (bool done = false; !done;) TRY(poll(s, true, &done, result, err));
  return SCONCE_OK;
}
