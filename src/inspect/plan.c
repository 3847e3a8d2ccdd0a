/* --plan: one call of a method planned as a device of the given kind would, without one. Every node
 * on a line of its own, with what it dispatches: kernel row, workgroups, parameters. */
#include "inspect/inspect.h"

#include "base/checked.h"
#include "gpu/config.h"
#include "graph/op.h"
#include "run/convert.h"

#include <inttypes.h>
#include <stdio.h>

enum { NAME_WIDTH = 40, ROW_WIDTH = 32, GRID_WIDTH = 12 };

/* ---- devices --------------------------------------------------------------------------------- */

static uint32_t least(uint64_t cap, uint32_t limit) { return cap < limit ? (uint32_t)cap : limit; }

sconce_status inspect_caps(const char *device, struct caps *caps, sconce_error *err) {
  const bool full = device && strcmp(device, "full") == 0;
  if (device && !full && strcmp(device, "default") != 0)
    return fail(err, SCONCE_BAD_ARGUMENT, "device '%s' is unknown: default or full", device);
  struct gpu_config config;
  TRY(config_read(&config, full ? "" : "f16,subgroups,matrix", full ? "" : "default", NULL, err));
  const uint64_t binding = config.cap[LIMIT_STORAGE_BINDING], buffer = config.cap[LIMIT_BUFFER];
  *caps = (struct caps){
      .f16 = !config.no_f16,
      .subgroups = !config.no_subgroups,
      .fast = config.precision == PRECISION_FAST && !config.no_f16,
      .max_storage_binding = binding < UINT32_C(1) << 31 ? binding : (UINT32_C(1) << 31) - 4,
      .max_buffer = buffer < UINT64_C(1) << 40 ? buffer : UINT64_C(1) << 40,
      .max_storage_buffers = least(config.cap[LIMIT_STORAGE_BUFFERS], 16),
      .max_workgroup_bytes = least(config.cap[LIMIT_WORKGROUP_BYTES], 32768),
      .max_invocations = least(config.cap[LIMIT_INVOCATIONS], 1024),
      .max_workgroups = least(config.cap[LIMIT_WORKGROUPS], 65535),
      .storage_alignment = full ? 32 : 256,
  };
  if (caps->subgroups) caps->subgroup_min = caps->subgroup_max = 32;
  return SCONCE_OK;
}

/* ---- a call ---------------------------------------------------------------------------------- */

struct call {
  struct inspect *x;
  struct graph *g;
  const void *zeros; /* (HOST_READ_MAX bytes) */
  sconce_error *err;
};

/* Dims are compared from the last one on: what is missing or too much in front must be 1. */
static sconce_status fit_dims(struct call *c, const sconce_tensor *given, uint32_t rank,
                              uint32_t *dims) {
  for (uint32_t d = 0; d < given->rank || d < rank; d++) {
    uint32_t dim = d < given->rank ? given->dims[given->rank - 1 - d] : 1;
    if (d < rank)
      dims[rank - 1 - d] = dim;
    else if (dim != 1)
      return fail(c->err, SCONCE_BAD_ARGUMENT, "rank %u, given %u", rank, given->rank);
  }
  return SCONCE_OK;
}

/* Whole numbers of the caller as what the graph computes with; floats never decide a plan. */
static sconce_status set_elements(struct call *c, struct tensor *t, const sconce_tensor *given) {
  const uint64_t nbytes = tensor_nbytes(t);
  t->host = nbytes <= HOST_READ_MAX ? c->zeros : NULL;
  if (!given || !given->data || t->dtype != VK_INT32 || !t->host) return SCONCE_OK;
  if (given->size != tensor_numel(t) * sconce_dtype_size(given->dtype))
    return fail(c->err, SCONCE_BAD_ARGUMENT, "%zu bytes of data, its dims need %" PRIu64,
                given->size, tensor_numel(t) * (uint64_t)sconce_dtype_size(given->dtype));
  void *elements = arena_alloc(&c->x->arena, (size_t)nbytes + 1, 1, 8);
  if (!elements) return fail(c->err, SCONCE_NO_MEMORY, "no memory for %" PRIu64 " bytes", nbytes);
  t->host = elements;
  return convert_in(t->dtype, elements, given->dtype, given->data, tensor_numel(t), c->err);
}

static sconce_status give_number(struct call *c, uint32_t id, const sconce_tensor *given) {
  int32_t number;
  uint64_t numel = 1;
  for (uint32_t d = 0; d < given->rank; d++) numel *= given->dims[d];
  if (c->g->values[id].kind != VK_SYMINT)
    return fail(c->err, SCONCE_BAD_ARGUMENT, "it was fixed when the file was made");
  if (!given->data || numel != 1 || given->size != sconce_dtype_size(given->dtype))
    return fail(c->err, SCONCE_BAD_ARGUMENT, "it is one integer");
  TRY(convert_in(VK_INT32, &number, given->dtype, given->data, 1, c->err));
  return graph_set_symint(c->g, id, number, c->err);
}

static sconce_status set_input(struct call *c, uint32_t id, const sconce_tensor *given) {
  struct value *v = &c->g->values[id];
  if (v->kind != VK_TENSOR) return given ? give_number(c, id, given) : SCONCE_OK;
  uint32_t dims[RANK_MAX];
  memcpy(dims, v->tensor.dim_max, sizeof dims);
  if (given) TRY(fit_dims(c, given, v->tensor.rank, dims));
  TRY(graph_set_dims(c->g, id, dims, v->tensor.rank, c->err));
  return set_elements(c, &v->tensor, given);
}

static sconce_status plan_call(struct call *c, const sconce_inspect_desc *desc) {
  if (desc->n_inputs > c->g->n_inputs)
    return fail(c->err, SCONCE_BAD_ARGUMENT, "%u inputs are given, the method has %u",
                desc->n_inputs, c->g->n_inputs);
  graph_begin(c->g);
  for (uint32_t i = 0; i < c->g->n_inputs; i++) {
    const sconce_tensor *given = i < desc->n_inputs ? &desc->inputs[i] : NULL;
    sconce_status status = set_input(c, c->g->inputs[i], given);
    if (status == SCONCE_OK) continue;
    error_prefix(c->err, "input %u: ", i);
    return status;
  }
  TRY(graph_plan_unseen(c->g, c->err));
  return graph_check(c->g, c->err);
}

sconce_status inspect_call(struct inspect *x, struct graph *g, const sconce_inspect_desc *desc,
                           sconce_error *err) {
  const void *zeros = arena_alloc(&x->arena, HOST_READ_MAX, 1, 8);
  if (!zeros) return fail(err, SCONCE_NO_MEMORY, "no memory for a call");
  struct call call = {.x = x, .g = g, .zeros = zeros, .err = err};
  return plan_call(&call, desc);
}

uint32_t inspect_dispatches(const struct graph *g) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < g->n_nodes; i++) n += g->nodes[i].n_records;
  return n;
}

/* ---- text ------------------------------------------------------------------------------------ */

static void put_word(struct out *o, char kind, const uint8_t *p) {
  uint32_t u;
  int32_t i;
  float f;
  memcpy(&u, p, 4);
  memcpy(&i, p, 4);
  memcpy(&f, p, 4);
  if (kind == 'f')
    out_put(o, "%.7g", (double)f);
  else if (kind == 'i')
    out_put(o, "%" PRId32, i);
  else
    out_put(o, "%" PRIu32, u);
}

/* "n=6 eps=1e-05 dims=2,3": zeros at the end of an array and words that only pad are left out. */
static void put_params(struct out *o, const struct record *r) {
  const uint8_t *p = r->params;
  struct wgsl_field field;
  for (const char *fields = r->row->wgsl->fields; wgsl_next_field(&fields, &field);
       p += 4 * field.n) {
    uint32_t shown = field.n;
    static const uint8_t zero[4];
    while (shown > 1 && memcmp(p + 4 * (shown - 1), zero, 4) == 0) shown--;
    if (strncmp(field.name.data, "pad", 3) == 0) continue;
    out_put(o, " %.*s=", TEXT(field.name));
    for (uint32_t k = 0; k < shown; k++) {
      if (k) out_put(o, ",");
      put_word(o, field.kind, p + 4 * k);
    }
  }
}

static void put_record(struct out *o, const struct record *r, bool params) {
  char label[120], grid[40];
  snprintf(label, sizeof label, "%s/%s", r->row->wgsl->name, r->row->name);
  snprintf(grid, sizeof grid, "%ux%ux%u", r->grid[0], r->grid[1], r->grid[2]);
  out_put(o, "  %-*s  ", ROW_WIDTH, label);
  if (params && r->params_size) {
    out_put(o, "%-*s ", GRID_WIDTH, grid);
    put_params(o, r);
  } else {
    out_put(o, "%s", grid);
  }
  out_put(o, "\n");
}

static void put_node(struct out *o, const struct node *n, bool params) {
  out_put(o, "%5u  ", n->index);
  if (n->n_records == 0) {
    out_put(o, "%s\n", n->name);
    return;
  }
  out_put(o, "%-*s", NAME_WIDTH, n->name);
  for (uint32_t i = 0; i < n->n_records; i++) {
    if (i) out_put(o, "%*s", NAME_WIDTH + 7, "");
    put_record(o, &n->records[i], params);
  }
}

static void put_inputs(struct out *o, const struct graph *g) {
  for (uint32_t i = 0; i < g->n_inputs; i++) {
    const struct value *v = &g->values[g->inputs[i]];
    char text[120];
    out_put(o, "  input %u  ", i);
    if (v->kind == VK_TENSOR)
      out_put(o, "%s\n", tensor_text(&v->tensor, text));
    else if (v->kind == VK_SYMINT || v->kind == VK_INT)
      out_put(o, "%" PRId64 "\n", v->i);
    else
      out_put(o, "%s\n", vk_kind_name(v->kind));
  }
}

static void put_plan(struct out *o, const struct graph *g, const struct inspect_method *m,
                     const sconce_inspect_desc *desc) {
  uint64_t bytes[BUFFER_TRANSIENT + 1] = {0};
  out_put(o, "plan");
  if (m->name.size) {
    out_put(o, " of ");
    out_text(o, m->name, 200);
  }
  out_put(o, ", device %s\n", desc->device ? desc->device : "default");
  put_inputs(o, g);
  for (uint32_t i = 0; i < g->n_nodes; i++) put_node(o, &g->nodes[i], !desc->no_params);
  for (uint32_t i = 0; i < g->n_buffers; i++) bytes[g->buffers[i].kind] += g->buffers[i].size;
  out_put(o,
          "%u nodes, %u dispatches, GPU memory %" PRIu64 " bytes persistent, %" PRIu64
          " transient\n",
          g->n_nodes, inspect_dispatches(g), bytes[BUFFER_CONSTANT] + bytes[BUFFER_STATE],
          bytes[BUFFER_INPUT] + bytes[BUFFER_OUTPUT] + bytes[BUFFER_TRANSIENT]);
}

sconce_status inspect_plan(struct inspect *x, const sconce_inspect_desc *desc, struct out *o,
                           sconce_error *err) {
  if (x->kind == INSPECT_DATA) return fail(err, SCONCE_BAD_ARGUMENT, "a data file has no plan");
  struct inspect_method *m = &x->methods[0];
  struct caps caps;
  TRY(inspect_caps(desc->device, &caps, err));
  TRY(inspect_ready(x, m, err));
  struct graph g;
  graph_init(&g, &x->arena.allocator, &caps);
  sconce_status status = inspect_build(x, m, &g, err);
  if (status == SCONCE_OK) status = inspect_call(x, &g, desc, err);
  if (status == SCONCE_OK) put_plan(o, &g, m, desc);
  graph_free(&g);
  return status;
}
