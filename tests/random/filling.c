/* Tensors of one number, of any dtype; progressions whose length and start are live; planes of
 * places; windows. */
#include "random.h"

enum { LIKE, ZEROS_LIKE, SIZES, FORMS };

static bool pick_same(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  static const enum vk_dtype dtypes[] = {VK_FLOAT32, VK_FLOAT16, VK_INT32,
                                         VK_BOOL,    VK_INT8,    VK_UINT8};
  s->which = below(seed, FORMS);
  s->move.n = 0;
  s->n = 1;
  *y = *x[0];
  y->dtype = dtypes[below(seed, 6)];
  y->most = y->dtype == VK_BOOL ? 1 : is_byte(y) ? 255 : 3;
  y->grain = 1;
  y->error = 0;
  return s->which != SIZES || (is_fixed(x[0], 1) && is_fixed(x[0], 2));
}

static void interpret_same(const struct step *s, const struct seen *in, double *y) {
  for (uint64_t e = 0; e < numel_of(in->to); e++)
    y[e] = s->which == ZEROS_LIKE ? 0 : in->dtype == VK_BOOL ? 1 : 3;
}

/* The size of dim 0, as a live integer. */
static uint32_t live_size(struct op_test *t, uint32_t id) {
  sconce_error err = {0};
  const uint32_t size = graph_add_value(&t->graph, VK_SYMINT, &err);
  op_node(t, "sym_size.int", IDS(id, op_int(t, 0), size));
  return size;
}

static void add_same(struct op_test *t, const struct step *s, const struct var *const *x,
                     const uint32_t *ids, uint32_t y) {
  const uint32_t none = op_null(t);
  if (s->which == LIKE) {
    op_node(t, "aten.full_like.default",
            IDS(ids[0], op_int(t, 3), none, none, none, none, none, y));
  } else if (s->which == ZEROS_LIKE) {
    op_node(t, "aten.zeros_like.default", IDS(ids[0], none, none, none, none, none, y));
  } else {
    const uint32_t size = op_list(
        t, IDS(live_size(t, ids[0]), op_int(t, x[0]->offset[1]), op_int(t, x[0]->offset[2])));
    op_node(t, "aten.full.default", IDS(size, op_int(t, 3), none, none, none, none, y));
  }
}

/* position, position + 1, … as many as x has along dim 0. */
static bool pick_count(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  s->n = 1;
  *y = *x[0];
  y->dtype = below(seed, 2) ? VK_INT32 : VK_FLOAT32;
  fix(y, 1, 1);
  fix(y, 2, 1);
  y->most = POSITIONS + dim_most(x[0], 0);
  y->grain = 1;
  y->error = 0;
  return true;
}

static void interpret_count(const struct step *s, const struct seen *in, double *y) {
  (void)s;
  for (uint32_t i = 0; i < in->to[0]; i++) y[i] = in->position + i;
}

static void add_count(struct op_test *t, const struct step *s, const struct var *const *x,
                      const uint32_t *ids, uint32_t y) {
  (void)s;
  if (y == NO_VALUE) return;
  sconce_error err = {0};
  const enum vk_dtype dtype = t->graph.values[y].tensor.dtype;
  const uint32_t none = op_null(t), size = live_size(t, ids[0]),
                 end = graph_add_value(&t->graph, VK_SYMINT, &err),
                 line = op_tensor(t, dtype, DIMS(dim_most(x[0], 0)));
  op_node(t, "add", IDS(size, ids[POSITION], end));
  op_node(t, "aten.arange.start_step",
          IDS(ids[POSITION], end, op_int(t, 1), none, none, none, none, line));
  op_node(t, "aten.view_copy.default", IDS(line, op_ints(t, INTS(-1, 1, 1)), y));
}

/* Places of the planes (b, c), 8 apart from the half of one on: (b c, 2), as (b c, 2, 1). */
static bool pick_priors(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  (void)seed;
  s->n = 1;
  *y = *x[0];
  if (!is_float(x[0]) || !is_fixed(x[0], 2)) return false;
  if (!x[0]->offset[0]) return false;
  y->scale[0] = x[0]->scale[1] * x[0]->offset[2];
  y->offset[0] = x[0]->offset[1] * x[0]->offset[2];
  fix(y, 1, 2);
  fix(y, 2, 1);
  y->most = 8.0 * (1 + fmax(dim_most(x[0], 1), dim_most(x[0], 2)));
  y->grain = 4;
  y->error = 0;
  return true;
}

static void interpret_priors(const struct step *s, const struct seen *in, double *y) {
  const uint32_t cols = in->dims[0][2];
  (void)s;
  for (uint32_t i = 0; i < in->to[0]; i++) {
    y[2 * i] = (i % cols + 0.5) * 8;
    y[2 * i + 1] = (i / cols + 0.5) * 8;
  }
}

static void add_priors(struct op_test *t, const struct step *s, const struct var *const *x,
                       const uint32_t *ids, uint32_t y) {
  (void)s;
  const uint32_t wide = widened(t, x[0], ids[0], 0, 1);
  const uint32_t pairs = op_tensor(t, x[0]->dtype, DIMS(dim_most(x[0], 1) * x[0]->offset[2], 2));
  op_node(t, "et_vk.grid_priors.default", IDS(wide, op_int(t, 8), op_double(t, 0.5), pairs));
  op_node(t, "aten.view_copy.default", IDS(pairs, op_ints(t, INTS(-1, 2, 1)), y));
}

const struct random_kind random_filling[] = {
    {"full", pick_same, interpret_same, add_same},
    {"arange", pick_count, interpret_count, add_count},
    {"grid_priors", pick_priors, interpret_priors, add_priors},
    {0},
};
