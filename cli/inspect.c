/* sconce inspect: what a file holds, before anything runs. */
#include "cli.h"

#include "sconce_dev.h"

static const char usage[] =
    "usage: sconce inspect FILE [DATA.ptd]… [--graph | --dot | --json] [--method M]\n\n"
    "Says what a .pte program, a .ptd data file or the blob of a VulkanBackend delegate holds:\n"
    "methods, operators and whether this build runs them, weights, GPU memory. Needs no GPU.\n\n"
    "  --graph     every instruction and node, with shapes\n"
    "  --dot       the same as a drawing: sconce inspect FILE --dot | dot -Tsvg >graph.svg\n"
    "  --json      everything, for programs; docs/inspect.md has the schema\n"
    "  --method M  this method only\n";

static void write_text(void *user, const char *text, size_t size) { fwrite(text, 1, size, user); }

/* Options may stand before, between and after the files. Returns how many files, or -1. */
static int parse(int argc, char **argv, const struct cli_option *options, const char **files,
                 int max, bool *help) {
  int n = 0;
  for (int at = 0; at < argc; at++) {
    int word = cli_parse(argc - at, argv + at, options, usage, help);
    if (word < 0 || *help) return -1;
    at += word;
    if (at == argc) break;
    if (n == max) {
      fprintf(stderr, "sconce: more than %d files\n", max);
      return -1;
    }
    files[n++] = argv[at];
  }
  if (n == 0) fputs(usage, stderr);
  return n ? n : -1;
}

int cli_inspect(int argc, char **argv) {
  enum { FILES_MAX = 257 };
  const char *files[FILES_MAX], *method = NULL;
  bool help = false, graph = false, dot = false, json = false;
  const struct cli_option options[] = {{"--graph", NULL, &graph},
                                       {"--dot", NULL, &dot},
                                       {"--json", NULL, &json},
                                       {"--method", &method, NULL},
                                       {0}};
  int n = parse(argc, argv, options, files, FILES_MAX, &help);
  if (help) return CLI_DONE;
  if (n < 0) return CLI_USAGE;
  if (graph + dot + json > 1) {
    fputs("sconce: --graph, --dot and --json exclude each other\n", stderr);
    return CLI_USAGE;
  }
  sconce_inspect_desc desc = {
      .path = files[0], .data_paths = files + 1, .n_data_paths = (uint32_t)n - 1, .method = method};
  desc.format = graph  ? SCONCE_INSPECT_GRAPH
                : dot  ? SCONCE_INSPECT_DOT
                : json ? SCONCE_INSPECT_JSON
                       : SCONCE_INSPECT_TEXT;
  sconce_error err = {0};
  if (sconce_inspect(&desc, write_text, stdout, &err) != SCONCE_OK) return cli_fail(&err);
  if (fflush(stdout) == 0 && !ferror(stdout)) return CLI_DONE;
  fputs("sconce: the output could not be written\n", stderr);
  return CLI_FAILED;
}
