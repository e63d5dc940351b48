#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "train/optim/adamw_8bit_kernel.h"
#include "train/optim/adamw_engine.h"
#include "train/optim/adamw_kernel.h"
#include "train/optim/adamw_library.h"
#include "train/optim/number_run.h"

namespace sdtune::train {

namespace {

template <typename Run>
struct GroupedRun {
  Run run;
  std::int64_t rate_group;
  torch::Tensor gradient;   // of the whole parameter: where its memory is, it says anew in each step
  std::int64_t offset = 0;  // of the run in it
};

template <typename Run>
void find_gradients(std::vector<GroupedRun<Run>>& runs) {
  for (GroupedRun<Run>& part : runs) part.run.gradient = number_run(part.gradient, part.offset);
}

static_assert(kRunLength % kScaledBlock == 0);

class CpuAdamW : public AdamWEngine {
 public:
  CpuAdamW(const AdamWWork& work, const OptimOptions& options) : work_(work), options_(options), codes_(work.device()) {
    for (std::size_t i = 0; i < work.plain.size(); ++i) append_runs(work.plain[i], work.plain_memory[i]);
    for (std::size_t i = 0; i < work.coded.size(); ++i) {
      if (work.coded[i].weight.is_contiguous()) {
        append_runs(work.coded[i], work.coded_memory[i]);
      } else {
        without_runs_.push_back(i);
      }
    }
  }

  void step(const torch::Tensor& rates, const torch::Tensor& gradient_factor, torch::Tensor& updates) override {
    const float factor = *gradient_factor.const_data_ptr<float>();
    if (!std::isfinite(factor)) return;
    std::optional<LibraryStep> by_operators;
    if (without_runs_.empty()) {
      updates.add_(1);
    } else {
      by_operators.emplace(options_, rates, gradient_factor, updates);  // which adds one as well
    }
    const auto t = static_cast<double>(*updates.const_data_ptr<std::int64_t>());
    std::vector<AdamWScalars> scalars;
    for (std::int64_t group = 0; group < rates.numel(); ++group) {
      scalars.push_back(adamw_scalars(options_, rates.const_data_ptr<double>()[group], t, factor));
    }
    find_gradients(runs_);
    find_gradients(coded_runs_);
    at::parallel_for(0, static_cast<std::int64_t>(runs_.size()), 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) adamw_update(runs_[i].run, scalars[runs_[i].rate_group]);
    });
    at::parallel_for(0, static_cast<std::int64_t>(coded_runs_.size()), 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        adamw_8bit_update(coded_runs_[i].run, scalars[coded_runs_[i].rate_group]);
      }
    });
    for (const std::size_t i : without_runs_) {
      update_by_operators(*by_operators, work_.coded[i], work_.coded_memory[i], codes_);
    }
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

  void append_runs(const TrainedParameter& parameter, const CodedMemory& memory) {
    const std::int64_t total = parameter.weight.numel();
    for (std::int64_t offset = 0; offset < total; offset += kRunLength) {
      AdamW8bitRun run;
      run.master = memory.master.data_ptr<float>() + offset;
      run.moments = {memory.mean.codes.data_ptr<std::uint8_t>() + offset,
                     memory.square.codes.data_ptr<std::uint8_t>() + offset,
                     memory.mean.scale.data_ptr<float>() + offset / kScaledBlock,
                     memory.square.scale.data_ptr<float>() + offset / kScaledBlock};
      run.weight = number_run(parameter.weight, offset);
      run.count = std::min(kRunLength, total - offset);
      coded_runs_.push_back({run, parameter.rate_group, parameter.gradient, offset});
    }
  }

  AdamWWork work_;
  OptimOptions options_;
  CodeTensors codes_;
  std::vector<GroupedRun<AdamWRun>> runs_;
  std::vector<GroupedRun<AdamW8bitRun>> coded_runs_;
  std::vector<std::size_t> without_runs_;  // coded ones whose memory is not in the order of the shape
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

std::unique_ptr<AdamWEngine> make_cpu_adamw(const AdamWWork& work, const OptimOptions& options) {
  return std::make_unique<CpuAdamW>(work, options);
}

}  // namespace sdtune::train
