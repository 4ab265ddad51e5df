#!/usr/bin/python3
"""`isohalo verify` without a file: good on every number of ranks, and able to fail in each of its checks.

usage: live.py ISOHALO MPIEXEC WORK_DIRECTORY short|long
"""
import json
import re
import sys

from harness import finish, fresh_work_directory, isohalo, launch, that

LONG = sys.argv[4] == "long"
TRANSPORTS = ["auto", "direct", "coalesced", "slabs", "direct_packed", "coalesced_packed", "slabs_packed", "shared"]
OTHERS = ["datatypes", "message_order", "probes", "collectives",
          "neighbors_direct", "neighbors_combining", "neighbors_logarithmic",
          "tree", "tree_on_node", "binary_tree", "exact", "allreduce"]


def test_good():
    for ranks in (1, 2, 3, 4, 6) if LONG else (1, 3):
        report = json.loads(isohalo(ranks, "verify", "--json").stdout)
        rows = {r["name"]: r for r in report["checks"]}
        that(report["good"] and report["ranks"] == ranks, "%d ranks: %r" % (ranks, report))
        that(sorted(rows) == sorted(TRANSPORTS + OTHERS), "%d ranks: the checks are %r" % (ranks, sorted(rows)))
        for name, row in rows.items():
            that(row["wrong"] == 0 and row["checked"] >= ranks and row["cases"] > 0, "%d ranks: %s: %r" % (ranks, name, row))
        # Each way is tried on the same cases but slabs, which some stencils cannot use, and auto, which is costly.
        full = {rows[t]["cases"] for t in ("direct", "coalesced", "direct_packed", "coalesced_packed", "shared")}
        that(len(full) == 1 and min(full) >= 90, "%d ranks: cases of the transports %r" % (ranks, full))
        that(rows["slabs"]["cases"] == rows["slabs_packed"]["cases"] == full.pop() * 4 // 5, "cases of slabs")


def test_table():
    lines = isohalo(3, "verify").stdout.splitlines()
    that(re.fullmatch(r"good: every ghost of every transport is right \(\d+\.\d s\)", lines[-1]), "verdict: %r" % lines[-1])
    for name in TRANSPORTS:
        that(any(re.fullmatch(r"transport +%s +\d+ +\d+ +0" % name, line) for line in lines), "no line of " + name)


def test_broken():
    """A plan without its last piece, whatever the transport; one value changed elsewhere."""
    for ranks, names in ((2, (OTHERS + TRANSPORTS)[::1 if LONG else 4]), (1, ["direct", "shared", "datatypes", "tree"][::1 if LONG else 3])):
        for name in names:
            r = isohalo(ranks, "verify", "--break", name, code=1)
            found = [line for line in r.stdout.splitlines() if "wrong values, first: " in line]
            that(len(found) == 1 and re.match(r"\w+ %s: [1-9]\d* wrong values" % name, found[0]) and
                 re.search(r"rank \d", found[0]) and re.search(r"should be \S+, found \S+", found[0]),
                 "--break %s on %d ranks: %s" % (name, ranks, r.stdout[-500:]))
            that(r.stdout.splitlines()[-1].startswith("not good") and not r.stderr, "--break %s: the verdict" % name)
            if name in TRANSPORTS and found:
                that(re.search(r"\d+ cells on \d+ ranks, .*depths \d and \d, exchange 1, rank \d, float64 field: ghost \((-?\d+)\) "
                               r"should be \d+, found nan", found[0]), "--break %s: no ghost is named: %s" % (name, found[0]))


def test_time_limit():
    """Whatever keeps the checks from ending, the command ends, and says where it was."""
    for ranks in (1, 3):
        r = launch(ranks, "verify", "--time-limit", "0.002")
        that(r.returncode != 0 and r.stderr.count("isohalo: error: verify has not ended after 0.002 s; rank 0 is in ") == 1,
             "a limit that is too short, %d ranks: %d %s" % (ranks, r.returncode, r.stderr[-500:]))
    that("--time-limit" in launch(1, "verify", "--time-limit", "-1").stderr, "a limit below zero")


def test_usage():
    that("there is no such check; there are datatypes, " in isohalo(2, "verify", "--break", "warp", code=2).stderr,
         "an unknown check")
    for arguments in (("verify", "file.h5", "--json"), ("verify", "file.h5", "--time-limit", "3"), ("verify", "file.h5", "--break", "direct"), ("verify", "--jsn")):
        r = launch(2, *arguments)
        that(r.returncode == 2 and r.stderr.count("isohalo: error: ") == 1, "%r: %d %s" % (arguments, r.returncode, r.stderr))


def main():
    fresh_work_directory()
    for test in (test_good, test_table, test_broken, test_time_limit, test_usage):
        test()
    finish()


if __name__ == "__main__":
    main()
