#!/usr/bin/python3
"""MPICH's own tests of collectives without and with libisohalo_mpi.so: what passes without it must pass with it.

usage: mpich_suite.py DIRECTORY_OF_BUILT_PROGRAMS TESTLIST MPIEXEC LIBRARY

The programs are those of MPICH's test/mpi/coll, built with the compiler wrapper of the MPICH that MPIEXEC belongs to,
and TESTLIST is the list beside them: lines  NAME RANKS arg=.. env=NAME=VALUE ..  A test passes when it exits with 0
and prints "No Errors". Ranks are 8 at most, and 4 at most where more take too long. What is not built, or takes
gigabytes, is left out. Prints a line for each test that differs, and a summary. Exit code 1 when one passes without
and fails with the library, or none passes at all.
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

MOST_RANKS, FEWER_RANKS, SECONDS, MOST_GIGABYTES = 8, 4, 60, 4
PROGRAMS, TESTLIST, MPIEXEC, LIBRARY = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]), *sys.argv[3:5]
PRELOAD = ["-genv", "LD_PRELOAD", str(pathlib.Path(LIBRARY).resolve()), "-genv", "ISOHALO_MPI_REPORT", "1"]
spent = {False: 0.0, True: 0.0}  # seconds without and with the library


def tests():
    """(name, ranks, arguments, environment) of each line; a name of "@..@" stands for what configure decides."""
    for line in TESTLIST.read_text().splitlines():
        words = line.split("#")[0].split()
        if len(words) < 2 or words[0].startswith("@"):
            continue
        options = [w.partition("=")[::2] for w in words[2:]]
        if any(key == "mem" and float(value) > MOST_GIGABYTES for key, value in options):
            continue
        yield (words[0], min(int(words[1]), MOST_RANKS), [v for k, v in options if k == "arg"],
               [v.split("=", 1) for k, v in options if k == "env"])


def run(test, ranks, preload, limit=SECONDS, tries=3):
    """("pass", "fail" or "time out", what it printed). The launcher ends a program that takes too long. When MPI does
    not even start, which the library has no part in, the test is run again."""
    name, _, arguments, environment = test
    settings = [word for pair in environment for word in ["-genv", *pair]] + (PRELOAD if preload else [])
    command = [MPIEXEC, *settings, "-n", str(ranks), str(PROGRAMS / name), *arguments]
    began = time.monotonic()
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             text=True, errors="replace", cwd=PROGRAMS, start_new_session=True,
                             env={**os.environ, "MPIEXEC_TIMEOUT": str(limit)})
    try:
        output = child.communicate(timeout=limit + 30)[0]
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        output = child.communicate()[0]
    seconds = time.monotonic() - began
    spent[preload] += seconds
    if child.returncode == 0 and "No Errors" in output:
        return "pass", output
    if "Fatal error in internal_Init" in output and tries > 1:
        return run(test, ranks, preload, limit, tries - 1)
    return "time out" if seconds >= limit else "fail", output


def count_calls(output, calls):
    """Adds the library's report to `calls`; were any calls handled?"""
    some = False
    for line in output.splitlines():
        if not line.startswith('{"isohalo_mpi"'):
            continue
        try:
            report = json.loads(line)["isohalo_mpi"]
        except ValueError:  # other output got into the line
            continue
        for function, counts in report.items():
            of = calls.setdefault(function, {"handled": 0})
            of["handled"] += counts["handled"]
            some = some or counts["handled"] > 0
            for why, n in counts["passed_on"].items():
                of[why] = of.get(why, 0) + n
    return some


def main():
    table, calls, handled, missing, broken = {}, {}, 0, [], 0
    for test in tests():
        name, ranks, arguments, environment = test
        if not (PROGRAMS / name).is_file():
            missing.append(name)
            continue
        fewer = ranks
        without, printed = run(test, ranks, False)
        if without == "time out" and ranks > FEWER_RANKS:
            fewer = FEWER_RANKS
            without, printed = run(test, fewer, False)
        with_it, output = run(test, ranks, True)
        if with_it == "time out" and without == "pass":  # does it hang, or need a little longer?
            with_it, output = run(test, fewer, True, 3 * SECONDS)
        handled += count_calls(output, calls)
        table[without, with_it] = table.get((without, with_it), 0) + 1
        if without == with_it:
            continue
        broken += without == "pass"
        what = " ".join([name, *arguments, *("=".join(e) for e in environment)])
        print("%s on %d ranks: %s without (%d ranks), %s with the library" % (what, ranks, without, fewer, with_it))
        lines = (output if without == "pass" else printed).splitlines()
        print("".join("    %s\n" % line[:200] for line in lines[:5]), end="", flush=True)
    for (without, with_it), n in sorted(table.items()):
        print("%5d: %s without, %s with the library" % (n, without, with_it))
    print("calls were handled in %d tests; by rank 0:" % handled)
    for function, counts in calls.items():
        print("    %s: %s" % (function, ", ".join("%s %d" % c for c in counts.items())))
    print("not built: %s" % (", ".join(sorted(set(missing))) or "none"))
    print("%.0f s without, %.0f s with the library; %d tests broken" % (spent[False], spent[True], broken))
    return 1 if broken or not any(without == "pass" for without, _ in table) else 0


if __name__ == "__main__":
    sys.exit(main())
