/* Random graphs against a plain interpreter: a few nodes of the elementwise, moving and reducing
 * families with the oracles of the operators' own tests, products, norms, pools, indices and the
 * rest (random_dense.c, random_more.c), and one live size that changes from call to call. Each
 * value knows how far the device may be off: most graphs are exact.
 *
 *   SCONCE_RANDOM=10000 SCONCE_SEED=1 build/sconce_tests --filter random/graphs
 *
 * A graph that fails is made smaller as long as it fails, and printed with its seed. */
#include "random.h"

enum kind { UNARY, BINARY, CHOICE, MOVE, REDUCE, JOIN, CAST, RUNNING, VIEW, KINDS };
static const char *const kind_names[] = {"unary", "binary", "where",  "move", "reduce",
                                         "cat",   "cast",   "cumsum", "view"};

enum { ALL_KINDS = KINDS + DENSE_KINDS + MORE_KINDS };

struct program {
  struct var vars[VARS]; /* inputs, then the result of each step */
  struct step steps[STEPS];
  uint32_t n; /* steps */
  bool shown[VARS];
  bool specials; /* among the inputs: NaN and infinities */
};

uint32_t below(uint64_t *seed, uint32_t n) {
  const double x = ((double)test_random_float(seed) + 1) / 2;
  const uint32_t i = (uint32_t)(x * n);
  return i < n ? i : n - 1;
}

static unsigned bit_of(enum vk_dtype dtype) {
  return dtype == VK_FLOAT32 ? F32 : dtype == VK_FLOAT16 ? F16 : dtype == VK_INT32 ? I32 : BOOL;
}

static uint64_t numel_at(const struct var *v, uint32_t n) {
  uint32_t dims[4];
  dims_at(v, n, dims);
  return (uint64_t)dims[0] * dims[1] * dims[2];
}

static bool is_one(const struct var *v, int i) { return v->scale[i] == 0 && v->offset[i] == 1; }

/* Rounding of a result that had no error but for its operands'. */
static void settle(struct var *v) {
  const double digits = v->most / v->grain;
  const double most = v->dtype == VK_FLOAT16 ? 2048 : 16777216;
  if (v->dtype != VK_FLOAT16 && v->dtype != VK_FLOAT32) return;
  if (v->error == 0 && digits <= most) return;
  v->error += v->most * (v->dtype == VK_FLOAT16 ? 1e-3 : 2e-6);
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* What a function does to sizes and errors, seen at many points. */
static bool unary_bounds(const struct oracle_unary *o, const struct var *x, struct var *y) {
  const int points = 400;
  double before = 0, slope = 0;
  y->most = 0;
  for (int i = 0; i <= points; i++) {
    const double at = x->most * (2.0 * i / points - 1), got = o->of(at);
    if (!isfinite(got)) return false;
    if (fabs(got) > y->most) y->most = fabs(got);
    if (i) slope = fmax(slope, fabs(got - before) / (2 * x->most / points));
    before = got;
  }
  const bool exact = o->abs == 0 && o->rel == 0;
  const bool smooth = !exact || strstr(o->name, "abs") || strstr(o->name, "neg") ||
                      strstr(o->name, "relu") || strstr(o->name, "clamp");
  const bool steps = strstr(o->name, "round") != NULL;
  if (x->error > 0 && (!smooth || steps)) return false;
  y->grain = exact ? fmin(x->grain, 1) : 1e-12;
  y->error = x->error * (slope + 1) + (exact ? 0 : 2 * (o->abs + o->rel * y->most));
  return y->most < 1e5;
}

static bool pick_unary(struct program *p, uint64_t *seed, struct step *s, struct var *y) {
  const struct var *x = &p->vars[s->args[0]];
  s->which = below(seed, (uint32_t)n_oracles_unary);
  const struct oracle_unary *o = &oracles_unary[s->which];
  if (!(o->dtypes & bit_of(x->dtype))) return false;
  if (o->domain != ALL && !(o->domain == MODEST && x->most <= 3)) return false;
  *y = *x;
  if (o->dtypes & BOOL) y->dtype = VK_BOOL;
  s->n = 1;
  return unary_bounds(o, x, y);
}

/* Rows whose meaning is defined for all operands. */
static bool total(const struct oracle_binary *o) {
  static const char *const partial[] = {"div", "pow", "fmod", "remainder", "shift", "atan2"};
  for (size_t i = 0; i < sizeof partial / sizeof *partial; i++)
    if (strstr(o->name, partial[i])) return false;
  return true;
}

static bool broadcast(const struct var *a, const struct var *b, struct var *y) {
  for (int i = 0; i < 3; i++) {
    if (!same_dim(a, b, (uint32_t)i) && !is_one(a, i) && !is_one(b, i)) return false;
    y->scale[i] = is_one(a, i) ? b->scale[i] : a->scale[i];
    y->offset[i] = is_one(a, i) ? b->offset[i] : a->offset[i];
  }
  return true;
}

static bool pick_binary(struct program *p, uint64_t *seed, struct step *s, struct var *y) {
  const struct var *a = &p->vars[s->args[0]], *b = &p->vars[s->args[1]];
  s->which = below(seed, (uint32_t)n_oracles_binary);
  const struct oracle_binary *o = &oracles_binary[s->which];
  const bool product = strstr(o->name, "mul") != NULL, bits = strstr(o->name, "bitwise") != NULL;
  const bool picks = strstr(o->name, "imum") != NULL;
  if (a->dtype != b->dtype || !(o->dtypes & bit_of(a->dtype)) || !total(o)) return false;
  *y = *a;
  if (!broadcast(a, b, y)) return false;
  y->dtype = oracle_result(o, a->dtype);
  if (y->dtype == VK_BOOL && a->error + b->error > 0) return false; /* a comparison may tip over */
  y->grain = product ? a->grain * b->grain : fmin(a->grain, b->grain);
  y->most = y->dtype == VK_BOOL ? 1
            : product           ? a->most * b->most
            : bits || picks     ? 2 * fmax(a->most, b->most)
                                : 3 * (a->most + b->most);
  y->error = product ? a->error * b->most + b->error * a->most + a->error * b->error
             : picks ? fmax(a->error, b->error)
                     : 3 * (a->error + b->error);
  s->n = 2;
  return true;
}

static bool pick_choice(struct program *p, uint64_t *seed, struct step *s, struct var *y) {
  (void)seed;
  const struct var *c = &p->vars[s->args[0]], *a = &p->vars[s->args[1]], *b = &p->vars[s->args[2]];
  struct var both = *a;
  if (c->dtype != VK_BOOL || a->dtype != b->dtype || !broadcast(a, b, &both)) return false;
  *y = both;
  if (!broadcast(c, &both, y)) return false;
  y->most = fmax(a->most, b->most);
  y->grain = fmin(a->grain, b->grain);
  y->error = fmax(a->error, b->error);
  s->n = 3;
  return true;
}

/* Numbers for a movement of x; a row whose dims do not fit is not taken. */
static bool move_numbers(const struct var *x, uint64_t *seed, struct oracle_move *m) {
  static const struct {
    enum oracle_movement kind;
    const char *name;
  } kinds[] = {{MOVE_SLICE, "aten.slice_copy.Tensor"},
               {MOVE_PERMUTE, "aten.permute_copy.default"},
               {MOVE_TRANSPOSE, "aten.transpose_copy.int"},
               {MOVE_REPEAT, "aten.repeat.default"},
               {MOVE_FLIP, "aten.flip.default"},
               {MOVE_PAD, "aten.constant_pad_nd.default"},
               {MOVE_REFLECT, "aten.reflection_pad1d.default"},
               {MOVE_NEAREST, "aten.replication_pad2d.default"},
               {MOVE_ROLL, "aten.roll.default"},
               {MOVE_NARROW, "aten.narrow_copy.default"},
               {MOVE_TRIL, "aten.tril.default"},
               {MOVE_TRIU, "aten.triu.default"}};
  const uint32_t k = below(seed, sizeof kinds / sizeof *kinds), d = below(seed, 3);
  const int64_t r[] = {below(seed, 3), below(seed, 3), below(seed, 3), below(seed, 3)};
  const int64_t size = x->offset[d];
  m->kind = kinds[k].kind;
  m->name = kinds[k].name;
  m->rank = 3;
  dims_at(x, LARGEST, m->x);
  switch (m->kind) {
  case MOVE_SLICE:
    m->n = 4, m->a[0] = d, m->a[1] = r[0], m->a[2] = r[0] + r[1] + 1, m->a[3] = 1 + r[2];
    return is_fixed(x, d);
  case MOVE_NARROW:
    m->n = 3, m->a[0] = d, m->a[1] = r[0] % (size + 1), m->a[2] = r[1] % (size - m->a[1] + 1);
    return is_fixed(x, d);
  case MOVE_PERMUTE:
    m->n = 3, m->a[0] = d, m->a[1] = (d + 1 + r[0] % 2) % 3, m->a[2] = 3 - m->a[0] - m->a[1];
    return true;
  case MOVE_TRANSPOSE:
    m->n = 2, m->a[0] = d, m->a[1] = r[0] - 3;
    return true;
  case MOVE_REPEAT:
    m->n = 3, m->a[0] = 1 + r[0] % 2, m->a[1] = 1 + r[1] % 2, m->a[2] = 1 + r[2] % 2;
    return true;
  case MOVE_FLIP:
    m->n = 1, m->a[0] = d;
    return true;
  case MOVE_PAD:
    m->n = 4, m->a[0] = r[0], m->a[1] = r[1], m->a[2] = r[2], m->a[3] = r[3];
    return x->dtype != VK_BOOL;
  case MOVE_REFLECT:
    m->n = 2, m->a[0] = r[0], m->a[1] = r[1];
    return is_fixed(x, 2) && x->offset[2] > 2;
  case MOVE_NEAREST:
    m->n = 4, m->a[0] = r[0], m->a[1] = r[1], m->a[2] = r[2], m->a[3] = r[3];
    return is_fixed(x, 1) && is_fixed(x, 2) && x->offset[1] && x->offset[2];
  case MOVE_ROLL:
    m->n = 2, m->a[0] = d, m->a[1] = (d + 1) % 3, m->a[2] = r[0] - 1, m->a[3] = r[1] + 4;
    return true;
  default:
    m->n = 1, m->a[0] = r[0] - 1;
    return true;
  }
}

/* Symbolic dims from two sizes; all others must agree. */
static bool solve_dims(struct var *y, const uint32_t one[3], const uint32_t two[3]) {
  for (int i = 0; i < 3; i++) {
    if (two[i] < one[i] || 2 * one[i] < two[i]) return false;
    y->scale[i] = two[i] - one[i];
    y->offset[i] = one[i] - y->scale[i];
  }
  return true;
}

static bool pick_move(struct program *p, uint64_t *seed, struct step *s, struct var *y) {
  const struct var *x = &p->vars[s->args[0]];
  uint32_t from[4], one[4], two[4], got[4], want[4];
  s->move = (struct oracle_move){0};
  if (!move_numbers(x, seed, &s->move)) return false;
  *y = *x;
  dims_at(x, 1, from);
  oracle_move_dims(&s->move, from, one);
  dims_at(x, 2, from);
  oracle_move_dims(&s->move, from, two);
  if (!solve_dims(y, one, two)) return false;
  for (uint32_t n = 0; n <= LARGEST; n++) {
    dims_at(x, n, from);
    oracle_move_dims(&s->move, from, got);
    dims_at(y, n, want);
    if (memcmp(got, want, 3 * sizeof *got) != 0) return false;
  }
  if (s->move.kind == MOVE_PAD) y->most = fmax(y->most, ORACLE_FILL);
  s->n = 1;
  return true;
}

static bool pick_reduce(struct program *p, uint64_t *seed, struct step *s, struct var *y) {
  static const enum oracle_reduction kinds[] = {REDUCE_SUM, REDUCE_MAX, REDUCE_MIN};
  const struct var *x = &p->vars[s->args[0]];
  const unsigned reduced = 1 + below(seed, 7);
  double count = 1;
  s->which = kinds[below(seed, 3)];
  s->move.n = reduced;
  if (x->dtype == VK_BOOL) return false;
  *y = *x;
  for (uint32_t i = 0; i < 3; i++) {
    if (!(reduced >> i & 1)) continue;
    if (s->which != REDUCE_SUM && x->offset[i] == 0)
      return false; /* of no elements there is none */
    count *= x->scale[i] * LARGEST + x->offset[i];
    y->scale[i] = 0, y->offset[i] = 1;
  }
  if (s->which == REDUCE_SUM) y->most *= fmax(count, 1), y->error *= count;
  s->n = 1;
  return true;
}

static bool pick_join(struct program *p, uint64_t *seed, struct step *s, struct var *y) {
  const struct var *a = &p->vars[s->args[0]], *b = &p->vars[s->args[1]];
  const int d = (int)below(seed, 3);
  if (a->dtype != b->dtype) return false;
  for (int i = 0; i < 3; i++)
    if (i != d && !same_dim(a, b, (uint32_t)i)) return false;
  *y = *a;
  y->scale[d] += b->scale[d];
  y->offset[d] += b->offset[d];
  y->most = fmax(a->most, b->most);
  y->grain = fmin(a->grain, b->grain);
  y->error = fmax(a->error, b->error);
  s->which = (uint32_t)d;
  s->n = 2;
  return true;
}

static bool pick_cast(struct program *p, uint64_t *seed, struct step *s, struct var *y) {
  static const enum vk_dtype dtypes[] = {VK_FLOAT32, VK_FLOAT16, VK_INT32, VK_BOOL};
  const struct var *x = &p->vars[s->args[0]];
  *y = *x;
  y->dtype = dtypes[below(seed, 4)];
  s->n = 1;
  const bool floats = y->dtype == VK_FLOAT32 || y->dtype == VK_FLOAT16;
  if (y->dtype == x->dtype || (!floats && x->error > 0)) return false;
  if (!floats) y->grain = 1;
  if (y->dtype == VK_BOOL) y->most = 1;
  return true;
}

static bool pick_running(struct program *p, uint64_t *seed, struct step *s, struct var *y) {
  const struct var *x = &p->vars[s->args[0]];
  s->which = below(seed, 3);
  if (x->dtype != VK_FLOAT32 && x->dtype != VK_INT32) return false;
  const double count = x->scale[s->which] * LARGEST + x->offset[s->which];
  *y = *x;
  y->most *= fmax(count, 1);
  y->error *= fmax(count, 1);
  s->n = 1;
  return true;
}

/* (a, b, c) becomes (a · b, c, 1). */
static bool pick_view(struct program *p, uint64_t *seed, struct step *s, struct var *y) {
  (void)seed;
  const struct var *x = &p->vars[s->args[0]];
  if (!is_fixed(x, 2) || x->offset[2] == 0 || (!is_fixed(x, 0) && !is_fixed(x, 1))) return false;
  *y = *x;
  y->scale[0] = x->scale[0] * x->offset[1] + x->scale[1] * x->offset[0];
  y->offset[0] = x->offset[0] * x->offset[1];
  y->scale[1] = 0, y->offset[1] = x->offset[2];
  y->scale[2] = 0, y->offset[2] = 1;
  s->n = 1;
  return true;
}

static bool (*const picks[KINDS])(struct program *, uint64_t *, struct step *, struct var *) = {
    pick_unary, pick_binary, pick_choice,  pick_move, pick_reduce,
    pick_join,  pick_cast,   pick_running, pick_view};

static const struct random_kind *dense_of(const struct step *s) {
  return s->kind < KINDS                 ? NULL
         : s->kind < KINDS + DENSE_KINDS ? &random_dense[s->kind - KINDS]
                                         : &random_more[s->kind - KINDS - DENSE_KINDS];
}

static void operands_of(const struct program *p, const struct step *s, const struct var *x[3]) {
  for (int i = 0; i < 3; i++) x[i] = &p->vars[s->args[i]];
}

static bool pick(struct program *p, uint64_t *seed, struct step *s, struct var *y) {
  const struct var *x[3];
  operands_of(p, s, x);
  return dense_of(s) ? dense_of(s)->pick(x, seed, s, y) : picks[s->kind](p, seed, s, y);
}

/* Steps whose meaning for NaN and infinities is that of their oracle. */
static bool takes_specials(const struct step *s) {
  static const char *const names[] = {"abs.",  "neg.", "isnan.",   "isinf.",   "add.",    "sub.",
                                      "rsub.", "mul.", "minimum.", "maximum.", "eq.",     "ne.",
                                      "lt.",   "le.",  "gt.",      "ge.",      "logical_"};
  const char *name = s->kind == UNARY    ? oracles_unary[s->which].name
                     : s->kind == BINARY ? oracles_binary[s->which].name
                                         : NULL;
  if (!name)
    return s->kind == CHOICE || s->kind == MOVE || s->kind == REDUCE || s->kind == JOIN ||
           s->kind == RUNNING || s->kind == VIEW;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strncmp(name, "aten.", 5) == 0 && strncmp(name + 5, names[i], strlen(names[i])) == 0)
      return true;
  return false;
}

static void generate(struct program *p, uint64_t *seed) {
  static const enum vk_dtype dtypes[] = {VK_FLOAT32, VK_FLOAT32, VK_INT32, VK_FLOAT16, VK_BOOL};
  *p = (struct program){.specials = below(seed, 5) == 0};
  for (uint32_t i = 0; i < INPUTS; i++) {
    struct var *v = &p->vars[i];
    v->dtype = dtypes[below(seed, 5)];
    v->most = v->dtype == VK_BOOL ? 1 : 8;
    v->grain = v->dtype == VK_FLOAT32 || v->dtype == VK_FLOAT16 ? 0.25 : 1;
    for (int d = 0; d < 3; d++) v->offset[d] = d == 2 ? 3 + below(seed, 2) * 2 : 1 + below(seed, 3);
    if (below(seed, 4)) v->scale[below(seed, 2)] = 1, v->offset[0] = v->scale[0] ? 0 : v->offset[0];
    if (v->scale[1]) v->offset[1] = 0;
  }
  for (int tries = 0; tries < 4000 && p->n < STEPS; tries++) {
    const uint32_t n = INPUTS + p->n;
    struct step s = {.kind = below(seed, ALL_KINDS)};
    struct var y;
    for (int i = 0; i < 3; i++) s.args[i] = below(seed, n);
    if (!pick(p, seed, &s, &y) || (p->specials && !takes_specials(&s))) continue;
    settle(&y);
    const double most = y.dtype == VK_INT32 ? 1e9 : y.dtype == VK_FLOAT16 ? 3e4 : 1e6;
    if (y.most > most || y.error > 0.02 * (1 + y.most) || numel_at(&y, LARGEST) > ROOM) continue;
    p->vars[n] = y;
    p->steps[p->n++] = s;
    p->shown[n] = below(seed, 3) == 0;
  }
  p->shown[INPUTS + p->n - 1] = true;
}

/* ---- the interpreter ------------------------------------------------------------------------- */

/* Element e of a result with dims y, in an operand with dims x that repeats where it has 1. */
static uint64_t place(const uint32_t *x, const uint32_t *y, uint64_t e) {
  uint64_t at = 0, step = 1;
  for (int i = 3; i-- > 0; e /= y[i]) {
    at += x[i] == 1 ? 0 : e % y[i] * step;
    step *= x[i];
  }
  return at;
}

static void interpret_pairs(const struct program *p, const struct step *s, uint32_t result,
                            uint32_t n, double *const *data) {
  uint32_t x[3][4], y[4];
  for (uint32_t i = 0; i < s->n; i++) dims_at(&p->vars[s->args[i]], n, x[i]);
  dims_at(&p->vars[result], n, y);
  for (uint64_t e = 0; e < numel_at(&p->vars[result], n); e++) {
    double v[3];
    for (uint32_t i = 0; i < s->n; i++) v[i] = data[s->args[i]][place(x[i], y, e)];
    data[result][e] = s->kind == CHOICE  ? (v[0] != 0 ? v[1] : v[2])
                      : s->kind == UNARY ? oracles_unary[s->which].of(v[0])
                                         : oracles_binary[s->which].of(v[0], v[1], 3);
  }
}

static void interpret_join(const struct program *p, const struct step *s, uint32_t result,
                           uint32_t n, double *const *data) {
  uint32_t a[4], b[4], y[4], d = s->which;
  dims_at(&p->vars[s->args[0]], n, a);
  dims_at(&p->vars[s->args[1]], n, b);
  dims_at(&p->vars[result], n, y);
  for (uint64_t e = 0; e < numel_at(&p->vars[result], n); e++) {
    uint32_t c[3] = {(uint32_t)(e / y[2] / y[1]), (uint32_t)(e / y[2] % y[1]),
                     (uint32_t)(e % y[2])};
    const bool first = c[d] < a[d];
    const uint32_t *x = first ? a : b;
    if (!first) c[d] -= a[d];
    data[result][e] = data[s->args[!first]][((uint64_t)c[0] * x[1] + c[1]) * x[2] + c[2]];
  }
}

static void interpret_running(const struct program *p, const struct step *s, uint32_t result,
                              uint32_t n, double *const *data) {
  uint32_t x[4];
  uint64_t inner = 1;
  dims_at(&p->vars[result], n, x);
  for (uint32_t i = s->which + 1; i < 3; i++) inner *= x[i];
  for (uint64_t e = 0; e < numel_at(&p->vars[result], n); e++) {
    const bool first = e / inner % x[s->which] == 0;
    data[result][e] = data[s->args[0]][e] + (first ? 0 : data[result][e - inner]);
  }
}

static void interpret_dense(const struct program *p, const struct step *s, uint32_t result,
                            uint32_t n, double *const *data) {
  uint32_t dims[3][4], to[4];
  const double *from[3];
  for (int i = 0; i < 3; i++) {
    dims_at(&p->vars[s->args[i]], n, dims[i]);
    from[i] = data[s->args[i]];
  }
  dims_at(&p->vars[result], n, to);
  dense_of(s)->interpret(s, (const uint32_t(*)[4])dims, from, to, data[result]);
}

static void interpret(const struct program *p, uint32_t step, uint32_t n, double *const *data) {
  const struct step *s = &p->steps[step];
  const uint32_t y = INPUTS + step;
  const struct var *x = &p->vars[s->args[0]];
  uint32_t dims[4];
  dims_at(x, n, dims);
  if (dense_of(s)) {
    interpret_dense(p, s, y, n, data);
    return;
  }
  switch (s->kind) {
  case UNARY:
  case BINARY:
  case CHOICE:
    interpret_pairs(p, s, y, n, data);
    break;
  case MOVE: {
    double *moved = oracle_moved(&s->move, dims, data[s->args[0]]);
    memcpy(data[y], moved, (size_t)numel_at(&p->vars[y], n) * sizeof *moved);
    free(moved);
    break;
  }
  case REDUCE:
    oracle_reduce((enum oracle_reduction)s->which, data[s->args[0]], dims, s->move.n, data[y]);
    break;
  case JOIN:
    interpret_join(p, s, y, n, data);
    break;
  case RUNNING:
    interpret_running(p, s, y, n, data);
    break;
  default:
    for (uint64_t e = 0; e < numel_at(x, n); e++) {
      const double v = data[s->args[0]][e];
      const enum vk_dtype to = p->vars[y].dtype;
      data[y][e] = to == VK_BOOL ? v != 0 : to == VK_INT32 ? trunc(v) : v;
    }
  }
}

/* ---- the device ------------------------------------------------------------------------------ */

/* Which values somebody needs. */
static void needed(const struct program *p, bool need[VARS]) {
  memcpy(need, p->shown, sizeof p->shown);
  for (uint32_t i = p->n; i-- > 0;)
    for (uint32_t k = 0; k < p->steps[i].n && need[INPUTS + i]; k++)
      need[p->steps[i].args[k]] = true;
}

static void add_reduce(struct op_test *t, const struct step *s, uint32_t x, uint32_t y) {
  static const char *const names[] = {[REDUCE_SUM] = "aten.sum.dim_IntList",
                                      [REDUCE_MAX] = "aten.amax.default",
                                      [REDUCE_MIN] = "aten.amin.default"};
  int64_t dims[3];
  uint32_t n = 0;
  for (uint32_t i = 0; i < 3; i++)
    if (s->move.n >> i & 1) dims[n++] = i;
  uint32_t list = op_ints(t, dims, n), keep = op_bool(t, true);
  if (s->which == REDUCE_SUM)
    op_node(t, names[s->which], IDS(x, list, keep, op_null(t), y));
  else
    op_node(t, names[s->which], IDS(x, list, keep, y));
}

static void add_unary(struct op_test *t, const struct oracle_unary *o, uint32_t x, uint32_t y) {
  uint32_t args[5] = {x}, n = 1;
  if (o->text) args[n++] = op_text(t, o->text);
  for (uint32_t i = 0; i < o->n; i++)
    args[n++] = isnan(o->numbers[i]) ? op_null(t) : op_double(t, o->numbers[i]);
  args[n++] = y;
  op_node(t, o->name, args, n);
}

static void add_step(struct op_test *t, const struct program *p, uint32_t i, const uint32_t *ids) {
  const struct step *s = &p->steps[i];
  const uint32_t y = ids[INPUTS + i], a = ids[s->args[0]], b = ids[s->args[1]];
  const struct oracle_binary *o = &oracles_binary[s->kind == BINARY ? s->which : 0];
  const struct var *x[3];
  operands_of(p, s, x);
  if (dense_of(s)) {
    dense_of(s)->add(t, s, x, (const uint32_t[]){a, b}, y);
    return;
  }
  switch (s->kind) {
  case UNARY:
    add_unary(t, &oracles_unary[s->which], a, y);
    break;
  case BINARY:
    if (o->third == NOTHING)
      op_node(t, o->name, IDS(a, b, y));
    else
      op_node(t, o->name, IDS(a, b, oracle_third(t, o, true, 3), y));
    break;
  case CHOICE:
    op_node(t, "aten.where.self", IDS(a, b, ids[s->args[2]], y));
    break;
  case MOVE:
    oracle_move_node(t, &s->move, a, y, true);
    break;
  case REDUCE:
    add_reduce(t, s, a, y);
    break;
  case JOIN:
    op_node(t, "aten.cat.default", IDS(op_list(t, IDS(a, b)), op_int(t, s->which), y));
    break;
  case CAST:
    op_node(t, "aten::_to_copy.out", IDS(a, op_null(t), op_null(t), y));
    break;
  case RUNNING:
    op_node(t, "aten.cumsum.default", IDS(a, op_int(t, s->which), op_null(t), y));
    break;
  default:
    op_node(t, "aten.view_copy.default",
            IDS(a, op_ints(t, INTS(-1, p->vars[s->args[0]].offset[2], 1)), y));
  }
}

static void build(struct op_test *t, const struct program *p, const bool *need, uint32_t *ids) {
  for (uint32_t i = 0; i < INPUTS + p->n; i++) {
    uint32_t dims[4];
    if (!need[i]) continue;
    dims_at(&p->vars[i], LARGEST, dims);
    ids[i] = i < INPUTS    ? op_input(t, p->vars[i].dtype, dims, 3)
             : p->shown[i] ? op_output(t, p->vars[i].dtype, dims, 3)
                           : op_tensor(t, p->vars[i].dtype, dims, 3);
    if (i >= INPUTS) add_step(t, p, i - INPUTS, ids);
  }
}

static void set_inputs(struct op_test *t, const struct program *p, const bool *need,
                       const uint32_t *ids, uint32_t n, uint64_t *seed, double *const *data) {
  for (uint32_t i = 0; i < INPUTS; i++) {
    const struct var *v = &p->vars[i];
    uint32_t dims[4];
    for (uint64_t e = 0; e < numel_at(v, n); e++) {
      const double x = (double)test_random_float(seed) * v->most;
      data[i][e] = v->dtype == VK_BOOL ? x > 0 : trunc(x / v->grain) * v->grain;
      if (p->specials && v->grain < 1 && below(seed, 6) == 0)
        data[i][e] = (const double[]){NAN, INFINITY, -INFINITY}[below(seed, 3)];
    }
    dims_at(v, n, dims);
    if (need[i]) op_set(t, ids[i], dims, 3, data[i]);
  }
}

/* The first shown value that is wrong, with a sentence; VARS: none is. */
static uint32_t compare(struct op_test *t, const struct program *p, const uint32_t *ids, uint32_t n,
                        double *const *data, char why[200]) {
  for (uint32_t i = INPUTS; i < INPUTS + p->n; i++) {
    uint64_t count;
    if (!p->shown[i]) continue;
    const double *got = op_get(t, ids[i], &count);
    if (count != numel_at(&p->vars[i], n)) {
      snprintf(why, 200, "value %u has %u elements for n = %u", i, (unsigned)count, n);
      return i;
    }
    for (uint64_t e = 0; e < count; e++) {
      if (fabs(got[e] - data[i][e]) <= p->vars[i].error) continue;
      if (p->specials && (got[e] == data[i][e] || (isnan(got[e]) && isnan(data[i][e])))) continue;
      snprintf(why, 200, "n = %u: element %u of value %u is %.9g, want %.9g +- %g", n, (unsigned)e,
               i, got[e], data[i][e], p->vars[i].error);
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
  uint32_t ids[VARS] = {0}, wrong = VARS, last = INPUTS + p->n - 1;
  double *data[VARS];
  needed(p, need);
  op_begin(&t);
  build(&t, p, need, ids);
  for (int i = 0; i < VARS; i++) data[i] = calloc(ROOM + 1, sizeof *data[i]);
  if (op_load(&t, NULL, &err) != SCONCE_OK) wrong = last;
  for (int call = 0; call < CALLS && wrong == VARS; call++) {
    const uint32_t n = call == 1 ? LARGEST : below(&seed, LARGEST + 1);
    set_inputs(&t, p, need, ids, n, &seed, data);
    for (uint32_t i = 0; i < p->n; i++)
      if (need[INPUTS + i]) interpret(p, i, n, data);
    if (op_run(&t, &err) != SCONCE_OK)
      wrong = last;
    else
      wrong = compare(&t, p, ids, n, data, why);
  }
  if (err.text[0]) snprintf(why, 200, "%.180s", err.text);
  for (int i = 0; i < VARS; i++) free(data[i]);
  op_end(&t);
  return wrong;
}

/* ---- failures -------------------------------------------------------------------------------- */

static const char *step_name(const struct step *s) {
  return s->kind == UNARY    ? oracles_unary[s->which].name
         : s->kind == BINARY ? oracles_binary[s->which].name
         : s->kind == MOVE   ? s->move.name
         : dense_of(s)       ? dense_of(s)->name
                             : kind_names[s->kind];
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
    for (uint32_t k = 0; s && s->kind == MOVE && k < s->move.n; k++)
      fprintf(stderr, "%s%d", k ? ", " : " by ", (int)s->move.a[k]);
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
  uint64_t steps = 0, kinds[ALL_KINDS] = {0};
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
  for (uint32_t k = 0; k < ALL_KINDS && count >= 100; k++)
    CHECK(kinds[k] > 0); /* each kind is among them */
  if (getenv("SCONCE_RANDOM"))
    fprintf(stderr, "%u graphs from seed %u on, %u nodes, %d calls each\n", (unsigned)count,
            (unsigned)first, (unsigned)steps, CALLS);
}

/* The check checks: a graph whose oracle is another one fails, and shrinks to its one node. */
static void notices(void) {
  struct program p = {.n = 2, .shown = {[INPUTS + 1] = true}};
  for (int i = 0; i < INPUTS; i++)
    p.vars[i] = (struct var){VK_FLOAT32, {1, 0, 0}, {0, 2, 3}, 8, 0.25, 0};
  p.vars[INPUTS] = p.vars[INPUTS + 1] = p.vars[0];
  p.steps[0] = (struct step){.kind = CAST, .args = {0}, .n = 1};
  p.steps[1] = (struct step){.kind = RUNNING, .args = {INPUTS}, .n = 1, .which = 2};
  char why[200] = "";
  CHECK_EQ(run(&p, 5, why), VARS);
  p.vars[INPUTS + 1].error = -1; /* nothing is right */
  CHECK_EQ(run(&p, 5, why), INPUTS + 1);
  shrink(&p, 5, INPUTS + 1, why);
  CHECK_EQ(p.steps[1].args[0], 0);
}

const struct test suite_random[] = {TEST(graphs), TEST(notices), {0}};
