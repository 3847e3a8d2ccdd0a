/* Arithmetic and comparisons, with Python's rules: / gives a float, // and % round down. What two
 * numbers give is the template's own only if both are. */
#include "llm/jinja/builtin.h"
#include "llm/jinja/code.h"

#include <math.h>

static sconce_status no_operator(struct jrun *run, uint8_t token, const struct jvalue *a,
                                 const struct jvalue *b) {
  static const char *const names[] = {
      [T_ADD] = "+", [T_SUB] = "-",    [T_MUL] = "*",   [T_DIV] = "/",
      [T_MOD] = "%", [T_POWER] = "**", [T_FLOOR] = "//"};
  if (a->type == J_UNDEFINED) return j_fail_undefined(run, a);
  if (b->type == J_UNDEFINED) return j_fail_undefined(run, b);
  return j_fail(run, "%s between a %s and a %s", names[token], j_type_name(a), j_type_name(b));
}

/* ---- numbers --------------------------------------------------------------------------------- */

static bool power_of(int64_t base, int64_t exponent, int64_t *out) {
  *out = 1;
  for (; exponent; exponent >>= 1) {
    if (exponent & 1 && !mul_i64(*out, base, out)) return false;
    if (exponent > 1 && !mul_i64(base, base, &base)) return false;
  }
  return true;
}

static int64_t floor_div(int64_t a, int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

/* false: more than 64 bits. b is no 0 where it divides. */
static bool integers(uint8_t token, int64_t a, int64_t b, int64_t *out) {
  switch (token) {
  case T_ADD:
    return add_i64(a, b, out);
  case T_SUB:
    return sub_i64(a, b, out);
  case T_MUL:
    return mul_i64(a, b, out);
  case T_POWER:
    return power_of(a, b, out);
  case T_FLOOR:
    if (a == INT64_MIN && b == -1) return false;
    *out = floor_div(a, b);
    return true;
  default:
    *out = b == -1 ? 0 : a % b;
    if (*out && (*out < 0) != (b < 0)) *out += b;
    return true;
  }
}

/* The remainder has the sign of b, and the quotient fits it. */
static double floor_quotient(double a, double b, double *rest) {
  *rest = fmod(a, b);
  double quotient = (a - *rest) / b;
  if (*rest != 0 && (*rest < 0) != (b < 0)) {
    *rest += b;
    quotient -= 1;
  }
  double whole = floor(quotient);
  return quotient - whole > 0.5 ? whole + 1 : whole;
}

static double doubles(uint8_t token, double a, double b) {
  double rest;
  switch (token) {
  case T_ADD:
    return a + b;
  case T_SUB:
    return a - b;
  case T_MUL:
    return a * b;
  case T_DIV:
    return a / b;
  case T_POWER:
    return pow(a, b);
  case T_FLOOR:
    return floor_quotient(a, b, &rest);
  default:
    floor_quotient(a, b, &rest);
    return rest;
  }
}

static sconce_status numbers(struct jrun *run, uint8_t token, const struct jvalue *a,
                             const struct jvalue *b, struct jvalue *out) {
  bool own = a->own && b->own, divides = token == T_DIV || token == T_FLOOR || token == T_MOD;
  divides |= token == T_POWER && j_as_double(a) == 0 && j_as_double(b) < 0;
  if (divides && (j_as_double(b) == 0 || token == T_POWER)) return j_fail(run, "division by zero");
  bool whole = a->type != J_FLOAT && b->type != J_FLOAT && token != T_DIV;
  if (whole && token == T_POWER && j_as_double(b) < 0) whole = false;
  if (!whole) {
    *out = j_float(doubles(token, j_as_double(a), j_as_double(b)), own);
    return SCONCE_OK;
  }
  int64_t x = a->type == J_INT ? a->integer : a->truth,
          y = b->type == J_INT ? b->integer : b->truth;
  *out = j_int(0, own);
  if (integers(token, x, y, &out->integer)) return SCONCE_OK;
  return j_fail(run, "a result of more than 64 bits");
}

/* ---- texts and lists ------------------------------------------------------------------------- */

static sconce_status add_strings(struct jrun *run, struct jvalue a, struct jvalue b,
                                 struct jvalue *out) {
  struct jbuffer buffer = {0};
  bool safe = a.kind || b.kind; /* one that was called safe makes the other one so */
  if (safe) {
    TRY(j_escape(run, &a, &a));
    TRY(j_escape(run, &b, &b));
  }
  TRY(j_put_string(run, &buffer, &a));
  TRY(j_put_string(run, &buffer, &b));
  *out = j_taken(&buffer);
  out->kind = safe;
  return SCONCE_OK;
}

static sconce_status add_lists(struct jrun *run, const struct jlist *a, const struct jlist *b,
                               struct jvalue *out) {
  struct jvalue *items = j_new(run, struct jvalue, a->n + b->n);
  if (!items) return J_NO_ROOM;
  if (a->n) memcpy(items, a->items, a->n * sizeof *items);
  if (b->n) memcpy(items + a->n, b->items, b->n * sizeof *items);
  return j_list(run, (enum jlist_kind)a->kind, items, a->n + b->n, out);
}

static sconce_status repeat(struct jrun *run, const struct jvalue *v, const struct jvalue *times,
                            struct jvalue *out) {
  int64_t n;
  struct jbuffer b = {0};
  TRY(j_as_int(run, times, "how often something is repeated", &n));
  if (n < 0) n = 0;
  if (v->type == J_STRING) {
    if (v->size && (uint64_t)n > run->output / v->size)
      return fail(run->err, SCONCE_BAD_FILE, "the template writes more than %zu bytes",
                  run->output);
    if (v->size) TRY(j_spend(run, (size_t)n / 4));
    for (int64_t i = 0; i < n && v->size; i++) TRY(j_put_string(run, &b, v));
    *out = j_taken(&b);
    out->kind = v->kind;
    return SCONCE_OK;
  }
  size_t all;
  if (!mul_size(v->list->n, (size_t)n, &all)) all = SIZE_MAX;
  struct jvalue *items = j_new(run, struct jvalue, all);
  if (!items) return J_NO_ROOM;
  for (size_t i = 0; i < all; i++) items[i] = v->list->items[i % v->list->n];
  TRY(j_spend(run, all / 4));
  return j_list(run, (enum jlist_kind)v->list->kind, items, all, out);
}

static bool repeats(const struct jvalue *v) {
  return v->type == J_STRING || (v->type == J_LIST && v->list->kind <= JL_TUPLE);
}

sconce_status j_binary(struct jrun *run, uint8_t token, const struct jvalue *a,
                       const struct jvalue *b, struct jvalue *out) {
  if (token == T_MOD && a->type == J_STRING) return j_percent(run, a, b, out);
  if (a->type == J_UNDEFINED || b->type == J_UNDEFINED) return no_operator(run, token, a, b);
  if (j_is_number(a) && j_is_number(b)) return numbers(run, token, a, b, out);
  if (token == T_ADD && a->type == J_STRING && b->type == J_STRING)
    return add_strings(run, *a, *b, out);
  if (token == T_ADD && a->type == J_LIST && b->type == J_LIST && a->list->kind == b->list->kind &&
      a->list->kind <= JL_TUPLE)
    return add_lists(run, a->list, b->list, out);
  bool times = token == T_MUL;
  if (times && repeats(a) && (b->type == J_INT || b->type == J_BOOL)) return repeat(run, a, b, out);
  if (times && repeats(b) && (a->type == J_INT || a->type == J_BOOL)) return repeat(run, b, a, out);
  return no_operator(run, token, a, b);
}

sconce_status j_negate(struct jrun *run, const struct jvalue *v, struct jvalue *out) {
  if (v->type == J_UNDEFINED) return j_fail_undefined(run, v);
  if (!j_is_number(v)) return j_fail(run, "- in front of a %s", j_type_name(v));
  if (v->type == J_FLOAT) {
    *out = j_float(-v->number, v->own);
    return SCONCE_OK;
  }
  struct jvalue zero = j_int(0, true);
  return numbers(run, T_SUB, &zero, v, out);
}

/* ---- comparisons ----------------------------------------------------------------------------- */

static bool is_nan(const struct jvalue *v) { return v->type == J_FLOAT && isnan(v->number); }

sconce_status j_compare(struct jrun *run, uint8_t how, const struct jvalue *a,
                        const struct jvalue *b, bool *out) {
  int order = 0;
  if (how == C_EQ || how == C_NE) {
    TRY(j_equal(run, a, b, out));
    *out = *out == (how == C_EQ);
    return SCONCE_OK;
  }
  if (how == C_IN || how == C_NOT_IN) {
    TRY(j_contains(run, b, a, out));
    *out = *out == (how == C_IN);
    return SCONCE_OK;
  }
  TRY(j_order(run, a, b, &order));
  *out = how == C_LT ? order < 0 : how == C_LE ? order <= 0 : how == C_GT ? order > 0 : order >= 0;
  if (is_nan(a) || is_nan(b)) *out = false;
  return SCONCE_OK;
}
