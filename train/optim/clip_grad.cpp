#include "train/optim/clip_grad.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>

#include "train/optim/gradient_norm_cuda.h"
#include "train/optim/number_run.h"
#include "train/optim/optimizer_kernels.h"

namespace sdtune::train {

namespace {

struct GradientRun {
  NumberRun numbers;
  std::int64_t count;
};

std::vector<GradientRun> gradient_runs(const std::vector<TrainedParameter>& parameters) {
  std::vector<GradientRun> runs;
  for (const TrainedParameter& parameter : parameters) {
    const std::int64_t total = parameter.gradient.numel();
    for (std::int64_t offset = 0; offset < total; offset += kRunLength) {
      runs.push_back({number_run(parameter.gradient, offset), std::min(kRunLength, total - offset)});
    }
  }
  return runs;
}

torch::Tensor cpu_norm(const std::vector<TrainedParameter>& parameters) {
  const std::vector<GradientRun> runs = gradient_runs(parameters);
  std::vector<double> sums(runs.size());
  at::parallel_for(0, static_cast<std::int64_t>(runs.size()), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) sums[i] = sum_of_squares(runs[i].numbers, runs[i].count);
  });
  double sum = 0;
  for (const double part : sums) sum += part;
  return torch::scalar_tensor(std::sqrt(sum), torch::kFloat32);
}

}  // namespace

ClippedGradient clip_gradient(const std::vector<TrainedParameter>& parameters, const torch::Tensor& loss_scale,
                              double max_norm) {
  const torch::NoGradGuard no_grad;
  const torch::Device device = parameters.front().gradient.device();
  const bool on_host = device.is_cpu() && optimizer_kernels(device) == nullptr;
  const torch::Tensor norm = (on_host ? cpu_norm(parameters) : gradient_norm_on_device(parameters)) / loss_scale;
  const torch::Tensor clip = (max_norm / (norm + 1e-6)).clamp_max(1.0);
  // max_norm / infinity is 0, which would seem a clipped gradient: keep such a norm visible.
  const torch::Tensor factor = torch::where(torch::isfinite(norm), clip / loss_scale, torch::full_like(norm, NAN));
  return {norm, factor};
}

std::string first_non_finite(const std::vector<TrainedParameter>& parameters) {
  for (const TrainedParameter& parameter : parameters) {
    if (!torch::isfinite(parameter.gradient).all().item<bool>()) return parameter.name;
  }
  return "";
}

}  // namespace sdtune::train
