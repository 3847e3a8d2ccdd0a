/* JPEG and PNG files through the libraries that the build found. A file is untrusted: its size in
 * pixels is capped, and the libraries' errors become one sentence. */
#include "cli.h"
#include "picture.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#ifdef SCONCE_JPEG
#include <jpeglib.h>

#include <jerror.h>
#endif
#ifdef SCONCE_PNG
#include <png.h>
#endif

/* A picture takes 3 bytes a pixel, a progressive JPEG 6 more while it is read, and a file of some
 * kilobytes may say that it has billions. A page at 600 dpi has 35 million. */
enum { PIXELS_MAX = 1 << 28, PIXELS_USUAL = 1 << 26, PIXELS_A_BYTE = 32, PASSES_MAX = 5 };

static bool complain(const char *path, const char *what) {
  fprintf(stderr, "sconce: %s: %s\n", path, what);
  return false;
}

#if defined(SCONCE_JPEG) || defined(SCONCE_PNG)
static uint64_t pixels_most(size_t size) {
  const uint64_t most = PIXELS_USUAL + PIXELS_A_BYTE * (uint64_t)size;
  return most < PIXELS_MAX ? most : PIXELS_MAX;
}

/* A picture as large as it says it is, from a file of `size` bytes. */
static bool allocate(struct picture *p, uint32_t width, uint32_t height, size_t size, char *why,
                     size_t room) {
  const uint64_t most = pixels_most(size);
  snprintf(why, room, "%u x %u pixels in %zu bytes, at most %" PRIu64, width, height, size, most);
  if (!width || !height || height > most / width) return false;
  p->width = width;
  p->height = height;
  p->rgb = malloc((size_t)width * height * 3);
  if (!p->rgb) snprintf(why, room, "no memory for %u x %u pixels", width, height);
  return p->rgb;
}
#endif

#ifdef SCONCE_JPEG
struct jpeg {
  struct jpeg_decompress_struct d;
  struct jpeg_error_mgr errors;
  struct jpeg_progress_mgr progress;
  jmp_buf failed;
  size_t size; /* of the file */
  char why[JMSG_LENGTH_MAX];
};

static void on_error(j_common_ptr info) {
  struct jpeg *j = (struct jpeg *)(void *)info; /* its first member */
  info->err->format_message(info, j->why);
  longjmp(j->failed, 1);
}

/* Each scan of a progressive file goes over the whole picture, however short it is. */
static void on_progress(j_common_ptr info) {
  struct jpeg *j = (struct jpeg *)(void *)info;
  const uint64_t pixels = (uint64_t)j->d.image_width * j->d.image_height;
  const uint64_t most = PASSES_MAX * pixels_most(j->size) / pixels;
  if ((uint64_t)j->d.input_scan_number <= most) return;
  snprintf(j->why, sizeof j->why, "more than %" PRIu64 " scans of %u x %u pixels in %zu bytes",
           most, j->d.image_width, j->d.image_height, j->size);
  longjmp(j->failed, 1);
}

static void on_message(j_common_ptr info) { (void)info; }

/* The library goes on with grey where data is missing or damaged, and warns; a picture that is half
 * there is none. Its other warnings are about habits of cameras. */
static void on_warning(j_common_ptr info, int level) {
  switch (level < 0 ? info->err->msg_code : 0) {
  case JWRN_HIT_MARKER:
  case JWRN_HUFF_BAD_CODE:
  case JWRN_ARITH_BAD_CODE:
  case JWRN_JPEG_EOF:
  case JWRN_MUST_RESYNC:
    on_error(info);
    break;
  default:
    break;
  }
}

/* Nothing that is changed after setjmp is a local of this function. */
static bool read_jpeg(const uint8_t *data, size_t size, struct jpeg *j, struct picture *out) {
  j->d.err = jpeg_std_error(&j->errors);
  j->errors.error_exit = on_error;
  j->errors.output_message = on_message;
  j->errors.emit_message = on_warning;
  if (setjmp(j->failed)) {
    jpeg_destroy_decompress(&j->d);
    return false;
  }
  jpeg_create_decompress(&j->d);
  j->progress.progress_monitor = on_progress;
  j->d.progress = &j->progress;
  j->size = size;
  jpeg_mem_src(&j->d, data, (unsigned long)size);
  jpeg_read_header(&j->d, TRUE);
  if (!allocate(out, j->d.image_width, j->d.image_height, size, j->why, sizeof j->why))
    longjmp(j->failed, 1);
  j->d.out_color_space = JCS_RGB;
  jpeg_start_decompress(&j->d);
  while (j->d.output_scanline < j->d.output_height) {
    JSAMPROW row = out->rgb + (size_t)j->d.output_scanline * out->width * 3;
    jpeg_read_scanlines(&j->d, &row, 1);
  }
  jpeg_finish_decompress(&j->d);
  jpeg_destroy_decompress(&j->d);
  return true;
}

static bool jpeg_picture(const char *path, const char *data, size_t size, struct picture *out) {
  static struct jpeg j;
  return read_jpeg((const uint8_t *)data, size, &j, out) ? true : complain(path, j.why);
}
#else
static bool jpeg_picture(const char *path, const char *data, size_t size, struct picture *out) {
  (void)data, (void)size, (void)out;
  return complain(path, "this build has no libjpeg");
}
#endif

#ifdef SCONCE_PNG
/* What is transparent becomes white. */
static bool png_picture(const char *path, const char *data, size_t size, struct picture *out) {
  png_image image = {.version = PNG_IMAGE_VERSION};
  static const png_color white = {255, 255, 255};
  char why[100];
  bool ok = png_image_begin_read_from_memory(&image, data, size);
  if (ok && !allocate(out, image.width, image.height, size, why, sizeof why)) {
    png_image_free(&image);
    return complain(path, why);
  }
  image.format = PNG_FORMAT_RGB;
  if (ok) ok = png_image_finish_read(&image, &white, out->rgb, 0, NULL);
  return ok ? true : complain(path, image.message);
}
#else
static bool png_picture(const char *path, const char *data, size_t size, struct picture *out) {
  (void)data, (void)size, (void)out;
  return complain(path, "this build has no libpng");
}
#endif

bool picture_read(const char *path, struct picture *out) {
  size_t size;
  char *data = cli_read_file(path, CLI_PICTURE_MAX, &size);
  *out = (struct picture){0};
  if (!data) return false;
  bool ok = size > 8 && !memcmp(data, "\xff\xd8", 2)      ? jpeg_picture(path, data, size, out)
            : size > 8 && !memcmp(data, "\x89PNG\r\n", 6) ? png_picture(path, data, size, out)
                                                          : complain(path, "neither JPEG nor PNG");
  free(data);
  if (ok) return true;
  free(out->rgb);
  out->rgb = NULL;
  return false;
}
