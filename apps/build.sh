#!/usr/bin/env bash
# Installs what is missing, configures build/release and builds the command there; with tests, all.
#   usage: build.sh [with-tests | with-full-tests]
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(g++ cmake ninja-build mpich libmpich-dev libhdf5-mpich-dev libtrilinos-kokkos-dev libtomlplusplus-dev
          libcli11-dev libfmt-dev libpng-dev nlohmann-json3-dev)
tests=OFF targets=(--target isohalo_command)
if [[ "${1:-}" = with-*tests ]]; then
  packages+=(libgtest-dev python3 python3-numpy python3-h5py)
  tests=ON targets=(--target all)
  [ "$1" = with-tests ] || tests=FULL
fi
if [ -z "${ISOHALO_SKIP_INSTALL:-}" ]; then
  if command -v dpkg-query >/dev/null; then
    bash apps/install_packages.sh "${packages[@]}"
  else
    echo "this is neither Debian nor Ubuntu; needed are: C++20 compiler, CMake >= 3.25, Ninja, MPICH, HDF5 built with MPICH," >&2
    echo "Kokkos (or -DISOHALO_FETCH_KOKKOS=ON), toml++, CLI11, fmt, libpng, nlohmann-json. Once they are there:" >&2
    echo "ISOHALO_SKIP_INSTALL=1 bash apps/quickstart.sh" >&2
    exit 1
  fi
fi
log=build/configure.log
mkdir -p build
if ! cmake --preset release -DISOHALO_TESTS=$tests >"$log" 2>&1; then
  cat "$log" >&2
  exit 1
fi
cmake --build build/release "${targets[@]}"
