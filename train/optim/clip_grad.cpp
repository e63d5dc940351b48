#include "train/optim/clip_grad.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "train/optim/gradient_norm_cuda.h"
#include "train/optim/number_run.h"
#include "train/optim/optimizer_kernels.h"

namespace sdtune::train {

namespace {

struct GradientRun {
  NumberRun numbers;
  std::int64_t count = 0;
  std::size_t place = 0;  // among the runs of all parameters
};

struct GradientRuns {
  std::vector<GradientRun> own;
  std::vector<std::size_t> parameters;  // of each run, own or not
};

GradientRuns gradient_runs(const std::vector<TrainedParameter>& parameters, const OptimizerShard* shard) {
  GradientRuns runs;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const bool is_own = shard == nullptr || std::binary_search(shard->own.begin(), shard->own.end(), i);
    const std::int64_t total = parameters[i].gradient.numel();
    for (std::int64_t offset = 0; offset < total; offset += kRunLength) {
      if (is_own) {
        runs.own.push_back(
            {number_run(parameters[i].gradient, offset), std::min(kRunLength, total - offset), runs.parameters.size()});
      }
      runs.parameters.push_back(i);
    }
  }
  return runs;
}

// [runs] float64, 0 for those of other ranks.
torch::Tensor run_sums(const GradientRuns& runs) {
  const torch::Tensor sums = torch::zeros({static_cast<std::int64_t>(runs.parameters.size())}, torch::kFloat64);
  auto* numbers = sums.data_ptr<double>();
  at::parallel_for(0, static_cast<std::int64_t>(runs.own.size()), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const GradientRun& run = runs.own[static_cast<std::size_t>(i)];
      numbers[run.place] = sum_of_squares(run.numbers, run.count);
    }
  });
  return sums;
}

torch::Tensor cpu_norm(const std::vector<TrainedParameter>& parameters, const OptimizerShard* shard,
                       GradientSums& sums) {
  GradientRuns runs = gradient_runs(parameters, shard);
  const torch::Tensor parts = run_sums(runs);
  if (shard != nullptr) {
    shard->sum(parts);
    sums = {parts, std::move(runs.parameters)};
  }
  double sum = 0;
  for (std::int64_t i = 0; i < parts.numel(); ++i) sum += parts.const_data_ptr<double>()[i];
  return torch::scalar_tensor(std::sqrt(sum), torch::kFloat32);
}

torch::Tensor device_norm(const std::vector<TrainedParameter>& parameters, const OptimizerShard* shard,
                          GradientSums& sums) {
  return shard == nullptr ? gradient_norm_on_device(parameters) : gradient_norm_of_shards(parameters, *shard, sums);
}

}  // namespace

ClippedGradient clip_gradient(const std::vector<TrainedParameter>& parameters, const torch::Tensor& loss_scale,
                              double max_norm, const OptimizerShard* shard) {
  const torch::NoGradGuard no_grad;
  const torch::Device device = parameters.front().gradient.device();
  const bool on_host = device.is_cpu() && optimizer_kernels(device) == nullptr;
  GradientSums sums;
  const torch::Tensor norm =
      (on_host ? cpu_norm(parameters, shard, sums) : device_norm(parameters, shard, sums)) / loss_scale;
  const torch::Tensor clip = (max_norm / (norm + 1e-6)).clamp_max(1.0);
  // max_norm / infinity is 0, which would seem a clipped gradient: keep such a norm visible.
  const torch::Tensor factor = torch::where(torch::isfinite(norm), clip / loss_scale, torch::full_like(norm, NAN));
  return {norm, factor, std::move(sums)};
}

std::string first_non_finite(const std::vector<TrainedParameter>& parameters) {
  for (const TrainedParameter& parameter : parameters) {
    if (!torch::isfinite(parameter.gradient).all().item<bool>()) return parameter.name;
  }
  return "";
}

std::string first_non_finite(const std::vector<TrainedParameter>& parameters, const GradientSums& sums) {
  const torch::Tensor parts = sums.parts.to(torch::kCPU, torch::kFloat64);
  std::size_t first = parameters.size();  // on a GPU the parts are not in the order of the parameters
  for (std::size_t i = 0; i < sums.of_parts.size(); ++i) {
    if (!std::isfinite(parts.const_data_ptr<double>()[i])) first = std::min(first, sums.of_parts[i]);
  }
  return first < parameters.size() ? parameters[first].name : "";
}

}  // namespace sdtune::train
