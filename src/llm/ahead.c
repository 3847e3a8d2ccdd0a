/* sconce_session_next: ids as fast as the device computes them. It works ahead, a call for each id,
 * two in flight; or, where lookup has a guess, one call verifies several ids. What was chosen and
 * not yet asked for waits behind the timeline. */
#include "llm/session.h"

#include "base/os.h"

#include <string.h>

enum { AHEAD = 2 }; /* on an H200 more calls in flight were no faster */

/* ---- calls ----------------------------------------------------------------------------------- */

/* A call of one row is short enough to wait for. Of more, a cancel is looked for meanwhile, so that
 * what has not been sent to the device never is; naps grow with what was waited already. */
static sconce_status wait_or_cancel(sconce_session *s, sconce_error *err) {
  enum { NAP_MIN_NS = 20000, NAP_MAX_NS = 1000000 };
  const uint64_t start = os_clock_ns();
  for (bool done = false;;) {
    TRY(sconce_state_poll(s->state, &done, err));
    if (done) return SCONCE_OK;
    sconce_status status = session_check_cancel(s, err);
    if (status != SCONCE_OK) {
      sconce_state_cancel(s->state);
      return status;
    }
    const uint64_t nap = (os_clock_ns() - start) / 64;
    os_sleep_ns(nap < NAP_MIN_NS ? NAP_MIN_NS : nap > NAP_MAX_NS ? NAP_MAX_NS : nap);
  }
}

sconce_status session_finish_call(sconce_session *s, bool block, bool *done, sconce_error *err) {
  *done = true;
  if (block && s->n_running > 1) return wait_or_cancel(s, err);
  return block ? sconce_state_wait(s->state, err) : sconce_state_poll(s->state, done, err);
}

/* Waiting for the few calls there are keeps their staging buffers; where nobody may wait they are
 * given up. */
void session_halt(sconce_session *s) {
  if (s->n_running) sconce_state_cancel(s->state);
  s->n_running = 0;
  if (!session_is_ahead(s)) return;
  sconce_error ignored;
  while (s->n_ahead && sconce_state_wait(s->state, &ignored) == SCONCE_OK) s->n_ahead--;
  if (s->n_ahead) sconce_state_cancel(s->state);
  s->n_ahead = s->ready = s->guessed = 0;
  s->chain_ns = 0;
  s->computed = s->begun < s->info.position ? s->begun : s->info.position;
  if (s->replay > s->info.position) s->replay = s->info.position;
}

void session_halt_here(sconce_session *s) {
  if (!session_is_ahead(s)) return;
  session_halt(s);
  if (s->computed == s->info.position) s->computed--;
}

/* Ids that are chosen, given to somebody or not. */
static uint32_t chosen(const sconce_session *s) { return s->info.position + s->ready; }

/* The first id that no call has. */
static uint32_t not_begun(const sconce_session *s) {
  return session_is_ahead(s) ? s->begun : s->computed;
}

/* Begins a call that chooses an id: with what the caches lack, or with the id that the call before
 * it chooses. */
static sconce_status begin_ahead(sconce_session *s, sconce_error *err) {
  const bool first = s->n_ahead == 0;
  const uint32_t from = not_begun(s), n = first ? chosen(s) - from : 1;
  sconce_draw draw = s->draw;
  draw.position = from + n;
  TRY(session_set_inputs(s, from, first ? n : 0, err));
  TRY(sconce_state_begin(
      s->state, &(sconce_call){.keep_outputs = true, .draw = &draw, .feed_token = !first}, err));
  session_note_call(s, from, n, 0);
  s->begun = from + n;
  s->n_ahead++;
  return SCONCE_OK;
}

/* Begins a call with what the caches lack and all but one of `rows` ids that are guessed; it
 * chooses behind each of them. */
static sconce_status begin_guesses(sconce_session *s, uint32_t rows, sconce_error *err) {
  const uint32_t end = chosen(s), from = not_begun(s), n = end - from + rows - 1;
  sconce_draw draw = s->draw;
  draw.position = end + rows - 1;
  memcpy(s->ids + end, s->lookup.guess, (rows - 1) * sizeof *s->ids);
  TRY(session_set_inputs(s, from, n, err));
  s->logits_at = 0;
  s->began_ns = os_clock_ns();
  s->chain_ns = 0;
  TRY(sconce_state_begin(s->state,
                         &(sconce_call){.keep_outputs = s->may_work_ahead,
                                        .last_rows = rows,
                                        .draw = s->may_work_ahead ? &draw : NULL},
                         err));
  session_note_call(s, from, n, n);
  s->begun = end;
  s->guessed = rows - 1;
  s->n_ahead++;
  return SCONCE_OK;
}

/* How many rows a call should have that gives ids from here on, where nobody will ask for those
 * from `until` on. */
static uint32_t rows_to_guess(sconce_session *s, uint32_t until) {
  const uint32_t end = chosen(s), last = until < s->info.context ? until : s->info.context;
  const uint32_t lacks = end - not_begun(s), room = last > end ? last - end : 0;
  lookup_guess(&s->lookup, s->ids, end);
  const uint32_t fit = lacks <= s->info.chunk ? s->info.chunk - lacks + 1 : 1;
  return lookup_rows(&s->lookup, room < fit ? room : fit);
}

/* Keeps the device busy, as far as somebody will want the ids and the context goes. Guesses are
 * verified behind ids that are known, so what is under way must come to its end first. */
static sconce_status work_ahead(sconce_session *s, uint32_t until, sconce_error *err) {
  if (s->guessed || s->n_ahead == AHEAD) return SCONCE_OK;
  const uint32_t rows = rows_to_guess(s, until);
  if (rows > 1) return s->n_ahead ? SCONCE_OK : begin_guesses(s, rows, err);
  while (s->n_ahead < AHEAD) {
    uint32_t from = s->n_ahead ? s->begun : chosen(s) - 1;
    if (from + 1 >= s->info.context || from + 1 >= until) break;
    TRY(begin_ahead(s, err));
  }
  return SCONCE_OK;
}

/* ---- what they chose ------------------------------------------------------------------------- */

static sconce_status check_id(const sconce_session *s, int32_t id, sconce_error *err) {
  if (id >= 0 && (uint32_t)id < s->info.n_vocab) return SCONCE_OK;
  return fail(err, SCONCE_BAD_ARGUMENT, "none of %u logits is a number above -inf",
              s->info.n_vocab);
}

/* The id behind guess i of n: the device's, or the host's choice from the logits there. */
static sconce_status choose_behind(sconce_session *s, uint32_t i, uint32_t n, sconce_choice *out,
                                   sconce_error *err) {
  const uint32_t at = s->info.position + i;
  *out = (sconce_choice){.id = -1};
  if (s->may_work_ahead) {
    uint32_t rows;
    const int32_t *ids = sconce_state_tokens(s->state, &rows);
    if (rows != n + 1)
      return fail(err, SCONCE_GPU_ERROR, "%u ids were chosen, want %u", rows, n + 1);
    out->id = ids[i];
    return check_id(s, out->id, err);
  }
  TRY(session_read_logits(s, n - i, err));
  return sconce_sampler_choose(s->sampler, s->logits, at, s->ids, at, out, err);
}

/* Ids are what was chosen, up to the first that is not what was guessed: behind it the call
 * computed something else. A choice that fails fails again when somebody asks for it. */
static sconce_status take_guesses(sconce_session *s, sconce_error *err) {
  const uint32_t n = s->guessed;
  bool right = true;
  s->guessed = 0;
  for (uint32_t i = 0; i <= n && right; i++) {
    sconce_choice choice;
    sconce_error later;
    const sconce_status status = choose_behind(s, i, n, &choice, i ? &later : err);
    if (status != SCONCE_OK && i == 0) return status;
    if (status != SCONCE_OK) break;
    int32_t *id = &s->ids[s->info.position + i];
    right = i < n && *id == choice.id;
    *id = choice.id;
    s->logprobs[i] = choice.logprob;
    s->ready++;
  }
  s->begun = chosen(s) - 1;
  s->info.guessed += n;
  s->info.accepted += s->ready - 1;
  lookup_saw(&s->lookup, s->ready - 1, n);
  lookup_time(&s->lookup, n + 1, os_clock_ns() - s->began_ns);
  return SCONCE_OK;
}

/* An id that no guess was verified for: what lookup would have said is compared all the same. */
static void take_one(sconce_session *s, sconce_choice choice) {
  if (s->lookup.n_guess) lookup_saw(&s->lookup, s->lookup.guess[0] == choice.id, 1);
  s->lookup.n_guess = 0;
  s->logprobs[s->ready] = choice.logprob;
  s->ids[s->info.position + s->ready++] = choice.id;
}

static sconce_status take(sconce_session *s, bool block, bool *done, sconce_error *err) {
  TRY(session_finish_call(s, block, done, err));
  if (!*done) return SCONCE_OK;
  s->n_ahead--;
  if (s->guessed) return take_guesses(s, err);
  uint32_t n;
  const int32_t *ids = sconce_state_tokens(s->state, &n);
  const sconce_choice choice = {.id = n ? ids[0] : -1};
  TRY(check_id(s, choice.id, err));
  const uint64_t now = os_clock_ns();
  if (s->chain_ns) lookup_time(&s->lookup, 1, now - s->chain_ns);
  s->chain_ns = now;
  take_one(s, choice);
  return SCONCE_OK;
}

/* Gives the next of those that are ready. After a loss the caches have none of them. */
static void deliver(sconce_session *s, uint32_t until, sconce_choice *out) {
  *out = (sconce_choice){.id = s->ids[s->info.position], .logprob = s->logprobs[0]};
  memmove(s->logprobs, s->logprobs + 1, (LOOKUP_ROWS - 1) * sizeof *s->logprobs);
  s->info.position++;
  s->ready--;
  s->computed = s->begun < s->info.position - 1 ? s->begun : s->info.position - 1;
  sconce_error later; /* what fails here fails again when somebody needs it */
  if (s->may_work_ahead && s->computed + 1 == s->info.position && s->computed >= s->replay &&
      work_ahead(s, until, &later) != SCONCE_OK)
    session_halt_here(s);
}

/* ---- next ------------------------------------------------------------------------------------ */

static sconce_status next_ahead(sconce_session *s, uint32_t until, bool block, bool *done,
                                sconce_choice *out, sconce_error *err) {
  if (s->n_ahead == 0 && s->computed == s->info.position) { /* the logits are here */
    sconce_choice choice;
    TRY(session_sync(s, block, done, err));
    TRY(session_choose(s, &choice, err));
    s->begun = s->info.position;
    take_one(s, choice);
  } else {
    const uint32_t rows = s->n_ahead ? 1 : rows_to_guess(s, until);
    if (rows > 1)
      TRY(begin_guesses(s, rows, err));
    else if (s->n_ahead == 0)
      TRY(begin_ahead(s, err));
    TRY(take(s, block, done, err));
    if (!*done) return SCONCE_OK;
  }
  deliver(s, until, out);
  return SCONCE_OK;
}

/* The same where the host chooses from the logits that come back. */
static sconce_status next_here(sconce_session *s, uint32_t until, bool block, bool *done,
                               sconce_choice *out, sconce_error *err) {
  const bool lacks_one = s->computed + 1 == s->info.position && s->computed >= s->replay;
  const bool idle = !s->may_work_ahead && !s->n_running && s->n_ahead == 0;
  const uint32_t rows = idle && lacks_one ? rows_to_guess(s, until) : 1;
  if (rows > 1) TRY(begin_guesses(s, rows, err));
  if (s->guessed) {
    TRY(take(s, block, done, err));
    if (!*done) return SCONCE_OK;
  } else {
    sconce_choice choice;
    TRY(session_sync(s, block, done, err));
    if (!*done) return SCONCE_OK;
    TRY(session_choose(s, &choice, err));
    s->begun = s->info.position;
    take_one(s, choice);
  }
  deliver(s, until, out);
  return SCONCE_OK;
}

static sconce_status try_next(sconce_session *s, uint32_t until, bool block, bool *done,
                              sconce_choice *out, sconce_error *err) {
  const bool many = s->info.position - s->computed > s->info.chunk || s->computed < s->replay;
  const bool here = !s->may_work_ahead || s->n_running || many;
  sconce_status status = here ? next_here(s, until, block, done, out, err)
                              : next_ahead(s, until, block, done, out, err);
  if (status == SCONCE_OK) {
    if (!here) s->recoveries = 0;
    return SCONCE_OK;
  }
  if (here && !s->n_ahead) return status;
  if (s->n_ahead) s->replay = s->begun < s->info.position ? s->begun : s->info.position;
  session_halt_here(s);
  return session_recovered(s, status, err) ? next_here(s, until, block, done, out, err) : status;
}

sconce_status session_next(sconce_session *s, uint32_t until, bool block, bool *done,
                           sconce_choice *out, sconce_error *err) {
  TRY(session_check_cancel(s, err));
  if (s->info.position == s->info.context)
    return fail(err, SCONCE_BAD_ARGUMENT, "the context is full: %u ids", s->info.context);
  const uint32_t most = s->info.position + 2 * LOOKUP_ROWS; /* ready and guessed; cuts are noted */
  TRY(session_reserve(s, most < s->info.context ? most : s->info.context, err));
  *out = (sconce_choice){.id = -1};
  *done = true;
  session_look(s);
  if (!s->ready) return try_next(s, until, block, done, out, err);
  deliver(s, until, out);
  return SCONCE_OK;
}

sconce_status sconce_session_next(sconce_session *s, sconce_choice *out, sconce_error *err) {
  ALONE(s ? &s->alone : NULL, "session");
  TRY(session_idle(s, err));
  if (!out) return fail(err, SCONCE_BAD_ARGUMENT, "out is NULL");
  bool done;
  return session_next(s, UINT32_MAX, true, &done, out, err);
}
