# cmake --install: libraries, headers, the command, and a package configuration for find_package(isohalo).

include(CMakePackageConfigHelpers)

get_property(libraries GLOBAL PROPERTY ISOHALO_LIBRARIES)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/isohalo)

# halo, collectives and reduce need MPI alone (and hwloc, where it was found); the rest needs HDF5, Kokkos and PNG as well.
set(light ${libraries})
list(FILTER light EXCLUDE REGEX "^isohalo_(io|framework|stencils|app|solver)$")
set(sets light)
if(isohalo_full)
  set(full ${libraries} isohalo_hdf5)
  list(REMOVE_ITEM full ${light})
  list(APPEND sets full)
endif()
foreach(set IN LISTS sets)
  install(TARGETS ${${set}} EXPORT isohalo_${set} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT isohalo_${set} NAMESPACE isohalo:: DESTINATION ${package_dir})
endforeach()
if(TARGET isohalo_mpi)
  install(TARGETS isohalo_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()

install(FILES framework/isohalo.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY framework/isohalo DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h")
set(headers datatypes framework)
set(left_out PATTERN isohalo EXCLUDE PATTERN preload EXCLUDE)
if(isohalo_full)
  list(APPEND headers stencils)
  install(DIRECTORY apps/solver/isohalo DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.hpp")
  install(FILES apps/isohalo/command_line.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/isohalo/internal/apps/isohalo)
  install(FILES "${PROJECT_BINARY_DIR}/generated/framework/run/version.hpp"
          DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/isohalo/internal/framework/run)
else()
  list(APPEND left_out PATTERN io EXCLUDE PATTERN run EXCLUDE)
endif()
install(DIRECTORY ${headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/isohalo/internal
        FILES_MATCHING PATTERN "*.hpp" ${left_out})
if(TARGET isohalo_command)
  install(TARGETS isohalo_command isohalo_bench RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

# Documents and examples, and pkg-config's files for programs that are built without CMake (by MPI's compilers).
install(FILES README.md LICENSE CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.md")
install(DIRECTORY apps/examples DESTINATION ${CMAKE_INSTALL_DATADIR}/isohalo)
file(RELATIVE_PATH pc_up "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
foreach(component halo reduce)
  if(TARGET isohalo_${component})
    set(pc_needs)
    set(pc_libraries "-lisohalo_${component}")
    if(component STREQUAL halo)
      string(APPEND pc_libraries " -lisohalo_datatypes -lstdc++ -lm")
    else()
      set(pc_needs isohalo-halo)
    endif()
    configure_file(cmake/isohalo.pc.in "${PROJECT_BINARY_DIR}/isohalo-${component}.pc" @ONLY)
    install(FILES "${PROJECT_BINARY_DIR}/isohalo-${component}.pc" DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
  endif()
endforeach()

configure_package_config_file(cmake/isohaloConfig.cmake.in "${PROJECT_BINARY_DIR}/isohaloConfig.cmake"
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file("${PROJECT_BINARY_DIR}/isohaloConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/isohaloConfig.cmake" "${PROJECT_BINARY_DIR}/isohaloConfigVersion.cmake"
              cmake/IsohaloKokkos.cmake cmake/IsohaloMpi.cmake
        DESTINATION ${package_dir})
