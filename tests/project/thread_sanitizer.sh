#!/usr/bin/env bash
# Do threads of a rank meet in memory unordered? usage: thread_sanitizer.sh [BUILD]
# ISOHALO_TSAN_KOKKOS: where a Kokkos is installed that has threads of the standard library, compiled for the sanitizer as
# well (that of OpenMP will not do: GCC's runtime orders its threads in ways that the sanitizer does not see):
#   cmake -S kokkos -B kokkos/build -DKokkos_ENABLE_THREADS=ON -DKokkos_ENABLE_SERIAL=ON -DCMAKE_CXX_STANDARD=20 \
#     -DCMAKE_CXX_EXTENSIONS=OFF -DCMAKE_CXX_FLAGS="-O1 -g -fsanitize=thread" -DCMAKE_INSTALL_PREFIX=DIRECTORY
# BUILD: where isohalo is built with it (default: build/thread_sanitizer). Ends with 77 (skipped) without such a Kokkos.
set -euo pipefail
cd "$(dirname "$0")/../.."
kokkos=${ISOHALO_TSAN_KOKKOS:-} build=${1:-build/thread_sanitizer}
if [ -z "$kokkos" ] || ! grep -rqs "Kokkos_DEVICES.*THREADS" "$kokkos"/lib*/cmake/Kokkos/KokkosConfigCommon.cmake; then
  echo "skipped: no Kokkos with threads for the sanitizer is named by ISOHALO_TSAN_KOKKOS (this script says how to get one)"
  exit 77
fi
mkdir -p "$(dirname "$build")"
tests=(tree_reducer stencils acoustics cell_solver time_tiles depths)
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=None -DCMAKE_CXX_FLAGS="-O1 -g1 -fsanitize=thread -Wno-tsan" \
  -DKokkos_ROOT="$kokkos" -DISOHALO_INSTALL=OFF -DISOHALO_SHARED_C=OFF -DCMAKE_UNITY_BUILD=ON >"$build.log" 2>&1 || { cat "$build.log" >&2; exit 1; }
ninja -C "$build" isohalo_command "${tests[@]/#/test_}"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# UCX puts itself before malloc and mmap, which the sanitizer has done already.
export UCX_MEM_EVENTS=n UCX_MEM_MMAP_HOOK_MODE=none ISOHALO_CHECK=communication
export TSAN_OPTIONS="halt_on_error=1 exitcode=66 history_size=4"
failed=0
check() {  # LABEL COMMAND ..
  local label=$1
  shift
  if timeout 900 "$@" >"$work/log" 2>&1; then
    echo "passed: $label"
  else
    echo "FAILED: $label" >&2
    tail -40 "$work/log" >&2
    failed=1
  fi
}
for test in "${tests[@]}"; do
  # How long rows sleep is told for one thread.
  check "test_$test" env KOKKOS_NUM_THREADS=3 mpiexec -n 1 "$build/bin/test_$test" --gtest_brief=1 --gtest_filter="-*ChargedToTheSweep"
done
for input in inputs/*.toml; do
  case $input in */heat3d.toml) shape='domain.shape=[40,40,40]' ;; *) shape= ;; esac
  for ranks in 1 2; do
    check "$input, $ranks x 2 threads" env KOKKOS_NUM_THREADS=2 mpiexec -n $ranks "$build/bin/isohalo" run "$input" $shape \
      run.steps=12 run.residual_every=3 "output.directory=$work/out" --overwrite
  done
done
exit $failed
