#!/usr/bin/env bash
# The preloaded library where /dev/shm has 1 MB, in which MPI itself sends by TCP alone, and where it fills up after MPI has
# begun: right results, every call handled, no signal, nothing left behind. Its memory has no room there to lose.
# Needs root; where a mount of one's own is not permitted it says so and ends with 77 (skipped).
# usage: full_shm.sh MPIEXEC LIBRARY FOLDER_OF_CLIENTS
set -euo pipefail
if [ "$(id -u)" != 0 ] || ! unshare -m mount -t tmpfs -o size=1m tmpfs /dev/shm 2>/dev/null; then
  echo "skipped: mounts are not permitted here"
  exit 77
fi
exec unshare -m bash -euc '
  run() {
    said=$("$mpiexec" -n 3 -genv LD_PRELOAD "$library" -genv ISOHALO_MPI_REPORT 1 "$@" 2>&1) || { echo "$said"; echo "FAILED: $*"; exit 1; }
    echo "$said"
    for reason in "no shared memory" "another rank will not"; do
      if grep -q "\"$reason\"" <<<"$said"; then echo "FAILED: $*: passed on: $reason"; exit 1; fi
    done
    grep -q "\"MPI_Allreduce\": {\"handled\": [1-9]" <<<"$said" || { echo "FAILED: $*: no call was handled"; exit 1; }
    left=$(ls -A /dev/shm)
    if [ -n "$left" ]; then echo "FAILED: $*: left behind: $left"; exit 1; fi
  }
  mpiexec=$0 library=$1 clients=$2
  mount -t tmpfs -o size=1m tmpfs /dev/shm
  run -genv UCX_TLS self,tcp "$clients/preload_client" 300 5
  umount /dev/shm
  mount -t tmpfs -o size=64m tmpfs /dev/shm
  run "$clients/preload_hostile" fill 300 3
' "$@"
