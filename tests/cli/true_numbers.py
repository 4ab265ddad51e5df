#!/usr/bin/python3
"""What a run says and what it means: sums whose method comes from a checkpoint, the table of phases, rates and times left,
values that are not finite, and whether a solver has converged.

usage: true_numbers.py ISOHALO MPIEXEC WORK_DIRECTORY
"""
import json
import re
import shutil
import subprocess
import time

import h5py
import numpy as np

from harness import ISOHALO, MPIEXEC, WORK, finish, fresh_work_directory, isohalo, that

INPUT = """
[domain]
shape = [37, 53]
boundary.low = ["neumann", {dirichlet = 0.5}]
boundary.high = [{fixed = 1.0}, "neumann"]
[solver]
kind = "poisson"
method = "cg"
[source]
kind = "gaussian"
amplitude = 50.0
[initial]
kind = "random"
seed = 5
[run]
steps = 40
[output]
checkpoint_every = 10
"""
NO_FILES = ("output.checkpoint_every=0", "output.final_checkpoint=false")
FLAT = [x for x in INPUT.splitlines() if not x.startswith("boundary")]
PERIODIC = "\n".join(FLAT).replace('kind = "gaussian"\namplitude = 50.0', 'kind = "sine"\nmodes = [2, 4]')  # mean 0: singular
HEAT = "\n".join(FLAT).replace('kind = "poisson"\nmethod = "cg"\n[source]\nkind = "gaussian"\namplitude = 50.0', 'kind = "heat"')
STENCIL = HEAT.replace('kind = "heat"', 'kind = "stencil"\noffsets = [[0, 0], [0, 1]]\nweights = [1e30, 1e30]')


def run(ranks, input, directory, *more, code=0):
    return isohalo(ranks, "run", input + ".toml", "output.directory=" + directory, *more, code=code)


def same_file(a, b):
    return (WORK / a).read_bytes() == (WORK / b).read_bytes()


def copy_steps(source, directory, *steps):
    (WORK / directory).mkdir()
    for step in steps:
        shutil.copy(WORK / source / ("step_%08d.h5" % step), WORK / directory)


def damage(file):
    """The data and its digest disagree; all else can be read."""
    with h5py.File(WORK / file, "r+") as f:
        f["fields/u"][3, 4] += 1.0


def test_method_of_a_restart():
    """A restart takes over the method of its checkpoint, and all products are formed by it: the straight run's bits."""
    exact = "parallel.reduction=exact"
    for input, more in (("cg", ()), ("cg", ("run.stop_residual=1e-9", "run.steps=1000", "output.checkpoint_every=60")),
                       ("periodic", ("output.checkpoint_every=20",)), ("periodic", ("solver.method=jacobi", "output.checkpoint_every=20")),
                       ("periodic", ("solver.method=chebyshev", "output.checkpoint_every=20")),
                       ("cg", ("solver.method=jacobi", "run.stop_residual=0.2", "run.steps=1000", "output.checkpoint_every=20"))):
        name = "%s_%s" % (input, "_".join(x.split("=")[1] for x in more))
        run(2, input, name, exact, *more)
        files = sorted(p.name for p in (WORK / name).glob("step_*.h5"))
        half = files[0]
        that(len(files) > 1, "%s: checkpoints %r" % (name, files))
        for ranks in (1, 3, 4) if input == "cg" else (3,):
            again = "%s_on_%d" % (name, ranks)
            run(ranks, input, again, "--restart", WORK / name / half, *more)
            that(sorted(p.name for p in (WORK / again).glob("step_*.h5")) == files[1:], "%s on %d ranks stops elsewhere" % (name, ranks))
            that(all((WORK / again / f).exists() and same_file(name + "/" + f, again + "/" + f) for f in files[1:]),
                 "%s, restarted on %d ranks with the method of the checkpoint, has other bits" % (name, ranks))
    # The latest of a directory; an older one because the latest is damaged, whatever its method; none that is any good.
    run(2, "cg", "tree")
    cases = (("auto", ("cg_", 10, 20), None, "cg_"), ("older", ("cg_", 10, 20), "step_00000020.h5", "cg_"),
             ("none", ("cg_", 10), "step_00000010.h5", "tree"))
    for name, copied, broken, reference in cases:
        copy_steps(copied[0], name, *copied[1:])
        if broken:
            damage("%s/%s" % (name, broken))
        r = run(3, "cg", name, "--restart", "auto")
        that(("skipping a checkpoint" in r.stderr) == bool(broken), "%s: %s" % (name, r.stderr))
        that(same_file(name + "/step_00000040.h5", reference + "/step_00000040.h5"), "automatic restart, %s: other bits" % name)
    copy_steps("tree", "mixed", 10)
    copy_steps("cg_", "mixed_newer", 20)
    shutil.move(WORK / "mixed_newer/step_00000020.h5", WORK / "mixed")
    damage("mixed/step_00000020.h5")
    run(4, "cg", "mixed", "--restart", "auto")
    that(same_file("mixed/step_00000040.h5", "tree/step_00000040.h5"), "a fallback past an exact checkpoint has other bits")


def table_of(out):
    return {name: tuple(map(float, row)) for name, *row in re.findall(r"^(\w+) +([0-9.]+) +([0-9.]+) +([0-9.]+)(?:  .*)?$", out, re.M)}


def test_phases():
    for ranks in (1, 2, 3):
        start = time.monotonic()
        r = run(ranks, "heat", "phases_%d" % ranks, "run.steps=3000", "output.checkpoint_every=1000", "output.picture_every=1500")
        wall = time.monotonic() - start
        table = table_of(r.stdout)
        phases = [name for name in table if name != "total"]
        that(list(table)[-3:] == ["progress", "other", "total"] and set(phases) >= {"start", "exchange", "sweep", "checkpoint", "digest"}, "phases %r" % table)
        that(abs(sum(table[p][1] for p in phases) - table["total"][1]) < 0.001 * len(phases), "the phases do not add up: %s" % r.stdout)
        that(0.3 * wall < table["total"][2] + 0.5 and table["total"][2] < wall, "a total of %g s in %g s" % (table["total"][2], wall))
        stored = json.loads((WORK / ("phases_%d" % ranks) / "step_00003000.json").read_text())["phases"]
        that(stored["total"]["avg_s"] <= table["total"][1] + 0.002 and
             stored["checkpoint"]["avg_s"] > 0.7 * table["checkpoint"][1], "the last run metadata lacks the last checkpoint: %r, %r" % (stored, table))


def test_pictures():
    """A picture shows values that are further apart than a number can say."""
    for name, size in (("wide", "1.5e308"), ("narrow", "1.5e8")):
        run(1, "heat", name, "run.steps=0", "initial=", "initial.kind=expression", "initial.expression=%s*(1-2*(x<0.5))" % size, "output.picture_every=1")
    wide, narrow = ((WORK / name / "u_00000000.png").read_bytes() for name in ("wide", "narrow"))
    that(wide == narrow, "a picture of large numbers is that of small ones")


def timed_lines(ranks, input, directory, *more):
    """Progress lines with the seconds until the run's end, and the run's output."""
    command = [MPIEXEC, "-n", str(ranks), ISOHALO, "run", input + ".toml", "output.directory=" + directory, *more]
    with subprocess.Popen(command, cwd=WORK, stdout=subprocess.PIPE, text=True) as p:
        lines = [(time.monotonic(), line) for line in p.stdout]
    end = [t for t, line in lines if line.startswith("rate = ")]
    that(p.returncode == 0 and len(end) == 1, "%r: exit code %d" % (command, p.returncode))
    return [(end[0] - t, line) for t, line in lines if line.startswith("step ")], "".join(line for _, line in lines)


def test_rates():
    """Progress and end mean the same rate; checkpoints do not count, nor do they make the time left wrong."""
    number = lambda pattern, text: float(re.search(pattern, text).group(1))
    for ranks in (1, 2):
        lines, out = timed_lines(ranks, "heat", "rate_%d" % ranks, "run.steps=8000", "output.checkpoint_every=400", "run.residual_every=100",
                                 "domain.shape=[500,500]")
        rate, last = number(r"^rate = ([0-9.]+) M", out.split("exchange = ")[-1].split("\n", 1)[1]), number(r"([0-9.]+) M updates/s", lines[-1][1])
        that(0.8 < last / rate < 1.25, "the last progress says %g, the end %g M updates/s" % (last, rate))
        table = table_of(out)
        stepping = 500 * 500 * 8000 / (rate * 1e6)
        # Of the means: each rank's phases fill the same time, while the longest sweep and the longest wait are of different ranks.
        that(abs(stepping - sum(table[p][1] for p in ("exchange", "sweep", "reduction", "other"))) < 0.3 * stepping + 0.02,
             "a rate of %g: %g s of stepping, %r" % (rate, stepping, table))
        said = [(left, line) for left, line in lines[1:] if "left" in line]  # checkpoints were seen
        that(len(said) > 2, "no time left: " + out)
        left, line = said[0]
        says = number(r"([0-9.]+) s left", line)
        that(0.3 * left - 0.1 < says < 3 * left + 0.1, "%g s left, when it says: %s" % (left, line))
    lines, out = timed_lines(2, "heat", "first", "run.steps=50000", "output.checkpoint_every=0", "run.residual_every=10", "domain.shape=[200,200]")
    left, line = next((left, line) for left, line in lines if "left" in line)
    that(number(r"([0-9.]+) s left", line) < 3 * left + 0.1, "the first line, %g s before the end, says: %s" % (left, line))
    out = run(1, "heat", "one", "run.steps=10", "run.residual_every=1").stdout
    that(re.search(r"^step 1/10 .* M updates/s$", out, re.M), "a time left from the first step alone: " + out)


def test_not_finite():
    for ranks in (1, 3):
        r = run(ranks, "stencil", "explode", "--overwrite", "run.residual_every=100", code=3)
        found = re.search(r"found at step (\d+), first at linear index (\d+), cell \((\d+), (\d+)\): (.*)", r.stderr)
        that(found and int(found[2]) == int(found[3]) * 53 + int(found[4]), "which cell? " + r.stderr)
        that(found and "time step" not in r.stderr and "solver.weights add up to 2e+30" in found[5], "advice: " + r.stderr)
    r = run(2, "cg", "omega", "solver.method=jacobi", "solver.omega=2", "run.steps=200000", "run.residual_every=1000", "output.checkpoint_every=0", code=3)
    that("with solver.omega = 2: use at most 1" in r.stderr, "advice of jacobi: " + r.stderr)
    r = run(2, "cg", "above", "solver.method=chebyshev", "solver.lambda_high=2000", "run.steps=2000", "output.checkpoint_every=0", code=3)
    that("above solver.lambda_high = 2000: leave it out" in r.stderr, "advice of chebyshev: " + r.stderr)
    r = run(2, "periodic", "colours", "domain.shape=[3,3]", "solver.method=red_black", "solver.omega=1.9", "run.steps=20000",
            "run.residual_every=100", "output.checkpoint_every=0", code=3)
    that("two cells of one colour are neighbors" in r.stderr, "advice of red_black: " + r.stderr)
    # Coefficients that are no numbers are errors of the input.
    for input, more, text in (("heat", "domain.length=[1e200,1e200]", "kappa dt / h^2"), ("jacobi", "domain.length=[1e200,1e200]", "the sum of 2/h^2"),
                             ("cg32", "domain.length=[1,1e-25]", "is out of range of float32")):
        r = run(1, input, "coefficient", more, code=2)
        that(text in r.stderr, "%s %s: %s" % (input, more, r.stderr))
    with h5py.File(WORK / "nan.h5", "w") as f:
        data = np.zeros((37, 53))
        data[20, 30] = np.nan
        f["u"] = data
        f["large"] = np.where(np.indices((37, 53)).sum(axis=0) % 2, 1.6e308, -1.6e308)
    r = run(2, "file", "large", 'initial.dataset="large"', code=3)
    that("time step" not in r.stderr and "smaller values in [initial]" in r.stderr and "cell (" in r.stderr, "advice of heat: " + r.stderr)
    r = run(3, "file", "of_file", code=2)
    that("at linear index %d, cell (20, 30)" % (20 * 53 + 30) in r.stderr, r.stderr)
    r = run(2, "life", "states", code=2)
    that("first at linear index 0, cell (0, 0): a cell of life" in r.stderr, r.stderr)


def test_words():
    """Converged or not, against what; time only where there is time; which residual is relative."""
    result = lambda out: out.splitlines()[-5:] if "digest p" in out else out.splitlines()[-3:]
    seen = set()
    for ranks in (1, 2, 4):
        out = run(ranks, "cg", "converged_%d" % ranks, "run.stop_residual=1e-8", "run.steps=1000", "output.checkpoint_every=0").stdout
        found = re.search(r"^converged at step (\d+): \|r\| / \|r of u = 0\| = (\S+) is at most run.stop_residual = 1e-08$", out, re.M)
        that(found and float(found[2]) <= 1e-8, "converged? " + out)
        that("step 10/1000  residual = " in out and " t = " not in out, "a time of a solver without time: " + out)
        that(re.search(r"^step 10/1000  residual = \S+  \|r\| / \|r of u = 0\| = \S+  \S+ M updates/s(  at most \S+ s left)?$", out, re.M), "progress: " + out)
        that("is the root mean square over the cells of r, as the method carries it along: f + laplace(u) but for rounding\n" in out, "which residual? " + out)
        that([x.split(" = ")[0] for x in result(out)] == ["rate", "residual", "digest u", "digest r", "digest p"], "the last lines: " + out)
        seen.add((found and found.groups(), tuple(result(out)[1:])))
    that(len(seen) == 1, "the words depend on the ranks: %r" % seen)
    with h5py.File(WORK / "converged_1/latest.h5") as f:
        norm = np.sqrt(f["reduction"].attrs["change_sum"])
    relative = float(seen.pop()[0][1])
    that(relative > 0 and norm / relative > 1e8 * norm, "|r| = %g, relative to that of u = 0 %g" % (norm, relative))
    for input, more, name in (("cg", (), r"\|r\| / \|r of u = 0\|"), ("cg", ("solver.method=jacobi",), r"\|r\| / \|r of u = 0\|"),
                             ("heat", (), "residual"), ("alive", (), "residual")):
        out = run(3, input, "not", "--overwrite", "run.stop_residual=1e-13", *NO_FILES, *more).stdout
        that(re.search(r"^not converged after 40 steps: %s = \S+ is above run.stop_residual = 1e-13$" % name, out, re.M), "not converged: " + out)
        that(("  t = " in out) == (input == "heat"), "time: " + out)
    out = run(2, "heat", "heat_converged", "run.stop_residual=0.05", "run.steps=1000", "output.checkpoint_every=0").stdout
    step = re.search(r"^converged at step (\d+): residual = ", out, re.M)
    again = run(1, "heat", "heat_converged", "run.stop_residual=0.05", "run.steps=1000", "--restart", "auto").stdout
    that(step and "\nnothing to do: " in again and step[0] in again, "a restart of what has converged: " + again)
    plain = run(2, "heat", "plain", *NO_FILES).stdout
    that("converged" not in plain and "|r|" not in plain, "nothing was to converge: " + plain)
    that(re.search(r"^\|r\| / \|r of u = 0\| = \S+$", run(2, "cg", "unlimited", *NO_FILES).stdout, re.M), "the relative residual without a limit")


def main():
    fresh_work_directory()
    file = HEAT.split("[initial]")[0] + '[initial]\nkind = "file"\nfile = "nan.h5"\ndataset = "u"\n[run]\nsteps = 4\n'
    life = HEAT.replace('kind = "heat"', 'kind = "life"').replace('kind = "random"\nseed = 5', 'kind = "constant"\nvalue = 7')
    alive = life.replace('kind = "constant"\nvalue = 7', 'kind = "random"\nhigh = 1.49')
    for name, text in (("cg", INPUT), ("periodic", PERIODIC), ("heat", HEAT), ("stencil", STENCIL), ("file", file), ("life", life),
                       ("alive", alive), ("jacobi", INPUT.replace('"cg"', '"jacobi"')), ("cg32", INPUT.replace("[domain]", '[domain]\ntype = "float32"'))):
        (WORK / (name + ".toml")).write_text(text)
    for test in (test_method_of_a_restart, test_phases, test_pictures, test_rates, test_not_finite, test_words):
        start = time.monotonic()
        test()
        print("%5.1f s  %s" % (time.monotonic() - start, test.__name__), flush=True)
    finish()


if __name__ == "__main__":
    main()
