#!/usr/bin/env bash
# The embedding example against an installed isohalo, as a user builds it: same residual as in-tree.
# usage: install_test.sh SOURCE_DIRECTORY BUILD_DIRECTORY WORK_DIRECTORY MPIEXEC
set -euo pipefail
source_dir=$1 build_dir=$2 work=$3 mpiexec=$4
rm -rf "$work"
cmake --install "$build_dir" --prefix "$work/prefix" >"$work.install.log"
cmake -S "$source_dir/apps/examples" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_CXX_FLAGS="-march=native" >"$work.configure.log"
# A solver in a repository of its own is built beside the other programs.
cmake -S "$source_dir/apps/examples/own_solver" -B "$work/build_solver" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_CXX_FLAGS="-march=native" -DCMAKE_CXX_FLAGS_RELEASE="-O1 -DNDEBUG" >"$work.configure_solver.log"
cmake --build "$work/build_solver" >"$work.build_solver.log" &
solver_build=$!
cmake --build "$work/build" >"$work.build.log"
if grep -qiE 'hdf5|kokkos' "$work/build/CMakeCache.txt"; then
  echo "the example needs HDF5 or Kokkos" >&2
  exit 1
fi
expected=$("$build_dir/bin/embed_heat")
for ranks in 1 2 3 6; do
  got=$("$mpiexec" -n "$ranks" "$work/build/embed_heat")
  if [ "$got" != "$expected" ]; then
    echo "installed, $ranks ranks: $got; in-tree, 1 rank: $expected" >&2
    exit 1
  fi
done
# What a project lacks, and a component that nobody knows, are named.
refused() {  # LANGUAGES COMPONENT MESSAGE
  mkdir -p "$work/refused"
  printf 'cmake_minimum_required(VERSION 3.20)\nproject(refused LANGUAGES %s)\nfind_package(isohalo REQUIRED COMPONENTS %s)\n' \
    "$1" "$2" >"$work/refused/CMakeLists.txt"
  rm -rf "$work/refused/build"
  if said=$(cmake -S "$work/refused" -B "$work/refused/build" -DCMAKE_PREFIX_PATH="$work/prefix" 2>&1) ||
    ! tr -s ' \n' ' ' <<<"$said" | grep -qF "$3"; then
    echo "a project of $1 with the component $2: $said" >&2
    exit 1
  fi
}
refused CXX halo "needs the language C"
refused "C CXX" hallo "no component hallo here; there are datatypes;halo"
# The C interface, from a project that knows no C++, and by hand with mpicc.
cmake -S "$source_dir/apps/examples/c" -B "$work/build_c" -DCMAKE_PREFIX_PATH="$work/prefix" >"$work.configure_c.log"
cmake --build "$work/build_c" >"$work.build_c.log"
mpicc=$(sed -n 's/^MPI_C_COMPILER:FILEPATH=//p' "$work/build_c/CMakeCache.txt")
"$mpicc" -std=c99 -I"$work/prefix/include" "$source_dir/apps/examples/c/neighbors.c" -o "$work/by_hand" \
  -L"$work/prefix/lib" -lisohalo_halo -lisohalo_datatypes -lstdc++ -lm
for ranks in 1 2 4; do
  expected_c=$("$mpiexec" -n "$ranks" "$build_dir/bin/neighbors")
  for program in "$work/build_c/neighbors" "$work/by_hand"; do
    got=$("$mpiexec" -n "$ranks" "$program")
    if [ "$got" != "$expected_c" ]; then
      echo "$program, $ranks ranks: $got; in-tree: $expected_c" >&2
      exit 1
    fi
  done
done
# The solver.
wait $solver_build
bash "$source_dir/tests/project/own_solver.sh" "$source_dir" "$build_dir" "$work/solver" "$mpiexec" "$work/build_solver/brusselator"
# The Fortran module, where it was built.
if [ -f "$work/prefix/lib/libisohalo_fortran.a" ]; then
  cmake -S "$source_dir/apps/examples/fortran" -B "$work/build_fortran" -DCMAKE_PREFIX_PATH="$work/prefix" \
    -DCMAKE_BUILD_TYPE=Release >"$work.configure_fortran.log"
  cmake --build "$work/build_fortran" >"$work.build_fortran.log"
  python3 "$source_dir/tests/project/same_residual.py" "$build_dir/bin/embed_heat" "$mpiexec" "$work/build_fortran/heat"
fi
test -x "$work/prefix/bin/isohalo" && "$work/prefix/bin/isohalo" --version
echo "$expected on 1, 2, 3 and 6 ranks, in-tree and installed"
