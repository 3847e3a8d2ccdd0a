/* The smallest program: opens the best GPU here and says what it is.
 *   cc main.c $(pkg-config --cflags --libs sconce) && ./a.out */
#include <sconce.h>

#include <stdio.h>

int main(void) {
  sconce_device *device;
  sconce_error err;
  if (sconce_device_open(&device, NULL, &err) != SCONCE_OK) {
    fprintf(stderr, "%s: %s\n", sconce_status_name(err.status), err.text);
    return 1;
  }
  const sconce_device_info *info = sconce_device_describe(device);
  printf("sconce %s on %s (%s, %s)\n", sconce_version(), info->name, info->api, info->library);
  sconce_device_close(device);
  return 0;
}
