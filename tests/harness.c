/* The runner: sconce_tests [--list] [--filter TEXT] [--skip TEXT]… [--junit FILE] [--repeat N]
 * [--swap-scalars]. A test runs if its suite/name has the filter's text and none that is skipped.
 * With --swap-scalars the tests of operators alone, with numbers of other kinds: see harness.h. */
#include "harness.h"

#include "base/os.h"
#include "base/os_folder.h"
#include "gpu.h"
#include "graph/op.h"

struct result {
  struct trial trial;
  double seconds;
};

static struct {
  struct result *results;
  size_t n_results, cap;
} run;

static void *counting_resize(void *user, void *block, size_t old_size, size_t size) {
  struct test_allocator *a = user;
  if (size > 0 && ++a->calls == a->fail_at) return NULL;
  void *p = NULL;
  if (size == 0)
    free(block);
  else if (!(p = realloc(block, size)))
    return NULL;
  a->live += size - old_size;
  if (a->live > a->most) a->most = a->live;
  return p;
}

void test_allocator_init(struct test_allocator *a, uint64_t fail_at) {
  *a = (struct test_allocator){.hook = {counting_resize, a}, .fail_at = fail_at};
}

unsigned char *test_read_path(const char *path, size_t *size) {
  FILE *file = fopen(path, "rb");
  if (!file) return NULL;
  fseek(file, 0, SEEK_END);
  long n = ftell(file);
  rewind(file);
  unsigned char *data = n >= 0 ? malloc((size_t)n + 1) : NULL;
  if (data && fread(data, 1, (size_t)n, file) == (size_t)n) {
    *size = (size_t)n;
  } else {
    free(data);
    data = NULL;
  }
  fclose(file);
  return data;
}

unsigned char *test_read(const char *name, size_t *size) {
  char path[1024];
  snprintf(path, sizeof path, "%s/tests/data/%s", SCONCE_SOURCE_DIR, name);
  unsigned char *data = test_read_path(path, size);
  if (!data) test_fail(__FILE__, __LINE__, "%s: cannot read", path);
  return data;
}

struct walk {
  const char *folder;
  void (*each)(const char *path);
};

static sconce_status walk_shared(void *user, const char *name, bool folder, sconce_error *err) {
  const struct walk *walk = user;
  char path[1024];
  if (name[0] == '.') return SCONCE_OK;
  snprintf(path, sizeof path, "%s/%s", walk->folder, name);
  struct walk below = {path, walk->each};
  if (folder || os_folder_is(path)) return os_folder_each(path, walk_shared, &below, err);
  if (test_has_suffix(path, ".pte") || test_has_suffix(path, ".ptd")) walk->each(path);
  return SCONCE_OK;
}

bool test_each_shared_file(void (*each)(const char *path)) {
  const char *shared = getenv("SCONCE_SHARED");
  struct walk walk = {shared, each};
  sconce_error err = {0};
  if (shared)
    CHECK_OK(os_folder_each(shared, walk_shared, &walk, &err), err);
  else
    test_skip("SCONCE_SHARED is not set");
  return shared != NULL;
}

static const struct op *noted[1024];
static size_t n_noted;

static bool same_tables(const struct kernel *const *a, const struct kernel *const *b) {
  if (!a || !b) return a == b;
  while (*a && *a == *b) a++, b++;
  return *a == *b;
}

/* Rows that differ in nothing but the name are one operator. */
static bool same_operator(const struct op *a, const struct op *b) {
  return a->shape == b->shape && a->emit == b->emit && a->prepare == b->prepare &&
         a->n_args == b->n_args && a->writes == b->writes && a->flags == b->flags &&
         a->code == b->code && same_tables(a->tables, b->tables);
}

static bool was_noted(const struct op *op) {
  for (size_t i = 0; i < n_noted; i++)
    if (same_operator(noted[i], op)) return true;
  return false;
}

/* Of the test that runs. */
static const struct op *made[1024];
static size_t n_made;

bool test_made(const struct op *op) {
  for (size_t i = 0; i < n_made; i++)
    if (made[i] == op) return true;
  return false;
}

static void note_operator(void *user, const char *name) {
  (void)user;
  const struct op *op = op_find(text_of(name));
  if (op && !test_made(op) && n_made < sizeof made / sizeof *made) made[n_made++] = op;
  if (op && !was_noted(op) && n_noted < sizeof noted / sizeof *noted) noted[n_noted++] = op;
}

static void say_failure(const struct trial *t, const char *text) {
  fprintf(stderr, "FAIL %s/%s %s\n", t->suite, t->test, text);
}

static void run_one(const struct test_suite *suite, const struct test *test) {
  static const struct trial_host host = {
      .gpu = gpu_of_tests, .failed = say_failure, .made = note_operator};
  if (run.n_results == run.cap) {
    run.cap = run.cap ? run.cap * 2 : 64;
    run.results = realloc(run.results, run.cap * sizeof *run.results);
  }
  struct result *r = &run.results[run.n_results++];
  *r = (struct result){{.host = &host, .suite = suite->name, .test = test->name}, 0};
  uint64_t start = os_clock_ns();
  n_made = 0;
  trial_run(&r->trial, test);
  r->seconds = (double)(os_clock_ns() - start) * 1e-9;
  if (r->seconds > 5) fprintf(stderr, "slow %s/%s: %.1f s\n", suite->name, test->name, r->seconds);
}

/* What only the end of a whole run can tell. */
static void run_last(void) {
  static const struct test last[] = {
      TEST(every_kernel_row_was_dispatched), TEST(nothing_is_left_on_the_gpu), {0}};
  static const struct test_suite suite = {"harness", last};
  for (const struct test *test = last; test->name; test++) run_one(&suite, test);
}

/* The numbers of a program, other than a delegate's, keep their kinds: another kind is another
 * result. */
static bool keeps_kinds(const struct op *op) {
  return strstr(op->name, "executorch_prim::") == op->name ||
         (op->flags & OP_HOST && strstr(op->name, "aten::") == op->name);
}

/* Of those that a file can name: a fused one has no scalars but those of its parts. */
static void every_operator_was_swapped(void) {
  for (const struct op *const *family = op_families; *family; family++)
    for (const struct op *op = *family; op->name; op++)
      CHECK_SAYS(op_is_ours(op) || keeps_kinds(op) || was_noted(op), "no test made a node of %s",
                 op->name);
}

static void run_last_of_swapped(void) {
  static const struct test last = TEST(every_operator_was_swapped);
  static const struct test_suite suite = {.name = "harness"};
  run_one(&suite, &last);
}

static void xml_text(FILE *file, const char *text) {
  for (; *text; text++) {
    if (*text == '<')
      fputs("&lt;", file);
    else if (*text == '&')
      fputs("&amp;", file);
    else if (*text == '"')
      fputs("&quot;", file);
    else if ((unsigned char)*text >= 0x20)
      fputc(*text, file);
    else
      fputc(' ', file);
  }
}

static bool write_junit(const char *path) {
  FILE *file = fopen(path, "w");
  if (!file) return false;
  fputs("<?xml version=\"1.0\"?>\n<testsuite name=\"sconce\">\n", file);
  for (size_t i = 0; i < run.n_results; i++) {
    const struct trial *r = &run.results[i].trial;
    fprintf(file, "<testcase classname=\"%s\" name=\"%s\" time=\"%.3f\">", r->suite, r->test,
            run.results[i].seconds);
    if (r->outcome != TRIAL_PASSED) {
      fputs(r->outcome == TRIAL_FAILED ? "<failure message=\"" : "<skipped message=\"", file);
      xml_text(file, r->text);
      fputs("\"/>", file);
    }
    fputs("</testcase>\n", file);
  }
  fputs("</testsuite>\n", file);
  return fclose(file) == 0;
}

static int summary(bool verbose) {
  size_t count[3] = {0};
  for (size_t i = 0; i < run.n_results; i++) {
    const struct trial *r = &run.results[i].trial;
    count[r->outcome]++;
    if (verbose && r->outcome == TRIAL_SKIPPED)
      printf("skip %s/%s: %s\n", r->suite, r->test, r->text);
  }
  printf("%zu passed, %zu failed", count[TRIAL_PASSED], count[TRIAL_FAILED]);
  if (count[TRIAL_SKIPPED]) printf(", %zu skipped", count[TRIAL_SKIPPED]);
  putchar('\n');
  return count[TRIAL_FAILED] || !count[TRIAL_PASSED];
}

enum { SKIPS_MAX = 64 };
static const char *skips[SKIPS_MAX];
static int n_skips;

static bool is_wanted(const struct test_suite *suite, const char *name, const char *filter) {
  for (int i = 0; i < n_skips; i++)
    if (strstr(name, skips[i])) return false;
  return strstr(name, filter) && (!test_swap_scalars || *suite->swaps);
}

static void run_suites(const struct test_suite *suite, const char *filter, bool list) {
  for (; suite->name; suite++)
    for (const struct test *test = suite->tests; test->name; test++) {
      char name[200];
      snprintf(name, sizeof name, "%s/%s", suite->name, test->name);
      if (!is_wanted(suite, name, filter)) continue;
      if (list)
        puts(name);
      else
        run_one(suite, test);
    }
}

int main(int argc, char **argv) {
  const char *filter = "", *junit = NULL;
  long repeat = 1;
  bool list = false;
  for (int i = 1; i < argc; i++) {
    bool more = i + 1 < argc;
    if (!strcmp(argv[i], "--list"))
      list = true;
    else if (!strcmp(argv[i], "--filter") && more)
      filter = argv[++i];
    else if (!strcmp(argv[i], "--skip") && more && n_skips < SKIPS_MAX)
      skips[n_skips++] = argv[++i];
    else if (!strcmp(argv[i], "--junit") && more)
      junit = argv[++i];
    else if (!strcmp(argv[i], "--repeat") && more)
      repeat = strtol(argv[++i], NULL, 10);
    else if (!strcmp(argv[i], "--swap-scalars"))
      test_swap_scalars = true;
    else {
      fprintf(stderr, "usage: sconce_tests [--list] [--filter TEXT] [--skip TEXT]… [--junit FILE] "
                      "[--repeat N] [--swap-scalars]\n");
      return 2;
    }
  }
  for (; repeat > 0; repeat--) {
    run_suites(trial_suites, filter, list);
    run_suites(test_suites, filter, list);
  }
  if (list) return 0;
  if (!*filter) test_swap_scalars ? run_last_of_swapped() : run_last();
  test_gpu_close();
  if (junit && !write_junit(junit)) fprintf(stderr, "%s: cannot write\n", junit);
  int status = summary(true);
  free(run.results);
  return status;
}
