// Vectors of float32 in a CPU's registers, for kernels that are compiled for AVX2 and for AVX-512.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>

#include "model/products/vector_math.h"

namespace sdtune::model {

// How the kernels are compiled. kAvx512ByAvx2 is AVX-512's source compiled for AVX2, slow: for tests on CPUs without
// AVX-512. kAvx512Bfloat16 multiplies pairs of bfloat16 numbers, where kernels have such a way.
enum class Vectors : std::int8_t { kAvx2, kAvx512, kAvx512ByAvx2, kAvx512Bfloat16 };

// What this CPU is fastest with in float32; unset: it has not even AVX2.
std::optional<Vectors> vectors_of_this_cpu();
// Whether it has AVX-512 and its instructions for bfloat16.
bool can_multiply_bfloat16_pairs();

#if defined(__x86_64__)
#define SDTUNE_AVX2 __attribute__((target("arch=x86-64-v3")))
#define SDTUNE_AVX512 __attribute__((target("arch=x86-64-v4")))
#define SDTUNE_AVX512_BF16 __attribute__((target("arch=x86-64-v4,avx512bf16")))
#else
#define SDTUNE_AVX2
#define SDTUNE_AVX512
#define SDTUNE_AVX512_BF16
#endif

// The registers of a kind of CPU. In products kRows x 2 of them hold sums, as many as hide the latency of a
// multiplication and addition and leave registers for what is multiplied.
struct Avx2 {
  using Vector = float __attribute__((vector_size(32)));
  using Bits = std::int32_t __attribute__((vector_size(32)));
  using Halves = std::uint16_t __attribute__((vector_size(16)));  // as many numbers of bfloat16
  static constexpr std::int64_t kLanes = 8, kRows = 6;
  static constexpr bool kHasPairs = false, kHasPowers = false;
};
struct Avx512 {
  using Vector = float __attribute__((vector_size(64)));
  using Bits = std::int32_t __attribute__((vector_size(64)));
  using Halves = std::uint16_t __attribute__((vector_size(32)));
  static constexpr std::int64_t kLanes = 16, kRows = 12;
  static constexpr bool kHasPairs = false;
  static constexpr bool kHasPowers = true;  // an instruction that multiplies by powers of two
};
// AVX-512's source without the instructions that only AVX-512 has.
struct Avx512ByAvx2 : Avx512 {
  static constexpr bool kHasPowers = false;
};
// A number that is multiplied is a pair of bfloat16 numbers, in the memory of one of float32; sums are float32.
struct Avx512Bfloat16 : Avx512 {
  static constexpr bool kHasPairs = true;
};

// sums += left * columns, of one number and a vector of them.
template <class Cpu>
SDTUNE_INLINE void add_product(const float& left, const typename Cpu::Vector& columns, typename Cpu::Vector& sums) {
  if constexpr (Cpu::kHasPairs) {
#if defined(__x86_64__)  // not an intrinsic, which only functions that are compiled for such a CPU may inline
    typename Cpu::Vector sum = sums;  // an element of an array would be kept in memory
    asm("vdpbf16ps %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(columns), "m"(left));
    sums = sum;
#endif
  } else {
    sums += left * columns;
  }
}

template <class Vector>
SDTUNE_INLINE void load_vector(const float* from, Vector& to) {
  std::memcpy(&to, from, sizeof(Vector));
}
template <class Vector>
SDTUNE_INLINE void store_vector(float* to, const Vector& from) {
  std::memcpy(to, &from, sizeof(Vector));
}

// The same whatever type the numbers in memory have; bfloat16 is rounded to nearest, ties to even.
template <class Cpu>
SDTUNE_INLINE void load_numbers(const float* from, typename Cpu::Vector& to) {
  load_vector(from, to);
}
template <class Cpu>
SDTUNE_INLINE void load_numbers(const c10::BFloat16* from, typename Cpu::Vector& to) {
  typename Cpu::Halves halves;
  std::memcpy(&halves, from, sizeof(halves));
  const typename Cpu::Bits bits = __builtin_convertvector(halves, typename Cpu::Bits) << 16;
  std::memcpy(&to, &bits, sizeof(bits));
}
template <class Cpu>
SDTUNE_INLINE void store_numbers(float* to, const typename Cpu::Vector& from) {
  store_vector(to, from);
}
template <class Cpu>
SDTUNE_INLINE void store_numbers(c10::BFloat16* to, const typename Cpu::Vector& from) {
  using Bits = typename Cpu::Bits;
  Bits bits;
  std::memcpy(&bits, &from, sizeof(bits));
  const Bits rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  const Bits numbers = from == from ? rounded : Bits{} + 0x7fc0;  // not a number stays one
  const auto halves = __builtin_convertvector(numbers, typename Cpu::Halves);
  std::memcpy(to, &halves, sizeof(halves));
}

}  // namespace sdtune::model
