#include "train/optim/optimizer_kernels.h"

#include "model/base/error.h"
#include "model/core/cuda_library.h"
#include "model/core/kernel_access.h"
#include "model/core/kernel_proof.h"

namespace sdtune::train {

namespace {

const OptimizerTable* stand_in = nullptr;

const OptimizerTable* loaded_table() {
  using GetTable = const OptimizerTable* (*)();
  static const OptimizerTable* table =
      reinterpret_cast<GetTable>(model::cuda_symbol(kOptimizerTableSymbol))();  // NOLINT(*-reinterpret-cast)
  if (table->version != kOptimizerTableVersion) {
    throw ConfigError("libsdtune_cuda.so", "is of another version of sdtune", "build both together");
  }
  return table;
}

}  // namespace

const OptimizerTable* optimizer_kernels(torch::Device device) {
  if (stand_in == nullptr && !device.is_cuda()) return nullptr;
  if (!model::uses_our_kernels()) return nullptr;
  return stand_in != nullptr ? stand_in : loaded_table();
}

std::vector<CudaChunk> chunks_of(const std::vector<std::int64_t>& counts) {
  std::vector<CudaChunk> chunks;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    for (std::int64_t begin = 0; begin < counts[i]; begin += kChunkNumbers) {
      chunks.push_back({static_cast<std::int32_t>(i), static_cast<std::int32_t>(begin / kChunkNumbers)});
    }
  }
  return chunks;
}

OptimizerStandIn::OptimizerStandIn(const OptimizerTable* table) {
  stand_in = table;
  model::forget_proofs();
}

OptimizerStandIn::~OptimizerStandIn() {
  stand_in = nullptr;
  model::forget_proofs();
}

}  // namespace sdtune::train
