#!/usr/bin/env python3
"""`isohalo bench scaling`: all points are measured, the model is what it says of them, and points of another launch join.

usage: bench_scaling.py ISOHALO MPIEXEC WORK_DIRECTORY
"""

import json
import math

from harness import WORK, finish, fresh_work_directory, isohalo, that

fresh_work_directory()


def bench(ranks, *arguments, code=0):
    return isohalo(ranks, "bench", "scaling", "--repeats", "3", "--seconds", "0.002", *arguments, code=code)


small = ["--block", "8,12,20", "--grid", "16", "--weak-block", "20", "--strong-grid", "3000"]
one = str(WORK / "one.json")
with open(one, "w") as f:
    f.write(bench(1, "--json", "--ranks", "1,1", *small).stdout)
j = json.loads(bench(2, "--json", "--ranks", "2", "--with", one, "--plot", str(WORK), *small).stdout)

points = j["points"]
that(sorted((p["ranks"], p["kind"], p["shape"][0] // p["blocks"][0], p["residual"]) for p in points)
     == sorted((n, k, b, r) for n in (1, 2) for r in (0.0, 1.0)
               for k, b in (("weak", 8), ("weak", 12), ("weak", 20), ("strong", 16 // n))), "the points: %s" % points)
cost = j["costs_ns"]
that(all(v >= 0 for v in cost.values()), "costs: %s" % cost)


def by_model(p):
    """A step of the busiest rank, from the costs that were printed."""
    block = [-(-n // b) for n, b in zip(p["shape"], p["blocks"])]
    cells = math.prod(block)
    where = ", %s, %d core%s" % ("second-level cache", p["sharing"], "s" if p["sharing"] > 1 else "")
    ns = cells * cost["cell" + where] + cost["step"]
    for n, b in zip(block, p["blocks"]):
        ns += min(b - 1, 2) * (cost["message"] + 8 * cells // n * cost["byte"])
    if p["residual"]:
        ns += cells * cost["residual of a cell" + where] + cost["sum"]
        ns += math.log2(p["ranks"]) * cost["level of a sum"] if p["ranks"] > 1 else 0
    return ns * 1e-9


fitted = [p for p in points if p["fitted"]]
if any(p["ranks"] == 2 for p in fitted):  # not where there is one core
    errors = [by_model(p) / p["seconds"] - 1 for p in fitted]
    for p in fitted:
        that(abs(by_model(p) / p["by_model_seconds"] - 1) < 1e-6, "%s by the printed costs is %g" % (p, by_model(p)))
    that(abs(max(map(abs, errors)) - j["largest_error"]) < 1e-6, "the largest error: %s" % j["largest_error"])
    that(abs(math.sqrt(sum(e * e for e in errors) / len(errors)) - j["mean_error"]) < 1e-6, "the mean error")
    for kind in ("weak", "strong"):
        far = j["extrapolated"][kind]
        that([e["ranks"] for e in far] == {"weak": [10**k for k in range(7)], "strong": [10**6]}[kind],
             "%s scaling, where smaller numbers of ranks have blocks beyond the measured ones: %s" % (kind, far))
        for e in far:
            parts = sum(e[k] for k in ("compute_us", "step_us", "messages_us", "bytes_us", "residual_us", "sums_us"))
            that(abs(parts - e["total_us"]) < 1e-6 * parts, "the terms make the time: %s" % e)
            ideal = far[0]["total_us"] / (e["ranks"] / far[0]["ranks"] if kind == "strong" else 1)
            that("efficiency" not in e if len(far) == 1 else abs(e["efficiency"] - ideal / e["total_us"]) < 1e-6, "efficiency: %s" % e)
    that("cell, memory, 1 core" in j["extrapolated"]["not_measured"], "what is missing: %s" % j["extrapolated"])
    text = bench(2, "--latency", "2", "--plot", str(WORK / "part"), *small[:-1], "65536").stdout  # from memory, which was not measured
    for name, lines in {"scaling-weak": 6, "scaling-strong": 6, "part/scaling-weak": 6, "part/scaling-strong": 0}.items():
        svg = (WORK / (name + ".svg")).read_text()
        that(svg.count(", extrapolated</text>") == lines and "measured</text>" in svg, "the plot " + name)
    that("EXTRAPOLATED, not measured" in text and "given, not fitted" in text, text)

that("bench scaling: --ranks 3 of a launch of 2" in bench(2, "--ranks", "3", code=2).stderr, "too many ranks")
for name, text, wrong in (("no.json", "{}", "is no report of measured points"), ("cut.json", '{"points": [', "is no report of measured points"),
                          ("there/is.none", None, "cannot be read")):
    if text:
        (WORK / name).write_text(text)
    said = bench(1, "--with", str(WORK / name), *small, code=2).stderr
    that("%s %s: name a file that `bench scaling --json` printed\n" % (name, wrong) in said and "exception" not in said, name + ": " + said)
point = {"kind": "weak", "shape": [8, 8, 8], "blocks": [1, 0, 1], "threads": 1, "sharing": 1, "cores": 1, "residual": 0, "seconds": 1}
(WORK / "nobody.json").write_text(json.dumps({"points": [dict(point, blocks=[1, 1, 1]), point]}))
said = bench(1, "--with", str(WORK / "nobody.json"), *small, code=2).stderr
that('nobody.json: this point is of no launch: {"blocks":[1,0,1],' in said, said)
finish()
