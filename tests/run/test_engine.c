/* The engine on a device, through the public API and on files made by the writer: scalars that the
 * device computes, value lists, state, dynamic shapes, failing calls, large files. */
#include "gpu.h"

#include "base/checked.h"
#include "run/device.h"
#include "write/write.h"

/* ---- files ----------------------------------------------------------------------------------- */

struct maker {
  struct arena arena;
  struct write_vk g;
  struct write_pte pte;
  struct write_pte_tensor io[16];
  uint32_t n_in, n_out;
  sconce_error err;
  sconce_device *device;
  sconce_model *model;
  sconce_method *method;
  sconce_state *state;
  uint32_t said; /* lines of the log about scalars */
};

static void make(struct maker *m) {
  *m = (struct maker){0};
  arena_init(&m->arena, NULL);
  write_vk_init(&m->g, &m->arena);
  write_pte_init(&m->pte, &m->arena);
}

static void border(struct maker *m, int scalar, const int32_t *dims, uint32_t rank) {
  int32_t *sizes = arena_new(&m->arena, int32_t, rank);
  memcpy(sizes, dims, rank * sizeof *sizes);
  m->io[m->n_in + m->n_out] = (struct write_pte_tensor){
      .scalar_type = scalar, .dynamism = PTE_DYNAMIC_BOUND, .sizes = sizes, .rank = rank};
}

static int32_t input(struct maker *m, enum vk_dtype dtype, int scalar, const int32_t *dims,
                     uint32_t rank) {
  border(m, scalar, dims, rank);
  m->n_in++;
  int32_t id = write_vk_tensor(&m->g, dtype, dims, rank);
  write_vk_inputs(&m->g, &id, 1);
  return id;
}

static void output_of(struct maker *m, int32_t id, int scalar, const int32_t *dims, uint32_t rank) {
  border(m, scalar, dims, rank);
  m->n_out++;
  write_vk_outputs(&m->g, &id, 1);
}

static int32_t output(struct maker *m, enum vk_dtype dtype, int scalar, const int32_t *dims,
                      uint32_t rank) {
  int32_t id = write_vk_tensor(&m->g, dtype, dims, rank);
  output_of(m, id, scalar, dims, rank);
  return id;
}

static int32_t number(struct maker *m, int64_t i) { return write_vk_value(&m->g, literal_int(i)); }
static int32_t symint(struct maker *m) { return write_vk_value(&m->g, literal_symint(0)); }
static int32_t null(struct maker *m) { return write_vk_value(&m->g, literal_null()); }

static int32_t constant(struct maker *m, const char *key, const int32_t *dims, uint32_t rank) {
  uint64_t size = 4;
  for (uint32_t i = 0; i < rank; i++) size *= (uint32_t)dims[i];
  return write_vk_constant(&m->g, VK_FLOAT32, dims, rank, write_vk_named(&m->g, key, size));
}

static void data(struct maker *m, const char *key, const void *bytes, size_t size) {
  write_pte_named_data(&m->pte, key, write_bytes(bytes, size));
}

static void slice(struct maker *m, int32_t x, int32_t end, int32_t y) {
  write_vk_call(&m->g, "aten.slice_copy.Tensor",
                ID_LIST(x, number(m, 0), number(m, 0), end, number(m, 1), y));
}

static void note(void *user, sconce_log_level level, const char *text) {
  (void)level;
  struct maker *m = user;
  if (strstr(text, "a scalar is computed on the device")) m->said++;
}

static sconce_status finish(struct maker *m, struct write_blob *file, sconce_error *err) {
  struct write_blob blob;
  TRY(write_vk_finish(&m->g, &blob, err));
  write_pte_delegated(&m->pte, "forward", &blob, m->io, m->n_in, m->n_out);
  return write_pte_finish(&m->pte, file, err);
}

static sconce_status open_device(struct maker *m, const sconce_allocator *allocator) {
  sconce_device_desc desc = {.log = {note, m, SCONCE_LOG_INFO}};
  if (allocator) desc.allocator = *allocator;
  return sconce_device_open(&m->device, &desc, &m->err);
}

static sconce_status load(struct maker *m, const sconce_allocator *allocator) {
  struct write_blob file;
  struct span bytes;
  TRY(finish(m, &file, &m->err));
  TRY(write_blob_to_memory(&file, &m->arena, &bytes, &m->err));
  TRY(open_device(m, allocator));
  sconce_model_desc desc = {.program = {.data = bytes.data, .size = bytes.size}};
  TRY(sconce_model_open(&m->model, m->device, &desc, &m->err));
  TRY(sconce_method_open(&m->method, m->model, NULL, &m->err));
  return sconce_state_open(&m->state, m->method, &m->err);
}

static void unload(struct maker *m) {
  sconce_state_close(m->state);
  sconce_method_close(m->method);
  sconce_model_close(m->model);
  if (m->device) {
    CHECK_EQ(gpu_stats(m->device->gpu)->buffers, 0);
    CHECK_EQ(gpu_stats(m->device->gpu)->groups, 0);
    test_note_kernels(m->device->gpu);
  }
  sconce_device_close(m->device);
  arena_free(&m->arena);
}

static sconce_status set(struct maker *m, uint32_t i, sconce_dtype dtype, uint32_t dim0,
                         const void *elements) {
  const sconce_method_info *info = sconce_method_describe(m->method);
  if (i >= info->n_inputs) return SCONCE_BAD_ARGUMENT;
  sconce_tensor t = info->inputs[i];
  t.dtype = dtype;
  t.dims[0] = dim0;
  t.data = elements;
  t.size = sconce_dtype_size(dtype);
  for (uint32_t d = 0; d < t.rank; d++) t.size *= t.dims[d];
  return sconce_state_set_input(m->state, i, &t, &m->err);
}

static sconce_tensor get(struct maker *m, uint32_t i) {
  sconce_tensor t = {0};
  CHECK_OK(sconce_state_output(m->state, i, &t, &m->err), m->err);
  return t;
}

/* ---- scalars --------------------------------------------------------------------------------- */

static const float counted[8] = {0, 1, 2, 3, 4, 5, 6, 7};

/* t = x + x, u = t + x; slices end at t[3], u[0] and t[1]: two tensors, one of them twice. */
static void write_scalars(struct maker *m) {
  make(m);
  int32_t x = input(m, VK_INT32, SCALAR_INT, DIM_LIST(4)),
          d = input(m, VK_FLOAT32, SCALAR_FLOAT, DIM_LIST(8)), y[3], s[3];
  int32_t t = write_vk_tensor(&m->g, VK_INT32, DIM_LIST(4)),
          u = write_vk_tensor(&m->g, VK_INT32, DIM_LIST(4));
  for (int i = 0; i < 3; i++) {
    y[i] = output(m, VK_FLOAT32, SCALAR_FLOAT, DIM_LIST(8));
    s[i] = symint(m);
  }
  const char *select = "et_vk.select_as_symint.default";
  write_vk_call(&m->g, "aten.add.Tensor", ID_LIST(x, x, number(m, 1), t));
  write_vk_call(&m->g, select, ID_LIST(t, number(m, 0), number(m, -1), s[0]));
  slice(m, d, s[0], y[0]);
  write_vk_call(&m->g, "aten.add.Tensor", ID_LIST(t, x, number(m, 1), u));
  write_vk_call(&m->g, select, ID_LIST(u, number(m, 0), number(m, 0), s[1]));
  slice(m, d, s[1], y[1]);
  write_vk_call(&m->g, select, ID_LIST(t, number(m, -1), number(m, 1), s[2]));
  slice(m, d, s[2], y[2]);
}

static void the_device_computes_scalars(void) {
  struct maker m;
  write_scalars(&m);
  CHECK_OK(load(&m, NULL), m.err);
  static const int32_t calls[][4] = {{1, 2, 0, 3}, {2, 0, 0, 4}, {0, 4, 0, 1}, {0, 4, 0, 1}};
  for (size_t i = 0; m.state && i < sizeof calls / sizeof *calls; i++) {
    CHECK_OK(set(&m, 0, SCONCE_INT32, 4, calls[i]), m.err);
    CHECK_OK(set(&m, 1, SCONCE_FLOAT32, 8, counted), m.err);
    m.said = 0;
    CHECK_OK(sconce_state_run(m.state, NULL, &m.err), m.err);
    CHECK(m.said >= 2);
    const int32_t want[3] = {2 * calls[i][3], 3 * calls[i][0], 2 * calls[i][1]};
    for (uint32_t k = 0; k < 3; k++) {
      sconce_tensor got = get(&m, k);
      CHECK_EQ(got.dims[0], want[k]);
      CHECK(got.dims[0] == 0 || memcmp(got.data, counted, got.size) == 0);
    }
  }
  unload(&m);
}

static sconce_status load_and_call(struct maker *m, const sconce_allocator *allocator) {
  write_scalars(m);
  TRY(load(m, allocator));
  for (int32_t i = 0; i < 2; i++) {
    TRY(set(m, 0, SCONCE_INT32, 4, (int32_t[]){1, 2, 0, 3 - i}));
    TRY(set(m, 1, SCONCE_FLOAT32, 8, counted));
    TRY(sconce_state_run(m->state, NULL, &m->err));
  }
  return SCONCE_OK;
}

static void a_call_in_parts_survives_failing_allocations(void) {
  for (uint64_t n = 1; n < 2000; n++) {
    struct test_allocator alloc;
    test_allocator_init(&alloc, n);
    struct maker m;
    sconce_status status = load_and_call(&m, &alloc.hook);
    bool reached = alloc.calls >= n;
    if (status != (reached ? SCONCE_NO_MEMORY : SCONCE_OK))
      test_fail(__FILE__, __LINE__, "allocation %llu: %s (%s)", (unsigned long long)n,
                sconce_status_name(status), m.err.text);
    unload(&m);
    CHECK_EQ(alloc.live, 0);
    if (!reached || test_failed()) return;
  }
  test_fail(__FILE__, __LINE__, "more than 2000 allocations");
}

static void inputs_of_every_integer_type_give_scalars(void) {
  static const struct {
    enum vk_dtype inside;
    int scalar;
    sconce_dtype outside;
    uint32_t size;
    uint8_t elements[6]; /* (2, 3) */
  } types[] = {{VK_INT32, SCALAR_LONG, SCONCE_INT64, 8, {5, 1, 2, 3, 4, 0}},
               {VK_INT32, SCALAR_INT, SCONCE_INT32, 4, {5, 1, 2, 3, 4, 0}},
               {VK_INT8, SCALAR_CHAR, SCONCE_INT8, 1, {5, 1, 2, 3, 4, 0}},
               {VK_UINT8, SCALAR_BYTE, SCONCE_UINT8, 1, {5, 1, 2, 3, 4, 0}},
               {VK_BOOL, SCALAR_BOOL, SCONCE_BOOL, 1, {1, 0, 1, 0, 1, 1}}};
  static const struct {
    int64_t dim, index;
    uint32_t element;
  } places[] = {{-1, -1, 2}, {0, -1, 3}, {1, 1, 1}, {-2, 1, 3}};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    struct maker m;
    make(&m);
    int32_t x = input(&m, types[i].inside, types[i].scalar, DIM_LIST(2, 3)),
            d = input(&m, VK_FLOAT32, SCALAR_FLOAT, DIM_LIST(8));
    for (uint32_t k = 0; k < 4; k++) {
      int32_t y = output(&m, VK_FLOAT32, SCALAR_FLOAT, DIM_LIST(8)), s = symint(&m);
      write_vk_call(&m.g, "et_vk.select_as_symint.default",
                    ID_LIST(x, number(&m, places[k].dim), number(&m, places[k].index), s));
      slice(&m, d, s, y);
    }
    CHECK_OK(load(&m, NULL), m.err);
    uint8_t elements[48] = {0};
    for (uint32_t k = 0; k < 6; k++) elements[k * types[i].size] = types[i].elements[k];
    if (m.state) {
      CHECK_OK(set(&m, 0, types[i].outside, 2, elements), m.err);
      CHECK_OK(set(&m, 1, SCONCE_FLOAT32, 8, counted), m.err);
      CHECK_OK(sconce_state_run(m.state, NULL, &m.err), m.err);
      for (uint32_t k = 0; k < 4; k++)
        CHECK_EQ(get(&m, k).dims[0], types[i].elements[places[k].element]);
    }
    CHECK_EQ(m.said, 0); /* the host knew */
    unload(&m);
  }
}

/* x[index, :, :]: the nulls of the list stand for whole dims. */
static void lists_may_hold_nulls(void) {
  struct maker m;
  make(&m);
  int32_t x = input(&m, VK_FLOAT32, SCALAR_FLOAT, DIM_LIST(4, 1, 2)),
          index = input(&m, VK_INT32, SCALAR_LONG, DIM_LIST(3)),
          y = output(&m, VK_FLOAT32, SCALAR_FLOAT, DIM_LIST(3, 1, 2));
  const int32_t items[] = {index, null(&m), null(&m)};
  int32_t list = write_vk_value(&m.g, literal_values(items, 3));
  write_vk_call(&m.g, "aten.index.Tensor", ID_LIST(x, list, y));
  CHECK_OK(load(&m, NULL), m.err);
  if (m.state) {
    CHECK_OK(set(&m, 0, SCONCE_FLOAT32, 4, counted), m.err);
    CHECK_OK(set(&m, 1, SCONCE_INT64, 2, (int64_t[]){3, -4}), m.err);
    CHECK_OK(sconce_state_run(m.state, NULL, &m.err), m.err);
    sconce_tensor got = get(&m, 0);
    CHECK(got.size == 16 && memcmp(got.data, (float[]){6, 7, 0, 1}, 16) == 0);
    CHECK_OK(set(&m, 1, SCONCE_INT64, 2, (int64_t[]){0, 4}), m.err);
    CHECK_FAILS(sconce_state_run(m.state, NULL, &m.err), SCONCE_BAD_ARGUMENT, m.err,
                "index 4 of a dim of 4");
    got = get(&m, 0); /* the last call's, still */
    CHECK(got.size == 16 && memcmp(got.data, (float[]){6, 7, 0, 1}, 16) == 0);
  }
  unload(&m);
}

/* ---- state ----------------------------------------------------------------------------------- */

/* Two caches (1, 4, 1, 4) with one key: x goes into the first, x + x into the second. The first is
 * an output itself, the second is copied into one; the constant that began both is the third. */
static sconce_status caches(struct maker *m, const float *init) {
  make(m);
  data(m, "init", init, 64);
  int32_t x = input(m, VK_FLOAT32, SCALAR_FLOAT, DIM_LIST(1, 1, 1, 4)),
          at = input(m, VK_INT32, SCALAR_LONG, DIM_LIST(1));
  int32_t k[2], nobody[2], s = symint(m),
                           xx = write_vk_tensor(&m->g, VK_FLOAT32, DIM_LIST(1, 1, 1, 4));
  const int32_t dims[] = {1, 4, 1, 4};
  for (int i = 0; i < 2; i++) {
    k[i] = constant(m, "init", dims, 4);
    nobody[i] = write_vk_tensor(&m->g, VK_FLOAT32, DIM_LIST(1));
  }
  output_of(m, k[0], SCALAR_FLOAT, dims, 4);
  int32_t y = output(m, VK_FLOAT32, SCALAR_FLOAT, dims, 4);
  int32_t c = constant(m, "init", dims, 4), z = output(m, VK_FLOAT32, SCALAR_FLOAT, dims, 4);
  write_vk_call(&m->g, "et_vk.select_as_symint.default",
                ID_LIST(at, number(m, 0), number(m, 0), s));
  write_vk_call(&m->g, "aten.add.Tensor", ID_LIST(x, x, number(m, 1), xx));
  write_vk_call(&m->g, "update_cache.default", ID_LIST(x, k[0], s, nobody[0]));
  write_vk_call(&m->g, "update_cache.default", ID_LIST(xx, k[1], s, nobody[1]));
  write_vk_call(&m->g, "aten.clone.default", ID_LIST(k[1], null(m), y));
  write_vk_call(&m->g, "aten.clone.default", ID_LIST(c, null(m), z));
  return load(m, NULL);
}

static void append(struct maker *m, int64_t at, float first) {
  float x[4] = {first, first, first, first};
  CHECK_OK(set(m, 0, SCONCE_FLOAT32, 1, x), m->err);
  CHECK_OK(set(m, 1, SCONCE_INT64, 1, &at), m->err);
  CHECK_OK(sconce_state_run(m->state, NULL, &m->err), m->err);
}

static void check_rows(struct maker *m, const float want[4]) {
  for (uint32_t k = 0; k < 2; k++) {
    const float *got = get(m, k).data;
    for (uint32_t i = 0; got && i < 16; i++)
      CHECK_EQ(got[i], want[i / 4] < 0 ? want[i / 4] : want[i / 4] * (float)(k + 1));
  }
  const float *constant_rows = get(m, 2).data;
  for (uint32_t i = 0; constant_rows && i < 16; i++) CHECK_EQ(constant_rows[i], -9);
}

static void caches_with_one_key_are_apart_and_persist(void) {
  float init[16];
  for (int i = 0; i < 16; i++) init[i] = -9;
  struct maker m;
  CHECK_OK(caches(&m, init), m.err);
  uint8_t state[128];
  if (m.state) {
    CHECK_EQ(sconce_state_size(m.state), 128);
    append(&m, 0, 1);
    append(&m, 2, 5);
    check_rows(&m, (float[]){1, -9, 5, -9});
    CHECK_OK(sconce_state_save(m.state, state, sizeof state, &m.err), m.err);
    CHECK_OK(sconce_state_reset(m.state, &m.err), m.err);
    append(&m, 1, 3);
    check_rows(&m, (float[]){-9, 3, -9, -9});
    CHECK_OK(sconce_state_restore(m.state, state, sizeof state, &m.err), m.err);
    append(&m, 3, 2);
    check_rows(&m, (float[]){1, -9, 5, 2});
    CHECK_FAILS(sconce_state_save(m.state, state, 127, &m.err), SCONCE_BAD_ARGUMENT, m.err,
                "127 bytes, the state has 128");
    int64_t at = 4;
    CHECK_OK(set(&m, 1, SCONCE_INT64, 1, &at), m.err);
    CHECK_FAILS(sconce_state_run(m.state, NULL, &m.err), SCONCE_BAD_ARGUMENT, m.err,
                "1 tokens at position 4 of a cache of 4");
    check_rows(&m, (float[]){1, -9, 5, 2});
    append(&m, 0, 7);
    check_rows(&m, (float[]){7, -9, 5, 2});
  }
  unload(&m);
}

/* Runs on 1, 2, 3, 4 so many times and checks that y is then `first` times that. */
static void check_sums(struct maker *m, int times, const float *want) {
  static const float ones[4] = {1, 2, 3, 4};
  for (int i = 0; i < times && m->state; i++) {
    CHECK_OK(set(m, 0, SCONCE_FLOAT32, 4, ones), m->err);
    CHECK_OK(sconce_state_run(m->state, NULL, &m->err), m->err);
    const float *y = get(m, 0).data;
    for (int k = 0; y && k < 4; k++) CHECK_NEAR(y[k], want[i] * ones[k], 1e-5);
  }
}

static const float zeros[4];

/* h += x; y = h * 2: the sum is the buffer that it reads. */
static void a_node_may_write_what_it_reads(void) {
  struct maker m;
  make(&m);
  int32_t x = input(&m, VK_FLOAT32, SCALAR_FLOAT, DIM_LIST(4)), h = constant(&m, "h", DIM_LIST(4)),
          y = output(&m, VK_FLOAT32, SCALAR_FLOAT, DIM_LIST(4));
  write_vk_call(&m.g, "aten.add.Tensor", ID_LIST(h, x, number(&m, 1), h));
  write_vk_call(&m.g, "aten.add.Tensor", ID_LIST(h, h, number(&m, 1), y));
  data(&m, "h", zeros, sizeof zeros);
  CHECK_OK(load(&m, NULL), m.err);
  check_sums(&m, 3, (float[]){2, 4, 6});
  unload(&m);
}

/* The delegate gives h + x and (h + x) * 2, and only the second has an argument: the first is the
 * next content of h. */
static void an_output_without_argument_is_a_buffers_next_content(void) {
  for (int both = 0; both < 2; both++) {
    struct maker m;
    make(&m);
    int32_t x = input(&m, VK_FLOAT32, SCALAR_FLOAT, DIM_LIST(4)),
            h = constant(&m, "h", DIM_LIST(4)), k = constant(&m, "k", DIM_LIST(4)),
            t = write_vk_tensor(&m.g, VK_FLOAT32, DIM_LIST(4)),
            u = write_vk_tensor(&m.g, VK_FLOAT32, DIM_LIST(4));
    write_vk_call(&m.g, "aten.add.Tensor", ID_LIST(h, both ? k : x, number(&m, 1), t));
    write_vk_call(&m.g, "aten.add.Tensor", ID_LIST(t, both ? x : k, number(&m, 1), u));
    write_vk_outputs(&m.g, &t, 1);
    int32_t y = output(&m, VK_FLOAT32, SCALAR_FLOAT, DIM_LIST(4));
    write_vk_call(&m.g, "aten.add.Tensor", ID_LIST(u, u, number(&m, 1), y));
    data(&m, "h", zeros, sizeof zeros);
    data(&m, "k", zeros, sizeof zeros);
    if (both) {
      CHECK_FAILS(load(&m, NULL), SCONCE_UNSUPPORTED, m.err, "two buffers could be meant");
    } else {
      CHECK_OK(load(&m, NULL), m.err);
      check_sums(&m, 3, (float[]){2, 4, 6});
    }
    unload(&m);
  }
}

/* h becomes k + x, and k becomes h + x: nothing in the file tells which is which. */
static void buffers_that_change_places_are_refused(void) {
  struct maker m;
  make(&m);
  int32_t x = input(&m, VK_FLOAT32, SCALAR_FLOAT, DIM_LIST(4)), h = constant(&m, "h", DIM_LIST(4)),
          k = constant(&m, "k", DIM_LIST(4)), next[2];
  for (int i = 0; i < 2; i++) {
    next[i] = write_vk_tensor(&m.g, VK_FLOAT32, DIM_LIST(4));
    write_vk_call(&m.g, "aten.add.Tensor", ID_LIST(i ? h : k, x, number(&m, 1), next[i]));
  }
  write_vk_outputs(&m.g, next, 2);
  int32_t y = output(&m, VK_FLOAT32, SCALAR_FLOAT, DIM_LIST(4));
  write_vk_call(&m.g, "aten.add.Tensor", ID_LIST(next[0], next[1], number(&m, 1), y));
  data(&m, "h", zeros, sizeof zeros);
  data(&m, "k", zeros, sizeof zeros);
  CHECK_FAILS(load(&m, NULL), SCONCE_UNSUPPORTED, m.err,
              "which buffers outputs 0 and 1 are the new contents of cannot be told");
  unload(&m);
}

/* t = x * 2, v shows t, t = x * 3, y = v + t: what the view shows is from before. */
static void a_view_of_what_is_written_again_keeps_the_old(void) {
  struct maker m;
  make(&m);
  int32_t x = input(&m, VK_FLOAT32, SCALAR_FLOAT, DIM_LIST(4)),
          t = write_vk_tensor(&m.g, VK_FLOAT32, DIM_LIST(4)),
          v = write_vk_tensor(&m.g, VK_FLOAT32, DIM_LIST(4)),
          y = output(&m, VK_FLOAT32, SCALAR_FLOAT, DIM_LIST(4));
  write_vk_call(&m.g, "aten.add.Tensor", ID_LIST(x, x, number(&m, 1), t));
  write_vk_call(&m.g, "aten.alias_copy.default", ID_LIST(t, v));
  write_vk_call(&m.g, "aten.add.Tensor", ID_LIST(x, x, number(&m, 2), t));
  write_vk_call(&m.g, "aten.add.Tensor", ID_LIST(v, t, number(&m, 1), y));
  CHECK_OK(load(&m, NULL), m.err);
  check_sums(&m, 2, (float[]){5, 5});
  unload(&m);
}

/* v shows h, then [h] = split(2 x), y = v + x: what the view shows is h from before. */
static void a_list_of_results_writes_state(void) {
  struct maker m;
  make(&m);
  int32_t x = input(&m, VK_FLOAT32, SCALAR_FLOAT, DIM_LIST(4)), h = constant(&m, "h", DIM_LIST(4)),
          u = write_vk_tensor(&m.g, VK_FLOAT32, DIM_LIST(4)),
          v = write_vk_tensor(&m.g, VK_FLOAT32, DIM_LIST(4)),
          y = output(&m, VK_FLOAT32, SCALAR_FLOAT, DIM_LIST(4));
  write_vk_call(&m.g, "aten.add.Tensor", ID_LIST(x, x, number(&m, 1), u));
  write_vk_call(&m.g, "aten.alias_copy.default", ID_LIST(h, v));
  const int32_t sizes = write_vk_value(&m.g, literal_ints((int64_t[]){4}, 1)),
                parts = write_vk_value(&m.g, literal_values(&h, 1));
  write_vk_call(&m.g, "aten.split_with_sizes_copy.default",
                ID_LIST(u, sizes, number(&m, 0), parts));
  write_vk_call(&m.g, "aten.add.Tensor", ID_LIST(v, x, number(&m, 1), y));
  data(&m, "h", zeros, sizeof zeros);
  CHECK_OK(load(&m, NULL), m.err);
  check_sums(&m, 3, (float[]){1, 3, 3});
  unload(&m);
}

/* A cache that the caller owns: each call starts from what was set. */
static void an_input_that_is_written_is_sent_again(void) {
  struct maker m;
  make(&m);
  int32_t x = input(&m, VK_FLOAT32, SCALAR_FLOAT, DIM_LIST(1, 1, 1, 4)),
          at = input(&m, VK_INT32, SCALAR_LONG, DIM_LIST(1)),
          k = input(&m, VK_FLOAT32, SCALAR_FLOAT, DIM_LIST(1, 2, 1, 4)),
          y = output(&m, VK_FLOAT32, SCALAR_FLOAT, DIM_LIST(1, 2, 1, 4)), s = symint(&m);
  write_vk_call(&m.g, "et_vk.select_as_symint.default",
                ID_LIST(at, number(&m, 0), number(&m, 0), s));
  write_vk_call(&m.g, "update_cache.default",
                ID_LIST(x, k, s, write_vk_tensor(&m.g, VK_FLOAT32, DIM_LIST(1))));
  write_vk_call(&m.g, "aten.clone.default", ID_LIST(k, null(&m), y));
  CHECK_OK(load(&m, NULL), m.err);
  if (m.state) {
    CHECK_OK(set(&m, 2, SCONCE_FLOAT32, 1, counted), m.err);
    append(&m, 0, 9);
    CHECK(memcmp(get(&m, 0).data, (float[]){9, 9, 9, 9, 4, 5, 6, 7}, 32) == 0);
    append(&m, 1, 8);
    CHECK(memcmp(get(&m, 0).data, (float[]){0, 1, 2, 3, 8, 8, 8, 8}, 32) == 0);
  }
  unload(&m);
}

/* Without a prepack and without a node: the file's bytes are the output. */
static void a_bare_constant_can_be_an_output(void) {
  struct maker m;
  make(&m);
  data(&m, "c", counted, 32);
  int32_t x = input(&m, VK_FLOAT32, SCALAR_FLOAT, DIM_LIST(8)),
          y = output(&m, VK_FLOAT32, SCALAR_FLOAT, DIM_LIST(8)), c = constant(&m, "c", DIM_LIST(8));
  write_vk_call(&m.g, "aten.add.Tensor", ID_LIST(x, c, number(&m, 1), y));
  output_of(&m, c, SCALAR_FLOAT, DIM_LIST(8));
  CHECK_OK(load(&m, NULL), m.err);
  if (m.state) {
    CHECK_OK(set(&m, 0, SCONCE_FLOAT32, 8, counted), m.err);
    CHECK_OK(sconce_state_run(m.state, NULL, &m.err), m.err);
    sconce_tensor sum = get(&m, 0), same = get(&m, 1);
    CHECK(sum.data && ((const float *)sum.data)[7] == 14);
    CHECK(same.size == 32 && same.data && memcmp(same.data, counted, 32) == 0);
  }
  unload(&m);
}

/* ---- dynamic shapes -------------------------------------------------------------------------- */

enum { TOKENS = 8, WIDTH = 8, VOCAB = 5 };

/* tokens -> embedding -> rms_norm -> linear -> slice of all but the first -> y + y */
static sconce_status chain(struct maker *m) {
  static float table[VOCAB * WIDTH], norm[WIDTH], weight[WIDTH * WIDTH];
  uint64_t seed = 7;
  for (int i = 0; i < VOCAB * WIDTH; i++) table[i] = test_random_float(&seed);
  for (int i = 0; i < WIDTH; i++) norm[i] = test_random_float(&seed);
  for (int i = 0; i < WIDTH * WIDTH; i++) weight[i] = test_random_float(&seed);
  make(m);
  data(m, "table", table, sizeof table);
  data(m, "norm", norm, sizeof norm);
  data(m, "weight", weight, sizeof weight);
  int32_t x = input(m, VK_INT32, SCALAR_LONG, DIM_LIST(TOKENS)), t[4];
  for (int i = 0; i < 4; i++) t[i] = write_vk_tensor(&m->g, VK_FLOAT32, DIM_LIST(TOKENS, WIDTH));
  int32_t y = output(m, VK_FLOAT32, SCALAR_FLOAT, DIM_LIST(TOKENS, WIDTH));
  int32_t no = write_vk_value(&m->g, literal_bool(false));
  write_vk_call(
      &m->g, "aten.embedding.default",
      ID_LIST(constant(m, "table", DIM_LIST(VOCAB, WIDTH)), x, number(m, -1), no, no, t[0]));
  write_vk_call(&m->g, "et_vk.rms_norm.default",
                ID_LIST(t[0], constant(m, "norm", DIM_LIST(WIDTH)),
                        write_vk_value(&m->g, literal_double(1e-5)), t[1]));
  write_vk_call(&m->g, "aten.linear.default",
                ID_LIST(t[1], constant(m, "weight", DIM_LIST(WIDTH, WIDTH)), null(m), t[2]));
  write_vk_call(&m->g, "aten.slice_copy.Tensor",
                ID_LIST(t[2], number(m, 0), number(m, 1), number(m, 100), number(m, 1), t[3]));
  write_vk_call(&m->g, "aten.add.Tensor", ID_LIST(t[3], t[3], number(m, 1), y));
  return load(m, NULL);
}

static sconce_status say(struct maker *m, uint32_t n) {
  static const int64_t tokens[TOKENS] = {4, 0, 1, 2, 3, 4, 1, 0};
  TRY(set(m, 0, SCONCE_INT64, n, tokens));
  return sconce_state_run(m->state, NULL, &m->err);
}

static void every_sequence_gives_the_bytes_of_a_fresh_graph(void) {
  static const uint32_t lengths[] = {TOKENS, 1, 0, 3, TOKENS, 2, 3};
  struct maker used;
  CHECK_OK(chain(&used), used.err);
  for (size_t i = 0; used.method && i < sizeof lengths / sizeof *lengths; i++) {
    struct maker fresh;
    CHECK_OK(chain(&fresh), fresh.err);
    CHECK_OK(say(&used, lengths[i]), used.err);
    if (fresh.method) {
      CHECK_OK(say(&fresh, lengths[i]), fresh.err);
      sconce_tensor a = get(&used, 0), b = get(&fresh, 0);
      CHECK_EQ(a.dims[0], lengths[i] ? lengths[i] - 1 : 0);
      CHECK(a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0));
    }
    unload(&fresh);
  }
  unload(&used);
}

static void a_failed_call_keeps_the_last_results(void) {
  struct maker m;
  CHECK_OK(chain(&m), m.err);
  float before[2 * WIDTH];
  if (m.state) {
    CHECK_OK(say(&m, 3), m.err);
    memcpy(before, get(&m, 0).data, sizeof before);
    int64_t wrong[TOKENS + 1] = {0, VOCAB};
    CHECK_FAILS(set(&m, 0, SCONCE_INT64, TOKENS + 1, wrong), SCONCE_BAD_ARGUMENT, m.err,
                "input 0: dim 0 is 9, at most 8");
    CHECK(memcmp(before, get(&m, 0).data, sizeof before) == 0);
    CHECK_OK(set(&m, 0, SCONCE_INT64, TOKENS, wrong), m.err);
    CHECK_FAILS(sconce_state_run(m.state, NULL, &m.err), SCONCE_BAD_ARGUMENT, m.err,
                "token 5 of a vocabulary of 5");
    sconce_tensor got = get(&m, 0);
    CHECK_EQ(got.dims[0], 2);
    CHECK(got.data && memcmp(before, got.data, sizeof before) == 0);
    CHECK_OK(say(&m, 3), m.err);
    CHECK(memcmp(before, get(&m, 0).data, sizeof before) == 0);
    sconce_state_cancel(m.state);
    sconce_tensor none;
    CHECK_FAILS(sconce_state_output(m.state, 0, &none, &m.err), SCONCE_BAD_ARGUMENT, m.err,
                "no call has finished");
  }
  unload(&m);
}

/* x [2, 4] times y [4, 3]: fits at load, and in a call whose y has as many rows as x has columns.
 */
static void inputs_that_do_not_fit_each_other_are_bad_arguments(void) {
  struct maker m;
  make(&m);
  int32_t x = input(&m, VK_FLOAT32, SCALAR_FLOAT, DIM_LIST(2, 4)),
          y = input(&m, VK_FLOAT32, SCALAR_FLOAT, DIM_LIST(4, 3)),
          z = output(&m, VK_FLOAT32, SCALAR_FLOAT, DIM_LIST(2, 3));
  write_vk_call(&m.g, "aten.mm.default", ID_LIST(x, y, z));
  CHECK_OK(load(&m, NULL), m.err);
  static const float ones[12] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  if (m.state) {
    CHECK_OK(set(&m, 0, SCONCE_FLOAT32, 2, ones), m.err);
    CHECK_OK(set(&m, 1, SCONCE_FLOAT32, 3, ones), m.err);
    CHECK_FAILS(sconce_state_run(m.state, NULL, &m.err), SCONCE_BAD_ARGUMENT, m.err,
                "with these inputs (input 1 is float32 [3, 3]): node 0 (aten.mm.default): ");
    CHECK_EQ(m.err.status, SCONCE_BAD_ARGUMENT);
    CHECK_OK(set(&m, 1, SCONCE_FLOAT32, 4, ones), m.err);
    CHECK_OK(sconce_state_run(m.state, NULL, &m.err), m.err);
    CHECK(get(&m, 0).data && ((const float *)get(&m, 0).data)[5] == 4);
  }
  unload(&m);
}

/* ---- large files ----------------------------------------------------------------------------- */

enum { LAYERS = 5, ROWS = 51200, COLS = 1024 }; /* 100 MiB of f16 each */

/* One byte in each weight is not zero, so that all of them are sent to the device. */
static sconce_status write_large(struct maker *m, const char *path) {
  static const uint16_t one[8] = {0x3c00};
  int32_t x = input(m, VK_FLOAT16, SCALAR_HALF, DIM_LIST(1, COLS));
  const uint64_t size = (uint64_t)ROWS * COLS * 2;
  for (int i = 0; i < LAYERS; i++) {
    char key[16];
    snprintf(key, sizeof key, "w%d", i);
    struct write_blob blob = {0};
    write_blob_add(&m->pte.state, &blob, write_bytes(one, sizeof one), 16);
    write_blob_add(&m->pte.state, &blob, write_zeros(size - sizeof one), 16);
    write_pte_named(&m->pte, key, write_pte_segment(&m->pte, &blob, 0));
    int32_t w = write_vk_constant(&m->g, VK_FLOAT16, DIM_LIST(ROWS, COLS),
                                  write_vk_named(&m->g, key, size));
    int32_t y = output(m, VK_FLOAT16, SCALAR_HALF, DIM_LIST(1, ROWS));
    write_vk_call(&m->g, "aten.linear.default", ID_LIST(x, w, null(m), y));
  }
  struct write_blob file;
  TRY(finish(m, &file, &m->err));
  return write_blob_to_file(&file, path, &m->err);
}

static bool large_path(char path[TEST_PATH_MAX]) {
  test_temporary(path, ".pte");
  return test_memory("VmRSS:") != 0;
}

static void load_large(struct maker *m, const char *path) {
  test_forget_peak();
  uint64_t before = test_memory("VmRSS:");
  sconce_model_desc desc = {.program.path = path};
  REQUIRE_OK(sconce_model_open(&m->model, m->device, &desc, &m->err), m->err);
  REQUIRE_OK(sconce_method_open(&m->method, m->model, NULL, &m->err), m->err);
  REQUIRE_OK(sconce_state_open(&m->state, m->method, &m->err), m->err);
  /* What a driver has not yet copied into its buffers it copies with the first submit. */
  CHECK_OK(gpu_submit(m->device->gpu, &(struct gpu_batch){0}, &m->err), m->err);
  CHECK_OK(gpu_finish(m->device->gpu, &m->err), m->err);
  sconce_stats stats;
  sconce_state_stats(m->state, &stats);
  const uint64_t weights = (uint64_t)LAYERS * ROWS * COLS * 2;
  CHECK(stats.gpu_weights == weights);
  uint64_t counted_bytes =
      weights + stats.gpu_transient + stats.gpu_staging + stats.gpu_params; /* the file is not */
  uint64_t peak = test_memory("VmHWM:") - before;
  uint64_t beyond = peak > counted_bytes ? peak - counted_bytes : 0;
  if (beyond > (64u << 20))
    test_fail(__FILE__, __LINE__, "%llu MiB of host memory beyond the file and the buffers",
              (unsigned long long)beyond >> 20);
}

/* A software device's buffers are memory of this process; of the file only pieces ever are. */
static void a_large_file_is_loaded_without_a_second_copy(void) {
  char path[TEST_PATH_MAX];
  if (!large_path(path)) {
    test_skip("this system does not tell how much memory a process has");
    return;
  }
  struct gpu *gpu = test_gpu();
  if (!gpu || strstr(gpu_info(gpu)->name, "SwiftShader")) {
    test_skip("this device's memory is this process's, in blocks larger than the buffers");
    return;
  }
  struct maker m;
  make(&m);
  CHECK_OK(write_large(&m, path), m.err);
  CHECK_OK(open_device(&m, NULL), m.err);
  if (!test_failed()) load_large(&m, path);
  unload(&m);
  remove(path);
}

static void out_of_gpu_memory_at_load_is_an_error(void) {
  struct gpu *gpu = test_gpu();
  if (!gpu || strstr(gpu_info(gpu)->name, "SwiftShader")) {
    test_skip("this driver's threads crash when the process has no memory left for them");
    return;
  }
  char path[TEST_PATH_MAX];
  if (!large_path(path)) {
    test_skip("this system does not tell how much memory a process has");
    return;
  }
  struct maker m;
  make(&m);
  CHECK_OK(write_large(&m, path), m.err);
  struct test_allocator alloc;
  test_allocator_init(&alloc, 0);
  CHECK_OK(open_device(&m, &alloc.hook), m.err);
  bool software = m.device && gpu_info(m.device->gpu)->type == SCONCE_ADAPTER_SOFTWARE;
  if (!software) test_skip("the device has memory of its own");
  if (software) {
    CHECK_OK(
        sconce_model_open(&m.model, m.device, &(sconce_model_desc){.program.path = path}, &m.err),
        m.err);
    test_limit_memory(192u << 20);
    CHECK_FAILS(sconce_method_open(&m.method, m.model, NULL, &m.err), SCONCE_NO_GPU_MEMORY, m.err,
                "creating buffer 'weights'");
    test_limit_memory(UINT64_MAX);
    CHECK(m.method == NULL);
    CHECK_EQ(gpu_stats(m.device->gpu)->buffers, 0);
  }
  unload(&m);
  CHECK_EQ(alloc.live, 0);
  remove(path);
}

const struct test suite_engine[] = {
    TEST(the_device_computes_scalars),
    TEST(a_call_in_parts_survives_failing_allocations),
    TEST(inputs_of_every_integer_type_give_scalars),
    TEST(lists_may_hold_nulls),
    TEST(caches_with_one_key_are_apart_and_persist),
    TEST(a_node_may_write_what_it_reads),
    TEST(an_output_without_argument_is_a_buffers_next_content),
    TEST(buffers_that_change_places_are_refused),
    TEST(a_view_of_what_is_written_again_keeps_the_old),
    TEST(a_list_of_results_writes_state),
    TEST(an_input_that_is_written_is_sent_again),
    TEST(a_bare_constant_can_be_an_output),
    TEST(every_sequence_gives_the_bytes_of_a_fresh_graph),
    TEST(a_failed_call_keeps_the_last_results),
    TEST(inputs_that_do_not_fit_each_other_are_bad_arguments),
    TEST(a_large_file_is_loaded_without_a_second_copy),
    TEST(out_of_gpu_memory_at_load_is_an_error),
    {0},
};
