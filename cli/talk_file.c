/* Conversations kept in files: see talk.h. The messages' file is text: "role size", a newline, the
 * content, a newline, for each. */
#include "talk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Messages beside the session's own file, so that the next turn is rendered as before. */
static bool beside(const char *path, char *out, size_t size) {
  int n = snprintf(out, size, "%s.messages", path);
  if (n > 0 && (size_t)n < size) return true;
  fputs("sconce: the file's name is too long\n", stderr);
  return false;
}

static const char *known_role(const char *role) {
  static const char *const roles[] = {"system", "user", "assistant"};
  for (int i = 0; i < 3; i++)
    if (!strcmp(role, roles[i])) return roles[i];
  return NULL;
}

/* Written beside and put in place when they are whole: what fails leaves the old ones. */
static bool save_messages(const struct talk *t, const char *path) {
  char temporary[1300];
  snprintf(temporary, sizeof temporary, "%s~", path);
  FILE *file = console_open(temporary, "wb");
  if (!file) return false;
  for (size_t i = 0; i < t->n_messages; i++) {
    const sconce_message *m = &t->messages[i];
    fprintf(file, "%s %zu\n", m->role, m->size);
    fwrite(m->content, 1, m->size, file);
    fputc('\n', file);
  }
  const bool whole = !ferror(file);
  if (fclose(file) == 0 && whole && rename(temporary, path) == 0) return true;
  const int reason = errno;
  remove(temporary);
  errno = reason;
  return false;
}

static bool load_messages(struct talk *t, const char *path) {
  FILE *file = console_open(path, "rb");
  if (!file) return false;
  char role[16];
  size_t size;
  bool ok = true;
  while (ok && fscanf(file, "%15s %zu", role, &size) == 2) {
    const char *known = known_role(role);
    char *text = known && size < ((size_t)1 << 30) && fgetc(file) == '\n' ? malloc(size + 1) : NULL;
    ok = text && fread(text, 1, size, file) == size && talk_add(t, known, text, size);
    free(text);
  }
  errno = 0; /* what is wrong from here on is the content */
  ok = ok && feof(file);
  fclose(file);
  return ok;
}

bool talk_may_overwrite(const char *path) {
  char other[1200], role[16];
  size_t size;
  if (!llm_may_overwrite(path) || !beside(path, other, sizeof other)) return false;
  FILE *file = console_open(other, "rb");
  if (!file) return errno == ENOENT;
  int n = fscanf(file, "%15s %zu", role, &size);
  fclose(file);
  return n == EOF || (n == 2 && known_role(role));
}

bool talk_save(const struct talk *t, const char *path) {
  sconce_error err = {0};
  char other[1200];
  if (!beside(path, other, sizeof other)) return false;
  if (sconce_session_save(t->llm->session, path, &err) != SCONCE_OK) {
    cli_fail(&err);
    return false;
  }
  if (save_messages(t, other)) return true;
  fprintf(stderr, "sconce: cannot write %s: %s\n", other, strerror(errno));
  return false;
}

bool talk_load(struct talk *t, const char *path) {
  sconce_error err = {0};
  struct talk loaded = {0};
  char other[1200];
  if (!beside(path, other, sizeof other)) return false;
  errno = 0;
  bool ok = load_messages(&loaded, other);
  if (!ok)
    fprintf(stderr, "sconce: cannot read %s: %s\n", other,
            errno ? strerror(errno) : "no messages of a conversation");
  else if (!(ok = sconce_session_load(t->llm->session, path, &err) == SCONCE_OK))
    cli_fail(&err);
  struct talk *unused = ok ? t : &loaded;
  talk_cut(unused, 0);
  free(unused->messages);
  if (!ok) return false;
  t->messages = loaded.messages;
  t->n_messages = loaded.n_messages;
  t->cap = loaded.cap;
  return true;
}
