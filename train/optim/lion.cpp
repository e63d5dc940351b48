#include "train/optim/lion.h"

#include <utility>

#include "train/optim/adamw_engine.h"

namespace sdtune::train {

Lion::Lion(std::vector<TrainedParameter> parameters, const OptimOptions& options)
    : Optimizer(std::move(parameters)), options_(options), means_(zeros_like_all(this->parameters())) {}

NamedStates Lion::states() const {
  NamedStates states;
  for (std::size_t i = 0; i < means_.size(); ++i) states.emplace_back(parameters()[i].name + kMeanSuffix, means_[i]);
  return states;
}

void Lion::update(const torch::Tensor& rates, const torch::Tensor& gradient_factor, torch::Tensor& updates) {
  const std::optional<HostStep> step = read_step(rates, gradient_factor);
  if (!step) return;
  updates.add_(1);
  for (std::size_t i = 0; i < parameters().size(); ++i) {
    const double rate = step->rates[static_cast<std::size_t>(parameters()[i].rate_group)];
    const torch::Tensor gradient = parameters()[i].gradient.to(torch::kFloat32) * step->gradient_factor;
    torch::Tensor direction = means_[i] * options_.lion_beta1;
    direction.add_(gradient, 1 - options_.lion_beta1).sign_();
    torch::Tensor master = masters()[i];
    master.add_(master, -rate * options_.adam_weight_decay).sub_(direction, rate);
    means_[i].mul_(options_.lion_beta2).add_(gradient, 1 - options_.lion_beta2);
  }
  refresh_weights();
}

}  // namespace sdtune::train
