#include "train/optim/gradient_norm_cuda.h"

#include <ATen/ops/_foreach_norm.h>

#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <tuple>

#include "model/core/kernel_access.h"
#include "model/core/kernel_proof.h"
#include "train/optim/optimizer_kernels.h"

namespace sdtune::train {

namespace {

struct NormLaunch {
  std::vector<CudaGradient> gradients;
  std::vector<std::int64_t> counts;
  std::int64_t first = 0, chunk_count = 0;  // in the sums of all launches
  torch::Tensor list, chunks;
};

// What goes to the device once: the gradients by type, cut into chunks.
class NormPlan {
 public:
  explicit NormPlan(const std::vector<TrainedParameter>& parameters)
      : device_(parameters.front().gradient.device()), memory_(memory_of(parameters)) {
    for (const TrainedParameter& parameter : parameters) {
      dtypes_.insert(parameter.gradient.scalar_type());
      NormLaunch& launch = launches_[model::cuda_type(parameter.gradient.scalar_type())];
      launch.gradients.push_back({parameter.gradient.const_data_ptr(), parameter.gradient.numel()});
      launch.counts.push_back(parameter.gradient.numel());
    }
    for (auto& [type, launch] : launches_) {
      const std::vector<CudaChunk> chunks = chunks_of(launch.counts);
      launch.first = chunk_count_;
      launch.chunk_count = static_cast<std::int64_t>(chunks.size());
      chunk_count_ += launch.chunk_count;
      launch.list = list_on_device(launch.gradients, device_);
      launch.chunks = list_on_device(chunks, device_);
    }
  }

  const std::set<torch::ScalarType>& dtypes() const { return dtypes_; }
  bool fits(const std::vector<TrainedParameter>& parameters) const { return memory_ == memory_of(parameters); }

  torch::Tensor norm(const OptimizerTable& kernels) const {
    const auto options = torch::TensorOptions().device(device_);
    const torch::Tensor sums = torch::empty({chunk_count_}, options.dtype(torch::kFloat64));
    const torch::Tensor norm = torch::empty({}, options.dtype(torch::kFloat32));
    const model::CudaStream stream = model::kernel_stream(device_);
    for (const auto& [type, launch] : launches_) {
      kernels.gradient_squares(static_cast<const CudaGradient*>(launch.list.const_data_ptr()),
                               static_cast<const CudaChunk*>(launch.chunks.const_data_ptr()), launch.chunk_count, type,
                               sums.data_ptr<double>() + launch.first, stream);
    }
    kernels.gradient_norm(sums.const_data_ptr<double>(), chunk_count_, norm.data_ptr<float>(), stream);
    return norm;
  }

 private:
  using Memory = std::vector<std::tuple<const void*, std::int64_t, torch::ScalarType>>;

  static Memory memory_of(const std::vector<TrainedParameter>& parameters) {
    Memory memory;
    memory.reserve(parameters.size());
    for (const TrainedParameter& p : parameters) {
      memory.emplace_back(p.gradient.const_data_ptr(), p.gradient.numel(), p.gradient.scalar_type());
    }
    return memory;
  }

  torch::Device device_;
  Memory memory_;
  std::set<torch::ScalarType> dtypes_;
  std::map<model::CudaType, NormLaunch> launches_;
  std::int64_t chunk_count_ = 0;
};

// The plan of the last call. Never freed: at the program's end the device may be gone before.
std::shared_ptr<const NormPlan> plan_for(const std::vector<TrainedParameter>& parameters) {
  static std::mutex& mutex = *new std::mutex();
  static auto& last = *new std::shared_ptr<const NormPlan>();
  const std::lock_guard lock(mutex);
  if (last == nullptr || !last->fits(parameters)) last = std::make_shared<const NormPlan>(parameters);
  return last;
}

model::KernelDifference compare_norm(const OptimizerTable& kernels, torch::Device device, torch::ScalarType dtype) {
  std::vector<TrainedParameter> parameters;
  for (const std::int64_t count : {1, 1001, 40007}) {
    TrainedParameter parameter;
    parameter.gradient = model::proof_numbers({count}, static_cast<int>(parameters.size()), device, dtype);
    parameters.push_back(parameter);
  }
  const torch::Tensor ours = NormPlan(parameters).norm(kernels);
  const torch::Tensor theirs = gradient_norm_by_library(parameters);
  parameters[2].gradient[40006] = std::numeric_limits<float>::infinity();
  const torch::Tensor bad = torch::isfinite(NormPlan(parameters).norm(kernels)).to(torch::kFloat32);
  return model::worst_difference(
      {{"norm", ours, theirs}, {"sign of a number that is not finite", 1 - bad, torch::ones_like(bad)}}, 1e-5);
}

}  // namespace

torch::Tensor gradient_norm_by_library(const std::vector<TrainedParameter>& parameters) {
  std::vector<torch::Tensor> gradients;
  gradients.reserve(parameters.size());
  for (const TrainedParameter& parameter : parameters) gradients.push_back(parameter.gradient);
  return torch::stack(at::_foreach_norm(gradients, 2, torch::kFloat32)).norm();
}

torch::Tensor gradient_norm_on_device(const std::vector<TrainedParameter>& parameters) {
  const torch::Device device = parameters.front().gradient.device();
  const OptimizerTable* kernels = optimizer_kernels(device);
  if (kernels == nullptr) return gradient_norm_by_library(parameters);
  const std::shared_ptr<const NormPlan> plan = plan_for(parameters);
  for (const torch::ScalarType dtype : plan->dtypes()) {
    const auto compare = [&] { return compare_norm(*kernels, device, dtype); };
    if (!model::is_proven({"gradient_norm", device, dtype}, compare)) return gradient_norm_by_library(parameters);
  }
  return plan->norm(*kernels);
}

}  // namespace sdtune::train
