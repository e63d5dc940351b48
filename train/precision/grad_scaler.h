// Dynamic loss scaling for float16 (Micikevicius et al., "Mixed precision training", ICLR 2018), with the constants of
// torch.amp.GradScaler: half the scale after a step with non-finite gradients, twice after 2000 good ones in a row.
#pragma once

#include <torch/types.h>

#include <cstdint>

namespace sdtune::train {

// What a checkpoint keeps of it.
struct GradScalerState {
  double scale = 1;
  std::int64_t good_steps = 0;  // since the scale last changed
};

// Lives on the device and is never read by the host during training.
class GradScaler {
 public:
  // Disabled (float32, bfloat16), the scale is 1 and stays so.
  GradScaler(bool enabled, torch::Device device);

  // Scalar float32 that the loss is multiplied by.
  const torch::Tensor& scale() const { return scale_; }
  bool enabled() const { return enabled_; }

  // After a step whose gradients' norm (scalar float32) was finite or not.
  void update(const torch::Tensor& norm);

  GradScalerState state() const;  // reads the device
  void load(const GradScalerState& state);

 private:
  bool enabled_;
  torch::Tensor scale_;
  torch::Tensor good_steps_;  // scalar int32
};

}  // namespace sdtune::train
