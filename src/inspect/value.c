/* Values and shapes as the text forms show them. */
#include "inspect/inspect.h"

#include <inttypes.h>

enum { LIST_SHOWN = 8, TEXT_SHOWN = 60 };

struct inspect_shape shape_of_vk(const struct vk_value *v) {
  if (v->kind != VK_TENSOR) return (struct inspect_shape){0};
  const struct vk_tensor *t = &v->tensor;
  struct inspect_shape s = {vk_dtype_name(t->dtype), t->rank, {0}, t->nbytes};
  for (uint32_t i = 0; i < t->rank; i++) s.dims[i] = t->dims[i];
  return s;
}

struct inspect_shape shape_of_data(const struct data_shape *from) {
  struct inspect_shape s = {scalar_name(from->scalar_type), from->rank, {0}, from->nbytes};
  for (uint32_t i = 0; i < from->rank; i++) s.dims[i] = (uint32_t)from->sizes[i];
  return s;
}

struct inspect_shape shape_of_pte(const struct pte_value *v) {
  return v->kind == PTE_TENSOR ? shape_of_data(&v->tensor.shape) : (struct inspect_shape){0};
}

void put_dims(struct out *o, uint32_t rank, const uint32_t *dims) {
  out_put(o, "[");
  for (uint32_t i = 0; i < rank; i++) out_put(o, "%s%u", i ? ", " : "", dims[i]);
  out_put(o, "]");
}

void put_shape(struct out *o, const struct inspect_shape *s) {
  out_put(o, "%s ", s->dtype);
  put_dims(o, s->rank, s->dims);
}

static void put_string(struct out *o, struct text text) {
  out_put(o, "'");
  out_text(o, text, TEXT_SHOWN);
  out_put(o, "'");
}

/* ---- the program's --------------------------------------------------------------------------- */

static void put_pte_tensor(struct out *o, const struct pte_tensor *t) {
  static const char *const bounds[] = {"", "up to ", "any shape, exported as "};
  struct inspect_shape s = shape_of_data(&t->shape);
  out_put(o, "%s %s", s.dtype, bounds[t->dynamism]);
  put_dims(o, s.rank, s.dims);
}

/* Items of index lists are values of their own; integers are shown, tensors by their number. */
static void put_pte_item(struct out *o, const struct pte_method *m, const struct pte_value *list,
                         uint32_t i) {
  if (list->kind == PTE_DOUBLE_LIST) {
    out_double(o, fb_f64_at(list->items, i));
  } else if (list->kind == PTE_BOOL_LIST) {
    out_put(o, fb_bool_at(list->items, i) ? "true" : "false");
  } else {
    int64_t id = pte_list_item(list, i);
    if (id < 0)
      out_put(o, "none");
    else if (pte_value_kind(m, (uint32_t)id) == PTE_INT)
      out_put(o, "%" PRId64, pte_value(m, (uint32_t)id).i);
    else
      out_put(o, "v%" PRId64, id);
  }
}

void put_pte_value(struct out *o, const struct pte_method *m, uint32_t i) {
  struct pte_value v = pte_value(m, i);
  switch (v.kind) {
  case PTE_NULL:
    out_put(o, "none");
    break;
  case PTE_INT:
    out_put(o, "%" PRId64, v.i);
    break;
  case PTE_BOOL:
    out_put(o, v.b ? "true" : "false");
    break;
  case PTE_DOUBLE:
    out_double(o, v.d);
    break;
  case PTE_STRING:
    put_string(o, v.text);
    break;
  case PTE_TENSOR:
    put_pte_tensor(o, &v.tensor);
    break;
  default:
    out_put(o, "[");
    for (uint32_t k = 0; k < v.items.n && k < LIST_SHOWN; k++) {
      if (k) out_put(o, ", ");
      put_pte_item(o, m, &v, k);
    }
    out_put(o, v.items.n > LIST_SHOWN ? ", …]" : "]");
  }
}

void put_pte_arg(struct out *o, const struct pte_method *m, uint32_t i) {
  if (pte_value_kind(m, i) == PTE_TENSOR)
    out_put(o, "v%u", i);
  else
    put_pte_value(o, m, i);
}

/* ---- a graph's ------------------------------------------------------------------------------- */

static void put_vk_item(struct out *o, const struct vkgraph *g, const struct vk_value *list,
                        uint32_t i) {
  if (list->kind == VK_INT_LIST) {
    out_put(o, "%" PRId64, fb_i64_at(list->items, i));
  } else if (list->kind == VK_DOUBLE_LIST) {
    out_double(o, fb_f64_at(list->items, i));
  } else if (list->kind == VK_BOOL_LIST) {
    out_put(o, fb_bool_at(list->items, i) ? "true" : "false");
  } else {
    put_vk_arg(o, g, fb_u32_at(list->items, i)); /* no list: one level only */
  }
}

void put_vk_arg(struct out *o, const struct vkgraph *g, uint32_t i) {
  struct vk_value v = vkgraph_value(g, i);
  struct inspect_shape s;
  switch (v.kind) {
  case VK_NULL:
    out_put(o, "none");
    break;
  case VK_INT:
    out_put(o, "%" PRId64, v.i);
    break;
  case VK_DOUBLE:
    out_double(o, v.d);
    break;
  case VK_BOOLEAN:
    out_put(o, v.b ? "true" : "false");
    break;
  case VK_STRING:
    put_string(o, v.text);
    break;
  case VK_SYMINT:
    out_put(o, "s%u", i);
    break;
  case VK_TENSOR:
    out_put(o, v.tensor.constant_id >= 0 ? "c%u " : "%%%u", i);
    if (v.tensor.constant_id < 0) break;
    s = shape_of_vk(&v);
    put_shape(o, &s);
    break;
  default:
    out_put(o, "[");
    for (uint32_t k = 0; k < v.items.n && k < LIST_SHOWN; k++) {
      if (k) out_put(o, ", ");
      put_vk_item(o, g, &v, k);
    }
    out_put(o, v.items.n > LIST_SHOWN ? ", …]" : "]");
  }
}

const char *quant_name(enum inspect_quant quant) {
  static const char *const names[] = {NULL, "4-bit", "8-bit", "scales"};
  return names[quant];
}
