/* What the kinds of steps share: small weights, lines, tensors of other ranks, rows of tables. */
#include "random.h"

uint32_t below(uint64_t *seed, uint32_t n) {
  const double x = ((double)test_random_float(seed) + 1) / 2;
  const uint32_t i = (uint32_t)(x * n);
  return i < n ? i : n - 1;
}

double weight(uint64_t i) { return ((double)(i * 7 % 9) - 4) / 4; }

uint32_t weights(struct op_test *t, enum vk_dtype dtype, const uint32_t *dims, uint32_t rank) {
  double values[ROOM];
  uint64_t n = 1;
  for (uint32_t i = 0; i < rank; i++) n *= dims[i];
  for (uint64_t i = 0; i < n && i < ROOM; i++) values[i] = weight(i);
  return op_constant(t, dtype, dims, rank, values);
}

void add_up(struct var *y, double count, double most, double grain, double error) {
  const double before = y->most;
  y->error = count * (y->error * most + error * before + y->error * error);
  y->most = fmax(count, 1) * before * most;
  y->grain *= grain;
}

bool one_dim(const struct var *x, uint64_t *seed, struct step *s, struct var *y) {
  s->which = below(seed, 3);
  s->n = 1;
  *y = *x;
  fix(y, s->which, 1);
  return is_some(x, s->which);
}

uint64_t line_of(const uint32_t *dims, uint32_t d, uint64_t line, uint64_t *step) {
  *step = 1;
  for (uint32_t i = d + 1; i < 3; i++) *step *= dims[i];
  return line / *step * *step * dims[d] + line % *step;
}

uint64_t lines(const uint32_t *dims, uint32_t d) {
  uint64_t n = 1;
  for (uint32_t i = 0; i < 3; i++) n *= i == d ? 1 : dims[i];
  return n;
}

uint64_t place(const uint32_t *x, const uint32_t *y, uint64_t e) {
  uint64_t found = 0, step = 1;
  for (int i = 3; i-- > 0; e /= y[i]) {
    found += x[i] == 1 ? 0 : e % y[i] * step;
    step *= x[i];
  }
  return found;
}

static bool is_one(const struct var *v, int i) { return v->scale[i] == 0 && v->offset[i] == 1; }

bool broadcast(const struct var *a, const struct var *b, struct var *y) {
  for (int i = 0; i < 3; i++) {
    if (!same_dim(a, b, (uint32_t)i) && !is_one(a, i) && !is_one(b, i)) return false;
    y->scale[i] = is_one(a, i) ? b->scale[i] : a->scale[i];
    y->offset[i] = is_one(a, i) ? b->offset[i] : a->offset[i];
  }
  return true;
}

/* ---- tensors ------------------------------------------------------------------------------------
 */

uint32_t between(struct op_test *t, enum vk_dtype dtype, const struct var *x) {
  uint32_t dims[4];
  dims_at(x, LARGEST, dims);
  return op_tensor(t, dtype, dims, 3);
}

static uint32_t insert_one(uint32_t *dims, uint32_t rank, uint32_t place) {
  memmove(dims + place + 1, dims + place, (rank - place) * sizeof *dims);
  dims[place] = 1;
  return rank + 1;
}

uint32_t widened(struct op_test *t, const struct var *x, uint32_t id, uint32_t place,
                 uint32_t times) {
  uint32_t dims[8], rank = 3;
  dims_at(x, LARGEST, dims);
  for (; times > 0; times--) {
    rank = insert_one(dims, rank, place);
    const uint32_t wider = op_tensor(t, x->dtype, dims, rank);
    op_node(t, "aten.unsqueeze_copy.default", IDS(id, op_int(t, place), wider));
    id = wider;
  }
  return id;
}

uint32_t wide_result(struct op_test *t, const struct var *y, uint32_t place, uint32_t times) {
  uint32_t dims[8], rank = 3;
  dims_at(y, LARGEST, dims);
  for (; times > 0; times--) rank = insert_one(dims, rank, place);
  return op_tensor(t, y->dtype, dims, rank);
}

void narrowed(struct op_test *t, uint32_t from, uint32_t place, uint32_t times, uint32_t y) {
  int64_t list[2] = {place, place + 1};
  op_node(t, "aten.squeeze_copy.dims", IDS(from, op_ints(t, list, times), y));
}

/* A live integer that a node makes. */
static uint32_t live_integer(struct op_test *t) {
  sconce_error err = {0};
  const uint32_t id = graph_add_value(&t->graph, VK_SYMINT, &err);
  if (id == NO_VALUE && t->built.status == SCONCE_OK) t->built = err;
  return id;
}

uint32_t table_rows(struct op_test *t, const struct var *x, uint32_t id, uint32_t dim,
                    uint32_t table, uint32_t start) {
  const uint32_t size = live_integer(t), end = live_integer(t);
  const struct tensor *whole = &t->graph.values[table].tensor;
  const enum vk_dtype dtype = whole->dtype;
  uint32_t dims[2] = {dim_most(x, dim), 1};
  if (whole->rank == 2) dims[1] = whole->dim_max[1];
  const uint32_t rows = op_tensor(t, dtype, dims, whole->rank);
  op_node(t, "sym_size.int", IDS(id, op_int(t, dim), size));
  op_node(t, "add", IDS(size, start, end));
  op_node(t, "aten.slice_copy.Tensor", IDS(table, op_int(t, 0), start, end, op_int(t, 1), rows));
  return rows;
}
