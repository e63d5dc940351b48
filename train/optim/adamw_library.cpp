#include "train/optim/adamw_library.h"

#include <ATen/ops/bucketize.h>

#include "train/optim/adamw_8bit_kernel.h"
#include "train/optim/dynamic_code.h"

namespace sdtune::train {

namespace {

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
  torch::Tensor blocks =
      torch::zeros({blocks_of(count), kScaledBlock}, torch::dtype(torch::kFloat32).device(tensor.device()));
  blocks.view(-1).slice(0, 0, count).copy_(tensor.reshape(-1));
  return blocks;
}

torch::Tensor decoded(const CodedMoment& moment, const torch::Tensor& values) {
  return values.index({moment.codes.to(torch::kInt64)}) * moment.scale.unsqueeze(1);
}

// `numbers` [blocks, 256] into codes and scales, where the step is finite.
void encode(const LibraryStep& step, const torch::Tensor& numbers, const torch::Tensor& borders,
            const CodedMoment& moment) {
  const torch::Tensor largest = numbers.abs().amax(1);
  const torch::Tensor divisor = torch::where(largest > 0, largest, torch::ones_like(largest));
  const torch::Tensor codes = torch::bucketize(numbers / divisor.unsqueeze(1), borders).to(torch::kUInt8);
  moment.scale.copy_(torch::where(step.finite, largest, moment.scale));
  moment.codes.copy_(torch::where(step.finite, codes, moment.codes));
}

struct NewNumbers {
  torch::Tensor mean, square, master;
};

NewNumbers updated(const LibraryStep& step, std::int64_t rate_group, const torch::Tensor& raw_gradient,
                   const torch::Tensor& mean, const torch::Tensor& square, const torch::Tensor& master) {
  const OptimOptions& options = step.options;
  const torch::Tensor gradient = raw_gradient * step.factor;
  const torch::Tensor new_mean = mean + (gradient - mean) * (1.0 - options.adam_beta1);
  const torch::Tensor added = gradient * (1.0 - options.adam_beta2) * gradient;
  const torch::Tensor new_square = square * options.adam_beta2 + added;
  const torch::Tensor denominator = new_square.sqrt() / step.root_bias_correction2 + options.adam_epsilon;
  const torch::Tensor change = new_mean * step.step_sizes.select(0, rate_group) / denominator;
  return {new_mean, new_square, master * step.decays.select(0, rate_group) - change};
}

void write_master(const LibraryStep& step, const TrainedParameter& parameter, const torch::Tensor& master,
                  const torch::Tensor& numbers) {
  master.copy_(torch::where(step.finite, numbers, master));
  torch::Tensor weight = parameter.weight.detach();
  if (weight.scalar_type() != torch::kFloat32)
    weight.copy_(torch::where(step.finite, master.to(weight.scalar_type()), weight));
}

class LibraryAdamW : public AdamWEngine {
 public:
  LibraryAdamW(const AdamWWork& work, const OptimOptions& options)
      : work_(work), options_(options), codes_(work.device()) {}

  void step(const torch::Tensor& rates, const torch::Tensor& gradient_factor, torch::Tensor& updates) override {
    const LibraryStep step(options_, rates, gradient_factor, updates);
    for (std::size_t i = 0; i < work_.plain.size(); ++i) {
      update_by_operators(step, work_.plain[i], work_.plain_memory[i]);
    }
    for (std::size_t i = 0; i < work_.coded.size(); ++i) {
      update_by_operators(step, work_.coded[i], work_.coded_memory[i], codes_);
    }
  }

 private:
  AdamWWork work_;
  OptimOptions options_;
  CodeTensors codes_;
};

}  // namespace

LibraryStep::LibraryStep(const OptimOptions& optim_options, const torch::Tensor& rates,
                         const torch::Tensor& gradient_factor, torch::Tensor& updates)
    : options(optim_options), factor(gradient_factor), finite(torch::isfinite(gradient_factor)) {
  updates.add_(finite);
  const torch::Tensor t = updates.to(torch::kFloat64);
  decays = (1.0 - rates * options.adam_weight_decay).to(torch::kFloat32);
  step_sizes = (rates / (1.0 - torch::pow(options.adam_beta1, t))).to(torch::kFloat32);
  root_bias_correction2 = (1.0 - torch::pow(options.adam_beta2, t)).sqrt().to(torch::kFloat32);
}

CodeTensors::CodeTensors(torch::Device device)
    : mean_values(to_tensor(DynamicCode::with_sign().values(), device)),
      square_values(to_tensor(DynamicCode::without_sign().values(), device)),
      mean_borders(to_tensor(DynamicCode::with_sign().midpoints(), device)),
      square_borders(to_tensor(DynamicCode::without_sign().midpoints(), device)) {}

CodedMoment fresh_coded_moment(std::int64_t count, CodedKind kind, torch::Device device) {
  const DynamicCode& code = kind == CodedKind::kMean ? DynamicCode::with_sign() : DynamicCode::without_sign();
  const std::int64_t blocks = blocks_of(count);
  return {torch::full({blocks, kScaledBlock}, code.nearest(0), torch::dtype(torch::kUInt8).device(device)),
          torch::zeros({blocks}, torch::dtype(torch::kFloat32).device(device))};
}

void update_by_operators(const LibraryStep& step, const TrainedParameter& parameter, const AdamWMemory& memory) {
  const NewNumbers numbers = updated(step, parameter.rate_group, parameter.gradient.to(torch::kFloat32), memory.mean,
                                     memory.square, memory.master);
  torch::Tensor mean = memory.mean, square = memory.square;
  mean.copy_(torch::where(step.finite, numbers.mean, mean));
  square.copy_(torch::where(step.finite, numbers.square, square));
  write_master(step, parameter, memory.master, numbers.master);
}

void update_by_operators(const LibraryStep& step, const TrainedParameter& parameter, const CodedMemory& memory,
                         const CodeTensors& codes) {
  const NewNumbers numbers =
      updated(step, parameter.rate_group, to_blocks(parameter.gradient), decoded(memory.mean, codes.mean_values),
              decoded(memory.square, codes.square_values), to_blocks(memory.master));
  encode(step, numbers.mean, codes.mean_borders, memory.mean);
  encode(step, numbers.square, codes.square_borders, memory.square);
  const torch::Tensor& master = memory.master;
  write_master(step, parameter, master, numbers.master.view(-1).slice(0, 0, master.numel()).view(master.sizes()));
}

std::unique_ptr<AdamWEngine> make_library_adamw(const AdamWWork& work, const OptimOptions& options) {
  return std::make_unique<LibraryAdamW>(work, options);
}

}  // namespace sdtune::train
