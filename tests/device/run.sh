#!/usr/bin/env bash
# Solvers on a CUDA device: compiles the device path of the shipped cell solvers with nvcc, and searches the PTX of their
# kernels for arithmetic that is not rounded as on the host (ptx.py). Where there is a GPU, builds the command as well and
# compares runs on the host and on the GPU byte by byte. Ends with 77 (skipped) without nvcc or a Kokkos with CUDA.
# usage: run.sh [--kokkos DIRECTORY] [--build] [WORK_DIRECTORY]
#   --kokkos  where such a Kokkos (4.7 or newer for CUDA 13) was installed; else ISOHALO_CUDA_KOKKOS says it
#   --build   build the command and its libraries even where there is no GPU
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd) source_dir=$(cd "$(dirname "$0")/../.." && pwd)
kokkos=${ISOHALO_CUDA_KOKKOS:-} build= work=
while [ $# -gt 0 ]; do
  case $1 in
    --kokkos) kokkos=$2; shift ;;
    --build) build=1 ;;
    -*) sed -n '5,7s/^# //p' "$0"; exit 2 ;;
    *) work=$1 ;;
  esac
  shift
done
work=${work:-$source_dir/build/device}
export PATH="$PATH:/usr/local/cuda/bin"
if ! command -v nvcc >/dev/null; then
  echo "skipped: there is no nvcc here"
  exit 77
fi
if [ -z "$kokkos" ] || ! grep -rqs "Kokkos_DEVICES.*CUDA" "$kokkos"/lib*/cmake/Kokkos/KokkosConfigCommon.cmake; then
  echo "skipped: no Kokkos with CUDA is named by --kokkos or ISOHALO_CUDA_KOKKOS (docs/devices.md says how to get one)"
  exit 77
fi
mkdir -p "$work"

# Does the search find what it looks for?
nvcc -ptx -o "$work/contracted.ptx" "$here/contracted.cu"
if python3 "$here/ptx.py" --least 1 "$work/contracted.ptx" >"$work/contracted.log"; then
  echo "FAILED: a contracted kernel is not found"
  exit 1
fi
nvcc --fmad=false -ptx -o "$work/kept.ptx" "$here/contracted.cu"
python3 "$here/ptx.py" --least 1 "$work/kept.ptx" >"$work/kept.log" || { cat "$work/kept.log"; exit 1; }

cmake -S "$source_dir" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DKokkos_ROOT="$kokkos" -DISOHALO_TESTS=OFF \
  >"$work/configure.log" 2>&1 || { cat "$work/configure.log"; exit 1; }
mkdir -p "$work/kept"
objects=() ptx=()
parts=(device/device_stepper device/poisson_on_device)
for solver in "$source_dir"/stencils/solvers/*.cpp; do
  name=$(basename "$solver" .cpp)
  [ $name = poisson ] || parts+=("solvers/$name")  # that is above
done
for part in "${parts[@]}"; do
  object=stencils/CMakeFiles/isohalo_stencils.dir/$part.cpp.o kept=$work/kept/$(basename "$part").ptx
  objects+=("$object") ptx+=("$kept")
  [ -s "$kept" ] || rm -f "$work/build/$object"  # compiled without leaving its PTX
done
NVCC_APPEND_FLAGS="--keep --keep-dir $work/kept" cmake --build "$work/build" --target "${objects[@]}" >"$work/compile.log" 2>&1 ||
  { tail -n 60 "$work/compile.log"; exit 1; }
find "$work/kept" -type f ! -name '*.ptx' -delete
# Sweeps: of 8 solvers, most in 2 types and 4 dimensions, and those with stages, methods or coefficients several.
python3 "$here/ptx.py" --least 100 "${ptx[@]}"

gpu=
if command -v nvidia-smi >/dev/null && nvidia-smi -L 2>/dev/null | grep -q GPU; then gpu=1; fi
if [ -n "$build$gpu" ]; then
  cmake --build "$work/build" --target isohalo_command brusselator >"$work/build.log" 2>&1 || { tail -n 60 "$work/build.log"; exit 1; }
  echo "built $work/build/bin/isohalo"
fi
if [ -z "$gpu" ]; then
  echo "there is no GPU here: compiled and searched, not run"
  exit 0
fi
python3 "$here/on_gpu.py" --own "$work/build/bin/brusselator" "$work/build/bin/isohalo" "$source_dir" "$work/runs"
