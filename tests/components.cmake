# Tests of the components that need MPI alone, so far as these are built.

# What only MPICH and its relatives can do: play several compute nodes, say which handles were not freed.
set(mpich_like ON)
if(isohalo_mpi_family STREQUAL "Open MPI")
  set(mpich_like OFF)
endif()

# --- halo ---------------------------------------------------------------------------------------------------------------
isohalo_add_test(domain SOURCES domain/domain_test.cpp RANKS 1 2 3 4 LABELS quick)
isohalo_add_test(datatypes SOURCES datatypes/large_count_test.cpp datatypes/printable_test.cpp datatypes/region_type_test.cpp RANKS 1 LABELS quick)
isohalo_add_test(neighborhood SOURCES neighborhood/neighborhood_test.cpp RANKS 1 2 3 4 6 LABELS quick)
isohalo_add_test(collectives SOURCES neighborhood/collectives_test.cpp neighborhood/counters.cpp RANKS 1 2 3 4 FULL_RANKS 5 6 7 8 TIMEOUT 300 LABELS quick TIMED)
isohalo_add_test(every_type SOURCES neighborhood/every_type_test.cpp RANKS 1 2 3 4 6 LABELS quick)
isohalo_add_test(few_tags SOURCES neighborhood/few_tags.cpp neighborhood/counters.cpp RANKS 1 FULL_RANKS 2 3 4 TIMEOUT 600 LABELS quick)
isohalo_add_test(local_schedule SOURCES neighborhood/local_schedule_test.cpp RANKS 1 TIMEOUT 300 LABELS quick)
isohalo_add_test(halo_geometry SOURCES halo/halo_geometry_test.cpp RANKS 1 TIMEOUT 300 LABELS quick)
isohalo_add_test(strided_copy SOURCES halo/strided_copy_test.cpp RANKS 1 2 LABELS quick)
isohalo_add_test(halo_exchange SOURCES halo/halo_exchange_test.cpp RANKS 1 4 FULL_RANKS 2 3 6 TIMEOUT 300 LABELS quick TIMED)
# The tests of it that are left out above.
isohalo_add_launches(halo_depths TIMED RANKS 2 FULL_RANKS 1 3 4 6 TIMEOUT 1200 LABELS product
  COMMAND $<TARGET_FILE:test_halo_exchange> --gtest_also_run_disabled_tests --gtest_filter=HaloDepths.*)
isohalo_add_test(wrapped_ghosts SOURCES halo/wrapped_ghosts_test.cpp RANKS 1 4 FULL_RANKS 2 3 6 LABELS quick)
isohalo_add_test(any_array SOURCES halo/any_array_test.cpp RANKS 1 2 3 4 6 LABELS quick)
isohalo_add_test(region SOURCES halo/region_test.cpp RANKS 1 3 4 FULL_RANKS 2 6 LABELS quick)
isohalo_add_test(row_sweep SOURCES halo/row_sweep_test.cpp RANKS 1 2 4 FULL_RANKS 3 6 LABELS quick)
isohalo_add_test(faces SOURCES halo/faces_test.cpp RANKS 1 2 3 4 6 LABELS quick)
isohalo_add_test(outside_cells SOURCES halo/outside_cells_test.cpp RANKS 1 2 3 4 6 LABELS quick)
isohalo_add_test(channels SOURCES shm/channels_test.cpp RANKS 1 2 3 4 6 LABELS quick)
list(TRANSFORM MPI_CXX_INCLUDE_DIRS PREPEND -I OUTPUT_VARIABLE mpi_includes)
isohalo_add_launch(elements_must_be_copyable LABELS quick
  COMMAND ${CMAKE_CXX_COMPILER} -std=c++20 -fsyntax-only -I${PROJECT_SOURCE_DIR} ${mpi_includes}
          ${CMAKE_CURRENT_SOURCE_DIR}/halo/not_copyable.cpp)
set_tests_properties(elements_must_be_copyable PROPERTIES PASS_REGULAR_EXPRESSION "they must be trivially copyable")
isohalo_add_test(chooser SOURCES schedule/chooser_test.cpp RANKS 1 2 3 4 6 LABELS quick TIMED)
isohalo_add_test(shared_memory SOURCES shm/shared_memory_test.cpp RANKS 1 2 3 4 6 LABELS quick)
isohalo_add_test(halo_transport SOURCES halo/halo_transport_test.cpp RANKS 1 2 4 FULL_RANKS 3 6 TIMEOUT 300 LABELS quick TIMED)
isohalo_add_test(whole_file SOURCES mpi/whole_file_test.cpp RANKS 1 LABELS quick)
if(mpich_like)  # two nodes on one machine: shared memory within each, messages between them.
  foreach(test channels halo_transport halo_exchange)
    set(tier)
    if(test STREQUAL halo_exchange)
      set(tier full)
    endif()
    isohalo_add_launch(${test}_two_nodes LABELS quick ${tier}
      COMMAND ${CMAKE_COMMAND} -E env ISOHALO_TEST_RANKS_PER_NODE=2
              ${MPIEXEC_EXECUTABLE} -launcher fork -hosts a:2,b:2 ${MPIEXEC_NUMPROC_FLAG} 4 $<TARGET_FILE:test_${test}>)
  endforeach()
endif()

# --- the C interface, from C99 -----------------------------------------------------------------------------------------
set(parts interface freed halo)
if(TARGET isohalo_reduce)
  list(APPEND parts reducer)
endif()
foreach(part IN LISTS parts)
  add_executable(test_c_${part} c/c_${part}_test.c)
  set_target_properties(test_c_${part} PROPERTIES C_STANDARD 99 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF)
  target_compile_options(test_c_${part} PRIVATE -Wall -Wextra -Wpedantic -Werror)
  if(isohalo_mpi_family STREQUAL "Open MPI")  # GCC takes its MPI_UNWEIGHTED for an array
    target_compile_options(test_c_${part} PRIVATE -Wno-stringop-overread -Wno-stringop-overflow)
  endif()
  target_link_libraries(test_c_${part} PRIVATE isohalo::halo m)
  if(part STREQUAL reducer)
    target_link_libraries(test_c_${part} PRIVATE isohalo::reduce)
  endif()
  foreach(ranks 1 2 3 4 6)
    set(tier)
    if("${part} ${ranks}" MATCHES "halo [46]|interface [246]")
      set(tier full)
    endif()
    isohalo_add_launch(c_${part}_p${ranks} RANKS ${ranks} LABELS quick ${tier} COMMAND $<TARGET_FILE:test_c_${part}>)
  endforeach()
endforeach()

add_executable(lifetime mpi/lifetime.cpp)
isohalo_flags(lifetime)
target_link_libraries(lifetime PRIVATE isohalo::halo)
if(TARGET isohalo_reduce)
  target_link_libraries(lifetime PRIVATE isohalo::reduce)
  target_compile_definitions(lifetime PRIVATE ISOHALO_TEST_REDUCE)
endif()
foreach(ranks 1 3)
  isohalo_add_launch(lifetime_p${ranks} RANKS ${ranks} LABELS quick COMMAND $<TARGET_FILE:lifetime>)
endforeach()
foreach(ranks 1 3)  # objects that outlive MPI_Finalize leave their datatypes to it
  set_tests_properties(lifetime_p${ranks} PROPERTIES FAIL_REGULAR_EXPRESSION "LEAK;ERROR: AddressSanitizer;runtime error:")
endforeach()

add_executable(foreign_mpi mpi/foreign_mpi.cpp)
isohalo_flags(foreign_mpi)
target_link_libraries(foreign_mpi PRIVATE isohalo::halo)
isohalo_add_launch(foreign_mpi RANKS 1 LABELS quick COMMAND $<TARGET_FILE:foreign_mpi>)

# --- reduce -------------------------------------------------------------------------------------------------------------
if(TARGET isohalo_reduce)
  isohalo_add_test(embedding SOURCES halo/embedding_test.cpp RANKS 1 2 3 4 LABELS quick)
  isohalo_add_test(tree SOURCES reduce/tree_test.cpp RANKS 1 TIMEOUT 300 LABELS quick)
  isohalo_add_test(tree_reducer SOURCES reduce/tree_reducer_test.cpp RANKS 1 2 3 4 5 7 FULL_RANKS 6 8 TIMEOUT 300 LABELS quick)
  isohalo_add_test(reduce_product SOURCES reduce/reduce_product_test.cpp FULL_RANKS 2 TIMEOUT 1500 LABELS product)
  isohalo_add_launch(reduce_product_sample RANKS 2 LABELS product sample
    COMMAND ${CMAKE_COMMAND} -E env ISOHALO_TEST_EVERY=41 $<TARGET_FILE:test_reduce_product>)
  isohalo_add_test(reduce_program SOURCES reduce/reduce_program_test.cpp RANKS 1 TIMEOUT 600 LABELS quick)
  isohalo_add_test(allreduce SOURCES reduce/allreduce_test.cpp RANKS 1 2 3 4 5 6 7 8 LABELS quick)
  isohalo_add_test(in_flight SOURCES reduce/in_flight_test.cpp ../apps/bench/emulated_network.cpp RANKS 1 2 3 4 6 TIMEOUT 120 LABELS quick)
  isohalo_add_test(reduction_messages SOURCES reduce/message_count_test.cpp neighborhood/counters.cpp RANKS 1 2 3 4 6 LABELS quick)
  isohalo_add_test(planning SOURCES reduce/planning_test.cpp ../apps/bench/emulated_network.cpp RANKS 1 4 FULL_RANKS 2 3 6 TIMEOUT 300 LABELS quick TIMED)
  isohalo_add_test(node_slots SOURCES shm/node_slots_test.cpp RANKS 1 2 3 4 6 LABELS quick)
  isohalo_add_test(index_ranges SOURCES reduce/index_ranges_test.cpp ../apps/bench/distributions.cpp RANKS 1 LABELS quick)
  isohalo_add_test(array_reducer SOURCES reduce/array_reducer_test.cpp ../apps/bench/distributions.cpp RANKS 1 2 3 4 5 7 FULL_RANKS 6 8 LABELS quick)
  add_executable(exact_sums reduce/exact_sums.cpp)
  isohalo_flags(exact_sums)
  target_link_libraries(exact_sums PRIVATE isohalo::reduce)
  isohalo_add_launch(exact_sums LABELS quick
    COMMAND ${ISOHALO_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/reduce/exact_sums.py $<TARGET_FILE:exact_sums> ${MPIEXEC_EXECUTABLE}
            ${PROJECT_BINARY_DIR}/exact_sums)
  isohalo_add_test(schedule SOURCES reduce/schedule_test.cpp RANKS 1 TIMEOUT 300 LABELS quick)
  isohalo_add_test(simulator SOURCES reduce/simulator_test.cpp RANKS 1 TIMEOUT 300 LABELS quick)
  add_executable(full_shm shm/full_shm.cpp)
  isohalo_flags(full_shm)
  target_link_libraries(full_shm PRIVATE isohalo::halo isohalo::reduce)
  foreach(when before after)
    isohalo_add_launch(full_shm_${when} LABELS quick
      COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/shm/full_shm.sh ${MPIEXEC_EXECUTABLE} 3 $<TARGET_FILE:full_shm> ${when})
    set_tests_properties(full_shm_${when} PROPERTIES SKIP_RETURN_CODE 77)
  endforeach()
  if(mpich_like)  # it plays two compute nodes
    foreach(test node_slots array_reducer)
      isohalo_add_launch(${test}_two_nodes LABELS quick
        COMMAND ${CMAKE_COMMAND} -E env MPIR_CVAR_NUM_CLIQUES=2 ISOHALO_TEST_NODES=2
                ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} 5 $<TARGET_FILE:test_${test}>)
    endforeach()
  endif()
endif()

# --- other languages -------------------------------------------------------------------------------------------------
if(TARGET isohalo_fortran)
  add_executable(test_fortran fortran/fortran_test.f90)
  target_compile_options(test_fortran PRIVATE $<$<Fortran_COMPILER_ID:GNU>:-Wall;-fcheck=all,no-array-temps>)
  target_link_libraries(test_fortran PRIVATE isohalo::fortran)
  foreach(ranks 1 2 3 4)
    isohalo_add_launch(fortran_p${ranks} RANKS ${ranks} LABELS quick COMMAND $<TARGET_FILE:test_fortran>)
  endforeach()
  isohalo_add_launch(fortran_stop RANKS 2 LABELS quick COMMAND $<TARGET_FILE:test_fortran> stop)
  set_tests_properties(fortran_stop PROPERTIES PASS_REGULAR_EXPRESSION "isohalo: error: domain: a grid has 1 to 4 dimensions")
  if(TARGET fortran_heat)
    isohalo_add_launch(fortran_heat LABELS quick
      COMMAND ${ISOHALO_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/project/same_residual.py $<TARGET_FILE:embed_heat>
              ${MPIEXEC_EXECUTABLE} $<TARGET_FILE:fortran_heat>)
  endif()
endif()

if(TARGET isohalo_c AND TARGET embed_heat)
  set(ISOHALO_MPI4PY_PYTHON "${ISOHALO_PYTHON}" CACHE FILEPATH "A Python that has NumPy, and mpi4py for this MPI, for a test")
  isohalo_add_launch(python_package LABELS quick
    COMMAND ${ISOHALO_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/python/run.py ${ISOHALO_MPI4PY_PYTHON} ${MPIEXEC_EXECUTABLE}
            $<TARGET_FILE:isohalo_c> $<TARGET_FILE:embed_heat>)
  set_tests_properties(python_package PROPERTIES SKIP_RETURN_CODE 77)
endif()

# --- the checks of `isohalo verify`, which is not built without its other libraries ----------------------------------------
if(TARGET isohalo_reduce AND NOT isohalo_full)
  find_package(fmt QUIET)
  if(fmt_FOUND)
    add_executable(live_mpi mpi/live_mpi.cpp ../apps/common/ending.cpp ../apps/isohalo/live_check.cpp
      ../apps/isohalo/live_collectives.cpp ../apps/isohalo/live_features.cpp ../apps/isohalo/live_transports.cpp)
    isohalo_flags(live_mpi)
    target_link_libraries(live_mpi PRIVATE isohalo::halo isohalo::reduce fmt::fmt)
    foreach(ranks 1 2 3 4)
      isohalo_add_launch(live_mpi_p${ranks} RANKS ${ranks} TIMEOUT 900 LABELS quick COMMAND $<TARGET_FILE:live_mpi>)
    endforeach()
  endif()
endif()

# --- collectives of compute nodes -----------------------------------------------------------------------------------------
if(TARGET isohalo_collectives)
  isohalo_add_test(refused_reads SOURCES shm/refused_reads_test.cpp RANKS 1 2 3 FULL_RANKS 4 6 LABELS quick)
  isohalo_add_test(node_collectives SOURCES shm/node_collectives_test.cpp RANKS 1 2 3 FULL_RANKS 4 5 6 7 8 LABELS quick)
  isohalo_add_test(node_schedules SOURCES shm/node_schedules_test.cpp shm/node_equations.cpp RANKS 1 LABELS quick)
  isohalo_add_test(cluster_collectives SOURCES shm/cluster_collectives_test.cpp RANKS 1 2 3 4 LABELS quick)
  foreach(test refused_reads node_collectives node_schedules cluster_collectives)
    target_link_libraries(test_${test} PRIVATE isohalo::collectives)
  endforeach()
  if(ISOHALO_HWLOC)
    isohalo_add_test(hierarchy SOURCES shm/hierarchy_test.cpp RANKS 3 4 LABELS quick)
    target_link_libraries(test_hierarchy PRIVATE isohalo::collectives)
    foreach(level numa l3 l2)  # what the two cores do not share
      set(machine "package:1 numa:1 l3:1 l2:1 pu:1")
      string(REPLACE "${level}:1" "${level}:2" machine "${machine}")
      isohalo_add_launch(hierarchy_${level} LABELS quick
        COMMAND ${CMAKE_COMMAND} -E env "HWLOC_SYNTHETIC=${machine}" ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} 4
                $<TARGET_FILE:test_hierarchy>)
    endforeach()
  endif()
  if(mpich_like)  # it plays compute nodes
    foreach(nodes 2 3 5)
      set(tier full)
      if(nodes EQUAL 3)
        set(tier)
      endif()
      isohalo_add_launch(cluster_collectives_${nodes}_nodes LABELS quick ${tier}
        COMMAND ${CMAKE_COMMAND} -E env MPIR_CVAR_NUM_CLIQUES=${nodes} ISOHALO_TEST_NODES=${nodes}
                ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} 6 $<TARGET_FILE:test_cluster_collectives>)
    endforeach()
  endif()
endif()
