/* One call of a language model: tokens int64 (1, S) and input_pos int64 (1), or (S) where the model
 * takes a position per token; logits (1, vocab) of the last token or (1, S, vocab). */
#include "check/check.h"

#include <inttypes.h>
#include <math.h>

struct call {
  const int64_t *tokens; /* (n) */
  uint32_t n;
  int64_t pos;
  struct json top5;
  struct span logits; /* float32 (rows, vocab) of the last `rows` tokens; empty: not given */
  uint32_t rows, rows_seen;
  uint32_t vocab;
};

/* ---- reading --------------------------------------------------------------------------------- */

static sconce_status read_ids(struct check_golden *g, struct json tokens, struct call *c,
                              sconce_error *err) {
  size_t n = json_count(tokens);
  if (!json_is_array(tokens) || n == 0 || n > UINT32_MAX)
    return fail(err, SCONCE_BAD_FILE, "no tokens");
  int64_t *ids = arena_new(&g->run->arena, int64_t, n);
  if (!ids) return fail(err, SCONCE_NO_MEMORY, "no memory for %zu tokens", n);
  c->tokens = ids;
  c->n = (uint32_t)n;
  struct json_walk w;
  for (json_begin(&w, tokens); json_next(&w); ids++)
    if (!json_integer(w.value, ids)) return fail(err, SCONCE_BAD_FILE, "a token is no integer");
  return SCONCE_OK;
}

static sconce_status read_logits(struct check_golden *g, struct json call, struct call *c,
                                 sconce_error *err) {
  struct json at = json_member(call, "logits");
  int64_t offset, rows = 1;
  if (json_is_null(at) || !g->blob.size) return SCONCE_OK;
  json_integer(json_member(call, "rows"), &rows);
  if (!c->vocab || rows < 1 || rows > c->n)
    return fail(err, SCONCE_BAD_FILE,
                "%" PRId64 " rows of %" PRIu32 " logits for %" PRIu32 " tokens", rows, c->vocab,
                c->n);
  if (!json_integer(at, &offset) || offset < 0 ||
      !span_slice(g->blob, (uint64_t)offset, (uint64_t)rows * c->vocab * 4, &c->logits))
    return fail(err, SCONCE_BAD_FILE, "the logits are not in the .bin of %zu bytes", g->blob.size);
  c->rows = (uint32_t)rows;
  return SCONCE_OK;
}

static sconce_status read_call(struct check_golden *g, struct json call, struct call *c,
                               sconce_error *err) {
  int64_t vocab = 0;
  *c = (struct call){.top5 = json_member(call, "top5")};
  TRY(read_ids(g, json_member(call, "tokens"), c, err));
  if (!json_integer(json_member(call, "pos"), &c->pos) || c->pos < 0 || c->pos > INT32_MAX)
    return fail(err, SCONCE_BAD_FILE, "pos is no position");
  if (json_integer(json_member(g->run->root, "vocab"), &vocab) && vocab > 0 && vocab <= INT32_MAX)
    c->vocab = (uint32_t)vocab;
  TRY(read_logits(g, call, c, err));
  if (json_count(c->top5) == 0 && !c->rows)
    return fail(err, SCONCE_BAD_FILE, "neither top5 nor logits");
  return SCONCE_OK;
}

/* ---- running --------------------------------------------------------------------------------- */

/* Tokens from `from` on, n of them. */
static sconce_status run_step(struct check_golden *g, const struct call *c, uint32_t from,
                              uint32_t n, bool pos_each, sconce_error *err) {
  int64_t *at = arena_new(&g->run->arena, int64_t, n);
  if (!at) return fail(err, SCONCE_NO_MEMORY, "no memory for %" PRIu32 " positions", n);
  for (uint32_t i = 0; i < n; i++) at[i] = c->pos + from + i;
  uint32_t n_pos = pos_each ? n : 1;
  sconce_tensor tokens = {SCONCE_INT64, 2, {1, n}, c->tokens + from, n * sizeof(int64_t)};
  sconce_tensor pos = {SCONCE_INT64, 1, {n_pos}, at, n_pos * sizeof(int64_t)};
  TRY(sconce_state_set_input(g->run->state, 0, &tokens, err));
  TRY(sconce_state_set_input(g->run->state, 1, &pos, err));
  return sconce_state_run(g->run->state, &g->run->call, err);
}

/* The output as rows of one vocabulary each: a row of the golden belongs to a token, and the
 * output's rows are those of the last tokens. */
static sconce_status split_rows(struct call *c, const sconce_tensor *out, uint32_t *rows,
                                sconce_error *err) {
  if (out->rank < 2 || !check_is_float(out->dtype))
    return fail(err, SCONCE_WRONG_RESULT, "the output is no float tensor (1, vocab)");
  uint32_t vocab = out->dims[out->rank - 1];
  if (!c->vocab) c->vocab = vocab;
  size_t row_size = vocab * sconce_dtype_size(out->dtype);
  *rows = row_size ? (uint32_t)(out->size / row_size) : 0;
  if (vocab != c->vocab || !*rows)
    return fail(err, SCONCE_WRONG_RESULT, "%" PRIu32 " rows of %" PRIu32 " logits, want %" PRIu32,
                *rows, vocab, c->vocab);
  return SCONCE_OK;
}

static sconce_tensor row_of(const sconce_tensor *out, uint32_t vocab, uint32_t row) {
  size_t size = vocab * sconce_dtype_size(out->dtype);
  return (sconce_tensor){out->dtype, 1, {vocab}, (const uint8_t *)out->data + row * size, size};
}

/* ---- comparing ------------------------------------------------------------------------------- */

/* Rows of the output that end with token `end` against those rows of the golden. */
static sconce_status compare_rows(struct check_golden *g, struct call *c, const sconce_tensor *out,
                                  uint32_t rows, uint32_t end, sconce_error *err) {
  struct check_rule rule = {.elements = true, .atol = g->tolerance, .scale = g->run->scale};
  for (uint32_t r = 0; r < rows && r < end; r++) {
    uint32_t token = end - rows + r, first = c->n - c->rows;
    if (rows > end || token < first) continue;
    size_t size = (size_t)c->vocab * 4;
    sconce_tensor got = row_of(out, c->vocab, r);
    sconce_tensor want = {
        SCONCE_FLOAT32, 1, {c->vocab}, c->logits.data + (token - first) * size, size};
    sconce_status status = check_compare(&got, &want, &rule, &g->run->worst, err);
    if (status != SCONCE_OK) {
      error_prefix(err, "logits after token %" PRIu32 ": ", token);
      return status;
    }
    c->rows_seen++;
  }
  return SCONCE_OK;
}

static sconce_status find_top(const sconce_tensor *row, uint32_t *top, sconce_error *err) {
  *top = 0;
  for (uint32_t i = 0; i < row->dims[0]; i++) {
    double v = check_element(row, i);
    if (!isfinite(v)) return fail(err, SCONCE_WRONG_RESULT, "logit %" PRIu32 " is %g", i, v);
    if (v > check_element(row, *top)) *top = i;
  }
  return SCONCE_OK;
}

/* The pair [id, logit] at `i` of top5. */
static sconce_status read_pair(struct json pair, uint32_t vocab, uint32_t *id, double *logit,
                               sconce_error *err) {
  struct json_walk w;
  int64_t whole = -1;
  json_begin(&w, pair);
  bool ok = json_is_array(pair) && json_next(&w) && json_integer(w.value, &whole) &&
            json_next(&w) && json_number(w.value, logit);
  if (!ok || whole < 0 || whole >= vocab)
    return fail(err, SCONCE_BAD_FILE,
                "top5 holds no pair of a token below %" PRIu32 " and its logit", vocab);
  *id = (uint32_t)whole;
  return SCONCE_OK;
}

/* Each of the golden's best tokens has its logit; and the best is ours too, where tolerance cannot
 * have exchanged it with the second. */
static sconce_status compare_top(struct check_golden *g, const struct call *c,
                                 const sconce_tensor *row, sconce_error *err) {
  uint32_t top, i = 0, id = 0, best = 0;
  double logit, first = 0, second = -INFINITY;
  TRY(find_top(row, &top, err));
  struct check_rule rule = {.elements = true, .atol = g->tolerance, .scale = g->run->scale};
  struct json_walk w;
  for (json_begin(&w, c->top5); json_next(&w); i++) {
    TRY(read_pair(w.value, c->vocab, &id, &logit, err));
    if (i == 0) best = id, first = logit;
    if (i == 1) second = logit;
    size_t step = sconce_dtype_size(row->dtype);
    sconce_tensor got = {row->dtype, 0, {0}, (const uint8_t *)row->data + id * step, step};
    sconce_tensor want = {SCONCE_FLOAT64, 0, {0}, &logit, sizeof logit};
    sconce_status status = check_compare(&got, &want, &rule, &g->run->worst, err);
    if (status != SCONCE_OK) {
      error_prefix(err, "logit of token %" PRIu32 ": ", id);
      return status;
    }
  }
  const double tolerated = fmax(g->tolerance, g->run->scale * fabs(first));
  if (i > 0 && top != best && first - second > 2 * tolerated)
    return fail(err, SCONCE_WRONG_RESULT,
                "the top token is %" PRIu32 " with %.6g, want %" PRIu32 " with %.6g", top,
                check_element(row, top), best, first);
  return SCONCE_OK;
}

static sconce_status check_inputs(struct check_golden *g, sconce_tensor *tokens, sconce_tensor *pos,
                                  sconce_error *err) {
  const sconce_method_info *info = sconce_method_describe(g->run->method);
  if (info->n_inputs == 2) *tokens = info->inputs[0], *pos = info->inputs[1];
  if (info->n_inputs != 2 || tokens->rank != 2 || pos->rank != 1)
    return fail(err, SCONCE_BAD_FILE, "the method's inputs are not tokens (1, S) and input_pos");
  return SCONCE_OK;
}

sconce_status check_tokens(struct check_golden *g, struct json call, sconce_error *err) {
  struct call c;
  sconce_tensor tokens = {0}, pos = {0}, out;
  TRY(check_inputs(g, &tokens, &pos, err));
  TRY(read_call(g, call, &c, err));
  /* A static export takes one token a call. */
  uint32_t step = tokens.dims[1] == 1 ? 1 : c.n, rows = 0;
  for (uint32_t at = 0; at < c.n; at += step) {
    TRY(run_step(g, &c, at, step, pos.dims[0] > 1, err));
    TRY(sconce_state_output(g->run->state, 0, &out, err));
    TRY(split_rows(&c, &out, &rows, err));
    if (c.rows) TRY(compare_rows(g, &c, &out, rows, at + step, err));
  }
  if (c.rows_seen != c.rows)
    return fail(err, SCONCE_WRONG_RESULT, "%" PRIu32 " rows of logits, want %" PRIu32, rows,
                c.rows);
  sconce_tensor last = row_of(&out, c.vocab, rows - 1);
  return compare_top(g, &c, &last, err);
}
