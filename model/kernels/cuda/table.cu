// The table of the model's kernels. The build writes sdtune_cuda_build.h: SDTUNE_CUDA_SASS ("75, 80, ...") and
// SDTUNE_CUDA_PTX.
#include <sdtune_cuda_build.h>

#include "model/core/cuda_table.h"
#include "model/kernels/cuda/launchers.cuh"

namespace {

constexpr std::int32_t kArchitectures[] = {SDTUNE_CUDA_SASS, 0};

constexpr sdtune::model::CudaTable kTable{
    sdtune::model::kCudaTableVersion,
    kArchitectures,
    SDTUNE_CUDA_PTX,
    sdtune::model::launch_philox_normal,
    sdtune::model::group_norm_workspace,
    sdtune::model::launch_group_norm_forward,
    sdtune::model::launch_group_norm_backward,
    sdtune::model::launch_geglu_forward,
    sdtune::model::launch_geglu_backward,
};

}  // namespace

extern "C" __attribute__((visibility("default"))) const sdtune::model::CudaTable* sdtune_cuda_table() {
  return &kTable;
}
