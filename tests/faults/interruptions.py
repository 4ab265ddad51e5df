"""Runs that are ended from outside at any time: a rank or the launcher killed, signals, the time limit."""
import os
import pathlib
import random
import signal
import subprocess
import time

from harness import ISOHALO, MPIEXEC, WORK
from scene import KEEP, Scene, count, processes_below, that

FREEZE = 20  # seconds until whoever is left of a killed job must be gone


def ranks_of(launcher):
    def program(p):
        try:
            return os.readlink("/proc/%d/exe" % p)
        except OSError:
            return ""
    return [p for p in processes_below(launcher) if program(p) == os.path.realpath(ISOHALO)]


def alive(process):
    try:
        return pathlib.Path("/proc/%d/stat" % process).read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def gone(processes):
    end = time.monotonic() + FREEZE
    while any(map(alive, processes)):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def interrupted(scene, ranks, delay, act, kind, *overrides):
    """A run on which `act(process, ranks' ids)` works `delay` seconds after its ranks are there."""
    command = [MPIEXEC, "-n", str(ranks), ISOHALO, "run", "input.toml", "output.directory=%s" % scene.directory, "output.keep=%d" % KEEP,
               *overrides, "--restart", "auto"]
    with subprocess.Popen(command, cwd=WORK, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        try:
            end = time.monotonic() + 30
            while len(ranks_of(run.pid)) < ranks and run.poll() is None and time.monotonic() < end:
                time.sleep(0.01)
            time.sleep(delay)
            processes = ranks_of(run.pid)
            if processes and run.poll() is None:
                act(run, processes)
                count(kind)
            out, err = run.communicate(timeout=90)
        except subprocess.TimeoutExpired:
            for p in ranks_of(run.pid):
                os.kill(p, signal.SIGKILL)
            run.kill()
            that(False, "%s: hangs after: %s" % (scene.name, kind))
            return None
    that(gone(processes), "%s: ranks are left after: %s" % (scene.name, kind))
    that("skipping a checkpoint" not in err, "%s: %s" % (scene.name, err[-300:]))
    scene.whole("%s, %s after %.2f s on %d ranks" % (scene.name, kind, delay, ranks))
    return subprocess.CompletedProcess(command, run.returncode, out, err)


def kill_any(k, long):
    generator = random.Random(k)
    scene = Scene("any_time_%d" % k)
    for n in range(8 if long else 2):
        ranks = (3, 2, 4)[n % 3]
        launcher = long and n == 5

        def act(run, processes):
            os.kill(run.pid if launcher else generator.choice(processes), signal.SIGKILL)
        interrupted(scene, ranks, generator.uniform(0, 1.5), act, "launcher killed at any time" if launcher else "rank killed at any time")
    scene.recover(1)


def signal_any(k):
    """The checkpoint of a signal may belong to any step, so the steps compared are those that the two runs share."""
    generator = random.Random(1000 + k)
    scene = Scene("signal_%d" % k)
    for n in range(4):
        number = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)[(n + k) % 3]
        to_launcher = generator.random() < 0.5

        def act(run, processes):
            os.kill(run.pid if to_launcher else generator.choice(processes), number)
        r = interrupted(scene, (3, 2, 4)[n % 3], generator.uniform(0.3, 1.5), act, "signal", "output.checkpoint_every=10")
        if r and r.returncode == 0 and "stopped by" in r.stdout:
            that("stopped by %s at step" % number.name in r.stdout and r.stderr == "", "%s: %s%s" % (scene.name, r.stdout[-300:], r.stderr[-300:]))
    scene.recover(1)


def time_limits(k):
    generator = random.Random(2000 + k)
    scene = Scene("limit_%d" % k)
    for n in range(4):
        r = scene.run(ISOHALO, (2, 3, 1)[n % 3], "run.time_limit_s=%.3f" % generator.uniform(0.02, 0.5))
        count("time limit")
        that(r and r.returncode == 0 and r.stderr == "", "%s: %s" % (scene.name, r and r.stderr[-300:]))
        scene.whole(scene.name)
    scene.recover(4)


def jobs(long):
    for k in range(4 if long else 1):
        yield kill_any, k, long
    if long:
        for k in range(3):
            yield signal_any, k
        yield time_limits, 0
