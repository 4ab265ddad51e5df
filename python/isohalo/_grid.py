"""Grids that are cut over ranks, and the ghosts of arrays on them."""
import ctypes
import operator

import numpy as np
from mpi4py import MPI

from ._library import ARRAY, HANDLE, LONG, MPI_HANDLE, IsohaloError, agree, call, handle_of, numbers, ready
from ._reduce import Reducer

SHAPES = {"moore": 0, "star": 1, "von_neumann": 2}


class Domain:
    """A grid of `shape` cells, 1 to 4 dimensions, cut into one block per rank of `comm`, which is left as it is.

    `periodic`: True, False, or one of them per dimension. `process_grid`: blocks per dimension; by default the library
    chooses. Results do not depend on it. Arguments are equal on all ranks. Collective.

    `shape`, `process_grid`, `periodic`, `coords`; `owned`: the extents of this rank's block; `start`: the global index of
    its first cell; `slices`: its place in an array of the whole grid; `comm`: a Cartesian communicator of our own.
    """

    def __init__(self, comm, shape, periodic=False, process_grid=None):
        ready()
        error, arguments = None, None
        try:
            shape = tuple(operator.index(n) for n in np.atleast_1d(shape))
            wraps = (bool(periodic),) * len(shape) if np.ndim(periodic) == 0 else tuple(bool(p) for p in periodic)
            if len(wraps) != len(shape):
                raise IsohaloError("domain: periodic %s must have a value per dimension of %s" % (wraps, shape))
            if process_grid is None:
                grid = numbers([0] * len(shape))
                call("process_grid", comm.size, len(shape), numbers(shape, LONG), grid)
            else:
                grid = tuple(operator.index(n) for n in process_grid)
                if len(grid) != len(shape) or min(grid) < 1 or np.prod(grid, dtype=object) != comm.size:
                    raise IsohaloError("domain: the process grid %s must have %d numbers whose product is the number of "
                                       "ranks, %d" % (grid, len(shape), comm.size))
                if any(g > n for g, n in zip(grid, shape)):
                    raise IsohaloError("domain: the process grid %s has more blocks than cells in a dimension" % (grid,))
            arguments = (shape, wraps, tuple(grid))
        except (IsohaloError, TypeError, ValueError) as e:
            error = str(e)
        agree(comm, error, arguments, "domain")
        self._begin(comm.Create_cart(grid, wraps, reorder=False))
        cuts = [[n * c // g for c in (at, at + 1)] for n, g, at in zip(shape, grid, self.coords)]
        self.shape, self.start = shape, tuple(low for low, _ in cuts)
        self.owned = tuple(high - low for low, high in cuts)

    @classmethod
    def from_cart(cls, cart, owned):
        """The program's own distribution: a communicator with a Cartesian topology, on which this rank owns a block of
        `owned` cells; together the blocks tile a box. Collective."""
        ready()
        if cart.Get_topology() != MPI.CART:
            raise IsohaloError("domain: the communicator has no Cartesian topology", MPI.ERR_TOPOLOGY)
        everybody = cart.allgather(tuple(operator.index(n) for n in np.atleast_1d(owned)))
        if any(len(blocks) != cart.dim for blocks in everybody):
            raise IsohaloError("domain: owned must have a number per dimension of the communicator, %d" % cart.dim)
        self = cls.__new__(cls)
        self._begin(cart.Dup())
        self.owned = everybody[cart.rank]
        self.start, self.shape = [], []
        for j in range(cart.dim):
            line = {cart.Get_coords(r)[j]: blocks[j] for r, blocks in enumerate(everybody)}
            self.start.append(sum(n for c, n in line.items() if c < self.coords[j]))
            self.shape.append(sum(line.values()))
        self.start, self.shape = tuple(self.start), tuple(self.shape)
        return self

    def _begin(self, cart):
        cart.Set_errhandler(MPI.ERRORS_RETURN)
        grid, wraps, coords = cart.Get_topo()
        self.comm, self.process_grid, self.coords = cart, tuple(grid), tuple(coords)
        self.periodic, self._reducers = tuple(bool(w) for w in wraps), {}

    @property
    def slices(self):
        return tuple(slice(low, low + n) for low, n in zip(self.start, self.owned))

    def faces(self, dimension):
        """The extents of this rank's block of the faces between the cells of `dimension`, which begins at `start`: as many
        as cells, and one more where the block ends at the upper side of a dimension that is not periodic. Local."""
        if not 0 <= dimension < len(self.owned):
            raise IsohaloError("domain: there are no faces of dimension %d, the grid has %d" % (dimension, len(self.owned)))
        at_end = not self.periodic[dimension] and self.coords[dimension] == self.process_grid[dimension] - 1
        return tuple(n + (at_end and j == dimension) for j, n in enumerate(self.owned))

    def halo(self, stencil=1, depth=1, shape="star", width=None, radius=None):
        """The exchange of the ghosts that `depth` steps of a stencil read. Collective.

        `stencil`: a radius, of the given `shape` ("moore": a cube, "star": a cross, "von_neumann": a diamond); or the
        list of the relative offsets that it reads, such as [(-1, 0), (1, 0)]. `radius` is another name for it. Arrays
        have `width` ghost layers on every side, by default as many as are read.
        """
        return Halo(self, stencil if radius is None else radius, depth, shape, width)

    def reducer(self, op="sum", width=0):
        """A `Reducer` of one number per cell: arrays have shape owned + 2 width, ghosts are not read. Collective."""
        return Reducer._of_cells(self.comm, self.owned, width, op)

    def _reduce(self, op, values):
        values = np.asarray(values)
        if values.ndim != len(self.owned):
            raise IsohaloError("domain: the array has %d dimensions, the grid %d" % (values.ndim, len(self.owned)))
        width = (values.shape[0] - self.owned[0]) // 2
        if width < 0 or values.shape != tuple(n + 2 * width for n in self.owned):
            raise IsohaloError("domain: the array has shape %s, it must have %s, or as many ghosts on every side" %
                               (values.shape, self.owned))
        if (op, width) not in self._reducers:
            self._reducers[op, width] = self.reducer(op, width)
        return self._reducers[op, width].reduce(values)

    def sum(self, values):
        """The sum of one number per cell, the same bits on any ranks and cuts. `values`: this rank's block, of shape
        `owned`, or with the same number of ghosts on every side, which are not read. Collective, as those below."""
        return self._reduce("sum", values)

    def exact_sum(self, values):
        """The exact sum, rounded once."""
        return self._reduce("exact_sum", values)

    def min(self, values):
        """The smallest number; NaN wins."""
        return self._reduce("min", values)

    def max(self, values):
        """The largest number; NaN wins."""
        return self._reduce("max", values)

    def free(self):
        """Gives reducers and communicator back, after everything else that was made on it. Collective."""
        ready()
        while self._reducers:
            self._reducers.popitem()[1].free()
        self.comm.Free()


class Halo:
    """See `Domain.halo`. `width`: ghost layers on every side of an array.

    Arrays are C order, of shape owned + 2 width in each dimension; further dimensions are components of a cell. Any type
    without Python objects, the same on all ranks; also a member of an array of records, `records["energy"]`, whose other
    members keep their ghosts. Those of an exchange travel together. Beyond sides that are not periodic nothing is touched.
    Arrays that do not fit are an error on all ranks in the first exchange, later on that rank alone, and the others wait.
    """

    def __init__(self, domain, stencil, depth, shape, width):
        self._domain, self._halos, self._flight, self._agreed = domain, {}, None, False
        error, arguments = None, None
        try:
            self._describe(stencil, depth, shape, width)
            arguments = (self._offsets, self._reach, self._depth, shape, self.width)
        except (IsohaloError, TypeError, ValueError) as e:
            error = str(e)
        agree(domain.comm, error, arguments, "halo")
        self._handle(((8, 8, -1),))  # what is wrong shows here, not in the first exchange

    def _describe(self, stencil, depth, shape, width):
        if shape not in SHAPES:
            raise IsohaloError("halo: unknown shape %r: there are %s" % (shape, ", ".join(SHAPES)))
        self._depth, self._shape, self._offsets = operator.index(depth), SHAPES[shape], None
        if np.ndim(stencil) == 0:
            self._reach = operator.index(stencil)
        else:
            d = len(self._domain.shape)
            if any(np.shape(offset) != (d,) for offset in stencil):
                raise IsohaloError("halo: offsets must have %d numbers each" % d)
            self._offsets = [operator.index(x) for offset in stencil for x in offset]
            self._reach = max((abs(x) for x in self._offsets), default=0)
            if self._reach > 1000:
                raise IsohaloError("halo: an offset is beyond +-1000 cells")
        self.width = self._reach * self._depth if width is None else operator.index(width)
        self.array_shape = self._shape_of(self._domain.owned)

    def _shape_of(self, owned):
        return tuple(n + 2 * self.width for n in owned)

    def zeros(self, dtype=float, components=(), face=None):
        """A new array of zeros with ghosts, `components` per cell; of the faces of dimension `face`, if given. Local."""
        shape = self.array_shape if face is None else self._shape_of(self._domain.faces(face))
        return np.zeros(shape + tuple(np.atleast_1d(np.array(components, dtype=int))), dtype=dtype)

    def inner(self, array, layers=0):
        """The view of the owned cells, or faces, and of `layers` ghosts around them. Local."""
        cut = self.width - layers
        if cut < 0:
            raise IsohaloError("halo: %d layers of ghosts, there are %d" % (layers, self.width))
        return array[tuple(slice(cut, n - cut) for n in array.shape[:len(self.array_shape)])]

    def exchange(self, *arrays):
        """Fills ghosts. Arrays on faces are given as `on_faces(array, dimension)`. Collective."""
        self.start(*arrays)
        self.finish()

    def start(self, *arrays):
        """The first part: until `finish` ghosts must not be touched and owned cells not be written. Collective. May be
        used in a `with`, at whose end it finishes."""
        if self._flight:
            raise IsohaloError("halo: start while an exchange is in flight: finish it first", MPI.ERR_REQUEST)
        several = any(isinstance(a, (tuple, list)) and (len(a) != 2 or isinstance(a[1], np.ndarray)) for a in arrays)
        error = None
        try:
            if several:
                raise IsohaloError("halo: give several arrays one by one, not as a tuple or list", MPI.ERR_ARG)
            arrays = [a if isinstance(a, tuple) else (a, -1) for a in arrays]
            layouts = tuple(self._layout(a, face) for a, face in arrays)
        except IsohaloError as e:
            error, layouts = e, None
        if not self._agreed:
            agree(self._domain.comm, error and str(error), layouts, "halo (bytes of a cell, bytes to the next, face of each "
                                                                    "array)")
            self._agreed = True
        elif error:
            raise error
        handle = self._handle(layouts)
        call("halo_start_arrays", handle, numbers([a.ctypes.data for a, _ in arrays], ARRAY))
        self._flight = handle, arrays
        return _Started(self)

    def progress(self):
        """Between the two: moves on what can move, since MPI need not do so on its own. Never waits. Local."""
        if self._flight:
            call("halo_progress", self._flight[0])

    def finish(self):
        """The second part. Collective."""
        if not self._flight:
            raise IsohaloError("halo: finish without start", MPI.ERR_REQUEST)
        (handle, _), self._flight = self._flight, None
        call("halo_finish", handle)

    def free(self):
        """Gives the memory back. Completes an exchange in flight. Collective."""
        self._flight = None
        while self._halos:
            call("halo_free", ctypes.byref(self._halos.popitem()[1]))

    def _layout(self, array, face):
        """Of a cell: its bytes, and those from one to the next; and where the array lies."""
        shape = self.array_shape if face == -1 else self._shape_of(self._domain.faces(face))
        d = len(shape)
        if not isinstance(array, np.ndarray) or array.shape[:d] != shape:
            raise IsohaloError("halo: the array has shape %s, it must have %s: owned %s and %d ghost layers on every side" %
                               (np.shape(array), shape, "cells" if face == -1 else "faces", self.width), MPI.ERR_BUFFER)
        size = array.itemsize * int(np.prod(array.shape[d:], dtype=np.int64))
        if size == 0:
            raise IsohaloError("halo: the array has no components", MPI.ERR_BUFFER)
        pitch = size if array.flags.c_contiguous else array.strides[d - 1]
        cell = array[(slice(0, 1),) * d]
        in_order = all(n == 1 or s == pitch * int(np.prod(shape[j + 1:], dtype=np.int64))
                       for j, (n, s) in enumerate(zip(shape, array.strides)))
        if not in_order or pitch < size or not cell.flags.c_contiguous or not array.flags.writeable or array.dtype.hasobject:
            raise IsohaloError("halo: the array must be C-contiguous, or a member of such records, writeable and without "
                               "Python objects", MPI.ERR_BUFFER)
        return size, pitch, face

    def _handle(self, layouts):
        """The halo of such arrays together."""
        if layouts not in self._halos:
            ready()
            handle, cells = HANDLE(), []
            try:
                for size, pitch, _ in layouts:
                    run = MPI.BYTE.Create_contiguous(size)
                    cells.append(run.Create_resized(0, pitch).Commit())
                    run.Free()
                comm, owned = handle_of(self._domain.comm), numbers(self._domain.owned, LONG)
                kinds = (len(layouts), (MPI_HANDLE * len(cells))(*map(handle_of, cells)),
                         numbers([face for _, _, face in layouts]), ctypes.byref(handle))
                if self._offsets is None:
                    call("halo_create_arrays", comm, owned, self.width, self._shape, self._reach, self._depth, *kinds)
                else:
                    call("halo_create_arrays_offsets", comm, owned, self.width, len(self._offsets) // len(owned),
                         numbers(self._offsets), self._depth, *kinds)
            finally:
                for cell in cells:
                    cell.Free()
            self._halos[layouts] = handle
        return self._halos[layouts]


def on_faces(array, dimension):
    """The same array, as one on the faces of `dimension` in an exchange. Local."""
    return array, operator.index(dimension)


class _Started:
    def __init__(self, halo):
        self._halo = halo

    def __enter__(self):
        return self._halo

    def __exit__(self, *_):
        if self._halo._flight:
            self._halo.finish()
