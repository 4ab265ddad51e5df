"""Files that were damaged while nobody looked: cut short, bits flipped. A damaged file is refused by name, and an automatic
restart takes the one before it and says so."""
import os
import random
import re
import shutil
import subprocess

from harness import ISOHALO, WORK
from layout import parts
from scene import EVERY, KEEP, STEPS, Scene, count, that

NEWEST = "step_%08d.h5" % STEPS


def finished(name):
    """A scene in which the run has come to its end, as `recover` wants it."""
    scene = Scene(name)
    scene.directory.mkdir()
    for s in range(STEPS - (KEEP - 1) * EVERY, STEPS + 1, EVERY):
        for suffix in (".h5", ".json", ".xmf"):
            shutil.copy(WORK / "reference" / ("step_%08d%s" % (s, suffix)), scene.directory)
    for picture in (WORK / "reference").glob("*.png"):
        shutil.copy(picture, scene.directory)
    shutil.copy(WORK / "reference/digests.txt", scene.directory)
    os.symlink(NEWEST, scene.directory / "latest.h5")
    return scene


def verify(file, what):
    try:
        r = subprocess.run([ISOHALO, "verify", str(file)], capture_output=True, text=True, timeout=60)
    except subprocess.TimeoutExpired:
        that(False, what + ": verify hangs")
        return None
    that(r.returncode in (0, 1, 2), "%s: verify ends with %d: %s" % (what, r.returncode, r.stderr[-300:]))
    if r.returncode == 2:
        that(re.fullmatch(r"isohalo: error: %s.*\n" % re.escape(str(file)), r.stderr) and r.stdout == "",
             "%s: verify says %r %r" % (what, r.stdout[-300:], r.stderr[-300:]))
    return r


def falls_back(scene, ranks, kind, what, reason):
    """The restart must skip the newest file for that reason, and only it."""
    count(kind)
    warning = "isohalo: warning: skipping a checkpoint that cannot be used: %s" % (scene.directory / NEWEST)
    scene.name += ", " + what
    scene.recover(ranks, warning, reason)


def cut(k, where):
    scene = finished("cut_%d" % k)
    file = scene.directory / NEWEST
    data = file.read_bytes()
    size = where if where >= 0 else len(data) + where
    file.write_bytes(data[:size])
    what = "cut to %d of %d bytes" % (size, len(data))
    r = verify(file, what)
    # The signature has 8 bytes.
    reason = "is no HDF5 file" if size < 8 else "cannot be opened: it is truncated or damaged"
    that(r and r.returncode == 2 and reason in r.stderr, "%s: verify: %s" % (what, r and r.stderr))
    falls_back(scene, k % 4 + 1, "file cut short", what, reason)


def flipped(data, bit):
    damaged = bytearray(data)
    damaged[bit // 8] ^= 1 << bit % 8
    return bytes(damaged)


def bit_of(generator, ranges):
    """Any bit of these parts, all equally likely."""
    at = generator.randrange(sum(b - a for a, b in ranges))
    for a, b in ranges:
        if at < b - a:
            return 8 * (a + at) + generator.randrange(8)
        at -= b - a


def flip_and_restart(k, kind, bit):
    scene = finished("flip_%s_%d" % (kind, k))
    file = scene.directory / NEWEST
    file.write_bytes(flipped(file.read_bytes(), bit))
    what = "bit %d of byte %d (%s) flipped" % (bit % 8, bit // 8, kind)
    r = verify(file, what)
    if kind == "data":
        that(r and r.returncode == 1 and "field u: its digest " in r.stdout and r.stdout.endswith("not good\n"),
             "%s: verify: %s" % (what, r and r.stdout + r.stderr))
        reason = "its data is damaged"
    else:
        that(r and r.returncode == 2, "%s: verify: %s" % (what, r and r.stdout + r.stderr))
        reason = "the config text does not match its digest" if kind == "text" else NEWEST
    falls_back(scene, k % 4 + 1, "bit flipped in " + kind, what, reason)


def many_flips(k, kind, bits):
    """verify alone: whatever means something is found, and nothing else is."""
    good = (WORK / "reference" / NEWEST).read_bytes()
    file = WORK / ("many_%s_%d.h5" % (kind, k))
    for bit in bits:
        file.write_bytes(flipped(good, bit))
        what = "bit %d of byte %d (%s) flipped" % (bit % 8, bit // 8, kind)
        r = verify(file, what)
        count("bit flipped in " + kind)
        expected = 1 if kind in ("unused bytes", "data") else 2
        that(r and r.returncode == expected, "%s: verify ends with %s" % (what, r and (r.returncode, r.stdout[-200:], r.stderr[-200:])))
    file.unlink()


def jobs(long):
    generator = random.Random(20170)
    size = (WORK / "reference" / NEWEST).stat().st_size
    found = parts(WORK / "reference" / NEWEST)
    used = sorted(r for ranges in found.values() for r in ranges)
    that(all(a[1] <= b[0] for a, b in zip(used, used[1:])), "parts of the file overlap: %r" % used)
    for k, where in enumerate([0, 7, 8, 48, -1] if long else [-1]):
        yield cut, k, where
    for k in range(5, 20 if long else 7):
        yield cut, k, generator.randrange(1, size)
    for kind, ranges in found.items():
        for k in range(8 if long else 1):
            yield flip_and_restart, k, kind, bit_of(generator, ranges)
        if long:
            for k in range(2):
                yield many_flips, k, kind, [bit_of(generator, ranges) for _ in range(40)]
    gaps = [(a[1], b[0]) for a, b in zip(used, used[1:] + [(size, size)]) if a[1] < b[0]]
    if gaps and long:  # what HDF5 allocates and does not use
        yield many_flips, 0, "unused bytes", [bit_of(generator, gaps) for _ in range(10)]
