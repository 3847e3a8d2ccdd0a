/* Runs the passes and fuses what they find: see rewrite.h. */
#include "graph/rewrite.h"

#include "graph/constant_set.h"

#include <stdio.h>
#include <string.h>

/* A chain is searched as it is: fused nodes stand where their last part stood, and what they took
 * is left as a node without an operator until all passes have run. */
static bool is_gone(const struct node *n) { return !n->op; }

/* ---- who makes and reads what ---------------------------------------------------------------- */

enum role { READS, MAKES, CHANGES };

struct visit {
  const struct graph *g;
  void (*each)(void *user, uint32_t value, enum role role);
  void *user;
};

static void visit_value(const struct visit *v, uint32_t id, enum role role) {
  if (id == NO_VALUE) return;
  const struct value *value = &v->g->values[id];
  if (value->kind == VK_VALUE_LIST) {
    for (uint32_t i = 0; i < value->list.n; i++)
      if (value->list.ids[i] != NO_VALUE) v->each(v->user, value->list.ids[i], role);
  } else {
    v->each(v->user, id, role);
  }
}

static bool is_state(const struct graph *g, uint32_t id) {
  return id != NO_VALUE && g->values[id].kind == VK_TENSOR && g->values[id].tensor.constant;
}

static void visit_node(const struct visit *v, const struct node *n) {
  for (uint32_t i = 0; i < n->n_args; i++) {
    visit_value(v, n->args[i], i + 1 == n->n_args ? MAKES : READS);
    if (i < 32 && n->op->writes >> i & 1) visit_value(v, n->args[i], CHANGES);
    if (i + 1 == n->n_args && is_state(v->g, n->args[i])) visit_value(v, n->args[i], CHANGES);
  }
  for (uint32_t i = 0; i < n->n_parts; i++) visit_node(v, &n->parts[i]); /* parts have none */
}

struct note {
  struct rewrite *r;
  uint32_t node;
};

static void note_value(void *user, uint32_t value, enum role role) {
  const struct note *note = user;
  struct rewrite *r = note->r;
  if (role == MAKES) {
    /* A value that is made twice is none that a pass should touch. */
    if (r->maker[value] != NO_NODE && r->maker[value] != note->node) r->readers[value] += 2;
    r->maker[value] = note->node;
  } else if (role == READS && r->reader[value] != note->node) {
    r->reader[value] = note->node;
    r->readers[value]++;
  }
}

static void note_all(struct rewrite *r) {
  const struct graph *g = r->g;
  for (uint32_t i = 0; i < g->n_values; i++) {
    r->maker[i] = r->reader[i] = NO_NODE;
    r->readers[i] = g->values[i].kind == VK_TENSOR && g->values[i].tensor.output;
  }
  for (uint32_t i = 0; i < g->n_nodes; i++) {
    struct note note = {r, i};
    visit_node(&(struct visit){g, note_value, &note}, &g->nodes[i]);
  }
}

static sconce_status note_shared(struct rewrite *r) {
  struct graph *g = r->g;
  struct constant_set set = {0};
  for (uint32_t i = 0; i < g->n_values; i++) {
    const struct value *v = &g->values[i];
    if (v->kind != VK_TENSOR || !v->tensor.constant || r->readers[i] == 0) continue;
    const uint32_t other = constant_find(g, &set, &v->tensor, NULL);
    if (other != NO_VALUE)
      r->shared[i] = r->shared[other] = true;
    else if (!constant_add(g, &set, i))
      return fail(r->err, SCONCE_NO_MEMORY, "no memory for constant %u", i);
  }
  return SCONCE_OK;
}

const struct node *node_of(const struct rewrite *r, uint32_t i, const char *name) {
  if (i >= r->g->n_nodes || is_gone(&r->g->nodes[i])) return NULL;
  const struct node *n = &r->g->nodes[i];
  return strcmp(n->op->name, name) == 0 ? n : NULL;
}

static bool is_view(const struct rewrite *r, uint32_t i) {
  return i < r->g->n_nodes && !is_gone(&r->g->nodes[i]) && r->g->nodes[i].op->flags & OP_VIEW;
}

static bool is_tensor(const struct rewrite *r, uint32_t id) {
  return id < r->g->n_values && r->g->values[id].kind == VK_TENSOR;
}

uint32_t viewed(const struct rewrite *r, uint32_t value) {
  /* A file may show two values through each other: the steps are bounded. */
  for (uint32_t steps = 0; steps < VIEWS_REACH && is_tensor(r, value); steps++) {
    if (!is_view(r, r->maker[value])) break;
    uint32_t from = r->g->nodes[r->maker[value]].args[0];
    if (!is_tensor(r, from)) break;
    value = from;
    r->g->n_looks++;
  }
  return value;
}

uint32_t maker_of(const struct rewrite *r, uint32_t value) {
  value = viewed(r, value);
  return is_tensor(r, value) ? r->maker[value] : NO_NODE;
}

uint32_t only_reader(const struct rewrite *r, uint32_t value) {
  for (uint32_t steps = 0; is_tensor(r, value) && steps < VIEWS_REACH; steps++) {
    if (r->readers[value] != 1 || r->reader[value] == NO_NODE) return NO_NODE;
    uint32_t at = r->reader[value];
    if (!is_view(r, at) || r->g->nodes[at].args[0] != value) return at;
    value = out_id(&r->g->nodes[at]);
  }
  return NO_NODE;
}

const struct node *part_at(const struct node *n, uint32_t order) {
  for (uint32_t i = 0; i < n->n_parts; i++)
    if (n->parts[i].order == order) return &n->parts[i];
  return NULL;
}

/* ---- fusing ---------------------------------------------------------------------------------- */

bool same_dims(const struct rewrite *r, uint32_t a, uint32_t b) {
  if (a >= r->g->n_values || b >= r->g->n_values) return false;
  const struct value *x = &r->g->values[a], *y = &r->g->values[b];
  return x->kind == VK_TENSOR && y->kind == VK_TENSOR && x->tensor.dtype == y->tensor.dtype &&
         x->tensor.rank == y->tensor.rank &&
         memcmp(x->tensor.dim_max, y->tensor.dim_max, x->tensor.rank * sizeof *x->tensor.dim_max) ==
             0;
}

static bool is_one(const struct rewrite *r, uint32_t id) {
  if (id >= r->g->n_values) return false;
  const struct value *v = &r->g->values[id];
  return (v->kind == VK_INT && v->i == 1) || (v->kind == VK_DOUBLE && v->d == 1);
}

const struct node *plain_sum_at(const struct rewrite *r, uint32_t i) {
  const struct node *add = node_of(r, i, "aten.add.Tensor");
  if (!add || add->n_args != 4 || !is_one(r, add->args[2]) ||
      !same_dims(r, add->args[0], add->args[1]) || !same_dims(r, add->args[0], out_id(add)))
    return NULL;
  return add;
}

static bool in(const struct fusion *f, uint32_t node) {
  for (uint32_t i = 0; i < f->n; i++)
    if (f->nodes[i] == node) return true;
  return false;
}

static void sort(struct fusion *f) {
  for (uint32_t i = 1; i < f->n; i++)
    for (uint32_t k = i; k > 0 && f->nodes[k] < f->nodes[k - 1]; k--) {
      uint32_t node = f->nodes[k];
      f->nodes[k] = f->nodes[k - 1];
      f->nodes[k - 1] = node;
    }
}

/* Views of what the nodes make, on the way from the first to the last, come along. */
static bool take_views(const struct rewrite *r, struct fusion *f) {
  sort(f);
  const uint32_t last = f->nodes[f->n - 1];
  if (last - f->nodes[0] > FUSION_REACH) return false;
  for (uint32_t i = f->nodes[0] + 1; i < last; i++) {
    if (!is_view(r, i) || in(f, i)) continue;
    uint32_t from = r->g->nodes[i].args[0];
    if (!is_tensor(r, from) || !in(f, r->maker[from])) continue;
    if (f->n == sizeof f->nodes / sizeof *f->nodes) return false;
    f->nodes[f->n++] = i;
  }
  sort(f);
  return true;
}

/* What a node does with one value. */
struct search {
  uint32_t value;
  bool roles[3];
};
static void find_role(void *user, uint32_t value, enum role role) {
  struct search *s = user;
  if (value == s->value) s->roles[role] = true;
}

/* A node that would move, against one that stays where it is behind it. */
struct clash {
  const struct graph *g;
  const struct node *stays;
  bool found;
};
static void compare(void *user, uint32_t value, enum role role) {
  struct clash *c = user;
  struct search s = {.value = value};
  visit_node(&(struct visit){c->g, find_role, &s}, c->stays);
  if (s.roles[MAKES] || s.roles[CHANGES] || (role != READS && s.roles[READS])) c->found = true;
}

static bool may_move(const struct rewrite *r, const struct fusion *f) {
  const uint32_t last = f->nodes[f->n - 1];
  for (uint32_t i = 0; i < f->n; i++) {
    const struct node *n = &r->g->nodes[f->nodes[i]];
    if (n->op->flags & (OP_HOST | OP_READS)) return false;
    for (uint32_t k = f->nodes[i] + 1; k < last; k++) {
      if (in(f, k) || is_gone(&r->g->nodes[k])) continue;
      if (r->g->nodes[k].op->flags & OP_FLOW) return false;
      struct clash c = {r->g, &r->g->nodes[k], false};
      visit_node(&(struct visit){r->g, compare, &c}, n);
      if (c.found) return false;
    }
  }
  return true;
}

bool may_fuse(const struct rewrite *r, struct fusion *f) {
  for (uint32_t i = 0; i < f->n; i++)
    if (f->nodes[i] >= r->g->n_nodes || is_gone(&r->g->nodes[f->nodes[i]])) return false;
  return f->n && take_views(r, f) && may_move(r, f);
}

struct shown {
  const struct rewrite *r;
  const struct fusion *f;
  const uint32_t *values;
  uint32_t n;
  bool others;
};

static void look_outside(void *user, uint32_t value, enum role role) {
  struct shown *s = user;
  if (role != MAKES) return;
  for (uint32_t i = 0; i < s->n; i++)
    if (s->values[i] == value) return;
  uint32_t inside = 0;
  for (uint32_t i = 0; i < s->f->n; i++) {
    struct search search = {.value = value};
    visit_node(&(struct visit){s->r->g, find_role, &search}, &s->r->g->nodes[s->f->nodes[i]]);
    inside += search.roles[READS];
  }
  if (inside < s->r->readers[value]) s->others = true;
}

bool shows_only(const struct rewrite *r, struct fusion *f, uint32_t value) {
  return shows_only_these(r, f, &value, 1);
}

bool shows_only_these(const struct rewrite *r, struct fusion *f, const uint32_t *values,
                      uint32_t n) {
  if (!may_fuse(r, f)) return false;
  struct shown s = {r, f, values, n, false};
  for (uint32_t i = 0; i < f->n; i++)
    visit_node(&(struct visit){r->g, look_outside, &s}, &r->g->nodes[f->nodes[i]]);
  return !s.others;
}

static uint32_t parts_of(const struct node *n) { return n->n_parts ? n->n_parts : 1; }

/* Parts in the order of the chain, however the passes came by them. */
static void add_parts(struct node *to, const struct node *n) {
  for (uint32_t i = 0; i < parts_of(n); i++) {
    const struct node *part = n->n_parts ? &n->parts[i] : n;
    uint32_t at = to->n_parts++;
    for (; at > 0 && to->parts[at - 1].order > part->order; at--) to->parts[at] = to->parts[at - 1];
    to->parts[at] = *part;
  }
}

/* The nodes of a fusion become the last of them. */
struct joining {
  struct rewrite *r;
  const struct fusion *f;
  uint32_t last;
  uint32_t first_stamp; /* of this fusion; each of its nodes has the next one */
};

static void join_value(void *user, uint32_t value, enum role role) {
  const struct joining *j = user;
  struct rewrite *r = j->r;
  if (role == MAKES && in(j->f, r->maker[value])) r->maker[value] = j->last;
  if (role != READS || r->stamps[value] == r->stamp) return;   /* it reads the value twice */
  if (r->stamps[value] >= j->first_stamp) r->readers[value]--; /* as an earlier node does */
  if (in(j->f, r->reader[value])) r->reader[value] = j->last;
  r->stamps[value] = r->stamp;
}

static void join_notes(struct rewrite *r, const struct fusion *f) {
  struct joining j = {r, f, f->nodes[f->n - 1], r->stamp + 1};
  for (uint32_t i = 0; i < f->n; i++) {
    r->stamp++;
    visit_node(&(struct visit){r->g, join_value, &j}, &r->g->nodes[f->nodes[i]]);
  }
}

sconce_status fuse(struct rewrite *r, struct fusion *f) {
  struct graph *g = r->g;
  if (!may_fuse(r, f)) return SCONCE_OK;
  uint32_t n_parts = 0, last = f->nodes[f->n - 1];
  for (uint32_t i = 0; i < f->n; i++) n_parts += parts_of(&g->nodes[f->nodes[i]]);
  struct node fused = g->nodes[last];
  fused.op = f->op;
  fused.name = f->name;
  fused.fused = f->fused;
  fused.args = NULL; /* its parts have them */
  fused.n_args = fused.n_parts = 0;
  fused.parts = arena_new(&g->arena, struct node, n_parts);
  if (!fused.parts) return fail(r->err, SCONCE_NO_MEMORY, "no memory for %u nodes", n_parts);
  join_notes(r, f);
  for (uint32_t i = 0; i < f->n; i++) {
    add_parts(&fused, &g->nodes[f->nodes[i]]);
    g->nodes[f->nodes[i]].op = NULL;
  }
  g->nodes[last] = fused;
  return SCONCE_OK;
}

/* ---- running --------------------------------------------------------------------------------- */

static struct text next_word(const char **list) {
  const char *end = strchr(*list, ',');
  struct text word = {*list, end ? (size_t)(end - *list) : strlen(*list)};
  *list += word.size + (end ? 1 : 0);
  return word;
}

static bool is_off(const struct graph *g, const char *name) {
  for (const char *at = g->passes_off; at && *at;) {
    struct text word = next_word(&at);
    if (text_is(word, name) || text_is(word, "all")) return true;
  }
  return false;
}

static bool is_pass(struct text word) {
  for (const struct pass *const *family = pass_families; *family; family++)
    for (const struct pass *pass = *family; pass->name; pass++)
      if (text_is(word, pass->name)) return true;
  return text_is(word, "all");
}

struct text passes_unknown(const char *list) {
  while (*list) {
    struct text word = next_word(&list);
    if (word.size && !is_pass(word)) return word;
  }
  return (struct text){"", 0};
}

const char *passes_text(char *out, size_t size) {
  size_t at = 0;
  out[0] = 0;
  for (const struct pass *const *family = pass_families; *family; family++)
    for (const struct pass *pass = *family; pass->name && at < size; pass++)
      at += (size_t)snprintf(out + at, size - at, "%s%s", at ? ", " : "", pass->name);
  return out;
}

static void close_gaps(struct graph *g) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < g->n_nodes; i++)
    if (!is_gone(&g->nodes[i])) g->nodes[n++] = g->nodes[i];
  g->n_nodes = n;
}

static sconce_status run_pass(struct rewrite *r, const struct pass *pass) {
  for (uint32_t i = 0; i < r->g->n_nodes; i++) {
    if (is_gone(&r->g->nodes[i])) continue;
    if (i % 64 == 0) TRY(graph_check_time(r->g, r->err));
    TRY(pass->at(r, i));
  }
  return SCONCE_OK;
}

sconce_status rewrite_all(struct graph *g, sconce_error *err) {
  struct rewrite r = {.g = g, .err = err};
  r.maker = arena_new(&g->arena, uint32_t, g->n_values);
  r.reader = arena_new(&g->arena, uint32_t, g->n_values);
  r.readers = arena_new(&g->arena, uint32_t, g->n_values);
  r.shared = arena_new(&g->arena, bool, g->n_values);
  r.stamps = arena_new(&g->arena, uint32_t, g->n_values);
  if (!r.maker || !r.reader || !r.readers || !r.shared || !r.stamps)
    return fail(err, SCONCE_NO_MEMORY, "no memory for passes over %u values", g->n_values);
  for (uint32_t i = 0; i < g->n_nodes; i++) g->nodes[i].order = i;
  note_all(&r);
  TRY(note_shared(&r));
  for (const struct pass *const *family = pass_families; *family; family++)
    for (const struct pass *pass = *family; pass->name; pass++)
      if (!is_off(g, pass->name)) TRY(run_pass(&r, pass));
  close_gaps(g);
  return SCONCE_OK;
}
