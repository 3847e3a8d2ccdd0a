/* The writers as a converter has them: what their calls refuse, and what a file is verified for.
 * tests/run/test_written.c runs what they write. */
#include "harness.h"

#include "base/os.h"
#include "sconce_write.h"

static const float six[6] = {1, 2, 3, 4, 5, 6};

static sconce_status save(sconce_writer *w, bool data, sconce_error *err) {
  char path[TEST_PATH_MAX];
  test_temporary(path, ".pte");
  sconce_status status =
      data ? sconce_writer_save_data(w, path, err) : sconce_writer_save(w, path, err);
  struct os_reader reader;
  sconce_error none = {0};
  const bool is_there = os_reader_open(&reader, path, &none) == SCONCE_OK;
  CHECK_EQ(is_there, status == SCONCE_OK);
  if (is_there) os_reader_close(&reader);
  remove(path);
  return status;
}

/* y = x * weight, of which something may be wrong. */
static sconce_graph *product(sconce_writer *w, const char *key) {
  sconce_graph *g = sconce_writer_graph(w);
  const int32_t x = sconce_graph_tensor(g, SCONCE_FLOAT32, SCONCE_DIMS(2, 3));
  const int32_t weight = sconce_graph_constant(g, SCONCE_FLOAT32, SCONCE_DIMS(2, 3), key);
  const int32_t y = sconce_graph_tensor(g, SCONCE_FLOAT32, SCONCE_DIMS(2, 3));
  sconce_graph_call(g, "aten.mul.Tensor", SCONCE_IDS(x, weight, y));
  sconce_graph_input(g, x, true);
  sconce_graph_output(g, y, true);
  return g;
}

static void wrong_dtype(sconce_writer *w, sconce_graph *g) {
  (void)w, (void)sconce_graph_tensor(g, SCONCE_INT16, SCONCE_DIMS(1));
}
static void wrong_rank(sconce_writer *w, sconce_graph *g) {
  (void)w, sconce_graph_tensor(g, SCONCE_INT8, SCONCE_DIMS(1, 1, 1, 1, 1, 1, 1, 1, 1));
}
static void wrong_dim(sconce_writer *w, sconce_graph *g) {
  (void)w, sconce_graph_tensor(g, SCONCE_INT8, SCONCE_DIMS(1, 1u << 31));
}
static void wide_constant(sconce_writer *w, sconce_graph *g) {
  (void)w, sconce_graph_constant(g, SCONCE_INT64, SCONCE_DIMS(1), "ids");
}
static void number_as_input(sconce_writer *w, sconce_graph *g) {
  (void)w, sconce_graph_input(g, sconce_graph_int(g, 4), false);
}
static void live_integer_as_input(sconce_writer *w, sconce_graph *g) {
  (void)w, sconce_graph_input(g, sconce_graph_symint(g), false);
}
static void no_such_output(sconce_writer *w, sconce_graph *g) {
  (void)w, sconce_graph_output(g, 99, false);
}
static void no_such_argument(sconce_writer *w, sconce_graph *g) {
  (void)w, sconce_graph_call(g, "aten.relu.default", SCONCE_IDS(77, 2));
}
static void used_before_it_is_given(sconce_writer *w, sconce_graph *g) {
  const int32_t later = sconce_graph_tensor(g, SCONCE_FLOAT32, SCONCE_DIMS(2, 3));
  const int32_t y = sconce_graph_tensor(g, SCONCE_FLOAT32, SCONCE_DIMS(2, 3));
  (void)w, sconce_graph_call(g, "aten.relu.default", SCONCE_IDS(later, y));
}
static void few_bytes(sconce_writer *w, sconce_graph *g) {
  (void)g, sconce_writer_data(w, "other", &(sconce_bytes){.size = 6, .data = six});
  sconce_graph_constant(g, SCONCE_FLOAT32, SCONCE_DIMS(2), "other");
}
static void key_twice(sconce_writer *w, sconce_graph *g) {
  (void)g, sconce_writer_data(w, "weight", &(sconce_bytes){.size = 24, .data = six});
}
static void no_bytes(sconce_writer *w, sconce_graph *g) {
  (void)g, sconce_writer_data(w, "other", NULL);
}
static void no_such_buffer(sconce_writer *w, sconce_graph *g) {
  (void)w, (void)sconce_graph_buffer(g, 0);
}
static void short_buffer(sconce_writer *w, sconce_graph *g) {
  const sconce_bytes some = {.size = 20, .data = six};
  (void)g, (void)sconce_writer_buffer(w, SCONCE_FLOAT32, SCONCE_DIMS(6), &some);
}
static void huge_buffer(sconce_writer *w, sconce_graph *g) {
  (void)g, sconce_writer_buffer(w, SCONCE_FLOAT32, SCONCE_DIMS(INT32_MAX, INT32_MAX), NULL);
}
static void update_of_another_shape(sconce_writer *w, sconce_graph *g) {
  const int32_t buffer = sconce_writer_buffer(w, SCONCE_FLOAT32, SCONCE_DIMS(3, 2), NULL);
  sconce_graph_update(g, sconce_graph_buffer(g, buffer), 2);
}
static void update_of_no_buffer(sconce_writer *w, sconce_graph *g) {
  (void)w, sconce_graph_update(g, 0, 2);
}
static void two_methods(sconce_writer *w, sconce_graph *g) { sconce_writer_method(w, "first", g); }
static void two_names(sconce_writer *w, sconce_graph *g) {
  (void)g, sconce_writer_bool(w, "forward", true);
}

static const struct {
  const char *why;
  void (*spoil)(sconce_writer *w, sconce_graph *g);
  sconce_status want;
  const char *says;
} rows[] = {
    {"a dtype that graphs lack", wrong_dtype, SCONCE_BAD_ARGUMENT, "no tensors of dtype 2"},
    {"too many dims", wrong_rank, SCONCE_BAD_ARGUMENT, "rank 9, at most 8"},
    {"a dim that no file holds", wrong_dim, SCONCE_BAD_ARGUMENT, "dim 1 is 2147483648"},
    {"64 bits inside", wide_constant, SCONCE_BAD_ARGUMENT, "'ids' has elements of 64 bits"},
    {"a number at the border", number_as_input, SCONCE_BAD_ARGUMENT, "an input is value 3, which"},
    {"a live integer as input", live_integer_as_input, SCONCE_BAD_ARGUMENT, "which is no tensor"},
    {"no such value", no_such_output, SCONCE_BAD_ARGUMENT, "an output is value 99, which"},
    {"no such argument", no_such_argument, SCONCE_BAD_GRAPH, "method 'forward': "},
    {"an order that cannot be", used_before_it_is_given, SCONCE_BAD_GRAPH, "method 'forward': "},
    {"data too short", few_bytes, SCONCE_BAD_GRAPH, "needs 8 bytes, the data named 'other' has 6"},
    {"a key twice", key_twice, SCONCE_BAD_FILE, "weight"},
    {"no bytes", no_bytes, SCONCE_BAD_ARGUMENT, "no bytes for the data 'other'"},
    {"no such buffer", no_such_buffer, SCONCE_BAD_ARGUMENT, "buffer 0, the writer has 0"},
    {"a buffer's bytes", short_buffer, SCONCE_BAD_ARGUMENT, "20 bytes to begin with, the buffer"},
    {"a buffer beyond memory", huge_buffer, SCONCE_BAD_ARGUMENT, "do not fit into memory"},
    {"contents that do not fit", update_of_another_shape, SCONCE_BAD_ARGUMENT, "is no buffer of"},
    {"contents for no buffer", update_of_no_buffer, SCONCE_BAD_ARGUMENT, "is no buffer of"},
    {"a graph twice", two_methods, SCONCE_BAD_ARGUMENT, "'forward' is not this writer's, or has"},
    {"a method twice", two_names, SCONCE_BAD_ARGUMENT, "two methods are called 'forward'"},
};

static void what_is_wrong_is_told_by_save(void) {
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    sconce_error err = {0};
    sconce_writer *w = NULL;
    REQUIRE_OK(sconce_writer_open(&w, NULL, &err), err);
    sconce_writer_data(w, "weight", &(sconce_bytes){.size = sizeof six, .data = six});
    sconce_graph *g = product(w, "weight");
    rows[i].spoil(w, g);
    sconce_writer_method(w, "forward", g);
    const sconce_status got = save(w, false, &err);
    if (got != rows[i].want || !strstr(err.text, rows[i].says))
      test_fail(__FILE__, __LINE__, "%s: %s (%s)", rows[i].why, sconce_status_name(got), err.text);
    CHECK_EQ(save(w, false, &err), rows[i].want); /* and again */
    sconce_writer_close(w);
  }
}

/* One writer, saved, added to, and saved again; its data alone; and what has no writer. */
static void a_writer_may_be_saved_again(void) {
  sconce_error err = {0};
  sconce_writer *w = NULL;
  REQUIRE_OK(sconce_writer_open(&w, NULL, &err), err);
  sconce_writer_data(w, "weight", &(sconce_bytes){.size = sizeof six, .data = six});
  CHECK_OK(save(w, true, &err), err);
  sconce_writer_method(w, "forward", product(w, "elsewhere")); /* in some .ptd */
  CHECK_OK(save(w, false, &err), err);
  CHECK_FAILS(save(w, true, &err), SCONCE_BAD_ARGUMENT, err, "no methods, the writer has 1");
  sconce_writer_bool(w, "use_kv_cache", true);
  CHECK_OK(save(w, false, &err), err);
  CHECK_FAILS(sconce_writer_save(w, "/nonexistent/x.pte", &err), SCONCE_IO_ERROR, err,
              "/nonexistent/x.pte");
  CHECK_OK(save(w, false, &err), err);
  sconce_writer_close(w);
  sconce_writer_close(NULL);
  CHECK_EQ(sconce_graph_int(NULL, 1), -1);
  CHECK(!sconce_writer_graph(NULL));
  CHECK_FAILS(sconce_writer_save(NULL, "x", &err), SCONCE_BAD_ARGUMENT, err, "no writer");
}

static sconce_status build(const sconce_allocator *allocator, sconce_error *err) {
  sconce_writer *w = NULL;
  TRY(sconce_writer_open(&w, &(sconce_writer_desc){*allocator}, err));
  sconce_writer_data(w, "weight", &(sconce_bytes){.size = sizeof six, .data = six});
  const int32_t buffer = sconce_writer_buffer(w, SCONCE_FLOAT32, SCONCE_DIMS(2, 3), NULL);
  sconce_graph *g = product(w, "weight");
  sconce_graph_update(g, sconce_graph_buffer(g, buffer), 2);
  sconce_writer_method(w, "forward", g);
  sconce_status status = save(w, false, err);
  sconce_writer_close(w);
  return status;
}

static void every_refused_allocation_is_told(void) {
  sconce_status status = SCONCE_NO_MEMORY;
  uint64_t fail_at = 1;
  for (; status != SCONCE_OK && fail_at < 100; fail_at++) {
    struct test_allocator alloc;
    test_allocator_init(&alloc, fail_at);
    sconce_error err = {0};
    status = build(&alloc.hook, &err);
    if (status != SCONCE_OK && status != SCONCE_NO_MEMORY)
      test_fail(__FILE__, __LINE__, "%s", err.text);
    CHECK_EQ(alloc.live, 0);
  }
  CHECK_EQ(status, SCONCE_OK);
  CHECK(fail_at > 3);
}

const struct test suite_writer[] = {
    TEST(what_is_wrong_is_told_by_save),
    TEST(a_writer_may_be_saved_again),
    TEST(every_refused_allocation_is_told),
    {0},
};
