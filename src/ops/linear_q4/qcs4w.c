/* Linear with 4-bit weights and a scale for each row: one group in each, and nibbles the other way
 * round than linear_q4gsw has them. The weight is turned once, and the kernels are the same. */
#include "ops/linear_q4/linear_q4.h"

/* [x, w, scales, y] */
enum { X, W, SCALES };

static uint64_t size(const struct unpacked *from) {
  uint64_t n = vk_dtype_size(from->dtype);
  for (uint32_t i = 0; i < from->rank; i++) n *= from->dims[i];
  return n;
}

/* Even k is in the high nibble of the file's bytes. */
static void fill(const struct unpacked *from, uint64_t first, uint64_t end, uint8_t *out) {
  for (uint64_t i = first; i < end; i++) {
    const unsigned byte = from->bytes[i];
    out[i - first] = (uint8_t)(byte << 4 | byte >> 4);
  }
}

const struct packing q4_turned = {"nibbles turned", size, fill};

static sconce_status check(struct plan *p, const struct node *n, struct q4_linear *out) {
  const struct tensor *in[3], *y = out_tensor(p, n);
  TRY(arg_tensors(p, n, 0, 3, in));
  const struct tensor *x = in[X], *w = in[W], *scales = in[SCALES];
  char a[120], b[120];
  TRY(float_check(p, x, "x"));
  TRY(float_check(p, scales, "the scales"));
  const uint32_t k = x->rank ? x->dim_live[x->rank - 1] : 0;
  if (x->rank == 0 || w->rank != 2 || w->dtype != VK_UINT8 || w->dim_max[1] != div_up(k, 2) ||
      y->dtype != x->dtype)
    return fail(p->err, SCONCE_BAD_GRAPH, "x is %s, the weight %s", tensor_text(x, a),
                tensor_text(w, b));
  if (tensor_numel(scales) < w->dim_max[0])
    return fail(p->err, SCONCE_BAD_GRAPH, "scales %s for a weight %s", tensor_text(scales, a),
                tensor_text(w, b));
  *out = (struct q4_linear){.x = arg_id(n, X),
                            .w = n->extra[0],
                            .scales = arg_id(n, SCALES),
                            .y = out_id(n),
                            .m = rows_of(x),
                            .k = k,
                            .n = w->dim_max[0],
                            .group = k ? k : 1,
                            .groups = 1,
                            .parts = n->extra[2],
                            .halves = NO_VALUE};
  return SCONCE_OK;
}

static sconce_status prepare(struct plan *p, struct node *n) {
  TRY(graph_packed(p->g, arg_id(n, W), &q4_turned, &n->extra[0], p->err));
  return q4_scratch(p, n, X, W, NO_VALUE);
}

static sconce_status shape(struct plan *p, const struct node *n) {
  struct q4_linear l = {0};
  TRY(check(p, n, &l));
  return rows_shape(p, out_id(n), tensor_at(p, l.x), l.n);
}

static sconce_status emit(struct plan *p, const struct node *n) {
  struct q4_linear l;
  TRY(check(p, n, &l));
  return q4_emit(p, n, &l);
}

const struct op ops_linear_qcs4w[] = {
    {"et_vk.linear_qcs4w.default", shape, emit, prepare, .n_args = 4, .flags = OP_ROWS,
     .unbound = 1 << W, .tables = TABLES(Q4_TABLES)},
    {0},
};
