# What the program knows of GPUs without loading a CUDA library (model/core/cuda_build.h): the CUDA of its LibTorch, and the
# architectures that its kernels are built for.
file(READ "${SDTUNE_TORCH_DIR}/version.py" torch_version_text)
string(REGEX MATCH "cuda: Optional\\[str\\] = '([0-9]+)\\.([0-9]+)'" unused "${torch_version_text}")
if(CMAKE_MATCH_1)
  set(SDTUNE_TORCH_CUDA_MAJOR "${CMAKE_MATCH_1}")
  math(EXPR SDTUNE_TORCH_CUDA "${CMAKE_MATCH_1} * 1000 + ${CMAKE_MATCH_2} * 10")
else()
  set(SDTUNE_TORCH_CUDA_MAJOR 0)
  set(SDTUNE_TORCH_CUDA 0)  # LibTorch's build without CUDA
endif()
if(SDTUNE_CUDA AND SDTUNE_TORCH_CUDA EQUAL 0)
  message(FATAL_ERROR "SDTUNE_CUDA=ON needs a torch with CUDA, and ${SDTUNE_TORCH_DIR} is the build without it")
endif()

# What LibTorch 2.11.0's wheels are built for (torch.cuda.get_arch_list(); tests/python/test_cuda_build.py compares).
set(SDTUNE_CUDA_RELEASE_LIST 75 80 86 90 100 120)
if(SDTUNE_CUDA_ARCHITECTURES STREQUAL "release")
  set(cuda_sass ${SDTUNE_CUDA_RELEASE_LIST})
  list(GET cuda_sass -1 cuda_ptx)  # PTX of the newest, for GPUs that come later
else()
  set(cuda_sass ${SDTUNE_CUDA_ARCHITECTURES})
  set(cuda_ptx 0)
endif()
list(JOIN cuda_sass ", " cuda_sass_text)
if(SDTUNE_CUDA)
  set(cuda_kernels_text "#define SDTUNE_CUDA_KERNELS 1\n#define SDTUNE_CUDA_SASS ${cuda_sass_text}\n#define SDTUNE_CUDA_PTX ${cuda_ptx}\n")
else()
  set(cuda_kernels_text "#define SDTUNE_CUDA_KERNELS 0\n#define SDTUNE_CUDA_SASS 0\n#define SDTUNE_CUDA_PTX 0\n")
endif()
set(cuda_build_text "#define SDTUNE_TORCH_CUDA ${SDTUNE_TORCH_CUDA}\n${cuda_kernels_text}")
# A header and no -D: nvcc splits an option's value at commas.
file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/generated/sdtune_cuda_build.h" CONTENT "${cuda_build_text}")
