// Where the bits of a draw come from, and how they become numbers. No LibTorch, and every operation is an IEEE one or
// its exact integer counterpart, so the host and a GPU (compiled without contraction) give the same bits.
#pragma once

#include <cmath>
#include <cstdint>

#include "model/base/philox.h"

namespace sdtune::model {

// The words 1 to 3 of a Philox counter, which name one draw; word 0 counts the blocks inside it. The packing is one to
// one, so two draws never share a block: 32 + 11 bits of step, 32 + 12 bits of sample, 8 bits of purpose, 1 of class.
struct DrawCounter {
  std::uint32_t sample_low;
  std::uint32_t step_low;
  std::uint32_t high;  // purpose | class_image << 8 | step's high 11 bits << 9 | sample's high 12 bits << 20
};

inline constexpr int kStepBits = 43;
inline constexpr int kSampleBits = 44;

SDTUNE_HOST_DEVICE constexpr DrawCounter draw_counter(std::uint32_t purpose, std::uint64_t step, std::uint64_t sample,
                                                      bool class_image) {
  const auto high_step = static_cast<std::uint32_t>(step >> 32) & 0x7FFu;
  const auto high_sample = static_cast<std::uint32_t>(sample >> 32) & 0xFFFu;
  return {static_cast<std::uint32_t>(sample), static_cast<std::uint32_t>(step),
          (purpose & 0xFFu) | (class_image ? 0x100u : 0u) | (high_step << 9) | (high_sample << 20)};
}

// The bits number `block` of a draw.
SDTUNE_HOST_DEVICE constexpr PhiloxBlock draw_block(std::uint64_t seed, const DrawCounter& counter,
                                                    std::uint32_t block) {
  return philox4x32(PhiloxBlock{{block, counter.sample_low, counter.step_low, counter.high}},
                    static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32));
}

// -log(u) for u = (24 random bits + 1) / 2^24, relative error below 2e-7. Reduced to u = m * 2^e with m in
// [sqrt(1/2), sqrt(2)), then log m = 2 atanh((m - 1) / (m + 1)) by its series.
SDTUNE_HOST_DEVICE inline float minus_log_of_uniform(std::uint32_t word) {
  const auto bits = __builtin_bit_cast(std::int32_t, static_cast<float>((word >> 8) + 1u));
  const std::int32_t exponent = (bits - 0x3F3504F3) >> 23;  // 0x3F3504F3 is sqrt(1/2)
  const float mantissa = __builtin_bit_cast(float, bits - exponent * (1 << 23));
  const float s = (mantissa - 1.0f) / (mantissa + 1.0f);
  const float z = s * s;
  const float series = 1.0f + z * (1.0f / 3 + z * (1.0f / 5 + z * (1.0f / 7 + z * (1.0f / 9))));
  return static_cast<float>(24 - exponent) * 0.693147182f - 2.0f * s * series;
}

struct NormalPair {
  float first;
  float second;
};

// Two independent standard normal numbers from two words (Box and Muller, 1958). The angle is reduced to a quarter
// circle before it meets rounding, and sine and cosine are their Taylor series there (error below 3e-8).
SDTUNE_HOST_DEVICE inline NormalPair normal_pair(std::uint32_t radius_word, std::uint32_t angle_word) {
  const float radius = sqrtf(2.0f * minus_log_of_uniform(radius_word));
  const std::uint32_t turn = angle_word >> 8;                           // 2^24 steps to a full turn
  const std::uint32_t quarter = (turn + (1u << 21)) >> 22;              // nearest quarter, 0 to 4
  const auto rest = static_cast<std::int32_t>(turn - (quarter << 22));  // within an eighth of a turn
  const float x = static_cast<float>(rest) * (1.57079633f / 4194304.0f);
  const float z = x * x;
  const float sine = x * (1.0f + z * (-1.0f / 6 + z * (1.0f / 120 + z * (-1.0f / 5040 + z * (1.0f / 362880)))));
  const float cosine = 1.0f + z * (-0.5f + z * (1.0f / 24 + z * (-1.0f / 720 + z * (1.0f / 40320))));
  const bool swapped = (quarter & 1u) != 0;
  const float along = swapped ? sine : cosine;
  const float across = swapped ? cosine : sine;
  // Quarter 1 turns (cos, sin) into (-sin, cos), quarter 2 into (-cos, -sin), quarter 3 into (sin, -cos).
  const float first = ((quarter + 1u) & 2u) != 0 ? -along : along;
  const float second = (quarter & 2u) != 0 ? -across : across;
  return {radius * first, radius * second};
}

// The four normal numbers of one block.
SDTUNE_HOST_DEVICE inline void normal_block(const PhiloxBlock& bits, float out[4]) {
  const NormalPair low = normal_pair(bits.word[0], bits.word[1]);
  const NormalPair high = normal_pair(bits.word[2], bits.word[3]);
  out[0] = low.first;
  out[1] = low.second;
  out[2] = high.first;
  out[3] = high.second;
}

}  // namespace sdtune::model
