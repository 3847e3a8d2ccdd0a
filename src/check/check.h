/* Models against goldens; for src/run only. The checks use the public calls alone, as an
 * application would. Everything in a case or a golden is untrusted: files lie beside it, sizes are
 * checked before memory is taken. */
#ifndef CHECK_CHECK_H
#define CHECK_CHECK_H

#include "base/arena.h"
#include "base/json.h"
#include "base/os.h"
#include "sconce_dev.h"

/* ---- comparing: compare.c -------------------------------------------------------------------- */

/* What is asked of floats; integers and booleans are always exact. */
struct check_rule {
  bool elements;            /* each element by atol and rtol */
  double atol, rtol;        /* wrong iff |d| > atol and |d| / max(|want|, 1e-6) > rtol; rtol 0: no
                               relative error saves an element */
  double nrmse, tail_nrmse; /* |got - want| / |want| of all, and of the last row; 0: not asked */
  double scale;             /* an error below this part of the largest |want| is none; CHECK_FAST */
};

/* What products in f16 are held to, where the device's precision is fast. */
#define CHECK_FAST 2e-3

struct check_worst {
  double abs, rel;
};

/* SCONCE_WRONG_RESULT with a sentence about the worst element. Raises *worst. */
SCONCE_CHECK sconce_status check_compare(const sconce_tensor *got, const sconce_tensor *want,
                                         const struct check_rule *rule, struct check_worst *worst,
                                         sconce_error *err);
double check_element(const sconce_tensor *t, uint64_t i); /* as far as a double goes */
bool check_is_float(sconce_dtype dtype);

/* ---- one folder, one model: files.c ---------------------------------------------------------- */

struct check_run {
  sconce_device *device;
  struct arena arena; /* of one case or golden file */
  const char *folder; /* where its files lie, with a slash behind, or "" */
  struct json root;
  sconce_model *model;
  sconce_method *method;
  sconce_state *state;
  sconce_call call; /* how each is made */
  uint32_t calls;
  double scale; /* of every rule: 0, or CHECK_FAST */
  struct check_worst worst;
};

void check_run_init(struct check_run *run, sconce_device *device);
void check_run_free(struct check_run *run);

/* The folder of a path, with its slash; NULL: no memory. */
const char *check_folder_of(struct arena *arena, const char *path);
const char *check_join(struct arena *arena, const char *folder, struct text name);
/* The path of a file that JSON names: a plain name beside the JSON. */
SCONCE_CHECK sconce_status check_beside(struct check_run *run, struct json name, const char **path,
                                        sconce_error *err);
/* Maps and checks the JSON; run->root is an object. */
SCONCE_CHECK sconce_status check_read_json(struct check_run *run, const char *path,
                                           sconce_error *err);
/* Opens the model with the .ptd files beside it, and the method; closes those of before. */
SCONCE_CHECK sconce_status check_load(struct check_run *run, const char *pte, const char *method,
                                      sconce_error *err);

/* ---- tensors that JSON describes: tensor.c --------------------------------------------------- */

/* A list of dims; data stays NULL, size is what they need. */
SCONCE_CHECK sconce_status check_dims(struct json shape, sconce_dtype dtype, sconce_tensor *out,
                                      sconce_error *err);
/* The same from "dtype" and "shape". */
SCONCE_CHECK sconce_status check_shape(struct json spec, sconce_tensor *out, sconce_error *err);
/* The t->size bytes at "offset" of "file", or without an offset all that it has; in the arena. */
SCONCE_CHECK sconce_status check_file(struct check_run *run, struct json spec, sconce_tensor *t,
                                      sconce_error *err);
/* An input of a case or of a golden; `blob` is the golden's .bin. */
SCONCE_CHECK sconce_status check_input(struct check_run *run, struct json spec, struct span blob,
                                       sconce_tensor *out, sconce_error *err);

/* ---- what is run: case.c, golden.c, tokens.c ------------------------------------------------- */

/* The case in run->folder. */
SCONCE_CHECK sconce_status check_case(struct check_run *run, sconce_error *err);

struct check_golden {
  struct check_run *run;
  struct span blob; /* the .bin; empty where there is none */
  struct json cases;
  bool tokens; /* a language model: calls with tokens, top5 and logits */
  double tolerance;
};
/* Reads the JSON and its .bin. */
SCONCE_CHECK sconce_status check_golden_open(struct check_golden *g, struct check_run *run,
                                             const char *json, double tolerance, sconce_error *err);
/* One of its cases on the method as the case before left it. */
SCONCE_CHECK sconce_status check_golden_case(struct check_golden *g, struct json spec,
                                             sconce_error *err);
/* One call of a language model. */
SCONCE_CHECK sconce_status check_tokens(struct check_golden *g, struct json call,
                                        sconce_error *err);

#endif
