#!/usr/bin/env bash
# Installs what is missing, builds, runs the quickstart and the tests.
#   bash tests/run.sh            what every change must pass: each kind of test, the long ones as samples
#   bash tests/run.sh quick      the tests that take seconds
#   bash tests/run.sh full       everything; `full 1/3` is the first of three shards
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  echo "usage: bash tests/run.sh [quick | full [SHARD/SHARDS]]" >&2
  exit 2
}
tier=${1:-default} build=with-tests
case "$tier" in
  default) select=(-LE '^full$') ;;
  quick) select=(-L quick -LE '^full$') ;;
  full) select=(-LE '^sample$') build=with-full-tests ;;
  *) usage ;;
esac
if [ $# -gt 1 ]; then
  [[ "$tier" = full && $# = 2 && "$2" =~ ^([1-9][0-9]*)/([1-9][0-9]*)$ ]] || usage
  ((BASH_REMATCH[1] <= BASH_REMATCH[2])) || usage
  select+=(-I "${BASH_REMATCH[1]},,${BASH_REMATCH[2]}")  # every n-th test, and what they need
fi
bash apps/build.sh "$build"
[ "$tier" = quick ] || bash apps/quickstart.sh
# Two at a time, of one process four (tests/CMakeLists.txt): starting and waiting leave half of two cores idle.
ctest --test-dir build/release -j 4 --output-on-failure --no-tests=error "${select[@]}"
