#include "train/optim/weight_average.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_lerp.h>

#include <algorithm>

namespace sdtune::train {

WeightAverage::WeightAverage(const Optimizer& optimizer, double decay, bool offload)
    : optimizer_(optimizer), decay_(decay) {
  for (std::size_t i = 0; i < optimizer.parameters().size(); ++i) {
    const torch::Tensor master = optimizer.masters()[i];
    masters_.push_back(master);
    averages_.push_back(master.to(offload ? torch::Device(torch::kCPU) : master.device(), master.scalar_type(),
                                  /*non_blocking=*/false, /*copy=*/true));
    values_.emplace_back(optimizer.parameters()[i].name, averages_.back());
  }
}

void WeightAverage::update(std::int64_t steps, std::optional<std::int64_t> fixed) {
  const torch::NoGradGuard no_grad;
  if (fixed) fix(*fixed);
  const auto n = static_cast<double>(steps - 1);
  const double decay = n < 1 ? 0.0 : std::min(decay_, (1.0 + n) / (10.0 + n));
  if (averages_.empty() || averages_.front().device() == masters_.front().device()) {
    at::_foreach_lerp_(averages_, masters_, 1.0 - decay);
    return;
  }
  for (std::size_t i = 0; i < averages_.size(); ++i) {
    averages_[i].lerp_(masters_[i].to(averages_[i].device()), 1.0 - decay);  // one at a time, to hold only one twice
  }
}

// An average that equals its master stays equal to it: a step of length 0 in between.
void WeightAverage::fix(std::int64_t group) {
  for (std::size_t i = 0; i < averages_.size(); ++i) {
    if (optimizer_.parameters()[i].rate_group == group) averages_[i].copy_(masters_[i]);
  }
}

AveragedWeights::AveragedWeights(Optimizer& optimizer, const WeightAverage& average) : optimizer_(optimizer) {
  const torch::NoGradGuard no_grad;
  for (std::size_t i = 0; i < optimizer_.parameters().size(); ++i) {
    torch::Tensor weight = optimizer_.parameters()[i].weight.detach();
    kept_.push_back(weight.clone());
    weight.copy_(average.values()[i].second);
  }
}

AveragedWeights::~AveragedWeights() {
  const torch::NoGradGuard no_grad;
  for (std::size_t i = 0; i < kept_.size(); ++i) optimizer_.parameters()[i].weight.detach().copy_(kept_[i]);
}

}  // namespace sdtune::train
