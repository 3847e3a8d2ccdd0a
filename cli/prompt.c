/* Prompts of language models: progress and what is kept between runs. See llm.h. */
#include "llm.h"

#include <errno.h>
#include <string.h>

/* ---- prompts --------------------------------------------------------------------------------- */

enum {
  PIECE = 64, /* ids at a time where the device is the CPU, so that the bar moves */
  SHOWN_FROM = 96
};

struct meter {
  size_t before, all; /* ids of the whole prompt */
  bool on;
};

static bool progress(void *user, size_t done, size_t all) {
  const struct meter *m = user;
  (void)all;
  if (m->on) {
    enum { BAR = 24 };
    char text[96];
    int full = (int)((m->before + done) * BAR / m->all);
    snprintf(text, sizeof text, "prompt %zu/%zu [%.*s%*s]", m->before + done, m->all, full,
             "########################", BAR - full, "");
    cli_status(text);
  }
  return !console_interrupted();
}

static void cancel(void *session) { sconce_session_cancel(session); }

static size_t common(const sconce_session *session, const int32_t *ids, size_t n) {
  size_t there, same = 0;
  const int32_t *have = sconce_session_ids(session, &there);
  while (same < there && same < n && have[same] == ids[same]) same++;
  return same;
}

sconce_status llm_prompt(struct llm *llm, const int32_t *ids, size_t n, struct llm_cost *cost,
                         sconce_error *err) {
  const double start = console_seconds();
  const size_t same = common(llm->session, ids, n);
  const size_t piece = llm->software ? PIECE : n;
  struct meter meter = {.before = same, .all = n, .on = !llm->quiet && n - same >= SHOWN_FROM};
  sconce_status status = SCONCE_OK;
  *cost = (struct llm_cost){.n = n, .n_reused = same};
  console_tell_interrupt(cancel, llm->session);
  if (console_interrupted()) sconce_session_cancel(llm->session);
  for (size_t at = same; status == SCONCE_OK && (at < n || at == same);) {
    meter.before = at;
    at = n - at > piece ? at + piece : n;
    status = sconce_session_prompt(llm->session, ids, at, progress, &meter, err);
    if (at == n) break;
  }
  console_tell_interrupt(NULL, NULL);
  if (meter.on) cli_status("");
  cost->seconds = console_seconds() - start;
  if (status != SCONCE_OK) cost->n_left = n - common(llm->session, ids, n);
  return status;
}

/* ---- kept between runs ----------------------------------------------------------------------- */

bool llm_may_overwrite(const char *path) {
  char start[6];
  FILE *file = console_open(path, "rb");
  if (!file) return errno == ENOENT;
  size_t n = fread(start, 1, sizeof start, file);
  fclose(file);
  return n == 0 || (n == sizeof start && !memcmp(start, "sconce", sizeof start));
}

int llm_cache_open(struct llm *llm) {
  sconce_error err = {0};
  if (!llm->cache) return CLI_DONE;
  const bool there = console_can_read(llm->cache) || errno != ENOENT;
  if (there && !llm_may_overwrite(llm->cache)) {
    fprintf(stderr, "sconce: --cache %s: this is no kept session, and it is left as it is\n",
            llm->cache);
    return CLI_FAILED;
  }
  /* That it cannot be written is said now, not in the middle of the text. */
  FILE *file = console_open(llm->cache, "a");
  const long size = file && fseek(file, 0, SEEK_END) == 0 ? ftell(file) : 0;
  if (!file) {
    fprintf(stderr, "sconce: --cache %s: %s\n", llm->cache, strerror(errno));
    return CLI_FAILED;
  }
  fclose(file);
  if (size > 0 && sconce_session_load(llm->session, llm->cache, &err) != SCONCE_OK)
    fprintf(stderr, "sconce: --cache %s: %s; it is written anew\n", llm->cache, err.text);
  return CLI_DONE;
}

sconce_status llm_cache_save(struct llm *llm, const struct llm_cost *cost, sconce_error *err) {
  if (!llm->cache || cost->n_reused >= cost->n) return SCONCE_OK;
  return sconce_session_save(llm->session, llm->cache, err);
}

const char *llm_stop_name(sconce_stop stop) {
  switch (stop) {
  case SCONCE_STOP_END:
    return "end";
  case SCONCE_STOP_TEXT:
    return "stop text";
  case SCONCE_STOP_COUNT:
    return "count";
  case SCONCE_STOP_CONTEXT:
    return "context full";
  case SCONCE_STOP_CALLER:
    return "interrupted";
  }
  return "unknown";
}
