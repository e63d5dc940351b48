#include "train/optim/adamw_8bit.h"

#include <ATen/Parallel.h>
#include <ATen/ops/bucketize.h>

#include <algorithm>
#include <utility>

#include "train/optim/dynamic_code.h"
#include "train/optim/number_run.h"

namespace sdtune::train {

namespace {

static_assert(kRunLength % kScaledBlock == 0);

std::int64_t blocks_of(std::int64_t count) {
  return (count + kScaledBlock - 1) / kScaledBlock;
}

template <std::size_t kCount>
torch::Tensor to_tensor(const std::array<float, kCount>& numbers, torch::Device device) {
  return torch::tensor(std::vector<float>(numbers.begin(), numbers.end()), torch::kFloat32).to(device);
}

// The numbers in the order of the shape as [blocks, 256] float32, filled up with zeros.
torch::Tensor to_blocks(const torch::Tensor& tensor) {
  const std::int64_t count = tensor.numel();
  torch::Tensor blocks = torch::zeros({blocks_of(count), kScaledBlock}, tensor.options().dtype(torch::kFloat32));
  blocks.view(-1).slice(0, 0, count).copy_(tensor.reshape(-1));
  return blocks;
}

torch::Tensor decoded(const torch::Tensor& codes, const torch::Tensor& scale, const torch::Tensor& values) {
  return values.index({codes.to(torch::kInt64)}) * scale.unsqueeze(1);
}

// `numbers` [blocks, 256] into codes and scales.
void encode(const torch::Tensor& numbers, const torch::Tensor& borders, torch::Tensor codes, torch::Tensor scale) {
  const torch::Tensor largest = numbers.abs().amax(1);
  const torch::Tensor divisor = torch::where(largest > 0, largest, torch::ones_like(largest));
  scale.copy_(largest);
  codes.copy_(torch::bucketize(numbers / divisor.unsqueeze(1), borders));
}

}  // namespace

AdamW8bit::AdamW8bit(std::vector<TrainedParameter> parameters, const OptimOptions& options)
    : Optimizer(std::move(parameters)), options_(options) {
  std::vector<TrainedParameter> small;
  std::vector<torch::Tensor> small_masters;
  const torch::Device device = this->parameters().front().weight.device();
  mean_values_ = to_tensor(DynamicCode::with_sign().values(), device);
  square_values_ = to_tensor(DynamicCode::without_sign().values(), device);
  mean_borders_ = to_tensor(DynamicCode::with_sign().midpoints(), device);
  square_borders_ = to_tensor(DynamicCode::without_sign().midpoints(), device);
  for (std::size_t i = 0; i < this->parameters().size(); ++i) {
    const TrainedParameter& parameter = this->parameters()[i];
    if (parameter.weight.numel() >= kLeastNumbers) {
      add_large(i);
      continue;
    }
    small_indices_.push_back(i);
    small.push_back(parameter);
    small_masters.push_back(masters()[i]);
  }
  if (small.empty()) return;
  small_memory_ = fresh_adamw_memory(small, small_masters);
  small_ = make_adamw_engine(small, small_memory_, options);
}

void AdamW8bit::add_large(std::size_t index) {
  const torch::Tensor& weight = parameters()[index].weight;
  const std::int64_t blocks = blocks_of(weight.numel());
  const auto options = torch::TensorOptions().device(weight.device());
  const auto zeros = [&](const DynamicCode& code) {
    return Coded{torch::full({blocks, kScaledBlock}, code.nearest(0), options.dtype(torch::kUInt8)),
                 torch::zeros({blocks}, options.dtype(torch::kFloat32))};
  };
  large_.push_back({index, zeros(DynamicCode::with_sign()), zeros(DynamicCode::without_sign())});
  if (weight.is_cpu() && weight.is_contiguous()) {
    append_runs(large_.back());
  } else {
    without_runs_.push_back(large_.size() - 1);
  }
}

void AdamW8bit::append_runs(const Large& large) {
  const TrainedParameter& parameter = parameters()[large.index];
  const std::int64_t total = parameter.weight.numel();
  for (std::int64_t offset = 0; offset < total; offset += kRunLength) {
    AdamW8bitRun run;
    run.master = masters()[large.index].data_ptr<float>() + offset;
    run.moments = {large.mean.codes.data_ptr<std::uint8_t>() + offset,
                   large.square.codes.data_ptr<std::uint8_t>() + offset,
                   large.mean.scale.data_ptr<float>() + offset / kScaledBlock,
                   large.square.scale.data_ptr<float>() + offset / kScaledBlock};
    run.weight = number_run(parameter.weight, offset);
    run.count = std::min(kRunLength, total - offset);
    runs_.push_back({run, parameter.rate_group, parameter.gradient, offset});
  }
}

NamedStates AdamW8bit::states() const {
  NamedStates states;
  for (std::size_t i = 0; i < small_indices_.size(); ++i) {
    const std::string& name = parameters()[small_indices_[i]].name;
    states.emplace_back(name + kMeanSuffix, small_memory_[i].mean);
    states.emplace_back(name + kSquareSuffix, small_memory_[i].square);
  }
  for (const Large& large : large_) {
    const std::string& name = parameters()[large.index].name;
    states.emplace_back(name + kMeanSuffix, large.mean.codes);
    states.emplace_back(name + kMeanSuffix + ".scale", large.mean.scale);
    states.emplace_back(name + kSquareSuffix, large.square.codes);
    states.emplace_back(name + kSquareSuffix + ".scale", large.square.scale);
  }
  return states;
}

void AdamW8bit::update(const torch::Tensor& rates, const torch::Tensor& gradient_factor, torch::Tensor& updates) {
  const std::optional<HostStep> step = read_step(rates, gradient_factor);
  if (!step) return;
  torch::Tensor of_small = updates.clone();  // their engine counts for itself
  if (small_) small_->step(rates, gradient_factor, of_small);
  updates.add_(1);
  const auto t = static_cast<double>(updates.item<std::int64_t>());
  std::vector<AdamWScalars> scalars;
  for (const double rate : step->rates) scalars.push_back(adamw_scalars(options_, rate, t, step->gradient_factor));
  for (GroupedRun& part : runs_) part.run.gradient = number_run(part.gradient, part.offset);
  at::parallel_for(0, static_cast<std::int64_t>(runs_.size()), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) adamw_8bit_update(runs_[i].run, scalars[runs_[i].rate_group]);
  });
  for (const std::size_t i : without_runs_) {
    update_by_operators(large_[i], scalars[parameters()[large_[i].index].rate_group]);
  }
}

// The arithmetic of adamw_update (adamw_kernel.cpp).
void AdamW8bit::update_by_operators(const Large& large, const AdamWScalars& scalars) {
  const TrainedParameter& parameter = parameters()[large.index];
  const torch::Tensor gradient = to_blocks(parameter.gradient) * scalars.gradient_factor;
  torch::Tensor mean = decoded(large.mean.codes, large.mean.scale, mean_values_);
  torch::Tensor square = decoded(large.square.codes, large.square.scale, square_values_);
  mean.add_(gradient - mean, scalars.keep1);
  square.mul_(scalars.beta2).addcmul_(gradient, gradient, scalars.keep2);
  const torch::Tensor denominator = square.sqrt().div_(scalars.root_bias_correction2).add_(scalars.epsilon);
  const torch::Tensor change = (mean * scalars.step_size).div_(denominator);
  torch::Tensor master = masters()[large.index];
  master.mul_(scalars.decay).sub_(change.view(-1).slice(0, 0, master.numel()).view(master.sizes()));
  encode(mean, mean_borders_, large.mean.codes, large.mean.scale);
  encode(square, square_borders_, large.square.codes, large.square.scale);
  torch::Tensor weight = parameter.weight.detach();
  if (weight.scalar_type() != torch::kFloat32) weight.copy_(master);
}

}  // namespace sdtune::train
