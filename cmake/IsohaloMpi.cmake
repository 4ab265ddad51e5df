# Finds MPICH even where another MPI is installed as well. Also used by the installed package.
find_program(ISOHALO_MPICXX_MPICH mpicxx.mpich)
if(ISOHALO_MPICXX_MPICH AND NOT DEFINED MPI_EXECUTABLE_SUFFIX)
  set(MPI_EXECUTABLE_SUFFIX .mpich)  # with Open MPI installed too, FindMPI would take that one
endif()
set(MPI_CXX_SKIP_MPICXX ON)
if(CMAKE_CXX_COMPILER_LOADED)
  find_package(MPI REQUIRED COMPONENTS C CXX)
else()  # a C project that uses the C interface
  find_package(MPI REQUIRED COMPONENTS C)
  if(NOT TARGET MPI::MPI_CXX)
    add_library(MPI::MPI_CXX INTERFACE IMPORTED)
    set_target_properties(MPI::MPI_CXX PROPERTIES INTERFACE_LINK_LIBRARIES "MPI::MPI_C;stdc++;m")
  endif()
endif()
