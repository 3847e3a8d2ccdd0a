/* The grid of kernel benches: shapes of a Llama of 1 B parameters and of a small model. */
#include "bench/kernels.h"

#include "base/half.h"

#include <stdio.h>
#include <string.h>

/* ---- values ---------------------------------------------------------------------------------- */

static uint32_t next_random(uint32_t *state) {
  uint32_t x = *state; /* xorshift */
  x ^= x << 13;
  x ^= x >> 17;
  x ^= x << 5;
  return *state = x;
}

static void fill_random(struct case_builder *b, enum vk_dtype dtype, uint8_t *out, uint64_t n) {
  for (uint64_t i = 0; i < n; i++) {
    uint32_t r = next_random(&b->random);
    if (dtype == VK_FLOAT32) {
      float f = (float)(int32_t)r * 0x1p-31f;
      memcpy(out + 4 * i, &f, 4);
    } else if (dtype == VK_FLOAT16) { /* either sign, 2^-4 to 1 */
      uint16_t h = (uint16_t)((r & 0x83ff) | (11 + (r >> 10 & 3)) << 10);
      memcpy(out + 2 * i, &h, 2);
    } else if (vk_dtype_size(dtype) == 1) {
      out[i] = (uint8_t)(r >> 11);
    }
  }
}

uint32_t case_input(struct case_builder *b, enum vk_dtype dtype, const uint32_t *dims,
                    uint32_t rank) {
  uint32_t id = op_input(&b->t, dtype, dims, rank);
  uint8_t *elements = op_elements(&b->t, id);
  if (!elements) return NO_VALUE;
  struct tensor *t = &b->t.graph.values[id].tensor;
  fill_random(b, dtype, elements, tensor_numel_max(t));
  t->host = elements;
  return id;
}

uint32_t case_weight(struct case_builder *b, enum vk_dtype dtype, const uint32_t *dims,
                     uint32_t rank) {
  void *elements;
  uint32_t id = op_constant_of(&b->t, dtype, dims, rank, &elements);
  if (id == NO_VALUE) return id;
  fill_random(b, dtype, elements, tensor_numel_max(&b->t.graph.values[id].tensor));
  return id;
}

void case_fill(struct case_builder *b, uint32_t id, double value) {
  if (b->t.built.status != SCONCE_OK) return;
  const struct tensor *t = &b->t.graph.values[id].tensor;
  const float f = (float)value;
  const uint16_t h = half_from_float(f);
  const bool half = t->dtype == VK_FLOAT16;
  uint8_t *at = (uint8_t *)(uintptr_t)t->host; /* the builder's own memory */
  for (uint64_t i = 0; i < tensor_numel_max(t); i++)
    memcpy(at + i * (half ? 2 : 4), half ? (const void *)&h : (const void *)&f, half ? 2 : 4);
}

/* ---- build functions ------------------------------------------------------------------------- */

static void count_product(struct case_builder *b, uint64_t weight_bytes) {
  b->bytes += weight_bytes;
  b->flops += 2.0 * b->c->m * b->c->n * b->c->k;
}

static uint64_t q4_bytes(const struct kernel_case *c) {
  uint64_t groups = c->k / c->group;
  return (uint64_t)c->n * c->k / 2 + groups * c->n * vk_dtype_size(c->dtype);
}

static void build_q4(struct case_builder *b) {
  const struct kernel_case *c = b->c;
  uint32_t x = case_input(b, c->dtype, DIMS(c->m, c->k));
  uint32_t w = case_weight(b, VK_UINT8, DIMS(c->n, c->k / 2));
  uint32_t scales = case_weight(b, c->dtype, DIMS(c->k / c->group, c->n));
  uint32_t y = op_output(&b->t, c->dtype, DIMS(c->m, c->n));
  op_node(&b->t, "et_vk.linear_q4gsw.default",
          DIMS(x, w, scales, op_int(&b->t, c->group), op_null(&b->t), y));
  count_product(b, q4_bytes(c));
}

/* (groups, n) int32: Σ (code - 8) of each group, as the exporter adds them up. */
static void fill_sums(struct case_builder *b, uint32_t w, uint32_t sums) {
  const struct kernel_case *c = b->c;
  if (b->t.built.status != SCONCE_OK) return;
  const uint8_t *codes = b->t.graph.values[w].tensor.bytes.data;
  int32_t *out =
      (int32_t *)(uintptr_t)b->t.graph.values[sums].tensor.bytes.data; /* our own memory */
  for (uint32_t n = 0; n < c->n; n++)
    for (uint32_t i = 0; i < c->k / 2; i++) {
      uint8_t pair = codes[(size_t)n * (c->k / 2) + i];
      out[(size_t)(2 * i / c->group) * c->n + n] += (pair & 15) + (pair >> 4) - 16;
    }
}

static void build_dq8(struct case_builder *b) {
  const struct kernel_case *c = b->c;
  const uint32_t groups = c->k / c->group;
  uint32_t x = case_input(b, c->dtype, DIMS(c->m, c->k));
  uint32_t x_scale = case_input(b, c->dtype, DIMS(c->m));
  uint32_t x_zero = case_input(b, VK_INT8, DIMS(c->m));
  uint32_t w = case_weight(b, VK_UINT8, DIMS(c->n, c->k / 2));
  uint32_t sums = case_weight(b, VK_INT32, DIMS(groups, c->n));
  uint32_t scales = case_weight(b, c->dtype, DIMS(groups, c->n));
  uint32_t y = op_output(&b->t, c->dtype, DIMS(c->m, c->n));
  case_fill(b, x_scale, 0x1p-7);
  fill_sums(b, w, sums);
  op_node(&b->t, "et_vk.linear_dq8ca_q4gsw.default",
          DIMS(x, x_scale, x_zero, w, sums, scales, op_int(&b->t, c->group), op_null(&b->t), y));
  count_product(b, q4_bytes(c));
}

static void build_linear(struct case_builder *b) {
  const struct kernel_case *c = b->c;
  uint32_t x = case_input(b, c->dtype, DIMS(c->m, c->k));
  uint32_t w = case_weight(b, c->dtype, DIMS(c->n, c->k));
  uint32_t y = op_output(&b->t, c->dtype, DIMS(c->m, c->n));
  op_node(&b->t, "aten.linear.default", DIMS(x, w, op_null(&b->t), y));
  count_product(b, (uint64_t)c->n * c->k * vk_dtype_size(c->dtype));
}

/* x in floats, the weight in bytes. */
static void build_q8(struct case_builder *b) {
  const struct kernel_case *c = b->c;
  uint32_t x = case_input(b, c->dtype, DIMS(c->m, c->k));
  uint32_t w = case_weight(b, VK_INT8, DIMS(c->n, c->k));
  uint32_t scales = case_weight(b, c->dtype, DIMS(c->n));
  uint32_t y = op_output(&b->t, c->dtype, DIMS(c->m, c->n));
  op_node(&b->t, "aten._weight_int8pack_mm.default", DIMS(x, w, scales, y));
  count_product(b, (uint64_t)c->n * c->k);
}

/* Both in bytes, y in floats. */
static void build_q8ta(struct case_builder *b) {
  const struct kernel_case *c = b->c;
  uint32_t x = case_input(b, VK_INT8, DIMS(c->m, c->k));
  uint32_t w = case_weight(b, VK_INT8, DIMS(c->n, c->k));
  uint32_t sums = case_weight(b, VK_INT32, DIMS(c->n)); /* nobody reads them */
  uint32_t scales = case_weight(b, c->dtype, DIMS(c->n));
  uint32_t y = op_output(&b->t, c->dtype, DIMS(c->m, c->n));
  op_node(&b->t, "et_vk.linear_q8ta_q8csw.default",
          DIMS(x, op_double(&b->t, 0x1p-7), op_int(&b->t, -3), w, sums, scales, op_null(&b->t), y));
  count_product(b, (uint64_t)c->n * c->k);
}

/* m queries behind `position` cached tokens; the caches end soon behind the last one, so that
 * copies of them are no larger than what is read. */
static void build_sdpa(struct case_builder *b) {
  const struct kernel_case *c = b->c;
  const uint32_t keys = c->position + c->m, rows = (keys + 63) / 64 * 64;
  uint32_t q = case_input(b, c->dtype, DIMS(1, c->m, c->heads, c->dim));
  uint32_t k = case_input(b, c->dtype, DIMS(1, c->m, c->kv_heads, c->dim));
  uint32_t v = case_input(b, c->dtype, DIMS(1, c->m, c->kv_heads, c->dim));
  uint32_t k_cache = case_weight(b, c->dtype, DIMS(1, rows, c->kv_heads, c->dim));
  uint32_t v_cache = case_weight(b, c->dtype, DIMS(1, rows, c->kv_heads, c->dim));
  uint32_t out = op_output(&b->t, c->dtype, DIMS(1, c->m, c->heads, c->dim));
  op_node(&b->t, "sdpa_with_kv_cache.default",
          DIMS(q, k, v, k_cache, v_cache, op_int(&b->t, c->position), op_int(&b->t, c->m),
               op_null(&b->t), op_double(&b->t, 0), op_bool(&b->t, true), op_null(&b->t), out));
  b->bytes += 2ull * keys * c->kv_heads * c->dim * vk_dtype_size(c->dtype);
  for (uint32_t i = 0; i < c->m; i++) /* scores and the sum of the values */
    b->flops += 4.0 * c->heads * c->dim * (c->position + i + 1);
}

/* ---- build functions of what passes fuse ----------------------------------------------------- */

static uint32_t norm_of(struct case_builder *b, uint32_t x) {
  const struct kernel_case *c = b->c;
  uint32_t y = op_tensor(&b->t, c->dtype, DIMS(c->m, c->k));
  op_node(&b->t, "et_vk.rms_norm.default",
          DIMS(x, case_weight(b, c->dtype, DIMS(c->k)), op_double(&b->t, 1e-5), y));
  return y;
}

static void project(struct case_builder *b, uint32_t x, uint32_t n, uint32_t y) {
  const struct kernel_case *c = b->c;
  uint32_t w = case_weight(b, VK_UINT8, DIMS(n, c->k / 2));
  uint32_t scales = case_weight(b, c->dtype, DIMS(c->k / c->group, n));
  op_node(&b->t, "et_vk.linear_q4gsw.default",
          DIMS(x, w, scales, op_int(&b->t, c->group), op_null(&b->t), y));
  b->bytes += (uint64_t)n * c->k / 2 + (uint64_t)n * (c->k / c->group) * vk_dtype_size(c->dtype);
  b->flops += 2.0 * c->m * n * c->k;
}

/* Queries, keys and values, n rows together. */
static void build_join(struct case_builder *b) {
  const struct kernel_case *c = b->c;
  uint32_t x = norm_of(b, case_input(b, c->dtype, DIMS(c->m, c->k)));
  const uint32_t kv = c->n / 6, rows[] = {c->n - 2 * kv, kv, kv};
  for (int i = 0; i < 3; i++)
    project(b, x, rows[i], op_output(&b->t, c->dtype, DIMS(c->m, rows[i])));
}

static void build_swiglu(struct case_builder *b) {
  const struct kernel_case *c = b->c;
  uint32_t x = norm_of(b, case_input(b, c->dtype, DIMS(c->m, c->k))), t[4];
  for (int i = 0; i < 4; i++) t[i] = op_tensor(&b->t, c->dtype, DIMS(c->m, c->n));
  uint32_t y = op_output(&b->t, c->dtype, DIMS(c->m, c->n));
  project(b, x, c->n, t[0]);
  op_node(&b->t, "aten.sigmoid.default", DIMS(t[0], t[1]));
  op_node(&b->t, "aten.mul.Tensor", DIMS(t[0], t[1], t[2]));
  project(b, x, c->n, t[3]);
  op_node(&b->t, "aten.mul.Tensor", DIMS(t[2], t[3], y));
}

static void build_residual(struct case_builder *b) {
  const struct kernel_case *c = b->c;
  uint32_t x = case_input(b, c->dtype, DIMS(c->m, c->k));
  uint32_t rest = case_input(b, c->dtype, DIMS(c->m, c->n));
  uint32_t y = op_tensor(&b->t, c->dtype, DIMS(c->m, c->n));
  uint32_t sum = op_output(&b->t, c->dtype, DIMS(c->m, c->n));
  project(b, x, c->n, y);
  op_node(&b->t, "aten.add.Tensor", DIMS(rest, y, op_int(&b->t, 1), sum));
}

/* One token, its queries and its key turned. */
static void build_step(struct case_builder *b) {
  const struct kernel_case *c = b->c;
  const uint32_t keys = c->position + 1, rows = (keys + 63) / 64 * 64;
  uint32_t q = case_input(b, c->dtype, DIMS(1, 1, c->heads, c->dim));
  uint32_t k = case_input(b, c->dtype, DIMS(1, 1, c->kv_heads, c->dim));
  uint32_t v = case_input(b, c->dtype, DIMS(1, 1, c->kv_heads, c->dim));
  uint32_t cosine = case_input(b, c->dtype, DIMS(1, c->dim / 2));
  uint32_t sine = case_input(b, c->dtype, DIMS(1, c->dim / 2));
  uint32_t k_cache = case_weight(b, c->dtype, DIMS(1, rows, c->kv_heads, c->dim));
  uint32_t v_cache = case_weight(b, c->dtype, DIMS(1, rows, c->kv_heads, c->dim));
  uint32_t turned[] = {op_tensor(&b->t, c->dtype, DIMS(1, 1, c->heads, c->dim)),
                       op_tensor(&b->t, c->dtype, DIMS(1, 1, c->kv_heads, c->dim))};
  uint32_t out = op_output(&b->t, c->dtype, DIMS(1, 1, c->heads, c->dim));
  op_node(&b->t, "et_vk.apply_rotary_emb.default",
          DIMS(q, k, cosine, sine, op_list(&b->t, turned, 2)));
  op_node(&b->t, "sdpa_with_kv_cache.default",
          DIMS(turned[0], turned[1], v, k_cache, v_cache, op_int(&b->t, c->position),
               op_int(&b->t, 1), op_null(&b->t), op_double(&b->t, 0), op_bool(&b->t, true),
               op_null(&b->t), out));
  b->bytes += 2ull * keys * c->kv_heads * c->dim * vk_dtype_size(c->dtype);
  b->flops += 4.0 * c->heads * c->dim * keys;
}

/* ---- the grid -------------------------------------------------------------------------------- */

#define Q4 "et_vk.linear_q4gsw.default" /* dq8's product runs its rows */
static const struct {
  const char *name;
  void (*build)(struct case_builder *b);
  const char *op;
  uint32_t n_tables;
} products[] = {
    {"linear_q4gsw", build_q4, Q4, 2},
    {"linear_dq8ca_q4gsw", build_dq8, Q4, 2},
    {"aten.linear", build_linear, "aten.linear.default", 1},
    {"_weight_int8pack_mm", build_q8, "aten._weight_int8pack_mm.default", 1},
    {"linear_q8ta_q8csw", build_q8ta, "et_vk.linear_q8ta_q8csw.default", 1},
};
static const struct {
  uint32_t k, n;
  bool quick;
} shapes[] = {
    {288, 288, true},    {288, 768, true},      {768, 288, true},   {288, 32000, true},
    {2048, 2048, true},  {2048, 3072, false},   {2048, 8192, true}, {2048, 16384, false},
    {8192, 2048, false}, {2048, 128256, false},
};
static const struct {
  uint32_t m;
  bool quick;
} rows_of_x[] = {{1, true},  {4, false},   {8, false},   {16, true},   {32, false},
                 {64, true}, {128, false}, {512, false}, {2048, false}};
static const struct {
  uint32_t heads, kv_heads, dim, m, position;
  bool quick;
} attentions[] = {
    {6, 6, 48, 1, 16, true},       {6, 6, 48, 1, 200, true},      {6, 6, 48, 64, 0, true},
    {32, 8, 64, 1, 16, true},      {32, 8, 64, 1, 512, true},     {32, 8, 64, 1, 2048, false},
    {32, 8, 64, 1, 8000, false},   {32, 8, 64, 8, 512, false},    {32, 8, 64, 8, 8000, false},
    {32, 8, 64, 128, 0, false},    {32, 8, 64, 128, 2048, false}, {32, 8, 64, 512, 0, false},
    {32, 8, 64, 512, 2048, false}, {32, 8, 64, 128, 8000, false}, {32, 8, 64, 512, 6000, false},
    {32, 8, 64, 2048, 0, false},   {32, 8, 64, 4, 8000, false},
};
static const struct case_dtype dtypes[] = {{VK_FLOAT32, "f32", 1e-4}, {VK_FLOAT16, "f16", 2e-3}};
enum { FROM_MATRIX = 64, GROUP = 32 };
#define COUNT(table) (sizeof(table) / sizeof *(table))

typedef sconce_status visit(void *user, const struct kernel_case *c, sconce_error *err);

static sconce_status each_product(size_t p, size_t t, visit *each, void *user, sconce_error *err) {
  for (size_t s = 0; s < COUNT(shapes); s++)
    for (size_t r = 0; r < COUNT(rows_of_x); r++) {
      struct kernel_case c = {.build = products[p].build,
                              .op = products[p].op,
                              .n_tables = products[p].n_tables,
                              .dtype = dtypes[t].dtype,
                              .m = rows_of_x[r].m,
                              .k = shapes[s].k,
                              .n = shapes[s].n,
                              .group = GROUP,
                              .matrix = rows_of_x[r].m >= FROM_MATRIX,
                              .quick = t == 0 && shapes[s].quick && rows_of_x[r].quick,
                              .tolerance = dtypes[t].tolerance};
      snprintf(c.name, sizeof c.name, "%s %ux%u m=%u %s", products[p].name, c.k, c.n, c.m,
               dtypes[t].name);
      TRY(each(user, &c, err));
    }
  return SCONCE_OK;
}

/* Products of a ViT-B/16 at 224 x 224 and of a MiniLM at 128 tokens. */
static const struct {
  uint32_t m, k, n;
  bool quick;
} encoders[] = {
    {197, 768, 768, true}, {197, 768, 2304, false}, {197, 768, 3072, false}, {197, 3072, 768, true},
    {128, 384, 384, true}, {128, 384, 1536, false}, {128, 1536, 384, true},
};

static sconce_status each_encoder(size_t t, visit *each, void *user, sconce_error *err) {
  for (size_t i = 0; i < COUNT(encoders); i++) {
    struct kernel_case c = {.build = build_linear,
                            .op = "aten.linear.default",
                            .n_tables = 1,
                            .dtype = dtypes[t].dtype,
                            .m = encoders[i].m,
                            .k = encoders[i].k,
                            .n = encoders[i].n,
                            .matrix = true,
                            .quick = t == 0 && encoders[i].quick,
                            .tolerance = dtypes[t].tolerance};
    snprintf(c.name, sizeof c.name, "aten.linear %ux%u m=%u %s", c.k, c.n, c.m, dtypes[t].name);
    TRY(each(user, &c, err));
  }
  return SCONCE_OK;
}

static sconce_status each_attention(size_t t, visit *each, void *user, sconce_error *err) {
  for (size_t a = 0; a < COUNT(attentions); a++) {
    struct kernel_case c = {.build = build_sdpa,
                            .op = "sdpa_with_kv_cache.default",
                            .n_tables = 1,
                            .dtype = dtypes[t].dtype,
                            .m = attentions[a].m,
                            .heads = attentions[a].heads,
                            .kv_heads = attentions[a].kv_heads,
                            .dim = attentions[a].dim,
                            .position = attentions[a].position,
                            .matrix = attentions[a].m >= FROM_MATRIX,
                            .quick = t == 0 && attentions[a].quick,
                            .tolerance = dtypes[t].tolerance};
    snprintf(c.name, sizeof c.name, "sdpa %u/%ux%u m=%u depth=%u %s", c.heads, c.kv_heads, c.dim,
             c.m, c.position, dtypes[t].name);
    TRY(each(user, &c, err));
  }
  return SCONCE_OK;
}

static const struct {
  const char *name;
  void (*build)(struct case_builder *b);
  uint32_t k, n;
  bool quick;
} fusions[] = {
    {"norm+qkv", build_join, 288, 864, true},
    {"norm+qkv", build_join, 2048, 3072, false},
    {"norm+swiglu", build_swiglu, 288, 768, true},
    {"norm+swiglu", build_swiglu, 2048, 8192, false},
    {"linear+residual", build_residual, 288, 288, true},
    {"linear+residual", build_residual, 768, 288, true},
    {"linear+residual", build_residual, 2048, 2048, false},
    {"linear+residual", build_residual, 8192, 2048, false},
};

static sconce_status each_fusion(size_t t, visit *each, void *user, sconce_error *err) {
  for (size_t i = 0; i < COUNT(fusions); i++)
    for (size_t r = 0; r < COUNT(rows_of_x); r++) {
      if (rows_of_x[r].m > 8 && fusions[i].build != build_swiglu)
        continue; /* linear_q4gsw's rows */
      struct kernel_case c = {.build = fusions[i].build,
                              .op = "sconce.linear_q4",
                              .n_tables = 3,
                              .fused = true,
                              .dtype = dtypes[t].dtype,
                              .m = rows_of_x[r].m,
                              .k = fusions[i].k,
                              .n = fusions[i].n,
                              .group = GROUP,
                              .matrix = rows_of_x[r].m >= FROM_MATRIX,
                              .quick = t == 0 && fusions[i].quick && rows_of_x[r].quick,
                              .tolerance = dtypes[t].tolerance};
      snprintf(c.name, sizeof c.name, "%s %ux%u m=%u %s", fusions[i].name, c.k, c.n, c.m,
               dtypes[t].name);
      TRY(each(user, &c, err));
    }
  for (size_t a = 0; a < COUNT(attentions); a++) {
    if (attentions[a].m != 1) continue;
    struct kernel_case c = {.build = build_step,
                            .op = "sconce.attention_step",
                            .n_tables = 1,
                            .fused = true,
                            .dtype = dtypes[t].dtype,
                            .m = 1,
                            .heads = attentions[a].heads,
                            .kv_heads = attentions[a].kv_heads,
                            .dim = attentions[a].dim,
                            .position = attentions[a].position,
                            .quick = t == 0 && attentions[a].quick,
                            .tolerance = dtypes[t].tolerance};
    snprintf(c.name, sizeof c.name, "rotary+sdpa %u/%ux%u m=1 depth=%u %s", c.heads, c.kv_heads,
             c.dim, c.position, dtypes[t].name);
    TRY(each(user, &c, err));
  }
  return SCONCE_OK;
}

sconce_status cases_each(visit *each, void *user, sconce_error *err) {
  for (size_t t = 0; t < COUNT(dtypes); t++) {
    for (size_t p = 0; p < COUNT(products); p++) TRY(each_product(p, t, each, user, err));
    TRY(each_encoder(t, each, user, err));
    TRY(each_attention(t, each, user, err));
    TRY(each_fusion(t, each, user, err));
    TRY(cases_conv(&dtypes[t], each, user, err));
    TRY(cases_lines(&dtypes[t], each, user, err));
  }
  return SCONCE_OK;
}
