#include "train/optim/gradient_norm_cuda.h"

#include <ATen/ops/_foreach_norm.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <tuple>

#include "model/core/device_copy.h"
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

  torch::Tensor norm(const OptimizerTable& kernels) const { return norm_of(kernels, sums(kernels)); }

  // The root of the sum of all, in a fixed order: scalar float32.
  static torch::Tensor norm_of(const OptimizerTable& kernels, const torch::Tensor& sums) {
    const torch::Tensor norm = torch::empty({}, sums.options().dtype(torch::kFloat32));
    kernels.gradient_norm(sums.const_data_ptr<double>(), sums.numel(), norm.data_ptr<float>(),
                          model::kernel_stream(sums.device()));
    return norm;
  }

  // Of the squares of each chunk: [chunks] float64, by type and then in the order of the parameters.
  torch::Tensor sums(const OptimizerTable& kernels) const {
    const torch::Tensor sums = torch::empty({chunk_count_}, torch::dtype(torch::kFloat64).device(device_));
    const model::CudaStream stream = model::kernel_stream(device_);
    for (const auto& [type, launch] : launches_) {
      kernels.gradient_squares(static_cast<const CudaGradient*>(launch.list.const_data_ptr()),
                               static_cast<const CudaChunk*>(launch.chunks.const_data_ptr()), launch.chunk_count, type,
                               sums.data_ptr<double>() + launch.first, stream);
    }
    return sums;
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

// The kernels where they may be used for these gradients; null: LibTorch's operators.
const OptimizerTable* proven_kernels(const NormPlan& plan, torch::Device device) {
  const OptimizerTable* kernels = optimizer_kernels(device);
  if (kernels == nullptr) return nullptr;
  for (const torch::ScalarType dtype : plan.dtypes()) {
    const auto compare = [&] { return compare_norm(*kernels, device, dtype); };
    if (!model::is_proven({"gradient_norm", device, dtype}, compare)) return nullptr;
  }
  return kernels;
}

std::vector<torch::Tensor> gradients_of(const std::vector<TrainedParameter>& parameters) {
  std::vector<torch::Tensor> gradients;
  gradients.reserve(parameters.size());
  for (const TrainedParameter& parameter : parameters) gradients.push_back(parameter.gradient);
  return gradients;
}

// The parameter of each chunk that NormPlan of all parameters would have.
std::vector<std::size_t> parameters_of_chunks(const std::vector<TrainedParameter>& parameters) {
  std::map<model::CudaType, std::vector<std::size_t>> by_type;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    std::vector<std::size_t>& chunks = by_type[model::cuda_type(parameters[i].gradient.scalar_type())];
    chunks.insert(chunks.end(), chunks_of({parameters[i].gradient.numel()}).size(), i);
  }
  std::vector<std::size_t> all;
  for (const auto& [type, chunks] : by_type) all.insert(all.end(), chunks.begin(), chunks.end());
  return all;
}

// Zeros but for this rank's parts, which are put where they belong, and then everybody's.
torch::Tensor parts_of_all(const torch::Tensor& own_parts, const std::vector<std::size_t>& of_parts,
                           const OptimizerShard& shard) {
  std::vector<std::int64_t> places;
  for (std::size_t i = 0; i < of_parts.size(); ++i) {
    if (std::binary_search(shard.own.begin(), shard.own.end(), of_parts[i])) {
      places.push_back(static_cast<std::int64_t>(i));
    }
  }
  torch::Tensor parts = torch::zeros({static_cast<std::int64_t>(of_parts.size())}, own_parts.options());
  parts.index_copy_(0, model::copy_to_device(torch::tensor(places, torch::kInt64), own_parts.device()), own_parts);
  shard.sum(parts);
  return parts;
}

// What NormPlan::sums gives, by LibTorch's operators: a parameter's whole sum in its first chunk, zeros in the others.
torch::Tensor chunks_by_library(const std::vector<TrainedParameter>& parameters, torch::Device device) {
  const std::vector<std::size_t> of_chunks = parameters_of_chunks(parameters);
  const auto numbers = torch::dtype(torch::kFloat64).device(device);
  torch::Tensor sums = torch::zeros({static_cast<std::int64_t>(of_chunks.size())}, numbers);
  if (of_chunks.empty()) return sums;
  std::vector<std::int64_t> first(parameters.size());
  for (std::size_t i = of_chunks.size(); i-- > 0;) first[of_chunks[i]] = static_cast<std::int64_t>(i);
  const torch::Tensor norms = torch::stack(at::_foreach_norm(gradients_of(parameters), 2, torch::kFloat32));
  const torch::Tensor places = model::copy_to_device(torch::tensor(first, torch::kInt64), device);
  return sums.index_add_(0, places, norms.to(torch::kFloat64).square());  // nothing where a parameter has no chunk
}

}  // namespace

torch::Tensor gradient_norm_by_library(const std::vector<TrainedParameter>& parameters) {
  return torch::stack(at::_foreach_norm(gradients_of(parameters), 2, torch::kFloat32)).norm();
}

torch::Tensor gradient_norm_on_device(const std::vector<TrainedParameter>& parameters) {
  const torch::Device device = parameters.front().gradient.device();
  if (optimizer_kernels(device) == nullptr) return gradient_norm_by_library(parameters);
  const std::shared_ptr<const NormPlan> plan = plan_for(parameters);
  const OptimizerTable* kernels = proven_kernels(*plan, device);
  return kernels == nullptr ? gradient_norm_by_library(parameters) : plan->norm(*kernels);
}

torch::Tensor gradient_norm_of_shards(const std::vector<TrainedParameter>& parameters, const OptimizerShard& shard,
                                      GradientSums& sums) {
  const torch::Device device = parameters.front().gradient.device();
  std::vector<TrainedParameter> own;
  for (const std::size_t index : shard.own) own.push_back(parameters[index]);
  const OptimizerTable* kernels = nullptr;
  std::shared_ptr<const NormPlan> plan;
  if (!own.empty() && optimizer_kernels(device) != nullptr) {
    plan = plan_for(own);
    kernels = proven_kernels(*plan, device);
  }
  // A card may have switched its kernels off where another has not, and the sum over the ranks must fit on both.
  sums.of_parts = parameters_of_chunks(parameters);
  const torch::Tensor own_parts = kernels != nullptr ? plan->sums(*kernels) : chunks_by_library(own, device);
  sums.parts = parts_of_all(own_parts, sums.of_parts, shard);
  return kernels != nullptr ? NormPlan::norm_of(*kernels, sums.parts) : sums.parts.sum().sqrt().to(torch::kFloat32);
}

}  // namespace sdtune::train
