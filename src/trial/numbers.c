/* Elements as doubles and back, and the comparison: see op.h. */
#include "op.h"

#include "base/half.h"

void test_to_dtype(enum vk_dtype dtype, const double *values, uint64_t n, void *out) {
  for (uint64_t i = 0; i < n; i++) switch (dtype) {
    case VK_FLOAT32:
      ((float *)out)[i] = (float)values[i];
      break;
    case VK_FLOAT16:
      ((uint16_t *)out)[i] = half_from_float((float)values[i]);
      break;
    case VK_INT32:
      ((int32_t *)out)[i] = (int32_t)values[i];
      break;
    case VK_INT8:
      ((int8_t *)out)[i] = (int8_t)values[i];
      break;
    default:
      ((uint8_t *)out)[i] = (uint8_t)values[i];
      break;
    }
}

void test_from_dtype(enum vk_dtype dtype, const void *bytes, uint64_t n, double *out) {
  for (uint64_t i = 0; i < n; i++) switch (dtype) {
    case VK_FLOAT32:
      out[i] = (double)((const float *)bytes)[i];
      break;
    case VK_FLOAT16:
      out[i] = (double)half_to_float(((const uint16_t *)bytes)[i]);
      break;
    case VK_INT32:
      out[i] = ((const int32_t *)bytes)[i];
      break;
    case VK_INT8:
      out[i] = ((const int8_t *)bytes)[i];
      break;
    default:
      out[i] = ((const uint8_t *)bytes)[i];
      break;
    }
}

double *test_values(enum vk_dtype dtype, uint64_t n, uint64_t seed) {
  double *values = malloc((size_t)(n + 1) * sizeof *values);
  void *rounded = malloc((size_t)(n + 1) * 8);
  for (uint64_t i = 0; i < n; i++) values[i] = (double)test_random_float(&seed);
  test_to_dtype(dtype, values, n, rounded);
  test_from_dtype(dtype, rounded, n, values);
  free(rounded);
  return values;
}

bool test_close(const double *got, const double *want, uint64_t n, double abs, double rel,
                const char *what) {
  test_checked();
  uint64_t worst = n;
  double most = 0;
  for (uint64_t i = 0; i < n; i++) {
    bool both_odd = (isnan(got[i]) && isnan(want[i])) || got[i] == want[i];
    double over = both_odd ? 0 : fabs(got[i] - want[i]) - (abs + rel * fabs(want[i]));
    if (isnan(over)) over = INFINITY;
    if (over > most) {
      most = over;
      worst = i;
    }
  }
  if (worst == n) {
    trial_right();
    return true;
  }
  test_fail(__FILE__, __LINE__, "%s: element %llu of %llu is %.9g, want %.9g", what,
            (unsigned long long)worst, (unsigned long long)n, got[worst], want[worst]);
  return false;
}
