#!/usr/bin/python3
"""Exact sums against Python: math.fsum, and rational arithmetic where fsum gives up.

usage: exact_sums.py EXACT_SUMS MPIEXEC WORK_DIRECTORY
"""
import math
import pathlib
import random
import struct
import subprocess
import sys
from fractions import Fraction

PROGRAM, MPIEXEC, WORK = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
INF, NAN = math.inf, math.nan
LARGEST, TINY = sys.float_info.max, 5e-324


def bits(v):
    return struct.pack(">d", v).hex()


def expected(values):
    """The exact sum, rounded once; IEEE where it has no finite value."""
    if any(math.isnan(v) for v in values) or (INF in values and -INF in values):
        return "7ff8000000000000"
    if INF in values or -INF in values:
        return bits(INF if INF in values else -INF)
    exact = sum((Fraction(v) for v in values), Fraction(0))
    try:
        rounded = float(exact)
    except OverflowError:
        return bits(INF if exact > 0 else -INF)
    try:
        if bits(math.fsum(values)) != bits(rounded):
            sys.exit("fsum and rational arithmetic disagree: %r" % values)
    except OverflowError:
        pass  # fsum gives up on intermediate overflow
    return bits(rounded)


def random_double(rng):
    while True:
        v = struct.unpack("<d", rng.getrandbits(64).to_bytes(8, "little"))[0]
        if math.isfinite(v):
            return v


def cases():
    rng = random.Random(7)
    half = 2.0**-53
    fixed = [
        [], [0.0], [-0.0], [-0.0, -0.0], [0.0, -0.0], [TINY], [-TINY], [TINY] * 7, [TINY, -TINY], [2.0**-1022, -TINY],
        [1.0, half], [1.0, half, TINY], [1.0, half, -TINY], [1.0 + 2 * half, half], [-1.0, -half], [-1.0, -half, -TINY],
        [1.0, -half / 2], [1.0, -half / 2, TINY], [1e16, 1.0, -1e16], [1e308, 1e308, -1e308], [LARGEST, LARGEST],
        [-LARGEST, -LARGEST], [LARGEST, LARGEST, -LARGEST, -LARGEST], [LARGEST, 2.0**970], [LARGEST, 2.0**969],
        [LARGEST, 2.0**970, -TINY], [-LARGEST, -(2.0**970)], [INF], [-INF], [INF, INF], [INF, -INF], [NAN], [NAN, INF], [INF, -LARGEST],
        [-NAN, 1.0], [LARGEST] * 1000, [LARGEST] * 500 + [-LARGEST] * 500 + [TINY],
        [2.0**1023, 2.0**-1074, -(2.0**1023)], [2.0**k for k in range(-1074, 1023)], [-(2.0**k) for k in range(-1074, 1023)],
        [(-1.0) ** k * 2.0**k for k in range(-1074, 1023)],
    ]
    yield from fixed
    for n in (1, 2, 3, 5, 20, 100, 1000):
        for _ in range(20):
            yield [random_double(rng) for _ in range(n)]
            yield [rng.uniform(-1, 1) for _ in range(n)]
            yield [rng.uniform(-1, 1) * 2.0 ** rng.randint(-60, 60) for _ in range(n)]
            some = [rng.uniform(-1, 1) * 2.0 ** rng.randint(-1000, 900) for _ in range(n)]
            yield some + [-v for v in some] + [rng.choice([TINY, 1.0, -half])]  # cancels to what is left
            yield [rng.randint(-9, 9) * TINY for _ in range(n)]
            near = rng.uniform(1, 2)  # ties: half a last place, and a little more or less
            yield [near, half * rng.choice([-1, 1]), rng.choice([0.0, TINY, -TINY, 2.0**-300, -(2.0**-300)])]


def main():
    WORK.mkdir(parents=True, exist_ok=True)
    lists = list(cases())
    (WORK / "numbers.txt").write_text("".join(" ".join(map(bits, values)) + "\n" for values in lists))
    want = [expected(v) for v in lists]
    failed = 0
    for ranks in (1, 2, 3, 4, 6):
        run = subprocess.run([MPIEXEC, "-n", str(ranks), PROGRAM, str(WORK / "numbers.txt")], capture_output=True,
                             text=True, timeout=120)
        got = run.stdout.split()
        if run.returncode or run.stderr or len(got) != len(want):
            failed += 1
            print("FAILED: %d ranks: exit code %d, %d sums, %s" % (ranks, run.returncode, len(got), run.stderr), file=sys.stderr)
        for values, w, g in zip(lists, want, got):
            if w != g:
                failed += 1
                print("FAILED: %d ranks: sum of %.300r is %s, not %s" % (ranks, values, w, g), file=sys.stderr)
    print("%d sums on 5 rank counts, %d failed" % (len(lists), failed))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
