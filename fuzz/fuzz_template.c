/* Any bytes as a chat template, rendered over a conversation within tight limits. What comes out is
 * valid UTF-8, every byte has an origin, and no byte of the caller's passes for the template's. The
 * input may carry variables of its own, a JSON object behind a line "#json". */
#include "base/utf8.h"
#include "llm/jinja/jinja.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* All text of the caller's is made of characters whose first byte is EE. */
#define A "\xee\x80\x80"
#define B "\xee\x80\x81"
static const char usual[] =
    "{\"messages\": [{\"role\": \"user\", \"content\": \"" A " " B "\"}, {\"role\": \"assistant\", "
    "\"content\": \"" B "\\n" A "\", \"tool_calls\": [{\"function\": {\"name\": \"" A
    "\", \"arguments\": {\"" B "\": [1, 2.5, null, true, \"" A "\"]}}}]}, {\"role\": \"tool\", "
    "\"content\": [{\"type\": \"text\", \"text\": \"" A B "\"}]}], \"tools\": [{\"name\": \"" A
    "\", \"d\": {\"x\": {\"y\": []}}}], \"n\": 3, \"x\": -1.5, \"s\": \" " A " \", \"l\": [3, 1, "
    "2], \"d\": {\"b\": 1, \"a\": \"" B "\"}, \"e\": \"\", \"z\": null, \"t\": true}";

enum { VARIABLES = 32 };

static size_t read_variables(struct text text, struct arena *arena, struct jinja_variable *all) {
  struct json root;
  struct json_walk w;
  size_t n = 0;
  if (json_check(text, &root, NULL) != SCONCE_OK) return 0;
  for (json_begin(&w, root); json_next(&w) && n < VARIABLES;) {
    if (!w.object) break;
    all[n++] = (struct jinja_variable){
        .name = json_text(w.key, arena).data, .kind = JINJA_JSON, .json = w.value};
  }
  return n;
}

static void check_output(const struct jinja_output *out, bool knows) {
  const char *p = out->text.data, *end = p + out->text.size;
  while (p < end) {
    struct utf8_char c = utf8_decode(p, end);
    if (c.state != UTF8_OK) __builtin_trap();
    for (uint32_t i = 0; i < c.size; i++) {
      uint8_t own = out->own[p - out->text.data + i];
      if (own > 1 || own != out->own[p - out->text.data]) __builtin_trap();
    }
    if (!knows && (uint8_t)*p == 0xee && out->own[p - out->text.data]) __builtin_trap();
    p += c.size;
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char mark[] = "\n#json\n";
  struct text template = {(const char *)data, size}, json = {usual, sizeof usual - 1};
  for (size_t i = 0; i + sizeof mark - 1 <= size; i++) {
    if (data[i] != '\n' || memcmp(data + i, mark, sizeof mark - 1) != 0) continue;
    template.size = i;
    json = (struct text){(const char *)data + i + sizeof mark - 1, size - i - (sizeof mark - 1)};
    break;
  }
  struct arena arena;
  struct jinja_program *program;
  struct jinja_output out;
  struct jinja_variable all[VARIABLES];
  sconce_error err = {0};
  arena_init(&arena, NULL);
  struct jinja_input input = {.variables = all,
                              .n_variables = read_variables(json, &arena, all),
                              .date = 1794821400,
                              .steps = 100000,
                              .output = 1 << 16,
                              .memory = 4 << 20};
  sconce_status status = jinja_parse(&program, template, &arena, &err);
  if (status == SCONCE_OK) status = jinja_render(program, &input, &arena, &out, &err);
  if (status == SCONCE_OK) /* a template that can write EE itself tells nothing */
    check_output(&out, memchr(data, 0xee, size) || memchr(data, '\\', size));
  else if (!err.text[0] || err.status != status)
    __builtin_trap();
  arena_free(&arena);
  return 0;
}
