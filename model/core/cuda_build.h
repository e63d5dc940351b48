// What this build can use a GPU with, known without loading any CUDA library.
#pragma once

#include <string>
#include <vector>

namespace sdtune::model {

struct CudaBuild {
  bool with_kernels = false;       // libsdtune_cuda.so was built along with the program
  int cuda = 0;                    // the CUDA of its LibTorch, 1000 * major + 10 * minor; 0 for LibTorch's CPU build
  std::vector<int> architectures;  // machine code for 75, 80, ... (10 * major + minor)
  int ptx = 0;                     // the architecture of the PTX, for GPUs that come later; 0 for none
};

// Of this program or module, by its CMake options.
const CudaBuild& cuda_build();

// "13.0" for 13000.
std::string cuda_version_text(int version);

// The oldest NVIDIA driver for this CUDA: "580" for 13.x. Source: "CUDA Toolkit, Driver, and Architecture Matrix" of
// CUDA's release notes. "" for a CUDA that is not listed here.
std::string needed_driver(int cuda);

}  // namespace sdtune::model
