#include "train/optim/adamw_8bit_kernel.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "train/optim/dynamic_code.h"
#include "train/optim/vector_clones.h"

namespace sdtune::train {

namespace {

NumberRun from(const NumberRun& run, std::int64_t offset) {
  const std::int64_t bytes = run.format == NumberFormat::kFloat32 ? 4 : 2;
  return {static_cast<char*>(run.data) + offset * bytes, run.format};
}

SDTUNE_VECTOR_CLONES void decode(const std::uint8_t* codes, const float* values, float scale, std::int64_t count,
                                 float* out) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = values[codes[i]] * scale;
}

// The bits of numbers without their sign grow as the numbers do.
SDTUNE_VECTOR_CLONES float largest_magnitude(const float* in, std::int64_t count) {
  std::int32_t largest = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    largest = std::max(largest, std::bit_cast<std::int32_t>(in[i]) & 0x7FFFFFFF);
  }
  return std::bit_cast<float>(largest);
}

SDTUNE_VECTOR_CLONES void divide(float* numbers, float divisor, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) numbers[i] /= divisor;
}

// Overwrites `numbers`. A block of zeros has the scale 0.
void encode(float* numbers, const DynamicCode& code, std::int64_t count, std::uint8_t* codes, float* scale) {
  *scale = largest_magnitude(numbers, count);
  if (*scale > 0) divide(numbers, *scale, count);
  for (std::int64_t i = 0; i < count; ++i) codes[i] = code.nearest(numbers[i]);
}

}  // namespace

void adamw_8bit_update(const AdamW8bitRun& run, const AdamWScalars& scalars) {
  const DynamicCode& of_mean = DynamicCode::with_sign();
  const DynamicCode& of_square = DynamicCode::without_sign();
  const CodedMoments& moments = run.moments;
  float mean[kScaledBlock];
  float square[kScaledBlock];
  for (std::int64_t offset = 0; offset < run.count; offset += kScaledBlock) {
    const std::int64_t count = std::min(kScaledBlock, run.count - offset);
    const std::int64_t block = offset / kScaledBlock;
    decode(moments.mean + offset, of_mean.values().data(), moments.mean_scale[block], count, mean);
    decode(moments.square + offset, of_square.values().data(), moments.square_scale[block], count, square);
    adamw_update({run.master + offset, mean, square, from(run.gradient, offset), from(run.weight, offset), count},
                 scalars);
    encode(mean, of_mean, count, moments.mean + offset, moments.mean_scale + block);
    encode(square, of_square, count, moments.square + offset, moments.square_scale + block);
  }
}

}  // namespace sdtune::train
