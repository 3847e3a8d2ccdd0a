/* See mutated.h. The search goes backwards from an output, one node further each round. */
#include "run/mutated.h"

#include "graph/op.h"

#include <string.h>

struct search {
  struct graph *g;
  uint32_t *maker;        /* by value: the node that gives it, or NO_NODE */
  uint32_t *seen;         /* by value: the last search that met it */
  uint32_t *front, *next; /* values of this round and of the next */
  uint32_t n_front, n_next;
};

static bool is_tensor(const struct graph *g, uint32_t id) {
  return id != NO_VALUE && g->values[id].kind == VK_TENSOR;
}

static void note_makers(struct search *s) {
  const struct graph *g = s->g;
  for (uint32_t i = 0; i < g->n_values; i++) s->maker[i] = NO_NODE;
  for (uint32_t i = 0; i < g->n_nodes; i++) {
    const uint32_t id = out_id(&g->nodes[i]);
    if (id == NO_VALUE) continue;
    s->maker[id] = i;
    const struct value *v = &g->values[id];
    for (uint32_t k = 0; v->kind == VK_VALUE_LIST && k < v->list.n; k++)
      if (v->list.ids[k] != NO_VALUE) s->maker[v->list.ids[k]] = i;
  }
}

static sconce_status too_far(sconce_error *err) {
  return fail(err, SCONCE_UNSUPPORTED,
              "buffers that a delegate changes are too far from their new contents");
}

static sconce_status search_init(struct search *s, struct arena *scratch, struct graph *g,
                                 sconce_error *err) {
  *s = (struct search){.g = g};
  s->maker = arena_new(scratch, uint32_t, g->n_values);
  s->seen = arena_new(scratch, uint32_t, g->n_values);
  s->front = arena_new(scratch, uint32_t, g->n_values);
  s->next = arena_new(scratch, uint32_t, g->n_values);
  if (!s->maker || !s->seen || !s->front || !s->next)
    return fail(err, SCONCE_NO_MEMORY, "no memory to look through %u values", g->n_values);
  if (!graph_look(g, g->n_values + g->n_items)) return too_far(err);
  note_makers(s);
  return SCONCE_OK;
}

static void meet(struct search *s, uint32_t id, uint32_t round) {
  if (!is_tensor(s->g, id) || s->seen[id] == round) return;
  s->seen[id] = round;
  s->next[s->n_next++] = id;
}

/* What the values in front are computed from. */
static void step_back(struct search *s, uint32_t round) {
  const struct graph *g = s->g;
  s->n_next = 0;
  for (uint32_t i = 0; i < s->n_front; i++) {
    const uint32_t maker = s->maker[s->front[i]];
    if (maker == NO_NODE) continue;
    const struct node *n = &g->nodes[maker];
    for (uint32_t k = 0; k + 1 < n->n_args; k++) {
      const struct value *v = n->args[k] == NO_VALUE ? NULL : &g->values[n->args[k]];
      meet(s, n->args[k], round);
      for (uint32_t j = 0; v && v->kind == VK_VALUE_LIST && j < v->list.n; j++)
        meet(s, v->list.ids[j], round);
    }
  }
  uint32_t *old = s->front;
  s->front = s->next;
  s->next = old;
  s->n_front = s->n_next;
}

static bool alike(const struct graph *g, uint32_t x, uint32_t y) {
  const struct tensor *a = &g->values[x].tensor, *b = &g->values[y].tensor;
  return a->dtype == b->dtype && a->rank == b->rank &&
         memcmp(a->dim_max, b->dim_max, a->rank * sizeof *a->dim_max) == 0;
}

static bool could_be(const struct graph *g, uint32_t state, uint32_t output) {
  const struct tensor *t = &g->values[state].tensor;
  return t->constant && !t->written && alike(g, state, output);
}

static sconce_status find_state(struct search *s, uint32_t output, uint32_t round, uint32_t *state,
                                sconce_error *err) {
  char text[120];
  *state = NO_VALUE;
  s->front[0] = output;
  s->n_front = 1;
  s->seen[output] = round;
  while (s->n_front && *state == NO_VALUE) {
    step_back(s, round);
    if (!graph_look(s->g, 8 * (1 + (uint64_t)s->n_front))) return too_far(err);
    for (uint32_t i = 0; i < s->n_front; i++) {
      if (!could_be(s->g, s->front[i], output)) continue;
      if (*state != NO_VALUE)
        return fail(err, SCONCE_UNSUPPORTED,
                    "output %u is the new contents of a buffer, %s, and two buffers could be meant",
                    round - 1, tensor_text(&s->g->values[output].tensor, text));
      *state = s->front[i];
    }
  }
  if (*state != NO_VALUE) return SCONCE_OK;
  return fail(err, SCONCE_UNSUPPORTED,
              "output %u, %s, goes to no argument and belongs to no buffer of the delegate "
              "(a buffer that the model changes: export with alias_buffer_mutations)",
              round - 1, tensor_text(&s->g->values[output].tensor, text));
}

/* Buffers and their new contents stand in one order: where two that are alike do not, the nearest
 * buffer was not the one. */
static sconce_status write_back(struct graph *g, struct search *s, const uint32_t *values,
                                uint32_t n, sconce_error *err) {
  for (uint32_t i = 0, last = 0; i < n; i++) {
    if (!is_tensor(g, values[i]))
      return fail(err, SCONCE_BAD_GRAPH, "output %u goes to no argument and is no tensor", i);
    uint32_t args[2] = {values[i], NO_VALUE};
    TRY(find_state(s, values[i], i + 1, &args[1], err));
    if (i && args[1] < last && alike(g, values[i - 1], values[i]))
      return fail(err, SCONCE_UNSUPPORTED,
                  "which buffers outputs %u and %u are the new contents of cannot be told: export "
                  "with alias_buffer_mutations",
                  i - 1, i);
    last = args[1];
    TRY(graph_add_node(g, text_of("aten.alias_copy.default"), g->n_nodes, args, 2, err));
  }
  return SCONCE_OK;
}

sconce_status mutated_write_back(struct graph *g, const uint32_t *values, uint32_t n,
                                 sconce_error *err) {
  if (n == 0) return SCONCE_OK;
  struct arena scratch;
  struct search search;
  arena_init(&scratch, &g->arena.allocator);
  sconce_status status = search_init(&search, &scratch, g, err);
  if (status == SCONCE_OK) status = write_back(g, &search, values, n, err);
  arena_free(&scratch);
  return status;
}
