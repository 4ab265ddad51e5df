#!/usr/bin/env bash
# Installs the Debian or Ubuntu packages named on the command line that are missing, and only those.
# Elsewhere, or without the right to install, it says what is missing and fails.
set -euo pipefail

missing=()
for package in "$@"; do
  if ! dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q '^install ok installed$'; then
    missing+=("$package")
  fi
done
[ ${#missing[@]} -eq 0 ] && exit 0

if ! command -v apt-get >/dev/null; then
  echo "missing (names of Debian's packages): ${missing[*]}" >&2
  echo "install what your system calls them, then run this again with ISOHALO_SKIP_INSTALL=1" >&2
  exit 1
fi
root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "missing packages: ${missing[*]}; ask your administrator, or run this as root" >&2
    exit 1
  fi
  root=(sudo)
fi
echo "installing ${missing[*]}"
"${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -qq
"${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
