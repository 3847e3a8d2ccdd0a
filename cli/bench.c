/* sconce bench: measurements. */
#include "bench.h"

#include "sconce_dev.h"

#include <string.h>

static const char usage[] =
    "usage: sconce bench -m model.pte [-p 128,512] [-n 128] [-d 0,1024] [-r 5] [-o md|csv|json]\n"
    "       sconce bench -m model.pte --profile [-d 0,1024] [-n 64] [-r 5] [-o md|csv|json]\n"
    "       sconce bench --kernels [--filter TEXT] [--quick] [-r 5] [-o md|csv|json]\n"
    "       sconce bench --dispatch [-n N] [-r N] [--json]\n"
    "       sconce bench --memory [--json]\n\n"
    "Measures the device that SCONCE_ADAPTER names, or the best one. Wall clock, the device's "
    "work\n"
    "waited for, sampling included; after one run to warm up.\n\n"
    "  -m FILE     a language model: prompts of -p tokens and decoding of -n, at each depth of -d\n"
    "  -p LIST     prompt sizes (default 128; 0: none)\n"
    "  -n N        tokens to decode (default 64; 0: none), or dispatches in a chain (default "
    "1000)\n"
    "  -d LIST     tokens that are in the context before (default 0)\n"
    "  -r N        repetitions (default 5; with --dispatch 21, medians)\n"
    "  -o FORMAT   md (default), csv, json\n"
    "  --profile   where the time of one decoded token goes: by kernel, on the host, between\n"
    "  --kernels   every variant of the matrix and attention kernels over a grid of shapes,\n"
    "              each checked against the plain one; exits with 1 if one is wrong\n"
    "  --filter T  only cases whose names contain all words of T, \"q4gsw 2048x8192 m=1\"\n"
    "  --quick     a short list of small shapes, weights left in the caches\n"
    "  --dispatch  chains of dispatches, submit and readback, small writes\n"
    "  --memory    read bandwidth of kernels and upload bandwidth\n"
    "  --json      one object for programs\n";

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

static int bench_device(bool dispatch, long n, long repeats, bool json) {
  sconce_device *device;
  sconce_error err = {0};
  if (cli_open_device(&device, false, &err) != SCONCE_OK) return cli_fail(&err);
  int result = measure(device, dispatch, (uint32_t)n, (uint32_t)repeats, json);
  sconce_device_close(device);
  return result;
}

int cli_bench(int argc, char **argv) {
  bool help, dispatch = false, memory = false, kernels = false;
  struct bench_llm b = {.prompts = "128", .depths = "0", .format = "md"};
  struct bench_kernels k = {0};
  const char *n_text = NULL, *r_text = NULL;
  const struct cli_option options[] = {{"--dispatch", NULL, &dispatch},
                                       {"--memory", NULL, &memory},
                                       {"--kernels", NULL, &kernels},
                                       {"--profile", NULL, &b.profile},
                                       {"--filter", &k.filter, NULL},
                                       {"--quick", NULL, &k.quick},
                                       LLM_OPTIONS(b.options),
                                       {"-p", &b.prompts, NULL},
                                       {"-d", &b.depths, NULL},
                                       {"-o", &b.format, NULL},
                                       {"-n", &n_text, NULL},
                                       {"-r", &r_text, NULL},
                                       {0}};
  int at = cli_parse(argc, argv, options, usage, &help);
  if (help) return CLI_DONE;
  bool model = b.options.model != NULL;
  long n = cli_number("-n",
                      n_text  ? n_text
                      : model ? "64"
                              : "1000",
                      model ? b.profile : 2, model ? 1000000 : 10000);
  long repeats = cli_number("-r", r_text ? r_text : dispatch ? "21" : "5", 1, 100);
  if (b.options.json) b.format = "json";
  bool known = !strcmp(b.format, "md") || !strcmp(b.format, "csv") || !strcmp(b.format, "json");
  if (at != argc || n < 0 || repeats < 0 || dispatch + memory + kernels + model != 1 || !known ||
      (!kernels && (k.filter || k.quick)) || (b.profile && !model)) {
    if (at >= 0 && n >= 0 && repeats >= 0) fputs(usage, stderr);
    return CLI_USAGE;
  }
  if (kernels) {
    k.format = b.format;
    k.repeats = repeats;
    return bench_kernels(&k);
  }
  if (!model) return bench_device(dispatch, n, repeats, b.options.json);
  b.n_decode = n;
  b.repeats = repeats;
  return bench_llm(&b);
}
