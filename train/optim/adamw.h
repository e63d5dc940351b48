// AdamW (Loshchilov & Hutter, "Decoupled weight decay regularization", 2019) with torch.optim.AdamW's numbers, over
// float32 masters: one pass reads the gradient, updates master and moments, and writes the weight in its own dtype.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "train/optim/adamw_engine.h"
#include "train/optim/optim_options.h"
#include "train/optim/trained_parameter.h"

namespace sdtune::train {

class AdamW {
 public:
  // The masters start from the weights as they are. Gradients are filled in before step(); their memory stays the same.
  AdamW(std::vector<TrainedParameter> parameters, const OptimOptions& options);

  // One update. rates: [groups] float64; gradient_factor: scalar float32 that every gradient is multiplied by (clipping
  // and loss scale). Both on the device. A factor that is not finite leaves everything as it was: a skipped step.
  void step(const torch::Tensor& rates, const torch::Tensor& gradient_factor);

  // Updates applied so far: scalar int64 on the device, the t of the bias correction.
  const torch::Tensor& updates() const { return updates_; }
  void set_updates(std::int64_t updates) { updates_.fill_(updates); }

  const std::vector<TrainedParameter>& parameters() const { return parameters_; }
  // In the order of parameters(). Whoever writes to a master calls refresh_weights() afterwards.
  const std::vector<AdamWMemory>& memory() const { return memory_; }
  void refresh_weights();

 private:
  std::vector<TrainedParameter> parameters_;
  std::vector<AdamWMemory> memory_;
  torch::Tensor updates_;
  std::unique_ptr<AdamWEngine> engine_;
};

}  // namespace sdtune::train
