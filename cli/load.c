/* See load.h. */
#include "load.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What a load that is quick need not show. */
#define PATIENCE_S 0.5
enum { SHOWN_EVERY = 200 };

struct meter {
  const char *path;
  bool on, shown;
  double start;
  unsigned polls;
};

static void show(struct meter *m, const sconce_progress *p) {
  if (!m->on || console_seconds() - m->start < PATIENCE_S || m->polls++ % SHOWN_EVERY) return;
  char done[32], all[32], text[256];
  snprintf(text, sizeof text, "loading %.100s: %s of %s, %u of %u kernels",
           console_file_name(m->path), cli_bytes(done, p->bytes_done), cli_bytes(all, p->bytes_all),
           p->kernels_done, p->kernels_all);
  cli_status(text);
  m->shown = true;
}

static sconce_status open_method(struct cli_load *l, const char *name, struct meter *meter,
                                 sconce_error *err) {
  sconce_progress p = {0};
  sconce_status status = sconce_method_begin(&l->method, l->model, name, err);
  while (status == SCONCE_OK && !p.done) {
    const uint64_t before = p.bytes_done;
    status = sconce_method_poll(l->method, &p, err);
    if (status == SCONCE_OK) show(meter, &p);
    if (p.bytes_done == before) console_nap();
  }
  if (meter->shown) cli_status("");
  return status;
}

/* What people have in their folders of models, by the first bytes. */
static const struct {
  size_t at;
  const char *bytes, *what;
} kinds[] = {
    {4, "ET", NULL}, /* the library says more about versions */
    {0, "GGUF", "a GGUF file; how to make a .pte of a Llama: " CLI_PAGE("export.md")},
    {4, "FT01", "a .ptd data file: give it with --data, beside its .pte"},
    {4, "VH", "a delegate's graph, a part of a .pte; `sconce inspect` shows it"},
    {0, "PK\003\004",
     "a zip file, as PyTorch saves models; how to export one: " CLI_PAGE("export.md")},
    {8, "{\"", "a safetensors file; how to export its model: " CLI_PAGE("export.md")},
};

int cli_check_program(const char *path) {
  char start[16] = {0};
  const char *refused;
  FILE *file = console_open_regular(path, &refused);
  if (!file) {
    fprintf(stderr, "sconce: cannot read the model %s: %s\n", path, refused);
    return CLI_FAILED;
  }
  errno = 0;
  const size_t n = fread(start, 1, sizeof start, file);
  const int why = errno;
  fclose(file);
  const char *what = "no ExecuTorch program (.pte)";
  for (size_t i = 0; n && i < sizeof kinds / sizeof *kinds; i++)
    if (!memcmp(start + kinds[i].at, kinds[i].bytes, strlen(kinds[i].bytes))) {
      what = kinds[i].what;
      break;
    }
  if (!what) return CLI_DONE;
  if (why)
    fprintf(stderr, "sconce: cannot read the model %s: %s\n", path, strerror(why));
  else
    fprintf(stderr, "sconce: %s is %s\n", path, what);
  return CLI_FAILED;
}

static sconce_status open_model(struct cli_load *l, const struct cli_load_desc *desc,
                                sconce_error *err) {
  const int n = desc->data ? desc->data->n : 0;
  sconce_file *files = calloc((size_t)n + 1, sizeof *files);
  if (!files) {
    *err = (sconce_error){SCONCE_NO_MEMORY, "no memory for a list of files"};
    return SCONCE_NO_MEMORY;
  }
  for (int i = 0; i < n; i++) files[i].path = desc->data->items[i];
  sconce_model_desc model = {
      .program.path = desc->path, .data_files = files, .n_data_files = (uint32_t)n};
  sconce_status status = sconce_model_open(&l->model, l->device, &model, err);
  free(files);
  return status;
}

/* The library says what is wrong in a file; which one it was is known here. */
static void name_file(const char *path, sconce_error *err) {
  char text[sizeof err->text];
  if (strstr(err->text, console_file_name(path))) return;
  snprintf(text, sizeof text, "%.400s: %.600s", path, err->text);
  memcpy(err->text, text, sizeof text);
}

/* The library asks whether a .ptd is missing; here is how to give one. */
static void add_hint(const struct cli_load_desc *desc, sconce_error *err) {
  const size_t n = strlen(err->text);
  if (desc->data && strstr(err->text, ".ptd file missing"))
    snprintf(err->text + n, sizeof err->text - n, " Give it with --data FILE.ptd");
}

sconce_status cli_load(struct cli_load *l, const struct cli_load_desc *desc, sconce_error *err) {
  *l = (struct cli_load){0};
  struct meter meter = {.path = desc->path,
                        .on = !desc->quiet && console_is_terminal(stderr),
                        .start = console_seconds()};
  sconce_status status = cli_open_device(&l->device, desc->device, err);
  const bool open = status == SCONCE_OK;
  if (status == SCONCE_OK) status = open_model(l, desc, err);
  if (status == SCONCE_OK) status = open_method(l, desc->method, &meter, err);
  if (status == SCONCE_DEVICE_LOST && sconce_device_recover(l->device, err) == SCONCE_OK) {
    sconce_method_close(l->method);
    l->method = NULL;
    status = open_method(l, desc->method, &meter, err);
  }
  if (open && status != SCONCE_OK) {
    name_file(desc->path, err);
    add_hint(desc, err);
  }
  return status;
}

void cli_unload(struct cli_load *l) {
  sconce_method_close(l->method);
  sconce_model_close(l->model);
  sconce_device_close(l->device);
}
