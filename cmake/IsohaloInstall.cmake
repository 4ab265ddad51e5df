# cmake --install: libraries, headers, the command, and a package configuration for find_package(isohalo).

include(CMakePackageConfigHelpers)

get_property(libraries GLOBAL PROPERTY ISOHALO_LIBRARIES)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/isohalo)

# halo, collectives and reduce need MPI alone (and hwloc, where it was found); the rest needs HDF5, Kokkos and PNG as well.
foreach(set light full)
  if(set STREQUAL light)
    set(members isohalo_datatypes isohalo_halo isohalo_collectives isohalo_reduce)
  else()
    set(members ${libraries})
    list(REMOVE_ITEM members isohalo_datatypes isohalo_halo isohalo_collectives isohalo_reduce)
    list(APPEND members isohalo_hdf5)
  endif()
  install(TARGETS ${members} EXPORT isohalo_${set} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT isohalo_${set} NAMESPACE isohalo:: DESTINATION ${package_dir})
endforeach()

install(TARGETS isohalo_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})

install(FILES framework/isohalo.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY framework/isohalo DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h")
install(DIRECTORY apps/solver/isohalo DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.hpp")
install(FILES apps/isohalo/command_line.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/isohalo/internal/apps/isohalo)
install(DIRECTORY datatypes framework stencils
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/isohalo/internal
        FILES_MATCHING PATTERN "*.hpp" PATTERN isohalo EXCLUDE)
install(FILES "${PROJECT_BINARY_DIR}/generated/framework/run/version.hpp"
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/isohalo/internal/framework/run)
if(ISOHALO_APPS)
  install(TARGETS isohalo_command isohalo_bench RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

configure_package_config_file(cmake/isohaloConfig.cmake.in "${PROJECT_BINARY_DIR}/isohaloConfig.cmake"
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file("${PROJECT_BINARY_DIR}/isohaloConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/isohaloConfig.cmake" "${PROJECT_BINARY_DIR}/isohaloConfigVersion.cmake"
              cmake/IsohaloKokkos.cmake cmake/IsohaloMpi.cmake
        DESTINATION ${package_dir})
