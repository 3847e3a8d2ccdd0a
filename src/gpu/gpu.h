/* The WebGPU layer as the rest of the house sees it: no WGPU type leaves src/gpu.
 *
 * Every call that can fail reports the driver's own words with what was being done. wgpu-native
 * answers within the call. Dawn and browsers answer later: there an object is handed out before it
 * is known to be good, and its error comes out of gpu_settle_poll, of gpu_check (which most calls
 * begin with), or of a read that was under way. A lost device fails every later call with
 * SCONCE_DEVICE_LOST and lets every object be closed.
 *
 * What takes time has two forms: begin and poll, which never block, and a blocking loop over them.
 * Blocking are gpu_open, gpu_adapters, gpu_settle, gpu_finish, gpu_fence_wait, gpu_read_wait,
 * gpu_profile, gpu_kernel_check, and gpu_compile_end before its poll said done; nothing else waits.
 *
 * Threads: a device and all that is made from it belong to one thread at a time, the one that holds
 * its lock. While there is one thread alone it may leave the lock be. */
#ifndef GPU_GPU_H
#define GPU_GPU_H

#include "graph/kernel.h"

struct gpu;
struct gpu_buffer;
struct gpu_kernel; /* a compiled pipeline; owned by the device's cache */
struct gpu_group;  /* buffers bound to a kernel */
struct gpu_read;   /* a staging buffer that the host can map */

struct gpu_desc {
  const char *library, *adapter, *disable, *limits, *precision; /* as in sconce_device_desc */
  sconce_allocator allocator;
  sconce_log log;
  bool allow_null;  /* Dawn's Null adapter: checks shaders, computes nothing */
  bool no_threads;  /* kernels are compiled by those who poll */
  bool no_blocking; /* blocking functions fail instead of waiting, as on a browser's page */
  bool stays;       /* SCONCE_LOSE_AFTER is for the device that this one replaces */
};

/* Opens in steps: begin asks the library, poll goes on until *done. Until then, and after an error
 * of poll, only gpu_close may follow; it gives up without waiting. The descriptor's strings are not
 * needed after begin. */
SCONCE_CHECK sconce_status gpu_open_begin(struct gpu **out, const struct gpu_desc *desc,
                                          sconce_error *err);
SCONCE_CHECK sconce_status gpu_open_poll(struct gpu *gpu, bool *done, sconce_error *err);
SCONCE_CHECK sconce_status gpu_open(struct gpu **out, const struct gpu_desc *desc,
                                    sconce_error *err);
/* Nobody may hold the lock or wait for it. */
void gpu_close(struct gpu *gpu);

/* The device's lock. Blocking functions release it while they wait, so that another thread can work
 * meanwhile; whoever calls one finds things changed that others share. The allocator and the log
 * are called with the lock held, and must not come back here. */
bool gpu_may_wait(const struct gpu *gpu); /* false: blocking functions fail */
void gpu_lock(struct gpu *gpu);
void gpu_unlock(struct gpu *gpu);

const sconce_device_info *gpu_info(const struct gpu *gpu);
struct caps gpu_caps(const struct gpu *gpu); /* the same as operators see it */
/* Rows that operators shall not choose here (caps.avoid), or NULL; borrowed. */
void gpu_avoid(struct gpu *gpu, const char *labels);
uint32_t gpu_adapter_index(const struct gpu *gpu); /* among gpu_adapters */
SCONCE_CHECK sconce_status gpu_adapters(const struct gpu_desc *desc,
                                        void (*each)(void *user, uint32_t index,
                                                     const sconce_device_info *info),
                                        void *user, sconce_error *err);

/* SCONCE_OK, or why nothing more can be done: lost, or an error that arrived on its own, which is
 * reported once. */
SCONCE_CHECK sconce_status gpu_check(struct gpu *gpu, sconce_error *err);
/* Lets the library answer; never blocks. */
void gpu_tick(struct gpu *gpu);
/* *done: all that was asked of the device so far (objects, writes, submits) has been answered; that
 * says nothing about work, which may still run. When done, an error of any of it is returned. */
SCONCE_CHECK sconce_status gpu_settle_poll(struct gpu *gpu, bool *done, sconce_error *err);
SCONCE_CHECK sconce_status gpu_settle(struct gpu *gpu, sconce_error *err);
bool gpu_is_lost(const struct gpu *gpu);
/* Loses the device on purpose, now, or at the n-th gpu_check from now on: for tests. */
void gpu_lose(struct gpu *gpu);
uint32_t gpu_lose_after(struct gpu *gpu, uint32_t n); /* 0: never; returns what was left before */

/* ---- buffers --------------------------------------------------------------------------------- */

enum gpu_use {
  GPU_WEIGHTS,
  GPU_STATE,
  GPU_TRANSIENT,
  GPU_STAGING,
  GPU_PARAMS,
  GPU_QUERIES,
  GPU_USES
};

/* `size` is rounded up to 4 bytes; new buffers are zero. */
SCONCE_CHECK sconce_status gpu_buffer_open(struct gpu *gpu, enum gpu_use use, uint64_t size,
                                           const char *label, struct gpu_buffer **out,
                                           sconce_error *err);
void gpu_buffer_close(struct gpu_buffer *buffer);
uint64_t gpu_buffer_size(const struct gpu_buffer *buffer);

/* Queued before the next submit. The tail of a last odd word is padded with zeros. */
SCONCE_CHECK sconce_status gpu_write(struct gpu_buffer *buffer, uint64_t offset, const void *data,
                                     size_t size, sconce_error *err);

/* Puts zeros everywhere, after what was submitted before. */
SCONCE_CHECK sconce_status gpu_clear(struct gpu_buffer *buffer, sconce_error *err);

/* ---- kernels --------------------------------------------------------------------------------- */

/* A software device: its kernels for prompts of 32 to 2,048 rows are three quarters of what there
 * is to compile, and a prompt needs some of them. On lavapipe all of them take 0.4 s with two
 * cores, those of a token 0.1; where workgroup memory is cleared, as a browser does, SwiftShader
 * unrolls that, and one took 18 s. */
bool gpu_compiles_slowly(const struct gpu *gpu);
void gpu_compile_all(struct gpu *gpu); /* ahead, as on a GPU: for tests of what a GPU does */
/* From the cache, or compiled: one pipeline per distinct row, kept until the device is closed. */
SCONCE_CHECK sconce_status gpu_kernel_get(struct gpu *gpu, const struct kernel *row,
                                          struct gpu_kernel **out, sconce_error *err);
/* Compiles a row and waits for the answer; only its shader, if the device cannot run it (see
 * kernel_runs). */
SCONCE_CHECK sconce_status gpu_kernel_check(struct gpu *gpu, const struct kernel *row,
                                            sconce_error *err);
/* Compiles rows ahead while the caller does something else; several may do so at a time. What
 * compiles is in the cache after `end`, if it is still needed; what does not is told in the log,
 * and fails the one who uses it. */
struct gpu_compile;
SCONCE_CHECK sconce_status gpu_compile_begin(struct gpu *gpu, const struct kernel *const *rows,
                                             uint32_t n, struct gpu_compile **out,
                                             sconce_error *err);
/* Never blocks, except that without threads each call compiles one kernel. *n_done says how many of
 * the n rows are through, for progress. A lost device is an error; end is still due. */
SCONCE_CHECK sconce_status gpu_compile_poll(struct gpu_compile *c, uint32_t *n_done, bool *done,
                                            sconce_error *err);
/* When poll said done it does not wait. Before that it waits if the kernels are needed, and else
 * gives them up at once. */
void gpu_compile_end(struct gpu_compile *c, bool needed); /* NULL is fine */
/* Calls each for every compiled kernel, with how often it was dispatched. */
void gpu_kernels(const struct gpu *gpu,
                 void (*each)(void *user, const struct kernel *kernel, uint64_t dispatches),
                 void *user);

struct gpu_binding {
  struct gpu_buffer *buffer;
  uint64_t offset, size; /* bytes; size 0: to the end */
};

/* One binding per binding of the kernel's shader, in its order. */
SCONCE_CHECK sconce_status gpu_group_open(struct gpu_kernel *kernel,
                                          const struct gpu_binding *bindings, uint32_t n,
                                          struct gpu_group **out, sconce_error *err);
void gpu_group_close(struct gpu_group *group);

/* ---- work ------------------------------------------------------------------------------------ */

struct gpu_dispatch {
  struct gpu_group *group; /* knows its kernel */
  uint32_t grid[3];        /* workgroups */
};

struct gpu_copy {
  struct gpu_buffer *from;
  uint64_t from_offset;
  struct gpu_read *to;          /* a staging buffer, or */
  struct gpu_buffer *to_buffer; /* another buffer of the device */
  uint64_t to_offset, size;     /* offsets and size are multiples of 4 */
};

/* Dispatches in order in one compute pass, then the copies. */
struct gpu_batch {
  const struct gpu_dispatch *dispatches;
  uint32_t n_dispatches;
  const struct gpu_copy *copies;
  uint32_t n_copies;
};

SCONCE_CHECK sconce_status gpu_submit(struct gpu *gpu, const struct gpu_batch *batch,
                                      sconce_error *err);

/* Runs a batch and waits; times are nanoseconds of the device's clock. GPU_TIME_EACH: a pass per
 * dispatch, times[2 i] and [2 i + 1] are its start and end. GPU_TIME_WHOLE: one pass as always,
 * times[0] and [1] are its start and end. Needs timestamps. */
enum gpu_timing { GPU_TIME_EACH, GPU_TIME_WHOLE };
SCONCE_CHECK sconce_status gpu_profile(struct gpu *gpu, const struct gpu_batch *batch,
                                       enum gpu_timing timing, uint64_t *times, sconce_error *err);

/* Marks what was submitted so far; poll tells when the device has done it. Writes belong to the
 * next submit, which may be empty. Close at any time. */
struct gpu_fence;
SCONCE_CHECK sconce_status gpu_fence_begin(struct gpu *gpu, struct gpu_fence **out,
                                           sconce_error *err);
SCONCE_CHECK sconce_status gpu_fence_poll(struct gpu_fence *fence, bool *done, sconce_error *err);
SCONCE_CHECK sconce_status gpu_fence_wait(struct gpu_fence *fence, sconce_error *err);
void gpu_fence_close(struct gpu_fence *fence); /* NULL is fine */
/* Work has been seen to be done, `now` by os_clock_ns; returns when that was so the last time. */
uint64_t gpu_done(struct gpu *gpu, uint64_t now);
/* Blocks until everything submitted so far is done. */
SCONCE_CHECK sconce_status gpu_finish(struct gpu *gpu, sconce_error *err);

/* ---- readback -------------------------------------------------------------------------------- */

SCONCE_CHECK sconce_status gpu_read_open(struct gpu *gpu, uint64_t size, struct gpu_read **out,
                                         sconce_error *err);
void gpu_read_close(struct gpu_read *read);
uint64_t gpu_read_size(const struct gpu_read *read); /* bytes; NULL: 0 */
/* After the submit whose copies fill it. */
SCONCE_CHECK sconce_status gpu_read_begin(struct gpu_read *read, sconce_error *err);
/* *data is NULL while the device is busy; else the bytes, valid until gpu_read_end. */
SCONCE_CHECK sconce_status gpu_read_poll(struct gpu_read *read, const void **data,
                                         sconce_error *err);
SCONCE_CHECK sconce_status gpu_read_wait(struct gpu_read *read, const void **data,
                                         sconce_error *err);
/* Also while the device is busy: then the bytes are given up, and nobody waits. */
void gpu_read_end(struct gpu_read *read);

/* ---- counters -------------------------------------------------------------------------------- */

struct gpu_stats {
  uint64_t bytes[GPU_USES];           /* alive now, by use */
  uint32_t buffers, groups, kernels;  /* alive now */
  uint64_t buffers_made, groups_made; /* since the device was opened */
  uint64_t submits, dispatches, writes, bytes_written;
};
const struct gpu_stats *gpu_stats(const struct gpu *gpu);

#endif
