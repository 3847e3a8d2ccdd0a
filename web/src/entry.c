/* What JavaScript calls: flat functions over the public headers, with numbers and pointers only.
 *
 * A function that can fail returns -1, and web_error says why; polls return 1 when they are done.
 * What a call has to tell in several numbers it leaves in web_out, texts and lists in memory of the
 * library that the next call may change: JavaScript reads them at once. */
#include "sconce.h"
#include "sconce_llm.h"

#include <stdio.h>
#include <string.h>

#define EXPORT(name) __attribute__((export_name(#name))) name
#define IMPORT(name) __attribute__((import_module("sconce"), import_name(name)))

IMPORT("log") void host_log(int level, const char *text);
/* They return 0 to stop. */
IMPORT("text") int host_text(void *session, const char *text, size_t size, int32_t id);
IMPORT("prompt") int host_prompt(void *session, size_t done, size_t all);

static sconce_error last;
static double out[16];
static char json[16384];

sconce_error *EXPORT(web_error)(void);
double *EXPORT(web_out)(void);
const char *EXPORT(web_version)(void);
const char *EXPORT(web_status_name)(int status);

sconce_error *web_error(void) { return &last; }
double *web_out(void) { return out; }
const char *web_version(void) { return sconce_version(); }
const char *web_status_name(int status) { return sconce_status_name((sconce_status)status); }

static int result(sconce_status status, bool done) { return status != SCONCE_OK ? -1 : done; }

/* ---- device ---------------------------------------------------------------------------------- */

sconce_device *EXPORT(web_device_begin)(const char *adapter, const char *disable,
                                        const char *limits);
int EXPORT(web_device_poll)(sconce_device *device);
void EXPORT(web_device_close)(sconce_device *device);
const char *EXPORT(web_device_describe)(const sconce_device *device);

static void write_log(void *user, sconce_log_level level, const char *text) {
  (void)user;
  host_log((int)level, text);
}

/* NULL: failed, as in everything that opens. */
sconce_device *web_device_begin(const char *adapter, const char *disable, const char *limits) {
  sconce_device *device = NULL;
  sconce_device_desc desc = {.adapter = adapter,
                             .disable = disable,
                             .limits = limits,
                             .no_threads = true,
                             .log = {.write = write_log}};
  return sconce_device_begin(&device, &desc, &last) == SCONCE_OK ? device : NULL;
}

int web_device_poll(sconce_device *device) {
  bool done = false;
  sconce_status status = sconce_device_poll(device, &done, &last);
  return result(status, done);
}

void web_device_close(sconce_device *device) { sconce_device_close(device); }

/* A JSON object; the names are the browser's, which JavaScript knows itself. */
const char *web_device_describe(const sconce_device *device) {
  const sconce_device_info *d = sconce_device_describe(device);
  snprintf(json, sizeof json,
           "{\"software\":%s,\"f16\":%s,\"subgroups\":%s,\"timestamps\":%s,\"subgroupMin\":%u,"
           "\"subgroupMax\":%u,\"maxBuffer\":%llu,\"maxStorageBinding\":%llu,"
           "\"maxStorageBuffers\":%u,\"maxWorkgroupBytes\":%u,\"maxWorkgroupInvocations\":%u}",
           d->type == SCONCE_ADAPTER_SOFTWARE ? "true" : "false", d->f16 ? "true" : "false",
           d->subgroups ? "true" : "false", d->timestamps ? "true" : "false", d->subgroup_min,
           d->subgroup_max, (unsigned long long)d->max_buffer,
           (unsigned long long)d->max_storage_binding, d->max_storage_buffers,
           d->max_workgroup_bytes, d->max_workgroup_invocations);
  return json;
}

/* ---- model and method ------------------------------------------------------------------------ */

enum { DATA_FILES_MAX = 64 };

sconce_model *EXPORT(web_model_begin)(sconce_device *device, const double *sizes, uint32_t n);
int EXPORT(web_model_poll)(sconce_model *model);
int EXPORT(web_model_give)(sconce_model *model, uint32_t file, double offset, const void *data,
                           size_t size);
void EXPORT(web_model_close)(sconce_model *model);
uint32_t EXPORT(web_model_methods)(const sconce_model *model);
const char *EXPORT(web_model_method)(const sconce_model *model, uint32_t i);
int EXPORT(web_model_constant)(const sconce_model *model, const char *method, uint32_t i);
int EXPORT(web_model_fingerprint)(sconce_model *model);
sconce_method *EXPORT(web_method_begin)(sconce_model *model, const char *name);
int EXPORT(web_method_poll)(sconce_method *method);
void EXPORT(web_method_close)(sconce_method *method);
int EXPORT(web_method_describe)(const sconce_method *method);
const sconce_tensor *EXPORT(web_method_tensor)(const sconce_method *method, int output, uint32_t i);

/* The first size is the program's, the others those of data files. */
sconce_model *web_model_begin(sconce_device *device, const double *sizes, uint32_t n) {
  sconce_model *model = NULL;
  sconce_file files[1 + DATA_FILES_MAX] = {0};
  if (n > 1 + DATA_FILES_MAX) {
    last.status = SCONCE_BAD_ARGUMENT;
    snprintf(last.text, sizeof last.text, "%u data files, at most %u can be given", n - 1,
             DATA_FILES_MAX);
    return NULL;
  }
  for (uint32_t i = 0; i < n; i++) files[i].size = (uint64_t)sizes[i];
  sconce_model_desc desc = {.program = files[0], .data_files = files + 1, .n_data_files = n - 1};
  return sconce_model_begin(&model, device, &desc, &last) == SCONCE_OK ? model : NULL;
}

static int told(sconce_status status, const sconce_progress *p) {
  if (status != SCONCE_OK) return -1;
  const double numbers[] = {(double)p->bytes_done,  (double)p->bytes_all,  (double)p->kernels_done,
                            (double)p->kernels_all, (double)p->wants.file, (double)p->wants.offset,
                            (double)p->wants.size};
  memcpy(out, numbers, sizeof numbers);
  return p->done;
}

int web_model_poll(sconce_model *model) {
  sconce_progress p = {0};
  sconce_status status = sconce_model_poll(model, &p, &last);
  return told(status, &p);
}

int web_model_give(sconce_model *model, uint32_t file, double offset, const void *data,
                   size_t size) {
  return result(sconce_model_give(model, file, (uint64_t)offset, data, size, &last), true);
}

void web_model_close(sconce_model *model) { sconce_model_close(model); }

uint32_t web_model_methods(const sconce_model *model) {
  return sconce_model_describe(model)->n_methods;
}

const char *web_model_method(const sconce_model *model, uint32_t i) {
  return sconce_model_describe(model)->methods[i];
}

int web_model_constant(const sconce_model *model, const char *method, uint32_t i) {
  sconce_number n = {0};
  sconce_status status = sconce_model_constant(model, method, i, &n, &last);
  out[0] = n.d;
  return result(status, true);
}

/* In two halves, since numbers have 53 bits. */
int web_model_fingerprint(sconce_model *model) {
  uint64_t sum = 0;
  sconce_status status = sconce_model_fingerprint(model, &sum, &last);
  out[0] = (double)(sum >> 32);
  out[1] = (double)(uint32_t)sum;
  return result(status, true);
}

sconce_method *web_method_begin(sconce_model *model, const char *name) {
  sconce_method *method = NULL;
  return sconce_method_begin(&method, model, name, &last) == SCONCE_OK ? method : NULL;
}

int web_method_poll(sconce_method *method) {
  sconce_progress p = {0};
  sconce_status status = sconce_method_poll(method, &p, &last);
  return told(status, &p);
}

void web_method_close(sconce_method *method) { sconce_method_close(method); }

/* Numbers of inputs and outputs; 1: a language model. */
int web_method_describe(const sconce_method *method) {
  const sconce_method_info *info = sconce_method_describe(method);
  out[0] = info->n_inputs;
  out[1] = info->n_outputs;
  return info->can_draw;
}

static const sconce_tensor *tell(const sconce_tensor *t, bool dynamic) {
  out[0] = t->dtype;
  out[1] = t->rank;
  out[2] = dynamic;
  out[3] = (double)t->size;
  for (uint32_t d = 0; d < t->rank && d < SCONCE_MAX_RANK; d++) out[4 + d] = t->dims[d];
  return t;
}

const sconce_tensor *web_method_tensor(const sconce_method *method, int output, uint32_t i) {
  const sconce_method_info *info = sconce_method_describe(method);
  return output ? tell(&info->outputs[i], false) : tell(&info->inputs[i], info->dynamic[i]);
}

/* ---- state ----------------------------------------------------------------------------------- */

sconce_state *EXPORT(web_state_open)(sconce_method *method);
void EXPORT(web_state_close)(sconce_state *state);
int EXPORT(web_state_set_input)(sconce_state *state, uint32_t i, int dtype, uint32_t rank,
                                const uint32_t *dims, const void *data, size_t size);
int EXPORT(web_state_begin)(sconce_state *state);
int EXPORT(web_state_poll)(sconce_state *state);
void EXPORT(web_state_cancel)(sconce_state *state);
int EXPORT(web_state_reset)(sconce_state *state);
const void *EXPORT(web_state_output)(sconce_state *state, uint32_t i);
void EXPORT(web_state_stats)(const sconce_state *state);

sconce_state *web_state_open(sconce_method *method) {
  sconce_state *state = NULL;
  return sconce_state_open(&state, method, &last) == SCONCE_OK ? state : NULL;
}

void web_state_close(sconce_state *state) { sconce_state_close(state); }

int web_state_set_input(sconce_state *state, uint32_t i, int dtype, uint32_t rank,
                        const uint32_t *dims, const void *data, size_t size) {
  sconce_tensor t = {.dtype = (sconce_dtype)dtype, .rank = rank, .data = data, .size = size};
  for (uint32_t d = 0; d < rank && d < SCONCE_MAX_RANK; d++) t.dims[d] = dims[d];
  return result(sconce_state_set_input(state, i, &t, &last), true);
}

int web_state_begin(sconce_state *state) {
  return result(sconce_state_begin(state, NULL, &last), true);
}

int web_state_poll(sconce_state *state) {
  bool done = false;
  sconce_status status = sconce_state_poll(state, &done, &last);
  return result(status, done);
}

void web_state_cancel(sconce_state *state) { sconce_state_cancel(state); }
int web_state_reset(sconce_state *state) { return result(sconce_state_reset(state, &last), true); }

/* NULL: failed. */
const void *web_state_output(sconce_state *state, uint32_t i) {
  sconce_tensor t = {0};
  if (sconce_state_output(state, i, &t, &last) != SCONCE_OK) return NULL;
  return tell(&t, false)->data;
}

void web_state_stats(const sconce_state *state) {
  sconce_stats s = {0};
  sconce_state_stats(state, &s);
  const double numbers[] = {(double)s.gpu_weights,      (double)s.gpu_state,
                            (double)s.gpu_transient,    (double)s.gpu_staging,
                            (double)s.gpu_params,       (double)s.gpu_buffers,
                            (double)s.gpu_groups,       (double)s.gpu_kernels,
                            (double)s.gpu_objects_made, (double)s.dispatches};
  memcpy(out, numbers, sizeof numbers);
}

/* ---- tokenizer ------------------------------------------------------------------------------- */

sconce_tokenizer *EXPORT(web_tokenizer_open)(const void *data, size_t size, const void *config,
                                             size_t config_size);
void EXPORT(web_tokenizer_close)(sconce_tokenizer *tokenizer);
const char *EXPORT(web_tokenizer_describe)(const sconce_tokenizer *tokenizer);
const int32_t *EXPORT(web_tokenizer_encode)(sconce_tokenizer *tokenizer, const char *text,
                                            size_t size, uint32_t flags);
const char *EXPORT(web_tokenizer_decode)(sconce_tokenizer *tokenizer, const int32_t *ids, size_t n,
                                         uint32_t flags);
const int32_t *EXPORT(web_chat_encode)(sconce_tokenizer *tokenizer, const char *conversation,
                                       const char *chat_template, int think);
const char *EXPORT(web_chat_text)(sconce_tokenizer *tokenizer, const char *conversation,
                                  const char *chat_template, int think);

sconce_tokenizer *web_tokenizer_open(const void *data, size_t size, const void *config,
                                     size_t config_size) {
  sconce_tokenizer *tokenizer = NULL;
  sconce_tokenizer_desc desc = {
      .data = data, .size = size, .config = config, .config_size = config_size};
  return sconce_tokenizer_open(&tokenizer, &desc, &last) == SCONCE_OK ? tokenizer : NULL;
}

void web_tokenizer_close(sconce_tokenizer *tokenizer) { sconce_tokenizer_close(tokenizer); }

/* Its kind; out: n_vocab, bos, eos, add_bos, whether it has a chat template that can be used. */
const char *web_tokenizer_describe(const sconce_tokenizer *tokenizer) {
  const sconce_tokenizer_info *info = sconce_tokenizer_describe(tokenizer);
  out[0] = info->n_vocab;
  out[1] = info->bos;
  out[2] = info->eos;
  out[3] = info->add_bos;
  out[4] = info->chat_template && !info->chat_template_error;
  return info->kind;
}

/* How many: out[0]. */
static const void *list(sconce_status status, const void *data, size_t n) {
  out[0] = (double)n;
  return status == SCONCE_OK ? data : NULL;
}

const int32_t *web_tokenizer_encode(sconce_tokenizer *tokenizer, const char *text, size_t size,
                                    uint32_t flags) {
  static const int32_t none;
  const int32_t *ids = NULL;
  size_t n = 0;
  sconce_status status = sconce_tokenizer_encode(tokenizer, text, size, flags, &ids, &n, &last);
  return list(status, n ? ids : &none, n);
}

const char *web_tokenizer_decode(sconce_tokenizer *tokenizer, const int32_t *ids, size_t n,
                                 uint32_t flags) {
  const char *text = NULL;
  size_t size = 0;
  sconce_status status = sconce_tokenizer_decode(tokenizer, ids, n, flags, &text, &size, &last);
  return list(status, text, size);
}

static sconce_chat_desc chat_desc(const char *conversation, const char *chat_template, int think) {
  return (sconce_chat_desc){
      .conversation = conversation, .chat_template = chat_template, .think = (sconce_think)think};
}

const int32_t *web_chat_encode(sconce_tokenizer *tokenizer, const char *conversation,
                               const char *chat_template, int think) {
  const sconce_chat_desc desc = chat_desc(conversation, chat_template, think);
  const int32_t *ids = NULL;
  size_t n = 0;
  sconce_status status = sconce_chat_encode(tokenizer, &desc, &ids, &n, &last);
  return list(status, ids, n);
}

const char *web_chat_text(sconce_tokenizer *tokenizer, const char *conversation,
                          const char *chat_template, int think) {
  const sconce_chat_desc desc = chat_desc(conversation, chat_template, think);
  const char *text = NULL;
  size_t size = 0;
  sconce_status status = sconce_chat_text(tokenizer, &desc, &text, &size, &last);
  return list(status, text, size);
}

/* ---- session --------------------------------------------------------------------------------- */

sconce_session *EXPORT(web_session_open)(sconce_model *model, const char *method,
                                         sconce_tokenizer *tokenizer, int host_chooses);
void EXPORT(web_session_close)(sconce_session *session);
sconce_state *EXPORT(web_session_state)(sconce_session *session);
void EXPORT(web_session_describe)(const sconce_session *session);
const int32_t *EXPORT(web_session_ids)(const sconce_session *session);
int EXPORT(web_session_rewind)(sconce_session *session, uint32_t position);
void EXPORT(web_session_cancel)(sconce_session *session);
int EXPORT(web_session_set_sampler)(sconce_session *session, double temperature, uint32_t top_k,
                                    double top_p, double min_p, double penalty, uint64_t seed);
int EXPORT(web_generate_begin)(sconce_session *session, const int32_t *ids, size_t n,
                               uint32_t max_new, const char *const *stops, size_t n_stops,
                               int ignore_end);
int EXPORT(web_generate_poll)(sconce_session *session);

sconce_session *web_session_open(sconce_model *model, const char *method,
                                 sconce_tokenizer *tokenizer, int host_chooses) {
  sconce_session *session = NULL;
  sconce_session_desc desc = {
      .model = model, .method = method, .tokenizer = tokenizer, .host_chooses = host_chooses};
  return sconce_session_open(&session, &desc, &last) == SCONCE_OK ? session : NULL;
}

void web_session_close(sconce_session *session) { sconce_session_close(session); }
sconce_state *web_session_state(sconce_session *session) { return sconce_session_state(session); }

void web_session_describe(const sconce_session *session) {
  const sconce_session_info *info = sconce_session_describe(session);
  out[0] = info->n_vocab;
  out[1] = info->context;
  out[2] = info->chunk;
  out[3] = info->position;
}

const int32_t *web_session_ids(const sconce_session *session) {
  size_t n = 0;
  const int32_t *ids = sconce_session_ids(session, &n);
  return list(SCONCE_OK, ids, n);
}

int web_session_rewind(sconce_session *session, uint32_t position) {
  return result(sconce_session_rewind(session, position, &last), true);
}

void web_session_cancel(sconce_session *session) { sconce_session_cancel(session); }

int web_session_set_sampler(sconce_session *session, double temperature, uint32_t top_k,
                            double top_p, double min_p, double penalty, uint64_t seed) {
  sconce_sampler_desc desc = {.temperature = (float)temperature,
                              .top_k = top_k,
                              .top_p = (float)top_p,
                              .min_p = (float)min_p,
                              .repetition_penalty = (float)penalty,
                              .seed = seed};
  return result(sconce_session_set_sampler(session, &desc, &last), true);
}

static bool on_text(void *user, const char *text, size_t size, sconce_choice choice) {
  return host_text(user, text, size, choice.id) != 0;
}

static bool on_prompt(void *user, size_t done, size_t all) {
  return host_prompt(user, done, all) != 0;
}

int web_generate_begin(sconce_session *session, const int32_t *ids, size_t n, uint32_t max_new,
                       const char *const *stops, size_t n_stops, int ignore_end) {
  sconce_generate_desc desc = {.prompt = ids,
                               .n_prompt = n,
                               .max_new = max_new,
                               .stops = stops,
                               .n_stops = n_stops,
                               .ignore_end = ignore_end,
                               .progress = on_prompt,
                               .on_text = on_text,
                               .user = session};
  return result(sconce_session_generate_begin(session, &desc, &last), true);
}

int web_generate_poll(sconce_session *session) {
  bool done = false;
  sconce_generate_result r = {0};
  sconce_status status = sconce_session_generate_poll(session, &done, &r, &last);
  const double numbers[] = {(double)r.stop,  (double)r.n_prompt, (double)r.n_reused,
                            (double)r.n_new, r.prompt_s,         r.new_s};
  memcpy(out, numbers, sizeof numbers);
  return result(status, done);
}
