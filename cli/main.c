/* sconce: the command. Finds the verb; each verb is a file beside this one. */
#include "cli.h"

#include <errno.h>
#include <string.h>

static const struct {
  const char *name;
  int (*run)(int argc, char **argv);
  const char *what;
} verbs[] = {
    {"generate", cli_generate, "text from a prompt, with a language model"},
    {"chat", cli_chat, "a conversation with a language model"},
    {"check", cli_check, "models against the results that were shipped with them"},
    {"run", cli_run, "any model: pictures, numbers, .npy, .bin in; outputs shown, kept, timed"},
    {"tokenize", cli_tokenize, "text to token ids and back"},
    {"devices", cli_devices, "the GPUs that WebGPU offers here, with features and limits"},
    {"bench", cli_bench, "tokens per second, a call of any model, kernels, costs of a device"},
    {"inspect", cli_inspect, "what a .pte, .ptd or delegate file holds, and whether it runs"},
};
enum { VERBS = sizeof verbs / sizeof *verbs };

static void usage(FILE *out) {
  fputs("usage: sconce VERB [OPTION]…\n"
        "       sconce help [VERB] | --version\n\n"
        "Runs ExecuTorch models on any GPU through WebGPU.\n\nverbs:\n",
        out);
  for (int i = 0; i < VERBS; i++) fprintf(out, "  %-10s %s\n", verbs[i].name, verbs[i].what);
  fputs("\n`sconce help VERB` tells more.\n\n"
        "exit status: 0 done, 1 the job failed, 2 wrong usage, 130 interrupted\n"
        "environment:\n"
        "  SCONCE_WEBGPU      the WebGPU library: wgpu, dawn, best or a path\n"
        "  SCONCE_ADAPTER     part of an adapter's name, or its index\n"
        "  SCONCE_DISABLE     not to use: f16,subgroups,timestamps,matrix,software\n"
        "  SCONCE_PRECISION   exact or fast, where --precision does not say\n"
        "  SCONCE_LIMITS      caps: default, storage_binding=1048576, …\n"
        "  SCONCE_NO_FUSION   fusions not to make, by name, or all\n"
        "  SCONCE_LOSE_AFTER  lose the device at its n-th step, to try what follows\n"
        "  SCONCE_WGSL_DIR    read shaders from this src/ folder, not from the program\n",
        out);
}

/* How many letters must be put in, taken out or changed to make one of the other. */
static size_t distance(const char *a, const char *b) {
  enum { LETTERS = 15 }; /* no verb has more */
  size_t row[LETTERS + 1];
  const size_t n = strlen(b) < LETTERS ? strlen(b) : LETTERS;
  for (size_t k = 0; k <= n; k++) row[k] = k;
  for (size_t i = 0; a[i] && i < 2 * LETTERS; i++) {
    size_t before = row[0]++; /* of the row above, one to the left */
    for (size_t k = 1; k <= n; k++) {
      const size_t above = row[k], changed = before + (a[i] != b[k - 1]);
      row[k] = (above < row[k - 1] ? above : row[k - 1]) + 1;
      if (changed < row[k]) row[k] = changed;
      before = above;
    }
  }
  return row[n];
}

/* What begins with the word, else what is most like it. */
static int unknown_verb(const char *word) {
  enum { MOST = 2 };
  const char *meant = NULL;
  size_t best = MOST + 1;
  for (int i = 0; i < VERBS && best; i++) {
    const bool begins = *word && !strncmp(word, verbs[i].name, strlen(word));
    const size_t far = begins ? 0 : distance(word, verbs[i].name);
    if (far >= best) continue;
    best = far;
    meant = verbs[i].name;
  }
  fprintf(stderr, "sconce: unknown verb '%s'", word);
  if (meant) fprintf(stderr, ", did you mean '%s'?", meant);
  fputs("; `sconce help` lists them\n", stderr);
  return CLI_USAGE;
}

static int run_verb(int argc, char **argv) {
  for (int i = 0; i < VERBS; i++)
    if (!strcmp(argv[0], verbs[i].name)) return verbs[i].run(argc - 1, argv + 1);
  return unknown_verb(argv[0]);
}

static int help(int argc, char **argv) {
  if (argc > 1) {
    fprintf(stderr, "sconce: unexpected '%s'; `sconce help VERB` takes one verb\n", argv[1]);
    return CLI_USAGE;
  }
  if (argc == 1 && strcmp(argv[0], "help") != 0)
    return run_verb(2, (char *[]){argv[0], (char[]){"--help"}, NULL});
  usage(stdout);
  return CLI_DONE;
}

/* What was printed must have arrived, whatever the verb thinks. */
static int finish(int result) {
  errno = 0;
  if (fflush(stdout) == 0 && !ferror(stdout)) return result;
  fprintf(stderr, "sconce: cannot write the output%s%s\n", errno ? ": " : "",
          errno ? strerror(errno) : "");
  return result == CLI_DONE ? CLI_FAILED : result;
}

int main(int argc, char **argv) {
  console_start(&argc, &argv);
  if (argc < 2) {
    usage(stderr);
    return CLI_USAGE;
  }
  int result = CLI_DONE;
  if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help"))
    result = help(argc - 2, argv + 2);
  else if (!strcmp(argv[1], "--version"))
    printf("sconce %s\n", sconce_version());
  else
    result = run_verb(argc - 1, argv + 1);
  result = finish(result);
  if (result == CLI_INTERRUPTED) console_end_interrupted();
  return result;
}
