/* Sessions: ids in, logits out, positions kept right. */
#include "llm/session.h"

#include "base/half.h"

#include <inttypes.h>
#include <string.h>

/* ---- opening --------------------------------------------------------------------------------- */

static uint32_t constant_or(const sconce_model *model, const char *name, uint32_t absent) {
  sconce_number n;
  sconce_error ignored;
  if (!model || sconce_model_constant(model, name, 0, &n, &ignored) != SCONCE_OK) return absent;
  return n.i > 0 && n.i <= UINT32_MAX ? (uint32_t)n.i : absent;
}

static bool is_integer(sconce_dtype d) { return d == SCONCE_INT64 || d == SCONCE_INT32; }

/* A language model takes ids [1, S] and mostly a position, and gives logits [1, vocab] or
 * [1, S, vocab]. */
static sconce_status read_shape(sconce_session *s, const sconce_model *model, sconce_error *err) {
  sconce_tensor ids, position, logits;
  uint32_t n = sconce_method_n_inputs(s->method);
  if (n < 1 || n > 2 || sconce_method_n_outputs(s->method) != 1)
    return fail(
        err, SCONCE_UNSUPPORTED,
        "the method has %u inputs and %u outputs; a language model takes ids and a position "
        "and gives logits",
        n, sconce_method_n_outputs(s->method));
  sconce_method_input_info(s->method, 0, &ids);
  sconce_method_output_info(s->method, 0, &logits);
  if (ids.rank != 2 || ids.dims[0] != 1 || ids.dims[1] < 1 || !is_integer(ids.dtype))
    return fail(err, SCONCE_UNSUPPORTED, "input 0 is no row of token ids");
  if (logits.rank < 2 || logits.rank > 3 ||
      (logits.dtype != SCONCE_FLOAT32 && logits.dtype != SCONCE_FLOAT16))
    return fail(err, SCONCE_UNSUPPORTED, "output 0 is no row of logits");
  s->info.chunk = ids.dims[1];
  s->info.n_vocab = logits.dims[logits.rank - 1];
  s->has_position = n == 2;
  if (s->has_position) {
    sconce_method_input_info(s->method, 1, &position);
    if (position.rank != 1 || !is_integer(position.dtype))
      return fail(err, SCONCE_UNSUPPORTED, "input 1 is no position");
    s->many_positions = position.dims[0] > 1;
  }
  uint32_t length = constant_or(model, "get_max_seq_len", s->info.chunk + 1);
  s->info.context = constant_or(model, "get_max_context_len", length);
  return SCONCE_OK;
}

static void read_ends(sconce_session *s, const sconce_model *model) {
  enum { MOST = sizeof s->ends / sizeof *s->ends };
  sconce_number n;
  sconce_error ignored;
  while (model && s->n_ends < MOST &&
         sconce_model_constant(model, "get_eos_ids", s->n_ends, &n, &ignored) == SCONCE_OK)
    s->ends[s->n_ends++] = (int32_t)n.i;
}

static sconce_status init(sconce_session *s, const sconce_session_desc *desc, sconce_error *err) {
  TRY(read_shape(s, desc->model, err));
  read_ends(s, desc->model);
  s->ids = arena_new(&s->arena, int32_t, s->info.context);
  s->feed = arena_new(&s->arena, int64_t, 2 * (size_t)s->info.chunk);
  s->logits = arena_new(&s->arena, float, s->info.n_vocab);
  if (!s->ids || !s->feed || !s->logits)
    return fail(err, SCONCE_NO_MEMORY, "no memory for a session of %u positions", s->info.context);
  sconce_sampler_desc sampler = desc->sampler;
  sampler.n_vocab = s->info.n_vocab;
  sampler.allocator = desc->allocator;
  return sconce_sampler_open(&s->sampler, &sampler, err);
}

sconce_status sconce_session_open(sconce_session **out, const sconce_session_desc *desc,
                                  sconce_error *err) {
  if (!out || !desc || !desc->method)
    return fail(err, SCONCE_BAD_ARGUMENT, "out, desc or its method is NULL");
  *out = NULL;
  sconce_session *s = block_resize(&desc->allocator, NULL, 0, sizeof *s);
  if (!s) return fail(err, SCONCE_NO_MEMORY, "no memory for a session");
  *s = (sconce_session){.method = desc->method, .tokenizer = desc->tokenizer};
  arena_init(&s->arena, &desc->allocator);
  sconce_status status = init(s, desc, err);
  if (status != SCONCE_OK)
    sconce_session_close(s);
  else
    *out = s;
  return status;
}

void sconce_session_close(sconce_session *s) {
  if (!s) return;
  sconce_sampler_close(s->sampler);
  sconce_allocator allocator = s->arena.allocator;
  arena_free(&s->arena);
  block_resize(&allocator, s, sizeof *s, 0);
}

sconce_session_info sconce_session_describe(const sconce_session *s) {
  return s ? s->info : (sconce_session_info){0};
}

const int32_t *sconce_session_ids(const sconce_session *s, size_t *n) {
  *n = s ? s->info.position : 0;
  return s ? s->ids : NULL;
}

const float *sconce_session_logits(const sconce_session *s) {
  return s && s->has_logits ? s->logits : NULL;
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

static sconce_status call(sconce_session *s, const int32_t *ids, uint32_t n, sconce_error *err) {
  int64_t *positions = s->feed + s->info.chunk;
  for (uint32_t i = 0; i < n; i++) {
    s->feed[i] = ids[i];
    positions[i] = (int64_t)s->info.position + i;
  }
  sconce_tensor t = {SCONCE_INT64, 2, {1, n}, s->feed, 8 * (size_t)n};
  TRY(sconce_method_set_input(s->method, 0, &t, err));
  if (s->has_position) {
    uint32_t count = s->many_positions ? n : 1;
    sconce_tensor p = {SCONCE_INT64, 1, {count}, positions, 8 * (size_t)count};
    TRY(sconce_method_set_input(s->method, 1, &p, err));
  }
  return sconce_method_run(s->method, err);
}

static sconce_status keep_logits(sconce_session *s, sconce_error *err) {
  sconce_tensor t;
  TRY(sconce_method_output(s->method, 0, &t, err));
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
  s->has_logits = true;
  return SCONCE_OK;
}

static sconce_status feed(sconce_session *s, const int32_t *ids, size_t n,
                          void (*progress)(void *user, size_t done, size_t all), void *user,
                          sconce_error *err) {
  uint32_t left = s->info.context - s->info.position;
  if (n > left)
    return fail(err, SCONCE_BAD_ARGUMENT, "the context is full: %zu ids at position %u of %u", n,
                s->info.position, s->info.context);
  for (size_t at = 0; at < n;) {
    uint32_t step = n - at < s->info.chunk ? (uint32_t)(n - at) : s->info.chunk;
    s->has_logits = false;
    TRY(call(s, ids + at, step, err));
    memcpy(s->ids + s->info.position, ids + at, step * sizeof *ids);
    s->info.position += step;
    at += step;
    if (at == n) TRY(keep_logits(s, err));
    if (progress) progress(user, at, n);
  }
  return SCONCE_OK;
}

sconce_status sconce_session_append(sconce_session *s, int32_t id, sconce_error *err) {
  if (!s) return fail(err, SCONCE_BAD_ARGUMENT, "session is NULL");
  TRY(check_ids(s, &id, 1, err));
  return feed(s, &id, 1, NULL, NULL, err);
}

size_t session_reused(const sconce_session *s, const int32_t *ids, size_t n) {
  size_t same = 0;
  while (same < s->info.position && same < n && s->ids[same] == ids[same]) same++;
  bool has_logits = same == s->info.position && s->has_logits;
  return same && same == n && !has_logits ? same - 1 : same;
}

sconce_status sconce_session_prompt(sconce_session *s, const int32_t *ids, size_t n,
                                    void (*progress)(void *user, size_t done, size_t all),
                                    void *user, sconce_error *err) {
  if (!s || (!ids && n)) return fail(err, SCONCE_BAD_ARGUMENT, "session or ids is NULL");
  if (n == 0) return fail(err, SCONCE_BAD_ARGUMENT, "a prompt needs at least one id");
  if (n > s->info.context)
    return fail(err, SCONCE_BAD_ARGUMENT, "a prompt of %zu ids, the context has %u positions", n,
                s->info.context);
  TRY(check_ids(s, ids, n, err));
  size_t same = session_reused(s, ids, n);
  if (same == n) return SCONCE_OK;
  TRY(sconce_session_rewind(s, (uint32_t)same, err));
  return feed(s, ids + same, n - same, progress, user, err);
}

sconce_status sconce_session_choose(sconce_session *s, sconce_choice *out, sconce_error *err) {
  if (!s || !out) return fail(err, SCONCE_BAD_ARGUMENT, "session or out is NULL");
  if (!s->has_logits) return fail(err, SCONCE_BAD_ARGUMENT, "there are no logits to choose from");
  return sconce_sampler_choose(s->sampler, s->logits, s->info.position, s->ids, s->info.position,
                               out, err);
}

/* Rows of the cache past the position are overwritten before they are attended. */
sconce_status sconce_session_rewind(sconce_session *s, uint32_t position, sconce_error *err) {
  if (!s) return fail(err, SCONCE_BAD_ARGUMENT, "session is NULL");
  if (position > s->info.position)
    return fail(err, SCONCE_BAD_ARGUMENT, "rewind to %u, the session is at %u", position,
                s->info.position);
  if (position < s->info.position) s->has_logits = false;
  s->info.position = position;
  return SCONCE_OK;
}
