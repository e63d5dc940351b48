# sdtune_library(NAME [TORCH] SOURCES ... DEPENDS ...): a static library of one folder, with our warnings.
# sdtune_test(NAME [TORCH] SOURCES ... DEPENDS ...): one GoogleTest program, one test of ctest.
# sdtune_test_of_program(PROGRAM NAME SOURCES ... DEPENDS ...): one test of ctest, its sources part of a program with others.

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
# A group allocates up to 2 GB. Where there is memory for it, GCC need not look for what it can free, which takes an eighth of a
# first build. clang-tidy refuses the option; it reads the commands of a build without the precompiled header.
if(SDTUNE_UNITY AND SDTUNE_PCH AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  cmake_host_system_information(RESULT memory QUERY TOTAL_PHYSICAL_MEMORY)  # MiB
  cmake_host_system_information(RESULT cores QUERY NUMBER_OF_LOGICAL_CORES)
  math(EXPR memory_of_core "${memory} / ${cores}")
  if(memory_of_core GREATER 3000)
    target_compile_options(sdtune_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-heapsize=2000000>)
  endif()
endif()

# sdtune_precompiled_header(NAME [HEADER...]): LibTorch's headers and these: 3 seconds a file instead of 10.
function(sdtune_precompiled_header name)
  set(source "${CMAKE_BINARY_DIR}/pch/${name}.cpp")
  file(CONFIGURE OUTPUT "${source}" CONTENT "// Carries the precompiled header.\n")
  add_library(${name} OBJECT "${source}")
  target_link_libraries(${name} PRIVATE sdtune_flags libtorch)
  target_precompile_headers(${name} PRIVATE <torch/types.h> <torch/nn/module.h> <torch/nn/cloneable.h>
    <torch/nn/pimpl.h> <torch/csrc/autograd/custom_function.h> <algorithm> <array> <cmath> <cstdint> <filesystem>
    <functional> <map> <memory> <optional> <span> <string> <string_view> <unordered_map> <utility> <variant> <vector> ${ARGN})
endfunction()
if(SDTUNE_PCH)
  sdtune_precompiled_header(sdtune_pch)
endif()

# sdtune_setup_target(NAME [TORCH] [PCH TARGET] DEPENDS ...)
function(sdtune_setup_target name)
  cmake_parse_arguments(ARG "TORCH" "PCH" "SOURCES;DEPENDS" ${ARGN})
  set_target_properties(${name} PROPERTIES UNITY_BUILD ${SDTUNE_UNITY} UNITY_BUILD_BATCH_SIZE ${SDTUNE_UNITY_BATCH})
  target_link_libraries(${name} PRIVATE $<BUILD_INTERFACE:sdtune_flags>)
  if(ARG_DEPENDS)
    target_link_libraries(${name} PUBLIC ${ARG_DEPENDS})
  endif()
  if(ARG_TORCH)
    target_link_libraries(${name} PUBLIC libtorch)
    if(SDTUNE_PCH)
      if(NOT ARG_PCH)
        set(ARG_PCH sdtune_pch)
      endif()
      target_precompile_headers(${name} REUSE_FROM ${ARG_PCH})
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

# What a test computes is little; not optimized, it compiles in half the time. The sources of folders are one program: a group
# begins with five seconds of LibTorch's templates, and few folders have the sources of a whole group.
set(SDTUNE_TEST_FLAGS $<$<CONFIG:Release>:-O0>)

function(sdtune_test_program name)
  if(SDTUNE_PCH AND NOT TARGET sdtune_test_pch)
    sdtune_precompiled_header(sdtune_test_pch <gmock/gmock.h> <gtest/gtest.h>)
    target_link_libraries(sdtune_test_pch PRIVATE GTest::gmock)
    target_compile_options(sdtune_test_pch PRIVATE ${SDTUNE_TEST_FLAGS})
  endif()
  cmake_parse_arguments(ARG "TORCH" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  sdtune_setup_target(${name} ${ARGN} PCH sdtune_test_pch)
  target_link_libraries(${name} PRIVATE GTest::gmock GTest::gtest_main)
  target_compile_options(${name} PRIVATE ${SDTUNE_TEST_FLAGS})
endfunction()

# sdtune_register_test(NAME ARGUMENT...): one test of ctest for many cases: loading LibTorch for each of them would take minutes.
function(sdtune_register_test name)
  add_test(NAME ${name} COMMAND ${ARGN})
  set(timeout 900)
  if(CMAKE_CROSSCOMPILING)  # by an emulator
    set(timeout 3600)
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${timeout})
endfunction()

function(sdtune_test name)
  cmake_parse_arguments(ARG "TORCH" "" "SOURCES;DEPENDS" ${ARGN})
  sdtune_test_program(${name} ${ARGN})
  sdtune_register_test(${name} ${name})
  if(NOT ARG_TORCH)  # scripts/sanitize.sh builds and runs these
    set_tests_properties(${name} PROPERTIES LABELS torch_free)
    set_property(GLOBAL APPEND PROPERTY SDTUNE_TORCH_FREE_TESTS ${name})
  endif()
endfunction()

# Each folder's cases run in a process of their own, as where it is a program of its own.
function(sdtune_test_of_program program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  if(NOT TARGET ${program})
    sdtune_test_program(${program} TORCH)
    set_property(GLOBAL APPEND PROPERTY SDTUNE_TEST_PROGRAMS ${program})
  endif()
  target_sources(${program} PRIVATE ${ARG_SOURCES})
  target_link_libraries(${program} PRIVATE ${ARG_DEPENDS})
  set(suites "")
  foreach(source ${ARG_SOURCES})
    file(STRINGS "${source}" cases REGEX "^TEST(_F|_P)?\\(")
    list(TRANSFORM cases REPLACE "^TEST[_FP]*\\(([A-Za-z0-9_]+).*" "\\1")
    list(APPEND suites ${cases})
  endforeach()
  list(REMOVE_DUPLICATES suites)
  list(TRANSFORM suites REPLACE "(.+)" "\\1.*:*/\\1.*")
  list(JOIN suites ":" filter)
  sdtune_register_test(${name} ${program} --gtest_filter=${filter})
  set_property(GLOBAL APPEND PROPERTY ${program}_suites ${suites})
endfunction()

# Cases that no filter names, since CMake has not read their sources anew: they run as well.
function(sdtune_test_programs_others)
  get_property(programs GLOBAL PROPERTY SDTUNE_TEST_PROGRAMS)
  foreach(program ${programs})
    get_property(suites GLOBAL PROPERTY ${program}_suites)
    list(JOIN suites ":" filter)
    sdtune_register_test(${program}_others ${program} --gtest_filter=-${filter})
  endforeach()
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
