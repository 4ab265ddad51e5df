#!/usr/bin/python3
"""The figures of `isohalo bench collectives --model --plot`: each is there and shows what it should.

usage: bench_collectives.py ISOHALO MPIEXEC WORK_DIRECTORY
"""
import re
import xml.etree.ElementTree

from harness import WORK, finish, fresh_work_directory, isohalo, that

SVG = "{http://www.w3.org/2000/svg}"


def texts(figure):
    root = xml.etree.ElementTree.parse(WORK / ("figure_%s.svg" % figure)).getroot()
    return root, [t.text for t in root.iter(SVG + "text")]


fresh_work_directory()
isohalo(3, "bench", "collectives", "--model", "--repeats", 1, "--largest", 2048, "--plot", WORK)
there = sorted(p.name for p in WORK.glob("*.svg"))
that(there == sorted("figure_%s.svg" % f for f in ("10-11", "12", "13", "14", "16", "16_2x6", "18-19", "20")),
     "the figures: %r" % there)
for figure, lines in {"10-11": ["one stage"], "12": ["tree"], "13": ["tiled", "cyclic"], "14": ["tree", "dissemination", "MPI_Allreduce"],
                      "18-19": ["tree", "tree, model", "tiled", "tiled, model"], "20": ["reduce", "MPI_Reduce"]}.items():
    root, names = texts(figure)
    that(set(lines) <= set(names), "figure %s has no lines %r: %r" % (figure, lines, names))
    that(len(list(root.iter(SVG + "polyline"))) >= len(lines), "lines of figure %s" % figure)
    that(all(len(p.get("points").split()) == 5 for p in root.iter(SVG + "polyline")), "figure %s has no 5 points, 8 to 2048 bytes" % figure)


def arrows(figure):
    """(from column, to column, is it a result?) of each row."""
    root, names = texts(figure)
    rows = {}
    for line in root.iter(SVG + "line"):
        rows.setdefault(line.get("y2"), []).append((line.get("x1"), line.get("x2"), line.get("stroke-dasharray") is not None))
    return [rows[y] for y in sorted(rows, key=float)], names


steps, names = arrows("16_2x6")  # three in the sockets, one between them, then all others read the root
that(re.search(r"306\.7 ns$", names[0]), "the time of the paper's machine: %s" % names[0])
that([len(row) for row in steps] == [6, 2, 2, 1, 11], "steps 0 to 4: %r" % steps)
that(all(result for _, _, result in steps[-1]), "11 read the result: %r" % steps)
that(len({x for x, _, _ in steps[-1]}) == 1, "the root's")
steps, names = arrows("16")
that(sum(not result for row in steps for _, _, result in row) == 2 and "rank 2" in names, "2 joins of 3 ranks: %r" % steps)

r = isohalo(4, "bench", "collectives", "--repeats", 1, "--largest", 8, "--hierarchy", "2x2")
that("\nhierarchy: 2x2\n" in r.stdout, "the hierarchy is printed: %s" % r.stdout)

# A machine that is not here, and one that is too large to be.
r = isohalo(1, "bench", "collectives", "--model", "--repeats", 1, "--hierarchy", "2x3x4")
that(re.search(r"24 ranks \(2x3x4\), simulated", r.stdout) and "8x4x8" not in r.stdout, "2x3x4 is simulated: %s" % r.stdout[-600:])
r = isohalo(1, "bench", "collectives", "--model", "--hierarchy", "64x64", code=2)
that("64x64 are more than the 1024 ranks" in r.stderr, "too many ranks: %s" % r.stderr)
finish()
