/* Tensors of the command: .npy files, inputs made from a word, numbers to print. */
#ifndef CLI_TENSOR_H
#define CLI_TENSOR_H

#include "sconce.h"

/* NumPy's format 1.0 to 3.0, little-endian, C order. The file is untrusted: its size decides what
 * is allocated. The data is the caller's to free, and NULL on failure, which has been complained
 * about on stderr. */
bool npy_read(const char *path, sconce_tensor *out, void **data);
/* Format 1.0, as NumPy itself writes it. */
bool npy_write(const char *path, const sconce_tensor *tensor);

/* An input as a word says: x.npy, x.bin, 1,2,3, zeros:1x3, ones:…, rand:… or range:…. dtype (and
 * without dims the shape) are what `bound`, the method's own description, asks for. CLI_DONE, or
 * CLI_USAGE or CLI_FAILED after a complaint; the data ends as npy_read's. */
int input_make(const char *word, const sconce_tensor *bound, sconce_tensor *out, void **data);
/* zeros, ones, rand or range in all of bound's dims. */
bool input_filled(const char *kind, const sconce_tensor *bound, sconce_tensor *out, void **data);
/* Stores a number as an element. */
void input_store(sconce_dtype dtype, void *at, double value);
bool cli_is_float(sconce_dtype dtype);

uint64_t cli_numel(const sconce_tensor *tensor);
/* Elements times their size; false: more than a size_t holds. */
bool cli_size(const sconce_tensor *tensor, size_t *out);
double cli_element(const sconce_tensor *tensor, uint64_t i);
/* "(1, 3)" as Python would; returns out. */
const char *cli_dims(char out[128], const sconce_tensor *tensor);

#endif
