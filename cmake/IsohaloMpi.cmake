# Finds MPICH even where another MPI is installed as well. Also used by the installed package.
find_program(ISOHALO_MPICXX_MPICH mpicxx.mpich)
if(ISOHALO_MPICXX_MPICH AND NOT DEFINED MPI_EXECUTABLE_SUFFIX)
  set(MPI_EXECUTABLE_SUFFIX .mpich)  # with Open MPI installed too, FindMPI would take that one
endif()
set(MPI_CXX_SKIP_MPICXX ON)
find_package(MPI REQUIRED COMPONENTS C CXX)
