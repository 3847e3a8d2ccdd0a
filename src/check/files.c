/* Where the files of a check lie, and the model and method that it runs on. */
#include "check/check.h"

#include "base/checked.h"
#include "base/file.h"
#include "base/os_folder.h"
#include "base/path.h"
#include "run/device.h"

#include <stdio.h>

void check_run_init(struct check_run *run, sconce_device *device) {
  *run = (struct check_run){.device = device, .folder = ""};
  if (sconce_device_describe(device)->fast) run->scale = CHECK_FAST;
  arena_init(&run->arena, &device->allocator);
}

static void unload(struct check_run *run) {
  sconce_state_close(run->state);
  sconce_method_close(run->method);
  sconce_model_close(run->model);
  run->state = NULL;
  run->method = NULL;
  run->model = NULL;
}

void check_run_free(struct check_run *run) {
  unload(run);
  arena_free(&run->arena);
}

const char *check_folder_of(struct arena *arena, const char *path) {
  return arena_copy_text(arena, path, (size_t)(path_name(path) - path));
}

const char *check_join(struct arena *arena, const char *folder, struct text name) {
  size_t before = strlen(folder), size;
  if (!add_size(before, name.size, &size) || !add_size(size, 1, &size)) return NULL;
  char *path = arena_new(arena, char, size);
  if (!path) return NULL;
  memcpy(path, folder, before);
  if (name.size) memcpy(path + before, name.data, name.size);
  return path;
}

/* No way out of the folder on any system, and no NUL that hides the rest. */
static bool is_plain_name(struct text name) {
  if (!name.size || text_is(name, ".") || text_is(name, "..")) return false;
  for (size_t i = 0; i < name.size; i++)
    if (!name.data[i] || strchr("/\\:", name.data[i])) return false;
  return true;
}

sconce_status check_beside(struct check_run *run, struct json name, const char **path,
                           sconce_error *err) {
  struct text text = json_text(name, &run->arena);
  if (!text.data && json_is_string(name))
    return fail(err, SCONCE_NO_MEMORY, "no memory for a name");
  if (!is_plain_name(text))
    return fail(err, SCONCE_BAD_FILE, "'%.*s' is no name of a file in the same folder", TEXT(text));
  *path = check_join(&run->arena, run->folder, text);
  if (!*path) return fail(err, SCONCE_NO_MEMORY, "no memory for a path");
  return SCONCE_OK;
}

sconce_status check_read_json(struct check_run *run, const char *path, sconce_error *err) {
  struct span bytes;
  TRY(file_read(&run->arena, path, &bytes, err));
  struct text document = {(const char *)bytes.data, bytes.size};
  sconce_status status = json_check(document, &run->root, err);
  if (status == SCONCE_OK && !json_is_object(run->root))
    status = fail(err, SCONCE_BAD_FILE, "no JSON object");
  if (status != SCONCE_OK) error_prefix(err, "%s: ", path);
  return status;
}

/* ---- the model ------------------------------------------------------------------------------- */

enum { DATA_FILES_MAX = 64 };

struct data_files {
  struct arena *arena;
  const char *folder;
  sconce_file files[DATA_FILES_MAX];
  uint32_t n;
};

static sconce_status keep_data_file(void *user, const char *name, bool folder, sconce_error *err) {
  struct data_files *files = user;
  size_t size = strlen(name);
  if (folder || size < 4 || strcmp(name + size - 4, ".ptd") != 0) return SCONCE_OK;
  if (files->n == DATA_FILES_MAX)
    return fail(err, SCONCE_UNSUPPORTED, "more than %d .ptd files in one folder", DATA_FILES_MAX);
  const char *path = check_join(files->arena, files->folder, text_of(name));
  if (!path) return fail(err, SCONCE_NO_MEMORY, "no memory for a path");
  files->files[files->n++].path = path;
  return SCONCE_OK;
}

sconce_status check_load(struct check_run *run, const char *pte, const char *method,
                         sconce_error *err) {
  unload(run);
  struct data_files files = {.arena = &run->arena};
  files.folder = check_folder_of(&run->arena, pte);
  if (!files.folder) return fail(err, SCONCE_NO_MEMORY, "no memory for a path");
  const char *listed = *files.folder ? files.folder : ".";
  TRY(os_folder_each(listed, keep_data_file, &files, err));
  sconce_model_desc desc = {
      .program.path = pte, .data_files = files.files, .n_data_files = files.n};
  TRY(sconce_model_open(&run->model, run->device, &desc, err));
  TRY(sconce_method_open(&run->method, run->model, method, err));
  return sconce_state_open(&run->state, run->method, err);
}
