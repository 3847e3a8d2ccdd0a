/* Random graphs against a plain interpreter: a few nodes of every family (tests/random), each with
 * what it means in double, and one live size and one position that change from call to call. Each
 * value knows how far the device may be off: most graphs are exact.
 *
 *   SCONCE_RANDOM=10000 SCONCE_SEED=1 build/sconce_tests --filter random/graphs
 *
 * A graph that fails is made smaller as long as it fails, and printed with its seed. */
#include "random/random.h"

#include "harness.h"

static const struct random_kind *const families[] = {
    random_elementwise, random_compound,  random_movement, random_filling,     random_reduction,
    random_indexing,    random_places,    random_dense,    random_convolution, random_spatial,
    random_norm,        random_attention, random_rotary,   random_bytes,       random_q8ta,
    random_packed,      random_training};
enum { FAMILIES = sizeof families / sizeof *families, KINDS_MOST = 128 };

struct program {
  struct var vars[VARS]; /* inputs, then the result of each step */
  struct step steps[STEPS];
  uint32_t n; /* steps */
  bool shown[VARS];
  bool specials; /* among the inputs: NaN and infinities */
};

/* Kind i of all families; NULL: there are fewer. */
static const struct random_kind *kind_at(uint32_t i) {
  for (uint32_t f = 0; f < FAMILIES; f++)
    for (const struct random_kind *k = families[f]; k->name; k++)
      if (i-- == 0) return k;
  return NULL;
}

static uint32_t count_kinds(void) {
  uint32_t n = 0;
  while (kind_at(n)) n++;
  return n;
}

static uint64_t numel_at(const struct var *v, uint32_t n) {
  uint32_t dims[4];
  dims_at(v, n, dims);
  return numel_of(dims);
}

/* Rounding of a result that had no error but for its operands'. */
static void settle(struct var *v) {
  const double digits = v->most / v->grain;
  const double most = v->dtype == VK_FLOAT16 ? 2048 : 16777216;
  if (v->dtype != VK_FLOAT16 && v->dtype != VK_FLOAT32) return;
  if (v->error == 0 && digits <= most) return;
  v->error += v->most * (v->dtype == VK_FLOAT16 ? 1e-3 : 2e-6);
}

static void operands_of(const struct program *p, const struct step *s, const struct var *x[3]) {
  for (int i = 0; i < 3; i++) x[i] = &p->vars[s->args[i]];
}

/* ---- generating ------------------------------------------------------------------------------ */

static void draw_input(struct var *v, uint64_t *seed) {
  static const enum vk_dtype dtypes[] = {VK_FLOAT32, VK_FLOAT32, VK_FLOAT32, VK_INT32,
                                         VK_FLOAT16, VK_FLOAT16, VK_BOOL,    VK_INT8};
  v->dtype = dtypes[below(seed, 8)];
  v->most = v->dtype == VK_BOOL ? 1 : 8;
  v->grain = is_float(v) ? 0.25 : 1;
  for (int d = 0; d < 3; d++) v->offset[d] = d == 2 ? 3 + below(seed, 2) * 2 : 1 + below(seed, 3);
  if (below(seed, 2)) v->offset[2] = below(seed, 2) ? 8 : 4; /* heads, groups of codes */
  if (below(seed, 4)) v->scale[below(seed, 2)] = 1, v->offset[0] = v->scale[0] ? 0 : v->offset[0];
  if (v->scale[1]) v->offset[1] = 0;
}

/* Every third step is elementwise: most names are. */
enum { ELEMENTWISE = 5, OPERANDS = 12 };

/* One step more, if one of some choices of operands fits. */
static void draw_step(struct program *p, uint32_t kinds, uint64_t *seed) {
  const uint32_t n = INPUTS + p->n, kind = below(seed, below(seed, 3) ? kinds : ELEMENTWISE);
  for (int tries = 0; tries < OPERANDS; tries++) {
    struct step s = {.kind = kind};
    struct var y;
    const struct var *x[3];
    for (int i = 0; i < 3; i++) s.args[i] = below(seed, n);
    operands_of(p, &s, x);
    if (!kind_at(kind)->pick(x, seed, &s, &y) || (p->specials && !s.specials)) continue;
    settle(&y);
    const double most = y.dtype == VK_INT32 ? 1e9 : y.dtype == VK_FLOAT16 ? 3e4 : 1e6;
    if (y.most > most || y.error > 0.02 * (1 + y.most) || numel_at(&y, LARGEST) > ROOM) continue;
    p->vars[n] = y;
    p->steps[p->n++] = s;
    p->shown[n] = below(seed, 3) == 0;
    return;
  }
}

static void generate(struct program *p, uint64_t *seed) {
  const uint32_t kinds = count_kinds();
  *p = (struct program){.specials = below(seed, 5) == 0};
  for (uint32_t i = 0; i < INPUTS; i++) draw_input(&p->vars[i], seed);
  for (int tries = 0; tries < 400 && p->n < STEPS; tries++) draw_step(p, kinds, seed);
  p->shown[INPUTS + p->n - 1] = true;
}

/* ---- interpreting ---------------------------------------------------------------------------- */

struct numbers {
  double *of[VARS], *kept[STEPS];
  uint32_t n, position;
};

static void numbers_init(struct numbers *d) {
  *d = (struct numbers){0};
  for (int i = 0; i < VARS; i++) d->of[i] = calloc(ROOM + 1, sizeof **d->of);
  for (int i = 0; i < STEPS; i++) d->kept[i] = calloc(ROOM + 1, sizeof **d->kept);
}

static void numbers_free(struct numbers *d) {
  for (int i = 0; i < VARS; i++) free(d->of[i]);
  for (int i = 0; i < STEPS; i++) free(d->kept[i]);
}

static void interpret(const struct program *p, uint32_t i, const struct numbers *d) {
  const struct step *s = &p->steps[i];
  const uint32_t y = INPUTS + i;
  struct seen in = {
      .dtype = p->vars[y].dtype, .n = d->n, .position = d->position, .kept = d->kept[i]};
  for (int k = 0; k < 3; k++) {
    dims_at(&p->vars[s->args[k]], d->n, in.dims[k]);
    in.data[k] = d->of[s->args[k]];
  }
  dims_at(&p->vars[y], d->n, in.to);
  kind_at(s->kind)->interpret(s, &in, d->of[y]);
}

/* ---- the device ------------------------------------------------------------------------------ */

/* Which values somebody needs. */
static void needed(const struct program *p, bool need[VARS]) {
  memcpy(need, p->shown, sizeof p->shown);
  for (uint32_t i = p->n; i-- > 0;)
    for (uint32_t k = 0; k < p->steps[i].n && need[INPUTS + i]; k++)
      need[p->steps[i].args[k]] = true;
}

struct places {
  uint32_t of[VARS], position;
};

static void build(struct op_test *t, const struct program *p, const bool *need, struct places *at) {
  at->position = op_symint(t);
  for (uint32_t i = 0; i < INPUTS + p->n; i++) {
    uint32_t dims[4];
    if (!need[i]) continue;
    dims_at(&p->vars[i], LARGEST, dims);
    at->of[i] = i < INPUTS    ? op_input(t, p->vars[i].dtype, dims, 3)
                : p->shown[i] ? op_output(t, p->vars[i].dtype, dims, 3)
                              : op_tensor(t, p->vars[i].dtype, dims, 3);
    if (i < INPUTS) continue;
    const struct step *s = &p->steps[i - INPUTS];
    const struct var *x[3];
    operands_of(p, s, x);
    const uint32_t *a = s->args;
    kind_at(s->kind)->add(
        t, s, x, (const uint32_t[]){at->of[a[0]], at->of[a[1]], at->of[a[2]], at->position},
        at->of[i]);
  }
}

static void set_inputs(struct op_test *t, const struct program *p, const bool *need,
                       const struct places *at, uint64_t *seed, const struct numbers *d) {
  for (uint32_t i = 0; i < INPUTS; i++) {
    const struct var *v = &p->vars[i];
    uint32_t dims[4];
    for (uint64_t e = 0; e < numel_at(v, d->n); e++) {
      const double x = (double)test_random_float(seed) * v->most;
      d->of[i][e] = v->dtype == VK_BOOL ? x > 0 : trunc(x / v->grain) * v->grain;
      if (p->specials && v->grain < 1 && below(seed, 6) == 0)
        d->of[i][e] = (const double[]){NAN, INFINITY, -INFINITY}[below(seed, 3)];
    }
    dims_at(v, d->n, dims);
    if (need[i]) op_set(t, at->of[i], dims, 3, d->of[i]);
  }
  op_set_symint(t, at->position, d->position);
}

/* The first shown value that is wrong, with a sentence; VARS: none is. */
static uint32_t compare(struct op_test *t, const struct program *p, const struct places *at,
                        const struct numbers *d, char why[200]) {
  for (uint32_t i = INPUTS; i < INPUTS + p->n; i++) {
    uint64_t count;
    if (!p->shown[i]) continue;
    const double *got = op_get(t, at->of[i], &count), *want = d->of[i];
    if (count != numel_at(&p->vars[i], d->n)) {
      snprintf(why, 200, "value %u has %u elements for n = %u", i, (unsigned)count, d->n);
      return i;
    }
    for (uint64_t e = 0; e < count; e++) {
      if (fabs(got[e] - want[e]) <= p->vars[i].error) continue;
      if (p->specials && (got[e] == want[e] || (isnan(got[e]) && isnan(want[e])))) continue;
      snprintf(why, 200, "n = %u, position %u: element %u of value %u is %.9g, want %.9g +- %g",
               d->n, d->position, (unsigned)e, i, got[e], want[e], p->vars[i].error);
      return i;
    }
  }
  return VARS;
}

/* Several calls of one loaded graph. */
static uint32_t run(const struct program *p, uint64_t seed, char why[200]) {
  struct op_test t;
  sconce_error err = {0};
  bool need[VARS];
  struct places at = {0};
  struct numbers d;
  uint32_t wrong = VARS, last = INPUTS + p->n - 1;
  needed(p, need);
  op_begin(&t);
  build(&t, p, need, &at);
  numbers_init(&d);
  if (op_load(&t, NULL, &err) != SCONCE_OK) wrong = last;
  for (int call = 0; call < CALLS && wrong == VARS; call++) {
    d.n = call == 1 ? LARGEST : below(&seed, LARGEST + 1);
    d.position = below(&seed, POSITIONS);
    set_inputs(&t, p, need, &at, &seed, &d);
    for (uint32_t i = 0; i < p->n; i++)
      if (need[INPUTS + i]) interpret(p, i, &d);
    wrong = op_run(&t, &err) != SCONCE_OK ? last : compare(&t, p, &at, &d, why);
  }
  if (err.text[0]) snprintf(why, 200, "%.180s", err.text);
  numbers_free(&d);
  op_end(&t);
  return wrong;
}

/* ---- failures -------------------------------------------------------------------------------- */

static const char *step_name(const struct step *s) {
  return s->name ? s->name : kind_at(s->kind)->name;
}

static void print(const struct program *p) {
  bool need[VARS];
  needed(p, need);
  for (uint32_t i = 0; i < INPUTS + p->n; i++) {
    const struct var *v = &p->vars[i];
    const struct step *s = i < INPUTS ? NULL : &p->steps[i - INPUTS];
    if (!need[i]) continue;
    fprintf(stderr, "  %u%s: %s [", i, p->shown[i] ? " (shown)" : "", vk_dtype_name(v->dtype));
    for (int d = 0; d < 3; d++) fprintf(stderr, " %u n + %u", v->scale[d], v->offset[d]);
    fprintf(stderr, " ] %s", s ? step_name(s) : "input");
    for (uint32_t k = 0; s && k < s->n; k++) fprintf(stderr, " %u", s->args[k]);
    if (s) fprintf(stderr, " (%u; %u", s->which, s->move.n);
    for (uint32_t k = 0; s && k < s->move.n && k < 8; k++)
      fprintf(stderr, " %d", (int)s->move.a[k]);
    if (s) fprintf(stderr, ")");
    fprintf(stderr, "\n");
  }
}

/* Everybody who reads `from` reads `to` instead, if that fits. */
static bool bypass(struct program *p, uint32_t from, uint32_t to) {
  const struct var *a = &p->vars[from], *b = &p->vars[to];
  if (a->dtype != b->dtype || a->most < b->most || a->error < b->error) return false;
  for (int d = 0; d < 3; d++)
    if (!same_dim(a, b, (uint32_t)d)) return false;
  for (uint32_t i = 0; i < p->n; i++)
    for (uint32_t k = 0; k < p->steps[i].n; k++)
      if (p->steps[i].args[k] == from) p->steps[i].args[k] = to;
  return true;
}

static void shrink(struct program *p, uint64_t seed, uint32_t wrong, char why[200]) {
  struct program less = *p;
  memset(less.shown, 0, sizeof less.shown);
  less.shown[wrong] = true;
  if (run(&less, seed, why) != VARS) *p = less;
  for (uint32_t i = p->n; i-- > 0;)
    for (uint32_t k = 0; k < p->steps[i].n; k++) {
      less = *p;
      if (less.shown[INPUTS + i] || !bypass(&less, INPUTS + i, p->steps[i].args[k])) continue;
      if (run(&less, seed, why) != VARS) *p = less;
    }
  (void)run(p, seed, why);
}

static uint64_t setting(const char *name, uint64_t absent) {
  const char *text = getenv(name);
  return text ? strtoull(text, NULL, 10) : absent;
}

static void graphs(void) {
  const uint64_t first = setting("SCONCE_SEED", 1), count = setting("SCONCE_RANDOM", 200);
  uint64_t steps = 0, kinds[KINDS_MOST] = {0};
  for (uint64_t i = first; i < first + count && !test_failed(); i++) {
    uint64_t seed = i * 2654435761u + 1;
    struct program p;
    char why[200] = "";
    generate(&p, &seed);
    steps += p.n;
    for (uint32_t k = 0; k < p.n; k++) kinds[p.steps[k].kind]++;
    const uint32_t wrong = run(&p, seed, why);
    CHECK(p.n > 0);
    if (wrong == VARS) continue;
    shrink(&p, seed, wrong, why);
    test_fail(__FILE__, __LINE__, "SCONCE_SEED=%u: %s", (unsigned)i, why);
    print(&p);
  }
  for (uint32_t k = 0; kind_at(k) && count >= 200; k++)
    CHECK_SAYS(kinds[k] > 0, "no graph has %s", kind_at(k)->name);
  for (uint32_t k = 0; kind_at(k) && getenv("SCONCE_RANDOM"); k++)
    fprintf(stderr, "  %6u %s\n", (unsigned)kinds[k], kind_at(k)->name);
  if (getenv("SCONCE_RANDOM"))
    fprintf(stderr, "%u graphs from seed %u on, %u nodes, %d calls each\n", (unsigned)count,
            (unsigned)first, (unsigned)steps, CALLS);
}

static uint32_t kind_of(const char *name) {
  uint32_t i = 0;
  while (strcmp(kind_at(i)->name, name) != 0) i++;
  return i;
}

/* ---- what is among them ---------------------------------------------------------------------- */

/* Families of the registry that no graph has, by their first name, and why. */
static const struct {
  const char *first, *why;
} absent[] = {
    {"aten.convolution_backward.default",
     "it becomes convolutions and products, which are here; src/ops/conv has its loops"},
};

static const char *absence(const struct op *family) {
  for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
    if (strcmp(absent[i].first, family->name) == 0) return absent[i].why;
  return NULL;
}

/* Builds graphs and runs none. Only what a file can name counts: passes make the others. */
static void every_family(void) {
  for (uint64_t i = 1; i <= 400; i++) {
    uint64_t seed = i * 2654435761u + 1;
    struct program p;
    struct op_test t;
    struct places at = {0};
    bool need[VARS];
    generate(&p, &seed);
    needed(&p, need);
    op_begin(&t);
    build(&t, &p, need, &at);
    op_end(&t);
  }
  for (uint32_t f = 0; op_families[f]; f++) {
    bool named = false, made = false;
    for (const struct op *op = op_families[f]; op->name; op++) {
      named |= !op_is_ours(op) && !op->refused;
      made |= test_made(op);
    }
    CHECK_SAYS(!named || made == !absence(op_families[f]), "the family of %s is %s",
               op_families[f]->name, made ? "listed as absent" : "in no graph");
  }
}

/* The check checks: a graph whose oracle is another one fails, and shrinks to its one node. */
static void notices(void) {
  struct program p = {.n = 2, .shown = {[INPUTS + 1] = true}};
  for (int i = 0; i < INPUTS; i++)
    p.vars[i] = (struct var){VK_FLOAT32, {1, 0, 0}, {0, 2, 3}, 8, 0.25, 0};
  p.vars[INPUTS] = p.vars[INPUTS + 1] = p.vars[0];
  p.steps[0] = (struct step){.kind = kind_of("cast"), .args = {0}, .n = 1};
  p.steps[1] = (struct step){.kind = kind_of("cumsum"), .args = {INPUTS}, .n = 1, .which = 2};
  char why[200] = "";
  CHECK_EQ(run(&p, 5, why), VARS);
  p.vars[INPUTS + 1].error = -1; /* nothing is right */
  CHECK_EQ(run(&p, 5, why), INPUTS + 1);
  shrink(&p, 5, INPUTS + 1, why);
  CHECK_EQ(p.steps[1].args[0], 0);
}

const struct test suite_random[] = {TEST(graphs), TEST(every_family), TEST(notices), {0}};
