#!/usr/bin/python3
"""What belongs to a run in its directory: the lock, names of files and links in their place, one line of history, what
--overwrite removes; files of the same bytes on any ranks, small and large.

usage: directory.py ISOHALO MPIEXEC WORK_DIRECTORY
"""
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

import h5py
import numpy as np

from harness import ISOHALO, MPIEXEC, WORK, finish, fresh_work_directory, isohalo, launch, that

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
steps = 40
[output]
checkpoint_every = 10
digest_every = 5
"""
LOCK = ".isohalo_lock"


def run(ranks, directory, *overrides, code=0):
    return isohalo(ranks, "run", "input.toml", "output.directory=%s" % directory, *overrides, code=code)


def names(directory):
    return sorted(p.name for p in (WORK / directory).iterdir())


def contents(directory):
    """name -> bytes, or where a link leads."""
    return {p.name: os.readlink(p) if p.is_symlink() else p.read_bytes() for p in (WORK / directory).iterdir() if p.name != LOCK}


def below(launcher):
    """Process ids of the ranks that a launcher started."""
    parents, programs = {}, {}
    for p in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            parents[int(p.name)] = int((p / "stat").read_text().rsplit(")", 1)[1].split()[1])
            programs[int(p.name)] = os.readlink(p / "exe")
        except OSError:
            pass
    found = {launcher}
    for _ in range(5):
        found |= {p for p, parent in parents.items() if parent in found}
    return [p for p in found if programs.get(p) == os.path.realpath(ISOHALO)]


class Endless:
    """A run that holds its directory until it is ended."""

    def __init__(self, ranks, directory):
        self.run = subprocess.Popen([MPIEXEC, "-n", str(ranks), ISOHALO, "run", "input.toml", "output.directory=" + directory, "run.steps=1000000000",
                                     "output.checkpoint_every=0", "output.digest_every=0", "--restart", "auto"],
                                    cwd=WORK, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.ranks = ranks
        end = time.monotonic() + 60
        while not self.holder() and time.monotonic() < end:
            time.sleep(0.02)

    def holder(self):
        """The process that the lock names, once it is one of this run's."""
        running = below(self.run.pid)
        for lock in WORK.glob("*/" + LOCK):
            words = lock.read_text().split()
            if len(words) == 2 and int(words[0]) in running:
                return int(words[0])
        return None

    def end(self, number):
        """A signal to rank 0, which holds the lock."""
        ranks = below(self.run.pid)
        os.kill(self.holder() or min(ranks), number)
        self.run.communicate(timeout=60)
        end = time.monotonic() + 20
        while any(pathlib.Path("/proc/%d" % p).exists() for p in ranks) and time.monotonic() < end:
            time.sleep(0.02)


def test_lock():
    run(2, "held", "run.steps=20")
    before = contents("held")
    for ranks in (1, 3):
        holder = Endless(ranks, "held")
        process = holder.holder()
        that(process, "the lock names no process of the run")
        text = "isohalo: error: output.directory held is in use by process %s on %s: wait until that run has ended, or choose another directory\n" % (
            process, socket.gethostname())
        for others, more in ((1, ()), (3, ("--overwrite",)), (2, ("--restart", "auto")), (4, ("--restart", "held/step_00000010.h5"))):
            r = run(others, "held", *more, code=2)
            that(r.stderr == text, "%d ranks %r beside a run: %r instead of %r" % (others, more, r.stderr, text))
        os.symlink("held", WORK / "other_name")
        that("is in use by process" in run(1, "other_name", "--overwrite", code=2).stderr, "another name of the directory")
        (WORK / "other_name").unlink()
        that(contents("held") == before, "refused runs changed the directory: %s" % names("held"))
        holder.end(signal.SIGKILL)
        that((WORK / "held" / LOCK).exists() and contents("held") == before, "the killed run left %s" % names("held"))
    r = run(3, "held", "--restart", "auto")
    that("restarting at step 20" in r.stdout and r.stderr == "", "a restart after the holder was killed: " + r.stdout + r.stderr)


def test_links():
    """Nothing is written through a link, whoever put it there; what is ours takes the link's place or says so."""
    victim = WORK / "victim"
    victim.write_text("precious")
    directory = WORK / "links"
    directory.mkdir()
    random = ".0123456789abcdef.tmp"
    for name in (".isohalo_probe" + random, "step_00000010.h5" + random, "step_00000010.json" + random, "u_00000020.png" + random, "latest.h5"):
        os.symlink(victim, directory / name)
    r = run(3, "links", "output.picture_every=20")
    that(r.stderr == "" and victim.read_text() == "precious", "written through a link: %r" % victim.read_bytes()[:80])
    that(not [n for n in names("links") if n.endswith(".tmp")], "links are left: %s" % names("links"))
    that(os.readlink(directory / "latest.h5") == "step_00000040.h5", "latest.h5 is the old link")
    for name, code in (("digests.txt", 2), (LOCK, 2), ("step_00000010.json", 3)):
        shutil.rmtree(directory)
        directory.mkdir()
        os.symlink(victim, directory / name)
        r = run(2, "links", code=code)
        that(name in r.stderr and "symbolic link" in r.stderr and r.stderr.count("isohalo: error") == 1, "a link %s: %s" % (name, r.stderr))
        that(victim.read_text() == "precious", "written through the link " + name)
    (directory / "step_00000010.json").unlink()
    (directory / "digests.txt").unlink()
    os.mkfifo(directory / "digests.txt")
    r = run(2, "links", "--restart", "auto", code=2)
    that("digests.txt is no regular file" in r.stderr, "a fifo in place of the log: " + r.stderr)
    for kind, arguments in (("svg", ("schedule", "d2", "--ranks", 4, "--svg", "link.svg")),):
        os.symlink(victim, WORK / "link.svg")
        isohalo(0, *arguments, code=2)
        that(victim.read_text() == "precious", kind + " written through a link")


def test_colons():
    """MPI-IO, which several compute nodes write by name, takes what stands before a ':' for a kind of file system."""
    for directory in ("noon/12:30", "ufs:noon"):
        r = subprocess.run([MPIEXEC, "-n", "2", ISOHALO, "run", "input.toml", "domain.shape=[1024,700]", "run.steps=1", "output.directory=" + directory],
                           cwd=WORK, env=dict(os.environ, MPIR_CVAR_NOLOCAL="1"), capture_output=True, text=True, timeout=120)
        that(r.returncode == 0, "%s: exit code %d: %s" % (directory, r.returncode, r.stderr[-400:]))
        isohalo(1, "verify", directory + "/step_00000001.h5")


def test_other_names_of_files():
    """Files with another name (a snapshot by hard links, or somebody's file) are not written to."""
    run(1, "hard", "run.steps=10")
    (WORK / "snapshot").mkdir()
    for name in names("hard"):
        os.link(WORK / "hard" / name, WORK / "snapshot" / name)
    before = {n: (WORK / "snapshot" / n).read_bytes() for n in names("snapshot") if not (WORK / "snapshot" / n).is_symlink()}
    run(2, "hard", "--restart", "auto")
    that(all((WORK / "snapshot" / n).read_bytes() == b for n, b in before.items()), "a restart has changed a snapshot")
    that("40 " in (WORK / "hard/digests.txt").read_text(), "the log of the run itself goes on")


def test_directory_taken_away():
    """A run whose directory is moved, removed or replaced ends and writes nothing into what has its name now."""
    for way in ("moved", "replaced", "unlocked"):
        place = WORK / ("gone_" + way)
        held = subprocess.Popen([MPIEXEC, "-n", "2", ISOHALO, "run", "input.toml", "output.directory=" + place.name, "run.steps=100000000", "run.time_limit_s=60",
                                 "output.checkpoint_every=1000"], cwd=WORK, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        end = time.monotonic() + 60
        while not (place / "latest.h5").is_symlink() and time.monotonic() < end:
            time.sleep(0.01)
        if way == "unlocked":
            (place / LOCK).unlink()
        else:
            place.rename(WORK / ("former_" + way))
        if way == "replaced":
            place.mkdir()
        out, err = held.communicate(timeout=60)
        lost = "was moved, removed or replaced while this run used it" in err or (way != "unlocked" and "cannot" in err)  # in the middle of a file
        that(held.returncode == 3 and lost, "%s: %d %s" % (way, held.returncode, err))
        there = {n[5:13] for n in names(place.name) if n.startswith("step_")} if way == "replaced" else set()
        that(len(there) <= 1, "%s: written there: %s" % (way, there))  # what was under way


def test_exchanged_file():
    """Whoever may write to the directory puts links in the place of files in the making: nothing is written through them."""
    victim, place = WORK / "exchanged_victim", WORK / "exchanged"
    victim.write_text("precious")
    place.mkdir()
    for shape in ("[40,60]", "[1100,600]"):  # written by rank 0, and by all
        held = subprocess.Popen([MPIEXEC, "-n", "2", ISOHALO, "run", "input.toml", "output.directory=" + place.name, "run.steps=40", "output.checkpoint_every=1",
                                 "domain.shape=" + shape, "--overwrite"], cwd=WORK, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        exchanged = 0
        while held.poll() is None:
            for name in os.listdir(place):
                if name.startswith("step_") and ".h5." in name and not (place / name).is_symlink():
                    try:
                        (place / name).unlink()
                        os.symlink(victim, place / name)
                        exchanged += 1
                    except OSError:
                        pass
        err = held.communicate()[1]
        that(victim.read_text() == "precious", "%s: written through a link" % shape)
        that(not [n for n in names("exchanged") if n.endswith(".h5") and n != "latest.h5" and (place / n).is_symlink()], "%s: a link is a checkpoint" % shape)
        that(held.returncode == 0 if not exchanged else held.returncode in (0, 3), "%s: exit code %d: %s" % (shape, held.returncode, err))


def test_wrong_name():
    """A checkpoint under the name of another step is not believed."""
    run(1, "misnamed", "run.steps=10")
    shutil.copy(WORK / "misnamed/step_00000010.h5", WORK / "misnamed/step_00000050.h5")
    r = run(2, "misnamed", "--restart", "auto")
    that("holds step 10, not that of its name" in r.stderr and "restarting at step 10" in r.stdout and "newer" not in r.stdout, "misnamed: " + r.stdout + r.stderr)
    (WORK / "misnamed/step_00000010.h5").unlink()
    shutil.copy(WORK / "misnamed/step_00000020.h5", WORK / "misnamed/step_00000060.h5")
    r = run(1, "misnamed", "--restart", "auto", "--validate")
    that("step_00000060.h5 holds step 20, not that of its name" in r.stderr and r.returncode == 0, "misnamed, --validate: " + r.stdout + r.stderr)


def test_latest():
    """latest.h5 leads to a checkpoint that the run has not found damaged, and to nothing else of that name."""
    for restart in ("auto", "damaged/step_00000030.h5"):
        run(1, "damaged", "--overwrite")
        newest = WORK / "damaged/step_00000040.h5"
        newest.write_bytes(newest.read_bytes()[:3000])
        run(2, "damaged", "--restart", restart, "run.steps=35")
        that(latest("damaged") == "step_00000035.h5", "--restart %s: latest.h5 leads to %s" % (restart, latest("damaged")))
        run(2, "damaged", "--restart", "auto")
        that(latest("damaged") == "step_00000040.h5", "once it is done again, latest.h5 leads to " + latest("damaged"))
    directory = WORK / "others"
    directory.mkdir()
    (directory / "step_00000200.h5").mkdir()
    os.mkfifo(directory / "step_00000500.h5")
    os.symlink("nowhere", directory / "step_00000600.h5")
    run(1, "others", "run.steps=10")
    that(latest("others") == "step_00000010.h5", "latest.h5 leads to " + latest("others"))
    for mode in (("--validate",), ()):
        r = run(3, "others", "--restart", "auto", "run.steps=20", *mode)
        skipped = "isohalo: warning: skipping a checkpoint that cannot be used: others/step_00000%d.h5%s\n"
        that(r.stderr == skipped % (600, ": no such file") + skipped % (500, " is no regular file") + skipped % (200, " is a directory, not a file"),
             "%s passes over them: %s" % (mode, r.stderr))
    that(latest("others") == "step_00000020.h5" and "newer" not in r.stdout and "restarting at step 10" in r.stdout, "latest.h5 leads to " + latest("others") + r.stdout)
    run(1, "others", "--overwrite", "run.steps=10")
    that([n for n in names("others") if n.endswith(".h5")] == ["latest.h5", "step_00000010.h5", "step_00000200.h5"], "--overwrite leaves %s" % names("others"))


def test_leftovers():
    """Temporary files of ours go, whoever was interrupted; a user's own stay."""
    ours = ["step_00000010.h5.0123456789abcdef.tmp", "step_123456789.json.fedcba9876543210.tmp", "u_00000020.png.0123456789abcdef.tmp",
            "latest.h5.0123456789abcdef.tmp", "digests.txt.0123456789abcdef.tmp", ".isohalo_probe.0123456789abcdef.tmp"]
    users = ["fig_00000007.png.tmp", "step_00000010.xmf.tmp", "step_10.h5.tmp", "notes.tmp", "step_00000010.h5.0123456789ABCDEF.tmp", "step_00000010.h5.old", "u_20.png.tmp", "step_000000010.h5.tmp",
             "step_00000010.csv.0123456789abcdef.tmp", "result.0123456789abcdef.tmp"]
    (WORK / "left").mkdir()
    for name in ours + users:
        (WORK / "left" / name).write_text("x")
    run(1, "left", "run.steps=10")
    that(not set(ours) & set(names("left")), "left: %s" % sorted(set(ours) & set(names("left"))))
    that(set(users) <= set(names("left")), "the user's are gone: %s" % sorted(set(users) - set(names("left"))))


def test_overwrite():
    run(2, "over", "output.picture_every=10", "output.xdmf=true")
    directory = WORK / "over"
    # Left behind without a checkpoint, and a step of nine digits.
    for name in ("step_00000005.json", "step_00000006.xmf", "step_123456789.h5"):
        (directory / name).write_text("x")
    for name in ("u_00000005.png", "another field_123456789.png"):
        shutil.copy(directory / "u_00000010.png", directory / name)
    users = ["u_20.png", "plot_20260101.png", "u_00000010.png.bak", "step_10.h5", "step_00000010.h5.bak", "my_step_00000010.h5", "notes.txt", "figure.png",
             "step_0000000010.json"]
    for name in users:
        (directory / name).write_text("mine")
    (directory / "step_00000020.xmf.d").mkdir()
    run(3, "over", "--overwrite", "run.steps=7", "output.checkpoint_every=7", "output.digest_every=0")
    expected = sorted(users + [LOCK, "latest.h5", "step_00000007.h5", "step_00000007.json", "step_00000007.xmf", "step_00000020.xmf.d"])
    that(names("over") == expected, "--overwrite leaves %s" % names("over"))


def test_outputs_without_checkpoints():
    """A digest log and pictures are outputs of a run as well: a fresh run neither deletes nor joins them; --overwrite takes pictures of any field."""
    none = ["output.checkpoint_every=0", "output.final_checkpoint=false"]
    for what, name, more in (("digests", "digests.txt", ["output.digest_every=10"]), ("pictures", "u_00000040.png", ["output.digest_every=0", "output.picture_every=40"])):
        run(2, what, *none, *more)
        before = contents(what)
        that(sorted(before) == [name], "%s: the run leaves %s" % (what, sorted(before)))
        for ranks, check in ((3, ()), (1, ("--validate",))):
            r = run(ranks, what, *none, *more, "solver.kappa=2", *check, code=2)
            that(r.stderr == "isohalo: error: output.directory %s already holds %s (%s): replace them with --overwrite, or choose another directory\n" % (what, what, name),
                 "%s: %s" % (what, r.stderr))
        that(contents(what) == before, "a refused run changed %s" % names(what))
        run(2, what, *none, "output.digest_every=0", "solver.kappa=2", "--overwrite")
        that(names(what) == [LOCK], "--overwrite leaves %s" % names(what))
    (WORK / "several.toml").write_text(INPUT.replace('"heat"', '"gray_scott"').replace("boundary.low = ", "#").replace("boundary.high = ", "#").replace(
        '[initial]\nkind = "random"\nseed = 3', '[initial.u]\nkind = "constant"\nvalue = 1.0\n[initial.v]\nkind = "constant"'))
    isohalo(1, "run", "several.toml", "output.directory=several", *none, "output.digest_every=0", "output.picture_every=20", "output.picture_field=v")
    that(names("several") == [LOCK, "v_00000020.png", "v_00000040.png"], "pictures of v: %s" % names("several"))
    run(1, "several", "--overwrite", *none, "output.digest_every=0")
    that(names("several") == [LOCK], "--overwrite leaves pictures of another field: %s" % names("several"))
    (WORK / "users").mkdir()
    (WORK / "users/plot_20260101.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(80))
    (WORK / "users/digests.txt").write_text("")
    run(1, "users")


def log(directory):
    return (WORK / directory / "digests.txt").read_text().splitlines()


def latest(directory):
    return os.readlink(WORK / directory / "latest.h5")


def test_history():
    run(1, "line")
    straight, whole = log("line"), contents("line")
    that([int(l.split()[0]) for l in straight] == list(range(5, 41, 5)), "the log: %r" % straight)
    # From an earlier step, to one before the newest: the log keeps what is later, latest.h5 stays.
    r = run(3, "line", "--restart", "line/step_00000010.h5", "run.steps=20")
    that("3 newer checkpoints are in line (steps 20 to 40): steps that are done again replace them\n" in r.stdout, "no word of newer checkpoints: " + r.stdout)
    that(log("line") == straight and r.stderr == "", "the log after a restart from step 10: %r, %s" % (log("line"), r.stderr))
    that(latest("line") == "step_00000040.h5", "latest.h5 moved back to " + latest("line"))
    that({k: v for k, v in contents("line").items() if k.endswith(".h5")} == {k: v for k, v in whole.items() if k.endswith(".h5")}, "steps done again differ")
    r = run(2, "line", "--restart", "auto", "run.steps=50")
    that("restarting at step 40 from line/step_00000040.h5" in r.stdout and "newer" not in r.stdout and latest("line") == "step_00000050.h5",
         "--restart auto: " + r.stdout)
    # Other steps between, a line that was cut short, one that is foreign.
    lines = log("line")
    (WORK / "line/digests.txt").write_text("\n".join(lines[:2] + [lines[2].replace("u=", "u=f" if lines[2].split("u=")[1][0] != "f" else "u=e", 1)[:0] +
                                                                   re.sub("u=.", "u=" + ("0" if "u=0" not in lines[2] else "1"), lines[2])] + lines[3:]) + "\n55 u=01")
    r = run(2, "line", "--restart", "line/step_00000010.h5", "run.steps=20", "output.digest_every=4")
    that(r.stderr == "", "warning without a reason: " + r.stderr)
    that([int(l.split()[0]) for l in log("line")] == [5, 10, 12, 15, 16, 20] + list(range(25, 51, 5)), "the log is not sorted: %r" % log("line"))
    r = run(2, "line", "--restart", "line/step_00000010.h5", "run.steps=20")
    that(len(re.findall(r"isohalo: warning: line/digests.txt: step 15 was done before with other digests", r.stderr)) == 1 and r.stderr.count("warning") == 1,
         "a foreign line in the log: " + r.stderr)
    that([l for l in log("line") if int(l.split()[0]) % 5 == 0][:8] == straight, "the foreign line stays: %r" % log("line"))
    # Lines that are damaged are left out with one warning; the rest stays.
    run(1, "line", "--overwrite")
    damaged = lambda *changes: "\n".join(dict(changes).get(k + 1, l) for k, l in enumerate(straight)) + "\n"
    left_out = "isohalo: warning: left out of the log: line/digests.txt:%d: no line of a digest log: %s\n"
    for text, warning, steps in (
            (damaged((3, straight[2].replace("15 ", "1x ", 1))), left_out % (3, '"x" is no NAME=DIGEST'), "5 10 20 25 30 35 40"),
            (damaged((3, straight[2].replace("15 ", "20 ", 1))), left_out % (4, "step 20 is there twice"), "5 10 20 25 30 35 40"),
            (damaged((2, ""), (7, straight[6] + " \0"), (8, "x" * 5000)), left_out % (2, "the line does not begin with a step; so are 2 more"), "5 15 20 25 30 40"),
            ("my\nnotes\n", left_out % (1, "the line does not begin with a step; so are 1 more"), "40"),
            ("7 a=" + "x" * 5000, None, "40"), ("40 u=01", left_out % (1, '"01" is no digest (16 lower-case hex digits)'), "40")):
        (WORK / "line/digests.txt").write_text(text)
        r = run(2, "line", "--restart", "line/step_00000030.h5", "output.digest_every=40")
        that(r.stderr == warning if warning else r.stderr.startswith("isohalo: warning: left out of the log: line/digests.txt:1: ") and len(r.stderr) < 400,
             "a log with damage: %s" % r.stderr)
        that([l.split()[0] for l in log("line")] == steps.split() and log("line")[-1] == straight[-1], "what is left of it: %r" % log("line"))


def test_other_line():
    """A restart beside checkpoints of another run is refused before anything changes."""
    run(1, "mine", "run.steps=20")
    run(1, "foreign", "run.steps=10", "solver.kappa=2.0")
    run(1, "exact", "run.steps=10", "parallel.reduction=exact")
    (WORK / "foreign/step_00000010.h5.0123456789abcdef.tmp").write_text("left")
    # The newest one is damaged: the one before counts.
    shutil.copy(WORK / "foreign/step_00000010.h5", WORK / "foreign/step_00000030.h5")
    with open(WORK / "foreign/step_00000030.h5", "r+b") as f:
        f.truncate(700)
    for directory, key in (("foreign", "solver.kappa (2 in the file, 1 here)"), ("exact", "parallel.reduction (exact in the file, tree here)")):
        before = contents(directory)
        r = run(3, directory, "--restart", "mine/step_00000020.h5", code=2)
        that("holds checkpoints of another run: %s/step_00000010.h5 was computed with other %s" % (directory, key) in r.stderr and
             r.stderr.count("isohalo: error") == 1, "%s: %s" % (directory, r.stderr))
        that(contents(directory) == before, "a refused restart changed %s: %s" % (directory, names(directory)))
    r = run(2, "foreign", "--restart", "auto", code=2)
    that("solver.kappa" in r.stderr, "auto: " + r.stderr)
    r = run(2, "elsewhere", "--restart", "mine/step_00000010.h5", "run.steps=20")
    that((WORK / "elsewhere/step_00000020.h5").read_bytes() == (WORK / "mine/step_00000020.h5").read_bytes(), "a restart into an empty directory")


def test_same_files():
    """Below and above the size up to which rank 0 writes alone; data lie at multiples of 64 bytes."""
    for name, shape in (("small", "[37,53]"), ("large", "[811,907]")):
        for ranks in (1, 2, 3, 4):
            run(ranks, "%s_%d" % (name, ranks), "domain.shape=" + shape, "run.steps=4", "output.checkpoint_every=0", "output.digest_every=0")
            a, b = (WORK / ("%s_%d/step_00000004.h5" % (name, r)) for r in (1, ranks))
            that(a.read_bytes() == b.read_bytes(), "%s: the file of %d ranks is another" % (name, ranks))
        isohalo(1, "verify", a)
        names = {}
        exec(isohalo(1, "info", "--numpy", a).stdout, names)
        values = names["fields"]
        with h5py.File(a) as f:
            that(np.array_equal(values["u"], f["fields/u"][...]), "info --numpy of the %s file" % name)
        that(values["u"].offset % 64 == 0 and values["u"].ctypes.data % 64 == 0, "%s: data at byte %d" % (name, values["u"].offset))
    poisson = ["solver.kind=poisson", "solver.method=cg", "source.kind=sine", "domain.shape=[5,3]"]
    run(2, "three", *poisson, "run.steps=2", "output.checkpoint_every=0")
    with h5py.File(WORK / "three/step_00000002.h5") as f:
        offsets = {n: f["fields"][n].id.get_offset() for n in f["fields"]}
    that(len(offsets) == 3 and all(o % 64 == 0 for o in offsets.values()), "data of small fields: %r" % offsets)


def test_last_run_metadata():
    """The JSON of the last checkpoint knows that checkpoint's own time."""
    run(3, "timed", "output.checkpoint_every=0", "output.digest_every=0")
    phases = json.loads((WORK / "timed/step_00000040.json").read_text()).get("phases", {})
    that("checkpoint" in phases and phases["checkpoint"]["max_s"] > 0, "the last JSON lacks its checkpoint: %r" % phases)


def main():
    fresh_work_directory(INPUT)
    for test in (test_lock, test_links, test_colons, test_other_names_of_files, test_directory_taken_away, test_exchanged_file, test_wrong_name, test_latest, test_leftovers, test_overwrite, test_outputs_without_checkpoints, test_history, test_other_line, test_same_files, test_last_run_metadata):
        start = time.monotonic()
        test()
        print("%5.1f s  %s" % (time.monotonic() - start, test.__name__), flush=True)
    finish()


if __name__ == "__main__":
    main()
