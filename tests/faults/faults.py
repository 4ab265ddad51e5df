#!/usr/bin/python3
"""Breaks runs and files in every way that we could think of. After each fault: no hang, the right message and exit code,
nothing half-done under a final name, and a continued run that leaves the bytes of an undisturbed one.

usage: faults.py ISOHALO MPIEXEC WORK_DIRECTORY ISOHALO_FAULTY short|long [NAME ..]    (NAME: only these files' tests)
"""
import concurrent.futures
import sys
import time
import traceback

import scene  # finds the others' harness
import damage
import disk
import interruptions
import protocol
import reading
from scene import harness

AT_ONCE = 4  # most of the time goes into waiting
PARTS = (disk, protocol, interruptions, damage, reading)


def attempt(job):
    start = time.monotonic()
    try:
        job[0](*job[1:])
    except Exception:
        scene.that(False, "%s%r: %s" % (job[0].__name__, job[1:], traceback.format_exc()))
    print("%6.1f s  %s %s" % (time.monotonic() - start, job[0].__name__, job[1] if len(job) > 1 else ""), flush=True)


def main():
    long, names = sys.argv[5] == "long", sys.argv[6:]
    harness.fresh_work_directory(scene.INPUT)
    scene.make_reference()
    jobs = [job for part in PARTS if not names or part.__name__ in names for job in part.jobs(long)]
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(attempt, jobs))
    for kind, number in sorted(scene.faults.items()):
        print("%4d  %s" % (number, kind))
    total = sum(scene.faults.values())
    print("%4d  faults" % total)
    if not names:
        scene.that(total >= (200 if long else 20), "only %d faults" % total)
    harness.finish()


if __name__ == "__main__":
    main()
