"""Sums, minima and maxima with the same bits on any number of ranks."""
import ctypes

import numpy as np

from ._library import HANDLE, LONG, IsohaloError, call, handle_of, numbers

OPERATIONS = {"sum": 0, "min": 1, "max": 2, "exact_sum": 3}


def operation(op):
    """Its number; another word becomes one that the library refuses, on all ranks."""
    return OPERATIONS.get(op, -1)


class Reducer:
    """A reduction that is made once and used as often as wanted. Collective.

    Reducer(comm, count, op): of numbers that ranks hold in contiguous ranges, in the order of the ranks; `count` of
    them, 0 or more, are this rank's. The result depends on the numbers and their order, not on where a range ends.

    `op`: "sum" adds along a tree that the numbers' indices alone decide, "exact_sum" is the exact sum of all numbers,
    rounded once; of "min" and "max" a NaN wins. Of a grid: see `Domain.reducer`.
    """

    def __init__(self, comm, count, op="sum"):
        self._made(None if count is None else (count,))
        call("reducer_create", handle_of(comm), count, operation(op), ctypes.byref(self._handle))

    @classmethod
    def _of_cells(cls, cart, owned, width, op):
        self = cls.__new__(cls)
        self._made(tuple(n + 2 * width for n in owned))
        call("reducer_create_cells", handle_of(cart), numbers(owned, LONG), width, operation(op),
             ctypes.byref(self._handle))
        return self

    def _made(self, shape):
        self._handle, self._shape = HANDLE(), shape

    def reduce(self, values):
        """The result as a float, on all ranks. `values`: this rank's, of any strides; they become float64. Collective."""
        self.start(values)
        return self.wait()

    def start(self, values):
        """The first part, which reads all of `values`. Collective."""
        values = np.asarray(values)
        if not np.can_cast(values.dtype, np.float64, "same_kind") or values.dtype.kind not in "biuf":
            raise IsohaloError("reducer: values of type %s are no real numbers" % values.dtype)
        if values.shape != self._shape and (len(self._shape) > 1 or values.size != self._shape[0]):
            raise IsohaloError("reducer: the array has shape %s, it must have %s" % (values.shape, self._shape))
        values = np.ascontiguousarray(values, dtype=np.float64)
        call("reducer_start", self._handle, values.ctypes.data)

    def wait(self):
        """The second part. Local."""
        result = ctypes.c_double()
        call("reducer_wait", self._handle, ctypes.byref(result))
        return result.value

    def free(self):
        """Gives the memory back. Completes a reduction in flight."""
        call("reducer_free", ctypes.byref(self._handle))


def _once(comm, values, op):
    values = np.asarray(values)
    reducer = Reducer(comm, values.size, op)
    try:
        return reducer.reduce(values)
    finally:
        reducer.free()


def reduce_sum(comm, values):
    """The sum of the numbers of all ranks, in the order of the ranks and C order within `values`: the same bits wherever
    one rank's numbers end and the next one's begin. Ranks may have none. Collective. For more than one sum of as many
    numbers make a `Reducer`."""
    return _once(comm, values, "sum")


def reduce_exact_sum(comm, values):
    """As `reduce_sum`, but exact, and rounded once: the same bits in whatever order the numbers are. Collective."""
    return _once(comm, values, "exact_sum")


def reduce_min(comm, values):
    """The smallest number of all ranks, or NaN when there is one. Collective."""
    return _once(comm, values, "min")


def reduce_max(comm, values):
    """The largest number of all ranks, or NaN when there is one. Collective."""
    return _once(comm, values, "max")
