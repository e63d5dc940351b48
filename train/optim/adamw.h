// AdamW (Loshchilov & Hutter, "Decoupled weight decay regularization", 2019) with torch.optim.AdamW's numbers, over
// float32 masters: one pass reads the gradient, updates master and moments, and writes the weight in its own dtype.
#pragma once

#include <torch/types.h>

#include <memory>
#include <vector>

#include "train/optim/adamw_engine.h"
#include "train/optim/optimizer.h"

namespace sdtune::train {

// Never reads the device: on a GPU rates, bias corrections and the decision to skip stay there.
class AdamW : public Optimizer {
 public:
  AdamW(std::vector<TrainedParameter> parameters, const OptimOptions& options);

  // exp_avg and exp_avg_sq of each parameter, float32 in the weight's memory format.
  NamedStates states() const override;

 private:
  void update(const torch::Tensor& rates, const torch::Tensor& gradient_factor, torch::Tensor& updates) override;

  std::vector<AdamWMemory> memory_;
  std::unique_ptr<AdamWEngine> engine_;
};

}  // namespace sdtune::train
