/* What the library says about itself. Nothing in src/base is exported, since libsconce_write has it
 * too. */
#include "sconce.h"

const char *sconce_version(void) { return SCONCE_VERSION; }
uint32_t sconce_version_number(void) {
  return 10000 * SCONCE_VERSION_MAJOR + 100 * SCONCE_VERSION_MINOR + SCONCE_VERSION_PATCH;
}

const char *sconce_status_name(sconce_status status) {
  static const char *const names[] = {
      [SCONCE_OK] = "ok",
      [SCONCE_BAD_ARGUMENT] = "bad argument",
      [SCONCE_BAD_FILE] = "bad file",
      [SCONCE_BAD_GRAPH] = "bad graph",
      [SCONCE_UNSUPPORTED] = "unsupported",
      [SCONCE_NO_MEMORY] = "out of memory",
      [SCONCE_NO_GPU_MEMORY] = "out of GPU memory",
      [SCONCE_NO_DEVICE] = "no device",
      [SCONCE_GPU_ERROR] = "GPU error",
      [SCONCE_DEVICE_LOST] = "device lost",
      [SCONCE_IO_ERROR] = "I/O error",
      [SCONCE_CANCELLED] = "cancelled",
      [SCONCE_WRONG_RESULT] = "wrong result",
  };
  size_t at = (size_t)status;
  return at < sizeof names / sizeof *names ? names[at] : "unknown status";
}
