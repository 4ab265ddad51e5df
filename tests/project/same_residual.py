#!/usr/bin/python3
"""An example in another language gives the bits of embed_heat on 1, 2, 3 and 4 ranks.

usage: same_residual.py EMBED_HEAT MPIEXEC COMMAND ..
"""
import subprocess
import sys

REFERENCE, MPIEXEC, COMMAND = sys.argv[1], sys.argv[2], sys.argv[3:]


def residual(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    lines = [line for line in done.stdout.splitlines() if line.startswith("residual =")]
    if done.returncode != 0 or len(lines) != 1:
        sys.exit("%s ended with %d\n%s%s" % (" ".join(command), done.returncode, done.stdout, done.stderr))
    return float(lines[0].split("=")[1])


expected, bad = residual([REFERENCE]), 0
for ranks in (1, 2, 3, 4):
    got = residual([MPIEXEC, "-n", str(ranks)] + COMMAND)
    if got != expected:
        bad += 1
        print("FAILED: %d ranks: %r, not %r" % (ranks, got, expected), file=sys.stderr)
print("residual %r on 1, 2, 3 and 4 ranks: %d failed" % (expected, bad))
sys.exit(1 if bad else 0)
