// Training's normal numbers on the GPU. Built with -fmad=false: without contraction every operation is the host's, so
// the numbers are the CPU's bit for bit. Seed and counters are read from device memory, so a captured graph replays
// with whatever the host wrote there last.
#include "model/core/draw_counter.h"
#include "model/kernels/cuda/launch.cuh"
#include "model/kernels/cuda/launchers.cuh"

namespace sdtune::model {

namespace {

constexpr std::int64_t kMostRows = 65535;  // of a grid's second dimension

__global__ void philox_normal_kernel(float* out, std::int64_t row_size, const std::uint32_t* words) {
  const std::uint64_t seed = words[0] | (static_cast<std::uint64_t>(words[1]) << 32);
  const std::uint32_t* mine = words + 2 + std::int64_t{3} * blockIdx.y;
  const DrawCounter counter{mine[0], mine[1], mine[2]};
  float* row = out + blockIdx.y * row_size;
  const std::int64_t blocks = (row_size + 3) / 4;
  for (std::int64_t block = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; block < blocks;
       block += std::int64_t{gridDim.x} * kThreads) {
    float four[4];
    normal_block(draw_block(seed, counter, static_cast<std::uint32_t>(block)), four);
    for (int i = 0; i < 4 && block * 4 + i < row_size; ++i) row[block * 4 + i] = four[i];
  }
}

}  // namespace

void launch_philox_normal(float* out, std::int64_t rows, std::int64_t row_size, const std::uint32_t* words,
                          const CudaStream& stream) {
  if (rows > kMostRows) throw std::invalid_argument("philox_normal: more than 65535 rows");
  const dim3 grid(grid_for((row_size + 3) / 4), static_cast<unsigned>(rows));
  launch("philox_normal", philox_normal_kernel, grid, stream, out, row_size, words);
}

}  // namespace sdtune::model
