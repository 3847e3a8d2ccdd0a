/* Sessions: ids in, logits out, positions kept right. */
#include "llm/session.h"

#include "base/half.h"
#include "base/os.h"

#include <inttypes.h>
#include <string.h>

/* ---- a lost device --------------------------------------------------------------------------- */

/* Sums depend on how ids were cut into calls: with the same cuts they come out the same, to the
 * last bit, and with them every later choice. */
void session_look(sconce_session *s) {
  const uint32_t losses = sconce_state_losses(s->state);
  if (losses == s->losses) return;
  s->losses = losses;
  const uint32_t chosen = s->info.position + s->ready;
  const uint32_t held = s->ready                          ? chosen - 1
                        : s->n_ahead && s->begun < chosen ? s->begun
                                                          : s->computed;
  s->n_ahead = s->n_running = s->guessed = s->begun = 0;
  s->chain_ns = 0;
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

void session_note_call(sconce_session *s, uint32_t from, uint32_t n, uint32_t guessed) {
  memset(s->starts + from, 0, n);
  s->starts[from] = guessed && guessed <= UINT8_MAX ? (uint8_t)guessed : 1;
}

/* How many of the next ids go into one call. */
static uint32_t next_chunk(const sconce_session *s) {
  const uint32_t left = s->info.position - s->computed;
  uint32_t most = left < s->info.chunk ? left : s->info.chunk, n = 1;
  if (s->computed >= s->replay) return most;
  while (n < most && s->computed + n < s->replay && !s->starts[s->computed + n]) n++;
  return n;
}

sconce_status session_set_inputs(sconce_session *s, uint32_t first, uint32_t n, sconce_error *err) {
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
  if (!s->has_position && !info->can_draw && !constant_or(model, "get_max_seq_len", 0) &&
      !constant_or(model, "get_max_context_len", 0))
    return fail(
        err, SCONCE_UNSUPPORTED,
        "the method takes no position, keeps nothing from call to call, and no constant says "
        "how long a text may be: it is no language model");
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

/* Ids, and behind them their starts: one block, so that there is room for both or for neither. */
static size_t block_size(uint32_t room) { return (size_t)room * (sizeof(int32_t) + 1); }

static void free_ids(sconce_session *s) {
  if (s->ids) block_resize(&s->arena.allocator, s->ids, block_size(s->room), 0);
}

sconce_status session_reserve(sconce_session *s, uint32_t n, sconce_error *err) {
  if (n <= s->room) return SCONCE_OK;
  uint64_t room = s->room ? s->room : n;
  while (room < n) room *= 2;
  if (room > s->info.context) room = s->info.context;
  int32_t *ids = NULL;
  if (room <= SIZE_MAX / (sizeof *ids + 1))
    ids = block_resize(&s->arena.allocator, NULL, 0, block_size((uint32_t)room));
  if (!ids) return fail(err, SCONCE_NO_MEMORY, "no memory for %u ids", n);
  uint8_t *starts = (uint8_t *)(ids + room);
  if (s->room) memcpy(ids, s->ids, s->room * sizeof *ids);
  if (s->room) memcpy(starts, s->starts, s->room);
  free_ids(s);
  s->ids = ids;
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
  const sconce_method_info *info = sconce_method_describe(s->method);
  const uint32_t rows = info->dynamic[0] ? info->max_rows : 1;
  lookup_init(&s->lookup, desc->lookup, rows < s->info.chunk ? rows : s->info.chunk);
  return sconce_state_open(&s->state, s->method, err);
}

sconce_status sconce_session_set_sampler(sconce_session *s, const sconce_sampler_desc *desc,
                                         sconce_error *err) {
  ALONE(s ? &s->alone : NULL, "session");
  TRY(session_idle(s, err));
  if (!desc) return fail(err, SCONCE_BAD_ARGUMENT, "desc is NULL");
  session_halt_here(s);
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
  free_ids(s);
  sconce_allocator allocator = s->arena.allocator;
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

/* Row i of the logits that the last call gave, from the end: 0 is the last. */
sconce_status session_read_logits(sconce_session *s, uint32_t i, sconce_error *err) {
  sconce_tensor t;
  TRY(sconce_state_output(s->state, 0, &t, err));
  size_t n = s->info.n_vocab, row = n * sconce_dtype_size(t.dtype);
  if (t.size < row * (i + 1) || !t.data)
    return fail(err, SCONCE_GPU_ERROR, "%zu bytes of logits, a row has %zu", t.size, row);
  const uint8_t *bytes = (const uint8_t *)t.data + (t.size - row * (i + 1));
  if (t.dtype == SCONCE_FLOAT32) {
    memcpy(s->logits, bytes, row);
    return SCONCE_OK;
  }
  for (size_t k = 0; k < n; k++) {
    uint16_t half;
    memcpy(&half, bytes + 2 * k, 2);
    s->logits[k] = half_to_float(half);
  }
  return SCONCE_OK;
}

static sconce_status keep_logits(sconce_session *s, sconce_error *err) {
  TRY(session_read_logits(s, s->n_padded, err));
  s->logits_at = s->info.position;
  return SCONCE_OK;
}

/* A call that had guesses is made again with as many ids, whatever they are: their rows of the
 * caches are overwritten before they are attended, as those of wrong guesses were. */
static uint32_t pad_chunk(sconce_session *s, uint32_t n) {
  const uint32_t had = s->computed < s->replay ? s->starts[s->computed] : 0;
  if (had <= n || had > s->info.chunk || had > s->room - s->computed) return 0;
  for (uint32_t i = s->info.position + s->ready; i < s->computed + had; i++) s->ids[i] = 0;
  return had - n;
}

/* Begins a call with the next ids that the caches lack; only the last row of logits is wanted. */
static sconce_status begin_chunk(sconce_session *s, sconce_error *err) {
  const uint32_t left = s->info.position - s->computed, n = next_chunk(s), more = pad_chunk(s, n);
  s->logits_at = 0;
  s->n_padded = more;
  TRY(session_set_inputs(s, s->computed, n + more, err));
  TRY(sconce_state_begin(s->state, &(sconce_call){.keep_outputs = n < left, .last_rows = 1 + more},
                         err));
  session_note_call(s, s->computed, n, more ? n + more : 0);
  s->began_ns = os_clock_ns();
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
  if (status == SCONCE_OK) status = session_finish_call(s, block, &through, err);
  if (status != SCONCE_OK) s->n_running = 0;
  if (status != SCONCE_OK && session_recovered(s, status, err)) return SCONCE_OK; /* and again */
  if (status != SCONCE_OK || !through) return status;
  if (s->n_running == 1) lookup_time(&s->lookup, 1, os_clock_ns() - s->began_ns);
  s->computed += s->n_running;
  s->n_running = s->recoveries = 0;
  *done = s->computed == s->info.position;
  return *done ? keep_logits(s, err) : SCONCE_OK;
}

sconce_status session_sync(sconce_session *s, bool block, bool *done, sconce_error *err) {
  session_look(s);
  session_halt_here(s);
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
  session_halt(s);
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
    s->calls_back = true;
    if (status == SCONCE_OK && progress && !progress(user, through, all)) sconce_session_cancel(s);
    s->calls_back = false;
  }
  if (status == SCONCE_OK) status = session_check_cancel(s, err);
  if (status != SCONCE_OK) s->info.position = s->computed > s->replay ? s->computed : s->replay;
  return status;
}

sconce_status session_idle(const sconce_session *s, sconce_error *err) {
  if (!s) return fail(err, SCONCE_BAD_ARGUMENT, "session is NULL");
  if (!s->generation && s->calls_back)
    return fail(err, SCONCE_BAD_ARGUMENT, "a call from a function that the session called");
  if (!s->generation) return SCONCE_OK;
  return fail(err, SCONCE_BAD_ARGUMENT, "a generation is under way: poll it to its end, or cancel");
}

sconce_status sconce_session_append(sconce_session *s, int32_t id, sconce_error *err) {
  ALONE(s ? &s->alone : NULL, "session");
  TRY(session_idle(s, err));
  TRY(check_ids(s, &id, 1, err));
  TRY(extend(s, &id, 1, err));
  return compute(s, NULL, NULL, err);
}

size_t session_reused(const sconce_session *s, const int32_t *ids, size_t n) {
  size_t same = 0;
  while (same < s->info.position && same < n && s->ids[same] == ids[same]) same++;
  const size_t held = s->computed > s->replay ? s->computed : s->replay;
  if (same > held && !session_is_ahead(s)) same = held;
  return same && same == n && same != s->logits_at ? same - 1 : same;
}

sconce_status session_prompt(sconce_session *s, const int32_t *ids, size_t n, sconce_error *err) {
  if (!ids && n) return fail(err, SCONCE_BAD_ARGUMENT, "ids is NULL");
  if (n == 0) return fail(err, SCONCE_BAD_ARGUMENT, "a prompt needs at least one id");
  if (n > s->info.context)
    return fail(err, SCONCE_BAD_ARGUMENT, "a prompt of %zu ids, the context has %u positions", n,
                s->info.context);
  TRY(check_ids(s, ids, n, err));
  TRY(session_reserve(s, (uint32_t)n, err)); /* else the timeline stays as it is */
  session_look(s);
  size_t same = session_reused(s, ids, n);
  session_rewind(s, (uint32_t)same);
  return extend(s, ids + same, n - same, err);
}

sconce_status sconce_session_prompt(sconce_session *s, const int32_t *ids, size_t n,
                                    bool (*progress)(void *user, size_t done, size_t all),
                                    void *user, sconce_error *err) {
  ALONE(s ? &s->alone : NULL, "session");
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
  ALONE(s ? &s->alone : NULL, "session");
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
  session_halt(s);
  if (position < s->logits_at) s->logits_at = 0;
  s->info.position = position;
  if (s->computed > position) s->computed = position;
  if (s->replay > position) s->replay = position;
}

sconce_status sconce_session_rewind(sconce_session *s, uint32_t position, sconce_error *err) {
  ALONE(s ? &s->alone : NULL, "session");
  TRY(session_idle(s, err));
  if (position > s->info.position)
    return fail(err, SCONCE_BAD_ARGUMENT, "rewind to %u, the session is at %u", position,
                s->info.position);
  session_rewind(s, position);
  return SCONCE_OK;
}
