#!/usr/bin/python3
"""Solvers in time against exact solutions and invariants: orders of accuracy, what is conserved, what keeps its value, what
an absorbing layer takes up.

usage: exact.py ISOHALO MPIEXEC WORK_DIRECTORY INPUTS_DIRECTORY
"""
import pathlib
import sys

import h5py
import numpy as np

from harness import WORK, finish, fresh_work_directory, isohalo, that

PI, INPUTS = np.pi, pathlib.Path(sys.argv[4])


def result(ranks, name, text, *more):
    """Time and fields of the last checkpoint."""
    (WORK / (name + ".toml")).write_text(text)
    isohalo(ranks, "run", name + ".toml", "--overwrite", "output.directory=" + name, *more)
    with h5py.File(WORK / name / "latest.h5") as f:
        return f["time"].attrs["time"], f["fields/u"][...]


def centres(shape):
    return np.meshgrid(*[(np.arange(n) + 0.5) / n for n in shape], indexing="ij")


def order(errors, sizes):
    return [np.log(a / b) / np.log(n / m) for a, b, m, n in zip(errors, errors[1:], sizes, sizes[1:])]


def periodic(shape, solver, modes, steps):
    return """
[domain]
shape = %r
[solver]
%s
[initial]
kind = "sine"
modes = %r
[run]
steps = %d
""" % (shape, solver, modes, steps)


def test_wave_is_of_second_order():
    for modes, sizes, ranks in (([4], (40, 80, 160), 1), ([2, 4], (24, 48, 96), 3)):
        errors = []
        for n in sizes:
            t, u = result(ranks, "wave", periodic([n] * len(modes), 'kind = "wave"\nc = 1.5\ncfl = 0.5', modes, 5 * n // 8))
            exact = np.cos(1.5 * PI * np.sqrt(sum(m * m for m in modes)) * t)
            for m, x in zip(modes, centres([n] * len(modes))):
                exact = exact * np.sin(PI * m * x)
            errors.append(np.abs(u - exact).max())
        that(all(1.9 < o < 2.3 for o in order(errors, sizes)), "wave: errors %r, orders %r" % (errors, order(errors, sizes)))


def test_layers_take_waves_up():
    text = (INPUTS / "wave2d.toml").read_text()
    few = ["output.picture_every=0", "output.checkpoint_every=0", "domain.shape=[80,120]", "run.steps=500"]
    left = [np.abs(result(2, "layer", text, "solver.damping=%g" % damping, *few)[1]).max() for damping in (20, 0)]
    that(left[0] < 0.1 * left[1], "what is left with and without absorbing layers: %r" % left)


def test_advection():
    for method, low, high in (("upwind", 0.8, 1.2), ("upwind3", 2.8, 3.2)):
        errors, sizes = [], (60, 120)
        for n in sizes:
            solver = 'kind = "advection"\nmethod = "%s"\nv0 = -0.7\nv1 = 0.4\ncfl = 0.5' % method
            t, u = result(2, "advection", periodic([n, n + 1], solver, [2, 2], n // 4))
            y, x = centres([n, n + 1])
            errors.append(np.abs(u - np.sin(2 * PI * (y + 0.7 * t)) * np.sin(2 * PI * (x - 0.4 * t))).max())
        that(all(low < o < high for o in order(errors, sizes)), "%s: errors %r, orders %r" % (method, errors, order(errors, sizes)))
        noise = ["initial.kind=random", "initial.modes="]
        _, u = result(1, "mass", periodic([40, 30], solver, [2, 2], 40), *noise)
        _, begin = result(1, "mass", periodic([40, 30], solver, [2, 2], 1), *noise)
        that(abs(u.sum() - begin.sum()) < 1e-10 * begin.size, "%s loses %g" % (method, u.sum() - begin.sum()))


HEAT = """
[domain]
shape = %r
boundary.low = [%s]
boundary.high = [%s]
[solver]
kind = "heat"
[solver.kappa]
%s
%s
[initial]
kind = "random"
[run]
steps = %d
residual_every = 0
"""


def test_heat_in_a_field():
    errors, sizes = [], (10, 20)
    for n in sizes:  # kappa = 1 + x, at rest: u = log(1 + x) / log(2)
        kappa = 'kind = "linear"\nvalue = 1.0\ngradient = [1.0]'
        _, u = result(1, "rest", HEAT % ([n], "{dirichlet = 0}", "{dirichlet = 1}", kappa, "", 12 * n * n))
        errors.append(np.abs(u - np.log(1 + centres([n])[0]) / np.log(2)).max())
    that(all(1.8 < o < 2.2 for o in order(errors, sizes)), "heat: errors %r, orders %r" % (errors, order(errors, sizes)))
    closed = ', '.join(['"neumann"'] * 2)
    kappa = 'kind = "checkerboard"\nsize = 3\neven = 0.1\nodd = 2.0'
    mask = '[solver.mask]\nkind = "box"\nlow = [0.3, 0.3]\nhigh = [0.5, 0.6]'
    _, u = result(2, "closed", HEAT % ([21, 33], closed, closed, kappa, "", 200))
    _, begin = result(1, "closed", HEAT % ([21, 33], closed, closed, kappa, "", 1))
    that(abs(u.sum() - begin.sum()) < 1e-10, "a closed box loses %g" % (u.sum() - begin.sum()))
    _, u = result(3, "masked", HEAT % ([21, 33], closed, closed, kappa, mask, 200))
    _, begin = result(1, "masked", HEAT % ([21, 33], closed, closed, kappa, mask, 1))
    y, x = centres([21, 33])
    masked = (0.3 <= y) & (y < 0.5) & (0.3 <= x) & (x < 0.6)
    that((u[masked] == begin[masked]).all(), "masked cells have changed")
    that((u[~masked] != begin[~masked]).all(), "cells that are not masked have not changed")
    # Walls that mirror, 3 of 21 rows: no heat goes in, or through, whatever they hold.
    walls = '[solver.mask]\nrule = "mirror"\nkind = "expression"\nexpression = "(y > 0.4)*(y < 0.53) + (x < 0.3)*(x > 0.2)*(y < 0.4)"'
    _, u = result(3, "walls", HEAT % ([21, 33], closed, closed, kappa, walls, 200))
    _, begin = result(1, "walls", HEAT % ([21, 33], closed, closed, kappa, walls, 1))
    rooms = [y > 0.53, (y < 0.4) & (x < 0.2), (y < 0.4) & (x > 0.3)]
    for room in rooms:
        that(abs(u[room].sum() - begin[room].sum()) < 1e-11, "a room between walls loses %g" % (u[room].sum() - begin[room].sum()))
        that((u[room] != begin[room]).all(), "cells of a room have not changed")
    wall = ~(rooms[0] | rooms[1] | rooms[2])
    that((u[wall] == begin[wall]).all(), "cells of walls have changed")


def test_sources_in_time():
    """u = sin(pi x) sin(pi y) (1 + t^2), by the source that makes it so; with a step of h^2 heat is of second order, and so
    are waves with one of h and advection by three stages, in time."""
    shape = "sin(%s*x)*sin(%s*y)"
    for kind, f, wave, steps, sides in (
            ("heat", "%s*(2*t + 2*pi^2*(1+t^2))" % shape, "pi", lambda n: n * n // 2, "{dirichlet = 0}"),
            ("wave", "%s*(2 + 2*pi^2*(1+t^2))" % shape, "pi", lambda n: n, "{dirichlet = 0}"),
            ("advection", "2*t*%s + 0.5*(1+t^2)*2*pi*(cos(2*pi*x)*sin(2*pi*y) + sin(2*pi*x)*cos(2*pi*y))" % shape, "2*pi",
             lambda n: n, '"periodic"')):
        errors, sizes = [], (12, 24)
        for n in sizes:
            k = 1 if wave == "pi" else 2
            velocity = "v0 = 0.5\nv1 = 0.5" if kind == "advection" else ""
            text = periodic([n, n], 'kind = "%s"\ndt = %r\n%s' % (kind, 0.5 / steps(n) * (0.2 if kind == "heat" else 1), velocity), [k, k], steps(n))
            text += '[source]\nkind = "expression"\nexpression = "%s"\n' % (f % (wave, wave))
            text = text.replace("[solver]", "boundary.low = [%s, %s]\nboundary.high = [%s, %s]\n[solver]" % ((sides,) * 4))
            t, u = result(3, "source", text)
            y, x = centres([n, n])
            errors.append(np.abs(u - np.sin(k * PI * x) * np.sin(k * PI * y) * (1 + t * t)).max())
        that(all(1.8 < o < 3.3 for o in order(errors, sizes)), "%s with a source: errors %r, orders %r" % (kind, errors, order(errors, sizes)))


def test_gray_scott():
    """What reacts goes from u to v: without feeding their sum stays, it goes by what v loses; u = 1, v = 0 is at rest; a
    uniform u alone is fed by 1 - u = (1 - u0) (1 - F dt)^n."""
    def run(ranks, steps, *more):
        text = """
[domain]
shape = [20, 31]
length = [20.0, 31.0]
[solver]
kind = "gray_scott"
dt = 0.25
[initial.u]
kind = "random"
[initial.v]
kind = "random"
seed = 2
[run]
steps = %d
""" % steps
        (WORK / "gray_scott.toml").write_text(text)
        isohalo(ranks, "run", "gray_scott.toml", "--overwrite", "output.directory=gray_scott", *more)
        with h5py.File(WORK / "gray_scott" / "latest.h5") as f:
            return f["fields/u"][...], f["fields/v"][...]

    rates = ["solver.F=0", "solver.k=0", "solver.Du=0.2", "solver.Dv=0.1"]
    totals = [sum(x.sum() for x in run(ranks, steps, *rates)) for ranks, steps in ((1, 1), (2, 100))]
    that(abs(totals[1] - totals[0]) < 1e-10 * totals[0], "u + v changes from %r to %r" % tuple(totals))
    rates[1] = "solver.k=0.3"
    (u, v), (u1, v1) = run(1, 10, *rates), run(3, 11, *rates)
    lost = (u + v - u1 - v1).sum()
    that(abs(lost - 0.25 * 0.3 * v.sum()) < 1e-10 and lost > 1e-3, "u + v loses %g, v alone %g" % (lost, 0.25 * 0.3 * v.sum()))
    uniform = ["initial.u.kind=constant", "initial.v.kind=constant", "initial.v.seed=", "initial.v.value=0"]
    u, v = run(3, 50, *uniform, "initial.u.value=1")
    that((u == 1).all() and (v == 0).all(), "u = 1, v = 0 does not stay")
    u, v = run(2, 50, *uniform, "initial.u.value=0.25", "solver.F=0.1")
    that(np.abs(1 - u - 0.75 * (1 - 0.1 * 0.25) ** 50).max() < 1e-14 and (v == 0).all(), "u alone is fed otherwise: %r" % u[0, 0])


def test_stencil():
    """A weight of one at one offset moves the field, bit by bit; weights that add up to one keep its sum."""
    text = periodic([17, 23], 'kind = "stencil"\noffsets = %s\nweights = %s', [1, 1], 1)
    moves = text % ([[2, -1]], [1.0])
    _, once = result(1, "moved", moves)
    y, x = centres([17, 23])
    that(np.abs(once - np.roll(np.sin(PI * y) * np.sin(PI * x), (-2, 1), (0, 1))).max() < 1e-14, "a step does not move the field by (2, -1)")
    for ranks, more in ((1, 5), (3, 40)):
        _, u = result(ranks, "moved", moves, "run.steps=%d" % (1 + more))
        that((u == np.roll(once, (-2 * more, more), (0, 1))).all() and (u != once).any(), "%d steps do not move the field so far" % more)
    mixes = text % ([[-1, 0], [0, 3], [0, 0], [2, 2]], [0.25, 0.125, 0.5, 0.125])
    noise = ["initial.kind=random", "initial.modes="]
    (_, u), (_, u1) = result(1, "mixed", mixes, *noise), result(2, "mixed", mixes, "run.steps=60", *noise)
    that(abs(u.sum() - u1.sum()) < 1e-11 * u.size and np.ptp(u1) < 0.7 * np.ptp(u), "the sum goes from %r to %r" % (u.sum(), u1.sum()))


def test_life():
    """A glider is one cell further in both directions after four steps, a blinker is itself after two, a block stays."""
    cells = np.zeros((20, 30), np.uint8)
    cells[1:4, 1:4] = [[0, 1, 0], [0, 0, 1], [1, 1, 1]]
    with h5py.File(WORK / "life.h5", "w") as f:
        f["glider"] = cells
        still = np.zeros_like(cells)
        still[5:7, 19:21] = 1  # block
        f["still"] = still
        blinker = still.copy()
        blinker[14, 3:6] = 1
        f["blinker"] = blinker
    text = periodic([20, 30], 'kind = "life"', [1, 1], 1).replace('kind = "sine"\nmodes = [1, 1]', 'kind = "file"\nfile = "life.h5"')

    def after(ranks, name, steps):
        return result(ranks, "life", text, "initial.dataset=" + name, "run.steps=%d" % steps)[1]

    for ranks, steps in ((1, 4), (2, 80), (3, 240)):  # over the borders of ranks and of the grid
        that((after(ranks, "glider", steps) == np.roll(cells, (steps // 4, steps // 4), (0, 1))).all(), "the glider is elsewhere after %d steps" % steps)
    that((after(2, "still", 7) == still).all(), "a block changes")
    turned = still.copy()
    turned[13:16, 4] = 1
    that((after(2, "blinker", 9) == turned).all() and (after(3, "blinker", 10) == blinker).all(), "a blinker does not blink")


def test_refusals():
    """Named before any memory is taken; what the values of sources tell, before the first step."""
    h5 = WORK / "kappa.h5"
    with h5py.File(h5, "w") as f:
        f["good"], f["negative"], f["other"] = np.full((21, 33), 2.0), np.full((21, 33), 2.0), np.ones((21, 32))
        f["negative"][20, 31] = -1.0
        f["nan"] = np.where(np.arange(21 * 33) == 20 * 33 + 4, np.nan, 2.0).reshape(21, 33)
        f["half"] = np.full((21, 33), 1.0)
    closed = ', '.join(['"neumann"'] * 2)

    def refused(words, *overrides, ranks=2, restart=False):
        kappa = 'kind = "file"\nfile = "kappa.h5"\ndataset = "good"'
        (WORK / "refused.toml").write_text(HEAT % ([21, 33], closed, closed, kappa, "", 5))
        new = [] if restart else ["--overwrite"]
        ran = isohalo(ranks, "run", "refused.toml", *new, "output.directory=refused", *overrides, code=2 if words else 0)
        for word in words:
            that(word in ran.stderr, "%r: %r is not in %s" % (overrides, word, ran.stderr))

    refused([], "solver.dt=1e-4")
    refused(["solver.dt", "come from a file or an expression"])
    refused(["solver.dt = 0.001 is above the stability limit", "heat"], "solver.dt=1e-3")
    negative = ["coefficient \"kappa\"", "from -1 to 2", "at least 0"]
    for ranks in 1, 2, 3:
        refused(negative, "solver.dt=1e-4", "solver.kappa.dataset=negative", ranks=ranks)
        refused(negative, "solver.dt=1e-4", "solver.kappa.dataset=negative", "--validate", ranks=ranks)
        for validate in [], ["--validate"]:
            refused(['the coefficient "kappa" is NaN or infinite at', "(20, 4)"], "solver.dt=1e-4", "solver.kappa.dataset=nan", *validate, ranks=ranks)
    refused(["above the stability limit"], "solver.dt=1e-3", "--validate")
    refused([], "solver.dt=1e-4", "--validate")
    begun = ["solver.dt=1e-4", "output.directory=begun", "run.steps=3"]
    refused([], *begun)
    refused(["solver.kappa.data"], *begun[:2], "--restart", "begun/latest.h5", "solver.kappa.dataset=half", restart=True)
    refused(["other", "21 x 33"], "solver.dt=1e-4", "solver.kappa.dataset=other")
    # The limit of a wave depends on c, not on the damping, which is said once.
    wave = ["run", "/dev/null", "domain.shape=[12,9]", "solver.kind=wave", "solver.cfl=0.5", "initial.kind=sine", "run.steps=2",
            "output.directory=waves", "--overwrite", *('domain.boundary.%s=["neumann","neumann"]' % side for side in ("low", "high"))]
    isohalo(2, *wave, "solver.sigma.kind=expression", "solver.sigma.expression=x+y")
    layer = ["solver.layer=0.2", "solver.damping=5"]
    digests = [isohalo(2, *wave, *more).stdout.splitlines()[-2:] for more in (layer, layer + ["solver.sigma=0"], [])]
    that(digests[0] == digests[1] != digests[2], "a damping of 0 is that of the layer: %r" % digests)
    for words, more in (("come from a file or an expression", ["solver.c.kind=expression", "solver.c.expression=1+x"]),
                        ("leave out one or the other", ["solver.layer=0.2", "solver.damping=5", "solver.sigma=0.1"])):
        ran = isohalo(2, *wave, *more, code=2)
        that(words in ran.stderr, "%r: %s" % (more, ran.stderr))
    refused(["solver.kappa.kind"], "solver.dt=1e-4", "solver.kappa.kind=boxx")
    refused(["solver.kappa.vale"], "solver.dt=1e-4", "solver.kappa.vale=1")
    refused(["solver.kapa"], "solver.dt=1e-4", "solver.kapa=1")
    refused(["solver.mask.rule = \"miror\" is not one of", "did you mean mirror?"], "solver.dt=1e-4", "solver.mask.kind=box", "solver.mask.rule=miror")
    refused(["solver.mask.kind"], "solver.dt=1e-4", "solver.mask.rule=mirror")
    refused(["the coefficient \"mask\" is NaN or infinite at"], "solver.dt=1e-4", "solver.mask.kind=expression", "solver.mask.expression=log(x-0.5)",
            "--validate")
    refused(["source.expression", "column 5", "unknown name z"], "solver.dt=1e-4", "source.kind=expression", "source.expression=sin(z)")
    refused(["the source \"u\" is NaN or infinite at"], "solver.dt=1e-4", "source.kind=expression", "source.expression=1/t")
    refused(['source.u: tables by field are for solvers of several fields, and "heat" has one: leave "u." out'], "solver.dt=1e-4", "source.u.kind=constant")


def main():
    fresh_work_directory()
    test_wave_is_of_second_order()
    test_layers_take_waves_up()
    test_advection()
    test_heat_in_a_field()
    test_sources_in_time()
    test_gray_scott()
    test_stencil()
    test_life()
    test_refusals()
    finish()


if __name__ == "__main__":
    main()
