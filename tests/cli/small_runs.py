#!/usr/bin/python3
"""What a small run costs beside its steps: a heat plate of 240 x 320 cells, 1000 steps, two checkpoints and a picture, in memory.

usage: small_runs.py ISOHALO MPIEXEC MPI_START [--ranks 1,2] [--rounds 9] [--directory /dev/shm] [--within SECONDS]

MPI_START is a program that only starts and ends MPI (tests/cli/mpi_start.c); what it takes is subtracted. It and the run
are started in turn, ROUNDS times, on each number of ranks; of all times the median is printed. The digests must not depend
on the ranks. With --within, start, checkpoints, picture and end of a run, as it tells them, must take no longer in one of
the rounds: machines are busy.
"""
import argparse
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

STEPS = ("sweep", "exchange", "boundary", "reduction")
BESIDE = ("start", "checkpoint", "picture", "digest")
INPUT = """
domain = {shape = [240, 320], boundary = {low = ["neumann", {dirichlet = 0.0}], high = ["neumann", {dirichlet = 0.0}]}}
solver.kind = "heat"
initial = {kind = "gaussian", center = [100.0, 120.0], width = 20.0}
run = {steps = 1000, residual_every = 50}
output = {checkpoint_every = 500, picture_every = 1000}
"""


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("isohalo", "mpiexec", "mpi_start"):
        p.add_argument(name, type=os.path.abspath if name != "mpiexec" else str)  # they run elsewhere
    p.add_argument("--ranks", default="1,2", type=lambda text: [int(n) for n in text.split(",")])
    p.add_argument("--rounds", type=int, default=9)
    p.add_argument("--directory", default="/dev/shm")
    p.add_argument("--within", type=float)
    a = p.parse_args()
    if a.rounds < 1 or min(a.ranks) < 1:
        p.error("at least 1 round and 1 rank")
    return a


def timed(command, directory):
    start = time.monotonic()
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=300)
    seconds = time.monotonic() - start
    if done.returncode != 0:
        sys.exit("%s ended with %d\n%s%s" % (" ".join(command), done.returncode, done.stdout, done.stderr))
    return seconds, done.stdout


def one_run(a, ranks, directory):
    """{what: seconds}, and the digest"""
    launch = [a.mpiexec, "-n", str(ranks)]
    mpi, _ = timed(launch + [a.mpi_start], directory)
    wall, text = timed(launch + [a.isohalo, "run", "input.toml", "output.directory=out", "--overwrite"], directory)
    phases = {n: float(v) for n, v in re.findall(r"^(\w+) +[0-9.]+ +[0-9.]+ +([0-9.]+)", text, re.M)}
    steps = sum(phases.get(n, 0) for n in STEPS)
    told = sum(phases.get(n, 0) for n in BESIDE)
    return {"run": wall, "MPI": mpi, "steps": steps, "beyond both": wall - mpi - steps, "told by the run": told}, re.search(r"^digest \w+ = .*", text, re.M)[0]


def main():
    a = arguments()
    digests, late = set(), []
    with tempfile.TemporaryDirectory(prefix="isohalo_small_", dir=a.directory) as directory:
        (pathlib.Path(directory) / "input.toml").write_text(INPUT)
        rows = {n: [] for n in a.ranks}
        for _ in range(a.rounds):
            for n in a.ranks:
                times, digest = one_run(a, n, directory)
                rows[n].append(times)
                digests.add(digest)
        names = list(rows[a.ranks[0]][0])
        print("ranks  " + "".join("%18s" % ("%s, s" % name) for name in names))
        for n, times in rows.items():
            print("%5d  " % n + "".join("%18.4f" % statistics.median(t[name] for t in times) for name in names))
            least = min(t["told by the run"] for t in times)
            if a.within is not None and least > a.within:
                late.append("%d ranks: start, checkpoints, picture and end take %.3f s, more than %g" % (n, least, a.within))
    if len(digests) != 1:
        late.append("the digests depend on the ranks: %s" % sorted(digests))
    for line in late:
        print("FAILED: " + line, file=sys.stderr)
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main())
