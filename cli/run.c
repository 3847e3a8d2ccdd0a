/* sconce run: one method, inputs from files or made up, outputs printed, saved, timed. */
#include "load.h"
#include "outputs.h"
#include "picture.h"
#include "sconce_dev.h"
#include "tensor.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct options {
  const char *method, *output_dir, *repeat, *profile, *top, *labels, *max_steps;
  bool stats, list;
  struct cli_list words, data, inputs, images;
  struct picture_options picture;
  struct cli_device device;
};

struct job {
  struct cli_load load;
  sconce_state *state;
  const sconce_method_info *info;
  bool *given; /* (n_inputs) */
};

/* ---- inputs ---------------------------------------------------------------------------------- */

/* Upper bounds where it is dynamic. */
static void print_bound(const char *what, uint32_t i, const sconce_tensor *t, bool dynamic) {
  char dims[128];
  printf("%s %u: %s %s%s\n", what, i, sconce_dtype_name(t->dtype), cli_dims(dims, t),
         dynamic ? " or smaller" : "");
}

static void print_bounds(const sconce_method_info *info) {
  const bool *dynamic = info->dynamic;
  for (uint32_t i = 0; i < info->n_inputs; i++)
    print_bound("input", i, &info->inputs[i], *dynamic++);
  for (uint32_t i = 0; i < info->n_outputs; i++)
    print_bound("output", i, &info->outputs[i], *dynamic++);
}

/* "1=x.npy" is about input 1; without a number the words are about one input after another. Where
 * there is one input any name will do, "x=cat.jpg"; a program has none for its inputs. */
static bool target(const char **word, const char *option, uint32_t n_inputs, uint32_t *next) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
  const size_t n = strspn(*word, letters);
  if (n == 0 || (*word)[n] != '=' || console_can_read(*word)) return true;
  const char *name = *word;
  if (n <= 6 && strspn(name, "0123456789") == n) {
    *next = (uint32_t)strtoul(name, NULL, 10);
  } else if (n_inputs != 1) {
    fprintf(stderr, "sconce: %s %s: inputs have numbers here: 0=%s\n", option, name, name + n + 1);
    return false;
  }
  *word += n + 1;
  return true;
}

/* A word of --input, or the file of --image. */
static int set_input(struct job *job, uint32_t i, const char *word,
                     const struct picture_options *picture) {
  sconce_tensor tensor;
  void *data;
  sconce_error err = {0};
  if (i >= job->info->n_inputs) {
    fprintf(stderr, "sconce: %s: input %u, the method has %u input%s\n", word, i,
            job->info->n_inputs, CLI_S(job->info->n_inputs));
    return CLI_USAGE;
  }
  const sconce_tensor *bound = &job->info->inputs[i];
  const int result = picture ? picture_make(word, picture, bound, &tensor, &data)
                             : input_make(word, bound, &tensor, &data);
  if (result != CLI_DONE) return result;
  sconce_status status = sconce_state_set_input(job->state, i, &tensor, &err);
  char dims[128];
  if (status == SCONCE_OK)
    printf("input %u: %s %s from %s\n", i, sconce_dtype_name(tensor.dtype), cli_dims(dims, &tensor),
           word);
  free(data);
  job->given[i] = true;
  return status == SCONCE_OK ? CLI_DONE : cli_fail(&err);
}

static int set_given(struct job *job, const struct cli_list *words,
                     const struct picture_options *picture) {
  uint32_t next = 0;
  int result = CLI_DONE;
  for (int i = 0; i < words->n && result == CLI_DONE; i++, next++) {
    const char *word = words->items[i], *option = picture ? "--image" : "--input";
    if (!target(&word, option, job->info->n_inputs, &next)) return CLI_USAGE;
    result = set_input(job, next, word, picture);
  }
  return result;
}

/* Zeros of the largest dims. A scalar that was traced keeps its value, and refuses a zero. */
static bool set_rest(struct job *job) {
  for (uint32_t i = 0; i < job->info->n_inputs; i++) {
    sconce_tensor tensor;
    void *data;
    sconce_error err = {0};
    if (job->given[i]) continue;
    if (!input_filled("zeros", &job->info->inputs[i], &tensor, &data)) return false;
    sconce_status status = sconce_state_set_input(job->state, i, &tensor, &err);
    free(data);
    if (status != SCONCE_OK && tensor.rank) return !cli_fail(&err);
  }
  return true;
}

static int set_inputs(struct job *job, const struct options *o) {
  int result = set_given(job, &o->images, &o->picture);
  if (result == CLI_DONE) result = set_given(job, &o->inputs, NULL);
  if (result == CLI_DONE && !set_rest(job)) result = CLI_FAILED;
  return result;
}

/* ---- time and memory ------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* The first run, which may compile kernels, is told apart from the others. */
static bool run_timed(sconce_state *state, const sconce_call *call, long repeats) {
  sconce_error err = {0};
  double *ms = calloc((size_t)repeats + 1, sizeof *ms);
  if (!ms) {
    fputs("sconce: out of memory\n", stderr);
    return false;
  }
  sconce_status status = SCONCE_OK;
  for (long i = 0; i <= repeats && status == SCONCE_OK; i++) {
    double start = console_seconds();
    status = sconce_state_run(state, call, &err);
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

/* Options that are numbers. */
struct counts {
  long repeats, top;
  sconce_call call;
};

static int run_job(struct job *job, const struct options *o, const struct counts *n) {
  struct outputs_desc outputs = {
      .folder = o->output_dir, .labels_path = o->labels, .top = (uint32_t)n->top};
  if (o->list) {
    print_bounds(job->info);
    return CLI_DONE;
  }
  job->given = calloc((size_t)job->info->n_inputs + 1, sizeof *job->given);
  int result = job->given ? set_inputs(job, o) : CLI_FAILED;
  if (result != CLI_DONE) return result;
  bool ok = run_timed(job->state, &n->call, n->repeats) &&
            outputs_show(job->state, job->info->n_outputs, &outputs);
  if (ok && o->stats) print_stats(job);
  if (ok && o->profile) ok = profile(job->state, o->profile);
  return ok ? CLI_DONE : CLI_FAILED;
}

static int run(const struct options *o, const struct counts *n) {
  struct job job = {0};
  sconce_error err = {0};
  const struct cli_load_desc desc = {
      .path = o->words.items[0], .data = &o->data, .method = o->method, .device = &o->device};
  sconce_status status = cli_load(&job.load, &desc, &err);
  if (status == SCONCE_OK) status = sconce_state_open(&job.state, job.load.method, &err);
  if (status == SCONCE_OK) job.info = sconce_method_describe(job.load.method);
  int result = status == SCONCE_OK ? run_job(&job, o, n) : cli_fail(&err);
  sconce_state_close(job.state);
  cli_unload(&job.load);
  free(job.given);
  return result;
}

static int check_and_run(const struct cli_verb *verb, const struct options *o) {
  long repeats = cli_number("--repeat", o->repeat, 0, 1000000);
  long top = cli_number("--top", o->top, 0, 1000);
  long steps = o->max_steps ? cli_number("--max-steps", o->max_steps, 1, CLI_MAX_STEPS) : 0;
  if (repeats < 0 || top < 0 || steps < 0) return CLI_USAGE;
  if (o->labels && !top) top = 5;
  const struct counts n = {repeats, top, {.max_steps = (uint64_t)steps}};
  if (!o->images.n && (o->picture.mean || o->picture.std || o->picture.resize))
    return cli_usage(verb, "--mean, --std and --resize belong to --image");
  if (o->words.n == 0) return cli_usage(verb, "no model to run");
  if (o->words.n > 1) return cli_usage(verb, "unexpected '%s': one model", o->words.items[1]);
  return cli_check_program(o->words.items[0]) == CLI_DONE ? run(o, &n) : CLI_FAILED;
}

int cli_run(int argc, char **argv) {
  struct options o = {.repeat = "0", .top = "0"};
  const struct cli_option options[] = {
      {"", .list = &o.words},
      {"-m, --model", "FILE", "the model, as a plain word", .list = &o.words},
      {"--method", "NAME", "which of its methods (default: forward)", .value = &o.method},
      {"--data", "FILE", "a .ptd file with the model's constants; may be repeated",
       .list = &o.data},
      {"--list", NULL, "say what its inputs and outputs are, and run nothing", .flag = &o.list},
      {"--input", "[N=]WORD",
       "input N, or the next one (where there is one alone, any name will do): a .npy file; a .bin "
       "file of bare elements; numbers, 1,2.5,3 "
       "(along "
       "the last dim); or made up: zeros:1x3x224x224, ones:…, range:… (0, 1, 2, …), rand:… (the "
       "same "
       "numbers in [0, 1) each time; integers 0 or 1), without dims in the largest ones. Inputs "
       "that "
       "are not given are zeros of the largest dims",
       .list = &o.inputs},
      {"--image", "[N=]FILE",
       "input N, or the next one, as above, from a JPEG or PNG file: the shorter side is scaled, "
       "the middle "
       "cut out, bytes become 0 to 1",
       .list = &o.images},
      {"--resize", "PIXELS", "of an image's shorter side (default: as few as fill the input)",
       .value = &o.picture.resize},
      {"--mean", "LIST", "is subtracted from an image, 0.485,0.456,0.406",
       .value = &o.picture.mean},
      {"--std", "LIST", "then it is divided by this, 0.229,0.224,0.225", .value = &o.picture.std},
      {"--top", "K", "show the K largest values of each output", .value = &o.top},
      {"--labels", "FILE", "their names, a line each", .value = &o.labels},
      {"--output-dir", "DIR", "writes output0.npy, output1.npy, … there", .value = &o.output_dir},
      {"--repeat", "N", "runs N times more and prints the median and the shortest time",
       .value = &o.repeat},
      {"--max-steps", "N", CLI_MAX_STEPS_HELP, .value = &o.max_steps},
      {"--stats", NULL, "memory and counts", .flag = &o.stats},
      {"--profile", "FILE", "the time of each kernel as a Chrome trace (needs timestamps)",
       .value = &o.profile},
      CLI_DEVICE_OPTIONS(o.device),
      {0}};
  const struct cli_verb verb = {"run", "MODEL.pte [--input WORD]… [--image FILE]… [OPTION]…",
                                "Runs a method and prints what it gives: dtype, dims, range, the "
                                "first values, or the largest "
                                "with their names.",
                                options};
  int result;
  if (cli_parse(argc, argv, &verb, &result)) result = check_and_run(&verb, &o);
  free(o.words.items);
  free(o.data.items);
  free(o.inputs.items);
  free(o.images.items);
  return result;
}
