/* Chat templates: the language, what goes wrong with a line number, the limits, and who wrote which
 * byte of the result. Wanted texts are what Python's Jinja gives in Hugging Face's environment. */
#include "harness.h"
#include "llm/jinja/jinja.h"

static const char variables[] =
    "{\"n\": 3, \"x\": 2.5, \"s\": \"Hello World\", \"u\": \"Gr\xc3\xb6\xc3\x9f"
    "e \xe6\x9d\xb1\xe4\xba\xac\", \"l\": [3, 1, 2], \"d\": {\"b\": 1, \"a\": {\"x\": [1, 2]}, "
    "\"C\": null}, \"e\": \"\", \"z\": null, \"t\": true, \"lines\": \"a\\nb\\n\\n  c\", "
    "\"people\": [{\"name\": \"bob\", \"age\": 3}, {\"name\": \"Al\", \"age\": 5, \"tags\": "
    "[\"x\"]}, {\"name\": \"cy\", \"age\": 3}], \"big\": 12345678901234567890, "
    "\"messages\": [{\"role\": \"user\", \"content\": \"<Hi>\"}, {\"role\": \"mine\"}]}";

/* Everything of one rendering; free the arena. */
struct rendered {
  struct arena arena;
  sconce_error err;
  sconce_status status;
  struct jinja_output out;
};

static void render_within(struct rendered *r, const char *template, size_t size,
                          const struct jinja_input *limits) {
  struct jinja_variable all[20];
  struct jinja_input input = *limits;
  struct jinja_program *program;
  struct json root;
  struct json_walk w;
  *r = (struct rendered){0};
  arena_init(&r->arena, NULL);
  CHECK_OK(json_check((struct text){variables, sizeof variables - 1}, &root, &r->err), r->err);
  for (json_begin(&w, root); json_next(&w); input.n_variables++)
    all[input.n_variables] = (struct jinja_variable){
        .name = json_text(w.key, &r->arena).data, .kind = JINJA_JSON, .json = w.value};
  all[input.n_variables++] = (struct jinja_variable){
      .name = "bos_token", .kind = JINJA_TEXT, .text = {"<s>", 3}, .trusted = true};
  input.variables = all;
  input.date = 1794821400; /* 2026-11-16 09:30 */
  r->status = jinja_parse(&program, (struct text){template, size}, &r->arena, &r->err);
  if (r->status == SCONCE_OK)
    r->status = jinja_render(program, &input, &r->arena, &r->out, &r->err);
}

static void render(struct rendered *r, const char *template) {
  render_within(r, template, strlen(template), &(struct jinja_input){0});
}

struct row {
  const char *template, *want;
};

static void check_rows(const struct row *rows, size_t n) {
  for (size_t i = 0; i < n; i++) {
    struct rendered r;
    render(&r, rows[i].template);
    if (r.status != SCONCE_OK)
      test_fail(__FILE__, __LINE__, "%s: %s", rows[i].template, r.err.text);
    else if (!text_is(r.out.text, rows[i].want))
      test_fail(__FILE__, __LINE__, "%s: \"%.*s\", want \"%s\"", rows[i].template,
                (int)r.out.text.size, r.out.text.data, rows[i].want);
    arena_free(&r.arena);
  }
}
#define CHECK_ROWS(rows) check_rows(rows, sizeof rows / sizeof *rows)

/* ---- the language ---------------------------------------------------------------------------- */

static void white_space_around_tags(void) {
  static const struct row rows[] = {
      {"a\n{% if t %}\nb\n{% endif %}\nc\n", "a\nb\nc"}, /* one newline behind a block goes */
      {"  {% if t %}\n  x\n  {% endif %}\n", "  x\n"},   /* and the blanks in front of it */
      {"a {% if t %} b {% endif %} c", "a  b  c"},       /* not in the middle of a line */
      {"  {%+ if t +%}\nx{% endif %}", "  \nx"},
      {" a \n {%- if t -%} \n b \n {%- endif %}\n c", " ab c"},
      {"{{ n }}\n{{- n -}}\n {{ n }}\n\n", "333\n"}, /* nothing goes behind a variable by itself */
      {"  {# no #}\n  b {#- no -#} c", "  bc"},
      {"a\r\nb\rc\r\n", "a\nb\nc"},
      {"{% raw %}{{ x }}\n {% y %}{% endraw %}\n|", "{{ x }}\n {% y %}|"},
      {" {%- raw -%} {# {%- endraw -%} \n.", "{#."},
      {"{{ {'a': {'b': 1}}['a']['b'] }}", "1"}, /* }} inside of brackets is no end */
      {"", ""},
      {"{", "{"},
  };
  CHECK_ROWS(rows);
}

static void literals_and_operators(void) {
  static const struct row rows[] = {
      {"{{ 1 + 2 * 3 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 2 ** 3 ** 2 }}",
       "7 3 -4 2 3.5 64"},
      {"{{ 1.0 }} {{ 1e16 }} {{ 1e15 }} {{ 1e-5 }} {{ 0.1 + 0.2 }} {{ 2.5 // 0.1 }} {{ 1_000 }}",
       "1.0 1e+16 1000000000000000.0 1e-05 0.30000000000000004 24.0 1000"},
      {"{{ [1, 'a', none, true, 2.0, (1,), {}] }}", "[1, 'a', None, True, 2.0, (1,), {}]"},
      {"{{ [\"it's\", '\"', \"'\\\"\", 'a\\n\\x01\\u200b\\\\'] }}",
       "[\"it's\", '\"', '\\'\"', 'a\\n\\x01\\u200b\\\\']"},
      {"{{ 'a' 'b' ~ \"\\x41\\u00e9\\101\\d\" }}", "abA\xc3\xa9"
                                                   "A\\d"},
      {"{{ 'a' ~ 1 ~ none ~ 1.5 }} {{ 1 ~ 2 + 3 if 0 else 1 ~ 2 * 3 }}", "a1None1.5 16"},
      {"{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 1 == 1.0 }} {{ 'a' < 'b' }} {{ [1] == (1,) }}",
       "True False True True False"},
      {"{{ 'ell' in s }} {{ 3 not in l }} {{ 'a' in d }} {{ not 1 == 2 }} {{ 'q' in nope }}",
       "True False True True False"},
      {"{{ e or 'y' }} {{ t and 'x' }} {{ 1 or nope.x }} {{ 'a' if e else 'b' if z else 'c' }}",
       "y x 1 c"},
      {"{{ 'a' if e }}|{{ ('b' if t else 'c') ~ 'd' }}", "|bd"},
      {"{{ 'ab' * 2 }} {{ [1] + [2] }} {{ [0] * 2 }} {{ 3 * 'x' }} {{ 'x' * -1 }}",
       "abab [1, 2] [0, 0] xxx "},
      {"{{ 1 - -1 }} {{ -n ** 2 }} {{ - x }} {{ +n }}", "2 9 -2.5 3"},
      {"{{ big }} {{ big|tojson }}", "12345678901234567890 12345678901234567890"},
  };
  CHECK_ROWS(rows);
}

static void members_and_slices(void) {
  static const struct row rows[] = {
      {"{{ d.a.x[0] }} {{ d['a'].x.1 }} {{ d.q is defined }} {{ d.items is defined }}",
       "1 2 False True"},
      {"{{ d['items'] is defined }} {{ {'items': 1}['items'] }} {{ {'items': 1}.items() }}",
       "True 1 dict_items([('items', 1)])"}, /* a method first by dot, a key first in brackets */
      {"{{ s[0] }}{{ s[-1] }} {{ s[1:4] }} {{ s[::-1] }} {{ s[-3:] }} {{ s[9:2] }}|{{ u[1:4] }}",
       "Hd ell dlroW olleH rld |r\xc3\xb6\xc3\x9f"},
      {"{{ l[1:] }} {{ l[::-1] }} {{ l[:-1] }} {{ l[5:] }} {{ l[9] is defined }} {{ l[:0:-1] }}",
       "[1, 2] [2, 1, 3] [3, 1] [] False [2, 1]"},
      {"{{ nope }}|{{ d.nope }}|{{ nope|default('x') }}|{{ l.append is defined }}", "||x|False"},
      {"{{ u|length }} {{ u[-1] }} {% for c in u[4:] %}[{{ c }}]{% endfor %}",
       "8 \xe4\xba\xac [e][ ][\xe6\x9d\xb1][\xe4\xba\xac]"},
  };
  CHECK_ROWS(rows);
}

static void statements(void) {
  static const struct row rows[] = {
      {"{% if n == 4 %}a{% elif n == 3 %}b{% else %}c{% endif %}{% if e %}d{% endif %}", "b"},
      {"{% for i in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.first }}"
       "{{ loop.last }}{{ loop.previtem }}{{ loop.nextitem }}{{ loop.cycle('a', 'b') }} {% endfor "
       "%}",
       "103TrueFalse1a 212FalseFalse32b 321FalseTrue1a "},
      {"{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}{% for k in d %}{{ k }}{% endfor %}",
       "b=1;a={'x': [1, 2]};C=None;baC"},
      {"{% for i in [] %}a{% else %}none{% endfor %}{% for i in nope %}{% else %}!{% endfor %}",
       "none!"},
      {"{% for i in l if i > 1 %}{{ loop.index }}/{{ loop.length }}:{{ i }} {% endfor %}",
       "1/2:3 2/2:2 "},
      {"{% for i in range(9) %}{% if i == 2 %}{% continue %}{% endif %}{% if i > 4 %}{% break %}"
       "{% endif %}{{ i }}{% endfor %}",
       "0134"},
      {"{% for i in l %}{% set q %}{% break %}{% endset %}{% endfor %}ok", "ok"},
      {"{% set q = 1 %}{% for i in [1, 2] %}{% set q = q + 1 %}{{ q }}{% endfor %}{{ q }}", "221"},
      {"{% set ns = namespace(q=1) %}{% for i in l %}{% set ns.q = ns.q + i %}{% endfor %}{{ ns.q "
       "}}",
       "7"},
      {"{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set (a, b) = (b, a) %}{{ a }}{{ b }}", "1221"},
      {"{% set q | upper | trim %} a{{ n }} {% endset %}[{{ q }}]", "[A3]"},
      {"{% filter upper %}a{{ s }}{% endfilter %}{% with a = 1, b = n %}{{ a }}{{ b }}{% endwith "
       "%}",
       "AHELLO WORLD13"},
      {"{% generation %}g{% set q = 1 %}{% endgeneration %}{{ q is defined }}", "gFalse"},
  };
  CHECK_ROWS(rows);
}

static void macros(void) {
  static const struct row rows[] = {
      {"{% macro m(a, b=2, c=a) %}{{ a }}-{{ b }}-{{ c }}{% endmacro %}{{ m(1) }} {{ m(1, c=3) }} "
       "{{ m() }}|{{ m(b=5)|length }}",
       "1-2-1 1-2-3 -2-|3"},
      {"{% macro f(i) %}{% if i < 2 %}1{% else %}{{ i * f(i - 1)|int }}{% endif %}{% endmacro %}"
       "{{ f(10) }}",
       "3628800"},
      {"{% macro m(a) %}{{ a }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, q=3) }}",
       "1(2,){'q': 3}"},
      {"{% macro w(a) %}<{{ caller(a) }}>{% endmacro %}{% call(b) w(5) %}{{ b }}{{ n }}{% endcall "
       "%}",
       "<53>"},
      {"{% set g = 1 %}{% macro m() %}{{ g }}{% set g = 9 %}{% endmacro %}{{ m() }}{% set g = 2 %}"
       "{{ m() }}{{ g }}",
       "122"},
      {"{% for i in l %}{% macro m() %}{{ i }}{% endmacro %}{% if loop.first %}"
       "{% set ns = namespace(m=m) %}{{ ns.m() }}{% endif %}{% endfor %}",
       "3"},
      {"{% macro o() %}{% macro i(a) %}i{{ a }}{% endmacro %}{{ i(1) }}{% endmacro %}{{ o() }}",
       "i1"},
  };
  CHECK_ROWS(rows);
}

static void filters(void) {
  static const struct row rows[] = {
      {"{{ d|tojson }} {{ d|tojson(sort_keys=true) }} {{ d|tojson(separators=(',', ':')) }}",
       "{\"b\": 1, \"a\": {\"x\": [1, 2]}, \"C\": null} "
       "{\"C\": null, \"a\": {\"x\": [1, 2]}, \"b\": 1} {\"b\":1,\"a\":{\"x\":[1,2]},\"C\":null}"},
      {"{{ {'a': [1, []], 'b': {}}|tojson(indent=2) }}",
       "{\n  \"a\": [\n    1,\n    []\n  ],\n  \"b\": {}\n}"},
      {"{{ '<\"\\n\\x01>'|tojson }} {{ u|tojson(ensure_ascii=true) }} {{ {1: none, true: 2}|tojson "
       "}}",
       "\"<\\\"\\n\\u0001>\" \"Gr\\u00f6\\u00dfe \\u6771\\u4eac\" {\"1\": 2}"},
      {"{{ ' a '|trim }}|{{ 'xax'|trim('x') }}|{{ s|upper }}|{{ s|title }}|{{ u|upper }}",
       "a|a|HELLO WORLD|Hello World|GR\xc3\x96SSE \xe6\x9d\xb1\xe4\xba\xac"},
      {"{{ '\xce\xa3\xce\x91\xce\xa3 \xce\xa3'|lower }}", /* sigmas */
       "\xcf\x83\xce\xb1\xcf\x82 \xcf\x83"},
      {"{{ l|sort }} {{ l|max }} {{ l|sum }} {{ l|first }} {{ l|last }} {{ l|join('-') }} "
       "{{ l|reverse|list }}",
       "[1, 2, 3] 3 6 3 2 3-1-2 [2, 1, 3]"},
      {"{{ people|map(attribute='name')|join(',') }} {{ people|selectattr('age', 'gt', "
       "3)|list|length }}"
       " {{ people|rejectattr('tags', 'defined')|map(attribute='name')|list }}",
       "bob,Al,cy 1 ['bob', 'cy']"},
      {"{{ people|sort(attribute='name')|map(attribute='name')|list }} {{ ['a', 'A']|unique|list "
       "}}",
       "['Al', 'bob', 'cy'] ['a']"},
      {"{{ d|dictsort }} {{ d|items|list|length }} {{ [1, 2, 3]|select('odd')|list }}",
       "[('a', {'x': [1, 2]}), ('b', 1), ('C', None)] 3 [1, 3]"},
      {"{% set g = l|map('string') %}{{ g|join }}|{{ g|join }}|{% if l|select('gt', 9) %}y{% endif "
       "%}",
       "312||y"}, /* a generator gives its items once, and is true */
      {"{{ lines|indent }}|{{ lines|indent(1, true, true) }}",
       "a\n    b\n\n      c| a\n b\n \n   c"},
      {"{{ s|replace('l', 'L', 2) }} {{ 'abc'|replace('', '-') }} {{ e|default('x', true) }}",
       "HeLLo World -a-b-c- x"},
      {"{{ '42'|int }} {{ 'q'|int(7) }} {{ '4.7'|int }} {{ '1.5'|float }} {{ 2.5|round }} "
       "{{ 3.567|round(2) }} {{ -3|abs }}",
       "42 7 4 1.5 2.0 3.57 3"},
      {"{{ '<a>'|safe + '<b>' }} {{ '<a>'|safe ~ '<b>' }} {{ '<'|e }}", "<a>&lt;b&gt; <a><b> &lt;"},
      {"{{ l|batch(2)|list }} {{ people|groupby('age')|map(attribute=0)|list }}",
       "[[3, 1], [2]] [3, 5]"},
      {"{{ z|map('upper')|list }} {{ nope|list }} {{ ''|first is defined }}", "[] [] False"},
  };
  CHECK_ROWS(rows);
}

static void tests_and_methods(void) {
  static const struct row rows[] = {
      {"{{ z is none }} {{ t is true }} {{ 1 is true }} {{ t is number }} {{ s is string }} "
       "{{ d is mapping }} {{ d is sequence }} {{ 5 is iterable }}",
       "True True False True True True True False"},
      {"{{ 9 is divisibleby 3 }} {{ 1 is in [1] }} {{ 3 is eq 3 }} {{ nope is not defined }} "
       "{{ 'ab' is lower }} {{ 'upper' is filter }}",
       "True True True True True True"},
      {"{{ 'a,b,c'.split(',', 1) }} {{ ' a  b '.split() }} {{ 'a,b,c'.rsplit(',', 1) }} "
       "{{ ''.split(',') }}",
       "['a', 'b,c'] ['a', 'b'] ['a,b', 'c'] ['']"},
      {"{{ ' x '.strip() }}{{ 'xxa'.lstrip('x') }}{{ 'axx'.rstrip('x') }} {{ s.startswith('He') }} "
       "{{ s.endswith(('x', 'ld')) }} {{ s.find('o') }} {{ s.count('l') }}",
       "xaa True True 4 3"},
      {"{{ '{} {0} {x} {{}} {:>4}|{:.2f}'.format('a', 2.345, x=1) if 0 else "
       "'{} {x} {{}} {:>4}|{:.2f}'.format('a', 7, 2.345, x=1) }}",
       "a 1 {}    7|2.35"},
      {"{{ '%s %d %5.1f %-3s|%%' % ('a', 5, 1.25, 'b') }} {{ '%(k)s' % {'k': 1} }}",
       "a 5   1.2 b  |% 1"},
      {"{{ d.get('q', 7) }} {{ d.get('q') }} {{ d.keys()|list }} {{ l.index(1) }} {{ "
       "'a'.join('bc') }}",
       "7 None ['b', 'a', 'C'] 1 bac"},
      {"{{ 'a=b=c'.partition('=') }} {{ 'Title me'.title() }} {{ '7'.zfill(3) }} {{ 'a1'.isalnum() "
       "}}",
       "('a', '=', 'b=c') Title Me 007 True"},
      {"{{ range(5, 0, -2)|list }} {{ dict(a=1)|tojson }} {{ strftime_now('%d %b %Y, %H:%M %A %j "
       "%-m') }}",
       "[5, 3, 1] {\"a\": 1} 16 Nov 2026, 09:30 Monday 320 11"},
  };
  CHECK_ROWS(rows);
}

/* ---- errors ---------------------------------------------------------------------------------- */

static void parse_errors_name_the_line(void) {
  static const struct row rows[] = {
      {"a\n{% if x %}\nb", "line 3: the 'if' of line 2 has no end"},
      {"\n{% endfor %}", "line 2: 'endfor' without anything open"},
      {"{% for i in l %}\n{% endif %}", "line 2: 'endif' where the 'for' of line 1 is open"},
      {"{{ 1 +\n\n }}", "line 3: expected a value, not }}"},
      {"{{ 'abc }}", "line 1: a text without its closing quote"},
      {"a\n{# b", "line 2: a comment without an end"},
      {"{% raw %}", "line 1: raw without endraw"},
      {"{{ (1] }}", "unexpected ']', ')' is still open"},
      {"{{ 1 } }}", "unexpected '}'"},
      {"{{ a b }}", "expected '}}', not 'b'"},
      {"{% include 'x' %}", "unknown statement 'include'"},
      {"{% break %}", "'break' outside of a loop"},
      {"{% for i in l %}{% macro m() %}{% continue %}", "'continue' outside of a loop"},
      {"{% for i in l recursive %}", "recursive loops are not supported"},
      {"{{ f(*l) }}", "arguments with * are not supported"},
      {"{% set 1 = 2 %}", "expected a name, not a number"},
      {"{% macro m(a=1, b) %}", "a parameter without a default behind one with it"},
      {"{{ x\n", "not the end of the template"},
      {"{{ \xe2\x82\xac }}", "unexpected '\xe2\x82\xac'"},
      {"\xff", "no UTF-8 at byte 0"},
      {"{{ 99999999999999999999 }}", "more than 64 bits"},
      {"{{ '\\ud800' }}", "an escape that is no character"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct rendered r;
    render(&r, rows[i].template);
    CHECK_FAILS(r.status, SCONCE_BAD_FILE, r.err, rows[i].want);
    arena_free(&r.arena);
  }
}

static void run_errors_name_the_line(void) {
  static const struct row rows[] = {
      {"a\n\n{{ nope.x }}", "line 3: 'nope' is undefined"},
      {"{{ d.nope.x }}", "a dict has no 'nope'"},
      {"{{ l[7] + 1 }}", "a list has no such element"},
      {"{{ 'a' + 1 }}", "+ between a str and a int"},
      {"{{ n < 'a' }}", "a int and a str have no order"},
      {"{% for i in\nz %}{% endfor %}", "line 2: a NoneType cannot be looped over"},
      {"{{ l.append(1) }}", "'append' would change a list, which templates may not"},
      {"{{ raise_exception('no ' ~ s) }}", "line 1: no Hello World"},
      {"{{ 1 // 0 }}", "division by zero"},
      {"{{ 9223372036854775807 + 1 }}", "more than 64 bits"},
      {"{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}",
       "2 arguments for the macro 'm', which takes 1"},
      {"{% macro m(a) %}{% endmacro %}{{ m(b=1) }}", "the macro 'm' has no parameter 'b'"},
      {"{{ s|indent(nope=1) }}", "'indent' takes no 'nope'"},
      {"{{ s|replace('a') }}", "'replace' needs 2 arguments"},
      {"{{ l|select('odd')|tojson }}", "a generator cannot be written as JSON"},
      {"{% set a, b = l %}", "3 values for 2 names"},
      {"{% set n.x = 1 %}", "only members of a namespace can be set"},
      {"{{ range(1000000) }}", "a range of more than 100000 numbers"},
      {"{{ s() }}", "a str cannot be called"},
      {"{{ '%d' % 'a' }}", "the format %d for a str"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct rendered r;
    render(&r, rows[i].template);
    CHECK_FAILS(r.status, SCONCE_BAD_ARGUMENT, r.err, rows[i].want);
    arena_free(&r.arena);
  }
}

/* What a branch that does not run names need not exist. */
static void unknown_filters_fail_where_they_run(void) {
  struct rendered r;
  render(&r, "{% if e %}{{ s|nosuch }}{{ s is nosuch }}{% endif %}{{ s|nosuch if e else 1 }}");
  CHECK_OK(r.status, r.err);
  arena_free(&r.arena);
  render(&r, "{{ s|no.such }}");
  CHECK_FAILS(r.status, SCONCE_UNSUPPORTED, r.err, "line 1: there is no filter 'no.such'");
  arena_free(&r.arena);
}

/* ---- limits ---------------------------------------------------------------------------------- */

static void limits_are_kept(void) {
  static const struct {
    const char *template;
    struct jinja_input limits;
    sconce_status status;
    const char *want;
  } rows[] = {
      {"{% for a in range(1000) %}{% for b in range(1000) %}{% endfor %}{% endfor %}",
       {.steps = 10000},
       SCONCE_BAD_FILE,
       "takes more than 10000 steps"},
      {"{% for a in range(100) %}{{ s }}{% endfor %}",
       {.output = 1000},
       SCONCE_BAD_FILE,
       "writes more than 1000 bytes"},
      {"{{ 'x' * 1000000000000 }}", {0}, SCONCE_BAD_FILE, "writes more than"},
      {"{{ [0] * 1000000000000 }}", {0}, SCONCE_NO_MEMORY, "needs more than"},
      {"{% set ns = namespace(a='ab') %}{% for i in range(60) %}{% set ns.a = ns.a + ns.a %}"
       "{% endfor %}",
       {0},
       SCONCE_BAD_FILE,
       "writes more than"},
      {"{% set ns = namespace(a=[1]) %}{% for i in range(60) %}{% set ns.a = ns.a + ns.a %}"
       "{% endfor %}",
       {.memory = 1 << 20},
       SCONCE_NO_MEMORY,
       "needs more than 1048576 bytes of memory"},
      {"{% set ns = namespace(a=[1]) %}{% for i in range(300) %}{% set ns.a = [ns.a] %}{% endfor "
       "%}",
       {0},
       SCONCE_BAD_ARGUMENT,
       "nested deeper than 200"},
      {"{% set ns = namespace(a=[1]) %}{% for i in range(150) %}{% set ns.a = [ns.a, ns.a] %}"
       "{% endfor %}{{ ns.a|tojson }}",
       {.steps = 1000000, .output = 64 << 20},
       SCONCE_BAD_FILE,
       "steps"}, /* 2^150 items */
      {"{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
       {0},
       SCONCE_BAD_ARGUMENT,
       "macros that call macros deeper than 200"},
      {"{{ 'a'|map('map', 'map', 'map', 'map', 'map', 'map', 'map', 'map', 'map', 'upper')|list }}",
       {0},
       SCONCE_BAD_ARGUMENT,
       "filters in filters deeper than 8"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct rendered r;
    render_within(&r, rows[i].template, strlen(rows[i].template), &rows[i].limits);
    CHECK_FAILS(r.status, rows[i].status, r.err, rows[i].want);
    arena_free(&r.arena);
  }
}

/* `open` n times, `middle`, `close` n times. */
static void check_nested(const char *open, const char *middle, const char *close, size_t n,
                         const char *want) {
  size_t size = n * (strlen(open) + strlen(close)) + strlen(middle), at = 0;
  char *text = malloc(size + 1);
  for (size_t i = 0; i < n; i++) at += (size_t)sprintf(text + at, "%s", open);
  at += (size_t)sprintf(text + at, "%s", middle);
  for (size_t i = 0; i < n; i++) at += (size_t)sprintf(text + at, "%s", close);
  struct rendered r;
  render_within(&r, text, at, &(struct jinja_input){0});
  CHECK_FAILS(r.status, want ? SCONCE_BAD_FILE : SCONCE_OK, r.err, want ? want : "");
  arena_free(&r.arena);
  free(text);
}

static void depth_is_bounded(void) {
  check_nested("{{ ", "((((((((((((1))))))))))))", " }}", 1, NULL);
  char open[2000] = "{{ ", close[2000] = "";
  for (int i = 0; i < 300; i++) strcat(open, "("), strcat(close, ")");
  strcat(close, " }}");
  check_nested(open, "1", close, 1, "nested deeper than 100");
  check_nested("{% if t %}", "x", "{% endif %}", 99, NULL);
  check_nested("{% if t %}", "x", "{% endif %}", 101, "statements nested deeper than 100");
  strcpy(open, "{{ ");
  for (int i = 0; i < 300; i++) strcat(open, "not ");
  check_nested(open, "1", " }}", 1, "expressions nested deeper than 100");
  strcpy(open, "{{ ");
  for (int i = 0; i < 300; i++) strcat(open, "- ");
  check_nested(open, "1", " }}", 1, "expressions nested deeper than 100");
  check_nested("{{ a0 if ", "1", " else 0 }}", 1, NULL);
  check_nested("x{# #}", "", "", 200000, "a template of 1200000 bytes, at most");
}

/* A megabyte of text costs what a megabyte costs, wherever its parts are found. */
static void long_texts_fit_the_limits(void) {
  static const char *const uses[] = {"{{ (t * 250000).split(' ')|length }}",
                                     "{{ (t * 250000).rsplit(' ')|length }}",
                                     "{{ (t * 250000)|replace('b', 'xyz')|length }}",
                                     "{{ (t * 250000).splitlines()|length }}",
                                     "{{ (t * 250000)|trim|upper|length }}",
                                     "{{ (t * 250000)|tojson|length }}",
                                     "{{ (t * 250000).count('b') }}",
                                     "{% for c in t * 250000 %}{{ c }}{% endfor %}",
                                     "{{ 'z' in t * 250000 }}{{ (t * 250000)[::-1]|length }}",
                                     "{{ (t * 250000)|indent|length }}"};
  for (size_t i = 0; i < sizeof uses / sizeof *uses; i++) {
    char text[200];
    struct rendered r;
    snprintf(text, sizeof text, "{%% set t = 'a b\n' %%}%s", uses[i]);
    render_within(&r, text, strlen(text),
                  &(struct jinja_input){.steps = 8000000, .output = 4 << 20});
    if (r.status != SCONCE_OK) test_fail(__FILE__, __LINE__, "%s: %s", uses[i], r.err.text);
    arena_free(&r.arena);
  }
}

/* ---- who wrote what -------------------------------------------------------------------------- */

/* The result with every byte of the caller's as "_". */
static void check_marks(const char *template, const char *want) {
  struct rendered r;
  render(&r, template);
  CHECK_OK(r.status, r.err);
  char *text = calloc(1, r.out.text.size + 1);
  for (size_t i = 0; i < r.out.text.size; i++)
    text[i] = r.out.own[i] == 1 ? r.out.text.data[i] : '_';
  if (strcmp(text, want) != 0)
    test_fail(__FILE__, __LINE__, "%s: \"%s\", want \"%s\"", template, text, want);
  free(text);
  arena_free(&r.arena);
}

static void origins_follow_the_bytes(void) {
  static const struct row rows[] = {
      {"<{{ s }}>{{ 'lit' }}", "<___________>lit"},
      {"{{ '<' + e + s[:2] + '>' }}{{ '<' ~ s[0] ~ 1 ~ '>' }}", "<__><_1>"},
      {"{{ (' ' + s + ' ')|trim }}|{{ ('ab' + s[:1])|upper }}|{{ ('a' + s[:1])[::-1] }}",
       "___________|AB_|_a"},
      {"{{ s|replace('World', '<x>') }}|{{ 'abc'|replace('b', s[:2]) }}", "______<x>|a__c"},
      {"{{ s.split(' ')|join('+') }}|{{ 'a,b'.split(',')|join(s[0]) }}", "_____+_____|a_b"},
      {"{{ '{}-{}'.format(s[0], 'k') }}|{{ '%s-%s' % (s[0], 'k') }}|{{ s[:1].join(['a', 'b']) }}",
       "_-k|_-k|a_b"},
      {"{% macro m(a) %}[{{ a }}]{% endmacro %}{{ m(s[:2]) }}{% set q %}<{{ s[0] }}>{% endset %}"
       "{{ q }}{% filter upper %}f{{ s[0] }}{% endfilter %}",
       "[__]<_>F_"},
      {"{{ l|tojson }}|{{ ['k']|tojson }}|{{ d.a }}|{{ u|indent }}",
       "_________|_____|_____________|______________"},
      {"{{ n }} {{ n + 1 }} {{ 1 + 1 }} {{ x }} {{ t }} {{ l|length }} {{ s|length }} {{ '7'|int "
       "}}",
       "_ _ 2 ___ ____ 3 11 7"},
      {"{% for k, v in d.items() %}{{ k }}{{ loop.index }}{% endfor %}{% for c in s[:2] %}{{ c }}."
       "{% endfor %}",
       "_1_2_3_._."},
      {"{{ messages[0].role }} {{ messages[1].role }} {{ messages[0].content }} {{ bos_token }}",
       "user ____ ____ <s>"}, /* known roles are no one's text */
      {"{{ strftime_now('%Y') }} {{ strftime_now(s[:1]) }} {{ s|default('d') }} {{ "
       "nope|default('d') }}",
       "2026 _ ___________ d"},
      {"{{ '<'|e }}{{ messages[0].content|e }} {{ ('a' ~ s[:1])|safe + '<' }}",
       "&lt;__________ a_&lt;"},
      {"{{ s|map('upper')|join }}|{{ s|list|sort|first }}|{{ s|reverse }}",
       "___________|_|___________"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    check_marks(rows[i].template, rows[i].want);
}

const struct test suite_jinja[] = {
    TEST(white_space_around_tags),
    TEST(literals_and_operators),
    TEST(members_and_slices),
    TEST(statements),
    TEST(macros),
    TEST(filters),
    TEST(tests_and_methods),
    TEST(parse_errors_name_the_line),
    TEST(run_errors_name_the_line),
    TEST(unknown_filters_fail_where_they_run),
    TEST(limits_are_kept),
    TEST(depth_is_bounded),
    TEST(long_texts_fit_the_limits),
    TEST(origins_follow_the_bytes),
    {0},
};
