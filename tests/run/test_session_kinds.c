/* Sessions on models whose ids, positions and logits are of other types than the usual int64 and
 * float32. The model: logits = token row + position row, with the writer, no exporter. */
#include "gpu.h"

#include "base/half.h"
#include "sconce_llm.h"
#include "write/write.h"

enum { VOCAB = 8, CONTEXT = 16, CHUNK = 4 };

struct kind {
  const char *why;
  int ids, position; /* enum scalar_type */
  bool no_position;
  bool no_length;      /* nothing says how long a text may be */
  bool many_positions; /* one for each id, else that of the first */
  bool last_only;      /* logits [1, vocab] of a method that takes one id a call */
  int logits;
};

static double token_row(int32_t id, uint32_t j) { return id + 0.125 * j; }
static double position_row(uint32_t position, uint32_t j) { return position % 2 ? 16 : 8.0 * j; }

/* ---- the model ------------------------------------------------------------------------------- */

static int32_t table(struct write_vk *g, struct arena *arena, uint32_t rows,
                     double (*value)(uint32_t, uint32_t)) {
  float *data = arena_new(arena, float, (size_t)rows *VOCAB);
  for (uint32_t i = 0; i < rows * VOCAB; i++) data[i] = (float)value(i / VOCAB, i % VOCAB);
  int32_t bytes = write_vk_inline(g, write_bytes(data, rows * VOCAB * sizeof *data));
  return write_vk_constant(g, VK_FLOAT32, DIM_LIST((int32_t)rows, VOCAB), bytes);
}

static double token_cell(uint32_t id, uint32_t j) { return token_row((int32_t)id, j); }

static int32_t lookup(struct write_vk *g, int32_t rows, int32_t indices, int32_t y) {
  int32_t null = write_vk_value(g, literal_null());
  write_vk_call(g, "aten.embedding.default", ID_LIST(rows, indices, null, null, null, y));
  return y;
}

static sconce_status build(struct arena *arena, const struct kind *k, struct span *out,
                           sconce_error *err) {
  const int32_t s = k->last_only ? 1 : CHUNK, p = k->many_positions ? s : 1;
  const bool half = k->logits == SCALAR_HALF;
  struct write_vk g;
  struct write_blob graph, file;
  write_vk_init(&g, arena);
  int32_t ids = write_vk_tensor(&g, VK_INT32, DIM_LIST(1, s));
  int32_t position = write_vk_tensor(&g, VK_INT32, DIM_LIST(p));
  int32_t y = lookup(&g, table(&g, arena, VOCAB, token_cell), ids,
                     write_vk_tensor(&g, VK_FLOAT32, DIM_LIST(1, s, VOCAB)));
  write_vk_inputs(&g, ID_LIST(ids));
  if (!k->no_position) {
    int32_t rows = lookup(&g, table(&g, arena, CONTEXT, position_row), position,
                          write_vk_tensor(&g, VK_FLOAT32, DIM_LIST(p, VOCAB)));
    int32_t sum = write_vk_tensor(&g, VK_FLOAT32, DIM_LIST(1, s, VOCAB));
    int32_t one = write_vk_value(&g, literal_int(1));
    write_vk_call(&g, "aten.add.Tensor", ID_LIST(y, rows, one, sum));
    write_vk_inputs(&g, ID_LIST(position));
    y = sum;
  }
  if (k->last_only) {
    int32_t flat = write_vk_tensor(&g, VK_FLOAT32, DIM_LIST(1, VOCAB));
    int32_t size = write_vk_value(&g, literal_ints((int64_t[]){1, VOCAB}, 2));
    write_vk_call(&g, "aten.view_copy.default", ID_LIST(y, size, flat));
    y = flat;
  }
  if (half) {
    int32_t narrow = k->last_only ? write_vk_tensor(&g, VK_FLOAT16, DIM_LIST(1, VOCAB))
                                  : write_vk_tensor(&g, VK_FLOAT16, DIM_LIST(1, s, VOCAB));
    int32_t n = write_vk_value(&g, literal_null());
    write_vk_call(&g, "aten._to_copy.default", ID_LIST(y, n, n, n, n, n, n, narrow));
    y = narrow;
  }
  write_vk_outputs(&g, ID_LIST(y));
  TRY(write_vk_finish(&g, &graph, err));
  const int32_t row[] = {1, s, VOCAB}, last[] = {1, VOCAB};
  struct write_pte_tensor io[3] = {{.scalar_type = k->ids, .sizes = row, .rank = 2},
                                   {.scalar_type = k->position, .sizes = &p, .rank = 1}};
  const uint32_t n_inputs = k->no_position ? 1 : 2;
  io[n_inputs] = (struct write_pte_tensor){
      .scalar_type = k->logits, .sizes = k->last_only ? last : row, .rank = k->last_only ? 2 : 3};
  for (uint32_t i = 0; i <= n_inputs; i++) io[i].dynamism = PTE_DYNAMIC_BOUND;
  struct write_pte w;
  write_pte_init(&w, arena);
  write_pte_delegated(&w, "forward", &graph, io, n_inputs, 1);
  if (!k->no_length)
    write_pte_constant_method(&w, "get_max_seq_len", (struct literal[]){literal_int(CONTEXT)}, 1);
  TRY(write_pte_finish(&w, &file, err));
  return write_blob_to_memory(&file, arena, out, err);
}

/* ---- sessions -------------------------------------------------------------------------------- */

static const struct kind kinds[] = {
    {"as exported", SCALAR_LONG, SCALAR_LONG, .logits = SCALAR_FLOAT},
    {"int32 ids", SCALAR_INT, SCALAR_LONG, .logits = SCALAR_FLOAT},
    {"int32 positions", SCALAR_LONG, SCALAR_INT, .logits = SCALAR_FLOAT},
    {"all int32", SCALAR_INT, SCALAR_INT, .logits = SCALAR_FLOAT},
    {"a position each", SCALAR_INT, SCALAR_INT, .many_positions = true, .logits = SCALAR_FLOAT},
    {"int64, a position each", SCALAR_LONG, SCALAR_LONG, .many_positions = true,
     .logits = SCALAR_FLOAT},
    {"float16 logits", SCALAR_INT, SCALAR_INT, .logits = SCALAR_HALF},
    {"one id a call", SCALAR_INT, SCALAR_INT, .last_only = true, .logits = SCALAR_FLOAT},
    {"one id a call, float16", SCALAR_LONG, SCALAR_INT, .last_only = true, .logits = SCALAR_HALF},
    {"no position", SCALAR_INT, .no_position = true, .logits = SCALAR_FLOAT},
};

/* `first`: the position of the call's first id; `at`: of the id itself. */
static void check_logits(const sconce_session *s, const struct kind *k, int32_t id, uint32_t first,
                         uint32_t at) {
  const float *logits = sconce_session_logits(s);
  CHECK(logits != NULL);
  for (uint32_t j = 0; logits && j < VOCAB; j++) {
    double want = token_row(id, j);
    if (!k->no_position) want += position_row(k->many_positions ? at : first, j);
    if ((double)logits[j] != want)
      test_fail(__FILE__, __LINE__, "%s: logit %u at %u is %g, want %g", k->why, j, at,
                (double)logits[j], want);
  }
}

static sconce_status fill_context(sconce_session *s, const struct kind *k, sconce_error *err) {
  static const int32_t prompt[] = {3, 1, 4, 1, 5, 2};
  enum { N = sizeof prompt / sizeof *prompt };
  const uint32_t chunk = k->last_only ? 1 : CHUNK;
  const sconce_session_info *info = sconce_session_describe(s);
  CHECK(info->chunk == chunk && info->context == CONTEXT && info->n_vocab == VOCAB);
  TRY(sconce_session_prompt(s, prompt, N, NULL, NULL, err));
  check_logits(s, k, 2, (N - 1) / chunk * chunk, N - 1);
  for (uint32_t at = N; at < CONTEXT; at++) {
    TRY(sconce_session_append(s, (int32_t)(at % VOCAB), err));
    check_logits(s, k, (int32_t)(at % VOCAB), at, at);
  }
  CHECK_FAILS(sconce_session_append(s, 1, err), SCONCE_BAD_ARGUMENT, *err,
              "the context is full: 1 ids at position 16 of 16");
  check_logits(s, k, (CONTEXT - 1) % VOCAB, CONTEXT - 1, CONTEXT - 1);
  return SCONCE_OK;
}

static sconce_status run_kind(const struct kind *k, sconce_device *device, struct arena *arena,
                              sconce_error *err) {
  struct span file;
  sconce_model *model = NULL;
  sconce_session *session = NULL;
  TRY(build(arena, k, &file, err));
  sconce_model_desc desc = {.program = {.data = file.data, .size = file.size}};
  sconce_status status = sconce_model_open(&model, device, &desc, err);
  if (status == SCONCE_OK)
    status = sconce_session_open(&session, &(sconce_session_desc){.model = model}, err);
  if (status == SCONCE_OK) status = fill_context(session, k, err);
  sconce_session_close(session);
  sconce_model_close(model);
  return status;
}

static void other_types_at_the_border(void) {
  sconce_device *device = NULL;
  sconce_error err = {0};
  REQUIRE_OK(sconce_device_open(&device, &(sconce_device_desc){0}, &err), err);
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    struct arena arena;
    arena_init(&arena, NULL);
    if (run_kind(&kinds[i], device, &arena, &err) != SCONCE_OK)
      test_fail(__FILE__, __LINE__, "%s: %s", kinds[i].why, err.text);
    arena_free(&arena);
  }
  sconce_device_close(device);
}

/* What a session would not understand is refused when it is opened, or before. */
static void refused_types(void) {
  static const struct {
    struct kind kind;
    const char *says;
  } rows[] = {
      {{"ids of floats", SCALAR_FLOAT, SCALAR_LONG, .logits = SCALAR_FLOAT},
       "argument 0 does not fit input 0 of the delegate"},
      {{"int16 ids", SCALAR_SHORT, SCALAR_LONG, .logits = SCALAR_FLOAT},
       "argument 0 does not fit input 0 of the delegate"},
      {{"float64 logits", SCALAR_LONG, SCALAR_LONG, .logits = SCALAR_DOUBLE},
       "output 0 is no row of logits"},
      {{"an encoder", SCALAR_LONG, .no_position = true, .no_length = true, .logits = SCALAR_FLOAT},
       "it is no language model"},
  };
  sconce_device *device = NULL;
  sconce_error err = {0};
  REQUIRE_OK(sconce_device_open(&device, &(sconce_device_desc){0}, &err), err);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct arena arena;
    arena_init(&arena, NULL);
    if (run_kind(&rows[i].kind, device, &arena, &err) == SCONCE_OK ||
        !strstr(err.text, rows[i].says))
      test_fail(__FILE__, __LINE__, "%s: %s", rows[i].kind.why, err.text);
    arena_free(&arena);
  }
  sconce_device_close(device);
}

const struct test suite_session_kinds[] = {
    TEST(other_types_at_the_border), TEST(refused_types), {0}};
