/* sconce chat: a conversation in the terminal. */
#include "line.h"
#include "render.h"
#include "talk.h"

#include <stdlib.h>
#include <string.h>

static const char commands[] = "  /reset       start over\n"
                               "  /save FILE   keep the conversation\n"
                               "  /load FILE   take up a kept one\n"
                               "  /stats       memory and speed\n"
                               "  /quit        leave (Ctrl-D too)\n";

struct chat {
  struct llm llm;
  struct talk talk;
  struct line_editor *editor;
  bool colour;
  bool failed; /* a message got no answer, for another reason than a full context */
};

/* ---- turns ----------------------------------------------------------------------------------- */

static void show(void *user, const char *text, size_t size) {
  (void)user;
  fwrite(text, 1, size, stdout);
  fflush(stdout);
}

static void notice(struct chat *c) {
  const struct talk *t = &c->talk;
  if (t->n_forgotten)
    fprintf(stderr, "(the context was full: the oldest %zu messages are forgotten)\n",
            t->n_forgotten);
  if (t->n_alone) {
    fprintf(stderr, "(the message alone is %zu tokens, the context holds %u with the answer)\n",
            t->n_alone, sconce_session_describe(c->llm.session)->context);
    c->failed = true;
  } else if (t->last.stop == SCONCE_STOP_CONTEXT) {
    fprintf(stderr, "(the context is full: %s)\n",
            t->shift ? "the message and its answer alone are more than it holds"
                     : "--on-full shift drops the oldest turns, /reset starts over");
  }
  if (t->last.stop == SCONCE_STOP_CALLER) fputs("(stopped)\n", stderr);
}

static void say(struct chat *c, const char *text) {
  sconce_error err = {0};
  struct talk *t = &c->talk;
  if (!talk_add(t, "user", text, strlen(text))) return;
  if (c->colour) fputs("\033[36m", stdout);
  sconce_status status = talk_answer(t, &err);
  if (c->colour) fputs("\033[0m", stdout);
  if (t->n_answer || status == SCONCE_OK) putchar('\n');
  fflush(stdout);
  if (status == SCONCE_CANCELLED)
    fputs("(stopped before the answer)\n", stderr);
  else if (status != SCONCE_OK)
    c->failed = cli_fail(&err) != CLI_DONE;
  else
    notice(c);
  /* A question that got no answer is taken back. */
  if (t->n_messages && !strcmp(t->messages[t->n_messages - 1].role, "user"))
    talk_cut(t, t->n_messages - 1);
}

/* ---- commands -------------------------------------------------------------------------------- */

static void print_stats(struct chat *c) {
  sconce_stats s;
  const struct talk *t = &c->talk;
  sconce_state_stats(sconce_session_state(c->llm.session), &s);
  const sconce_session_info *info = sconce_session_describe(c->llm.session);
  char a[32], b[32], d[32];
  printf("position %u of %u; GPU %s of weights and state, %s transient; host %s\n", info->position,
         info->context, cli_bytes(a, s.gpu_weights + s.gpu_state), cli_bytes(b, s.gpu_transient),
         cli_bytes(d, s.host));
  if (t->last.n_new)
    printf("last answer: %zu new of %zu prompt tokens in %.2f s, %zu token%s at %.1f tokens/s\n",
           t->cost.n - t->cost.n_reused, t->cost.n, t->cost.seconds, t->last.n_new,
           CLI_S(t->last.n_new), t->last.new_s > 0 ? (double)t->last.n_new / t->last.new_s : 0);
}

static void save_or_load(struct chat *c, bool saving, const char *word) {
  char path[1024], question[1200];
  if (!console_expand(word, path, sizeof path)) {
    fputs("name a file\n", stderr);
    return;
  }
  snprintf(question, sizeof question, "%s holds something else; overwrite?", path);
  if (saving && !talk_may_overwrite(path)) {
    if (!line_ask(c->editor, question)) {
      fprintf(stderr, "not saved: %s is no kept conversation\n", path);
      return;
    }
    console_remove(path); /* a session is not saved over anything else */
  }
  if (saving ? talk_save(&c->talk, path) : talk_load(&c->talk, path))
    printf("%s %s, %zu messages\n", saving ? "saved" : "loaded", path, c->talk.n_messages);
}

/* What follows a command's name, or NULL if the line is another command. */
static const char *word_of(const char *line, const char *name) {
  const size_t n = strlen(name);
  if (strncmp(line, name, n) != 0 || (line[n] && line[n] != ' ')) return NULL;
  return line + n + strspn(line + n, " ");
}

/* false: leave. */
static bool command(struct chat *c, const char *line) {
  sconce_error err = {0};
  const char *word;
  if (!strcmp(line, "/quit") || !strcmp(line, "/exit")) return false;
  if (!strcmp(line, "/reset")) {
    talk_start_over(&c->talk);
    if (sconce_session_rewind(c->llm.session, 0, &err) != SCONCE_OK) cli_fail(&err);
  } else if (!strcmp(line, "/stats")) {
    print_stats(c);
  } else if ((word = word_of(line, "/save"))) {
    save_or_load(c, true, word);
  } else if ((word = word_of(line, "/load"))) {
    save_or_load(c, false, word);
  } else {
    if (strcmp(line, "/help") != 0) printf("unknown command '%s'\n", line);
    fputs(commands, stdout);
  }
  return true;
}

static int converse(struct chat *c) {
  const char *line;
  while ((line = line_read(c->editor)) && !ferror(stdout)) {
    if (!*line) continue;
    if (*line == '/') {
      if (!command(c, line)) break;
    } else {
      say(c, line);
    }
  }
  if (line_interrupted(c->editor)) return CLI_INTERRUPTED;
  return c->failed && !c->colour ? CLI_FAILED : CLI_DONE; /* at a terminal it was seen */
}

/* ---- the verb -------------------------------------------------------------------------------- */

struct words {
  struct llm_options llm;
  struct render_options render;
  const char *n, *on_full;
};

static int open_and_converse(struct chat *c, const struct words *w,
                             const sconce_sampler_desc *sampler) {
  sconce_error err = {0};
  int result = llm_open(&c->llm, &w->llm, sampler);
  if (result == CLI_DONE) render_warn(c->llm.tokenizer, &c->talk.how);
  if (result == CLI_DONE && !talk_start_over(&c->talk)) result = CLI_FAILED;
  if (result == CLI_DONE && talk_try(&c->talk, &err) != SCONCE_OK) result = cli_fail(&err);
  if (result == CLI_DONE && w->llm.cache) {
    sconce_status status = talk_warm_up(&c->talk, &err);
    if (status == SCONCE_CANCELLED) result = CLI_INTERRUPTED;
    if (status != SCONCE_OK && status != SCONCE_CANCELLED) result = cli_fail(&err);
  }
  if (result == CLI_DONE && !(c->editor = line_open(c->colour))) result = CLI_FAILED;
  if (result == CLI_DONE) result = converse(c);
  line_close(c->editor);
  talk_free(&c->talk);
  llm_close(&c->llm);
  return result;
}

static int check_and_run(const struct cli_verb *verb, struct chat *c, const struct words *w) {
  sconce_sampler_desc sampler;
  struct talk *t = &c->talk;
  if (w->render.conversation_path) return render_conversation(&w->render, &w->llm, t->how.family);
  long n = cli_number("-n", w->n, 0, 100000000);
  if (n < 0 || llm_sampler(&w->llm, &sampler) != CLI_DONE) return CLI_USAGE;
  if (!w->llm.model) return cli_usage(verb, "no model: give one with -m");
  if (w->render.date) return cli_usage(verb, "--date belongs to --render");
  t->shift = !strcmp(w->on_full, "shift");
  t->max_new = (uint32_t)n;
  t->llm = &c->llm;
  t->show = show;
  c->colour = console_is_terminal(stdout) && console_is_terminal(stdin);
  int result = render_options_read(&w->render, &t->how);
  if (result == CLI_DONE) result = open_and_converse(c, w, &sampler);
  render_options_free(&t->how);
  return result;
}

int cli_chat(int argc, char **argv) {
  struct words w = {.n = "0", .on_full = "stop"};
  struct chat c = {0};
  const struct cli_option options[] = {
      {"--system", "TEXT", "what the model is told first", .value = &c.talk.system},
      {"-n", "N", "at most N tokens an answer", .value = &w.n},
      {"--on-full", "stop|shift",
       "when the context is full: stop (default), or shift, which forgets the oldest turns, never "
       "the system message, and computes the rest anew",
       .value = &w.on_full},
      LLM_CACHE_OPTION(w.llm, "keep the computed system message here: the next run with the same "
                              "one does not compute it again"),
      {.help = "how messages are written"},
      {"--chat", "chatml|smollm2|llama3|llama2|plain",
       "by a family's rules (default: the model's own template, else what its vocabulary shows)",
       .value = &c.talk.how.family},
      RENDER_OPTIONS(w.render),
      LLM_SAMPLER_OPTIONS(w.llm),
      LLM_MODEL_OPTIONS(w.llm),
      {0}};
  const struct cli_verb verb = {
      "chat", "-m model.pte [OPTION]…",
      "Talks with a model. Ctrl-C stops an answer, also while a long message is read, and Ctrl-D "
      "leaves; /help lists the commands. Alt-Enter, or a backslash at its end, continues a line; "
      "what is pasted is one message. Through a pipe each line is a message.",
      options};
  int result;
  if (cli_parse(argc, argv, &verb, &result)) result = check_and_run(&verb, &c, &w);
  free(w.llm.data.items);
  return result;
}
