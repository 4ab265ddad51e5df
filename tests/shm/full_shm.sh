#!/usr/bin/env bash
# No shared memory when plans are made, or a /dev/shm that fills up afterwards: right ghosts, no signal, nothing left behind.
# Needs root; where a mount of one's own is not permitted it says so and ends with 77 (skipped).
# usage: full_shm.sh MPIEXEC RANKS PROGRAM before|after
set -euo pipefail
if [ "$(id -u)" != 0 ] || ! unshare -m mount -t tmpfs -o size=1m tmpfs /dev/shm 2>/dev/null; then
  echo "skipped: mounts are not permitted here"
  exit 77
fi
exec unshare -m bash -euc '
  mount -t tmpfs -o size=64m tmpfs /dev/shm
  said=$("$0" -n "$1" "$2" "$3" 2>&1) || { echo "$said"; echo "FAILED: the program"; exit 1; }
  echo "$said"
  warned=$(grep -c "isohalo: warning: halo exchange goes by messages: .*shared memory of this node" <<<"$said" || true)
  # Only of the plan that was told to go by shared memory, not of the one that chooses.
  if [ "$3" = before ] && [ "$warned" != 1 ]; then echo "FAILED: $warned warnings for two plans"; exit 1; fi
  if [ "$3" = after ] && [ "$warned" != 0 ]; then echo "FAILED: warned"; exit 1; fi
  left=$(ls -A /dev/shm)
  if [ -n "$left" ]; then echo "FAILED: left behind: $left"; exit 1; fi
' "$@"
