"""The stage of the fault tests: an input, what an undisturbed run of it leaves, and directories that are broken and mended.

The scripts are called  SCRIPT ISOHALO MPIEXEC WORK_DIRECTORY ISOHALO_FAULTY ..
"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import threading

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
import harness
from harness import ISOHALO, MPIEXEC, WORK

FAULTY = str(pathlib.Path(sys.argv[4]).resolve())
STEPS, EVERY, KEEP = 240, 10, 3
INPUT = """
[domain]
shape = [24, 20]
boundary.low = ["neumann", {dirichlet = 1.0}]
boundary.high = ["neumann", {fixed = 0.0}]
[solver]
kind = "heat"
[initial]
kind = "random"
seed = 3
[run]
steps = %d
residual_every = 5
[output]
checkpoint_every = %d
digest_every = 5
picture_every = 20
""" % (STEPS, EVERY)

POISSON = """
[domain]
shape = [90, 80]
boundary.low = ["neumann", {dirichlet = 0.0}]
boundary.high = [{dirichlet = 0.2}, {dirichlet = 0.0}]
[solver]
kind = "poisson"
method = "cg"
[source]
kind = "random"
seed = 5
[initial]
kind = "constant"
value = 0.0
[run]
steps = 240
residual_every = 5
[output]
checkpoint_every = 10
"""
LIFE = """
[domain]
shape = [48, 40]
boundary.low = ["periodic", "periodic"]
boundary.high = ["periodic", "periodic"]
[solver]
kind = "life"
[initial]
kind = "random"
seed = 1970
high = 0.8
[run]
steps = 240
residual_every = 5
[output]
checkpoint_every = 10
[parallel]
halo_depth = 2
"""
SOLVERS = {"poisson": POISSON, "life": LIFE}

lock = threading.Lock()
faults = {}  # kind -> how many


def that(ok, what):
    with lock:
        harness.that(ok, what)
        if not ok:
            print("FAILED: " + what, flush=True)  # and once more at the end


def count(kind):
    with lock:
        faults[kind] = faults.get(kind, 0) + 1


def processes_below(launcher):
    """Process ids of everything that an mpiexec started, launchers of its own included."""
    parents = {}
    for p in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            parents[int(p.name)] = int((p / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            pass
    below = {launcher}
    for _ in range(5):
        below |= {p for p, parent in parents.items() if parent in below}
    return sorted(below - {launcher})


def run(program, ranks, directory, *overrides, fault=None, input="input.toml", together=False):
    """`program run` with --restart auto on the input; a run that hangs is a failure and returns nothing."""
    return start(program, ranks, "run", input, "output.directory=%s" % directory, *overrides, "--restart", "auto", fault=fault,
                 together=together)


def start(program, ranks, *arguments, fault=None, timeout=90, together=False):
    """`program ARGUMENTS`; a command that hangs is a failure and returns nothing."""
    command = [MPIEXEC, "-n", str(ranks), program, *arguments]
    environment = dict(os.environ)
    if fault:
        environment["ISOHALO_FAULT"] = fault
    if together:  # as large files are written; the bytes are the same
        environment["ISOHALO_MOST_ALONE"] = "0"
    with subprocess.Popen(command, cwd=WORK, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as p:
        try:
            out, err = p.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            for rank in processes_below(p.pid):
                os.kill(rank, signal.SIGKILL)
            p.communicate()
            that(False, "%s: %s on %d ranks hangs" % (arguments[0], fault or "undisturbed", ranks))
            return None
    return subprocess.CompletedProcess(command, p.returncode, out, err)


def make_reference():
    r = run(ISOHALO, 1, "reference")
    that(r and r.returncode == 0, "the undisturbed run fails: %s" % (r and r.stderr))
    r = subprocess.run([ISOHALO, "verify", str(WORK / "reference/latest.h5")], capture_output=True, text=True, timeout=60)
    that(r.returncode == 0 and r.stdout.endswith("good\n"), "verify of the undisturbed run: " + r.stdout + r.stderr)
    for solver, input in SOLVERS.items():
        (WORK / (solver + ".toml")).write_text(input)
        r = run(ISOHALO, 1, "reference_" + solver, input=solver + ".toml")
        that(r and r.returncode == 0, "the undisturbed run of %s fails: %s" % (solver, r and r.stderr))


def checkpoints(directory):
    """Of those that have their final name, newest first."""
    return sorted(pathlib.Path(directory).glob("step_*.h5"), reverse=True)


class Scene:
    """One output directory that is broken again and again, each time by a run that continues the one before."""

    def __init__(self, name, directory=None, solver=None, alone=False):
        """`alone`: rank 0 writes the checkpoints of runs that are broken, otherwise all ranks together."""
        self.alone, self.name, self.directory = alone, name, pathlib.Path(directory or WORK / name)
        self.input, self.reference = "%s.toml" % (solver or "input"), WORK / ("reference_" + solver if solver else "reference")
        shutil.rmtree(self.directory, ignore_errors=True)

    def run(self, program, ranks, *overrides, fault=None):
        return run(program, ranks, self.directory, "output.keep=%d" % KEEP, *overrides, fault=fault, input=self.input,
                   together=not self.alone)

    def broken(self, kind, ranks, fault, *overrides, code=None, injected=1):
        """A run that is broken while it runs. Afterwards whatever has its final name must be whole and right."""
        r = self.run(FAULTY, ranks, *overrides, fault=fault)
        what = "%s: %s on %d ranks" % (self.name, fault, ranks)
        if r is None:
            return None
        count(kind)
        that(r.stderr.count("injected: ") == injected, "%s: injected %d times: %s" % (what, r.stderr.count("injected: "), r.stderr[-500:]))
        that(r.returncode != 0 if code is None else r.returncode == code, "%s: exit code %d: %s" % (what, r.returncode, r.stderr[-500:]))
        that("skipping a checkpoint" not in r.stderr, "%s: the checkpoint before was not good: %s" % (what, r.stderr[-500:]))
        self.whole(what)
        return r

    def whole(self, what):
        for file in sorted(self.directory.iterdir()) if self.directory.exists() else ():
            twin = self.reference / file.name
            if file.name == "latest.h5":
                that(file.exists(), "%s: latest.h5 points nowhere" % what)
            elif file.suffix == ".json":
                try:
                    json.loads(file.read_text())
                except ValueError:
                    that(False, "%s: %s is cut short" % (what, file.name))
            elif file.suffix in (".h5", ".xmf") and not twin.exists():
                that(int(file.name[5:13]) % EVERY, "%s: %s should not be there" % (what, file.name))  # a signal's
            elif file.suffix in (".h5", ".xmf", ".png"):
                that(twin.exists() and file.read_bytes() == twin.read_bytes(), "%s: %s has other bytes" % (what, file.name))
            elif file.name == "digests.txt":
                that((self.reference / "digests.txt").read_bytes().startswith(file.read_bytes()), "%s: the log has other lines" % what)

    def recover(self, ranks, *texts):
        """The undamaged program continues to the end, and leaves what an undisturbed run leaves. `texts` must be in what
        it prints to standard error, each once; without any that must be empty."""
        r = self.run(ISOHALO, ranks)
        what = "%s, continued on %d ranks" % (self.name, ranks)
        if r is None:
            return
        that(r.returncode == 0, "%s: exit code %d: %s" % (what, r.returncode, r.stderr[-500:]))
        if not texts:
            that(r.stderr == "", "%s says: %s" % (what, r.stderr[-500:]))
        for text in texts:
            that(r.stderr.count(text) == 1, "%s: %r is there %d times: %s" % (what, text, r.stderr.count(text), r.stderr[-500:]))
        self.whole(what)
        odd = [file for file in checkpoints(self.directory) if int(file.name[5:13]) % EVERY]  # a signal's
        last = sorted((file.stem for file in checkpoints(self.reference) + odd), reverse=True)[:KEEP]
        kept = {stem + suffix for stem in last for suffix in (".h5", ".json", ".xmf")}
        expected = kept | {"latest.h5"} | {p.name for p in self.reference.iterdir() if p.suffix == ".png" or p.name == "digests.txt"}
        found = {p.name for p in self.directory.iterdir()} - {".isohalo_lock"}
        that(found == expected, "%s: too much: %s, missing: %s" % (what, sorted(found - expected), sorted(expected - found)))
        that(os.readlink(self.directory / "latest.h5") == last[0] + ".h5", what + ": latest.h5")
        log, twin = self.directory / "digests.txt", self.reference / "digests.txt"
        that(not twin.exists() or log.read_bytes() == twin.read_bytes(), what + ": the log differs")
        shutil.rmtree(self.directory)

    def refused(self, r, pattern, injected=1):
        """Standard error must be one line that matches, beside the lines of the injection."""
        if r is None:
            return
        lines = [l for l in r.stderr.splitlines() if not l.startswith("injected: ") and l]
        that(len(lines) == 1 and re.fullmatch("isohalo: error: " + pattern, lines[0]),
             "%s: instead of %r: %s" % (self.name, pattern, "\n".join(lines[-6:])))
