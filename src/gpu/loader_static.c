/* The WebGPU library that was linked, or a browser's glue: its functions are just there. */
#include "gpu/api.h"

#include <string.h>

sconce_status loader_open(struct webgpu *api, const char *name, sconce_error *err) {
  *api = (struct webgpu){0};
  flavour_linked(api);
  if (name && *name && (!api->flavour->alias || strcmp(name, api->flavour->alias) != 0))
    return fail(err, SCONCE_NO_DEVICE, "this build has %s linked in and opens no library '%s'",
                api->flavour->name, name);
#define X(function) api->function = wgpu##function;
  WEBGPU_FUNCTIONS(X)
#undef X
  return SCONCE_OK;
}
