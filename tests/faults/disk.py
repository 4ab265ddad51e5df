"""A full disk at each step: a small file system filled to its last byte and name (needs root), and files that may not grow."""
import re
import subprocess

from harness import WORK
from scene import Scene, that

NO_SPACE = "No space left on device"
# Room for the whole checkpoint is reserved; if it fills up later the companions are the first to fail.
METADATA = r"cannot write .*/step_\d{8}\.json: " + NO_SPACE
NEXT = r"cannot write .*(\.png: %s|\.h5: it needs [0-9.]+ MiB, the disk has 0\.000000 MiB free \(earlier checkpoints are kept\))" % NO_SPACE
KEPT = r"cannot write .*/step_\d{8}\.h5 \(earlier checkpoints are kept\): "
FILLED = {"free_space": NEXT, "create": KEPT + NO_SPACE,
          "reserve": KEPT + "room for [0-9.]+ MiB: " + NO_SPACE, "groups": METADATA, "data": METADATA, "data_written": METADATA,
          "digests": METADATA, "complete": METADATA, "close": METADATA, "closed": METADATA, "fsync": METADATA, "rename": METADATA,
          "directory_fsync": METADATA, "metadata": METADATA, "xmf": r"cannot write .*/step_\d{8}\.xmf: " + NO_SPACE,
          "latest": r"cannot point .*/latest\.h5 at the new checkpoint: " + NO_SPACE, "latest_rename": NEXT, "delete": NEXT,
          "png": r"cannot write .*/u_\d{8}\.png: " + NO_SPACE, "digest_log": "cannot write .*/digests.txt: " + NO_SPACE}
TOO_LARGE = "File too large'?"


class SmallDisk:
    """A file system of 2 MiB and 200 names, for a while. `there` is false where it cannot be mounted."""

    def __init__(self, name):
        self.directory = WORK / name
        self.directory.mkdir()
        r = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m,nr_inodes=200", "isohalo_faults", str(self.directory)],
                           capture_output=True, text=True)
        self.there, self.why = r.returncode == 0, r.stderr.strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.there:
            subprocess.run(["umount", "--lazy", str(self.directory)])


def full(place, alone=False):
    with SmallDisk("small_" + place + "_alone" * alone) as disk:
        # The log is written into the room it already has, unless it is new.
        nth = 1 if place in ("png", "digest_log") else 2
        scene = Scene("full_" + place, disk.directory / "out", alone=alone)
        for ranks in (3, 2) if place != "digest_log" else (3,):
            r = scene.broken("disk full", ranks, "fill:at=%s:nth=%d:in=%s" % (place, nth, disk.directory), code=3)
            for filler in disk.directory.glob("filler_*"):
                filler.unlink()
            scene.refused(r, KEPT + NO_SPACE if alone else FILLED[place])
        scene.recover(1)


def limited(place, faults, alone=False):
    scene = Scene("limit_" + place + "_alone" * alone, alone=alone)
    for ranks, who, size, pattern in faults:
        nth = 1 if place in ("png", "digest_log") else 2
        r = scene.broken("file may not grow", ranks, "limit:at=%s:nth=%d:rank=%s:bytes=%d" % (place, nth, who, size), code=3,
                         injected=ranks if who == "all" else 1)
        scene.refused(r, pattern)
    scene.recover(2)


def limited_alone(place):
    """Others are stuck in a collective write when one rank cannot write: the rank with the error ends the job."""
    scene = Scene("limit_alone_" + place)
    for ranks in (2, 3):
        r = scene.broken("file may not grow", ranks, "limit:at=%s:nth=2:rank=0:bytes=1" % place, code=3)
        text = r"^isohalo: error: (rank 0: )?cannot write .*/step_\d{8}\.h5 \(earlier checkpoints are kept\): .*%s" % TOO_LARGE
        that(r and len(re.findall(text, r.stderr, re.M)) == 1, "%s on %d: %s" % (scene.name, ranks, r and r.stderr[-800:]))
    scene.recover(1)


def jobs(long):
    needs = r"(rank \d: )?.*\.(h5|tmp) may need [0-9.]+ MiB, a file of this process may have 0\.000095 MiB: raise the limit \(ulimit -f\)"
    with SmallDisk("probe") as disk:
        if not disk.there:
            print("SKIPPED: full disks (mounting a small one needs root): " + disk.why, flush=True)
    for place in FILLED if long else ("reserve", "metadata", "latest"):
        if disk.there:
            yield full, place
    for place in ("create", "write") if long else ("write",):
        if disk.there:
            yield full, place, True
    yield limited, "write", [(3, "0", 100, KEPT + "File too large"), (1, "0", 100, KEPT + "File too large")], True
    yield limited, "data", [(3, "all", 1, KEPT + "write of field data: .*" + TOO_LARGE), (1, "all", 1, KEPT + "write of field data: .*" + TOO_LARGE)]
    if not long:
        return
    yield limited, "free_space", [(3, "2", 100, needs), (2, "all", 100, needs)]
    yield limited, "reserve", [(3, "1", 100, KEPT + needs), (2, "0", 100, KEPT + needs)]
    for place, name in (("metadata", r"step_\d{8}\.json"), ("xmf", r"step_\d{8}\.xmf"), ("png", r"u_\d{8}\.png"), ("digest_log", r"digests\.txt")):
        pattern = "cannot write .*/%s: %s" % (name, TOO_LARGE)
        yield limited, place, [(3, "0", 10, pattern), (1, "0", 10, pattern)]
    for place in ("data", "complete"):
        yield limited_alone, place
