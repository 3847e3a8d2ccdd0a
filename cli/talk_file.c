/* Conversations kept in files: see talk.h. The messages' file is text: "role size", a newline, the
 * content, a newline, for each; last "end", their number, the sum of all before, and that of the
 * session's file, to which they belong. */
#include "talk.h"

#include <errno.h>
#include <inttypes.h>
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

/* ---- sums ------------------------------------------------------------------------------------ */

/* FNV-1a. It finds damage, not forgery. */
static uint64_t add_up(uint64_t sum, const void *data, size_t size) {
  for (size_t i = 0; i < size; i++)
    sum = (sum ^ ((const unsigned char *)data)[i]) * UINT64_C(0x100000001b3);
  return sum;
}
#define NOTHING UINT64_C(0xcbf29ce484222325)

/* Which session a file holds: its first bytes have a sum of all the others. */
static bool session_mark(const char *path, uint64_t *mark) {
  char start[56] = {0};
  const char *why;
  FILE *file = console_open_regular(path, &why);
  const bool whole = file && fread(start, 1, sizeof start, file) == sizeof start;
  if (file) fclose(file);
  *mark = add_up(NOTHING, start, whole ? sizeof start : 0);
  return whole;
}

/* ---- messages -------------------------------------------------------------------------------- */

static void put(FILE *file, uint64_t *sum, const void *data, size_t size) {
  fwrite(data, 1, size, file);
  *sum = add_up(*sum, data, size);
}

static void put_messages(const struct talk *t, uint64_t mark, FILE *file) {
  char head[48];
  uint64_t sum = NOTHING;
  for (size_t i = 0; i < t->n_messages; i++) {
    const sconce_message *m = &t->messages[i];
    put(file, &sum, head, (size_t)snprintf(head, sizeof head, "%s %zu\n", m->role, m->size));
    put(file, &sum, m->content, m->size);
    put(file, &sum, "\n", 1);
  }
  fprintf(file, "end %zu %016" PRIx64 " %016" PRIx64 "\n", t->n_messages, sum, mark);
}

/* Written beside and put in place when they are whole: what fails leaves the old ones. */
static bool save_messages(const struct talk *t, uint64_t mark, const char *path) {
  char temporary[1300];
  snprintf(temporary, sizeof temporary, "%s~", path);
  FILE *file = console_open(temporary, "wb");
  if (!file) return false;
  put_messages(t, mark, file);
  const bool whole = console_sync(file);
  if (fclose(file) == 0 && whole && console_replace(temporary, path)) return true;
  const int reason = errno;
  console_remove(temporary);
  errno = reason;
  return false;
}

/* One message off the front of *text; false: there is none, or it is none. */
static bool take_message(struct talk *t, char **text, const char *end) {
  char line[48], role[16], *content = *text;
  size_t size;
  const size_t most = (size_t)(end - *text) < sizeof line ? (size_t)(end - *text) : sizeof line;
  const char *after = memchr(*text, '\n', most);
  if (!after) return false;
  const size_t n = (size_t)(after - *text);
  memcpy(line, *text, n);
  line[n] = 0;
  if (sscanf(line, "%15s %zu", role, &size) != 2) return false;
  content += n + 1;
  const char *known = known_role(role);
  if (!known || size >= (size_t)(end - content) || content[size] != '\n') return false;
  if (!talk_add(t, known, content, size)) return false;
  *text = content + size + 1;
  return true;
}

/* What is wrong with them, or NULL. */
static const char *take_messages(struct talk *t, char *text, size_t size, uint64_t mark) {
  const char *start = text, *end = text + size;
  size_t n;
  uint64_t sum, whose;
  int used = 0;
  while (take_message(t, &text, end)) continue;
  if (sscanf(text, "end %zu %16" SCNx64 " %16" SCNx64 "%n", &n, &sum, &whose, &used) != 3 ||
      text + used + 1 != end || text[used] != '\n')
    return "no messages of a conversation, or cut short";
  if (n != t->n_messages || sum != add_up(NOTHING, start, (size_t)(text - start)))
    return "the messages are damaged: their sum differs";
  return whose == mark ? NULL : "the messages are of another session than the file beside them";
}

static bool load_messages(struct talk *t, const char *path, uint64_t mark) {
  size_t size;
  char *text = cli_read_file(path, CLI_TEXT_MAX, &size);
  if (!text) return false;
  const char *wrong = take_messages(t, text, size, mark);
  if (wrong) fprintf(stderr, "sconce: cannot read %s: %s\n", path, wrong);
  free(text);
  return !wrong;
}

/* ---- both files ------------------------------------------------------------------------------ */

bool talk_may_overwrite(const char *path) {
  char other[1200], role[16];
  size_t size;
  if (!llm_may_overwrite(path) || !beside(path, other, sizeof other)) return false;
  FILE *file = console_open(other, "rb");
  if (!file) return errno == ENOENT;
  int n = fscanf(file, "%15s %zu", role, &size);
  fclose(file);
  return n == EOF || (n == 2 && (known_role(role) || !strcmp(role, "end")));
}

bool talk_save(const struct talk *t, const char *path) {
  sconce_error err = {0};
  char other[1200];
  uint64_t mark;
  if (!beside(path, other, sizeof other)) return false;
  if (sconce_session_save(t->llm->session, path, &err) != SCONCE_OK) {
    cli_fail(&err);
    return false;
  }
  if (session_mark(path, &mark) && save_messages(t, mark, other)) return true;
  fprintf(stderr, "sconce: cannot write %s: %s\n", other, strerror(errno));
  return false;
}

bool talk_load(struct talk *t, const char *path) {
  sconce_error err = {0};
  struct talk loaded = {0};
  char other[1200];
  uint64_t mark;
  if (!beside(path, other, sizeof other)) return false;
  bool ok = !session_mark(path, &mark) || load_messages(&loaded, other, mark);
  if (ok && sconce_session_load(t->llm->session, path, &err) != SCONCE_OK) ok = !cli_fail(&err);
  struct talk *unused = ok ? t : &loaded;
  talk_cut(unused, 0);
  free(unused->messages);
  if (!ok) return false;
  t->messages = loaded.messages;
  t->n_messages = loaded.n_messages;
  t->cap = loaded.cap;
  return true;
}
