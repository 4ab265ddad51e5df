#!/usr/bin/python3
"""`isohalo bench workloads`: right results on any number of ranks, the tree that its definition gives, and wrong
collectives are found.

usage: bench_workloads.py ISOHALO MPIEXEC WORK_DIRECTORY WRONG_COLLECTIVES_LIBRARY
"""
import json
import subprocess
import sys

from harness import ISOHALO, MPIEXEC, finish, fresh_work_directory, isohalo, that

WRONG = sys.argv[4]
BODIES, MOST = 3000, 40
SIZES = ["--rows", "301", "--columns", "50", "--iterations", "4", "--bodies", str(BODIES), "--most", str(MOST),
         "--largest", "2000"]
PHASES = {
    "matvec": ["scatter", "broadcast", "iterations", "reduce in iterations", "reduce without products"],
    "barnes-hut": ["tree", "allreduce in tree", "allreduce without bodies"],
}
MASK = 2**64 - 1


def mix64(z):
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
    return z ^ (z >> 31)


def coordinate(number):
    r = (mix64((number + 1) * 0x9E3779B97F4A7C15 & MASK) >> 11) * 2.0**-52 - 1 + 2.0**-53
    return r * r * r


def vector_lengths(bodies, most):
    """8 counts for each cell that is too full, per level; with coordinates, and not with paths."""
    cells, width, lengths = [((0, 0, 0), bodies)], 1.0, []
    while cells := [c for c in cells if len(c[1]) > most]:
        lengths.append(8 * len(cells))
        width /= 2
        children = {}
        for middle, members in cells:
            for b in members:
                child = tuple(m + (width if x >= m else -width) for m, x in zip(middle, b))
                children.setdefault(child, []).append(b)
        cells = list(children.items())
    return lengths


def workloads(report):
    return {w["workload"]: w for w in report["workloads"]}


def check(ranks, report):
    that(report["right"] is True and report["ranks"] == ranks, "right on %d ranks: %r" % (ranks, report))
    found = workloads(report)
    that(list(found) == ["matvec", "barnes-hut", "openmp-reduce"], "workloads %r" % list(found))
    for name, phases in PHASES.items():
        that([p["phase"] for p in found[name]["phases"]] == phases, "phases %r" % found[name])
        that(all(p["isohalo_s"] >= 0 and p["mpi_s"] >= 0 for p in found[name]["phases"]), "times %r" % found[name])
    against = found["openmp-reduce"]
    that([c["bytes"] for c in against["cases"]] == [8, 32, 128, 512, 2000], "sizes %r" % against)
    that(all(c.get("openmp_us", 0) > 0 for c in against["cases"]) or not against["openmp"], "OpenMP %r" % against)
    return found["barnes-hut"]


def check_wrong(name, cases):
    command = [MPIEXEC, "-n", "2", "env", "LD_PRELOAD=" + WRONG, "WRONG_COLLECTIVE=" + name, ISOHALO, "bench",
               "workloads", "--json", "--repeats", "1"] + SIZES
    r = subprocess.run(command, capture_output=True, text=True, timeout=120)
    that(r.returncode == 1, "wrong %s: exit code %d: %s" % (name, r.returncode, r.stderr[-800:]))
    wrong = [n for n, w in workloads(json.loads(r.stdout)).items() if not w["right"]]
    that(wrong == cases, "wrong %s is found in %r" % (name, wrong))


def main():
    fresh_work_directory()
    bodies = [tuple(coordinate(3 * b + d) for d in range(3)) for b in range(BODIES)]
    lengths = vector_lengths(bodies, MOST)
    digests = set()
    for ranks in (1, 2, 3):
        tree = check(ranks, json.loads(isohalo(ranks, "bench", "workloads", "--json", "--repeats", min(2, 4 - ranks), *SIZES).stdout))
        that(tree["vector_lengths"] == lengths, "vectors %r, expected %r" % (tree["vector_lengths"], lengths))
        that(tree["levels"] == len(lengths) and tree["cells"] == 1 + sum(lengths), "levels and cells %r" % tree)
        digests.add(tree["digest"])
    that(len(digests) == 1, "the tree depends on the ranks: %r" % digests)
    check_wrong("scatter", ["matvec"])
    check_wrong("broadcast", ["matvec"])
    check_wrong("reduce", ["matvec", "openmp-reduce"])
    check_wrong("allreduce", ["barnes-hut"])
    table = isohalo(2, "bench", "workloads", "--case", "barnes-hut", "--repeats", 1, *SIZES).stdout
    that("bodies: 3000" in table and "matvec" not in table, "one case: %s" % table)
    isohalo(0, "bench", "workloads", "--case", "nothing", code=2)
    finish()


if __name__ == "__main__":
    main()
