/* Endurance: sconce_soak MODEL.pte [MINUTES]. Sessions of a language model are prompted, go on, are
 * cancelled, saved, loaded, rewound, closed and opened, and the device is lost now and then; what
 * they say is compared with what they said the first time. After the first minute the bytes that
 * the library holds may grow by no more than 1 MiB. Build it with sanitizers: make soak. */
#include "gpu/gpu.h"
#include "run/device.h"
#include "sconce_llm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SESSIONS = 3, STORY = 12, GROWTH = 1 << 20 };

struct soak {
  sconce_device *device;
  sconce_model *models[2]; /* of one file: sessions of both */
  sconce_session *sessions[SESSIONS];
  int32_t story[STORY]; /* what every session says behind the prompt */
  uint64_t random;
  uint64_t rounds, losses, cancels, saves;
};

static size_t live; /* bytes of the library */
static void *resize(void *user, void *block, size_t old_size, size_t size) {
  (void)user;
  live += size - old_size;
  if (size) return realloc(block, size);
  free(block);
  return NULL;
}
static const sconce_allocator allocator = {.resize = resize};

static uint32_t below(struct soak *s, uint32_t n) {
  s->random = s->random * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(s->random >> 33) % n;
}

static void must(sconce_status status, const sconce_error *err, const char *what) {
  if (status == SCONCE_OK) return;
  fprintf(stderr, "soak: %s: %s: %s\n", what, sconce_status_name(status), err->text);
  exit(1);
}

static void open_session(struct soak *s, int i) {
  sconce_error err;
  const sconce_session_desc desc = {
      .model = s->models[i % 2], .recovers = true, .allocator = allocator};
  must(sconce_session_open(&s->sessions[i], &desc, &err), &err, "opening a session");
}

/* The prompt, then the story; n ids of it, where somebody cancels. */
static void tell(struct soak *s, sconce_session *session, uint32_t n, bool first) {
  static const int32_t prompt[] = {1, 403, 407};
  sconce_error err;
  const uint32_t vocab = sconce_session_describe(session)->n_vocab;
  int32_t ids[3];
  for (int i = 0; i < 3; i++) ids[i] = prompt[i] % (int32_t)vocab;
  must(sconce_session_prompt(session, ids, 3, NULL, NULL, &err), &err, "a prompt");
  for (uint32_t i = 0; i < n; i++) {
    sconce_choice c;
    must(sconce_session_next(session, &c, &err), &err, "the next id");
    if (first) s->story[i] = c.id;
    if (c.id == s->story[i]) continue;
    fprintf(stderr, "soak: round %llu, id %u is %d, it was %d\n", (unsigned long long)s->rounds, i,
            c.id, s->story[i]);
    exit(1);
  }
}

static void save_and_load(struct soak *s, int i, const char *path) {
  sconce_error err;
  must(sconce_session_save(s->sessions[i], path, &err), &err, "a save");
  must(sconce_session_load(s->sessions[(i + 2) % SESSIONS], path, &err), &err, "a load");
  s->saves++;
}

static void cancel(struct soak *s, sconce_session *session) {
  sconce_error err = {0};
  sconce_choice c;
  sconce_session_cancel(session);
  if (sconce_session_next(session, &c, &err) != SCONCE_CANCELLED)
    must(SCONCE_WRONG_RESULT, &err, "a cancelled session went on");
  s->cancels++;
}

static void act(struct soak *s, const char *path) {
  sconce_error err;
  const int i = (int)below(s, SESSIONS);
  sconce_session *session = s->sessions[i];
  switch (below(s, 6)) {
  case 0:
    (void)gpu_lose_after(s->device->gpu, 1 + below(s, 60));
    s->losses++;
    break;
  case 1:
    cancel(s, session);
    break;
  case 2:
    save_and_load(s, i, path);
    break;
  case 3:
    must(sconce_session_rewind(session, below(s, 2), &err), &err, "a rewind");
    break;
  case 4:
    sconce_session_close(session);
    open_session(s, i);
    break;
  default:
    break;
  }
  tell(s, s->sessions[i], 1 + below(s, STORY), false);
  s->rounds++;
}

static void run(struct soak *s, double minutes, const char *path) {
  const time_t start = time(NULL), end = start + (time_t)(minutes * 60);
  size_t settled = 0;
  for (time_t now = start, shown = start; now < end; now = time(NULL)) {
    act(s, path);
    if (now - start >= 60 && live > settled && settled && live - settled > GROWTH) {
      fprintf(stderr, "soak: %zu bytes, after a minute it were %zu\n", live, settled);
      exit(1);
    }
    if (now - start < 60 && live > settled) settled = live;
    if (now - shown < 30) continue;
    shown = now;
    printf("%lld s: %llu rounds, %llu losses, %llu cancels, %llu saves, %zu bytes\n",
           (long long)(now - start), (unsigned long long)s->rounds, (unsigned long long)s->losses,
           (unsigned long long)s->cancels, (unsigned long long)s->saves, live);
    fflush(stdout);
  }
}

int main(int argc, char **argv) {
  if (argc < 2) return fputs("usage: sconce_soak MODEL.pte [MINUTES]\n", stderr), 2;
  const double minutes = argc > 2 ? strtod(argv[2], NULL) : 1;
  struct soak s = {.random = 7};
  sconce_error err;
  char path[] = "sconce_soak.session";
  must(sconce_device_open(&s.device, &(sconce_device_desc){.allocator = allocator}, &err), &err,
       "opening the device");
  const sconce_model_desc desc = {.program.path = argv[1]};
  for (int i = 0; i < 2; i++)
    must(sconce_model_open(&s.models[i], s.device, &desc, &err), &err, "opening the model");
  for (int i = 0; i < SESSIONS; i++) open_session(&s, i);
  tell(&s, s.sessions[0], STORY, true);
  run(&s, minutes, path);
  for (int i = 0; i < SESSIONS; i++) sconce_session_close(s.sessions[i]);
  for (int i = 0; i < 2; i++) sconce_model_close(s.models[i]);
  sconce_device_close(s.device);
  remove(path);
  printf("%llu rounds, %llu losses, %llu cancels, %llu saves; %zu bytes left\n",
         (unsigned long long)s.rounds, (unsigned long long)s.losses, (unsigned long long)s.cancels,
         (unsigned long long)s.saves, live);
  return live != 0;
}
