/* Finds cases and goldens below a folder, runs them in the order of their names, and reports. */
#include "check/check.h"

#include "base/os_folder.h"
#include "run/device.h"

#include <stdio.h>
#include <stdlib.h>

/* A case's folder (with its slash), or a golden's JSON. */
struct found {
  const char *path, *pte; /* pte: of a golden */
  struct found *next;
};

struct check {
  sconce_device *device;
  const sconce_check_desc *desc;
  struct arena arena; /* paths */
  struct found *found;
  size_t n_found;
  bool again;      /* the file at hand has lost the device, and is run a second time */
  uint32_t n_told; /* cases of it that were reported before */
};

/* ---- finding --------------------------------------------------------------------------------- */

/* Folders to look into, and one folder's names. */
struct name {
  const char *text;
  struct name *next;
};
struct listing {
  struct arena *arena;
  const char *folder;
  struct name **folders, *files; /* a stack: no recursion, however deep the tree is */
};

static sconce_status push(struct arena *arena, struct name **list, const char *text,
                          sconce_error *err) {
  struct name *name = arena_new(arena, struct name, 1);
  if (!name || !text) return fail(err, SCONCE_NO_MEMORY, "no memory for a name");
  *name = (struct name){text, *list};
  *list = name;
  return SCONCE_OK;
}

static sconce_status keep_name(void *user, const char *text, bool folder, sconce_error *err) {
  struct listing *l = user;
  if (!folder) return push(l->arena, &l->files, arena_copy_text(l->arena, text, strlen(text)), err);
  const char *path = check_join(l->arena, l->folder, text_of(text));
  if (path) path = check_join(l->arena, path, text_of("/"));
  return push(l->arena, l->folders, path, err);
}

static sconce_status add(struct check *c, const char *path, const char *pte, sconce_error *err) {
  struct found *found = arena_new(&c->arena, struct found, 1);
  if (!found || !path) return fail(err, SCONCE_NO_MEMORY, "no memory for a path");
  *found = (struct found){path, pte, c->found};
  c->found = found;
  c->n_found++;
  return SCONCE_OK;
}

static bool has(const struct name *names, const char *text, size_t size) {
  for (; names; names = names->next)
    if (strlen(names->text) == size && !memcmp(names->text, text, size)) return true;
  return false;
}

/* X.golden.json is one where X.pte lies beside it. */
static sconce_status add_golden(struct check *c, const struct listing *l, const char *name,
                                sconce_error *err) {
  static const char ending[] = ".golden.json";
  size_t size = strlen(name), stem = size - (sizeof ending - 1);
  if (size < sizeof ending || strcmp(name + stem, ending) != 0) return SCONCE_OK;
  const char *pte = check_join(&c->arena, "", (struct text){name, stem});
  if (pte) pte = check_join(&c->arena, pte, text_of(".pte"));
  if (!pte) return fail(err, SCONCE_NO_MEMORY, "no memory for a path");
  if (!has(l->files, pte, strlen(pte))) return SCONCE_OK;
  pte = check_join(&c->arena, l->folder, text_of(pte));
  if (!pte) return fail(err, SCONCE_NO_MEMORY, "no memory for a path");
  return add(c, check_join(&c->arena, l->folder, text_of(name)), pte, err);
}

static sconce_status search(struct check *c, const char *root, sconce_error *err) {
  struct name *folders = NULL;
  bool slash = root[strlen(root) - 1] == '/';
  TRY(push(&c->arena, &folders, check_join(&c->arena, root, text_of(slash ? "" : "/")), err));
  while (folders) {
    struct listing l = {&c->arena, folders->text, &folders, NULL};
    folders = folders->next;
    TRY(os_folder_each(l.folder, keep_name, &l, err));
    if (has(l.files, "case.json", 9)) TRY(add(c, l.folder, NULL, err));
    for (const struct name *file = l.files; file; file = file->next)
      TRY(add_golden(c, &l, file->text, err));
  }
  return SCONCE_OK;
}

static int by_path(const void *a, const void *b) {
  return strcmp((*(struct found *const *)a)->path, (*(struct found *const *)b)->path);
}

/* The order of folders on a disk is nobody's; that of their names is everybody's. */
static sconce_status sorted(struct check *c, struct found ***out, sconce_error *err) {
  struct found **all = arena_new(&c->arena, struct found *, c->n_found);
  if (!all) return fail(err, SCONCE_NO_MEMORY, "no memory for %zu cases", c->n_found);
  size_t n = 0;
  for (struct found *f = c->found; f; f = f->next) all[n++] = f;
  qsort(all, n, sizeof *all, by_path);
  *out = all;
  return SCONCE_OK;
}

/* ---- running --------------------------------------------------------------------------------- */

static bool is_wanted(const struct check *c, const char *name) {
  return !c->desc->filter || strstr(name, c->desc->filter);
}

/* What ends the whole check rather than one case. */
static bool is_fatal(sconce_status status) {
  return status == SCONCE_DEVICE_LOST || status == SCONCE_NO_MEMORY;
}

/* Reports what the run has seen since `start`, and starts it over. */
static sconce_status report(const struct check *c, struct check_run *run, const char *name,
                            uint64_t start, sconce_status status, const sconce_error *why,
                            sconce_error *err) {
  sconce_check_result result = {.name = name,
                                .calls = run->calls,
                                .worst_abs = run->worst.abs,
                                .worst_rel = run->worst.rel,
                                .seconds = (double)(os_clock_ns() - start) * 1e-9};
  if (status != SCONCE_OK) result.why = *why;
  run->calls = 0;
  run->worst = (struct check_worst){0};
  if (is_wanted(c, name)) c->desc->each(c->desc->user, &result);
  return is_fatal(status) ? fail(err, status, "%s: %s", name, why->text) : SCONCE_OK;
}

static sconce_status run_case(struct check *c, const char *folder, sconce_error *err) {
  const char *name = check_join(&c->arena, "", (struct text){folder, strlen(folder) - 1});
  if (!name) return fail(err, SCONCE_NO_MEMORY, "no memory for a path");
  if (!is_wanted(c, name)) return SCONCE_OK;
  uint64_t start = os_clock_ns();
  sconce_error why = {0};
  struct check_run run;
  check_run_init(&run, c->device);
  run.call.max_steps = c->desc->max_steps;
  run.folder = folder;
  sconce_status status = check_case(&run, &why);
  if (status == SCONCE_DEVICE_LOST && !c->again)
    *err = why;
  else
    status = report(c, &run, name, start, status, &why, err);
  check_run_free(&run);
  return status;
}

/* "X.golden.json#greedy", or its number where it has no name. */
static const char *case_name(struct check_run *run, const char *path, struct json spec,
                             uint32_t i) {
  char number[16];
  snprintf(number, sizeof number, "%u", i);
  struct text name = json_text(json_member(spec, "name"), &run->arena);
  const char *all = check_join(&run->arena, path, text_of("#"));
  return all ? check_join(&run->arena, all, name.size ? name : text_of(number)) : NULL;
}

/* A model that does not load fails every case. */
static sconce_status run_golden_cases(struct check *c, struct check_golden *g,
                                      const struct found *f, uint64_t start, sconce_error *err) {
  sconce_error load_why = {0}, why = {0};
  sconce_status loaded = check_load(g->run, f->pte, NULL, &load_why);
  struct json_walk w;
  uint32_t i = 0;
  for (json_begin(&w, g->cases); json_next(&w); i++, start = os_clock_ns()) {
    const char *name = case_name(g->run, f->path, w.value, i);
    if (!name) return fail(err, SCONCE_NO_MEMORY, "no memory for a name");
    sconce_status status = loaded;
    if (loaded == SCONCE_OK) status = check_golden_case(g, w.value, &why);
    if (status == SCONCE_DEVICE_LOST && !c->again) {
      *err = loaded == SCONCE_OK ? why : load_why;
      return status;
    }
    if (i < c->n_told) { /* before the device was lost */
      g->run->calls = 0;
      g->run->worst = (struct check_worst){0};
      continue;
    }
    c->n_told = i + 1;
    TRY(report(c, g->run, name, start, status, loaded == SCONCE_OK ? &why : &load_why, err));
  }
  return SCONCE_OK;
}

static bool any_wanted(struct check *c, struct check_golden *g, const char *path) {
  struct json_walk w;
  uint32_t i = 0;
  for (json_begin(&w, g->cases); json_next(&w); i++) {
    const char *name = case_name(g->run, path, w.value, i);
    if (!name || is_wanted(c, name)) return true;
  }
  return false;
}

/* With a filter all cases run all the same: each begins with the state that the last one left. */
static sconce_status run_golden(struct check *c, const struct found *f, sconce_error *err) {
  uint64_t start = os_clock_ns();
  sconce_error why = {0};
  struct check_run run;
  struct check_golden golden;
  check_run_init(&run, c->device);
  run.call.max_steps = c->desc->max_steps;
  run.folder = check_folder_of(&run.arena, f->path);
  sconce_status status = run.folder ? SCONCE_OK : fail(&why, SCONCE_NO_MEMORY, "no memory");
  if (status == SCONCE_OK)
    status = check_golden_open(&golden, &run, f->path, c->desc->tolerance, &why);
  if (status != SCONCE_OK)
    status = report(c, &run, f->path, start, status, &why, err);
  else if (any_wanted(c, &golden, f->path))
    status = run_golden_cases(c, &golden, f, start, err);
  check_run_free(&run);
  return status;
}

/* A device that is lost in the middle of a file is opened again, and the file run again. One that
 * is lost twice there has been told as failed, and the next file comes. */
static sconce_status run_found(struct check *c, const struct found *f, sconce_error *err) {
  sconce_status status = SCONCE_OK;
  sconce_error why;
  c->n_told = 0;
  for (int again = 0; again < 2; again++) {
    c->again = again;
    status = f->pte ? run_golden(c, f, err) : run_case(c, f->path, err);
    if (status != SCONCE_DEVICE_LOST) return status;
    if (sconce_device_recover(c->device, &why) != SCONCE_OK)
      return fail(err, status, "the device is lost, and cannot be opened again: %s", why.text);
  }
  return SCONCE_OK;
}

static sconce_status run_all(struct check *c, sconce_error *err) {
  struct found **all = NULL;
  const sconce_check_desc *desc = c->desc;
  if (desc->golden)
    TRY(add(c, desc->golden, desc->path, err));
  else if (os_folder_is(desc->path))
    TRY(search(c, desc->path, err));
  else
    return fail(err, SCONCE_BAD_ARGUMENT,
                "%s: there is no such folder, and no golden is given for it", desc->path);
  TRY(sorted(c, &all, err));
  for (size_t i = 0; i < c->n_found; i++) TRY(run_found(c, all[i], err));
  return SCONCE_OK;
}

sconce_status sconce_check(sconce_device *device, const sconce_check_desc *desc,
                           sconce_error *err) {
  if (!device || !desc || !desc->path || !*desc->path || !desc->each)
    return fail(err, SCONCE_BAD_ARGUMENT, "device, desc, its path or its each is missing");
  struct check check = {.device = device, .desc = desc};
  arena_init(&check.arena, &device->allocator);
  sconce_status status = run_all(&check, err);
  arena_free(&check.arena);
  return status;
}
