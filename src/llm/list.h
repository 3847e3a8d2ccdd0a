/* Growing arrays for what is as long as the text: kept between calls, freed on close. */
#ifndef LLM_LIST_H
#define LLM_LIST_H

#include "base/arena.h"
#include "base/checked.h"

#include <string.h>

struct list {
  const sconce_allocator *allocator; /* outlives the list */
  void *data;
  size_t n, cap;  /* elements */
  size_t element; /* bytes */
};

static inline void list_init(struct list *l, const sconce_allocator *allocator, size_t element) {
  *l = (struct list){.allocator = allocator, .element = element};
}

static inline void list_free(struct list *l) {
  block_resize(l->allocator, l->data, l->cap * l->element, 0);
  l->data = NULL;
  l->n = l->cap = 0;
}

/* Room for `more` elements after the n that are there; doubles, so that appending is linear. */
static inline bool list_reserve(struct list *l, size_t more) {
  if (more <= l->cap - l->n) return true;
  size_t cap, size;
  if (!add_size(l->n, more, &cap) || !add_size(cap, cap / 2 + 64, &cap)) return false;
  if (!mul_size(cap, l->element, &size)) return false;
  void *data = block_resize(l->allocator, l->data, l->cap * l->element, size);
  if (!data) return false;
  l->data = data;
  l->cap = cap;
  return true;
}

static inline bool list_append(struct list *l, const void *elements, size_t n) {
  if (!list_reserve(l, n)) return false;
  if (n) memcpy((char *)l->data + l->n * l->element, elements, n * l->element);
  l->n += n;
  return true;
}

#endif
