#!/usr/bin/python3
"""Wrong input, as a user gives it: each case must end with the right exit code, one named error on standard error, the
same on any number of ranks, in time, and leave earlier checkpoints as they were.

usage: errors.py ISOHALO MPIEXEC WORK_DIRECTORY short|long [few]
       short: each case on one number of ranks, in turn; few: kernels for devices are of float64 in 2 and 3 dimensions alone
"""
import hashlib
import itertools
import os
import shutil
import subprocess
import sys

import h5py
import numpy as np

from harness import ISOHALO, WORK, finish, fresh_work_directory, launch, that

INPUT = """
[domain]
shape = [24, 20]
[solver]
kind = "heat"
[initial]
kind = "random"
seed = 3
[run]
steps = 20
[output]
checkpoint_every = 10
"""


LONG, cases = sys.argv[4] == "long", itertools.count()


def expect(what, code, texts, arguments, ranks=(1, 3), lines=None):
    """Runs on each number of ranks; `texts` must all be in the error, which must be printed once and, with `lines`, have
    just so many lines."""
    for n in ranks if LONG else ranks[next(cases) % len(ranks):][:1]:
        try:
            r = launch(n, *arguments, timeout=60)
        except subprocess.TimeoutExpired:
            that(False, "%s on %d ranks: hangs" % (what, n))
            continue
        problems = []
        if r.returncode != code:
            problems.append("exit code %d, expected %d" % (r.returncode, code))
        for text in [texts] if isinstance(texts, str) else texts:
            if text not in r.stderr:
                problems.append("no %r in the error" % text)
            elif r.stderr.count(text) != 1:
                problems.append("%r is printed %d times" % (text, r.stderr.count(text)))
        if code and r.stderr.count("isohalo: error:") != 1:
            problems.append("%d error messages" % r.stderr.count("isohalo: error:"))
        if lines is not None and len(r.stderr.strip().splitlines()) != lines:
            problems.append("%d lines instead of %d" % (len(r.stderr.strip().splitlines()), lines))
        if "leaked" in r.stderr:
            problems.append("leaked handles")
        that(not problems, "%s on %d ranks: %s\n%s" % (what, n, "; ".join(problems), r.stderr[-1500:]))


def input_file(name, text=INPUT):
    (WORK / name).write_text(text)
    return name


def fingerprint(directory):
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(directory.glob("step_*.h5"))}


def main():
    fresh_work_directory()
    good = input_file("good.toml")

    # --- the input -----------------------------------------------------------------------------------------------------
    expect("missing input file", 2, "cannot read the input file nowhere.toml", ["run", "nowhere.toml"])
    expect("syntax error", 2, "syntax.toml:3:1: ", ["run", input_file("syntax.toml", "[domain]\nshape = [1,\n= 3")])
    expect("unknown key", 2, ["unknown.toml:13:1: unknown key output.checkpoint_evry; did you mean output.checkpoint_every?"],
           ["run", input_file("unknown.toml", INPUT.replace("[output]", "\n[output]").replace("checkpoint_every", "checkpoint_evry"))])
    expect("unknown key on the command line", 2, "command line: run.step=5: unknown key run.step; did you mean run.steps?",
           ["run", good, "run.step=5"])
    refused = "few" in sys.argv[5:]
    expect("float32 on a device", 2 if refused else 0, ['kernels of float32 for no device: set domain.type = "float64"'] if refused else [],
           ["run", good, "domain.type=float32", "parallel.space=device", "--validate"])
    expect("one dimension on a device", 2 if refused else 0, ["kernels for devices in 2 and 3 dimensions only"] if refused else [],
           ["run", "/dev/null", "domain.shape=[64]", "solver.kind=heat", "solver.cfl=0.5", "initial.kind=sine", "run.steps=1",
            "parallel.space=device", "--validate"])
    expect("wrong type", 2, "run.steps is a string, expected an integer", ["run", good, "run.steps=many"])
    for value in (".5", "5."):
        expect("no TOML", 2, "solver.kappa is a string, expected a number (what is no TOML is a string", ["run", good, "solver.kappa=" + value])
    expect("out of range", 2, "parallel.alignment_tolerance = 0.7 is out of range: 0 .. 0.5",
           ["run", good, "parallel.alignment_tolerance=0.7"])
    expect("no schedule at all", 2, "parallel.schedule: ", ["run", good, "parallel.schedule=nonsense"], lines=1)
    expect("a schedule for other ranks", 2, ["parallel.schedule: ", "joins groups of 5"], ["run", good, "parallel.schedule=a5"], lines=1)
    expect("a schedule for the binary tree", 2, "binary_tree has no schedule", ["run", good, "parallel.schedule=a3", "parallel.reduction=binary_tree"], ranks=(3,), lines=1)
    expect("a dissemination of exact sums", 2, "may bring a contribution twice", ["run", good, "parallel.schedule=d3", "parallel.reduction=exact"], ranks=(3,), lines=1)
    expect("no such method", 2, 'parallel.reduction = "fast" is not one of', ["run", good, "parallel.reduction=fast"], lines=1)
    expect("several errors at once", 2, ["run.steps = -1 is out of range", "unknown key solver.kapa; did you mean solver.kappa?",
                                         "domain.type = \"float16\" is not one of"],
           ["run", good, "run.steps=-1", "solver.kapa=1", "domain.type=float16"], lines=3)
    expect("missing required key", 2, "required key run.steps is missing",
           ["run", input_file("missing.toml", INPUT.replace("steps = 20", ""))])
    expect("no such solver", 2, 'solver.kind = "heet" is not one of', ["run", good, "solver.kind=heet", "solver.offsets=[[0,0]]"], lines=1)
    expect("no such initial field", 2, 'initial.kind = "randm" is not one of', ["run", good, "initial.kind=randm"], lines=1)
    expect("empty shape", 2, "domain.shape has an entry 0 out of range", ["run", good, "domain.shape=[0,5]"], lines=1)
    expect("a wrong shape hides nothing", 2, ["domain.shape has an entry 0 out of range", "run.steps = -1 is out of range",
                                              "unknown key solver.kapa; did you mean solver.kappa?"],
           ["run", good, "domain.shape=[0,5]", "run.steps=-1", "solver.kapa=1"], lines=3)
    expect("nor does no shape", 2, ["required key domain.shape is missing", "run.steps = -1 is out of range"],
           ["run", input_file("shapeless.toml", INPUT.replace("shape = [24, 20]", "length = [1.0, 1.0, 2.0]")), "run.steps=-1",
            'domain.boundary.low=["periodic","neumann","neumann"]', 'domain.boundary.high=["periodic","neumann","neumann"]',
            "parallel.process_grid=auto"], lines=2)
    expect("nor a shape that is no list", 2, ["domain.shape is a string, expected a list of integers", "solver.kappa = nan is out of range"],
           ["run", good, "domain.shape=large", "solver.kappa=nan"], lines=2)
    expect("quoted name with a dot", 2, 'unknown key "run.residual_every"', ["run", input_file("quoted.toml", '"run.residual_every" = 3\n' + INPUT)], lines=1)
    for rule, what in (("fixed = 1e39", "a boundary value = 1e+39"), ("dirichlet = 2e38", "twice a boundary value = 4e+38")):
        expect("value beyond float32", 2, "domain.boundary.low: %s is out of range of float32" % what,
               ["run", good, "domain.type=float32", 'domain.boundary.low=["periodic", {%s}]' % rule, 'domain.boundary.high=["periodic", "neumann"]'], lines=1)
    expect("cells too small", 2, "domain.length: a cell of", ["run", good, "domain.length=[1e-200,1]"])
    expect("weights without offsets", 2, ["solver.weights has 2 entries for 1 offsets"],
           ["run", input_file("weights.toml", INPUT.replace('kind = "heat"', 'kind = "stencil"\noffsets = [[0, 0]]\nweights = [1, 2]'))])
    expect("offset of the wrong dimension", 2, "is no list of 2 integers",
           ["run", input_file("offsets.toml", INPUT.replace('kind = "heat"', 'kind = "stencil"\noffsets = [[0, 0, 1]]\nweights = [1]'))])
    stencil = input_file("stencil.toml", INPUT.replace('kind = "heat"', 'kind = "stencil"\noffsets = [[0, 0], [0, 1], [1, 0]]\nweights = [0.1, 0.2, 0.3]'))
    for weights, text in (('[0.1,0.2,"x"]', "solver.weights entry is a string, expected a number"), ("[0.1,0.2,nan]", "solver.weights has an entry nan out of range"),
                          ("0.1", "solver.weights is a number, expected a list of numbers"), ("", "required key solver.weights is missing"),
                          ("[0.1,0.2]", "solver.weights has 2 entries for 3 offsets")):
        expect("weights " + weights, 2, text, ["run", stencil, "solver.weights=" + weights], ranks=(1,), lines=1)
    expect("a wrong offset", 2, "solver.offsets has an entry that is no list of 2 integers", ["run", stencil, "solver.offsets=[[0,0],[0,1],[0]]"], ranks=(1,), lines=1)
    expect("boundary on one side only", 2, "dimension 0 is periodic on one side only",
           ["run", good, 'domain.boundary.low=["neumann", "periodic"]'])
    expect("unstable dt", 2, "above the stability limit", ["run", good, "solver.dt=1.0"])
    expect("unstable cfl", 2, "above the stability limit", ["run", good, "solver.cfl=1.01"])
    expect("not a number", 2, "solver.kappa = nan is out of range", ["run", good, "solver.kappa=nan"])
    expect("five dimensions", 2, "domain.shape has 5 dimensions; isohalo has 1 to 4", ["run", good, "domain.shape=[2,2,2,2,2]"])
    expect("deep nesting", 2, "nested more than 32 deep", ["run", input_file("deep.toml", "a = " + "[" * 40 + "]" * 40)])
    expect("malformed override", 2, '"bogus" is no override', ["run", good, "bogus"])
    expect("reach beyond the grid", 2, "reaches 3 cells beyond a side of dimension 0, which has only 2",
           ["run", input_file("reach.toml", INPUT.replace('kind = "heat"', 'kind = "stencil"\noffsets = [[3, 0]]\nweights = [1.0]')
                        .replace("shape = [24, 20]", 'shape = [2, 200]\nboundary.low=["neumann","periodic"]\nboundary.high=["neumann","periodic"]')),
            "parallel.process_grid=auto"], ranks=(1, 3))

    # --- poisson and life ----------------------------------------------------------------------------------------------
    poisson = input_file("poisson.toml", INPUT.replace('kind = "heat"', 'kind = "poisson"\nmethod = "cg"')
                   + '[source]\nkind = "constant"\nvalue = 0.25\n')
    for method in ("cg", "jacobi", "red_black", "chebyshev"):
        expect("mean of f, " + method, 2, "the mean of the source f is 0.25; without a dirichlet or fixed side, or robin with a > 0, it must vanish",
               ["run", poisson, "solver.method=" + method], lines=1)
    expect("no source", 0, [],
           ["run", poisson, "source.value=0", "--overwrite"])
    sine = input_file("sine.toml", (WORK / poisson).read_text().replace('"constant"\nvalue = 0.25', '"sine"\nmodes = [4, 3]\namplitude = 1e6'))
    expect("a sine whose mean vanishes up to rounding", 0, [], ["run", sine, "--overwrite"])
    expect("a side with a value", 0, [], ["run", poisson, 'domain.boundary.low=["periodic",{fixed = 1}]',
                                          'domain.boundary.high=["periodic","neumann"]', "--overwrite"])
    expect("omega of cg", 2, "solver.omega belongs to", ["run", poisson, "solver.omega=0.5"], lines=1)
    expect("omega of chebyshev", 2, "solver.omega belongs to", ["run", poisson, "solver.method=chebyshev", "solver.omega=0.5"], lines=1)
    expect("omega = 2", 2, "solver.omega = 2 never brings red_black", ["run", poisson, "solver.method=red_black", "solver.omega=2"], lines=1)
    for method in ("jacobi", "red_black", "cg"):
        expect("bounds of " + method, 2, 'solver.lambda_low belongs to solver.method = "chebyshev"',
               ["run", poisson, "solver.method=" + method, "solver.lambda_low=0.5"], lines=1)
    expect("bounds of no method", 2, 'solver.lambda_high belongs to solver.method = "chebyshev"', ["run", poisson, "solver.method=", "solver.lambda_high=9"], lines=1)
    expect("bounds the wrong way round", 2, "solver.lambda_low = 20 is above solver.lambda_high = 10",
           ["run", poisson, "solver.method=chebyshev", "solver.lambda_low=20", "solver.lambda_high=10"], lines=1)
    jacobi = input_file("jacobi.toml", (WORK / poisson).read_text().replace('"cg"', '"jacobi"').replace(
        "[solver]", 'boundary.low = [{fixed = 1}, "neumann"]\nboundary.high = ["neumann", "neumann"]\n[solver]'))
    for more in (["source.value=1e155"], ["domain.length=[1e-80,1e-80]"], ['domain.boundary.low=[{dirichlet = 1e155},"neumann"]']):
        for stop in ("0", "1e-10"):
            expect("a residual without end, %s, stop %s" % (more, stop), 2, ["|r of u = 0|", "the squares of r add up to inf"],
                   ["run", jacobi, "--overwrite", "run.stop_residual=" + stop, *more], ranks=(3,), lines=1)
    expect("source that is not finite", 2, 'the source "f" is NaN or infinite at linear index',
           ["run", poisson, "source.kind=linear", "source.gradient=[1e300,1e300]", "source.value=1e300", "domain.length=[1e10,1e10]", "--overwrite"])
    expect("no such source", 2, 'source.kind = "sin" is not one of', ["run", poisson, "source.kind=sin"], lines=1)
    life = input_file("life.toml", INPUT.replace('kind = "heat"', 'kind = "life"'))
    expect("life", 0, [], ["run", life, "--overwrite"])
    expect("source of another equation", 2, "unknown table source: this input has the tables", ["run", life, "source.kind=sine"], lines=1)
    for rule in ("B3S23", "3/23", "B9/S23", "B33/S2", "b3/s23", "B3/S23x", ""):
        expect("rule %r" % rule, 2, 'solver.rule = "%s" is no rule' % rule, ["run", life, 'solver.rule="%s"' % rule], ranks=(2,), lines=1)
    expect("life in float64", 2, 'domain.type = "float64" is not one of "uint8"', ["run", life, "domain.type=float64"], lines=1)
    expect("heat in uint8", 2, 'domain.type = "uint8" is not one of', ["run", good, "domain.type=uint8"], lines=1)
    expect("life with a value at the face", 2, "domain.boundary.low: life has no {dirichlet = VALUE}",
           ["run", life, 'domain.boundary.low=["periodic",{dirichlet=1}]', 'domain.boundary.high=["periodic","neumann"]'], lines=1)
    expect("life half alive outside", 2, "domain.boundary.high: {fixed = 0.5} is no state of life",
           ["run", life, 'domain.boundary.low=["periodic","neumann"]', 'domain.boundary.high=["periodic",{fixed=0.5}]'], lines=1)
    expect("life in three dimensions", 2, 'solver.kind = "life" has 2 dimensions, domain.shape has 3', ["run", life, "domain.shape=[6,6,6]"], lines=1)
    expect("nor what follows from that", 2, 'solver.kind = "life" has 2 dimensions, domain.shape has 3',
           ["run", life, "domain.shape=[6,6,6]", "initial=", "initial.h.kind=constant", "output.picture_field=h"], lines=1)
    expect("life with other states", 2, "has another value than 0 and 1, first at linear index 37",
           ["run", input_file("states.toml", (WORK / life).read_text().replace('"random"\nseed = 3', '"box"\nlow = [0.05, 0.86]\nhigh = [0.1, 0.89]\ninside = 2'))], lines=1)

    expect("life below 0", 2, ['the initial field "u" is -0.', "at linear index 0, cell (0, 0), out of range of uint8 (0 .. 255, or less of it): use other values in [initial]"],
           ["run", life, "initial.low=-1", "initial.high=-0.1", "--overwrite"], lines=1)

    # --- sizes, ranks and grids ---------------------------------------------------------------------------------------
    expect("more ranks than cells", 2, "no process grid of 7 ranks fits into a grid of 3 x 3 cells: run on 6 ranks",
           ["run", good, "domain.shape=[3,3]"], ranks=(7,))
    expect("process grid that does not multiply", 2, "process grid 2 x 2 does not multiply to the 3 ranks",
           ["run", good, "parallel.process_grid=[2,2]"], ranks=(3,))
    expect("slabs for a list without a name", 2, ['exchange "slabs_packed" works for Moore, von Neumann and star', 'use "coalesced"'],
           ["run", input_file("slabs.toml", INPUT.replace('kind = "heat"', 'kind = "stencil"\noffsets = [[2, 1]]\nweights = [1.0]')),
            "parallel.exchange=slabs_packed", "parallel.process_grid=auto"], ranks=(1, 3))
    expect("unknown exchange", 2, ['"pigeons" is not one of', '"coalesced_packed"'], ["run", good, "parallel.exchange=pigeons"])
    expect("too many cells to count", 2, "beyond the limit of 2^53 cells", ["run", good, "domain.shape=[1000000000,1000000000]"])
    expect("too large for memory", 2, ["GiB per rank", "use a smaller domain.shape"], ["run", good, "domain.shape=[400000,400000]"])
    expect("ghosts too large for memory", 2, ["GiB per rank", "parallel.halo_depth = ", " at most or more nodes"], ["run", good, "domain.shape=[4,4,4]", "parallel.halo_depth=1000"], ranks=(1,))
    torus = ["run", good, "domain.shape=[1,1]", "parallel.process_grid=auto"] + ['domain.boundary.%s=["periodic","periodic"]' % s for s in ("low", "high")]
    expect("ghosts that hold the grid too often", 2, ["parallel.halo_depth = 1000: the ghosts would hold the grid some 4e+06 times", "use 180 at most"],
           torus + ["parallel.halo_depth=1000"], ranks=(1,))
    expect("a plan of them", 2, "use 180 at most", torus + ["parallel.halo_depth=1000", "--plan", "-n", "1"], ranks=(1,))
    expect("tile beyond the grid", 2, 'parallel.tile[1] = 21 is above domain.shape[1]: use at most 20, or "auto"', ["run", good, "parallel.tile=[3,21]"])
    deep = ["bench", "temporal", "--size", "16", "--depth", "2", "--repeats", "1"]
    expect("tile that no case has", 2, "bench temporal: --tile 4 is 1-D, the cases are 2-D or 3-D: give as many extents", deep + ["--tile", "4"])
    expect("tile that the chosen case has not", 2, "--tile 4,4 is 2-D, the cases are 3-D: give as many extents", deep + ["--case", "3d-7pt", "--tile", "4,4"])
    expect("unknown case beside a known one", 2, 'bench temporal: no case "2d"; there are 2d-5pt, 3d-7pt, 2d-9pt, 3d-27pt, 2d-acoustics, 3d-acoustics', ["bench", "temporal", "--case", "2d-5pt", "--case", "2d", "--repeats", "100"])  # the known one would take minutes
    expect("unknown workload", 2, 'bench workloads: no case "fft"; there are matvec, barnes-hut, openmp-reduce', ["bench", "workloads", "--case", "fft"])
    expect("tile of too few dimensions", 2, "has 1 entries, expected a list of 2 integers", ["run", good, "parallel.tile=[3]"])
    expect("unknown way through memory", 2, ['"fast" is not one of', '"streamed_far"'], ["run", good, "parallel.sweeps=fast"])
    expect("absurd depth", 2, "parallel.halo_depth = 100000 is out of range: 1 .. 1000", ["run", good, "parallel.halo_depth=100000"])

    # --- initial fields from files ------------------------------------------------------------------------------------
    with h5py.File(WORK / "field.h5", "w") as f:
        f["right"] = np.arange(480, dtype=np.int32).reshape(24, 20)
        f["wrong"] = np.zeros((20, 24))
        f["words"] = np.array([[b"a"] * 20] * 24)
        bad = np.zeros((24, 20))
        bad[23, 19] = np.nan
        f["nan"] = bad
        f["huge"] = np.full((24, 20), 1e200)
        f["flags"] = f["right"][()] % 3 == 0
        f["numbers"] = f["flags"][()].astype(float)
    from_file = INPUT.replace('kind = "random"\nseed = 3', 'kind = "file"\nfile = "field.h5"\ndataset = "DATASET"')
    for dataset, text in (("none", 'has no dataset "none"'), ("wrong", 'dataset "wrong" has shape 20 x 24, the grid is 24 x 20'),
                          ("words", "holds neither real nor integer numbers"),
                          ("nan", 'the initial field "u" is NaN or infinite at linear index 479, cell (23, 19): use other values in [initial] (dataset "nan" of field.h5)')):
        expect("dataset " + dataset, 2, text, ["run", input_file("file.toml", from_file.replace("DATASET", dataset)), "--overwrite"])
    expect("beyond float32", 2, 'the initial field "u" is 9.9999999999999997e+199 at linear index 0, cell (0, 0), out of range of float32 (up to 3.4e+38): use other values in [initial]',
           ["run", input_file("file.toml", from_file.replace("DATASET", "huge")), "domain.type=float32", "--overwrite"])
    expect("initial file missing", 2, "initial.file: field.h5x: no such file", ["run", input_file("file2.toml", from_file.replace("field.h5", "field.h5x"))])
    expect("integers are converted", 0, [], ["run", input_file("file.toml", from_file.replace("DATASET", "right")), "--overwrite"])
    for dataset in ("flags", "numbers"):
        expect("booleans are converted", 0, [], ["run", input_file("file.toml", from_file.replace("DATASET", dataset)), "output.directory=" + dataset, "--overwrite"])
    u, v = (h5py.File(WORK / dataset / "step_00000020.h5")["fields/u"][()] for dataset in ("flags", "numbers"))
    that(u.any() and u.tobytes() == v.tobytes(), "booleans are other numbers than 0 and 1")

    # --- directories ---------------------------------------------------------------------------------------------------
    expect("a good run", 0, [], ["run", good], ranks=(3,))
    kept = fingerprint(WORK / "out" / "good")
    that(sorted(kept) == ["step_00000010.h5", "step_00000020.h5"], "a good run left %r" % sorted(kept))
    expect("occupied directory", 2, "already holds checkpoints", ["run", good])
    (WORK / "afile").write_text("x")
    expect("directory is a file", 2, "output.directory afile cannot be made", ["run", good, "output.directory=afile"])
    expect("directory below a file", 2, "cannot be made", ["run", good, "output.directory=afile/below"])
    expect("unwritable directory", 2, "output.directory /proc/isohalo cannot be made", ["run", good, "output.directory=/proc/isohalo"])
    expect("directory that takes no files", 2, "output.directory /proc cannot be written to (it shows the kernel's state", ["run", good, "output.directory=/proc"])

    # --- restarts -----------------------------------------------------------------------------------------------------
    first = WORK / "out" / "good" / "step_00000010.h5"
    data = first.read_bytes()
    (WORK / "short.h5").write_bytes(data[:len(data) // 2])
    expect("truncated restart file", 2, "short.h5 cannot be opened: it is truncated or damaged", ["run", good, "--restart", "short.h5"])
    (WORK / "text.h5").write_text("not HDF5 at all")
    expect("foreign restart file", 2, "text.h5 is no HDF5 file", ["run", good, "--restart", "text.h5"])
    expect("HDF5 of somebody else", 2, "field.h5: it is no isohalo checkpoint", ["run", good, "--restart", "field.h5"])
    expect("restart file missing", 2, "none.h5: no such file", ["run", good, "--restart", "none.h5"])
    where = data.find(np.array(h5py.File(first)["fields/u"][0, :4]).tobytes())
    flipped = bytearray(data)
    flipped[where + 1000] ^= 4
    (WORK / "flipped.h5").write_bytes(flipped)
    expect("flipped bit in the data", 2, ["flipped.h5: field \"u\" has digest", "its data is damaged"], ["run", good, "--restart", "flipped.h5"])
    for name, change, text in (("newer.h5", lambda f: f.attrs.modify("format_version", np.array([2, 0], dtype=np.int64)), "is newer than this program's 1.x"),
                               ("none_such.h5", lambda f: f.attrs.modify("format_version", np.array([-3, 0], dtype=np.int64)), "its format version is none"),
                               ("before.h5", lambda f: f["time"].attrs.modify("step", np.int64(-5)), "before.h5: /time: time is"),
                               ("forged.h5", lambda f: f["reduction"].attrs.modify("residual", np.float64(0.125)), "forged.h5: /reduction: residual is"),
                               ("incomplete.h5", lambda f: f.attrs.modify("complete", np.int64(0)), "it is incomplete"),
                               ("lacking.h5", lambda f: f["time"].attrs.__delitem__("step"), 'attribute "step" is missing')):
        shutil.copy(first, WORK / name)
        with h5py.File(WORK / name, "r+") as f:
            change(f)
        expect("restart from " + name, 2, text, ["run", good, "--restart", name])
    expect("other physics", 2, ["cannot restart from", "it was computed with other solver.kappa (1 in the file, 2 here)"],
           ["run", good, "solver.kappa=2", "--restart", first])
    expect("restart from no name", 2, "names no file", ["run", good, "--restart", ""], ranks=(1,))
    os.mkfifo(WORK / "pipe.h5")
    os.symlink("loop.h5", WORK / "loop.h5")
    for name, text in (("pipe.h5", "pipe.h5 is no regular file"), ("loop.h5", "Too many levels of symbolic links"),
                       ("n" * 300 + ".h5", "File name too long"), (".", "is a directory")):
        for arguments in (["info", name], ["verify", name], ["compare", name, first], ["compare", first, name], ["run", good, "--restart", name]):
            expect("%s of %s" % (arguments[0], name[:10]), 2, text, arguments)
    expect("other grid", 2, "domain.shape ([24, 20] in the file, [24, 21] here)", ["run", good, "domain.shape=[24,21]", "--restart", first])
    that(fingerprint(WORK / "out" / "good") == kept, "the checkpoints of the good run changed")
    shutil.copytree(WORK / "out" / "good", WORK / "out" / "fall")
    newest = WORK / "out" / "fall" / "step_00000020.h5"
    newest.write_bytes(newest.read_bytes()[:3000])
    expect("automatic restart falls back loudly", 0, "warning: skipping a checkpoint that cannot be used", ["run", good, "output.directory=out/fall", "--restart", "auto"], ranks=(3,))
    that(fingerprint(WORK / "out" / "fall") == kept, "the run that fell back did not arrive at the same bits")
    expect("automatic restart from nothing", 0, [], ["run", good, "output.directory=out/fresh", "--restart", "auto"], ranks=(2,))
    that(fingerprint(WORK / "out" / "fresh") == kept, "an automatic restart from nothing did not give the plain run")

    # --- running -------------------------------------------------------------------------------------------------------
    explode = INPUT.replace('kind = "heat"', 'kind = "stencil"\noffsets = [[0, 0], [0, 1]]\nweights = [1e30, 1e30]')
    expect("infinity", 3, ['field "u" is NaN or infinite, found at step 20', "checkpoints of earlier steps are intact"],
           ["run", input_file("explode.toml", explode), "--overwrite", "run.residual_every=100"])
    that(sorted(fingerprint(WORK / "out" / "explode")) == ["step_00000010.h5"],
         "the run that exploded should have left its checkpoint of step 10")
    for n in (1, 3):
        r = launch(n, "run", "explode.toml", "--overwrite", "output.checkpoint_every=0")
        that(r.returncode == 3 and "NaN or infinite" in r.stderr and "checkpoints" not in r.stderr, "checkpoints that there are not: " + r.stderr)

    # --- the command ---------------------------------------------------------------------------------------------------
    expect("no subcommand", 2, "isohalo needs a command: run, compare", [])
    expect("unknown option", 2, "isohalo run has no option --fast", ["run", good, "--fast"])
    a, b = WORK / "out" / "good" / "step_00000010.h5", WORK / "out" / "good" / "step_00000020.h5"
    expect("compare same", 0, [], ["compare", a, WORK / "out" / "fresh" / "step_00000010.h5"])
    for n in (1, 3):
        r = launch(n, "compare", a, b)
        that(r.returncode == 1 and "cells differ, first at (0, 0):" in r.stdout and r.stdout.endswith("different\n"),
             "compare of different files on %d ranks: %d %s" % (n, r.returncode, r.stdout))
    for arguments in (("run", good, "--overwrite"), ("compare", a, b), ("info", a)):
        with open("/dev/full", "w") as full:
            r = subprocess.run([ISOHALO, *map(str, arguments)], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, cwd=WORK)
        that(r.returncode == 3 and r.stderr.count("cannot write to standard output or error: No space left") == 1,
             "%s without room for what it prints: %d %s" % (arguments[0], r.returncode, r.stderr))
    expect("compare missing", 2, "none.h5: no such file", ["compare", a, "none.h5"])
    expect("info", 0, [], ["info", a])
    expect("info of a truncated file", 2, "short.h5 cannot be opened", ["info", "short.h5"])
    expect("validate", 0, [], ["run", good, "--validate", "--overwrite"])
    expect("validate a bad input", 2, "unknown table a:", ["run", good, "--validate", "a.b=1"])
    env = dict(os.environ, OMPI_COMM_WORLD_SIZE="4")
    r = subprocess.run([ISOHALO, "info", str(a)], capture_output=True, text=True, env=env, timeout=60)
    that(r.returncode == 2 and "started by another MPI's mpiexec" in r.stderr,
         "a foreign launcher is not refused: %d %s" % (r.returncode, r.stderr))

    env = dict(os.environ, ISOHALO_CHECK="abc")
    r = subprocess.run([ISOHALO, "run", "good.toml", "--validate", "--overwrite"], capture_output=True, text=True, env=env, timeout=60, cwd=WORK)
    that(r.returncode == 2 and r.stderr.count('ISOHALO_CHECK is "abc": use local or communication') == 1,
         "another word of ISOHALO_CHECK: %d %s" % (r.returncode, r.stderr))

    finish()


if __name__ == "__main__":
    main()
