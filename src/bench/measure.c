/* What a device costs: dispatch chains, submits, bandwidth. The kernels are gpu/probe's. */
#include "sconce_dev.h"

#include "base/checked.h"
#include "base/os.h"
#include "gpu/probe.h"
#include "run/device.h"

#include "chain.wgsl.h"
#include "read.wgsl.h"

#include <stdlib.h>
#include <string.h>

enum { SLOT = 256, CHAIN_N = 1024, REPEATS_MAX = 101, SPLITS = 8 };

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *values, uint32_t n) {
  qsort(values, n, sizeof *values, by_value);
  return values[n / 2];
}

static double us_since(uint64_t start_ns) { return (double)(os_clock_ns() - start_ns) * 1e-3; }

/* ---- chains ---------------------------------------------------------------------------------- */

/* n dispatches over CHAIN_N words. Dependent: link i reads what link i - 1 wrote (two buffers in
 * turn); independent: each writes a buffer of its own. */
struct chain {
  struct gpu *gpu;
  uint32_t n, n_buffers;
  struct gpu_buffer **buffers; /* (n_buffers) of CHAIN_N words */
  struct gpu_buffer *params;   /* one slot */
  struct gpu_group **groups;   /* (n) */
  struct gpu_dispatch *dispatches;
  struct gpu_read *read; /* word 0 of the last buffer */
};

static void chain_free(struct chain *c) {
  for (uint32_t i = 0; i < c->n; i++) gpu_group_close(c->groups[i]);
  for (uint32_t i = 0; i < c->n_buffers; i++) gpu_buffer_close(c->buffers[i]);
  gpu_buffer_close(c->params);
  gpu_read_close(c->read);
}

static sconce_status chain_init(struct chain *c, struct gpu *gpu, struct arena *arena, uint32_t n,
                                bool dependent, sconce_error *err) {
  *c = (struct chain){.gpu = gpu};
  uint32_t n_buffers = dependent ? 2 : n + 1;
  c->buffers = arena_new(arena, struct gpu_buffer *, n_buffers);
  c->groups = arena_new(arena, struct gpu_group *, n);
  c->dispatches = arena_new(arena, struct gpu_dispatch, n);
  if (!c->buffers || !c->groups || !c->dispatches)
    return fail(err, SCONCE_NO_MEMORY, "no memory for a chain of %u dispatches", n);
  c->n = n;
  c->n_buffers = n_buffers;
  struct gpu_kernel *kernel;
  struct chain_params p = {.n = CHAIN_N, .add = 1};
  TRY(gpu_kernel_get(gpu, &probe_kernels[PROBE_CHAIN], &kernel, err));
  TRY(gpu_buffer_open(gpu, GPU_PARAMS, SLOT, "chain params", &c->params, err));
  TRY(gpu_write(c->params, 0, &p, sizeof p, err));
  TRY(gpu_read_open(gpu, 4, &c->read, err));
  for (uint32_t i = 0; i < n_buffers; i++)
    TRY(gpu_buffer_open(gpu, GPU_TRANSIENT, 4 * CHAIN_N, "chain", &c->buffers[i], err));
  for (uint32_t i = 0; i < n; i++) {
    struct gpu_buffer *x = c->buffers[dependent ? i % 2 : 0];
    struct gpu_buffer *y = c->buffers[dependent ? (i + 1) % 2 : i + 1];
    struct gpu_binding b[] = {{.buffer = x}, {.buffer = y}, {.buffer = c->params}};
    TRY(gpu_group_open(kernel, b, 3, &c->groups[i], err));
    c->dispatches[i] = (struct gpu_dispatch){c->groups[i], {CHAIN_N / 64, 1, 1}};
  }
  return SCONCE_OK;
}

static struct gpu_buffer *chain_end(const struct chain *c) {
  return c->buffers[c->n_buffers == 2 ? c->n % 2 : c->n];
}

/* Runs the chain in `splits` submits and reads one word back: the whole, and the CPU's part. */
static sconce_status chain_run(struct chain *c, uint32_t splits, double *cpu_us, double *wall_us,
                               uint32_t *word, sconce_error *err) {
  struct gpu_copy copy = {.from = chain_end(c), .to = c->read, .size = 4};
  uint64_t start = os_clock_ns();
  for (uint32_t s = 0; s < splits; s++) {
    uint32_t from = c->n * s / splits, to = c->n * (s + 1) / splits;
    struct gpu_batch batch = {c->dispatches + from, to - from, &copy, s + 1 == splits};
    TRY(gpu_submit(c->gpu, &batch, err));
  }
  *cpu_us = us_since(start);
  const void *data;
  TRY(gpu_read_begin(c->read, err));
  TRY(gpu_read_wait(c->read, &data, err));
  *wall_us = us_since(start);
  memcpy(word, data, 4);
  gpu_read_end(c->read);
  return SCONCE_OK;
}

/* Medians over the repeats; the first run warms the device up and checks the result. */
static sconce_status chain_measure(struct chain *c, uint32_t splits, uint32_t repeats, double *cpu,
                                   double *wall, sconce_error *err) {
  double cpus[REPEATS_MAX], walls[REPEATS_MAX], unused;
  uint32_t before, after;
  TRY(chain_run(c, splits, &unused, &unused, &before, err));
  TRY(chain_run(c, splits, &unused, &unused, &after, err));
  bool dependent = c->n_buffers == 2;
  /* Where the next run begins, this one left n, or n - 1 if the chain is odd. */
  uint32_t want = dependent ? before + c->n - c->n % 2 : 1;
  if (after != want)
    return fail(err, SCONCE_GPU_ERROR, "a chain of %u dispatches gave %u, want %u", c->n, after,
                want);
  for (uint32_t i = 0; i < repeats; i++)
    TRY(chain_run(c, splits, &cpus[i], &walls[i], &after, err));
  *cpu = median(cpus, repeats) / c->n;
  *wall = median(walls, repeats) / c->n;
  return SCONCE_OK;
}

/* Time per dispatch by the device's own clock: the whole pass, divided. */
static sconce_status chain_gpu_time(struct chain *c, uint32_t repeats, double *us,
                                    sconce_error *err) {
  *us = 0;
  if (!gpu_info(c->gpu)->timestamps) return SCONCE_OK;
  double each[REPEATS_MAX];
  for (uint32_t i = 0; i < repeats; i++) {
    uint64_t times[2];
    struct gpu_batch batch = {.dispatches = c->dispatches, .n_dispatches = c->n};
    TRY(gpu_profile(c->gpu, &batch, GPU_TIME_WHOLE, times, err));
    each[i] = (double)(times[1] - times[0]) * 1e-3 / c->n;
  }
  *us = median(each, repeats);
  return SCONCE_OK;
}

static sconce_status write_cost(struct chain *c, uint32_t repeats, double *us, sconce_error *err) {
  double each[REPEATS_MAX];
  struct chain_params p[SLOT / sizeof(struct chain_params)] = {{.n = CHAIN_N, .add = 1}};
  for (uint32_t i = 0; i < repeats; i++) {
    uint64_t start = os_clock_ns();
    for (int k = 0; k < 16; k++) TRY(gpu_write(c->params, 0, p, sizeof p, err));
    each[i] = us_since(start) / 16;
    TRY(gpu_finish(c->gpu, err));
  }
  *us = median(each, repeats);
  return SCONCE_OK;
}

static sconce_status measure_dependent(struct chain *c, sconce_dispatch_costs *out,
                                       sconce_error *err) {
  double unused;
  TRY(chain_measure(c, 1, out->repeats, &out->dependent_cpu_us, &out->dependent_wall_us, err));
  TRY(chain_measure(c, SPLITS, out->repeats, &unused, &out->split_wall_us, err));
  TRY(chain_gpu_time(c, out->repeats, &out->dependent_gpu_us, err));
  return write_cost(c, out->repeats, &out->write_us, err);
}

static sconce_status measure_independent(struct chain *c, sconce_dispatch_costs *out,
                                         sconce_error *err) {
  double unused;
  TRY(chain_measure(c, 1, out->repeats, &unused, &out->independent_wall_us, err));
  return chain_gpu_time(c, out->repeats, &out->independent_gpu_us, err);
}

static sconce_status measure_single(struct chain *c, sconce_dispatch_costs *out,
                                    sconce_error *err) {
  double unused;
  return chain_measure(c, 1, out->repeats, &unused, &out->submit_map_us, err);
}

static sconce_status with_chain(struct gpu *gpu, uint32_t n, bool dependent,
                                sconce_status (*measure)(struct chain *, sconce_dispatch_costs *,
                                                         sconce_error *),
                                sconce_dispatch_costs *out, sconce_error *err) {
  struct arena arena;
  arena_init(&arena, NULL);
  struct chain chain;
  sconce_status status = chain_init(&chain, gpu, &arena, n, dependent, err);
  if (status == SCONCE_OK) status = measure(&chain, out, err);
  chain_free(&chain);
  arena_free(&arena);
  return status;
}

sconce_status sconce_measure_dispatch(sconce_device *device, uint32_t dispatches, uint32_t repeats,
                                      sconce_dispatch_costs *out, sconce_error *err) {
  if (!device || !out) return fail(err, SCONCE_BAD_ARGUMENT, "device or out is NULL");
  if (dispatches < 2 || dispatches > 10000)
    return fail(err, SCONCE_BAD_ARGUMENT, "%u dispatches, expected 2 to 10000", dispatches);
  if (repeats < 1 || repeats > REPEATS_MAX)
    return fail(err, SCONCE_BAD_ARGUMENT, "%u repeats, expected 1 to %d", repeats, REPEATS_MAX);
  *out = (sconce_dispatch_costs){.dispatches = dispatches, .repeats = repeats};
  TRY(with_chain(device->gpu, dispatches, true, measure_dependent, out, err));
  TRY(with_chain(device->gpu, dispatches, false, measure_independent, out, err));
  return with_chain(device->gpu, 1, true, measure_single, out, err);
}

/* ---- bandwidth ------------------------------------------------------------------------------- */

enum { READ_GROUPS = 1024, READ_WG = 256, UPLOAD_CHUNK = 16 << 20 };

struct reader {
  struct gpu_buffer *x, *y, *params; /* (n vec4 words), (threads) */
  struct gpu_group *group;
  struct gpu_read *read;
  uint8_t *chunk;
};

static void reader_free(const sconce_allocator *allocator, struct reader *r) {
  gpu_group_close(r->group);
  gpu_buffer_close(r->x);
  gpu_buffer_close(r->y);
  gpu_buffer_close(r->params);
  gpu_read_close(r->read);
  block_resize(allocator, r->chunk, UPLOAD_CHUNK, 0);
}

/* Fills x with a pattern whose xor is known; the second pass over the buffer is timed. */
static sconce_status upload(struct gpu *gpu, struct reader *r, uint64_t size, double *bytes_per_s,
                            uint32_t *checksum, sconce_error *err) {
  for (uint32_t i = 0; i < UPLOAD_CHUNK / 4; i++) {
    uint32_t word = i * 2654435761u;
    memcpy(r->chunk + 4 * (size_t)i, &word, 4);
  }
  for (int pass = 0; pass < 2; pass++) {
    uint64_t start = os_clock_ns();
    *checksum = 0;
    for (uint64_t at = 0; at < size; at += UPLOAD_CHUNK) {
      size_t n = size - at < UPLOAD_CHUNK ? (size_t)(size - at) : UPLOAD_CHUNK;
      TRY(gpu_write(r->x, at, r->chunk, n, err));
    }
    TRY(gpu_submit(gpu, &(struct gpu_batch){0}, err)); /* else writes wait for one */
    TRY(gpu_finish(gpu, err));
    *bytes_per_s = (double)size / (us_since(start) * 1e-6);
  }
  for (uint64_t at = 0; at < size; at += 4) {
    uint32_t word;
    memcpy(&word, r->chunk + at % UPLOAD_CHUNK, 4);
    *checksum ^= word;
  }
  return SCONCE_OK;
}

static sconce_status read_once(struct gpu *gpu, struct reader *r, uint32_t times, double *us,
                               uint32_t *checksum, sconce_error *err) {
  struct gpu_dispatch dispatches[8];
  for (uint32_t i = 0; i < times; i++)
    dispatches[i] = (struct gpu_dispatch){r->group, {READ_GROUPS, 1, 1}};
  struct gpu_copy copy = {.from = r->y, .to = r->read, .size = gpu_buffer_size(r->y)};
  uint64_t start = os_clock_ns();
  TRY(gpu_submit(gpu, &(struct gpu_batch){dispatches, times, NULL, 0}, err));
  TRY(gpu_finish(gpu, err));
  *us = us_since(start);
  TRY(gpu_submit(gpu, &(struct gpu_batch){NULL, 0, &copy, 1}, err));
  const void *data;
  TRY(gpu_read_begin(r->read, err));
  TRY(gpu_read_wait(r->read, &data, err));
  *checksum = 0;
  for (uint32_t i = 0; i < READ_GROUPS * READ_WG; i++) *checksum ^= ((const uint32_t *)data)[i];
  gpu_read_end(r->read);
  return SCONCE_OK;
}

static sconce_status measure_reads(struct gpu *gpu, const sconce_allocator *allocator,
                                   struct reader *r, sconce_bandwidth *out, sconce_error *err) {
  struct gpu_kernel *kernel;
  const uint32_t threads = READ_GROUPS * READ_WG;
  struct read_params p = {.n = (uint32_t)(out->size / 16), .threads = threads};
  r->chunk = block_resize(allocator, NULL, 0, UPLOAD_CHUNK);
  if (!r->chunk) return fail(err, SCONCE_NO_MEMORY, "no memory for %d bytes", UPLOAD_CHUNK);
  TRY(gpu_kernel_get(gpu, &probe_kernels[PROBE_READ], &kernel, err));
  TRY(gpu_buffer_open(gpu, GPU_TRANSIENT, out->size, "bandwidth", &r->x, err));
  TRY(gpu_buffer_open(gpu, GPU_TRANSIENT, 4 * threads, "sums", &r->y, err));
  TRY(gpu_buffer_open(gpu, GPU_PARAMS, SLOT, "params", &r->params, err));
  TRY(gpu_read_open(gpu, 4 * threads, &r->read, err));
  TRY(gpu_write(r->params, 0, &p, sizeof p, err));
  struct gpu_binding b[] = {{.buffer = r->x}, {.buffer = r->y}, {.buffer = r->params}};
  TRY(gpu_group_open(kernel, b, 3, &r->group, err));
  uint32_t want, got;
  TRY(upload(gpu, r, out->size, &out->upload_bytes_per_s, &want, err));
  /* A long run less a short one: the submit's own cost drops out. */
  double best = 0, one, eight;
  for (int i = 0; i < 5; i++) {
    TRY(read_once(gpu, r, 1, &one, &got, err));
    TRY(read_once(gpu, r, 8, &eight, &got, err));
    if (got != want)
      return fail(err, SCONCE_GPU_ERROR, "read back a checksum of %08x, want %08x", got, want);
    double rate = 7.0 * (double)out->size / ((eight - one) * 1e-6);
    if (eight > one && rate > best) best = rate;
  }
  out->read_bytes_per_s = best;
  return SCONCE_OK;
}

sconce_status sconce_measure_bandwidth(sconce_device *device, uint64_t size, sconce_bandwidth *out,
                                       sconce_error *err) {
  if (!device || !out) return fail(err, SCONCE_BAD_ARGUMENT, "device or out is NULL");
  const sconce_device_info *info = gpu_info(device->gpu);
  uint64_t most =
      info->max_storage_binding < info->max_buffer ? info->max_storage_binding : info->max_buffer;
  if (most > (uint64_t)1 << 30) most = (uint64_t)1 << 30;
  if (size == 0 || size > most) size = most;
  if (size < 16)
    return fail(err, SCONCE_BAD_ARGUMENT, "%llu bytes are too few", (unsigned long long)size);
  *out = (sconce_bandwidth){.size = size / 16 * 16};
  struct reader reader = {0};
  sconce_status status = measure_reads(device->gpu, &device->allocator, &reader, out, err);
  reader_free(&device->allocator, &reader);
  return status;
}
