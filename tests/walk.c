#include "walk.h"

/* ---- pieces ---------------------------------------------------------------------------------- */

/* Weights are large: their ends and a few bytes between. */
static uint64_t touch(struct span s) {
  uint64_t sum = s.size;
  size_t stride = s.size / 64 + 1;
  for (size_t i = 0; i < s.size; i += stride) sum = sum * 31 + s.data[i];
  return s.size ? sum * 31 + s.data[s.size - 1] : sum;
}

static uint64_t touch_text(struct text t) {
  uint64_t sum = t.size;
  for (size_t i = 0; i < t.size; i++) sum = sum * 31 + (uint8_t)t.data[i];
  return t.data ? sum + (uint8_t)t.data[t.size] : sum; /* the NUL behind it */
}

static uint64_t touch_name(const char *name) { return touch_text(text_of(name)); }

static uint64_t touch_ids(struct fb_vec v) {
  uint64_t sum = v.n;
  for (uint32_t i = 0; i < v.n; i++) sum = sum * 31 + fb_u32_at(v, i);
  return sum + fb_u32_at(v, v.n); /* past the end: 0 */
}

static uint64_t touch_wide(struct fb_vec v) {
  uint64_t sum = v.n;
  for (uint32_t i = 0; i < v.n; i++) sum = sum * 31 + fb_u64_at(v, i) + (fb_f64_at(v, i) > 0);
  return sum;
}

static uint64_t touch_bools(struct fb_vec v) {
  uint64_t sum = v.n;
  for (uint32_t i = 0; i < v.n; i++) sum = sum * 31 + fb_bool_at(v, i);
  return sum;
}

static uint64_t touch_shape(const struct data_shape *s) {
  uint64_t sum = s->nbytes + s->numel + touch_name(scalar_name(s->scalar_type));
  for (uint32_t i = 0; i < s->rank; i++) sum = sum * 31 + (uint64_t)s->sizes[i] + s->dim_order[i];
  return sum;
}

static uint64_t touch_data(const struct data *data) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i <= data->segments.n; i++)
    sum += touch(extent_held(data_segment(data, i))) + data_segment(data, i).offset;
  for (uint32_t i = 0; i <= data->named.n; i++)
    sum += touch(extent_held(data_named(data, i))) + touch_text(data_key(data, i));
  return sum;
}

/* ---- programs -------------------------------------------------------------------------------- */

static uint64_t walk_value(const struct pte_method *m, uint32_t i) {
  struct pte_value v = pte_value(m, i);
  struct extent bytes;
  uint64_t sum = touch_name(pte_kind_name(v.kind));
  switch (v.kind) {
  case PTE_NULL:
    break;
  case PTE_INT:
    return sum + (uint64_t)v.i;
  case PTE_BOOL:
    return sum + v.b;
  case PTE_DOUBLE:
    return sum + (v.d > 0);
  case PTE_STRING:
    return sum + touch_text(v.text);
  case PTE_DOUBLE_LIST:
    return sum + touch_wide(v.items);
  case PTE_BOOL_LIST:
    return sum + touch_bools(v.items);
  case PTE_TENSOR:
    sum += touch_shape(&v.tensor.shape) + touch_text(v.tensor.fqn) + v.tensor.memory_offset;
    return sum + (pte_tensor_bytes(m->pte, &v.tensor, &bytes) ? touch(extent_held(bytes)) : 0);
  case PTE_INT_LIST:
  case PTE_TENSOR_LIST:
  case PTE_OPTIONAL_TENSOR_LIST:
    for (uint32_t k = 0; k <= v.items.n; k++) {
      int64_t item = pte_list_item(&v, k);
      if (item >= 0) sum += pte_value_kind(m, (uint32_t)item);
    }
    return sum;
  }
  return sum;
}

static uint64_t walk_instruction(const struct pte_method *m, uint32_t chain, uint32_t i) {
  struct pte_instruction in = pte_instruction(m, chain, i);
  uint64_t sum = in.index + in.to + in.destination + touch_ids(in.args);
  for (uint32_t k = 0; k < in.args.n; k++) sum += pte_value_kind(m, fb_u32_at(in.args, k));
  return sum + pte_value_kind(m, in.value);
}

static uint64_t walk_delegate(const struct pte_method *m, uint32_t i) {
  struct pte_delegate d = pte_delegate(m, i);
  uint64_t sum = touch_text(d.id) + touch(extent_held(d.blob)) + d.blob.offset;
  for (uint32_t k = 0; k <= d.specs.n; k++) {
    struct pte_spec spec = pte_delegate_spec(&d, k);
    sum += touch_text(spec.key) + touch(spec.value);
  }
  return sum;
}

static uint64_t walk_method(const struct pte_method *m) {
  char name[PTE_OPERATOR_SIZE];
  uint64_t sum = touch_text(m->name) + touch_ids(m->inputs) + touch_ids(m->outputs);
  sum += touch_wide(m->buffer_sizes) + pte_method_is_constant(m);
  for (uint32_t i = 0; i <= m->n_values; i++) sum += walk_value(m, i); /* one past the end, too */
  for (uint32_t i = 0; i <= m->n_operators; i++) sum += touch_name(pte_operator_text(m, i, name));
  for (uint32_t i = 0; i <= m->n_delegates; i++) sum += walk_delegate(m, i);
  for (uint32_t c = 0; c <= m->n_chains; c++)
    for (uint32_t i = 0; i <= pte_n_instructions(m, c); i++) sum += walk_instruction(m, c, i);
  return sum;
}

uint64_t walk_pte(const struct pte *pte) {
  uint64_t sum = touch_data(&pte->data);
  struct pte_method found;
  struct data_lookup named = {pte_lookup, (void *)(uintptr_t)pte};
  for (uint32_t i = 0; i <= pte->n_methods; i++) {
    struct pte_method m = pte_method(pte, i);
    sum += walk_method(&m) + pte_find_method(pte, m.name, &found);
    for (uint32_t d = 0; d < m.n_delegates; d++)
      sum += walk_blob(extent_held(pte_delegate(&m, d).blob), named, NULL) == SCONCE_OK;
  }
  return sum;
}

uint64_t walk_ptd(const struct ptd *ptd) {
  uint64_t sum = touch_data(&ptd->data);
  struct ptd_set set = {ptd, 1};
  struct ptd_source source = {.set = &set};
  for (uint32_t i = 0; i <= ptd->data.named.n; i++) {
    struct ptd_entry e = ptd_entry(ptd, i), found;
    struct extent bytes;
    sum += touch_text(e.key) + touch(extent_held(e.bytes)) + touch_shape(&e.shape);
    if (i < 100 && ptd_find(&set, e.key, &found)) sum += found.bytes.size;
    if (i < 100 && ptd_lookup(&source, e.key, &bytes)) sum += bytes.size;
  }
  return sum + (ptd_set_verify(&set, NULL) == SCONCE_OK);
}

/* ---- graphs ---------------------------------------------------------------------------------- */

static uint64_t walk_vk_tensor(const struct vkgraph *g, const struct vk_tensor *t) {
  struct extent bytes;
  uint64_t sum = t->nbytes + t->numel + touch_name(vk_dtype_name(t->dtype));
  sum += touch_name(vk_dtype_name(t->staging)) + (uint64_t)t->mem_obj_id;
  for (uint32_t i = 0; i < t->rank; i++) sum = sum * 31 + t->dims[i];
  return sum + (vkgraph_tensor_bytes(g, t, &bytes) ? touch(extent_held(bytes)) : 0);
}

static uint64_t walk_vk_value(const struct vkgraph *g, uint32_t i) {
  struct vk_value v = vkgraph_value(g, i);
  uint64_t sum = touch_name(vk_kind_name(v.kind));
  switch (v.kind) {
  case VK_NULL:
    return sum;
  case VK_INT:
  case VK_SYMINT:
    return sum + (uint64_t)v.i;
  case VK_DOUBLE:
    return sum + (v.d > 0);
  case VK_BOOLEAN:
    return sum + v.b;
  case VK_TENSOR:
    return sum + walk_vk_tensor(g, &v.tensor);
  case VK_INT_LIST:
  case VK_DOUBLE_LIST:
    return sum + touch_wide(v.items);
  case VK_BOOL_LIST:
    return sum + touch_bools(v.items);
  case VK_STRING:
    return sum + touch_text(v.text);
  case VK_VALUE_LIST:
    for (uint32_t k = 0; k < v.items.n; k++) sum += vkgraph_kind(g, fb_u32_at(v.items, k));
    return sum;
  }
  return sum;
}

uint64_t walk_vkgraph(const struct vkgraph *g) {
  uint64_t sum =
      touch(extent_held(g->constant_area)) + touch_ids(g->inputs) + touch_ids(g->outputs);
  for (uint32_t i = 0; i <= g->n_values; i++) sum += walk_vk_value(g, i);
  for (uint32_t i = 0; i <= g->n_constants; i++) {
    struct vk_constant c = vkgraph_constant(g, i);
    sum += touch_text(c.key) + c.length;
  }
  for (uint32_t i = 0; i <= g->n_calls; i++) {
    struct vk_call call = vkgraph_call(g, i);
    sum += touch_text(call.name) + touch_ids(call.args) + call.node_id;
    for (uint32_t k = 0; k < call.args.n; k++) sum += vkgraph_kind(g, fb_u32_at(call.args, k));
  }
  return sum;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Where the sums go, so that no compiler drops the reads. */
static volatile uint64_t sink;

sconce_status walk_blob(struct span blob, struct data_lookup named, sconce_error *err) {
  struct vkgraph g;
  TRY(vkgraph_open(&g, extent_of(blob), named, err));
  sink += walk_vkgraph(&g);
  return SCONCE_OK;
}

sconce_status walk_file(struct span file, sconce_error *err) {
  if (ptd_probe(file)) {
    struct ptd ptd;
    TRY(ptd_open(&ptd, extent_of(file), err));
    sink += walk_ptd(&ptd);
  } else {
    struct pte pte;
    TRY(pte_open(&pte, extent_of(file), err));
    sink += walk_pte(&pte);
  }
  return SCONCE_OK;
}
