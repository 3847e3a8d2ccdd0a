/* What tests need of a system and base/os.h does not have. */
#ifndef TEST_SYSTEM_H
#define TEST_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TEST_PATH_MAX = 512 };

/* A name in the folder for temporary files that no other test has. Nothing is there yet. */
void test_temporary(char path[TEST_PATH_MAX], const char *ending);
bool test_make_folder(const char *path);
void test_remove(const char *path); /* a file, or an empty folder */
/* In its place, as base/os.h never does: a file that somebody has open changes under him. */
bool test_write_path(const char *path, const void *data, size_t size);

/* A file that somebody reads: on Windows nobody may replace it for that time. */
void *test_hold(const char *path);
void test_let_go(void *held);

void test_set_env(const char *name, const char *value); /* NULL: no longer set */

/* Memory of this process as Linux tells it, in bytes: "VmRSS:", "VmHWM:", "VmSize:". 0 elsewhere.
 */
uint64_t test_memory(const char *name);
void test_forget_peak(void);
/* No more than this many bytes from now on; UINT64_MAX: as it was. Only where test_memory works. */
void test_limit_memory(uint64_t more);
/* Files end at this many bytes from now on; UINT64_MAX: as it was. False where it cannot be. */
bool test_limit_files(uint64_t most);

#endif
