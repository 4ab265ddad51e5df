#!/usr/bin/python3
"""`isohalo bench neighborhood`: every figure is measured and drawn, and an MPI that is wrong is named instead of timed.

usage: bench_neighborhood.py ISOHALO MPIEXEC WORK_DIRECTORY WRONG_MPI_LIBRARY
"""
import json
import subprocess
import sys
import xml.etree.ElementTree

from harness import ISOHALO, MPIEXEC, WORK, finish, fresh_work_directory, that

WRONG_MPI = sys.argv[4]
FIGURES = ["fig%d" % n for n in range(2, 10)]


def bench(*arguments, preload=None):
    command = [MPIEXEC, "-n", "2"] + (["env", "LD_PRELOAD=" + preload] if preload else [])
    command += [ISOHALO, "bench", "neighborhood", "--samples", "5", "--seconds", "0.01", "--largest", "100", "--order", "300"]
    r = subprocess.run(command + list(arguments), capture_output=True, text=True, timeout=120, cwd=WORK)
    that(r.returncode == 0, "bench neighborhood %s: exit code %d: %s" % (arguments, r.returncode, r.stderr[-800:]))
    that("leaked" not in r.stderr, r.stderr[-800:])
    return r.stdout


def figure(experiment):
    return experiment["figure"].split()[0]


def check_plots(experiments):
    for name in FIGURES:
        root = xml.etree.ElementTree.parse(WORK / "plots" / (name + ".svg")).getroot()
        tags = [e.tag.split("}")[1] for e in root.iter()]
        texts = {e.text for e in root.iter() if e.tag.endswith("text")}
        drawn = {e["method"] for e in experiments if figure(e) == name and "mean_us" in e}
        that(drawn and drawn <= texts, "%s names %r, measured were %r" % (name, texts, drawn))
        if name in ("fig2", "fig3"):  # columns on a background
            that(tags.count("rect") == 1 + len(drawn), "%s has %d columns for %r" % (name, tags.count("rect") - 1, drawn))
        else:
            that(tags.count("polyline") >= len(drawn), "%s has %d lines for %r" % (name, tags.count("polyline"), drawn))


def main():
    fresh_work_directory()
    report = json.loads(bench("--json", "--plot", "plots"))
    experiments = report["experiments"]
    that({figure(e) for e in experiments} == set(FIGURES), "figures %r" % {figure(e) for e in experiments})
    for e in experiments:
        if e["method"].startswith("isohalo"):
            that("mean_us" in e, "no time of %r" % e)
        if "mean_us" in e:
            that(0 < e["kept"] <= e["samples"] and e["mean_us"] > 0 and e["ci95_us"] >= 0, "figures of %r" % e)
    set_ups = report["setup_ns_per_offset"]
    that(len(set_ups) == 4 and min(set_ups.values()) > 0, "set-up of %r" % report)
    that(report["moore1_8_bytes_over_isend_irecv"] > 0, "summary of %r" % report)
    check_plots(experiments)

    spoilt = json.loads(bench("--json", preload=WRONG_MPI))["experiments"]
    for e in spoilt:
        by_graph = figure(e) in ("fig4", "fig5", "fig6") and e["method"] == "MPI_Neighbor_alltoallw"
        if by_graph:
            that(e.get("wrong_result") is True and "mean_us" not in e, "a wrong result is timed: %r" % e)
        if e["method"].startswith("isohalo"):
            that("mean_us" in e, "wrong without cause: %r" % e)
    that(any(e.get("wrong_result") for e in spoilt), "nothing is wrong with a wrong MPI")
    table = bench(preload=WRONG_MPI)
    that("wrong" in table and "true" in table, "the table does not say what is wrong: %s" % table)
    that("wrong" not in bench(), "a right result is called wrong")
    finish()


if __name__ == "__main__":
    main()
