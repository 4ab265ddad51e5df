# Gives Kokkos one name, isohalo_kokkos::kokkos, wherever it comes from. Also used by the installed package.
#
# Debian's and Ubuntu's package (libtrilinos-kokkos-dev) has a target that names an include directory which does not
# exist; it is replaced by the directory in which the header is.

function(isohalo_repair_kokkos)
  if(TARGET isohalo_kokkos::kokkos)
    return()
  endif()
  add_library(isohalo_kokkos::kokkos INTERFACE IMPORTED GLOBAL)
  target_link_libraries(isohalo_kokkos::kokkos INTERFACE Kokkos::kokkos)
  # With CUDA, Kokkos hands what links with it to nvcc. Nothing is to be contracted there either; fmt guesses wrongly
  # what nvcc knows of constants; and solvers are called with cells of the host as well, to see what they read, of
  # which nvcc warns (20011, 20014).
  if("CUDA" IN_LIST Kokkos_DEVICES)
    target_compile_options(isohalo_kokkos::kokkos INTERFACE
      $<$<COMPILE_LANGUAGE:CXX>:--fmad=false> $<$<COMPILE_LANGUAGE:CXX>:--expt-relaxed-constexpr>
      "$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xcudafe --diag_suppress=20011 -Xcudafe --diag_suppress=20014 -Xcudafe --diag_suppress=186>")
    target_compile_definitions(isohalo_kokkos::kokkos INTERFACE FMT_CONSTEVAL= FMT_USE_CONSTEXPR=1)
  endif()
  get_target_property(aliased Kokkos::kokkos ALIASED_TARGET)
  if(aliased)
    return()  # built here, by FetchContent: nothing to repair
  endif()
  get_target_property(directories Kokkos::kokkos INTERFACE_INCLUDE_DIRECTORIES)
  foreach(directory IN LISTS directories)
    if(NOT directory MATCHES "^\\$<" AND NOT IS_DIRECTORY "${directory}")
      find_path(ISOHALO_TRILINOS_INCLUDE_DIR Kokkos_Core.hpp PATH_SUFFIXES trilinos)
      if(NOT ISOHALO_TRILINOS_INCLUDE_DIR)
        message(FATAL_ERROR "Kokkos names the include directory ${directory}, which does not exist, and its header "
          "Kokkos_Core.hpp was not found elsewhere: give another Kokkos by -DKokkos_ROOT=DIRECTORY")
      endif()
      set_target_properties(Kokkos::kokkos PROPERTIES
        INTERFACE_INCLUDE_DIRECTORIES "${ISOHALO_TRILINOS_INCLUDE_DIR}"
        INTERFACE_SYSTEM_INCLUDE_DIRECTORIES "${ISOHALO_TRILINOS_INCLUDE_DIR}")
      return()
    endif()
  endforeach()
endfunction()
