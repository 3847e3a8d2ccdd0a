/* Defaults for the sanitizers, so that a run needs no environment. */
#define EXPORT __attribute__((visibility("default")))
EXPORT const char *__asan_default_options(void);
EXPORT const char *__lsan_default_suppressions(void);
EXPORT const char *__tsan_default_suppressions(void);
EXPORT int dlclose(void *library);

/* Tests make allocations fail on purpose, in drivers too. */
const char *__asan_default_options(void) { return "allocator_may_return_null=1"; }

/* Drivers and WebGPU libraries keep a few blocks for the life of the process. */
const char *__lsan_default_suppressions(void) {
  return "leak:libvulkan\nleak:libvk_swiftshader\nleak:libwgpu_native\nleak:libwebgpu_dawn\n"
         "leak:libLLVM\nleak:libxcb\nleak:libX11\n";
}

/* They are not instrumented: what orders their own copies and allocations is not seen. What they
 * call back is ours, and seen. */
const char *__tsan_default_suppressions(void) {
  return "called_from_lib:libwgpu_native.so\ncalled_from_lib:libwebgpu_dawn.so\n"
         "called_from_lib:libvulkan.so.1\ncalled_from_lib:libvulkan_lvp.so\ncalled_from_lib:libvk_"
         "swiftshader.so\n"
         "called_from_lib:libLLVM\nmutex:__register_frame_info_bases\n"
         "mutex:__call_tls_dtors\n";
}

/* A suppression needs the module's name, and a module that was unloaded has none. */
int dlclose(void *library) {
  (void)library;
  return 0;
}
