/* sconce_inspect: opens whatever the file is, gathers, writes. */
#include "inspect/inspect.h"

static sconce_status open_program(struct inspect *x, const sconce_inspect_desc *desc,
                                  sconce_error *err) {
  sconce_model_desc files = {.program = {.data = x->file.data, .size = x->file.size},
                             .data_files = desc->data_files,
                             .n_data_files = desc->n_data_files};
  x->kind = INSPECT_PROGRAM;
  TRY(model_open(&x->model, &x->arena.allocator, &files, err));
  const bool plan = desc->format == SCONCE_INSPECT_PLAN; /* of one method, as a run is */
  TRY(inspect_gather(x, plan && !desc->method ? "forward" : desc->method, err));
  return inspect_weights(x, err);
}

static sconce_status open_graph(struct inspect *x, sconce_error *err) {
  x->kind = INSPECT_GRAPH;
  TRY(inspect_gather_graph(x, err));
  return inspect_weights(x, err);
}

static sconce_status open_data(struct inspect *x, sconce_error *err) {
  x->kind = INSPECT_DATA;
  return ptd_open(&x->ptd, extent_of(x->file), err);
}

/* The first bytes tell what it is; programs of other versions too begin with ET. */
static sconce_status open_file(struct inspect *x, const sconce_inspect_desc *desc,
                               sconce_error *err) {
  if (ptd_probe(x->file)) return open_data(x, err);
  if (vkgraph_probe(x->file)) return open_graph(x, err);
  if (x->file.size >= 8 && memcmp(x->file.data + 4, "ET", 2) == 0)
    return open_program(x, desc, err);
  return fail(err, SCONCE_BAD_FILE,
              "neither a program (ET12), a data file (FT01) nor a delegate's graph (VH00)");
}

static sconce_status write_report(struct inspect *x, const sconce_inspect_desc *desc, struct out *o,
                                  sconce_error *err) {
  switch (desc->format) {
  case SCONCE_INSPECT_TEXT:
    inspect_text(x, o);
    return SCONCE_OK;
  case SCONCE_INSPECT_GRAPH:
    return inspect_graph(x, o, err);
  case SCONCE_INSPECT_DOT:
    return inspect_dot(x, o, err);
  case SCONCE_INSPECT_JSON:
    inspect_json(x, o);
    return SCONCE_OK;
  case SCONCE_INSPECT_PLAN:
    return inspect_plan(x, desc, o, err);
  }
  return fail(err, SCONCE_BAD_ARGUMENT, "format %d is unknown", (int)desc->format);
}

sconce_status sconce_inspect(const sconce_inspect_desc *desc,
                             void (*write)(void *user, const char *text, size_t size), void *user,
                             sconce_error *err) {
  if (!desc || !write) return fail(err, SCONCE_BAD_ARGUMENT, "desc or write is NULL");
  const sconce_file *file = &desc->file;
  if (!file->path && !file->data) return fail(err, SCONCE_BAD_ARGUMENT, "no path and no data");
  sconce_error local;
  if (!err) err = &local;
  struct os_map map = {0};
  if (file->path) TRY(os_map_open(&map, file->path, err));
  struct inspect x = {.path = file->path,
                      .file =
                          file->path ? map.bytes : (struct span){file->data, (size_t)file->size}};
  arena_init(&x.arena, &desc->allocator);
  struct out o;
  out_init(&o, write, user);
  sconce_status status = open_file(&x, desc, err);
  if (status == SCONCE_OK) status = write_report(&x, desc, &o, err);
  if (status == SCONCE_OK)
    out_flush(&o);
  else if (file->path)
    error_prefix(err, "%s: ", file->path);
  for (char *p = err->text; status != SCONCE_OK && *p; p++)
    if (*p == '\n' || *p == '\t') *p = '?'; /* of a name: a sentence is one line */
  sconce_model_close(x.model);
  arena_free(&x.arena);
  os_map_close(&map);
  return status;
}
