// What every optimizer is to the rest of training: parameters by name, float32 masters of them, and states that a
// checkpoint keeps by name.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "train/config/optim_options.h"
#include "train/optim/optimizer_shard.h"
#include "train/optim/trained_parameter.h"

namespace sdtune::train {

using NamedStates = std::vector<std::pair<std::string, torch::Tensor>>;

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // One update. rates: [groups] float64; gradient_factor: scalar float32 that every gradient is multiplied by (clipping
  // and loss scale). Both on the device. A factor that is not finite leaves everything as it was: a skipped step. At a
  // rate of 0 a group's weights stay as they are.
  void step(const torch::Tensor& rates, const torch::Tensor& gradient_factor);

  // Updates applied so far: scalar int64 on the device.
  const torch::Tensor& updates() const { return updates_; }
  void set_updates(std::int64_t updates) { updates_.fill_(updates); }

  const std::vector<TrainedParameter>& parameters() const { return parameters_; }
  // float32, in the order of parameters(); the weight itself where that is float32. Whoever writes to a master calls
  // refresh_weights() afterwards.
  const std::vector<torch::Tensor>& masters() const { return masters_; }
  void refresh_weights();

  // All that the next step depends on besides masters and updates(), each under the parameter's name and one of its
  // own: "unet.conv_in.weight.exp_avg". Loading writes into these tensors.
  virtual NamedStates states() const = 0;

 protected:
  // The masters start from the weights as they are. Gradients are filled in before step(), each in memory that may be
  // another one in every step: they are tensors without memory at first.
  explicit Optimizer(std::vector<TrainedParameter> parameters);

  // One update of masters and weights, which advances `updates` by one; nothing where the factor is not finite.
  virtual void update(const torch::Tensor& rates, const torch::Tensor& gradient_factor, torch::Tensor& updates) = 0;

 private:
  std::vector<TrainedParameter> parameters_;
  std::vector<torch::Tensor> masters_;
  torch::Tensor updates_;
};

// The optimizer that `options` name. Throws ConfigError for options that contradict each other. on_device: a step reads
// no number on the host, as it is on a GPU in any case; for tests on a CPU. With a `shard` the parameters are those of
// this rank, and every rank's optimizer takes the same steps at the same time.
std::unique_ptr<Optimizer> make_optimizer(std::vector<TrainedParameter> parameters, const OptimOptions& options,
                                          bool on_device = false, const OptimizerShard* shard = nullptr);

// Zeros of the parameters' shapes and memory formats, float32, as views of one allocation.
std::vector<torch::Tensor> zeros_like_all(const std::vector<TrainedParameter>& parameters);

// A step's numbers on the host, for optimizers that are written in LibTorch's operators, on a CPU (device_step.h says
// what is done on a GPU).
struct HostStep {
  std::vector<double> rates;
  float gradient_factor = 1;
};

// Unset where the factor is not finite: the step is to be skipped.
std::optional<HostStep> read_step(const torch::Tensor& rates, const torch::Tensor& gradient_factor);

}  // namespace sdtune::train
