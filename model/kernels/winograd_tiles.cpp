#include "model/kernels/winograd_tiles.h"

#include <algorithm>

#include "model/products/transposes.h"

namespace sdtune::model::winograd {
namespace {

// The points 0, a, -a, b, -b and infinity, and what their polynomials have as coefficients: exact in float32.
constexpr float kA = 0.6875F, kB = 1.5F;
constexpr float kA2 = kA * kA, kB2 = kB * kB;
constexpr float kProduct = kA2 * kB2, kSum = kA2 + kB2;
// One over the product of a point's distances to the other points.
constexpr float kByZero = 1.0F / kProduct;
constexpr float kByA = 1.0F / (2.0F * kA2 * (kA2 - kB2)), kByB = 1.0F / (2.0F * kB2 * (kB2 - kA2));

// B^T d: [6] -> [6].
template <class Vector>
SDTUNE_INLINE void input_row(const Vector (&d)[kSeen], Vector (&v)[kSeen]) {
  const Vector even_a = d[4] - kB2 * d[2], odd_a = kA * (d[3] - kB2 * d[1]);
  const Vector even_b = d[4] - kA2 * d[2], odd_b = kB * (d[3] - kA2 * d[1]);
  v[0] = d[4] - kSum * d[2] + kProduct * d[0];
  v[1] = even_a + odd_a;
  v[2] = even_a - odd_a;
  v[3] = even_b + odd_b;
  v[4] = even_b - odd_b;
  v[5] = d[5] - kSum * d[3] + kProduct * d[1];
}

// A^T m: [6] -> [4].
template <class Vector>
SDTUNE_INLINE void output_row(const Vector (&m)[kSeen], Vector (&y)[kTile]) {
  const Vector sum_a = m[1] + m[2], difference_a = m[1] - m[2];
  const Vector sum_b = m[3] + m[4], difference_b = m[3] - m[4];
  y[0] = m[0] + sum_a + sum_b;
  y[1] = kA * difference_a + kB * difference_b;
  y[2] = kA2 * sum_a + kB2 * sum_b;
  y[3] = kA * kA2 * difference_a + kB * kB2 * difference_b + m[5];
}

// A y: [4] -> [6].
template <class Vector>
SDTUNE_INLINE void output_gradient_row(const Vector (&y)[kTile], Vector (&m)[kSeen]) {
  const Vector even_a = y[0] + kA2 * y[2], odd_a = kA * (y[1] + kA2 * y[3]);
  const Vector even_b = y[0] + kB2 * y[2], odd_b = kB * (y[1] + kB2 * y[3]);
  m[0] = y[0];
  m[1] = even_a + odd_a;
  m[2] = even_a - odd_a;
  m[3] = even_b + odd_b;
  m[4] = even_b - odd_b;
  m[5] = y[3];
}

// G g: [3] -> [6].
template <class Vector>
SDTUNE_INLINE void kernel_row(const Vector (&g)[3], Vector (&u)[kSeen]) {
  const Vector even_a = kByA * (g[0] + kA2 * g[2]), odd_a = kByA * kA * g[1];
  const Vector even_b = kByB * (g[0] + kB2 * g[2]), odd_b = kByB * kB * g[1];
  u[0] = kByZero * g[0];
  u[1] = even_a + odd_a;
  u[2] = even_a - odd_a;
  u[3] = even_b + odd_b;
  u[4] = even_b - odd_b;
  u[5] = g[2];
}

// G^T u: [6] -> [3].
template <class Vector>
SDTUNE_INLINE void kernel_gradient_row(const Vector (&u)[kSeen], Vector (&g)[3]) {
  const Vector sum_a = kByA * (u[1] + u[2]), sum_b = kByB * (u[3] + u[4]);
  g[0] = kByZero * u[0] + sum_a + sum_b;
  g[1] = kByA * kA * (u[1] - u[2]) + kByB * kB * (u[3] - u[4]);
  g[2] = kA2 * sum_a + kB2 * sum_b + u[5];
}

// Rows, then columns, of a square of `kFrom` numbers a side; `row` transforms kFrom numbers to kTo.
template <class Vector, int kFrom, int kTo, class Row>
SDTUNE_INLINE void transform(const Vector (&from)[kFrom][kFrom], Vector (&to)[kTo][kTo], const Row& row) {
  Vector between[kTo][kFrom];  // [column, row]
#pragma GCC unroll 6
  for (int i = 0; i < kFrom; ++i) {
    Vector out[kTo];
    row(from[i], out);
#pragma GCC unroll 6
    for (int j = 0; j < kTo; ++j) between[j][i] = out[j];
  }
#pragma GCC unroll 6
  for (int j = 0; j < kTo; ++j) {
    Vector out[kTo];
    row(between[j], out);
#pragma GCC unroll 6
    for (int i = 0; i < kTo; ++i) to[i][j] = out[i];
  }
}

// The 36 numbers of a channel lie `step` apart. Where that is a multiple of 4096 bytes all of them fall into one set of
// a core's first cache, and each drives out another before its neighbours come: 64 to 64 channels' kernels take five
// times as long. So kBurst channels of a position are read or written together there, by way of memory that stays in
// the cache.
constexpr std::int64_t kSetPeriod = 1024, kBurst = 128;  // numbers

bool needs_bursts(std::int64_t step) {
  return step % kSetPeriod == 0;
}

// A multiple of a vector's.
template <class Cpu>
SDTUNE_INLINE void copy_numbers(const float* from, std::int64_t count, float* to) {
  constexpr std::int64_t kTogether = 8;  // so many are loaded before the first is stored
  typename Cpu::Vector numbers[kTogether];
  std::int64_t i = 0;
  for (; i + kTogether * Cpu::kLanes <= count; i += kTogether * Cpu::kLanes) {
    for (std::int64_t k = 0; k < kTogether; ++k) load_vector(from + i + k * Cpu::kLanes, numbers[k]);
    for (std::int64_t k = 0; k < kTogether; ++k) store_vector(to + i + k * Cpu::kLanes, numbers[k]);
  }
  for (; i < count; i += Cpu::kLanes) {
    load_vector(from + i, numbers[0]);
    store_vector(to + i, numbers[0]);
  }
}

// transform(c, v): what the channels of one vector from `c` on have in each position.
template <class Cpu, class Transform>
SDTUNE_INLINE void write_positions(std::int64_t channels, Positions out, const Transform& transform) {
  using Vector = typename Cpu::Vector;
  const auto write = [&](std::int64_t c, float* to, std::int64_t step) SDTUNE_LAMBDA {
    Vector v[kSeen][kSeen];
    transform(c, v);
    for (std::int64_t i = 0; i < kPositions; ++i) store_vector(to + i * step, v[i / kSeen][i % kSeen]);
  };
  if (!needs_bursts(out.step)) {
    for (std::int64_t c = 0; c < channels; c += Cpu::kLanes) write(c, out.data + c, out.step);
    return;
  }
  alignas(64) float burst[kPositions * kBurst];
  for (std::int64_t begin = 0; begin < channels; begin += kBurst) {
    const std::int64_t count = std::min(kBurst, channels - begin);
    for (std::int64_t c = 0; c < count; c += Cpu::kLanes) write(begin + c, burst + c, kBurst);
    for (std::int64_t i = 0; i < kPositions; ++i) {
      copy_numbers<Cpu>(burst + i * kBurst, count, out.data + i * out.step + begin);
    }
  }
}

// What each position has for the channels of one vector.
template <class Vector>
SDTUNE_INLINE void read_positions(ConstPositions sums, std::int64_t c, Vector (&v)[kSeen][kSeen]) {
  for (std::int64_t i = 0; i < kPositions; ++i) load_vector(sums.data + i * sums.step + c, v[i / kSeen][i % kSeen]);
}

template <class Cpu, class Number>
SDTUNE_INLINE void input_tile(const Number* const* pixels, std::int64_t channels, Positions out) {
  using Vector = typename Cpu::Vector;
  write_positions<Cpu>(channels, out, [&](std::int64_t c, Vector(&v)[kSeen][kSeen]) SDTUNE_LAMBDA {
    Vector d[kSeen][kSeen];
    for (std::int64_t i = 0; i < kPositions; ++i) load_numbers<Cpu>(pixels[i] + c, d[i / kSeen][i % kSeen]);
    transform(d, v, [](const auto& from, auto& to) SDTUNE_LAMBDA { input_row(from, to); });
  });
}

template <class Cpu, class Number>
SDTUNE_INLINE void output_tile(ConstPositions sums, const float* bias, std::int64_t channels, Number* const* pixels) {
  using Vector = typename Cpu::Vector;
  for (std::int64_t c = 0; c < channels; c += Cpu::kLanes) {
    Vector m[kSeen][kSeen], y[kTile][kTile], constant{};
    if (bias != nullptr) load_vector(bias + c, constant);
    read_positions(sums, c, m);
    transform(m, y, [](const auto& from, auto& to) SDTUNE_LAMBDA { output_row(from, to); });
    for (std::int64_t i = 0; i < kTile * kTile; ++i) {
      store_numbers<Cpu>(pixels[i] + c, y[i / kTile][i % kTile] + constant);
    }
  }
}

template <class Cpu>
SDTUNE_INLINE void output_gradient_tile(const float* const* pixels, std::int64_t channels, Positions out) {
  using Vector = typename Cpu::Vector;
  write_positions<Cpu>(channels, out, [&](std::int64_t c, Vector(&m)[kSeen][kSeen]) SDTUNE_LAMBDA {
    Vector y[kTile][kTile];
    for (std::int64_t i = 0; i < kTile * kTile; ++i) load_vector(pixels[i] + c, y[i / kTile][i % kTile]);
    transform(y, m, [](const auto& from, auto& to) SDTUNE_LAMBDA { output_gradient_row(from, to); });
  });
}

// Kernels of 9 numbers that begin `step` apart, one in each lane -> their numbers, row by row; `flipped`: of the
// kernels turned by 180 degrees.
template <class Cpu, class Number>
SDTUNE_INLINE void load_kernels(const Number* from, std::int64_t step, bool flipped, typename Cpu::Vector (&g)[3][3]) {
  using Vector = typename Cpu::Vector;
  EightFloats eights[Cpu::kLanes / 8][8];
#pragma GCC unroll 2
  for (std::int64_t part = 0; part < Cpu::kLanes / 8; ++part) transpose_8x8(from + 8 * part * step, step, eights[part]);
  Vector taps[kTaps];
#pragma GCC unroll 8
  for (std::int64_t tap = 0; tap < 8; ++tap) {
    if constexpr (Cpu::kLanes == 8) {
      taps[tap] = eights[0][tap];
    } else {
      taps[tap] =
          __builtin_shufflevector(eights[0][tap], eights[1][tap], 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    }
  }
  for (std::int64_t lane = 0; lane < Cpu::kLanes; ++lane) taps[8][lane] = load(from + lane * step + 8);
#pragma GCC unroll 9
  for (std::int64_t tap = 0; tap < kTaps; ++tap) g[tap / 3][tap % 3] = flipped ? taps[kTaps - 1 - tap] : taps[tap];
}

template <class Cpu>
SDTUNE_INLINE void kernel_tile(const float* kernels, std::int64_t channels, bool flipped, Positions out) {
  using Vector = typename Cpu::Vector;
  write_positions<Cpu>(channels, out, [&](std::int64_t c, Vector(&u)[kSeen][kSeen]) SDTUNE_LAMBDA {
    Vector g[3][3];
    load_kernels<Cpu>(kernels + c * kTaps, kTaps, flipped, g);
    transform(g, u, [](const auto& from, auto& to) SDTUNE_LAMBDA { kernel_row(from, to); });
  });
}

template <class Vector>
SDTUNE_INLINE void write_panel_row(const Vector (&g)[3][3], float* to, std::int64_t step) {
  Vector u[kSeen][kSeen];
  transform(g, u, [](const auto& from, auto& transformed) SDTUNE_LAMBDA { kernel_row(from, transformed); });
  for (std::int64_t i = 0; i < kPositions; ++i) store_vector(to + i * step, u[i / kSeen][i % kSeen]);
}

// Of columns whose kernels lie one behind the other from depth to depth. Where columns begin multiples of 4096 bytes
// apart, lines of them drive each other out of the first cache: so kRun kernels of each are read together.
template <class Cpu, class Number>
SDTUNE_INLINE void deep_kernel_panel(const PanelKernels<Number>& kernels, Positions out) {
  constexpr std::int64_t kRun = 8;
  alignas(64) float numbers[kRun * kTaps * kChannelGroup];  // [depth, tap, column]
  for (std::int64_t begin = 0; begin < kernels.depth; begin += kRun) {
    for (std::int64_t c = 0; c < kChannelGroup; c += 8) {
      const Number* from = kernels.data + begin * kTaps + c * kernels.column_step;
      for (std::int64_t i = 0; i < kRun * kTaps; i += 8) {
        EightFloats columns[8];
        transpose_8x8(from + i, kernels.column_step, columns);
#pragma GCC unroll 8
        for (std::int64_t k = 0; k < 8; ++k) store_vector(numbers + (i + k) * kChannelGroup + c, columns[k]);
      }
    }
    for (std::int64_t d = 0; d < kRun; ++d) {
      for (std::int64_t c = 0; c < kChannelGroup; c += Cpu::kLanes) {
        typename Cpu::Vector g[3][3];
        for (std::int64_t tap = 0; tap < kTaps; ++tap) {
          load_vector(numbers + (d * kTaps + tap) * kChannelGroup + c, g[tap / 3][tap % 3]);
        }
        write_panel_row(g, out.data + (begin + d) * kChannelGroup + c, out.step);
      }
    }
  }
}

// Of kernels that are turned by 180 degrees, whose columns lie one behind the other.
template <class Cpu, class Number>
SDTUNE_INLINE void flipped_kernel_panel(const PanelKernels<Number>& kernels, Positions out) {
  for (std::int64_t d = 0; d < kernels.depth; ++d) {
    for (std::int64_t c = 0; c < kChannelGroup; c += Cpu::kLanes) {
      typename Cpu::Vector g[3][3];
      load_kernels<Cpu>(kernels.data + d * kernels.depth_step + c * kTaps, kTaps, /*flipped=*/true, g);
      write_panel_row(g, out.data + d * kChannelGroup + c, out.step);
    }
  }
}

template <class Cpu, class Number>
SDTUNE_INLINE void kernel_panel_tile(const PanelKernels<Number>& kernels, bool flipped, Positions out) {
  if (flipped) return flipped_kernel_panel<Cpu>(kernels, out);
  deep_kernel_panel<Cpu>(kernels, out);
}

template <class Cpu>
SDTUNE_INLINE void kernel_gradient_tile(ConstPositions sums, std::int64_t channels, float* kernels) {
  using Vector = typename Cpu::Vector;
  for (std::int64_t c = 0; c < channels; c += Cpu::kLanes) {
    Vector u[kSeen][kSeen], g[3][3];
    read_positions(sums, c, u);
    transform(u, g, [](const auto& from, auto& to) SDTUNE_LAMBDA { kernel_gradient_row(from, to); });
    for (std::int64_t tap = 0; tap < kTaps; ++tap) {
      const Vector& one = g[tap / 3][tap % 3];
      for (std::int64_t lane = 0; lane < Cpu::kLanes; ++lane) kernels[(c + lane) * kTaps + tap] = one[lane];
    }
  }
}

#if defined(__x86_64__)
// The transforms as functions for a kind of CPU.
#define SDTUNE_WINOGRAD_TRANSFORMS(TARGET, NAME, CPU)                                                                 \
  TARGET void NAME##_input(const float* const* pixels, std::int64_t channels, Positions out) {                        \
    input_tile<CPU>(pixels, channels, out);                                                                           \
  }                                                                                                                   \
  TARGET void NAME##_input_bfloat16(const c10::BFloat16* const* pixels, std::int64_t channels, Positions out) {       \
    input_tile<CPU>(pixels, channels, out);                                                                           \
  }                                                                                                                   \
  TARGET void NAME##_output(ConstPositions sums, const float* bias, std::int64_t channels, float* const* pixels) {    \
    output_tile<CPU>(sums, bias, channels, pixels);                                                                   \
  }                                                                                                                   \
  TARGET void NAME##_output_bfloat16(ConstPositions sums, const float* bias, std::int64_t channels,                   \
                                     c10::BFloat16* const* pixels) {                                                  \
    output_tile<CPU>(sums, bias, channels, pixels);                                                                   \
  }                                                                                                                   \
  TARGET void NAME##_output_gradient(const float* const* pixels, std::int64_t channels, Positions out) {              \
    output_gradient_tile<CPU>(pixels, channels, out);                                                                 \
  }                                                                                                                   \
  TARGET void NAME##_kernel(const float* kernels, std::int64_t channels, bool flipped, Positions out) {               \
    kernel_tile<CPU>(kernels, channels, flipped, out);                                                                \
  }                                                                                                                   \
  TARGET void NAME##_kernel_panel(const PanelKernels<float>& kernels, bool flipped, Positions out) {                  \
    kernel_panel_tile<CPU>(kernels, flipped, out);                                                                    \
  }                                                                                                                   \
  TARGET void NAME##_kernel_panel_bfloat16(const PanelKernels<c10::BFloat16>& kernels, bool flipped, Positions out) { \
    kernel_panel_tile<CPU>(kernels, flipped, out);                                                                    \
  }                                                                                                                   \
  TARGET void NAME##_kernel_gradient(ConstPositions sums, std::int64_t channels, float* kernels) {                    \
    kernel_gradient_tile<CPU>(sums, channels, kernels);                                                               \
  }                                                                                                                   \
  constexpr Transforms NAME = {NAME##_input,           NAME##_input_bfloat16,        NAME##_output,                   \
                               NAME##_output_bfloat16, NAME##_output_gradient,       NAME##_kernel,                   \
                               NAME##_kernel_panel,    NAME##_kernel_panel_bfloat16, NAME##_kernel_gradient};

SDTUNE_WINOGRAD_TRANSFORMS(SDTUNE_AVX2, avx2_transforms, Avx2)
SDTUNE_WINOGRAD_TRANSFORMS(SDTUNE_AVX512, avx512_transforms, Avx512)
SDTUNE_WINOGRAD_TRANSFORMS(SDTUNE_AVX2, avx512_by_avx2_transforms, Avx512)
#endif

}  // namespace

const Transforms& transforms([[maybe_unused]] Vectors vectors) {
#if defined(__x86_64__)
  if (vectors == Vectors::kAvx512ByAvx2) return avx512_by_avx2_transforms;
  return vectors == Vectors::kAvx512 ? avx512_transforms : avx2_transforms;
#else
  static const Transforms none = {};  // vectors_of_this_cpu() is unset here
  return none;
#endif
}

}  // namespace sdtune::model::winograd
