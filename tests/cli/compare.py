#!/usr/bin/python3
"""`isohalo compare`: what h5diff misses, figures against NumPy, tolerances, digests, rank boundaries, digest logs; the
same answer on any number of ranks.

usage: compare.py ISOHALO MPIEXEC WORK_DIRECTORY
"""
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys

import h5py
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "same_bits"))
from numpy_check import digest  # noqa: E402

from harness import ISOHALO, MPIEXEC, WORK, finish, fresh_work_directory, isohalo, that

INPUT = """
[domain]
shape = [13, 11]
boundary.low = ["neumann", "neumann"]
boundary.high = ["neumann", "neumann"]
[solver]
kind = "heat"
[initial]
kind = "random"
seed = 3
[run]
steps = 12
[output]
checkpoint_every = 6
digest_every = 3
"""
RANKS = (1, 2, 3, 4, 6)


def run(directory, *more, ranks=1):
    isohalo(ranks, "run", "input.toml", "output.directory=" + directory, *more)
    return directory + "/step_00000012.h5"


def report(a, b, *more, code, ranks=(1,)):
    """The JSON of a comparison, the same on any ranks."""
    texts = {isohalo(n, "compare", a, b, "--json", *more, code=code).stdout for n in ranks}
    that(len(texts) == 1, "%s against %s depends on the ranks: %r" % (a, b, texts))
    try:
        return json.loads(texts.pop())
    except ValueError:
        that(False, "%s against %s: no JSON" % (a, b))
        return {"fields": [{}], "must_match": [], "hints": [], "ignored": [], "warnings": []}


def statistics(attributes, data):
    numbers = data[data == data].astype(float)
    attributes["digest"] = np.bytes_(digest(data))
    attributes["nan_count"] = np.int64(np.count_nonzero(data != data))
    attributes["min"], attributes["max"] = (numbers.min(), numbers.max()) if numbers.size else (np.nan, np.nan)


def variant(base, name, data=None, stale=False, chunks=None, change=None):
    """A copy of a checkpoint with other data; with `stale` it keeps the old digest."""
    shutil.copy(WORK / base, WORK / name)
    with h5py.File(WORK / name, "r+") as f:
        if data is not None:
            attributes = dict(f["fields/u"].attrs)
            del f["fields/u"]
            set_ = f.create_dataset("fields/u", data=data, chunks=chunks)
            for k, v in attributes.items():
                set_.attrs.create(k, v)
            if not stale:
                statistics(set_.attrs, data)
        if change:
            change(f)
    return name


def values(name):
    with h5py.File(WORK / name) as f:
        return f["fields/u"][...]


def put(data, index, value):
    data = data.copy()
    data[index] = value
    return data


def bits(data, index, value):
    data = data.copy()
    data.view({8: np.uint64, 4: np.uint32}[data.itemsize])[index] = value
    return data


def test_traps(base):
    """docs/checkpoints.md, "Compare": each of these passes under h5diff with some option or other."""
    u = values(base)
    isohalo(3, "compare", base, variant(base, "same.h5"))
    r = isohalo(1, "compare", run("wide", "domain.shape=[4,5]"), run("narrow", "domain.shape=[4,4]"), code=1)
    that("must match: grid shape: [4, 5] against [4, 4]" in r.stdout, "shapes: " + r.stdout)
    r = isohalo(2, "compare", base, variant(base, "f32.h5", u.astype(np.float32)), code=1)
    that("field u type: float64 against float32" in r.stdout, "types: " + r.stdout)
    for stale in (False, True):
        nan = variant(base, "nan.h5", put(u, (3, 4), np.nan), stale)
        j = report(base, nan, code=1, ranks=(1, 3))["fields"][0]
        that((j["first"], j["nan_a"], j["nan_b"], j["nan_one"], j["max_abs"]) == ([3, 4], 0, 1, 1, 0), "a NaN in one file: %r" % j)
        report(nan, base, "--abs", "1e300", "--ulp", "18446744073709551615", code=1)
        other = variant(base, "payload.h5", bits(u, (3, 4), 0x7ff8000000000001), stale)
        j = report(nan, other, code=1)["fields"][0]
        that(j["cells_different"] == 1 and j["nan_one"] == 0 and j["bits_b"] == "0x7ff8000000000001", "payloads: %r" % j)
        report(nan, other, "--rel", "1", code=1)
        small, large = (variant(base, "%g.h5" % x, put(u, (0, 0), x), stale) for x in (1e-20, 3e-20))
        j = report(small, large, code=1)["fields"][0]
        that(abs(j["max_rel"] - 2 / 3) < 1e-12 and j["max_abs"] == 3e-20 - 1e-20, "tiny values: %r" % j)
        zero, minus = variant(base, "zero.h5", put(u, (12, 10), 0.0), stale), variant(base, "minus.h5", put(u, (12, 10), -0.0), stale)
        j = report(zero, minus, code=1)["fields"][0]
        that((j["first"], j["max_abs"], j["max_rel"], j["max_ulp"], j["l1"]) == ([12, 10], 0, 0, 0, 0), "zeros: %r" % j)
        report(zero, minus, "--ulp", "0", code=0)
    extra = variant(base, "extra.h5", change=lambda f: f.copy("fields/u", f["fields"], "v"))
    that("field v: only in the second file" in isohalo(1, "compare", base, extra, code=1).stdout, "an extra field")
    that("field v: only in the first file" in isohalo(3, "compare", extra, base, "--abs", "1e9", code=1).stdout, "a missing field")
    empty = variant(base, "empty.h5", change=lambda f: f["fields"].__delitem__("u"))
    isohalo(1, "compare", base, empty, code=1)


def ulps(a, b):
    whole, one = {8: (np.int64, 1 << 63), 4: (np.int32, 1 << 31)}[a.itemsize]
    place = lambda v: [int(x) if x >= 0 else -(int(x) + one) for x in v.view(whole).ravel()]
    return max(abs(x - y) for x, y in zip(place(a), place(b)))


def expect_figures(j, a, b):
    """`j` against the definitions."""
    different = np.ascontiguousarray(a).view("u%d" % a.itemsize) != np.ascontiguousarray(b).view("u%d" % a.itemsize)
    x, y = a.astype(np.float64), b.astype(np.float64)
    number = (x == x) & (y == y)
    d, size = np.abs(y - x)[number], np.maximum(np.abs(x), np.abs(y))[number]
    rel = np.divide(d, size, out=np.zeros_like(d), where=d > 0)
    wanted = {
        "cells": a.size, "cells_different": int(different.sum()), "first": [int(k[0]) for k in np.nonzero(different)],
        "max_abs": d.max(), "linf": d.max(), "max_rel": rel.max(), "l1": math.fsum(d), "l2": math.sqrt(math.fsum(d * d)),
        "nan_a": int((x != x).sum()), "nan_b": int((y != y).sum()), "nan_one": int(((x != x) != (y != y)).sum()),
        "value_a": x[different][0], "value_b": y[different][0],
        "max_ulp": int(d.max()) if a.itemsize == 1 else ulps(a.ravel()[number.ravel()], b.ravel()[number.ravel()])}
    for key, value in wanted.items():
        that(j[key] == value, "%s: %r, NumPy says %r" % (key, j[key], value))


def test_figures(base):
    rng = np.random.default_rng(5)
    u = values(base)
    for scale in (1e-300, 1e-9, 1.0, 1e140):
        a = np.where(rng.random(u.shape) < 0.5, u, rng.normal(size=u.shape) * scale * 10.0 ** rng.integers(-8, 8, u.shape))
        b = np.where(rng.random(u.shape) < 0.3, a, a * (1 + rng.normal(size=u.shape) * 10.0 ** rng.integers(-16, 1, u.shape)))
        a[2, 3], b[4, 5] = np.nan, np.nan
        j = report(variant(base, "a.h5", a), variant(base, "b.h5", b), code=1, ranks=RANKS)["fields"][0]
        expect_figures(j, a, b)
    single = run("single", "domain.type=float32")
    a = values(single)
    b = (a * (1 + rng.normal(size=a.shape).astype(np.float32) * np.float32(1e-5))).astype(np.float32)
    for chunks in (None, (5, 4)):
        j = report(single, variant(single, "b32.h5", b, chunks=chunks), code=1, ranks=RANKS)["fields"][0]
        expect_figures(j, a, b)
    life = run("life", "solver.kind=life", "initial.kind=random")
    a = values(life)
    b = a ^ (rng.random(a.shape) < 0.2).astype(np.uint8)
    expect_figures(report(life, variant(life, "b8.h5", b), code=1, ranks=RANKS)["fields"][0], a, b)
    j = report(base, variant(base, "inf.h5", put(u, (7, 7), np.inf)), code=1)["fields"][0]
    that((j["max_abs"], j["max_rel"], j["l1"], j["l2"], j["value_b"]) == ("inf",) * 5, "infinity: %r" % j)
    report(base, "inf.h5", "--rel", "1", code=1)
    many = variant(base, "many.h5", -u)
    expect_figures(report(base, many, code=1)["fields"][0], u, -u)


def test_tolerances(base):
    u = values(base)
    near = variant(base, "near.h5", put(put(u, (1, 1), u[1, 1] + 1e-9), (2, 2), np.nextafter(u[2, 2], 9)))
    for options, code in ((("--abs", "2e-9"), 0), (("--abs", "1e-10"), 1), (("--abs", "1e-10", "--ulp", "100000000"), 0),
                          (("--rel", "1e-7"), 0), (("--rel", "1e-12"), 1), (("--abs", "u=2e-9"), 0),
                          (("--abs", "1e-30", "--abs", "u=2e-9"), 0), (("--abs", "1", "--abs", "u=1e-30"), 1), ((), 1)):
        j = report(base, near, *options, code=code, ranks=(2,))
        that(j["same"] == (code == 0), "%r" % (options,))
    j = report(base, near, "--abs", "1e-12", code=1)["fields"][0]
    that((j["cells_different"], j["cells_beyond_tolerance"], j["first_beyond_tolerance"]) == (2, 1, [1, 1]), "beyond: %r" % j)
    r = isohalo(1, "compare", base, near, "--abs", "1e-3")
    that(r.stdout.endswith("same within tolerance\n") and "2 of 143 cells differ, first at (1, 1)" in r.stdout, r.stdout)
    for options, text in ((("--abs", "x"), "write a number"), (("--ulp", "1.5"), "without a fraction"), (("--rel", "-1"), ">= 0"),
                          (("--abs", "w=1"), "which neither file has"), (("--abs", "=1"), "FIELD=number"), (("--abs", "nan"), "number")):
        that(text in isohalo(2, "compare", base, near, *options, code=2).stderr, "%r is not refused by %r" % (options, text))
    for key in ("grid", "time"):  # what decides the numbers must match whatever the tolerance
        other = variant(base, "other.h5", change=lambda f: f[key].attrs.modify("origin" if key == "grid" else "step",
                                                                               np.ones(2) if key == "grid" else np.int64(7)))
        that(len(report(base, other, "--abs", "1e9", code=1)["must_match"]) == 1, key)
    sums = variant(base, "sums.h5", change=lambda f: f["reduction"].attrs.modify("residual", 0.5))
    that(report(base, sums, code=1)["must_match"] and report(base, sums, "--abs", "0", code=0)["ignored"], "the residual")


def test_digests(base):
    u = values(base)
    stale = variant(base, "stale.h5", put(u, (5, 5), 7.0), stale=True)
    r = isohalo(2, "compare", base, stale, code=1)
    that("field u of the second file: its digest" in r.stderr and "first at (5, 5)" in r.stdout, "a stale digest: " + r.stderr)
    r = isohalo(1, "compare", stale, stale)
    that(r.stderr.count("does not match its data") == 2, "both stale: " + r.stderr)
    large = run("large", "domain.shape=[3000,3100]", "run.steps=12", "output.checkpoint_every=0", "output.digest_every=0", ranks=2)
    copy = WORK / "copy.h5"
    shutil.copy(WORK / large, copy)
    with h5py.File(copy, "r+") as f:
        f["fields/u"][2999, 3099] = 2.0
    r = isohalo(1, "compare", large, "copy.h5")
    that("equal digests of 9300000 cells, data not read" in r.stdout, "the shortcut: " + r.stdout)
    r = isohalo(2, "compare", large, "copy.h5", "--read-data", code=1)
    that("1 of 9300000 cells differ, first at (2999, 3099)" in r.stdout and "does not match its data" in r.stderr, "--read-data: " + r.stdout)
    with h5py.File(copy, "r+") as f:
        f["fields/u"].attrs.modify("min", -9.0)
    isohalo(1, "compare", large, "copy.h5", code=1)  # unequal statistics: the data is read
    shutil.rmtree(WORK / "large")
    copy.unlink()


def test_run_metadata(base):
    two = run("two", "parallel.process_grid=[2,1]", "parallel.alignment_tolerance=0", ranks=2)
    run("three", "parallel.process_grid=[1,3]", "parallel.alignment_tolerance=0", ranks=3)
    cut = json.loads((WORK / "two/step_00000012.json").read_text())["cuts"][0][1]
    third = json.loads((WORK / "three/step_00000012.json").read_text())["cuts"][1][2]
    shutil.copy(WORK / "three/step_00000012.json", WORK / "three/changed.json")
    for where, texts in (((cut, 0), ["boundary of the first run (dimension 0 between %d and %d)" % (cut - 1, cut)]),
                         ((cut - 1, third), ["boundary of the first run", "boundary of the second run (dimension 1 between %d and %d)" % (third - 1, third)]),
                         ((0, 0), ["on no rank boundary of either run"])):
        changed = variant(base, "three/changed.h5", put(values(base), where, 5.0))
        hints = report(two, changed, code=1, ranks=(3,))["hints"]
        that(len(hints) == len(texts) and all(t in h for t, h in zip(texts, hints)), "hints %r at %r" % (hints, where))
    ignored = report(two, "three/step_00000012.h5", code=0)["ignored"]
    that("ranks: 2 against 3" in ignored and any(x.startswith("process_grid") for x in ignored), "ignored %r" % ignored)
    that(not any("cuts" in x or "domain" in x for x in ignored), "ignored %r" % ignored)
    that(report(two, base, code=0)["hints"] == [], "hints without a difference")
    (WORK / "three/changed.json").write_text("{ no json")
    report(two, "three/changed.h5", code=1)
    (WORK / "three/changed.json").write_text('{"cuts": [["x"]]}')
    report(two, "three/changed.h5", code=1)
    (WORK / "three/changed.json").write_text('{"ranks": %s1%s}' % ("[" * 100000, "]" * 100000))
    report(two, "three/changed.h5", code=1)
    (WORK / "three/changed.json").write_text('{"cuts": [[1e300, true]]}')
    report(two, "three/changed.h5", code=1)


def test_digest_logs():
    a = WORK / "plain/digests.txt"
    lines = a.read_text().splitlines()
    that(len(lines) == 4, "the log has %d lines" % len(lines))
    that(isohalo(2, "compare", a, WORK / "two/digests.txt").stdout.endswith("same\n"), "equal logs")
    changed = lines[:2] + [lines[2].replace(lines[2].split("u=")[1][:4], "abcd", 1)] + lines[3:]
    (WORK / "changed.txt").write_text("\n".join(changed) + "\n")
    r = isohalo(3, "compare", a, "changed.txt", code=1)
    that("equal up to step 6" in r.stdout and "first difference at step 9: u " in r.stdout and "residual" not in r.stdout, "logs: " + r.stdout)
    (WORK / "fewer.txt").write_text("\n".join(lines[1:3]) + "\n")
    j = json.loads(isohalo(1, "compare", a, "fewer.txt", "--json").stdout)
    that((j["common_steps"], j["only_a"], j["only_b"], j["first_different_step"]) == (2, 2, 0, None), "fewer lines: %r" % j)
    for text, message in (("", "is empty"), ("1 u=12 residual=1\n", "1: no line of a digest log"), ("100 u=%s residual=1\n" % ("0" * 16), "no step in common"),
                          (lines[1] + "\n" + lines[0] + "\n", "2: no line of a digest log: the steps do not increase")):
        (WORK / "bad.txt").write_text(text)
        that(message in isohalo(2, "compare", a, "bad.txt", code=2).stderr, "log %r is not refused" % text)


def most_memory(code, *arguments):
    """MiB that a command holds at most, on one rank that no launcher hides."""
    with subprocess.Popen([ISOHALO, *arguments], cwd=WORK, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as p:
        _, status, usage = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
    that(p.returncode == code, "%r: exit code %d" % (arguments, p.returncode))
    return usage.ru_maxrss / 1024


def test_memory():
    """Files are streamed: two of 128 MiB in which every cell differs take hardly more memory than two of 1 KiB."""
    most = {}
    for n in (12, 4096):
        for seed in (3, 4):
            isohalo(1, "run", "input.toml", "run.steps=1", "domain.shape=[%d,%d]" % (n, n), "initial.seed=%d" % seed,
                    "output.directory=size%d_%d" % (n, seed))
        most[n] = most_memory(1, "compare", *("size%d_%d/step_00000001.h5" % (n, seed) for seed in (3, 4)), "--read-data")
        for seed in (3, 4):
            shutil.rmtree(WORK / ("size%d_%d" % (n, seed)))
    that(most[4096] < most[12] + 48, "MiB at most by extent: %r" % most)
    # Files of another kind are not read whole to find that out.
    with open(WORK / "huge", "wb") as f:
        f.truncate(1 << 30)
    for arguments in (("run", "huge"), ("compare", "huge", "huge"), ("info", "huge")):
        found = most_memory(2, *arguments)
        that(found < most[12] + 48, "%r of 1 GiB: %g MiB" % (arguments, found))


def test_bench():
    """The opponent is started by its name alone, with the two names as they are."""
    tools = WORK / "tools"
    tools.mkdir()
    (tools / "h5diff").write_text('#!/bin/sh\nprintf "%%s\\n" "$@" >> %s/called\necho noise\n' % tools)
    (tools / "h5diff").chmod(0o755)
    for directory in ("it's", "a 'b; touch broken; '", "$(touch broken)", "-q"):
        (tools / "called").unlink(missing_ok=True)
        r = subprocess.run([MPIEXEC, "-n", "1", ISOHALO, "bench", "compare", "--json", "--repeats", "1", "--mib", "1", "--directory=" + directory],
                           capture_output=True, text=True, timeout=120, cwd=WORK, env=dict(os.environ, PATH="%s:%s" % (tools, os.environ["PATH"])))
        called = (tools / "called").read_text().splitlines() if (tools / "called").exists() else []
        here = "%s/%s/isohalo_bench_" % (WORK, directory)
        that(r.returncode == 0 and "noise" not in r.stdout and json.loads(r.stdout or "{}").get("ratio"), "bench compare in %r: %d %s" % (directory, r.returncode, r.stderr))
        that([c[:len(here)] for c in called[-2:]] == [here, here] and [c[-4:] for c in called[-2:]] == ["a.h5", "b.h5"],
             "h5diff in %r was called with %r" % (directory, called))
        that((WORK / directory).is_dir() and not list((WORK / directory).iterdir()), "bench compare left something in %r" % directory)
    that(not list(WORK.glob("**/broken")), "bench compare ran a command of a directory's name")
    (tools / "h5diff").write_text("#!/bin/sh\n[ $# = 1 ]\n")
    r = subprocess.run([ISOHALO, "bench", "compare", "--repeats", "1", "--mib", "1"], capture_output=True, text=True, timeout=120, cwd=WORK,
                       env=dict(os.environ, PATH="%s:%s" % (tools, os.environ["PATH"])))
    that(r.returncode == 1, "an h5diff that finds a difference: %d %s" % (r.returncode, r.stdout))


def main():
    fresh_work_directory(INPUT)
    base = run("plain")
    for test in (test_traps, test_figures, test_tolerances, test_digests, test_run_metadata):
        test(base)
    test_digest_logs()
    test_memory()
    test_bench()
    finish()


if __name__ == "__main__":
    main()
