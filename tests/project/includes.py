#!/usr/bin/python3
"""One direction of dependence: reads every #include of the project and refuses those that the architecture does not
allow; and keeps the world communicator and stray files out.

usage: includes.py SOURCE_DIRECTORY
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1])
DIRECT = {
    "datatypes": [],
    "framework/mpi": ["datatypes"],
    "framework/domain": ["framework/mpi"],
    "framework/schedule": ["framework/mpi"],
    "framework/neighborhood": ["framework/domain", "framework/schedule"],
    "framework/shm": ["framework/schedule"],
    "framework/preload": ["framework/shm"],
    "framework/halo": ["framework/neighborhood", "framework/shm"],
    "framework/reduce": ["framework/domain", "framework/schedule", "framework/shm"],
    "framework/simulate": ["framework/schedule"],
    "framework/isohalo.h": [],
    "framework/c": ["framework/halo", "framework/reduce", "framework/isohalo.h"],
    "framework/fortran": ["framework/c"],
    "framework/io": ["framework/domain", "framework/halo"],
    "framework/run": ["framework/io", "framework/reduce", "framework/halo"],
    "framework/isohalo": ["framework/run", "framework/reduce"],
    "stencils": ["framework/halo", "framework/reduce", "framework/run"],
    "python": [],
    "apps": ["stencils", "framework/simulate", "framework/run", "framework/isohalo"],
}


def reachable(room):
    seen, todo = {room}, [room]
    while todo:
        for n in DIRECT[todo.pop()]:
            if n not in seen:
                seen.add(n)
                todo.append(n)
    return seen


def room_of(path):
    parts = path.split("/")
    return "/".join(parts[:2]) if parts[0] == "framework" else parts[0]


failures, files = [], 0
for path in sorted(p for r in ("datatypes", "framework", "stencils", "apps", "python") for p in (ROOT / r).rglob("*")):
    if path.suffix not in (".hpp", ".cpp", ".h", ".f90", ".py"):
        continue
    files += 1
    name = path.relative_to(ROOT).as_posix()
    room, text = room_of(name), path.read_text()
    for included in re.findall(r'#include [<"]((?:datatypes|framework|stencils|apps|tests)/[^>"]+)[>"]', text):
        if room_of(included) not in reachable(room):
            failures.append("%s includes %s" % (name, included))
        if "generated" not in included and not (ROOT / included).exists() and not (ROOT / (included + ".in")).exists():
            failures.append("%s includes %s, which does not exist" % (name, included))
    # The library knows the communicators that it is given; only what the launcher says, and a library
    # that is preloaded, is about the whole program.
    if room not in ("apps", "framework/preload") and "MPI_COMM_WORLD" in text and "mpi/launcher" not in name:
        failures.append("%s uses MPI_COMM_WORLD" % name)
    guard = "#pragma once" if path.suffix == ".hpp" else "#ifndef" if "../" not in text else "#include"
    if path.suffix in (".hpp", ".h") and guard not in text:
        failures.append("%s has no %s" % (name, guard))
    if text.count("\n") > 450:
        failures.append("%s has %d lines" % (name, text.count("\n")))
if files < 40:
    failures.append("only %d files found" % files)
for f in failures:
    print("FAILED:", f, file=sys.stderr)
print("%d files, %d failed" % (files, len(failures)))
sys.exit(1 if failures else 0)
