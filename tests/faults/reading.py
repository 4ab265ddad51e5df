"""Readers that are broken: an error of one rank, a rank killed, in a restart, in `verify FILE` and in `compare`."""
import re

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


def jobs(long):
    file, before = str(WORK / "reference" / NEWEST), str(WORK / "reference" / "step_00000230.h5")
    yield restart_error, "read"
    if not long:
        return
    yield restart_error, "read_meta"
    yield restart_kill, "read"
    yield restart_kill, "read_meta"
    yield other_command, "verify", 3, "verify", file
    yield other_command, "compare", 3, "compare", "--read-data", file, before
    yield other_command, "read_meta", 2, "compare", file, before
