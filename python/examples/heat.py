"""The computation of embed_heat.cpp with NumPy: a torus, a halo two cells deep (two steps per exchange) and a residual
with the same bits on any number of ranks:  mpiexec -n 3 python3 python/examples/heat.py"""
import math

import isohalo
from mpi4py import MPI

# This rank owns a block of the torus; y is the slow dimension, x the fast one.
domain = isohalo.Domain(MPI.COMM_WORLD, (200, 300), periodic=True)
halo = domain.halo(radius=1, depth=2)
u, v = halo.zeros(), halo.zeros()
ys, xs = domain.slices
for y in range(ys.start, ys.stop):  # math.sin is the C library's, numpy.sin may have other bits
    halo.inner(u)[y - ys.start] = [math.sin(0.1 * y) * (x % 7) for x in range(xs.start, xs.stop)]


def step(u, v, layers):
    """Five points, on the owned cells and `layers` of ghosts around them."""
    ghosts = halo.width - layers
    (ly, lx), shift = u.shape, lambda low, n, by: slice(low + by, n - low + by)
    at = lambda dy, dx: u[shift(ghosts, ly, dy), shift(ghosts, lx, dx)]
    halo.inner(v, layers)[...] = at(0, 0) + 0.2 * (((at(-1, 0) + at(1, 0)) + (at(0, -1) + at(0, 1))) - 4 * at(0, 0))


for n in range(100):
    if n % 2 == 0:
        halo.exchange(u)
    step(u, v, 1 - n % 2)
    if n % 10 == 9:
        residual = math.sqrt(domain.sum((halo.inner(v) - halo.inner(u)) ** 2))
    u, v = v, u
if domain.comm.rank == 0:
    print("residual = %.17g" % residual)
halo.free()
domain.free()
