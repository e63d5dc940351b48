#include "train/optim/weight_average.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_lerp.h>

#include <algorithm>
#include <map>

namespace sdtune::train {

WeightAverage::WeightAverage(const Optimizer& optimizer, double decay, bool offload)
    : optimizer_(optimizer), decay_(decay) {
  for (std::size_t i = 0; i < optimizer.parameters().size(); ++i) {
    const torch::Tensor master = optimizer.masters()[i];
    masters_.push_back(master);
    averages_.push_back(offload ? model::keep_on_host(master) : master.clone());
    values_.emplace_back(optimizer.parameters()[i].name, averages_.back());
  }
}

void WeightAverage::update(std::int64_t steps, std::optional<std::int64_t> fixed) {
  const torch::NoGradGuard no_grad;
  if (fixed) fix(*fixed);
  const auto n = static_cast<double>(steps - 1);
  const double decay = n < 1 ? 0.0 : std::min(decay_, (1.0 + n) / (10.0 + n));
  if (!is_offloaded()) {
    at::_foreach_lerp_(averages_, masters_, 1.0 - decay);
    return;
  }
  // There and back one at a time, to hold only one on the device, in the order of its stream.
  for (std::size_t i = 0; i < averages_.size(); ++i) {
    torch::Tensor average = averages_[i].to(masters_[i].device(), /*non_blocking=*/true);
    average.lerp_(masters_[i], 1.0 - decay);
    averages_[i].copy_(average, /*non_blocking=*/true);
  }
  update_.emplace(masters_.front().device());
}

bool WeightAverage::is_offloaded() const {
  return !averages_.empty() && averages_.front().device() != masters_.front().device();
}

const std::vector<std::pair<std::string, torch::Tensor>>& WeightAverage::values() const {
  if (update_) update_->wait();
  return values_;
}

// An average that equals its master stays equal to it: a step of length 0 in between.
void WeightAverage::fix(std::int64_t group) {
  for (std::size_t i = 0; i < averages_.size(); ++i) {
    if (optimizer_.parameters()[i].rate_group == group) averages_[i].copy_(masters_[i], /*non_blocking=*/true);
  }
}

AveragedWeights::AveragedWeights(const std::vector<TrainedParameter>& parameters, const WeightAverage& average) {
  const torch::NoGradGuard no_grad;
  std::map<std::string, torch::Tensor> by_name;
  for (const TrainedParameter& parameter : parameters) {
    weights_.push_back(parameter.weight.detach());
    kept_.push_back(weights_.back().clone());
    by_name.emplace(parameter.name, weights_.back());
  }
  try {
    for (const auto& [name, value] : average.values()) by_name.at(name).copy_(value, /*non_blocking=*/true);
  } catch (...) {  // memory ran out
    put_back();
    throw;
  }
}

AveragedWeights::~AveragedWeights() {
  put_back();
}

void AveragedWeights::put_back() {
  const torch::NoGradGuard no_grad;
  for (std::size_t i = 0; i < kept_.size(); ++i) weights_[i].copy_(kept_[i]);
}

}  // namespace sdtune::train
