# libsdtune_cuda.so: our kernels and the NCCL backend. Loaded at run time (model/core/device.cpp), never linked, so this
# is the only part that needs a CUDA compiler. nvcc is looked for in CUDACXX, PATH, /usr/local/cuda and the venv's wheels.
set(SDTUNE_CUDA_RELEASE_LIST 75 80 86 90 100 120)  # what LibTorch 2.11.0's wheel is built for

get_filename_component(site_packages "${SDTUNE_TORCH_DIR}/.." ABSOLUTE)
if(NOT CMAKE_CUDA_COMPILER)
  find_program(SDTUNE_NVCC nvcc HINTS "$ENV{CUDACXX}" ENV PATH PATHS /usr/local/cuda/bin "${site_packages}/nvidia/cu13/bin")
  if(DEFINED ENV{CUDACXX})
    set(SDTUNE_NVCC "$ENV{CUDACXX}")
  endif()
  if(NOT SDTUNE_NVCC)
    message(FATAL_ERROR "SDTUNE_CUDA=ON needs nvcc 13.0: install a toolkit, set CUDACXX, or pip install -r requirements/cuda.txt")
  endif()
  set(CMAKE_CUDA_COMPILER "${SDTUNE_NVCC}")
endif()

if(SDTUNE_CUDA_ARCHITECTURES STREQUAL "release")
  set(cuda_sass ${SDTUNE_CUDA_RELEASE_LIST})
  list(GET cuda_sass -1 cuda_ptx)  # PTX of the newest, for GPUs that come later
  list(TRANSFORM cuda_sass APPEND "-real" OUTPUT_VARIABLE CMAKE_CUDA_ARCHITECTURES)
  list(APPEND CMAKE_CUDA_ARCHITECTURES "${cuda_ptx}-virtual")
else()
  set(cuda_sass ${SDTUNE_CUDA_ARCHITECTURES})
  set(cuda_ptx 0)
  list(TRANSFORM cuda_sass APPEND "-real" OUTPUT_VARIABLE CMAKE_CUDA_ARCHITECTURES)
endif()
list(JOIN cuda_sass ", " cuda_sass_text)
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
enable_language(CUDA)
if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 13.0 OR CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 14)
  message(FATAL_ERROR "nvcc ${CMAKE_CUDA_COMPILER_VERSION}: LibTorch's wheel is built with CUDA 13.0, and nvcc 13.x is needed")
endif()
find_path(SDTUNE_CUDA_INCLUDE cuda_runtime.h HINTS ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES}
          PATHS "${site_packages}/nvidia/cu13/include" REQUIRED)
find_path(SDTUNE_NCCL_INCLUDE nccl.h HINTS "${site_packages}/nvidia/nccl/include" REQUIRED)

file(GLOB cuda_kernels CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/model/kernels/cuda/*.cu"
     "${PROJECT_SOURCE_DIR}/train/optim/cuda/*.cu")
add_library(sdtune_cuda SHARED ${cuda_kernels} "${PROJECT_SOURCE_DIR}/train/dist/cuda/nccl_backend.cpp")
target_compile_definitions(sdtune_cuda PRIVATE USE_C10D_NCCL)
# A header and no -D: nvcc splits an option's value at commas.
file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/cuda/cuda_architectures.h" CONTENT
     "#define SDTUNE_CUDA_SASS ${cuda_sass_text}\n#define SDTUNE_CUDA_PTX ${cuda_ptx}\n")
target_compile_options(sdtune_cuda PRIVATE
  "$<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings;-Xcompiler=-Wall,-Wextra,-Werror>")
target_include_directories(sdtune_cuda PRIVATE "${PROJECT_SOURCE_DIR}" "${CMAKE_BINARY_DIR}/cuda")
target_include_directories(sdtune_cuda SYSTEM PRIVATE
  "${SDTUNE_TORCH_DIR}/include" "${SDTUNE_TORCH_DIR}/include/torch/csrc/api/include" "${SDTUNE_CUDA_INCLUDE}"
  "${SDTUNE_NCCL_INCLUDE}")
# Equal bits on host and device need every product rounded by itself (draw_counter.h, adamw_kernel.h).
set_source_files_properties("${PROJECT_SOURCE_DIR}/model/kernels/cuda/philox_normal.cu"
                            "${PROJECT_SOURCE_DIR}/train/optim/cuda/adamw.cu"
                            "${PROJECT_SOURCE_DIR}/train/optim/cuda/adamw_8bit.cu"
                            TARGET_DIRECTORY sdtune_cuda PROPERTIES COMPILE_OPTIONS "-fmad=false")
# The runtime is the one that libtorch_cuda has loaded by then; its soname is enough.
set_target_properties(sdtune_cuda PROPERTIES CUDA_RUNTIME_LIBRARY Shared CXX_VISIBILITY_PRESET hidden
                      LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib" SKIP_BUILD_RPATH ON)
foreach(library torch_cuda torch_cpu c10_cuda c10)
  target_link_libraries(sdtune_cuda PRIVATE "${SDTUNE_TORCH_DIR}/lib/lib${library}.so")
endforeach()
target_link_options(sdtune_cuda PRIVATE "LINKER:--allow-shlib-undefined")
install(TARGETS sdtune_cuda LIBRARY DESTINATION lib)

# Compares the kernels with loops on the CPU; runs on a bare machine with a GPU, without LibTorch. tests/gpu/host builds the
# same for the CPU.
file(GLOB kernel_checks CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/gpu/check*.cpp")
add_executable(check_kernels EXCLUDE_FROM_ALL ${kernel_checks} ${cuda_kernels}
               "${PROJECT_SOURCE_DIR}/train/optim/dynamic_code.cpp")
target_include_directories(check_kernels PRIVATE "${PROJECT_SOURCE_DIR}" "${CMAKE_BINARY_DIR}/cuda")
target_include_directories(check_kernels SYSTEM PRIVATE "${SDTUNE_CUDA_INCLUDE}")
set_target_properties(check_kernels PROPERTIES CUDA_RUNTIME_LIBRARY Static UNITY_BUILD OFF
                      RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/gpu")
