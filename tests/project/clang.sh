#!/usr/bin/env bash
# A second opinion on every source of the project: clang's warnings, or what clang-tidy finds by the checks of .clang-tidy.
# Without precompiled headers, so that a source that lacks an #include is found. Ends with 77 (skipped) without clang.
# usage: clang.sh warnings|tidy SOURCE_DIRECTORY WORK_DIRECTORY [PART_OF_A_PATH]
set -euo pipefail
mode=$1 source_dir=$2 work=$3 part=${4:-}
for tool in clang clang++ $([ "$mode" = tidy ] && echo clang-tidy); do
  if ! command -v "$tool" >/dev/null; then
    echo "skipped: there is no $tool here"
    exit 77
  fi
done
export mode
cmake -S "$source_dir" -B "$work" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ \
  -DISOHALO_TESTS=FULL -DCMAKE_EXPORT_COMPILE_COMMANDS=ON -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON >"$work.log" 2>&1 ||
  { cat "$work.log"; exit 1; }
exec python3 - "$source_dir" "$work" "$part" <<'PYTHON'
import concurrent.futures, json, os, pathlib, shlex, subprocess, sys

source, work, part = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2], sys.argv[3]
tidy = os.environ["mode"] == "tidy"
entries = {}
for e in json.load(open(work + "/compile_commands.json")):
    file = pathlib.Path(e["file"])
    if file.is_relative_to(source) and not file.is_relative_to(pathlib.Path(work).resolve()) and part in e["file"]:
        if file.name != "not_copyable.cpp" and "build" not in file.relative_to(source).parts:
            if not tidy or (file.suffix == ".cpp" and file.relative_to(source).parts[0] != "tests"):
                entries.setdefault(file, e)  # once, though several programs may have it


def check(item):
    file, e = item
    if tidy:
        command = ["clang-tidy", "--quiet", "-p", work, str(file)]
    else:
        command = shlex.split(e["command"]) + ["-fsyntax-only"]
    r = subprocess.run(command, cwd=e["directory"], capture_output=True, text=True)
    said = r.stdout if tidy else r.stdout + r.stderr
    return r.returncode != 0 or "warning:" in said, said + (r.stderr if r.returncode else "")


checked = findings = 0
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    for wrong, said in pool.map(check, sorted(entries.items())):
        checked += 1
        if wrong:
            findings += 1
            print(said, flush=True)
print("%d sources, %d with findings" % (checked, findings))
sys.exit(1 if findings or not checked else 0)
PYTHON
