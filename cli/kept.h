/* Kernels that were found wrong on a device, kept from run to run: a file of lines in the user's
 * state folder, "adapter; driver; library; program<tab>label,label". Another driver or another
 * version of anything is another device. */
#ifndef CLI_KEPT_H
#define CLI_KEPT_H

#include "sconce.h"

/* The labels kept for this device, as sconce_device_desc.avoid takes them; the caller frees. NULL:
 * none. */
char *kept_find(const sconce_device_info *device);
/* Keeps these in place of what was kept; "" keeps none. Other devices' lines stay. The file is
 * replaced at once, or not at all. False after a complaint. */
bool kept_write(const sconce_device_info *device, const char *labels);

#endif
