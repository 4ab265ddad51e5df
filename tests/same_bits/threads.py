#!/usr/bin/python3
"""The same bits with 1 to 4 threads per rank, on 1 to 3 ranks: files, sums, digests. The grids are large enough that
outside cells, copies of exchanges and initial fields are shared among threads as well. And what the command says of
threads. Skipped where Kokkos has no threads on the host.

usage: threads.py ISOHALO MPIEXEC WORK_DIRECTORY SAME_BITS_RUNNER SAMPLE REFERENCE_DIRECTORY

SAMPLE: cases of the same-bits test, small ones of all kinds, whose reference files are in REFERENCE_DIRECTORY.
"""
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
from harness import ISOHALO, MPIEXEC, WORK, finish, fresh_work_directory, that  # noqa: E402

RUNNER = pathlib.Path(sys.argv[4]).resolve()
SAMPLE, REFERENCE = sys.argv[5], sys.argv[6]

RANDOM = "kind = \"random\"\nseed = 5\nlow = -1.0\nhigh = 1.5"
OUTSIDE = """boundary.low = [{dirichlet = "sin(3*x)*exp(-t)"}, "neumann", {robin = {a = 1, b = 0.5, value = "y+t"}}]
boundary.high = [{neumann = 0.25}, {fixed = "cos(x*y) - t"}, {dirichlet = 1.5}]"""
CASES = {
    "heat": (3, [40, 180, 190], OUTSIDE, 'kind = "heat"\ncfl = 0.7', "[initial]\n" + RANDOM),
    "wave": (1, [180, 24, 190], 'type = "float32"\n' + OUTSIDE, """kind = "wave"
dt = 0.002
[solver.c]
kind = "expression"
expression = "1 + 0.5*sin(5*x)*cos(y)"
[solver.mask]
kind = "box"
low = [0.1, 0.1, 0.1]
high = [0.3, 0.6, 0.6]""", "[initial]\nkind = \"expression\"\nexpression = \"exp(-9*(x-0.5)^2) + x0*y\""),
    "advection": (1, [180, 190, 20], OUTSIDE, 'kind = "advection"\nmethod = "upwind3"\nv0 = 0.3\nv1 = -0.4\nv2 = 0.5\ncfl = 0.5',
                  "[initial]\n" + RANDOM),
    "gray_scott": (2, [400, 510], "", 'kind = "gray_scott"\nDu = 1e-3\ndt = 0.001', "[initial.u]\n" + RANDOM + "\n[initial.v]\n" + RANDOM),
    "cg": (1, [32, 180, 190], OUTSIDE.replace('"cos(x*y) - t"', "0.5"), 'kind = "poisson"\nmethod = "cg"', "[source]\n" + RANDOM + "\n[initial]\n" + RANDOM),
    "red_black": (2, [30, 180, 180], "", 'kind = "poisson"\nmethod = "red_black"',
                  "[source]\nkind = \"sine\"\namplitude = 3.0\nmodes = [2, 1, 1]\n[initial]\n" + RANDOM),
    "chebyshev": (3, [300, 410], 'type = "float32"\nboundary.low = ["periodic", {dirichlet = 1}]\nboundary.high = ["periodic", "neumann"]',
                  'kind = "poisson"\nmethod = "chebyshev"', "[source]\n" + RANDOM + "\n[initial]\n" + RANDOM),
    "jacobi": (2, [300, 410], 'boundary.low = [{robin = {a = 1, b = 0.5, value = 1}}, "neumann"]\nboundary.high = ["neumann", {fixed = 0.5}]',
               'kind = "poisson"\nmethod = "jacobi"', "[source]\n" + RANDOM + "\n[initial]\n" + RANDOM),
    "acoustics": (2, [40, 180, 190], 'boundary.low = ["neumann", {dirichlet = "sin(9*t)*x"}, "periodic"]\nboundary.high = [{dirichlet = 0}, "neumann", "periodic"]',
                  'kind = "acoustics"\ncfl = 0.7', "".join("[initial.%s]\n%s\n" % (f, RANDOM) for f in ("p", "v0", "v1", "v2"))),
    "line": (4, [100003], "", 'kind = "stencil"\noffsets = [[-2], [0], [1]]\nweights = [0.25, 0.5, 0.25]\ndt = 0.125', "[initial]\n" + RANDOM),
    "life": (4, [700, 900], 'type = "uint8"\nboundary.low = [{fixed = 1}, "neumann"]\nboundary.high = ["neumann", {fixed = 0}]',
             'kind = "life"', '[initial]\nkind = "random"\nseed = 3\nhigh = 0.9'),
}


def with_threads(threads, ranks, *command):
    """Ranks and threads outnumber cores here: those that wait sleep."""
    environment = dict(os.environ, OMP_NUM_THREADS=str(threads), KOKKOS_NUM_THREADS=str(threads), OMP_WAIT_POLICY="passive",
                       KOKKOS_DISABLE_WARNINGS="1")
    return subprocess.run([MPIEXEC, "-n", str(ranks), *map(str, command)], capture_output=True, text=True, timeout=400,
                          cwd=WORK, env=environment)


def runner(threads, ranks, *arguments):
    r = with_threads(threads, ranks, RUNNER, *arguments)
    that(r.returncode == 0, "%d ranks x %d threads: %s%s" % (ranks, threads, r.stdout[-600:], r.stderr[-2000:]))


def write_cases():
    lines = []
    for name, (depth, shape, domain, solver, initial) in CASES.items():
        (WORK / (name + ".toml")).write_text("[domain]\nshape = %r\n%s\n[parallel]\nhalo_depth = %d\n[solver]\n%s\n%s\n"
                                             "[run]\nsteps = 9\nresidual_every = 5\n[output]\ncheckpoint_every = 4\n" % (
                                                 shape, domain, depth, solver, initial))
        lines.append("%s %s alone" % (name, WORK / (name + ".toml")))
    (WORK / "cases.txt").write_text("\n".join(lines) + "\n")


def what_the_command_says():
    plan = with_threads(3, 1, ISOHALO, "run", "life.toml", "--plan", "-n", "64").stdout
    that("64 x 3 threads, process grid" in plan, "the plan names ranks and threads: " + plan)
    cores = os.cpu_count()
    few = with_threads(1, 2, ISOHALO, "run", "life.toml", "run.steps=1", "output.directory=few")
    that("2 ranks, process grid" in few.stdout and few.stderr == "", "one thread each is not mentioned: " + few.stdout + few.stderr)
    many = with_threads(cores + 1, 2, ISOHALO, "run", "life.toml", "run.steps=1", "output.directory=many")
    that("2 ranks x %d threads, process grid" % (cores + 1) in many.stdout, "a run names ranks and threads: " + many.stdout)
    wrong = with_threads("many", 2, ISOHALO, "run", "life.toml", "--plan")
    that(wrong.returncode == 2 and wrong.stderr.count("isohalo: error: KOKKOS_NUM_THREADS = many is no number of threads") == 1,
         "a wrong number of threads is named, once: %d %s" % (wrong.returncode, wrong.stderr))
    that(len(re.findall("isohalo: warning: each rank has %d threads" % (cores + 1), many.stderr)) == 1 and many.stderr.count("\n") == 1,
         "too many threads are warned of, once: " + many.stderr)


fresh_work_directory()
write_cases()
if "x 2 threads" not in with_threads(2, 1, ISOHALO, "run", "life.toml", "--plan").stdout:
    print("skipped: this Kokkos has no threads on the host; docs/clusters.md says how to build one that has")
    sys.exit(77)
what_the_command_says()
runner(1, 1, "reference", WORK / "cases.txt", WORK)
for ranks, threads in ((1, 2), (1, 3), (1, 4), (2, 1), (2, 2), (2, 3), (3, 2)):
    runner(threads, ranks, "compare", WORK / "cases.txt", WORK, "r%dt%d" % (ranks, threads))
for ranks, threads in ((1, 3), (2, 2)):
    runner(threads, ranks, "compare", SAMPLE, REFERENCE, "threads_%d_%d" % (ranks, threads))
finish()
