#include "train/optim/adamw_kernel.h"

#include <c10/util/Half.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "train/optim/vector_clones.h"

namespace sdtune::train {

namespace {

// Numbers that are converted at a time: they stay in the first-level cache.
constexpr std::int64_t kBlock = 1024;

SDTUNE_VECTOR_CLONES void widen_bfloat16(const std::uint16_t* in, float* out, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = std::bit_cast<float>(static_cast<std::uint32_t>(in[i]) << 16);
}

// Rounds to nearest even; every NaN becomes the quiet one.
SDTUNE_VECTOR_CLONES void narrow_bfloat16(const float* in, std::uint16_t* out, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(in[i]);
    const std::uint32_t rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
    out[i] = static_cast<std::uint16_t>((bits & 0x7FFFFFFFu) > 0x7F800000u ? 0x7FC0u : rounded);
  }
}

// The numbers from `offset` on as floats: in place when they are floats, else converted into `buffer`.
const float* widened(const NumberRun& run, std::int64_t offset, std::int64_t count, float* buffer) {
  switch (run.format) {
    case NumberFormat::kFloat32:
      return static_cast<const float*>(run.data) + offset;
    case NumberFormat::kBFloat16:
      widen_bfloat16(static_cast<const std::uint16_t*>(run.data) + offset, buffer, count);
      return buffer;
    case NumberFormat::kFloat16:
      break;
  }
  const auto* half = static_cast<const c10::Half*>(run.data) + offset;
  std::transform(half, half + count, buffer, [](c10::Half value) { return static_cast<float>(value); });
  return buffer;
}

void narrow(const float* in, const NumberRun& run, std::int64_t offset, std::int64_t count) {
  switch (run.format) {
    case NumberFormat::kFloat32:
      std::copy(in, in + count, static_cast<float*>(run.data) + offset);
      return;
    case NumberFormat::kBFloat16:
      narrow_bfloat16(in, static_cast<std::uint16_t*>(run.data) + offset, count);
      return;
    case NumberFormat::kFloat16:
      std::transform(in, in + count, static_cast<c10::Half*>(run.data) + offset,
                     [](float value) { return c10::Half(value); });
  }
}

struct Block {
  float* __restrict master;
  float* __restrict mean;
  float* __restrict square;
  const float* __restrict gradient;
};

SDTUNE_VECTOR_CLONES void update_block(Block block, std::int64_t count, const AdamWScalars& scalars) {
  const AdamWScalars s = scalars;
  for (std::int64_t i = 0; i < count; ++i) {
    const float gradient = block.gradient[i] * s.gradient_factor;
    const float mean = block.mean[i] + s.keep1 * (gradient - block.mean[i]);
    const float square = s.beta2 * block.square[i] + s.keep2 * gradient * gradient;
    const float denominator = std::sqrt(square) / s.root_bias_correction2 + s.epsilon;
    block.mean[i] = mean;
    block.square[i] = square;
    block.master[i] = block.master[i] * s.decay - s.step_size * mean / denominator;
  }
}

// Eight sums side by side, so that the additions fill vector registers in a fixed order.
SDTUNE_VECTOR_CLONES double block_sum_of_squares(const float* in, std::int64_t count) {
  constexpr std::int64_t kLanes = 8;
  double lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      const double value = in[i + lane];
      lanes[lane] += value * value;
    }
  }
  for (; i < count; ++i) lanes[0] += static_cast<double>(in[i]) * in[i];
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

}  // namespace

void adamw_update(const AdamWRun& run, const AdamWScalars& scalars) {
  float buffer[kBlock];
  for (std::int64_t offset = 0; offset < run.count; offset += kBlock) {
    const std::int64_t count = std::min(kBlock, run.count - offset);
    const Block block = {run.master + offset, run.mean + offset, run.square + offset,
                         widened(run.gradient, offset, count, buffer)};
    update_block(block, count, scalars);
    if (run.weight.data != run.master) narrow(block.master, run.weight, offset, count);
  }
}

double sum_of_squares(const NumberRun& run, std::int64_t count) {
  float buffer[kBlock];
  double sum = 0;
  for (std::int64_t offset = 0; offset < count; offset += kBlock) {
    const std::int64_t block = std::min(kBlock, count - offset);
    sum += block_sum_of_squares(widened(run, offset, block, buffer), block);
  }
  return sum;
}

}  // namespace sdtune::train
