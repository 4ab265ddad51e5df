#!/usr/bin/env bash
# Installs what is missing, builds, runs the quickstart and the whole test suite.
#   bash tests/run.sh          everything
#   bash tests/run.sh quick    the tests that take seconds
set -euo pipefail
cd "$(dirname "$0")/.."

case "${1:-all}" in
  all) select=() ;;
  quick) select=(-L quick) ;;
  *) echo "usage: bash tests/run.sh [quick]" >&2; exit 2 ;;
esac
bash apps/build.sh with-tests
[ "${1:-all}" = quick ] || bash apps/quickstart.sh
ctest --test-dir build/release --output-on-failure --no-tests=error "${select[@]}"
