/* The one walker over kernel tables, and rows with fixed parameters: see kernel.h. */
#include "graph/kernel.h"

#include "graph/op.h"

#include <string.h>

bool caps_offer(const struct caps *caps, uint32_t needs) {
  return !((needs & NEEDS_F16 && !caps->f16) || (needs & NEEDS_SUBGROUPS && !caps->subgroups) ||
           (needs & NEEDS_MATRIX && !caps->matrix) ||
           (needs & NEEDS_WIDE && caps->subgroup_min < 32));
}

bool kernel_runs(const struct kernel *row, const struct caps *caps) {
  const uint32_t threads = row->threads ? row->threads : 64;
  const uint32_t buffers = row->wgsl->n_bindings - (row->wgsl->params_size ? 1 : 0);
  return caps_offer(caps, row->needs) && threads <= caps->max_invocations &&
         row->workgroup_bytes <= caps->max_workgroup_bytes && buffers <= caps->max_storage_buffers;
}

static bool is_for(const struct kernel *row, enum vk_dtype dtype) {
  return row->dtypes == ANY_DTYPE || (dtype < 32 && row->dtypes >> dtype & 1);
}

bool kernel_tables_run(const struct op *op, enum vk_dtype dtype, const struct caps *caps) {
  for (const struct kernel *const *table = op->tables; table && *table; table++) {
    const struct kernel *row = *table;
    while (row->name && !(is_for(row, dtype) && kernel_runs(row, caps))) row++;
    if (!row->name) return false;
  }
  return true;
}

/* ---- choosing -------------------------------------------------------------------------------- */

/* With subgroups of 8 threads lavapipe reduces a workgroup in 1.4 ms where workgroup memory takes
 * 0.5: such rows wait until nothing else fits, or a name asks for them. */
enum { SUBGROUP_USEFUL = 16 };
static bool is_second(const struct kernel *row, const struct caps *caps) {
  return row->needs & NEEDS_SUBGROUPS && caps->subgroup_min < SUBGROUP_USEFUL;
}

static bool is_listed(const struct op *op, const struct kernel *table) {
  for (const struct kernel *const *own = op->tables; own && *own; own++)
    if (*own == table) return true;
  return false;
}

const struct kernel *row_for(const struct plan *p, const struct node *n, const struct kernel *table,
                             enum vk_dtype dtype, const void *problem) {
  const struct caps *caps = &p->g->caps;
  const struct kernel *first = NULL;
  if (!is_listed(n->op, table)) return NULL;
  for (const struct kernel *row = table; row->name; row++) {
    if (!is_for(row, dtype) || !kernel_runs(row, caps)) continue;
    if (row->fits && !row->fits(problem)) continue;
    if (p->g->force && strcmp(p->g->force, row->name) == 0) return row;
    if (!first || (is_second(first, caps) && !is_second(row, caps))) first = row;
  }
  return first;
}

sconce_status choose(struct plan *p, const struct node *n, const struct kernel *table,
                     enum vk_dtype dtype, const void *problem, const struct kernel **row) {
  if (!is_listed(n->op, table))
    return fail(p->err, SCONCE_UNSUPPORTED, "operator '%s' does not list the table of kernel '%s'",
                n->op->name, table->wgsl->name);
  *row = row_for(p, n, table, dtype, problem);
  if (*row) return SCONCE_OK;
  return fail(p->err, SCONCE_UNSUPPORTED,
              "no row of kernel '%s' fits this device and a problem of %s", table->wgsl->name,
              vk_dtype_name(dtype));
}

/* ---- fixed parameters ------------------------------------------------------------------------ */

struct fixed_row {
  struct fixed_row *next;
  const struct kernel *of;
  struct kernel row;
  uint8_t params[PARAMS_MAX];
};
enum { FIXED_MAX = 32 }; /* in a graph; a Llama has 4 */

sconce_status kernel_fixed(struct graph *g, const struct kernel *row, const void *params,
                           const struct kernel **out, sconce_error *err) {
  const uint32_t size = row->wgsl->params_size;
  *out = row;
  for (const struct fixed_row *f = g->fixed; f; f = f->next)
    if (f->of == row && memcmp(f->params, params, size) == 0) return *out = &f->row, SCONCE_OK;
  if (g->n_fixed == FIXED_MAX || size == 0 || !wgsl_can_fix(row->wgsl, params)) return SCONCE_OK;
  struct fixed_row *f = arena_new(&g->arena, struct fixed_row, 1);
  if (!f) return fail(err, SCONCE_NO_MEMORY, "no memory for a kernel's parameters");
  f->of = row;
  f->row = *row;
  f->row.fixed = memcpy(f->params, params, size);
  f->next = g->fixed;
  g->fixed = f;
  g->n_fixed++;
  *out = &f->row;
  return SCONCE_OK;
}
