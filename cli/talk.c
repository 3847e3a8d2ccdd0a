/* Answers of a conversation: only what is new is computed, and a full context can lose its oldest
 * turns. See talk.h. */
#include "talk.h"

#include <stdlib.h>
#include <string.h>

/* ---- messages -------------------------------------------------------------------------------- */

bool talk_add(struct talk *t, const char *role, const char *text, size_t size) {
  if (t->n_messages == t->cap) {
    size_t cap = t->cap ? 2 * t->cap : 16;
    sconce_message *more = realloc(t->messages, cap * sizeof *more);
    if (!more) return false;
    t->messages = more;
    t->cap = cap;
  }
  char *copy = malloc(size + 1);
  if (!copy) return false;
  memcpy(copy, text, size);
  copy[size] = 0;
  t->messages[t->n_messages++] = (sconce_message){role, copy, size};
  return true;
}

static void free_content(const sconce_message *m) { free((void *)(uintptr_t)m->content); }

void talk_cut(struct talk *t, size_t keep) {
  while (t->n_messages > keep) free_content(&t->messages[--t->n_messages]);
}

bool talk_start_over(struct talk *t) {
  talk_cut(t, 0);
  return !t->system || talk_add(t, "system", t->system, strlen(t->system));
}

void talk_free(struct talk *t) {
  talk_cut(t, 0);
  free(t->messages);
  free(t->answer);
}

/* Drops the oldest question with its answer, but neither the system message nor the last question.
 */
static bool forget_oldest(struct talk *t) {
  size_t first = t->n_messages && !strcmp(t->messages[0].role, "system"), next = first + 1;
  while (next < t->n_messages && strcmp(t->messages[next].role, "user") != 0) next++;
  if (next >= t->n_messages) return false;
  for (size_t i = first; i < next; i++) free_content(&t->messages[i]);
  memmove(t->messages + first, t->messages + next, (t->n_messages - next) * sizeof *t->messages);
  t->n_messages -= next - first;
  t->n_forgotten += next - first;
  return true;
}

/* ---- ids ------------------------------------------------------------------------------------- */

/* Walks the bytes of ids. */
struct walk {
  const int32_t *ids;
  size_t n, at;
  const char *piece; /* what is left of the id before `at` */
  size_t left;
};

static void next_piece(struct walk *w, const sconce_tokenizer *tokenizer) {
  w->piece = sconce_tokenizer_piece(tokenizer, w->ids[w->at++], &w->left);
}

/* A text can be cut into ids in several ways, and a model's own answer often is not cut as a
 * tokenizer would. The most ids of `have` whose bytes `ids` begins with too; *used is how many of
 * `ids` they stand for. Special tokens are equal to themselves alone. */
static size_t align(const sconce_tokenizer *tokenizer, const int32_t *have, size_t n_have,
                    const int32_t *ids, size_t n, size_t *used) {
  struct walk a = {.ids = have, .n = n_have}, b = {.ids = ids, .n = n};
  size_t best = *used = 0;
  for (;;) {
    if (!a.left && !b.left) {
      best = a.at;
      *used = b.at;
      if (a.at == a.n || b.at == b.n) return best;
      const bool special = sconce_tokenizer_is_special(tokenizer, a.ids[a.at]) ||
                           sconce_tokenizer_is_special(tokenizer, b.ids[b.at]);
      if (special && a.ids[a.at] != b.ids[b.at]) return best;
    }
    if ((!a.left && a.at == a.n) || (!b.left && b.at == b.n)) return best;
    if (!a.left) next_piece(&a, tokenizer);
    if (!b.left) next_piece(&b, tokenizer);
    const size_t step = a.left < b.left ? a.left : b.left;
    if (!step || memcmp(a.piece, b.piece, step) != 0) return best;
    a.piece += step, a.left -= step;
    b.piece += step, b.left -= step;
  }
}

struct ids {
  int32_t *data; /* owned */
  size_t n;
};

/* The ids of the conversation as it is, then `n_tail` more; what the timeline has already is taken
 * as it is there. */
static sconce_status encode(struct talk *t, const int32_t *tail, size_t n_tail, struct ids *out,
                            sconce_error *err) {
  sconce_chat_desc desc = t->how;
  desc.messages = t->messages;
  desc.n_messages = t->n_messages;
  const int32_t *ids;
  size_t n, n_have, used;
  sconce_status status = sconce_chat_encode(t->llm->tokenizer, &desc, &ids, &n, err);
  if (status != SCONCE_OK) return status;
  const int32_t *have = sconce_session_ids(t->llm->session, &n_have);
  const size_t same = align(t->llm->tokenizer, have, n_have, ids, n, &used);
  out->n = same + (n - used) + n_tail;
  out->data = malloc((out->n + 1) * sizeof *out->data);
  if (!out->data) {
    *err = (sconce_error){SCONCE_NO_MEMORY, "no memory for a conversation"};
    return err->status;
  }
  if (same) memcpy(out->data, have, same * sizeof *have);
  if (n > used) memcpy(out->data + same, ids + used, (n - used) * sizeof *ids);
  if (n_tail) memcpy(out->data + same + n - used, tail, n_tail * sizeof *tail);
  return SCONCE_OK;
}

/* ---- answers --------------------------------------------------------------------------------- */

static bool on_text(void *user, const char *text, size_t size, sconce_choice choice) {
  struct talk *t = user;
  (void)choice;
  t->show(t->user, text, size);
  if (t->n_answer + size > t->cap_answer) {
    size_t cap = 2 * (t->n_answer + size);
    char *more = realloc(t->answer, cap);
    if (!more) return false;
    t->answer = more;
    t->cap_answer = cap;
  }
  memcpy(t->answer + t->n_answer, text, size);
  t->n_answer += size;
  return !console_interrupted();
}

/* Goes on from these ids until something ends it, within the context: what was said is then part of
 * the timeline to its last id. */
static sconce_status speak(struct talk *t, const struct ids *ids, sconce_error *err) {
  const uint32_t room = sconce_session_describe(t->llm->session)->context - (uint32_t)ids->n;
  const size_t said = t->last.n_new;
  const bool limited = t->max_new && t->max_new - said <= room;
  struct llm_cost cost;
  sconce_status status = llm_prompt(t->llm, ids->data, ids->n, &cost, err);
  t->cost.n = cost.n;
  t->cost.n_reused = said ? t->cost.n_reused : cost.n_reused;
  t->cost.seconds += cost.seconds;
  if (status != SCONCE_OK) return status;
  sconce_generate_desc desc = {.prompt = ids->data,
                               .n_prompt = ids->n,
                               .max_new = limited ? t->max_new - (uint32_t)said : room,
                               .on_text = on_text,
                               .user = t};
  sconce_generate_result result;
  const double before = t->last.new_s;
  status = sconce_session_generate(t->llm->session, &desc, &result, err);
  if (status != SCONCE_OK) return status;
  t->last = result;
  t->last.n_new += said;
  t->last.new_s += before;
  if (result.stop == SCONCE_STOP_COUNT && !limited) t->last.stop = SCONCE_STOP_CONTEXT;
  return SCONCE_OK;
}

/* Is there anything to forget that makes room for the last message? */
static sconce_status measure_alone(struct talk *t, sconce_error *err) {
  sconce_chat_desc desc = t->how;
  const size_t last = t->n_messages - 1;
  const bool system = last && !strcmp(t->messages[0].role, "system");
  const sconce_message both[2] = {t->messages[0], t->messages[last]};
  const int32_t *ids;
  size_t n = 0;
  desc.messages = system ? both : both + 1;
  desc.n_messages = system ? 2 : 1;
  sconce_status status = sconce_chat_encode(t->llm->tokenizer, &desc, &ids, &n, err);
  t->n_alone = n < sconce_session_describe(t->llm->session)->context ? 0 : n;
  return status;
}

/* The ids to go on from: all of it, or less where it must fit. *fits false: it cannot. */
static sconce_status fit(struct talk *t, size_t n_said, struct ids *out, bool *fits,
                         sconce_error *err) {
  const uint32_t context = sconce_session_describe(t->llm->session)->context;
  size_t n_have, limit = context - 1;
  const int32_t *have = sconce_session_ids(t->llm->session, &n_have);
  int32_t *said = malloc((n_said + 1) * sizeof *said);
  sconce_status status = SCONCE_OK;
  *out = (struct ids){0};
  *fits = said && (!n_said || forget_oldest(t));
  if (n_said && said) memcpy(said, have + n_have - n_said, n_said * sizeof *said);
  while (*fits && status == SCONCE_OK) {
    free(out->data);
    out->data = NULL;
    status = encode(t, said, n_said, out, err);
    if (status != SCONCE_OK || out->n <= limit) break;
    if (!t->n_forgotten) status = measure_alone(t, err);
    limit = context - context / 4; /* room for a while, so that not every turn is computed anew */
    *fits = t->shift && !t->n_alone && forget_oldest(t);
  }
  free(said);
  return status;
}

static sconce_status answer(struct talk *t, sconce_error *err) {
  sconce_status status = SCONCE_OK;
  do {
    struct ids ids;
    bool fits;
    status = fit(t, t->last.n_new, &ids, &fits, err);
    t->last.stop = SCONCE_STOP_CONTEXT;
    if (status == SCONCE_OK && fits) status = speak(t, &ids, err);
    free(ids.data);
    if (!fits) break;
  } while (status == SCONCE_OK && t->shift && t->last.stop == SCONCE_STOP_CONTEXT);
  return status;
}

sconce_status talk_answer(struct talk *t, sconce_error *err) {
  t->n_answer = t->n_forgotten = t->n_alone = 0;
  t->last = (sconce_generate_result){0};
  t->cost = (struct llm_cost){0};
  console_catch_interrupt(true);
  sconce_status status = answer(t, err);
  console_catch_interrupt(false);
  const bool said = status == SCONCE_OK && t->last.n_new;
  if (said) talk_add(t, "assistant", t->answer ? t->answer : "", t->n_answer);
  if (!said && status == SCONCE_OK && t->last.stop != SCONCE_STOP_CONTEXT)
    talk_add(t, "assistant", "", 0); /* it chose to say nothing */
  return status;
}

sconce_status talk_try(struct talk *t, sconce_error *err) {
  struct ids ids = {0};
  if (!t->how.chat_template && !t->how.tools && !t->how.think) return SCONCE_OK;
  const size_t before = t->n_messages;
  talk_add(t, "user", "a", 1);
  sconce_status status = encode(t, NULL, 0, &ids, err);
  talk_cut(t, before);
  free(ids.data);
  return status;
}

/* What two conversations have in common that begin with different questions. */
sconce_status talk_warm_up(struct talk *t, sconce_error *err) {
  struct ids a = {0}, b = {0};
  const size_t before = t->n_messages;
  sconce_status status = SCONCE_OK;
  for (int i = 0; i < 2 && status == SCONCE_OK; i++) {
    talk_add(t, "user", i ? "b" : "a", 1);
    status = encode(t, NULL, 0, i ? &b : &a, err);
    talk_cut(t, before);
  }
  size_t same = 0;
  while (status == SCONCE_OK && same < a.n && same < b.n && a.data[same] == b.data[same]) same++;
  const uint32_t context = sconce_session_describe(t->llm->session)->context;
  console_catch_interrupt(true);
  if (same && same < context) status = llm_prompt(t->llm, a.data, same, &t->cost, err);
  console_catch_interrupt(false);
  if (same && same < context && status == SCONCE_OK) status = llm_cache_save(t->llm, &t->cost, err);
  free(a.data);
  free(b.data);
  return status;
}
