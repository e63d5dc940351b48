// How AdamW's arithmetic is done on one kind of device, with moments in float32 or in 8 bits.
#pragma once

#include <torch/types.h>

#include <memory>
#include <vector>

#include "train/config/optim_options.h"
#include "train/optim/adamw_kernel.h"
#include "train/optim/trained_parameter.h"

namespace sdtune::train {

// How checkpoints call the moments, after the parameter's name: torch.optim.AdamW's words.
inline constexpr const char* kMeanSuffix = ".exp_avg";
inline constexpr const char* kSquareSuffix = ".exp_avg_sq";

// The optimizer's memory of one parameter, all float32 in the weight's memory format.
struct AdamWMemory {
  torch::Tensor master;  // the weight itself when that is float32
  torch::Tensor mean;    // exp_avg
  torch::Tensor square;  // exp_avg_sq
};

// A moment in 8 bits, in the order of the weight's shape (adamw_8bit.h).
struct CodedMoment {
  torch::Tensor codes;  // uint8 [blocks, 256]
  torch::Tensor scale;  // float32 [blocks]
};
struct CodedMemory {
  torch::Tensor master;  // float32 in the weight's memory format
  CodedMoment mean, square;
};

// What an engine updates: parameters with their memory, one each, whose moments are float32 or codes.
struct AdamWWork {
  std::vector<TrainedParameter> plain;
  std::vector<AdamWMemory> plain_memory;
  std::vector<TrainedParameter> coded;
  std::vector<CodedMemory> coded_memory;

  torch::Device device() const { return (plain.empty() ? coded : plain).front().weight.device(); }
};

// Moments of nothing yet, for each parameter and its master.
std::vector<AdamWMemory> fresh_adamw_memory(const std::vector<TrainedParameter>& parameters,
                                            const std::vector<torch::Tensor>& masters);

class AdamWEngine {
 public:
  virtual ~AdamWEngine() = default;
  // One update; `updates` (scalar int64) is advanced by one, unless gradient_factor is not finite.
  virtual void step(const torch::Tensor& rates, const torch::Tensor& gradient_factor, torch::Tensor& updates) = 0;
};

// The numbers of one update in double, as torch.optim.AdamW computes them in Python; `t` counts updates from 1.
AdamWScalars adamw_scalars(const OptimOptions& options, double rate, double t, float gradient_factor);

// The engine for the parameters' device.
std::unique_ptr<AdamWEngine> make_adamw_engine(const AdamWWork& work, const OptimOptions& options);
// One vectorised pass over memory.
std::unique_ptr<AdamWEngine> make_cpu_adamw(const AdamWWork& work, const OptimOptions& options);
// Our CUDA kernels, which never wait. Throws DeviceError where they compute other numbers than LibTorch's operators do.
std::unique_ptr<AdamWEngine> make_cuda_adamw(const AdamWWork& work, const OptimOptions& options);
// LibTorch's operators on any device, which never wait either: slow, for GPUs under SDTUNE_KERNELS=library.
std::unique_ptr<AdamWEngine> make_library_adamw(const AdamWWork& work, const OptimOptions& options);

}  // namespace sdtune::train
