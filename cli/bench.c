/* sconce bench: measurements. */
#include "bench.h"

#include "sconce_dev.h"

#include <stdlib.h>
#include <string.h>

static void print_dispatch(const sconce_dispatch_costs *c, bool json) {
  const struct {
    const char *key, *what;
    double us;
  } rows[] = {
      {"dependent_wall_us", "dependent dispatch, until the host knows", c->dependent_wall_us},
      {"dependent_cpu_us", "  of which encoding and submitting on the CPU", c->dependent_cpu_us},
      {"dependent_gpu_us", "  on the GPU, by the device's clock", c->dependent_gpu_us},
      {"split_wall_us", "the same chain in 8 submits", c->split_wall_us},
      {"independent_wall_us", "independent dispatch, own output buffer", c->independent_wall_us},
      {"independent_gpu_us", "  on the GPU, by the device's clock", c->independent_gpu_us},
      {"submit_map_us", "submit + readback of one word", c->submit_map_us},
      {"write_us", "queued write of 256 bytes", c->write_us},
  };
  if (json) printf("\"dispatches\": %u, \"repeats\": %u", c->dispatches, c->repeats);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (json)
      printf(", \"%s\": %.3f", rows[i].key, rows[i].us);
    else
      printf("  %-46s %9.2f us\n", rows[i].what, rows[i].us);
}

static void print_memory(const sconce_bandwidth *b, bool json) {
  if (json) {
    printf("\"bytes\": %llu, \"read_bytes_per_s\": %.0f, \"upload_bytes_per_s\": %.0f",
           (unsigned long long)b->size, b->read_bytes_per_s, b->upload_bytes_per_s);
    return;
  }
  char size[32];
  printf("  %-46s %9.1f GB/s  (%s)\n", "kernels read", b->read_bytes_per_s * 1e-9,
         cli_bytes(size, b->size));
  printf("  %-46s %9.1f GB/s\n", "upload", b->upload_bytes_per_s * 1e-9);
}

static int measure(sconce_device *device, bool dispatch, uint32_t n, uint32_t repeats, bool json) {
  sconce_error err = {0};
  const sconce_device_info *info = sconce_device_describe(device);
  sconce_dispatch_costs costs = {0};
  sconce_bandwidth bandwidth = {0};
  sconce_status status = dispatch ? sconce_measure_dispatch(device, n, repeats, &costs, &err)
                                  : sconce_measure_bandwidth(device, 0, &bandwidth, &err);
  if (status != SCONCE_OK) return cli_fail(&err);
  if (json) {
    printf("{\"device\": ");
    cli_json_text(stdout, info->name);
    printf(", \"library\": \"%s %s\", ", info->library, info->library_version);
  } else {
    printf("%s (%s), %s %s\n", info->name, info->api, info->library, info->library_version);
  }
  if (dispatch)
    print_dispatch(&costs, json);
  else
    print_memory(&bandwidth, json);
  if (json) puts("}");
  return CLI_DONE;
}

static int bench_device(const struct cli_device *which, bool dispatch, long n, long repeats,
                        bool json) {
  sconce_device *device;
  sconce_error err = {0};
  if (cli_open_device(&device, which, &err) != SCONCE_OK) return cli_fail(&err);
  int result = measure(device, dispatch, (uint32_t)n, (uint32_t)repeats, json);
  sconce_device_close(device);
  return result;
}

struct words {
  struct bench_llm llm;
  struct bench_kernels kernels;
  const char *n, *repeats;
  bool dispatch, memory, all_kernels;
};

static int check_words(const struct cli_verb *verb, const struct words *w) {
  const bool model = w->llm.options.model != NULL;
  const int jobs = w->dispatch + w->memory + w->all_kernels + model;
  if (jobs == 0)
    return cli_usage(verb, "nothing to measure: -m MODEL, --kernels, --dispatch or --memory");
  if (jobs > 1)
    return cli_usage(verb, "-m MODEL, --kernels, --dispatch and --memory exclude each other");
  if (!w->all_kernels && (w->kernels.filter || w->kernels.quick))
    return cli_usage(verb, "--filter and --quick belong to --kernels");
  if ((w->llm.profile || w->llm.lookup) && !model)
    return cli_usage(verb, "--profile and --lookup belong to -m MODEL");
  if (w->llm.profile && w->llm.lookup)
    return cli_usage(verb, "--profile and --lookup exclude each other");
  return CLI_DONE;
}

static int bench(const struct cli_verb *verb, struct words *w) {
  const bool model = w->llm.options.model != NULL;
  const char *n_text = w->n ? w->n : model ? "64" : "1000";
  const char *r_text = w->repeats ? w->repeats : w->dispatch ? "21" : "5";
  long n = cli_number("-n", n_text, model ? w->llm.profile || w->llm.lookup : 2,
                      model ? 1000000 : 10000);
  long repeats = cli_number("-r", r_text, 1, 100);
  if (w->llm.options.json) w->llm.format = "json";
  if (n < 0 || repeats < 0 || check_words(verb, w) != CLI_DONE) return CLI_USAGE;
  const struct cli_device *which = &w->llm.options.device;
  w->kernels.device = which;
  w->kernels.format = w->llm.format;
  w->kernels.repeats = w->llm.repeats = repeats;
  w->llm.n_decode = n;
  if (w->all_kernels) return bench_kernels(&w->kernels);
  return model ? bench_llm(&w->llm)
               : bench_device(which, w->dispatch, n, repeats, w->llm.options.json);
}

int cli_bench(int argc, char **argv) {
  struct words w = {.llm = {.prompts = "128", .depths = "0", .format = "md"}};
  const struct cli_option options[] = {
      {"-p", "LIST", "prompt sizes (default 128; 0: none)", .value = &w.llm.prompts},
      {"-n", "N", "tokens to decode (default 64; 0: none), or dispatches in a chain (default 1000)",
       .value = &w.n},
      {"-d", "LIST", "tokens that are in the context before (default 0)", .value = &w.llm.depths},
      {"-r", "N", "repetitions (default 5; with --dispatch 21, medians)", .value = &w.repeats},
      {"-o", "md|csv|json", "as a table to read (default), for a spreadsheet, for programs",
       .value = &w.llm.format},
      {"--json", NULL, "the same as -o json", .flag = &w.llm.options.json},
      {"--profile", NULL,
       "where the time of one decoded token, or of one call, goes: by kernel, on the host, between",
       .flag = &w.llm.profile},
      {"--lookup", "FILE",
       "decoding behind the text of a file, with lookup and without: how many guesses were right, "
       "and "
       "tokens per second",
       .value = &w.llm.lookup},
      {"--kernels", NULL,
       "every variant of the matrix, attention, convolution, norm and reduction kernels over a "
       "grid of "
       "shapes, each checked "
       "against the plain one; exits with 1 if one is wrong",
       .flag = &w.all_kernels},
      {"--filter", "TEXT",
       "only cases whose names contain all words of it, \"q4gsw 2048x8192 m=1\"",
       .value = &w.kernels.filter},
      {"--quick", NULL, "a short list of small shapes, weights left in the caches",
       .flag = &w.kernels.quick},
      {"--dispatch", NULL, "chains of dispatches, submit and readback, small writes",
       .flag = &w.dispatch},
      {"--memory", NULL, "read bandwidth of kernels and upload bandwidth", .flag = &w.memory},
      LLM_MODEL_OPTIONS(w.llm.options),
      {0}};
  const struct cli_verb verb = {
      "bench",
      "-m model.pte [-p 128,512] [-n 128] [-d 0,1024] [-r 5] [-o md|csv|json]\n"
      "-m model.pte --profile [-d 0,1024] [-n 64] [-r 5] [-o md|csv|json]\n"
      "-m model.pte --lookup FILE [-n 64] [-r 5] [-o md|csv|json]\n"
      "--kernels [--filter TEXT] [--quick] [-r 5] [-o md|csv|json]\n"
      "--dispatch [-n N] [-r N] [--json]\n"
      "--memory [--json]",
      "Measures the device that --device or SCONCE_ADAPTER names, or the best one: a language "
      "model's prompts of -p tokens and decoding of -n at each depth of -d, a call of any other "
      "model, kernels, dispatches or memory. Wall clock, the device's work waited for, sampling "
      "included; after one run to warm "
      "up.",
      options};
  int result;
  if (cli_parse(argc, argv, &verb, &result)) result = bench(&verb, &w);
  free(w.llm.options.data.items);
  return result;
}
