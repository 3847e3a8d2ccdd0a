/* sconce chat: a conversation in the terminal. */
#include "line.h"
#include "llm.h"
#include "render.h"

#include <stdlib.h>
#include <string.h>

static const char commands[] = "  /reset       start over\n"
                               "  /save FILE   keep the conversation\n"
                               "  /load FILE   take up a kept one\n"
                               "  /stats       memory and speed\n"
                               "  /quit        leave (Ctrl-D too)\n";

struct chat {
  struct llm llm;
  const char *system;
  sconce_chat_desc how; /* family, template, tools: all but the messages */
  uint32_t max_new;
  sconce_message *messages; /* contents are owned */
  size_t n_messages, cap;
  bool colour;
  char *answer; /* being written */
  size_t n_answer, cap_answer;
  sconce_generate_result last;
};

/* ---- messages -------------------------------------------------------------------------------- */

static bool add_message(struct chat *c, const char *role, const char *text, size_t size) {
  if (c->n_messages == c->cap) {
    size_t cap = c->cap ? 2 * c->cap : 16;
    sconce_message *more = realloc(c->messages, cap * sizeof *more);
    if (!more) return false;
    c->messages = more;
    c->cap = cap;
  }
  char *copy = malloc(size + 1);
  if (!copy) return false;
  memcpy(copy, text, size);
  copy[size] = 0;
  c->messages[c->n_messages++] = (sconce_message){role, copy, size};
  return true;
}

static void drop_messages(struct chat *c, size_t keep) {
  while (c->n_messages > keep) free((void *)(uintptr_t)c->messages[--c->n_messages].content);
}

static bool start_over(struct chat *c) {
  drop_messages(c, 0);
  return !c->system || add_message(c, "system", c->system, strlen(c->system));
}

/* ---- an answer ------------------------------------------------------------------------------- */

static bool on_text(void *user, const char *text, size_t size, sconce_choice choice) {
  (void)choice;
  struct chat *c = user;
  fwrite(text, 1, size, stdout);
  fflush(stdout);
  if (c->n_answer + size > c->cap_answer) {
    size_t cap = 2 * (c->n_answer + size);
    char *more = realloc(c->answer, cap);
    if (!more) return false;
    c->answer = more;
    c->cap_answer = cap;
  }
  memcpy(c->answer + c->n_answer, text, size);
  c->n_answer += size;
  return !console_interrupted();
}

/* The whole conversation is rendered; the session computes only what it has not seen. */
static sconce_status answer(struct chat *c, sconce_error *err) {
  sconce_chat_desc desc = c->how;
  desc.messages = c->messages;
  desc.n_messages = c->n_messages;
  const int32_t *ids;
  size_t n;
  sconce_status status = sconce_chat_encode(c->llm.tokenizer, &desc, &ids, &n, err);
  if (status != SCONCE_OK) return status;
  int32_t *prompt = malloc((n + 1) * sizeof *prompt);
  if (!prompt) return err->status = SCONCE_NO_MEMORY;
  memcpy(prompt, ids, n * sizeof *prompt);
  c->n_answer = 0;
  sconce_generate_desc generate = {
      .prompt = prompt, .n_prompt = n, .max_new = c->max_new, .on_text = on_text, .user = c};
  console_catch_interrupt(true);
  status = sconce_session_generate(c->llm.session, &generate, &c->last, err);
  console_catch_interrupt(false);
  free(prompt);
  return status;
}

static void say(struct chat *c, const char *text) {
  sconce_error err = {0};
  size_t before = c->n_messages;
  if (!add_message(c, "user", text, strlen(text))) return;
  if (c->colour) fputs("\033[36m", stdout);
  sconce_status status = answer(c, &err);
  if (c->colour) fputs("\033[0m", stdout);
  putchar('\n');
  if (status != SCONCE_OK) {
    cli_fail(&err);
    drop_messages(c, before);
    return;
  }
  add_message(c, "assistant", c->answer ? c->answer : "", c->n_answer);
  if (c->last.stop == SCONCE_STOP_CONTEXT)
    fputs("(the context is full: /reset starts over)\n", stderr);
  if (c->last.stop == SCONCE_STOP_CALLER) fputs("(stopped)\n", stderr);
}

/* ---- commands -------------------------------------------------------------------------------- */

static void print_stats(struct chat *c) {
  sconce_stats s;
  sconce_state_stats(sconce_session_state(c->llm.session), &s);
  const sconce_session_info *info = sconce_session_describe(c->llm.session);
  char a[32], b[32], d[32];
  printf("position %u of %u; GPU %s of weights and state, %s transient; host %s\n", info->position,
         info->context, cli_bytes(a, s.gpu_weights + s.gpu_state), cli_bytes(b, s.gpu_transient),
         cli_bytes(d, s.host));
  if (c->last.n_new)
    printf("last answer: %zu new of %zu prompt tokens in %.2f s, %zu tokens at %.1f tokens/s\n",
           c->last.n_prompt - c->last.n_reused, c->last.n_prompt, c->last.prompt_s, c->last.n_new,
           (double)c->last.n_new / c->last.new_s);
}

/* Messages beside the session's own file, so that the next turn is rendered as before. */
static bool messages_path(const char *path, char *out, size_t size) {
  int n = snprintf(out, size, "%s.messages", path);
  return n > 0 && (size_t)n < size;
}

static bool save_messages(const struct chat *c, const char *path) {
  FILE *file = console_open(path, "wb");
  if (!file) return false;
  for (size_t i = 0; i < c->n_messages; i++) {
    const sconce_message *m = &c->messages[i];
    fprintf(file, "%s %zu\n", m->role, m->size);
    fwrite(m->content, 1, m->size, file);
    fputc('\n', file);
  }
  return fclose(file) == 0;
}

static bool load_messages(struct chat *c, const char *path) {
  FILE *file = console_open(path, "rb");
  if (!file) return false;
  char role[16];
  size_t size;
  bool ok = true;
  while (ok && fscanf(file, "%15s %zu", role, &size) == 2) {
    static const char *const roles[] = {"system", "user", "assistant"};
    const char *known = NULL;
    for (int i = 0; i < 3; i++)
      if (!strcmp(role, roles[i])) known = roles[i];
    char *text = known && size < ((size_t)1 << 30) && fgetc(file) == '\n' ? malloc(size + 1) : NULL;
    ok = text && fread(text, 1, size, file) == size && add_message(c, known, text, size);
    free(text);
  }
  ok = ok && feof(file);
  fclose(file);
  return ok;
}

/* Both files or nothing: a bad one leaves the conversation as it is. */
static bool load(struct chat *c, const char *path, const char *beside) {
  sconce_error err = {0};
  struct chat loaded = {0};
  bool ok = load_messages(&loaded, beside);
  if (!ok)
    fprintf(stderr, "sconce: cannot read %s\n", beside);
  else if (!(ok = sconce_session_load(c->llm.session, path, &err) == SCONCE_OK))
    cli_fail(&err);
  struct chat *unused = ok ? c : &loaded;
  drop_messages(unused, 0);
  free(unused->messages);
  if (!ok) return false;
  c->messages = loaded.messages;
  c->n_messages = loaded.n_messages;
  c->cap = loaded.cap;
  return true;
}

static bool save(const struct chat *c, const char *path, const char *beside) {
  sconce_error err = {0};
  if (sconce_session_save(c->llm.session, path, &err) != SCONCE_OK) {
    cli_fail(&err);
    return false;
  }
  if (!save_messages(c, beside)) {
    fprintf(stderr, "sconce: cannot write %s\n", beside);
    return false;
  }
  return true;
}

static void save_or_load(struct chat *c, bool saving, const char *path) {
  char beside[1200];
  if (!*path || !messages_path(path, beside, sizeof beside)) {
    fputs("name a file\n", stderr);
    return;
  }
  if (saving ? save(c, path, beside) : load(c, path, beside))
    printf("%s %s, %zu messages\n", saving ? "saved" : "loaded", path, c->n_messages);
}

/* false: leave. */
static bool command(struct chat *c, const char *line) {
  sconce_error err = {0};
  if (!strcmp(line, "/quit") || !strcmp(line, "/exit")) return false;
  if (!strcmp(line, "/reset")) {
    start_over(c);
    if (sconce_session_rewind(c->llm.session, 0, &err) != SCONCE_OK) cli_fail(&err);
  } else if (!strcmp(line, "/stats")) {
    print_stats(c);
  } else if (!strncmp(line, "/save", 5) && (line[5] == ' ' || !line[5])) {
    save_or_load(c, true, line + 5 + (line[5] == ' '));
  } else if (!strncmp(line, "/load", 5) && (line[5] == ' ' || !line[5])) {
    save_or_load(c, false, line + 5 + (line[5] == ' '));
  } else {
    if (strcmp(line, "/help") != 0) printf("unknown command '%s'\n", line);
    fputs(commands, stdout);
  }
  return true;
}

static void converse(struct chat *c) {
  struct line_editor editor = {0};
  const char *line;
  while ((line = line_read(&editor, c->colour ? "\033[1m> \033[0m" : "> "))) {
    if (!*line) continue;
    if (*line == '/') {
      if (!command(c, line)) break;
    } else {
      say(c, line);
    }
  }
  line_free(&editor);
}

static bool is_family(const char *name) {
  for (size_t i = 0; sconce_chat_family_name(i); i++)
    if (!strcmp(sconce_chat_family_name(i), name)) return true;
  fprintf(stderr, "sconce: --chat is '%s', expected", name);
  for (size_t i = 0; sconce_chat_family_name(i); i++)
    fprintf(stderr, "%s %s", i ? "," : "", sconce_chat_family_name(i));
  fputs("\n", stderr);
  return false;
}

struct words {
  struct llm_options llm;
  struct render_options render;
  const char *n;
};

static int open_and_converse(struct chat *c, const struct words *w,
                             const sconce_sampler_desc *sampler) {
  c->colour = console_is_terminal(stdout) && console_is_terminal(stdin);
  int result = llm_open(&c->llm, &w->llm, sampler);
  if (result == CLI_DONE) render_warn(c->llm.tokenizer, &c->how);
  if (result == CLI_DONE && !start_over(c)) result = CLI_FAILED;
  if (result == CLI_DONE) converse(c);
  drop_messages(c, 0);
  free(c->messages);
  free(c->answer);
  llm_close(&c->llm);
  return result;
}

static int check_and_run(const struct cli_verb *verb, struct chat *c, const struct words *w) {
  sconce_sampler_desc sampler;
  if (c->how.family && !is_family(c->how.family)) return CLI_USAGE;
  if (w->render.conversation_path) return render_conversation(&w->render, &w->llm, c->how.family);
  long n = cli_number("-n", w->n, 0, 100000000);
  if (n < 0 || llm_sampler(&w->llm, &sampler) != CLI_DONE) return CLI_USAGE;
  if (!w->llm.model) return cli_usage(verb, "no model: give one with -m");
  c->max_new = (uint32_t)n;
  int result = CLI_USAGE;
  if (render_options_read(&w->render, &c->how)) result = open_and_converse(c, w, &sampler);
  render_options_free(&c->how);
  return result;
}

int cli_chat(int argc, char **argv) {
  struct words w = {.n = "0"};
  struct chat c = {0};
  const struct cli_option options[] = {
      {"--system", "TEXT", "what the model is told first", .value = &c.system},
      {"--chat", "NAME",
       "the family's template: chatml, smollm2, llama3, llama2, plain (default: "
       "what the tokenizer shows)",
       .value = &c.how.family},
      RENDER_OPTIONS(w.render),
      {"-n", "N", "at most N tokens an answer", .value = &w.n},
      LLM_SAMPLER_OPTIONS(w.llm),
      LLM_MODEL_OPTIONS(w.llm),
      {0}};
  const struct cli_verb verb = {
      "chat", "-m model.pte [OPTION]…",
      "Talks with a model. Ctrl-C stops an answer, Ctrl-D leaves; /help lists the commands.",
      options};
  int result;
  if (cli_parse(argc, argv, &verb, &result)) result = check_and_run(&verb, &c, &w);
  free(w.llm.data.items);
  return result;
}
