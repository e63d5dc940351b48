// Sums over a block, always added in the same order, so that two runs give the same bits.
#pragma once

#include "model/kernels/cuda/launch.cuh"

namespace sdtune::model {

// The sum over all threads of a block, in every thread. Every thread must come here.
template <typename T>
__device__ T block_sum(T value) {
  __shared__ T partial[kThreads / kWarp];
  for (int offset = kWarp / 2; offset > 0; offset /= 2) value += __shfl_down_sync(0xFFFFFFFFu, value, offset);
  if (threadIdx.x % kWarp == 0) partial[threadIdx.x / kWarp] = value;
  __syncthreads();
  T sum = partial[0];
  for (int warp = 1; warp < kThreads / kWarp; ++warp) sum += partial[warp];
  __syncthreads();  // partial may be written again
  return sum;
}

}  // namespace sdtune::model
