/* For tests under wine 8 alone, which lacks this library of Windows: wgpu-native asks it for random
 * bytes, and advapi32 has them under another name. It lies beside the program under test. */
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

BOOLEAN WINAPI SystemFunction036(void *out, ULONG size);

__declspec(dllexport) BOOL WINAPI ProcessPrng(BYTE *out, SIZE_T size) {
  while (size) {
    const ULONG step = size > 1u << 20 ? 1u << 20 : (ULONG)size;
    if (!SystemFunction036(out, step)) return FALSE;
    out += step;
    size -= step;
  }
  return TRUE;
}
