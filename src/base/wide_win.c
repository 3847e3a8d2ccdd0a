/* See wide_win.h. */
#include "base/wide_win.h"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <errno.h>
#include <string.h>

int wide_text(struct wide *out, const char *text) {
  if (MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text, -1, out->text, WIDE_MAX)) return 0;
  return GetLastError() == ERROR_INSUFFICIENT_BUFFER ? ENAMETOOLONG : EILSEQ;
}

/* Folders must leave room for a name of 8.3: 248 and not 260 is the limit that holds for all. */
enum { PLAIN_MAX = 247 };

static int add_prefix(struct wide *path) {
  static const wchar_t local[] = L"\\\\?\\", server[] = L"\\\\?\\UNC\\";
  struct wide full;
  const DWORD n = GetFullPathNameW(path->text, WIDE_MAX, full.text, NULL);
  if (n == 0) return wide_errno(GetLastError());
  const bool unc = n > 2 && full.text[0] == L'\\' && full.text[1] == L'\\';
  const wchar_t *prefix = unc ? server : local, *rest = unc ? full.text + 2 : full.text;
  const size_t head = wcslen(prefix);
  if (n >= WIDE_MAX || head + wcslen(rest) >= WIDE_MAX) return ENAMETOOLONG;
  memcpy(path->text, prefix, head * sizeof *prefix);
  memcpy(path->text + head, rest, (wcslen(rest) + 1) * sizeof *rest);
  return 0;
}

int wide_path(struct wide *out, const char *path) {
  const int error = wide_text(out, path);
  if (error) return error;
  for (wchar_t *c = out->text; *c; c++)
    if (*c == L'/') *c = L'\\';
  if (wcsncmp(out->text, L"\\\\?\\", 4) == 0 || wcsncmp(out->text, L"\\\\.\\", 4) == 0) return 0;
  /* A relative path counts with the folder it starts from. */
  const DWORD whole = GetFullPathNameW(out->text, 0, NULL, NULL);
  return whole > PLAIN_MAX ? add_prefix(out) : 0;
}

bool wide_to_text(char *out, size_t size, const wchar_t *text) {
  return size <= INT_MAX &&
         WideCharToMultiByte(CP_UTF8, 0, text, -1, out, (int)size, NULL, NULL) > 0;
}

/* Scanners and indexers open files that are new, and for that time nobody may move them. */
int wide_replace(const struct wide *from, const struct wide *to) {
  enum { FIRST_MS = 10, LAST_MS = 320 }; /* 630 ms in all */
  const DWORD how = MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH;
  for (DWORD ms = FIRST_MS;; ms *= 2) {
    if (MoveFileExW(from->text, to->text, how)) return 0;
    const DWORD error = GetLastError();
    if (ms > LAST_MS || (error != ERROR_ACCESS_DENIED && error != ERROR_SHARING_VIOLATION))
      return wide_errno(error);
    Sleep(ms);
  }
}

int wide_errno(unsigned long error) {
  static const struct {
    unsigned long error;
    int number;
  } rows[] = {{ERROR_FILE_NOT_FOUND, ENOENT},
              {ERROR_PATH_NOT_FOUND, ENOENT},
              {ERROR_INVALID_NAME, ENOENT},
              {ERROR_BAD_PATHNAME, ENOENT},
              {ERROR_INVALID_DRIVE, ENOENT},
              {ERROR_BAD_NETPATH, ENOENT},
              {ERROR_DIRECTORY, ENOTDIR},
              {ERROR_ACCESS_DENIED, EACCES},
              {ERROR_SHARING_VIOLATION, EACCES},
              {ERROR_LOCK_VIOLATION, EACCES},
              {ERROR_WRITE_PROTECT, EROFS},
              {ERROR_ALREADY_EXISTS, EEXIST},
              {ERROR_FILE_EXISTS, EEXIST},
              {ERROR_DISK_FULL, ENOSPC},
              {ERROR_HANDLE_DISK_FULL, ENOSPC},
              {ERROR_TOO_MANY_OPEN_FILES, EMFILE},
              {ERROR_NOT_ENOUGH_MEMORY, ENOMEM},
              {ERROR_OUTOFMEMORY, ENOMEM},
              {ERROR_FILENAME_EXCED_RANGE, ENAMETOOLONG}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i].error == error) return rows[i].number;
  return EIO;
}
