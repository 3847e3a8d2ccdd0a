/* A picture in, an answer out: decode, crop and resize, normalise, run, softmax, the five best.
 *   ./classify model.pte picture.jpg [labels.txt]
 * The model takes float32 [1, 3, height, width], normalised as ImageNet's are, and gives float32
 * [1, classes]; labels.txt has a line for each class. Needs libjpeg and libpng. */
#include <sconce.h>

#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <png.h>

struct picture {
  uint32_t width, height;
  unsigned char *rgb; /* (height, width, 3) */
};

/* ---- decoding -------------------------------------------------------------------------------- */

struct jpeg_errors {
  struct jpeg_error_mgr base;
  jmp_buf back;
};

static void on_jpeg_error(j_common_ptr info) { /* libjpeg's own would end the program */
  struct jpeg_errors *errors = (struct jpeg_errors *)info->err;
  (*info->err->output_message)(info);
  longjmp(errors->back, 1);
}

static int read_jpeg(FILE *file, struct picture *p) {
  struct jpeg_decompress_struct info;
  struct jpeg_errors errors;
  info.err = jpeg_std_error(&errors.base);
  errors.base.error_exit = on_jpeg_error;
  if (setjmp(errors.back)) {
    jpeg_destroy_decompress(&info);
    return 0;
  }
  jpeg_create_decompress(&info);
  jpeg_stdio_src(&info, file);
  jpeg_read_header(&info, TRUE);
  info.out_color_space = JCS_RGB;
  jpeg_start_decompress(&info);
  p->width = info.output_width;
  p->height = info.output_height;
  p->rgb = malloc((size_t)3 * p->width * p->height);
  while (p->rgb && info.output_scanline < info.output_height) {
    JSAMPROW row = p->rgb + (size_t)3 * p->width * info.output_scanline;
    jpeg_read_scanlines(&info, &row, 1);
  }
  if (p->rgb) jpeg_finish_decompress(&info);
  jpeg_destroy_decompress(&info);
  return p->rgb != NULL;
}

static int read_png(FILE *file, struct picture *p) {
  png_image image = {.version = PNG_IMAGE_VERSION};
  if (png_image_begin_read_from_stdio(&image, file)) {
    image.format = PNG_FORMAT_RGB;
    p->width = image.width;
    p->height = image.height;
    p->rgb = malloc(PNG_IMAGE_SIZE(image));
    const png_color white = {255, 255, 255}; /* behind what is transparent */
    if (p->rgb && png_image_finish_read(&image, &white, p->rgb, 0, NULL)) return 1;
  }
  fprintf(stderr, "%s\n", image.message);
  png_image_free(&image);
  return 0;
}

/* What a file is, its first bytes say. */
static int read_picture(const char *path, struct picture *p) {
  unsigned char magic[4] = {0};
  FILE *file = fopen(path, "rb");
  if (!file) {
    fprintf(stderr, "%s: cannot be opened\n", path);
    return 0;
  }
  const size_t n = fread(magic, 1, sizeof magic, file);
  rewind(file);
  int ok = 0;
  if (n == 4 && magic[0] == 0xff && magic[1] == 0xd8)
    ok = read_jpeg(file, p);
  else if (n == 4 && memcmp(magic, "\x89PNG", 4) == 0)
    ok = read_png(file, p);
  else
    fprintf(stderr, "%s: neither a JPEG nor a PNG\n", path);
  fclose(file);
  return ok;
}

/* ---- what the model sees --------------------------------------------------------------------- */

/* The mean of a channel over the pixels that one pixel of the result covers, at least one. */
static double mean_of(const struct picture *p, double x0, double y0, double x1, double y1, int c) {
  const uint32_t left = (uint32_t)x0, top = (uint32_t)y0;
  uint32_t right = (uint32_t)ceil(x1), bottom = (uint32_t)ceil(y1);
  double sum = 0;
  if (right > p->width) right = p->width;
  if (bottom > p->height) bottom = p->height;
  for (uint32_t y = top; y < bottom; y++)
    for (uint32_t x = left; x < right; x++)
      sum += p->rgb[((size_t)y * p->width + x) * 3 + (size_t)c];
  return sum / ((double)(right - left) * (bottom - top));
}

/* (3, height, width) from the largest part in the middle that has this shape. */
static void fill_input(const struct picture *p, uint32_t height, uint32_t width, float *out) {
  static const double mean[] = {0.485, 0.456, 0.406}, deviation[] = {0.229, 0.224, 0.225};
  const double down = p->height / (double)height, along = p->width / (double)width;
  const double step = down < along ? down : along;
  const double top = (p->height - step * height) / 2, left = (p->width - step * width) / 2;
  for (int c = 0; c < 3; c++)
    for (uint32_t y = 0; y < height; y++)
      for (uint32_t x = 0; x < width; x++) {
        const double y0 = top + y * step, x0 = left + x * step;
        const double value = mean_of(p, x0, y0, x0 + step, y0 + step, c) / 255;
        *out++ = (float)((value - mean[c]) / deviation[c]);
      }
}

/* ---- the answer ------------------------------------------------------------------------------ */

static void softmax(const float *x, size_t n, double *out) {
  double most = -INFINITY, sum = 0;
  for (size_t i = 0; i < n; i++) most = fmax(most, (double)x[i]);
  for (size_t i = 0; i < n; i++) sum += out[i] = exp((double)x[i] - most);
  for (size_t i = 0; i < n; i++) out[i] /= sum;
}

static void print_label(const char *path, size_t line) {
  char text[200];
  FILE *file = path ? fopen(path, "r") : NULL;
  for (size_t i = 0; file && fgets(text, sizeof text, file); i++)
    if (i == line) printf("  %.*s", (int)strcspn(text, "\r\n"), text);
  if (file) fclose(file);
}

static void print_best(double *share, size_t n, const char *labels) {
  for (int k = 0; k < 5 && (size_t)k < n; k++) {
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
      if (share[i] > share[best]) best = i;
    printf("%6.2f %%  class %zu", 100 * share[best], best);
    print_label(labels, best);
    printf("\n");
    share[best] = -1;
  }
}

static int failed(const sconce_error *err) {
  fprintf(stderr, "%s: %s\n", sconce_status_name(err->status), err->text);
  return 1;
}

static int classify(sconce_state *state, sconce_tensor x, const struct picture *p,
                    const char *labels) {
  sconce_error err;
  sconce_tensor y;
  x.size = (size_t)3 * x.dims[2] * x.dims[3] * sizeof(float);
  float *pixels = malloc(x.size);
  if (!pixels) return 1;
  fill_input(p, x.dims[2], x.dims[3], pixels);
  x.data = pixels;
  int status = sconce_state_set_input(state, 0, &x, &err) || sconce_state_run(state, NULL, &err) ||
               sconce_state_output(state, 0, &y, &err);
  if (status) {
    failed(&err);
  } else {
    const size_t n = y.size / sizeof(float);
    double *share = malloc(n * sizeof *share);
    if (share) softmax(y.data, n, share), print_best(share, n, labels);
    status = share == NULL;
    free(share);
  }
  free(pixels);
  return status;
}

int main(int argc, char **argv) {
  sconce_device *device;
  sconce_model *model;
  sconce_method *method;
  sconce_state *state;
  sconce_error err;
  struct picture picture = {0};
  if (argc < 3) return fprintf(stderr, "classify model.pte picture [labels.txt]\n"), 2;
  if (!read_picture(argv[2], &picture)) return 1;
  const sconce_model_desc desc = {.program.path = argv[1]};
  if (sconce_device_open(&device, NULL, &err) || sconce_model_open(&model, device, &desc, &err) ||
      sconce_method_open(&method, model, NULL, &err) || sconce_state_open(&state, method, &err))
    return failed(&err);
  const sconce_tensor x = sconce_method_describe(method)->inputs[0];
  int status = 1;
  if (x.rank == 4 && x.dims[0] == 1 && x.dims[1] == 3 &&
      sconce_dtype_size(x.dtype) == sizeof(float))
    status = classify(state, x, &picture, argc > 3 ? argv[3] : NULL);
  else
    fprintf(stderr, "the model's input is no picture of [1, 3, height, width] in float32\n");
  free(picture.rgb);
  sconce_state_close(state);
  sconce_method_close(method);
  sconce_model_close(model);
  sconce_device_close(device);
  return status;
}
