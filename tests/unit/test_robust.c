/* All readers: every flip and every cut of real files, and a file of more than 4 GB. */
#include "edit.h"

#include "base/os.h"

/* ---- every flip, every truncation ------------------------------------------------------------ */

/* An error or a valid program: the sanitizers see to "never a crash", the walk to "valid". */
static void flip(enum edit_kind kind, const char *file) {
  struct edit_bytes real = edit_load(kind, file);
  uint32_t accepted = 0;
  for (size_t i = 0; i < real.size; i++) {
    const uint8_t old = real.data[i];
    for (int k = 0; k < 11; k++) {
      static const uint8_t whole[] = {0x00, 0x7f, 0xff};
      real.data[i] = (uint8_t)(k < 8 ? old ^ 1u << k : whole[k - 8]);
      if (edit_open(kind, file, (struct span){real.data, real.size}, NULL) == SCONCE_OK) accepted++;
    }
    real.data[i] = old;
  }
  CHECK(accepted > 0); /* weights and names may change */
  for (size_t size = 0; size < real.size; size++) {
    struct edit_bytes cut = edit_copy((struct span){real.data, size});
    (void)!edit_open(kind, file, (struct span){cut.data, size}, NULL);
    free(cut.data);
  }
  CHECK_OK(edit_open(kind, file, (struct span){real.data, real.size}, NULL), (sconce_error){0});
  free(real.data);
}

static void survives_flips_and_cuts_of_a_delegated_program(void) {
  flip(EDIT_PTE, "delegated.pte");
}
static void survives_flips_and_cuts_of_a_portable_program(void) { flip(EDIT_PTE, "portable.pte"); }
static void survives_flips_and_cuts_of_a_program_with_jumps(void) { flip(EDIT_PTE, "control.pte"); }
static void survives_flips_and_cuts_of_a_graph(void) { flip(EDIT_VKGRAPH, "delegated.pte"); }
static void survives_flips_and_cuts_of_a_data_file(void) { flip(EDIT_PTD, "weights.ptd"); }

static void short_files_say_so(void) {
  static const uint8_t program[20] = {0, 0, 0, 0, 'E', 'T', '1', '2', 'e', 'h', '0', '0'};
  sconce_error err = {0};
  CHECK_FAILS(walk_file((struct span){program, 7}, &err), SCONCE_BAD_FILE, err,
              "7 bytes are too few");
  CHECK_FAILS(walk_file((struct span){program, 20}, &err), SCONCE_BAD_FILE, err,
              "the file has 20 bytes and ends inside its header");
  CHECK_FAILS(edit_open(EDIT_PTD, NULL, (struct span){program, 20}, &err), SCONCE_BAD_FILE, err,
              "20 bytes are too few for a data file");
  CHECK_FAILS(walk_blob((struct span){program, 20}, (struct data_lookup){0}, &err), SCONCE_BAD_FILE,
              err, "20 bytes are too few for a delegate's header");
  CHECK(pte_probe((struct span){program, 8}) && !ptd_probe((struct span){program, 8}));
  CHECK(!pte_probe((struct span){program, 7}) && !vkgraph_probe((struct span){program, 20}));
}

/* ---- large files ----------------------------------------------------------------------------- */

/* A file with a hole between its head and what starts at `far`. */
static bool write_far(const char *path, struct span head, uint64_t far, struct span tail) {
  struct os_file file;
  if (os_file_create(&file, path, NULL) != SCONCE_OK) return false;
  if (os_file_write(&file, head.data, head.size, NULL) == SCONCE_OK &&
      os_file_skip(&file, far - head.size, NULL) == SCONCE_OK &&
      os_file_write(&file, tail.data, tail.size, NULL) == SCONCE_OK)
    return os_file_close(&file, NULL) == SCONCE_OK;
  os_file_discard(&file);
  return false;
}

/* A real program whose last segment moves beyond 4 GB, as a sparse file. */
static void opens_a_file_of_more_than_4_gigabytes(void) {
  char path[TEST_PATH_MAX];
  const uint64_t far = 5ull << 30;
  struct edit_bytes bytes = edit_load(EDIT_PTE, "delegated.pte");
  struct pte pte;
  sconce_error err = {0};
  REQUIRE_OK(pte_open(&pte, extent_of((struct span){bytes.data, bytes.size}), &err), err);
  uint32_t last = pte.data.segments.n - 1;
  struct extent tail = data_segment(&pte.data, last);
  char at[64];
  snprintf(at, sizeof at, "segments/%u/offset", last);
  REQUIRE(edit_apply(EDIT_PTE, bytes, (struct edit_patch){at, far}));
  uint64_t end = pte.data.base + far + tail.size;
  REQUIRE(edit_apply(EDIT_PTE, bytes, (struct edit_patch){"+32:8", far + tail.size}));

  test_temporary(path, ".pte");
  bool wrote = write_far(path, (struct span){bytes.data, bytes.size}, end - tail.size,
                         (struct span){tail.data, tail.size});
  struct os_reader reader = {0};
  struct pte large;
  uint8_t *read = malloc(tail.size + 1);
  if (!wrote || os_reader_open(&reader, path, &err) != SCONCE_OK) {
    test_skip("no sparse file of %llu bytes in %s", (unsigned long long)end, path);
  } else {
    struct extent whole = {.data = bytes.data, .size = os_reader_size(&reader)};
    whole.held = PTE_HEAD_SIZE;
    CHECK_OK(pte_front(whole, &whole.held, &err), err);
    CHECK_OK(pte_open(&large, whole, &err), err);
    CHECK_EQ(data_segment(&large.data, last).offset, end - tail.size);
    CHECK_OK(os_reader_read(&reader, end - tail.size, read, tail.size, &err), err);
    CHECK(memcmp(read, tail.data, tail.size) == 0);
    (void)walk_pte(&large);
    whole.size--; /* one byte short of the end is noticed beyond 4 GB, too */
    CHECK_FAILS(pte_open(&large, whole, &err), SCONCE_BAD_FILE, err, "the file has 53687");
  }
  os_reader_close(&reader);
  free(read);
  remove(path);
  free(bytes.data);
}

const struct test suite_robust[] = {
    TEST(survives_flips_and_cuts_of_a_delegated_program),
    TEST(survives_flips_and_cuts_of_a_portable_program),
    TEST(survives_flips_and_cuts_of_a_program_with_jumps),
    TEST(survives_flips_and_cuts_of_a_graph),
    TEST(survives_flips_and_cuts_of_a_data_file),
    TEST(short_files_say_so),
    TEST(opens_a_file_of_more_than_4_gigabytes),
    {0},
};
