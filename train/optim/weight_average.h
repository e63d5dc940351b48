// An exponential moving average of the weights (Polyak & Juditsky 1992; as used by Ho et al., "Denoising diffusion
// probabilistic models", 2020): what images are generated with and what is exported, because it is better than any
// single step's weights.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/core/device_copy.h"
#include "train/optim/optimizer.h"

namespace sdtune::train {

class WeightAverage {
 public:
  // Starts from the masters as they are. The averages live on their device, or in the machine's memory if `offload`,
  // from where they pass through a GPU one at a time.
  WeightAverage(const Optimizer& optimizer, double decay, bool offload = false);

  // After step `steps` (counted from 1). The decay warms up as diffusers' EMAModel has it: 0 at the first step, so that
  // the initial values are forgotten, then (1 + n) / (10 + n) for n = steps - 1 until it reaches `decay`. A rate group
  // that is no longer trained is `fixed`: as there, its averages become its weights. Never waits for a GPU.
  void update(std::int64_t steps, std::optional<std::int64_t> fixed = std::nullopt);

  // The averages by parameter name: float32, in the order of the optimizer's parameters. Waits for those that are on
  // their way from a GPU.
  const std::vector<std::pair<std::string, torch::Tensor>>& values() const;

 private:
  bool is_offloaded() const;
  void fix(std::int64_t group);

  const Optimizer& optimizer_;
  double decay_;
  std::vector<std::pair<std::string, torch::Tensor>> values_;
  std::vector<torch::Tensor> averages_, masters_;
  std::optional<model::QueuedWork> update_;  // the last one of offloaded averages
};

// While one lives, the trained weights are their averages.
class AveragedWeights {
 public:
  // parameters: those of the average, or more, which stay as they are. Where it throws, so do all.
  AveragedWeights(const std::vector<TrainedParameter>& parameters, const WeightAverage& average);
  ~AveragedWeights();  // the masters again
  AveragedWeights(const AveragedWeights&) = delete;
  AveragedWeights& operator=(const AveragedWeights&) = delete;

 private:
  void put_back();

  std::vector<torch::Tensor> weights_;
  std::vector<torch::Tensor> kept_;  // the weights as they are trained
};

}  // namespace sdtune::train
