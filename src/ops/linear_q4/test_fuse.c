/* What passes make of 4-bit projections, against plain loops in double: joined ones behind a norm,
 * SwiGLU, a projection with the residual behind it; and what they must leave alone. */
#include "op.h"

#include "graph/rewrite.h"
#include "ops/linear_q4/linear_q4.h"

enum { ROWS_MAX = 133 }; /* rows of x in a graph, where a binding holds them */
enum kind { JOIN, GLU, ADD };
static const char *const shaders[] = {"q4_join", "q4_glu", "q4_add"};

enum twist {
  SWAP = 1,       /* the outer product or the sum: operands the other way round */
  SWAP_INNER = 2, /* gate · sigmoid(gate) as well */
  VIEWS = 4,      /* between the projections and what follows them */
  SEEN = 8,       /* what would vanish is an output */
  SHARED = 16,    /* two projections have one weight */
  READ = 32,      /* another node reads the norm */
  BROADCAST = 64, /* the residual is one row */
  LIVE = 128,     /* …of a tensor that may have as many as x */
  TWICE = 256,    /* alpha is 2 */
  OUTER = 512,    /* views make every gate meet every up */
  SPARE = 1024,   /* the second one's scales have a row that no k needs */
};

struct form {
  const char *why;
  enum kind kind;
  uint32_t k, group, n[3];
  bool norm, bias;
  uint32_t twist;
  bool apart; /* the fused kernel must not run */
};

static const struct form forms[] = {
    {"norm and three", JOIN, 64, 32, {8, 4, 12}, true, false, 0, false},
    {"three of one size, biased", JOIN, 288, 32, {16, 16, 16}, true, true, 0, false},
    {"grouped heads, biased", JOIN, 2048, 64, {32, 8, 8}, true, true, 0, false},
    {"per channel", JOIN, 2048, 2048, {12, 20, 4}, true, false, 0, false},
    {"two behind a norm", JOIN, 288, 288, {20, 4, 0}, true, false, 0, false},
    {"two, biased, no norm", JOIN, 64, 64, {4, 8, 0}, false, true, 0, false},
    {"more than 16 units of 32, below 1024", JOIN, 768, 32, {8, 4, 4}, true, false, 0, false},
    {"a long row", JOIN, 4096, 64, {8, 4, 4}, true, false, 0, false},
    {"three that lie without gaps", JOIN, 64, 32, {64, 64, 128}, true, false, 0, false},
    {"the same in slices of k", JOIN, 1024, 64, {128, 64, 64}, true, false, 0, false},
    {"the same, biased", JOIN, 64, 32, {128, 128, 128}, true, true, 0, false},
    {"two without gaps", JOIN, 64, 64, {64, 128, 0}, false, false, 0, false},
    {"swiglu", GLU, 64, 32, {12, 12}, true, false, 0, false},
    {"swiglu, sum swapped", GLU, 288, 32, {40, 40}, true, false, SWAP, false},
    {"swiglu, sigmoid first", GLU, 2048, 64, {8, 8}, true, false, SWAP_INNER, false},
    {"swiglu, both swapped, no norm",
     GLU,
     288,
     288,
     {4, 4},
     false,
     false,
     SWAP | SWAP_INNER,
     false},
    {"swiglu through views", GLU, 64, 64, {16, 16}, true, false, VIEWS | SWAP, false},
    {"swiglu, k between 512 and 1024", GLU, 768, 64, {8, 8}, true, false, 0, false},
    {"swiglu, a long row", GLU, 4096, 4096, {8, 8}, true, false, 0, false},
    {"residual", ADD, 64, 32, {8}, false, false, 0, false},
    {"residual, projection first", ADD, 288, 32, {24}, false, false, SWAP, false},
    {"residual, groups of 64", ADD, 2048, 64, {36}, false, false, 0, false},
    {"residual through a view", ADD, 288, 288, {20}, false, false, VIEWS, false},
    {"residual, a long row", ADD, 4096, 64, {8}, false, false, SWAP, false},
};
enum { FORMS = sizeof forms / sizeof *forms };

static const struct form apart[] = {
    {"the gate is an output", GLU, 64, 32, {8, 8}, true, false, SEEN, true},
    {"the projection is an output", ADD, 64, 32, {8}, false, false, SEEN, true},
    {"one weight twice", JOIN, 64, 32, {8, 8, 4}, true, false, SHARED, true},
    {"gate and up are one weight", GLU, 64, 32, {8, 8}, true, false, SHARED, true},
    {"a residual of one row", ADD, 64, 32, {8}, false, false, BROADCAST, true},
    {"a residual of one live row", ADD, 64, 32, {8}, false, false, LIVE, false},
    {"alpha", ADD, 64, 32, {8}, false, false, TWICE, true},
    {"alpha, swapped", ADD, 64, 32, {8}, false, false, TWICE | SWAP, true},
    {"a biased residual", ADD, 64, 32, {8}, false, true, 0, true},
    {"biased gates", GLU, 64, 32, {8, 8}, true, true, 0, true},
    {"six rows", JOIN, 64, 32, {6, 8, 4}, true, false, 0, true},
    {"six rows, swiglu", GLU, 64, 32, {6, 6}, true, false, 0, true},
    {"six rows, residual", ADD, 64, 32, {6}, false, false, 0, true},
    {"groups of 96", JOIN, 288, 96, {8, 8, 4}, true, false, 0, true},
    {"k no multiple of 32", JOIN, 72, 72, {8, 8, 4}, true, false, 0, true},
    {"every gate with every up", GLU, 64, 32, {8, 8}, true, false, OUTER, false},
    {"scales to spare", JOIN, 64, 32, {8, 8, 4}, true, false, SPARE, false},
    {"the norm is an output", JOIN, 64, 32, {8, 4, 4}, true, false, SEEN, false},
    {"the norm is read elsewhere", JOIN, 64, 32, {8, 4, 4}, true, false, READ, false},
};
enum { APART = sizeof apart / sizeof *apart };

static const struct form many = {"blocks", JOIN, 64, 32, {20000, 20000, 12}, true, false, 0, false};

/* ---- a graph and its answers ----------------------------------------------------------------- */

struct q4_weight {
  uint32_t n, groups, stride;
  uint8_t *codes; /* (n, stride) */
  double *scales; /* (groups, n to a multiple of 4) */
  double *bias;   /* (n) */
  uint32_t w, s, b;
};

struct model {
  struct op_test t;
  const struct form *f;
  enum vk_dtype dtype;
  uint32_t rows; /* of x, at most */
  struct q4_weight weights[3];
  uint32_t n_weights;
  uint32_t x, rest, out[4], n_out;
  double *norm, *x_values, *rest_values;
  double *y[3]; /* (rows, n) what the projections give */
  double *want[4];
};

static uint32_t up(uint32_t n, uint32_t to) { return (n + to - 1) / to * to; }

/* Scales such that results are about 1. */
static void make_weight(struct model *b, uint32_t i) {
  const struct form *f = b->f;
  struct q4_weight *w = &b->weights[i];
  uint64_t seed = 11 + i + f->k;
  w->n = f->n[i];
  w->stride = up(f->k, 8) / 2;
  w->groups = (f->k + f->group - 1) / f->group + (f->twist & SPARE && i == 1);
  w->codes = malloc((size_t)w->n * w->stride);
  for (uint32_t k = 0; k < w->n * w->stride; k++) w->codes[k] = (uint8_t)(test_random(&seed) >> 9);
  const uint64_t n = (uint64_t)w->groups * up(w->n, 4);
  w->scales = test_values(b->dtype, n, 20 + i);
  for (uint64_t k = 0; k < n; k++) w->scales[k] /= pow(2, floor(log2(sqrt(f->k) * 4)));
  w->bias = test_values(b->dtype, up(w->n, 4), 30 + i);
  if (i == 1 && f->twist & SHARED) memcpy(w->codes, b->weights[0].codes, (size_t)w->n * w->stride);
}

static uint32_t add_linear(struct model *b, uint32_t x, uint32_t i, bool out) {
  struct op_test *t = &b->t;
  struct q4_weight *w = &b->weights[i];
  const bool shared = i == 1 && b->f->twist & SHARED;
  w->w = shared ? b->weights[0].w : op_constant_bytes(t, VK_UINT8, DIMS(w->n, w->stride), w->codes);
  w->s = op_constant(t, b->dtype, DIMS(w->groups, up(w->n, 4)), w->scales);
  w->b = b->f->bias ? op_constant(t, b->dtype, DIMS(up(w->n, 4)), w->bias) : op_null(t);
  uint32_t y = out ? op_output(t, b->dtype, DIMS(b->rows, w->n))
                   : op_tensor(t, b->dtype, DIMS(b->rows, w->n));
  op_node(t, "et_vk.linear_q4gsw.default", IDS(x, w->w, w->s, op_int(t, b->f->group), w->b, y));
  return y;
}

static uint32_t add_view(struct model *b, uint32_t x, uint32_t n) {
  if (!(b->f->twist & VIEWS)) return x;
  struct op_test *t = &b->t;
  uint32_t flat = op_tensor(t, b->dtype, DIMS(b->rows * n)),
           y = op_tensor(t, b->dtype, DIMS(1, b->rows, n));
  op_node(t, "aten.view_copy.default", IDS(x, op_ints(t, INTS(-1)), flat));
  op_node(t, "aten.view_copy.default", IDS(flat, op_ints(t, INTS(1, -1, n)), y));
  return y;
}

static uint32_t tensor_like(struct model *b, uint32_t of, bool out) {
  const struct tensor *t = &b->t.graph.values[of].tensor;
  uint32_t dims[RANK_MAX];
  memcpy(dims, t->dim_max, sizeof dims);
  return out ? op_output(&b->t, b->dtype, dims, t->rank)
             : op_tensor(&b->t, b->dtype, dims, t->rank);
}

static uint32_t add_mul(struct model *b, uint32_t x, uint32_t y, bool swapped, uint32_t out) {
  op_node(&b->t, "aten.mul.Tensor", swapped ? (uint32_t[]){y, x, out} : (uint32_t[]){x, y, out}, 3);
  return out;
}

static void add_glu(struct model *b, uint32_t x) {
  struct op_test *t = &b->t;
  const uint32_t n = b->f->n[0], twist = b->f->twist;
  uint32_t gate = add_linear(b, x, 0, twist & SEEN), u = add_linear(b, x, 1, false);
  if (twist & SEEN) b->out[1] = gate, b->n_out = 2;
  gate = add_view(b, gate, n);
  u = add_view(b, u, n);
  if (twist & OUTER) {
    uint32_t apart_u = op_tensor(t, b->dtype, DIMS(b->rows, 1, n));
    op_node(t, "aten.view_copy.default", IDS(u, op_ints(t, INTS(-1, 1, n)), apart_u));
    u = apart_u;
  }
  uint32_t sigmoid = tensor_like(b, gate, false);
  op_node(t, "aten.sigmoid.default", IDS(gate, sigmoid));
  uint32_t silu = add_mul(b, gate, sigmoid, twist & SWAP_INNER, tensor_like(b, gate, false));
  b->out[0] = twist & OUTER ? op_output(t, b->dtype, DIMS(b->rows, b->rows, n))
                            : tensor_like(b, gate, true);
  add_mul(b, silu, u, twist & SWAP, b->out[0]);
  if (b->n_out == 0) b->n_out = 1;
}

static void add_residual(struct model *b, uint32_t x) {
  struct op_test *t = &b->t;
  const uint32_t n = b->f->n[0], twist = b->f->twist;
  uint32_t y = add_linear(b, x, 0, twist & SEEN);
  if (twist & SEEN) b->out[1] = y;
  y = add_view(b, y, n);
  b->rest = twist & VIEWS ? op_input(t, b->dtype, DIMS(1, b->rows, n))
                          : op_input(t, b->dtype, DIMS(twist & BROADCAST ? 1 : b->rows, n));
  b->out[0] = tensor_like(b, y, true);
  b->n_out = twist & SEEN ? 2 : 1;
  uint32_t alpha = op_int(t, twist & TWICE ? 2 : 1);
  if (twist & SWAP)
    op_node(t, "aten.add.Tensor", IDS(y, b->rest, alpha, b->out[0]));
  else
    op_node(t, "aten.add.Tensor", IDS(b->rest, y, alpha, b->out[0]));
}

/* Norms do not split x. */
static uint32_t rows_that_fit(const struct form *f) {
  const struct gpu *gpu = test_gpu();
  const uint64_t most = gpu ? gpu_caps(gpu).max_storage_binding / (4 * f->k) : ROWS_MAX;
  return most < ROWS_MAX ? (uint32_t)most : ROWS_MAX;
}

static void build(struct model *b, const struct form *f, enum vk_dtype dtype) {
  *b = (struct model){.f = f, .dtype = dtype, .rows = rows_that_fit(f)};
  struct op_test *t = &b->t;
  op_begin(t);
  for (uint32_t i = 0; i < 3 && f->n[i]; i++, b->n_weights++) make_weight(b, i);
  b->norm = test_values(dtype, f->k, 5);
  b->x_values = test_values(dtype, b->rows * f->k, 6);
  b->rest_values = test_values(dtype, b->rows * f->n[0], 7);
  b->x = op_input(t, dtype, DIMS(b->rows, f->k));
  uint32_t x = b->x;
  if (f->norm) {
    const bool out = f->kind == JOIN && f->twist & SEEN;
    x = tensor_like(b, b->x, out);
    uint32_t w = op_constant(t, dtype, DIMS(f->k), b->norm);
    op_node(t, "et_vk.rms_norm.default", IDS(b->x, w, op_double(t, 1e-5), x));
  }
  if (f->kind == GLU) add_glu(b, x);
  if (f->kind == ADD) add_residual(b, x);
  for (uint32_t i = 0; f->kind == JOIN && i < b->n_weights; i++)
    b->out[b->n_out++] = add_linear(b, x, i, true);
  if (f->kind == JOIN && f->twist & SEEN) b->out[b->n_out++] = x;
  if (f->twist & READ) {
    b->out[b->n_out++] = tensor_like(b, x, true);
    op_node(t, "aten.relu.default", IDS(x, b->out[b->n_out - 1]));
  }
}

static void drop(struct model *b) {
  op_end(&b->t);
  for (int i = 0; i < 3; i++) {
    free(b->weights[i].codes);
    free(b->weights[i].scales);
    free(b->weights[i].bias);
    free(b->y[i]);
  }
  for (int i = 0; i < 4; i++) free(b->want[i]);
  free(b->norm);
  free(b->x_values);
  free(b->rest_values);
}

static double code(const struct q4_weight *w, uint32_t n, uint32_t k) {
  uint8_t byte = w->codes[n * w->stride + k / 2];
  return (k & 1 ? byte >> 4 : byte & 15) - 8.0;
}

/* (rows, k) what the projections read. */
static double *normed(const struct model *b, uint32_t rows) {
  const uint32_t width = b->f->k;
  double *h = malloc(((size_t)rows * width + 1) * sizeof *h);
  for (uint32_t m = 0; m < rows; m++) {
    const double *x = b->x_values + (size_t)m * width;
    double squares = 0;
    for (uint32_t k = 0; k < width; k++) squares += x[k] * x[k];
    double factor = 1 / sqrt(squares / width + 1e-5);
    for (uint32_t k = 0; k < width; k++)
      h[(size_t)m * width + k] = b->f->norm ? x[k] * factor * b->norm[k] : x[k];
  }
  return h;
}

static double *projected(const struct model *b, const struct q4_weight *w, const double *h,
                         uint32_t rows) {
  double *y = malloc(((size_t)rows * w->n + 1) * sizeof *y);
  for (uint32_t n = 0; n < w->n; n++)
    for (uint32_t m = 0; m < rows; m++) {
      double sum = b->f->bias ? w->bias[n] : 0;
      for (uint32_t k = 0; k < b->f->k; k++)
        sum += h[(size_t)m * b->f->k + k] * code(w, n, k) *
               w->scales[k / b->f->group * up(w->n, 4) + n];
      y[(size_t)m * w->n + n] = sum;
    }
  return y;
}

static double *copy_of(const double *from, uint64_t n) {
  double *to = malloc((size_t)(n + 1) * sizeof *to);
  memcpy(to, from, (size_t)n * sizeof *to);
  return to;
}

/* Answers for the first `rows` rows of x. */
static void solve(struct model *b, uint32_t rows) {
  const struct form *f = b->f;
  const uint32_t n = f->n[0];
  double *h = normed(b, rows);
  for (uint32_t i = 0; i < b->n_weights; i++) b->y[i] = projected(b, &b->weights[i], h, rows);
  if (f->kind == GLU) {
    const bool outer = f->twist & OUTER;
    const uint32_t turns = outer ? rows : 1;
    b->want[0] = malloc(((size_t)turns * rows * n + 1) * sizeof(double));
    for (uint32_t r = 0; r < turns * rows; r++)
      for (uint32_t c = 0; c < n; c++) {
        double gate = b->y[0][r % rows * n + c], u = b->y[1][(outer ? r / rows : r) * n + c];
        b->want[0][r * n + c] = gate / (1 + exp(-gate)) * u;
      }
    b->want[1] = copy_of(b->y[0], (uint64_t)rows * n);
  } else if (f->kind == ADD) {
    const bool one_row = f->twist & (BROADCAST | LIVE);
    const double alpha = f->twist & TWICE ? 2 : 1;
    b->want[0] = malloc(((size_t)rows * n + 1) * sizeof(double));
    for (uint32_t i = 0; i < rows * n; i++) {
      double rest = b->rest_values[one_row ? i % n : i];
      b->want[0][i] = f->twist & SWAP ? b->y[0][i] + alpha * rest : rest + alpha * b->y[0][i];
    }
    b->want[1] = copy_of(b->y[0], (uint64_t)rows * n);
  } else {
    for (uint32_t i = 0; i < b->n_weights; i++)
      b->want[i] = copy_of(b->y[i], (uint64_t)rows * f->n[i]);
    double *last = b->want[b->n_weights] = copy_of(h, (uint64_t)rows * f->k);
    for (uint32_t i = 0; f->twist & READ && i < rows * f->k; i++)
      if (last[i] < 0) last[i] = 0;
  }
  free(h);
}

/* ---- running --------------------------------------------------------------------------------- */

/* Few rows have a kernel for each kind, many have one for SwiGLU. */
static bool is_fused(const struct model *b, const char *shader) {
  return !strcmp(shader, shaders[b->f->kind]) ||
         (b->f->kind == GLU &&
          (!strcmp(shader, "q4_gemm_glu") || !strcmp(shader, "q4_matrix_glu")));
}

/* Dispatches of the fused kernels in the last plan; *row: the first one's; *sums: of what a
 * residual would be without the fusion. */
static uint32_t fused_records(const struct model *b, const char **row, uint32_t *sums) {
  uint32_t found = 0;
  for (uint32_t i = 0; i < b->t.graph.n_nodes; i++) {
    const struct node *n = &b->t.graph.nodes[i];
    for (uint32_t k = 0; k < n->n_records; k++) {
      const struct kernel *of = n->records[k].row;
      *sums += !strcmp(of->wgsl->name, "binary");
      if (is_fused(b, of->wgsl->name) && found++ == 0) *row = of->name;
    }
  }
  return found;
}

/* Decoding has its parameters in the shaders. */
static bool is_fixed(const struct model *b) {
  bool all = true;
  for (uint32_t i = 0; i < b->t.graph.n_nodes; i++) {
    const struct node *n = &b->t.graph.nodes[i];
    for (uint32_t k = 0; n->n_parts && k < n->n_records; k++)
      all &= n->records[k].row->fixed != NULL;
  }
  return all;
}

static void call(struct model *b, uint32_t m, const char *what) {
  sconce_error err = {0};
  const struct form *f = b->f;
  op_set(&b->t, b->x, DIMS(m, f->k), b->x_values);
  if (f->kind == ADD && f->twist & VIEWS)
    op_set(&b->t, b->rest, DIMS(1, m, f->n[0]), b->rest_values);
  else if (f->kind == ADD)
    op_set(&b->t, b->rest, DIMS(f->twist & (BROADCAST | LIVE) ? 1 : m, f->n[0]), b->rest_values);
  CHECK_OK(op_run(&b->t, &err), err);
  /* Parts round between them; a fused kernel only at the end. */
  const bool rough = b->dtype == VK_FLOAT16 || b->t.graph.caps.fast;
  const double tolerance = rough ? 6e-3 : 2e-5;
  for (uint32_t i = 0; i < b->n_out && !test_failed(); i++) {
    uint64_t n;
    const double *got = op_get(&b->t, b->out[i], &n);
    double *outer = NULL;
    if (f->twist & OUTER && m) { /* the answers are of all rows with all */
      outer = malloc((size_t)n * sizeof *outer);
      for (uint64_t e = 0; e < n; e++)
        outer[e] =
            b->want[0][(e / f->n[0] / m * b->rows + e / f->n[0] % m) * f->n[0] + e % f->n[0]];
    }
    test_close(got, outer ? outer : b->want[i], n, tolerance, tolerance, what);
    free(outer);
  }
}

/* Every live count of rows in one graph; true if `force` was what ran. */
static bool run(const struct form *f, enum vk_dtype dtype, const char *force, const char *off) {
  static const uint32_t live[] = {1, 3, 4, 8, 20, 0, ROWS_MAX, 4};
  struct model b;
  sconce_error err = {0};
  bool taken = false;
  build(&b, f, dtype);
  b.t.graph.passes_off = off;
  CHECK_OK(op_load(&b.t, force, &err), err);
  const bool loaded = !test_failed();
  if (loaded) solve(&b, b.rows);
  for (size_t i = 0; i < sizeof live / sizeof *live && !test_failed(); i++) {
    char what[200];
    const char *row = "";
    const uint32_t m = live[i] < b.rows ? live[i] : b.rows;
    snprintf(what, sizeof what, "%s, m %u, %s, %s, without %s", f->why, m, vk_dtype_name(dtype),
             force ? force : "chosen", off ? off : "nothing");
    call(&b, m, what);
    uint32_t sums = 0;
    const uint32_t fused = fused_records(&b, &row, &sums);
    taken |= fused && force && !strcmp(row, force);
    const bool more = m > q4_vector_rows(&b.t.graph);
    const bool may = m && !f->apart && (!more || f->kind == GLU);
    const bool sure = off == NULL && force == NULL && !(f->twist & (LIVE | OUTER | SPARE));
    if (sure && (fused > 0) != may)
      test_fail(__FILE__, __LINE__, "%s: %u fused dispatches", what, fused);
    if (sure && more && f->kind == ADD && (sums == 0) == f->apart)
      test_fail(__FILE__, __LINE__, "%s: %u sums", what, sums);
    if (off == NULL && fused && may) CHECK(is_fixed(&b) == (m == 1));
    if (off && !strcmp(off, "all")) CHECK_EQ(fused, 0);
  }
  drop(&b);
  return taken;
}

static void every_form(void) {
  const bool slow = test_gpu_is_slow(); /* then each in one of the types */
  for (size_t i = 0; i < FORMS && !test_failed(); i++) {
    if (!slow || i % 2 == 0) run(&forms[i], VK_FLOAT32, NULL, NULL);
    if (!slow || i % 2 == 1) run(&forms[i], VK_FLOAT16, NULL, NULL);
  }
}

/* Rows that this device cannot run are not asked for; where one fits nothing, others serve. */
static void every_row_of_the_tables(void) {
  struct gpu *gpu = test_gpu();
  const struct op *op = op_find(text_of("sconce.linear_q4"));
  REQUIRE(gpu && op);
  const struct caps caps = gpu_caps(gpu);
  for (int kind = JOIN; kind <= ADD; kind++)
    for (const struct kernel *row = op->tables[kind]; row->name && !test_failed(); row++) {
      if (!kernel_runs(row, &caps) || row->needs & NEEDS_FAST) continue; /* many_rows_in_f16 */
      enum vk_dtype dtype = test_has_suffix(row->name, "f16") ? VK_FLOAT16 : VK_FLOAT32;
      bool taken = false;
      CHECK(
          is_fused(&(struct model){.f = &(struct form){.kind = (enum kind)kind}}, row->wgsl->name));
      for (size_t i = 0; i < FORMS; i++)
        if ((int)forms[i].kind == kind && !(taken && test_gpu_is_slow()))
          taken |= run(&forms[i], dtype, row->name, NULL);
      if (!taken)
        test_fail(__FILE__, __LINE__, "%s/%s serves no form of this test", shaders[kind],
                  row->name);
    }
}

static void each_pass_off(void) {
  static const char *const off[] = {"join",   "swiglu", "residual",  "norm",
                                    "rotary", "all",    "join,norm", "swiglu,residual"};
  for (size_t i = 0; i < FORMS; i++)
    for (size_t k = 0; k < sizeof off / sizeof *off && !test_failed(); k++)
      if (forms[i].k < 4096 && !(test_gpu_is_slow() && (i + k) % 3))
        run(&forms[i], k % 2 ? VK_FLOAT16 : VK_FLOAT32, NULL, off[k]);
}

static void what_must_stay_apart(void) {
  for (size_t i = 0; i < APART; i++) {
    run(&apart[i], VK_FLOAT32, NULL, NULL);
    run(&apart[i], VK_FLOAT16, NULL, NULL);
    run(&apart[i], VK_FLOAT32, NULL, "all");
  }
}

/* A norm that somebody else sees stays a node of its own. */
static void a_norm_with_other_readers_stays(void) {
  for (size_t i = 0; i < APART; i++) {
    if (apart[i].kind != JOIN || !(apart[i].twist & (SEEN | READ))) continue;
    struct model b;
    sconce_error err = {0};
    uint32_t norms = 0;
    build(&b, &apart[i], VK_FLOAT32);
    CHECK_OK(op_load(&b.t, NULL, &err), err);
    for (uint32_t k = 0; k < b.t.graph.n_nodes; k++)
      norms += !strcmp(b.t.graph.nodes[k].name, "et_vk.rms_norm.default");
    CHECK_EQ(norms, 1);
    drop(&b);
  }
}

/* Projections of many rows in f16, where the device has subgroup matrices. */
static void many_rows_in_f16(void) {
  const struct op *op = op_find(text_of("et_vk.linear_q4gsw.default"));
  struct gpu *gpu = test_gpu();
  REQUIRE(gpu && op);
  const struct caps caps = gpu_caps(gpu);
  uint32_t ran = 0;
  for (const struct kernel *row = op->tables[0]; row->name && !test_failed(); row++)
    for (size_t i = 0; i < FORMS && !test_failed(); i++) {
      if (!(row->needs & NEEDS_FAST) || !kernel_runs(row, &caps) || forms[i].k > 2048) continue;
      struct model b;
      sconce_error err = {0};
      build(&b, &forms[i], row->dtypes & OF_F16 ? VK_FLOAT16 : VK_FLOAT32);
      b.t.graph.caps.fast = true;
      CHECK_OK(op_load(&b.t, row->name, &err), err);
      if (!test_failed()) {
        solve(&b, b.rows);
        const char *taken = "";
        uint32_t sums = 0;
        call(&b, b.rows, forms[i].why);
        call(&b, 9, forms[i].why);
        if (forms[i].kind == GLU && !fused_records(&b, &taken, &sums))
          test_fail(__FILE__, __LINE__, "%s: gate and up are not one product", forms[i].why);
      }
      drop(&b);
      ran++;
    }
  if (ran == 0) test_skip("no row of this device multiplies in f16");
}

static uint32_t records_of(const struct model *b, const char *shader) {
  uint32_t found = 0;
  for (uint32_t i = 0; i < b->t.graph.n_nodes; i++)
    for (uint32_t k = 0; k < b->t.graph.nodes[i].n_records; k++)
      found += !strcmp(b->t.graph.nodes[i].records[k].row->wgsl->name, shader);
  return found;
}

/* In tiles, products in slices of k are one product and one kernel that adds up and hands out; with
 * tiles enough each is by itself. */
static void many_rows_as_one(void) {
  static const struct form wide[] = {
      {"sliced", JOIN, 1024, 64, {128, 64, 64}, true, false, 0, false},
      {"sliced, biased", JOIN, 1024, 64, {128, 128, 128}, true, true, 0, false},
      {"two, sliced", JOIN, 512, 512, {256, 128, 0}, false, false, 0, false},
      {"not sliced", JOIN, 256, 64, {128, 64, 64}, true, false, 0, false},
  };
  for (size_t i = 0; i < 2 * (sizeof wide / sizeof *wide) && !test_failed(); i++) {
    const struct form *f = &wide[i / 2];
    const bool sliced = f->k > 256;
    struct model b;
    sconce_error err = {0};
    build(&b, f, i % 2 ? VK_FLOAT16 : VK_FLOAT32);
    CHECK_OK(op_load(&b.t, NULL, &err), err);
    if (!test_failed()) {
      solve(&b, b.rows);
      call(&b, b.rows, f->why); /* whole tiles and a few rows more */
      CHECK_EQ(records_of(&b, "q4_sums_join"), sliced ? 2 : 0);
      if (sliced) CHECK_EQ(records_of(&b, "q4_gemm"), 2);
      call(&b, 33, f->why);
      if (sliced) CHECK_EQ(records_of(&b, "q4_gemm"), 1);
      call(&b, b.rows, f->why);
    }
    drop(&b);
  }
}

/* More rows than workgroups of one block each: x is staged once for several. */
static void several_blocks(void) {
  if (test_gpu_is_slow()) {
    test_skip("a weight of many blocks takes minutes here");
    return;
  }
  const struct op *op = op_find(text_of("sconce.linear_q4"));
  struct gpu *gpu = test_gpu();
  REQUIRE(gpu && op);
  const struct caps caps = gpu_caps(gpu);
  for (const struct kernel *row = op->tables[JOIN]; row->name && !test_failed(); row++) {
    if (!kernel_runs(row, &caps)) continue;
    const uint32_t few = q4_vector_rows(&(struct graph){.caps = caps, .force = row->name});
    struct model b;
    sconce_error err = {0};
    build(&b, &many, test_has_suffix(row->name, "f16") ? VK_FLOAT16 : VK_FLOAT32);
    CHECK_OK(op_load(&b.t, row->name, &err), err);
    if (!test_failed()) {
      solve(&b, few);
      call(&b, few, row->name);
    }
    drop(&b);
  }
}

const struct test suite_fuse[] = {TEST(every_form),
                                  TEST(every_row_of_the_tables),
                                  TEST(each_pass_off),
                                  TEST(what_must_stay_apart),
                                  TEST(a_norm_with_other_readers_stays),
                                  TEST(many_rows_in_f16),
                                  TEST(many_rows_as_one),
                                  TEST(several_blocks),
                                  {0}};
