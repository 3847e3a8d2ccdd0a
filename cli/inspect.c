/* sconce inspect: what a file holds, before anything runs. */
#include "cli.h"
#include "tensor.h"

#include "sconce_dev.h"

#include <stdlib.h>

static const char usage[] =
    "usage: sconce inspect FILE [DATA.ptd]… [--graph | --dot | --json] [--method M]\n"
    "       sconce inspect FILE [DATA.ptd]… --plan [--method M] [--input WORD]…\n"
    "                      [--device default|full] [--no-params]\n\n"
    "Says what a .pte program, a .ptd data file or the blob of a VulkanBackend delegate holds:\n"
    "methods, operators and whether this build runs them, weights, GPU memory. Needs no GPU.\n\n"
    "  --graph     every instruction and node, with shapes\n"
    "  --dot       the same as a drawing: sconce inspect FILE --dot | dot -Tsvg >graph.svg\n"
    "  --json      everything, for programs; docs/inspect.md has the schema\n"
    "  --method M  this method only\n\n"
    "  --plan            one call of a method (forward): what each node dispatches\n"
    "  --input WORD      its inputs one after another, as `sconce run` takes them: zeros:1x16 "
    "gives\n"
    "                    dims, ints:5 values too (along the last dim), which positions and other\n"
    "                    live integers need; the rest have their largest dims and are zeros\n"
    "  --device KIND     default: WebGPU's default limits and no optional feature; full: f16,\n"
    "                    subgroups of 32 and a desktop GPU's limits\n"
    "  --no-params       without the kernels' parameters\n";

static void write_text(void *user, const char *text, size_t size) { fwrite(text, 1, size, user); }

struct options {
  bool graph, dot, json, plan, no_params;
  const char *method, *device;
  struct cli_list files, inputs;
};

/* Dims and whole numbers are all that a plan asks for: the dtype need not be the input's. */
static bool make_inputs(const struct cli_list *words, sconce_tensor *inputs, void **data) {
  const sconce_tensor any = {.dtype = SCONCE_INT64, .rank = 1};
  for (int i = 0; i < words->n; i++)
    if (!input_make(words->items[i], &any, &inputs[i], &data[i])) return false;
  return true;
}

static int write_report(const sconce_inspect_desc *desc) {
  sconce_error err = {0};
  if (sconce_inspect(desc, write_text, stdout, &err) != SCONCE_OK) return cli_fail(&err);
  if (fflush(stdout) == 0 && !ferror(stdout)) return CLI_DONE;
  fputs("sconce: the output could not be written\n", stderr);
  return CLI_FAILED;
}

static int inspect(const struct options *o) {
  sconce_file *files = calloc((size_t)o->files.n, sizeof *files);
  for (int i = 0; files && i < o->files.n; i++) files[i].path = o->files.items[i];
  sconce_inspect_desc desc = {.file = {.path = o->files.items[0]},
                              .data_files = files ? files + 1 : NULL,
                              .n_data_files = files ? (uint32_t)o->files.n - 1 : 0,
                              .method = o->method,
                              .device = o->device,
                              .no_params = o->no_params};
  desc.format = o->graph  ? SCONCE_INSPECT_GRAPH
                : o->dot  ? SCONCE_INSPECT_DOT
                : o->json ? SCONCE_INSPECT_JSON
                : o->plan ? SCONCE_INSPECT_PLAN
                          : SCONCE_INSPECT_TEXT;
  const size_t n = (size_t)o->inputs.n;
  sconce_tensor *inputs = calloc(n + 1, sizeof *inputs);
  void **data = calloc(n + 1, sizeof *data);
  int result = CLI_FAILED;
  if (!inputs || !data || !files)
    fputs("sconce: out of memory\n", stderr);
  else if (make_inputs(&o->inputs, inputs, data)) {
    desc.inputs = inputs;
    desc.n_inputs = (uint32_t)n;
    result = write_report(&desc);
  }
  for (size_t i = 0; data && i < n; i++) free(data[i]);
  free(data);
  free(inputs);
  free(files);
  return result;
}

/* Options of one form are no use with another. */
static bool agree(const struct options *o) {
  if (o->graph + o->dot + o->json + o->plan > 1) {
    fputs("sconce: --graph, --dot, --json and --plan exclude each other\n", stderr);
    return false;
  }
  if (!o->plan && (o->inputs.n || o->device || o->no_params)) {
    fputs("sconce: --input, --device and --no-params belong to --plan\n", stderr);
    return false;
  }
  return true;
}

int cli_inspect(int argc, char **argv) {
  bool help;
  struct options o = {0};
  const struct cli_option options[] = {
      {"", .list = &o.files},           {"--graph", .flag = &o.graph},
      {"--dot", .flag = &o.dot},        {"--json", .flag = &o.json},
      {"--plan", .flag = &o.plan},      {"--no-params", .flag = &o.no_params},
      {"--method", .value = &o.method}, {"--device", .value = &o.device},
      {"--input", .list = &o.inputs},   {0}};
  int result = CLI_USAGE, at = cli_parse(argc, argv, options, usage, &help);
  if (help)
    result = CLI_DONE;
  else if (at >= 0 && o.files.n == 0)
    fputs(usage, stderr);
  else if (at >= 0 && agree(&o))
    result = inspect(&o);
  free(o.files.items);
  free(o.inputs.items);
  return result;
}
