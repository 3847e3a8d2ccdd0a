/* The one walker over kernel tables, and rows with fixed parameters: see kernel.h. */
#include "graph/kernel.h"

#include "graph/op.h"

#include <string.h>

bool caps_offer(const struct caps *caps, uint32_t needs) {
  return !((needs & NEEDS_F16 && !caps->f16) || (needs & NEEDS_SUBGROUPS && !caps->subgroups) ||
           (needs & NEEDS_MATRIX && !caps->matrix) ||
           (needs & NEEDS_WIDE && caps->subgroup_min < 32) || (needs & NEEDS_FAST && !caps->fast) ||
           (needs & NEEDS_SOFTWARE && !caps->software));
}

static uint32_t volume(struct matrix x) { return x.m * x.n * x.k; }

static bool same_matrix(struct matrix a, struct matrix b) {
  return a.m == b.m && a.n == b.n && a.k == b.k;
}

void matrices_add(struct matrix list[MATRICES_MAX], struct matrix matrix) {
  for (int i = 0; i < MATRICES_MAX; i++) {
    const struct matrix here = list[i];
    if (same_matrix(here, matrix)) return;
    if (volume(here) >= volume(matrix)) continue;
    list[i] = matrix;
    matrix = here;
  }
}

static bool has_matrix(const struct caps *caps, struct matrix matrix) {
  for (int i = 0; i < MATRICES_MAX; i++)
    if (same_matrix(caps->matrices[i], matrix)) return true;
  return false;
}

static bool can_run(const struct kernel *row, const struct caps *caps) {
  const uint32_t threads = row->threads ? row->threads : 64;
  const uint32_t buffers = row->wgsl->n_bindings - (row->wgsl->params_size ? 1 : 0);
  if (row->needs & NEEDS_MATRIX && volume(row->matrix) && !has_matrix(caps, row->matrix))
    return false;
  if (row->lanes && (row->lanes != caps->subgroup_min || row->lanes != caps->subgroup_max))
    return false;
  return caps_offer(caps, row->needs) && threads <= caps->max_invocations &&
         row->workgroup_bytes <= caps->max_workgroup_bytes && buffers <= caps->max_storage_buffers;
}

/* The next word of a list, without the comma behind it. */
static struct text next_label(const char **list) {
  const struct text label = {*list, strcspn(*list, ",")};
  *list += label.size + ((*list)[label.size] == ',');
  return label;
}

static bool is_label(struct text label, const struct kernel *row) {
  const size_t n = strlen(row->wgsl->name);
  return label.size > n && memcmp(label.data, row->wgsl->name, n) == 0 && label.data[n] == '/' &&
         text_is((struct text){label.data + n + 1, label.size - n - 1}, row->name);
}

static bool is_avoided(const struct kernel *row, const struct caps *caps) {
  for (const char *list = caps->avoid; list && *list;)
    if (is_label(next_label(&list), row)) return true;
  return false;
}

static bool is_known(struct text label) {
  for (const struct op *const *family = op_families; *family; family++)
    for (const struct op *op = *family; op->name; op++)
      for (const struct kernel *const *table = op->tables; table && *table; table++)
        for (const struct kernel *row = *table; row->name; row++)
          if (is_label(label, row)) return true;
  return false;
}

struct text kernel_unknown(const char *labels) {
  while (*labels) {
    const struct text label = next_label(&labels);
    if (label.size && !is_known(label)) return label;
  }
  return (struct text){"", 0};
}

bool kernel_runs(const struct kernel *row, const struct caps *caps) {
  return can_run(row, caps) && !is_avoided(row, caps);
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
/* The row with the lowest rank is taken, the first of several. One that is wrong here comes last:
 * it serves only what no other row fits. */
enum rank { FIRST, SECOND, WRONG };
static enum rank rank_of(const struct kernel *row, const struct caps *caps) {
  if (is_avoided(row, caps)) return WRONG;
  return row->needs & NEEDS_SUBGROUPS && caps->subgroup_min < SUBGROUP_USEFUL ? SECOND : FIRST;
}

static bool is_listed(const struct op *op, const struct kernel *table) {
  for (const struct kernel *const *own = op->tables; own && *own; own++)
    if (*own == table) return true;
  return false;
}

const struct kernel *row_for(const struct plan *p, const struct node *n, const struct kernel *table,
                             enum vk_dtype dtype, const void *problem) {
  const struct caps *caps = &p->g->caps;
  const struct kernel *best = NULL;
  enum rank best_rank = WRONG;
  if (!is_listed(n->op, table)) return NULL;
  for (const struct kernel *row = table; row->name; row++) {
    if (!is_for(row, dtype) || !can_run(row, caps)) continue;
    if (row->fits && !row->fits(problem)) continue;
    const enum rank rank = rank_of(row, caps);
    if (rank < WRONG && p->g->force && strcmp(p->g->force, row->name) == 0) return row;
    if (!best || rank < best_rank) best = row, best_rank = rank;
  }
  return best_rank == WRONG && n->n_parts ? NULL : best; /* the parts can do without it */
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
