#!/usr/bin/env python3
"""Writes the inputs of the same-bits test: the shipped ones and random ones, in 1 to 4 dimensions.

usage: generate.py INPUTS_DIRECTORY OUTPUT_DIRECTORY [few]

OUTPUT_DIRECTORY/cases.txt then has a line per case: name, input, "full" (every depth on every process grid) or "once",
and overrides. OUTPUT_DIRECTORY/sample.txt has some of them: every solver, method, type, rule and number of dimensions, each
on every process grid with one depth. OUTPUT_DIRECTORY/device.txt and device_sample.txt have them for runs on a
device; with "few", of those whose fields are not of float32 and, unless they are of bytes, have 2 or 3 dimensions.
"""
import pathlib
import random
import sys
import tomllib

SHAPES = {
    1: [[97], [6], [300]],
    2: [[17, 20], [6, 7], [61, 35], [33, 70]],
    3: [[7, 8, 19], [9, 11, 37], [6, 6, 6]],
    4: [[6, 4, 5, 7], [3, 4, 6, 18]],
}


RULES = ["periodic", "neumann", "dirichlet", "fixed"]


def rule_text(rng, rule):
    return '"%s"' % rule if rule in ("periodic", "neumann") else "{%s = %r}" % (rule, rng.uniform(-1, 1))


def boundaries(rng, d, k):
    """Rule k of the list stands on the low side of dimension k mod d, whatever the others are."""
    low, high = [], []
    for j in range(d):
        rule = RULES[k % 4] if j == k % d else rng.choice(RULES)
        other = "periodic" if rule == "periodic" else rng.choice(RULES[1:])
        low.append(rule_text(rng, rule))
        high.append(rule_text(rng, other))
    return ", ".join(low), ", ".join(high)


EXPRESSIONS = ["sin(pi*x)*exp(-0.5*x0) - 1.25", "(x < 0.3) * x^3 - min(x0, x^2) / 3", "tanh(3*(x - 0.4)) + abs(x0)^1.5 - floor(2*x)",
               "-x^2 + x*x0*0.3 - 2^-x", "max(cos(x0), sqrt(abs(x))) - log(1.5 + x0^2)"]
INITIAL = ["random", "linear", "sine", "gaussian", "random", "box", "checkerboard", "constant", "expression"]


VALUES = ["%s", '"sin(2*x0+%s)"', '"%s*exp(-3*t)*(1-x)"', '"(x < %s)*t - 0.5*x^2"', '"%s+t"']
ANY_RULES = ["periodic", "neumann", "dirichlet", "fixed", "gradient", "robin"]


def any_rule_text(rng, rule):
    """Rules with numbers, and with expressions of the place and the time."""
    value = rng.choice(VALUES) % repr(round(rng.uniform(0, 1), 3))
    if rule == "robin":
        return "{robin = {a = %r, b = %r, value = %s}}" % (rng.choice([0.0, 1.0, 2.5]), rng.choice([0.1, 1.0]), value)
    return '"%s"' % rule if rule in ("periodic", "neumann") else "{%s = %s}" % ("neumann" if rule == "gradient" else rule, value)


def any_boundaries(rng, d, k, fields=()):
    """Lines of [domain] with all rules: rule k of the list stands on the low side of dimension k mod d."""
    periodic = [k % 6 == 0 if j == k % d else rng.random() < 0.2 for j in range(d)]
    lines = []
    for table in ("boundary",) + tuple("boundary." + f for f in fields):
        for side in ("low", "high"):
            own = table != "boundary"
            if own and rng.random() < 0.3:
                continue
            rules = [any_rule_text(rng, "periodic" if periodic[j] else ANY_RULES[k % 6] if j == k % d and side == "low" and not own
                                   else rng.choice(ANY_RULES[1:])) for j in range(d)]
            lines.append("%s.%s = [%s]" % (table, side, ", ".join(rules)))
    return lines


def with_boundaries(lines, new):
    """The lines of an input with other rules."""
    text = [x for x in lines if not x.startswith("boundary")]
    return [text[0]] + new + text[1:]


def boundary_input(d, k):
    """All rules, with numbers and expressions, for heat, wide stencils, poisson by both methods, and two fields."""
    rng = random.Random(3000 + 100 * d + k)
    kind, value_type = ["heat", "stencil", "gray_scott", "poisson"][k % 4], ["float64", "float32"][k // 2 % 2]
    shape = SHAPES[d][k % len(SHAPES[d])]
    lines = domain_lines(rng, shape, "", "", value_type)
    if kind == "poisson":
        new = any_boundaries(rng, d, k + 2 * d)
        lines = with_boundaries(lines, new) + ["[solver]", 'kind = "poisson"', 'method = "%s"' % ["jacobi", "cg"][k // 4 % 2],
                                              "[source]"] + initial(rng, d, 0) + ["[initial]"] + initial(rng, d, 0)
    elif kind == "gray_scott":
        lines = with_boundaries(lines, any_boundaries(rng, d, k + 2 * d, ("u", "v"))) + ["[solver]", 'kind = "gray_scott"', "Du = 1e-3", "dt = 0.004"]
        lines += ["[initial.u]"] + initial(rng, d, 0) + ["[initial.v]"] + initial(rng, d, 8)
    else:
        lines = with_boundaries(lines, any_boundaries(rng, d, k + 2 * d)) + ["[solver]"] + solver(rng, d, shape, kind)
        lines += ["[initial]"] + initial(rng, d, 0)
    lines += ["[run]", "steps = 9", "residual_every = 4", "[output]", "checkpoint_every = 5"]
    return "\n".join(lines) + "\n"


def slopes_input(d, method):
    """-laplace(u) = 2 with the slopes of x0 - x0^2 alone, so that the mean of u is fixed in every step."""
    others = ['"%s"' % ["periodic", "neumann"][j % 2] for j in range(1, d)]
    lines = ["[domain]", "shape = %r" % SHAPES[d][0], "boundary.low = [%s]" % ", ".join(["{neumann = -1}"] + others),
             "boundary.high = [%s]" % ", ".join(['{robin = {a = 0, b = 0.5, value = "-0.5"}}'] + others),
             "[solver]", 'kind = "poisson"', 'method = "%s"' % method, "[source]", 'kind = "constant"', "value = 2",
             "[initial]", 'kind = "random"', "seed = %d" % d]
    return "\n".join(lines + ["[run]", "steps = 9", "residual_every = 4", "[output]", "checkpoint_every = 5"]) + "\n"


def initial(rng, d, k):
    kind = INITIAL[k % len(INITIAL)]
    lines = ['kind = "%s"' % kind]
    numbers = lambda low, high: "[" + ", ".join(repr(rng.uniform(low, high)) for _ in range(d)) + "]"
    if kind == "constant":
        lines += ["value = %r" % rng.uniform(-2, 2)]
    elif kind == "linear":
        lines += ["value = %r" % rng.uniform(-2, 2), "gradient = " + numbers(-1, 1)]
    elif kind == "sine":
        lines += ["amplitude = 1.5", "modes = [" + ", ".join(str(rng.randint(1, 4)) for _ in range(d)) + "]"]
    elif kind == "gaussian":
        lines += ["amplitude = 2.0", "center = " + numbers(0.2, 0.8), "width = 0.23"]
    elif kind == "box":
        lines += ["low = " + numbers(0.0, 0.4), "high = " + numbers(0.5, 1.0), "inside = 1.25", "outside = -0.5"]
    elif kind == "checkerboard":
        lines += ["size = %d" % rng.randint(1, 3), "even = -1.0", "odd = 0.7"]
    elif kind == "expression":
        lines += ['expression = "%s"' % rng.choice(EXPRESSIONS)]
    else:
        lines += ["seed = %d" % rng.randint(-5, 10**12), "low = -1.0", "high = 1.5"]
    return lines


def solver(rng, d, shape, kind):
    if kind == "heat":
        return ['kind = "heat"', "kappa = %r" % rng.uniform(0.1, 3), "cfl = %r" % rng.uniform(0.3, 1)]
    reach = min(2, min(shape))
    offsets = []
    for _ in range(rng.randint(1, 11)):
        offsets.append([rng.randint(-reach, reach) for _ in range(d)])
    weights = [rng.uniform(-1, 1) / len(offsets) for _ in offsets]
    return ['kind = "stencil"', "offsets = %r" % offsets, "weights = %r" % weights, "dt = 0.125"]


def domain_lines(rng, shape, low, high, value_type):
    return ["[domain]", "shape = %r" % shape,
            "length = [%s]" % ", ".join(repr(rng.uniform(0.5, 2)) for _ in shape),
            "origin = [%s]" % ", ".join(repr(rng.uniform(-1, 1)) for _ in shape),
            "boundary.low = [%s]" % low, "boundary.high = [%s]" % high, 'type = "%s"' % value_type]


# Method, type, and the lines that the method has besides, of the poisson inputs; those from 10 on have grids of their own.
POISSON = [("jacobi", "float64", []), ("cg", "float64", []), ("cg", "float32", []), ("jacobi", "float32", ["omega = 0.85"]),
           ("jacobi", "float64", ["omega = 0.85"]), ("cg", "float64", []), ("red_black", "float64", []), ("chebyshev", "float64", []),
           ("red_black", "float32", []), ("chebyshev", "float32", []), ("red_black", "float64", ["omega = 1.25"]),
           ("chebyshev", "float64", ["lambda_low = 2.5", "lambda_high = 1e4"])]
# Odd extents, so that colours meet where a dimension wraps, and single cells.
AWKWARD = {1: [[9], [23]], 2: [[13, 5], [1, 40]], 3: [[5, 7, 9], [6, 1, 11]], 4: [[3, 5, 3, 1], [4, 3, 1, 5]]}


def poisson_input(d, k):
    """All methods and types; inputs 4, 5, 8 and 9 have no side with a value, so the mean is fixed in every step."""
    rng = random.Random(5000 + 1000 * d + k)
    method, value_type, more = POISSON[k]
    shape = SHAPES[d][k % len(SHAPES[d])] if k < 10 else AWKWARD[d][k % 2]
    if k not in (4, 5, 8, 9):
        low, high = boundaries(rng, d, 2 + k % 2)
        if k >= 10:  # the dimension that surely has a value, last
            low, high = (", ".join(['"periodic"'] * (d - 1) + [side.split(", ")[(2 + k % 2) % d]]) for side in (low, high))
        source = initial(rng, d, k + 2)
    else:
        low = high = ", ".join('"%s"' % rng.choice(RULES[:2]) for _ in range(d))
        source = ['kind = "sine"', "amplitude = 3.0", "modes = %r" % ([2] + [rng.randint(1, 3) for _ in range(d - 1)])]
    lines = domain_lines(rng, shape, low, high, value_type) + ["[solver]", 'kind = "poisson"', 'method = "%s"' % method] + more
    lines += ["[source]"] + source + ["[initial]"] + initial(rng, d, k)
    lines += ["[run]", "steps = 13", "residual_every = 4", "[output]", "checkpoint_every = 7"]
    return "\n".join(lines) + "\n"


def life_input(k):
    rng = random.Random(9000 + k)
    sides = [("periodic", "periodic"), ("neumann", "neumann"), ("fixed", "neumann"), ("fixed", "fixed")]
    text = lambda rule: '"%s"' % rule if rule != "fixed" else "{fixed = %d}" % rng.randint(0, 1)
    rules = [sides[k % 4], sides[(k * 3 + 1) % 4]]
    low, high = (", ".join(text(rule[side]) for rule in rules) for side in (0, 1))
    fields = [['kind = "random"', "seed = %d" % k, "high = 0.9"], ['kind = "checkerboard"', "size = 2"],
              ['kind = "box"', "low = [-1.0, -1.0]", "high = [0.4, 0.5]"]]
    lines = domain_lines(rng, SHAPES[2][k % 4], low, high, "uint8")
    lines += ["[solver]", 'kind = "life"', 'rule = "%s"' % ["B3/S23", "B36/S32", "B1357/S1357", "B2/S"][k % 4]]
    lines += ["[initial]"] + fields[k % 3]
    lines += ["[run]", "steps = 13", "residual_every = 4", "[output]", "checkpoint_every = 7"]
    return "\n".join(lines) + "\n"


def gray_scott_input(d, k):
    """Both types, all rules."""
    rng = random.Random(7000 + 100 * d + k)
    low, high = boundaries(rng, d, k)
    lines = domain_lines(rng, SHAPES[d][k % len(SHAPES[d])], low, high, ["float64", "float32"][k % 2])
    lines += ["[solver]", 'kind = "gray_scott"', "F = %r" % rng.uniform(0.02, 0.06), "k = %r" % rng.uniform(0.05, 0.07),
              "Du = 1e-3", "cfl = 0.004" if k == 1 else "dt = 0.004"]
    lines += ["[initial.u]"] + initial(rng, d, k) + ["[initial.v]"] + initial(rng, d, k + 3)
    lines += ["[run]", "steps = 13", "residual_every = 4", "[output]", "checkpoint_every = 7"]
    return "\n".join(lines) + "\n"


def table(rng, name, lines):
    return ["[solver.%s]" % name] + lines


def bounded(rng, d, k, low, high):
    """A coefficient between these values, of several kinds."""
    corner = ", ".join(repr(rng.uniform(0.0, 0.3)) for _ in range(d))
    return [['kind = "random"', "seed = %d" % k, "low = %r" % low, "high = %r" % high],
            ['kind = "box"', "low = [%s]" % corner, "high = [%s]" % ", ".join(["0.8"] * d), "inside = %r" % low, "outside = %r" % high],
            ['kind = "checkerboard"', "size = 2", "even = %r" % high, "odd = %r" % low],
            ['kind = "constant"', "value = %r" % high]][k % 4]


def cell_input(d, k):
    """Cell functions with coefficients that are numbers or fields, masks, layers, stages, two time levels."""
    rng = random.Random(8000 + 100 * d + k)
    kind = ["heat", "wave", "advection", "wave", "advection", "heat"][k]
    low, high = boundaries(rng, d, k)
    lines = domain_lines(rng, SHAPES[d][(k + 1) % len(SHAPES[d])], low, high, ["float64", "float32"][(k // 2 + d) % 2])
    lines += ["[solver]", 'kind = "%s"' % kind, "cfl = %r" % rng.uniform(0.4, 0.9)]
    mask = ["[solver.mask]", 'kind = "box"', "low = [%s]" % ", ".join(["0.1"] * d), "high = [%s]" % ", ".join(["0.6"] * d)] if k % 2 == 0 else []
    mask = mask or ["[solver.mask]", 'kind = "checkerboard"', "size = 3", "even = 0.0", "odd = 1.0"]
    if kind == "heat":
        lines += table(rng, "kappa", bounded(rng, d, k + d, 0.2, 1.5)) + (mask if k else [])
    elif kind == "wave" and k == 1:
        lines += ["c = 1.3", "layer = 0.21", "damping = 4.5"]
    elif kind == "wave":
        lines += ["sigma = 0.3"] + table(rng, "c", bounded(rng, d, k + d, 0.5, 2.0)) + mask
    elif k == 2:
        lines += ['method = "upwind3"'] + ["v%d = %r" % (j, rng.uniform(-1, 1)) for j in range(d)]
    else:
        lines += ['method = "%s"' % ["upwind", "upwind3"][d % 2]] + ["v%d = 0.4" % j for j in range(1, d)]
        lines += table(rng, "v0", bounded(rng, d, d, -0.8, 0.6)) + (mask if d > 2 else [])
    lines += ["[initial]"] + initial(rng, d, k + d)
    lines += ["[run]", "steps = 13", "residual_every = 4", "[output]", "checkpoint_every = 7"]
    return "\n".join(lines) + "\n"


SOURCES = ["sin(20*t)*(x < 0.5) - t", "exp(-3*(x-0.2)^2)*cos(9*t+x0)", "t", "max(x0, x)*(t < 0.01) + exp(-x0*x)*t", "2"]


def source_input(d, k):
    """Sources that depend on the time, or not; masks that mirror, of an odd form; all rules."""
    rng = random.Random(6000 + 100 * d + k)
    kind = ["heat", "gray_scott", "advection", "wave", "heat", "advection"][k]
    lines = domain_lines(rng, SHAPES[d][(k + 1) % len(SHAPES[d])], "", "", ["float64", "float32"][(k // 2 + d) % 2])
    lines = with_boundaries(lines, any_boundaries(rng, d, k + d)) + ["[solver]", 'kind = "%s"' % kind]
    lines += ["cfl = %r" % (0.02 if kind == "gray_scott" else rng.uniform(0.3, 0.8))]
    mask = ["[solver.mask]", 'kind = "expression"', 'expression = "sin(%r*x)*sin(%r*x0+1) > 0.3"' % (rng.uniform(9, 19), rng.uniform(9, 19)),
            'rule = "%s"' % ["mirror", "keep"][k == 2 and d % 2]]
    by_time = lambda: ['kind = "expression"', 'expression = "%s"' % rng.choice(SOURCES[:4])]
    if kind == "gray_scott":
        lines += mask if d % 2 else []
        lines += ["[initial.u]"] + initial(rng, d, 0) + ["[initial.v]"] + initial(rng, d, 8)
        lines += ["[source.u]"] + by_time() + (["[source.v]"] + initial(rng, d, 4) if d > 1 else [])
    else:
        if kind == "advection":
            lines += ['method = "%s"' % ["upwind3", "upwind"][k == 5]] + ["v%d = %r" % (j, rng.uniform(-1, 1)) for j in range(d)]
        elif kind == "wave":
            lines += ["layer = 0.2", "damping = 3.5"] if d % 2 else ["sigma = 0.7"]
        elif k == 4:
            lines += table(rng, "kappa", bounded(rng, d, k + d, 0.2, 1.5))
        lines += mask + ["[initial]"] + initial(rng, d, k + d)
        lines += ["[source]"] + (initial(rng, d, 8) if k == 5 else by_time()) if k != 4 else []
    lines += ["[run]", "steps = 13", "residual_every = 4", "[output]", "checkpoint_every = 7"]
    return "\n".join(lines) + "\n"


def acoustics_input(d, k):
    """All rules of the pressure; velocities at sides follow from it or are given, by numbers and expressions. The last two
    have a mask and a source."""
    rng = random.Random(6000 + 100 * d + k)
    shape = (SHAPES[d] + AWKWARD[d])[(2 * k + d) % (len(SHAPES[d]) + 2)]
    lines = domain_lines(rng, shape, "", "", ["float64", "float32"][(k + d) % 2])
    new = any_boundaries(rng, d, k + d, ("p",))
    periodic = [rule == "periodic" for rule in tomllib.loads(new[0])["boundary"]["low"]]
    for j in range(d):
        for side in ("low", "high"):
            rules = ['"periodic"' if p else any_rule_text(rng, rng.choice(["neumann", "dirichlet", "fixed"])) for p in periodic]
            new.append("boundary.v%d.%s = [%s]" % (j, side, ", ".join(rules)))
    lines = with_boundaries(lines, new) + ["[solver]", 'kind = "acoustics"']
    lines += ["cfl = %r" % rng.uniform(0.5, 1)] if k % 2 else ["dt = 5e-4"]
    lines += ["density = %r" % rng.uniform(0.5, 2)] if k not in (2, 6) else []
    lines += ["bulk_modulus = %r" % rng.uniform(0.5, 2)] if k != 4 else []
    lines += table(rng, "density", bounded(rng, d, d, 0.6, 1.7)) if k in (2, 6) else table(rng, "bulk_modulus", bounded(rng, d, d + 1, 0.6, 1.7)) if k == 4 else []
    if k > 5:
        expression = "sin(%r*x)*sin(%r*x0+1) > 0.2" % (rng.uniform(5, 9), rng.uniform(5, 9))
        lines += table(rng, "mask", ['kind = "expression"', 'expression = "%s"' % expression, 'rule = "%s"' % ["mirror", "keep"][(k + d // 2) % 2]])
        lines += ["[source]"] + (['kind = "expression"', 'expression = "%s"' % rng.choice(SOURCES[:4])] if k == 6 else initial(rng, d, 8))
    for f, name in enumerate(["p"] + ["v%d" % j for j in range(d)]):
        lines += ["[initial.%s]" % name] + initial(rng, d, k + d + f)
    lines += ["[run]", "steps = 13", "residual_every = 4", "[output]", "checkpoint_every = 7"]
    return "\n".join(lines) + "\n"


def random_input(d, k):
    """Input k of d dimensions: the four pairs of solver and type go round, so do rules and initial fields."""
    rng = random.Random(1000 * d + k)
    kind, value_type = [("heat", "float64"), ("stencil", "float32"), ("heat", "float32"), ("stencil", "float64")][k % 4]
    shape = SHAPES[d][k % len(SHAPES[d])]
    low, high = boundaries(rng, d, k)
    lines = domain_lines(rng, shape, low, high, value_type) + ["[solver]"]
    lines += solver(rng, d, shape, kind) + ["[initial]"] + initial(rng, d, k + d)
    lines += ["[run]", "steps = 13", "residual_every = %d" % rng.choice([1, 4, 5]), "[output]", "checkpoint_every = 7"]
    return "\n".join(lines) + "\n"


def main():
    inputs, out = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    cases = [
        "heat2d %s full run.steps=60 output.checkpoint_every=30" % (inputs / "heat2d.toml"),
        "custom9 %s full run.steps=60 output.checkpoint_every=30" % (inputs / "custom9.toml"),
        "heat3d_small %s full domain.shape=[24,20,37] run.steps=12 output.checkpoint_every=6" % (inputs / "heat3d.toml"),
        "heat3d %s alone run.steps=8 output.checkpoint_every=4" % (inputs / "heat3d.toml"),
        # These stop by themselves: the same iteration on any ranks.
        "poisson2d %s full domain.shape=[24,33] run.steps=400 run.stop_residual=1e-9 output.checkpoint_every=40" % (inputs / "poisson2d.toml"),
        "poisson2d_jacobi %s full domain.shape=[18,21] solver.method=jacobi solver.omega=0.9 run.steps=400 "
        "run.stop_residual=0.3 output.checkpoint_every=20" % (inputs / "poisson2d.toml"),
        "poisson2d_red_black %s full domain.shape=[17,23] run.steps=400 run.stop_residual=1e-6 output.checkpoint_every=20" % (inputs / "poisson_red_black.toml"),
        # Half steps in place, since the periodic extent is even; an odd number of rows, and one row.
        "red_black_odd %s full domain.shape=[13,12] domain.type=float32 run.steps=13 run.stop_residual=1e-6 run.residual_every=4 "
        "output.checkpoint_every=7" % (inputs / "poisson_red_black.toml"),
        "red_black_row %s full domain.shape=[1,14] source.high=[0.4,0.6] run.steps=13 run.stop_residual=1e-6 run.residual_every=4 "
        "output.checkpoint_every=7" % (inputs / "poisson_red_black.toml"),
        "poisson3d_chebyshev %s full domain.shape=[6,8,10] source.size=2 run.steps=400 run.stop_residual=1e-6 "
        "output.checkpoint_every=20" % (inputs / "poisson_chebyshev.toml"),
        "gray_scott %s full domain.shape=[40,53] run.steps=60 output.checkpoint_every=30" % (inputs / "gray_scott.toml"),
        "wave2d %s full domain.shape=[24,31] solver.c.high=[2.0,3.0] run.steps=24 output.checkpoint_every=12" % (inputs / "wave2d.toml"),
        "advection2d %s full domain.shape=[24,31] run.steps=12 output.checkpoint_every=6" % (inputs / "advection2d.toml"),
        # Stages read boundary values of their own times.
        "advection_times %s full domain.shape=[13,17] run.steps=12 output.checkpoint_every=6 "
        'domain.boundary.low=[{dirichlet="sin(40*t)"},{fixed="cos(30*t+x)"}] domain.boundary.high=["neumann",{neumann="t*y"}]' % (inputs / "advection2d.toml"),
        "acoustics2d %s full domain.shape=[24,31] run.steps=24 output.checkpoint_every=12" % (inputs / "acoustics2d.toml"),
        "heat_layers %s full domain.shape=[24,31] run.steps=40 output.checkpoint_every=20" % (inputs / "heat_layers.toml"),
        "stirred2d %s full domain.shape=[24,31] run.steps=30 output.checkpoint_every=15" % (inputs / "stirred2d.toml"),
        # Ghosts beyond a periodic side have the sources of the cells that they repeat.
        "stirred_round %s full domain.shape=[24,31] run.steps=20 output.checkpoint_every=10 "
        'domain.boundary.low=["periodic","periodic"] domain.boundary.high=["periodic","periodic"]' % (inputs / "stirred2d.toml"),
        "life %s full domain.shape=[40,53] run.steps=20 output.checkpoint_every=10" % (inputs / "life.toml"),
    ]
    inputs = [("random_%dd_%d" % (d, k), random_input(d, k)) for d in range(1, 5) for k in range(8)]
    inputs += [("poisson_%dd_%d" % (d, k), poisson_input(d, k)) for d in range(1, 5) for k in range(len(POISSON))]
    inputs += [("life_%d" % k, life_input(k)) for k in range(8)]
    inputs += [("cell_%dd_%d" % (d, k), cell_input(d, k)) for d in range(1, 5) for k in range(6)]
    inputs += [("acoustics_%dd_%d" % (d, k), acoustics_input(d, k)) for d in range(1, 5) for k in range(8)]
    inputs += [("gray_scott_%dd_%d" % (d, k), gray_scott_input(d, k)) for d in range(1, 5) for k in range(3)]
    inputs += [("source_%dd_%d" % (d, k), source_input(d, k)) for d in range(1, 5) for k in range(6)]
    inputs += [("boundary_%dd_%d" % (d, k), boundary_input(d, k)) for d in range(1, 5) for k in range(8)]
    inputs += [("slopes_%dd_%s" % (d, method), slopes_input(d, method)) for d, method in ((1, "jacobi"), (2, "cg"), (3, "jacobi"))]
    for name, text in inputs:
        (out / (name + ".toml")).write_text(text)
        cases.append("%s %s once" % (name, (out / (name + ".toml")).resolve()))
    for d, k in ((1, 2), (2, 0), (2, 3), (3, 1), (4, 0)):
        input = (out / ("random_%dd_%d.toml" % (d, k))).resolve()
        cases.append('exact_%dd_%d %s once parallel.reduction="exact"' % (d, k, input))
    cases.append('exact_acoustics %s once parallel.reduction="exact"' % (out / "acoustics_2d_1.toml").resolve())
    (out / "cases.txt").write_text("\n".join(cases) + "\n")
    sampled = {"heat2d", "custom9", "heat3d_small", "poisson2d", "poisson2d_jacobi", "poisson2d_red_black",
               "red_black_odd", "red_black_row",
               "poisson3d_chebyshev", "poisson_1d_9", "poisson_2d_8", "poisson_2d_11", "poisson_3d_10", "poisson_4d_7", "life",
               "life_1", "life_2", "exact_2d_3",
               "gray_scott", "gray_scott_1d_0", "gray_scott_2d_1", "gray_scott_3d_2", "gray_scott_4d_1",
               "wave2d", "advection2d", "advection_times", "heat_layers", "cell_1d_4", "cell_2d_3", "cell_3d_2", "cell_3d_5", "cell_4d_1"}
    sampled |= {"slopes_2d_cg", "source_1d_1", "source_2d_0", "source_2d_2", "source_2d_3", "source_3d_4", "source_3d_5", "source_4d_2", "stirred2d", "stirred_round"}
    sampled |= {"acoustics2d", "acoustics_1d_1", "acoustics_2d_2", "acoustics_2d_6", "acoustics_3d_4", "acoustics_3d_7", "acoustics_4d_3"}
    for d in range(1, 5):
        sampled |= {"boundary_%dd_%d" % (d, d - 1), "boundary_%dd_%d" % (d, 3 + d)}
        sampled |= {"random_%dd_%d" % (d, d - 1), "random_%dd_%d" % (d, 8 - d), "poisson_%dd_%d" % (d, d - 1)}
    sample = [c.replace(" full", " once", 1) for c in cases if c.split()[0] in sampled]
    assert len(sample) == len(sampled)
    (out / "sample.txt").write_text("\n".join(sample) + "\n")
    on_device = [c.replace(" full", " once", 1) for c in cases]
    if "few" in sys.argv[3:]:
        def fits(case):
            text = pathlib.Path(case.split()[1]).read_text()
            return "float32" not in case + text and len(tomllib.loads(text)["domain"]["shape"]) in (2, 3)
        on_device = [c for c in on_device if fits(c)]
    (out / "device.txt").write_text("\n".join(on_device) + "\n")
    few = {"custom9", "heat3d_small", "gray_scott_2d_1", "wave2d", "advection_times", "heat_layers", "cell_1d_4", "cell_3d_5", "cell_4d_1",
           "source_1d_1", "source_2d_0", "source_3d_5", "source_4d_2", "stirred_round", "boundary_1d_0", "boundary_2d_1", "boundary_3d_6", "random_2d_6",
           "random_1d_7", "poisson2d", "poisson_1d_1", "poisson_3d_2", "poisson_4d_5", "slopes_2d_cg", "poisson2d_jacobi",
           "poisson2d_red_black", "poisson3d_chebyshev", "poisson_2d_8", "poisson_3d_10", "life_1",
           "acoustics2d", "acoustics_1d_1", "acoustics_2d_2", "acoustics_2d_6", "acoustics_3d_4", "acoustics_3d_7", "acoustics_4d_3"}
    if "few" in sys.argv[3:]:  # in the place of the others
        few |= {"boundary_2d_5", "boundary_3d_1", "boundary_3d_5", "cell_2d_0", "cell_2d_5", "cell_3d_2", "cell_3d_3", "gray_scott_2d_0",
                "gray_scott_3d_0", "poisson_2d_7", "poisson_2d_10", "poisson_3d_5", "random_2d_4", "random_3d_3", "source_2d_1",
                "source_3d_2", "source_3d_3", "acoustics_2d_0", "acoustics_3d_1", "acoustics_3d_3", "stirred2d"}
    assert few <= {c.split()[0] for c in cases}
    few = [c for c in on_device if c.split()[0] in few]
    assert len(few) >= 35
    (out / "device_sample.txt").write_text("\n".join(few) + "\n")


if __name__ == "__main__":
    main()
