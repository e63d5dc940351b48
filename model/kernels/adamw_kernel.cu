// AdamW with decoupled decay (Loshchilov and Hutter, 2019) over many parameters in one launch: one pass reads gradient,
// master and moments and writes master, moments and the weight in its own dtype.
#include "model/kernels/launch.cuh"
#include "model/kernels/launchers.cuh"

namespace sdtune::model {

namespace {

template <typename Weight, typename Gradient>
__global__ void adamw_kernel(const CudaParameter* parameters, CudaAdamWConstants constants,
                             const CudaAdamWStep* step_values) {
  const CudaAdamWStep step = *step_values;
  if (step.skip != 0) return;
  const CudaParameter parameter = parameters[blockIdx.y];
  const auto* gradient = static_cast<const Gradient*>(parameter.gradient);
  auto* weight = static_cast<Weight*>(parameter.weight);
  const float decay = 1.0f - step.learning_rate * constants.weight_decay;
  const float step_size = step.learning_rate / step.bias_correction1;
  const float root_correction2 = sqrtf(step.bias_correction2);
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < parameter.count;
       i += std::int64_t{gridDim.x} * blockDim.x) {
    const float g = to_float(gradient[i]) * step.gradient_scale;
    const float m = parameter.first_moment[i] + (g - parameter.first_moment[i]) * (1.0f - constants.beta1);
    const float v = parameter.second_moment[i] * constants.beta2 + (1.0f - constants.beta2) * g * g;
    const float w = parameter.master[i] * decay - step_size * m / (sqrtf(v) / root_correction2 + constants.epsilon);
    parameter.first_moment[i] = m;
    parameter.second_moment[i] = v;
    parameter.master[i] = w;
    weight[i] = from_float<Weight>(w);
  }
}

}  // namespace

void launch_adamw(const CudaParameter* parameters, std::int64_t parameter_count, std::int64_t largest,
                  CudaType weight_type, CudaType gradient_type, const CudaAdamWConstants& constants,
                  const CudaAdamWStep* step, void* stream) {
  const dim3 grid(std::min(grid_for(largest, 8), 1024u), static_cast<unsigned>(parameter_count));
  with_type(weight_type, [&](auto weight) {
    with_type(gradient_type, [&](auto gradient) {
      adamw_kernel<decltype(weight), decltype(gradient)>
          <<<grid, kThreads, 0, stream_of(stream)>>>(parameters, constants, step);
    });
  });
  check_launch("adamw");
}

}  // namespace sdtune::model
