#include "train/optim/weight_average.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_lerp.h>

#include <algorithm>

namespace sdtune::train {

WeightAverage::WeightAverage(const AdamW& optimizer, double decay) : optimizer_(optimizer), decay_(decay) {
  for (std::size_t i = 0; i < optimizer.parameters().size(); ++i) {
    const torch::Tensor master = optimizer.memory()[i].master.detach();
    masters_.push_back(master);
    averages_.push_back(master.clone());
    values_.emplace_back(optimizer.parameters()[i].name, averages_.back());
  }
}

void WeightAverage::update(std::int64_t updates) {
  const torch::NoGradGuard no_grad;
  const auto n = static_cast<double>(updates);
  const double decay = std::min(decay_, (1.0 + n) / (10.0 + n));
  at::_foreach_lerp_(averages_, masters_, 1.0 - decay);
}

AveragedWeights::AveragedWeights(AdamW& optimizer, const WeightAverage& average) : optimizer_(optimizer) {
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
