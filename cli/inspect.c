/* sconce inspect: what a file holds, before anything runs. */
#include "cli.h"
#include "tensor.h"

#include "sconce_dev.h"

#include <stdlib.h>
#include <string.h>

static void write_text(void *user, const char *text, size_t size) { fwrite(text, 1, size, user); }

struct options {
  bool graph, dot, json, plan, no_params;
  const char *method, *device;
  struct cli_list files, inputs;
};

/* Dims and whole numbers are all that a plan asks for: the dtype need not be the input's. */
static int make_inputs(const struct cli_list *words, sconce_tensor *inputs, void **data) {
  const sconce_tensor any = {.dtype = SCONCE_INT64, .rank = 1};
  for (int i = 0; i < words->n; i++) {
    const int result = input_make(words->items[i], &any, &inputs[i], &data[i]);
    if (result != CLI_DONE) return result;
  }
  return CLI_DONE;
}

static int write_report(const sconce_inspect_desc *desc) {
  sconce_error err = {0};
  return sconce_inspect(desc, write_text, stdout, &err) == SCONCE_OK ? CLI_DONE : cli_fail(&err);
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
  else if ((result = make_inputs(&o->inputs, inputs, data)) == CLI_DONE) {
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
static int check_and_run(const struct cli_verb *verb, const struct options *o) {
  if (o->files.n == 0) return cli_usage(verb, "no file to look into");
  if (o->graph + o->dot + o->json + o->plan > 1)
    return cli_usage(verb, "--graph, --dot, --json and --plan exclude each other");
  if (!o->plan && (o->inputs.n || o->device || o->no_params))
    return cli_usage(verb, "--input, --device and --no-params belong to --plan");
  return inspect(o);
}

int cli_inspect(int argc, char **argv) {
  struct options o = {0};
  const struct cli_option options[] = {
      {"", .list = &o.files},
      {"--graph", NULL, "every instruction and node, with shapes", .flag = &o.graph},
      {"--dot", NULL, "the same as a drawing: sconce inspect FILE --dot | dot -Tsvg >graph.svg",
       .flag = &o.dot},
      {"--json", NULL, "everything, for programs; the schema is in " CLI_PAGE("inspect.md"),
       .flag = &o.json},
      {"--method", "NAME", "this method only", .value = &o.method},
      {"--plan", NULL, "one call of a method (forward): what each node dispatches",
       .flag = &o.plan},
      {.help = "with --plan"},
      {"--input", "WORD",
       "its inputs one after another, as `sconce run` takes them: zeros:1x16 gives dims, 5 or 1,2 "
       "values too (along the last dim), which positions and other live integers need; the rest "
       "have their largest dims and are zeros",
       .list = &o.inputs},
      {"--device", "default|full",
       "default: WebGPU's default limits and no optional feature; full: f16, subgroups of 32 and a "
       "desktop GPU's limits",
       .value = &o.device},
      {"--no-params", NULL, "without the kernels' parameters", .flag = &o.no_params},
      {0}};
  const struct cli_verb verb = {
      "inspect",
      "FILE [DATA.ptd]… [--graph | --dot | --json] [--method NAME]\n"
      "FILE [DATA.ptd]… --plan [--method NAME] [--input WORD]… [--device default|full] "
      "[--no-params]",
      "Says what a .pte program, a .ptd data file or the blob of a VulkanBackend delegate holds: "
      "methods, operators and whether this build runs them, weights, GPU memory. Needs no GPU.",
      options};
  int result;
  if (cli_parse(argc, argv, &verb, &result)) result = check_and_run(&verb, &o);
  free(o.files.items);
  free(o.inputs.items);
  return result;
}
