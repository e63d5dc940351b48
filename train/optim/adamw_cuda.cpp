#include <algorithm>
#include <map>
#include <utility>

#include "model/core/cuda_table.h"
#include "model/core/device.h"
#include "train/optim/adamw_engine.h"

namespace sdtune::train {

namespace {

model::CudaType cuda_type(torch::ScalarType dtype) {
  switch (dtype) {
    case torch::kFloat32:
      return model::CudaType::kFloat32;
    case torch::kBFloat16:
      return model::CudaType::kBFloat16;
    case torch::kFloat16:
      return model::CudaType::kFloat16;
    default:
      TORCH_CHECK(false, "numbers of type ", dtype, " cannot be trained");
  }
}

// Parameters that go through one launch: they share their rate and their types.
struct LaunchKey {
  std::int64_t rate_group;
  model::CudaType weight_type;
  model::CudaType gradient_type;
  auto operator<=>(const LaunchKey&) const = default;
};

struct Launch {
  std::vector<model::CudaParameter> parameters;
  std::int64_t largest = 0;
  std::vector<torch::Tensor> gradients;  // of `parameters`, which say anew in each step where their memory is
  torch::Tensor on_device;               // the bytes of `parameters`
};

class CudaAdamW : public AdamWEngine {
 public:
  CudaAdamW(const std::vector<TrainedParameter>& parameters, const std::vector<AdamWMemory>& memory,
            const OptimOptions& options)
      : options_(options), device_(parameters.front().weight.device()) {
    for (std::size_t i = 0; i < parameters.size(); ++i) append(parameters[i], memory[i]);
  }

  // Rates, bias corrections and the decision to skip stay on the device.
  void step(const torch::Tensor& rates, const torch::Tensor& gradient_factor, torch::Tensor& updates) override {
    const torch::Tensor finite = torch::isfinite(gradient_factor);
    updates.add_(finite);
    const torch::Tensor t = updates.to(torch::kFloat64);
    const torch::Tensor correction1 = 1.0 - torch::pow(options_.adam_beta1, t);
    const torch::Tensor correction2 = 1.0 - torch::pow(options_.adam_beta2, t);
    const torch::Tensor skip = finite.logical_not().to(torch::kInt32).reshape({1});
    const model::CudaAdamWConstants constants = {
        static_cast<float>(options_.adam_beta1), static_cast<float>(options_.adam_beta2),
        static_cast<float>(options_.adam_epsilon), static_cast<float>(options_.adam_weight_decay)};
    for (auto& [key, launch] : launches_) {
      find_gradients(launch);
      const torch::Tensor floats =
          torch::stack({rates.select(0, key.rate_group), correction1, correction2, gradient_factor.to(torch::kFloat64)})
              .to(torch::kFloat32);
      // Laid out as CudaAdamWStep: four floats and an integer.
      const torch::Tensor values = torch::cat({floats.view(torch::kInt32), skip});
      model::cuda_table().adamw(static_cast<const model::CudaParameter*>(launch.on_device.const_data_ptr()),
                                static_cast<std::int64_t>(launch.parameters.size()), launch.largest, key.weight_type,
                                key.gradient_type, constants,
                                static_cast<const model::CudaAdamWStep*>(values.const_data_ptr()),
                                model::current_cuda_stream(device_));
    }
  }

 private:
  // The allocator gives back the same memory in most steps, so that nothing is to be copied. The copy is from pinned
  // memory, which the allocator keeps until the device has read it: the host does not wait.
  void find_gradients(Launch& launch) {
    bool moved = !launch.on_device.defined();
    for (std::size_t i = 0; i < launch.parameters.size(); ++i) {
      const void* memory = launch.gradients[i].const_data_ptr();
      moved = moved || launch.parameters[i].gradient != memory;
      launch.parameters[i].gradient = memory;
    }
    if (!moved) return;
    const auto bytes = static_cast<std::int64_t>(launch.parameters.size() * sizeof(model::CudaParameter));
    const torch::Tensor table = torch::from_blob(launch.parameters.data(), {bytes}, torch::kUInt8).pin_memory();
    launch.on_device = table.to(device_, /*non_blocking=*/true);
  }

  void append(const TrainedParameter& parameter, const AdamWMemory& memory) {
    Launch& launch = launches_[{parameter.rate_group, cuda_type(parameter.weight.scalar_type()),
                                cuda_type(parameter.gradient.scalar_type())}];
    launch.parameters.push_back({parameter.weight.data_ptr(), nullptr, memory.master.data_ptr<float>(),
                                 memory.mean.data_ptr<float>(), memory.square.data_ptr<float>(),
                                 parameter.weight.numel()});
    launch.gradients.push_back(parameter.gradient);
    launch.largest = std::max(launch.largest, parameter.weight.numel());
  }

  OptimOptions options_;
  torch::Device device_;
  std::map<LaunchKey, Launch> launches_;
};

static_assert(sizeof(model::CudaAdamWStep) == 5 * sizeof(std::int32_t));

}  // namespace

std::unique_ptr<AdamWEngine> make_cuda_adamw(const std::vector<TrainedParameter>& parameters,
                                             const std::vector<AdamWMemory>& memory, const OptimOptions& options) {
  return std::make_unique<CudaAdamW>(parameters, memory, options);
}

}  // namespace sdtune::train
