#include "train/optim/lion.h"

#include <utility>

#include "train/optim/adamw_engine.h"
#include "train/optim/device_step.h"

namespace sdtune::train {

Lion::Lion(std::vector<TrainedParameter> parameters, const OptimOptions& options, bool on_device)
    : Optimizer(std::move(parameters)),
      options_(options),
      on_device_(on_device),
      means_(zeros_like_all(this->parameters())) {}

NamedStates Lion::states() const {
  NamedStates states;
  for (std::size_t i = 0; i < means_.size(); ++i) states.emplace_back(parameters()[i].name + kMeanSuffix, means_[i]);
  return states;
}

void Lion::update(const torch::Tensor& rates, const torch::Tensor& gradient_factor, torch::Tensor& updates) {
  if (on_device_) return update_on_device(rates, gradient_factor, updates);
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

void Lion::update_on_device(const torch::Tensor& rates, const torch::Tensor& gradient_factor, torch::Tensor& updates) {
  const DeviceStep step(rates, gradient_factor);
  updates.add_(step.counts());
  for (std::size_t i = 0; i < parameters().size(); ++i) {
    const torch::Tensor rate = step.rate(parameters()[i].rate_group);
    const torch::Tensor gradient = step.gradient(parameters()[i]);
    const torch::Tensor direction = means_[i].lerp(gradient, 1 - options_.lion_beta1).sign_();
    torch::Tensor master = masters()[i];
    master.sub_((master * options_.adam_weight_decay).add_(direction).mul_(rate));
    means_[i].lerp_(gradient, step.share(1 - options_.lion_beta2));
  }
  refresh_weights();
}

}  // namespace sdtune::train
