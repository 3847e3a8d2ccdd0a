/* Kernels of convolutions, which one takes a problem, and its dispatches. */
#include "ops/conv/emit.h"
#include "ops/conv/pack.h"
#include "ops/linear/rows.h"

#include "conv_depthwise.wgsl.h"
#include "conv_direct.wgsl.h"
#include "conv_gemm.wgsl.h"
#include "conv_plain.wgsl.h"

#include <string.h>

/* ---- kernels --------------------------------------------------------------------------------- */

/* DIRECT: no tile, a thread for four channels. ANY: where a name asks for a row. */
enum { ANY, DIRECT };

struct problem {
  const struct conv *c;
  bool packed;   /* the weight is laid out for products */
  bool mixed;    /* x and w in different dtypes */
  uint32_t tile; /* that suits the size: ANY, DIRECT, or channels and pixels of conv_gemm */
  uint32_t rows; /* of a thread of conv_depthwise; ANY or 1 or 4 */
};

/* Is a pair of pixels a word of y? Not of a transposed one, whose phases are interleaved. */
static bool even_rows(const struct problem *q) { return q->c->axis[2].out % 2 == 0; }
static bool even_planes(const struct problem *q) {
  return !q->c->transposed && conv_pixels_out(q->c) % 2 == 0;
}
/* Each channel of x alone; a thread reads x once for each channel of y, so those are few. */
static bool is_depthwise(const struct conv *c) {
  return c->ic == 1 && c->oc <= 4 && !c->transposed;
}

/* 3 by 3 taps of planes. */
static bool is_nine(const struct conv *c) {
  return c->axis[0].in == 1 && c->axis[0].kernel == 1 && c->axis[0].out == 1 &&
         c->axis[0].padding == 0 && c->axis[1].kernel == 3 && c->axis[2].kernel == 3;
}

#define FITS(name, even, condition)                                                                \
  static bool name(const void *problem) {                                                          \
    const struct problem *q = problem;                                                             \
    return condition;                                                                              \
  }                                                                                                \
  static bool name##_pairs(const void *problem) { return name(problem) && even(problem); }
#define TILE(size) q->packed && (q->tile == ANY || q->tile == (size))
#define ROWS(count) is_depthwise(q->c) && !q->mixed && (q->rows == ANY || q->rows == (count))
FITS(depthwise4, even_rows, ROWS(4))
FITS(depthwise1, even_rows, ROWS(1))
FITS(nine4, even_rows, ROWS(4) && is_nine(q->c))
FITS(nine1, even_rows, ROWS(1) && is_nine(q->c))
FITS(gemm128, even_planes, TILE(128))
FITS(gemm64, even_planes, TILE(64))
FITS(gemm32, even_planes, TILE(32))
FITS(gemm16, even_planes, TILE(16))
FITS(direct, even_planes, TILE(DIRECT))

/* A tile is channels and pixels of conv_gemm, or rows of conv_depthwise, and pixels of a store. */
#define GEMM(size, suffix, set, dtype, fits, store)                                                \
  {"gemm" #size "_" suffix,                                                                        \
   &conv_gemm_wgsl,                                                                                \
   set " TILE=" #size "u",                                                                         \
   dtype,                                                                                          \
   0,                                                                                              \
   gemm##size##fits,                                                                               \
   {size, size, store},                                                                            \
   256,                                                                                            \
   16384}
#define DEPTHWISE(rows, suffix, set, dtype, fits, store)                                           \
  {"depthwise" #rows "_" suffix,                                                                   \
   &conv_depthwise_wgsl,                                                                           \
   set " ROWS=" #rows "u",                                                                         \
   dtype,                                                                                          \
   0,                                                                                              \
   depthwise##rows##fits,                                                                          \
   {rows, 0, store},                                                                               \
   64}
#define NINE(rows, suffix, set, dtype, fits, store)                                                \
  {"nine" #rows "_" suffix,                                                                        \
   &conv_depthwise_wgsl,                                                                           \
   set " NINE=true ROWS=" #rows "u",                                                               \
   dtype,                                                                                          \
   0,                                                                                              \
   nine##rows##fits,                                                                               \
   {rows, 0, store},                                                                               \
   64}
#define ALL(suffix, set, dtype, fits, store)                                                       \
  NINE(4, suffix, set, dtype, fits, store), NINE(1, suffix, set, dtype, fits, store),              \
      DEPTHWISE(4, suffix, set, dtype, fits, store),                                               \
      DEPTHWISE(1, suffix, set, dtype, fits, store),                                               \
      GEMM(128, suffix, set " use=conv_sum8", dtype, fits, store),                                 \
      GEMM(64, suffix, set " use=conv_sum4", dtype, fits, store),                                  \
      GEMM(32, suffix, set " use=conv_sum4 TEAMS=4u", dtype, fits, store),                         \
      GEMM(16, suffix, set " use=conv_sum4 TEAMS=16u", dtype, fits, store),                        \
      {"direct_" suffix, &conv_direct_wgsl, set, dtype, 0, direct##fits, {0, 0, store}, 64}
const struct kernel conv_kernels[] = {
    ALL("f32", "use=quad_f32 use=elem_f32 use=conv_out_f32", OF_F32, , 1),
    ALL("pairs", "use=quad_f16 use=elem_f16 use=conv_out_pairs", OF_F16, _pairs, 2),
    ALL("halves", "use=quad_f16 use=elem_f16 use=conv_out_halves", OF_F16, , 1),
    {"plain_f32", &conv_plain_wgsl, "use=elem_f32", OF_F32, .threads = 64, .reference = true},
    {"plain_f16", &conv_plain_wgsl, "use=elem_f16", OF_F16, .threads = 64, .reference = true},
    {0},
};

/* Which row suits the size. Large tiles read less, but there must be enough of them for all of a
 * large GPU's processors, and channels for half a tile. */
static void suit(struct problem *q) {
  enum { ENOUGH = 128, FEW_CHANNELS = 8, MANY_THREADS = 32768 };
  const struct conv *c = q->c;
  const uint64_t pixels = c->batch * conv_pixels_out(c), channels = (uint64_t)c->groups * c->oc;
  q->rows = channels * pixels / 4 >= MANY_THREADS ? 4 : 1;
  q->tile = DIRECT;
  if (c->oc < FEW_CHANNELS) return;
  for (q->tile = 128; q->tile > 16; q->tile /= 2) {
    const uint64_t tiles = div_up(pixels, q->tile) * div_up(c->oc, q->tile) * c->groups;
    if (c->oc > q->tile / 2 && tiles >= (q->tile == 128 ? 2 * ENOUGH : ENOUGH)) return;
  }
}

/* ---- parts ----------------------------------------------------------------------------------- */

/* A part of a problem whose x or y is larger than a binding may be: some images, or of one image
 * some units, which are groups, or channels of y where there is one group. */
struct part {
  uint32_t image, images, unit, units;
};

struct call {
  struct conv c;
  uint32_t x, w, bias, y, rest;
  uint32_t bias_kind; /* 0: none, else 1 + (its elements have 2 bytes) */
  bool packed;        /* see pack.h */
  bool half, w_half;
  const struct conv_end *end;
  uint64_t x_plane, y_plane; /* elements of a channel */
};

static uint32_t units_of(const struct conv *c) { return c->groups > 1 ? c->groups : c->oc; }
static uint64_t channels_of(const struct conv *c, uint64_t units) {
  return c->groups > 1 ? units * c->oc : units;
}

/* The least count from `from` on, doubled, of which both sizes are aligned. */
static uint64_t aligned(const struct plan *p, uint64_t from, uint64_t a, uint64_t b) {
  const uint64_t align = p->g->caps.storage_alignment;
  while (a * from % align || b * from % align) from *= 2;
  return from;
}

/* Images and units of one dispatch. Where not even the least fits, `dispatch` says what does not.
 */
static void split(const struct plan *p, const struct call *k, struct part *out) {
  const struct conv *c = &k->c;
  const uint64_t most = p->g->caps.max_storage_binding, size = k->half ? 2 : 4;
  const uint64_t x_image = c->groups * c->ic * k->x_plane * size;
  const uint64_t y_image = c->groups * c->oc * k->y_plane * size;
  const uint64_t image = x_image > y_image ? x_image : y_image;
  *out = (struct part){.images = c->batch, .units = units_of(c)};
  if (image == 0 || image <= most / c->batch) return;
  uint64_t step = aligned(p, 1, x_image, y_image), fit = most / image / step * step;
  if (fit) {
    out->images = (uint32_t)fit;
    return;
  }
  if (c->batch > 1 && step > 1) return;
  const uint64_t y_unit = channels_of(c, 1) * k->y_plane * size;
  const uint64_t x_unit = c->groups > 1 ? c->ic * k->x_plane * size : 0;
  const uint64_t unit = x_unit > y_unit ? x_unit : y_unit;
  step = aligned(p, c->groups > 1 ? 1 : 4, x_unit, y_unit); /* whole quads of w */
  fit = most / unit / step * step;
  if (fit == 0) return;
  out->images = 1;
  if (fit < out->units) out->units = (uint32_t)fit;
}

static struct operand piece(struct plan *p, uint32_t id, uint64_t offset, uint64_t size) {
  const struct tensor *t = tensor_at(p, id);
  if (offset == 0 && t && tensor_nbytes_max(t) <= p->g->caps.max_storage_binding)
    return (struct operand){id};
  return (struct operand){id, offset, size};
}

static struct operand x_of(struct plan *p, const struct call *k, const struct part *a) {
  const struct conv *c = &k->c;
  const uint64_t size = k->half ? 2 : 4, group = c->ic * k->x_plane * size;
  const bool by_group = c->groups > 1 && a->units < c->groups;
  return piece(p, k->x, (uint64_t)a->image * c->groups * group + (by_group ? a->unit * group : 0),
               (by_group ? a->units : (uint64_t)a->images * c->groups) * group);
}

static struct operand y_of(struct plan *p, const struct call *k, uint32_t id,
                           const struct part *a) {
  const struct conv *c = &k->c;
  const uint64_t size = k->half ? 2 : 4, unit = channels_of(c, 1) * k->y_plane * size;
  return piece(p, id, ((uint64_t)a->image * units_of(c) + a->unit) * unit,
               (uint64_t)a->images * a->units * unit);
}

/* ---- dispatches ------------------------------------------------------------------------------ */

static sconce_status dispatch_part(struct plan *p, const struct kernel *row, const struct call *k,
                                   const struct part *a, const void *params, uint64_t workgroups) {
  const uint32_t none = k->w; /* whatever may be bound where nothing is read */
  return dispatch(
      p, row, params, workgroups,
      OPERANDS(x_of(p, k, a), {k->w}, {k->bias_kind ? k->bias : none, 0, k->bias_kind ? 0 : 4},
               k->rest == NO_VALUE ? (struct operand){none, 0, 4} : y_of(p, k, k->rest, a),
               y_of(p, k, k->y, a)));
}

/* Elements of the weight from group to group, and so on. */
struct steps {
  uint32_t group, oc, ic, tap;
};
static struct steps steps_of(const struct call *k) {
  const struct conv *c = &k->c;
  const uint32_t taps = (uint32_t)conv_taps(c);
  const uint32_t line = (uint32_t)div_up(c->transposed ? c->oc : c->groups * c->oc, 4) * 4;
  if (!k->packed && c->transposed)
    return (struct steps){c->ic * c->oc * taps, taps, c->oc * taps, 1};
  if (!k->packed) return (struct steps){c->oc * c->ic * taps, c->ic * taps, taps, 1};
  if (c->transposed) return (struct steps){c->ic * line, 1, line, c->groups * c->ic * line};
  return (struct steps){c->oc, 1, line, c->ic * line};
}

/* One axis as conv_plain reads it. */
static void set_axis(const struct conv *c, uint32_t i, struct conv_plain_params *u) {
  const struct conv_axis *a = &c->axis[i];
  u->in[i] = (int32_t)a->in;
  u->out[i] = (int32_t)a->out;
  u->kernel[i] = (int32_t)a->kernel;
  u->mul[i] = c->transposed ? 1 : (int32_t)a->stride;
  u->first[i] = c->transposed ? (int32_t)a->padding : -(int32_t)a->padding;
  u->tap[i] = c->transposed ? -(int32_t)a->dilation : (int32_t)a->dilation;
  u->div[i] = c->transposed ? (int32_t)a->stride : 1;
}

static sconce_status emit_plain(struct plan *p, const struct kernel *row, const struct call *k,
                                const struct part *a) {
  const struct conv *c = &k->c;
  const struct steps w = steps_of(k);
  struct conv_plain_params u = {.channel = (uint32_t)channels_of(c, a->unit),
                                .channels = (uint32_t)channels_of(c, a->units),
                                .oc = c->oc,
                                .ic = c->ic,
                                .x_image = (uint32_t)(c->groups * c->ic * k->x_plane),
                                .w_group = w.group,
                                .w_oc = w.oc,
                                .w_ic = w.ic,
                                .w_tap = w.tap,
                                .w_half = k->w_half,
                                .bias = k->bias_kind,
                                .rest = k->rest != NO_VALUE,
                                .end = k->end->bits,
                                .low = k->end->low,
                                .high = k->end->high};
  for (uint32_t i = 0; i < CONV_AXES; i++) set_axis(c, i, &u);
  u.numel = (uint32_t)(a->images * u.channels * k->y_plane);
  return dispatch_part(p, row, k, a, &u, div_up(u.numel, row->threads * (k->half ? 2 : 1)));
}

static uint64_t workgroups_of(const struct kernel *row, const struct conv_params *u) {
  const uint64_t store = row->tile[2];
  if (row->wgsl == &conv_depthwise_wgsl) {
    const uint64_t rows = (uint64_t)u->grid_yx / u->grid_x, slices = u->pixels / u->grid_yx;
    return div_up(u->grid_x / store * div_up(rows, row->tile[0]) * slices * u->groups * u->oc,
                  row->threads);
  }
  if (row->wgsl == &conv_direct_wgsl)
    return div_up(div_up(u->pixels, store) * div_up(u->oc, 4) * u->groups, row->threads);
  return div_up(u->pixels, row->tile[1]) * div_up(u->oc, row->tile[0]) * u->groups;
}

/* What all phases of a part have in common. */
static struct conv_params common(const struct call *k, const struct part *a) {
  const struct conv *c = &k->c;
  const bool grouped = c->groups > 1;
  const struct steps w = steps_of(k);
  return (struct conv_params){.groups = grouped ? a->units : 1,
                              .ic = c->ic,
                              .oc = grouped ? c->oc : a->units,
                              .in_z = c->axis[0].in,
                              .in_y = c->axis[1].in,
                              .in_x = c->axis[2].in,
                              .in_plane = (uint32_t)k->x_plane,
                              .in_image = (uint32_t)(c->groups * c->ic * k->x_plane),
                              .out_plane = (uint32_t)k->y_plane,
                              .out_image = (uint32_t)(c->groups * c->oc * k->y_plane),
                              .w_group = w.group / 4,
                              .w_row = w.ic / 4,
                              .channel = (uint32_t)channels_of(c, a->unit),
                              .bias = k->bias_kind,
                              .rest = k->rest != NO_VALUE,
                              .end = k->end->bits,
                              .low = k->end->low,
                              .high = k->end->high};
}

/* What a phase computes, and where in y and w. */
static void set_phase(const struct call *k, const struct part *a,
                      const struct conv_phase f[CONV_AXES], struct conv_params *u) {
  const struct conv *c = &k->c;
  u->grid_x = f[2].pixels;
  u->grid_yx = f[1].pixels * f[2].pixels;
  u->grid = f[0].pixels * u->grid_yx;
  u->pixels = a->images * u->grid;
  u->taps = f[0].taps * f[1].taps * f[2].taps;
  u->taps_y = f[1].taps;
  u->taps_x = f[2].taps;
  u->step_z = f[0].in_step, u->step_y = f[1].in_step, u->step_x = f[2].in_step;
  u->first_z = f[0].in_first, u->first_y = f[1].in_first, u->first_x = f[2].in_first;
  u->tap_z = f[0].in_tap, u->tap_y = f[1].in_tap, u->tap_x = f[2].in_tap;
  const uint32_t row = c->axis[2].out, slice = c->axis[1].out * row;
  u->out_z = f[0].out_step * slice, u->out_y = f[1].out_step * row, u->out_x = f[2].out_step;
  u->out_first = f[0].out_first * slice + f[1].out_first * row + f[2].out_first;
  u->dense = c->transposed ? 0 : u->grid % 4 ? 1 : 2;
  const uint32_t w_x = steps_of(k).tap / 4, w_y = c->axis[2].kernel * w_x;
  const uint32_t w_z = c->axis[1].kernel * w_y;
  u->w_z = f[0].w_step * w_z, u->w_y = f[1].w_step * w_y, u->w_x = f[2].w_step * w_x;
  u->w_first = f[0].w_first * w_z + f[1].w_first * w_y + f[2].w_first * w_x;
  u->w_first += c->groups > 1 ? a->unit * u->w_group : a->unit / 4;
}

static sconce_status emit_part(struct plan *p, const struct kernel *row, const struct call *k,
                               const struct part *a) {
  if (row->wgsl == &conv_plain_wgsl) return emit_plain(p, row, k, a);
  struct conv_params u = common(k, a);
  for (uint32_t i = 0; i < conv_phases(&k->c); i++) {
    struct conv_phase f[CONV_AXES];
    conv_phase(&k->c, i, f);
    set_phase(k, a, f, &u);
    if (u.pixels) TRY(dispatch_part(p, row, k, a, &u, workgroups_of(row, &u)));
  }
  return SCONCE_OK;
}

/* ---- emit ------------------------------------------------------------------------------------ */

static sconce_status read_call(struct plan *p, const struct node *n, const struct conv_end *end,
                               struct call *k) {
  *k = (struct call){.x = arg_id(n, CONV_X),
                     .w = arg_id(n, CONV_W),
                     .bias = arg_id(n, CONV_BIAS),
                     .y = end->y,
                     .rest = end->rest,
                     .end = end};
  TRY(conv_read(p, n, &k->c));
  const struct tensor *x = tensor_at(p, k->x), *w = tensor_at(p, k->w), *y = tensor_at(p, k->y);
  TRY(float_check(p, x, "x"));
  TRY(float_check(p, w, "the weight"));
  if (!y || y->dtype != x->dtype)
    return fail(p->err, SCONCE_BAD_GRAPH, "x is %s, the result %s", vk_dtype_name(x->dtype),
                y ? vk_dtype_name(y->dtype) : "no tensor");
  TRY(rows_bias(p, n, CONV_BIAS, k->c.groups * k->c.oc, &k->bias_kind));
  k->packed = w->packing != NULL;
  k->half = is_half(x);
  k->w_half = is_half(w);
  k->x_plane = conv_pixels_in(&k->c);
  k->y_plane = conv_pixels_out(&k->c);
  return SCONCE_OK;
}

sconce_status conv_emit(struct plan *p, const struct node *n, const struct conv_end *end) {
  struct call k;
  const struct kernel *row;
  TRY(read_call(p, n, end, &k));
  struct problem q = {.c = &k.c, .packed = k.packed, .mixed = k.half != k.w_half};
  if (!p->g->force) suit(&q);
  TRY(choose(p, n, conv_kernels, k.half ? VK_FLOAT16 : VK_FLOAT32, &q, &row));
  struct part whole;
  split(p, &k, &whole);
  for (uint32_t image = 0; image < k.c.batch; image += whole.images)
    for (uint32_t unit = 0; unit < units_of(&k.c); unit += whole.units) {
      struct part a = {image, k.c.batch - image, unit, units_of(&k.c) - unit};
      if (a.images > whole.images) a.images = whole.images;
      if (a.units > whole.units) a.units = whole.units;
      TRY(emit_part(p, row, &k, &a));
    }
  return SCONCE_OK;
}

/* ---- prepare --------------------------------------------------------------------------------- */

/* May the kernels of a product take it? Quads of channels must not be of two groups, and the bytes
 * must be there to be laid out. */
static bool is_product(const struct conv *c, const struct tensor *x, const struct tensor *w) {
  return w->constant && !w->written && x->dtype == w->dtype && !is_depthwise(c) && conv_phases(c) &&
         (c->groups == 1 || c->transposed || c->oc % 4 == 0);
}

/* The packed weight takes the place of the file's, which nobody then binds. */
sconce_status conv_prepare(struct plan *p, struct node *n) {
  struct conv c;
  TRY(conv_read(p, n, &c));
  const struct tensor *x = tensor_at(p, arg_id(n, CONV_X)), *w = tensor_at(p, arg_id(n, CONV_W));
  TRY(float_check(p, w, "the weight"));
  if (!is_product(&c, x, w)) return SCONCE_OK;
  uint32_t *args = arena_new(&p->g->arena, uint32_t, n->n_args);
  if (!args) return fail(p->err, SCONCE_NO_MEMORY, "no memory for a node's arguments");
  memcpy(args, n->args, n->n_args * sizeof *args);
  TRY(graph_packed(p->g, args[CONV_W], c.transposed ? &conv_transposed : &conv_forward,
                   &args[CONV_W], p->err));
  n->args = args;
  return SCONCE_OK;
}
