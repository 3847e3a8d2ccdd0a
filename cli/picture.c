/* See picture.h. Scaling is linear over all pixels that fall into one, as PyTorch's and Pillow's
 * antialiased bilinear filter is. */
#include "picture.h"

#include "cli.h"
#include "tensor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the input's layout ---------------------------------------------------------------------- */

struct layout {
  uint32_t channels, height, width;
  bool last; /* channels are the last dim */
};

static bool is_colour(uint32_t n) { return n == 1 || n == 3; }

static bool read_layout(const sconce_tensor *t, struct layout *out) {
  if (t->rank < 3) return false;
  const uint32_t *d = t->dims + t->rank - 3;
  for (uint32_t i = 0; i + 3 < t->rank; i++)
    if (t->dims[i] != 1) return false;
  out->last = !is_colour(d[0]) && is_colour(d[2]);
  *out = out->last ? (struct layout){d[2], d[0], d[1], true} : (struct layout){d[0], d[1], d[2]};
  return is_colour(out->channels) && out->height && out->width;
}

/* ---- scaling --------------------------------------------------------------------------------- */

/* One axis: `from` pixels are scaled to `to`, of which `n` from `offset` on are wanted. */
struct axis {
  uint32_t from, to, n;
  double offset;
};

/* Which pixels make up output pixel i, and each one's part. Returns the first; *count of them. */
static uint32_t weights(const struct axis *a, uint32_t i, float *out, uint32_t *count) {
  const double scale = (double)a->from / a->to, reach = scale > 1 ? scale : 1;
  const double centre = (i + a->offset + 0.5) * scale;
  const double low = floor(centre - reach + 0.5), high = floor(centre + reach + 0.5);
  const uint32_t first = low > 0 ? (uint32_t)low : 0;
  const uint32_t end = high < a->from ? (uint32_t)high : a->from;
  double sum = 0;
  *count = 0;
  for (uint32_t s = first; s < end; s++) {
    const double part = 1 - fabs((s + 0.5 - centre) / reach);
    out[*count] = part > 0 ? (float)part : 0;
    sum += (double)out[(*count)++];
  }
  for (uint32_t s = 0; s < *count; s++) out[s] = (float)((double)out[s] / sum);
  return first;
}

/* (height, w.n, 3) of (height, width, 3): the rows first, then the columns of the result. */
static bool scale(const struct picture *p, const struct axis *w, const struct axis *h, float *out) {
  float *rows = malloc((size_t)p->height * w->n * 3 * sizeof *rows);
  float *part = malloc(((size_t)p->width + p->height) * sizeof *part);
  const bool ok = rows && part;
  uint32_t count;
  memset(out, 0, (size_t)w->n * h->n * 3 * sizeof *out);
  for (uint32_t x = 0; ok && x < w->n; x++) {
    const uint32_t first = weights(w, x, part, &count);
    for (uint32_t y = 0; y < p->height; y++)
      for (uint32_t c = 0; c < 3; c++) {
        const uint8_t *from = p->rgb + ((size_t)y * p->width + first) * 3 + c;
        float sum = 0;
        for (uint32_t s = 0; s < count; s++) sum += part[s] * from[3 * s];
        rows[((size_t)y * w->n + x) * 3 + c] = sum;
      }
  }
  for (uint32_t y = 0; ok && y < h->n; y++) {
    const uint32_t first = weights(h, y, part, &count);
    float *to = out + (size_t)y * w->n * 3;
    for (uint32_t s = 0; s < count; s++)
      for (uint32_t i = 0; i < w->n * 3; i++)
        to[i] += part[s] * rows[((size_t)first + s) * w->n * 3 + i];
  }
  free(rows);
  free(part);
  return ok;
}

/* The shorter side becomes `side` pixels; the middle is what the input has room for. */
static bool fit(const struct picture *p, uint32_t side, const struct layout *l, float *out) {
  const uint32_t shorter = p->width < p->height ? p->width : p->height;
  struct axis w = {p->width, (uint32_t)((uint64_t)p->width * side / shorter), l->width, 0};
  struct axis h = {p->height, (uint32_t)((uint64_t)p->height * side / shorter), l->height, 0};
  w.offset = floor(((double)w.to - w.n) / 2 + 0.5);
  h.offset = floor(((double)h.to - h.n) / 2 + 0.5);
  return w.to >= w.n && h.to >= h.n && scale(p, &w, &h, out);
}

/* The shorter side with which the picture just covers the input. */
static long covering(const struct picture *p, const struct layout *l) {
  const double shorter = p->width < p->height ? p->width : p->height;
  const double wide = l->width * shorter / p->width, high = l->height * shorter / p->height;
  return (long)ceil(wide > high ? wide : high);
}

/* ---- numbers --------------------------------------------------------------------------------- */

static bool read_three(const char *name, const char *text, double absent, double out[3]) {
  const bool divides = absent != 0; /* --std */
  int n = 0;
  for (int i = 0; i < 3; i++) out[i] = absent;
  if (!text) return true;
  for (char *end; n < 3; text = end + 1) {
    out[n] = strtod(text, &end);
    if (end == text || !isfinite(out[n]) || (divides && out[n] == 0)) break;
    n++;
    if (!*end && n == 1) out[1] = out[2] = out[0];
    if (!*end && n != 2) return true;
    if (*end != ',') break;
  }
  fprintf(stderr, "sconce: %s: expected one number or three with commas%s\n", name,
          divides ? ", none of them 0" : "");
  return false;
}

static void store(const float *pixels, const struct layout *l, bool bytes, const double mean[3],
                  const double std[3], sconce_tensor *t, uint8_t *data) {
  const size_t step = sconce_dtype_size(t->dtype), area = (size_t)l->height * l->width;
  for (size_t i = 0; i < area; i++)
    for (uint32_t c = 0; c < l->channels; c++) {
      const float *p = pixels + 3 * i;
      /* one channel: brightness, as Rec. 601 weighs the colours */
      double v = l->channels == 3
                     ? (double)p[c]
                     : 0.299 * (double)p[0] + 0.587 * (double)p[1] + 0.114 * (double)p[2];
      v = bytes ? floor(v + 0.5) : (v / 255 - mean[c]) / std[c];
      const size_t at = l->last ? i * l->channels + c : c * area + i;
      input_store(t->dtype, data + at * step, v);
    }
}

static bool fill(const struct picture *p, uint32_t side, const struct layout *l, bool bytes,
                 const double mean[3], const double std[3], sconce_tensor *t, void **data) {
  float *pixels = malloc((size_t)l->height * l->width * 3 * sizeof *pixels);
  *data = cli_size(t, &t->size) ? malloc(t->size) : NULL;
  t->data = *data;
  const bool ok = pixels && *data && fit(p, side, l, pixels);
  if (ok) store(pixels, l, bytes, mean, std, t, *data);
  free(pixels);
  return ok;
}

int picture_make(const char *path, const struct picture_options *o, const sconce_tensor *bound,
                 sconce_tensor *out, void **data) {
  struct layout l;
  struct picture p;
  double mean[3], std[3];
  char dims[128];
  *out = *bound;
  *data = NULL;
  if (!read_three("--mean", o->mean, 0, mean) || !read_three("--std", o->std, 1, std))
    return CLI_USAGE;
  if (!read_layout(bound, &l)) {
    fprintf(stderr, "sconce: %s: an input of %s is no picture of one or three channels\n", path,
            cli_dims(dims, bound));
    return CLI_FAILED;
  }
  long side = o->resize ? cli_number("--resize", o->resize, 1, 16384) : 0;
  if (side < 0) return CLI_USAGE;
  if (!picture_read(path, &p)) return CLI_FAILED;
  if (!side) side = covering(&p, &l);
  const bool bytes = !cli_is_float(bound->dtype) && !o->mean && !o->std;
  const bool ok = fill(&p, (uint32_t)side, &l, bytes, mean, std, out, data);
  if (!ok)
    fprintf(stderr, "sconce: %s: %u x %u pixels with a shorter side of %ld do not fill %u x %u\n",
            path, p.width, p.height, side, l.width, l.height);
  free(p.rgb);
  if (ok) return CLI_DONE;
  free(*data);
  *data = NULL;
  return CLI_FAILED;
}
