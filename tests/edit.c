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
  if (pte_open(&pte, extent_of((struct span){whole.data, whole.size}), NULL) != SCONCE_OK)
    return whole;
  struct pte_method m = pte_method(&pte, 0);
  struct edit_bytes blob = edit_copy(extent_held(pte_delegate(&m, 0).blob));
  free(whole.data);
  return blob;
}

static sconce_status open_blob(const char *file, struct span blob, sconce_error *err) {
  struct edit_bytes whole = load_file(file);
  struct pte pte;
  sconce_status status = pte_open(&pte, extent_of((struct span){whole.data, whole.size}), err);
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
    TRY(pte_open(&pte, extent_of(bytes), err));
    (void)walk_pte(&pte);
  } else {
    TRY(ptd_open(&ptd, extent_of(bytes), err));
    (void)walk_ptd(&ptd);
  }
  return SCONCE_OK;
}

/* ---- paths ----------------------------------------------------------------------------------- */

struct place {
  uint8_t *at;
  uint32_t width;
};

static uint8_t *writable(const uint8_t *p) { return (uint8_t *)(uintptr_t)p; }

static uint32_t field_id(const struct fb_type *type, const char *name) {
  uint32_t id = 0;
  while (id < type->n_fields && strcmp(type->fields[id].name, name) != 0) id++;
  return id;
}

/* The field itself or its offset ('@'), its place in the vtable ('!'), its vector's count ('#'). */
static struct place field_place(struct fb_table t, const struct fb_field *f, uint32_t id,
                                char part) {
  const uint8_t *vtable = t.at - (int32_t)load_u32(t.at), *field = fb_field(t, id);
  if (part == '!') return (struct place){writable(vtable) + 4 + 2 * id, 2};
  if (!field) return (struct place){0};
  if (part == '#') return (struct place){writable(field) + load_u32(field), 4};
  return (struct place){writable(field), f->kind == FB_SCALAR ? f->width : 4};
}

static struct place element_place(struct fb_vec v, const struct fb_field *f, uint32_t i) {
  uint32_t width = f->kind == FB_TABLES ? 4 : f->width;
  if (i >= v.n) return (struct place){0};
  return (struct place){writable(v.items) + (size_t)i * width, width};
}

static struct place find(struct fb_table t, const struct fb_type *type, const char *path) {
  char copy[256];
  snprintf(copy, sizeof copy, "%s", path);
  char *step = strtok(copy, "/");
  while (t.at && step) {
    uint32_t id = field_id(type, step);
    if (id == type->n_fields) break;
    const struct fb_field *f = &type->fields[id];
    step = strtok(NULL, "/");
    if (!step || strchr("!@#", *step)) return field_place(t, f, id, step ? *step : '@');
    if (f->kind == FB_TABLE || f->kind == FB_UNION) {
      type = f->types[f->kind == FB_UNION ? fb_u8(t, id - 1, 1) - 1 : 0];
      t = fb_sub(t, id);
      continue;
    }
    uint32_t i = (uint32_t)strtoul(step, NULL, 10);
    step = strtok(NULL, "/");
    if (!step || f->kind != FB_TABLES) return element_place(fb_vec(t, id), f, i);
    t = fb_table_at(fb_vec(t, id), i);
    type = f->types[0];
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
    CHECK_SAYS(edit_apply(kind, bytes, row->set[i]), "%s: no '%s' in %s", row->why,
               row->set[i].path, row->file);
  sconce_status got = edit_open(kind, row->file, (struct span){bytes.data, bytes.size}, &err);
  CHECK_SAYS(got == row->want && (got == SCONCE_OK || strstr(err.text, row->fragment)),
             "%s: %s (\"%s\"), want %s (\"…%s…\")", row->why, sconce_status_name(got), err.text,
             sconce_status_name(row->want), row->fragment ? row->fragment : "");
  free(bytes.data);
}

void edit_run(enum edit_kind kind, const struct edit_row *rows) {
  for (; rows->why; rows++) run_row(kind, rows);
}
