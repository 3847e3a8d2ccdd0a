/* More kinds of steps for random graphs: reductions that answer with places, statistics, norms of
 * groups and batches, scattering, pooling, resizing, the other convolutions, integers that divide
 * and shift, and bytes. Several go through tensors of rank 2, 4 and 5. */
#include "random.h"

static bool is_float(const struct var *v) {
  return v->dtype == VK_FLOAT32 || v->dtype == VK_FLOAT16;
}

static bool is_number(const struct var *v) { return is_float(v) || v->dtype == VK_INT32; }

static void fix(struct var *v, uint32_t i, uint32_t size) { v->scale[i] = 0, v->offset[i] = size; }

/* Quarters from -1 to 1, as in random_dense.c. */
static double weight(uint64_t i) { return ((double)(i * 7 % 9) - 4) / 4; }

static uint32_t weights(struct op_test *t, enum vk_dtype dtype, const uint32_t *dims,
                        uint32_t rank) {
  double values[ROOM];
  uint64_t n = 1;
  for (uint32_t i = 0; i < rank; i++) n *= dims[i];
  for (uint64_t i = 0; i < n && i < ROOM; i++) values[i] = weight(i);
  return op_constant(t, dtype, dims, rank, values);
}

/* Positive ones. */
static uint32_t sizes(struct op_test *t, enum vk_dtype dtype, uint32_t n) {
  double values[ROOM];
  for (uint32_t i = 0; i < n && i < ROOM; i++) values[i] = 1 + fabs(weight(i));
  return op_constant(t, dtype, DIMS(n), values);
}

static uint64_t at(const uint32_t *d, uint64_t a, uint64_t b, uint64_t c) {
  return (a * d[1] + b) * d[2] + c;
}

/* Line `line` of those along dim d: its first element, and the step to the next. */
static uint64_t line_of(const uint32_t *dims, uint32_t d, uint64_t line, uint64_t *step) {
  *step = 1;
  for (uint32_t i = d + 1; i < 3; i++) *step *= dims[i];
  return line / *step * *step * dims[d] + line % *step;
}

static uint64_t lines(const uint32_t *dims, uint32_t d) {
  uint64_t n = 1;
  for (uint32_t i = 0; i < 3; i++) n *= i == d ? 1 : dims[i];
  return n;
}

/* Dims at the largest live size, for a tensor between. */
static uint32_t between(struct op_test *t, enum vk_dtype dtype, const struct var *x) {
  uint32_t dims[4];
  dims_at(x, LARGEST, dims);
  return op_tensor(t, dtype, dims, 3);
}

/* ---- places, products, statistics -------------------------------------------------------------
 */

static bool one_dim(const struct var *x, uint64_t *seed, struct step *s, struct var *y) {
  s->which = below(seed, 3);
  s->n = 1;
  *y = *x;
  fix(y, s->which, 1);
  return is_fixed(x, s->which) && x->offset[s->which] > 0;
}

static bool pick_place(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  if (!one_dim(x[0], seed, s, y) || !is_number(x[0]) || x[0]->error > 0) return false;
  s->move.n = below(seed, 2);
  y->dtype = VK_INT32;
  y->most = x[0]->offset[s->which];
  y->grain = 1;
  return true;
}

static void interpret_place(const struct step *s, const uint32_t (*dims)[4],
                            const double *const *data, const uint32_t *to, double *y) {
  (void)to;
  for (uint64_t l = 0; l < lines(dims[0], s->which); l++) {
    uint64_t step, first = line_of(dims[0], s->which, l, &step);
    uint32_t best = 0;
    for (uint32_t i = 1; i < dims[0][s->which]; i++) {
      const double a = data[0][first + i * step], b = data[0][first + best * step];
      if (s->move.n ? a > b : a < b) best = i;
    }
    y[l] = best;
  }
}

static void add_place(struct op_test *t, const struct step *s, const struct var *const *x,
                      const uint32_t *ids, uint32_t y) {
  (void)x;
  op_node(t, s->move.n ? "aten.argmax.default" : "aten.argmin.default",
          IDS(ids[0], op_int(t, s->which), op_bool(t, true), y));
}

static bool pick_product(const struct var *const *x, uint64_t *seed, struct step *s,
                         struct var *y) {
  if (!one_dim(x[0], seed, s, y) || !is_number(x[0]) || x[0]->error > 0) return false;
  y->most = pow(fmax(x[0]->most, 1), x[0]->offset[s->which]);
  y->grain = pow(x[0]->grain, x[0]->offset[s->which]);
  return y->most < 3e4;
}

static void interpret_product(const struct step *s, const uint32_t (*dims)[4],
                              const double *const *data, const uint32_t *to, double *y) {
  (void)to;
  for (uint64_t l = 0; l < lines(dims[0], s->which); l++) {
    uint64_t step, first = line_of(dims[0], s->which, l, &step);
    y[l] = 1;
    for (uint32_t i = 0; i < dims[0][s->which]; i++) y[l] *= data[0][first + i * step];
  }
}

static void add_product(struct op_test *t, const struct step *s, const struct var *const *x,
                        const uint32_t *ids, uint32_t y) {
  (void)x;
  op_node(t, "aten.prod.dim_int",
          IDS(ids[0], op_int(t, s->which), op_bool(t, true), op_null(t), y));
}

static bool pick_mean(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  if (!one_dim(x[0], seed, s, y) || !is_float(x[0])) return false;
  y->grain = 1e-12;
  y->error = x[0]->error + 2e-6 * x[0]->most;
  return true;
}

static void interpret_mean(const struct step *s, const uint32_t (*dims)[4],
                           const double *const *data, const uint32_t *to, double *y) {
  (void)to;
  for (uint64_t l = 0; l < lines(dims[0], s->which); l++) {
    uint64_t step, first = line_of(dims[0], s->which, l, &step);
    double sum = 0;
    for (uint32_t i = 0; i < dims[0][s->which]; i++) sum += data[0][first + i * step];
    y[l] = sum / dims[0][s->which];
  }
}

static void add_mean(struct op_test *t, const struct step *s, const struct var *const *x,
                     const uint32_t *ids, uint32_t y) {
  (void)x;
  op_node(t, "aten.mean.dim",
          IDS(ids[0], op_ints(t, INTS(s->which)), op_bool(t, true), op_null(t), y));
}

static bool pick_variance(const struct var *const *x, uint64_t *seed, struct step *s,
                          struct var *y) {
  if (!one_dim(x[0], seed, s, y) || !is_float(x[0]) || x[0]->offset[s->which] < 2) return false;
  y->most = 2 * x[0]->most * x[0]->most;
  y->grain = 1e-12;
  y->error = 8 * x[0]->most * x[0]->error + 1e-5 * (1 + y->most);
  return true;
}

static void interpret_variance(const struct step *s, const uint32_t (*dims)[4],
                               const double *const *data, const uint32_t *to, double *y) {
  const uint32_t n = dims[0][s->which];
  interpret_mean(s, dims, data, to, y);
  for (uint64_t l = 0; l < lines(dims[0], s->which); l++) {
    uint64_t step, first = line_of(dims[0], s->which, l, &step);
    double squares = 0;
    for (uint32_t i = 0; i < n; i++) squares += pow(data[0][first + i * step] - y[l], 2);
    y[l] = squares / (n - 1);
  }
}

static void add_variance(struct op_test *t, const struct step *s, const struct var *const *x,
                         const uint32_t *ids, uint32_t y) {
  (void)x;
  op_node(t, "aten.var.correction",
          IDS(ids[0], op_ints(t, INTS(s->which)), op_null(t), op_bool(t, true), y));
}

/* The two largest, in order. */
static bool pick_best(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  if (!one_dim(x[0], seed, s, y) || x[0]->offset[s->which] < 2 || x[0]->error > 0) return false;
  fix(y, s->which, 2);
  return true;
}

static void interpret_best(const struct step *s, const uint32_t (*dims)[4],
                           const double *const *data, const uint32_t *to, double *y) {
  for (uint64_t l = 0; l < lines(dims[0], s->which); l++) {
    uint64_t step, out, first = line_of(dims[0], s->which, l, &step);
    const uint64_t start = line_of(to, s->which, l, &out);
    double best[2] = {-INFINITY, -INFINITY};
    for (uint32_t i = 0; i < dims[0][s->which]; i++) {
      const double v = data[0][first + i * step];
      if (v > best[0]) {
        best[1] = best[0];
        best[0] = v;
      } else if (v > best[1]) {
        best[1] = v;
      }
    }
    y[start] = best[0];
    y[start + out] = best[1];
  }
}

static void add_best(struct op_test *t, const struct step *s, const struct var *const *x,
                     const uint32_t *ids, uint32_t y) {
  struct var two = *x[0];
  fix(&two, s->which, 2);
  op_node(t, "aten.topk.default",
          IDS(ids[0], op_int(t, 2), op_int(t, s->which), op_bool(t, true), op_bool(t, true),
              op_list(t, IDS(y, between(t, VK_INT32, &two)))));
}

/* ---- gathering and scattering: a box of at most 2 by 2 by 2 indices ----------------------------
 */

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

static void interpret_gather(const struct step *s, const uint32_t (*dims)[4],
                             const double *const *data, const uint32_t *to, double *y) {
  for (uint64_t e = 0; e < (uint64_t)to[0] * to[1] * to[2]; e++) {
    uint64_t c[3] = {e / to[2] / to[1], e / to[2] % to[1], e % to[2]};
    c[s->which] = (uint64_t)index_at(s, dims[0][s->which], e);
    y[e] = data[0][at(dims[0], c[0], c[1], c[2])];
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

static void interpret_scatter(const struct step *s, const uint32_t (*dims)[4],
                              const double *const *data, const uint32_t *to, double *y) {
  uint32_t box[3];
  for (int i = 0; i < 3; i++) box[i] = (uint32_t)s->move.x[i];
  memcpy(y, data[0], (size_t)to[0] * to[1] * to[2] * sizeof *y);
  for (uint64_t e = 0; e < (uint64_t)box[0] * box[1] * box[2]; e++) {
    uint64_t c[3] = {e / box[2] / box[1], e / box[2] % box[1], e % box[2]};
    const double v = data[1][at(dims[1], c[0], c[1], c[2])];
    c[s->which] = (uint64_t)index_at(s, dims[0][s->which], e);
    y[at(to, c[0], c[1], c[2])] += v;
  }
}

static bool pick_scatter_box(const struct var *const *x, uint64_t *seed, struct step *s,
                             struct var *y) {
  return pick_scatter(x, seed, s, y) && box_of(x[0], s->move.x);
}

static void add_scatter(struct op_test *t, const struct step *s, const struct var *const *x,
                        const uint32_t *ids, uint32_t y) {
  op_node(t, "aten.scatter_add.default",
          IDS(ids[0], op_int(t, s->which), add_box(t, s, x[0]), ids[1], y));
}

/* ---- norms of x (N, C, L), with an epsilon of 1 ------------------------------------------------
 */

static bool pick_groups(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  const uint32_t channels = x[0]->offset[1];
  s->which = below(seed, 2) ? channels : 1; /* groups */
  s->n = 1;
  if (!is_float(x[0]) || !is_fixed(x[0], 1) || !is_fixed(x[0], 2)) return false;
  if (channels == 0 || x[0]->offset[2] == 0) return false;
  *y = *x[0];
  y->most = 1 + sqrt((double)channels * x[0]->offset[2]);
  y->grain = 1e-12;
  y->error = 2 * x[0]->error + 1e-5 * (1 + y->most + 1e-2 * x[0]->most);
  return true;
}

static void interpret_groups(const struct step *s, const uint32_t (*dims)[4],
                             const double *const *data, const uint32_t *to, double *y) {
  const uint32_t cols = dims[0][1] / s->which * dims[0][2], inner = dims[0][2];
  for (uint64_t e = 0; e < (uint64_t)to[0] * to[1] * to[2]; e++) {
    const double *x = data[0] + e / cols * cols;
    double mean = 0, square = 0;
    for (uint32_t i = 0; i < cols; i++) mean += x[i] / cols;
    for (uint32_t i = 0; i < cols; i++) square += (x[i] - mean) * (x[i] - mean) / cols;
    y[e] = (data[0][e] - mean) / sqrt(square + 1) + weight(e / inner % dims[0][1]);
  }
}

static void add_groups(struct op_test *t, const struct step *s, const struct var *const *x,
                       const uint32_t *ids, uint32_t y) {
  const uint32_t channels = x[0]->offset[1], inner = x[0]->offset[2];
  uint32_t dims[4];
  dims_at(x[0], LARGEST, dims);
  dims[1] = s->which;
  const uint32_t mean = op_tensor(t, x[0]->dtype, dims, 2),
                 rstd = op_tensor(t, x[0]->dtype, dims, 2);
  op_node(t, "aten.native_group_norm.default",
          IDS(ids[0], op_null(t), weights(t, x[0]->dtype, DIMS(channels)), op_int(t, dims[0]),
              op_int(t, channels), op_int(t, inner), op_int(t, s->which), op_double(t, 1),
              op_list(t, IDS(y, mean, rstd))));
}

static bool pick_batch(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  (void)seed;
  s->n = 1;
  if (!is_float(x[0]) || !is_fixed(x[0], 1) || x[0]->offset[1] == 0) return false;
  *y = *x[0];
  y->most += 2;
  y->grain = 1e-12;
  y->error += 1e-5 * (1 + y->most);
  return true;
}

static void interpret_batch(const struct step *s, const uint32_t (*dims)[4],
                            const double *const *data, const uint32_t *to, double *y) {
  (void)s;
  for (uint64_t e = 0; e < (uint64_t)to[0] * to[1] * to[2]; e++) {
    const uint64_t c = e / dims[0][2] % dims[0][1];
    y[e] = (data[0][e] - weight(c)) / sqrt(1 + fabs(weight(c)) + 1) * weight(c) + weight(c);
  }
}

static void add_batch(struct op_test *t, const struct step *s, const struct var *const *x,
                      const uint32_t *ids, uint32_t y) {
  const uint32_t n = x[0]->offset[1];
  const enum vk_dtype dtype = x[0]->dtype;
  const uint32_t w = weights(t, dtype, DIMS(n)), none[] = {0};
  (void)s;
  op_node(t, "aten._native_batch_norm_legit_no_training.default",
          IDS(ids[0], w, w, w, sizes(t, dtype, n), op_double(t, 0.1), op_double(t, 1),
              op_list(t, IDS(y, op_tensor(t, dtype, none, 1), op_tensor(t, dtype, none, 1)))));
}

static bool pick_root(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  (void)seed;
  s->n = 1;
  if (!is_float(x[0]) || !is_fixed(x[0], 2) || x[0]->offset[2] == 0) return false;
  *y = *x[0];
  y->most = sqrt(x[0]->offset[2]);
  y->grain = 1e-12;
  y->error = 2 * x[0]->error + 1e-5 * (1 + y->most + 1e-2 * x[0]->most);
  return true;
}

static void interpret_root(const struct step *s, const uint32_t (*dims)[4],
                           const double *const *data, const uint32_t *to, double *y) {
  (void)s;
  const uint32_t cols = dims[0][2];
  for (uint64_t e = 0; e < (uint64_t)to[0] * to[1] * to[2]; e++) {
    double square = 0;
    for (uint32_t i = 0; i < cols; i++) square += pow(data[0][e / cols * cols + i], 2) / cols;
    y[e] = data[0][e] / sqrt(square + 1) * weight(e % cols);
  }
}

static void add_root(struct op_test *t, const struct step *s, const struct var *const *x,
                     const uint32_t *ids, uint32_t y) {
  (void)s;
  op_node(t, "et_vk.rms_norm.default",
          IDS(ids[0], weights(t, x[0]->dtype, DIMS(x[0]->offset[2])), op_double(t, 1), y));
}

/* ---- planes: (a, b, c) as a tensor of rank 4 or 5 and back --------------------------------------
 */

/* A node on x with a dim of 1 before dim `place`, `times` times; its result loses them again. */
static uint32_t widened(struct op_test *t, const struct var *x, uint32_t id, uint32_t place,
                        uint32_t times) {
  uint32_t dims[8], rank = 3;
  dims_at(x, LARGEST, dims);
  for (; times > 0; times--, rank++) {
    memmove(dims + place + 1, dims + place, (rank - place) * sizeof *dims);
    dims[place] = 1;
    const uint32_t wider = op_tensor(t, x->dtype, dims, rank + 1);
    op_node(t, "aten.unsqueeze_copy.default", IDS(id, op_int(t, place), wider));
    id = wider;
  }
  return id;
}

static uint32_t wide_result(struct op_test *t, const struct var *y, uint32_t place,
                            uint32_t times) {
  uint32_t dims[8], rank = 3;
  dims_at(y, LARGEST, dims);
  for (; times > 0; times--, rank++) {
    memmove(dims + place + 1, dims + place, (rank - place) * sizeof *dims);
    dims[place] = 1;
  }
  return op_tensor(t, y->dtype, dims, rank);
}

static void narrowed(struct op_test *t, uint32_t from, uint32_t place, uint32_t times, uint32_t y) {
  int64_t list[2] = {place, place + 1};
  op_node(t, "aten.squeeze_copy.dims", IDS(from, op_ints(t, list, times), y));
}

static bool pick_resize(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  (void)seed;
  s->n = 1;
  if (!is_float(x[0]) || x[0]->offset[1] == 0 || x[0]->offset[2] == 0 || x[0]->offset[0] == 0)
    return false;
  *y = *x[0];
  for (int i = 1; i < 3; i++) y->scale[i] *= 2, y->offset[i] *= 2;
  return true;
}

static void interpret_resize(const struct step *s, const uint32_t (*dims)[4],
                             const double *const *data, const uint32_t *to, double *y) {
  (void)s;
  for (uint64_t e = 0; e < (uint64_t)to[0] * to[1] * to[2]; e++)
    y[e] = data[0][at(dims[0], e / to[2] / to[1], e / to[2] % to[1] / 2, e % to[2] / 2)];
}

static void add_resize(struct op_test *t, const struct step *s, const struct var *const *x,
                       const uint32_t *ids, uint32_t y) {
  struct var twice = *x[0];
  (void)s;
  for (int i = 1; i < 3; i++) twice.scale[i] *= 2, twice.offset[i] *= 2;
  const uint32_t wide = widened(t, x[0], ids[0], 0, 1), to = wide_result(t, &twice, 0, 1);
  op_node(t, "aten.upsample_nearest2d.vec",
          IDS(wide, op_null(t), op_doubles(t, (const double[]){2, 2}, 2), to));
  narrowed(t, to, 0, 1, y);
}

static bool pick_peak(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  (void)seed;
  s->n = 1;
  if (!is_float(x[0]) || x[0]->offset[0] == 0 || x[0]->offset[1] < 2 || x[0]->offset[2] < 2)
    return false;
  *y = *x[0];
  y->offset[1]--, y->offset[2]--;
  return true;
}

static void interpret_peak(const struct step *s, const uint32_t (*dims)[4],
                           const double *const *data, const uint32_t *to, double *y) {
  const uint32_t *d = dims[0];
  (void)s;
  for (uint64_t e = 0; e < (uint64_t)to[0] * to[1] * to[2]; e++) {
    const double *x = data[0] + at(d, e / to[2] / to[1], e / to[2] % to[1], e % to[2]);
    y[e] = fmax(fmax(x[0], x[1]), fmax(x[d[2]], x[d[2] + 1]));
  }
}

static void add_peak(struct op_test *t, const struct step *s, const struct var *const *x,
                     const uint32_t *ids, uint32_t y) {
  struct var less = *x[0];
  (void)s;
  less.offset[1]--, less.offset[2]--;
  const uint32_t wide = widened(t, x[0], ids[0], 1, 1), to = wide_result(t, &less, 1, 1);
  op_node(t, "aten.max_pool2d.default",
          IDS(wide, op_ints(t, INTS(2, 2)), op_ints(t, INTS(1, 1)), op_ints(t, INTS(0, 0)),
              op_ints(t, INTS(1, 1)), op_bool(t, false), to));
  narrowed(t, to, 1, 1, y);
}

/* Taps of 3 by 3 over (b, c), or of 3 by 3 by 3 over all, with one channel, padded by 1. */
static bool pick_taps(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  s->which = 2 + below(seed, 2);
  s->n = 1;
  if (!is_float(x[0]) || !x[0]->offset[0] || !x[0]->offset[1] || !x[0]->offset[2]) return false;
  *y = *x[0];
  const double taps = s->which == 2 ? 9 : 27;
  y->most *= taps;
  y->error *= taps;
  y->grain /= 4;
  return true;
}

static void interpret_taps(const struct step *s, const uint32_t (*dims)[4],
                           const double *const *data, const uint32_t *to, double *y) {
  const int64_t deep = s->which == 3, d[] = {to[0], to[1], to[2]};
  (void)dims;
  for (int64_t a = 0; a < d[0]; a++)
    for (int64_t b = 0; b < d[1]; b++)
      for (int64_t c = 0; c < d[2]; c++) {
        double sum = 0;
        uint64_t tap = 0;
        for (int64_t i = -deep; i <= deep; i++)
          for (int64_t j = -1; j <= 1; j++)
            for (int64_t k = -1; k <= 1; k++, tap++)
              if (a + i >= 0 && a + i < d[0] && b + j >= 0 && b + j < d[1] && c + k >= 0 &&
                  c + k < d[2])
                sum += data[0][((a + i) * d[1] + b + j) * d[2] + c + k] * weight(tap);
        *y++ = sum;
      }
}

static void add_taps(struct op_test *t, const struct step *s, const struct var *const *x,
                     const uint32_t *ids, uint32_t y) {
  const bool deep = s->which == 3;
  const uint32_t place = deep ? 0 : 1, times = deep ? 2 : 1, rank = s->which;
  const uint32_t wide = widened(t, x[0], ids[0], place, times),
                 to = wide_result(t, x[0], place, times);
  const uint32_t w = weights(t, x[0]->dtype, (const uint32_t[]){1, 1, 3, 3, 3}, rank + 2);
  const uint32_t one = op_ints(t, (const int64_t[]){1, 1, 1}, rank),
                 zero = op_ints(t, (const int64_t[]){0, 0, 0}, rank);
  op_node(t, deep ? "aten::convolution.out" : "aten.convolution.default",
          IDS(wide, w, op_null(t), one, one, one, op_bool(t, false), zero, op_int(t, 1), to));
  narrowed(t, to, place, times, y);
}

/* Transposed along the last dim: 3 taps, a stride of 2, w (C, which, 3). */
static bool pick_spread(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  s->which = 1 + below(seed, 3);
  s->n = 1;
  if (!is_float(x[0]) || !is_fixed(x[0], 1) || !x[0]->offset[1] || x[0]->offset[1] > 20 ||
      !x[0]->offset[0] || x[0]->offset[2] < 1)
    return false;
  *y = *x[0];
  fix(y, 1, s->which);
  y->scale[2] *= 2;
  y->offset[2] = 2 * y->offset[2] - 1;
  y->most *= 2.0 * x[0]->offset[1];
  y->error *= 2.0 * x[0]->offset[1];
  y->grain /= 4;
  return true;
}

static void interpret_spread(const struct step *s, const uint32_t (*dims)[4],
                             const double *const *data, const uint32_t *to, double *y) {
  const uint32_t channels = dims[0][1], length = dims[0][2];
  memset(y, 0, (size_t)to[0] * to[1] * to[2] * sizeof *y);
  for (uint32_t b = 0; b < to[0]; b++)
    for (uint32_t c = 0; c < channels; c++)
      for (uint32_t i = 0; i < length; i++)
        for (uint32_t o = 0; o < s->which; o++)
          for (uint32_t k = 0; k < 3; k++)
            if (2 * i + k >= 1 && 2 * i + k <= to[2])
              y[at(to, b, o, 2 * i + k - 1)] +=
                  data[0][at(dims[0], b, c, i)] * weight((c * s->which + o) * 3 + k);
}

static void add_spread(struct op_test *t, const struct step *s, const struct var *const *x,
                       const uint32_t *ids, uint32_t y) {
  const uint32_t w = weights(t, x[0]->dtype, DIMS(x[0]->offset[1], s->which, 3));
  op_node(t, "aten.convolution.default",
          IDS(ids[0], w, op_null(t), op_ints(t, INTS(2)), op_ints(t, INTS(1)), op_ints(t, INTS(1)),
              op_bool(t, true), op_ints(t, INTS(0)), op_int(t, 1), y));
}

/* ---- matrices: (a, b, c) as (a b, c), times (c, which), plus a row ------------------------------
 */

static bool pick_matrix(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  s->which = 1 + below(seed, 4);
  s->move.n = below(seed, 2);
  s->n = 1;
  if (!is_number(x[0]) || !is_fixed(x[0], 1) || !is_fixed(x[0], 2)) return false;
  if (!x[0]->offset[1] || !x[0]->offset[2]) return false;
  *y = *x[0];
  fix(y, 2, s->which);
  const double most = x[0]->dtype == VK_INT32 ? 4 : 1;
  y->most = (x[0]->offset[2] * x[0]->most + 1) * most;
  y->error *= x[0]->offset[2];
  if (x[0]->dtype != VK_INT32) y->grain = fmin(y->grain / 4, 0.25);
  return true;
}

/* Of integers, four times as much. */
static double factor_of(enum vk_dtype dtype, uint64_t i) {
  return dtype == VK_INT32 ? 4 * weight(i) : weight(i);
}

static void interpret_matrix(const struct step *s, const uint32_t (*dims)[4],
                             const double *const *data, const uint32_t *to, double *y) {
  const uint32_t depth = dims[0][2];
  const enum vk_dtype dtype = (enum vk_dtype)s->move.x[0];
  for (uint64_t e = 0; e < (uint64_t)to[0] * to[1] * to[2]; e++) {
    y[e] = s->move.n ? factor_of(dtype, e % to[2]) : 0;
    for (uint32_t k = 0; k < depth; k++)
      y[e] += data[0][e / to[2] * depth + k] * factor_of(dtype, k * to[2] + e % to[2]);
  }
}

static bool pick_typed_matrix(const struct var *const *x, uint64_t *seed, struct step *s,
                              struct var *y) {
  s->move.x[0] = (uint32_t)x[0]->dtype;
  return pick_matrix(x, seed, s, y);
}

static void add_matrix(struct op_test *t, const struct step *s, const struct var *const *x,
                       const uint32_t *ids, uint32_t y) {
  const enum vk_dtype dtype = x[0]->dtype;
  const uint32_t depth = x[0]->offset[2], b = x[0]->offset[1], n = s->which;
  uint32_t dims[4];
  double values[ROOM];
  dims_at(x[0], LARGEST, dims);
  for (uint32_t i = 0; i < depth * n && i < ROOM; i++) values[i] = factor_of(dtype, i);
  const uint32_t w = op_constant(t, dtype, DIMS(depth, n), values);
  const uint32_t flat = op_tensor(t, dtype, DIMS(dims[0] * b, depth)),
                 product = op_tensor(t, dtype, DIMS(dims[0] * b, n));
  op_node(t, "aten.view_copy.default", IDS(ids[0], op_ints(t, INTS(-1, depth)), flat));
  if (s->move.n)
    op_node(
        t, "aten.addmm.default",
        IDS(op_constant(t, dtype, DIMS(n), values), flat, w, op_int(t, 1), op_int(t, 1), product));
  else
    op_node(t, "aten.mm.default", IDS(flat, w, product));
  op_node(t, "aten.view_copy.default", IDS(product, op_ints(t, INTS(-1, b, n)), y));
}

/* ---- rows of a table by truth ------------------------------------------------------------------
 */

enum { TABLE_WIDTH = 3 };

static bool pick_table(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  (void)seed;
  s->n = 1;
  if (x[0]->dtype != VK_BOOL || !is_fixed(x[0], 1) || !is_fixed(x[0], 2)) return false;
  if (!x[0]->offset[1] || !x[0]->offset[2]) return false;
  *y = *x[0];
  y->dtype = VK_FLOAT32;
  fix(y, 2, x[0]->offset[2] * TABLE_WIDTH);
  y->most = 1;
  y->grain = 0.25;
  return true;
}

static void interpret_table(const struct step *s, const uint32_t (*dims)[4],
                            const double *const *data, const uint32_t *to, double *y) {
  (void)s, (void)dims;
  for (uint64_t e = 0; e < (uint64_t)to[0] * to[1] * to[2]; e++)
    y[e] = weight((uint64_t)data[0][e / TABLE_WIDTH] * TABLE_WIDTH + e % TABLE_WIDTH);
}

static void add_table(struct op_test *t, const struct step *s, const struct var *const *x,
                      const uint32_t *ids, uint32_t y) {
  uint32_t dims[4];
  (void)s;
  dims_at(x[0], LARGEST, dims);
  dims[3] = TABLE_WIDTH;
  const uint32_t whole = between(t, VK_INT32, x[0]), rows = op_tensor(t, VK_FLOAT32, dims, 4);
  op_node(t, "aten::_to_copy.out", IDS(ids[0], op_null(t), op_null(t), whole));
  op_node(t, "aten.embedding.default",
          IDS(weights(t, VK_FLOAT32, DIMS(2, TABLE_WIDTH)), whole, op_int(t, -1), op_bool(t, false),
              op_bool(t, false), rows));
  op_node(t, "aten.view_copy.default",
          IDS(rows, op_ints(t, INTS(-1, dims[1], dims[2] * TABLE_WIDTH)), y));
}

/* ---- integers: division, remainders, shifts ----------------------------------------------------
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
  if (x[0]->dtype != VK_INT32) return false;
  *y = *x[0];
  y->most = 4 * x[0]->most + 1;
  return true;
}

static void interpret_integral(const struct step *s, const uint32_t (*dims)[4],
                               const double *const *data, const uint32_t *to, double *y) {
  const double by = (double)integral[s->which].by;
  (void)dims;
  for (uint64_t e = 0; e < (uint64_t)to[0] * to[1] * to[2]; e++) {
    const double v = data[0][e];
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

/* ---- bytes: halves of 1, from a zero point of 3, ties to even ----------------------------------
 */

static bool pick_bytes(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  (void)seed;
  s->n = 1;
  if (x[0]->dtype != VK_FLOAT32 || x[0]->error > 0) return false;
  *y = *x[0];
  y->most = fmin(y->most + 0.5, 70);
  y->grain = 0.5;
  return true;
}

static void interpret_bytes(const struct step *s, const uint32_t (*dims)[4],
                            const double *const *data, const uint32_t *to, double *y) {
  (void)s, (void)dims;
  for (uint64_t e = 0; e < (uint64_t)to[0] * to[1] * to[2]; e++)
    y[e] = (fmin(fmax(nearbyint(data[0][e] * 2) + 3, -128), 127) - 3) / 2;
}

static void add_bytes(struct op_test *t, const struct step *s, const struct var *const *x,
                      const uint32_t *ids, uint32_t y) {
  const uint32_t bytes = between(t, VK_INT8, x[0]), scale = op_double(t, 0.5), zero = op_int(t, 3),
                 low = op_int(t, -128), high = op_int(t, 127), kind = op_int(t, 1);
  (void)s;
  op_node(t, "quantized_decomposed.quantize_per_tensor.default",
          IDS(ids[0], scale, zero, low, high, kind, bytes));
  op_node(t, "quantized_decomposed.dequantize_per_tensor.default",
          IDS(bytes, scale, zero, low, high, kind, op_null(t), y));
}

const struct random_kind random_more[MORE_KINDS] = {
    {"argmax", pick_place, interpret_place, add_place},
    {"prod", pick_product, interpret_product, add_product},
    {"mean", pick_mean, interpret_mean, add_mean},
    {"var", pick_variance, interpret_variance, add_variance},
    {"topk", pick_best, interpret_best, add_best},
    {"gather", pick_gather, interpret_gather, add_gather},
    {"scatter_add", pick_scatter_box, interpret_scatter, add_scatter},
    {"group_norm", pick_groups, interpret_groups, add_groups},
    {"batch_norm", pick_batch, interpret_batch, add_batch},
    {"rms_norm", pick_root, interpret_root, add_root},
    {"upsample", pick_resize, interpret_resize, add_resize},
    {"max_pool2d", pick_peak, interpret_peak, add_peak},
    {"convolution of planes", pick_taps, interpret_taps, add_taps},
    {"transposed convolution", pick_spread, interpret_spread, add_spread},
    {"mm, addmm", pick_typed_matrix, interpret_matrix, add_matrix},
    {"embedding", pick_table, interpret_table, add_table},
    {"integers", pick_integral, interpret_integral, add_integral},
    {"bytes", pick_bytes, interpret_bytes, add_bytes},
};
