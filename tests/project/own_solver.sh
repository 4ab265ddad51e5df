#!/usr/bin/env bash
# A solver that was built in a repository of its own has what solvers of the command have, and the same bits on any ranks.
# usage: own_solver.sh SOURCE_DIRECTORY BUILD_DIRECTORY WORK_DIRECTORY MPIEXEC PROGRAM
#        own_solver.sh SOURCE_DIRECTORY BUILD_DIRECTORY WORK_DIRECTORY MPIEXEC   builds it first, by add_subdirectory
set -euo pipefail
source_dir=$1 build_dir=$2 work=$3 mpiexec=$4 program=${5:-}
rm -rf "$work"
mkdir -p "$work"
if [ -z "$program" ]; then
  cmake -S "$source_dir/apps/examples/own_solver" -B "$work/build" -DISOHALO_SOURCE="$source_dir" -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_EXPORT_COMPILE_COMMANDS=ON -DKokkos_DIR="$(sed -n 's/^Kokkos_DIR:PATH=//p' "$build_dir/CMakeCache.txt")" >"$work/configure.log" 2>&1 ||
    { cat "$work/configure.log"; exit 1; }
  cmake --build "$work/build" -j 2 --target brusselator >"$work/build.log" 2>&1 || { tail -n 50 "$work/build.log"; exit 1; }
  program=$(find "$work/build" -name brusselator -type f -perm -u+x | head -n 1)
  cmake --build "$build_dir" --target brusselator >>"$work/build.log" 2>&1 || { tail -n 50 "$work/build.log"; exit 1; }
  # The boundary rule of docs/adding-a-solver.md, whose main takes the place of the example's.
  python3 - "$source_dir" "$work" <<'PYTHON'
import json, pathlib, re, shlex, subprocess, sys
source, work = map(pathlib.Path, sys.argv[1:])
rule = re.search(r"```cpp\n(const isohalo::BoundaryKind leak.*?)```", (source / "docs/adding-a-solver.md").read_text(), re.S)[1]
solver = (source / "apps/examples/own_solver/brusselator.cpp").read_text().split("int main(")[0]
(work / "leak.cpp").write_text(solver + rule)
for c in json.loads((work / "build/compile_commands.json").read_text()):
    if "brusselator.dir" in c["command"]:
        words = shlex.split(c["command"])
        words[words.index("-o") + 1] = "/dev/null"
        words[-1] = str(work / "leak.cpp")
        sys.exit(subprocess.run([*words, "-fsyntax-only"], cwd=c["directory"]).returncode)
sys.exit("brusselator.cpp is not compiled")
PYTHON
fi
input="$source_dir/apps/examples/own_solver/brusselator.toml"
keys=(run.steps=60 output.checkpoint_every=30 output.picture_every=0)
cd "$work"
"$program" run "$input" "${keys[@]}" output.directory=alone >/dev/null
if [ -z "${5:-}" ]; then  # as compiled in the build, with other flags
  "$build_dir/bin/brusselator" run "$input" "${keys[@]}" output.directory=in_tree >/dev/null
  cmp in_tree/step_00000060.h5 alone/step_00000060.h5
fi
for ranks in 2 3; do
  "$mpiexec" -n "$ranks" "$program" run "$input" "${keys[@]}" output.directory="by_$ranks" parallel.halo_depth="$ranks" >/dev/null
  cmp alone/step_00000060.h5 "by_$ranks/step_00000060.h5"
done
by() { # directory, options: a run on two ranks, which leaves the same last file
  local directory=$1
  shift
  "$mpiexec" -n 2 "$program" run "$input" "${keys[@]}" output.directory="$directory" "$@" >"$directory.log" 2>&1 || { cat "$directory.log"; exit 1; }
  cmp alone/step_00000060.h5 "$directory/step_00000060.h5"
}
for exchange in direct coalesced slabs direct_packed coalesced_packed slabs_packed shared; do by "$exchange" parallel.exchange="$exchange"; done
# By sources it has no tests, and so no kernels for devices unless Kokkos has one.
if [ -z "${5:-}" ] && ! "$program" run "$input" --validate parallel.space=device 2>device.log; then
  grep -q "built without kernels for devices" device.log || { cat device.log; exit 1; }
else
  by device parallel.space=device
fi
# What any solver of the command has.
"$mpiexec" -n 2 "$program" run "$input" "${keys[@]}" output.directory=restarted --restart alone/step_00000030.h5 >/dev/null
cmp alone/step_00000060.h5 restarted/step_00000060.h5
"$program" compare alone/step_00000060.h5 by_2/step_00000060.h5 >/dev/null
if "$program" compare alone/step_00000030.h5 by_2/step_00000060.h5 >different.log; then echo "compare sees no difference"; exit 1; fi
"$program" run "$input" "${keys[@]}" output.picture_every=60 output.directory=pictures >/dev/null
[ -s pictures/u_00000060.png ] || { echo "no picture"; exit 1; }
"$program" run "$input" --plan >plan.log
grep -q "ranks" plan.log || { cat plan.log; exit 1; }
"$program" run --help-input >help.log 2>&1
for key in Du Dv A B; do grep -q "solver.$key" help.log || { echo "no solver.$key in the help"; exit 1; }; done
if "$program" run "$input" solver.AA=2 2>wrong.log; then echo "an unknown key is taken"; exit 1; fi
grep -q "solver.AA" wrong.log || { cat wrong.log; exit 1; }
"$program" prove "$input" run.steps=20 --ranks 1,2 >/dev/null
