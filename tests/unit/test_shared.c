/* The readers on every real file of a collection next to the checkout: SCONCE_SHARED names its
 * folder, which has fixtures/INDEX.tsv and models/INDEX.tsv. Without it these tests skip. */
#include "harness.h"

#include "base/file.h"
#include "walk.h"

#include <dirent.h>

/* ---- every file opens ------------------------------------------------------------------------ */

static size_t n_opened;

static void open_one(const char *path) {
  sconce_error err = {0};
  struct arena arena;
  struct span bytes;
  arena_init(&arena, NULL);
  CHECK_OK(file_read(&arena, path, &bytes, &err), err);
  sconce_status status = walk_file(bytes, &err);
  if (status != SCONCE_OK) test_fail(__FILE__, __LINE__, "%s: %s", path, err.text);
  arena_free(&arena);
  n_opened++;
}

static void every_file_opens(void) {
  n_opened = 0;
  if (!test_each_shared_file(open_one)) return;
  CHECK(n_opened > 600);
}

/* ---- operators per file ---------------------------------------------------------------------- */

/* Cells of a line; the last one takes what is left. */
static size_t split(char *line, char **cells, size_t max) {
  size_t n = 0;
  line[strcspn(line, "\r\n")] = 0;
  for (char *p = line; p && n < max; n++) {
    cells[n] = p;
    p = strchr(p, '\t');
    if (p) *p++ = 0;
  }
  return n;
}

/* How often an operator occurs, NULL for all: in delegates, or outside of them. */
static uint32_t count_delegated(struct pte_method *m, struct ptd_source *source, const char *name) {
  uint32_t n = 0;
  for (uint32_t d = 0; d < m->n_delegates; d++) {
    struct pte_delegate delegate = pte_delegate(m, d);
    struct vkgraph g;
    sconce_error err = {0};
    if (!text_is(delegate.id, "VulkanBackend")) continue;
    CHECK_OK(vkgraph_open(&g, delegate.blob, (struct data_lookup){ptd_lookup, source}, &err), err);
    for (uint32_t i = 0; i < g.n_calls; i++) n += !name || text_is(vkgraph_call(&g, i).name, name);
  }
  return n;
}

static uint32_t count_portable(struct pte_method *m, const char *name) {
  uint32_t n = 0;
  char text[PTE_OPERATOR_SIZE];
  for (uint32_t c = 0; c < m->n_chains; c++)
    for (uint32_t i = 0; i < pte_n_instructions(m, c); i++) {
      struct pte_instruction in = pte_instruction(m, c, i);
      if (in.kind != PTE_KERNEL_CALL) continue;
      n += !name || strcmp(pte_operator_text(m, in.index, text), name) == 0;
    }
  return n;
}

static uint32_t count(const struct pte *pte, struct ptd_source *source, bool delegated,
                      const char *name) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < pte->n_methods; i++) {
    struct pte_method m = pte_method(pte, i);
    n += delegated ? count_delegated(&m, source, name) : count_portable(&m, name);
  }
  return n;
}

/* A cell is "-" or names with counts: "aten.add.Tensor*3,aten.relu.default". */
static void compare(const char *path, struct ptd_source *source, bool delegated, char *cell) {
  uint32_t total = 0;
  for (char *name = strtok(cell, ", "); name; name = strtok(NULL, ", ")) {
    uint32_t want = 1;
    if (strcmp(name, "-") == 0) break;
    char *star = strchr(name, '*');
    if (star) *star = 0, want = (uint32_t)strtoul(star + 1, NULL, 10);
    uint32_t got = count(source->pte, source, delegated, name);
    if (got != want) test_fail(__FILE__, __LINE__, "%s: %u of %s, want %u", path, got, name, want);
    total += want;
  }
  uint32_t all = count(source->pte, source, delegated, NULL);
  if (all != total) test_fail(__FILE__, __LINE__, "%s: %u operators, want %u", path, all, total);
}

/* Data files lie beside their program. */
static bool open_data(const char *path, struct arena *arena, struct ptd *out) {
  struct span bytes;
  static char folder[17000], file[18000];
  snprintf(folder, sizeof folder, "%s", path);
  *strrchr(folder, '/') = 0;
  DIR *dir = opendir(folder);
  bool found = false;
  for (struct dirent *e; dir && !found && (e = readdir(dir));) {
    if (!test_has_suffix(e->d_name, ".ptd")) continue;
    snprintf(file, sizeof file, "%.500s/%.255s", folder, e->d_name);
    found = file_read(arena, file, &bytes, NULL) == SCONCE_OK &&
            ptd_open(out, extent_of(bytes), NULL) == SCONCE_OK;
  }
  if (dir) closedir(dir);
  return found;
}

static void compare_file(const char *path, char *delegated, char *portable) {
  struct arena arena;
  struct span bytes;
  struct pte pte;
  struct ptd ptd;
  arena_init(&arena, NULL);
  if (file_read(&arena, path, &bytes, NULL) != SCONCE_OK) return; /* listed but packed */
  sconce_error err = {0};
  CHECK_OK(pte_open(&pte, extent_of(bytes), &err), err);
  struct ptd_set set = {&ptd, open_data(path, &arena, &ptd)};
  struct ptd_source source = {&set, &pte};
  compare(path, &source, true, delegated);
  compare(path, &source, false, portable);
  arena_free(&arena);
  n_opened++;
}

static void compare_index(const char *folder, const char *suffix, size_t at) {
  static char path[17000];
  char line[16384], *cells[16];
  snprintf(path, sizeof path, "%s/%s/INDEX.tsv", getenv("SCONCE_SHARED"), folder);
  FILE *file = fopen(path, "r");
  REQUIRE(file);
  REQUIRE(fgets(line, sizeof line, file));
  while (fgets(line, sizeof line, file)) {
    if (split(line, cells, 16) < at + 2) continue;
    snprintf(path, sizeof path, "%s/%s/%s%s", getenv("SCONCE_SHARED"), folder, cells[0], suffix);
    compare_file(path, cells[at], cells[at + 1]);
  }
  fclose(file);
}

static void operator_counts_equal_the_index(void) {
  if (!getenv("SCONCE_SHARED")) {
    test_skip("SCONCE_SHARED is not set");
    return;
  }
  n_opened = 0;
  compare_index("fixtures", "/model.pte", 1);
  compare_index("models", "", 5);
  CHECK(n_opened > 600);
}

const struct test suite_shared[] = {
    TEST(every_file_opens),
    TEST(operator_counts_equal_the_index),
    {0},
};
