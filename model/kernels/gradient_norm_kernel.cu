// The sum of squares of all gradients and whether all are finite, in one launch, without synchronization.
#include "model/kernels/launch.cuh"
#include "model/kernels/launchers.cuh"

namespace sdtune::model {

namespace {

template <typename Gradient>
__global__ void sum_of_squares_kernel(const CudaParameter* parameters, double* sum, std::int32_t* found_inf) {
  const CudaParameter parameter = parameters[blockIdx.y];
  const auto* gradient = static_cast<const Gradient*>(parameter.gradient);
  double mine = 0;
  bool finite = true;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < parameter.count;
       i += std::int64_t{gridDim.x} * blockDim.x) {
    const float value = to_float(gradient[i]);
    finite = finite && isfinite(value);
    mine += static_cast<double>(value) * value;
  }
  const double block = block_sum(mine);
  if (!finite) atomicExch(found_inf, 1);
  if (threadIdx.x == 0 && block != 0) atomicAdd(sum, block);
}

}  // namespace

void launch_sum_of_squares(const CudaParameter* parameters, std::int64_t parameter_count, std::int64_t largest,
                           CudaType gradient_type, double* sum, std::int32_t* found_inf, void* stream) {
  const dim3 grid(std::min(grid_for(largest, 16), 512u), static_cast<unsigned>(parameter_count));
  with_type(gradient_type, [&](auto gradient) {
    sum_of_squares_kernel<decltype(gradient)><<<grid, kThreads, 0, stream_of(stream)>>>(parameters, sum, found_inf);
  });
  check_launch("sum_of_squares");
}

}  // namespace sdtune::model
