/* What a program's writer keeps until it is finished: pte.c collects, program.c turns
 * it into a flatbuffer. */
#ifndef WRITE_PROGRAM_H
#define WRITE_PROGRAM_H

#include "write/parts.h"

struct write_pte_tensor_kept { /* the caller's, with everything it points at kept */
  struct write_pte_tensor fields;
  struct write_shape shape;
  struct text name;
};

struct write_pte_value {
  bool is_tensor;
  struct literal literal;
  struct write_pte_tensor_kept tensor;
};

struct write_pte_operator {
  struct text name, overload;
};

struct write_pte_spec {
  struct text key;
  const void *data;
  uint32_t size;
};

struct write_pte_delegate {
  struct text id;
  bool in_segment;
  int32_t index; /* of a segment, or of inline data */
  struct write_list specs;
};

struct write_pte_instruction {
  uint8_t kind; /* enum pte_instruction_kind */
  int32_t a, b; /* the call's index; from and to; condition and destination; the freed value */
  const int32_t *args;
  uint32_t n_args;
};

struct write_pte_chain {
  struct write_list instructions;
};

struct write_pte_method {
  struct text name;
  struct write_list values, chains, operators, delegates;
  struct write_list inputs, outputs; /* int32_t */
  struct write_list buffer_sizes;    /* int64_t; entry 0 is reserved */
};

struct write_pte_named {
  struct text key;
  int32_t segment;
};

uint8_t write_pte_union_kind(enum literal_kind kind); /* 0: a program has none of it */

/* The flatbuffer; segments are laid out. */
void write_pte_program(struct fbw *w, const struct write_pte *program);

#endif
