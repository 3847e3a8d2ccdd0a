/* See piece.h. */
#include "run/piece.h"

#include "base/os.h"
#include "run/exec.h"

/* A software device may take this long for any; a GPU hardly ever does. */
float piece_guess(const struct exec *x) {
  const bool slow = gpu_info(x->gpu)->type == SCONCE_ADAPTER_SOFTWARE;
  return (float)PIECE_NS / (slow ? 4 : 512);
}

static double expected(const struct origin *origins, uint32_t first, uint32_t after) {
  double ns = 0;
  for (uint32_t i = first; i < after; i++) ns += (double)origins[i].ns;
  return ns;
}

/* Calls with jumps are cut where they loop, and buffers that other states have are theirs too. */
bool piece_wanted(const struct exec *x) {
  if (x->again || (x->pool && x->pool->users > 1)) return false;
  return x->n_dispatches > x->dispatches_sent + 1 &&
         expected(x->origins, x->dispatches_sent, x->n_dispatches) > 2 * (double)x->piece_ns;
}

/* ---- learning -------------------------------------------------------------------------------- */

void watch_begin(struct watch *w, const struct exec *x, uint32_t first, uint32_t after) {
  *w = (struct watch){.since = os_clock_ns(), .first = first, .after = after};
  w->origins = x->origins;
}

void watch_still(struct watch *w) { w->seen = os_clock_ns(); }

/* The work lasted from when the work before it ended, or its submit, to some time between the last
 * look that found it going on and this one. What was expected moves into those bounds. */
void watch_end(struct exec *x, const struct watch *w, bool waited) {
  const uint64_t now = os_clock_ns(), seen = waited ? now : w->seen;
  const uint64_t before = gpu_done(x->gpu, now);
  const uint64_t since = w->since > before ? w->since : before;
  struct origin *origins = x->again ? w->origins : x->origins;
  if (!origins || w->first == w->after || (!x->again && w->after > x->n_dispatches)) return;
  const double ns = expected(origins, w->first, w->after);
  const double least = seen > since ? (double)(seen - since) : 0, most = (double)(now - since);
  const double should = ns < least ? least : ns > most ? most : ns;
  if (should > 0.8 * ns && should < 1.25 * ns) return;
  const float ratio = (float)(should / ns);
  for (uint32_t i = w->first; i < w->after; i++) {
    origins[i].ns *= ratio;
    *origins[i].group_ns *= ratio;
  }
}

/* ---- sending --------------------------------------------------------------------------------- */

static sconce_status send(struct exec *x, uint32_t after, sconce_error *err) {
  struct held_call *h = &x->held;
  const bool last = after == x->n_dispatches;
  const struct gpu_batch batch = {.dispatches = x->dispatches + h->at,
                                  .n_dispatches = after - h->at,
                                  .copies = x->copies,
                                  .n_copies = last ? h->n_copies : 0};
  TRY(gpu_submit(x->gpu, &batch, err));
  x->submits++;
  struct flight *f = h->flight;
  struct piece *p = &h->pieces[h->n_pieces];
  watch_begin(last ? &f->watch : &p->watch, x, h->at, after);
  h->at = after;
  if (!last) {
    TRY(gpu_fence_begin(x->gpu, &p->fence, err));
    h->n_pieces++;
    return SCONCE_OK;
  }
  TRY(gpu_read_begin(f->read, err)); /* else the next who asks hears of it again */
  h->flight = NULL;
  x->shared->holder = NULL;
  return SCONCE_OK;
}

/* Where a piece ends that begins here. */
static uint32_t end_of_piece(const struct exec *x, uint32_t at) {
  if (at == x->n_dispatches) return at;
  double ns = (double)x->origins[at++].ns;
  while (at < x->n_dispatches && ns + (double)x->origins[at].ns <= (double)x->piece_ns)
    ns += (double)x->origins[at++].ns;
  return at;
}

static sconce_status send_piece(struct exec *x, sconce_error *err) {
  return send(x, end_of_piece(x, x->held.at), err);
}

static void forget_first(struct held_call *h) {
  gpu_fence_close(h->pieces[0].fence);
  h->pieces[0] = h->pieces[1];
  h->n_pieces--;
}

sconce_status piece_begin(struct exec *x, struct flight *f, uint32_t n_copies, sconce_error *err) {
  struct held_call *h = &x->held;
  TRY(piece_flush(x, err));
  x->shared->holder = x;
  h->flight = f;
  h->at = x->dispatches_sent;
  h->n_copies = n_copies;
  while (h->n_pieces) forget_first(h); /* of the call before, all sent */
  sconce_status status = send_piece(x, err);
  if (status == SCONCE_OK && h->flight) status = send_piece(x, err);
  if (status != SCONCE_OK) piece_drop(x);
  return status;
}

/* The oldest piece, if it has ended, makes room for another. */
static sconce_status take_turn(struct exec *x, bool waits, bool *done, sconce_error *err) {
  struct held_call *h = &x->held;
  struct piece *p = &h->pieces[0];
  *done = true;
  TRY(waits ? gpu_fence_wait(p->fence, err) : gpu_fence_poll(p->fence, done, err));
  if (!*done) {
    watch_still(&p->watch);
    return SCONCE_OK;
  }
  watch_end(x, &p->watch, waits);
  forget_first(h);
  return h->flight ? send_piece(x, err) : SCONCE_OK;
}

bool piece_is_full(const struct exec *x, uint32_t *after) {
  *after = end_of_piece(x, x->dispatches_sent);
  if (*after - x->dispatches_sent > 2 * TAKE_MAX) *after = x->dispatches_sent + TAKE_MAX;
  return x->dispatches_sent < x->n_dispatches &&
         (*after < x->n_dispatches || x->n_dispatches >= TAKE_MAX);
}

sconce_status piece_send(struct exec *x, uint32_t after, bool block, bool *sent,
                         sconce_error *err) {
  struct held_call *h = &x->held;
  *sent = true;
  if (h->n_pieces == 2) TRY(take_turn(x, block, sent, err));
  if (!*sent) return SCONCE_OK;
  const struct gpu_batch batch = {.dispatches = x->dispatches + x->dispatches_sent,
                                  .n_dispatches = after - x->dispatches_sent};
  TRY(gpu_submit(x->gpu, &batch, err));
  x->submits++;
  struct piece *p = &h->pieces[h->n_pieces];
  watch_begin(&p->watch, x, x->dispatches_sent, after);
  x->dispatches_sent = after;
  TRY(gpu_fence_begin(x->gpu, &p->fence, err));
  h->n_pieces++;
  return SCONCE_OK;
}

/* Who does not want to wait is back after two, however quick they are. */
sconce_status piece_go_on(struct exec *x, bool block, sconce_error *err) {
  bool done = true;
  for (int turns = 0; x->held.n_pieces && done && (block || turns < 2); turns++)
    TRY(take_turn(x, block && x->held.flight, &done, err));
  return SCONCE_OK;
}

sconce_status piece_flush(struct exec *x, sconce_error *err) {
  struct exec *holder = x->shared->holder;
  return holder ? send(holder, holder->n_dispatches, err) : SCONCE_OK;
}

void piece_drop(struct exec *x) {
  if (x->shared && x->shared->holder == x) x->shared->holder = NULL;
  while (x->held.n_pieces) forget_first(&x->held);
  x->held = (struct held_call){0};
}
