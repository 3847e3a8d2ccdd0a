/* What moves elements and computes none: slices, permutations, padding, joins, views. */
#include "random.h"

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

static bool pick_move(const struct var *const *operands, uint64_t *seed, struct step *s,
                      struct var *y) {
  const struct var *x = operands[0];
  uint32_t from[4], one[4], two[4], got[4], want[4];
  s->move = (struct oracle_move){0};
  s->specials = true;
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
  s->name = s->move.name;
  s->n = 1;
  return true;
}

static void interpret_move(const struct step *s, const struct seen *in, double *y) {
  double *moved = oracle_moved(&s->move, in->dims[0], in->data[0]);
  memcpy(y, moved, (size_t)numel_of(in->to) * sizeof *moved);
  free(moved);
}

static void add_move(struct op_test *t, const struct step *s, const struct var *const *x,
                     const uint32_t *ids, uint32_t y) {
  (void)x;
  oracle_move_node(t, &s->move, ids[0], y, true);
}

static bool pick_join(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  const struct var *a = x[0], *b = x[1];
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
  s->specials = true;
  return true;
}

static void interpret_join(const struct step *s, const struct seen *in, double *y) {
  const uint32_t *to = in->to, d = s->which;
  for (uint64_t e = 0; e < numel_of(to); e++) {
    uint32_t c[3] = {(uint32_t)(e / to[2] / to[1]), (uint32_t)(e / to[2] % to[1]),
                     (uint32_t)(e % to[2])};
    const int from = c[d] >= in->dims[0][d];
    if (from) c[d] -= in->dims[0][d];
    y[e] = in->data[from][at(in->dims[from], c[0], c[1], c[2])];
  }
}

static void add_join(struct op_test *t, const struct step *s, const struct var *const *x,
                     const uint32_t *ids, uint32_t y) {
  (void)x;
  op_node(t, "aten.cat.default", IDS(op_list(t, IDS(ids[0], ids[1])), op_int(t, s->which), y));
}

/* (a, b, c) becomes (a · b, c, 1). */
static bool pick_view(const struct var *const *operands, uint64_t *seed, struct step *s,
                      struct var *y) {
  (void)seed;
  const struct var *x = operands[0];
  if (!is_fixed(x, 2) || x->offset[2] == 0 || (!is_fixed(x, 0) && !is_fixed(x, 1))) return false;
  *y = *x;
  y->scale[0] = x->scale[0] * x->offset[1] + x->scale[1] * x->offset[0];
  y->offset[0] = x->offset[0] * x->offset[1];
  y->scale[1] = 0, y->offset[1] = x->offset[2];
  y->scale[2] = 0, y->offset[2] = 1;
  s->n = 1;
  s->specials = true;
  return true;
}

static void interpret_view(const struct step *s, const struct seen *in, double *y) {
  (void)s;
  memcpy(y, in->data[0], (size_t)numel_of(in->to) * sizeof *y);
}

static void add_view(struct op_test *t, const struct step *s, const struct var *const *x,
                     const uint32_t *ids, uint32_t y) {
  (void)s;
  op_node(t, "aten.view_copy.default", IDS(ids[0], op_ints(t, INTS(-1, x[0]->offset[2], 1)), y));
}

/* Neighbours along the last dim: (a, b, c) becomes (a, b, c - 1, 2), and so (a, b, 2 c - 2). */
static bool pick_windows(const struct var *const *x, uint64_t *seed, struct step *s,
                         struct var *y) {
  (void)seed;
  s->n = 1;
  s->specials = true;
  if (!is_some(x[0], 1) || !is_fixed(x[0], 2) || x[0]->offset[2] < 2) return false;
  *y = *x[0];
  fix(y, 2, 2 * (x[0]->offset[2] - 1));
  return true;
}

static void interpret_windows(const struct step *s, const struct seen *in, double *y) {
  const uint32_t cols = in->to[2];
  (void)s;
  for (uint64_t e = 0; e < numel_of(in->to); e++)
    y[e] = in->data[0][e / cols * in->dims[0][2] + e % cols / 2 + e % 2];
}

static void add_windows(struct op_test *t, const struct step *s, const struct var *const *x,
                        const uint32_t *ids, uint32_t y) {
  uint32_t dims[4];
  (void)s;
  dims_at(x[0], LARGEST, dims);
  dims[2]--;
  dims[3] = 2;
  const uint32_t windows = op_tensor(t, x[0]->dtype, dims, 4);
  op_node(t, "aten.unfold_copy.default",
          IDS(ids[0], op_int(t, 2), op_int(t, 2), op_int(t, 1), windows));
  op_node(t, "aten.view_copy.default", IDS(windows, op_ints(t, INTS(-1, dims[1], 2 * dims[2])), y));
}

const struct random_kind random_movement[] = {
    {"move", pick_move, interpret_move, add_move},
    {"cat", pick_join, interpret_join, add_join},
    {"view", pick_view, interpret_view, add_view},
    {"unfold", pick_windows, interpret_windows, add_windows},
    {0},
};
