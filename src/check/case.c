/* One case folder: case.json, model.pte and raw little-endian files. Calls run in order on one
 * loaded method, so that state carries over. */
#include "check/check.h"

#include <inttypes.h>

/* ---- outputs --------------------------------------------------------------------------------- */

static void read_rule(struct json spec, struct check_rule *rule) {
  *rule = (struct check_rule){0};
  bool rtol = json_number(json_member(spec, "rtol"), &rule->rtol);
  bool atol = json_number(json_member(spec, "atol"), &rule->atol);
  json_number(json_member(spec, "nrmse"), &rule->nrmse);
  json_number(json_member(spec, "tail_nrmse"), &rule->tail_nrmse);
  /* Without any tolerance equality is what is asked. */
  rule->elements = rtol || atol || (rule->nrmse <= 0 && rule->tail_nrmse <= 0);
}

static sconce_status check_output(struct check_run *run, struct json spec, uint32_t i,
                                  sconce_error *err) {
  if (json_is_null(json_member(spec, "file"))) return SCONCE_OK;
  sconce_tensor got, want;
  struct check_rule rule;
  read_rule(spec, &rule);
  rule.scale = run->scale;
  TRY(check_shape(spec, &want, err));
  TRY(check_file(run, spec, &want, err));
  TRY(sconce_state_output(run->state, i, &got, err));
  if (got.dtype != want.dtype)
    return fail(err, SCONCE_WRONG_RESULT, "the dtype is %s, want %s", sconce_dtype_name(got.dtype),
                sconce_dtype_name(want.dtype));
  return check_compare(&got, &want, &rule, &run->worst, err);
}

static sconce_status check_outputs(struct check_run *run, struct json outputs, sconce_error *err) {
  uint32_t n = sconce_method_describe(run->method)->n_outputs, i = 0;
  if (json_count(outputs) != n)
    return fail(err, SCONCE_BAD_FILE, "%zu outputs, the method has %" PRIu32, json_count(outputs),
                n);
  struct json_walk w;
  for (json_begin(&w, outputs); json_next(&w); i++) {
    sconce_status status = check_output(run, w.value, i, err);
    if (status == SCONCE_OK) continue;
    struct text name = json_text(json_member(w.value, "name"), &run->arena);
    if (name.size) error_prefix(err, "%.*s: ", TEXT(name));
    error_prefix(err, "output %" PRIu32 ": ", i);
    return status;
  }
  return SCONCE_OK;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* *refused: the method, not the case, is what failed. */
static sconce_status execute(struct check_run *run, struct json inputs, bool *refused,
                             sconce_error *err) {
  *refused = false;
  uint32_t n = sconce_method_describe(run->method)->n_inputs, i = 0;
  if (json_count(inputs) != n)
    return fail(err, SCONCE_BAD_FILE, "%zu inputs, the method has %" PRIu32, json_count(inputs), n);
  struct json_walk w;
  for (json_begin(&w, inputs); json_next(&w); i++) {
    sconce_tensor t;
    sconce_status status = check_input(run, w.value, (struct span){0}, &t, err);
    if (status != SCONCE_OK) {
      error_prefix(err, "input %" PRIu32 ": ", i);
      return status;
    }
    *refused = true;
    TRY(sconce_state_set_input(run->state, i, &t, err));
    *refused = false;
  }
  *refused = true;
  return sconce_state_run(run->state, &run->call, err);
}

/* Trouble of the machine is never the error that a case expects. */
static bool is_refusal(sconce_status status) {
  return status != SCONCE_NO_MEMORY && status != SCONCE_NO_GPU_MEMORY &&
         status != SCONCE_DEVICE_LOST && status != SCONCE_GPU_ERROR && status != SCONCE_IO_ERROR;
}

static bool expects_error(struct json call) {
  return json_text_is(json_member(call, "expect"), "error");
}

static sconce_status run_call(struct check_run *run, struct json call, sconce_error *err) {
  bool refused;
  sconce_status status = execute(run, json_member(call, "inputs"), &refused, err);
  if (!expects_error(call)) {
    if (status == SCONCE_OK) status = check_outputs(run, json_member(call, "outputs"), err);
  } else if (status == SCONCE_OK) {
    status = fail(err, SCONCE_WRONG_RESULT, "succeeded, an error was expected");
  } else if (refused && is_refusal(status)) {
    status = SCONCE_OK;
  }
  if (status == SCONCE_OK) run->calls++;
  return status;
}

/* A case that ends with an expected error has not shown that the method still works: repeats the
 * last call that did. Its outputs may differ where there is state, so they are not compared. */
static sconce_status run_again(struct check_run *run, struct json call, sconce_error *err) {
  struct json_walk w;
  for (json_begin(&w, json_member(call, "inputs")); json_next(&w);)
    if (json_member(w.value, "prev_output").at) return SCONCE_OK;
  bool refused;
  return execute(run, json_member(call, "inputs"), &refused, err);
}

static sconce_status run_calls(struct check_run *run, const char *pte, const char *method,
                               sconce_error *err) {
  struct json_walk w;
  struct json good = {0};
  bool failed_last = false;
  uint32_t i = 0;
  for (json_begin(&w, json_member(run->root, "calls")); json_next(&w); i++) {
    struct arena_mark mark = arena_mark(&run->arena);
    sconce_status status = SCONCE_OK;
    if (json_is_true(json_member(w.value, "reload"))) status = check_load(run, pte, method, err);
    if (status == SCONCE_OK) status = run_call(run, w.value, err);
    arena_rewind(&run->arena, mark);
    if (status != SCONCE_OK) {
      error_prefix(err, "call %" PRIu32 ": ", i);
      return status;
    }
    failed_last = expects_error(w.value);
    if (!failed_last) good = w.value;
  }
  if (!failed_last || !good.at) return SCONCE_OK;
  sconce_status status = run_again(run, good, err);
  if (status != SCONCE_OK) error_prefix(err, "after the expected error: ");
  return status;
}

/* ---- the case -------------------------------------------------------------------------------- */

static bool has_goldens(struct json calls) {
  struct json_walk call, output;
  for (json_begin(&call, calls); json_next(&call);)
    for (json_begin(&output, json_member(call.value, "outputs")); json_next(&output);)
      if (!json_is_null(json_member(output.value, "file"))) return true;
  return false;
}

sconce_status check_case(struct check_run *run, sconce_error *err) {
  const char *json = check_join(&run->arena, run->folder, text_of("case.json"));
  const char *pte = check_join(&run->arena, run->folder, text_of("model.pte"));
  if (!json || !pte) return fail(err, SCONCE_NO_MEMORY, "no memory for a path");
  TRY(check_read_json(run, json, err));
  struct json calls = json_member(run->root, "calls"), name = json_member(run->root, "method");
  struct text method = {"forward", 7};
  if (json_is_string(name)) method = json_text(name, &run->arena);
  if (!method.data) return fail(err, SCONCE_NO_MEMORY, "no memory for a name");
  /* What the exporter's own runtime refuses and nobody has goldens for. */
  bool refuse =
      !has_goldens(calls) && json_text_is(json_member(run->root, "peer_expect"), "load_error");
  if (!refuse && json_count(calls) == 0) return fail(err, SCONCE_BAD_FILE, "%s: no calls", json);
  sconce_status status = check_load(run, pte, method.data, err);
  if (status != SCONCE_OK) return refuse && is_refusal(status) ? SCONCE_OK : status;
  if (refuse) return fail(err, SCONCE_WRONG_RESULT, "the file was loaded, want it refused");
  return run_calls(run, pte, method.data, err);
}
