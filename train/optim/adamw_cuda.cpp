#include <algorithm>
#include <map>
#include <utility>

#include "model/core/cuda_library.h"
#include "model/core/cuda_table.h"
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
  torch::Tensor on_device;  // the bytes of `parameters`
};

class CudaAdamW : public AdamWEngine {
 public:
  CudaAdamW(const std::vector<TrainedParameter>& parameters, const std::vector<AdamWMemory>& memory,
            const OptimOptions& options)
      : options_(options), device_(parameters.front().weight.device()) {
    for (std::size_t i = 0; i < parameters.size(); ++i) append(parameters[i], memory[i]);
    for (auto& [key, launch] : launches_) {
      const auto bytes = static_cast<std::int64_t>(launch.parameters.size() * sizeof(model::CudaParameter));
      launch.on_device = torch::from_blob(launch.parameters.data(), {bytes}, torch::kUInt8).to(device_);
    }
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
    for (const auto& [key, launch] : launches_) {
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
  void append(const TrainedParameter& parameter, const AdamWMemory& memory) {
    Launch& launch = launches_[{parameter.rate_group, cuda_type(parameter.weight.scalar_type()),
                                cuda_type(parameter.gradient.scalar_type())}];
    launch.parameters.push_back({parameter.weight.data_ptr(), parameter.gradient.const_data_ptr(),
                                 memory.master.data_ptr<float>(), memory.mean.data_ptr<float>(),
                                 memory.square.data_ptr<float>(), parameter.weight.numel()});
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
