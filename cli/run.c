/* sconce run: one method, inputs from files or made up, outputs printed, saved, timed. */
#include "load.h"
#include "sconce_dev.h"
#include "tensor.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct options {
  const char *method, *output_dir, *repeat, *profile;
  bool stats;
  struct cli_list words, data, inputs;
  struct cli_device device;
};

struct job {
  struct cli_load load;
  sconce_state *state;
  const sconce_method_info *info;
};

/* ---- inputs ---------------------------------------------------------------------------------- */

static bool set_input(struct job *job, uint32_t i, const char *word) {
  sconce_tensor tensor;
  void *data;
  sconce_error err = {0};
  if (i >= job->info->n_inputs) {
    fprintf(stderr, "sconce: --input %s: the method has %u inputs\n", word, job->info->n_inputs);
    return false;
  }
  const sconce_tensor *bound = &job->info->inputs[i];
  if (!(word ? input_make(word, bound, &tensor, &data) : input_zeros(bound, &tensor, &data)))
    return false;
  sconce_status status = sconce_state_set_input(job->state, i, &tensor, &err);
  free(data);
  /* A scalar that was traced keeps its value, and refuses a zero that nobody asked for. */
  if (status == SCONCE_OK || (!word && bound->rank == 0)) return true;
  cli_fail(&err);
  return false;
}

static bool set_inputs(struct job *job, const struct cli_list *words) {
  const uint32_t given = (uint32_t)words->n;
  for (uint32_t i = 0; i < job->info->n_inputs || i < given; i++)
    if (!set_input(job, i, i < given ? words->items[i] : NULL)) return false;
  return true;
}

/* ---- outputs --------------------------------------------------------------------------------- */

static void print_values(const sconce_tensor *t) {
  enum { SHOWN = 8 };
  double low = INFINITY, high = -INFINITY, sum = 0;
  uint64_t n = cli_numel(t), n_finite = 0;
  for (uint64_t i = 0; i < n; i++) {
    double v = cli_element(t, i);
    if (!isfinite(v)) continue;
    if (v < low) low = v;
    if (v > high) high = v;
    sum += v;
    n_finite++;
  }
  if (n_finite) printf("  min %.6g  max %.6g  mean %.6g", low, high, sum / (double)n_finite);
  if (n_finite < n) printf("  %llu not finite", (unsigned long long)(n - n_finite));
  fputs(n ? "\n " : "\n", stdout);
  for (uint64_t i = 0; i < n && i < SHOWN; i++) printf(" %.6g", cli_element(t, i));
  if (n) puts(n > SHOWN ? " …" : "");
}

static bool save(const char *folder, uint32_t i, const sconce_tensor *t) {
  char path[4096];
  int n = snprintf(path, sizeof path, "%s/output%u.npy", folder, i);
  if (n > 0 && (size_t)n < sizeof path) return npy_write(path, t);
  fputs("sconce: --output-dir is too long\n", stderr);
  return false;
}

static bool show_outputs(struct job *job, const char *folder) {
  if (folder && !console_make_folder(folder)) {
    fprintf(stderr, "sconce: %s: %s\n", folder, strerror(errno));
    return false;
  }
  for (uint32_t i = 0; i < job->info->n_outputs; i++) {
    sconce_tensor t;
    sconce_error err = {0};
    char dims[128];
    if (sconce_state_output(job->state, i, &t, &err) != SCONCE_OK) return !cli_fail(&err);
    printf("output %u: %s %s", i, sconce_dtype_name(t.dtype), cli_dims(dims, &t));
    print_values(&t);
    if (folder && !save(folder, i, &t)) return false;
  }
  return true;
}

/* ---- time and memory ------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* The first run, which may compile kernels, is told apart from the others. */
static bool run_timed(sconce_state *state, long repeats) {
  sconce_error err = {0};
  double *ms = calloc((size_t)repeats + 1, sizeof *ms);
  if (!ms) {
    fputs("sconce: out of memory\n", stderr);
    return false;
  }
  sconce_status status = SCONCE_OK;
  for (long i = 0; i <= repeats && status == SCONCE_OK; i++) {
    double start = console_seconds();
    status = sconce_state_run(state, NULL, &err);
    ms[i] = (console_seconds() - start) * 1e3;
  }
  if (status == SCONCE_OK && repeats > 0) {
    double first = ms[0], *rest = ms + 1;
    qsort(rest, (size_t)repeats, sizeof *rest, by_value);
    printf("first run %.3f ms; %ld runs: median %.3f ms, min %.3f ms\n", first, repeats,
           rest[repeats / 2], rest[0]);
  }
  free(ms);
  if (status != SCONCE_OK) cli_fail(&err);
  return status == SCONCE_OK;
}

static void print_stats(const struct job *job) {
  sconce_stats s;
  char a[32], b[32], c[32], d[32], e[32], f[32];
  sconce_state_stats(job->state, &s);
  sconce_load_times load;
  sconce_method_load_times(job->load.method, &load);
  printf("load: %s to the device in %.1f ms (%.2f GB/s), kernels ready %.1f ms later\n",
         cli_bytes(a, load.uploaded), (double)load.upload_ns * 1e-6,
         load.upload_ns ? (double)load.uploaded / (double)load.upload_ns : 0,
         (double)load.compile_ns * 1e-6);
  printf("GPU memory: %s weights, %s state, %s transient, %s staging, %s parameters; host: %s\n",
         cli_bytes(a, s.gpu_weights), cli_bytes(b, s.gpu_state), cli_bytes(c, s.gpu_transient),
         cli_bytes(d, s.gpu_staging), cli_bytes(e, s.gpu_params), cli_bytes(f, s.host));
  printf(
      "%u nodes, %u dispatches, %u nodes planned in the last call, %llu parameter slots written\n",
      s.nodes, s.dispatches, s.nodes_planned, (unsigned long long)s.params_written);
  printf("%u buffers, %u bind groups, %u kernels alive; %llu buffers and groups made\n",
         s.gpu_buffers, s.gpu_groups, s.gpu_kernels, (unsigned long long)s.gpu_objects_made);
}

/* ---- profile --------------------------------------------------------------------------------- */

struct trace {
  FILE *file;
  unsigned events;
};

/* A complete event of the trace format: times in microseconds. */
static void write_event(void *user, const char *node, const char *kernel, uint64_t from,
                        uint64_t to) {
  struct trace *trace = user;
  fputs(trace->events++ ? ",\n{\"name\": " : "[\n{\"name\": ", trace->file);
  cli_json_text(trace->file, node);
  fputs(", \"cat\": \"kernel\", \"args\": {\"kernel\": ", trace->file);
  cli_json_text(trace->file, kernel);
  fprintf(trace->file, "}, \"ph\": \"X\", \"pid\": 1, \"tid\": 1, \"ts\": %.3f, \"dur\": %.3f}",
          (double)from * 1e-3, (double)(to - from) * 1e-3);
}

static bool profile(sconce_state *state, const char *path) {
  sconce_error err = {0};
  struct trace trace = {.file = console_open(path, "w")};
  if (!trace.file) {
    fprintf(stderr, "sconce: %s: %s\n", path, strerror(errno));
    return false;
  }
  sconce_status status = sconce_state_profile(state, write_event, &trace, &err);
  fputs(trace.events ? "\n]\n" : "[]\n", trace.file);
  bool written = fclose(trace.file) == 0;
  if (!written) fprintf(stderr, "sconce: cannot write %s\n", path);
  if (status != SCONCE_OK) cli_fail(&err);
  return written && status == SCONCE_OK;
}

/* ---- the verb -------------------------------------------------------------------------------- */

static int run_job(struct job *job, const struct options *o, long repeats) {
  bool ok = set_inputs(job, &o->inputs) && run_timed(job->state, repeats) &&
            show_outputs(job, o->output_dir);
  if (ok && o->stats) print_stats(job);
  if (ok && o->profile) ok = profile(job->state, o->profile);
  return ok ? CLI_DONE : CLI_FAILED;
}

static int run(const struct options *o, long repeats) {
  struct job job = {0};
  sconce_error err = {0};
  const struct cli_load_desc desc = {
      .path = o->words.items[0], .data = &o->data, .method = o->method, .device = &o->device};
  sconce_status status = cli_load(&job.load, &desc, &err);
  if (status == SCONCE_OK) status = sconce_state_open(&job.state, job.load.method, &err);
  if (status == SCONCE_OK) job.info = sconce_method_describe(job.load.method);
  int result = status == SCONCE_OK ? run_job(&job, o, repeats) : cli_fail(&err);
  sconce_state_close(job.state);
  cli_unload(&job.load);
  return result;
}

static int check_and_run(const struct cli_verb *verb, const struct options *o) {
  long repeats = cli_number("--repeat", o->repeat, 0, 1000000);
  if (repeats < 0) return CLI_USAGE;
  if (o->words.n == 0) return cli_usage(verb, "no model to run");
  if (o->words.n > 1) return cli_usage(verb, "unexpected '%s': one model", o->words.items[1]);
  return cli_check_program(o->words.items[0]) == CLI_DONE ? run(o, repeats) : CLI_FAILED;
}

int cli_run(int argc, char **argv) {
  struct options o = {.repeat = "0"};
  const struct cli_option options[] = {
      {"", .list = &o.words},
      {"--method", "NAME", "which of its methods (default: forward)", .value = &o.method},
      {"--data", "FILE", "a .ptd file with the model's constants; may be repeated",
       .list = &o.data},
      {"--input", "WORD",
       "the method's inputs one after another: a .npy file, or made up in the dtype of the input: "
       "zeros:1x3x224x224, ones:…, rand:… (the same numbers in [0, 1) each time; integers 0 or 1), "
       "ints:1,2,3 (along the last dim); inputs that are not given are zeros of the largest dims",
       .list = &o.inputs},
      {"--output-dir", "DIR", "writes output0.npy, output1.npy, … there", .value = &o.output_dir},
      {"--repeat", "N", "runs N times more and prints the median and the shortest time",
       .value = &o.repeat},
      {"--stats", NULL, "memory and counts", .flag = &o.stats},
      {"--profile", "FILE", "the time of each kernel as a Chrome trace (needs timestamps)",
       .value = &o.profile},
      CLI_DEVICE_OPTIONS(o.device),
      {0}};
  const struct cli_verb verb = {
      "run", "MODEL.pte [--input WORD]… [OPTION]…",
      "Runs a method and prints what it gives: dtype, dims, range, the first values.", options};
  int result;
  if (cli_parse(argc, argv, &verb, &result)) result = check_and_run(&verb, &o);
  free(o.words.items);
  free(o.data.items);
  free(o.inputs.items);
  return result;
}
