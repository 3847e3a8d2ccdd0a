/* Weights: constants by dtype and quantisation, and the largest of them. What a tensor's bytes mean
 * is known from the operator that reads it: a 4-bit weight is a plain uint8 tensor in the file. */
#include "inspect/inspect.h"

#include "base/hash.h"
#include "graph/op.h"

#include <string.h>

/* Which arguments of an operator are quantised weights; -1: none. */
static const struct role {
  const char *op; /* the beginning of its name */
  enum inspect_quant quant;
  int8_t weight, scales, group;
} roles[] = {
    {"et_vk.linear_q4gsw.", QUANT_4BIT, 1, 2, 3},
    {"et_vk.linear_dq8ca_q4gsw.", QUANT_4BIT, 3, 5, 6},
    {"et_vk.linear_qcs4w.", QUANT_4BIT, 1, 2, -1},
    {"et_vk.embedding_q4gsw.", QUANT_4BIT, 0, 1, 2},
    {"et_vk.linear_q8ta_q8csw.", QUANT_8BIT, 3, 5, -1},
    {"et_vk.q8ta_linear", QUANT_8BIT, 3, 5, -1},
    {"et_vk.q8ta_conv2d", QUANT_8BIT, 3, 5, -1},
    {"aten._weight_int8pack_mm.", QUANT_8BIT, 1, 2, -1},
    {"torchao.dequantize_affine.", QUANT_8BIT, 0, 2, 1},
    {"quantized_decomposed::embedding_4bit.", QUANT_4BIT, 0, 1, -1},
    {"quantized_decomposed::embedding_byte.", QUANT_8BIT, 0, 1, -1},
};

static const struct role *role_of(struct text name) {
  for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
    struct text op = text_of(roles[i].op);
    if (name.size >= op.size && memcmp(name.data, op.data, op.size) == 0) return &roles[i];
  }
  return NULL;
}

static bool has_role_args(const struct role *role, struct fb_vec args) {
  return (uint32_t)role->weight < args.n && (uint32_t)role->scales < args.n;
}

/* What the calls tell about a value. */
struct mark {
  enum inspect_quant quant;
  uint32_t group;
  uint32_t alias; /* the value that it was prepacked from, or itself */
  bool written;
  struct text user; /* the first that reads it */
};

/* One constant, from a graph or from the program. */
struct constant {
  const struct mark *mark;
  struct text key; /* of named data; empty: bytes at a place */
  uint64_t place;  /* in the program's file */
  struct inspect_shape shape;
  uint64_t numel;
};

struct census {
  struct inspect *x;
  struct constant_id {
    bool taken;
    struct text key;
    uint64_t place;
  } *seen; /* a hash table */
  uint64_t n_seen;
};

/* ---- counting -------------------------------------------------------------------------------- */

/* Keys are equal by their bytes. Several values may have one constant. */
static bool seen_before(struct census *s, const struct constant *c) {
  uint64_t at =
      c->key.size ? hash_key(c->key.data, c->key.size) : hash_key(&c->place, sizeof c->place);
  for (;; at++) {
    struct constant_id *id = &s->seen[at % s->n_seen];
    if (!id->taken) {
      *id = (struct constant_id){true, c->key, c->place};
      return false;
    }
    if (id->place == c->place && text_equal(id->key, c->key)) return true;
  }
}

/* Classes beyond the table go into its last row; real files have a handful. */
static struct inspect_weight *weight_class(struct inspect *x, const struct constant *c,
                                           bool state) {
  struct inspect_weight want = {.dtype = c->shape.dtype, .state = state};
  if (!state) want.quant = c->mark->quant, want.group = c->mark->group;
  for (uint32_t i = 0; i < x->n_weights; i++) {
    struct inspect_weight *w = &x->weights[i];
    if (strcmp(w->dtype, want.dtype) == 0 && w->quant == want.quant && w->group == want.group &&
        w->state == want.state)
      return w;
  }
  if (x->n_weights == WEIGHTS_MAX) return &x->weights[WEIGHTS_MAX - 1];
  x->weights[x->n_weights] = want;
  return &x->weights[x->n_weights++];
}

static bool is_again(const struct inspect_tensor *t, const struct constant *c) {
  return c->key.size && text_equal(t->name, c->key) && t->dtype == c->shape.dtype &&
         t->rank == c->shape.rank && memcmp(t->dims, c->shape.dims, sizeof t->dims) == 0;
}

static void keep_largest(struct inspect *x, const struct constant *c) {
  uint32_t at = x->n_largest;
  for (; at > 0 && x->largest[at - 1].bytes <= c->shape.bytes; at--)
    if (is_again(&x->largest[at - 1], c)) {
      x->largest[at - 1].count++;
      return;
    }
  while (at < x->n_largest && x->largest[at].bytes == c->shape.bytes) at++; /* as in the file */
  if (at == LARGEST_MAX) return;
  if (x->n_largest < LARGEST_MAX) x->n_largest++;
  memmove(&x->largest[at + 1], &x->largest[at], (x->n_largest - at - 1) * sizeof *x->largest);
  struct inspect_tensor *t = &x->largest[at];
  *t = (struct inspect_tensor){.user = c->mark->user,
                               .dtype = c->shape.dtype,
                               .rank = c->shape.rank,
                               .bytes = c->shape.bytes,
                               .count = 1};
  t->name = c->key;
  memcpy(t->dims, c->shape.dims, sizeof t->dims);
}

/* State has memory of its own for each tensor; other constants are stored and uploaded once. */
static void count_constant(struct census *s, const struct constant *c, bool state) {
  if (!state && seen_before(s, c)) return;
  struct inspect_weight *w = weight_class(s->x, c, state);
  w->tensors++;
  w->bytes += c->shape.bytes;
  w->numel += w->quant == QUANT_4BIT ? 2 * c->numel : c->numel;
  keep_largest(s->x, c);
}

/* ---- graphs ---------------------------------------------------------------------------------- */

/* Elements that share a scale, from a number or from a block's dims; 0: a whole channel. */
static uint32_t group_of(const struct vkgraph *g, uint32_t id, uint32_t weight) {
  struct vk_value group = vkgraph_value(g, id), w = vkgraph_value(g, weight);
  int64_t n = group.kind == VK_INT ? group.i : 0;
  if (group.kind == VK_INT_LIST && group.items.n && w.kind == VK_TENSOR && w.tensor.rank) {
    n = fb_i64_at(group.items, group.items.n - 1);
    if (n == w.tensor.dims[w.tensor.rank - 1]) n = 0;
  }
  return n > 0 && n <= UINT32_MAX ? (uint32_t)n : 0;
}

static void mark_role(struct mark *marks, const struct vkgraph *g, const struct vk_call *call) {
  const struct role *role = role_of(call->name);
  if (!role || !has_role_args(role, call->args)) return;
  struct mark *weight = &marks[marks[fb_u32_at(call->args, (uint32_t)role->weight)].alias];
  struct mark *scales = &marks[marks[fb_u32_at(call->args, (uint32_t)role->scales)].alias];
  weight->quant = role->quant;
  if (scales->quant == QUANT_NONE) scales->quant = QUANT_SCALES;
  if (role->group < 0 || (uint32_t)role->group >= call->args.n) return;
  const uint32_t group = group_of(g, fb_u32_at(call->args, (uint32_t)role->group),
                                  fb_u32_at(call->args, (uint32_t)role->weight));
  if (group) weight->group = group;
}

static void mark_call(struct mark *marks, const struct vkgraph *g, const struct vk_call *call) {
  uint32_t n = call->args.n;
  if (text_is(call->name, "et_vk.prepack.default") && n == 2) {
    marks[fb_u32_at(call->args, 1)].alias = marks[fb_u32_at(call->args, 0)].alias;
    return;
  }
  const struct op *op = op_find(call->name);
  for (uint32_t i = 0; i < n; i++) {
    struct mark *m = &marks[marks[fb_u32_at(call->args, i)].alias];
    if (!m->user.size) m->user = call->name;
    if (op && i < 32 && op->writes >> i & 1) m->written = true;
    if (i + 1 == n) m->written = true; /* the output: of a buffer's change it is the buffer */
  }
  mark_role(marks, g, call);
}

/* The exporter gives only what is written a place in shared memory (mem_obj_id), which tells state
 * from weights where this build does not know the operator. */
static void count_graph_value(struct census *s, const struct vkgraph *g, uint32_t i,
                              const struct mark *mark) {
  if (vkgraph_kind(g, i) != VK_TENSOR) return;
  struct vk_value v = vkgraph_value(g, i);
  const struct vk_tensor *t = &v.tensor;
  if (t->constant_id < 0 || t->nbytes == 0) return;
  struct vk_constant from = vkgraph_constant(g, (uint32_t)t->constant_id);
  struct constant c = {.mark = mark, .key = from.key, .shape = shape_of_vk(&v), .numel = t->numel};
  if (!from.named) c.place = g->constant_area.offset + from.offset;
  count_constant(s, &c, mark->written || t->mem_obj_id >= 0);
}

static sconce_status count_graph(struct census *s, const struct vkgraph *g, sconce_error *err) {
  struct arena_mark start = arena_mark(&s->x->arena);
  struct mark *marks = arena_new(&s->x->arena, struct mark, g->n_values);
  if (!marks) return fail(err, SCONCE_NO_MEMORY, "no memory for %u values", g->n_values);
  for (uint32_t i = 0; i < g->n_values; i++) marks[i].alias = i;
  for (uint32_t i = 0; i < g->n_calls; i++) {
    struct vk_call call = vkgraph_call(g, i);
    mark_call(marks, g, &call);
  }
  for (uint32_t i = 0; i < g->n_values; i++) count_graph_value(s, g, i, &marks[i]);
  arena_rewind(&s->x->arena, start);
  return SCONCE_OK;
}

/* ---- the program's own constants ------------------------------------------------------------- */

static void mark_kernel(struct mark *marks, const struct pte_method *m,
                        const struct pte_instruction *in) {
  struct pte_operator op = pte_operator(m, in->index);
  char name[PTE_OPERATOR_SIZE];
  pte_operator_text(m, in->index, name);
  for (uint32_t i = 0; i < in->args.n; i++) {
    struct mark *mark = &marks[fb_u32_at(in->args, i)];
    if (!mark->user.size) mark->user = op.name;
  }
  const struct role *role = role_of(text_of(name));
  if (!role || !has_role_args(role, in->args)) return;
  marks[fb_u32_at(in->args, (uint32_t)role->weight)].quant = role->quant;
  marks[fb_u32_at(in->args, (uint32_t)role->scales)].quant = QUANT_SCALES;
}

static void count_program_value(struct census *s, const struct pte_method *m, uint32_t i,
                                const struct mark *mark) {
  if (pte_value_kind(m, i) != PTE_TENSOR) return;
  struct pte_tensor t = pte_value(m, i).tensor;
  struct extent bytes = {0};
  struct ptd_entry entry;
  if (t.external) {
    s->x->n_missing += !ptd_find(&s->x->model->data, t.fqn, &entry);
  } else if (!pte_tensor_bytes(m->pte, &t, &bytes) || bytes.size == 0) {
    return;
  }
  struct constant c = {.mark = mark,
                       .key = t.external ? t.fqn : (struct text){0},
                       .place = bytes.offset,
                       .shape = shape_of_data(&t.shape),
                       .numel = t.shape.numel};
  count_constant(s, &c, t.planned);
}

static sconce_status count_program(struct census *s, const struct pte_method *m,
                                   sconce_error *err) {
  struct arena_mark start = arena_mark(&s->x->arena);
  struct mark *marks = arena_new(&s->x->arena, struct mark, m->n_values);
  if (!marks) return fail(err, SCONCE_NO_MEMORY, "no memory for %u values", m->n_values);
  for (uint32_t chain = 0; chain < m->n_chains; chain++)
    for (uint32_t i = 0; i < pte_n_instructions(m, chain); i++) {
      struct pte_instruction in = pte_instruction(m, chain, i);
      if (in.kind == PTE_KERNEL_CALL) mark_kernel(marks, m, &in);
    }
  for (uint32_t i = 0; i < m->n_values; i++) count_program_value(s, m, i, &marks[i]);
  arena_rewind(&s->x->arena, start);
  return SCONCE_OK;
}

/* ---- all ------------------------------------------------------------------------------------- */

static void sort_weights(struct inspect *x) {
  for (uint32_t i = 1; i < x->n_weights; i++) {
    struct inspect_weight w = x->weights[i];
    uint32_t k = i;
    for (; k > 0 && x->weights[k - 1].bytes < w.bytes; k--) x->weights[k] = x->weights[k - 1];
    x->weights[k] = w;
  }
}

sconce_status inspect_weights(struct inspect *x, sconce_error *err) {
  struct census s = {.x = x, .n_seen = 1};
  for (uint32_t i = 0; i < x->n_methods; i++) {
    s.n_seen += 2 * (uint64_t)x->methods[i].m.n_values;
    for (uint32_t d = 0; d < x->methods[i].n_delegates; d++)
      s.n_seen += 2 * (uint64_t)x->methods[i].delegates[d].vk.n_values;
  }
  s.seen = arena_new(&x->arena, struct constant_id, s.n_seen);
  if (!s.seen) return fail(err, SCONCE_NO_MEMORY, "no memory to count weights");
  for (uint32_t i = 0; i < x->n_methods; i++) {
    struct inspect_method *m = &x->methods[i];
    TRY(count_program(&s, &m->m, err));
    for (uint32_t d = 0; d < m->n_delegates; d++) TRY(count_graph(&s, &m->delegates[d].vk, err));
  }
  sort_weights(x);
  return SCONCE_OK;
}
