#!/usr/bin/env bash
# From a fresh clone to a simulation and the proof that its result does not depend on the number of cores:
# installs what is missing, builds, runs inputs/heat2d.toml on 4, 1 and 3 ranks, compares the files bit for bit.
set -euo pipefail
cd "$(dirname "$0")/.."

case "$(grep -s '^ISOHALO_TESTS:' build/release/CMakeCache.txt)" in  # what was built stays
  *=ON) tests=with-tests ;;
  *=FULL) tests=with-full-tests ;;
  *) tests=no ;;
esac
bash apps/build.sh $tests

mpiexec=$(command -v mpiexec.mpich || command -v mpiexec)
for ranks in 4 1 3; do
  echo
  "$mpiexec" -n "$ranks" build/release/bin/isohalo run inputs/heat2d.toml output.directory=out/quickstart_$ranks --overwrite
done

echo
for ranks in 1 3; do
  for step in 00000500 00001000; do
    cmp "out/quickstart_4/step_$step.h5" "out/quickstart_$ranks/step_$step.h5"
  done
  echo "4 and $ranks ranks: the checkpoints of steps 500 and 1000 are identical, byte for byte"
done
echo "picture: out/quickstart_4/u_00001000.png"
