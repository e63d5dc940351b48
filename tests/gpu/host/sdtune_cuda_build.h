// What the build writes for a GPU (cmake/SdtuneCuda.cmake): here there is none.
#pragma once

#define SDTUNE_CUDA_SASS 0
#define SDTUNE_CUDA_PTX 0
