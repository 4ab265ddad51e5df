"""Each step of the writing protocol, and each phase of a run, broken on each rank: the process killed, an error raised by
one rank while others have none, no memory left."""
import re
import subprocess

from harness import ISOHALO
from scene import SOLVERS, Scene, that

# Place -> the time it is passed at which it is broken: always after a good checkpoint of the same run.
BY_ALL = {"free_space": 2, "create": 2, "reserve": 2, "groups": 2, "data": 2, "data_written": 2, "digests": 2, "complete": 2, "close": 2, "closed": 2}
BY_FIRST = {"fsync": 2, "rename": 2, "directory_fsync": 2, "metadata": 2, "xmf": 2, "latest": 2, "latest_rename": 2, "delete": 2,
            "deleted": 1, "digest_log": 3, "png": 1}
# Where rank 0 writes the file alone.
ALONE = {"data": 2, "create": 2, "write": 2, "fsync": 2, "rename": 2, "directory_fsync": 2}
# A checkpoint enters its phase twice.
PHASES = {"start": 1, "sweep": 15, "exchange": 15, "boundary": 15, "reduction": 3, "checkpoint": 3, "digest": 3, "picture": 1}
# Ranks and victims, so that each run continues the one before on another number of ranks.
VICTIMS = [(2, 0), (3, 0), (4, 0), (2, 1), (4, 1), (3, 1), (4, 2), (3, 2), (4, 3)]


def kill(place, nth, victims, alone=False):
    scene = Scene("kill_" + place + "_alone" * alone, alone=alone)
    who = "victim" if place in BY_FIRST or (alone and place != "data") else "rank"
    for k, (ranks, victim) in enumerate(victims):
        # The checkpoint, its picture and its run metadata are deleted one by one.
        n = k % 3 + 1 if place == "deleted" else nth
        scene.broken("rank killed", ranks, "kill:at=%s:nth=%d:%s=%d" % (place, n, who, victim))
    scene.recover(1)


def named(ranks, rank):
    return "rank %d: " % rank if rank else ""


def error(place, nth, culprits, alone=False):
    scene = Scene("error_" + place + "_alone" * alone, alone=alone)
    for ranks, rank in culprits:
        r = scene.broken("error of one rank", ranks, "throw:at=%s:nth=%d:rank=%d" % (place, nth, rank), code=3)
        prefix = "" if place in ("free_space", "metadata", "xmf", "latest", "latest_rename", "delete", "deleted", "digest_log", "png") else \
            r"cannot write %s/step_\d{8}\.h5 \(earlier checkpoints are kept\): " % re.escape(str(scene.directory))
        scene.refused(r, prefix + named(ranks, rank) + "injected error at " + place)
    scene.recover(1)


def error_in_phase(place, nth, culprits):
    """No other rank knows; the one with the error ends the job."""
    scene = Scene("alone_" + place)
    for ranks, rank in culprits:
        r = scene.broken("error of one rank", ranks, "throw:at=%s:nth=%d:rank=%d" % (place, nth, rank), code=3)
        text = "isohalo: error: %sinjected error at %s\n" % ("" if ranks == 1 else "rank %d: " % rank, place)
        that(r and r.stderr.count("isohalo: error: ") == 1 and text in r.stderr, "%s on %d: %s" % (scene.name, ranks, r and r.stderr[-500:]))
    r = scene.broken("error of all ranks", 3, "throw:at=%s:nth=%d:rank=all" % (place, nth), code=3, injected=3)
    scene.refused(r, "injected error at " + place)
    scene.recover(1)


def other_solver(solver, long):
    """Its fields and numbers are others than those of a relaxation."""
    scene = Scene("broken_" + solver, solver=solver)
    for k, place in enumerate(("sweep", "exchange", "reduction", "data", "data_written", "close", "rename", "latest") if long else ("data",)):
        ranks = (2, 3, 4)[k % 3]
        nth = 25 if place in PHASES and place != "reduction" else 2
        scene.broken("rank killed", ranks, "kill:at=%s:nth=%d:%s=%d" % (place, nth, "victim" if place in BY_FIRST else "rank", k % ranks))
    for ranks, rank in ((3, 1), (2, 0)) if long else ():
        scene.broken("error of one rank", ranks, "throw:at=data:nth=2:rank=%d" % rank, code=3)
    scene.recover(1)


def exhausted(place, nth):
    scene = Scene("memory_" + place)
    for ranks, rank in ((3, 1), (2, 0), (4, 3)):
        r = scene.broken("no memory", ranks, "exhaust:at=%s:nth=%d:rank=%d" % (place, nth, rank), code=3)
        scene.refused(r, r"cannot write .* \(earlier checkpoints are kept\): %sout of memory" % named(ranks, rank))
    scene.recover(1)


def inert():
    """The command itself knows nothing of faults."""
    scene = Scene("inert")
    r = scene.run(ISOHALO, 2, fault="kill:at=data:rank=all;kill:at=sweep:rank=all")
    that(r and r.returncode == 0 and r.stderr == "", "the command obeys the tests' switch: %s" % (r and r.stderr))
    r = subprocess.run([ISOHALO, "run", "--help"], capture_output=True, text=True, timeout=60)
    that(r.returncode == 0 and "fault" not in r.stdout.lower(), "the help speaks of faults")


def jobs(long):
    """(function, arguments ..) of each independent test."""
    places = {**BY_ALL, **BY_FIRST, **PHASES}
    yield (inert,)
    for solver in SOLVERS:
        yield other_solver, solver, long
    if not long:
        for place in ("data", "rename", "latest"):
            yield kill, place, places[place], VICTIMS[:5]
        yield error, "data", 2, [(3, 1)]
        yield kill, "write", 2, VICTIMS[2:4], True
        yield error, "data", 2, [(3, 1)], True
        yield error, "write", 2, [(2, 0)], True
        yield error, "close", 2, [(2, 1)]
        yield error, "fsync", 2, [(2, 0)]
        yield error_in_phase, "sweep", 15, [(2, 1)]
        return
    for place, nth in PHASES.items():
        yield error_in_phase, place, nth, [(2, 1), (3, 0), (1, 0)]
    for place, nth in places.items():
        yield kill, place, nth, VICTIMS[3:7] if place in PHASES else VICTIMS
    for place, nth in BY_ALL.items():
        yield error, place, nth, [(2, 1), (3, 0), (1, 0), (3, 2)]
    for place, nth in BY_FIRST.items():
        yield error, place, nth, [(3, 0), (1, 0)]
    for place, nth in ALONE.items():
        yield kill, place, nth, VICTIMS[2:6], True
        yield error, place, nth, [(2, 1), (3, 0)] if place == "data" else [(3, 0), (1, 0)], True
    for place in ("groups", "data", "digests"):
        yield exhausted, place, 2
