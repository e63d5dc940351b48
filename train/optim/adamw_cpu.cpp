#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>

#include "train/optim/adamw_engine.h"
#include "train/optim/adamw_kernel.h"
#include "train/optim/number_run.h"

namespace sdtune::train {

namespace {

// Numbers that one thread updates at a time: small enough to share the work evenly.

struct GroupedRun {
  AdamWRun run;
  std::int64_t rate_group;
  torch::Tensor gradient;   // of the whole parameter: where its memory is, it says anew in each step
  std::int64_t offset = 0;  // of the run in it
};

class CpuAdamW : public AdamWEngine {
 public:
  CpuAdamW(const std::vector<TrainedParameter>& parameters, const std::vector<AdamWMemory>& memory,
           const OptimOptions& options)
      : options_(options) {
    for (std::size_t i = 0; i < parameters.size(); ++i) append_runs(parameters[i], memory[i]);
  }

  void step(const torch::Tensor& rates, const torch::Tensor& gradient_factor, torch::Tensor& updates) override {
    const float factor = *gradient_factor.const_data_ptr<float>();
    if (!std::isfinite(factor)) return;
    updates.add_(1);
    const auto t = static_cast<double>(*updates.const_data_ptr<std::int64_t>());
    std::vector<AdamWScalars> scalars;
    for (std::int64_t group = 0; group < rates.numel(); ++group) {
      scalars.push_back(adamw_scalars(options_, rates.const_data_ptr<double>()[group], t, factor));
    }
    for (GroupedRun& part : runs_) part.run.gradient = number_run(part.gradient, part.offset);
    at::parallel_for(0, static_cast<std::int64_t>(runs_.size()), 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) adamw_update(runs_[i].run, scalars[runs_[i].rate_group]);
    });
  }

 private:
  void append_runs(const TrainedParameter& parameter, const AdamWMemory& memory) {
    const std::int64_t total = parameter.weight.numel();
    for (std::int64_t offset = 0; offset < total; offset += kRunLength) {
      AdamWRun run;
      run.master = memory.master.data_ptr<float>() + offset;
      run.mean = memory.mean.data_ptr<float>() + offset;
      run.square = memory.square.data_ptr<float>() + offset;
      run.weight = number_run(parameter.weight, offset);
      run.count = std::min(kRunLength, total - offset);
      runs_.push_back({run, parameter.rate_group, parameter.gradient, offset});
    }
  }

  OptimOptions options_;
  std::vector<GroupedRun> runs_;
};

}  // namespace

AdamWScalars adamw_scalars(const OptimOptions& options, double rate, double t, float gradient_factor) {
  AdamWScalars scalars;
  scalars.gradient_factor = gradient_factor;
  scalars.decay = static_cast<float>(1.0 - rate * options.adam_weight_decay);
  scalars.beta1 = static_cast<float>(options.adam_beta1);
  scalars.beta2 = static_cast<float>(options.adam_beta2);
  scalars.keep1 = static_cast<float>(1.0 - options.adam_beta1);
  scalars.keep2 = static_cast<float>(1.0 - options.adam_beta2);
  scalars.step_size = static_cast<float>(rate / (1.0 - std::pow(options.adam_beta1, t)));
  scalars.root_bias_correction2 = static_cast<float>(std::sqrt(1.0 - std::pow(options.adam_beta2, t)));
  scalars.epsilon = static_cast<float>(options.adam_epsilon);
  return scalars;
}

std::unique_ptr<AdamWEngine> make_cpu_adamw(const std::vector<TrainedParameter>& parameters,
                                            const std::vector<AdamWMemory>& memory, const OptimOptions& options) {
  return std::make_unique<CpuAdamW>(parameters, memory, options);
}

}  // namespace sdtune::train
