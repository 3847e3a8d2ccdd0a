/* sconce_inspect: opens whatever the file is, gathers, writes. */
#include "inspect/inspect.h"

#include <string.h>

static sconce_status open_program(struct inspect *x, const sconce_inspect_desc *desc,
                                  sconce_error *err) {
  sconce_model_desc files = {
      .program = {.path = desc->file.path, .data = desc->file.data, .size = desc->file.size},
      .data_files = desc->data_files,
      .n_data_files = desc->n_data_files};
  x->kind = INSPECT_PROGRAM;
  TRY(model_open(&x->model, &x->arena.allocator, &files, err));
  const bool plan = desc->format == SCONCE_INSPECT_PLAN; /* of one method, as a run is */
  TRY(inspect_gather(x, plan && !desc->method ? "forward" : desc->method, err));
  return inspect_weights(x, err);
}

/* A source that has all its bytes at hand. */
static sconce_status read_front(struct inspect *x, struct source *s, uint32_t head_size,
                                front_size *size_of, sconce_error *err) {
  struct front front = {0};
  bool done;
  return front_read(&front, s, &x->arena, x->file, head_size, size_of, &x->file, &done, err);
}

static sconce_status open_graph(struct inspect *x, struct source *s, sconce_error *err) {
  x->kind = INSPECT_GRAPH;
  TRY(read_front(x, s, VKGRAPH_HEAD_SIZE, vkgraph_front, err));
  TRY(inspect_gather_graph(x, err));
  return inspect_weights(x, err);
}

static sconce_status open_data(struct inspect *x, struct source *s, sconce_error *err) {
  x->kind = INSPECT_DATA;
  TRY(read_front(x, s, PTD_HEAD_SIZE, ptd_front, err));
  return ptd_open(&x->ptd, x->file, err);
}

/* The first bytes tell what it is; programs of other versions too begin with ET. */
static sconce_status open_kind(struct inspect *x, struct source *s, const sconce_inspect_desc *desc,
                               sconce_error *err) {
  struct span head;
  x->file.size = s->size;
  TRY(source_get(s, 0, s->size < PTE_HEAD_SIZE ? (size_t)s->size : PTE_HEAD_SIZE, &head, err));
  if (ptd_probe(head)) return open_data(x, s, err);
  if (vkgraph_probe(head)) return open_graph(x, s, err);
  if (head.size >= 8 && memcmp(head.data + 4, "ET", 2) == 0) return open_program(x, desc, err);
  return fail(err, SCONCE_BAD_FILE,
              "neither a program (ET12), a data file (FT01) nor a delegate's graph (VH00)");
}

static sconce_status open_file(struct inspect *x, const sconce_inspect_desc *desc,
                               sconce_error *err) {
  struct source s;
  TRY(source_open(&s, &desc->file, NULL, &x->arena.allocator, err));
  sconce_status status = open_kind(x, &s, desc, err);
  source_close(&s);
  return status;
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
  struct inspect x = {.path = file->path};
  arena_init(&x.arena, &desc->allocator);
  struct out o;
  out_init(&o, write, user);
  sconce_status status = open_file(&x, desc, err);
  if (status == SCONCE_OK) status = write_report(&x, desc, &o, err);
  if (status == SCONCE_OK)
    out_flush(&o);
  else if (file->path && strncmp(err->text, file->path, strlen(file->path)) != 0)
    error_prefix(err, "%s: ", file->path);
  for (char *p = err->text; status != SCONCE_OK && *p; p++)
    if (*p == '\n' || *p == '\t') *p = '?'; /* of a name: a sentence is one line */
  sconce_model_close(x.model);
  arena_free(&x.arena);
  return status;
}
