/* --dot: the same chain for Graphviz. Operators are boxes, constants small boxes, shapes stand on
 * the edges; a delegate is a cluster, and edges cross its border where values do. */
#include "inspect/inspect.h"

#include "graph/op.h"

/* Graphviz takes minutes for less than DRAWN_MAX nodes, and nobody reads them. */
enum { NAME_SHOWN = 80, LIST_SHOWN = 256, DRAWN_MAX = 20000 };

/* Who made each value: a node's number + 1, or 0 for nobody yet. */
struct drawing {
  struct out *o;
  uint32_t n_nodes;
  uint32_t *made;              /* of the program's values */
  uint32_t condition;          /* who made what the last jump looked at */
  bool hide_nodes, hide_edges; /* this pass counts them only */
};

/* ---- nodes and edges ------------------------------------------------------------------------- */

static uint32_t put_node(struct drawing *d, struct text label, const char *style) {
  uint32_t id = d->n_nodes++;
  if (d->hide_nodes) return id + 1;
  out_put(d->o, "  n%u [label=\"", id);
  out_dot(d->o, label, NAME_SHOWN);
  out_put(d->o, "\"%s];\n", style);
  return id + 1;
}

static uint32_t put_box(struct drawing *d, const char *what, const struct inspect_shape *s) {
  uint32_t id = d->n_nodes++;
  if (d->hide_nodes) return id + 1;
  out_put(d->o, "  n%u [label=\"%s%s", id, what, *what ? "\\n" : "");
  put_shape(d->o, s);
  out_put(d->o, "\"%s];\n",
          *what ? " shape=ellipse"
                : " shape=box fontsize=8 height=0.2 margin=0.04 style=filled fillcolor=gray92");
  return id + 1;
}

static void put_edge(struct drawing *d, uint32_t from, uint32_t to, const struct inspect_shape *s) {
  if (d->hide_edges) return;
  out_put(d->o, "  n%u -> n%u", from - 1, to - 1);
  if (s) {
    out_put(d->o, " [label=\"");
    put_shape(d->o, s);
    out_put(d->o, "\"]");
  } else {
    out_put(d->o, " [style=dashed]"); /* a live integer, known to the host */
  }
  out_put(d->o, ";\n");
}

/* ---- graphs ---------------------------------------------------------------------------------- */

static void draw_use(struct drawing *d, const struct vkgraph *g, uint32_t *made, uint32_t id,
                     uint32_t node) {
  struct vk_value v = vkgraph_value(g, id);
  if (v.kind != VK_TENSOR && v.kind != VK_SYMINT) return; /* numbers are not drawn */
  struct inspect_shape s = shape_of_vk(&v);
  bool constant = v.kind == VK_TENSOR && v.tensor.constant_id >= 0;
  if (!made[id] && constant) made[id] = put_box(d, "", &s);
  if (!made[id]) return;
  if (constant && !d->hide_edges)
    out_put(d->o, "  n%u -> n%u [arrowsize=0.5 color=gray60];\n", made[id] - 1, node - 1);
  if (!constant) put_edge(d, made[id], node, v.kind == VK_TENSOR ? &s : NULL);
}

static void draw_call(struct drawing *d, const struct vkgraph *g, uint32_t *made, uint32_t i) {
  struct vk_call call = vkgraph_call(g, i);
  uint32_t node = put_node(d, call.name, "");
  const struct op *op = op_find(call.name);
  for (uint32_t k = 0; k < call.args.n; k++) {
    uint32_t id = fb_u32_at(call.args, k);
    struct vk_value v = vkgraph_value(g, id);
    bool list = v.kind == VK_VALUE_LIST, output = k + 1 == call.args.n;
    for (uint32_t j = 0; j < (list ? v.items.n : 1) && j < LIST_SHOWN; j++) {
      uint32_t item = list ? fb_u32_at(v.items, j) : id;
      if (output)
        made[item] = node;
      else
        draw_use(d, g, made, item, node);
      if (op && k < 32 && op->writes >> k & 1) made[item] = node; /* later readers see its bytes */
    }
  }
}

/* A border that does not fit one to one (the exporter drops inputs that nobody reads) is drawn as
 * the graph's own. */
static void draw_inputs(struct drawing *d, const struct inspect_delegate *x, struct fb_vec args,
                        uint32_t *made) {
  const struct vkgraph *g = &x->vk;
  bool fits = args.n == g->n_inputs + g->n_outputs;
  for (uint32_t i = 0; i < g->n_inputs; i++) {
    uint32_t id = fb_u32_at(g->inputs, i);
    struct vk_value v = vkgraph_value(g, id);
    struct inspect_shape s = shape_of_vk(&v);
    if (fits && d->made) made[id] = d->made[fb_u32_at(args, i)];
    if (made[id]) continue;
    made[id] = v.kind == VK_TENSOR ? put_box(d, "input", &s)
                                   : put_node(d, text_of("input\nSymInt"), " shape=ellipse");
  }
}

static sconce_status draw_graph(struct inspect *x, struct drawing *d,
                                const struct inspect_delegate *from, struct fb_vec args,
                                sconce_error *err) {
  const struct vkgraph *g = &from->vk;
  struct arena_mark start = arena_mark(&x->arena);
  uint32_t *made = arena_new(&x->arena, uint32_t, g->n_values);
  if (!made) return fail(err, SCONCE_NO_MEMORY, "no memory for %u values", g->n_values);
  draw_inputs(d, from, args, made);
  for (uint32_t i = 0; i < g->n_calls; i++) draw_call(d, g, made, i);
  for (uint32_t i = 0; i < g->n_outputs; i++) {
    uint32_t id = fb_u32_at(g->outputs, i);
    struct vk_value v = vkgraph_value(g, id);
    struct inspect_shape s = shape_of_vk(&v);
    if (!made[id] && v.kind == VK_TENSOR) made[id] = put_box(d, "", &s); /* a constant as output */
    if (d->made && args.n >= g->n_outputs) {
      if (!d->hide_edges) d->made[fb_u32_at(args, args.n - g->n_outputs + i)] = made[id];
      continue;
    }
    uint32_t end = put_node(d, text_of("output"), " shape=ellipse");
    if (made[id]) put_edge(d, made[id], end, v.kind == VK_TENSOR ? &s : NULL);
  }
  arena_rewind(&x->arena, start);
  return SCONCE_OK;
}

/* ---- programs -------------------------------------------------------------------------------- */

static void draw_program_use(struct drawing *d, const struct pte_method *m, uint32_t id,
                             uint32_t node) {
  struct pte_value v = pte_value(m, id);
  if (v.kind != PTE_TENSOR) {
    if (d->made[id]) put_edge(d, d->made[id], node, NULL);
    return;
  }
  struct inspect_shape s = shape_of_pte(&v);
  if (!d->made[id]) d->made[id] = put_box(d, "", &s);
  if (d->made[id] != node) put_edge(d, d->made[id], node, &s);
}

/* A kernel's outputs come last: the out argument, and again as what it returns. */
static void draw_kernel(struct drawing *d, const struct pte_method *m,
                        const struct pte_instruction *in) {
  char name[PTE_OPERATOR_SIZE];
  uint32_t n = in->args.n;
  uint32_t node = put_node(d, text_of(pte_operator_text(m, in->index, name)), " style=rounded");
  if (n == 0) return;
  uint32_t out = fb_u32_at(in->args, n - 1);
  for (uint32_t i = 0; i + 1 < n; i++) {
    uint32_t id = fb_u32_at(in->args, i);
    struct pte_value v = pte_value(m, id);
    bool list = v.kind == PTE_TENSOR_LIST || v.kind == PTE_OPTIONAL_TENSOR_LIST;
    if (id == out && !(d->made[id] && i + 2 < n)) continue;
    for (uint32_t k = 0; k < (list ? v.items.n : 1) && k < LIST_SHOWN; k++) {
      int64_t item = list ? pte_list_item(&v, k) : id;
      if (item >= 0) draw_program_use(d, m, (uint32_t)item, node);
    }
  }
  d->made[out] = node;
  struct pte_value v = pte_value(m, out);
  for (uint32_t k = 0; v.kind == PTE_TENSOR_LIST && k < v.items.n && k < LIST_SHOWN; k++)
    d->made[pte_list_item(&v, k)] = node;
}

static sconce_status draw_delegate(struct inspect *x, struct drawing *d,
                                   const struct inspect_method *m, const struct pte_instruction *in,
                                   sconce_error *err) {
  const struct inspect_delegate *from = &m->delegates[in->index];
  if (from->is_graph) {
    /* An edge puts both its ends into the cluster that it is written in: nodes come first. */
    uint32_t first = d->n_nodes;
    out_put(d->o, "  subgraph cluster_%u { label=\"", d->n_nodes);
    out_dot(d->o, from->id, NAME_SHOWN);
    out_put(d->o, "\"; color=gray70;\n");
    d->hide_edges = true;
    TRY(draw_graph(x, d, from, in->args, err));
    out_put(d->o, "  }\n");
    d->hide_edges = false;
    d->hide_nodes = true;
    d->n_nodes = first;
    TRY(draw_graph(x, d, from, in->args, err));
    d->hide_nodes = false;
    return SCONCE_OK;
  }
  /* Which arguments another backend reads and which it writes is not known: what exists is read. */
  uint32_t node = put_node(d, from->id, " shape=box3d");
  for (uint32_t i = 0; i < in->args.n; i++) {
    uint32_t id = fb_u32_at(in->args, i);
    if (d->made[id])
      draw_program_use(d, &m->m, id, node);
    else
      d->made[id] = node;
  }
  return SCONCE_OK;
}

/* A value that several moves make, in branches or around a loop, is one of them. */
static void draw_move(struct drawing *d, const struct pte_method *m,
                      const struct pte_instruction *in) {
  const uint32_t other = d->made[in->to], one = d->made[in->value];
  if (one) d->made[in->to] = one; /* else a constant's, which nothing here made */
  if (!one || !other || one == other) return;
  struct pte_value v = pte_value(m, in->to);
  struct inspect_shape s = shape_of_pte(&v);
  const uint32_t node = put_node(d, text_of("either"), " shape=diamond");
  put_edge(d, other, node, v.kind == PTE_TENSOR ? &s : NULL);
  put_edge(d, one, node, v.kind == PTE_TENSOR ? &s : NULL);
  if (d->condition) put_edge(d, d->condition, node, NULL);
  d->made[in->to] = node;
}

static sconce_status draw_code(struct inspect *x, struct drawing *d, const struct inspect_method *m,
                               sconce_error *err) {
  for (uint32_t chain = 0; chain < m->m.n_chains; chain++)
    for (uint32_t i = 0; i < pte_n_instructions(&m->m, chain); i++) {
      struct pte_instruction in = pte_instruction(&m->m, chain, i);
      if (in.kind == PTE_KERNEL_CALL) draw_kernel(d, &m->m, &in);
      if (in.kind == PTE_DELEGATE_CALL) TRY(draw_delegate(x, d, m, &in, err));
      if (in.kind == PTE_MOVE_CALL) draw_move(d, &m->m, &in);
      if (in.kind == PTE_JUMP_FALSE_CALL && d->made[in.value]) d->condition = d->made[in.value];
      if (d->n_nodes > DRAWN_MAX)
        return fail(err, SCONCE_UNSUPPORTED,
                    "a drawing of more than %d nodes: --graph writes them as text", DRAWN_MAX);
    }
  return SCONCE_OK;
}

static sconce_status draw_method(struct inspect *x, struct drawing *d,
                                 const struct inspect_method *m, sconce_error *err) {
  struct arena_mark start = arena_mark(&x->arena);
  d->condition = 0;
  d->made = arena_new(&x->arena, uint32_t, m->m.n_values);
  if (!d->made) return fail(err, SCONCE_NO_MEMORY, "no memory for %u values", m->m.n_values);
  for (uint32_t i = 0; i < m->m.n_inputs; i++) {
    uint32_t id = fb_u32_at(m->m.inputs, i);
    struct pte_value v = pte_value(&m->m, id);
    struct inspect_shape s = shape_of_pte(&v);
    d->made[id] = v.kind == PTE_TENSOR ? put_box(d, "input", &s)
                                       : put_node(d, text_of("input"), " shape=ellipse");
  }
  TRY(draw_code(x, d, m, err));
  for (uint32_t i = 0; i < m->m.n_outputs; i++)
    draw_program_use(d, &m->m, fb_u32_at(m->m.outputs, i),
                     put_node(d, text_of("output"), " shape=ellipse"));
  arena_rewind(&x->arena, start);
  return SCONCE_OK;
}

sconce_status inspect_dot(struct inspect *x, struct out *o, sconce_error *err) {
  struct drawing d = {.o = o};
  out_put(o, "digraph sconce {\n  graph [fontname=Helvetica fontsize=10];\n  node [shape=box "
             "fontname=Helvetica fontsize=10];\n"
             "  edge [fontname=Helvetica fontsize=8];\n");
  if (x->kind == INSPECT_GRAPH)
    TRY(draw_graph(x, &d, x->methods->delegates, (struct fb_vec){0}, err));
  for (uint32_t i = 0; x->kind == INSPECT_PROGRAM && i < x->n_methods; i++)
    if (!x->methods[i].is_constant) TRY(draw_method(x, &d, &x->methods[i], err));
  out_put(o, "}\n");
  return SCONCE_OK;
}
