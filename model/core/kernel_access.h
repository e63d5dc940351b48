// Which of our CUDA kernels run, and on which stream.
#pragma once

#include <torch/types.h>

#include "model/core/cuda_table.h"

namespace sdtune::model {

// The environment variable SDTUNE_KERNELS: where it is not set or empty our kernels run on a GPU; "library" leaves all
// to LibTorch's operators. Throws ConfigError for another word.
bool uses_our_kernels();

// The kernels for tensors on this device; null on a CPU and with SDTUNE_KERNELS=library.
const CudaTable* kernel_table(torch::Device device);

// The stream that LibTorch uses there now.
CudaStream kernel_stream(torch::Device device);

CudaType cuda_type(torch::ScalarType dtype);  // float32, bfloat16 or float16

// For tests: while one lives, CPU tensors stand for those of a GPU, and the functions of `table` work on their memory.
// What kernels have proved of themselves (kernel_proof.h) is forgotten at its begin and end.
class KernelStandIn {
 public:
  explicit KernelStandIn(const CudaTable* table);
  ~KernelStandIn();
  KernelStandIn(const KernelStandIn&) = delete;
  KernelStandIn& operator=(const KernelStandIn&) = delete;

  static bool is_active();
};

}  // namespace sdtune::model
