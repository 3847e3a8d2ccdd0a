/* Floats of 2 bytes from floats of 4: see halves.h. */
#include "ops/halves/halves.h"

#include "halves.wgsl.h"

const struct kernel halves_kernels[] = {{"f16", &halves_wgsl, ""}, {0}};

sconce_status halves_emit(struct plan *p, const struct node *n, uint32_t from, uint32_t y) {
  const struct tensor *t = tensor_at(p, y);
  const struct kernel *row;
  if (!t) return fail(p->err, SCONCE_BAD_GRAPH, "value %u is no tensor", y);
  struct halves_params u = {.n = (uint32_t)tensor_numel(t)};
  TRY(choose(p, n, halves_kernels, VK_FLOAT16, NULL, &row));
  return dispatch(p, row, &u, div_up(u.n, 128), OPERANDS({from}, {y}));
}
