#!/usr/bin/env bash
# Builds with the address and undefined-behaviour sanitizers (preset "asan") and runs the quick tests on 1 and 3 ranks.
# usage: sanitizers.sh SOURCE_DIRECTORY WORK_DIRECTORY
set -euo pipefail
source_dir=$1 work=$2
cmake -S "$source_dir" --preset asan -B "$work" -DISOHALO_TESTS=FULL >"$work.log" 2>&1 || { cat "$work.log"; exit 1; }
cmake --build "$work" >"$work.log" 2>&1 || { tail -50 "$work.log"; exit 1; }
# Whole stacks, since MPI allocates through libraries without frame pointers, and they alone tell its leaks from ours.
export ASAN_OPTIONS=fast_unwind_on_malloc=0
export LSAN_OPTIONS=suppressions=$source_dir/tests/project/leaks.txt:print_suppressions=0
ctest --test-dir "$work" -L quick -R '_p[13]$|^fuzz_' --output-on-failure --no-tests=error
