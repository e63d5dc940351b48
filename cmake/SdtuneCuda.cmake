# libsdtune_cuda.so: our kernels and the NCCL backend. Loaded at run time (model/core/device.cpp), never linked, so this
# is the only part that needs a CUDA compiler. nvcc is looked for in CUDACXX, PATH, /usr/local/cuda and the venv's wheels.
get_filename_component(site_packages "${SDTUNE_TORCH_DIR}/.." ABSOLUTE)
# Of the toolkits at hand, the first whose CUDA has LibTorch's major version.
if(NOT CMAKE_CUDA_COMPILER)
  set(unfit "")
  foreach(candidate "$ENV{CUDACXX}" nvcc /usr/local/cuda/bin/nvcc "${site_packages}/nvidia/cu${SDTUNE_TORCH_CUDA_MAJOR}/bin/nvcc")
    unset(found_nvcc CACHE)
    if(NOT candidate STREQUAL "")
      find_program(found_nvcc "${candidate}")
    endif()
    if(NOT found_nvcc)
      continue()
    endif()
    execute_process(COMMAND "${found_nvcc}" --version OUTPUT_VARIABLE nvcc_text ERROR_QUIET)
    string(REGEX MATCH "release ([0-9]+)\\.([0-9]+)" nvcc_release "${nvcc_text}")
    if(CMAKE_MATCH_1 EQUAL SDTUNE_TORCH_CUDA_MAJOR)
      set(CMAKE_CUDA_COMPILER "${found_nvcc}")
      break()
    endif()
    string(APPEND unfit "${found_nvcc} is ${nvcc_release}; ")
  endforeach()
  if(NOT CMAKE_CUDA_COMPILER)
    message(FATAL_ERROR "SDTUNE_CUDA=ON needs nvcc ${SDTUNE_TORCH_CUDA_MAJOR}.x, as LibTorch is built with it (${unfit}none other was found): "
      "install that toolkit, set CUDACXX, or pip install -r requirements/cuda.txt")
  endif()
endif()

# The wheels' nvcc looks for its libraries in lib64, and they lie in lib, the shared one without the name that linkers look for.
set(wheel_toolkit "${site_packages}/nvidia/cu${SDTUNE_TORCH_CUDA_MAJOR}")
if(CMAKE_CUDA_COMPILER STREQUAL "${wheel_toolkit}/bin/nvcc")
  set(wheel_links "${CMAKE_BINARY_DIR}/cuda_wheel")
  file(MAKE_DIRECTORY "${wheel_links}")
  foreach(library libcudadevrt.a libcudart_static.a)
    file(CREATE_LINK "${wheel_toolkit}/lib/${library}" "${wheel_links}/${library}" SYMBOLIC)
  endforeach()
  file(CREATE_LINK "${wheel_toolkit}/lib/libcudart.so.${SDTUNE_TORCH_CUDA_MAJOR}" "${wheel_links}/libcudart.so" SYMBOLIC)
  string(APPEND CMAKE_CUDA_FLAGS_INIT " \"-L${wheel_links}\"")
endif()

list(TRANSFORM cuda_sass APPEND "-real" OUTPUT_VARIABLE CMAKE_CUDA_ARCHITECTURES)
if(NOT cuda_ptx EQUAL 0)
  list(APPEND CMAKE_CUDA_ARCHITECTURES "${cuda_ptx}-virtual")
endif()
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
enable_language(CUDA)
if(NOT CMAKE_CUDA_COMPILER_VERSION MATCHES "^${SDTUNE_TORCH_CUDA_MAJOR}\\.")
  message(FATAL_ERROR "nvcc ${CMAKE_CUDA_COMPILER_VERSION}: LibTorch is built with CUDA ${SDTUNE_TORCH_CUDA_MAJOR}, and nvcc ${SDTUNE_TORCH_CUDA_MAJOR}.x is needed")
endif()
find_path(SDTUNE_CUDA_INCLUDE cuda_runtime.h HINTS ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES}
          PATHS "${site_packages}/nvidia/cu${SDTUNE_TORCH_CUDA_MAJOR}/include" REQUIRED)
find_path(SDTUNE_NCCL_INCLUDE nccl.h HINTS "${site_packages}/nvidia/nccl/include" REQUIRED)

file(GLOB cuda_kernels CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/model/kernels/cuda/*.cu"
     "${PROJECT_SOURCE_DIR}/train/optim/cuda/*.cu")
add_library(sdtune_cuda SHARED ${cuda_kernels} "${PROJECT_SOURCE_DIR}/model/core/cuda/captured_graph.cpp"
            "${PROJECT_SOURCE_DIR}/train/dist/cuda/nccl_backend.cpp")
target_compile_definitions(sdtune_cuda PRIVATE USE_C10D_NCCL)
set(cuda_warnings "-Xcompiler=-Wall,-Wextra")
if(SDTUNE_WERROR)
  set(cuda_warnings "-Werror=all-warnings;-Xcompiler=-Wall,-Wextra,-Werror")
endif()
target_compile_options(sdtune_cuda PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:${cuda_warnings}>")
target_include_directories(sdtune_cuda PRIVATE "${PROJECT_SOURCE_DIR}" "${CMAKE_BINARY_DIR}/generated")
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
target_include_directories(check_kernels PRIVATE "${PROJECT_SOURCE_DIR}" "${CMAKE_BINARY_DIR}/generated")
target_include_directories(check_kernels SYSTEM PRIVATE "${SDTUNE_CUDA_INCLUDE}")
set_target_properties(check_kernels PROPERTIES CUDA_RUNTIME_LIBRARY Static UNITY_BUILD OFF
                      RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/gpu")
