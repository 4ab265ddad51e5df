#!/usr/bin/python3
"""What helps to run it: verify, info --numpy, --help-input, --plan, the effective configuration, signals, phases, prove.

usage: operation.py ISOHALO MPIEXEC WORK_DIRECTORY INPUTS_DIRECTORY
"""
import json
import os
import pathlib
import re
import shutil
import signal
import stat
import subprocess
import sys
import time
import tomllib

import h5py
import numpy as np

from harness import ISOHALO, MPIEXEC, WORK, finish, fresh_work_directory, isohalo, launch, that

INPUTS = pathlib.Path(sys.argv[4])
INPUT = """
[domain]
shape = [31, 29]
boundary.low = ["neumann", {dirichlet = 1.0}]
boundary.high = ["neumann", {fixed = 0.0}]
[solver]
kind = "heat"
[initial]
kind = "random"
seed = 3
[run]
steps = 12
[output]
checkpoint_every = 6
"""


def copy(name, change):
    shutil.copy(WORK / "plain/step_00000012.h5", WORK / name)
    with h5py.File(WORK / name, "r+") as f:
        change(f)
    return name


def set_cell(index, value):
    def change(f):
        f["fields/u"][index] = value
    return change


def test_verify():
    good = WORK / "plain/step_00000012.h5"
    outputs = {isohalo(n, "verify", good).stdout for n in (1, 2, 3, 4, 6)}
    that(len(outputs) == 1 and outputs.pop().endswith("good\n"), "verify depends on the ranks")
    with h5py.File(good) as f:
        least, most = f["fields/u"].attrs["min"], f["fields/u"].attrs["max"]
    attribute = lambda path, name, value: lambda f: f[path].attrs.modify(name, value)
    for change, text in (
            (set_cell((30, 28), 0.7), "field u: its digest"), (set_cell((0, 0), np.nan), "NaN count is 0, the data has 1"),
            (attribute("fields/u", "min", least - 1), "its min is"), (attribute("fields/u", "max", most + 1), "its max is"),
            (attribute("fields/u", "nan_count", np.int64(3)), "NaN count is 3, the data has 0"),
            (attribute("time", "time", 9.0), "/time: time is 9"), (attribute("reduction", "residual", 1.0), "/reduction: residual is 1"),
            (attribute("reduction", "residual_step", np.int64(3)), "residual_step is 3"),
            (attribute("reduction", "tree_version", np.int64(7)), "tree version 7"),
            (attribute("grid", "boundary_low", np.bytes_("[]")), "/config: domain.boundary.low is"),
            (lambda f: f.create_group("more"), 'object "more" is none of the schema'),
            (attribute("fields/u", "role", np.bytes_("x")), 'role is "x"')):
        r = isohalo(3, "verify", copy("bad.h5", change), code=1)
        that(text in r.stdout and r.stdout.endswith("not good\n"), "verify does not say %r: %s" % (text, r.stdout))
    isohalo(2, "verify", copy("bad.h5", lambda f: f["config"].attrs.modify("digest", np.bytes_("0" * 16))), code=2)
    (WORK / "short.h5").write_bytes(good.read_bytes()[:-100])
    isohalo(2, "verify", "short.h5", code=2)


def test_newer_minor_version():
    """docs/checkpoints.md: readers accept files of a newer minor version, whatever it adds."""
    def newer(f):
        f.attrs["format_version"] = np.array([1, 99], dtype=np.int64)
        f["grid"].attrs["colour"] = np.int64(7)
    name = copy("newer_minor.h5", newer)
    for command in ("info", "verify"):
        isohalo(1, command, name)


def test_numpy():
    for options in ((), ("domain.type=float32",), ("solver.kind=life", "domain.boundary.low=[\"neumann\",\"periodic\"]",
                                                   "domain.boundary.high=[\"neumann\",\"periodic\"]")):
        isohalo(2, "run", "input.toml", "output.directory=numpy", "--overwrite", *options)
        lines = isohalo(1, "info", "--numpy", "numpy/latest.h5").stdout
        names = {}
        exec(lines, names)
        with h5py.File(WORK / "numpy/latest.h5") as f:
            stored = f["fields/u"][...]
        that(names["fields"]["u"].dtype == stored.dtype and np.array_equal(names["fields"]["u"], stored), "the lines load something else: " + lines)
    latin, names = os.fsdecode(b"caf\xe9.h5"), {}  # a name that is no UTF-8
    shutil.copy(WORK / "numpy/latest.h5", WORK / latin)
    exec(isohalo(1, "info", "--numpy", latin).stdout, names)
    that(np.array_equal(names["fields"]["u"], stored), "the lines for a name that is no UTF-8")

    def chunked(f):
        data = f["fields/u"][...]
        attributes = dict(f["fields/u"].attrs)
        del f["fields/u"]
        f.create_dataset("fields/u", data=data, chunks=(5, 7))
        for k, v in attributes.items():
            f["fields/u"].attrs.create(k, v)
    name, names = copy("chunked.h5", chunked), {}
    exec(isohalo(3, "info", "--numpy", name).stdout, names)
    with h5py.File(WORK / name) as f:
        that(np.array_equal(names["fields"]["u"], f["fields/u"][...]), "the lines for chunks")
    isohalo(1, "verify", name)


def keys(table, prefix=""):
    for k, v in table.items():
        if isinstance(v, dict) and k not in ("low", "high"):
            yield from keys(v, prefix + k + ".")
        else:
            yield prefix + k


def test_help():
    text = isohalo(2, "run", "--help-input").stdout
    for input in sorted(INPUTS.glob("*.toml")):
        for key in keys(tomllib.loads(input.read_text())):
            key = key if key == "source.kind" else key.replace("source.", "initial.")  # the same keys
            key = re.sub(r"^initial\.(u|v|p|v\d)\.", "initial.", key)  # each of several fields has a table
            if key != "solver.mask.rule":
                key = re.sub(r"^solver\.\w+\.", "initial.", key)  # so has each coefficient
            that(re.search(r"^  %s +\S" % re.escape(key), text, re.M), "--help-input lacks %s of %s" % (key, input.name))
    for line in ("run.steps                        integer, steps; 0 .. 2^53; required",
                 "output.xdmf                      boolean; default true",
                 "initial.seed                     integer; default 0", 'solver.rule                      string; default "B3/S23"'):
        that("  " + line in text, "--help-input does not have %r" % line)
    listed = re.findall(r"^  (\S+) +", text, re.M)
    that(len(set(listed)) > 45, "--help-input lists %d keys" % len(set(listed)))
    isohalo(1, "run", code=2)


def figure(text, pattern):
    found = re.search(pattern, text)
    that(found, "the plan has no %r: %s" % (pattern, text))
    return found.groups() if found else ("0",) * 9


def test_plan():
    first = isohalo(4, "run", "input.toml", "output.directory=planned", "--overwrite").stdout.splitlines()[0]
    plan = isohalo(1, "run", "input.toml", "--plan", "-n", "4").stdout
    for name in ("process grid", "imbalance"):
        value = first.split(name + " ")[1].split(",")[0]
        that("%s %s" % (name, value) in plan, "plan and run disagree: %s: %s" % (first, plan))
    that(isohalo(4, "run", "input.toml", "--plan").stdout == plan, "the plan of the ranks that are there")
    size = (WORK / "planned/step_00000012.h5").stat().st_size / 1024
    that(abs(float(figure(plan, r"checkpoint +([0-9.]+) KiB")[0]) - size) < 6, "size of a checkpoint: %s, file %g KiB" % (plan, size))
    dt, t = figure(plan, r"time +dt = (\S+), t = (\S+) after 12 steps")[:2]
    that(abs(float(t) - 12 * float(dt)) < 1e-4 * float(t), "dt and t: " + plan)
    # An interior rank of a periodic 3 x 3 grid: cells read by two steps of a 9-point stencil around 10 x 12 cells.
    moore = ["solver.kind=stencil", "solver.offsets=%r" % [[y, x] for y in (-1, 0, 1) for x in (-1, 0, 1)],
             "solver.weights=[1,1,1,1,1,1,1,1,1]", "domain.shape=[30,36]", "parallel.process_grid=[3,3]",
             "parallel.alignment_tolerance=0", "parallel.halo_depth=2"] + ["domain.boundary.%s=[\"periodic\",\"periodic\"]" % s for s in ("low", "high")]
    plan = isohalo(1, "run", "input.toml", *moore, "--plan", "-n", "9").stdout
    that(figure(plan, r"faces +(\d+) regions, (\d+) cells") == ("4", str(2 * 2 * (10 + 12))), "faces: " + plan)
    that(figure(plan, r"corners +(\d+) regions, (\d+) cells") == ("4", "16"), "corners: " + plan)
    that(figure(plan, r"receives (\d+) messages, ([0-9.]+) B; per step (\d+) messages, ([0-9.]+) B") == ("8", str(104 * 8), "4", str(104 * 4)), plan)
    # Two fields in the same messages; an exchange for each of three stages that read two cells away.
    for file, depth, load in (("gray_scott", 2, "8 messages, 1.4 KiB of 2 fields; per step 4 messages, 736 B"),
                              ("advection2d", 1, "4 messages, 704 B; per step 12 messages, 2.1 KiB"),
                              ("acoustics2d", 1, "4 messages, 352 B; per step 4 messages, 352 B")):
        plan = isohalo(1, "run", str(INPUTS / (file + ".toml")), "domain.shape=[30,36]", "parallel.process_grid=[3,3]",
                       "parallel.alignment_tolerance=0", "parallel.halo_depth=%d" % depth, "--plan", "-n", "9").stdout
        that("the busiest rank receives %s\n" % load in plan, "%s: %s" % (file, plan))
    # The same in three dimensions: a rank of 10 x 12 x 14 cells within 3 x 3 x 3.
    cube = [(z, y, x) for z in (-1, 0, 1) for y in (-1, 0, 1) for x in (-1, 0, 1)]
    moore = ["solver.kind=stencil", "solver.offsets=%r" % [list(o) for o in cube], "solver.weights=%r" % ([1] * len(cube)),
             *("domain.boundary.%s=[\"periodic\",\"periodic\",\"periodic\"]" % s for s in ("low", "high"))]
    plan = isohalo(1, "run", "input.toml", *moore, "domain.shape=[30,36,42]", "parallel.process_grid=[3,3,3]",
                   "parallel.alignment_tolerance=0", "--plan", "-n", "27").stdout
    for kind, regions, cells in (("faces", 6, 2 * (10 * 12 + 10 * 14 + 12 * 14)), ("edges", 12, 4 * (10 + 12 + 14)), ("corners", 8, 8)):
        that(figure(plan, kind + r" +(\d+) regions, (\d+) cells") == (str(regions), str(cells)), "%s in 3-D: %s" % (kind, plan))
    that(figure(plan, r"receives (\d+) messages") == ("26",), plan)
    # Steps per exchange that nobody asked for: many where a block is in no cache, else few; up to the next residual.
    for shape, every, ranks, depth in (([64, 64], 0, 1, "1 or 2 or 4 or 8"), ([64, 64], 3, 1, "1 or 2"), ([64, 64], 1, 1, "1"),
                                       ([8192, 8192], 0, 1, "16"), ([8192, 8192], 10, 1, "10"), ([8192, 8192], 3, 1, "1"),
                                       ([8192, 8192], 0, 64, "1 or 2 or 4 or 8"), ([64, 64, 64], 0, 1, "1 or 2 or 4"),
                                       ([512, 512, 512], 0, 1, "8"), ([512, 512, 512], 10, 1, "5"),
                                       ([128] * 4, 0, 1, "1"), ([512, 512, 512], 0, "device", "1")):
        sides = ["domain.boundary.%s=%s" % (s, json.dumps(["periodic"] * len(shape))) for s in ("low", "high")]
        plan = isohalo(1, "run", "input.toml", "domain.shape=%r" % shape, "run.residual_every=%d" % every, *sides, "--plan",
                       *(["parallel.space=device"] if ranks == "device" else ["-n", str(ranks)])).stdout
        that(figure(plan, r"halo depth +([\d or]+) steps") == (depth,), "%r cells, residual every %d: %s" % (shape, every, plan))
    plan = isohalo(1, "run", "input.toml", *moore, "domain.shape=[512,512,512]", "run.residual_every=0", "--plan", "-n", "1").stdout
    that(figure(plan, r"halo depth +([\d or]+) steps") == ("1 or 8",), "27 points beyond caches: " + plan)
    start = time.monotonic()
    isohalo(1, "run", "input.toml", "domain.shape=[65536,65536]", "--plan", "-n", str(2**24))
    isohalo(1, "run", "input.toml", "--plan", "-n", str(2**24), code=2)
    that(time.monotonic() - start < 20, "plans for 2^24 ranks take %.0f s" % (time.monotonic() - start))
    r = isohalo(1, "run", "input.toml", "--plan", "-n", "1", "domain.shape=[641,6700417]", "parallel.process_grid=[641,6700417]", code=2)  # 2^32 + 1
    that("process grid 641 x 6700417 does not multiply to the 1 rank" in r.stderr, "a grid of more ranks than an int counts: " + r.stderr)
    spare = isohalo(1, "run", "input.toml", "domain.shape=[20]", 'domain.boundary.low=["neumann"]', 'domain.boundary.high=["neumann"]',
                    "parallel.alignment_tolerance=0", "--plan", "-n", "13").stdout
    that("10 ranks would be as fast" in spare, "13 ranks of 20 cells: " + spare)
    # A schedule is for the ranks of the plan, not for those that are there.
    isohalo(1, "run", "input.toml", "--plan", "-n", "3", "parallel.schedule=a3")
    isohalo(3, "run", "input.toml", "--plan", "-n", "4", "parallel.schedule=a3", code=2)
    plan = isohalo(1, "run", "input.toml", "domain.shape=[196,512]", "--plan", "-n", "98").stdout
    that("97 ranks" not in plan, "thin blocks with large halos are praised: " + plan)
    isohalo(2, "run", "input.toml", "--plan", "-n", "100000", code=2)
    isohalo(1, "run", "input.toml", "--plan", "parallel.process_grid=[2,2]", "-n", "3", code=2)
    r = isohalo(1, "run", "input.toml", "--plan", "parallel.process_grid=[2,2]", code=2)
    that("does not multiply to the 1 rank of this run: give one that does, for instance 1 x 1" in r.stderr, "--plan of 1 rank: " + r.stderr)
    that(not (WORK / "out").exists(), "a plan leaves files")
    # A grid that lies several times in its own ghosts: as in the schedule that a run has.
    periodic = lambda d: "\n".join("boundary.%s = %s" % (s, json.dumps(["periodic"] * d)) for s in ("low", "high"))
    plane = INPUT[:INPUT.index("shape")] + "shape = [12, 12]\n" + periodic(2) + INPUT[INPUT.index("\n[solver]"):] + "[parallel]\nhalo_depth = 20\n"
    torus = ("[domain]\nshape = [3, 4, 4, 20]\n" + periodic(4) + '\n[solver]\nkind = "stencil"\noffsets = [[0,0,0,0],[2,-3,3,18],[-2,3,-1,-18],[1,1,-3,7],[0,2,2,-11]]\n'
             'weights = [0.4,0.2,0.2,0.1,0.1]\n[initial]\nkind = "random"\n[run]\nsteps = 10\n[parallel]\nhalo_depth = 5\n')
    for name, text in (("plane", plane), ("torus", torus)):
        (WORK / (name + ".toml")).write_text(text)
    for name, ranks, exchange, pattern in (("plane", 2, "auto", "coalesced"), ("plane", 3, "direct", "direct"), ("plane", 6, "shared", "coalesced"),
                                           ("torus", 4, "auto", "coalesced"), ("plane", 4, "slabs", "slabs")):
        plan = isohalo(1, "run", name + ".toml", "--plan", "-n", ranks, "parallel.exchange=" + exchange).stdout
        messages, size, unit = figure(plan, r"receives (\d+) messages, ([0-9.]+) (B|KiB);")
        one = [e for e in json.loads(isohalo(0, "schedule", "--halo", name + ".toml", "--ranks", ranks, "--json").stdout)["exchanges"] if e["name"] == pattern][0]
        expected = one["most_bytes"]
        that((messages, size) == (str(one["most_messages"]), "%g" % expected if expected < 1024 else "%.1f" % (expected / 1024)),
             "%s on %d ranks: %d messages of %g bytes in the schedule: %s" % (name, ranks, one["most_messages"], expected, plan))


def test_effective_configuration():
    """The run metadata's configuration, given as overrides of an empty input, is the same run."""
    with h5py.File(WORK / "values.h5", "w") as f:
        f["start"] = np.arange(31 * 29, dtype=np.float64).reshape(31, 29)
    (WORK / "empty.toml").write_text("")
    for name, more in (("plain", ()), ("file", ("initial.kind=file", "initial.file=values.h5", "initial.dataset=start"))):
        input = WORK / (name + ".toml")
        input.write_text(INPUT if not more else INPUT.replace("seed = 3", ""))
        isohalo(2, "run", name + ".toml", "output.directory=" + name, "--overwrite", "parallel.halo_depth=2", *more)
        config = json.loads((WORK / name / "step_00000012.json").read_text())["config"]
        config["output.directory"] = '"%s_again"' % name
        r = launch(0, "run", "empty.toml", *("%s=%s" % (k, v) for k, v in config.items() if k != "solver.dt"))
        that(r.returncode == 0, "the effective configuration is refused: " + r.stderr)
        a, b = (WORK / d / "step_00000012.h5" for d in (name, name + "_again"))
        that(r.returncode == 0 and a.read_bytes() == b.read_bytes(), "the effective configuration is another run")


def test_phases():
    out = isohalo(3, "run", "input.toml", "output.directory=phases", "run.steps=600", "output.checkpoint_every=300").stdout
    rows = re.findall(r"^(\w+) +([0-9.]+) +([0-9.]+) +([0-9.]+)", out, re.M)
    names = [r[0] for r in rows]
    for name in ("start", "exchange", "boundary", "sweep", "reduction", "checkpoint"):
        that(name in names, "the table lacks %s: %r" % (name, names))
    that(all(float(a) <= float(b) + 1e-3 and float(b) <= float(c) + 1e-3 for _, a, b, c in rows), "min, avg, max: %r" % rows)
    phases = json.loads((WORK / "phases/step_00000600.json").read_text())["phases"]
    that(set(names) - {"picture", "digest"} <= set(phases) and 0 <= phases["sweep"]["slowest_rank"] < 3 and
         phases["sweep"]["max_s"] > 0, "the run metadata's phases %r" % phases)
    that(out.splitlines()[-1].startswith("digest u = ") and out.splitlines()[-3].startswith("rate = "), "the last lines")


def ranks_of(launcher):
    """Process ids of the ranks below an mpiexec, in no order."""
    parents = {}
    for p in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            fields = (p / "stat").read_text().rsplit(")", 1)[1].split()
            parents[int(p.name)] = (int(fields[1]), os.readlink(p / "exe"))
        except OSError:
            pass
    below, found = {launcher}, []
    for _ in range(5):
        below |= {p for p, (parent, _) in parents.items() if parent in below}
    return [p for p in below if p in parents and parents[p][1] == os.path.realpath(ISOHALO)]


def signalled(directory, ranks, act):
    """Starts an endless run, acts on it once it steps, returns its output."""
    command = [MPIEXEC, "-n", str(ranks), ISOHALO, "run", "input.toml", "output.directory=" + directory, "run.steps=1000000000",
               "run.residual_every=50", "output.checkpoint_every=0", "output.final_checkpoint=false"]
    with subprocess.Popen(command, cwd=WORK, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        try:
            run.stdout.readline()
            time.sleep(0.7)
            act(run)
            out, err = run.communicate(timeout=60)
        except BaseException:
            run.kill()
            raise
    that(run.returncode == 0, "%s on %d ranks: exit code %d: %s%s" % (directory, ranks, run.returncode, out[-400:], err[-400:]))
    return out


def files(directory):
    return sorted((WORK / directory).glob("step_*.h5"))


def test_signals():
    for number, ranks in ((signal.SIGTERM, 1), (signal.SIGINT, 2), (signal.SIGTERM, 3)):
        for to_all in (True, False):
            directory = "signal_%d_%d_%d" % (number, ranks, to_all)

            def act(run):
                if to_all:
                    run.send_signal(number)
                else:
                    os.kill(max(ranks_of(run.pid)), number)  # one rank only
            out = signalled(directory, ranks, act)
            that("stopped by %s at step" % number.name in out, "%s: %s" % (directory, out[-300:]))
            that(len(files(directory)) == 1, "%s left %r" % (directory, files(directory)))
    # The file is that of a run which stops there by itself.
    step = int(files(directory)[0].name[5:13])
    isohalo(2, "run", "input.toml", "output.directory=straight", "run.steps=%d" % step, "output.checkpoint_every=0")
    that(files("straight")[0].read_bytes() == files(directory)[0].read_bytes(), "the checkpoint of a signal has other bits")

    def ask_then_stop(run):
        for k in (1, 2):
            os.kill(min(ranks_of(run.pid)), signal.SIGUSR1)
            for _ in range(200):
                if len(files("usr1")) >= k:
                    break
                time.sleep(0.05)
            that(len(files("usr1")) == k and run.poll() is None, "SIGUSR1 left %r" % files("usr1"))
        run.send_signal(signal.SIGTERM)
    signalled("usr1", 3, ask_then_stop)
    that(len(files("usr1")) == 3, "SIGUSR1 and SIGTERM left %r" % files("usr1"))
    for f in files("usr1"):
        isohalo(1, "verify", f)


def test_prove():
    r = launch(0, "prove", "input.toml", "--ranks", "1,2,3", "parallel.halo_depth=2", "output.digest_every=3")
    that(r.returncode == 0 and "proved: the same bits on 1, 2, 3 ranks" in r.stdout and r.stdout.count(" same\n") == 2, r.stdout + r.stderr)
    # The inputs that we ship, with few steps.
    for input in sorted((pathlib.Path(__file__).resolve().parent.parent.parent / "inputs").glob("*.toml")):
        r = launch(0, "prove", input, "--ranks", "1,2", "run.steps=4")
        that(r.returncode == 0 and re.search(r"^proved: .*, and [1-9]\d* checkpoint files?( and \d+ other files?)? byte by byte\)$", r.stdout, re.M), input.name + r.stdout + r.stderr)
    r = launch(0, "prove", "input.toml", "--ranks", "1,2", "output.checkpoint_every=0", "output.final_checkpoint=false")
    that(r.returncode == 0 and "these runs leave no checkpoint files to compare" in r.stdout, r.stdout + r.stderr)
    r = launch(0, "prove", "input.toml", "run.steps=6", "--ranks", "1,2", "parallel.process_grid=[2,1]")
    that(r.returncode == 2 and "the run on 1 rank ended with exit code 2" in r.stderr and re.search(r"^     1 {20,}[0-9.]+ +0  ended", r.stdout, re.M) and "     2  2 x 1 " in r.stdout,
         "prove with a grid for 2 ranks: %d %s%s" % (r.returncode, r.stdout, r.stderr))
    # The user's own files are none of a run's.
    (WORK / "pp/ranks_1").mkdir(parents=True)
    (WORK / "pp/ranks_1/notes.txt").write_text("mine")
    for attempt in range(2):
        r = launch(0, "prove", "input.toml", "run.steps=6", "output.checkpoint_every=0", "--ranks", "1,2", "--directory", "pp")
        that(r.returncode == 0 and "and 1 checkpoint file and" in r.stdout and (WORK / "pp/ranks_1/notes.txt").exists(), "prove beside notes: %d %s%s" % (r.returncode, r.stdout, r.stderr))
    # A launcher whose run on 3 ranks changes one bit.
    liar = WORK / "liar.py"
    liar.write_text("""#!%s
import subprocess, sys
code = subprocess.call([%r, *sys.argv[1:]])
if sys.argv[2] == "3":
    directory = [a for a in sys.argv if a.startswith("output.directory=")][0].split("=")[1]
    import h5py
    with h5py.File(directory + "/step_00000006.h5", "r+") as f:
        f["fields/u"][3, 4] += 1e-13
sys.exit(code)
""" % (sys.executable, MPIEXEC))
    liar.chmod(liar.stat().st_mode | stat.S_IXUSR)
    r = launch(0, "prove", "input.toml", "--ranks", "2,3", "--mpiexec", liar, "--directory", WORK / "kept")
    that(r.returncode == 1 and "step_00000006.h5 differs" in r.stdout and "first at (3, 4)" in r.stdout and
         r.stdout.endswith("not proved: the runs on 2, 3 ranks differ\n"), "a difference is not found: " + r.stdout)
    that((WORK / "kept/ranks_2/step_00000006.h5").exists(), "--directory keeps the files")
    # Launchers that start other numbers of ranks than they are told to: the same files, and no proof.
    for ranks, there, others in (("1,2", 1, (2,)), ("2,3", 1, (2, 3)), ("2,3,1", 2, (3, 1))):
        fixed = WORK / "fixed.sh"
        fixed.write_text('#!/bin/sh\nshift 2\nexec %s -n %d "$@"\n' % (MPIEXEC, there))
        fixed.chmod(fixed.stat().st_mode | stat.S_IXUSR)
        r = launch(0, "prove", "input.toml", "run.steps=6", "--ranks", ranks, "--mpiexec", fixed)
        that(r.returncode == 3 and "proved:" not in r.stdout, "%s ranks that were %d are a proof: %d %s%s" % (ranks, there, r.returncode, r.stdout, r.stderr))
        for n in others:
            text = "the run on %d rank%s had %d rank%s: %s does not start as many as -n says" % (n, "s"[:n - 1], there, "s"[:there - 1], fixed)
            that(text in r.stderr, "no %r: %s" % (text, r.stderr))
        that("nothing is proved: %sthe run on %d rank" % ("every run failed, " if ranks == "2,3" else "", others[0]) in r.stderr, r.stderr)
    for arguments, code, text in ((("prove", "input.toml", "--ranks", "1,2", "run.stps=3"), 2, "unknown key run.stps"),
                                  (("prove", "input.toml", "--ranks", "2"), 2, "at least two numbers"),
                                  (("prove", "input.toml", "--ranks", "2,1,2"), 2, "the number 2 is there twice"),
                                  (("prove", "input.toml", "--ranks", "1,2", "--directory", "input.toml"), 2, "cannot make the directory"),
                                  (("prove", "input.toml", "--ranks", "1,2", "--directory", "/proc/x"), 2, "cannot make the directory"),
                                  (("prove", "input.toml", "--ranks", "1,2", "--mpiexec", "/no/such"), 2, "cannot start /no/such")):
        r = launch(0, *arguments)
        that(r.returncode == code and text in r.stderr, "%r: %d %s" % (arguments, r.returncode, r.stderr))
    isohalo(2, "prove", "input.toml", code=2)
    r = launch(0, "prove", "none.toml", "--ranks", "1,2")
    that(r.returncode == 2 and r.stderr == "isohalo: error: cannot read the input file none.toml\n" and not r.stdout, r.stdout + r.stderr)
    # A limit of time ends no run; a signal to us ends all and leaves nothing.
    r = launch(0, "prove", "input.toml", "--ranks", "1,2", "run.steps=60", "run.time_limit_s=0.001")
    that(r.returncode == 0 and "step_00000060.h5" not in r.stdout and "proved" in r.stdout, r.stdout + r.stderr)
    for number in (signal.SIGTERM, signal.SIGINT):
        (WORK / "temporary").mkdir(exist_ok=True)
        with subprocess.Popen([ISOHALO, "prove", "input.toml", "--ranks", "2,1", "run.steps=1000000000"], cwd=WORK, stderr=subprocess.PIPE,
                              text=True, env=dict(os.environ, TMPDIR=str(WORK / "temporary"))) as p:
            time.sleep(1.5)
            p.send_signal(number)
            err = p.communicate(timeout=60)[1]
        that(p.returncode == 3 and "ended by" in err, "prove and signal %d: %d %s" % (number, p.returncode, err))
        that(not list((WORK / "temporary").iterdir()), "prove leaves %r" % list((WORK / "temporary").iterdir()))
        left = subprocess.run(["pgrep", "-f", str(WORK / "temporary")], capture_output=True, text=True).stdout
        that(not left, "prove leaves processes " + left)
    r = subprocess.run([ISOHALO, "prove", "input.toml"], cwd=WORK, capture_output=True, text=True, env=dict(os.environ, TMPDIR="/no/such"))
    that(r.returncode == 2 and "TMPDIR or --directory" in r.stderr, r.stderr)


def main():
    fresh_work_directory(INPUT)
    test_plan()
    isohalo(2, "run", "input.toml", "output.directory=plain")
    for test in (test_verify, test_newer_minor_version, test_numpy, test_help, test_effective_configuration, test_phases, test_signals, test_prove):
        test()
    finish()


if __name__ == "__main__":
    main()
