"""Halo exchange and reductions of NumPy arrays, whose results do not depend on the number of ranks.

    from mpi4py import MPI
    import isohalo

    domain = isohalo.Domain(MPI.COMM_WORLD, (200, 300), periodic=True)
    halo = domain.halo(radius=1, depth=2)
    u = halo.zeros()
    halo.inner(u)[...] = 1
    halo.exchange(u)
    total = domain.sum(halo.inner(u))

Arrays are C order, the last dimension is the fastest. What is collective is called by all ranks of the communicator, in
the same order. Wrong calls raise `IsohaloError` with the library's message.
"""
from ._grid import Domain, Halo, on_faces
from ._library import IsohaloError
from ._reduce import Reducer, reduce_exact_sum, reduce_max, reduce_min, reduce_sum

__all__ = ["Domain", "Halo", "IsohaloError", "Reducer", "on_faces", "reduce_exact_sum", "reduce_max", "reduce_min",
           "reduce_sum"]
__version__ = "0.1.0"
