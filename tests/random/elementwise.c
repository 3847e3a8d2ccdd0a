/* Functions of one, two or three elements, with the oracles of the operators' own tests; casts. */
#include "random.h"

static unsigned bit_of(enum vk_dtype dtype) {
  switch (dtype) {
  case VK_FLOAT32:
    return F32;
  case VK_FLOAT16:
    return F16;
  case VK_INT32:
    return I32;
  case VK_BOOL:
    return BOOL;
  default:
    return 0;
  }
}

/* Rows whose meaning for NaN and infinities is that of their oracle. */
static bool takes_specials(const char *name) {
  static const char *const names[] = {"abs.",  "neg.", "isnan.",   "isinf.",   "add.",    "sub.",
                                      "rsub.", "mul.", "minimum.", "maximum.", "eq.",     "ne.",
                                      "lt.",   "le.",  "gt.",      "ge.",      "logical_"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strncmp(name, "aten.", 5) == 0 && strncmp(name + 5, names[i], strlen(names[i])) == 0)
      return true;
  return false;
}

/* ---- one, two, three ----------------------------------------------------------------------------
 */

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

static bool pick_unary(const struct var *const *operands, uint64_t *seed, struct step *s,
                       struct var *y) {
  const struct var *x = operands[0];
  s->which = below(seed, (uint32_t)n_oracles_unary);
  const struct oracle_unary *o = &oracles_unary[s->which];
  s->name = o->name;
  s->specials = takes_specials(o->name);
  if (!(o->dtypes & bit_of(x->dtype))) return false;
  if (o->domain != ALL && !(o->domain == MODEST && x->most <= 3)) return false;
  *y = *x;
  if (o->dtypes & BOOL) y->dtype = VK_BOOL;
  s->n = 1;
  return unary_bounds(o, x, y);
}

static void interpret_unary(const struct step *s, const struct seen *in, double *y) {
  for (uint64_t e = 0; e < numel_of(in->to); e++) y[e] = oracles_unary[s->which].of(in->data[0][e]);
}

static void add_unary(struct op_test *t, const struct step *s, const struct var *const *x,
                      const uint32_t *ids, uint32_t y) {
  const struct oracle_unary *o = &oracles_unary[s->which];
  uint32_t args[5] = {ids[0]}, n = 1;
  (void)x;
  if (o->text) args[n++] = op_text(t, o->text);
  for (uint32_t i = 0; i < o->n; i++)
    args[n++] = isnan(o->numbers[i]) ? op_null(t) : op_double(t, o->numbers[i]);
  args[n++] = y;
  op_node(t, o->name, args, n);
}

/* Rows whose meaning is defined for all operands. */
static bool total(const struct oracle_binary *o) {
  static const char *const partial[] = {"div", "pow", "fmod", "remainder", "shift", "atan2"};
  for (size_t i = 0; i < sizeof partial / sizeof *partial; i++)
    if (strstr(o->name, partial[i])) return false;
  return true;
}

static bool pick_binary(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  const struct var *a = x[0], *b = x[1];
  s->which = below(seed, (uint32_t)n_oracles_binary);
  const struct oracle_binary *o = &oracles_binary[s->which];
  const bool product = strstr(o->name, "mul") != NULL, bits = strstr(o->name, "bitwise") != NULL;
  const bool picks = strstr(o->name, "imum") != NULL;
  s->name = o->name;
  s->specials = takes_specials(o->name);
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

static void interpret_binary(const struct step *s, const struct seen *in, double *y) {
  for (uint64_t e = 0; e < numel_of(in->to); e++)
    y[e] = oracles_binary[s->which].of(in->data[0][place(in->dims[0], in->to, e)],
                                       in->data[1][place(in->dims[1], in->to, e)], 3);
}

static void add_binary(struct op_test *t, const struct step *s, const struct var *const *x,
                       const uint32_t *ids, uint32_t y) {
  const struct oracle_binary *o = &oracles_binary[s->which];
  (void)x;
  if (o->third == NOTHING)
    op_node(t, o->name, IDS(ids[0], ids[1], y));
  else
    op_node(t, o->name, IDS(ids[0], ids[1], oracle_third(t, o, true, 3), y));
}

static bool pick_choice(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  (void)seed;
  const struct var *c = x[0], *a = x[1], *b = x[2];
  struct var both = *a;
  if (c->dtype != VK_BOOL || a->dtype != b->dtype || !broadcast(a, b, &both)) return false;
  *y = both;
  if (!broadcast(c, &both, y)) return false;
  y->most = fmax(a->most, b->most);
  y->grain = fmin(a->grain, b->grain);
  y->error = fmax(a->error, b->error);
  s->n = 3;
  s->specials = true;
  return true;
}

static void interpret_choice(const struct step *s, const struct seen *in, double *y) {
  (void)s;
  for (uint64_t e = 0; e < numel_of(in->to); e++) {
    const int from = in->data[0][place(in->dims[0], in->to, e)] != 0 ? 1 : 2;
    y[e] = in->data[from][place(in->dims[from], in->to, e)];
  }
}

static void add_choice(struct op_test *t, const struct step *s, const struct var *const *x,
                       const uint32_t *ids, uint32_t y) {
  (void)s, (void)x;
  op_node(t, "aten.where.self", IDS(ids[0], ids[1], ids[2], y));
}

/* ---- casts --------------------------------------------------------------------------------------
 */

static bool pick_cast(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  static const enum vk_dtype dtypes[] = {VK_FLOAT32, VK_FLOAT16, VK_INT32,
                                         VK_BOOL,    VK_INT8,    VK_UINT8};
  *y = *x[0];
  y->dtype = dtypes[below(seed, 6)];
  s->n = 1;
  if (y->dtype == x[0]->dtype || (!is_float(y) && x[0]->error > 0)) return false;
  /* Integers wrap in a byte; of floats that do not fit C says nothing. */
  if (is_byte(y) && is_float(x[0]) && (y->dtype == VK_UINT8 || x[0]->most >= 128)) return false;
  if (!is_float(y)) y->grain = 1;
  if (y->dtype == VK_BOOL) y->most = 1;
  if (is_byte(y)) y->most = 255;
  return true;
}

static void interpret_cast(const struct step *s, const struct seen *in, double *y) {
  (void)s;
  for (uint64_t e = 0; e < numel_of(in->to); e++) {
    const double v = in->data[0][e];
    const double low = in->dtype == VK_INT8 ? -128 : 0;
    y[e] = in->dtype == VK_BOOL    ? v != 0
           : in->dtype == VK_INT32 ? trunc(v)
           : in->dtype == VK_INT8 || in->dtype == VK_UINT8
               ? trunc(v) - floor((trunc(v) - low) / 256) * 256
               : v;
  }
}

static void add_cast(struct op_test *t, const struct step *s, const struct var *const *x,
                     const uint32_t *ids, uint32_t y) {
  (void)s, (void)x;
  op_node(t, "aten::_to_copy.out", IDS(ids[0], op_null(t), op_null(t), y));
}

/* ---- integers: division, remainders, shifts -----------------------------------------------------
 */

static const struct {
  const char *name;
  int64_t by;
  bool mode;
} integral[] = {
    {"aten.div.Scalar_mode", 3, true},
    {"aten.div.Scalar_mode", -2, true},
    {"aten.remainder.Scalar", 3, false},
    {"aten.remainder.Scalar", -5, false},
    {"aten.fmod.Scalar", 4, false},
    {"aten.bitwise_left_shift.Tensor_Scalar", 2, false},
    {"aten.bitwise_right_shift.Tensor_Scalar", 1, false},
};

static bool pick_integral(const struct var *const *x, uint64_t *seed, struct step *s,
                          struct var *y) {
  s->which = below(seed, sizeof integral / sizeof *integral);
  s->n = 1;
  s->name = integral[s->which].name;
  if (x[0]->dtype != VK_INT32) return false;
  *y = *x[0];
  y->most = 4 * x[0]->most + 1;
  return true;
}

static void interpret_integral(const struct step *s, const struct seen *in, double *y) {
  const double by = (double)integral[s->which].by;
  for (uint64_t e = 0; e < numel_of(in->to); e++) {
    const double v = in->data[0][e];
    y[e] = s->which < 2    ? floor(v / by)
           : s->which < 4  ? v - floor(v / by) * by
           : s->which == 4 ? fmod(v, by)
           : s->which == 5 ? v * 4
                           : floor(v / 2);
  }
}

static void add_integral(struct op_test *t, const struct step *s, const struct var *const *x,
                         const uint32_t *ids, uint32_t y) {
  const uint32_t by = op_int(t, integral[s->which].by);
  (void)x;
  if (integral[s->which].mode)
    op_node(t, integral[s->which].name, IDS(ids[0], by, op_text(t, "floor"), y));
  else
    op_node(t, integral[s->which].name, IDS(ids[0], by, y));
}

const struct random_kind random_elementwise[] = {
    {"unary", pick_unary, interpret_unary, add_unary},
    {"binary", pick_binary, interpret_binary, add_binary},
    {"where", pick_choice, interpret_choice, add_choice},
    {"cast", pick_cast, interpret_cast, add_cast},
    {"integers", pick_integral, interpret_integral, add_integral},
    {0},
};
