// For tests with LibTorch: our CUDA kernels compiled for the CPU (tests/gpu/host), so that CPU tensors stand for a
// GPU's.
#pragma once

#include "model/core/kernel_access.h"
#include "train/optim/optimizer_kernels.h"

extern "C" const sdtune::model::CudaTable* sdtune_cuda_table();
extern "C" const sdtune::train::OptimizerTable* sdtune_optimizer_table();

namespace sdtune::test {

// Both tables, which a test may break before it builds the scope.
struct Tables {
  model::CudaTable model = *sdtune_cuda_table();
  train::OptimizerTable optim = *sdtune_optimizer_table();
};

class StandInScope {
 public:
  explicit StandInScope(const Tables& tables) : model_(&tables.model), optim_(&tables.optim) {}

 private:
  model::KernelStandIn model_;
  train::OptimizerStandIn optim_;
};

// An environment variable for as long as this lives.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Environment() { unsetenv(name_); }
  Environment(const Environment&) = delete;

 private:
  const char* name_;
};

}  // namespace sdtune::test
