#!/usr/bin/python3
"""Recomputes the reference checkpoints of the same-bits test with NumPy, from the published definitions alone, and
compares bit for bit: fields, change sums, residuals, digests, extremes.

usage: numpy_check.py CASES_FILE REFERENCE_DIRECTORY
"""
import copy
import itertools
import math
import pathlib
import struct
import sys
import tomllib

import h5py
import numpy as np

from expressions import Expression

M64 = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15
TILES = {1: (256,), 2: (16, 16), 3: (4, 4, 16), 4: (2, 2, 4, 16)}


def mix(z):
    """The last three statements of SplitMix64, on an array of uint64 (wrapping)."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def counters(shape):
    """(L + 1) * golden for each cell, L the row-major linear index."""
    n = int(np.prod(shape, dtype=np.int64))
    return (np.arange(1, n + 1, dtype=np.uint64) * np.uint64(GOLDEN)).reshape(shape)


def digest(field):
    bits = np.ascontiguousarray(field).view({8: np.uint64, 4: np.uint32, 1: np.uint8}[field.itemsize]).astype(np.uint64)
    return "%016x" % (int(np.sum(mix(bits + counters(field.shape)), dtype=np.uint64)) & M64)


def text_digest(data):
    bits = np.frombuffer(data, dtype=np.uint8).astype(np.uint64)
    return "%016x" % (int(np.sum(mix(bits + counters(bits.shape)), dtype=np.uint64)) & M64)


# --- reduction tree -----------------------------------------------------------------------------------------------------

def tile_values(v, tile):
    """One value per tile: rows added in index order into lanes, lanes folded by halving strides."""
    shape = v.shape
    tiles = [-(-n // t) for n, t in zip(shape, tile)]
    padded = np.zeros([c * t for c, t in zip(tiles, tile)])
    padded[tuple(slice(0, n) for n in shape)] = v
    exists = np.zeros(padded.shape, dtype=bool)
    exists[tuple(slice(0, n) for n in shape)] = True
    acc = None
    for row in itertools.product(*[range(t) for t in tile[:-1]]):
        at = tuple(slice(r, None, t) for r, t in zip(row, tile[:-1])) + (slice(None),)
        if acc is None:
            acc = padded[at].copy()
        else:
            acc = np.where(exists[at], acc + padded[at], acc)
    lanes = acc.reshape(acc.shape[:-1] + (tiles[-1], tile[-1]))
    first = (0,) * (len(shape) - 1)
    there = exists[first].reshape(tiles[-1], tile[-1])
    h = tile[-1] // 2
    while h >= 1:
        both = there[:, h:2 * h]
        lanes = np.where(both, lanes[..., :h] + lanes[..., h:2 * h], lanes[..., :h])
        there = there[:, :h]
        h //= 2
    return lanes[..., 0]


def tree_sum(v, tile):
    values = tile_values(v, tile)
    shape = v.shape
    sys.setrecursionlimit(10000)

    def node(low, high):
        best, longest = -1, 0
        for j in range(len(shape)):
            cells = min(high[j] * tile[j], shape[j]) - low[j] * tile[j]
            if high[j] - low[j] > 1 and cells > longest:
                best, longest = j, cells
        if best < 0:
            return float(values[low])
        count = high[best] - low[best]
        half = 1
        while 2 * half < count:
            half *= 2
        cut = low[best] + half
        left = high[:best] + (cut,) + high[best + 1:]
        right = low[:best] + (cut,) + low[best + 1:]
        return node(low, left) + node(right, high)

    return node((0,) * len(shape), tuple(values.shape))


# --- the model ----------------------------------------------------------------------------------------------------------

class Input:
    def __init__(self, path, overrides):
        data = tomllib.loads(pathlib.Path(path).read_text())
        for o in overrides:
            key, value = o.split("=", 1)
            table = data
            *parents, last = key.split(".")
            for p in parents:
                table = table.setdefault(p, {})
            try:
                table[last] = tomllib.loads("v = " + value)["v"]
            except tomllib.TOMLDecodeError:
                table[last] = value
        domain = data["domain"]
        self.data = data
        self.method = data.get("parallel", {}).get("reduction", "tree")
        self.shape = tuple(domain["shape"])
        self.d = len(self.shape)
        self.length = [float(x) for x in domain.get("length", [1.0] * self.d)]
        self.origin = [float(x) for x in domain.get("origin", [0.0] * self.d)]
        self.h = [l / n for l, n in zip(self.length, self.shape)]
        rules = domain.get("boundary", {})
        self.low = rules.get("low", ["periodic"] * self.d)
        self.high = rules.get("high", ["periodic"] * self.d)
        self.rules, self.face = rules, None
        self.type = {"float64": np.float64, "float32": np.float32, "uint8": np.uint8}[
            domain.get("type", "uint8" if data["solver"]["kind"] == "life" else "float64")]

    def sides(self, field):
        """The rules of a field: its own, where it has some."""
        own = self.rules.get(field, {})
        return own.get("low", self.low), own.get("high", self.high)

    def on_faces(self, j):
        """The same with the faces of dimension j for cells."""
        faces = copy.copy(self)
        faces.face = j
        faces.shape = tuple(n + (k == j and self.low[j] != "periodic") for k, n in enumerate(self.shape))
        return faces

    def centres(self, j):
        return [self.origin[j] + (i + (0.0 if j == self.face else 0.5)) * self.h[j] for i in range(self.shape[j])]


def initial_field(input, table="initial", field=None, t=0.0):
    shape, d = input.shape, input.d
    spec = input.data.get(table, {"kind": "constant"}) if isinstance(table, str) else input.data[table[0]][table[1]]
    spec = spec[field] if field else spec
    along = lambda j, values: np.array(values, dtype=np.float64).reshape([-1 if k == j else 1 for k in range(d)])
    kind = spec["kind"]
    if kind == "constant":
        v = np.full(shape, float(spec.get("value", 0.0)))
    elif kind == "linear":
        v = np.full(shape, float(spec.get("value", 0.0)))
        for j in range(d):
            v = v + along(j, [float(spec["gradient"][j]) * x for x in input.centres(j)])
    elif kind == "sine":
        v = np.full(shape, float(spec.get("amplitude", 1.0)))
        for j in range(d):
            v = v * along(j, [math.sin(math.pi * spec["modes"][j] * (x - input.origin[j]) / input.length[j])
                              for x in input.centres(j)])
    elif kind == "gaussian":
        s = None
        for j in range(d):
            term = along(j, [(x - spec["center"][j]) * (x - spec["center"][j]) for x in input.centres(j)])
            s = np.broadcast_to(term, shape) if s is None else s + term
        w = float(spec["width"])
        e = [math.exp(-x) for x in (s / (2 * w * w)).ravel()]
        v = float(spec.get("amplitude", 1.0)) * np.array(e).reshape(shape)
    elif kind == "box":
        inside = np.ones(shape, dtype=bool)
        for j in range(d):
            inside &= along(j, [spec["low"][j] <= x < spec["high"][j] for x in input.centres(j)]).astype(bool)
        v = np.where(inside, float(spec.get("inside", 1.0)), float(spec.get("outside", 0.0)))
    elif kind == "checkerboard":
        squares = sum(along(j, [i // spec["size"] for i in range(shape[j])]) for j in range(d))
        v = np.where(squares % 2 == 0, float(spec.get("even", 0.0)), float(spec.get("odd", 1.0)))
    elif kind == "expression":
        value = Expression(spec["expression"], d)
        points = itertools.product(*map(input.centres, range(d)))
        v = np.array([value(x, t) for x in points]).reshape(shape)
    else:
        low, high = float(spec.get("low", 0.0)), float(spec.get("high", 1.0))
        z = mix(np.uint64(spec["seed"] & M64) + counters(shape))
        v = low + (high - low) * ((z >> np.uint64(11)).astype(np.float64) * 2.0**-53)
    return (np.rint(v) if input.type == np.uint8 else v).astype(input.type)


def kind_and_value(rule):
    """The name of a rule, its value (a number or an expression) and its other keys; neumann without a gradient has none."""
    if isinstance(rule, str):
        return rule, None, {}
    (kind, value), = rule.items()
    return (kind, value["value"], value) if isinstance(value, dict) else (kind, None if kind == "neumann" and value == 0 else value, {})


def boundary_value(input, value, j, side, x, shape, t):
    """At the outside cells of `shape` at index x of dimension j (x is None: at the face), a number in each of them."""
    if not isinstance(value, str):
        return np.full(shape, float(value))
    places = []
    for k in range(input.d):
        n, extended = input.shape[k], (shape[k] - input.shape[k]) // 2
        centre = lambda i: input.origin[k] + (i + 0.5) * input.h[k]
        if k == j:
            places.append([centre(x) if x is not None else input.origin[j] + (input.length[j] if side else 0.0)])
        else:
            wrap = (lambda i: i % n) if input.low[k] == "periodic" else (lambda i: i)
            places.append([centre(wrap(i)) for i in range(-extended, n + extended)])
    expression = Expression(value, input.d)
    return np.array([expression(x, t) for x in itertools.product(*places)]).reshape(shape)


def outside_cell(input, rule, j, side, x, t, mirrored, homogeneous):
    """The layer at index x of dimension j; `mirrored` are the cells that it mirrors."""
    number, n = input.type, input.shape[j]
    kind, value, keys = kind_and_value(rule)
    if kind == "neumann" and (value is None or homogeneous):
        return mirrored
    v = boundary_value(input, 0.0 if homogeneous else value, j, side, x if kind == "fixed" else None, mirrored.shape, t)
    if kind == "fixed":
        return v.astype(number)
    distance = float(2 * (-1 - x if x < 0 else x - n) + 1) * input.h[j]
    if kind == "dirichlet":
        return number(2) * v.astype(number) - mirrored
    if kind == "neumann":
        return mirrored + (distance * v).astype(number)
    a, b = 0.5 * float(keys["a"]), float(keys["b"]) / distance
    return (v / (a + b)).astype(number) - number((a - b) / (a + b)) * mirrored


def outside(u, input, reach, homogeneous=False, t=0.0, field=None):
    """The field with `reach` outside cells on every side. A corner applies dimension 0's rule to what the others give, so
    the last dimension is extended first and dimension 0 last."""
    sides = input.sides(field)
    for j in range(input.d - 1, -1, -1):
        n, layers = u.shape[j], []
        for x in range(-reach, n + reach):
            side = 0 if x < 0 else 1
            rule = sides[side][j]
            take = lambda i: np.take(u, [i], axis=j)
            if 0 <= x < n:
                continue
            if rule == "periodic":
                layers.append(take(x % n))
                continue
            mirrored = -1 - x if x < 0 else 2 * n - 1 - x
            if not 0 <= mirrored < n and kind_and_value(rule)[0] != "fixed":  # further than any stencil of the input reads
                layers.append(np.zeros_like(take(0)))
            else:
                layers.append(outside_cell(input, rule, j, side, x, t, take(min(max(mirrored, 0), n - 1)), homogeneous))
        u = np.concatenate(layers[:reach] + [u] + layers[reach:], axis=j)
    return u


def neighbor(big, reach, offset, shape):
    return big[tuple(slice(reach + o, reach + o + n) for o, n in zip(offset, shape))]


class Stepper:
    """Solvers whose step is a function of u. Stops (docs/model.md) when the residual is small enough."""

    def __init__(self, input):
        self.input, self.u, self.n = input, initial_field(input), 0
        self.prepare(input)

    def fields(self):
        return {"u": (self.u, b"state")}

    def advance(self):
        """One step; the change sum as a function, since only some steps need it."""
        before, self.u = self.u, self.step(self.u)
        after = self.u
        self.n += 1
        change = lambda: after.astype(np.float64) - before.astype(np.float64)
        return lambda: change_sum(self.input, change() * change())

    def converged(self, limit, total):
        return math.sqrt(total / self.u.size) <= limit

    def prepare(self, input):
        solver = input.data["solver"]
        self.kind = solver["kind"]
        if self.kind == "stencil":
            self.offsets = solver["offsets"]
            self.weights = [input.type(float(w)) for w in solver["weights"]]
            self.reach = max(max(abs(x) for x in o) for o in self.offsets)
            self.dt = float(solver.get("dt", 1.0))
        else:
            kappa, self.reach = float(solver.get("kappa", 1.0)), 1
            total = 0.0
            for j, h in enumerate(input.h):
                total = 1 / (h * h) if j == 0 else total + 1 / (h * h)
            limit = 1 / (2 * kappa * total)
            self.dt = float(solver["dt"]) if "dt" in solver else float(solver.get("cfl", 0.9)) * limit
            self.c = [input.type((kappa * self.dt) / (h * h)) for h in input.h]

    def step(self, u):
        big, r = outside(u, self.input, self.reach, t=self.n * self.dt), self.reach

        def at(offset):
            return neighbor(big, r, offset, self.input.shape)

        if self.kind == "stencil":
            acc = self.weights[0] * at(self.offsets[0])
            for w, o in zip(self.weights[1:], self.offsets[1:]):
                acc = acc + w * at(o)
            return acc
        two, a = self.input.type(2), None
        for j in range(self.input.d):
            e = [1 if k == j else 0 for k in range(self.input.d)]
            t = self.c[j] * ((at([-x for x in e]) - two * u) + at(e))
            a = t if a is None else a + t
        return u + a


class Life(Stepper):
    def prepare(self, input):
        born, survive = input.data["solver"].get("rule", "B3/S23")[1:].split("/S")
        self.born, self.survive, self.dt = [int(x) for x in born], [int(x) for x in survive], 0.0

    def step(self, u):
        big = outside(u, self.input, 1)
        around = [(y, x) for y in (-1, 0, 1) for x in (-1, 0, 1) if y or x]
        living = sum(neighbor(big, 1, o, self.input.shape).astype(int) for o in around)
        return np.where(u == 1, np.isin(living, self.survive), np.isin(living, self.born)).astype(np.uint8)


class Poisson(Stepper):
    """What all methods share; `step` is that of jacobi."""

    def prepare(self, input):
        solver, self.dt, self.f = input.data["solver"], 0.0, initial_field(input, "source")
        self.exact_q = q = [1 / (h * h) for h in input.h]
        total = q[0]
        for x in q[1:]:
            total = total + x
        self.exact_diagonal = 2 * total
        self.q, self.diagonal = [input.type(x) for x in q], input.type(2 * total)
        self.omega = float(solver["omega"]) if "omega" in solver else None
        kinds = [kind_and_value(rule) for rule in input.low + input.high]
        self.singular = not any(kind in ("dirichlet", "fixed") or keys.get("a", 0) > 0 for kind, _, keys in kinds)
        zero = self.f + self.laplace(np.zeros_like(self.u))
        self.first = self.product(zero, zero)
        self.begin(solver)

    def begin(self, solver):
        self.omega = self.input.type(1.0 if self.omega is None else self.omega)

    def laplace(self, u, homogeneous=False):
        big, lap, input = outside(u, self.input, 1, homogeneous), None, self.input
        for j in range(input.d):
            e = [1 if k == j else 0 for k in range(input.d)]
            t = self.q[j] * ((neighbor(big, 1, [-x for x in e], input.shape) - input.type(2) * u) + neighbor(big, 1, e, input.shape))
            lap = t if lap is None else lap + t
        return lap

    def least_eigenvalue(self):
        """Not above the smallest eigenvalue of -laplace that is not 0."""
        below = lambda angle: (angle * angle) * (1 - (angle * angle) / 12)
        total, least = 0.0, 0.0
        for q, n, low, high in zip(self.exact_q, self.input.shape, self.input.low, self.input.high):
            if self.singular:
                if n > 1:
                    value = q * below(((2 if low == "periodic" else 1) * math.pi) / n)
                    least = min(least, value) if least > 0 else value
            else:
                length = n + 0.5 * sum(isinstance(rule, dict) and "fixed" in rule for rule in (low, high))
                values = sum(isinstance(rule, dict) for rule in (low, high))
                total = total + q * below(((0.5 * values) * math.pi) / length)
        return least if self.singular else total

    def product(self, a, b):
        return tree_sum(a.astype(np.float64) * b.astype(np.float64), TILES[self.input.d])

    def without_mean(self, u):
        if not self.singular:
            return u
        return u - self.input.type(tree_sum(u.astype(np.float64), TILES[self.input.d]) / u.size)

    def step(self, u):
        r = self.f + self.laplace(u)
        return self.without_mean(u + (self.omega * r) / self.diagonal)

    def norm_square(self, total):
        r = self.f + self.laplace(self.u)
        return self.product(r, r)

    def converged(self, limit, total):
        return math.sqrt(self.norm_square(total)) <= (limit * math.sqrt(self.first) if self.first > 0 else limit)


class ConjugateGradients(Poisson):
    def begin(self, solver):
        self.r = self.f + self.laplace(self.u)
        self.p, self.rr = self.r, self.product(self.r, self.r)

    def fields(self):
        return {"u": (self.u, b"state"), "r": (self.r, b"auxiliary"), "p": (self.p, b"auxiliary")}

    def advance(self):
        number, ap = self.input.type, -self.laplace(self.p, True)
        curvature = self.product(self.p, ap)
        alpha = number(self.rr / curvature if curvature else 0)
        self.u, self.r = self.without_mean(self.u + alpha * self.p), self.r - alpha * ap
        rr = self.product(self.r, self.r)
        self.p = self.r + number(rr / self.rr if self.rr else 0) * self.p
        self.rr = rr
        return lambda: rr

    def norm_square(self, total):
        return total


class RedBlack(Poisson):
    def begin(self, solver):
        input = self.input
        odd = any(low == "periodic" and n > 1 and n % 2 for low, n in zip(input.low, input.shape))
        if self.omega is None:
            part = self.least_eigenvalue() / self.exact_diagonal
            self.omega = 1.0 if odd or part == 0 else 2 / (1 + math.sqrt(part * (2 - part)))
        diagonal = np.zeros(input.shape)
        for j, (q, n, low, high) in enumerate(zip(self.exact_q, input.shape, input.low, input.high)):
            times = np.full(n, 0.0 if low == "periodic" and n == 1 else 2.0)
            for at, rule in ((0, low), (-1, high)):
                kind, _, keys = kind_and_value(rule)
                if kind == "robin":
                    a, b = 0.5 * float(keys["a"]), float(keys["b"]) / input.h[j]
                    times[at] += (a - b) / (a + b)
                else:
                    times[at] += {"neumann": -1, "dirichlet": 1}.get(kind, 0)
            diagonal = diagonal + (times * q).reshape([-1 if k == j else 1 for k in range(input.d)])
        self.weight = np.divide(self.omega, diagonal, out=np.zeros(input.shape), where=diagonal != 0).astype(input.type)
        self.black = sum(np.indices(input.shape)) % 2 == 1

    def step(self, u):
        for changes in (~self.black, self.black):
            u = np.where(changes, u + self.weight * (self.f + self.laplace(u)), u)
        return self.without_mean(u)


class Chebyshev(Poisson):
    def begin(self, solver):
        low = float(solver.get("lambda_low", self.least_eigenvalue()))
        high = float(solver.get("lambda_high", 2 * self.exact_diagonal))
        part = (high - low) / (high + low)
        self.centre, self.kappa, self.weight, self.steps = (high + low) / 2, (part * part) / 4, 2.0, 0
        self.previous = self.u

    def fields(self):
        return {"u": (self.u, b"state"), "u_previous": (self.previous, b"auxiliary")}

    def step(self, u):
        self.steps += 1
        if self.steps == 1:
            a, b = 0.0, 1 / self.centre
        else:
            weight = 1 / (1 - self.kappa * self.weight)
            a, b, self.weight = (self.kappa * weight) * self.weight, weight / self.centre, weight
        a, b = self.input.type(a), self.input.type(b)
        r = self.f + self.laplace(u)
        new = self.without_mean(u + (a * (u - self.previous) + b * r))
        self.previous = u
        return new


class CellFunction(Stepper):
    """Solvers that are functions of a cell: they compute in binary64 and round their results once to the fields' type."""

    NAMES, BEFORE, COEFFICIENTS, REACH = ("u",), (), {}, 1

    def __init__(self, input):
        self.input, self.n, s = input, 0, input.data["solver"]
        only = len(self.NAMES) == 1 and "u" not in input.data["initial"]
        self.now = [initial_field(input, field=None if only else n) for n in self.NAMES]
        self.r = [1 / (h * h) for h in input.h]
        self.R = 0.0
        for r in self.r:
            self.R = self.R + r
        self.given, self.largest = {}, {}
        for name, fallback in self.COEFFICIENTS.items():
            spec = s.get(name, fallback)
            if isinstance(spec, dict):
                field, self.largest[name] = initial_field(input, ("solver", name)), self.magnitude(spec)
            else:
                field, self.largest[name] = self.formula(name, spec, name in s)
            self.given[name] = self.extended(field.astype(input.type), mirrored=True)
        self.mask = initial_field(input, ("solver", "mask")) != 0 if "mask" in s else None
        self.mirrors = self.extended(self.mask.astype(input.type), mirrored=True) if s.get("mask", {}).get("rule") == "mirror" else None
        self.limit_dt(s)
        self.before = self.begin()

    def formula(self, name, number, is_there):
        return np.full(self.input.shape, float(number)), abs(float(number))

    def magnitude(self, spec):
        input, kind = self.input, spec["kind"]
        if kind == "linear":
            corners = itertools.product(*[(0, n - 1) for n in input.shape])
            values = []
            for c in corners:
                v = float(spec.get("value", 0.0))
                for j, i in enumerate(c):
                    v = v + float(spec["gradient"][j]) * input.centres(j)[i]
                values.append(abs(v))
            return max(values)
        pairs = {"constant": ("value",), "sine": ("amplitude",), "gaussian": ("amplitude",), "box": ("inside", "outside"),
                 "checkerboard": ("even", "odd"), "random": ("low", "high")}
        defaults = {"amplitude": 1.0, "inside": 1.0, "odd": 1.0, "high": 1.0}
        return max(abs(float(spec.get(k, defaults.get(k, 0.0)))) for k in pairs[kind])

    def limit_dt(self, s):
        self.dt = float(s["dt"]) if "dt" in s else float(s.get("cfl", 0.9)) * self.limit()

    def begin(self):
        return []

    def extended(self, u, mirrored=False, field="u", after=0.0):
        """With outside cells, at so many steps after the step's begin."""
        input = self.input
        low, high = input.low, input.high
        if not mirrored:
            return outside(u, input, self.REACH, t=self.n * self.dt + after * self.dt, field=field).astype(np.float64)
        input.low = ["neumann" if r != "periodic" else r for r in low]
        input.high = ["neumann" if r != "periodic" else r for r in high]
        big = outside(u, input, self.REACH).astype(np.float64)
        input.low, input.high = low, high
        return big

    def near(self, big, j, k):
        """The neighbor's value; of the fields the cell's own where the neighbor is a masked cell that mirrors."""
        at = lambda field, k: neighbor(field, self.REACH, [k if x == j else 0 for x in range(self.input.d)], self.input.shape)
        if self.mirrors is None or any(big is c for c in self.given.values()):
            return at(big, k)
        return np.where(at(self.mirrors, k) != 0, at(big, 0), at(big, k))

    def laplace(self, u, field="u"):
        big, lap = self.extended(u, field=field), None
        for j, r in enumerate(self.r):
            t = r * ((self.near(big, j, -1) - 2.0 * u.astype(np.float64)) + self.near(big, j, 1))
            lap = t if lap is None else lap + t
        return lap

    def coefficient(self, name):
        return self.near(self.given[name], 0, 0)

    def source(self, name, after):
        """Of a field, so many steps after the step's begin."""
        tables, t = self.input.data["source"], self.n * self.dt + after * self.dt
        if len(self.NAMES) == 1:
            return initial_field(self.input, "source", t=t)
        return initial_field(self.input, "source", name, t) if name in tables else np.zeros(self.input.shape, self.input.type)

    def keep(self, new, old, after=0.0, weight=None):
        """The fields' type; then the sources, so much of them as the function adds; masked cells keep their values."""
        new, number = [v.astype(self.input.type) for v in new], self.input.type
        if "source" in self.input.data:
            weight = self.dt if weight is None else weight
            new = [(v.astype(np.float64) + weight * self.source(name, after).astype(np.float64)).astype(number)
                   for name, v in zip(self.NAMES, new)]
        return new if self.mask is None else [np.where(self.mask, o, v) for v, o in zip(new, old)]

    def stages(self, now):
        return self.keep(self.function(*now), now)

    def fields(self):
        state = {n: (v, b"state") for n, v in zip(self.NAMES, self.now)}
        return state | {n: (v, b"auxiliary") for n, v in zip(self.BEFORE, self.before)}

    @property
    def u(self):
        return self.now[0]

    def advance(self):
        old = self.now
        self.now = self.stages(old)
        after = self.now
        if self.BEFORE:
            self.before = old
        self.n += 1

        def squares():
            total = None
            for a, b in zip(after, old):
                d = a.astype(np.float64) - b.astype(np.float64)
                total = d * d if total is None else total + d * d
            return total

        return lambda: change_sum(self.input, squares())


class GrayScott(CellFunction):
    NAMES = ("u", "v")

    def limit(self):
        self.parameters()
        return 1 / (2 * max(self.Du, self.Dv) * self.R + (self.F + self.k))

    def parameters(self):
        s = self.input.data["solver"]
        self.Du, self.Dv, self.F, self.k = [float(s.get(n, x)) for n, x in (("Du", 2e-5), ("Dv", 1e-5), ("F", 0.04), ("k", 0.06))]

    def function(self, uu, vv):
        self.parameters()
        u, v, dt = uu.astype(np.float64), vv.astype(np.float64), self.dt
        uvv = u * (v * v)
        return (u + dt * ((self.Du * self.laplace(uu) - uvv) + self.F * (1 - u)),
                v + dt * ((self.Dv * self.laplace(vv, "v") + uvv) - (self.F + self.k) * v))


class HeatInField(CellFunction):
    COEFFICIENTS = {"kappa": 1.0}

    def limit(self):
        return 1 / ((2 * self.largest["kappa"]) * self.R)

    def function(self, u):
        big, kappa, total = self.extended(u), self.given["kappa"], None
        here, k = u.astype(np.float64), self.coefficient("kappa")
        for j, r in enumerate(self.r):
            above = (0.5 * (k + self.near(kappa, j, 1))) * (self.near(big, j, 1) - here)
            below = (0.5 * (self.near(kappa, j, -1) + k)) * (here - self.near(big, j, -1))
            t = r * (above - below)
            total = t if total is None else total + t
        return [here + self.dt * total]


class Wave(CellFunction):
    BEFORE, COEFFICIENTS = ("u_before",), {"c": 1.0, "sigma": 0.0}

    def formula(self, name, number, is_there):
        s, input = self.input.data["solver"], self.input
        layer, damping = float(s.get("layer", 0.0)), float(s.get("damping", 0.0))
        if name != "sigma" or is_there or layer <= 0 or damping <= 0:
            return super().formula(name, number, is_there)
        sigma = np.zeros(input.shape)
        for i in itertools.product(*[range(n) for n in input.shape]):
            x = math.inf
            for j in range(input.d):
                if input.low[j] != "periodic":
                    y = (i[j] + 0.5) * input.h[j]
                    x = min(x, y, input.length[j] - y)
            if x < layer:
                q = (layer - x) / layer
                sigma[i] = damping * (q * q)
        return sigma, damping

    def limit(self):
        return 1 / (self.largest["c"] * math.sqrt(self.R))

    def begin(self):
        u, c, dt = self.now[0], self.coefficient("c"), self.dt
        return self.keep([u.astype(np.float64) + (0.5 * (dt * dt)) * ((c * c) * self.laplace(u))], self.now, weight=0.5 * (dt * dt))

    def stages(self, now):
        return self.keep(self.function(*now), now, weight=(self.dt * self.dt) / (1.0 + 0.5 * (self.coefficient("sigma") * self.dt)))

    def function(self, u):
        c, s, dt = self.coefficient("c"), 0.5 * (self.coefficient("sigma") * self.dt), self.dt
        before = self.before[0].astype(np.float64)
        return [((2.0 * u.astype(np.float64) - (1.0 - s) * before) + (dt * dt) * ((c * c) * self.laplace(u))) / (1.0 + s)]


class Advection(CellFunction):
    COEFFICIENTS = {"v%d" % j: 0.0 for j in range(4)}

    def __init__(self, input):
        self.COEFFICIENTS = {"v%d" % j: 0.0 for j in range(input.d)}
        self.third = input.data["solver"].get("method", "upwind3") == "upwind3"
        self.REACH = 2 if self.third else 1
        super().__init__(input)

    def limit(self):
        total = 0.0
        for j, h in enumerate(self.input.h):
            total = total + self.largest["v%d" % j] / h
        return 1 / total

    def euler(self, w, after=0.0):
        big, here, total = self.extended(w, after=after), w.astype(np.float64), None
        for j, h in enumerate(self.input.h):
            v, inverse = self.coefficient("v%d" % j), 1 / h
            at = lambda k: self.near(big, j, k)
            if self.third:
                forward = (((2.0 * at(1) + 3.0 * here) - 6.0 * at(-1)) + at(-2)) * (inverse / 6.0)
                backward = -((((2.0 * at(-1) + 3.0 * here) - 6.0 * at(1)) + at(2)) * (inverse / 6.0))
            else:
                forward, backward = (here - at(-1)) * inverse, (at(1) - here) * inverse
            a = v * np.where(v > 0, forward, backward)
            total = a if total is None else total + a
        return here - self.dt * total

    def stages(self, now):
        if not self.third:
            return self.keep([self.euler(now[0])], now)
        begin = now[0].astype(np.float64)
        w1 = self.keep([self.euler(now[0])], now)
        w2 = self.keep([0.75 * begin + 0.25 * self.euler(w1[0], 1.0)], w1, 1.0, 0.25 * self.dt)
        return self.keep([(1.0 / 3.0) * begin + (2.0 / 3.0) * self.euler(w2[0], 0.5)], w2, 0.5, (2.0 / 3.0) * self.dt)


class Acoustics(Stepper):
    """Velocities on faces from the old pressure, then the pressure in cells from the new velocities."""

    def __init__(self, input):
        self.input, self.n, s = input, 0, input.data["solver"]
        self.u = initial_field(input, field="p")
        self.v = [initial_field(input.on_faces(j), field="v%d" % j) for j in range(input.d)]
        density, modulus, total = [s.get(name, 1.0) for name in ("density", "bulk_modulus")] + [0.0]
        for h in input.h:
            total = total + 1 / (h * h)
        mirrored = copy.copy(input)
        mirrored.rules = {}
        mirrored.low, mirrored.high = [["neumann" if r != "periodic" else r for r in side] for side in (input.low, input.high)]
        self.mask = outside(initial_field(input, ("solver", "mask")), mirrored, 1) != 0 if "mask" in s else None
        if isinstance(density, dict) or isinstance(modulus, dict):
            field = lambda name, x: initial_field(input, ("solver", name)) if isinstance(x, dict) else np.full(input.shape, float(x)).astype(input.type)
            rho, bulk, self.dt = field("density", density), field("bulk_modulus", modulus).astype(np.float64), float(s["dt"])
            rho = outside(rho, mirrored, 1).astype(np.float64)
            self.a = [(self.dt / (0.5 * (self.part(rho, j, 0) + self.part(rho, j, 1)))) / h for j, h in enumerate(input.h)]
            self.b = [(self.dt * bulk) / h for h in input.h]
        else:
            limit = 1 / (math.sqrt(float(modulus) / float(density)) * math.sqrt(total))
            self.dt = float(s["dt"]) if "dt" in s else float(s.get("cfl", 0.9)) * limit
            self.a = [(self.dt / float(density)) / h for h in input.h]
            self.b = [(self.dt * float(modulus)) / h for h in input.h]

    def part(self, big, j, first):
        """Of cells with one layer outside those below (first = 0) or above (1) each face of dimension j."""
        return big[tuple(slice(first if k == j else 1, (first if k == j else 1) + n) for k, n in enumerate(self.v[j].shape))]

    def fields(self):
        return {"p": (self.u, b"state")} | {"v%d" % j: (v, b"state") for j, v in enumerate(self.v)}

    def velocity(self, big, j, t):
        input, v, lower, upper = self.input, self.v[j], self.part(big, j, 0), self.part(big, j, 1)
        if self.mask is not None:
            no_lower, no_upper = self.part(self.mask, j, 0), self.part(self.mask, j, 1)
            if input.data["solver"]["mask"].get("rule") == "mirror":
                lower, upper = np.where(no_lower, upper, lower), np.where(no_upper, lower, upper)
        new = (v.astype(np.float64) - self.a[j] * (upper - lower)).astype(input.type)
        if self.mask is not None:
            new = np.where(no_lower & no_upper, v, new)
        for side, rules in enumerate(input.sides("v%d" % j)):
            kind, value, _ = kind_and_value(rules[j])
            if kind in ("dirichlet", "fixed"):
                face = tuple(slice(-side, None if side else 1) if k == j else slice(None) for k in range(input.d))
                new[face] = boundary_value(input, value, j, side, None, new[face].shape, t).astype(input.type)
        return new

    def advance(self):
        input, p, before = self.input, self.u, self.v
        t, total = self.n * self.dt, None
        big = outside(p, input, 1, t=t, field="p").astype(np.float64)
        self.v = [self.velocity(big, j, t) for j in range(input.d)]
        for j, v in enumerate(self.v):
            wide = np.concatenate([v, np.take(v, [0], axis=j)], axis=j) if input.low[j] == "periodic" else v
            term = self.b[j] * np.diff(wide.astype(np.float64), axis=j)
            total = term if total is None else total + term
        new = p.astype(np.float64) - total
        if "source" in input.data:
            new = new + self.dt * initial_field(input, "source", t=t + 0.5 * self.dt).astype(np.float64)
        self.u = new.astype(input.type)
        if self.mask is not None:
            self.u = np.where(self.mask[(slice(1, -1),) * input.d], p, self.u)
        self.n += 1
        pairs = [(self.u, p)] + list(zip(self.v, before))

        def sums():
            total = None
            for new, old in pairs:
                change = new.astype(np.float64) - old.astype(np.float64)
                s = change_sum(input, change * change)
                total = s if total is None else total + s
            return total

        return sums


POISSON = {"jacobi": Poisson, "cg": ConjugateGradients, "red_black": RedBlack, "chebyshev": Chebyshev}


def stepper_of(input):
    solver = input.data["solver"]
    if solver["kind"] == "poisson":
        return POISSON[solver.get("method", "jacobi")](input)
    if solver["kind"] == "heat" and (isinstance(solver.get("kappa"), dict) or "mask" in solver or "source" in input.data):
        return HeatInField(input)
    return {"acoustics": Acoustics, "advection": Advection, "gray_scott": GrayScott, "life": Life, "wave": Wave}.get(solver["kind"], Stepper)(input)


# --- comparison -------------------------------------------------------------------------------------------------------

def same_bits(a, b):
    return struct.pack("<d", a) == struct.pack("<d", b)


class Check:
    def __init__(self):
        self.done = self.failed = 0

    def that(self, ok, what):
        self.done += 1
        if not ok:
            self.failed += 1
            print("FAILED:", what, file=sys.stderr)


def change_sum(input, squares):
    """By the method of the input: the tree, or the exact sum of the tile values."""
    if input.method == "exact":
        return math.fsum(tile_values(squares, TILES[input.d]).ravel())
    return tree_sum(squares, TILES[input.d])


def check_field(check, what, dataset, u, role, face):
    stored, attributes = dataset[...], dataset.attrs
    check.that(stored.dtype == u.dtype and stored.tobytes() == u.tobytes(), what + "field, %d of %d bytes differ" % (
        np.count_nonzero(stored.view(np.uint8).reshape(-1) != np.ascontiguousarray(u).view(np.uint8).reshape(-1)), u.nbytes))
    check.that(attributes["digest"].decode() == digest(u), what + "digest")
    check.that(same_bits(attributes["min"], float(u.min())), what + "min")
    check.that(same_bits(attributes["max"], float(u.max())), what + "max")
    check.that(attributes["nan_count"] == 0, what + "NaN count")
    check.that(attributes["role"] == role, what + "role")
    check.that(attributes.get("face", -1) == face, what + "face")


def check_file(check, name, path, input, stepper, step, total):
    with h5py.File(path) as f:
        what, reduction, cells = "%s step %d: " % (name, step), f["reduction"].attrs, stepper.u.size
        fields = stepper.fields()
        check.that(sorted(f["fields"]) == sorted(fields), what + "fields %r" % sorted(f["fields"]))
        for field, (u, role) in fields.items():
            face = int(field[1:]) if isinstance(stepper, Acoustics) and field != "p" else -1
            check_field(check, what + field + " ", f["fields"][field], u, role, face)
        check.that(tuple(f.attrs["format_version"]) == (1, 1 if isinstance(stepper, Acoustics) else 0), what + "version")
        check.that(same_bits(reduction["change_sum"], total), what + "change sum %r against %r" % (reduction["change_sum"], total))
        check.that(same_bits(reduction["residual"], math.sqrt(total / cells)), what + "residual")
        check.that(reduction["method"].decode() == input.method, what + "method")
        check.that(reduction["residual_step"] == step, what + "residual step")
        check.that(tuple(reduction["tile"]) == TILES[input.d] and reduction["tree_version"] == 1, what + "tree")
        check.that(f["time"].attrs["step"] == step and same_bits(f["time"].attrs["dt"], stepper.dt)
                   and same_bits(f["time"].attrs["time"], step * stepper.dt), what + "time")
        check.that(tuple(f["grid"].attrs["shape"]) == input.shape and list(f["grid"].attrs["spacing"]) == input.h, what + "grid")
        check.that(f["config"].attrs["digest"].decode() == text_digest(f["config/text"][...].tobytes()), what + "config digest")
        check.that(f.attrs["complete"] == 1 and f.attrs["format"] == b"isohalo", what + "root")


def check_values_of_the_design(check):
    for shape, expected in (((61, 35), 7.426660471382281), ((9, 11, 37), -0.2815756852348681), ((1000,), -20.450635429183016)):
        z = mix(np.uint64(42) + counters(shape))
        v = -1.0 + 2.0 * ((z >> np.uint64(11)).astype(np.float64) * 2.0**-53)
        check.that(tree_sum(v, TILES[len(shape)]) == expected, "check value of %r" % (shape,))


def main():
    cases, reference = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    np.seterr(over="ignore")
    check = Check()
    check_values_of_the_design(check)
    for line in cases.read_text().splitlines():
        name, path, _, *overrides = line.split()
        input = Input(path, overrides)
        stepper = stepper_of(input)
        run, every, files = input.data["run"], input.data["output"].get("checkpoint_every", 0), []
        limit, tested = run.get("stop_residual", 0), run.get("residual_every", 10)
        for step in range(1, run["steps"] + 1):
            total = stepper.advance()
            stop = step == run["steps"] or (limit and step % tested == 0 and stepper.converged(limit, total()))
            if stop or (every and step % every == 0):
                files.append("step_%08d.h5" % step)
                check_file(check, name, reference / name / files[-1], input, stepper, step, total())
            if stop:
                break
        check.that(files == sorted(p.name for p in (reference / name).glob("step_*.h5")), name + " stops elsewhere")
    print("%d checks, %d failed" % (check.done, check.failed))
    sys.exit(1 if check.failed else 0)


if __name__ == "__main__":
    main()
