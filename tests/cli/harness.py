"""What the tests of the command share: a work directory, launches, counted checks, one verdict at the end.

The scripts are called  SCRIPT ISOHALO MPIEXEC WORK_DIRECTORY ..
"""
import pathlib
import shutil
import subprocess
import sys

ISOHALO, MPIEXEC, WORK = str(pathlib.Path(sys.argv[1]).resolve()), sys.argv[2], pathlib.Path(sys.argv[3]).resolve()
failures, count = [], 0


def that(ok, what):
    """One check; `what` is printed at the end when it failed."""
    global count
    count += 1
    if not ok:
        failures.append(what)


def launch(ranks, *arguments, timeout=120):
    """`isohalo ARGUMENTS` in the work directory, under mpiexec when `ranks` is not 0."""
    command = ([MPIEXEC, "-n", str(ranks)] if ranks else []) + [ISOHALO, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=timeout, cwd=WORK)


def isohalo(ranks, *arguments, code=0):
    """A launch whose exit code is checked."""
    r = launch(ranks, *arguments)
    that(r.returncode == code, "%s on %d ranks: exit code %d, expected %d: %s%s" % (
        arguments, ranks, r.returncode, code, r.stdout[-600:], r.stderr[-800:]))
    return r


def fresh_work_directory(input=None):
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    if input is not None:
        (WORK / "input.toml").write_text(input)


def finish(unit="checks"):
    for f in failures:
        print("FAILED:", f, file=sys.stderr)
    if not count:
        print("FAILED: nothing was checked", file=sys.stderr)
    print("%d %s, %d failed" % (count, unit, len(failures)))
    sys.exit(1 if failures or not count else 0)
