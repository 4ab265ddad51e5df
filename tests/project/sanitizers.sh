#!/usr/bin/env bash
# Builds with the address and undefined-behaviour sanitizers (preset "asan") and runs the quick tests on 1 and 3 ranks.
# usage: sanitizers.sh SOURCE_DIRECTORY WORK_DIRECTORY
set -euo pipefail
source_dir=$1 work=$2
cmake -S "$source_dir" --preset asan -B "$work" -DISOHALO_TESTS=ON >"$work.log" 2>&1 || { cat "$work.log"; exit 1; }
cmake --build "$work" >"$work.log" 2>&1 || { tail -50 "$work.log"; exit 1; }
ctest --test-dir "$work" -L quick -LE full -R '_p[13]$|^fuzz_' --output-on-failure --no-tests=error
