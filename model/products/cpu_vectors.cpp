#include "model/products/cpu_vectors.h"

namespace sdtune::model {

std::optional<Vectors> vectors_of_this_cpu() {
#if defined(__x86_64__)
  const bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (has_avx512) return Vectors::kAvx512;
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                        __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  if (has_avx2) return Vectors::kAvx2;
#endif
  return std::nullopt;
}

bool can_multiply_bfloat16_pairs() {
#if defined(__x86_64__)
  return vectors_of_this_cpu() == Vectors::kAvx512 && __builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}

}  // namespace sdtune::model
