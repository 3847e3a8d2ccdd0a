/* Updates of a tensor: see scatter.h. Of several for one element the last counts, or all are added
 * up. */
#include "ops/scatter/scatter.h"

#include "ops/halves/halves.h"

#include "scatter_add.wgsl.h"
#include "scatter_begin.wgsl.h"
#include "scatter_mark.wgsl.h"
#include "scatter_put.wgsl.h"
#include "scatter_take.wgsl.h"

const struct kernel scatter_zeros[] = {{"zeros", &scatter_begin_wgsl, "IN=ZEROS"}, {0}};
const struct kernel scatter_marks[] = {{"any", &scatter_mark_wgsl, ""}, {0}};

static bool is_value(const void *kind) { return *(const enum scatter_kind *)kind == SCATTER_VALUE; }
#define BYTES (OF_BOOL | OF_U8 | OF_I8)
const struct kernel scatter_takes[] = {
    {"value_words", &scatter_take_wgsl, "VALUE=true", OF_F32 | OF_I32, .fits = is_value},
    {"value_halves", &scatter_take_wgsl, "VALUE=true BITS=16u", OF_F16, .fits = is_value},
    {"value_bytes", &scatter_take_wgsl, "VALUE=true BITS=8u", BYTES, .fits = is_value},
    {"source_words", &scatter_take_wgsl, "", OF_F32 | OF_I32},
    {"source_halves", &scatter_take_wgsl, "BITS=16u", OF_F16},
    {"source_bytes", &scatter_take_wgsl, "BITS=8u", BYTES},
    {0},
};

/* In place. */
static bool is_alone(const void *alone) { return *(const bool *)alone; }
const struct kernel scatter_puts[] = {
    {"alone", &scatter_put_wgsl, "ALONE=true", OF_F32 | OF_I32, .fits = is_alone},
    {"last", &scatter_put_wgsl, "", OF_F32 | OF_I32},
    {0},
};

const struct kernel scatter_begins[] = {
    {"f16", &scatter_begin_wgsl, "IN=HALVES", OF_F16},
    {"words", &scatter_begin_wgsl, "IN=WORDS", OF_F32 | OF_I32},
    {0},
};
const struct kernel scatter_adds[] = {
    {"f32", &scatter_add_wgsl, "use=elem_f32", OF_F32},
    {"f16", &scatter_add_wgsl, "use=elem_f16", OF_F16},
    {"i32", &scatter_add_wgsl, "FLOATS=false use=elem_i32", OF_I32},
    {0},
};

/* Where each element's last update is, or sums of floats of 2 bytes. */
sconce_status scatter_scratch(struct plan *p, struct node *n, enum scatter_kind kind, uint32_t k) {
  const struct tensor *y = out_tensor(p, n);
  if (kind == SCATTER_ADD && y->dtype != VK_FLOAT16) return SCONCE_OK;
  return graph_scratch(p->g, VK_INT32, tensor_numel_max(y), &n->extra[k], p->err);
}

static sconce_status emit_begin(struct plan *p, const struct kernel *row, uint32_t x, uint32_t to,
                                uint32_t numel) {
  struct scatter_begin_params u = {.n = numel};
  return dispatch(p, row, &u, div_up(numel, 64), OPERANDS({x}, {to}));
}

static sconce_status emit_replace(struct plan *p, const struct node *n, const struct scatter *s) {
  const enum vk_dtype dtype = out_tensor(p, n)->dtype;
  const struct kernel *zero, *mark, *take;
  const uint32_t source = s->kind == SCATTER_VALUE ? s->x : s->source;
  TRY(choose(p, n, scatter_zeros, dtype, NULL, &zero));
  TRY(choose(p, n, scatter_marks, dtype, NULL, &mark));
  TRY(choose(p, n, scatter_takes, dtype, &s->kind, &take));
  TRY(emit_begin(p, zero, s->x, s->scratch, s->u.numel));
  TRY(dispatch(p, mark, &s->u, div_up(s->u.n, 64), OPERANDS({s->index}, {s->scratch})));
  return dispatch(p, take, &s->u, div_up(div_up(s->u.numel, 4 / vk_dtype_size(dtype)), 64),
                  OPERANDS({s->x}, {source}, {s->scratch}, {out_id(n)}));
}

/* Is there one index, so that no element has two updates? */
static bool has_one_index(const struct scatter_params *u) {
  for (uint32_t i = 0; i < u->rank; i++)
    if (u->step[i] && u->dims[i] > 1) return false;
  return true;
}

static sconce_status emit_put(struct plan *p, const struct node *n, const struct scatter *s) {
  const enum vk_dtype dtype = out_tensor(p, n)->dtype;
  const bool alone = has_one_index(&s->u);
  const struct kernel *zero, *mark, *put;
  TRY(choose(p, n, scatter_zeros, dtype, NULL, &zero));
  TRY(choose(p, n, scatter_marks, dtype, NULL, &mark));
  TRY(choose(p, n, scatter_puts, dtype, &alone, &put));
  if (!alone) {
    TRY(emit_begin(p, zero, s->x, s->scratch, s->u.numel));
    TRY(dispatch(p, mark, &s->u, div_up(s->u.n, 64), OPERANDS({s->index}, {s->scratch})));
  }
  return dispatch(p, put, &s->u, div_up(s->u.n, 64),
                  OPERANDS({s->index}, {s->source}, {s->scratch}, {out_id(n)}));
}

static sconce_status emit_add(struct plan *p, const struct node *n, const struct scatter *s) {
  const enum vk_dtype dtype = out_tensor(p, n)->dtype;
  const struct kernel *begin, *add;
  TRY(choose(p, n, scatter_begins, dtype, NULL, &begin));
  TRY(choose(p, n, scatter_adds, dtype, NULL, &add));
  const bool halves = dtype == VK_FLOAT16;
  const uint32_t sums = halves ? s->scratch : out_id(n);
  if (sums != s->x) TRY(emit_begin(p, begin, s->x, sums, s->u.numel));
  TRY(dispatch(p, add, &s->u, div_up(s->u.n, 64), OPERANDS({s->index}, {s->source}, {sums})));
  return halves ? halves_emit(p, n, sums, out_id(n)) : SCONCE_OK;
}

sconce_status scatter_emit(struct plan *p, const struct node *n, const struct scatter *s) {
  const struct tensor *x = tensor_at(p, s->x), *y = out_tensor(p, n);
  char one[120], two[120];
  if (!x || y->dtype != x->dtype)
    return fail(p->err, SCONCE_BAD_GRAPH, "%s becomes %s", x ? tensor_text(x, one) : "nothing",
                tensor_text(y, two));
  if (s->kind == SCATTER_ADD) return emit_add(p, n, s);
  return s->x == out_id(n) ? emit_put(p, n, s) : emit_replace(p, n, s);
}
