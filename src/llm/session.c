/* Sessions: ids in, logits out, positions kept right. */
#include "llm/session.h"

#include "base/half.h"

#include <inttypes.h>
#include <string.h>

/* ---- calls ----------------------------------------------------------------------------------- */

/* The oldest call under way: waits for it, or asks. */
static sconce_status finish_call(sconce_session *s, bool block, bool *done, sconce_error *err) {
  *done = true;
  return block ? sconce_state_wait(s->state, err) : sconce_state_poll(s->state, done, err);
}

enum { AHEAD = 2 }; /* on an H200 more calls in flight were no faster */

/* Ends the work ahead: what was begun still runs, and rows past the timeline are overwritten before
 * they are attended. Waiting for the few calls there are keeps their staging buffers; where nobody
 * may wait they are given up. */
static void halt(sconce_session *s) {
  if (s->n_running) sconce_state_cancel(s->state);
  s->n_running = 0;
  if (s->n_ahead == 0) return;
  sconce_error ignored;
  while (s->n_ahead && sconce_state_wait(s->state, &ignored) == SCONCE_OK) s->n_ahead--;
  if (s->n_ahead) sconce_state_cancel(s->state);
  s->n_ahead = 0;
  s->computed = s->begun < s->info.position ? s->begun : s->info.position;
}

/* The same where the timeline goes on from here: the last id's logits were left on the device, so
 * it is computed again. */
static void halt_here(sconce_session *s) {
  if (s->n_ahead == 0) return;
  halt(s);
  if (s->computed == s->info.position) s->computed--;
}

/* ---- a lost device --------------------------------------------------------------------------- */

/* Sums depend on how ids were cut into calls: with the same cuts they come out the same, to the
 * last bit, and with them every later choice. */
void session_look(sconce_session *s) {
  const uint32_t losses = sconce_state_losses(s->state);
  if (losses == s->losses) return;
  s->losses = losses;
  const uint32_t held = s->n_ahead && s->begun < s->info.position ? s->begun : s->computed;
  s->n_ahead = s->n_running = 0;
  if (held > s->replay) s->replay = held;
  s->computed = 0;
}

bool session_recovered(sconce_session *s, sconce_status status, sconce_error *err) {
  enum { TRIES = 3 }; /* a device that never comes to an end is no use */
  if (status != SCONCE_DEVICE_LOST || !s->recovers || s->recoveries == TRIES) return false;
  s->recoveries++;
  if (sconce_device_recover(sconce_model_device(s->model), err) != SCONCE_OK) return false;
  session_look(s);
  return true;
}

static void note_call(sconce_session *s, uint32_t from, uint32_t n) {
  memset(s->starts + from, 0, n);
  s->starts[from] = 1;
}

/* How many of the next ids go into one call. */
static uint32_t next_chunk(const sconce_session *s) {
  const uint32_t left = s->info.position - s->computed;
  uint32_t most = left < s->info.chunk ? left : s->info.chunk, n = 1;
  if (s->computed >= s->replay) return most;
  while (n < most && s->computed + n < s->replay && !s->starts[s->computed + n]) n++;
  return n;
}

/* The method's inputs: n ids of the timeline from `first` on; n 0: the one that the device chose.
 */
static sconce_status set_inputs(sconce_session *s, uint32_t first, uint32_t n, sconce_error *err) {
  const uint32_t steps = n ? n : 1, count = s->many_positions ? steps : 1;
  sconce_tensor ids = {SCONCE_INT32, 2, {1, n}, s->ids + first, 4 * (size_t)n};
  if (n) TRY(sconce_state_set_input(s->state, 0, &ids, err));
  if (!s->has_position) return SCONCE_OK;
  for (uint32_t i = 0; i < count; i++) s->positions[i] = (int32_t)(first + i);
  sconce_tensor p = {SCONCE_INT32, 1, {count}, s->positions, 4 * (size_t)count};
  return sconce_state_set_input(s->state, 1, &p, err);
}

static bool has_logits(const sconce_session *s) {
  return s->logits_at && s->logits_at == s->info.position;
}

/* ---- opening --------------------------------------------------------------------------------- */

static uint32_t constant_or(const sconce_model *model, const char *name, uint32_t absent) {
  sconce_number n;
  sconce_error ignored;
  if (sconce_model_constant(model, name, 0, &n, &ignored) != SCONCE_OK) return absent;
  return n.i > 0 && n.i <= UINT32_MAX ? (uint32_t)n.i : absent;
}

static bool is_integer(sconce_dtype d) { return d == SCONCE_INT64 || d == SCONCE_INT32; }

/* A language model takes ids [1, S] and mostly a position, and gives logits [1, vocab] or
 * [1, S, vocab]. */
static sconce_status read_shape(sconce_session *s, const sconce_model *model, sconce_error *err) {
  const sconce_method_info *info = sconce_method_describe(s->method);
  if (info->n_inputs < 1 || info->n_inputs > 2 || info->n_outputs != 1)
    return fail(
        err, SCONCE_UNSUPPORTED,
        "the method has %u inputs and %u outputs; a language model takes ids and a position "
        "and gives logits",
        info->n_inputs, info->n_outputs);
  const sconce_tensor *ids = &info->inputs[0], *logits = &info->outputs[0];
  if (ids->rank != 2 || ids->dims[0] != 1 || ids->dims[1] < 1 || !is_integer(ids->dtype))
    return fail(err, SCONCE_UNSUPPORTED, "input 0 is no row of token ids");
  if (logits->rank < 2 || logits->rank > 3 ||
      (logits->dtype != SCONCE_FLOAT32 && logits->dtype != SCONCE_FLOAT16))
    return fail(err, SCONCE_UNSUPPORTED, "output 0 is no row of logits");
  s->info.chunk = ids->dims[1];
  s->info.n_vocab = logits->dims[logits->rank - 1];
  s->has_position = info->n_inputs == 2;
  if (s->has_position) {
    const sconce_tensor *position = &info->inputs[1];
    if (position->rank != 1 || !is_integer(position->dtype))
      return fail(err, SCONCE_UNSUPPORTED, "input 1 is no position");
    s->many_positions = position->dims[0] > 1;
  }
  uint32_t length = constant_or(model, "get_max_seq_len", s->info.chunk + 1);
  s->info.context = constant_or(model, "get_max_context_len", length);
  return SCONCE_OK;
}

static void read_ends(sconce_session *s, const sconce_model *model) {
  enum { MOST = sizeof s->ends / sizeof *s->ends };
  sconce_number n;
  sconce_error ignored;
  while (s->n_ends < MOST &&
         sconce_model_constant(model, "get_eos_ids", s->n_ends, &n, &ignored) == SCONCE_OK)
    s->ends[s->n_ends++] = (int32_t)n.i;
}

enum { ROOM = 65536 }; /* ids that are reserved from the start, if there are so many positions */

sconce_status session_reserve(sconce_session *s, uint32_t n, sconce_error *err) {
  if (n <= s->room) return SCONCE_OK;
  uint64_t room = s->room ? s->room : n;
  while (room < n) room *= 2;
  if (room > s->info.context) room = s->info.context;
  int32_t *ids =
      block_resize(&s->arena.allocator, s->ids, s->room * sizeof *ids, (size_t)room * sizeof *ids);
  if (!ids) return fail(err, SCONCE_NO_MEMORY, "no memory for %u ids", n);
  s->ids = ids;
  uint8_t *starts = block_resize(&s->arena.allocator, s->starts, s->room, (size_t)room);
  if (!starts) { /* the ids have more room than is known, so they must go back */
    s->ids = block_resize(&s->arena.allocator, s->ids, (size_t)room * sizeof *ids,
                          s->room * sizeof *ids);
    return fail(err, SCONCE_NO_MEMORY, "no memory for %u ids", n);
  }
  s->starts = starts;
  s->room = (uint32_t)room;
  return SCONCE_OK;
}

static sconce_status set_sampler(sconce_session *s, const sconce_sampler_desc *desc,
                                 sconce_error *err) {
  sconce_sampler_desc d = *desc;
  sconce_sampler *sampler;
  d.n_vocab = s->info.n_vocab;
  d.allocator = s->arena.allocator;
  TRY(sconce_sampler_open(&sampler, &d, err));
  sconce_sampler_close(s->sampler);
  s->sampler = sampler;
  s->draw = (sconce_draw){.seed = d.seed,
                          .temperature = d.temperature,
                          .top_k = d.top_k < d.n_vocab ? d.top_k : 0,
                          .top_p = d.top_p,
                          .min_p = d.min_p};
  const bool penalty = d.repetition_penalty != 0 && d.repetition_penalty != 1;
  s->may_work_ahead =
      sconce_method_describe(s->method)->can_draw && !penalty && !d.logprobs && !s->host_chooses;
  return SCONCE_OK;
}

static sconce_status init(sconce_session *s, const sconce_session_desc *desc, sconce_error *err) {
  TRY(sconce_method_open(&s->method, desc->model, desc->method, err));
  TRY(read_shape(s, desc->model, err));
  read_ends(s, desc->model);
  TRY(session_reserve(s, s->info.context < ROOM ? s->info.context : ROOM, err));
  s->positions = arena_new(&s->arena, int32_t, s->info.chunk);
  s->logits = arena_new(&s->arena, float, s->info.n_vocab);
  if (!s->positions || !s->logits)
    return fail(err, SCONCE_NO_MEMORY, "no memory for %u logits", s->info.n_vocab);
  s->host_chooses = desc->host_chooses;
  TRY(set_sampler(s, &desc->sampler, err));
  return sconce_state_open(&s->state, s->method, err);
}

sconce_status sconce_session_set_sampler(sconce_session *s, const sconce_sampler_desc *desc,
                                         sconce_error *err) {
  TRY(session_idle(s, err));
  if (!desc) return fail(err, SCONCE_BAD_ARGUMENT, "desc is NULL");
  halt_here(s);
  return set_sampler(s, desc, err);
}

static sconce_status open_once(sconce_session **out, const sconce_session_desc *desc,
                               sconce_error *err) {
  *out = NULL;
  sconce_session *s = block_resize(&desc->allocator, NULL, 0, sizeof *s);
  if (!s) return fail(err, SCONCE_NO_MEMORY, "no memory for a session");
  *s = (sconce_session){
      .model = desc->model, .tokenizer = desc->tokenizer, .recovers = desc->recovers};
  atomic_init(&s->cancelled, false);
  arena_init(&s->arena, &desc->allocator);
  sconce_status status = init(s, desc, err);
  s->losses = sconce_state_losses(s->state);
  if (status != SCONCE_OK)
    sconce_session_close(s);
  else
    *out = s;
  return status;
}

sconce_status sconce_session_open(sconce_session **out, const sconce_session_desc *desc,
                                  sconce_error *err) {
  if (!out || !desc || !desc->model)
    return fail(err, SCONCE_BAD_ARGUMENT, "out, desc or its model is NULL");
  sconce_status status = open_once(out, desc, err);
  if (status != SCONCE_DEVICE_LOST || !desc->recovers) return status;
  TRY(sconce_device_recover(sconce_model_device(desc->model), err));
  return open_once(out, desc, err);
}

void sconce_session_close(sconce_session *s) {
  if (!s) return;
  generation_free(s);
  sconce_state_close(s->state);
  sconce_method_close(s->method);
  sconce_sampler_close(s->sampler);
  sconce_allocator allocator = s->arena.allocator;
  if (s->ids) block_resize(&allocator, s->ids, s->room * sizeof *s->ids, 0);
  if (s->starts) block_resize(&allocator, s->starts, s->room, 0);
  arena_free(&s->arena);
  block_resize(&allocator, s, sizeof *s, 0);
}

const sconce_session_info *sconce_session_describe(const sconce_session *s) {
  return s ? &s->info : NULL;
}

sconce_state *sconce_session_state(sconce_session *s) { return s ? s->state : NULL; }

void sconce_session_cancel(sconce_session *s) {
  if (s) atomic_store(&s->cancelled, true);
}

sconce_status session_check_cancel(sconce_session *s, sconce_error *err) {
  if (!atomic_exchange(&s->cancelled, false)) return SCONCE_OK;
  return fail(err, SCONCE_CANCELLED, "cancelled at position %u of %u", s->computed,
              s->info.position);
}

const int32_t *sconce_session_ids(const sconce_session *s, size_t *n) {
  *n = s ? s->info.position : 0;
  return s ? s->ids : NULL;
}

const float *sconce_session_logits(const sconce_session *s) {
  return s && has_logits(s) ? s->logits : NULL;
}

bool session_is_end(const sconce_session *s, int32_t id) {
  for (uint32_t i = 0; i < s->n_ends; i++)
    if (s->ends[i] == id) return true;
  return s->tokenizer && sconce_tokenizer_is_end(s->tokenizer, id);
}

/* ---- feeding --------------------------------------------------------------------------------- */

static sconce_status check_ids(const sconce_session *s, const int32_t *ids, size_t n,
                               sconce_error *err) {
  for (size_t i = 0; i < n; i++)
    if (ids[i] < 0 || (uint32_t)ids[i] >= s->info.n_vocab)
      return fail(err, SCONCE_BAD_ARGUMENT, "id %zu is %" PRId32 ", the vocabulary has %" PRIu32, i,
                  ids[i], s->info.n_vocab);
  return SCONCE_OK;
}

static sconce_status keep_logits(sconce_session *s, sconce_error *err) {
  sconce_tensor t;
  TRY(sconce_state_output(s->state, 0, &t, err));
  size_t n = s->info.n_vocab, row = n * sconce_dtype_size(t.dtype);
  if (t.size < row || !t.data)
    return fail(err, SCONCE_GPU_ERROR, "%zu bytes of logits, a row has %zu", t.size, row);
  const uint8_t *last = (const uint8_t *)t.data + (t.size - row);
  if (t.dtype == SCONCE_FLOAT32) {
    memcpy(s->logits, last, row);
  } else {
    for (size_t i = 0; i < n; i++) {
      uint16_t half;
      memcpy(&half, last + 2 * i, 2);
      s->logits[i] = half_to_float(half);
    }
  }
  s->logits_at = s->info.position;
  return SCONCE_OK;
}

/* Begins a call with the next ids that the caches lack; only the last row of logits is wanted. */
static sconce_status begin_chunk(sconce_session *s, sconce_error *err) {
  const uint32_t left = s->info.position - s->computed, n = next_chunk(s);
  s->logits_at = 0;
  TRY(set_inputs(s, s->computed, n, err));
  TRY(sconce_state_begin(s->state, &(sconce_call){.keep_outputs = n < left, .last_rows = 1}, err));
  note_call(s, s->computed, n);
  s->n_running = n;
  return SCONCE_OK;
}

sconce_status session_compute(sconce_session *s, bool block, bool *done, sconce_error *err) {
  session_look(s);
  *done = s->computed == s->info.position;
  if (*done) return SCONCE_OK;
  if (!s->n_running) TRY(session_check_cancel(s, err));
  bool through = true;
  sconce_status status = s->n_running ? SCONCE_OK : begin_chunk(s, err);
  if (status == SCONCE_OK) status = finish_call(s, block, &through, err);
  if (status != SCONCE_OK) s->n_running = 0;
  if (status != SCONCE_OK && session_recovered(s, status, err)) return SCONCE_OK; /* and again */
  if (status != SCONCE_OK || !through) return status;
  s->computed += s->n_running;
  s->n_running = s->recoveries = 0;
  *done = s->computed == s->info.position;
  return *done ? keep_logits(s, err) : SCONCE_OK;
}

sconce_status session_sync(sconce_session *s, bool block, bool *done, sconce_error *err) {
  session_look(s);
  halt_here(s);
  do TRY(session_compute(s, block, done, err));
  while (block && !*done);
  return SCONCE_OK;
}

/* Puts ids behind the timeline; they are yet to be computed. */
static sconce_status extend(sconce_session *s, const int32_t *ids, size_t n, sconce_error *err) {
  uint32_t left = s->info.context - s->info.position;
  if (n > left)
    return fail(err, SCONCE_BAD_ARGUMENT, "the context is full: %zu ids at position %u of %u", n,
                s->info.position, s->info.context);
  TRY(session_reserve(s, s->info.position + (uint32_t)n, err));
  halt(s);
  if (n) memcpy(s->ids + s->info.position, ids, n * sizeof *ids);
  s->info.position += (uint32_t)n;
  return SCONCE_OK;
}

/* Computes them all; a failure leaves those that were. */
static sconce_status compute(sconce_session *s,
                             bool (*progress)(void *user, size_t done, size_t all), void *user,
                             sconce_error *err) {
  const uint32_t from = s->computed, all = s->info.position - from;
  sconce_status status = SCONCE_OK;
  for (bool done = all == 0; status == SCONCE_OK && !done;) {
    status = session_compute(s, true, &done, err);
    const uint32_t through = s->computed > from ? s->computed - from : 0;
    if (status == SCONCE_OK && progress && !progress(user, through, all)) sconce_session_cancel(s);
  }
  if (status == SCONCE_OK) status = session_check_cancel(s, err);
  if (status != SCONCE_OK) s->info.position = s->computed > s->replay ? s->computed : s->replay;
  return status;
}

sconce_status session_idle(const sconce_session *s, sconce_error *err) {
  if (!s) return fail(err, SCONCE_BAD_ARGUMENT, "session is NULL");
  if (!s->generation) return SCONCE_OK;
  return fail(err, SCONCE_BAD_ARGUMENT, "a generation is under way: poll it to its end, or cancel");
}

sconce_status sconce_session_append(sconce_session *s, int32_t id, sconce_error *err) {
  TRY(session_idle(s, err));
  TRY(check_ids(s, &id, 1, err));
  TRY(extend(s, &id, 1, err));
  return compute(s, NULL, NULL, err);
}

size_t session_reused(const sconce_session *s, const int32_t *ids, size_t n) {
  size_t same = 0;
  while (same < s->info.position && same < n && s->ids[same] == ids[same]) same++;
  const size_t held = s->computed > s->replay ? s->computed : s->replay;
  if (same > held && s->n_ahead == 0) same = held;
  return same && same == n && same != s->logits_at ? same - 1 : same;
}

sconce_status session_prompt(sconce_session *s, const int32_t *ids, size_t n, sconce_error *err) {
  if (!ids && n) return fail(err, SCONCE_BAD_ARGUMENT, "ids is NULL");
  if (n == 0) return fail(err, SCONCE_BAD_ARGUMENT, "a prompt needs at least one id");
  if (n > s->info.context)
    return fail(err, SCONCE_BAD_ARGUMENT, "a prompt of %zu ids, the context has %u positions", n,
                s->info.context);
  TRY(check_ids(s, ids, n, err));
  session_look(s);
  size_t same = session_reused(s, ids, n);
  session_rewind(s, (uint32_t)same);
  return extend(s, ids + same, n - same, err);
}

sconce_status sconce_session_prompt(sconce_session *s, const int32_t *ids, size_t n,
                                    bool (*progress)(void *user, size_t done, size_t all),
                                    void *user, sconce_error *err) {
  TRY(session_idle(s, err));
  TRY(session_prompt(s, ids, n, err));
  return compute(s, progress, user, err);
}

sconce_status session_choose(sconce_session *s, sconce_choice *out, sconce_error *err) {
  if (!has_logits(s)) return fail(err, SCONCE_BAD_ARGUMENT, "there are no logits to choose from");
  return sconce_sampler_choose(s->sampler, s->logits, s->info.position, s->ids, s->info.position,
                               out, err);
}

sconce_status sconce_session_choose(sconce_session *s, sconce_choice *out, sconce_error *err) {
  TRY(session_idle(s, err));
  if (!out) return fail(err, SCONCE_BAD_ARGUMENT, "out is NULL");
  bool done;
  TRY(session_sync(s, true, &done, err));
  return session_choose(s, out, err);
}

/* Rows of the cache past the position are overwritten before they are attended. */
void session_rewind(sconce_session *s, uint32_t position) {
  if (position == s->info.position) return;
  session_look(s);
  halt(s);
  if (position < s->logits_at) s->logits_at = 0;
  s->info.position = position;
  if (s->computed > position) s->computed = position;
  if (s->replay > position) s->replay = position;
}

sconce_status sconce_session_rewind(sconce_session *s, uint32_t position, sconce_error *err) {
  TRY(session_idle(s, err));
  if (position > s->info.position)
    return fail(err, SCONCE_BAD_ARGUMENT, "rewind to %u, the session is at %u", position,
                s->info.position);
  session_rewind(s, position);
  return SCONCE_OK;
}

/* ---- working ahead --------------------------------------------------------------------------- */

/* Begins a call that chooses an id: with what the caches lack, or with the id that the call before
 * it chooses. */
static sconce_status begin_ahead(sconce_session *s, sconce_error *err) {
  const bool first = s->n_ahead == 0;
  const uint32_t from = first ? s->computed : s->begun;
  const uint32_t n = first ? s->info.position - s->computed : 1;
  sconce_draw draw = s->draw;
  draw.position = from + n;
  TRY(set_inputs(s, from, first ? n : 0, err));
  TRY(sconce_state_begin(
      s->state, &(sconce_call){.keep_outputs = true, .draw = &draw, .feed_token = !first}, err));
  note_call(s, from, n);
  s->begun = from + n;
  s->n_ahead++;
  return SCONCE_OK;
}

/* Keeps the device busy, as far as somebody will want the ids and the context goes. */
static sconce_status work_ahead(sconce_session *s, uint32_t until, sconce_error *err) {
  while (s->n_ahead < AHEAD) {
    uint32_t from = s->n_ahead ? s->begun : s->info.position - 1;
    if (from + 1 >= s->info.context || from + 1 >= until) break;
    TRY(begin_ahead(s, err));
  }
  return SCONCE_OK;
}

static sconce_status take(sconce_session *s, bool block, bool *done, int32_t *id,
                          sconce_error *err) {
  TRY(finish_call(s, block, done, err));
  if (!*done) return SCONCE_OK;
  s->n_ahead--;
  *id = sconce_state_token(s->state);
  if (*id >= 0 && (uint32_t)*id < s->info.n_vocab) return SCONCE_OK;
  return fail(err, SCONCE_BAD_ARGUMENT, "none of %u logits is a number above -inf",
              s->info.n_vocab);
}

static sconce_status next_ahead(sconce_session *s, uint32_t until, bool block, bool *done,
                                int32_t *id, sconce_error *err) {
  if (s->n_ahead == 0 && s->computed == s->info.position) { /* the logits are here */
    sconce_choice choice;
    TRY(session_sync(s, block, done, err));
    TRY(session_choose(s, &choice, err));
    *id = choice.id;
  } else {
    if (s->n_ahead == 0) TRY(begin_ahead(s, err));
    TRY(take(s, block, done, id, err));
    if (!*done) return SCONCE_OK;
    s->computed = s->info.position;
  }
  s->ids[s->info.position++] = *id;
  sconce_error later; /* what fails here fails again when somebody needs it */
  if (work_ahead(s, until, &later) != SCONCE_OK) halt_here(s);
  return SCONCE_OK;
}

static sconce_status next_here(sconce_session *s, bool block, bool *done, sconce_choice *out,
                               sconce_error *err) {
  TRY(session_sync(s, block, done, err));
  if (!*done) return SCONCE_OK;
  TRY(session_choose(s, out, err));
  s->ids[s->info.position++] = out->id;
  return SCONCE_OK;
}

sconce_status session_next(sconce_session *s, uint32_t until, bool block, bool *done,
                           sconce_choice *out, sconce_error *err) {
  TRY(session_check_cancel(s, err));
  if (s->info.position == s->info.context)
    return fail(err, SCONCE_BAD_ARGUMENT, "the context is full: %u ids", s->info.context);
  const uint32_t ahead = s->info.position + (AHEAD + 1); /* their cuts are noted */
  TRY(session_reserve(s, ahead < s->info.context ? ahead : s->info.context, err));
  *out = (sconce_choice){.id = -1};
  session_look(s);
  const bool many = s->info.position - s->computed > s->info.chunk || s->computed < s->replay;
  if (!s->may_work_ahead || s->n_running || many) return next_here(s, block, done, out, err);
  sconce_status status = next_ahead(s, until, block, done, &out->id, err);
  if (status == SCONCE_OK) {
    s->recoveries = 0;
    return SCONCE_OK;
  }
  if (s->n_ahead) s->replay = s->begun < s->info.position ? s->begun : s->info.position;
  halt_here(s);
  return session_recovered(s, status, err) ? next_here(s, block, done, out, err) : status;
}

sconce_status sconce_session_next(sconce_session *s, sconce_choice *out, sconce_error *err) {
  TRY(session_idle(s, err));
  if (!out) return fail(err, SCONCE_BAD_ARGUMENT, "out is NULL");
  bool done;
  return session_next(s, UINT32_MAX, true, &done, out, err);
}
