/* .npy files, read by the command's own reader. What was read and written again is the same. */
#define _GNU_SOURCE /* memfd_create */
#include "../cli/tensor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool read_file(int file, sconce_tensor *out, void **elements) {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  return npy_read(path, out, elements);
}

static void write_again(const sconce_tensor *t) {
  char path[64];
  int file = memfd_create("again.npy", 0);
  snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  sconce_tensor same;
  void *elements;
  if (!npy_write(path, t) || !read_file(file, &same, &elements)) abort();
  if (same.dtype != t->dtype || same.rank != t->rank || same.size != t->size) abort();
  if (memcmp(same.dims, t->dims, t->rank * sizeof *t->dims) != 0) abort();
  if (memcmp(same.data, t->data, t->size) != 0) abort();
  free(elements);
  close(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  int file = memfd_create("x.npy", 0);
  if (file < 0 || write(file, data, size) != (ssize_t)size) abort();
  sconce_tensor t;
  void *elements;
  if (read_file(file, &t, &elements)) {
    if (t.size > size) abort();
    write_again(&t);
    free(elements);
  }
  close(file);
  return 0;
}
