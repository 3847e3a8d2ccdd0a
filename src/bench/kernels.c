/* Times every row of a case's tables: see kernels.h.
 *
 * The graph is built and loaded once and planned anew for each row. A chain is many runs of its
 * dispatches in one compute pass; all of them write the same output, so that WebGPU's barriers keep
 * them apart. Weights and caches exist in copies that the runs take in turn, since in a model
 * nothing of them is left in a cache when the next token comes. */
#include "bench/kernels.h"

#include "base/checked.h"
#include "base/half.h"
#include "base/os.h"
#include "graph/op.h"
#include "run/device.h"
#include "run/exec.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  CHAIN = 64, /* runs, if they are short */
  COPIES_MAX = 256,
  REPEATS_MAX = 101,
  PART = 4 << 20, /* bytes of one write */
};
/* An H200's L2 has 50 MiB. */
static const uint64_t ROTATION = 128u << 20;
/* All chains of a row: a long row runs fewer times. */
static const double ROW_US = 100e3, ROW_QUICK_US = 20e3;

struct bench {
  sconce_device *device;
  struct gpu *gpu;
  const sconce_kernels_desc *desc;
  const struct kernel_case *c;
  const struct op *op; /* whose tables are tried */
  struct case_builder built;
  struct op_test *t;          /* the one in built */
  struct gpu_buffer **copies; /* (n_copies - 1, buffers of the graph) */
  uint32_t n_copies;
  struct gpu_buffer *params; /* a slot per dispatch */
  uint32_t cap_params;
  uint8_t *want[OP_BORDERS]; /* what the plain row gave */
  uint32_t next;             /* copy whose turn it is */
};

/* A row bound to every copy. */
struct bound_row {
  struct arena arena;
  uint32_t n_dispatches;   /* of a run */
  struct gpu_dispatch *of; /* (n_copies, n_dispatches) */
  uint32_t n_groups;
  struct gpu_dispatch *chain; /* (CHAIN, n_dispatches) */
};

static double us_since(uint64_t start_ns) { return (double)(os_clock_ns() - start_ns) * 1e-3; }

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* ---- comparing ------------------------------------------------------------------------------- */

double measure_error(enum vk_dtype dtype, const void *got, const void *want, uint64_t n) {
  double most = 0, worst = 0;
  for (uint64_t i = 0; i < n; i++) {
    double g, w;
    if (dtype == VK_FLOAT16) {
      g = (double)half_to_float(((const uint16_t *)got)[i]);
      w = (double)half_to_float(((const uint16_t *)want)[i]);
    } else {
      g = (double)((const float *)got)[i];
      w = (double)((const float *)want)[i];
    }
    if (!isfinite(g) || !isfinite(w)) return INFINITY;
    if (fabs(w) > most) most = fabs(w);
    if (fabs(g - w) > worst) worst = fabs(g - w);
  }
  if (n == 0) return 0;
  return most > 0 ? worst / most : INFINITY; /* a reference of zeros would check nothing */
}

/* The outputs as they are on the device, against the plain row's. */
static sconce_status compare(struct bench *b, double *error, sconce_error *err) {
  const struct graph *g = &b->t->graph;
  TRY(exec_read(&b->t->exec, err));
  *error = 0;
  for (uint32_t i = 0; i < g->n_outputs; i++) {
    const struct tensor *t = &g->values[g->outputs[i]].tensor;
    double e = measure_error(t->dtype, exec_output(&b->t->exec, i), b->want[i], tensor_numel(t));
    if (!(e <= *error)) *error = e;
  }
  return SCONCE_OK;
}

/* Nothing that an earlier row left behind may pass for this one's result: NaN everywhere. */
static sconce_status poison(struct bench *b, struct arena *arena, sconce_error *err) {
  const struct graph *g = &b->t->graph;
  uint8_t *nans = arena_alloc(arena, PART, 1, 8);
  if (!nans) return fail(err, SCONCE_NO_MEMORY, "no memory for %d bytes", PART);
  memset(nans, 0xff, PART);
  for (uint32_t i = 0; i < g->n_buffers; i++) {
    enum buffer_kind kind = g->buffers[i].kind;
    if (kind != BUFFER_OUTPUT && kind != BUFFER_TRANSIENT) continue;
    for (uint64_t at = 0; at < g->buffers[i].size; at += PART) {
      uint64_t left = g->buffers[i].size - at;
      TRY(gpu_write(b->t->exec.buffers[i], at, nans, left < PART ? (size_t)left : PART, err));
    }
  }
  return SCONCE_OK;
}

/* ---- planning -------------------------------------------------------------------------------- */

static sconce_status plan_with(struct bench *b, const char *force, sconce_error *err) {
  b->t->graph.force = force;
  for (uint32_t i = 0; i < b->t->graph.n_nodes; i++) b->t->graph.nodes[i].stale = true;
  graph_begin(&b->t->graph);
  TRY(graph_plan(&b->t->graph, err));
  return graph_check(&b->t->graph, err);
}

/* The table's row that this one is, perhaps with fixed parameters; NULL: it is none of them. */
static const struct kernel *in_table(const struct kernel *table, const struct kernel *row) {
  for (; table->name; table++)
    if (table->wgsl == row->wgsl && table->name == row->name) return table;
  return NULL;
}

/* The row of the tried tables that the plan took; NULL: none of them. */
static const struct kernel *row_taken(const struct bench *b) {
  for (uint32_t i = 0; i < b->t->graph.n_nodes; i++)
    for (uint32_t k = 0; k < b->t->graph.nodes[i].n_records; k++)
      for (uint32_t t = 0; t < b->c->n_tables && b->op->tables[t]; t++) {
        const struct kernel *row = in_table(b->op->tables[t], b->t->graph.nodes[i].records[k].row);
        if (row) return row;
      }
  return NULL;
}

/* Plans with this row where it fits. */
static sconce_status try_row(struct bench *b, const struct kernel *row, bool *fits,
                             sconce_error *err) {
  TRY(plan_with(b, row->name, err));
  *fits = row_taken(b) == row;
  return SCONCE_OK;
}

/* ---- loading --------------------------------------------------------------------------------- */

static bool is_copied(const struct bench *b, uint32_t buffer) {
  enum buffer_kind kind = b->t->graph.buffers[buffer].kind;
  return kind == BUFFER_CONSTANT || kind == BUFFER_STATE;
}

static sconce_status make_copy(struct bench *b, struct gpu_buffer **copy, sconce_error *err) {
  const struct graph *g = &b->t->graph;
  for (uint32_t i = 0; i < g->n_buffers; i++)
    if (!is_copied(b, i)) copy[i] = b->t->exec.buffers[i];
  for (uint32_t i = 0; i < g->n_buffers; i++) {
    if (!is_copied(b, i)) continue;
    TRY(gpu_buffer_open(b->gpu, GPU_WEIGHTS, g->buffers[i].size, "copy", &copy[i], err));
    struct gpu_copy whole = {
        .from = b->t->exec.buffers[i], .to_buffer = copy[i], .size = g->buffers[i].size};
    TRY(gpu_submit(b->gpu, &(struct gpu_batch){.copies = &whole, .n_copies = 1}, err));
  }
  return SCONCE_OK;
}

/* As many copies of what persists as make the rotation, or as fit the device. */
static sconce_status make_copies(struct bench *b, sconce_error *err) {
  const uint32_t n_buffers = b->t->graph.n_buffers;
  uint64_t bytes = b->built.bytes ? b->built.bytes : 1;
  uint64_t n = b->desc->quick ? 1 : div_up(ROTATION, bytes);
  if (n > COPIES_MAX) n = COPIES_MAX;
  b->copies = arena_new(&b->t->graph.arena, struct gpu_buffer *, (size_t)n * n_buffers);
  if (!b->copies) return fail(err, SCONCE_NO_MEMORY, "no memory for %u copies", (unsigned)n);
  for (b->n_copies = 1; b->n_copies < n; b->n_copies++) {
    sconce_status status = make_copy(b, b->copies + (size_t)(b->n_copies - 1) * n_buffers, err);
    if (status == SCONCE_NO_GPU_MEMORY) return SCONCE_OK;
    TRY(status);
  }
  return gpu_finish(b->gpu, err);
}

/* Runs the graph as it is planned, through the same calls that a method makes, and keeps what it
 * gives for `to`. */
static sconce_status keep_outputs(struct bench *b, struct bench *to, sconce_error *err) {
  bool done;
  TRY(exec_begin(&b->t->exec, &(struct take){.token = NO_VALUE}, err));
  TRY(exec_poll(&b->t->exec, true, &done, err));
  for (uint32_t i = 0; i < b->t->graph.n_outputs; i++) {
    const struct tensor *t = &b->t->graph.values[b->t->graph.outputs[i]].tensor;
    size_t size = (size_t)tensor_nbytes(t);
    to->want[i] = arena_alloc(&to->t->graph.arena, size, 1, 8);
    if (!to->want[i]) return fail(err, SCONCE_NO_MEMORY, "no memory for the outputs");
    memcpy(to->want[i], exec_output(&b->t->exec, i), size);
  }
  return SCONCE_OK;
}

static sconce_status load_graph(struct bench *b, const char *passes_off, sconce_error *err) {
  const sconce_allocator allocator = b->device->allocator;
  b->built = (struct case_builder){.c = b->c, .random = 2463534242u};
  b->t = &b->built.t;
  op_begin_on(b->t, b->gpu, &allocator);
  struct graph *g = &b->t->graph;
  g->passes_off = passes_off;
  b->c->build(&b->built);
  TRY(op_load(b->t, NULL, err));
  for (uint32_t i = 0; i < g->n_inputs; i++) {
    const struct tensor *t = &g->values[g->inputs[i]].tensor;
    TRY(exec_write(&b->t->exec, g->inputs[i], t->host, tensor_nbytes(t), err));
  }
  return SCONCE_OK;
}

/* A fused node has no plain row: its parts have. */
static sconce_status reference_of_parts(struct bench *b, sconce_error *err) {
  struct bench parts = {.device = b->device, .gpu = b->gpu, .desc = b->desc, .c = b->c};
  sconce_status status = load_graph(&parts, "all", err);
  const char *plain = b->c->dtype == VK_FLOAT16 ? "plain_f16" : "plain_f32";
  if (status == SCONCE_OK) status = plan_with(&parts, plain, err);
  if (status == SCONCE_OK) status = keep_outputs(&parts, b, err);
  op_end(parts.t);
  return status;
}

/* What the reference row computes. */
static sconce_status reference(struct bench *b, sconce_error *err) {
  bool fits = false;
  if (b->c->fused) return reference_of_parts(b, err);
  for (uint32_t t = 0; t < b->c->n_tables && b->op->tables[t] && !fits; t++)
    for (const struct kernel *row = b->op->tables[t]; row->name && !fits; row++)
      if (row->reference) TRY(try_row(b, row, &fits, err));
  if (!fits) return fail(err, SCONCE_UNSUPPORTED, "no reference row fits");
  return keep_outputs(b, b, err);
}

static sconce_status load(struct bench *b, sconce_error *err) {
  b->op = op_find(text_of(b->c->op));
  if (!b->op) return fail(err, SCONCE_UNSUPPORTED, "this build has no %s", b->c->op);
  TRY(load_graph(b, NULL, err));
  TRY(make_copies(b, err));
  return reference(b, err);
}

static void unload(struct bench *b) {
  for (uint64_t i = 0; b->copies && i < (uint64_t)b->n_copies * b->t->graph.n_buffers; i++)
    if (is_copied(b, (uint32_t)(i % b->t->graph.n_buffers))) gpu_buffer_close(b->copies[i]);
  gpu_buffer_close(b->params);
  op_end(b->t);
}

/* ---- binding --------------------------------------------------------------------------------- */

/* The graph's buffers with those of a copy among them. */
static struct gpu_buffer *const *buffers_of(const struct bench *b, uint32_t copy) {
  return copy ? b->copies + (size_t)(copy - 1) * b->t->graph.n_buffers : b->t->exec.buffers;
}

static sconce_status reserve_params(struct bench *b, uint32_t n, sconce_error *err) {
  if (n <= b->cap_params) return SCONCE_OK;
  gpu_buffer_close(b->params);
  b->params = NULL;
  b->cap_params = 0;
  TRY(gpu_buffer_open(b->gpu, GPU_PARAMS, (uint64_t)n * EXEC_SLOT, "params", &b->params, err));
  b->cap_params = n;
  return SCONCE_OK;
}

static sconce_status bind_row(struct bench *b, struct bound_row *r, sconce_error *err) {
  const struct graph *g = &b->t->graph;
  for (uint32_t i = 0; i < g->n_nodes; i++) r->n_dispatches += g->nodes[i].n_records;
  const uint32_t n = r->n_dispatches;
  r->of = arena_new(&r->arena, struct gpu_dispatch, (size_t)n * b->n_copies);
  r->chain = arena_new(&r->arena, struct gpu_dispatch, (size_t)n * CHAIN);
  if (!r->of || !r->chain) return fail(err, SCONCE_NO_MEMORY, "no memory for a chain");
  TRY(reserve_params(b, n, err));
  for (uint32_t c = 0; c < b->n_copies; c++)
    for (uint32_t i = 0, slot = 0; i < g->n_nodes; i++)
      for (uint32_t k = 0; k < g->nodes[i].n_records; k++, slot++) {
        const struct record *record = &g->nodes[i].records[k];
        if (c == 0 && record->params_size)
          TRY(gpu_write(b->params, (uint64_t)slot * EXEC_SLOT, record->params, record->params_size,
                        err));
        struct gpu_dispatch *d = &r->of[r->n_groups];
        TRY(exec_group(&b->t->exec, buffers_of(b, c), record, b->params, slot, &d->group, err));
        memcpy(d->grid, record->grid, sizeof d->grid);
        r->n_groups++;
      }
  return SCONCE_OK;
}

static void unbind_row(struct bound_row *r) {
  for (uint32_t i = 0; i < r->n_groups; i++) gpu_group_close(r->of[i].group);
  arena_free(&r->arena);
}

/* ---- timing ---------------------------------------------------------------------------------- */

/* One chain of `runs`: microseconds of a run, by the device's clock where it has one. */
static sconce_status run_chain(struct bench *b, struct bound_row *r, uint32_t runs, double *us,
                               sconce_error *err) {
  const uint32_t n = r->n_dispatches;
  for (uint32_t i = 0; i < runs; i++, b->next = (b->next + 1) % b->n_copies)
    memcpy(r->chain + (size_t)i * n, r->of + (size_t)b->next * n, n * sizeof *r->chain);
  struct gpu_batch batch = {.dispatches = r->chain, .n_dispatches = runs * n};
  uint64_t times[2] = {0}, start = os_clock_ns();
  if (gpu_info(b->gpu)->timestamps) {
    TRY(gpu_profile(b->gpu, &batch, GPU_TIME_WHOLE, times, err));
    *us = (double)(times[1] - times[0]) * 1e-3 / runs;
  } else {
    TRY(gpu_submit(b->gpu, &batch, err));
    TRY(gpu_finish(b->gpu, err));
    *us = us_since(start) / runs;
  }
  return SCONCE_OK;
}

static sconce_status time_row(struct bench *b, struct bound_row *r, sconce_kernel_row *out,
                              sconce_error *err) {
  double us[REPEATS_MAX], once;
  uint32_t repeats = b->desc->repeats ? b->desc->repeats : 5;
  TRY(run_chain(b, r, 1, &once, err)); /* drivers compile late */
  uint64_t start = os_clock_ns();
  TRY(run_chain(b, r, 1, &once, err));
  once = us_since(start);
  const double room = b->desc->quick ? ROW_QUICK_US : ROW_US;
  double runs = room / repeats / once;
  out->runs = runs<1 ? 1 : runs>(double) CHAIN ? CHAIN : (uint32_t)runs;
  if (repeats * once > room) repeats = room > once ? (uint32_t)(room / once) : 1;
  if (repeats * once <= room) TRY(run_chain(b, r, out->runs, &us[0], err)); /* clocks go up */
  for (uint32_t i = 0; i < repeats; i++) TRY(run_chain(b, r, out->runs, &us[i], err));
  qsort(us, repeats, sizeof *us, by_value);
  out->us = us[repeats / 2];
  return SCONCE_OK;
}

/* As it is planned. The output that is compared is the last chain's last run's. */
static sconce_status measure_row(struct bench *b, double tolerance, sconce_kernel_row *out,
                                 sconce_error *err) {
  struct bound_row row = {0};
  arena_init(&row.arena, &b->t->graph.arena.allocator);
  sconce_status status = bind_row(b, &row, err);
  if (status == SCONCE_OK) status = poison(b, &row.arena, err);
  if (status == SCONCE_OK) status = time_row(b, &row, out, err);
  if (status == SCONCE_OK) status = compare(b, &out->error, err);
  out->dispatches = row.n_dispatches;
  out->wrong = !(out->error <= tolerance);
  unbind_row(&row);
  return status;
}

/* ---- cases ----------------------------------------------------------------------------------- */

/* Fast rows are held to what models are held to then. */
static double tolerance_of(const struct bench *b, const struct kernel *row) {
  const double fast = 2e-3;
  return row->needs & NEEDS_FAST && b->c->tolerance < fast ? fast : b->c->tolerance;
}

static sconce_status measure_rows(struct bench *b, sconce_kernel_row *rows, uint32_t *n,
                                  sconce_error *err) {
  TRY(plan_with(b, NULL, err));
  const struct kernel *chosen = row_taken(b);
  for (uint32_t t = 0; t < b->c->n_tables && b->op->tables[t]; t++)
    for (const struct kernel *row = b->op->tables[t]; row->name && *n < CASE_ROWS; row++) {
      bool fits;
      TRY(try_row(b, row, &fits, err));
      if (!fits) continue;
      char label[120];
      int size = snprintf(label, sizeof label, "%s/%s", row->wgsl->name, row->name);
      rows[*n] = (sconce_kernel_row){.chosen = row == chosen};
      rows[*n].label = arena_copy_text(&b->t->graph.arena, label, (size_t)size);
      if (!rows[*n].label) return fail(err, SCONCE_NO_MEMORY, "no memory for a label");
      sconce_status status = measure_row(b, tolerance_of(b, row), &rows[*n], err);
      if (status != SCONCE_OK) {
        error_prefix(err, "%s: ", label);
        return status;
      }
      ++*n;
    }
  return SCONCE_OK;
}

sconce_status measure_case(sconce_device *device, const struct kernel_case *c,
                           const sconce_kernels_desc *desc, sconce_error *err) {
  struct bench b = {.device = device, .gpu = device->gpu, .desc = desc, .c = c};
  sconce_kernel_row rows[CASE_ROWS];
  sconce_kernel_case out = {.name = c->name, .matrix = c->matrix, .tolerance = c->tolerance};
  out.device_clock = gpu_info(device->gpu)->timestamps;
  out.rows = rows;
  sconce_status status = load(&b, &out.why);
  if (status == SCONCE_OK) status = measure_rows(&b, rows, &out.n_rows, &out.why);
  if (status == SCONCE_OK) out.why = (sconce_error){0};
  out.bytes = b.built.bytes;
  out.rotation = out.bytes * b.n_copies;
  out.flops = b.built.flops;
  if (status == SCONCE_NO_MEMORY || status == SCONCE_DEVICE_LOST) {
    if (err) *err = out.why;
  } else {
    status = SCONCE_OK;
    desc->each(desc->user, &out);
  }
  unload(&b);
  return status;
}

struct selection {
  sconce_device *device;
  const sconce_kernels_desc *desc;
};

static bool has_word(const char *name, const char *word, size_t size) {
  for (; *name; name++) {
    if (strncmp(name, word, size) != 0) continue;
    if (!memchr(word, '=', size) || name[size] == ' ' || name[size] == 0) return true;
  }
  return false;
}

/* Does the name contain every word of the filter? m=1 is not m=128. */
static bool passes(const char *name, const char *filter) {
  while (filter && *filter) {
    size_t n = strcspn(filter, " ");
    if (!has_word(name, filter, n)) return false;
    filter += n + (filter[n] != 0);
  }
  return true;
}

static sconce_status measure_selected(void *user, const struct kernel_case *c, sconce_error *err) {
  const struct selection *s = user;
  if ((s->desc->quick && !c->quick) || !passes(c->name, s->desc->filter)) return SCONCE_OK;
  return measure_case(s->device, c, s->desc, err);
}

sconce_status sconce_measure_kernels(sconce_device *device, const sconce_kernels_desc *desc,
                                     sconce_error *err) {
  if (!device || !desc || !desc->each)
    return fail(err, SCONCE_BAD_ARGUMENT, "device, desc or each is NULL");
  if (desc->repeats > REPEATS_MAX)
    return fail(err, SCONCE_BAD_ARGUMENT, "%u repeats, at most %d", desc->repeats, REPEATS_MAX);
  struct selection s = {device, desc};
  return cases_each(measure_selected, &s, err);
}
