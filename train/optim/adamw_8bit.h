// AdamW whose moments take 8 bits a number: Dettmers et al., "8-bit optimizers via block-wise quantization" (ICLR
// 2022). Each block of 256 numbers, in the order of the parameter's shape, is divided by its largest magnitude and kept
// as the nearest entries of the dynamic data types (dynamic_code.h). As in bitsandbytes, parameters of fewer than 4096
// numbers keep float32 moments.
#pragma once

#include <torch/types.h>

#include <memory>
#include <vector>

#include "train/optim/adamw_8bit_kernel.h"
#include "train/optim/adamw_engine.h"
#include "train/optim/optimizer.h"

namespace sdtune::train {

// On the CPU one vectorised pass over the memory; elsewhere, and for memory formats other than that of the shape,
// LibTorch's operators with the same numbers to rounding.
class AdamW8bit : public Optimizer {
 public:
  static constexpr std::int64_t kLeastNumbers = 4096;  // of a parameter whose moments are kept in 8 bits

  AdamW8bit(std::vector<TrainedParameter> parameters, const OptimOptions& options);

  // Of a small parameter what AdamW keeps. Of the others exp_avg and exp_avg_sq, uint8 [blocks, 256] with the last
  // block filled up, and exp_avg.scale and exp_avg_sq.scale, float32 [blocks].
  NamedStates states() const override;

 private:
  struct Coded {
    torch::Tensor codes;  // uint8 [blocks, 256]
    torch::Tensor scale;  // float32 [blocks]
  };
  struct Large {
    std::size_t index = 0;  // into parameters()
    Coded mean, square;
  };
  struct GroupedRun {
    AdamW8bitRun run;
    std::int64_t rate_group = 0;
    torch::Tensor gradient;   // of the whole parameter: where its memory is, it says anew in each step
    std::int64_t offset = 0;  // of the run in it
  };

  void update(const torch::Tensor& rates, const torch::Tensor& gradient_factor, torch::Tensor& updates) override;
  void add_large(std::size_t index);
  void append_runs(const Large& large);
  void update_by_operators(const Large& large, const AdamWScalars& scalars);

  OptimOptions options_;
  std::vector<std::size_t> small_indices_;
  std::vector<AdamWMemory> small_memory_;
  std::unique_ptr<AdamWEngine> small_;  // null without small parameters
  std::vector<Large> large_;
  std::vector<GroupedRun> runs_;                 // of the large parameters that take the vectorised pass
  std::vector<std::size_t> without_runs_;        // the others, as indices into large_
  torch::Tensor mean_values_, square_values_;    // the entries of the two data types, float32 [256] on the device
  torch::Tensor mean_borders_, square_borders_;  // between them, [255]
};

}  // namespace sdtune::train
