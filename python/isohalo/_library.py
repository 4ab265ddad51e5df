"""The shared library libisohalo_c.so, the C interface of isohalo.h, for communicators of mpi4py."""
import ctypes
import os
import pathlib

from mpi4py import MPI

NAME = "libisohalo_c.so"
INT, LONG = ctypes.c_int, ctypes.c_longlong
HANDLE, ARRAY = ctypes.c_void_p, ctypes.c_void_p
# MPI's handles are numbers (MPICH) or pointers (Open MPI).
MPI_HANDLE = INT if MPI._sizeof(MPI.Comm) == ctypes.sizeof(INT) else ctypes.c_void_p


class IsohaloError(RuntimeError):
    """A call that the library refused, or that failed. `code` is an MPI error code."""

    def __init__(self, text, code=MPI.ERR_ARG):
        super().__init__(text)
        self.code = code


def places():
    """Where the library may be: named, beside the package, beside an installed one, in the source tree, or where the
    system looks."""
    package = pathlib.Path(__file__).resolve().parent
    if os.environ.get("ISOHALO_LIBRARY"):
        return [os.environ["ISOHALO_LIBRARY"]]
    files = [package / NAME, package.parents[2] / NAME, package.parents[1] / "build/release/lib" / NAME]
    return [str(f) for f in files if f.exists()] + [NAME]


def load():
    tried = places()
    for place in tried:
        try:
            library = ctypes.CDLL(place)
            break
        except OSError as error:
            last = error
    else:
        raise ImportError("isohalo: no %s (%s): build all of isohalo, with -DISOHALO_SHARED_C=ON, and set ISOHALO_LIBRARY to that "
                          "file" % (NAME, last))
    text, length = ctypes.create_string_buffer(1 << 13), INT()
    library.MPI_Get_library_version(text, ctypes.byref(length))
    ours, theirs = text.value.decode(errors="replace"), MPI.Get_library_version().rstrip("\0")
    if ours.split() != theirs.split():
        raise ImportError("isohalo: %s uses another MPI than mpi4py: %s; %s. Let MPI4PY_LIBMPI name the library of "
                          "the former (mpi4py 4 of PyPI), or install an mpi4py built with it:  MPICC=.. pip install "
                          "--no-binary mpi4py mpi4py" %
                          (place, " ".join(ours.split()[:3]), " ".join(theirs.split()[:3])))
    return library


LIBRARY = load()
LIBRARY.isohalo_error_text.restype = ctypes.c_char_p
for name, arguments in {
        "isohalo_process_grid": [INT, INT, ARRAY, ARRAY],
        "isohalo_halo_create_arrays": [MPI_HANDLE, ARRAY, INT, INT, INT, INT, INT, ARRAY, ARRAY, HANDLE],
        "isohalo_halo_create_arrays_offsets": [MPI_HANDLE, ARRAY, INT, INT, ARRAY, INT, INT, ARRAY, ARRAY, HANDLE],
        "isohalo_halo_start_arrays": [HANDLE, ARRAY],
        "isohalo_halo_progress": [HANDLE],
        "isohalo_halo_finish": [HANDLE],
        "isohalo_halo_free": [HANDLE],
        "isohalo_reducer_create": [MPI_HANDLE, LONG, INT, HANDLE],
        "isohalo_reducer_create_cells": [MPI_HANDLE, ARRAY, INT, INT, HANDLE],
        "isohalo_reducer_start": [HANDLE, ARRAY],
        "isohalo_reducer_wait": [HANDLE, ARRAY],
        "isohalo_reducer_free": [HANDLE]}.items():
    getattr(LIBRARY, name).argtypes = arguments


def call(name, *arguments):
    """Calls isohalo_NAME; an error code becomes an IsohaloError."""
    code = getattr(LIBRARY, "isohalo_" + name)(*arguments)
    if code:
        raise IsohaloError(LIBRARY.isohalo_error_text().decode(errors="replace"), code)


def handle_of(mpi_object):
    return MPI_HANDLE.from_address(MPI._addressof(mpi_object))


def numbers(values, kind=INT):
    return (kind * len(values))(*values)


def ready():
    """Raises before MPI is initialised and after it is finalised, where MPI itself would end the program. Local."""
    if not MPI.Is_initialized() or MPI.Is_finalized():
        raise IsohaloError("isohalo is used %s MPI_%s" % (("after", "Finalize: end what uses it before")
                                                          if MPI.Is_finalized() else ("before", "Init: initialise MPI first")))


def agree(comm, error, arguments, what):
    """Raises on all ranks when one has an error, or when their arguments differ. Collective."""
    ready()
    everybody = comm.allgather((error, arguments))
    for rank, (theirs, _) in enumerate(everybody):
        if theirs is not None:
            raise IsohaloError("%s%s" % (theirs, " (rank %d)" % rank if rank else ""))
    for rank, (_, theirs) in enumerate(everybody):
        if theirs != everybody[0][1]:
            raise IsohaloError("%s: the arguments differ between ranks: %r on rank 0, %r on rank %d" %
                               (what, everybody[0][1], theirs, rank))
