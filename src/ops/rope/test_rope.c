/* Rotary embeddings in three forms, against the rotation written in double. */
#include "op.h"

enum form { PAIRS, HALVES, BY_HEAD /* pairs, each head has angles of its own */ };

static const struct {
  enum form form;
  uint32_t batch, seq, heads_q, heads_k, dim, rotary;
  const char *why;
} cases[] = {
    {PAIRS, 1, 5, 4, 2, 8, 8, "pairs, grouped heads"},
    {PAIRS, 2, 3, 3, 1, 6, 6, "pairs, a batch, odd counts"},
    {PAIRS, 1, 1, 1, 1, 2, 2, "one pair"},
    {PAIRS, 1, 9, 8, 2, 64, 64, "pairs, more than one workgroup"},
    {HALVES, 1, 5, 4, 2, 8, 8, "halves, grouped heads"},
    {HALVES, 2, 3, 3, 1, 6, 6, "halves of 3: words hold both"},
    {HALVES, 1, 4, 2, 2, 10, 4, "partial: six elements pass through"},
    {HALVES, 1, 3, 1, 1, 7, 2, "an odd head, words across heads"},
    {HALVES, 1, 9, 8, 2, 64, 64, "halves, more than one workgroup"},
};
enum { CASES = sizeof cases / sizeof *cases, POSITIONS = 24 };

static void rotate(size_t i, uint32_t heads, uint32_t seq, uint32_t start, const double *x,
                   const double *c, const double *s, double *y) {
  uint32_t dim = cases[i].dim, rotary = cases[i].rotary;
  for (uint64_t row = 0; row < (uint64_t)cases[i].batch * seq * heads; row++) {
    const double *from = x + row * dim;
    double *to = y + row * dim;
    uint64_t t = start + row / heads % seq;
    for (uint32_t d = rotary; d < dim; d++) to[d] = from[d];
    for (uint32_t k = 0; k < rotary / 2; k++) {
      bool pairs = cases[i].form != HALVES;
      uint32_t a = pairs ? 2 * k : k, b = pairs ? 2 * k + 1 : k + rotary / 2;
      uint64_t at_a = pairs ? t * (rotary / 2) + k : t * rotary + a;
      uint64_t at_b = pairs ? at_a : t * rotary + b;
      to[a] = from[a] * c[at_a] - from[b] * s[at_a];
      to[b] = from[b] * c[at_b] + from[a] * s[at_b];
    }
  }
}

struct rope {
  struct op_test t;
  size_t i; /* of its case */
  enum vk_dtype dtype;
  uint32_t q, k, cos, sin, start, yq, yk;
};

static void load(struct rope *r, size_t i, enum vk_dtype dtype) {
  sconce_error err = {0};
  uint32_t batch = cases[i].batch, seq = cases[i].seq, dim = cases[i].dim;
  *r = (struct rope){.i = i, .dtype = dtype};
  op_begin(&r->t);
  r->q = op_input(&r->t, dtype, DIMS(batch, seq, cases[i].heads_q, dim));
  r->k = op_input(&r->t, dtype, DIMS(batch, seq, cases[i].heads_k, dim));
  bool pairs = cases[i].form == PAIRS;
  uint32_t rows = pairs ? seq : POSITIONS, width = pairs ? dim / 2 : cases[i].rotary;
  r->cos = op_input(&r->t, dtype, DIMS(rows, width));
  r->sin = op_input(&r->t, dtype, DIMS(rows, width));
  r->yq = op_output(&r->t, dtype, DIMS(batch, seq, cases[i].heads_q, dim));
  r->yk = op_output(&r->t, dtype, DIMS(batch, seq, cases[i].heads_k, dim));
  uint32_t y = op_list(&r->t, IDS(r->yq, r->yk));
  if (pairs) {
    op_node(&r->t, "et_vk.apply_rotary_emb.default", IDS(r->q, r->k, r->cos, r->sin, y));
  } else {
    r->start = op_symint(&r->t);
    op_node(&r->t, "et_vk.apply_rotary_emb_hf.default",
            IDS(r->q, r->k, r->cos, r->sin, r->start, y));
  }
  CHECK_OK(op_load(&r->t, NULL, &err), err);
}

static void check_output(struct rope *r, uint32_t output, const double *x, uint32_t heads,
                         uint32_t seq, uint32_t start, const double *c, const double *s) {
  uint64_t n;
  const double *got = op_get(&r->t, output, &n);
  CHECK_EQ(n, (uint64_t)cases[r->i].batch * seq * heads * cases[r->i].dim);
  double *want = calloc((size_t)n + 1, sizeof *want);
  rotate(r->i, heads, seq, start, x, c, s, want);
  double tolerance = r->dtype == VK_FLOAT16 ? 1e-3 : 1e-6;
  if (!test_failed()) test_close(got, want, n, tolerance, tolerance, cases[r->i].why);
  free(want);
}

static void call(struct rope *r, uint32_t seq, uint32_t start) {
  if (test_failed()) return;
  sconce_error err = {0};
  uint32_t batch = cases[r->i].batch, dim = cases[r->i].dim, hq = cases[r->i].heads_q,
           hk = cases[r->i].heads_k;
  bool pairs = cases[r->i].form == PAIRS;
  uint32_t rows = pairs ? seq : POSITIONS, width = pairs ? dim / 2 : cases[r->i].rotary;
  double *q = test_values(r->dtype, (uint64_t)batch * seq * hq * dim, 1 + seq);
  double *k = test_values(r->dtype, (uint64_t)batch * seq * hk * dim, 2 + seq);
  double *c = test_values(r->dtype, (uint64_t)rows * width, 3),
         *s = test_values(r->dtype, (uint64_t)rows * width, 4);
  op_set(&r->t, r->q, DIMS(batch, seq, hq, dim), q);
  op_set(&r->t, r->k, DIMS(batch, seq, hk, dim), k);
  op_set(&r->t, r->cos, DIMS(rows, width), c);
  op_set(&r->t, r->sin, DIMS(rows, width), s);
  if (!pairs) op_set_symint(&r->t, r->start, start);
  CHECK_OK(op_run(&r->t, &err), err);
  if (!test_failed()) {
    check_output(r, r->yq, q, hq, seq, start, c, s);
    check_output(r, r->yk, k, hk, seq, start, c, s);
  }
  free(q);
  free(k);
  free(c);
  free(s);
}

static void every_form_and_live_shape(void) {
  for (size_t i = 0; i < CASES; i++)
    for (int half = 0; half < 2; half++) {
      struct rope r;
      uint32_t seq = cases[i].seq, start = cases[i].form == HALVES ? 7 : 0;
      load(&r, i, half ? VK_FLOAT16 : VK_FLOAT32);
      call(&r, seq, start);
      call(&r, 1, start * 2);
      call(&r, 0, 0);
      call(&r, (seq + 1) / 2, start + start / 2);
      call(&r, seq, start ? POSITIONS - seq : 0);
      op_end(&r.t);
    }
}

/* (batch, heads, seq, dim) with tables (batch or 1, seq, width). */
static void heads_first(enum vk_dtype dtype, uint32_t batch, uint32_t tables, uint32_t heads_q,
                        uint32_t heads_k, uint32_t seq, uint32_t dim, uint32_t width) {
  sconce_error err = {0};
  struct op_test t;
  op_begin(&t);
  const uint32_t heads[2] = {heads_q, heads_k};
  uint32_t x[2], y[2], table[2];
  for (int i = 0; i < 2; i++) {
    x[i] = op_input(&t, dtype, DIMS(batch, heads[i], seq, dim));
    y[i] = op_output(&t, dtype, DIMS(batch, heads[i], seq, dim));
  }
  for (int i = 0; i < 2; i++) table[i] = op_input(&t, dtype, DIMS(tables, seq, width));
  op_node(&t, "et_vk.apply_rotary_emb_hf.default",
          IDS(x[0], x[1], table[0], table[1], op_int(&t, 0), op_list(&t, IDS(y[0], y[1]))));
  CHECK_OK(op_load(&t, NULL, &err), err);
  double *c = test_values(dtype, (uint64_t)tables * seq * width, 3);
  double *s = test_values(dtype, (uint64_t)tables * seq * width, 4), *values[2];
  for (int i = 0; i < 2; i++)
    values[i] = test_values(dtype, (uint64_t)batch * heads[i] * seq * dim, 1 + (uint64_t)i);
  if (t.loaded) {
    for (int i = 0; i < 2; i++) op_set(&t, x[i], DIMS(batch, heads[i], seq, dim), values[i]);
    op_set(&t, table[0], DIMS(tables, seq, width), c);
    op_set(&t, table[1], DIMS(tables, seq, width), s);
    CHECK_OK(op_run(&t, &err), err);
  }
  for (int i = 0; t.loaded && i < 2; i++) {
    uint64_t n;
    const double *got = op_get(&t, y[i], &n);
    double *want = calloc((size_t)n, sizeof *want);
    for (uint64_t e = 0; e < n; e++) {
      const uint64_t d = e % dim, token = e / dim % seq, b = e / dim / seq / heads[i];
      const uint64_t at = ((tables > 1 ? b : 0) * seq + token) * width + d;
      const bool low = d < width / 2;
      want[e] = d >= width
                    ? values[i][e]
                    : values[i][e] * c[at] +
                          (low ? -values[i][e + width / 2] : values[i][e - width / 2]) * s[at];
    }
    test_close(got, want, n, dtype == VK_FLOAT16 ? 2e-3 : 1e-5, 1e-5, "heads first");
    free(want);
  }
  free(c), free(s), free(values[0]), free(values[1]);
  op_end(&t);
}

static void tables_of_rank_3_mean_heads_first(void) {
  static const enum vk_dtype dtypes[] = {VK_FLOAT32, VK_FLOAT16};
  for (int i = 0; i < 2; i++) {
    heads_first(dtypes[i], 1, 1, 4, 4, 6, 16, 8);  /* heads as many as keys, partial */
    heads_first(dtypes[i], 2, 2, 4, 2, 5, 16, 16); /* a table for each of a batch, grouped heads */
    heads_first(dtypes[i], 3, 1, 2, 1, 3, 10, 6);  /* one table for all */
    heads_first(dtypes[i], 1, 1, 8, 8, 3, 16, 8);  /* fewer tokens than heads */
  }
}

static void positions_outside_the_tables_are_refused(void) {
  sconce_error err = {0};
  struct rope r;
  load(&r, 4, VK_FLOAT32);
  call(&r, 5, POSITIONS - 5);
  op_set_symint(&r.t, r.start, POSITIONS - 4);
  CHECK_FAILS(op_run(&r.t, &err), SCONCE_BAD_ARGUMENT, err,
              "5 positions from 20 on, the tables have 24: outside the context that the model was");
  op_set_symint(&r.t, r.start, -1);
  CHECK_FAILS(op_run(&r.t, &err), SCONCE_BAD_ARGUMENT, err, "5 positions from -1 on");
  call(&r, 5, 2);
  op_end(&r.t);
}

/* The position as an Int or a Double, and a table whose halves differ. */
static void the_position_may_be_any_number(void) {
  for (int as_double = 0; as_double < 2; as_double++) {
    struct op_test t;
    sconce_error err = {0};
    op_begin(&t);
    uint32_t q = op_input(&t, VK_FLOAT32, DIMS(1, 1, 1, 2)),
             k = op_input(&t, VK_FLOAT32, DIMS(1, 1, 1, 2));
    double c[] = {9, 9, 9, 9, 1, 10, 9, 9}, s[] = {9, 9, 9, 9, 2, 20, 9, 9};
    uint32_t cosine = op_constant(&t, VK_FLOAT32, DIMS(4, 2), c),
             sine = op_constant(&t, VK_FLOAT32, DIMS(4, 2), s);
    uint32_t yq = op_output(&t, VK_FLOAT32, DIMS(1, 1, 1, 2)),
             yk = op_output(&t, VK_FLOAT32, DIMS(1, 1, 1, 2));
    op_node(&t, "et_vk.apply_rotary_emb_hf.default",
            IDS(q, k, cosine, sine, as_double ? op_double(&t, 2.0) : op_int(&t, 2),
                op_list(&t, IDS(yq, yk))));
    CHECK_OK(op_load(&t, NULL, &err), err);
    if (!test_failed()) {
      op_set(&t, q, DIMS(1, 1, 1, 2), (double[]){3, 5});
      op_set(&t, k, DIMS(1, 1, 1, 2), (double[]){1, 0});
      CHECK_OK(op_run(&t, &err), err);
      uint64_t n;
      test_close(op_get(&t, yq, &n), (double[]){3 * 1 - 5 * 2, 5 * 10 + 3 * 20}, 2, 0, 0,
                 "queries");
      test_close(op_get(&t, yk, &n), (double[]){1, 20}, 2, 0, 0, "keys");
    }
    op_end(&t);
  }
}

static void one_interleaved_table(void) {
  static const uint32_t live[][2] = {{2, 5}, {2, 1}, {1, 5}, {0, 5}, {2, 5}};
  enum { C = 6 };
  for (int half = 0; half < 2; half++) {
    enum vk_dtype dtype = half ? VK_FLOAT16 : VK_FLOAT32;
    struct op_test t;
    sconce_error err = {0};
    op_begin(&t);
    uint32_t x = op_input(&t, dtype, DIMS(2, 5, C)), f = op_input(&t, dtype, DIMS(1, 5, C / 2, 2));
    uint32_t y = op_output(&t, dtype, DIMS(2, 5, C));
    op_node(&t, "et_vk.apply_rotary_emb_interleaved.default", IDS(x, f, y));
    CHECK_OK(op_load(&t, NULL, &err), err);
    for (size_t i = 0; i < sizeof live / sizeof *live && !test_failed(); i++) {
      uint32_t batch = live[i][0], seq = live[i][1];
      uint64_t n = (uint64_t)batch * seq * C;
      double *vx = test_values(dtype, n, 5), *vf = test_values(dtype, (uint64_t)seq * C, 6);
      double want[2 * 5 * C];
      for (uint64_t e = 0; e < n; e += 2) {
        double c = vf[e % (seq * C)], s = vf[e % (seq * C) + 1];
        want[e] = vx[e] * c - vx[e + 1] * s;
        want[e + 1] = vx[e] * s + vx[e + 1] * c;
      }
      op_set(&t, x, DIMS(batch, seq, C), vx);
      op_set(&t, f, DIMS(1, seq, C / 2, 2), vf);
      CHECK_OK(op_run(&t, &err), err);
      uint64_t got_n;
      const double *got = op_get(&t, y, &got_n);
      CHECK_EQ(got_n, n);
      test_close(got, want, n, half ? 1e-3 : 1e-6, 0, "interleaved");
      free(vx);
      free(vf);
    }
    op_end(&t);
  }
}

static void bad_arguments_are_refused(void) {
  static const struct {
    const char *name;
    uint32_t k[4], table[2];
    enum vk_dtype dtype, tables;
    sconce_status status;
    const char *says;
  } bad[] = {
      {"et_vk.apply_rotary_emb.default",
       {1, 4, 2, 8},
       {4, 8},
       VK_FLOAT32,
       VK_FLOAT32,
       SCONCE_BAD_GRAPH,
       "rows of 8 angles for heads of 8"},
      {"et_vk.apply_rotary_emb.default",
       {1, 4, 2, 6},
       {4, 4},
       VK_FLOAT32,
       VK_FLOAT32,
       SCONCE_BAD_GRAPH,
       "the keys float32 [1, 4, 2, 6]"},
      {"et_vk.apply_rotary_emb.default",
       {1, 4, 2, 8},
       {4, 4},
       VK_FLOAT16,
       VK_FLOAT32,
       SCONCE_BAD_GRAPH,
       "float16 [1, 4, 2, 8] together with float32 [4, 4]"},
      {"et_vk.apply_rotary_emb.default",
       {1, 4, 2, 8},
       {4, 4},
       VK_INT32,
       VK_INT32,
       SCONCE_UNSUPPORTED,
       "the rotation of int32"},
      {"et_vk.apply_rotary_emb_hf.default",
       {1, 4, 2, 8},
       {9, 10},
       VK_FLOAT32,
       VK_FLOAT32,
       SCONCE_BAD_GRAPH,
       "rows of 10 angles for heads of 8"},
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    struct op_test t;
    sconce_error err = {0};
    op_begin(&t);
    uint32_t q = op_input(&t, bad[i].dtype, DIMS(1, 4, 2, 8)),
             k = op_input(&t, bad[i].dtype, bad[i].k, 4);
    uint32_t c = op_input(&t, bad[i].tables, bad[i].table, 2),
             s = op_input(&t, bad[i].tables, bad[i].table, 2);
    uint32_t yq = op_output(&t, bad[i].dtype, DIMS(1, 4, 2, 8)),
             yk = op_output(&t, bad[i].dtype, bad[i].k, 4);
    uint32_t y = op_list(&t, IDS(yq, yk));
    if (strstr(bad[i].name, "_hf"))
      op_node(&t, bad[i].name, IDS(q, k, c, s, op_int(&t, 0), y));
    else
      op_node(&t, bad[i].name, IDS(q, k, c, s, y));
    CHECK_FAILS(op_try(&t, &err), bad[i].status, err, bad[i].says);
    op_end(&t);
  }
}

/* Queries alone: the keys of another layer's cache were turned there. */
static void one_tensor(void) {
  for (size_t i = 4; i < CASES; i++) {
    const enum vk_dtype dtype = i % 2 ? VK_FLOAT16 : VK_FLOAT32;
    const uint32_t batch = cases[i].batch, heads = cases[i].heads_q, dim = cases[i].dim;
    struct rope r = {.i = i, .dtype = dtype};
    struct op_test *t = &r.t;
    sconce_error err = {0};
    op_begin(t);
    r.q = op_input(t, dtype, DIMS(batch, cases[i].seq, heads, dim));
    r.cos = op_input(t, dtype, DIMS(POSITIONS, cases[i].rotary));
    r.sin = op_input(t, dtype, DIMS(POSITIONS, cases[i].rotary));
    r.yq = op_output(t, dtype, DIMS(batch, cases[i].seq, heads, dim));
    r.start = op_symint(t);
    op_node(t, "et_vk.apply_rotary_emb_hf_single.default", IDS(r.q, r.cos, r.sin, r.start, r.yq));
    CHECK_OK(op_load(t, NULL, &err), err);
    const uint32_t seqs[] = {cases[i].seq, 1, 0, 2};
    for (uint32_t k = 0; k < 4 && !test_failed(); k++) {
      double *q = test_values(dtype, (uint64_t)batch * seqs[k] * heads * dim, k + 1);
      double *c = test_values(dtype, (uint64_t)POSITIONS * cases[i].rotary, 3);
      double *s = test_values(dtype, (uint64_t)POSITIONS * cases[i].rotary, 4);
      op_set(t, r.q, DIMS(batch, seqs[k], heads, dim), q);
      op_set(t, r.cos, DIMS(POSITIONS, cases[i].rotary), c);
      op_set(t, r.sin, DIMS(POSITIONS, cases[i].rotary), s);
      op_set_symint(t, r.start, 3 * k);
      CHECK_OK(op_run(t, &err), err);
      check_output(&r, r.yq, q, heads, seqs[k], 3 * k, c, s);
      free(q);
      free(c);
      free(s);
    }
    op_end(t);
  }
}

const struct test suite_rope[] = {TEST(one_tensor),
                                  TEST(every_form_and_live_shape),
                                  TEST(tables_of_rank_3_mean_heads_first),
                                  TEST(positions_outside_the_tables_are_refused),
                                  TEST(the_position_may_be_any_number),
                                  TEST(one_interleaved_table),
                                  TEST(bad_arguments_are_refused),
                                  {0}};
