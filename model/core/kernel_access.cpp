#include "model/core/kernel_access.h"

#include <cstdlib>
#include <string>

#include "model/base/error.h"
#include "model/core/cuda_library.h"
#include "model/core/kernel_proof.h"

namespace sdtune::model {

namespace {

const CudaTable* stand_in = nullptr;

}  // namespace

bool uses_our_kernels() {
  const char* given = std::getenv("SDTUNE_KERNELS");
  const std::string word = given == nullptr ? "" : given;
  if (word.empty()) return true;
  if (word == "library") return false;
  throw ConfigError("SDTUNE_KERNELS", "no such choice of kernels (got " + word + "; allowed: library)",
                    "without the variable our own kernels run on a GPU");
}

const CudaTable* kernel_table(torch::Device device) {
  if (stand_in == nullptr && !device.is_cuda()) return nullptr;
  if (!uses_our_kernels()) return nullptr;
  return stand_in != nullptr ? stand_in : &cuda_table();
}

CudaStream kernel_stream(torch::Device device) {
  return device.is_cuda() ? current_cuda_stream(device) : CudaStream();
}

CudaType cuda_type(torch::ScalarType dtype) {
  switch (dtype) {
    case torch::kFloat32:
      return CudaType::kFloat32;
    case torch::kBFloat16:
      return CudaType::kBFloat16;
    case torch::kFloat16:
      return CudaType::kFloat16;
    default:
      TORCH_CHECK(false, "kernels take no numbers of type ", dtype);
  }
}

KernelStandIn::KernelStandIn(const CudaTable* table) {
  TORCH_CHECK(stand_in == nullptr, "KernelStandIn: one at a time");
  stand_in = table;
  forget_proofs();
}

KernelStandIn::~KernelStandIn() {
  stand_in = nullptr;
  forget_proofs();
}

bool KernelStandIn::is_active() {
  return stand_in != nullptr;
}

}  // namespace sdtune::model
