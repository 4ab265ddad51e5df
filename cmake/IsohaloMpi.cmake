# Finds MPI, says which one and why, and refuses one that lacks what is needed. Also used by the installed package, for
# which ISOHALO_BUILT_MPI_* say what isohalo was built with.
#
# Taken is, in this order: what the user names (MPI_HOME, MPI_C_COMPILER, MPI_CXX_COMPILER, MPI_EXECUTABLE_SUFFIX); for the
# installed package what isohalo was built with; the mpicc that stands first in PATH, but in a full build, which needs HDF5
# of MPICH, mpicc.mpich beside it, as Debian calls MPICH's where several MPIs are installed; mpicc.mpich where there is
# no mpicc; what CMake finds.

# isohalo_mpi_words(variable directories): "family version major minor" of the MPI with this mpi.h, by its macros.
function(isohalo_mpi_words variable directories)
  set(compiler "${CMAKE_C_COMPILER}")
  if(NOT compiler)
    set(compiler "${CMAKE_CXX_COMPILER}")
  endif()
  list(TRANSFORM directories PREPEND -I)
  set(source "${CMAKE_CURRENT_BINARY_DIR}/isohalo_which_mpi.c")
  file(WRITE "${source}" "#include <mpi.h>\nisohalo_which: MPI_VERSION;MPI_SUBVERSION\n"
    "#if defined(OPEN_MPI)\n;\"Open MPI\";OMPI_MAJOR_VERSION.OMPI_MINOR_VERSION.OMPI_RELEASE_VERSION\n"
    "#elif defined(I_MPI_VERSION)\n;\"Intel MPI\";I_MPI_VERSION\n"
    "#elif defined(MVAPICH2_VERSION)\n;\"MVAPICH2\";MVAPICH2_VERSION\n"
    "#elif defined(MPICH_VERSION)\n;\"MPICH\";MPICH_VERSION\n"
    "#else\n;\"another MPI\";\"of unknown version\"\n#endif\n")
  execute_process(COMMAND "${compiler}" -E -P ${directories} "${source}"
                  OUTPUT_VARIABLE text ERROR_QUIET RESULT_VARIABLE failed)
  set(${variable} "" PARENT_SCOPE)
  if(NOT failed AND text MATCHES "isohalo_which:([^:]*)$")
    string(REGEX REPLACE "[\n\"]" "" words "${CMAKE_MATCH_1}")
    string(REGEX REPLACE " *; *" ";" words "${words}")
    string(REGEX REPLACE " *\\. *" "." words "${words}")
    list(TRANSFORM words STRIP)
    set(${variable} "${words}" PARENT_SCOPE)
  endif()
endfunction()

if(MPI_HOME OR MPI_C_COMPILER OR MPI_CXX_COMPILER OR MPI_EXECUTABLE_SUFFIX OR MPI_C_HEADER_DIR OR MPI_CXX_HEADER_DIR)
  if(NOT isohalo_mpi_reason)
    set(isohalo_mpi_reason "as named, or found before, by MPI_HOME, MPI_*_COMPILER or MPI_EXECUTABLE_SUFFIX")
  endif()
elseif(ISOHALO_BUILT_MPI_C_COMPILER AND EXISTS "${ISOHALO_BUILT_MPI_C_COMPILER}")
  set(isohalo_mpi_reason "which isohalo was built with")
  set(MPI_C_COMPILER "${ISOHALO_BUILT_MPI_C_COMPILER}" CACHE FILEPATH "MPI compiler for C")
  if(EXISTS "${ISOHALO_BUILT_MPI_CXX_COMPILER}")
    set(MPI_CXX_COMPILER "${ISOHALO_BUILT_MPI_CXX_COMPILER}" CACHE FILEPATH "MPI compiler for CXX")
  endif()
  if(EXISTS "${ISOHALO_BUILT_MPI_Fortran_COMPILER}")
    set(MPI_Fortran_COMPILER "${ISOHALO_BUILT_MPI_Fortran_COMPILER}" CACHE FILEPATH "MPI compiler for Fortran")
  endif()
  if(EXISTS "${ISOHALO_BUILT_MPIEXEC}")
    set(MPIEXEC_EXECUTABLE "${ISOHALO_BUILT_MPIEXEC}" CACHE FILEPATH "Executable for running MPI programs")
  endif()
else()
  find_program(isohalo_first_mpicc NAMES mpicc mpicc.mpich PATHS ENV PATH NO_CACHE NO_DEFAULT_PATH)
  if(isohalo_first_mpicc)
    cmake_path(GET isohalo_first_mpicc PARENT_PATH isohalo_mpi_bin)
    set(isohalo_mpi_suffix)
    set(isohalo_mpi_reason "the first mpicc in PATH")
    if(isohalo_first_mpicc MATCHES "\\.mpich$")
      set(isohalo_mpi_suffix .mpich)
      set(isohalo_mpi_reason "the first mpicc.mpich in PATH, which has no mpicc")
    elseif(isohalo_full AND EXISTS "${isohalo_mpi_bin}/mpicc.mpich")
      set(isohalo_mpi_suffix .mpich)
      set(isohalo_mpi_reason "MPICH of the directory of the first mpicc in PATH, for HDF5's sake")
    endif()
    foreach(word "C_COMPILER mpicc compiler for C" "CXX_COMPILER mpicxx compiler for CXX" "EXEC mpiexec launcher"
                 "Fortran_COMPILER mpifort compiler for Fortran")
      string(REGEX MATCH "^([A-Za-z_]+) ([a-z]+) (.*)$" ignored "${word}")
      set(isohalo_mpi_variable MPI_${CMAKE_MATCH_1})
      if(CMAKE_MATCH_1 STREQUAL EXEC)
        set(isohalo_mpi_variable MPIEXEC_EXECUTABLE)
      endif()
      if(EXISTS "${isohalo_mpi_bin}/${CMAKE_MATCH_2}${isohalo_mpi_suffix}" AND NOT ${isohalo_mpi_variable})
        set(${isohalo_mpi_variable} "${isohalo_mpi_bin}/${CMAKE_MATCH_2}${isohalo_mpi_suffix}"
            CACHE FILEPATH "MPI's ${CMAKE_MATCH_3}")
      endif()
    endforeach()
  else()
    set(isohalo_mpi_reason "what CMake found; no mpicc is in PATH")
  endif()
endif()
set(isohalo_mpi_reason "${isohalo_mpi_reason}" CACHE INTERNAL "Why this MPI was taken")

if(NOT CMAKE_C_COMPILER_LOADED)
  message(FATAL_ERROR "isohalo needs the language C, by which CMake finds MPI: name it in project(${PROJECT_NAME} "
    "LANGUAGES C ..)")
endif()
set(MPI_CXX_SKIP_MPICXX ON)
if(CMAKE_CXX_COMPILER_LOADED)
  find_package(MPI QUIET COMPONENTS C CXX)
else()  # a C project that uses the C interface
  find_package(MPI QUIET COMPONENTS C)
  if(MPI_C_FOUND AND NOT TARGET MPI::MPI_CXX)
    add_library(MPI::MPI_CXX INTERFACE IMPORTED)
    set_target_properties(MPI::MPI_CXX PROPERTIES INTERFACE_LINK_LIBRARIES "MPI::MPI_C;stdc++;m")
  endif()
endif()
if(NOT MPI_FOUND)
  message(FATAL_ERROR "isohalo found no MPI that a program can be built with (tried: ${isohalo_mpi_reason}): put its mpicc "
    "and mpicxx first in PATH, or name them by -DMPI_HOME=DIRECTORY")
endif()
# CMake looks elsewhere, too.
if(MPI_HOME)
  get_filename_component(isohalo_mpi_home "${MPI_HOME}" REALPATH)
  set(isohalo_mpi_at_home OFF)
  foreach(isohalo_mpi_place "${MPI_C_COMPILER}" ${MPI_C_INCLUDE_DIRS})
    get_filename_component(isohalo_mpi_real "${isohalo_mpi_place}" REALPATH)
    cmake_path(IS_PREFIX MPI_HOME "${isohalo_mpi_place}" NORMALIZE isohalo_mpi_named)
    cmake_path(IS_PREFIX isohalo_mpi_home "${isohalo_mpi_real}" NORMALIZE isohalo_mpi_linked)
    if(isohalo_mpi_named OR isohalo_mpi_linked)
      set(isohalo_mpi_at_home ON)
    endif()
  endforeach()
  if(NOT isohalo_mpi_at_home)
    message(FATAL_ERROR "isohalo found no MPI in MPI_HOME, ${MPI_HOME}, but ${MPI_C_COMPILER}: name the directory that has "
      "bin/mpicc, or leave MPI_HOME out")
  endif()
endif()

isohalo_mpi_words(isohalo_mpi "${MPI_C_INCLUDE_DIRS}")
list(LENGTH isohalo_mpi isohalo_mpi_length)
if(isohalo_mpi_length LESS 4)
  set(isohalo_mpi 0 0 "an MPI" "whose mpi.h cannot be read")
endif()
list(GET isohalo_mpi 0 isohalo_mpi_major)
list(GET isohalo_mpi 1 isohalo_mpi_minor)
list(GET isohalo_mpi 2 isohalo_mpi_family)
list(GET isohalo_mpi 3 isohalo_mpi_version)
if("${isohalo_mpi_major}.${isohalo_mpi_minor}" VERSION_LESS 3.1)
  message(FATAL_ERROR "isohalo needs an MPI 3.1, but ${isohalo_mpi_family} ${isohalo_mpi_version} (${MPI_C_INCLUDE_DIRS}) says "
    "that it is an MPI ${isohalo_mpi_major}.${isohalo_mpi_minor}: put another one's mpicc first in PATH, or name it by "
    "-DMPI_HOME=DIRECTORY")
endif()
# MPICH and what descends from it have one binary interface; Open MPI has another.
if(ISOHALO_BUILT_MPI_FAMILY AND NOT ISOHALO_BUILT_MPI_FAMILY STREQUAL isohalo_mpi_family
   AND (ISOHALO_BUILT_MPI_FAMILY STREQUAL "Open MPI" OR isohalo_mpi_family STREQUAL "Open MPI"))
  message(FATAL_ERROR "This isohalo was built with ${ISOHALO_BUILT_MPI_FAMILY} ${ISOHALO_BUILT_MPI_VERSION} "
    "(${ISOHALO_BUILT_MPI_C_COMPILER}), but this project takes ${isohalo_mpi_family} ${isohalo_mpi_version} "
    "(${MPI_C_COMPILER}): use the same one, or build isohalo with this one")
endif()
set(isohalo_mpi_said "${isohalo_mpi_family} ${isohalo_mpi_version}, MPI ${isohalo_mpi_major}.${isohalo_mpi_minor}: ${MPI_C_COMPILER}, ${isohalo_mpi_reason}")
if(NOT isohalo_mpi_said STREQUAL ISOHALO_MPI_SAID)
  message(STATUS "isohalo takes ${isohalo_mpi_said}")
  set(ISOHALO_MPI_SAID "${isohalo_mpi_said}" CACHE INTERNAL "What was said of it")
endif()
