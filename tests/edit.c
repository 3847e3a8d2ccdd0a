#include "edit.h"

#include "format/schema.h"

/* ---- loading --------------------------------------------------------------------------------- */

/* Exact allocations, so that a sanitizer sees the first byte past the end. */
struct edit_bytes edit_copy(struct span bytes) {
  struct edit_bytes out = {malloc(bytes.size ? bytes.size : 1), bytes.size};
  if (bytes.size) memcpy(out.data, bytes.data, bytes.size);
  return out;
}

static struct edit_bytes load_file(const char *file) {
  char name[256];
  size_t size = 0;
  snprintf(name, sizeof name, "format/%s", file);
  unsigned char *data = test_read(name, &size);
  struct edit_bytes out = edit_copy((struct span){data, data ? size : 0});
  free(data);
  return out;
}

struct edit_bytes edit_load(enum edit_kind kind, const char *file) {
  struct edit_bytes whole = load_file(file);
  struct pte pte;
  if (kind != EDIT_VKGRAPH) return whole;
  if (pte_open(&pte, (struct span){whole.data, whole.size}, NULL) != SCONCE_OK) return whole;
  struct pte_method m = pte_method(&pte, 0);
  struct edit_bytes blob = edit_copy(pte_delegate(&m, 0).blob);
  free(whole.data);
  return blob;
}

static sconce_status open_blob(const char *file, struct span blob, sconce_error *err) {
  struct edit_bytes whole = load_file(file);
  struct pte pte;
  sconce_status status = pte_open(&pte, (struct span){whole.data, whole.size}, err);
  if (status == SCONCE_OK) status = walk_blob(blob, (struct data_lookup){pte_lookup, &pte}, err);
  free(whole.data);
  return status;
}

sconce_status edit_open(enum edit_kind kind, const char *file, struct span bytes,
                        sconce_error *err) {
  struct pte pte;
  struct ptd ptd;
  if (kind == EDIT_VKGRAPH) return open_blob(file, bytes, err);
  if (kind == EDIT_PTE) {
    TRY(pte_open(&pte, bytes, err));
    (void)walk_pte(&pte);
  } else {
    TRY(ptd_open(&ptd, bytes, err));
    (void)walk_ptd(&ptd);
  }
  return SCONCE_OK;
}

/* ---- paths ----------------------------------------------------------------------------------- */

struct place {
  uint8_t *at;
  uint32_t width;
};

/* Where the walk stands: at a table, or behind a field of one. */
struct cursor {
  struct fb_table table;
  const struct fb_type *type;
  const struct fb_field *field; /* NULL: at the table */
  uint32_t id;
};

static uint8_t *writable(const uint8_t *p) { return (uint8_t *)(uintptr_t)p; }

static struct place field_place(const struct cursor *c, const char *last) {
  const uint8_t *vtable = c->table.at - (int32_t)load_u32(c->table.at);
  struct fb_vec v = {0};
  uint32_t width = c->field->kind == FB_SCALAR ? c->field->width : 4;
  if (c->field->kind == FB_STRING || c->field->kind == FB_VECTOR || c->field->kind == FB_TABLES)
    v = fb_vec(c->table, c->id);
  if (*last == '!') return (struct place){writable(vtable) + 4 + 2 * c->id, 2};
  if (*last == '#') return (struct place){v.items ? writable(v.items) - 4 : NULL, 4};
  if (*last == '@' || *last == 0) return (struct place){writable(fb_field(c->table, c->id)), width};
  uint32_t i = (uint32_t)strtoul(last, NULL, 10); /* an element, or its offset */
  if (c->field->kind != FB_TABLES) width = c->field->width;
  return (struct place){v.items && i < v.n ? writable(v.items) + (size_t)i * width : NULL, width};
}

/* Takes one step; false if the path must end here. */
static bool enter(struct cursor *c, const char *step) {
  if (!c->field) {
    for (c->id = 0; c->id < c->type->n_fields; c->id++)
      if (strcmp(c->type->fields[c->id].name, step) == 0) break;
    if (c->id == c->type->n_fields) return false;
    c->field = &c->type->fields[c->id];
    if (c->field->kind != FB_TABLE && c->field->kind != FB_UNION) return true;
    uint32_t tag = c->field->kind == FB_UNION ? fb_u8(c->table, c->id - 1, 1) : 1;
    *c = (struct cursor){fb_sub(c->table, c->id), c->field->types[tag - 1], NULL, 0};
    return c->table.at != NULL;
  }
  if (c->field->kind != FB_TABLES) return false;
  uint32_t i = (uint32_t)strtoul(step, NULL, 10);
  *c = (struct cursor){fb_table_at(fb_vec(c->table, c->id), i), c->field->types[0], NULL, 0};
  return c->table.at != NULL;
}

/* The last one or two steps name a place; those before lead to its table. */
static struct place find(struct fb_table root, const struct fb_type *type, const char *path) {
  char copy[256], *steps[24], *rest = copy;
  size_t n = 0;
  snprintf(copy, sizeof copy, "%s", path);
  for (; rest && n < 24; n++) {
    steps[n] = rest;
    rest = strchr(rest, '/');
    if (rest) *rest++ = 0;
  }
  struct cursor c = {root, type, NULL, 0};
  for (size_t i = 0; i < n; i++) {
    bool last = i + 1 == n;
    if (c.field && last) return field_place(&c, steps[i]);
    struct cursor before = c;
    bool entered = enter(&c, steps[i]);
    if (c.field && last) return field_place(&c, "");
    if (!c.field && !before.field && i + 2 == n && strchr("!@", *steps[i + 1])) {
      (void)entered; /* a table or union field, named by its slot or offset */
      for (before.id = 0; strcmp(before.type->fields[before.id].name, steps[i]) != 0;) before.id++;
      before.field = &before.type->fields[before.id];
      return field_place(&before, steps[i + 1]);
    }
    if (!entered) break;
  }
  return (struct place){0};
}

static struct place locate(enum edit_kind kind, struct edit_bytes b, const char *path) {
  static const struct {
    const char *id;
    const struct fb_type *type;
  } schemas[] = {
      {"ET12", &schema_program}, {"FT01", &schema_flat_tensor}, {"VK00", &schema_vkgraph}};
  if (*path == '+') {
    char *rest;
    size_t at = strtoul(path + 1, &rest, 10);
    return (struct place){b.data + at, (uint32_t)strtoul(rest + 1, NULL, 10)};
  }
  size_t start = kind == EDIT_VKGRAPH ? load_u32(b.data + 10) : 0;
  struct span bytes = {b.data + start, b.size - start};
  struct fb_table root;
  if (fb_verify(bytes, schemas[kind].id, schemas[kind].type, 0, &root, NULL) != SCONCE_OK)
    root.at = bytes.data + load_u32(bytes.data); /* damaged by the patch before: still findable */
  return find(root, schemas[kind].type, path);
}

bool edit_apply(enum edit_kind kind, struct edit_bytes bytes, struct edit_patch patch) {
  struct place p = locate(kind, bytes, patch.path);
  if (!p.at) return false;
  for (uint32_t i = 0; i < p.width; i++) p.at[i] = (uint8_t)(patch.value >> 8 * i);
  return true;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void run_row(enum edit_kind kind, const struct edit_row *row) {
  struct edit_bytes bytes = edit_load(kind, row->file);
  sconce_error err = {0};
  for (size_t i = 0; i < 4 && row->set[i].path; i++)
    if (!edit_apply(kind, bytes, row->set[i]))
      test_fail(__FILE__, __LINE__, "%s: no '%s' in %s", row->why, row->set[i].path, row->file);
  sconce_status got = edit_open(kind, row->file, (struct span){bytes.data, bytes.size}, &err);
  if (got != row->want || (got != SCONCE_OK && !strstr(err.text, row->fragment)))
    test_fail(__FILE__, __LINE__, "%s: %s (\"%s\"), want %s (\"…%s…\")", row->why,
              sconce_status_name(got), err.text, sconce_status_name(row->want),
              row->fragment ? row->fragment : "");
  free(bytes.data);
}

void edit_run(enum edit_kind kind, const struct edit_row *rows) {
  for (; rows->why; rows++) run_row(kind, rows);
}
