// NCCL's backend, part of libsdtune_cuda.so because it links libtorch_cuda.
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "train/dist/backend.h"

extern "C" __attribute__((visibility("default"))) c10d::Backend* sdtune_nccl_backend(
    const sdtune::train::BackendRequest& request) {
  auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = request.timeout;
  return c10::make_intrusive<c10d::ProcessGroupNCCL>(request.store, static_cast<int>(request.rank),
                                                     static_cast<int>(request.world_size), options)
      .release();
}
