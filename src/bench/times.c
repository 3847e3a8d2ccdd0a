/* Where the time of an opening and of calls went, and one pass by the device's clock. */
#include "run/state.h"
#include "sconce_dev.h"

void sconce_method_load_times(const sconce_method *m, sconce_load_times *out) {
  if (!m || !out) return;
  *out = (sconce_load_times){
      .uploaded = m->shared.load.bytes_all, .upload_ns = m->upload_ns, .compile_ns = m->compile_ns};
}

void sconce_state_times(const sconce_state *s, sconce_call_times *out) {
  if (!s || !out) return;
  *out = (sconce_call_times){.calls = s->calls,
                             .plan_ns = s->plan_ns,
                             .bind_ns = s->exec.bind_ns,
                             .submit_ns = s->exec.submit_ns,
                             .wait_ns = s->wait_ns};
}

static sconce_status time_pass(sconce_state *s, uint64_t *ns, sconce_error *err) {
  TRY(state_start_for_clock(s, err));
  sconce_status status = exec_time_pass(&s->exec, ns, err);
  if (status != SCONCE_OK) state_roll_back(s);
  return status;
}

sconce_status sconce_state_time_pass(sconce_state *s, uint64_t *ns, sconce_error *err) {
  if (!s || !ns) return fail(err, SCONCE_BAD_ARGUMENT, "state or ns is NULL");
  sconce_error local;
  LOCKED(s->method->model->device->gpu, time_pass(s, ns, err ? err : &local));
}
