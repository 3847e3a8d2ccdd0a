/* --graph: the program's instructions one per line, and under a delegate call the nodes of its
 * graph. v3 is a value of the program; %3, c3 (a constant) and s3 (a live integer) are a graph's.
 */
#include "inspect/inspect.h"

enum { NAME_SHOWN = 200 };

/* ---- graphs ---------------------------------------------------------------------------------- */

/* What a node makes, with its shape: a tensor, a live integer, or a list of them. */
static void put_result(struct out *o, const struct vkgraph *g, uint32_t id) {
  struct vk_value v = vkgraph_value(g, id);
  if (v.kind == VK_VALUE_LIST) {
    out_put(o, "[");
    for (uint32_t i = 0; i < v.items.n; i++) {
      if (i) out_put(o, ", ");
      put_result(o, g, fb_u32_at(v.items, i)); /* no list: one level only */
    }
    out_put(o, "]");
    return;
  }
  put_vk_arg(o, g, id);
  if (v.kind != VK_TENSOR || v.tensor.constant_id >= 0) return;
  struct inspect_shape s = shape_of_vk(&v);
  out_put(o, " ");
  put_shape(o, &s);
}

static void put_node(struct out *o, const struct vkgraph *g, uint32_t i) {
  struct vk_call call = vkgraph_call(g, i);
  out_put(o, "    %4u  ", i);
  put_result(o, g, fb_u32_at(call.args, call.args.n - 1));
  out_put(o, " = ");
  out_text(o, call.name, NAME_SHOWN);
  out_put(o, "(");
  for (uint32_t k = 0; k + 1 < call.args.n; k++) {
    if (k) out_put(o, ", ");
    put_vk_arg(o, g, fb_u32_at(call.args, k));
  }
  out_put(o, ")\n");
}

static void put_border(struct out *o, const struct vkgraph *g, const char *what,
                       struct fb_vec ids) {
  for (uint32_t i = 0; i < ids.n; i++) {
    out_put(o, "    %4s  ", what);
    put_result(o, g, fb_u32_at(ids, i));
    out_put(o, "\n");
  }
}

static void put_delegate(struct out *o, const struct inspect_delegate *d) {
  if (!d->is_graph) return;
  put_border(o, &d->vk, "in", d->vk.inputs);
  for (uint32_t i = 0; i < d->vk.n_calls; i++) put_node(o, &d->vk, i);
  put_border(o, &d->vk, "out", d->vk.outputs);
}

/* ---- programs -------------------------------------------------------------------------------- */

static void put_args(struct out *o, const struct inspect_method *m, struct fb_vec args) {
  out_put(o, "(");
  for (uint32_t i = 0; i < args.n; i++) {
    if (i) out_put(o, ", ");
    put_pte_arg(o, &m->m, fb_u32_at(args, i));
  }
  out_put(o, ")\n");
}

static void put_instruction(struct out *o, const struct inspect_method *m,
                            const struct pte_instruction *in) {
  struct inspect_delegate *delegate;
  char name[PTE_OPERATOR_SIZE];
  switch (in->kind) {
  case PTE_KERNEL_CALL:
    out_text(o, text_of(pte_operator_text(&m->m, in->index, name)), NAME_SHOWN);
    put_args(o, m, in->args);
    break;
  case PTE_DELEGATE_CALL:
    delegate = &m->delegates[in->index];
    out_put(o, "delegate %u, ", in->index);
    out_text(o, delegate->id, NAME_SHOWN);
    put_args(o, m, in->args);
    if (!delegate->shown) put_delegate(o, delegate);
    delegate->shown = true;
    break;
  case PTE_MOVE_CALL:
    out_put(o, "move v%u to v%u\n", in->value, in->to);
    break;
  case PTE_JUMP_FALSE_CALL:
    out_put(o, "unless v%u go to %u\n", in->value, in->destination);
    break;
  case PTE_FREE_CALL:
    out_put(o, "free v%u\n", in->value);
    break;
  }
}

static void put_values(struct out *o, const struct inspect_method *m, const char *what,
                       struct fb_vec ids) {
  for (uint32_t i = 0; i < ids.n; i++) {
    uint32_t id = fb_u32_at(ids, i);
    out_put(o, "  %4s  v%u ", what, id);
    put_pte_value(o, &m->m, id);
    out_put(o, "\n");
  }
}

static void put_method(struct out *o, const struct inspect_method *m) {
  out_put(o, "method ");
  out_text(o, m->name, NAME_SHOWN);
  out_put(o, "\n");
  put_values(o, m, "in", m->m.inputs);
  for (uint32_t chain = 0; chain < m->m.n_chains; chain++)
    for (uint32_t i = 0; i < pte_n_instructions(&m->m, chain); i++) {
      struct pte_instruction in = pte_instruction(&m->m, chain, i);
      out_put(o, "  %4u  ", i);
      put_instruction(o, m, &in);
    }
  put_values(o, m, "out", m->m.outputs);
}

void inspect_graph(const struct inspect *x, struct out *o) {
  if (x->kind == INSPECT_DATA) inspect_text(x, o); /* it has keys and no graph */
  for (uint32_t i = 0; i < x->n_methods; i++) {
    if (x->kind == INSPECT_GRAPH)
      put_delegate(o, &x->methods[i].delegates[0]);
    else
      put_method(o, &x->methods[i]);
  }
}
