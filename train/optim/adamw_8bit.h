// AdamW whose moments take 8 bits a number: Dettmers et al., "8-bit optimizers via block-wise quantization" (ICLR
// 2022). Each block of 256 numbers, in the order of the parameter's shape, is divided by its largest magnitude and kept
// as the nearest entries of the dynamic data types (dynamic_code.h). As in bitsandbytes, parameters of fewer than 4096
// numbers keep float32 moments.
#pragma once

#include <torch/types.h>

#include <memory>
#include <vector>

#include "train/optim/adamw_engine.h"
#include "train/optim/optimizer.h"

namespace sdtune::train {

// On the CPU one vectorised pass over the memory, on a GPU one of our kernels, both with the same codes. Memory formats
// other than that of the shape take LibTorch's operators on the CPU, with the same numbers to rounding.
class AdamW8bit : public Optimizer {
 public:
  static constexpr std::int64_t kLeastNumbers = 4096;  // of a parameter whose moments are kept in 8 bits

  AdamW8bit(std::vector<TrainedParameter> parameters, const OptimOptions& options);

  // Of a small parameter what AdamW keeps. Of the others exp_avg and exp_avg_sq, uint8 [blocks, 256] with the last
  // block filled up, and exp_avg.scale and exp_avg_sq.scale, float32 [blocks].
  NamedStates states() const override;

 private:
  void update(const torch::Tensor& rates, const torch::Tensor& gradient_factor, torch::Tensor& updates) override;

  AdamWWork work_;  // small parameters, whose moments are plain, and large ones
  std::unique_ptr<AdamWEngine> engine_;
};

}  // namespace sdtune::train
