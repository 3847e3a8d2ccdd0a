/* Pictures as inputs of `sconce run`. */
#ifndef CLI_PICTURE_H
#define CLI_PICTURE_H

#include "sconce.h"

struct picture_options {
  const char *mean, *std; /* lists with commas, one number or one for each channel; may be NULL */
  const char *resize;     /* pixels of the shorter side, or NULL: as many as the input has */
};

/* A JPEG or PNG file as the input asks for it: (…, C, H, W) or (…, H, W, C) with one or three
 * channels. The shorter side is scaled and the middle cut out; values are (v - mean) / std of v in
 * [0, 1], or for integers without mean and std the bytes 0 to 255. CLI_DONE, or CLI_USAGE or
 * CLI_FAILED after a complaint; free the data. */
int picture_make(const char *path, const struct picture_options *options,
                 const sconce_tensor *bound, sconce_tensor *out, void **data);

/* ---- between picture.c and picture_file.c ---------------------------------------------------- */

struct picture {
  uint32_t width, height;
  uint8_t *rgb; /* (height, width, 3), owned */
};
/* false after a complaint. */
bool picture_read(const char *path, struct picture *out);

#endif
