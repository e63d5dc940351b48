# Every option of the build, in one place.
option(SDTUNE_APP "Build the command line program" ON)
option(SDTUNE_IMAGE "Read and write images (needs OpenCV, libjpeg, libpng, libwebp, libexif)" ON)
option(SDTUNE_PYTHON "Build the Python module (needs pybind11)" ON)
option(SDTUNE_TESTS "Build the C++ tests (needs GoogleTest)" ON)
option(SDTUNE_CUDA "Build the CUDA kernels and the NCCL backend (needs nvcc; no GPU)" OFF)
option(SDTUNE_PCH "Precompile the LibTorch headers; OFF shows missing includes" ON)
# Other compilers find other warnings, and whoever installs is to get a program: only with the one that the tests run with.
set(is_tested_compiler OFF)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  set(is_tested_compiler ON)
endif()
option(SDTUNE_WERROR "Warnings of C++ and CUDA are errors; OFF where a wheel is built" ${is_tested_compiler})
option(SDTUNE_UNITY "Compile sources in groups: a quarter of a first build's time; OFF compiles single files again" OFF)
set(SDTUNE_UNITY_BATCH 32 CACHE STRING "Sources of a group")
set(SDTUNE_SANITIZE "" CACHE STRING "Sanitizers, for example address,undefined or thread")
set(SDTUNE_CUDA_ARCHITECTURES "release" CACHE STRING
    "GPU architectures: 'release', every one that this LibTorch supports, plus PTX; or a list like 86;90 for a developer's own GPU")

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

find_program(SDTUNE_CCACHE ccache)
if(SDTUNE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # The sloppiness is what ccache's manual asks for with a precompiled header.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${SDTUNE_CCACHE})
endif()
find_program(SDTUNE_LLD ld.lld)
if(SDTUNE_LLD)
  add_link_options(-fuse-ld=lld)
endif()
