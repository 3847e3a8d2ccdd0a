/* A model of many megabytes for the web's tests: sconce_big FOLDER MEGABYTES writes big.pte and its
 * parts big.0.ptd and big.1.ptd. y = x + w0 + w1 + …, where each w is 8 MiB of a number of its own.
 */
#include "write/write.h"

#include <stdio.h>
#include <stdlib.h>

enum { PIECE = 8 << 20, MOST = 512 };

static const int32_t dims[] = {PIECE / 4};
static float values[MOST];
static char names[MOST][8];

static sconce_status make(void *user, sconce_sink *sink, sconce_error *err) {
  float same[4096];
  (void)err;
  for (size_t i = 0; i < 4096; i++) same[i] = *(const float *)user;
  for (size_t at = 0; at < PIECE; at += sizeof same) TRY(sconce_sink_put(sink, same, sizeof same));
  return SCONCE_OK;
}

static sconce_status program(struct arena *arena, uint32_t n, struct write_blob *out,
                             sconce_error *err) {
  struct write_pte w;
  write_pte_init(&w, arena);
  write_pte_method(&w, "forward");
  const uint32_t memory = (uint32_t)write_pte_buffer(&w, (uint64_t)PIECE * 2);
  struct write_pte_tensor t = {
      .scalar_type = SCALAR_FLOAT, .sizes = dims, .rank = 1, .memory_id = memory};
  int32_t sum = write_pte_tensor(&w, &t);
  write_pte_inputs(&w, ID_LIST(sum));
  const int32_t add = write_pte_operator(&w, "aten::add", "out");
  const int32_t one = write_pte_value(&w, literal_int(1));
  for (uint32_t i = 0; i < n; i++) {
    const struct write_pte_tensor term = {.scalar_type = SCALAR_FLOAT,
                                          .sizes = dims,
                                          .rank = 1,
                                          .external = true,
                                          .fully_qualified_name = names[i]};
    const int32_t weight = write_pte_tensor(&w, &term);
    t.memory_offset = i % 2 ? 0 : PIECE;
    const int32_t next = write_pte_tensor(&w, &t);
    write_pte_call_kernel(&w, add, ID_LIST(sum, weight, one, next, next));
    sum = next;
  }
  write_pte_outputs(&w, ID_LIST(sum));
  return write_pte_finish(&w, out, err);
}

static sconce_status part(struct arena *arena, uint32_t from, uint32_t to, struct write_blob *out,
                          sconce_error *err) {
  struct write_ptd w;
  write_ptd_init(&w, arena);
  const struct write_ptd_layout as = {.scalar_type = SCALAR_FLOAT, .sizes = dims, .rank = 1};
  for (uint32_t i = from; i < to; i++) {
    const sconce_bytes source = {.size = PIECE, .make = make, .user = &values[i]};
    write_ptd_named(&w, names[i], write_ptd_segment(&w, source), &as);
  }
  return write_ptd_finish(&w, out, err);
}

static sconce_status write_all(struct arena *arena, const char *folder, uint32_t n,
                               sconce_error *err) {
  char path[4096];
  struct write_blob file;
  snprintf(path, sizeof path, "%s/big.pte", folder);
  TRY(program(arena, n, &file, err));
  TRY(write_blob_to_file(&file, path, err));
  for (uint32_t i = 0; i < 2; i++) {
    snprintf(path, sizeof path, "%s/big.%u.ptd", folder, i);
    TRY(part(arena, i * (n / 2), i ? n : n / 2, &file, err));
    TRY(write_blob_to_file(&file, path, err));
  }
  return SCONCE_OK;
}

int main(int argc, char **argv) {
  const uint32_t n = argc == 3 ? (uint32_t)atoi(argv[2]) / 8 : 0;
  if (n < 2 || n > MOST) return fprintf(stderr, "usage: sconce_big FOLDER MEGABYTES\n"), 2;
  for (uint32_t i = 0; i < n; i++) {
    values[i] = (float)(i + 1);
    snprintf(names[i], sizeof names[i], "w%u", i);
  }
  struct arena arena;
  sconce_error err = {0};
  arena_init(&arena, NULL);
  sconce_status status = write_all(&arena, argv[1], n, &err);
  if (status != SCONCE_OK) fprintf(stderr, "sconce_big: %s\n", err.text);
  arena_free(&arena);
  return status != SCONCE_OK;
}
