#!/usr/bin/python3
"""Runs the test and the example of the Python package on 1, 2, 3 and 4 ranks. Skipped (77), with the reason, where the
interpreter has no mpi4py for the MPI of isohalo.

usage: run.py PYTHON MPIEXEC LIBISOHALO_C EMBED_HEAT
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

PYTHON, MPIEXEC, LIBRARY, EMBED_HEAT = sys.argv[1:]
ROOT = pathlib.Path(__file__).resolve().parents[2]
os.environ.update(ISOHALO_LIBRARY=LIBRARY, PYTHONPATH=str(ROOT / "python"), PYTHONDONTWRITEBYTECODE="1")
HINT = ("skipped: %s. To run this test: /usr/bin/python3 -m venv --system-site-packages VENV && VENV/bin/pip install mpi4py, "
        "and configure with -DISOHALO_MPI4PY_PYTHON=VENV/bin/python")


def imports(what):
    done = subprocess.run([PYTHON, "-c", "import numpy; " + what], capture_output=True, text=True, timeout=100)
    return None if done.returncode == 0 else (done.stderr.strip().splitlines() or ["it ended with %d" % done.returncode])[-1]


def skip(reason):
    print(HINT % reason)
    sys.exit(77)


def load_mpi_of_the_library(links):
    """An mpi4py from PyPI loads its MPI at run time: that of the library. Debian's MPICH is called otherwise than it is
    elsewhere, and gets the usual name in `links`. An mpi4py that was built for its MPI does not mind."""
    used = re.search(r"libmpi(?:ch)?\.so\.(\d+) => (\S+)", subprocess.run(["ldd", LIBRARY], capture_output=True, text=True).stdout)
    if not used:
        return
    mpi = os.path.realpath(used.group(2))
    if not pathlib.Path(mpi).name.startswith("libmpi.so"):
        link = pathlib.Path(links) / ("libmpi.so." + used.group(1))
        link.symlink_to(mpi)
        mpi = str(link)
        os.environ["LD_LIBRARY_PATH"] = links + os.pathsep + os.environ.get("LD_LIBRARY_PATH", "")
    os.environ.setdefault("MPI4PY_LIBMPI", mpi)


links = tempfile.TemporaryDirectory()
load_mpi_of_the_library(links.name)
missing = imports("from mpi4py import MPI")
if missing:
    skip("%s has no mpi4py that works (%s)" % (PYTHON, missing))
wrong = imports("import isohalo")
if wrong and "another MPI" in wrong:
    skip(wrong)
if wrong:
    sys.exit("import isohalo: " + wrong)
test = str(ROOT / "tests/python/binding_test.py")
for ranks in (1, 2, 3, 4):
    done = subprocess.run([MPIEXEC, "-n", str(ranks), PYTHON, "-m", "mpi4py", test], capture_output=True, text=True, timeout=200)
    if done.returncode or "0 failures" not in done.stdout:
        sys.exit("%d ranks: ended with %d\n%s%s" % (ranks, done.returncode, done.stdout, done.stderr))
    print("%d ranks: %s" % (ranks, done.stdout.strip()))
sys.exit(subprocess.run([sys.executable, str(ROOT / "tests/project/same_residual.py"), EMBED_HEAT, MPIEXEC, PYTHON,
                         str(ROOT / "python/examples/heat.py")]).returncode)
