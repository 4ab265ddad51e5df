#!/usr/bin/python3
"""Fields on faces as a user meets them: kind = "acoustics" against the exact solution of its differences and the energy that
they keep; files, restarts, pictures and messages that know the faces.

usage: faces.py ISOHALO MPIEXEC WORK_DIRECTORY INPUTS_DIRECTORY
"""
import pathlib
import shutil
import sys

import h5py
import numpy as np

from harness import WORK, finish, fresh_work_directory, isohalo, that

PI, INPUTS = np.pi, pathlib.Path(sys.argv[4]).resolve()

ROOM = """
[domain]
shape = %r
length = %r
boundary.low = [%s]
boundary.high = [%s]
%s
[solver]
kind = "acoustics"
density = 1.3
bulk_modulus = 0.7
%s
[run]
steps = %d
residual_every = 0
"""
NUMBERS = "density = 1.3\nbulk_modulus = 0.7\n"
LAYERS = """dt = 0.02
[solver.density]
kind = "checkerboard"
size = 2
even = 0.5
odd = 1.5
[solver.bulk_modulus]
kind = "linear"
value = 0.6
gradient = [0.0, 1.0, 0.0]
"""


def at_rest(d, p):
    return '[initial.p]\nkind = "expression"\nexpression = "%s"\n' % p + "".join('[initial.v%d]\nkind = "constant"\n' % j for j in range(d))


def run(ranks, text, *more, code=0):
    (WORK / "faces.toml").write_text(text)
    ran = isohalo(ranks, "run", "faces.toml", "output.directory=faces", *more, *([] if "--restart" in more else ["--overwrite"]), code=code)
    if code:
        return ran
    with h5py.File(WORK / "faces/latest.h5") as f:
        return f["time"].attrs["dt"], {name: data[...] for name, data in f["fields"].items()}


def test_standing_wave():
    """Walls in dimension 0, open ends in dimension 1: p_n = cos((2 n + 1) a) / cos(a) p_0, exactly but for rounding."""
    shape, length, modes, steps = [17, 24], [1.0, 1.5], (2, 3), 120
    text = ROOM % (shape, length, '"neumann", {dirichlet = 0}', '"neumann", {dirichlet = 0}',
                   'boundary.v1.low = ["neumann", "neumann"]\nboundary.v1.high = ["neumann", "neumann"]',
                   at_rest(2, "cos(%d*pi*y)*sin(%d*pi*x/1.5)" % modes), steps)
    for ranks, more in ((1, ()), (3, ("parallel.halo_depth=3",))):
        dt, fields = run(ranks, text, "solver.cfl=0.7", *more)
        square = sum((np.sin(PI * m / (2 * n)) / (l / n))**2 for m, n, l in zip(modes, shape, length))
        a = np.arcsin(dt * np.sqrt(0.7 / 1.3 * square))
        y, x = [(np.arange(n) + 0.5) / n for n in shape]
        exact = np.cos((2 * steps + 1) * a) / np.cos(a) * np.outer(np.cos(modes[0] * PI * y), np.sin(modes[1] * PI * x))
        that(np.abs(fields["p"] - exact).max() < 1e-12, "standing wave: off by %g" % np.abs(fields["p"] - exact).max())
        that(fields["v0"].shape == (18, 24) and fields["v1"].shape == (17, 25), "shapes of velocities")
        that(not fields["v0"][[0, -1]].any() and fields["v0"][1:-1].any(), "velocities in walls")


def test_energy():
    """Random fields between walls that stand still, open ends, and round a periodic dimension, with a restart."""
    text = ROOM % ([7, 9, 12], [1.0, 1.0, 2.0], '"neumann", {dirichlet = 0}, "periodic"', '"neumann", {dirichlet = 0}, "periodic"',
                   'boundary.v0.low = [{fixed = 0}, "neumann", "periodic"]\nboundary.v0.high = [{dirichlet = 0}, "neumann", "periodic"]\n'
                   'boundary.v1.low = ["neumann", "neumann", "periodic"]\nboundary.v1.high = ["neumann", "neumann", "periodic"]',
                   "".join('[initial.%s]\nkind = "random"\nseed = %d\nlow = -1\n' % (f, k) for k, f in enumerate(("p", "v0", "v1", "v2"))), 1)
    y = (np.arange(9) + 0.5) / 9
    for numbers, density, modulus in (("", 1.3, 0.7), (LAYERS, 0.5 + (np.indices((7, 9, 12)) // 2).sum(axis=0) % 2, (0.6 + y).reshape(1, 9, 1))):
        told = text.replace(NUMBERS, numbers or NUMBERS)
        states = [run(ranks, told, "run.steps=%d" % n, *(["--restart", "auto"] if n > 1 else []))[1] for n, ranks in ((1, 2), (2, 1), (300, 3), (301, 2))]
        begin, end = energy(density, modulus, *states[:2]), energy(density, modulus, *states[2:])
        that(abs(begin - end) < 1e-11 * begin, "energy %r became %r" % (begin, end))
        that(np.abs(states[2]["p"] - states[0]["p"]).max() > 0.1, "nothing has moved")


def test_source():
    """A source that depends on the time, for p = cos(k x) sin(3 t): the scheme is of second order."""
    k, errors = PI / 1.5, []
    source = "3*cos(%r*x)*cos(3*t) + 0.7/1.3*%r*cos(%r*x)*(1 - cos(3*t))/3" % (k, k * k, k)
    for n in (32, 64):
        text = ROOM % ([3, n], [1.0, 1.5], '"periodic", "neumann"', '"periodic", "neumann"', '', at_rest(2, "0"), n)
        _, fields = run(2, text, "solver.dt=%r" % (1 / n), "source.kind=expression", "source.expression=" + source, "parallel.halo_depth=%d" % (n // 32))
        x = (np.arange(n) + 0.5) * 1.5 / n
        errors.append(np.abs(fields["p"][1] - np.cos(k * x) * np.sin(3)).max())
    that(errors[1] < 1e-3 and 3.8 < errors[0] / errors[1] < 4.2, "errors of a source: %r" % errors)


def test_obstacle():
    """Nothing moves through its walls: a box that is one keeps what is in it."""
    box = ["solver.mask.kind=box", "solver.mask.low=[0.2,0.2]", "solver.mask.high=[0.8,0.8]", "solver.mask.inside=0", "solver.mask.outside=1"]
    text = ROOM % ([20, 30], [1.0, 1.0], '"periodic", "neumann"', '"periodic", "neumann"', "", at_rest(2, "x*x*y"), 50)
    for rule in "keep", "mirror":
        _, end = run(3, text, *box, "solver.mask.rule=" + rule)
        y, x = [(np.arange(n) + 0.5) / n for n in (20, 30)]
        begin, inside = x * x * y[:, None], np.ix_((y > 0.2) & (y < 0.8), (x > 0.2) & (x < 0.8))
        same = np.abs(end["p"] - begin) < 1e-13
        that(same.sum() == 20 * 30 - 12 * 18 and not same[inside].any(), "%s: %d cells are as they were" % (rule, same.sum()))
        drift = abs(end["p"][inside].sum() - begin[inside].sum())
        that((drift < 1e-12) == (rule == "mirror"), "%s: what the box holds has changed by %g" % (rule, drift))


def energy(density, modulus, now, after):
    """Of p after a step and the velocities before and after it; half of it in the open ends of dimension 1."""
    rho = np.broadcast_to(density, now["p"].shape)
    means = lambda j, mode: 0.5 * (np.delete(q := np.pad(rho, [(int(k == j),) * 2 for k in range(3)], mode=mode), -1, j) + np.delete(q, 0, j))
    w = np.ones((1, 10, 1))
    w[:, [0, -1]] = 0.5
    weights = [means(0, "edge"), w * means(1, "edge"), np.delete(means(2, "wrap"), -1, 2)]
    return (now["p"]**2 / modulus).sum() / 2 + sum((m * now["v%d" % j] * after["v%d" % j]).sum() for j, m in enumerate(weights)) / 2


def test_given_velocities():
    """The membrane of the shipped input moves as it is told; files, pictures and reports know the faces."""
    few = ["domain.shape=[30,40]", "run.steps=60", "output.checkpoint_every=30", "output.picture_every=30", "output.picture_field=v1",
           "output.digest_every=20", "output.directory=room"]
    isohalo(4, "run", INPUTS / "acoustics2d.toml", *few)
    with h5py.File(WORK / "room/latest.h5") as f:
        v1, t = f["fields/v1"][...], (60 - 1) * f["time"].attrs["dt"]
        that(list(f.attrs["format_version"]) == [1, 1] and f["fields/v1"].attrs["face"] == 1 and "face" not in f["fields/p"].attrs, "version and face")
    y = (np.arange(30) + 0.5) * 0.1
    that(np.allclose(v1[:, 0], np.where((y > 1.2) & (y < 1.8), np.sin(6000 * t), 0), rtol=0, atol=1e-13) and v1[13, 0] != 0, "the membrane")
    isohalo(3, "verify", "room/latest.h5")
    info = isohalo(1, "info", "room/latest.h5").stdout
    that("v1: float64 30 x 41 on faces of dimension 1, state" in info and "isohalo 1.1" in info, "info: " + info)
    names = {}
    exec(isohalo(1, "info", "--numpy", "room/latest.h5").stdout, names)
    that(np.array_equal(names["fields"]["v1"], v1), "the lines for NumPy")
    xmf = (WORK / "room/step_00000060.xmf").read_text()
    that(xmf.count("<Grid ") == 3 and 'Dimensions="30 41"' in xmf and "0 -0.05" in xmf, "xmf: " + xmf)
    that((WORK / "room/v1_00000030.png").stat().st_size > 100, "the picture")
    ran = isohalo(2, "compare", "room/step_00000030.h5", "room/step_00000060.h5", code=1)
    that("v1" in ran.stdout, "compare: " + ran.stdout)
    isohalo(1, "prove", INPUTS / "acoustics2d.toml", *few[:4], "--ranks", "1,3")


def test_large_files():
    """Beyond 4 MiB all ranks write together: the same bytes, and they are read as they were written."""
    text = ROOM % ([450, 431], [1.0, 1.0], '"neumann", "periodic"', '"neumann", "periodic"', "", at_rest(2, "sin(3*x)*y"), 4)
    files = {}
    for ranks, more in ((1, []), (4, ["parallel.process_grid=[2,2]"]), (3, ["--restart", "faces/step_00000002.h5"])):
        run(ranks, text, "output.checkpoint_every=2", *more)
        files[ranks] = (WORK / "faces/step_00000004.h5").read_bytes()
        that(files[ranks] == files[1] and len(files[ranks]) > 4 << 20, "a large file on %d ranks" % ranks)
    isohalo(3, "verify", "faces/latest.h5")


def damaged(name, change):
    shutil.copy(WORK / "room/step_00000030.h5", WORK / name)
    with h5py.File(WORK / name, "r+", libver="v108") as f:
        change(f)
    return name


def test_damage():
    def face(value):
        return lambda f: f["fields/v1"].attrs.modify("face", np.int64(value))

    def move(f):
        del f["fields/v1"].attrs["face"]

    that("another shape than the grid's faces" in isohalo(1, "verify", damaged("other.h5", face(0)), code=2).stderr, "v1 on faces of dimension 0")
    that("faces of dimension 5, the grid has 2" in isohalo(1, "verify", damaged("none.h5", face(5)), code=2).stderr, "v1 on faces that are none")
    that("another shape than the grid" in isohalo(1, "info", damaged("cells.h5", move), code=2).stderr, "v1 in cells")
    old = damaged("old.h5", lambda f: f.attrs.modify("format_version", np.array([1, 0], dtype=np.int64)))
    that("another shape than the grid" in isohalo(1, "info", old, code=2).stderr, "faces in a file of version 1.0")
    text = ROOM % ([6, 8], [1.0, 1.0], '"periodic", "periodic"', '"periodic", "periodic"', "", at_rest(2, "x"), 3)
    run(2, text)
    shutil.copy(WORK / "faces/latest.h5", WORK / "room/step_00000030.h5")
    ran = isohalo(1, "verify", damaged("mixed.h5", lambda f: [f["fields"][v].attrs.__delitem__("face") for v in ("v0", "v1")]), code=1)
    that("no field lies on faces" in ran.stdout, "verify: " + ran.stdout)
    ran = run(1, text, "--restart", WORK / "mixed.h5", "run.steps=5", code=2)
    that('field "v0" lies on other faces, or in cells, than this run' in ran.stderr, "restart: " + ran.stderr)
    ran = isohalo(1, "compare", "mixed.h5", "faces/latest.h5", code=1)
    that("field v0 face: -1 against 0" in ran.stdout, "compare: " + ran.stdout)


def test_refusals():
    walls = ROOM % ([6, 8], [1.0, 1.0], '"neumann", "neumann"', '"neumann", "neumann"', "", at_rest(2, "x"), 3)
    with h5py.File(WORK / "v.h5", "w") as f:
        f["cells"], f["faces"], f["nan"] = np.ones((6, 8)), np.ones((7, 8)), np.where(np.arange(56) == 50, np.nan, 1).reshape(7, 8)
    v0 = ["initial.v0.kind=file", "initial.v0.file=v.h5"]
    run(2, walls, *v0, "initial.v0.dataset=faces")
    for words, more in ((["has shape 6 x 8, the faces of dimension 0 are 7 x 8"], v0 + ["initial.v0.dataset=cells"]),
                        (['the initial field "v0" is NaN or infinite at linear index 50, face of dimension 0 (6, 2)'], v0 + ["initial.v0.dataset=nan"]),
                        (["dt = 1 is above the stability limit"], ["solver.dt=1"]), (["solver.density"], ["solver.density=0"]),
                        (["with these parameters no step is too long"], ["solver.density=1e300", "solver.bulk_modulus=1e-300"]),
                        (["fields on faces have no sources"], ["source.v0.kind=constant"]),
                        (["domain.boundary.v2"], ['domain.boundary.v2.low=["neumann","neumann"]']),
                        (["domain.boundary.v1.high", "dimension 1 have no such rule"], ['domain.boundary.v1.high=["neumann",{neumann=1}]']),
                        (["domain.boundary.v0.low", "dimension 0 have no such rule"], ['domain.boundary.low=[{robin={a=1,b=1,value=0}},"neumann"]'])):
        ran = run(2, walls, *more, code=2)
        that(all(w in ran.stderr for w in words), "%r: %s" % (more, ran.stderr))
    table = walls.replace("density = 1.3\n", "").replace("[initial.p]", '[solver.density]\nkind = "constant"\nvalue = 1.3\n[initial.p]')
    for words, more in ((["required key solver.dt is missing"], []), (["is above the stability limit", "c = sqrt(bulk_modulus / density)"], ["solver.dt=0.3"]),
                        (['coefficient "density" has values from -1 to -1', "above 0"], ["solver.dt=0.01", "solver.density.value=-1"])):
        for validate in [], ["--validate"]:
            ran = run(2, table, *more, *validate, code=2)
            that(all(w in ran.stderr for w in words), "%r: %s" % (more, ran.stderr))
    same = [run(2, text, "solver.dt=0.05")[1] for text in (walls, table)]
    that(all(np.array_equal(same[0][f], same[1][f]) for f in same[0]), "a density that is the same in all cells is not the number")


def main():
    fresh_work_directory()
    test_standing_wave()
    test_energy()
    test_source()
    test_obstacle()
    test_given_velocities()
    test_large_files()
    test_damage()
    test_refusals()
    finish()


if __name__ == "__main__":
    main()
