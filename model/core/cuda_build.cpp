#include "model/core/cuda_build.h"

#include <sdtune_cuda_build.h>

namespace sdtune::model {

namespace {

CudaBuild describe_build() {
  CudaBuild build;
  build.cuda = SDTUNE_TORCH_CUDA;
  build.with_kernels = SDTUNE_CUDA_KERNELS == 1;
  if (build.with_kernels) build.architectures = {SDTUNE_CUDA_SASS};
  build.ptx = SDTUNE_CUDA_PTX;
  return build;
}

}  // namespace

const CudaBuild& cuda_build() {
  static const CudaBuild build = describe_build();
  return build;
}

std::string cuda_version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string needed_driver(int cuda) {
  switch (cuda / 1000) {
    case 12:
      return "525";
    case 13:
      return "580";
    default:
      return "";
  }
}

}  // namespace sdtune::model
