// One pass of AdamW over moments that are kept in 8 bits, on raw memory.
#pragma once

#include <cstdint>

#include "train/optim/adamw_kernel.h"

namespace sdtune::train {

// Numbers that share one scale.
inline constexpr std::int64_t kScaledBlock = 256;

// Moments as codes of DynamicCode (with_sign for the mean, without_sign for the square), each block's times its scale.
struct CodedMoments {
  std::uint8_t* mean = nullptr;
  std::uint8_t* square = nullptr;
  float* mean_scale = nullptr;  // a block
  float* square_scale = nullptr;
};

// A part of one parameter that begins with a block; `count` numbers of each, blocks of the moments.
struct AdamW8bitRun {
  float* master = nullptr;
  CodedMoments moments;
  NumberRun gradient;
  NumberRun weight;  // may be the master itself
  std::int64_t count = 0;
};

// The update is computed with the new moments before they are rounded to their codes.
void adamw_8bit_update(const AdamW8bitRun& run, const AdamWScalars& scalars);

}  // namespace sdtune::train
