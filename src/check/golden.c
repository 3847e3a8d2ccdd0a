/* X.golden.json beside X.pte: cases with inputs and one output, or the calls of a language model.
 * All cases run on one loaded method and in order; nothing is reset between them. */
#include "check/check.h"

#include "base/file.h"

#include <inttypes.h>

/* How far two correct implementations are apart; measured on small language models. Eight-bit
 * activations fall to either side of a rounding tie, and the cache keeps the difference. */
static double default_tolerance(struct text variant, bool tokens) {
  const struct {
    const char *part;
    double logits, others;
  } rows[] = {{"8da4w", 1.0, 1.0}, {"-f16", 0.1, 1e-3}, {"int8", 1e-3, 2e-3}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    size_t n = strlen(rows[i].part);
    for (size_t at = 0; at + n <= variant.size; at++)
      if (!memcmp(variant.data + at, rows[i].part, n))
        return tokens ? rows[i].logits : rows[i].others;
  }
  return 1e-3;
}

static sconce_status read_tolerance(struct check_golden *g, double given, sconce_error *err) {
  struct json own = json_member(g->run->root, "tolerance");
  struct text variant = json_text(json_member(g->run->root, "variant"), &g->run->arena);
  g->tolerance = default_tolerance(variant.data ? variant : (struct text){0}, g->tokens);
  if (own.at && (!json_number(own, &g->tolerance) || g->tolerance < 0))
    return fail(err, SCONCE_BAD_FILE, "tolerance is no number");
  if (given > 0) g->tolerance = given;
  return SCONCE_OK;
}

/* The .bin. Goldens of a language model may come without it: top5 remains. */
static sconce_status open_blob(struct check_golden *g, sconce_error *err) {
  struct json name = json_member(g->run->root, g->tokens ? "logits_bin" : "output_bin");
  if (json_is_null(name)) return SCONCE_OK;
  const char *path;
  TRY(check_beside(g->run, name, &path, err));
  sconce_status status = file_read(&g->run->arena, path, &g->blob, err);
  return g->tokens ? SCONCE_OK : status;
}

sconce_status check_golden_open(struct check_golden *g, struct check_run *run, const char *json,
                                double tolerance, sconce_error *err) {
  *g = (struct check_golden){.run = run};
  TRY(check_read_json(run, json, err));
  g->cases = json_member(run->root, "cases");
  struct json_walk w;
  json_begin(&w, g->cases);
  if (!json_is_array(g->cases) || !json_next(&w))
    return fail(err, SCONCE_BAD_FILE, "%s: no cases", json);
  g->tokens = json_member(w.value, "calls").at;
  sconce_status status = read_tolerance(g, tolerance, err);
  if (status == SCONCE_OK) status = open_blob(g, err);
  if (status != SCONCE_OK) error_prefix(err, "%s: ", json);
  return status;
}

/* ---- inputs and one output ------------------------------------------------------------------- */

static sconce_status set_inputs(struct check_golden *g, struct json inputs, sconce_error *err) {
  uint32_t n = sconce_method_describe(g->run->method)->n_inputs, i = 0;
  if (json_count(inputs) != n)
    return fail(err, SCONCE_BAD_FILE, "%zu inputs, the method has %" PRIu32, json_count(inputs), n);
  struct json_walk w;
  for (json_begin(&w, inputs); json_next(&w); i++) {
    sconce_tensor t;
    sconce_status status = check_input(g->run, w.value, g->blob, &t, err);
    if (status != SCONCE_OK) {
      error_prefix(err, "input %" PRIu32 ": ", i);
      return status;
    }
    TRY(sconce_state_set_input(g->run->state, i, &t, err));
  }
  return SCONCE_OK;
}

/* Goldens are float32 whatever the method computes in. */
static sconce_status compare_output(struct check_golden *g, struct json spec, sconce_error *err) {
  sconce_tensor got, want;
  int64_t at;
  struct span part;
  TRY(check_dims(json_member(spec, "shape"), SCONCE_FLOAT32, &want, err));
  if (!json_integer(json_member(spec, "output"), &at) || at < 0 ||
      !span_slice(g->blob, (uint64_t)at, want.size, &part))
    return fail(err, SCONCE_BAD_FILE, "%zu bytes of output are not in the .bin of %zu bytes",
                want.size, g->blob.size);
  want.data = part.data;
  TRY(sconce_state_output(g->run->state, 0, &got, err));
  struct check_rule rule = {.elements = true, .atol = g->tolerance, .scale = g->run->scale};
  return check_compare(&got, &want, &rule, &g->run->worst, err);
}

static sconce_status run_plain(struct check_golden *g, struct json spec, sconce_error *err) {
  TRY(set_inputs(g, json_member(spec, "inputs"), err));
  TRY(sconce_state_run(g->run->state, &g->run->call, err));
  TRY(compare_output(g, spec, err));
  g->run->calls++;
  return SCONCE_OK;
}

static sconce_status run_calls(struct check_golden *g, struct json calls, sconce_error *err) {
  if (json_count(calls) == 0) return fail(err, SCONCE_BAD_FILE, "no calls");
  struct json_walk w;
  uint32_t i = 0;
  for (json_begin(&w, calls); json_next(&w); i++) {
    struct arena_mark mark = arena_mark(&g->run->arena);
    sconce_status status = check_tokens(g, w.value, err);
    arena_rewind(&g->run->arena, mark);
    if (status != SCONCE_OK) {
      error_prefix(err, "call %" PRIu32 ": ", i);
      return status;
    }
    g->run->calls++;
  }
  return SCONCE_OK;
}

sconce_status check_golden_case(struct check_golden *g, struct json spec, sconce_error *err) {
  struct arena_mark mark = arena_mark(&g->run->arena);
  sconce_status status =
      g->tokens ? run_calls(g, json_member(spec, "calls"), err) : run_plain(g, spec, err);
  arena_rewind(&g->run->arena, mark);
  return status;
}
