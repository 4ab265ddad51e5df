#!/usr/bin/env bash
# A solver that was built in a repository of its own gives the bits of the one in the build.
# usage: own_solver.sh SOURCE_DIRECTORY BUILD_DIRECTORY WORK_DIRECTORY MPIEXEC PROGRAM
#        own_solver.sh SOURCE_DIRECTORY BUILD_DIRECTORY WORK_DIRECTORY MPIEXEC   builds it first, by add_subdirectory
set -euo pipefail
source_dir=$1 build_dir=$2 work=$3 mpiexec=$4 program=${5:-}
rm -rf "$work"
mkdir -p "$work"
if [ -z "$program" ]; then
  cmake -S "$source_dir/apps/examples/own_solver" -B "$work/build" -DISOHALO_SOURCE="$source_dir" -DCMAKE_BUILD_TYPE=Release \
    -DKokkos_DIR="$(sed -n 's/^Kokkos_DIR:PATH=//p' "$build_dir/CMakeCache.txt")" >"$work/configure.log" 2>&1 ||
    { cat "$work/configure.log"; exit 1; }
  cmake --build "$work/build" -j 2 --target brusselator >"$work/build.log" 2>&1 || { tail -n 50 "$work/build.log"; exit 1; }
  program=$(find "$work/build" -name brusselator -type f -perm -u+x | head -n 1)
fi
input="$source_dir/apps/examples/own_solver/brusselator.toml"
keys=(run.steps=60 output.checkpoint_every=30 output.picture_every=0)
cd "$work"
"$build_dir/bin/brusselator" run "$input" "${keys[@]}" output.directory=in_tree >/dev/null
for ranks in 2 3; do
  "$mpiexec" -n "$ranks" "$program" run "$input" "${keys[@]}" output.directory="by_$ranks" parallel.halo_depth="$ranks" >/dev/null
  cmp in_tree/step_00000060.h5 "by_$ranks/step_00000060.h5"
done
"$program" prove "$input" run.steps=20 --ranks 1,2 >/dev/null
