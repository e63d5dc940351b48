// One number's AdamW update: the operations of adamw_kernel.cpp's update_block() in its order. The files that include
// this are built with -fmad=false, so the bits are the CPU's.
#pragma once

#include "train/optim/optimizer_table.h"

namespace sdtune::train {

__device__ inline void adamw_number(const AdamWScalars& s, float raw_gradient, float& master, float& mean,
                                    float& square) {
  const float gradient = raw_gradient * s.gradient_factor;
  mean = mean + s.keep1 * (gradient - mean);
  square = s.beta2 * square + s.keep2 * gradient * gradient;
  const float denominator = sqrtf(square) / s.root_bias_correction2 + s.epsilon;
  master = master * s.decay - s.step_size * mean / denominator;
}

// Where a chunk begins in its parameter of `count` numbers, and how many it has.
struct ChunkPlace {
  std::int64_t begin;
  int count;
};

__device__ inline ChunkPlace chunk_place(const CudaChunk& chunk, std::int64_t count) {
  const std::int64_t begin = chunk.index * kChunkNumbers;
  const std::int64_t rest = count - begin;
  return {begin, static_cast<int>(rest < kChunkNumbers ? rest : kChunkNumbers)};
}

}  // namespace sdtune::train
