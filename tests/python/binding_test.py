"""The Python package: ghosts of arrays of every type and dimension hold the cell that they should, sums the bits of one
rank, and wrong calls are exceptions with the library's words. Under mpiexec, by run.py."""
import struct
import sys
import types

import isohalo
import numpy as np
from mpi4py import MPI

WORLD, failures = MPI.COMM_WORLD, []


def check(ok, what):
    if not ok:
        failures.append(what)
        print("rank %d: %s" % (WORLD.rank, what), file=sys.stderr)


def bits(x):
    return struct.pack("d", x)


def refused(words, work):
    try:
        work()
    except isohalo.IsohaloError as e:
        check(words in str(e) and e.code != 0, "%r has not the words %r" % (str(e), words))
    else:
        check(False, "no error with the words %r" % words)


def right(domain, layers, needed):
    """Global numbers of the cells of a block with ghosts; -1 beyond the sides that are not periodic, and where not
    needed(ghost layers per dimension)."""
    places, away = [], []
    for low, n, total, wraps in zip(domain.start, domain.owned, domain.shape, domain.periodic):
        i = np.arange(low - layers, low + n + layers)
        places.append(np.where((i >= 0) & (i < total), i, i % total if wraps else -1))
        x = np.arange(-layers, n + layers)
        away.append(np.where(x < 0, -x, np.where(x >= n, x - n + 1, 0)))
    places, away = np.meshgrid(*places, indexing="ij"), np.meshgrid(*away, indexing="ij")
    number = np.zeros(places[0].shape, dtype=np.int64)
    for i, total in zip(places, domain.shape):
        number = np.where((number < 0) | (i < 0), -1, number * total + i)
    return np.where(needed(away), number, -1)


def filled(halo, expected, dtype):
    a = np.full(expected.shape, -1).astype(dtype)
    halo.inner(a)[...] = halo.inner(expected).astype(dtype)
    return a


def ghosts():
    for shape, periodic in (((37,), True), ((17, 11), (True, False)), ((9, 7, 13), (False, True, True))):
        domain = isohalo.Domain(WORLD, shape, periodic=periodic)
        wraps = periodic if isinstance(periodic, tuple) else (periodic,)
        check(domain.shape == shape and domain.periodic == wraps, "the grid of %s" % (shape,))
        for name, needed in (("moore", lambda away: np.max(away, axis=0) <= 2),
                             ("von_neumann", lambda away: np.sum(away, axis=0) <= 2)):
            halo = domain.halo(1, depth=2, shape=name, width=3)
            expected = right(domain, 3, needed)
            arrays = [filled(halo, expected, t) for t in (np.float64, np.int32, np.float32, np.int64, np.complex128)]
            halo.exchange(*arrays)
            for a in arrays:
                check((a.real.astype(np.int64) == expected).all(), "%s of %s, %s" % (name, shape, a.dtype))
            a, b = filled(halo, expected, np.float64), halo.zeros(components=2)
            b[...] = -1
            halo.inner(b)[..., 0] = halo.inner(expected)
            with halo.start(a, b):
                halo.progress()
                check((halo.inner(a) == halo.inner(expected)).all(), "cells while in flight")
            check((a == expected).all() and (b[..., 0] == expected).all() and (b[..., 1] == -1).all(), "in a with")
            halo.free()
        domain.free()


def one_sided_and_structured():
    domain = isohalo.Domain(WORLD, (11, 13), periodic=True, process_grid=(1, WORLD.size))
    check(domain.owned[0] == 11 and domain.coords == (0, WORLD.rank), "process grid")
    halo = domain.halo([(0, -2)])
    expected = right(domain, 2, lambda away: (away[0] == 0) & ((away[1] == 0) | (np.arange(away[1].shape[1]) < 2)))
    a = np.zeros(halo.array_shape, dtype=[("mass", "f8"), ("kind", "i2")])
    a["mass"] = a["kind"] = -1
    halo.inner(a)["mass"] = halo.inner(a)["kind"] = halo.inner(expected)
    halo.exchange(a)
    check((a["mass"] == expected).all() and (a["kind"] == expected).all(), "offsets, records")
    halo.free()
    domain.free()


def records_and_many():
    """Members of records in one exchange with arrays of their own, whatever their number."""
    domain = isohalo.Domain(WORLD, (12, 10), periodic=(True, False))
    halo = domain.halo(1, depth=2, shape="moore")
    expected = right(domain, 2, lambda away: np.max(away, axis=0) <= 2)
    records = np.zeros(halo.array_shape, dtype=[("kind", "i2"), ("flow", "f8", (3,)), ("mass", "f4")])
    for name in records.dtype.names:
        records[name][...] = -1
    halo.inner(records)["mass"] = halo.inner(expected)
    halo.inner(records)["flow"] = halo.inner(expected)[..., None] * [1, 2, 3]
    many = [filled(halo, expected, t) for t in [np.float64, np.int16] * 10]
    halo.exchange(records["mass"], *many, records["flow"])
    check((records["mass"] == expected).all(), "a member of records")
    check((records["flow"] == np.where(expected[..., None] < 0, -1, expected[..., None] * [1, 2, 3])).all(), "of components")
    check((records["kind"] == -1).all() and all((a == expected).all() for a in many), "many arrays")
    halo.free()
    domain.free()


def faces():
    """With cells, in the same exchange: face i of a dimension is below cell i, and there is one more at a closed side."""
    domain = isohalo.Domain(WORLD, (9, 8), periodic=(False, True))
    for halo, needed in ((domain.halo(1, depth=2, shape="moore"), lambda away: np.max(away, axis=0) <= 2),
                         (domain.halo([(-1, 0), (1, 0), (0, -1), (0, 1)], depth=2), lambda away: np.sum(away, axis=0) <= 2)):
        arrays, rights = [], []
        for face in (None, 0, 1):
            box = types.SimpleNamespace(start=domain.start, periodic=domain.periodic, owned=domain.owned, shape=domain.shape)
            if face is not None:
                at_end = domain.start[face] + domain.owned[face] == domain.shape[face] and not domain.periodic[face]
                box.owned = tuple(n + (j == face and at_end) for j, n in enumerate(domain.owned))
                box.shape = tuple(n + (j == face and not domain.periodic[face]) for j, n in enumerate(domain.shape))
                check(domain.faces(face) == box.owned, "how many faces")
            rights.append(right(box, 2, needed))
            a = halo.zeros(face=face)
            a[...] = -1
            halo.inner(a)[...] = halo.inner(rights[-1])
            arrays.append(a)
        halo.exchange(isohalo.on_faces(arrays[1], 0), arrays[0], isohalo.on_faces(arrays[2], 1))
        check(all((a == b).all() for a, b in zip(arrays, rights)), "faces and cells")
        if domain.faces(0) != domain.owned:
            refused("owned faces and 2 ghost layers", lambda: halo.exchange(isohalo.on_faces(arrays[0], 0)))
        halo.free()
    refused("no faces of dimension 2", lambda: domain.faces(2))
    domain.free()


def own_distribution():
    dims = MPI.Compute_dims(WORLD.size, 2)
    cart = WORLD.Create_cart(dims, periods=(True, False))
    domain = isohalo.Domain.from_cart(cart, (2 + cart.coords[0], 3))
    check(domain.shape == (sum(2 + c for c in range(dims[0])), 3 * dims[1]) and domain.start[1] == 3 * cart.coords[1],
          "grid of blocks")
    halo = domain.halo(radius=1, shape="moore")
    expected = right(domain, 1, lambda away: np.max(away, axis=0) <= 1)
    a = filled(halo, expected, np.float64)
    halo.exchange(a)
    check((a == expected).all(), "ghosts of own blocks")
    check(domain.sum(halo.inner(a)) == sum(range(domain.shape[0] * domain.shape[1])), "sum of own blocks")
    halo.free()
    domain.free()
    cart.Free()


def sums():
    i = np.arange(23 * 19)
    whole = np.ldexp(np.sin(0.7 * i), i * 7 % 60 - 30)  # every order of adding has bits of its own
    domain, alone = isohalo.Domain(WORLD, (23, 19)), isohalo.Domain(MPI.COMM_SELF, (23, 19))
    block = whole.reshape(23, 19)[domain.slices]
    wide = np.pad(block, 1, constant_values=np.nan)
    for op in ("sum", "min", "max", "exact_sum"):
        expected = bits(getattr(alone, op)(whole.reshape(23, 19)))
        check(bits(getattr(domain, op)(block)) == expected, op + " of cells")
        check(bits(getattr(domain, op)(wide)) == expected, op + " with ghosts")
        low, high = (whole.size * (WORLD.rank + k) // WORLD.size for k in (0, 1))
        reduce = getattr(isohalo, "reduce_" + op)
        expected = bits(reduce(MPI.COMM_SELF, whole))
        check(bits(reduce(WORLD, whole[low:high])) == expected, op + " of ranges")
        check(bits(reduce(WORLD, whole if WORLD.rank == WORLD.size - 1 else [])) == expected, op + " on one rank")
    check(isohalo.reduce_max(WORLD, whole[low:high]) == whole.max(), "max")
    check(isohalo.reduce_sum(WORLD, np.arange(6, dtype=np.int16)[::2]) == 6 * WORLD.size, "sum of integers, strided")
    reducer = isohalo.Reducer(WORLD, 2)
    reducer.start(np.array([1.0, 2.0]))
    check(reducer.wait() == 3 * WORLD.size and reducer.reduce([0.5, 0.25]) == 0.75 * WORLD.size, "reducer")
    reducer.free()
    refused("no reducer", lambda: reducer.reduce([1, 2]))
    domain.free()
    alone.free()


def errors():
    refused("must have a value per dimension", lambda: isohalo.Domain(WORLD, (4, 4), periodic=(True,)))
    refused("1 to 4 dimensions", lambda: isohalo.Domain(WORLD, (9,) * 5))
    refused("product is the number of ranks", lambda: isohalo.Domain(WORLD, (9, 9), process_grid=(WORLD.size + 1, 1)))
    refused("Cartesian topology", lambda: isohalo.Domain.from_cart(WORLD, (4, 4)))
    if WORLD.size > 1:
        refused("differ between ranks", lambda: isohalo.Domain(WORLD, (9, 9 + WORLD.rank)))
        refused("(rank 1)", lambda: isohalo.Domain(WORLD, (9, -1 if WORLD.rank == 1 else 9)))
    refused("integer", lambda: isohalo.Domain(WORLD, (10.9, 8)))
    domain = isohalo.Domain(WORLD, (10, 8))
    refused("ghost layers", lambda: domain.halo(1, depth=2, width=1))
    refused("unknown shape", lambda: domain.halo(1, shape="ball"))
    refused("2 numbers each", lambda: domain.halo([(1, 2, 3)]))
    refused("depth -1 is negative", lambda: domain.halo(1, depth=-1))
    refused("integer", lambda: domain.halo(1.9))
    refused("integer", lambda: domain.halo([(0.5, 1)]))
    if WORLD.size > 1:
        refused("differ between ranks", lambda: domain.halo(1 + (WORLD.rank == 1)))
    halo = domain.halo(1)
    good = halo.zeros()
    last = WORLD.rank == WORLD.size - 1  # on one rank: on all, the first time
    refused("it must have", lambda: halo.exchange(np.zeros((3, 3)) if last else good))
    if WORLD.size > 1:
        refused("differ between ranks", lambda: halo.exchange(good.astype(np.float32) if last else good))
    refused("C-contiguous", lambda: halo.exchange(np.zeros(halo.array_shape[::-1]).T))
    refused("Python objects", lambda: halo.exchange(np.zeros(halo.array_shape, dtype=object)))
    refused("finish without start", halo.finish)
    with halo.start(good):
        refused("in flight", lambda: halo.start(good))
    refused("one by one", lambda: halo.start((good, good)))
    refused("unknown operation", lambda: domain.reducer("product"))
    refused("real numbers", lambda: domain.sum(halo.inner(good) * 1j))
    refused("it must have", lambda: domain.sum(np.zeros((1, 1, 1))[0, :, :0]))
    refused("number", lambda: isohalo.reduce_sum(WORLD, []))
    halo.free()
    refused("without start", halo.finish)
    domain.free()


for part in (ghosts, one_sided_and_structured, records_and_many, faces, own_distribution, sums, errors):
    part()
kept = isohalo.Domain(WORLD, (8, 8))
kept_halo = kept.halo(1)
total, rank = WORLD.allreduce(len(failures)), WORLD.rank
MPI.Finalize()
refused("after MPI_Finalize", lambda: isohalo.Domain(WORLD, (8, 8)))
refused("after MPI_Finalize", lambda: isohalo.Domain.from_cart(WORLD, (8, 8)))
refused("after MPI_Finalize", lambda: kept_halo.exchange(kept_halo.zeros()))
refused("after MPI_Finalize", kept.free)
total = total or len(failures)
if rank == 0:
    print("%d failures" % total)
sys.exit(1 if total else 0)
