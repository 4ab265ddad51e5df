#!/usr/bin/env bash
# Builds the fuzzing harnesses with clang, libFuzzer and sanitizers, and runs each:
#   bash tests/fuzz/run.sh [EXECUTIONS] [HARNESS..]     1,000,000 of inputs, overrides, text and checkpoint
# One line per harness. Exit code 1 when one found something; the input is left in build/fuzz/found.
set -euo pipefail
cd "$(dirname "$0")/../.."

executions=${1:-1000000}
shift || true
harnesses=("$@")
[ ${#harnesses[@]} -gt 0 ] || harnesses=(inputs overrides text checkpoint)

cmake --preset fuzz > /dev/null
cmake --build build/fuzz -j "$(nproc)" --target fuzz_make_seeds "${harnesses[@]/#/fuzz_}"

work=build/fuzz/run
mkdir -p "$work" build/fuzz/found
# MPICH and HDF5 are not instrumented, and keep memory until the process ends.
export ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1
build/fuzz/bin/fuzz_make_seeds "$work/checkpoint_seeds"

status=0
for harness in "${harnesses[@]}"; do
  corpus=$work/$harness
  mkdir -p "$corpus"
  limit=4096
  case $harness in
    checkpoint) seeds=("$work/checkpoint_seeds"); limit=16384 ;;
    inputs) seeds=(tests/fuzz/seeds/inputs inputs) ;;
    *) seeds=(tests/fuzz/seeds/"$harness") ;;
  esac
  log=$work/$harness.log
  code=0
  build/fuzz/bin/fuzz_"$harness" -runs="$executions" -max_len=$limit -timeout=60 -print_final_stats=1 \
    -artifact_prefix=build/fuzz/found/"$harness"_ "$corpus" "${seeds[@]}" > "$log" 2>&1 || code=$?
  done_runs=$(sed -n 's/^stat::number_of_executed_units: //p' "$log" | tail -1)
  if [ $code -eq 0 ]; then
    echo "$harness: ${done_runs:-0} executions, no finding"
  else
    echo "$harness: ${done_runs:-?} executions, a finding (see $log)"
    status=1
  fi
done
exit $status
