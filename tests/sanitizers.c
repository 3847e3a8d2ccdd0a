/* Defaults for the sanitizers, so that a run needs no environment. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);

/* Tests make allocations fail on purpose, in drivers too. */
const char *__asan_default_options(void) { return "allocator_may_return_null=1"; }

/* Drivers and WebGPU libraries keep a few blocks for the life of the process. */
const char *__lsan_default_suppressions(void) {
  return "leak:libvulkan\nleak:libvk_swiftshader\nleak:libwgpu_native\nleak:libwebgpu_dawn\n"
         "leak:libLLVM\n";
}
