/* See missing.h. */
#include "run/missing.h"

#include <stdio.h>
#include <string.h>

enum { NAMES_MAX = 32 }; /* that a sentence has room for */

struct missing {
  uint32_t n, more;
  char names[NAMES_MAX][PTE_OPERATOR_SIZE + 40]; /* "aten::rand.out (instruction 3)" */
};

static void note(struct missing *all, struct text name, const char *where, uint32_t index) {
  if (!op_refusal(name)) return;
  for (uint32_t i = 0; i < all->n; i++)
    if (strncmp(all->names[i], name.data, name.size) == 0 && all->names[i][name.size] == ' ')
      return;
  if (all->n == NAMES_MAX || name.size >= PTE_OPERATOR_SIZE) {
    all->more++;
    return;
  }
  snprintf(all->names[all->n++], sizeof all->names[0], "%.*s (%s %u)", TEXT(name), where, index);
}

static void note_delegate(struct missing *all, sconce_model *model, const struct pte_method *m,
                          uint32_t index) {
  struct pte_delegate d = pte_delegate(m, index);
  struct vkgraph vk;
  sconce_error ignored;
  struct data_lookup named = {ptd_lookup, &model->source};
  if (!text_is(d.id, "VulkanBackend")) return;
  if (vkgraph_open(&vk, model_blob(model, d.blob), named, &ignored) != SCONCE_OK) return;
  struct text last = {0}; /* long graphs repeat their names */
  for (uint32_t i = 0; i < vk.n_calls; i++) {
    const struct text name = vkgraph_call(&vk, i).name;
    if (!text_equal(name, last)) note(all, name, "node", i);
    last = name;
  }
}

void missing_append(sconce_model *model, const struct pte_method *m, sconce_error *err) {
  struct missing all = {0};
  char name[PTE_OPERATOR_SIZE];
  if (!err) return;
  for (uint32_t chain = 0; chain < m->n_chains; chain++)
    for (uint32_t i = 0; i < pte_n_instructions(m, chain); i++) {
      struct pte_instruction in = pte_instruction(m, chain, i);
      if (in.kind == PTE_KERNEL_CALL)
        note(&all, text_of(pte_operator_text(m, in.index, name)), "instruction", i);
    }
  /* Each once, however often it is called: calls are cheap to write. */
  for (uint32_t i = 0; i < m->n_delegates; i++) note_delegate(&all, model, m, i);
  if (all.n + all.more < 2) return;
  char first[sizeof err->text], list[sizeof err->text] = "";
  size_t at = 0;
  memcpy(first, err->text, sizeof first);
  for (uint32_t i = 0; i < all.n && at < sizeof list; i++) {
    const int n = snprintf(list + at, sizeof list - at, "%s%s", i ? ", " : "", all.names[i]);
    at += n > 0 ? (size_t)n : 0;
  }
  fail(err, err->status, "%s; all that are missing: %s%s", first, list,
       all.more ? ", and more" : "");
}
