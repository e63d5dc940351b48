#include "train/optim/optimizer.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>

namespace sdtune::train {

namespace {

void check_parameter(const TrainedParameter& parameter) {
  const torch::Tensor& weight = parameter.weight;
  const torch::Tensor& gradient = parameter.gradient;
  TORCH_CHECK(gradient.defined(), parameter.name, ": has no gradient memory");
  TORCH_CHECK(gradient.sizes() == weight.sizes() && gradient.strides() == weight.strides(), parameter.name,
              ": gradient of shape ", gradient.sizes(), " and strides ", gradient.strides(), ", weight of ",
              weight.sizes(), " and ", weight.strides());
  TORCH_CHECK(weight.is_non_overlapping_and_dense(), parameter.name, ": weight is not dense");
  TORCH_CHECK(weight.device() == gradient.device(), parameter.name, ": gradient on another device");
}

bool is_own_master(const TrainedParameter& parameter) {
  return parameter.weight.scalar_type() == torch::kFloat32;
}

std::vector<torch::Tensor> fresh_masters(const std::vector<TrainedParameter>& parameters) {
  const bool all_own = std::all_of(parameters.begin(), parameters.end(), is_own_master);
  const std::vector<torch::Tensor> copies = all_own ? std::vector<torch::Tensor>() : zeros_like_all(parameters);
  std::vector<torch::Tensor> masters;
  masters.reserve(parameters.size());
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const torch::Tensor weight = parameters[i].weight.detach();
    const torch::Tensor& start = parameters[i].start.defined() ? parameters[i].start : weight;
    masters.push_back(is_own_master(parameters[i]) ? weight : copies[i].copy_(start));
  }
  return masters;
}

}  // namespace

Optimizer::Optimizer(std::vector<TrainedParameter> parameters) : parameters_(std::move(parameters)) {
  TORCH_CHECK(!parameters_.empty(), "optimizer: no parameters to train");
  const torch::NoGradGuard no_grad;
  for (const TrainedParameter& parameter : parameters_) check_parameter(parameter);
  masters_ = fresh_masters(parameters_);
  for (TrainedParameter& parameter : parameters_) parameter.start.reset();
  const torch::Device device = parameters_.front().weight.device();
  updates_ = torch::zeros({}, torch::TensorOptions().dtype(torch::kInt64).device(device));
}

void Optimizer::step(const torch::Tensor& rates, const torch::Tensor& gradient_factor) {
  const torch::NoGradGuard no_grad;
  update(rates, gradient_factor, updates_);
}

void Optimizer::refresh_weights() {
  const torch::NoGradGuard no_grad;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!is_own_master(parameters_[i])) parameters_[i].weight.detach().copy_(masters_[i]);
  }
}

std::vector<torch::Tensor> zeros_like_all(const std::vector<TrainedParameter>& parameters) {
  std::int64_t total = 0;
  for (const TrainedParameter& parameter : parameters) total += parameter.weight.numel();
  const auto options = torch::TensorOptions().dtype(torch::kFloat32).device(parameters.front().weight.device());
  const torch::Tensor flat = torch::zeros({total}, options);
  std::vector<torch::Tensor> views;
  views.reserve(parameters.size());
  std::int64_t offset = 0;
  for (const TrainedParameter& parameter : parameters) {
    views.push_back(flat.as_strided(parameter.weight.sizes(), parameter.weight.strides(), offset));
    offset += parameter.weight.numel();
  }
  return views;
}

std::optional<HostStep> read_step(const torch::Tensor& rates, const torch::Tensor& gradient_factor) {
  HostStep step;
  step.gradient_factor = gradient_factor.item<float>();
  if (!std::isfinite(step.gradient_factor)) return std::nullopt;
  const torch::Tensor on_host = rates.cpu();
  step.rates.assign(on_host.const_data_ptr<double>(), on_host.const_data_ptr<double>() + on_host.numel());
  return step;
}

}  // namespace sdtune::train
