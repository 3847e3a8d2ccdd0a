/* Names that no build runs: no other family has them, and the message says what to do. */
#include "op.h"

extern const struct op ops_refused[];

static void every_name(void) {
  for (const struct op *op = ops_refused; op->name; op++) {
    struct op_test t;
    sconce_error err = {0};
    op_begin(&t);
    uint32_t x = op_input(&t, VK_FLOAT32, DIMS(4)), y = op_output(&t, VK_FLOAT32, DIMS(4));
    op_node(&t, op->name, IDS(x, y));
    CHECK_SAYS(op_find(text_of(op->name)) == op, "%s is in another family too", op->name);
    CHECK_FAILS(op_try(&t, &err), SCONCE_UNSUPPORTED, err, op->refused);
    op_end(&t);
  }
}

static void says_what_makes_it(void) {
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t x = op_input(&t, VK_FLOAT32, DIMS(4)), y = op_output(&t, VK_FLOAT32, DIMS(1));
  op_node(&t, "aten::median.out", IDS(x, y));
  CHECK_FAILS(op_try(&t, &err), SCONCE_UNSUPPORTED, err,
              "this build has no such operator; torch.median makes it; instead: the last of "
              "torch.topk of half of them");
  op_end(&t);
}

const struct test suite_refused[] = {TEST(every_name), TEST(says_what_makes_it), {0}};
