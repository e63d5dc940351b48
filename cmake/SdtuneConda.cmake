# Where a conda environment is in PATH, find_package takes its libraries ahead of the system's. What is then installed does not
# find them, since no run path names conda's folder, and its headers meet libraries of the system's versions. So they are left out,
# unless CMAKE_PREFIX_PATH names the environment.
set(named_prefixes ${CMAKE_PREFIX_PATH})
string(REPLACE ":" ";" named_in_environment "$ENV{CMAKE_PREFIX_PATH}")
list(APPEND named_prefixes ${named_in_environment})
string(REPLACE ":" ";" path_folders "$ENV{PATH}")
foreach(folder ${path_folders})
  string(REGEX REPLACE "/s?bin/*$" "" prefix "${folder}")
  if(NOT EXISTS "${prefix}/conda-meta" OR prefix IN_LIST named_prefixes OR prefix IN_LIST CMAKE_IGNORE_PREFIX_PATH)
    continue()
  endif()
  message(STATUS "Libraries of conda in ${prefix} are left out (-DCMAKE_PREFIX_PATH=${prefix} takes them)")
  list(APPEND CMAKE_IGNORE_PREFIX_PATH "${prefix}")
  # Its pkg-config knows its own libraries alone.
  find_program(PKG_CONFIG_EXECUTABLE pkg-config NO_SYSTEM_ENVIRONMENT_PATH)
endforeach()
