// Vectors of float32 in a CPU's registers, for kernels that are compiled for AVX2 and for AVX-512.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>

#include "model/kernels/vector_math.h"

namespace sdtune::model {

// How the kernels are compiled. The last one is AVX-512's source compiled for AVX2, slow: for tests on CPUs without
// AVX-512.
enum class Vectors : std::int8_t { kAvx2, kAvx512, kAvx512ByAvx2 };

// What this CPU is fastest with; unset: it has not even AVX2.
std::optional<Vectors> vectors_of_this_cpu();

#define SDTUNE_AVX2 __attribute__((target("arch=x86-64-v3")))
#define SDTUNE_AVX512 __attribute__((target("arch=x86-64-v4")))

// The registers of a kind of CPU. In products kRows x 2 of them hold sums, as many as hide the latency of a
// multiplication and addition and leave registers for what is multiplied.
struct Avx2 {
  using Vector = float __attribute__((vector_size(32)));
  using Bits = std::int32_t __attribute__((vector_size(32)));
  static constexpr std::int64_t kLanes = 8, kRows = 6;
};
struct Avx512 {
  using Vector = float __attribute__((vector_size(64)));
  using Bits = std::int32_t __attribute__((vector_size(64)));
  static constexpr std::int64_t kLanes = 16, kRows = 12;
};

template <class Vector>
SDTUNE_INLINE void load_vector(const float* from, Vector& to) {
  std::memcpy(&to, from, sizeof(Vector));
}
template <class Vector>
SDTUNE_INLINE void store_vector(float* to, const Vector& from) {
  std::memcpy(to, &from, sizeof(Vector));
}

}  // namespace sdtune::model
