// AdamW in LibTorch's operators: the arithmetic of adamw_update (adamw_kernel.cpp) with every value on the device, so
// that nothing waits. A skipped step writes back what was there.
#pragma once

#include <torch/types.h>

#include "train/config/optim_options.h"
#include "train/optim/adamw_engine.h"

namespace sdtune::train {

// The values of one step, scalars on the device.
struct LibraryStep {
  LibraryStep(const OptimOptions& optim_options, const torch::Tensor& rates, const torch::Tensor& gradient_factor,
              torch::Tensor& updates);

  const OptimOptions& options;
  torch::Tensor factor, finite;         // float32, bool
  torch::Tensor decays, step_sizes;     // float32 [rate groups]
  torch::Tensor root_bias_correction2;  // float32
};

void update_by_operators(const LibraryStep& step, const TrainedParameter& parameter, const AdamWMemory& memory);

// Both data types of 8-bit moments as tensors: values float32 [256] and borders between them [255].
struct CodeTensors {
  explicit CodeTensors(torch::Device device);
  torch::Tensor mean_values, square_values, mean_borders, square_borders;
};
void update_by_operators(const LibraryStep& step, const TrainedParameter& parameter, const CodedMemory& memory,
                         const CodeTensors& codes);

// The moment of nothing yet for `count` numbers.
enum class CodedKind { kMean, kSquare };
CodedMoment fresh_coded_moment(std::int64_t count, CodedKind kind, torch::Device device);

}  // namespace sdtune::train
