#!/usr/bin/python3
"""A program of MPI's module mpi_f08 with libisohalo_mpi.so preloaded: right results, and every call handled, as where
Fortran's entry points call those of C (Debian's MPICH). Where an MPI's go past them, it says so and is skipped (77).

usage: fortran.py PROGRAM MPIEXEC LIBRARY
"""
import json
import os
import subprocess
import sys

PROGRAM, MPIEXEC, LIBRARY = sys.argv[1:]
CALLS = {"MPI_Barrier": 1, "MPI_Bcast": 1, "MPI_Reduce": 1, "MPI_Allreduce": 2, "MPI_Gather": 1, "MPI_Allgather": 1, "MPI_Scatter": 1}
failed = past = False
for ranks in (2, 3):
    ran = subprocess.run([MPIEXEC, "-n", str(ranks), "-genv", "LD_PRELOAD", LIBRARY, PROGRAM], capture_output=True, text=True,
                         timeout=100, env={**os.environ, "ISOHALO_MPI_REPORT": "1"})
    reports = [json.loads(line)["isohalo_mpi"] for line in ran.stderr.splitlines() if line.startswith('{"isohalo_mpi"')]
    handled = {f: reports[0][f]["handled"] for f in CALLS} if reports else {}
    if ran.returncode != 0 or any(handled.values()) and handled != {f: n * ranks for f, n in CALLS.items()}:
        print("FAILED on %d ranks: exit code %d, handled %s: %s" % (ranks, ran.returncode, handled, ran.stderr[-500:]))
        failed = True
    past = past or not any(handled.values())
if past and "libmpichfort" in subprocess.run(["ldd", PROGRAM], capture_output=True, text=True).stdout:
    print("FAILED: the calls of Debian's MPICH go past the library")
    failed = True
if failed:
    sys.exit(1)
if past:
    print("skipped: the Fortran functions of this MPI do not call those of C by their names")
    sys.exit(77)
print("all calls are handled")
