/* A small module that holds the real one, packed by web/pack.py as LZMA (lc 3, lp 0, pb 0, no
 * header), and unpacks it: engine.js compiles what comes out. Code packs a sixth better than with
 * gzip, data a fifth, and it is small on servers that do not compress. No libc, no imports. */
#include <stdbool.h>
#include <stdint.h>

const volatile struct {
  uint32_t from, to, to_size;                       /* addresses and bytes */
} packed = {0x9e3779b9u, 0x7f4a7c15u, 0xf39cc060u}; /* by which the script finds it */

enum { STATES = 12, LENGTHS = 2 + 8 * 2 + 256 };

/* Probabilities of a 0, of 2048. */
struct model {
  uint16_t is_match[STATES], is_rep[STATES], is_rep_0_long[STATES];
  uint16_t is_rep_0[STATES], is_rep_1[STATES], is_rep_2[STATES];
  uint16_t slot[4][64], special[128], align[16];
  uint16_t match_length[LENGTHS], rep_length[LENGTHS];
  uint16_t literal[8][0x300]; /* by the top three bits of the byte before */
};

struct decoder {
  const uint8_t *in;
  uint32_t range, code;
};

static void normalize(struct decoder *d) {
  if (d->range >> 24) return;
  d->range <<= 8;
  d->code = d->code << 8 | *d->in++;
}

static uint32_t bit(struct decoder *d, uint16_t *p) {
  normalize(d);
  uint32_t bound = (d->range >> 11) * *p;
  if (d->code < bound) {
    d->range = bound;
    *p = (uint16_t)(*p + ((2048 - *p) >> 5));
    return 0;
  }
  d->range -= bound;
  d->code -= bound;
  *p = (uint16_t)(*p - (*p >> 5));
  return 1;
}

static uint32_t even_bits(struct decoder *d, uint32_t n) {
  uint32_t value = 0;
  for (; n; n--) {
    normalize(d);
    d->range >>= 1;
    uint32_t one = d->code >= d->range;
    if (one) d->code -= d->range;
    value = value << 1 | one;
  }
  return value;
}

static uint32_t tree(struct decoder *d, uint16_t *p, uint32_t n) {
  uint32_t node = 1;
  for (uint32_t i = 0; i < n; i++) node = node << 1 | bit(d, &p[node]);
  return node - (1u << n);
}

/* The lowest bit comes first. */
static uint32_t reverse_tree(struct decoder *d, uint16_t *p, uint32_t n) {
  uint32_t node = 1, value = 0;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t b = bit(d, &p[node]);
    node = node << 1 | b;
    value |= b << i;
  }
  return value;
}

/* Less 2, which is the shortest match. */
static uint32_t length(struct decoder *d, uint16_t *p) {
  if (!bit(d, &p[0])) return tree(d, p + 2, 3);
  if (!bit(d, &p[1])) return 8 + tree(d, p + 10, 3);
  return 16 + tree(d, p + 18, 8);
}

/* Less 1. */
static uint32_t distance(struct decoder *d, struct model *m, uint32_t length_code) {
  uint32_t slot = tree(d, m->slot[length_code < 3 ? length_code : 3], 6);
  if (slot < 4) return slot;
  uint32_t n = (slot >> 1) - 1, base = (2 | (slot & 1)) << n;
  if (slot < 14) return base + reverse_tree(d, m->special + base - slot, n);
  base += even_bits(d, n - 4) << 4;
  return base + reverse_tree(d, m->align, 4);
}

/* `match` is the byte that a match would have copied, after a match; 0x100 after a literal. */
static uint8_t literal(struct decoder *d, uint16_t *p, uint32_t match) {
  uint32_t node = 1;
  while (node < 0x100) {
    uint32_t expected = match >> 7 & 1, other = match < 0x100 ? (1 + expected) << 8 : 0;
    uint32_t b = bit(d, &p[other + node]);
    node = node << 1 | b;
    match = other && b == expected ? (match << 1 & 0xff) : 0x100;
  }
  return (uint8_t)node;
}

/* Which of the last four distances comes again; it becomes the first. */
static void choose_rep(struct decoder *d, struct model *m, uint32_t state, uint32_t rep[4]) {
  uint32_t i = !bit(d, &m->is_rep_1[state]) ? 1 : 2 + bit(d, &m->is_rep_2[state]);
  uint32_t chosen = rep[i];
  for (; i; i--) rep[i] = rep[i - 1];
  rep[0] = chosen;
}

static void decode(const uint8_t *in, uint8_t *out, uint32_t size) {
  struct model m;
  struct decoder d = {in + 5, ~0u, 0};
  for (uint32_t i = 1; i < 5; i++) d.code = d.code << 8 | in[i];
  for (uint32_t i = 0; i < sizeof m / 2; i++) ((uint16_t *)&m)[i] = 1024;
  uint32_t state = 0, rep[4] = {0}; /* state: of the last steps; from 7 on the last was a match */
  for (uint32_t at = 0; at < size;) {
    uint32_t n = 1;
    if (!bit(&d, &m.is_match[state])) {
      uint32_t before = at ? out[at - 1] : 0;
      out[at] = literal(&d, m.literal[before >> 5], state < 7 ? 0x100 : out[at - rep[0] - 1]);
      at++;
      state = state < 4 ? 0 : state < 10 ? state - 3 : state - 6;
      continue;
    }
    if (!bit(&d, &m.is_rep[state])) {
      n = length(&d, m.match_length) + 2;
      for (uint32_t i = 3; i; i--) rep[i] = rep[i - 1];
      rep[0] = distance(&d, &m, n - 2);
      state = state < 7 ? 7 : 10;
    } else {
      bool first = !bit(&d, &m.is_rep_0[state]);
      bool one = first && !bit(&d, &m.is_rep_0_long[state]);
      if (!first) choose_rep(&d, &m, state, rep);
      if (!one) n = length(&d, m.rep_length) + 2;
      state = state >= 7 ? 11 : one ? 9 : 8;
    }
    for (; n && at < size; n--, at++) out[at] = out[at - rep[0] - 1];
  }
}

/* The address of the module. */
__attribute__((export_name("unpack"))) const uint8_t *unpack(void) {
  uint8_t *to = (uint8_t *)packed.to;
  decode((const uint8_t *)packed.from, to, packed.to_size);
  return to;
}

__attribute__((export_name("unpacked_size"))) uint32_t unpacked_size(void) {
  return packed.to_size;
}
