# The target `libtorch`: LibTorch as the PyPI wheel torch carries it. Imported, since it is no part of what we install; programs
# that link sdtune::model find it by this same file (cmake/SdtuneExport.cmake).
#
# Not find_package(Torch): with this wheel it demands a CUDA toolkit even for a program that never touches a GPU. We link
# the CPU libraries only. libtorch_cuda is loaded at run time when a GPU is asked for (model/core/device.cpp), so one
# binary starts fast on a laptop and runs on a GPU machine with the same wheel.
if(NOT SDTUNE_TORCH_DIR)
  find_package(Python COMPONENTS Interpreter Development.Module REQUIRED)
  execute_process(
    COMMAND "${Python_EXECUTABLE}" -c
            "import importlib.util as u, pathlib; print(pathlib.Path(u.find_spec('torch').origin).parent)"
    OUTPUT_VARIABLE SDTUNE_TORCH_DIR OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE torch_result)
  if(NOT torch_result EQUAL 0)
    message(FATAL_ERROR "No torch for ${Python_EXECUTABLE}: run scripts/setup.sh, or give -DSDTUNE_TORCH_DIR=.../site-packages/torch")
  endif()
endif()
file(READ "${SDTUNE_TORCH_DIR}/version.py" torch_version_text)
string(REGEX MATCH "__version__ = '([0-9.]+)" unused "${torch_version_text}")
set(SDTUNE_TORCH_VERSION "${CMAKE_MATCH_1}")
if(NOT SDTUNE_TORCH_VERSION VERSION_EQUAL "2.11.0")
  message(FATAL_ERROR "torch ${SDTUNE_TORCH_VERSION} in ${SDTUNE_TORCH_DIR}: sdtune is built against 2.11.0, since the C++ ABI is that of one version")
endif()

add_library(libtorch INTERFACE IMPORTED GLOBAL)
target_include_directories(libtorch SYSTEM INTERFACE "${SDTUNE_TORCH_DIR}/include"
                                                     "${SDTUNE_TORCH_DIR}/include/torch/csrc/api/include")
target_link_libraries(libtorch INTERFACE "${SDTUNE_TORCH_DIR}/lib/libtorch_cpu.so" "${SDTUNE_TORCH_DIR}/lib/libc10.so")
target_compile_definitions(libtorch INTERFACE USE_C10D_GLOO USE_DISTRIBUTED)
# libtorch_cpu itself finds NVIDIA's wheels and its OpenMP runtime by its own RPATH.
target_link_options(libtorch INTERFACE "LINKER:--allow-shlib-undefined")
find_package(Threads REQUIRED)
target_link_libraries(libtorch INTERFACE Threads::Threads)
# The run path of everything we build here: the wheel's folder, until the install step makes it relative.
set(CMAKE_BUILD_RPATH "${SDTUNE_TORCH_DIR}/lib")

# OpenMP for our own loops and for at::parallel_for, which is serial in a file compiled without it. The runtime is the
# wheel's, so that a process has one thread pool.
target_compile_options(libtorch INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fopenmp>)
target_link_libraries(libtorch INTERFACE "${SDTUNE_TORCH_DIR}/lib/libgomp.so.1")
