#!/usr/bin/python3
"""libisohalo_mpi.so in programs of MPIs that it was not built with: it does its work where the binary interface is the
same, and otherwise passes everything on, saying so once.

usage: another_mpi.py LIBRARY pointers CLIENT | LIBRARY installed MPICC

`pointers`: a program of an MPI of our own making, whose handles are pointers. `installed`: tests/preload/client.cpp under
MPIs that are installed: Debian's Open MPI, and those of ISOHALO_OTHER_MPIS=NAME=PREFIX[,NAME=PREFIX].. (other_mpis.py);
77 (skipped) where there is none.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from other_mpis import Mpi

LIBRARY, KIND, LAST = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2], sys.argv[3]
SAYS = "every call is passed on to it"
failures, checks = [], 0


def that(ok, what):
    global checks
    checks += 1
    if not ok:
        failures.append(what)
        print("FAILED:", what)


def reports(text):
    """Of each rank that reports: {reason: calls}, with those that were handled under None."""
    all_of_them = []
    for line in text.splitlines():
        if line.startswith('{"isohalo_mpi"'):
            counts = {}
            for f in json.loads(line)["isohalo_mpi"].values():
                counts[None] = counts.get(None, 0) + f["handled"]
                for reason, n in f["passed_on"].items():
                    counts[reason] = counts.get(reason, 0) + n
            all_of_them.append(counts)
    return all_of_them


def pointers(client):
    for settings, said in (({}, "with Pointer MPI 1.0: "),
                           ({"POINTER_MPI_NAME": "MPICH Version:\t3.4.1\nMPICH Release date: .."},
                            "with MPICH Version 3.4.1: "),
                           ({"POINTER_MPI_NAME": "MPICH Version: 5.0.2", "POINTER_MPI_ABI": "1"},
                            "with MPICH Version 5.0.2 and the binary interface of MPI 5: "),
                           ({"ISOHALO_MPI": "off"}, None), ({"PMI_RANK": "1"}, None),
                           ({"PMI_RANK": "0", "ISOHALO_MPI_XYZ": "1"}, "no setting ISOHALO_MPI_XYZ")):
        ran = subprocess.run([client], capture_output=True, text=True, timeout=60,
                             env={**os.environ, "LD_PRELOAD": str(LIBRARY), "ISOHALO_MPI_REPORT": "1", **settings})
        text = ran.stderr
        that(ran.returncode == 0, "pointers, %s: exit code %d: %s" % (settings, ran.returncode, text))
        that(text.count(SAYS) == (said is not None) and (said or "") in text, "pointers, %s: says %s" % (settings, text))
        that(reports(text) == ([] if settings.get("PMI_RANK") == "1" else [{None: 0, "another MPI": 26}]),
             "pointers, %s: reports %s" % (settings, text))
    ran = subprocess.run(["ls", "/"], capture_output=True, text=True, env={**os.environ, "LD_PRELOAD": str(LIBRARY)})
    that(ran.returncode == 0 and not ran.stderr, "a program without MPI: %s" % ran.stderr)


def installed(mpicc):
    mpis = [Mpi.at(*m.split("=", 1), mpicc) for m in os.environ.get("ISOHALO_OTHER_MPIS", "").split(",") if m]
    debian = [shutil.which("%s.openmpi" % c) for c in ("mpiexec", "mpicc", "mpicxx")]
    if all(debian):
        mpis.append(Mpi("Debian's Open MPI", debian[0], debian[1:]))
    if not mpis:
        print("skipped: no MPI but our own is installed; ISOHALO_OTHER_MPIS=NAME=PREFIX,.. names others")
        sys.exit(77)
    for mpi in mpis:
        with tempfile.TemporaryDirectory() as folder:
            runs = [(1, "client", 300, 1), (2, "client", 2000, 2), (3, "client", 600, 3), (2, "client", "barriers", 20000)]
            if mpi.same:  # what other families make of wrong arguments and odd types is their affair
                runs += [(3, "client", "refusals", 1), (2, "types"), (2, "hostile", "communicators", 500, 1),
                         (3, "hostile", "traffic", 500, 1)]
            for name in dict.fromkeys(r[1] for r in runs):
                mpi.build(pathlib.Path(__file__).with_name(name + ".cpp"), pathlib.Path(folder, name), "-std=c++20")
            for ranks, name, *arguments in runs:
                ran = mpi.run(ranks, pathlib.Path(folder, name), *arguments, preload=LIBRARY, ISOHALO_MPI_REPORT="1")
                arguments = (name, *arguments)
                what, text = "%s, %d ranks, %s" % (mpi.name, ranks, arguments), ran.stdout + ran.stderr
                that(ran.returncode == 0, "%s: exit code %d: %s" % (what, ran.returncode, text[-1500:]))
                passed = text.count(SAYS)
                that(passed == (0 if mpi.same else 1), "%s: %d lines of it: %s" % (what, passed, text[-1500:]))
                said = reports(text)
                that(len(said) == 1 and (said[0][None] == 0) == (ranks == 1 or not mpi.same) and
                     set(said[0]) - {None, "one rank", "operation"} == (set() if mpi.same else {"another MPI"}),
                     "%s: reports %s" % (what, said))
            print("%s: %s" % (mpi.name, "handled" if mpi.same else "passed on"), flush=True)


{"pointers": pointers, "installed": installed}[KIND](LAST)
print("%d checks, %d failed" % (checks, len(failures)))
sys.exit(1 if failures or not checks else 0)
