/* The structural verifier, on buffers built by hand: faults that no real file has. */
#include "edit.h"

/* ---- a small schema and a small builder ------------------------------------------------------ */

static const struct fb_field leaf_fields[] = {{"wide", FB_SCALAR, 8, 0, false, NULL},
                                              {"name", FB_STRING, 1, 0, false, NULL}};
static const struct fb_type leaf = {"Leaf", leaf_fields, 2};
static const struct fb_type nothing = {"Nothing", NULL, 0};
static const struct fb_type *const leaf_list[] = {&leaf};
static const struct fb_type *const members[] = {&nothing, &leaf};
static const struct fb_field root_fields[] = {
    {"kind", FB_SCALAR, 1, 0, false, NULL},        {"any", FB_UNION, 4, 2, false, members},
    {"leaves", FB_TABLES, 4, 1, false, leaf_list}, {"longs", FB_VECTOR, 8, 0, false, NULL},
    {"child", FB_TABLE, 4, 1, false, leaf_list},
};
static const struct fb_type root_type = {"Root", root_fields, 5};

/* Places of the parts in the buffer below; all are patched by rows. */
enum {
  ROOT_VTABLE = 8, /* 4 + 2 * 5 bytes */
  ROOT = 24,       /* soffset, any, leaves, longs, child, kind */
  LEAF_VTABLE = 48,
  LEAF = 56, /* soffset, name, wide at +8 */
  NAME = 72, /* 3 bytes and a NUL */
  LEAVES = 80,
  LONGS = 92, /* elements at 96 */
  END = 112,
};

static void put(uint8_t *p, uint32_t width, uint64_t value) {
  for (uint32_t i = 0; i < width; i++) p[i] = (uint8_t)(value >> 8 * i);
}

static void build(uint8_t b[END]) {
  memset(b, 0, END);
  put(b, 4, ROOT);
  memcpy(b + 4, "TEST", 4);
  const uint16_t slots[] = {14, 24, 20, 4, 8, 12, 16};
  for (int i = 0; i < 7; i++) put(b + ROOT_VTABLE + 2 * i, 2, slots[i]);
  put(b + ROOT, 4, ROOT - ROOT_VTABLE);
  put(b + ROOT + 4, 4, LEAF - (ROOT + 4));
  put(b + ROOT + 8, 4, LEAVES - (ROOT + 8));
  put(b + ROOT + 12, 4, LONGS - (ROOT + 12));
  put(b + ROOT + 16, 4, LEAF - (ROOT + 16));
  put(b + ROOT + 20, 1, 2);
  put(b + LEAF_VTABLE, 2, 8);
  put(b + LEAF_VTABLE + 2, 2, 16);
  put(b + LEAF_VTABLE + 4, 2, 8);
  put(b + LEAF_VTABLE + 6, 2, 4);
  put(b + LEAF, 4, LEAF - LEAF_VTABLE);
  put(b + LEAF + 4, 4, NAME - (LEAF + 4));
  put(b + LEAF + 8, 8, 0x1122334455667788);
  put(b + NAME, 4, 3);
  memcpy(b + NAME + 4, "abc", 4);
  put(b + LEAVES, 4, 2);
  put(b + LEAVES + 4, 4, (uint32_t)(LEAF - (LEAVES + 4))); /* backward: offsets are unsigned */
  put(b + LEAVES + 8, 4, (uint32_t)(LEAF - (LEAVES + 8)));
  put(b + LONGS, 4, 2);
  put(b + LONGS + 4, 8, 7);
  put(b + LONGS + 12, 8, UINT64_MAX);
}

/* The vector of leaves would point backward; these rows leave it empty. */
static void build_valid(uint8_t b[END]) {
  build(b);
  put(b + LEAVES, 4, 0);
}

static sconce_status verify(const uint8_t *b, size_t size, struct fb_table *root,
                            sconce_error *err) {
  struct edit_bytes copy = edit_copy((struct span){b, size}); /* exact: the sanitizer's fence */
  sconce_status status =
      fb_verify((struct span){copy.data, size}, "TEST", &root_type, 1000, root, err);
  if (status == SCONCE_OK) root->at = b + (root->at - copy.data);
  free(copy.data);
  return status;
}

/* ---- reading --------------------------------------------------------------------------------- */

static void reads_every_kind_of_field(void) {
  uint8_t b[END];
  struct fb_table root;
  sconce_error err = {0};
  build_valid(b);
  REQUIRE_OK(verify(b, END, &root, &err), err);
  struct fb_table child = fb_sub(root, 4);
  CHECK_EQ(fb_u64(child, 0, 0), 0x1122334455667788);
  CHECK(text_is(fb_text(child, 1), "abc"));
  struct fb_vec longs = fb_vec(root, 3);
  CHECK_EQ(longs.n, 2);
  CHECK_EQ(fb_i64_at(longs, 1), -1);
  CHECK_EQ(fb_i64_at(longs, 2), 0); /* past the end */
  CHECK(fb_vec(root, 2).items && fb_vec(root, 2).n == 0);
  CHECK(fb_sub(root, 1).at == child.at);
}

static void absent_fields_have_defaults(void) {
  struct fb_table none = {0};
  CHECK_EQ(fb_i8(none, 3, -1), -1);
  CHECK_EQ(fb_i32(none, 3, -1), -1);
  CHECK_EQ(fb_i64(none, 3, INT64_MIN), INT64_MIN);
  CHECK_NEAR(fb_f64(none, 0, 2.5), 2.5, 0);
  CHECK(!fb_bool(none, 0) && !fb_sub(none, 0).at && !fb_vec(none, 0).items);
  CHECK(!fb_table_at(fb_vec(none, 0), 0).at);
  uint8_t b[END];
  struct fb_table root;
  sconce_error err = {0};
  build_valid(b);
  REQUIRE_OK(verify(b, END, &root, &err), err);
  CHECK_EQ(fb_u32(root, 100, 5), 5); /* past the vtable */
}

/* ---- faults ---------------------------------------------------------------------------------- */

static void refuses_broken_structure(void) {
  static const struct {
    const char *why;
    uint32_t at, width;
    uint64_t value;
    const char *fragment; /* NULL: still fine */
  } rows[] = {
      {"root outside", 0, 4, END, "Root at 1112: not an aligned place inside 112 bytes"},
      {"root at 2^32 - 4", 0, 4, UINT32_MAX - 3, "not an aligned place"},
      {"root not aligned", 0, 4, ROOT + 1, "not an aligned place"},
      {"other identifier", 4, 4, 0x41414141, "identifier is 'AAAA', expected 'TEST'"},
      {"vtable before the buffer", ROOT, 4, 1000, "its vtable at 24 is not inside"},
      {"vtable behind the buffer", ROOT, 4, (uint32_t)-1000, "is not inside 112 bytes"},
      {"vtable at an odd place", ROOT, 4, ROOT - ROOT_VTABLE - 1, "is not inside"},
      {"vtable of no bytes", ROOT_VTABLE, 2, 0, "its vtable at 1008 has 0 bytes"},
      {"vtable of odd size", ROOT_VTABLE, 2, 13, "has 13 bytes"},
      {"vtable past the end", ROOT_VTABLE, 2, 200, "has 200 bytes"},
      {"the table's size is not trusted", ROOT_VTABLE + 2, 2, 0, NULL},
      {"field inside the vtable's offset", ROOT_VTABLE + 10, 2, 2, "longs at +2"},
      {"field past the end", ROOT_VTABLE + 10, 2, 0xfffc,
       "longs at +65532, the buffer ends at 1112"},
      {"field not aligned", ROOT_VTABLE + 10, 2, 13, "longs at +13 is not aligned to 4"},
      {"wide scalar not aligned", LEAF_VTABLE + 4, 2, 4, "wide at +4 is not aligned to 8"},
      {"offset of 0", ROOT + 12, 4, 0, "longs points at 1036"},
      {"offset past the end", ROOT + 12, 4, 4000, "longs points at 5036, the buffer ends at 1112"},
      {"offset of 2^32 - 4", ROOT + 12, 4, UINT32_MAX - 3, "longs points at"},
      {"count past the end", LONGS, 4, 3, "longs has 3 elements at 1092"},
      {"count * 8 overflows 32 bits", LONGS, 4, 0x20000001, "longs has 536870913 elements"},
      {"vector not aligned", ROOT + 12, 4, LONGS - 2 - (ROOT + 12), "longs points at 1090"},
      {"64-bit elements at a multiple of 4", ROOT + 12, 4, NAME - (ROOT + 12), "not aligned to 8"},
      {"an empty vector needs no alignment", ROOT + 12, 4, LEAVES - (ROOT + 12), NULL},
      {"string without NUL", NAME + 7, 1, 'd', "name of 3 bytes has no NUL after it"},
      {"string past the end", NAME, 4, 200, "name has 200 elements"},
      {"string up to the end", NAME, 4, END - NAME - 4, "has no NUL"},
      {"unknown member", ROOT + 20, 1, 3, "any has the kind 3, known are 1 to 2"},
      {"union without a kind", ROOT + 20, 1, 0, "any has the kind 0"},
      {"member without content", ROOT_VTABLE + 6, 2, 0, "any is a Leaf without content"},
      {"table as its own vtable", LEAF, 4, 0, "Leaf at 1056"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    uint8_t b[END];
    struct fb_table root;
    sconce_error err = {0};
    build_valid(b);
    put(b + rows[i].at, rows[i].width, rows[i].value);
    sconce_status got = verify(b, END, &root, &err);
    bool fine = rows[i].fragment ? got == SCONCE_BAD_FILE && strstr(err.text, rows[i].fragment)
                                 : got == SCONCE_OK;
    CHECK_SAYS(fine, "%s: %s (\"%s\")", rows[i].why, sconce_status_name(got), err.text);
  }
}

static void refuses_offsets_that_go_back(void) {
  uint8_t b[END];
  struct fb_table root;
  sconce_error err = {0};
  build(b);
  CHECK_FAILS(verify(b, END, &root, &err), SCONCE_BAD_FILE, err, "Leaf at 4294968352");
}

static void member_without_fields_needs_no_content(void) {
  uint8_t b[END];
  struct fb_table root;
  sconce_error err = {0};
  build_valid(b);
  put(b + ROOT + 20, 1, 1);
  put(b + ROOT_VTABLE + 6, 2, 0);
  CHECK_OK(verify(b, END, &root, &err), err);
}

static void refuses_every_truncation(void) {
  uint8_t b[END];
  struct fb_table root;
  build_valid(b);
  for (size_t size = 0; size < END; size++) CHECK(verify(b, size, &root, NULL) != SCONCE_OK);
}

/* ---- work ------------------------------------------------------------------------------------ */

#define FAN 64
#define LEVELS_MAX (FB_MAX_DEPTH + 1)

/* Levels of tables, each with a vector of FAN offsets that all lead to the next level's one table.
 */
static sconce_status verify_levels(uint32_t levels, sconce_error *err) {
  enum { LEVEL_SIZE = 8 + 8 + 4 + 4 * FAN };
  struct fb_type types[LEVELS_MAX + 1] = {{0}};
  struct fb_field fields[LEVELS_MAX];
  const struct fb_type *next[LEVELS_MAX];
  uint8_t b[8 + LEVELS_MAX * LEVEL_SIZE + 8] = {0};
  uint32_t end = 8 + levels * LEVEL_SIZE;
  for (uint32_t i = 0; i < levels; i++) {
    next[i] = &types[i + 1];
    fields[i] = (struct fb_field){"below", FB_TABLES, 4, 1, false, &next[i]};
    types[i] = (struct fb_type){"Level", &fields[i], 1};
    uint32_t at = 8 + i * LEVEL_SIZE, vector = at + 16;
    const uint16_t head[] = {6, 8, 4, 0,   8,
                             0, 4, 0, FAN, 0}; /* vtable, table, the vector's count */
    memcpy(b + at, head, sizeof head);
    uint32_t below = i + 1 < levels ? at + LEVEL_SIZE + 8 : end + 4;
    for (uint32_t k = 0; k < FAN; k++) put(b + vector + 4 + 4 * k, 4, below - (vector + 4 + 4 * k));
  }
  types[levels] = nothing;
  put(b + end, 2, 4);
  put(b + end + 2, 2, 4);
  put(b + end + 4, 4, 4);
  put(b, 4, 16);
  memcpy(b + 4, "TEST", 4);
  struct fb_table root;
  return fb_verify((struct span){b, end + 8}, "TEST", &types[0], 0, &root, err);
}

/* 64^6 visits without a budget, from 1.7 KB. */
static void refuses_tables_that_share_their_children(void) {
  sconce_error err = {0};
  CHECK_OK(verify_levels(1, &err), err);
  CHECK_FAILS(verify_levels(6, &err), SCONCE_BAD_FILE, err,
              "refers to its parts more than 16 times over");
}

static void refuses_schemas_deeper_than_its_stack(void) {
  sconce_error err = {0};
  CHECK_FAILS(verify_levels(LEVELS_MAX, &err), SCONCE_BAD_FILE, err, "nested deeper than 8 tables");
}

const struct test suite_flatbuf[] = {
    TEST(reads_every_kind_of_field),
    TEST(absent_fields_have_defaults),
    TEST(refuses_broken_structure),
    TEST(refuses_offsets_that_go_back),
    TEST(member_without_fields_needs_no_content),
    TEST(refuses_every_truncation),
    TEST(refuses_tables_that_share_their_children),
    TEST(refuses_schemas_deeper_than_its_stack),
    {0},
};
