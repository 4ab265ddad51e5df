#!/usr/bin/python3
"""What a run leaves and how it stops: files kept, restarts of stopped runs, time limits, pictures, XDMF, digest log,
independence of [run] and [output], and the traps of comparing files.

usage: runs.py ISOHALO MPIEXEC WORK_DIRECTORY
"""
import os
import re
import shutil
import struct
import subprocess
import xml.etree.ElementTree

import h5py
import json
import numpy as np

from harness import ISOHALO, MPIEXEC, WORK, finish, fresh_work_directory, isohalo, that

INPUT = """
[domain]
shape = [24, 20]
boundary.low = ["neumann", {dirichlet = 1.0}]
boundary.high = ["neumann", {fixed = 0.0}]
[solver]
kind = "heat"
[initial]
kind = "random"
seed = 3
[run]
steps = 40
[output]
checkpoint_every = 10
"""


def run(ranks, directory, *overrides, code=0):
    return isohalo(ranks, "run", "input.toml", "output.directory=" + directory, *overrides, code=code)


def steps(directory):
    return [int(p.name[5:13]) for p in sorted((WORK / directory).glob("step_*.h5"))]


def same_file(a, b):
    return (WORK / a).read_bytes() == (WORK / b).read_bytes()


def latest(directory):
    return os.readlink(WORK / directory / "latest.h5")


def test_keep():
    run(2, "keep", "output.keep=2")
    that(steps("keep") == [30, 40] and latest("keep") == "step_00000040.h5", "keep=2 left %r" % steps("keep"))
    that(sorted(p.name for p in (WORK / "keep").glob("*.json")) == ["step_00000030.json", "step_00000040.json"], "run metadata kept")
    run(1, "stale")
    shutil.copy(WORK / "stale/step_00000010.h5", WORK / "first.h5")
    run(1, "stale", "--restart", "first.h5", "output.keep=1", "run.steps=30")
    that(30 in steps("stale") and latest("stale") == "step_00000040.h5", "keep deleted the newest file: %r" % steps("stale"))
    data = (WORK / "stale/step_00000040.h5").read_bytes()
    (WORK / "stale/step_00000040.h5").write_bytes(data[:2000])
    run(2, "stale", "--restart", "auto", "output.keep=1", "output.checkpoint_every=4")
    that((WORK / "stale/step_00000040.h5").read_bytes() == data, "fallback with keep=1 did not arrive")


def test_independence():
    """The same step's file, whatever [run] and [output] say and however the run was cut."""
    run(1, "plain")
    run(3, "other", "run.residual_every=7", "output.checkpoint_every=4", "output.digest_every=3", "run.steps=36", "parallel.halo_depth=3")
    run(2, "other", "run.residual_every=0", "output.xdmf=false", "run.steps=40", "--restart", "auto")
    that(same_file("plain/step_00000020.h5", "other/step_00000020.h5"), "step 20 depends on [run] or [output]")
    that(same_file("plain/step_00000040.h5", "other/step_00000040.h5"), "step 40 depends on [run], [output] or the restart")
    run(1, "elsewhere", "--restart", WORK / "plain/step_00000040.h5")
    that(steps("elsewhere") == [40] and same_file("elsewhere/step_00000040.h5", "plain/step_00000040.h5"),
         "a restart with nothing to do should leave its checkpoint")


def test_exchanges():
    """Every way for ghost cells to travel, and halos that reach beyond the adjacent blocks: the same file."""
    run(1, "one")
    for k, word in enumerate(["auto", "direct", "coalesced", "slabs", "direct_packed", "coalesced_packed", "slabs_packed", "shared"]):
        depth = 1 + 4 * (k % 3)
        out = run(3, word, "parallel.exchange=" + word, "parallel.halo_depth=%d" % depth, "parallel.process_grid=[3,1]").stdout
        metadata = json.loads((WORK / word / "step_00000040.json").read_text())
        that(metadata["exchange"] == word or word == "auto", "asked for exchange %s, got %r" % (word, metadata["exchange"]))
        if word == "auto":
            times = metadata["exchange_seconds"]
            that(metadata["exchange"] == min(times, key=times.get) and min(times.values()) > 0 and "shared" in times,
                 "the choice of an exchange: %r" % metadata)
            that(("\nexchange = %s (measured: " % metadata["exchange"]) in out, "the run does not say what it chose: " + out)
        else:
            that("\nexchange = %s\n" % word in out, "the run does not say how ghosts travel: " + out)
        that(same_file("one/step_00000040.h5", word + "/step_00000040.h5"), "step 40 depends on exchange %s, depth %d" % (word, depth))
    for k, (keys, said) in enumerate(((["parallel.halo_depth=4", "parallel.tile=[5,8]"], "4 steps an exchange, in tiles of 5 x 8 cells"),
                                      (["parallel.halo_depth=4", "parallel.tile=[24,20]"], "4 steps an exchange, in tiles of 12 x 20 cells"),
                                      (["parallel.halo_depth=1", "parallel.sweeps=streamed"], "1 step an exchange, streamed"),
                                      (["parallel.halo_depth=1", "parallel.sweeps=plain_rows"], "1 step an exchange, plain_rows"),
                                      (["parallel.halo_depth=1", "parallel.sweeps=plain", "parallel.space=device"], "1 step an exchange"))):
        out = run(2, "forced%d" % k, "parallel.process_grid=[2,1]", *keys).stdout
        metadata = json.loads((WORK / ("forced%d" % k) / "step_00000040.json").read_text())
        that(("\nsweeps = %s\n" % said) in out or ("\nsweeps = %s, " % said) in out, "%s: %s" % (keys, out))
        way = said.partition("exchange")[2].lstrip(", ")
        that(metadata.get("sweeps", "") in (way, way + ", while ghosts travel"), "%s: %r" % (keys, metadata))
        that(same_file("one/step_00000040.h5", "forced%d/step_00000040.h5" % k), "step 40 depends on %s" % keys)
    # Every step has a residual, and they suffice for a choice.
    out = run(1, "summed", "parallel.halo_depth=1", "run.residual_every=1", "run.steps=60").stdout
    that("\nsweeps = 1 step an exchange, " in out and "still tried out" not in out, "what steps with residuals do: " + out)


def test_stopping():
    first = run(1, "stop", "run.stop_residual=0.02", "run.steps=100000", "output.checkpoint_every=0")
    where = steps("stop")
    that(len(where) == 1 and 0 < where[0] < 100000 and where[0] % 10 == 0, "stop_residual stopped at %r" % where)
    again = run(3, "stop", "run.stop_residual=0.02", "run.steps=100000", "output.checkpoint_every=0", "--restart", "auto")
    that(steps("stop") == where, "a converged run went on after a restart: %r" % steps("stop"))
    that(first.stdout.splitlines()[-2:] == again.stdout.splitlines()[-2:], "final lines after the restart differ")
    parallel = run(3, "stop3", "run.stop_residual=0.02", "run.steps=100000", "output.checkpoint_every=0")
    that(steps("stop3") == where and parallel.stdout.splitlines()[-2:] == first.stdout.splitlines()[-2:], "stops elsewhere on 3 ranks")
    run(2, "limit", "run.time_limit_s=0.5", "run.steps=1000000000", "run.residual_every=0", "output.checkpoint_every=0",
        "output.final_checkpoint=false")
    that(len(steps("limit")) == 1 and steps("limit")[0] > 0, "the time limit left %r" % steps("limit"))
    out = run(1, "zero", "run.steps=0", "output.picture_every=5").stdout
    that(steps("zero") == [0] and (WORK / "zero/u_00000000.png").exists(), "no steps leave %r" % sorted(p.name for p in (WORK / "zero").iterdir()))
    that("\ncheckpoint = zero/step_00000000.h5\npicture = zero/u_00000000.png\n" in out, "what no steps leave: " + out)
    isohalo(1, "verify", "zero/step_00000000.h5")
    run(2, "zero", "run.steps=0", "--restart", "auto")
    run(3, "zero", "--restart", "auto")
    run(1, "whole")
    that(steps("zero") == [0, 10, 20, 30, 40] and same_file("zero/step_00000040.h5", "whole/step_00000040.h5"), "a restart from step 0")
    run(1, "none", "run.steps=0", "output.final_checkpoint=false")
    that(steps("none") == [], "a checkpoint that was not asked for")


def test_companions():
    run(2, "seen", "output.picture_every=20", "output.digest_every=20")
    picture = (WORK / "seen/u_00000040.png").read_bytes()
    that(picture[:8] == b"\x89PNG\r\n\x1a\n" and struct.unpack(">II", picture[16:24]) == (320, 384), "the picture")
    run(3, "seen3", "output.picture_every=20", "parallel.process_grid=[1,3]")
    that(same_file("seen/u_00000020.png", "seen3/u_00000020.png"), "the picture depends on the ranks")
    for shape, size in {"[50]": (400, 64), "[50,1]": (64, 400), "[3000,3]": (64, 1000), "[9,10,11]": (396, 360), "[5,6,7,4]": (228, 399)}.items():
        flat = [x for x in INPUT.splitlines() if not x.startswith("boundary")]
        (WORK / "any.toml").write_text("\n".join(flat))
        isohalo(2, "run", "any.toml", "domain.shape=" + shape, "output.picture_every=40", "--overwrite")
        there = struct.unpack(">II", (WORK / "out/any/u_00000040.png").read_bytes()[16:24])
        that(there == size, "picture of %s: %r, expected %r" % (shape, there, size))
    lines = (WORK / "seen/digests.txt").read_text().splitlines()
    that([l.split()[0] for l in lines] == ["20", "40"], "the log has lines %r" % lines)
    with h5py.File(WORK / "seen/step_00000020.h5") as f:
        that(lines[0] == "20 u=%s residual=%.17g" % (f["fields/u"].attrs["digest"].decode(), f["reduction"].attrs["residual"]), "log line " + lines[0])
        times = [f["fields/u"].attrs["units"], f["fields/u"].attrs["role"]]
        that(times == [b"1", b"state"], "units and role")
    check_xdmf("seen/step_00000040.xmf")
    metadata = json.loads((WORK / "seen/step_00000040.json").read_text())
    that(metadata["ranks"] == 2 and metadata["process_grid"] == [2, 1] and metadata["config"]["run.steps"] == "40", "the run metadata")
    out = run(1, "lines").stdout.splitlines()
    that(re.fullmatch(r"rate = [0-9.]+ M updates/s", out[-3]) and out[-2].startswith("residual = ") and
         re.fullmatch(r"digest u = [0-9a-f]{16}", out[-1]), "final lines %r" % out[-3:])


def check_xdmf(name):
    """Every reference of an XDMF file: the data set is there, with the extents and the type that the file names."""
    types = {("Float", "8"): np.float64, ("Float", "4"): np.float32, ("UChar", "1"): np.uint8}
    tree = xml.etree.ElementTree.parse(WORK / name)
    items = tree.findall(".//Attribute/DataItem")
    for item in items:
        file, path = item.text.strip().split(":")
        with h5py.File((WORK / name).parent / file) as f:
            extents = list(map(int, item.get("Dimensions").split()))
            that(extents[-f[path].ndim:] == list(f[path].shape) and set(extents[:-f[path].ndim]) <= {1}, "%s: %s has %r" % (name, item.text, extents))
            that(types.get((item.get("NumberType"), item.get("Precision"))) == f[path].dtype, "%s: the type of %s" % (name, item.text))
            cells = list(map(int, tree.find(".//Topology").get("Dimensions").split()))
            that(cells == [n + 1 for n in extents], "%s: topology %r of %r" % (name, cells, extents))
            fields = len(f["fields"])
    that(len(items) == fields, "%s names %d of %d fields" % (name, len(items), fields))


def test_xdmf():
    flat = "\n".join(x for x in INPUT.splitlines() if not x.startswith("boundary"))
    (WORK / "flat.toml").write_text(flat)
    poisson = ["solver.kind=poisson", "source.kind=sine"]
    for k, (name, more) in enumerate((("flat", ["domain.type=float32"]), ("flat", ["solver.kind=life"]), ("flat", ["domain.shape=[6,7,8]"]),
                                      ("input", poisson), ("input", poisson + ["solver.method=cg"]))):
        directory = "xdmf_%d" % k
        isohalo(2, "run", name + ".toml", "output.directory=" + directory, "run.steps=4", "output.checkpoint_every=2", *more)
        files = sorted((WORK / directory).glob("*.xmf"))
        that(len(files) == 2, "%r leaves %r" % (more, files))
        for file in files:
            check_xdmf(file.relative_to(WORK))
        # Steps without a length are told apart by their number.
        times = [float(xml.etree.ElementTree.parse(f).find(".//Time").get("Value")) for f in files]
        info = isohalo(1, "info", directory + "/latest.h5").stdout
        timed = not ("solver.kind=life" in more or "solver.kind=poisson" in more)
        that(0 < times[0] < times[1] and (timed or times == [2, 4]) and (", t = " in info) == timed and "step 4" in info, "%r: times %r, %s" % (more, times, info))


def changed(name, change):
    shutil.copy(WORK / "plain/step_00000020.h5", WORK / name)
    with h5py.File(WORK / name, "r+") as f:
        change(f)
    return name


def put(index, bits):
    def change(f):
        data = f["fields/u"][...]
        data.view(np.uint64)[index] = bits
        f["fields/u"][...] = data
    return change


def replaced(data):
    def change(f):
        attributes = dict(f["fields/u"].attrs)
        del f["fields/u"]
        f.create_dataset("fields/u", data=data(f), dtype=None)
        for k, v in attributes.items():
            f["fields/u"].attrs.create(k, v)
    return change


def test_compare():
    base = "plain/step_00000020.h5"
    with h5py.File(WORK / base) as f:
        field = f["fields/u"][...]
    ulp = int(field.view(np.uint64)[23, 19]) ^ 1
    that("first at (23, 19)" in isohalo(3, "compare", base, changed("ulp.h5", put((23, 19), ulp)), code=1).stdout, "one bit in the last cell")
    zero = changed("zero.h5", put((5, 6), 0))
    minus = changed("minus.h5", put((5, 6), 1 << 63))
    that("first at (5, 6)" in isohalo(1, "compare", zero, minus, code=1).stdout, "-0.0 against 0.0")
    nan, other = changed("nan.h5", put((0, 0), 0x7ff8000000000000)), changed("nan2.h5", put((0, 0), 0x7ff8000000000001))
    isohalo(2, "compare", nan, nan)
    isohalo(2, "compare", nan, other, code=1)
    isohalo(1, "compare", base, nan, code=1)
    r = isohalo(1, "compare", zero, zero)
    that("does not match its data" in r.stderr, "a digest that does not match is reported")
    that("field u type: float64 against float32" in isohalo(1, "compare", base, changed("f32.h5", replaced(lambda f: field.astype(np.float32))), code=1).stdout, "types")
    isohalo(1, "compare", base, changed("shape.h5", replaced(lambda f: field[:, :19])), code=2)
    isohalo(1, "compare", base, changed("empty.h5", replaced(lambda f: np.zeros((4, 0)))), code=2)
    that("only in the second file" in isohalo(1, "compare", base, changed("extra.h5", lambda f: f.copy("fields/u", f["fields"], "v")), code=1).stdout, "an extra field")
    that("step: 20 against 30" in isohalo(1, "compare", base, "plain/step_00000030.h5", code=1).stdout, "steps")
    other_min = changed("min.h5", lambda f: f["fields/u"].attrs.modify("min", -5.0))
    that("field u min" in isohalo(1, "compare", base, other_min, code=1).stdout, "attributes of equal data")


def test_methods():
    """The exact method is recorded and kept by a restart; the binary tree gives the tree's bits."""
    run(3, "exact", "parallel.reduction=exact")
    run(2, "exact_half", "parallel.reduction=exact", "run.steps=20")
    run(4, "exact_half", "--restart", "auto")
    run(1, "tree")
    run(3, "binary", "parallel.reduction=binary_tree")
    run(3, "schedule", "parallel.schedule=d2,d2")
    that(same_file("tree/step_00000040.h5", "schedule/step_00000040.h5"), "a schedule changes no bits")
    that(same_file("exact/step_00000040.h5", "exact_half/step_00000040.h5"), "a restart keeps the exact method")
    that(same_file("tree/step_00000040.h5", "binary/step_00000040.h5"), "the binary tree has the tree's bits")
    with h5py.File(WORK / "exact/step_00000040.h5") as f:
        that(f["reduction"].attrs["method"] == b"exact", "the exact method is recorded")
    r = run(2, "refused", "parallel.reduction=tree", "--restart", "exact/step_00000020.h5", code=2)
    that('its residuals were formed by parallel.reduction = "exact"' in r.stderr, "another method is refused by name: " + r.stderr)
    r = run(2, "exact", "parallel.reduction=binary_tree", "run.steps=50", "--restart", "auto", code=2)
    that('use "exact" or "auto"' in r.stderr, "an automatic restart refuses another method: " + r.stderr)


def test_process_namespaces():
    """Ranks in process namespaces of their own, as in one container each: there rank 0's descriptors are nobody's, or another's."""
    own = ["unshare", "-fp", "--mount-proc", "--kill-child"]
    if subprocess.run([*own, "true"], capture_output=True).returncode != 0:
        print("skipped: process namespaces are not permitted here")
        return
    large = ["output.xdmf=false", "domain.shape=[1000,1200]", 'domain.boundary.low=["periodic","periodic"]',
             'domain.boundary.high=["periodic","periodic"]', "run.steps=20"]
    run(1, "one_space", *large)
    for ranks in (2, 3):
        r = subprocess.run(["timeout", "-k", "2", "100", MPIEXEC, "-n", str(ranks), *own, ISOHALO, "run", "input.toml", "output.directory=spaces",
                            "--overwrite", *large], capture_output=True, text=True, cwd=WORK)
        that(r.returncode == 0 and not r.stderr, "%d process namespaces: %d %s" % (ranks, r.returncode, r.stderr[-800:]))
        for step in (10, 20):
            name = "step_%08d.h5" % step
            that((WORK / "spaces" / name).exists() and same_file("one_space/" + name, "spaces/" + name), "%d process namespaces: another %s" % (ranks, name))


def main():
    fresh_work_directory(INPUT)
    test_keep()
    test_independence()
    test_exchanges()
    test_stopping()
    test_companions()
    test_compare()
    test_xdmf()
    test_methods()
    test_process_namespaces()
    finish()


if __name__ == "__main__":
    main()
