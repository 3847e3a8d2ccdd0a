/* Goldens: any bytes as mul.golden.json or toy.golden.json (the first byte says which) beside the
 * model and its .bin, checked on a device. */
#define _DEFAULT_SOURCE /* mkdtemp, symlink */
#include "device.h"
#include "sconce_dev.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[] = {"mul", "toy"};
static char folder[] = "/tmp/fuzz_golden.XXXXXX";

static void forget(void) {
  static const char *const endings[] = {".pte", ".golden.bin", ".golden.json"};
  char path[512];
  for (int i = 0; i < 6; i++) {
    snprintf(path, sizeof path, "%s/%s%s", folder, names[i / 3], endings[i % 3]);
    unlink(path);
  }
  rmdir(folder);
}

static void prepare(void) {
  char from[512], to[512];
  if (!mkdtemp(folder)) abort();
  atexit(forget);
  for (int i = 0; i < 4; i++) {
    const char *ending = i % 2 ? ".golden.bin" : ".pte";
    snprintf(from, sizeof from, "%s/tests/data/goldens/%s%s", SCONCE_SOURCE_DIR, names[i / 2],
             ending);
    snprintf(to, sizeof to, "%s/%s%s", folder, names[i / 2], ending);
    if (symlink(from, to) != 0) abort();
  }
}

static void take(void *user, const sconce_check_result *result) {
  (void)user;
  fuzz_not_by_the_library(&result->why);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static bool prepared;
  sconce_device *device = fuzz_device(NULL);
  if (size < 1) return 0;
  if (!prepared) prepare();
  prepared = true;
  const char *name = names[data[0] & 1];
  char pte[512], json[512];
  snprintf(pte, sizeof pte, "%s/%s.pte", folder, name);
  snprintf(json, sizeof json, "%s/%s.golden.json", folder, name);
  FILE *file = fopen(json, "wb");
  if (!file || fwrite(data + 1, 1, size - 1, file) != size - 1 || fclose(file) != 0) abort();
  sconce_error err = {0};
  const sconce_check_desc desc = {.path = pte, .golden = json, .each = take};
  if (sconce_check(device, &desc, &err) != SCONCE_OK) fuzz_not_by_the_library(&err);
  return 0;
}
