#!/usr/bin/python3
"""README's words are checked against the project: its set-up commands exist, its shell blocks marked `runs` work, the
files and keys it names are there.

usage: readme.py SOURCE_DIRECTORY WORK_DIRECTORY [commands|text]
"""
import pathlib
import re
import shutil
import subprocess
import sys

ROOT, WORK, MODE = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
README = (ROOT / "README.md").read_text()
failures = []


def blocks(marker):
    """Shell blocks that follow a line <!-- marker -->."""
    return re.findall(r"<!-- %s -->\n+```(?:sh|bash)\n(.*?)```" % marker, README, re.S)


def check_text():
    setup = "\n".join(blocks("set-up"))
    for command in ("bash apps/quickstart.sh", "bash tests/run.sh"):
        if command not in setup:
            failures.append("README's set-up does not say %r" % command)
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        if "://" not in target and not (ROOT / target).exists():
            failures.append("README links to %s, which is not there" % target)
    for path in re.findall(r"`((?:apps|inputs|tests|framework|stencils|datatypes|cmake)/[\w/.-]*)`", README):
        if not (ROOT / path).exists():
            failures.append("README names %s, which is not there" % path)


def run_commands():
    """Each block marked `runs` in a copy of the working directory, with the built program."""
    found = blocks("runs")
    if len(found) < 3:
        failures.append("README has only %d blocks to run" % len(found))
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    (WORK / "build").symlink_to(ROOT / "build")
    (WORK / "inputs").symlink_to(ROOT / "inputs")
    for block in found:
        r = subprocess.run(["bash", "-euc", block], cwd=WORK, capture_output=True, text=True, timeout=300)
        if r.returncode:
            failures.append("README's block fails with %d:\n%s%s%s" % (r.returncode, block, r.stdout[-500:], r.stderr[-1500:]))


check_text() if MODE == "text" else run_commands()
for f in failures:
    print("FAILED:", f, file=sys.stderr)
print("README %s: %d failed" % (MODE, len(failures)))
sys.exit(1 if failures else 0)
