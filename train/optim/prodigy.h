// Prodigy (Mishchenko & Defazio, "Prodigy: an expeditiously adaptive parameter-free learner", ICML 2024): AdamW that
// finds its own step size d, from how well the gradients agree with the way gone since the start. One d for all
// parameters; the learning rate multiplies it and is best left at 1. The numbers are those of its authors' prodigyopt.
#pragma once

#include <torch/types.h>

#include <optional>
#include <vector>

#include "train/optim/adamw_engine.h"
#include "train/optim/optimizer.h"

namespace sdtune::train {

class DeviceStep;

// The numbers of a step, float64 on the device.
struct ProdigyDeviceStep {
  torch::Tensor d, count, rate;  // scalars
  torch::Tensor active;          // [groups] bool: their parameters take part
};

// A group whose rate is 0 takes no part in d and stays as it is; the rates of all others must be equal.
class Prodigy : public Optimizer {
 public:
  // Takes the adam_ options (decay decoupled) and the prodigy_ ones.
  // on_device: with no number read by the host, which on a CPU costs more and on a GPU does not wait.
  // Of a shard, d is that of all ranks' parameters: what each adds is exchanged and summed in one order, so that every
  // rank finds the bits that one optimizer of all would.
  Prodigy(std::vector<TrainedParameter> parameters, const OptimOptions& options, bool on_device,
          const OptimizerShard* shard);

  // Of each parameter, float32: exp_avg, exp_avg_sq, s (the weighted sum of gradients) and p0 (its start). Of all
  // together prodigy.estimate, float64 [4]: d, the largest estimate so far, its numerator, and the updates
  // that it was made from.
  NamedStates states() const override;

 private:
  enum Estimate : std::int64_t { kD, kLargest, kNumerator, kCount, kEstimateNumbers };
  struct Memory {
    AdamWMemory adam;
    torch::Tensor sum, start;
  };

  void update(const torch::Tensor& rates, const torch::Tensor& gradient_factor, torch::Tensor& updates) override;
  void update_on_device(const torch::Tensor& rates, const torch::Tensor& gradient_factor, torch::Tensor& updates);
  ProdigyDeviceStep begin_on_device(const DeviceStep& step) const;
  void take_gradient_on_device(std::size_t index, const DeviceStep& step, const ProdigyDeviceStep& now,
                               torch::Tensor& terms);
  // What each parameter of all ranks adds to numerator and denominator of the estimate: [2, all] float64, to be filled
  // in for own ones.
  torch::Tensor empty_terms(torch::Device device) const;
  // The column of a parameter of this optimizer.
  std::int64_t column_of(std::size_t index) const;
  void exchange(const torch::Tensor& terms) const;
  // Takes one parameter's gradient in at a step of `rate`, and fills in its column of the terms: the agreement of
  // gradient and way, not yet weighted, and the size of its sum.
  void take_gradient(std::size_t index, float gradient_factor, double rate, torch::Tensor& terms);
  // The rate of all parts that are trained, on any rank; 0 if none is.
  double rate_of(const HostStep& step) const;

  OptimOptions options_;
  bool on_device_;
  std::optional<OptimizerShard> shard_;
  std::vector<std::int64_t> rate_groups_;  // of all parameters, on any rank
  double beta3_;
  std::vector<Memory> memory_;
  torch::Tensor estimate_;
};

}  // namespace sdtune::train
