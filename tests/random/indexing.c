/* Elements and rows by index: gathering, scattering, tables. */
#include "random.h"

static bool pick_rows(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  s->which = below(seed, 3);
  s->n = 1;
  if (!is_fixed(x[0], s->which) || x[0]->offset[s->which] == 0) return false;
  *y = *x[0];
  fix(y, s->which, 4);
  return true;
}

static int64_t row(uint32_t i, uint32_t size) { return (int64_t)(i * 5 % size); }

static void interpret_rows(const struct step *s, const struct seen *in, double *y) {
  const uint32_t *d = in->dims[0];
  for (uint64_t e = 0; e < (uint64_t)in->to[0] * in->to[1] * in->to[2]; e++) {
    uint64_t c[3] = {e / in->to[2] / in->to[1], e / in->to[2] % in->to[1], e % in->to[2]};
    c[s->which] = (uint64_t)row((uint32_t)c[s->which], d[s->which]);
    y[e] = in->data[0][(c[0] * d[1] + c[1]) * d[2] + c[2]];
  }
}

static void add_rows(struct op_test *t, const struct step *s, const struct var *const *x,
                     const uint32_t *ids, uint32_t y) {
  double places[4];
  for (uint32_t i = 0; i < 4; i++) places[i] = (double)row(i, x[0]->offset[s->which]);
  op_node(t, "aten.index_select.default",
          IDS(ids[0], op_int(t, s->which), op_constant(t, VK_INT32, DIMS(4), places), y));
}

static bool pick_put(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  const struct var *a = x[0], *b = x[1];
  s->which = below(seed, 3);
  s->n = 2;
  if (a->dtype != b->dtype || !is_fixed(a, s->which) || !is_fixed(b, s->which) ||
      b->offset[s->which] > a->offset[s->which])
    return false;
  for (uint32_t i = 0; i < 3; i++)
    if (i != s->which && !same_dim(a, b, i)) return false;
  *y = *a;
  y->most = fmax(a->most, b->most);
  y->grain = fmin(a->grain, b->grain);
  y->error = fmax(a->error, b->error);
  s->move.n = b->offset[s->which];
  return true;
}

static void interpret_put(const struct step *s, const struct seen *in, double *y) {
  const uint32_t *d = in->dims[1];
  for (uint64_t e = 0; e < (uint64_t)in->to[0] * in->to[1] * in->to[2]; e++) {
    const uint64_t c[3] = {e / in->to[2] / in->to[1], e / in->to[2] % in->to[1], e % in->to[2]};
    y[e] =
        c[s->which] < s->move.n ? in->data[1][(c[0] * d[1] + c[1]) * d[2] + c[2]] : in->data[0][e];
  }
}

static void add_put(struct op_test *t, const struct step *s, const struct var *const *x,
                    const uint32_t *ids, uint32_t y) {
  (void)x;
  op_node(t, "aten.slice_scatter.default",
          IDS(ids[0], ids[1], op_int(t, s->which), op_int(t, 0), op_int(t, s->move.n), op_int(t, 1),
              y));
}

static bool box_of(const struct var *x, uint32_t box[3]) {
  for (int i = 0; i < 3; i++) box[i] = x->offset[i] < 2 ? x->offset[i] : 2;
  return box[0] && box[1] && box[2];
}

static double index_at(const struct step *s, const uint32_t size, uint64_t e) {
  return (double)((e * 3 + s->move.n) % size);
}

static uint32_t add_box(struct op_test *t, const struct step *s, const struct var *x) {
  uint32_t box[3];
  double values[8];
  if (!box_of(x, box)) return NO_VALUE;
  for (uint64_t e = 0; e < (uint64_t)box[0] * box[1] * box[2]; e++)
    values[e] = index_at(s, x->offset[s->which], e);
  return op_constant(t, VK_INT32, box, 3, values);
}

static bool pick_gather(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  uint32_t box[3];
  if (!one_dim(x[0], seed, s, y) || !box_of(x[0], box)) return false;
  s->move.n = below(seed, 5);
  for (uint32_t i = 0; i < 3; i++) fix(y, i, box[i]);
  return true;
}

static void interpret_gather(const struct step *s, const struct seen *in, double *y) {
  for (uint64_t e = 0; e < (uint64_t)in->to[0] * in->to[1] * in->to[2]; e++) {
    uint64_t c[3] = {e / in->to[2] / in->to[1], e / in->to[2] % in->to[1], e % in->to[2]};
    c[s->which] = (uint64_t)index_at(s, in->dims[0][s->which], e);
    y[e] = in->data[0][at(in->dims[0], c[0], c[1], c[2])];
  }
}

static void add_gather(struct op_test *t, const struct step *s, const struct var *const *x,
                       const uint32_t *ids, uint32_t y) {
  op_node(t, "aten.gather.default",
          IDS(ids[0], op_int(t, s->which), add_box(t, s, x[0]), op_bool(t, false), y));
}

static bool pick_scatter(const struct var *const *x, uint64_t *seed, struct step *s,
                         struct var *y) {
  uint32_t box[3], other[3];
  if (!one_dim(x[0], seed, s, y) || !is_number(x[0]) || x[0]->dtype != x[1]->dtype) return false;
  if (!box_of(x[0], box) || !box_of(x[1], other) || memcmp(box, other, sizeof box) != 0)
    return false;
  s->move.n = below(seed, 5);
  s->n = 2;
  *y = *x[0];
  y->most += 8 * x[1]->most;
  y->grain = fmin(y->grain, x[1]->grain);
  y->error += 8 * x[1]->error;
  return true;
}

static bool pick_scatter_box(const struct var *const *x, uint64_t *seed, struct step *s,
                             struct var *y) {
  return pick_scatter(x, seed, s, y) && box_of(x[0], s->move.x);
}

static void interpret_scatter(const struct step *s, const struct seen *in, double *y) {
  uint32_t box[3];
  for (int i = 0; i < 3; i++) box[i] = (uint32_t)s->move.x[i];
  memcpy(y, in->data[0], (size_t)in->to[0] * in->to[1] * in->to[2] * sizeof *y);
  for (uint64_t e = 0; e < (uint64_t)box[0] * box[1] * box[2]; e++) {
    uint64_t c[3] = {e / box[2] / box[1], e / box[2] % box[1], e % box[2]};
    const double v = in->data[1][at(in->dims[1], c[0], c[1], c[2])];
    c[s->which] = (uint64_t)index_at(s, in->dims[0][s->which], e);
    y[at(in->to, c[0], c[1], c[2])] += v;
  }
}

static void add_scatter(struct op_test *t, const struct step *s, const struct var *const *x,
                        const uint32_t *ids, uint32_t y) {
  op_node(t, "aten.scatter_add.default",
          IDS(ids[0], op_int(t, s->which), add_box(t, s, x[0]), ids[1], y));
}

/* ---- index_put: the first and the last of a dim, twice, take or add a number --------------------
 */

static bool pick_index(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  s->which = below(seed, 3);
  s->move.n = below(seed, 2);
  s->n = 1;
  if (!is_some(x[0], s->which) || !is_number(x[0])) return false;
  *y = *x[0];
  y->most += 6;
  return true;
}

static void interpret_index(const struct step *s, const struct seen *in, double *y) {
  const uint32_t size = in->to[s->which];
  for (uint64_t l = 0; l < lines(in->to, s->which); l++) {
    uint64_t step, first = line_of(in->to, s->which, l, &step);
    for (uint32_t i = 0; i < size; i++) {
      const double times = (i == 0) + 2 * (i == size - 1), x = in->data[0][first + i * step];
      y[first + i * step] = times == 0 ? x : s->move.n ? x + 2 * times : 2;
    }
  }
}

static void add_index(struct op_test *t, const struct step *s, const struct var *const *x,
                      const uint32_t *ids, uint32_t y) {
  const double last = x[0]->offset[s->which] - 1.0;
  uint32_t list[3];
  for (uint32_t i = 0; i < s->which; i++) list[i] = op_null(t);
  list[s->which] = op_constant(t, VK_INT32, DIMS(3), (const double[]){0, last, last});
  op_node(t, "aten.index_put.default",
          IDS(ids[0], op_list(t, list, s->which + 1),
              op_constant(t, x[0]->dtype, DIMS(1), (const double[]){2}), op_bool(t, s->move.n), y));
}

const struct random_kind random_indexing[] = {
    {"index_select", pick_rows, interpret_rows, add_rows},
    {"slice_scatter", pick_put, interpret_put, add_put},
    {"gather", pick_gather, interpret_gather, add_gather},
    {"scatter_add", pick_scatter_box, interpret_scatter, add_scatter},
    {"index_put", pick_index, interpret_index, add_index},
    {0},
};
