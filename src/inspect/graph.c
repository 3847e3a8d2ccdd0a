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

/* What a kernel makes comes last; a copy into a row makes nothing. False: nothing. */
static bool result_of(const struct pte_method *m, const struct pte_instruction *in, uint32_t *id) {
  char name[PTE_OPERATOR_SIZE];
  if (in->args.n == 0) return false;
  *id = fb_u32_at(in->args, in->args.n - 1);
  const enum pte_kind kind = pte_value_kind(m, *id);
  if (kind != PTE_TENSOR && kind != PTE_INT && kind != PTE_BOOL && kind != PTE_DOUBLE) return false;
  return !text_is(text_of(pte_operator_text(m, in->index, name)),
                  "executorch_prim::et_copy_index.tensor");
}

/* Numbers that a kernel makes: what the file has for them is no more than where they begin. */
static void mark_live(const struct pte_method *m, bool *live) {
  for (uint32_t chain = 0; chain < m->n_chains; chain++)
    for (uint32_t i = 0; i < pte_n_instructions(m, chain); i++) {
      struct pte_instruction in = pte_instruction(m, chain, i);
      if (in.kind == PTE_MOVE_CALL) live[in.to] = true;
      uint32_t made;
      if (in.kind == PTE_KERNEL_CALL && result_of(m, &in, &made)) live[made] = true;
    }
}

/* A tensor by its number; one that is made, or has bytes in a file, with its shape. */
static void put_value(struct out *o, const struct inspect_method *m, const bool *live, uint32_t id,
                      bool made) {
  struct pte_value v = pte_value(&m->m, id);
  struct extent bytes = {0};
  if (live[id])
    out_put(o, "v%u", id);
  else
    put_pte_arg(o, &m->m, id);
  if (v.kind != PTE_TENSOR) return;
  const bool stored =
      v.tensor.external || (pte_tensor_bytes(m->m.pte, &v.tensor, &bytes) && bytes.size);
  struct inspect_shape s = shape_of_pte(&v);
  if (made || stored) out_put(o, " "), put_shape(o, &s);
}

/* What it makes stands before that once more for each of its "out" arguments. */
static void put_kernel(struct out *o, const struct inspect_method *m, const bool *live,
                       const struct pte_instruction *in) {
  char name[PTE_OPERATOR_SIZE];
  uint32_t n = in->args.n, made;
  if (result_of(&m->m, in, &made)) {
    put_value(o, m, live, made, true);
    out_put(o, " = ");
    while (n && fb_u32_at(in->args, n - 1) == made) n--;
  }
  out_text(o, text_of(pte_operator_text(&m->m, in->index, name)), NAME_SHOWN);
  out_put(o, "(");
  for (uint32_t i = 0; i < n; i++) {
    if (i) out_put(o, ", ");
    put_value(o, m, live, fb_u32_at(in->args, i), false);
  }
  out_put(o, ")\n");
}

static void put_args(struct out *o, const struct inspect_method *m, struct fb_vec args) {
  out_put(o, "(");
  for (uint32_t i = 0; i < args.n; i++) {
    if (i) out_put(o, ", ");
    put_pte_arg(o, &m->m, fb_u32_at(args, i));
  }
  out_put(o, ")\n");
}

static void put_instruction(struct out *o, const struct inspect_method *m, const bool *live,
                            const struct pte_instruction *in) {
  struct inspect_delegate *delegate;
  switch (in->kind) {
  case PTE_KERNEL_CALL:
    put_kernel(o, m, live, in);
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

static void put_method(struct out *o, const struct inspect_method *m, const bool *live) {
  out_put(o, "method ");
  out_text(o, m->name, NAME_SHOWN);
  out_put(o, "\n");
  put_values(o, m, "in", m->m.inputs);
  for (uint32_t chain = 0; chain < m->m.n_chains; chain++)
    for (uint32_t i = 0; i < pte_n_instructions(&m->m, chain); i++) {
      struct pte_instruction in = pte_instruction(&m->m, chain, i);
      out_put(o, "  %4u  ", i);
      put_instruction(o, m, live, &in);
    }
  put_values(o, m, "out", m->m.outputs);
}

sconce_status inspect_graph(struct inspect *x, struct out *o, sconce_error *err) {
  if (x->kind == INSPECT_DATA) inspect_text(x, o); /* it has keys and no graph */
  if (x->kind == INSPECT_GRAPH) put_delegate(o, &x->methods[0].delegates[0]);
  for (uint32_t i = 0; x->kind == INSPECT_PROGRAM && i < x->n_methods; i++) {
    const struct inspect_method *m = &x->methods[i];
    struct arena_mark start = arena_mark(&x->arena);
    bool *live = arena_new(&x->arena, bool, m->m.n_values);
    if (!live) return fail(err, SCONCE_NO_MEMORY, "no memory for %u values", m->m.n_values);
    mark_live(&m->m, live);
    put_method(o, m, live);
    arena_rewind(&x->arena, start);
  }
  return SCONCE_OK;
}
