# sdtune_library(NAME [TORCH] SOURCES ... DEPENDS ...): a static library of one folder, with our warnings.
# sdtune_test(NAME SOURCES ... DEPENDS ...): one GoogleTest program, one test of ctest.

add_library(sdtune_flags INTERFACE)
target_compile_options(sdtune_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic $<$<BOOL:${SDTUNE_WERROR}>:-Werror> -Wno-unknown-pragmas
    -Wno-restrict>)  # -Wrestrict: false alarms on std::string in g++ 12 (GCC bug 105651)
target_include_directories(sdtune_flags INTERFACE "${PROJECT_SOURCE_DIR}" "${CMAKE_BINARY_DIR}/generated")
target_compile_definitions(sdtune_flags INTERFACE SDTUNE_VERSION="${PROJECT_VERSION}")
if(SDTUNE_SANITIZE)
  target_compile_options(sdtune_flags INTERFACE -fsanitize=${SDTUNE_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(sdtune_flags INTERFACE -fsanitize=${SDTUNE_SANITIZE})
endif()
# A group allocates up to 1.5 GB. Where there is memory for it, GCC need not look for what it can free, which takes an eighth of a
# first build. clang-tidy refuses the option; it reads the commands of a build without the precompiled header.
if(SDTUNE_UNITY AND SDTUNE_PCH AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  cmake_host_system_information(RESULT memory QUERY TOTAL_PHYSICAL_MEMORY)  # MiB
  cmake_host_system_information(RESULT cores QUERY NUMBER_OF_LOGICAL_CORES)
  math(EXPR memory_of_core "${memory} / ${cores}")
  if(memory_of_core GREATER 3000)
    target_compile_options(sdtune_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-heapsize=2000000>)
  endif()
endif()

# One precompiled header for everything that includes LibTorch: 3 seconds a file instead of 10.
if(SDTUNE_PCH)
  file(WRITE "${CMAKE_BINARY_DIR}/pch/sdtune_pch.cpp.in" "")
  file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/pch/sdtune_pch.cpp" CONTENT "// Carries the precompiled header.\n")
  add_library(sdtune_pch OBJECT "${CMAKE_BINARY_DIR}/pch/sdtune_pch.cpp")
  target_link_libraries(sdtune_pch PRIVATE sdtune_flags libtorch)
  target_precompile_headers(sdtune_pch PRIVATE <torch/types.h> <torch/nn/module.h> <torch/nn/cloneable.h>
    <torch/nn/pimpl.h> <torch/csrc/autograd/custom_function.h> <algorithm> <array> <cmath> <cstdint> <filesystem>
    <functional> <map> <memory> <optional> <span> <string> <string_view> <unordered_map> <utility> <variant> <vector>)
endif()

function(sdtune_setup_target name)
  cmake_parse_arguments(ARG "TORCH" "" "SOURCES;DEPENDS" ${ARGN})
  set_target_properties(${name} PROPERTIES UNITY_BUILD ${SDTUNE_UNITY} UNITY_BUILD_BATCH_SIZE ${SDTUNE_UNITY_BATCH})
  target_link_libraries(${name} PRIVATE $<BUILD_INTERFACE:sdtune_flags>)
  if(ARG_DEPENDS)
    target_link_libraries(${name} PUBLIC ${ARG_DEPENDS})
  endif()
  if(ARG_TORCH)
    target_link_libraries(${name} PUBLIC libtorch)
    if(SDTUNE_PCH)
      target_precompile_headers(${name} REUSE_FROM sdtune_pch)
      # The precompiled header is made with -fPIC; CMake would give a program -fPIE, with which g++ refuses it.
      get_target_property(type ${name} TYPE)
      if(type STREQUAL "EXECUTABLE")
        set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
        target_compile_options(${name} PRIVATE -fPIC)
      endif()
    endif()
  endif()
endfunction()

function(sdtune_library name)
  cmake_parse_arguments(ARG "TORCH" "" "SOURCES;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  sdtune_setup_target(${name} ${ARGN})
  if(CMAKE_CURRENT_SOURCE_DIR STREQUAL "${PROJECT_SOURCE_DIR}/model")
    set_property(GLOBAL APPEND PROPERTY SDTUNE_MODEL_LIBRARIES ${name})  # see SdtuneExport
  endif()
endfunction()

function(sdtune_test name)
  cmake_parse_arguments(ARG "TORCH" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  sdtune_setup_target(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE GTest::gmock GTest::gtest_main)
  # What a test computes is little; optimized less, it compiles in four fifths of the time.
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  # A program a test, not a case a test: loading LibTorch anew for each of hundreds of cases would take minutes.
  add_test(NAME ${name} COMMAND ${name})
  set(timeout 900)
  if(CMAKE_CROSSCOMPILING)  # by an emulator
    set(timeout 3600)
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${timeout})
  if(NOT ARG_TORCH)  # scripts/sanitize.sh builds and runs these
    set_tests_properties(${name} PROPERTIES LABELS torch_free)
    set_property(GLOBAL APPEND PROPERTY SDTUNE_TORCH_FREE_TESTS ${name})
  endif()
endfunction()

# sdtune_merge_folders(NAME): from here on, in a build of groups (SDTUNE_UNITY), the folders with LibTorch of this directory and
# below it become one library: a group begins with four seconds of LibTorch's headers, and folders by themselves leave most groups
# half empty. sdtune_<folder> then links that library.
function(sdtune_merge_folders name)
  if(SDTUNE_UNITY)
    sdtune_library(sdtune_${name} TORCH)
    set(SDTUNE_MERGED sdtune_${name} PARENT_SCOPE)
  endif()
endfunction()

# sdtune_folder(NAME [TORCH] DEPENDS ...): a library of every .cpp in the calling folder's subfolder NAME (without "sdtune_").
function(sdtune_folder folder)
  cmake_parse_arguments(ARG "TORCH" "" "DEPENDS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.cpp")
  if(sources AND NOT (ARG_TORCH AND SDTUNE_MERGED))
    sdtune_library(sdtune_${folder} SOURCES ${sources} ${ARGN})
    return()
  endif()
  add_library(sdtune_${folder} INTERFACE)
  if(sources)
    set_property(GLOBAL APPEND PROPERTY ${SDTUNE_MERGED}_folders sdtune_${folder})
    get_property(merged GLOBAL PROPERTY ${SDTUNE_MERGED}_folders)
    list(REMOVE_ITEM ARG_DEPENDS ${merged})
    target_sources(${SDTUNE_MERGED} PRIVATE ${sources})
    target_link_libraries(${SDTUNE_MERGED} PUBLIC ${ARG_DEPENDS})
    set(ARG_DEPENDS ${SDTUNE_MERGED})
  endif()
  target_link_libraries(sdtune_${folder} INTERFACE ${ARG_DEPENDS})
  if(CMAKE_CURRENT_SOURCE_DIR STREQUAL "${PROJECT_SOURCE_DIR}/model")
    set_property(GLOBAL APPEND PROPERTY SDTUNE_MODEL_LIBRARIES sdtune_${folder})
  endif()
endfunction()
