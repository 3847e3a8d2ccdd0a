/* Following elements back: see lattice.h. */
#include "ops/move/lattice.h"

#include "ops/move/move.h"

#include <string.h>

/* How the elements of a node's result lie in its argument: a step for each dim. */
struct steps {
  uint32_t rank;
  int64_t dim[RANK_MAX], step[RANK_MAX], base;
};

static void strides_of(const struct tensor *x, int64_t strides[RANK_MAX]) {
  int64_t stride = 1;
  for (uint32_t i = x->rank; i-- > 0; stride *= x->dim_live[i]) strides[i] = stride;
}

static bool permuted(struct plan *p, const struct node *n, const struct tensor *x,
                     struct steps *s) {
  uint32_t order[RANK_MAX];
  int64_t strides[RANK_MAX] = {0};
  if (permute_order(p, n, x, order) != SCONCE_OK) return false;
  strides_of(x, strides);
  *s = (struct steps){.rank = x->rank};
  for (uint32_t i = 0; i < x->rank; i++) {
    s->dim[i] = x->dim_live[order[i]];
    s->step[i] = strides[order[i]];
  }
  return true;
}

static bool selected(struct plan *p, const struct node *n, struct steps *s) {
  const struct tensor *x;
  uint32_t dim;
  int64_t index, strides[RANK_MAX] = {0};
  if (select_place(p, n, &x, &dim, &index) != SCONCE_OK) return false;
  strides_of(x, strides);
  *s = (struct steps){.base = (index < 0 ? index + x->dim_live[dim] : index) * strides[dim]};
  for (uint32_t i = 0; i < x->rank; i++) {
    if (i == dim) continue;
    s->dim[s->rank] = x->dim_live[i];
    s->step[s->rank++] = strides[i];
  }
  return true;
}

/* An axis stays inside one dim, with what else lies there: then no step carries into another. */
static bool follow(const struct steps *s, struct lattice *l) {
  int64_t unit[RANK_MAX], reach[RANK_MAX], size = 1;
  struct lattice to = *l;
  for (uint32_t i = s->rank; i-- > 0; size *= s->dim[i]) unit[i] = size;
  if (l->base >= size) return false;
  to.base = s->base;
  for (uint32_t i = 0; i < s->rank; i++) {
    reach[i] = l->base / unit[i] % s->dim[i];
    to.base += reach[i] * s->step[i];
  }
  for (uint32_t a = 0; a < LATTICE_AXES; a++) {
    uint32_t i = 0;
    if (l->count[a] == 1) continue;
    while (i < s->rank && (s->dim[i] == 1 || unit[i] > l->stride[a])) i++;
    if (i == s->rank || l->stride[a] % unit[i]) return false;
    reach[i] += (l->count[a] - 1) * (l->stride[a] / unit[i]);
    to.stride[a] = l->stride[a] / unit[i] * s->step[i];
  }
  for (uint32_t i = 0; i < s->rank; i++)
    if (reach[i] >= s->dim[i]) return false;
  *l = to;
  return true;
}

static bool is_one_of(const struct node *n, const char *const *names) {
  for (; *names; names++)
    if (strcmp(n->op->name, *names) == 0) return true;
  return false;
}

bool lattice_back(struct plan *p, const struct node *n, struct lattice *l) {
  static const char *const permutes[] = {"aten.permute_copy.default", "aten.transpose_copy.int",
                                         "aten.t_copy.default", NULL};
  static const char *const selects[] = {"aten.select_copy.int", NULL};
  const struct tensor *x = n->n_args ? tensor_at(p, n->args[0]) : NULL;
  const struct tensor *y = n->n_args ? tensor_at(p, out_id(n)) : NULL;
  struct steps s;
  if (!x || !y || out_id(n) != l->value || x->dtype != y->dtype || tensor_numel(y) == 0)
    return false;
  if (is_one_of(n, permutes)  ? !permuted(p, n, x, &s) || !follow(&s, l)
      : is_one_of(n, selects) ? !selected(p, n, &s) || !follow(&s, l)
                              : !(n->op->flags & OP_VIEW) || tensor_numel(x) != tensor_numel(y))
    return false;
  l->value = n->args[0];
  return true;
}

bool lattice_same(const struct lattice *a, const struct lattice *b) {
  bool same = a->value == b->value && a->base == b->base;
  for (uint32_t i = 0; same && i < LATTICE_AXES; i++)
    same = a->count[i] == b->count[i] && (a->count[i] == 1 || a->stride[i] == b->stride[i]);
  return same;
}
