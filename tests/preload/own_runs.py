#!/usr/bin/python3
"""Are our own solvers and reductions slower with libisohalo_mpi.so preloaded? Heat with a residual in every step, the
conjugate gradients of Poisson's equation, and `isohalo bench allreduce`, without it and with it in turn.

usage: own_runs.py ISOHALO MPIEXEC LIBRARY [--ranks 2] [--rounds 9] [--steps 3000] [--size 512]

For each: medians of both, and the median of the ratios of each round, with / without (below 1: faster with the library).
Of runs the time is what the run says itself, from its start to its end without those of MPI. Times are no criterion: the
exit code is 1 where digests differ or a benchmark finds a wrong result, and nothing else.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

HEAT = """
domain = {{shape = [{size}, {size}], boundary = {{low = ["periodic", "periodic"], high = ["periodic", "periodic"]}}}}
solver.kind = "heat"
initial = {{kind = "gaussian", center = [{part}, {part}], width = {part}}}
run = {{steps = {steps}, residual_every = 1}}
"""
POISSON = """
domain = {{shape = [{size}, {size}], boundary = {{low = [{{dirichlet = 0.0}}, {{dirichlet = 0.0}}], high = [{{dirichlet = 0.2}}, {{dirichlet = 0.0}}]}}}}
solver = {{kind = "poisson", method = "cg"}}
source = {{kind = "sine", amplitude = 100.0, modes = [1, 2]}}
initial = {{kind = "constant", value = 0.0}}
run = {{steps = {steps}, stop_residual = 1e-9, residual_every = 1}}
"""


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("isohalo", "mpiexec", "library"):
        p.add_argument(name, type=os.path.abspath if name != "mpiexec" else str)
    p.add_argument("--ranks", type=int, default=2)
    p.add_argument("--rounds", type=int, default=9)
    p.add_argument("--steps", type=int, default=3000)
    p.add_argument("--size", type=int, default=512)
    a = p.parse_args()
    if min(a.ranks, a.rounds, a.steps) < 1 or a.size < 8:
        p.error("at least 1 rank, round and step, and 8 cells")
    return a


class Runs:
    def __init__(self, a, folder):
        self.a, self.folder, self.handled = a, folder, 0

    def output(self, preloaded, *arguments):
        command = [self.a.mpiexec, "-n", str(self.a.ranks)]
        command += ["-genv", "LD_PRELOAD", self.a.library, "-genv", "ISOHALO_MPI_REPORT", "1"] if preloaded else []
        done = subprocess.run(command + [self.a.isohalo, *arguments], cwd=self.folder, capture_output=True, text=True, timeout=600)
        if done.returncode != 0:
            sys.exit("FAILED: %s ended with %d\n%s%s" % (arguments, done.returncode, done.stdout, done.stderr))
        if preloaded:
            report = json.loads(next(x for x in done.stderr.splitlines() if x.startswith('{"isohalo_mpi"')))
            self.handled += sum(f["handled"] for f in report["isohalo_mpi"].values())
        return done.stdout

    def run(self, name, preloaded):
        """{what: seconds}, and what both must have alike."""
        text = self.output(preloaded, "run", name + ".toml", "output.directory=out", "--overwrite")
        total = re.search(r"^total +\S+ +\S+ +(\S+)", text, re.M)
        digests = re.findall(r"^(?:digest \w+|residual) = .*", text, re.M)
        if not total or not digests:
            sys.exit("FAILED: %s prints no total or no digests\n%s" % (name, text))
        return {name: float(total.group(1))}, digests

    def bench(self, preloaded):
        found = json.loads(self.output(preloaded, "bench", "allreduce", "--json", "--repeats", "3"))
        if not found["results_right"]:
            sys.exit("FAILED: bench allreduce: wrong results")
        return {"bench allreduce: " + key[:-3]: us * 1e-6 for key, us in found["8_bytes"].items()
                if key.endswith("_us") and not key.startswith("mpi_")}, True


def main():
    a = arguments()
    with tempfile.TemporaryDirectory() as folder:
        for name, text in (("heat", HEAT), ("poisson", POISSON)):
            with open(os.path.join(folder, name + ".toml"), "w") as file:
                file.write(text.format(size=a.size, steps=a.steps, part=a.size / 8))
        runs, times, same = Runs(a, folder), {}, {}
        for k in range(a.rounds):
            for name, once in (("heat", lambda p: runs.run("heat", p)), ("poisson", lambda p: runs.run("poisson", p)),
                               ("bench", runs.bench)):
                for preloaded in (False, True) if k % 2 == 0 else (True, False):
                    seconds, alike = once(preloaded)
                    if same.setdefault(name, alike) != alike:
                        sys.exit("FAILED: %s: %s with the library, %s without it, or one after the other" % (name, alike, same[name]))
                    for what, s in seconds.items():
                        times.setdefault(what, {False: [], True: []})[preloaded].append(s)
            print("round %d of %d" % (k + 1, a.rounds), file=sys.stderr, flush=True)
    print("%d ranks, %d cores, medians of %d rounds, %.1f processes ran at a time; the library handled %d calls of rank 0" % (
        a.ranks, os.cpu_count(), a.rounds, os.getloadavg()[0], runs.handled))
    print("%-32s %12s %12s %8s" % ("", "without, ms", "with, ms", "ratio"))
    for what, of in times.items():
        ratio = statistics.median(w / o if o else 1 for o, w in zip(of[False], of[True]))
        print("%-32s %12.4g %12.4g %8.3f" % (what, 1e3 * statistics.median(of[False]), 1e3 * statistics.median(of[True]), ratio))


if __name__ == "__main__":
    main()
