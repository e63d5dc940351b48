// How the optimizers reach their CUDA kernels, as model/core/kernel_access.h does for the model's.
#pragma once

#include <torch/types.h>

#include <vector>

#include "model/core/device_copy.h"
#include "train/optim/optimizer_table.h"

namespace sdtune::train {

// The kernels for tensors on this device; null on a CPU and with SDTUNE_KERNELS=library. Throws ConfigError when the
// library of our kernels is of another version.
const OptimizerTable* optimizer_kernels(torch::Device device);

// The chunks that parameters of these sizes are cut into.
std::vector<CudaChunk> chunks_of(const std::vector<std::int64_t>& counts);

// A list's bytes on the device; empty lists give an empty tensor.
template <typename Entry>
torch::Tensor list_on_device(const std::vector<Entry>& entries, torch::Device device) {
  const auto bytes = static_cast<std::int64_t>(entries.size() * sizeof(Entry));
  const torch::Tensor host = torch::empty({bytes}, torch::kUInt8);
  if (bytes > 0)
    std::copy_n(reinterpret_cast<const std::uint8_t*>(entries.data()), bytes, host.data_ptr<std::uint8_t>());
  return model::copy_to_device(host, device);
}

// For tests, beside model::KernelStandIn: while one lives, these functions work on CPU tensors.
class OptimizerStandIn {
 public:
  explicit OptimizerStandIn(const OptimizerTable* table);
  ~OptimizerStandIn();
  OptimizerStandIn(const OptimizerStandIn&) = delete;
  OptimizerStandIn& operator=(const OptimizerStandIn&) = delete;
};

}  // namespace sdtune::train
