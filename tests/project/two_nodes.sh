#!/usr/bin/env bash
# Runs a command on two "nodes" of one machine: network and host-name namespaces joined by a bridge, so that ranks of different
# nodes share no memory and talk TCP. Needs root; where that is not permitted it says so and ends with 77 (skipped).
# ISOHALO_LINK_RATE=100mbit (or any rate that tc knows) makes the link between the nodes that slow.
# usage: two_nodes.sh MPIEXEC RANKS_PER_NODE COMMAND ..
set -euo pipefail
mpiexec=$1 ranks=$2
shift 2
id=ih$$
bridge=${id}b
cleanup() {
  for n in 1 2; do ip netns del "$id$n" 2>/dev/null || true; done
  for link in "${id}1v" "${id}2v" "$bridge"; do ip link del "$link" 2>/dev/null || true; done
  rm -f "${launcher:-}"
}
trap cleanup EXIT
if [ "$(id -u)" != 0 ] || ! ip netns add "${id}1" 2>/dev/null || ! unshare -u true 2>/dev/null; then
  echo "skipped: network and host-name namespaces are not permitted here"
  exit 77
fi
ip netns add "${id}2"
ip link add "$bridge" type bridge
net=10.$((RANDOM % 100 + 100)).$((RANDOM % 200))
ip addr add "$net.1/24" dev "$bridge"
ip link set "$bridge" up
for n in 1 2; do
  ip link add "$id${n}v" type veth peer name eth0 netns "$id$n"
  ip link set "$id${n}v" master "$bridge" up
  ip netns exec "$id$n" ip link set lo up
  ip netns exec "$id$n" ip addr add "$net.1$n/24" dev eth0
  ip netns exec "$id$n" ip link set eth0 up
  if [ -n "${ISOHALO_LINK_RATE:-}" ]; then
    ip netns exec "$id$n" tc qdisc add dev eth0 root tbf rate "$ISOHALO_LINK_RATE" burst 128kb latency 100ms
  fi
done
export UCX_TLS=${UCX_TLS:-tcp,self}  # it would find that the nodes are one machine and share memory
launcher=$(mktemp)
# Hydra calls it like ssh: options, host, command.
cat >"$launcher" <<LAUNCH
#!/bin/bash
while [ "\${1#-}" != "\$1" ]; do shift; done
host=\$1; shift
exec ip netns exec $id\${host##*.1} unshare -u bash -c "hostname node\${host##*.1}; \$*"
LAUNCH
chmod +x "$launcher"
"$mpiexec" -launcher ssh -launcher-exec "$launcher" -iface "$bridge" -hosts "$net.11:$ranks,$net.12:$ranks" \
  -n $((2 * ranks)) "$@" </dev/null
