/* sconce devices: what WebGPU offers on this machine. */
#include "cli.h"

#include <string.h>

#include "kept.h"

#include <stdlib.h>

static const char *type_name(sconce_adapter_type type) {
  switch (type) {
  case SCONCE_ADAPTER_DISCRETE:
    return "discrete";
  case SCONCE_ADAPTER_INTEGRATED:
    return "integrated";
  case SCONCE_ADAPTER_SOFTWARE:
    return "software";
  default:
    return "unknown";
  }
}

enum { MOST = 32 };
struct found {
  uint32_t n;
  sconce_device_info info[MOST];
};

static void keep(void *user, uint32_t index, const sconce_device_info *info) {
  struct found *found = user;
  if (index < MOST) {
    found->info[index] = *info;
    found->n = index + 1;
  }
}

static void features(FILE *out, const sconce_device_info *d, const char *separator) {
  const char *names[] = {"f16", "subgroups", "timestamps", "matrix"};
  const bool on[] = {d->f16, d->subgroups, d->timestamps, d->matrix};
  const char *before = "";
  for (int i = 0; i < 4; i++)
    if (on[i]) {
      fprintf(out, "%s%s", before, names[i]);
      before = separator;
    }
}

static void print_table(const struct found *found, uint32_t chosen) {
  char a[32], b[32], c[32];
  for (uint32_t i = 0; i < found->n; i++) {
    const sconce_device_info *d = &found->info[i];
    printf("%s %u  %s\n", i == chosen ? "*" : " ", i, d->name);
    printf("     %s through %s, driver %s, %s %s\n", type_name(d->type), d->api,
           d->driver[0] ? d->driver : "unknown", d->library, d->library_version);
    printf("     features: ");
    features(stdout, d, ", ");
    if (d->subgroup_max) printf(" (subgroups of %u to %u)", d->subgroup_min, d->subgroup_max);
    if (i == chosen) printf("; precision: %s", cli_precision(d));
    printf("\n     buffers up to %s, bindings up to %s, %u storage buffers a kernel\n",
           cli_bytes(a, d->max_buffer), cli_bytes(b, d->max_storage_binding),
           d->max_storage_buffers);
    printf("     workgroups of %u threads, %s of workgroup memory, %u workgroups a dimension\n",
           d->max_workgroup_invocations, cli_bytes(c, d->max_workgroup_bytes), d->max_workgroups);
    char *wrong = kept_find(d);
    if (wrong) printf("     kernels found wrong and avoided: %s\n", wrong);
    free(wrong);
  }
}

static void json_one(uint32_t index, const sconce_device_info *d) {
  printf("    {\"index\": %u, \"name\": ", index);
  cli_json_text(stdout, d->name);
  printf(", \"driver\": ");
  cli_json_text(stdout, d->driver);
  printf(", \"vendor\": ");
  cli_json_text(stdout, d->vendor);
  printf(", \"type\": \"%s\", \"api\": \"%s\",\n     \"library\": \"%s\", \"library_version\": "
         "\"%s\",\n",
         type_name(d->type), d->api, d->library, d->library_version);
  printf("     \"f16\": %s, \"subgroups\": %s, \"timestamps\": %s, \"matrix\": %s, "
         "\"fast\": %s, \"subgroup_size\": [%u, %u],\n",
         d->f16 ? "true" : "false", d->subgroups ? "true" : "false",
         d->timestamps ? "true" : "false", d->matrix ? "true" : "false", d->fast ? "true" : "false",
         d->subgroup_min, d->subgroup_max);
  printf("     \"max_buffer\": %llu, \"max_storage_binding\": %llu, \"max_storage_buffers\": %u,\n",
         (unsigned long long)d->max_buffer, (unsigned long long)d->max_storage_binding,
         d->max_storage_buffers);
  printf("     \"max_workgroup_bytes\": %u, \"max_workgroup_invocations\": %u,\n",
         d->max_workgroup_bytes, d->max_workgroup_invocations);
  printf("     \"max_workgroup_size\": [%u, %u, %u], \"max_workgroups\": %u,\n",
         d->max_workgroup_size[0], d->max_workgroup_size[1], d->max_workgroup_size[2],
         d->max_workgroups);
  printf("     \"storage_alignment\": %u, \"uniform_alignment\": %u, \"avoid\": ",
         d->storage_alignment, d->uniform_alignment);
  char *wrong = kept_find(d);
  cli_json_text(stdout, wrong ? wrong : "");
  free(wrong);
  putchar('}');
}

static void print_json(const struct found *found, uint32_t chosen) {
  printf("{\"devices\": [\n");
  for (uint32_t i = 0; i < found->n; i++) {
    json_one(i, &found->info[i]);
    puts(i + 1 < found->n ? "," : "");
  }
  if (chosen < found->n)
    printf("  ], \"chosen\": %u}\n", chosen);
  else
    printf("  ], \"chosen\": null}\n");
}

/* Opens the default one too: what it offers, less what the environment masks and caps. */
static int show(const struct cli_device *which, bool json) {
  static struct found found;
  sconce_error err = {0};
  if (sconce_adapters(NULL, keep, &found, &err) != SCONCE_OK) return cli_fail(&err);
  uint32_t chosen = UINT32_MAX;
  bool note = false;
  sconce_device *device;
  sconce_status status = cli_open_device(&device, which, &err);
  if (status == SCONCE_OK) {
    const sconce_device_info *open = sconce_device_describe(device);
    chosen = open->index;
    if (chosen < found.n) {
      note = strcmp(found.info[chosen].library, open->library) != 0;
      found.info[chosen] = *open;
    }
  }
  if (json)
    print_json(&found, chosen);
  else
    print_table(&found, chosen);
  if (note && !json) puts("Dawn is taken for its matrix units; SCONCE_WEBGPU=wgpu says otherwise");
  sconce_device_close(device);
  return status == SCONCE_OK ? CLI_DONE : cli_fail(&err);
}

int cli_devices(int argc, char **argv) {
  bool json = false;
  struct cli_device which = {0};
  const struct cli_option options[] = {
      {"--json", NULL,
       "the same for programs: {\"devices\": [{\"index\", \"name\", …}], \"chosen\"}",
       .flag = &json},
      CLI_DEVICE_OPTIONS(which),
      {0}};
  const struct cli_verb verb = {
      "devices", "[--json] [--device NAME]",
      "Lists the adapters of the WebGPU library in use. The one marked * is what the other verbs "
      "take unless --device or SCONCE_ADAPTER names another; features that SCONCE_DISABLE masks "
      "and "
      "limits that SCONCE_LIMITS caps are shown as they are in use.",
      options};
  int result;
  return cli_parse(argc, argv, &verb, &result) ? show(&which, json) : result;
}
