/* The one thing that we do to paths. */
#ifndef BASE_PATH_H
#define BASE_PATH_H

/* What stands behind the last separator: the file's name. All in front of it is the folder. */
static inline const char *path_name(const char *path) {
  const char *name = path;
  for (const char *c = path; *c; c++) {
#ifdef _WIN32
    if (*c == '\\' || (*c == ':' && c == path + 1)) name = c + 1;
#endif
    if (*c == '/') name = c + 1;
  }
  return name;
}

#endif
