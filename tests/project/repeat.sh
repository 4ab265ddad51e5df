#!/usr/bin/env bash
# Runs a command N times; ends with its first exit code that is not 0.
# usage: repeat.sh N COMMAND ..
set -euo pipefail
times=$1
shift
for _ in $(seq "$times"); do
  "$@"
done
