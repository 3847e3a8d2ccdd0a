/* A template from text to code: see jinja.h and code.h. */
#include "base/utf8.h"
#include "llm/jinja/block.h"

static sconce_status parse_tag(struct jparser *p) {
  struct text name;
  TRY(advance(p));
  uint32_t line = p->now.line;
  TRY(expect_identifier(p, &name));
  TRY(parse_statement(p, name, line));
  if (at_type(p, T_COLON)) TRY(advance(p));
  return expect_type(p, T_TAG_END, "'%}'");
}

static sconce_status parse_print(struct jparser *p) {
  TRY(advance(p));
  TRY(parse_tuple(p, true));
  TRY(emit_op(p, OP_PRINT, 0));
  return expect_type(p, T_PRINT_END, "'}}'");
}

static sconce_status parse_all(struct jparser *p) {
  TRY(advance(p));
  while (!at_type(p, T_END)) {
    p->nesting = 0;
    if (at_type(p, T_TAG)) {
      TRY(parse_tag(p));
    } else if (at_type(p, T_PRINT)) {
      TRY(parse_print(p));
    } else {
      TRY(emit_constant(p, OP_TEXT, j_string(p->now.text, true)));
      TRY(advance(p));
    }
  }
  if (p->n_blocks == 0) return emit_op(p, OP_END, 0);
  const struct jblock *b = &p->blocks[p->n_blocks - 1];
  return parse_fail(p, "the '%s' of line %u has no end", block_names[b->kind], b->line);
}

/* Lines end with \n, and the last one has no end; what is no UTF-8 is refused. */
static sconce_status copy_source(struct jparser *p, struct text source, struct text *out) {
  char *copy = arena_new(p->arena, char, source.size + 1);
  size_t n = 0;
  if (!copy) return fail(p->err, SCONCE_NO_MEMORY, "out of memory for a template");
  for (size_t i = 0; i < source.size; i++) {
    bool pair = source.data[i] == '\r' && i + 1 < source.size && source.data[i + 1] == '\n';
    if (!pair) copy[n++] = source.data[i] == '\r' ? '\n' : source.data[i];
  }
  if (n && copy[n - 1] == '\n') n--;
  for (size_t i = 0; i < n;) {
    struct utf8_char c = utf8_decode(copy + i, copy + n);
    if (c.state != UTF8_OK) return fail(p->err, SCONCE_BAD_FILE, "no UTF-8 at byte %zu", i);
    i += c.size;
  }
  *out = (struct text){copy, n};
  return SCONCE_OK;
}

sconce_status jinja_parse(struct jinja_program **out, struct text source, struct arena *arena,
                          sconce_error *err) {
  struct jparser p = {.arena = arena, .err = err};
  *out = NULL;
  if (source.size > SOURCE_SIZE_MAX)
    return fail(err, SCONCE_BAD_FILE, "a template of %zu bytes, at most %d", source.size,
                SOURCE_SIZE_MAX);
  p.program = arena_new(arena, struct jinja_program, 1);
  p.blocks = arena_new(arena, struct jblock, BLOCKS_MAX);
  if (!p.program || !p.blocks) return fail(err, SCONCE_NO_MEMORY, "out of memory for a template");
  TRY(copy_source(&p, source, &source));
  lexer_init(&p.lexer, source, arena, err);
  static const char *const special[] = {"caller", "varargs", "kwargs", "loop"};
  for (uint32_t i = 0; i < 4; i++) {
    int32_t index;
    TRY(intern_name(&p, text_of(special[i]), &index));
  }
  p.program->name_caller = 0;
  p.program->name_varargs = 1;
  p.program->name_kwargs = 2;
  p.program->name_loop = 3;
  TRY(parse_all(&p));
  *out = p.program;
  return SCONCE_OK;
}
