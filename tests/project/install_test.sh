#!/usr/bin/env bash
# The embedding example against an installed isohalo, as a user builds it: same residual as in-tree.
# usage: install_test.sh SOURCE_DIRECTORY BUILD_DIRECTORY WORK_DIRECTORY MPIEXEC
set -euo pipefail
source_dir=$1 build_dir=$2 work=$3 mpiexec=$4
rm -rf "$work"
cmake --install "$build_dir" --prefix "$work/prefix" >"$work.install.log"
cmake -S "$source_dir/apps/examples" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_CXX_FLAGS="-march=native" >"$work.configure.log"
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
test -x "$work/prefix/bin/isohalo" && "$work/prefix/bin/isohalo" --version
echo "$expected on 1, 2, 3 and 6 ranks, in-tree and installed"
