#!/usr/bin/python3
"""Solvers against exact solutions: the discretisation is of second order, whatever the boundary rules, and all methods
arrive at the same solution, on any number of ranks after the same number of iterations.

usage: solvers.py ISOHALO MPIEXEC WORK_DIRECTORY
"""
import re

import h5py
import numpy as np

from harness import WORK, finish, fresh_work_directory, isohalo, that

PI = np.pi

# name: boundary low, high, lengths, u(x..), f = -laplace(u). Sides agree with u: at a face for "dirichlet", its slope for
# "neumann".
CASES = {
    "1-D, values on both sides": (
        ["{dirichlet = 1.0}"], ["{dirichlet = 2.0}"], [1.0],
        lambda x: 1 + x**2 + np.sin(PI * x), lambda x: -2 + PI**2 * np.sin(PI * x)),
    "2-D, slope, value and periodic": (
        ["\"neumann\"", "\"periodic\""], ["{dirichlet = 0.5}", "\"periodic\""], [2.0, 1.0],
        lambda y, x: 0.5 + np.cos(PI * y / 4) * np.sin(2 * PI * x),
        lambda y, x: (PI**2 / 16 + 4 * PI**2) * np.cos(PI * y / 4) * np.sin(2 * PI * x)),
    "2-D, known up to a constant": (
        ["\"neumann\"", "\"periodic\""], ["\"neumann\"", "\"periodic\""], [1.0, 1.0],
        lambda y, x: np.cos(PI * y) * np.cos(2 * PI * x), lambda y, x: 5 * PI**2 * np.cos(PI * y) * np.cos(2 * PI * x)),
    "3-D, a value on each side": (
        ["{dirichlet = 0.0}"] * 3, ["{dirichlet = 0.0}"] * 3, [1.0, 0.5, 2.0],
        lambda z, y, x: np.sin(PI * z) * np.sin(2 * PI * y) * np.sin(PI * x / 2),
        lambda z, y, x: PI**2 * 5.25 * np.sin(PI * z) * np.sin(2 * PI * y) * np.sin(PI * x / 2)),
}


def run(ranks, *arguments):
    return isohalo(ranks, "run", *arguments).stdout


def solution(directory):
    files = sorted((WORK / directory).glob("step_*.h5"))
    with h5py.File(files[-1]) as f:
        return int(files[-1].name[5:13]), f["fields/u"][...]


def solve(name, n, ranks, directory, *more):
    """The error against the exact solution, the iterations and the values."""
    low, high, length, u, f = CASES[name]
    shape = [n + 3 * j for j in range(len(length))]
    centres = [(np.arange(k) + 0.5) * (l / k) for k, l in zip(shape, length)]
    grid = np.meshgrid(*centres, indexing="ij")
    with h5py.File(WORK / "source.h5", "w") as h:
        source = f(*grid)
        if "constant" in name:
            source -= source.mean()  # the discrete equation has a solution only then
        h["f"] = source
    (WORK / "input.toml").write_text("""
[domain]
shape = %r
length = %r
boundary.low = [%s]
boundary.high = [%s]
[solver]
kind = "poisson"
[source]
kind = "file"
file = "source.h5"
dataset = "f"
[initial]
kind = "random"
seed = 11
[run]
steps = 100000
stop_residual = 1e-11
residual_every = 5
""" % (shape, length, ", ".join(low), ", ".join(high)))
    run(ranks, "input.toml", "output.directory=" + directory, "--overwrite", *more)
    iterations, values = solution(directory)
    exact = u(*grid)
    if "constant" in name:
        that(abs(values.mean()) < 1e-15, "%s: the solution's mean is %g" % (name, values.mean()))
        exact = exact - exact.mean()
    return np.abs(values - exact).max(), iterations, values


def test_order():
    for name in CASES:
        sizes = [12, 24, 48] if "3-D" in name else [16, 32, 64]
        method = {"1-D": "cg", "3-D": "red_black"}.get(name[:3], "chebyshev" if "constant" in name else "cg")
        errors = [solve(name, n, 1 + k, "order", "solver.method=" + method)[0] for k, n in enumerate(sizes)]
        orders = [np.log(a / b) / np.log((m + 1.5) / (n + 1.5)) for a, b, m, n in
                  zip(errors[:-1], errors[1:], sizes[1:], sizes[:-1])]
        that(all(1.8 < order < 2.3 for order in orders), "%s: errors %r, orders %r" % (name, errors, orders))


def test_methods_agree():
    """Each method arrives at the solution, in as many steps as it should: over-relaxation and Chebyshev's steps with the
    factors of the grid in many fewer than damped Jacobi steps, and not in many more than conjugate gradients."""
    for name in CASES:
        error, few, a = solve(name, 10, 1, "cg", "solver.method=cg")
        many = 0
        for method, ranks, more in (("jacobi", 2, ["solver.omega=0.9"]), ("red_black", 2, []), ("chebyshev", 3, ["parallel.halo_depth=3"])):
            other_error, steps, b = solve(name, 10, ranks, method, "solver.method=" + method, *more)
            that(np.abs(a - b).max() < 1e-8, "%s: cg and %s differ by %g" % (name, method, np.abs(a - b).max()))
            that(abs(other_error - error) < 1e-8, "%s: errors %g and %g" % (name, error, other_error))
            many = many or steps
            odd = method == "red_black" and '"periodic"' in CASES[name][0]  # 13 cells there: the factor is then 1
            that(few < steps if method == "jacobi" else steps < many / (1.5 if odd else 3),
                 "%s: cg takes %d steps, jacobi %d, %s %d" % (name, few, many, method, steps))


def test_bounds():
    """lambda_low and lambda_high lie close around the eigenvalues, whatever the rules: closer ones let steps diverge or be
    slow. The matrix column by column, from NumPy alone."""
    rules = {"P": "periodic", "N": "neumann", "D": "dirichlet", "F": "fixed"}
    for low, high in ("PP", "NN", "ND", "DD", "NF", "FD", "FF"):
        for n in (1, 2, 7, 40):
            matrix = np.diag([2.0] * n) - np.diag([1.0] * (n - 1), 1) - np.diag([1.0] * (n - 1), -1)
            if low == "P":
                matrix[0, -1] -= 1
                matrix[-1, 0] -= 1
            for at, rule in ((0, low), (-1, high)):
                matrix[at, at] += {"N": -1, "D": 1}.get(rule, 0)
            text = lambda rule: '"%s"' % rules[rule] if rule in "PN" else "{%s = 1.0}" % rules[rule]
            (WORK / "bounds.toml").write_text("""
[domain]
shape = [%d]
length = [%d.0]
boundary.low = [%s]
boundary.high = [%s]
[solver]
kind = "poisson"
method = "chebyshev"
[initial]
kind = "constant"
[run]
steps = 1
""" % (n, n, text(low), text(high)))
            listed = run(0, "bounds.toml", "--help-input")
            least, most = [float(re.search(r"solver.lambda_%s .*here (\S+)" % side, listed)[1]) for side in ("low", "high")]
            exact = [x for x in np.linalg.eigvalsh(matrix) if x > 1e-12] or [least]
            that(exact[0] * (0.995 if n == 40 else 0.4) <= least <= exact[0] * (1 + 1e-14), "%s%s %d: %r above %r" % (low, high, n, least, exact[0]))
            that(exact[-1] <= most * (1 + 1e-14) and most == 4, "%s%s %d: %r below %r" % (low, high, n, most, exact[-1]))


def test_iterations():
    """The same number of iterations on any ranks, for all methods, with relative and with absolute limits."""
    for method, zero in (("cg", False), ("jacobi", False), ("red_black", False), ("chebyshev", False), ("cg", True)):
        seen = set()
        for ranks in (1, 2, 3, 4, 6):
            directory = "count_%s_%d_%d" % (method, zero, ranks)
            input = INPUT_ZERO if zero else INPUT
            (WORK / "count.toml").write_text(input)
            out = run(ranks, "count.toml", "solver.method=" + method, "output.directory=" + directory)
            steps, values = solution(directory)
            seen.add((steps, values.tobytes(), tuple(re.findall(r"(?:residual|digest).*", out.split("rate")[-1]))))
        that(len(seen) == 1, "%s: iterations %r" % (method, sorted(s[0] for s in seen)))
        that(0 < next(iter(seen))[0] < 20000, "%s did not converge" % method)
        if zero:  # ||r of u = 0|| is 0: the limit is absolute
            with h5py.File(WORK / directory / "latest.h5") as f:
                norm, steps = np.sqrt(f["reduction"].attrs["change_sum"]), f["time"].attrs["step"]
            that(norm <= 1e-6, "stopped at |r| = %g" % norm)
            that(steps > 5, "stopped at once")


INPUT = """
[domain]
shape = [20, 27]
boundary.low = ["neumann", {dirichlet = 0.5}]
boundary.high = [{fixed = 1.0}, "neumann"]
[solver]
kind = "poisson"
[source]
kind = "gaussian"
amplitude = 50.0
[initial]
kind = "constant"
[run]
steps = 20000
stop_residual = 1e-6
residual_every = 3
"""
INPUT_ZERO = re.sub(r"\[source\][^[]*", "", INPUT).replace("0.5", "0.0").replace("1.0", "0.0").replace(
    'kind = "constant"', 'kind = "random"')


def main():
    fresh_work_directory()
    test_order()
    test_methods_agree()
    test_bounds()
    test_iterations()
    finish()


if __name__ == "__main__":
    main()
