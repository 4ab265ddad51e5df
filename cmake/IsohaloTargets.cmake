# How isohalo's libraries are made.

include(GNUInstallDirs)

set(ISOHALO_WARNINGS -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  list(APPEND ISOHALO_WARNINGS -Wno-restrict)  # GCC 12 sees overlaps in std::string that are not there (bug 105329)
endif()
# Headers of others that most sources read, compiled once per library or program and never handed on to users. Off:
# -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON; so it is under a compiler launcher, because ccache would have to be told to
# ignore differences (its option "sloppiness") before it cached anything. What a file lacks because of them is found by
# `bash tests/run.sh full` (headers_alone and clang_warnings compile without).
if(CMAKE_CXX_COMPILER_LAUNCHER AND NOT DEFINED CMAKE_DISABLE_PRECOMPILE_HEADERS)
  set(CMAKE_DISABLE_PRECOMPILE_HEADERS ON)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND NOT CMAKE_DISABLE_PRECOMPILE_HEADERS)
  # It forgets that a precompiled std::string is not ours, and then tells of sizes there that cannot be.
  list(APPEND ISOHALO_WARNINGS -Wno-stringop-overflow -Wno-array-bounds)
endif()

if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_UNITY_BUILD)
  list(APPEND ISOHALO_WARNINGS -Wno-subobject-linkage)  # it takes the sources of a unity build for headers
endif()

if("CUDA" IN_LIST Kokkos_DEVICES)  # nvcc knows neither these warnings nor what was precompiled for others
  set(ISOHALO_WARNINGS)
  set(CMAKE_DISABLE_PRECOMPILE_HEADERS ON)
elseif(ISOHALO_WERROR)
  list(APPEND ISOHALO_WARNINGS -Werror)
endif()

# Vectors of 64 bytes where the processor has them: by themselves compilers prefer those of 32 (docs/performance.md).
set(ISOHALO_VECTORS)
string(TOUPPER "CMAKE_CXX_FLAGS_${CMAKE_BUILD_TYPE}" ISOHALO_TYPE_FLAGS)
if(ISOHALO_NATIVE AND NOT "${CMAKE_CXX_FLAGS} ${${ISOHALO_TYPE_FLAGS}}" MATCHES "-mprefer-vector-width")
  include(CheckCXXCompilerFlag)
  check_cxx_compiler_flag(-mprefer-vector-width=512 ISOHALO_HAS_WIDE_VECTORS)
  if(ISOHALO_HAS_WIDE_VECTORS)
    set(ISOHALO_VECTORS $<$<COMPILE_LANGUAGE:CXX>:-mprefer-vector-width=512>)
  endif()
endif()

# GCC, which collects its garbage from 128 MiB on, takes some 6 % less time when it begins later.
set(ISOHALO_GARBAGE)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND NOT "CUDA" IN_LIST Kokkos_DEVICES)
  set(ISOHALO_GARBAGE $<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-heapsize=400000>)
endif()

# Flags of our own compilation. Contraction is off for users as well (arithmetic lives in headers): with it, a
# processor with fused multiply-add would give other bits than one without.
function(isohalo_flags target)
  target_compile_options(${target} PRIVATE ${ISOHALO_WARNINGS} ${ISOHALO_GARBAGE})
  if(ISOHALO_NATIVE)
    target_compile_options(${target} PRIVATE -march=native ${ISOHALO_VECTORS})
  endif()
endfunction()

set(ISOHALO_COMMON_HEADERS <mpi.h> <algorithm> <array> <cmath> <cstdint> <functional> <map> <memory> <optional> <span>
                           <sstream> <string> <vector>)

# isohalo_precompile(target HEADERS ..) compiles them for a target; isohalo_precompile(target AS other) takes the other's.
function(isohalo_precompile target)
  if(NOT TARGET ${target})  # a component that is not wanted
    return()
  endif()
  cmake_parse_arguments(ARG "" "AS" "HEADERS" ${ARGN})
  if(ARG_AS)
    target_precompile_headers(${target} REUSE_FROM ${ARG_AS})
  else()
    target_precompile_headers(${target} PRIVATE ${ARG_HEADERS})
  endif()
endfunction()

# isohalo_library(name SOURCES .. LINKS ..): libisohalo_NAME, target isohalo::NAME. Nothing where the component NAME is not
# wanted (IsohaloComponents.cmake).
function(isohalo_library name)
  if(NOT name IN_LIST isohalo_components)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;LINKS;PRIVATE_LINKS" ${ARGN})
  add_library(isohalo_${name} STATIC ${ARG_SOURCES})
  add_library(isohalo::${name} ALIAS isohalo_${name})
  set_target_properties(isohalo_${name} PROPERTIES EXPORT_NAME ${name})
  isohalo_flags(isohalo_${name})
  target_compile_features(isohalo_${name} PUBLIC cxx_std_20)
  # The first keeps the bits. The others change none: with them GCC computes loops that choose or take roots by vectors.
  target_compile_options(isohalo_${name} PUBLIC
    "$<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off;-fno-trapping-math;-fno-math-errno>")
  target_include_directories(isohalo_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/framework>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/isohalo/internal>)
  target_link_libraries(isohalo_${name} PUBLIC ${ARG_LINKS} PRIVATE ${ARG_PRIVATE_LINKS})
  set_property(GLOBAL APPEND PROPERTY ISOHALO_LIBRARIES isohalo_${name})
endfunction()
