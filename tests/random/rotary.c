/* Rotary embeddings: pairs and halves of heads turned by rows of tables from a live position. The
 * tables are quarters, no angles, so that nothing rounds. */
#include "random.h"

enum { PAIRS, HALVES, SINGLE, FORMS };
enum { OTHER = 5 }; /* the table of sines is that of cosines from its fifth element on */

static uint32_t table_of(struct op_test *t, enum vk_dtype dtype, uint32_t rows, uint32_t width,
                         uint32_t from) {
  double values[4 * ROOM];
  for (uint32_t i = 0; i < rows * width && i < 4 * ROOM; i++) values[i] = weight(i + from);
  return op_constant(t, dtype, DIMS(rows, width), values);
}

static void turned(struct var *y) {
  y->most *= 2;
  y->error *= 2;
  y->grain /= 4;
}

/* x0 (S, Hq, D) and x1 (S, Hk, D); both results lie beside each other. */
static bool pick_heads(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  const struct var *q = x[0], *k = x[1];
  s->which = below(seed, FORMS);
  s->n = s->which == SINGLE ? 1 : 2;
  s->move.n = 0;
  if (!is_float(q) || !is_some(q, 2) || q->offset[2] < 2) return false;
  if (s->which == PAIRS && q->offset[2] % 2) return false;
  if (dim_most(q, 0) * q->offset[2] > ROOM) return false;
  *y = *q;
  turned(y);
  if (s->which == SINGLE) return is_fixed(q, 1);
  if (q->dtype != k->dtype || !same_dim(q, k, 0) || !same_dim(q, k, 2)) return false;
  if (!is_some(q, 1) || !is_some(k, 1)) return false;
  fix(y, 1, q->offset[1] + k->offset[1]);
  y->most = 2 * fmax(q->most, k->most);
  y->error = 2 * fmax(q->error, k->error);
  y->grain = fmin(q->grain, k->grain) / 4;
  return true;
}

/* Elements of a head that turn; the others pass. */
static uint32_t turning(const struct step *s, uint32_t dim) {
  return s->which == PAIRS ? dim : dim > 4 ? 4 : dim & ~1u;
}

static double turn(const struct step *s, uint32_t row, uint32_t dim, uint32_t d, const double *x) {
  const uint32_t rotary = turning(s, dim), half = rotary / 2;
  if (d >= rotary) return x[d];
  const bool first = s->which == PAIRS ? d % 2 == 0 : d < half;
  const uint32_t other = s->which == PAIRS ? d ^ 1 : first ? d + half : d - half;
  const uint32_t column = s->which == PAIRS ? row * half + d / 2 : row * rotary + d;
  const double sine = weight(column + OTHER) * x[other];
  return x[d] * weight(column) + (first ? -sine : sine);
}

static void interpret_heads(const struct step *s, const struct seen *in, double *y) {
  const uint32_t dim = in->to[2], heads = in->dims[0][1];
  for (uint64_t e = 0; e < numel_of(in->to); e++) {
    const uint32_t i = (uint32_t)(e / dim / in->to[1]), h = (uint32_t)(e / dim % in->to[1]);
    const double *x = h < heads ? in->data[0] + at(in->dims[0], i, h, 0)
                                : in->data[1] + at(in->dims[1], i, h - heads, 0);
    y[e] = turn(s, in->position + i, dim, (uint32_t)(e % dim), x);
  }
}

static void add_heads(struct op_test *t, const struct step *s, const struct var *const *x,
                      const uint32_t *ids, uint32_t y) {
  const enum vk_dtype dtype = x[0]->dtype;
  const uint32_t rows = POSITIONS + dim_most(x[0], 0), turns = turning(s, x[0]->offset[2]),
                 width = s->which == PAIRS ? turns / 2 : turns;
  uint32_t table[2], wide[2], to[2];
  for (uint32_t i = 0; i < 2; i++) table[i] = table_of(t, dtype, rows, width, i * OTHER);
  for (uint32_t i = 0; i < s->n; i++) {
    wide[i] = widened(t, x[i], ids[i], 0, 1);
    to[i] = wide_result(t, x[i], 0, 1);
  }
  if (s->which == SINGLE) {
    op_node(t, "et_vk.apply_rotary_emb_hf_single.default",
            IDS(wide[0], table[0], table[1], ids[POSITION], to[0]));
    narrowed(t, to[0], 0, 1, y);
    return;
  }
  const uint32_t results = op_list(t, IDS(to[0], to[1]));
  if (s->which == PAIRS) {
    for (uint32_t i = 0; i < 2; i++)
      table[i] = table_rows(t, x[0], ids[0], 0, table[i], ids[POSITION]);
    op_node(t, "et_vk.apply_rotary_emb.default",
            IDS(wide[0], wide[1], table[0], table[1], results));
  } else {
    op_node(t, "et_vk.apply_rotary_emb_hf.default",
            IDS(wide[0], wide[1], table[0], table[1], ids[POSITION], results));
  }
  struct var both = *x[0];
  fix(&both, 1, x[0]->offset[1] + x[1]->offset[1]);
  const uint32_t joined = wide_result(t, &both, 0, 1);
  op_node(t, "aten.cat.default", IDS(results, op_int(t, 2), joined));
  narrowed(t, joined, 0, 1, y);
}

/* ---- x (B, N, C) by one table (N, C) of cosines and sines in turn -------------------------------
 */

static bool pick_plain(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  (void)seed;
  s->n = 1;
  if (!is_float(x[0]) || !is_some(x[0], 2) || x[0]->offset[2] % 2) return false;
  if (dim_most(x[0], 1) * x[0]->offset[2] > ROOM) return false;
  *y = *x[0];
  turned(y);
  return true;
}

static void interpret_plain(const struct step *s, const struct seen *in, double *y) {
  const uint32_t cols = in->to[2];
  (void)s;
  for (uint64_t e = 0; e < numel_of(in->to); e += 2) {
    const uint64_t column = (in->position + e / cols % in->to[1]) * cols + e % cols;
    const double a = in->data[0][e], b = in->data[0][e + 1];
    y[e] = a * weight(column) - b * weight(column + 1);
    y[e + 1] = a * weight(column + 1) + b * weight(column);
  }
}

static void add_plain(struct op_test *t, const struct step *s, const struct var *const *x,
                      const uint32_t *ids, uint32_t y) {
  (void)s;
  const uint32_t table =
      table_of(t, x[0]->dtype, POSITIONS + dim_most(x[0], 1), x[0]->offset[2], 0);
  op_node(t, "et_vk.apply_rotary_emb_interleaved.default",
          IDS(ids[0], table_rows(t, x[0], ids[0], 1, table, ids[POSITION]), y));
}

const struct random_kind random_rotary[] = {
    {"rotary embedding", pick_heads, interpret_heads, add_heads},
    {"interleaved rotary embedding", pick_plain, interpret_plain, add_plain},
    {0},
};
