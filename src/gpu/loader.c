/* Finds and opens the WebGPU library: the one named by the caller or SCONCE_WEBGPU, else the
 * default one beside the program, beside this library, or wherever the system looks. */
#include "gpu/api.h"

#include "base/os.h"
#include "base/os_library.h"
#include "base/path.h"

#include <stdio.h>
#include <string.h>

/* Data and function pointers have one representation wherever dlsym exists. */
static bool set_function(void *slot, void *library, const char *name) {
  void *symbol = os_library_symbol(library, name);
  memcpy(slot, &symbol, sizeof symbol);
  return symbol;
}

static void *open_in(bool (*folder_of)(char *, size_t), const char *below, const char *file) {
  char folder[1024], path[1200];
  if (!folder_of(folder, sizeof folder)) return NULL;
  int n = snprintf(path, sizeof path, "%s%s%s", folder, below, file);
  return n > 0 && (size_t)n < sizeof path ? os_library_open(path) : NULL;
}

static void *open_flavour(const struct flavour *flavour) {
  void *library = open_in(os_program_folder, "", flavour->file);
  if (!library) library = open_in(os_module_folder, "", flavour->file);
  if (!library) library = open_in(os_module_folder, "sconce/", flavour->file); /* installed */
  if (!library) library = open_in(os_program_folder, SCONCE_LIBS_FROM_BIN, flavour->file);
  if (!library) library = open_in(os_program_folder, "../lib/sconce/", flavour->file);
  if (!library) library = open_in(os_program_folder, "../lib/", flavour->file);
  if (!library) library = os_library_open(flavour->file);
  return library;
}

static sconce_status open_library(const char *name, void **out, sconce_error *err) {
  if (name && path_name(name) != name) {
    *out = os_library_open(name);
    if (*out) return SCONCE_OK;
    return fail(err, SCONCE_NO_DEVICE, "cannot open the WebGPU library: %s", os_library_error());
  }
  for (const struct flavour *const *f = flavours; *f; f++) {
    if (!(*f)->file || (name && *name && strcmp(name, (*f)->alias) != 0)) continue;
    *out = open_flavour(*f);
    if (*out) return SCONCE_OK;
    return fail(err, SCONCE_NO_DEVICE,
                "%s is neither beside the program, in ../lib or ../lib/sconce of it, nor on the "
                "system; SCONCE_WEBGPU=/path/to/it names it: %s",
                (*f)->file, os_library_error());
  }
  *out = os_library_open(name);
  if (*out) return SCONCE_OK;
  return fail(err, SCONCE_NO_DEVICE,
              "the WebGPU library '%s' is neither wgpu nor dawn, and cannot be opened", name);
}

static const struct flavour *recognise(void *library) {
  for (const struct flavour *const *f = flavours; *f; f++)
    if (os_library_symbol(library, (*f)->own[0]) &&
        !((*f)->never && os_library_symbol(library, (*f)->never)))
      return *f;
  return NULL;
}

static sconce_status fill(struct webgpu *api, void *library, sconce_error *err) {
  static const char *const names[] = {
#define X(function) "wgpu" #function,
      WEBGPU_FUNCTIONS(X)
#undef X
  };
  void *slots[] = {
#define X(function) &api->function,
      WEBGPU_FUNCTIONS(X)
#undef X
  };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (!set_function(slots[i], library, names[i]))
      return fail(err, SCONCE_NO_DEVICE, "the WebGPU library has no function %s", names[i]);
  for (size_t i = 0; i < OWN_MAX && api->flavour->own[i]; i++)
    set_function(&api->own[i], library, api->flavour->own[i]);
  return SCONCE_OK;
}

/* The library is never closed: wgpu-native keeps threads and thread-local destructors of its own,
 * and unloading code under them crashes at exit. */
sconce_status loader_open(struct webgpu *api, const char *name, sconce_error *err) {
  *api = (struct webgpu){0};
  void *library;
  char room[OS_ENV_MAX];
  if (!name || !*name) name = os_env("SCONCE_WEBGPU", room, sizeof room);
  if (name && strcmp(name, "best") == 0) name = NULL; /* open.c compares */
  TRY(open_library(name, &library, err));
  api->flavour = recognise(library);
  if (!api->flavour)
    return fail(err, SCONCE_NO_DEVICE, "'%s' is neither wgpu-native nor Dawn", name ? name : "");
  return fill(api, library, err);
}
