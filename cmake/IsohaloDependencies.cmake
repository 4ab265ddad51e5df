# The libraries isohalo stands on: MPI alone, unless components are wanted that need more (IsohaloComponents.cmake).

include(IsohaloMpi)
if(NOT isohalo_full)
  return()
endif()
include(FetchContent)
include(IsohaloKokkos)

# --- HDF5, parallel, of the same MPI ------------------------------------------------------------------------------------
if(NOT DEFINED HDF5_ROOT AND NOT DEFINED HDF5_C_COMPILER_EXECUTABLE AND NOT isohalo_mpi_family STREQUAL "Open MPI")
  find_program(ISOHALO_H5PCC_MPICH h5pcc.mpich)
  if(ISOHALO_H5PCC_MPICH)
    set(HDF5_C_COMPILER_EXECUTABLE "${ISOHALO_H5PCC_MPICH}" CACHE FILEPATH "HDF5 compiler wrapper")
  endif()
endif()
set(HDF5_PREFER_PARALLEL ON)
find_package(HDF5 REQUIRED COMPONENTS C)
if(NOT HDF5_IS_PARALLEL)
  message(FATAL_ERROR "The HDF5 found (${HDF5_C_INCLUDE_DIRS}) is not parallel: install libhdf5-mpich-dev")
endif()
add_library(isohalo_hdf5 INTERFACE)
target_include_directories(isohalo_hdf5 SYSTEM INTERFACE ${HDF5_C_INCLUDE_DIRS})
target_link_libraries(isohalo_hdf5 INTERFACE ${HDF5_C_LIBRARIES} MPI::MPI_C)

# --- Kokkos ----------------------------------------------------------------------------------------------------------
if(NOT ISOHALO_FETCH_KOKKOS)
  find_package(Kokkos QUIET)
  if(NOT Kokkos_FOUND)
    message(STATUS "No Kokkos installed: building the pinned release")
  endif()
endif()
if(ISOHALO_FETCH_KOKKOS OR NOT Kokkos_FOUND)
  FetchContent_Declare(Kokkos
    GIT_REPOSITORY https://github.com/kokkos/kokkos.git
    GIT_TAG 4.6.01
    GIT_SHALLOW ON
    SYSTEM)
  set(Kokkos_ENABLE_SERIAL ON CACHE BOOL "Serial backend")
  FetchContent_MakeAvailable(Kokkos)
  foreach(device CUDA HIP SYCL OPENMPTARGET OPENACC OPENMP THREADS SERIAL)  # which an installed one says itself
    if(Kokkos_ENABLE_${device})
      list(APPEND Kokkos_DEVICES ${device})
    endif()
  endforeach()
endif()
isohalo_repair_kokkos()

# --- small libraries -------------------------------------------------------------------------------------------------
find_package(tomlplusplus REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(PNG REQUIRED)
if(solver IN_LIST isohalo_components)
  find_package(CLI11 REQUIRED)
endif()
