"""Readers that are broken: an error of one rank, a rank killed, in a restart, in `verify FILE` and in `compare`."""
import os
import re
import subprocess

from damage import NEWEST, finished
from harness import WORK
from scene import FAULTY, count, start, that

OTHERS = [(2, 1), (3, 0), (4, 3)]


def restart_error(place):
    """Whatever a rank cannot read all ranks skip, and take the checkpoint before."""
    for ranks, rank in OTHERS:
        scene = finished("unread_%s_%d" % (place, ranks))
        r = scene.run(FAULTY, ranks, fault="throw:at=%s:rank=%d" % (place, rank))
        count("error of a reading rank")
        text = r"isohalo: warning: skipping a checkpoint that cannot be used: .*%s.*: injected error at %s\n" % (re.escape(NEWEST), place)
        that(r and r.returncode == 0 and len(re.findall(text, r.stderr)) == 1 and r.stderr.count("warning") == 1,
             "%s: %s" % (scene.name, r and r.stderr))
        scene.recover(ranks)


def restart_kill(place):
    scene = finished("killed_%s" % place)
    for ranks, rank in OTHERS:
        scene.broken("reading rank killed", ranks, "kill:at=%s:rank=%d" % (place, rank))
    scene.recover(1)


def other_command(place, code, *arguments):
    """No file is harmed, so one line and the exit code are all there is: 2 for a file that cannot be read, 3 otherwise."""
    for ranks, rank in OTHERS:
        r = start(FAULTY, ranks, *arguments, fault="throw:at=%s:rank=%d" % (place, rank))
        count("error of a reading rank")
        text = r"isohalo: error: .*injected error at %s\n" % place
        that(r and r.returncode == code and len(re.findall(text, r.stderr)) == 1 and r.stderr.count("isohalo: error") == 1,
             "%s, rank %d of %d: %s" % (arguments[0], rank, ranks, r and (r.returncode, r.stderr[-500:])))
        r = start(FAULTY, ranks, *arguments, fault="kill:at=%s:rank=%d" % (place, rank))
        count("reading rank killed")
        that(r and r.returncode not in (0, 1), "%s, rank %d of %d killed: %s" % (arguments[0], rank, ranks, r and r.returncode))


def directory_error():
    """Rank 0 alone looks into the directory: an error then is everybody's."""
    listings = 0
    for ranks in (3, 1):
        for nth in range(1, 20):
            scene = finished("unlisted_%d" % ranks)
            r = scene.run(FAULTY, ranks, fault="throw:at=list:nth=%d" % nth)
            if r and "injected: " not in r.stderr:
                that(r.returncode == 0, "%s: %s" % (scene.name, r.stderr))
                break
            listings += 1
            count("directory that cannot be listed")
            that(r and r.returncode == 3 and len(re.findall("isohalo: error: .*injected error at list\n", r.stderr)) == 1
                 and r.stderr.count("isohalo: error") == 1, "%s, listing %d: %s" % (scene.name, nth, r and (r.returncode, r.stderr)))
            scene.recover(ranks)
    that(listings >= 4, "only %d listings of a directory" % listings)


def no_proc():
    """Without /proc nobody knows where isohalo-bench is: not where the user happens to be."""
    directory = WORK / "no_proc"
    directory.mkdir(exist_ok=True)
    (directory / "isohalo-bench").write_text("#!/bin/sh\necho started\n")
    (directory / "isohalo-bench").chmod(0o755)
    r = subprocess.run([FAULTY, "bench", "wait"], cwd=directory, capture_output=True, text=True, timeout=60,
                       env=dict(os.environ, ISOHALO_NO_PROC="1"))
    that(r.returncode == 2 and "started" not in r.stdout and "isohalo-bench cannot be started (No such file" in r.stderr,
         "bench without /proc: %s" % ((r.returncode, r.stdout, r.stderr),))


def jobs(long):
    file, before = str(WORK / "reference" / NEWEST), str(WORK / "reference" / "step_00000230.h5")
    yield restart_error, "read"
    yield (directory_error,)
    yield (no_proc,)
    if not long:
        return
    yield restart_error, "read_meta"
    yield restart_kill, "read"
    yield restart_kill, "read_meta"
    yield other_command, "verify", 3, "verify", file
    yield other_command, "compare", 3, "compare", "--read-data", file, before
    yield other_command, "read_meta", 2, "compare", file, before
