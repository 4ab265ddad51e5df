#!/usr/bin/python3
"""Boundary rules with values of place and time: solutions that are known, to second order, and what an input may not say.

usage: boundaries.py ISOHALO MPIEXEC WORK_DIRECTORY
"""
import re

import h5py
import numpy as np

from harness import WORK, finish, fresh_work_directory, isohalo, launch, that

# u(y, x, t) = sin(x + 2 y) exp(-5 t) solves the heat equation with kappa = 1. Gradients point out of the grid.
HEAT = """
[domain]
shape = [%d, %d]
origin = [0.25, -0.5]
boundary.low = [{dirichlet = "sin(x + 2*y)*exp(-5*t)"}, {neumann = "-cos(x + 2*y)*exp(-5*t)"}]
boundary.high = [{robin = {a = 3, b = 0.5, value = "(3*sin(x + 2*y) + 0.5*2*cos(x + 2*y))*exp(-5*t)"}}, {fixed = "sin(x + 2*y)*exp(-5*t)"}]
[solver]
kind = "heat"
dt = %r
[initial]
kind = "expression"
expression = "sin(x + 2*y)"
[run]
steps = %d
"""
# u(y, x) = exp(x) cos(y) has no laplacian.
POISSON = """
[domain]
shape = [%d, %d]
length = [1.0, 1.5]
boundary.low = [{neumann = "0*x"}, {dirichlet = "cos(y)"}]
boundary.high = [{robin = {a = 1, b = 2, value = "exp(x)*(cos(y) - 2*sin(y))"}}, {neumann = "exp(1.5)*cos(y)"}]
[solver]
kind = "poisson"
method = "cg"
[initial]
kind = "constant"
[run]
steps = 5000
stop_residual = 1e-12
"""
# u = x - x^2 and a constant, with f = 2.
SLOPES = """
[domain]
shape = [7, 12]
boundary.low = ["neumann", {neumann = -1}]
boundary.high = [{neumann = 0}, {neumann = "-1"}]
[solver]
kind = "poisson"
method = "cg"
[source]
kind = "constant"
value = 2
[initial]
kind = "random"
[run]
steps = 300
stop_residual = 1e-13
"""


def write(name, text):
    (WORK / name).write_text(text)
    return name


def solution(ranks, input, *more):
    isohalo(ranks, "run", write("input.toml", input), "output.directory=out", "--overwrite", *more)
    with h5py.File(WORK / "out/latest.h5") as f:
        u, g = f["fields/u"][...], f["grid"].attrs
        centres = [g["origin"][j] + (np.arange(n) + 0.5) * g["spacing"][j] for j, n in enumerate(u.shape)]
        return u, np.meshgrid(*centres, indexing="ij"), f["time"].attrs["time"]


def orders(errors):
    return [np.log2(a / b) for a, b in zip(errors[:-1], errors[1:])]


def test_known_solutions():
    errors = []
    for k, n in enumerate((16, 32, 64)):
        steps = 32 * 4**k
        u, (y, x), t = solution(3 - k, HEAT % (n, n, 0.02 / steps, steps))
        errors.append(np.abs(u - np.sin(x + 2 * y) * np.exp(-5 * t)).max())
    that(all(1.8 < o < 2.3 for o in orders(errors)), "heat: errors %r, orders %r" % (errors, orders(errors)))
    errors = []
    for k, n in enumerate((8, 16, 32)):
        u, (y, x), _ = solution(1 + k, POISSON % (n, n))
        errors.append(np.abs(u - np.exp(x) * np.cos(y)).max())
    that(all(1.8 < o < 2.3 for o in orders(errors)), "poisson: errors %r, orders %r" % (errors, orders(errors)))
    v, _, _ = solution(2, POISSON % (8, 8), "solver.method=jacobi", "run.steps=20000", "run.stop_residual=1e-11")
    u, _, _ = solution(1, POISSON % (8, 8))
    that(np.abs(u - v).max() < 1e-8, "cg and jacobi differ by %g" % np.abs(u - v).max())


def test_gradients_alone():
    """The equation is known up to a constant; it has a solution if source and gradients match."""
    for method in ("cg", "jacobi"):
        u, (_, x), _ = solution(2, SLOPES, "solver.method=" + method, "run.steps=20000")
        exact = x - x * x
        error = np.abs((u - u.mean()) - (exact - exact.mean())).max()
        that(error < 1e-10, "%s with gradients alone: error %g" % (method, error))
    r = launch(3, "run", write("input.toml", SLOPES), "source.value=2.5", "--overwrite")
    that(r.returncode == 2 and "the mean of the source f and of what the given gradients bring in is 0.5" in r.stderr, r.stderr)


def refused(what, text, *arguments, ranks=0, input="input.toml"):
    r = launch(ranks, "run", input, "--validate", *arguments)
    lines = r.stderr.strip().splitlines()
    that(r.returncode == 2 and len(lines) == 1 and text in lines[0] and len(lines[0]) < 900,
         "%s: expected %r, got %d and %.900r" % (what, text, r.returncode, lines))


def test_errors():
    write("input.toml", HEAT % (8, 8, 1e-4, 2))
    forms = '"periodic", "neumann", {neumann = VALUE}, {dirichlet = VALUE}, {fixed = VALUE} or {robin = '
    for rule, text in (
            ('{dirichlet = "sin(pi*"}', 'domain.boundary.low: dirichlet = "sin(pi*", column 8: expected a number, a name or "("'),
            ('{neumann = "z"}', 'neumann = "z", column 1: unknown name z: in 2 dimensions there are y or x0, x or x1, t'),
            ('{fixed = "%s"}' % ("(" * 40000), "an expression of 40000 bytes: none is longer than 4096"),
            ('{fixed = "%s"}' % ("(" * 4000), "column 101: nested more than 100 deep"),
            ("{dirichlet = true}", "has an entry that is not " + forms),
            ("{neumann = nan}", "the value of neumann must be finite"),
            ('"robin"', "did you mean {robin = {a = NUMBER, b = NUMBER, value = VALUE}}?"),
            ("{robin = 1}", "robin needs all of these keys"),
            ("{robin = {a = 1, value = 0}}", "b is missing"),
            ("{robin = {a = 1, b = 1}}", "value is missing"),
            ("{robin = {a = 1, b = 1, valu = 0}}", "unknown key valu; did you mean value?"),
            ("{robin = {a = 1, b = -1, value = 0}}", "a and b must not be negative, and not both 0"),
            ("{robin = {a = 0, b = 0, value = 0}}", "a and b must not be negative, and not both 0"),
            ('{robin = {a = 1, b = 1, value = "("}}', 'robin = "(", column 2: expected'),
            ("{periodic = 1}", "has an entry {periodic = ..} that is not")):
        refused(rule[:60], text, 'domain.boundary.low=["neumann", %s]' % rule, ranks=3 if "sin" in rule else 0)
    both = lambda rule: ["domain.boundary.low=[%s, \"neumann\"]" % rule, "domain.boundary.high=[\"neumann\", \"neumann\"]"]
    refused("beyond float32", "a gradient times the cell's width = 1.25e+299 is out of range of float32", "domain.type=float32", *both("{neumann = 1e300}"))
    refused("fields of one", "domain.boundary.u: tables by field are for solvers of several fields", "domain.boundary.u.low=['neumann', 'neumann']")
    refused("no expression", "required key initial.expression is missing", "initial.expression=")
    refused("no such coordinate", 'initial.expression: "2*z", column 3: unknown name z', "initial.expression=2*z")
    two = write("two.toml", HEAT.replace("[initial]", "[initial.u]").replace("[run]", "[initial.v]\nkind = 'constant'\n[run]").replace(
        '"heat"', '"gray_scott"') % (8, 8, 1e-4, 2))
    refused("periodic for one field", "domain.boundary.u.low: dimension 0 is periodic here but not in domain.boundary",
            "domain.boundary.u.low=['periodic', 'neumann']", input=two)
    refused("no such field", "unknown table domain.boundary.w", "domain.boundary.w.low=['periodic', 'neumann']", input=two)
    life = write("life.toml", HEAT.replace("dt = %r", "").replace('"heat"', '"life"') % (8, 8, 2))
    for rule in ('{fixed = "x > 0.5"}', "{neumann = 1}", "{robin = {a = 1, b = 1, value = 1}}"):
        refused("bytes", "a field of uint8 has no rules with expressions, gradients", *both(rule), input=life)


def test_what_is_the_same():
    """A gradient of 0 is no gradient, an expression that is a number gives the number's bits; other texts are other physics."""
    plain = ("domain.boundary.low=['neumann', {dirichlet = 0.3}]", "domain.boundary.high=['neumann', {fixed = 0.7}]")
    given = ("domain.boundary.low=[{neumann = 0}, {dirichlet = '0.3'}]", "domain.boundary.high=['neumann', {fixed = '0.7'}]")
    u, _, _ = solution(1, HEAT % (8, 9, 1e-4, 12), *plain)
    v, _, _ = solution(2, HEAT % (8, 9, 1e-4, 12), *given)
    that(u.tobytes() == v.tobytes(), "expressions that are numbers give other bits than numbers")
    r = launch(0, "run", "input.toml", "output.directory=out", "--restart", "auto", *plain)
    that(r.returncode == 2 and "it was computed with other domain.boundary.high" in r.stderr, r.stderr)
    r = isohalo(0, "verify", "out/latest.h5")
    r = isohalo(0, "run", "input.toml", "output.directory=out", "run.steps=15", "--restart", "auto", *given)
    that("restarting at step 12" in r.stdout, r.stdout)


def test_an_expression_that_is_not_finite():
    """Found in the field; the advice names the rules first."""
    write("log.toml", HEAT % (8, 9, 1e-4, 12))
    r = launch(2, "run", "log.toml", "output.directory=log", "domain.boundary.low=['neumann', {dirichlet = 'log(0 - 1 - t)'}]",
               "domain.boundary.high=['neumann', 'neumann']")
    that(r.returncode == 3 and "look whether the expressions of domain.boundary are finite" in r.stderr, r.stderr)
    of_source = "look whether the expressions of [source] are finite at all times"
    r = launch(2, "run", "log.toml", "output.directory=source", "source.kind=expression", "source.expression=log(0.0005 - t)")
    that(r.returncode == 3 and of_source in r.stderr, r.stderr)
    write("grow.toml", "[domain]\nshape = [8]\n[solver]\nkind = 'gray_scott'\nDu = 0.003\nDv = 0.003\ncfl = 0.4\n[source.u]\nkind = 'constant'\nvalue = 1\n"
          "[initial]\nu = {kind = 'constant', value = 1000}\nv = {kind = 'constant', value = 1000}\n[run]\nsteps = 30\n[output]\ndirectory = 'grow'\n")
    for more in ([], ["solver.mask.kind=expression", "solver.mask.expression=0*t"]):
        r = launch(1, "run", "grow.toml", *more)
        that(r.returncode == 3 and "use a smaller step (solver.dt or solver.cfl), or smaller values in [source]" in r.stderr
             and of_source not in r.stderr, r.stderr)
    r = launch(1, "run", "grow.toml", "domain.boundary.low=[{neumann = '0*t'}]", "domain.boundary.high=['neumann']")
    that(r.returncode == 3 and re.search("use a smaller step .*, or look whether the expressions of domain.boundary", r.stderr), r.stderr)


def main():
    fresh_work_directory()
    test_an_expression_that_is_not_finite()
    test_known_solutions()
    test_gradients_alone()
    test_errors()
    test_what_is_the_same()
    finish()


if __name__ == "__main__":
    main()
