#include "train/optim/prodigy.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "train/optim/device_step.h"

namespace sdtune::train {

namespace {

constexpr double kFirstD = 1e-6;
enum Term : std::int64_t { kAgreement, kSize };  // rows of the terms

}  // namespace

Prodigy::Prodigy(std::vector<TrainedParameter> parameters, const OptimOptions& options, bool on_device,
                 const OptimizerShard* shard)
    : Optimizer(std::move(parameters)),
      options_(options),
      on_device_(on_device),
      shard_(shard == nullptr ? std::nullopt : std::optional(*shard)),
      beta3_(options.prodigy_beta3.value_or(std::sqrt(options.adam_beta2))),
      estimate_(torch::tensor({kFirstD, kFirstD, 0.0, 0.0}, torch::kFloat64)
                    .to(on_device ? this->parameters().front().weight.device() : torch::Device(torch::kCPU))) {
  const std::vector<AdamWMemory> adam = fresh_adamw_memory(this->parameters(), masters());
  const std::vector<torch::Tensor> sums = zeros_like_all(this->parameters());
  const std::vector<torch::Tensor> starts = zeros_like_all(this->parameters());
  for (std::size_t i = 0; i < adam.size(); ++i) memory_.push_back({adam[i], sums[i], starts[i].copy_(masters()[i])});
  if (shard_) {
    rate_groups_ = shard_->rate_groups;
  } else {
    for (const TrainedParameter& parameter : this->parameters()) rate_groups_.push_back(parameter.rate_group);
  }
}

NamedStates Prodigy::states() const {
  NamedStates states;
  for (std::size_t i = 0; i < memory_.size(); ++i) {
    const std::string& name = parameters()[i].name;
    states.emplace_back(name + kMeanSuffix, memory_[i].adam.mean);
    states.emplace_back(name + kSquareSuffix, memory_[i].adam.square);
    states.emplace_back(name + ".s", memory_[i].sum);
    states.emplace_back(name + ".p0", memory_[i].start);
  }
  states.emplace_back("prodigy.estimate", estimate_);
  return states;
}

double Prodigy::rate_of(const HostStep& step) const {
  double rate = 0;
  for (const std::int64_t group : rate_groups_) rate = std::max(rate, step.rates[static_cast<std::size_t>(group)]);
  for (const std::int64_t group : rate_groups_) {
    const double own = step.rates[static_cast<std::size_t>(group)];
    TORCH_CHECK(own == rate || own == 0, "Prodigy: group ", group, " has the rate ", own, ", others ", rate);
  }
  return rate;
}

torch::Tensor Prodigy::empty_terms(torch::Device device) const {
  return torch::zeros({2, static_cast<std::int64_t>(rate_groups_.size())},
                      torch::dtype(torch::kFloat64).device(device));
}

std::int64_t Prodigy::column_of(std::size_t index) const {
  return static_cast<std::int64_t>(shard_ ? shard_->own[index] : index);
}

void Prodigy::exchange(const torch::Tensor& terms) const {
  if (shard_) shard_->sum(terms);
}

void Prodigy::take_gradient(std::size_t index, float gradient_factor, double rate, torch::Tensor& terms) {
  const double d = estimate_[kD].item<double>();
  const double weight = d / kFirstD;  // so that the sums are not tiny
  Memory& memory = memory_[index];
  const torch::Tensor gradient = parameters()[index].gradient.to(torch::kFloat32) * gradient_factor;
  terms[kAgreement][column_of(index)] = (gradient * (memory.start - memory.adam.master)).sum(torch::kFloat64);
  memory.adam.mean.mul_(options_.adam_beta1).add_(gradient, d * (1 - options_.adam_beta1));
  memory.adam.square.mul_(options_.adam_beta2).addcmul_(gradient, gradient, d * d * (1 - options_.adam_beta2));
  memory.sum.mul_(beta3_).add_(gradient, weight * (options_.prodigy_safeguard_warmup ? d : rate));
  terms[kSize][column_of(index)] = memory.sum.abs().sum(torch::kFloat64);
}

void Prodigy::update(const torch::Tensor& rates, const torch::Tensor& gradient_factor, torch::Tensor& updates) {
  if (on_device_) return update_on_device(rates, gradient_factor, updates);
  const std::optional<HostStep> step = read_step(rates, gradient_factor);
  if (!step) return;
  updates.add_(1);
  auto* estimate = estimate_.data_ptr<double>();
  const double t = estimate[kCount] + 1;
  const double correction = options_.prodigy_use_bias_correction ? std::sqrt(1 - std::pow(options_.adam_beta2, t)) /
                                                                       (1 - std::pow(options_.adam_beta1, t))
                                                                 : 1.0;
  const double rate = estimate[kD] * rate_of(*step) * correction;
  if (rate == 0) return;
  std::vector<std::size_t> trained;
  for (std::size_t i = 0; i < parameters().size(); ++i) {
    if (step->rates[static_cast<std::size_t>(parameters()[i].rate_group)] > 0) trained.push_back(i);
  }
  torch::Tensor terms = empty_terms(rates.device());
  for (const std::size_t i : trained) take_gradient(i, step->gradient_factor, rate, terms);
  exchange(terms);
  torch::Tensor numerator = torch::full({}, estimate[kNumerator] * beta3_, terms.options());
  torch::Tensor denominator = torch::zeros({}, terms.options());
  const double weight = estimate[kD] / kFirstD;
  for (std::size_t column = 0; column < rate_groups_.size(); ++column) {
    if (step->rates[static_cast<std::size_t>(rate_groups_[column])] <= 0) continue;
    const auto at = static_cast<std::int64_t>(column);
    numerator.add_(terms[kAgreement][at], weight * rate);
    denominator.add_(terms[kSize][at]);
  }
  const double below = denominator.item<double>();
  if (below == 0) return;  // no gradient yet
  const double found = numerator.item<double>() / below;
  estimate[kLargest] = std::max(estimate[kLargest], found);
  estimate[kD] = estimate[kLargest];
  estimate[kNumerator] = numerator.item<double>();
  estimate[kCount] = t;
  for (const std::size_t i : trained) {
    const AdamWMemory& memory = memory_[i].adam;
    torch::Tensor master = memory.master;
    master.add_(master, -options_.adam_weight_decay * rate);  // early on 1 - decay would round to 1
    master.addcdiv_(memory.mean, memory.square.sqrt().add_(estimate[kD] * options_.adam_epsilon), -rate);
  }
  refresh_weights();
}

ProdigyDeviceStep Prodigy::begin_on_device(const DeviceStep& step) const {
  ProdigyDeviceStep now;
  now.d = estimate_[kD].clone();
  now.count = estimate_[kCount] + 1;
  torch::Tensor rate = now.d * step.rates().max();
  if (options_.prodigy_use_bias_correction) {
    const torch::Tensor of_square = 1 - torch::pow(options_.adam_beta2, now.count);
    rate = rate * of_square.sqrt() / (1 - torch::pow(options_.adam_beta1, now.count));
  }
  now.rate = rate;
  now.active = step.rates() > 0;
  return now;
}

void Prodigy::take_gradient_on_device(std::size_t index, const DeviceStep& step, const ProdigyDeviceStep& now,
                                      torch::Tensor& terms) {
  Memory& memory = memory_[index];
  const torch::Tensor active = now.active.select(0, parameters()[index].rate_group);
  const auto share = [&](const torch::Tensor& of_gradient) { return (of_gradient * active).to(torch::kFloat32); };
  const auto kept = [&](double beta) { return torch::where(active, beta, 1.0).to(torch::kFloat32); };
  const torch::Tensor gradient = step.gradient(parameters()[index]);
  const torch::Tensor weight = now.d / kFirstD;  // so that the sums are not tiny
  terms[kAgreement][column_of(index)] =
      (gradient * (memory.start - memory.adam.master)).sum(torch::kFloat64) * weight * now.rate * active;
  memory.adam.mean.mul_(kept(options_.adam_beta1)).add_(gradient * share(now.d * (1 - options_.adam_beta1)));
  memory.adam.square.mul_(kept(options_.adam_beta2))
      .add_(gradient.square() * share(now.d.square() * (1 - options_.adam_beta2)));
  const torch::Tensor step_of_sum = options_.prodigy_safeguard_warmup ? now.d : now.rate;
  memory.sum.mul_(kept(beta3_)).add_(gradient * share(weight * step_of_sum));
  terms[kSize][column_of(index)] = memory.sum.abs().sum(torch::kFloat64) * active;
}

void Prodigy::update_on_device(const torch::Tensor& rates, const torch::Tensor& gradient_factor,
                               torch::Tensor& updates) {
  const DeviceStep step(rates, gradient_factor);
  updates.add_(step.counts());
  const ProdigyDeviceStep now = begin_on_device(step);
  torch::Tensor terms = empty_terms(estimate_.device());
  for (std::size_t i = 0; i < parameters().size(); ++i) take_gradient_on_device(i, step, now, terms);
  exchange(terms);
  torch::Tensor numerator = estimate_[kNumerator] * beta3_;
  torch::Tensor denominator = torch::zeros({}, estimate_.options());
  for (std::int64_t column = 0; column < terms.size(1); ++column) {
    numerator.add_(terms[kAgreement][column]);
    denominator.add_(terms[kSize][column]);
  }
  // Without a gradient yet, or a rate, nothing is found and nothing moves.
  const torch::Tensor found = now.active.any().logical_and(denominator != 0);
  const torch::Tensor largest = torch::maximum(estimate_[kLargest], torch::where(found, numerator / denominator, 0.0));
  estimate_.copy_(torch::where(found, torch::stack({largest, largest, numerator, now.count}), estimate_));
  const torch::Tensor rate = torch::where(found, now.rate, 0.0);
  for (std::size_t i = 0; i < parameters().size(); ++i) {
    const AdamWMemory& memory = memory_[i].adam;
    const torch::Tensor own = (rate * now.active.select(0, parameters()[i].rate_group)).to(torch::kFloat32);
    const torch::Tensor least = (estimate_[kD] * options_.adam_epsilon).to(torch::kFloat32);
    torch::Tensor master = memory.master;
    master.sub_(master * (own * options_.adam_weight_decay));  // early on 1 - decay would round to 1
    master.sub_(memory.mean / memory.square.sqrt().add_(least) * own);
  }
  refresh_weights();
}

}  // namespace sdtune::train
