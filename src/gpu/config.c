/* Parses "f16,subgroups" and "storage_binding=1048576,default": see config.h. */
#include "gpu/config.h"

#include "base/os.h"
#include "base/span.h"

static const struct {
  const char *name;
  uint64_t standard; /* WebGPU's default limit */
} limits_known[LIMITS] = {
    [LIMIT_BUFFER] = {"buffer", 256u << 20},
    [LIMIT_STORAGE_BINDING] = {"storage_binding", 128u << 20},
    [LIMIT_STORAGE_BUFFERS] = {"storage_buffers", 8},
    [LIMIT_WORKGROUP_BYTES] = {"workgroup_bytes", 16384},
    [LIMIT_INVOCATIONS] = {"invocations", 256},
    [LIMIT_SIZE_X] = {"size_x", 256},
    [LIMIT_SIZE_Y] = {"size_y", 256},
    [LIMIT_SIZE_Z] = {"size_z", 64},
    [LIMIT_WORKGROUPS] = {"workgroups", 65535},
};

static struct text next_item(const char **list) {
  const char *start = *list;
  while (**list && **list != ',') (*list)++;
  struct text item = {start, (size_t)(*list - start)};
  if (**list == ',') (*list)++;
  return item;
}

static sconce_status read_disable(struct gpu_config *config, const char *list, sconce_error *err) {
  while (list && *list) {
    struct text item = next_item(&list);
    if (text_is(item, "f16"))
      config->no_f16 = true;
    else if (text_is(item, "subgroups"))
      config->no_subgroups = true;
    else if (text_is(item, "timestamps"))
      config->no_timestamps = true;
    else if (text_is(item, "matrix"))
      config->no_matrix = true;
    else if (text_is(item, "software"))
      config->no_software = true;
    else
      return fail(err, SCONCE_BAD_ARGUMENT,
                  "cannot disable '%.*s': the features are f16, subgroups, timestamps, matrix, "
                  "software",
                  TEXT(item));
  }
  return SCONCE_OK;
}

static void lower(uint64_t *cap, uint64_t value) {
  if (value < *cap) *cap = value;
}

static bool read_number(struct text digits, uint64_t *out) {
  *out = 0;
  for (size_t i = 0; i < digits.size; i++) {
    if (digits.data[i] < '0' || digits.data[i] > '9' || *out > UINT64_MAX / 10 - 9) return false;
    *out = *out * 10 + (uint64_t)(digits.data[i] - '0');
  }
  return digits.size > 0;
}

static sconce_status read_limit(struct gpu_config *config, struct text item, sconce_error *err) {
  for (int i = 0; i < LIMITS; i++) {
    struct text name = text_of(limits_known[i].name);
    if (item.size <= name.size || item.data[name.size] != '=' ||
        memcmp(item.data, name.data, name.size) != 0)
      continue;
    uint64_t value;
    struct text digits = {item.data + name.size + 1, item.size - name.size - 1};
    if (!read_number(digits, &value) || value == 0)
      return fail(err, SCONCE_BAD_ARGUMENT, "limit '%.*s' is not a positive number", TEXT(item));
    lower(&config->cap[i], value);
    return SCONCE_OK;
  }
  return fail(err, SCONCE_BAD_ARGUMENT,
              "unknown limit '%.*s': they are default, buffer=, storage_binding=, "
              "storage_buffers=, workgroup_bytes=, invocations=, size_x=, size_y=, size_z=, "
              "workgroups=",
              TEXT(item));
}

static sconce_status read_limits(struct gpu_config *config, const char *list, sconce_error *err) {
  while (list && *list) {
    struct text item = next_item(&list);
    if (!text_is(item, "default")) {
      TRY(read_limit(config, item, err));
      continue;
    }
    for (int i = 0; i < LIMITS; i++) lower(&config->cap[i], limits_known[i].standard);
  }
  return SCONCE_OK;
}

/* The caller's word counts, else the environment's. */
static sconce_status read_precision(struct gpu_config *config, const char *word,
                                    sconce_error *err) {
  char room[OS_ENV_MAX];
  if (!word || !*word) word = os_env("SCONCE_PRECISION", room, sizeof room);
  if (!word || !*word) return SCONCE_OK;
  const struct text text = text_of(word);
  if (text_is(text, "exact"))
    config->precision = PRECISION_EXACT;
  else if (text_is(text, "fast"))
    config->precision = PRECISION_FAST;
  else
    return fail(err, SCONCE_BAD_ARGUMENT, "precision '%s' is neither exact nor fast", word);
  return SCONCE_OK;
}

sconce_status config_read(struct gpu_config *config, const char *disable, const char *limits,
                          const char *precision, sconce_error *err) {
  *config = (struct gpu_config){0};
  for (int i = 0; i < LIMITS; i++) config->cap[i] = UINT64_MAX;
  char room[OS_ENV_MAX];
  TRY(read_disable(config, disable, err));
  TRY(read_disable(config, os_env("SCONCE_DISABLE", room, sizeof room), err));
  TRY(read_limits(config, limits, err));
  TRY(read_limits(config, os_env("SCONCE_LIMITS", room, sizeof room), err));
  TRY(read_precision(config, precision, err));
  const char *after = os_env("SCONCE_LOSE_AFTER", room, sizeof room);
  uint64_t n = 0;
  if (after && (!read_number(text_of(after), &n) || n > UINT32_MAX))
    return fail(err, SCONCE_BAD_ARGUMENT, "SCONCE_LOSE_AFTER is '%s', expected a number", after);
  config->lose_after = (uint32_t)n;
  return SCONCE_OK;
}
