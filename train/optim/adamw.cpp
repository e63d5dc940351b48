#include "train/optim/adamw.h"

#include <ATen/core/grad_mode.h>

#include <utility>

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

// Views of one flat allocation, in the memory format of each weight.
std::vector<torch::Tensor> flat_like(const std::vector<TrainedParameter>& parameters) {
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

std::vector<AdamWMemory> fresh_memory(const std::vector<TrainedParameter>& parameters) {
  const bool all_float32 = std::all_of(parameters.begin(), parameters.end(), [](const TrainedParameter& parameter) {
    return parameter.weight.scalar_type() == torch::kFloat32;
  });
  const std::vector<torch::Tensor> means = flat_like(parameters);
  const std::vector<torch::Tensor> squares = flat_like(parameters);
  const std::vector<torch::Tensor> masters = all_float32 ? std::vector<torch::Tensor>() : flat_like(parameters);
  std::vector<AdamWMemory> memory;
  memory.reserve(parameters.size());
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const torch::Tensor weight = parameters[i].weight.detach();
    const bool own_master = weight.scalar_type() != torch::kFloat32;
    const torch::Tensor& start = parameters[i].start.defined() ? parameters[i].start : weight;
    memory.push_back({own_master ? masters[i].copy_(start) : weight, means[i], squares[i]});
  }
  return memory;
}

}  // namespace

AdamW::AdamW(std::vector<TrainedParameter> parameters, const OptimOptions& options)
    : parameters_(std::move(parameters)) {
  TORCH_CHECK(!parameters_.empty(), "AdamW: no parameters to train");
  const torch::NoGradGuard no_grad;
  for (const TrainedParameter& parameter : parameters_) check_parameter(parameter);
  memory_ = fresh_memory(parameters_);
  for (TrainedParameter& parameter : parameters_) parameter.start.reset();
  const torch::Device device = parameters_.front().weight.device();
  updates_ = torch::zeros({}, torch::TensorOptions().dtype(torch::kInt64).device(device));
  engine_ = make_adamw_engine(parameters_, memory_, options);
}

void AdamW::step(const torch::Tensor& rates, const torch::Tensor& gradient_factor) {
  const torch::NoGradGuard no_grad;
  engine_->step(rates, gradient_factor, updates_);
}

void AdamW::refresh_weights() {
  const torch::NoGradGuard no_grad;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    torch::Tensor weight = parameters_[i].weight.detach();
    if (!weight.is_same(memory_[i].master)) weight.copy_(memory_[i].master);
  }
}

std::unique_ptr<AdamWEngine> make_adamw_engine(const std::vector<TrainedParameter>& parameters,
                                               const std::vector<AdamWMemory>& memory, const OptimOptions& options) {
  return parameters.front().weight.is_cuda() ? make_cuda_adamw(parameters, memory, options)
                                             : make_cpu_adamw(parameters, memory, options);
}

}  // namespace sdtune::train
