/* Writing `.pte` and `.ptd` files: what a converter needs, in a library of its own, sconce_write.
 *
 * The world in one paragraph. A *writer* collects what a file is to hold: named data, methods, and
 * numbers that the program states about itself. A method is a *graph* of values and of operators by
 * the names in docs/operators.md, as ExecuTorch's VulkanPartitioner makes them, in files that
 * ExecuTorch's own readers take. Bytes are neither copied nor held. A file is written front to back
 * when it is saved, and each piece of data is asked for when its turn comes, so that a model of any
 * size passes through little memory.
 *
 *   sconce_graph *g = sconce_writer_graph(w);                          h = x * weight
 *   int32_t x = sconce_graph_tensor(g, SCONCE_FLOAT32, SCONCE_DIMS(8, 64));
 *   int32_t weight = sconce_graph_constant(g, SCONCE_FLOAT32, SCONCE_DIMS(64, 64), "w");
 *   …
 *   sconce_graph_call(g, "aten.mm.default", SCONCE_IDS(x, weight, h));
 *
 * Errors stick: after the first failure a writer's calls do nothing and return -1 or NULL, which
 * they also take, and save tells what it was. So only open and save need a look. Before a byte is
 * written a file is verified as a model's reader does it: a graph that contradicts itself, or a
 * constant with too few bytes, is SCONCE_BAD_GRAPH. What an operator makes of its arguments shows
 * when the method is opened.
 *
 * The same calls give the same bytes. Texts, lists and dims are copied. A writer and its graphs are
 * used by one thread at a time. */
#ifndef SCONCE_WRITE_H
#define SCONCE_WRITE_H

#include "sconce.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- writer ---------------------------------------------------------------------------------- */

typedef struct sconce_writer sconce_writer;

typedef struct sconce_writer_desc {
  sconce_allocator allocator; /* default: the C library's */
} sconce_writer_desc;

/* desc may be NULL. On failure *out is NULL. */
SCONCE_API SCONCE_CHECK sconce_status sconce_writer_open(sconce_writer **out,
                                                         const sconce_writer_desc *desc,
                                                         sconce_error *err);
/* Its graphs go with it. NULL is fine. */
SCONCE_API void sconce_writer_close(sconce_writer *writer);

/* Writes a .pte with all methods and data, or a .ptd with data alone, for which the writer must
 * have no methods. A file of that name is replaced once the new one is whole; a failure leaves the
 * old one. Both may be called again, also after more was added. */
SCONCE_API SCONCE_CHECK sconce_status sconce_writer_save(sconce_writer *writer, const char *path,
                                                         sconce_error *err);
SCONCE_API SCONCE_CHECK sconce_status sconce_writer_save_data(sconce_writer *writer,
                                                              const char *path, sconce_error *err);

/* ---- data ------------------------------------------------------------------------------------ */

typedef struct sconce_sink sconce_sink;

/* `size` bytes: in memory, borrowed until the writer is closed; or from `make`, which is called
 * while a file is saved and puts them in pieces of any size, front to back, `size` bytes in all; or
 * zeros, if there is neither, of which long runs take no room on the disk. What make fails with,
 * the saving fails with; it may fill the error. */
typedef struct sconce_bytes {
  uint64_t size;
  const void *data;
  sconce_status (*make)(void *user, sconce_sink *sink, sconce_error *err);
  void *user;
} sconce_bytes;
SCONCE_API SCONCE_CHECK sconce_status sconce_sink_put(sconce_sink *sink, const void *data,
                                                      size_t size);

/* Named data, in the order of the calls, each at a multiple of 128 bytes. Constants of graphs find
 * theirs by the key, in this file or in a .ptd that is opened with it. */
SCONCE_API void sconce_writer_data(sconce_writer *writer, const char *key,
                                   const sconce_bytes *bytes);

/* ---- graphs ---------------------------------------------------------------------------------- */

typedef struct sconce_graph sconce_graph;

SCONCE_API sconce_graph *sconce_writer_graph(sconce_writer *writer);

/* Arrays as two arguments. */
#define SCONCE_DIMS(...)                                                                           \
  (const uint32_t[]){__VA_ARGS__}, (uint32_t)(sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))
#define SCONCE_IDS(...)                                                                            \
  (const int32_t[]){__VA_ARGS__}, (uint32_t)(sizeof((int32_t[]){__VA_ARGS__}) / sizeof(int32_t))

/* All of these return the value's id, which calls and lists take.
 *
 * A tensor that a call gives, or an input. The dims are upper bounds, outermost first; operators
 * find the live ones. int64 and float64 are what a caller sees; inside they are int32 and float32.
 */
SCONCE_API int32_t sconce_graph_tensor(sconce_graph *graph, sconce_dtype dtype,
                                       const uint32_t *dims, uint32_t rank);
/* Named data as a tensor, in rows. One that an operator writes, such as a KV cache, is state, which
 * begins with these bytes, and is this method's alone. */
SCONCE_API int32_t sconce_graph_constant(sconce_graph *graph, sconce_dtype dtype,
                                         const uint32_t *dims, uint32_t rank, const char *key);
SCONCE_API int32_t sconce_graph_null(sconce_graph *graph);
SCONCE_API int32_t sconce_graph_int(sconce_graph *graph, int64_t value);
SCONCE_API int32_t sconce_graph_double(sconce_graph *graph, double value);
SCONCE_API int32_t sconce_graph_bool(sconce_graph *graph, bool value);
SCONCE_API int32_t sconce_graph_string(sconce_graph *graph, const char *text);
SCONCE_API int32_t sconce_graph_ints(sconce_graph *graph, const int64_t *items, uint32_t n);
SCONCE_API int32_t sconce_graph_doubles(sconce_graph *graph, const double *items, uint32_t n);
SCONCE_API int32_t sconce_graph_bools(sconce_graph *graph, const bool *items, uint32_t n);
/* A ValueList: several results of a call, tensors to join, or ints of which some are live. */
SCONCE_API int32_t sconce_graph_values(sconce_graph *graph, const int32_t *ids, uint32_t n);
/* A SymInt, an integer that changes from call to call: sym_size.int gives one of a tensor's dims,
 * et_vk.select_as_symint.default an element of an input, and arithmetic others. */
SCONCE_API int32_t sconce_graph_symint(sconce_graph *graph);

/* Appends an operator to the chain: its arguments, the output last. */
SCONCE_API void sconce_graph_call(sconce_graph *graph, const char *name, const int32_t *args,
                                  uint32_t n);

/* The next input or output of the method: a tensor, an output also a SymInt. dynamic: its dims may
 * be smaller than the bounds. */
SCONCE_API void sconce_graph_input(sconce_graph *graph, int32_t id, bool dynamic);
SCONCE_API void sconce_graph_output(sconce_graph *graph, int32_t id, bool dynamic);

/* ---- buffers that several methods share ------------------------------------------------------ */

/* Mutable memory of the program, such as one KV cache for prefill and decode: sconce_state_join.
 * `initial` may be NULL: zeros. Returns the buffer's number. */
SCONCE_API int32_t sconce_writer_buffer(sconce_writer *writer, sconce_dtype dtype,
                                        const uint32_t *dims, uint32_t rank,
                                        const sconce_bytes *initial);
/* It as a tensor of this graph, which operators may write into. Other runtimes may give a delegate
 * a copy of it, and then keep only what `update` names. */
SCONCE_API int32_t sconce_graph_buffer(sconce_graph *graph, int32_t buffer);
/* When a call ends, the buffer with the id `to` gets the contents of the tensor `from`. */
SCONCE_API void sconce_graph_update(sconce_graph *graph, int32_t to, int32_t from);

/* ---- methods --------------------------------------------------------------------------------- */

/* Ends a graph: no more is added to it. */
SCONCE_API void sconce_writer_method(sconce_writer *writer, const char *name, sconce_graph *graph);

/* Methods without inputs that return numbers, as sconce_model_constant reads them: get_max_seq_len,
 * get_eos_ids with several, use_kv_cache. */
SCONCE_API void sconce_writer_ints(sconce_writer *writer, const char *method, const int64_t *values,
                                   uint32_t n);
SCONCE_API void sconce_writer_doubles(sconce_writer *writer, const char *method,
                                      const double *values, uint32_t n);
SCONCE_API void sconce_writer_bool(sconce_writer *writer, const char *method, bool value);

#ifdef __cplusplus
}
#endif
#endif
