/* The file writer, checked byte by byte with loads of the test's own: nothing here uses a reader,
 * so that writer and readers cannot share a misunderstanding. */
#include "harness.h"

#include "base/checked.h"
#include "base/os.h"
#include "examples.h"
#include "format/schema.h"
#include "write/flatbuf.h"

/* ---- a reader of a dozen lines: 0 or NULL for what is absent --------------------------------- */

static const uint8_t *follow(const uint8_t *slot) { return slot ? slot + load_u32(slot) : NULL; }

static const uint8_t *field(const uint8_t *table, uint16_t id) {
  const uint8_t *vtable = table - (int32_t)load_u32(table);
  if (4u + 2u * id >= load_u16(vtable) || !load_u16(vtable + 4 + 2 * id)) return NULL;
  return table + load_u16(vtable + 4 + 2 * id);
}

static const uint8_t *child(const uint8_t *table, uint16_t id) { return follow(field(table, id)); }
static const uint8_t *row(const uint8_t *vector, uint32_t i) { return follow(vector + 4 + 4 * i); }

/* ---- flatbuffers ----------------------------------------------------------------------------- */

static void a_flatbuffer_byte_by_byte(void) {
  struct arena arena;
  arena_init(&arena, NULL);
  struct write_state state = {.arena = &arena};
  struct fbw w;
  fbw_begin(&w, &state, "TEST", 0);
  uint32_t root = FBW_TABLE(&w, FBW_ROOT, fbw_u8(0, 7), fbw_ref(2));
  fbw_string(&w, fbw_slot(&w, root, 2), text_of("hi"));
  static const uint8_t want[] = {
      20, 0, 0,  0, 'T', 'E', 'S', 'T',       /* root at 20 */
      10, 0, 12, 0, 4,   0,   0,   0,   8, 0, /* vtable: 10 bytes, table 12, field 0 at 4, 2 at 8 */
      0,  0,                                  /* the table is 4-aligned */
      12, 0, 0,  0, 7,   0,   0,   0,         /* 12 back to the vtable; field 0 */
      4,  0, 0,  0,                           /* field 2: 4 bytes on */
      2,  0, 0,  0, 'h', 'i', 0,              /* count, characters, NUL */
  };
  CHECK_EQ(w.size, sizeof want);
  if (w.size == sizeof want) CHECK(memcmp(w.data, want, sizeof want) == 0);
  arena_free(&arena);
}

static void eight_byte_fields_and_vectors_are_aligned(void) {
  struct arena arena;
  arena_init(&arena, NULL);
  struct write_state state = {.arena = &arena};
  struct fbw w;
  fbw_begin(&w, &state, "TEST", 0);
  uint32_t refs = fbw_refs(&w, FBW_ROOT, 20);
  for (uint32_t i = 0; i < 20; i++) {
    uint32_t table = FBW_TABLE(&w, refs + 4 * i, fbw_u8(0, 1), fbw_u64(1, i), fbw_ref(2));
    CHECK_EQ(fbw_slot(&w, table, 1) % 8, 0);
    CHECK_EQ(fbw_vector(&w, fbw_slot(&w, table, 2), i, 1, 16) % 16, 0);
  }
  CHECK_EQ(w.vtables.n, 1); /* one shape, one vtable */
  arena_free(&arena);
}

/* ---- containers ------------------------------------------------------------------------------ */

static void a_program_without_data_is_a_bare_flatbuffer(void) {
  struct arena arena;
  arena_init(&arena, NULL);
  struct span file = example_bytes(&arena, "add.pte");
  REQUIRE(file.size > 64);
  CHECK(memcmp(file.data + 4, "ET12", 4) == 0);
  CHECK(memcmp(file.data + 8, "eh00", 4) != 0);
  const uint8_t *segments = child(follow(file.data), PROGRAM_SEGMENTS);
  REQUIRE(segments);
  CHECK_EQ(load_u32(segments), 1); /* the constants', empty */
  arena_free(&arena);
}

static void segments_follow_the_program(void) {
  struct arena arena;
  arena_init(&arena, NULL);
  struct span file = example_bytes(&arena, "delegate.pte");
  REQUIRE(file.size > 64);
  CHECK(memcmp(file.data + 8, "eh00", 4) == 0);
  CHECK_EQ(load_u32(file.data + 12), 32);
  uint64_t program_size = load_u64(file.data + 16), base = load_u64(file.data + 24);
  CHECK_EQ(base, round_up(program_size, 128));
  CHECK_EQ(base + load_u64(file.data + 32), file.size);
  const uint8_t *root = follow(file.data), *segments = child(root, PROGRAM_SEGMENTS);
  REQUIRE(segments && load_u32(segments) == 3); /* constants (empty), graph, named data */
  const uint8_t *named = row(segments, 2);
  CHECK_EQ(load_u64(field(named, SEGMENT_OFFSET)) % 128, 0);
  CHECK_EQ(load_u64(field(named, SEGMENT_SIZE)), 24);
  const float *ramp = (const float *)(file.data + base + load_u64(field(named, SEGMENT_OFFSET)));
  CHECK_NEAR(ramp[5], 6, 0);
  const uint8_t *graph = row(segments, 1);
  CHECK(memcmp(file.data + base + load_u64(field(graph, SEGMENT_OFFSET)) + 4, "VH00", 4) == 0);
  arena_free(&arena);
}

static void constants_are_padded_to_16(void) {
  struct arena arena;
  arena_init(&arena, NULL);
  struct span file = example_bytes(&arena, "segment.pte");
  REQUIRE(file.size > 64);
  const uint8_t *constants = child(follow(file.data), PROGRAM_CONSTANT_SEGMENT);
  const uint8_t *offsets = child(constants, SUBSEGMENT_OFFSETS);
  REQUIRE(offsets && load_u32(offsets) == 3);
  CHECK_EQ(load_u64(offsets + 4), 0);  /* reserved */
  CHECK_EQ(load_u64(offsets + 12), 0); /* 4 bytes */
  CHECK_EQ(load_u64(offsets + 20), 16);
  CHECK_EQ(load_u64(file.data + 32), 16 + 24); /* no padding after the last */
  arena_free(&arena);
}

static void a_delegate_blob_has_its_three_parts(void) {
  struct arena arena;
  arena_init(&arena, NULL);
  sconce_error err = {0};
  struct write_blob blob;
  struct span bytes;
  REQUIRE_OK(example_graph(&arena, &blob, &err), err);
  REQUIRE_OK(write_blob_to_memory(&blob, &arena, &bytes, &err), err);
  CHECK_EQ(load_u32(bytes.data), 0);
  CHECK(memcmp(bytes.data + 4, "VH00", 4) == 0);
  CHECK_EQ(load_u16(bytes.data + 8), 30);
  CHECK_EQ(load_u32(bytes.data + 10), 32);
  uint32_t size = load_u32(bytes.data + 14), at = load_u32(bytes.data + 18);
  CHECK_EQ(at, round_up(32 + size, 16));
  CHECK_EQ(load_u64(bytes.data + 22), 16); /* 3 bytes, then an empty one at the next multiple */
  CHECK_EQ(bytes.size, at + 16u);
  CHECK_EQ(bytes.data[at + 2], 3);
  CHECK(memcmp(bytes.data + 36, "VK00", 4) == 0);
  const uint8_t *call = row(child(follow(bytes.data + 32), VKGRAPH_CHAIN), 1);
  CHECK(memcmp(child(call, CALL_NAME) + 4, "aten.add.Tensor", 16) == 0);
  CHECK_EQ(load_u32(child(call, CALL_ARGS)), 4);
  arena_free(&arena);
}

/* The schema's default for both ids is 0, which means "constant 0" and "shared object 0". */
static void a_tensor_that_is_no_constant_says_so(void) {
  struct arena arena;
  arena_init(&arena, NULL);
  sconce_error err = {0};
  struct write_blob blob;
  struct span bytes;
  REQUIRE_OK(example_graph(&arena, &blob, &err), err);
  REQUIRE_OK(write_blob_to_memory(&blob, &arena, &bytes, &err), err);
  const uint8_t *values = child(follow(bytes.data + 32), VKGRAPH_VALUES);
  const uint8_t *x = child(row(values, 0), UNION_VALUE),
                *weight = child(row(values, 1), UNION_VALUE);
  CHECK_EQ((int32_t)load_u32(field(x, VKTENSOR_CONSTANT_ID)), -1);
  CHECK_EQ((int32_t)load_u32(field(x, VKTENSOR_MEM_OBJ_ID)), -1);
  REQUIRE(field(weight, VKTENSOR_CONSTANT_ID));
  CHECK_EQ(load_u32(field(weight, VKTENSOR_CONSTANT_ID)), 0);
  arena_free(&arena);
}

static void a_data_file_has_its_header(void) {
  struct arena arena;
  arena_init(&arena, NULL);
  struct span file = example_bytes(&arena, "external.ptd");
  REQUIRE(file.size > 64);
  CHECK(memcmp(file.data + 4, "FT01FH01", 8) == 0);
  CHECK_EQ(load_u32(file.data + 12), 40);
  CHECK_EQ(load_u64(file.data + 16), 48);
  uint64_t end = 48 + load_u64(file.data + 24), base = load_u64(file.data + 32);
  CHECK_EQ(base, round_up(end, 128));
  CHECK_EQ(load_u64(file.data + 40), 128 + 24);
  CHECK_EQ(base + 128 + 24, file.size);
  CHECK(memcmp(file.data + base, "opaque", 6) == 0);
  arena_free(&arena);
}

static void the_same_calls_give_the_same_bytes(void) {
  for (const struct example *e = examples; e->name; e++) {
    struct arena one, two;
    arena_init(&one, NULL);
    arena_init(&two, NULL);
    struct span a = example_bytes(&one, e->name), b = example_bytes(&two, e->name);
    CHECK_EQ(a.size, b.size);
    if (a.size == b.size && memcmp(a.data, b.data, a.size) != 0)
      test_fail(__FILE__, __LINE__, "%s differs", e->name);
    arena_free(&one);
    arena_free(&two);
  }
}

/* For tools/export/check_written.py. */
static void examples_go_to_a_folder_if_one_is_given(void) {
  const char *folder = getenv("SCONCE_WRITE_DIR");
  if (!folder) {
    test_skip("SCONCE_WRITE_DIR is not set");
    return;
  }
  for (const struct example *e = examples; e->name; e++) {
    struct arena arena;
    arena_init(&arena, NULL);
    sconce_error err = {0};
    struct write_blob blob;
    char path[TEST_PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, e->name);
    REQUIRE_OK(e->build(&arena, &blob, &err), err);
    CHECK_OK(write_blob_to_file(&blob, path, &err), err);
    arena_free(&arena);
  }
  char pte[TEST_PATH_MAX], ptd[TEST_PATH_MAX];
  sconce_error err = {0};
  snprintf(pte, sizeof pte, "%s/written.pte", folder);
  snprintf(ptd, sizeof ptd, "%s/written.ptd", folder);
  CHECK_OK(example_written(pte, ptd, &err), err);
}

/* ---- sources and sinks ----------------------------------------------------------------------- */

struct count {
  uint64_t bytes, writes, largest, sum;
};

static sconce_status count_write(void *user, const void *data, size_t size, sconce_error *err) {
  (void)err;
  struct count *c = user;
  c->bytes += size;
  c->writes++;
  if (size > c->largest) c->largest = size;
  for (size_t i = 0; i < size; i += 4096) c->sum += ((const uint8_t *)data)[i];
  return SCONCE_OK;
}

/* In pieces that fit no boundary. */
static sconce_status make_offsets(void *user, sconce_sink *sink, sconce_error *err) {
  static uint8_t piece[60000];
  const uint64_t size = *(const uint64_t *)user;
  (void)err;
  for (uint64_t at = 0; at < size; at += sizeof piece) {
    memset(piece, (int)(at >> 20), sizeof piece);
    const uint64_t left = size - at;
    TRY(sconce_sink_put(sink, piece, left < sizeof piece ? (size_t)left : sizeof piece));
  }
  return SCONCE_OK;
}

/* A program of 500 MB whose weights never exist at once. */
static sconce_status big_program(struct arena *arena, sconce_bytes weights, struct write_blob *out,
                                 sconce_error *err) {
  struct write_pte w;
  write_pte_init(&w, arena);
  write_pte_method(&w, "forward");
  write_pte_named_data(&w, "weights", weights);
  write_pte_named_data(&w, "tail", write_bytes("tail", 4));
  return write_pte_finish(&w, out, err);
}

static void half_a_gigabyte_passes_in_small_pieces(void) {
  struct arena arena;
  arena_init(&arena, NULL);
  sconce_error err = {0};
  uint64_t size = 500u << 20;
  struct write_blob file;
  sconce_bytes weights = {.size = size, .make = make_offsets, .user = &size};
  REQUIRE_OK(big_program(&arena, weights, &file, &err), err);
  struct count count = {0};
  REQUIRE_OK(write_blob_to(&file, &(struct write_sink){count_write, NULL, &count}, &err), err);
  CHECK_EQ(count.bytes, file.size);
  CHECK(count.largest <= 64 * 1024);
  CHECK(arena.held <= 128 * 1024);
  arena_free(&arena);
}

static void zeros_become_a_hole_of_five_gigabytes(void) {
  struct arena arena;
  arena_init(&arena, NULL);
  sconce_error err = {0};
  char tail[4] = "";
  char path[TEST_PATH_MAX];
  struct write_blob file;
  struct os_reader reader;
  test_temporary(path, ".pte");
  REQUIRE_OK(big_program(&arena, write_zeros(5ull << 30), &file, &err), err);
  REQUIRE_OK(write_blob_to_file(&file, path, &err), err);
  CHECK_OK(os_reader_open(&reader, path, &err), err);
  CHECK_EQ(os_reader_size(&reader), file.size);
  CHECK(file.size > 5ull << 30);
  CHECK_OK(os_reader_read(&reader, file.size - 4, tail, 4, &err), err);
  CHECK(memcmp(tail, "tail", 4) == 0);
  CHECK_OK(os_reader_read(&reader, file.size - 4096, tail, 1, &err), err);
  CHECK_EQ(tail[0], 0);
  os_reader_close(&reader);
  remove(path);
  arena_free(&arena);
}

static void a_file_may_end_in_a_hole(void) {
  struct arena arena;
  arena_init(&arena, NULL);
  struct write_state state = {.arena = &arena};
  sconce_error err = {0};
  char path[TEST_PATH_MAX];
  struct write_blob blob = {0};
  struct os_reader reader;
  test_temporary(path, ".pte");
  write_blob_add(&state, &blob, write_bytes("x", 1), 1);
  write_blob_add(&state, &blob, write_zeros(1 << 20), 16);
  REQUIRE_OK(write_blob_to_file(&blob, path, &err), err);
  CHECK_OK(os_reader_open(&reader, path, &err), err);
  CHECK_EQ(os_reader_size(&reader), 16 + (1 << 20));
  os_reader_close(&reader);
  remove(path);
  arena_free(&arena);
}

/* ---- failures -------------------------------------------------------------------------------- */

static sconce_status make_fails(void *user, sconce_sink *sink, sconce_error *err) {
  static const uint8_t some[100000];
  (void)user;
  TRY(sconce_sink_put(sink, some, sizeof some));
  return fail(err, SCONCE_IO_ERROR, "weights end at %zu", sizeof some);
}

static void a_failing_source_leaves_no_file(void) {
  struct arena arena;
  arena_init(&arena, NULL);
  sconce_error err = {0};
  char path[TEST_PATH_MAX];
  struct write_blob file;
  struct os_reader reader;
  test_temporary(path, ".pte");
  sconce_bytes weights = {.size = 1 << 20, .make = make_fails};
  REQUIRE_OK(big_program(&arena, weights, &file, &err), err);
  CHECK_FAILS(write_blob_to_file(&file, path, &err), SCONCE_IO_ERROR, err, "weights end at");
  CHECK_FAILS(os_reader_open(&reader, path, &err), SCONCE_IO_ERROR, err, "No such file");
  CHECK_FAILS(write_blob_to_file(&file, "/nonexistent/x.pte", &err), SCONCE_IO_ERROR, err,
              "/nonexistent/x.pte: No such file");
  arena_free(&arena);
}

/* user: how many bytes it puts, and then -1 to be silent, or a status. */
static sconce_status make_some(void *user, sconce_sink *sink, sconce_error *err) {
  const int *how = user;
  (void)err;
  if (sconce_sink_put(sink, "abcdefgh", (size_t)how[0]) != SCONCE_OK) return SCONCE_OK;
  return (sconce_status)how[1];
}

static void a_source_gives_as_many_bytes_as_it_said(void) {
  static const struct {
    int how[2];
    sconce_status want;
    const char *says;
  } rows[] = {
      {{4, SCONCE_OK}, SCONCE_OK, ""},
      {{3, SCONCE_OK}, SCONCE_BAD_ARGUMENT, "3 of 4 bytes were made"},
      {{5, SCONCE_OK}, SCONCE_BAD_ARGUMENT, "more than the 4 bytes that were announced"},
      {{4, SCONCE_CANCELLED}, SCONCE_CANCELLED, "gave up"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct arena arena;
    arena_init(&arena, NULL);
    sconce_error err = {0};
    struct write_blob file;
    struct count count = {0};
    sconce_bytes weights = {.size = 4, .make = make_some, .user = (void *)rows[i].how};
    REQUIRE_OK(big_program(&arena, weights, &file, &err), err);
    sconce_status got = write_blob_to(&file, &(struct write_sink){count_write, NULL, &count}, &err);
    CHECK_EQ(got, rows[i].want);
    if (got != SCONCE_OK) CHECK(strstr(err.text, rows[i].says) != NULL);
    arena_free(&arena);
  }
}

static void a_full_disk_is_an_error(void) {
  FILE *full = fopen("/dev/full", "r+");
  if (!full) {
    test_skip("no /dev/full here");
    return;
  }
  fclose(full);
  sconce_error err = {0};
  struct write_blob blob = {.size = 100};
  CHECK_FAILS(write_blob_to_file(&blob, "/dev/full", &err), SCONCE_IO_ERROR, err, "/dev/full: ");
}

static void an_error_sticks_until_finish(void) {
  struct arena arena;
  arena_init(&arena, NULL);
  sconce_error err = {0};
  struct write_blob blob;
  struct write_pte w;
  write_pte_init(&w, &arena);
  CHECK_EQ(write_pte_value(&w, literal_int(1)), -1);
  write_pte_method(&w, "forward");
  CHECK_EQ(write_pte_value(&w, literal_int(1)), -1);
  CHECK_FAILS(write_pte_finish(&w, &blob, &err), SCONCE_BAD_ARGUMENT, err, "no method was begun");
  CHECK_EQ(blob.size, 0);

  write_pte_init(&w, &arena);
  write_pte_method(&w, "forward");
  write_pte_value(&w, literal_symint(1));
  CHECK_FAILS(write_pte_finish(&w, &blob, &err), SCONCE_BAD_ARGUMENT, err, "a program has no");

  write_pte_init(&w, &arena);
  write_pte_method(&w, "forward");
  write_pte_compile_spec(&w, "force_fp16", "\1", 1);
  CHECK_FAILS(write_pte_finish(&w, &blob, &err), SCONCE_BAD_ARGUMENT, err,
              "no delegate for the compile spec 'force_fp16'");

  write_pte_init(&w, &arena);
  write_pte_segment(&w, &(struct write_blob){0}, 48);
  CHECK_FAILS(write_pte_finish(&w, &blob, &err), SCONCE_BAD_ARGUMENT, err,
              "alignment 48 is no power of two");

  struct write_vk g;
  write_vk_init(&g, &arena);
  write_vk_value(&g, literal_optional_values(ID_LIST(-1)));
  CHECK_FAILS(write_vk_finish(&g, &blob, &err), SCONCE_BAD_ARGUMENT, err, "a graph has no");
  arena_free(&arena);
}

static void sizes_that_no_file_holds_are_refused(void) {
  struct arena arena;
  arena_init(&arena, NULL);
  sconce_error err = {0};
  struct write_blob blob, huge = {.size = 3ull << 30};
  struct write_pte w;
  write_pte_init(&w, &arena);
  write_pte_named_data(&w, "a", write_zeros(UINT64_MAX - 64));
  write_pte_named_data(&w, "b", write_zeros(100));
  CHECK_FAILS(write_pte_finish(&w, &blob, &err), SCONCE_BAD_ARGUMENT, err, "pass 2^64");

  write_pte_init(&w, &arena);
  write_pte_method(&w, "forward");
  write_pte_delegate_inline(&w, VK_BACKEND_ID, &huge);
  CHECK_FAILS(write_pte_finish(&w, &blob, &err), SCONCE_BAD_ARGUMENT, err,
              "a flatbuffer holds 2 GiB");

  static const int32_t big[] = {INT32_MAX, INT32_MAX, INT32_MAX};
  write_pte_init(&w, &arena);
  write_pte_delegated(
      &w, "forward", &(struct write_blob){0},
      &(struct write_pte_tensor){.scalar_type = SCALAR_FLOAT, .sizes = big, .rank = 3}, 1, 0);
  CHECK_FAILS(write_pte_finish(&w, &blob, &err), SCONCE_BAD_ARGUMENT, err,
              "do not fit into memory");
  arena_free(&arena);
}

static void every_refused_allocation_is_reported(void) {
  for (const struct example *e = examples; e->name; e++) {
    sconce_status status = SCONCE_NO_MEMORY;
    for (uint64_t fail_at = 1; status != SCONCE_OK && fail_at < 100; fail_at++) {
      struct test_allocator alloc;
      test_allocator_init(&alloc, fail_at);
      struct arena arena;
      arena_init(&arena, &alloc.hook);
      struct write_blob blob;
      sconce_error err = {0};
      status = e->build(&arena, &blob, &err);
      if (status != SCONCE_OK && status != SCONCE_NO_MEMORY)
        test_fail(__FILE__, __LINE__, "%s: %s", e->name, err.text);
      arena_free(&arena);
      CHECK_EQ(alloc.live, 0);
    }
    CHECK_EQ(status, SCONCE_OK);
  }
}

const struct test suite_write[] = {
    TEST(a_flatbuffer_byte_by_byte),
    TEST(eight_byte_fields_and_vectors_are_aligned),
    TEST(a_program_without_data_is_a_bare_flatbuffer),
    TEST(segments_follow_the_program),
    TEST(constants_are_padded_to_16),
    TEST(a_delegate_blob_has_its_three_parts),
    TEST(a_tensor_that_is_no_constant_says_so),
    TEST(a_data_file_has_its_header),
    TEST(the_same_calls_give_the_same_bytes),
    TEST(examples_go_to_a_folder_if_one_is_given),
    TEST(half_a_gigabyte_passes_in_small_pieces),
    TEST(zeros_become_a_hole_of_five_gigabytes),
    TEST(a_file_may_end_in_a_hole),
    TEST(a_failing_source_leaves_no_file),
    TEST(a_source_gives_as_many_bytes_as_it_said),
    TEST(a_full_disk_is_an_error),
    TEST(an_error_sticks_until_finish),
    TEST(sizes_that_no_file_holds_are_refused),
    TEST(every_refused_allocation_is_reported),
    {0},
};
