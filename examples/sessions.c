/* Eight conversations with one model: the weights are on the device once, each session has its own
 * KV caches.
 *   ./sessions model.pte */
#include <sconce_llm.h>

#include <stdio.h>

enum { SESSIONS = 8, TOKENS = 6 };

static int failed(const sconce_error *err) {
  fprintf(stderr, "%s: %s\n", sconce_status_name(err->status), err->text);
  return 1;
}

int main(int argc, char **argv) {
  sconce_device *device;
  sconce_model *model;
  sconce_session *sessions[SESSIONS];
  sconce_error err;
  const sconce_model_desc file = {.program.path = argc > 1 ? argv[1] : "model.pte"};
  if (sconce_device_open(&device, NULL, &err) || sconce_model_open(&model, device, &file, &err))
    return failed(&err);
  const sconce_session_desc desc = {.model = model};
  for (int i = 0; i < SESSIONS; i++) {
    const int32_t prompt[] = {1, 100 + i};
    sconce_stats stats;
    if (sconce_session_open(&sessions[i], &desc, &err) ||
        sconce_session_prompt(sessions[i], prompt, 2, NULL, NULL, &err))
      return failed(&err);
    sconce_state_stats(sconce_session_state(sessions[i]), &stats);
    printf("%d sessions: %.1f MiB of weights, %.1f MiB of state\n", i + 1,
           (double)stats.gpu_weights / 1048576, (double)stats.gpu_state / 1048576);
  }
  for (int step = 0; step < TOKENS; step++) /* in turn: none of them notices the others */
    for (int i = 0; i < SESSIONS; i++) {
      sconce_choice next;
      if (sconce_session_next(sessions[i], &next, &err)) return failed(&err);
      printf("%6d%s", (int)next.id, i + 1 < SESSIONS ? "" : "\n");
    }
  for (int i = 0; i < SESSIONS; i++) sconce_session_close(sessions[i]);
  sconce_model_close(model);
  sconce_device_close(device);
  return 0;
}
