// The norm of all gradients together: a sum of squares a chunk, then the root of their sum. In double, where no square
// of a float32 overflows, so the norm is finite exactly when every gradient is. No atomic additions: two runs give the
// same bits.
#include "model/kernels/cuda/block_sum.cuh"
#include "model/kernels/cuda/launch.cuh"
#include "model/kernels/cuda/numbers.cuh"
#include "train/optim/cuda/adamw_number.cuh"
#include "train/optim/cuda/launchers.cuh"

namespace sdtune::train {

using model::kThreads;

namespace {

template <typename Gradient>
__global__ void gradient_squares_kernel(const CudaGradient* gradients, const CudaChunk* chunks, double* sums) {
  constexpr int kPack = model::kWide<Gradient>;
  const CudaChunk chunk = chunks[blockIdx.x];
  const CudaGradient gradient = gradients[chunk.parameter];
  const ChunkPlace place = chunk_place(chunk, gradient.count);
  const auto* numbers = static_cast<const Gradient*>(gradient.numbers) + place.begin;
  const int packs = model::is_aligned(gradient.numbers, 16) ? place.count / kPack : 0;
  double sum = 0;
  for (int i = threadIdx.x; i < packs; i += kThreads) {
    float pack[kPack];
    model::load_floats(numbers + i * kPack, pack);
    for (const float number : pack) sum += static_cast<double>(number) * number;
  }
  for (int i = packs * kPack + threadIdx.x; i < place.count; i += kThreads) {
    const double number = model::to_float(numbers[i]);
    sum += number * number;
  }
  const double all = model::block_sum(sum);
  if (threadIdx.x == 0) sums[blockIdx.x] = all;
}

__global__ void gradient_norm_kernel(const double* sums, std::int64_t count, float* norm) {
  double sum = 0;
  for (std::int64_t i = threadIdx.x; i < count; i += kThreads) sum += sums[i];
  const double all = model::block_sum(sum);
  if (threadIdx.x == 0) norm[0] = static_cast<float>(sqrt(all));
}

}  // namespace

void launch_gradient_squares(const CudaGradient* gradients, const CudaChunk* chunks, std::int64_t chunk_count,
                             model::CudaType gradient_type, double* sums, const model::CudaStream& stream) {
  if (chunk_count == 0) return;
  model::with_type(gradient_type, [&](auto gradient) {
    model::launch("gradient_squares", gradient_squares_kernel<decltype(gradient)>,
                  dim3(static_cast<unsigned>(chunk_count)), stream, gradients, chunks, sums);
  });
}

void launch_gradient_norm(const double* sums, std::int64_t count, float* norm, const model::CudaStream& stream) {
  model::launch("gradient_norm", gradient_norm_kernel, dim3(1), stream, sums, count, norm);
}

}  // namespace sdtune::train
