#!/usr/bin/python3
"""libisohalo_mpi.so in a program that knows MPI alone: right results, what it reports, what it leaves to MPI, and how it
ends when a rank is killed.

usage: preload.py FOLDER_OF_CLIENTS MPIEXEC LIBRARY short|long

Clients: client.cpp, types.cpp, hostile.cpp and corners.cpp.
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

CLIENT, TYPES, HOSTILE, CORNERS = ["%s/preload_%s" % (sys.argv[1], name) for name in ("client", "types", "hostile", "corners")]
MPIEXEC, LIBRARY = sys.argv[2:4]
LONG = sys.argv[4:] == ["long"]
FUNCTIONS = ["MPI_Barrier", "MPI_Bcast", "MPI_Reduce", "MPI_Allreduce", "MPI_Gather", "MPI_Allgather", "MPI_Scatter"]
failures, checks = [], 0


def that(ok, what):
    global checks
    checks += 1
    if not ok:
        failures.append(what)
        print("FAILED:", what)


def command(ranks, *arguments, preload=LIBRARY):
    return [MPIEXEC, "-n", str(ranks), "-genv", "LD_PRELOAD", preload, *map(str, arguments)]


def run(ranks, *arguments, preload=LIBRARY, reports=1, **settings):
    """Exit code, the report's functions (or None), and what was printed. Once more where MPI itself does not start, as
    happens on a full machine: its transport finds no device."""
    for _ in range(3):
        r = subprocess.run(command(ranks, *arguments, preload=preload), capture_output=True, text=True, timeout=300,
                           env={**os.environ, "ISOHALO_MPI_REPORT": "1", **settings})
        if "Fatal error in internal_Init" not in r.stderr:
            break
    lines = [line for line in r.stderr.splitlines() if line.startswith('{"isohalo_mpi"')]
    that(len(lines) == reports, "%s on %d ranks: %d reports: %s" % (arguments, ranks, len(lines), r.stderr[-500:]))
    return r.returncode, json.loads(lines[0])["isohalo_mpi"] if lines else None, r.stdout + r.stderr


def handled(report):
    return sum(f["handled"] for f in report.values())


def passed_on(report):
    reasons = {}
    for f in report.values():
        for reason, n in f["passed_on"].items():
            reasons[reason] = reasons.get(reason, 0) + n
    return reasons


# --- right results, all by shared memory --------------------------------------------------------------------------------
for ranks in range(1, 9) if LONG else (1, 3):
    for seed in range(1, 6 if LONG else 2):
        code, report, text = run(ranks, CLIENT, 4000 if LONG else 300, seed)
        that(code == 0, "the client on %d ranks, seed %d: exit code %d: %s" % (ranks, seed, code, text[-500:]))
        if report and ranks > 1:
            for f in FUNCTIONS:
                that(report[f]["handled"] > 0, "%s was not handled on %d ranks" % (f, ranks))
            that(set(passed_on(report)) <= {"one rank"}, "passed on on %d ranks: %s" % (ranks, passed_on(report)))

# MPICH has types that the library does not know (MPI_COMPLEX8).
for ranks in range(1, 9) if LONG else (3,):
    code, report, text = run(ranks, TYPES)
    that(code == 0, "types on %d ranks: exit code %d: %s" % (ranks, code, text[-900:]))
    that(report and set(passed_on(report)) <= {"operation", "one rank"} and
         (ranks == 1 or report["MPI_Allreduce"]["handled"] > 2000), "types on %d ranks: %s" % (ranks, report))

for ranks in (2, 7) if LONG else ():
    code, report, text = run(ranks, TYPES, "long")
    that(code == 0 and report and report["MPI_Allreduce"]["bytes"] > 1 << 28,
         "long vectors on %d ranks: exit code %d: %s" % (ranks, code, text[-900:]))

# --- what programs call seldom --------------------------------------------------------------------------------------------
for mode, calls, left in (
        ("forms", {"MPI_Bcast": 6, "MPI_Allreduce": 10, "MPI_Reduce": 5, "MPI_Gather": 5, "MPI_Allgather": 5, "MPI_Scatter": 5}, {}),
        ("bottom", {"MPI_Bcast": 1, "MPI_Gather": 1, "MPI_Allgather": 1, "MPI_Scatter": 1}, {}),
        ("far", {"MPI_Bcast": 1}, {}),
        ("handler", {"MPI_Allreduce": 2}, {"arguments": 1, "operation": 1}),
        ("intercommunicators", {}, {"inter-communicator": 15})):
    for ranks in (2, 3, 7) if LONG else (3,):
        code, report, text = run(ranks, CORNERS, mode)
        that(code == 0, "%s on %d ranks: exit code %d: %s" % (mode, ranks, code, text[-500:]))
        that(report and passed_on(report) == left and all(report[f]["handled"] >= n for f, n in calls.items()),
             "%s on %d ranks: %s" % (mode, ranks, report))
if LONG:
    code, report, text = run(2, CORNERS, "long_buffers")
    that(code == 0, "long buffers: exit code %d: %s" % (code, text[-500:]))
    that(report and not passed_on(report) and report["MPI_Bcast"]["bytes"] > 2 << 32 and report["MPI_Allgather"]["bytes"] > 1 << 31,
         "long buffers: %s" % report)

for settings in ({}, {"ISOHALO_MPI_HIERARCHY": "2x2"}, {"MPIR_CVAR_ODD_EVEN_CLIQUES": "1"}):
    code, report, text = run(4, CORNERS, "operations", **settings)
    that(code == 0 and report and report["MPI_Allreduce"]["handled"] >= 3, "operations %s: exit code %d: %s" % (settings, code, text[-500:]))

# 8 bytes of each of 8 reductions and 10 broadcasts
code, report, text = run(2, CORNERS, "tool", ISOHALO_MPI="off")
that(report and report["MPI_Allreduce"]["bytes_passed_on"] == 64 and report["MPI_Bcast"]["bytes_passed_on"] == 80 and
     report["MPI_Barrier"]["bytes_passed_on"] == 0, "bytes passed on: %s" % report)

# --- what a program does around its calls ---------------------------------------------------------------------------------
for mode, most in (("communicators", 4000 if LONG else 200), ("traffic", 10000 if LONG else 400)):
    for ranks in (2, 3, 4, 6, 7) if LONG else (3,):
        code, report, text = run(ranks, HOSTILE, mode, most, ranks)
        that(code == 0, "%s on %d ranks: exit code %d: %s" % (mode, ranks, code, text[-500:]))
        that(report and handled(report) > most // 3, "%s on %d ranks: %s" % (mode, ranks, report))
for ranks in (2, 3):
    code, report, text = run(ranks, HOSTILE, "fork", 1000 if LONG else 60, shutil.which("true"))
    that(code == 0 and report and handled(report) >= 60, "fork on %d ranks: exit code %d: %s" % (ranks, code, text[-500:]))
for tls in ("all", "self,tcp"):  # the second has no way past the sender
    code, report, text = run(2, HOSTILE, "waiting", 20, UCX_TLS=tls)
    that(code == 0 and report and report["MPI_Barrier"]["handled"] >= 20, "waiting, UCX_TLS=%s: exit code %d: %s" % (tls, code, text[-500:]))
for ranks in (2, 3):  # the last rank alone has no room while the library asks for it
    code, report, text = run(ranks, HOSTILE, "full")
    that(code == 0 and report and set(passed_on(report)) == {"no shared memory"},
         "no room on the last of %d ranks: exit code %d: %s" % (ranks, code, text[-500:]))

# --- nothing is left behind ---------------------------------------------------------------------------------------------
code, report, text = run(2, CLIENT, "barriers", 1000000)
that(code == 0 and report and report["MPI_Barrier"]["handled"] >= 1000000, "a million barriers: %d %s" % (code, text[-300:]))

code, _, text = run(3, CLIENT, "refusals", 1)
that(code == 0, "refusals: exit code %d: %s" % (code, text[-500:]))

# --- left to MPI, for a reason ------------------------------------------------------------------------------------------
for what, ranks, arguments, settings, reason in (
        ("switched off", 2, (CLIENT, "barriers", 50), {"ISOHALO_MPI": "off"}, "switched off"),
        ("a compute node for each rank", 3, (CLIENT, "barriers", 20), {"MPIR_CVAR_NOLOCAL": "1"}, "several compute nodes"),
        ("levels of threads that differ", 2, (CLIENT, "mixed", 50), {}, "another rank will not"),
        ("no shared memory", 2, (CLIENT, "limited", 50), {}, "no shared memory")):
    code, report, text = run(ranks, *arguments, **settings)
    that(code == 0, "%s: exit code %d: %s" % (what, code, text[-500:]))
    that(report and handled(report) == 0 and set(passed_on(report)) == {reason}, "%s: %s" % (what, report))

# --- tools that count calls: one below sees what is passed on, one above sees all, and then nothing comes to the library ---
TOOL = str(pathlib.Path(CLIENT).parent / "libcounting_tool.so")
for order, settings, reports, seen in (
        ("%s:%s" % (LIBRARY, TOOL), {}, 1, "Barrier=0 Allreduce=0 Bcast=0 Alltoall=6"),
        ("%s:%s" % (LIBRARY, TOOL), {"ISOHALO_MPI": "off"}, 1, "Barrier=12 Allreduce=8 Bcast=10 Alltoall=6"),
        ("%s:%s" % (TOOL, LIBRARY), {}, 0, "Barrier=12 Allreduce=8 Bcast=10 Alltoall=6")):
    code, report, text = run(3, CORNERS, "tool", preload=order, reports=reports, **settings)
    that(code == 0 and "counted %s\n" % seen in text, "a tool, %s, %s: exit code %d: %s" % (order, settings, code, text[-500:]))
    that(reports == 0 or (report and sum(passed_on(report).values()) == (30 if settings else 0)), "a tool, %s: %s" % (order, report))

# --- several compute nodes, hierarchies, algorithms ----------------------------------------------------------------------
for ranks, settings, left in (
        (5, {"MPIR_CVAR_NUM_CLIQUES": "2"}, {"several compute nodes", "one rank", "operation"}),
        (6, {"MPIR_CVAR_NUM_CLIQUES": "3"}, {"several compute nodes", "one rank", "operation"}),
        (4, {"MPIR_CVAR_ODD_EVEN_CLIQUES": "1"}, {"several compute nodes", "one rank", "operation"}),
        (6, {"ISOHALO_MPI_HIERARCHY": "2x3"}, {"one rank"}),
        (5, {"ISOHALO_MPI_HIERARCHY": "2x2x2", "ISOHALO_MPI_ALGORITHM": "tiled+2@1"}, {"one rank"}),
        (6, {"ISOHALO_MPI_ALGORITHM": "tree", "MPIR_CVAR_NUM_CLIQUES": "2"}, {"several compute nodes", "one rank", "operation"}),
        (4, {"ISOHALO_MPI_ALGORITHM": "cyclic"}, {"one rank"}),
        (3, {"ISOHALO_MPI_ALGORITHM": "dissemination"}, {"one rank"})):
    code, report, text = run(ranks, CLIENT, 1000 if LONG else 300, 7, **settings)
    that(code == 0, "%s: exit code %d: %s" % (settings, code, text[-500:]))
    that(report and all(report[f]["handled"] > 0 for f in FUNCTIONS) and set(passed_on(report)) <= left,
         "%s: %s" % (settings, report))

# --- settings -----------------------------------------------------------------------------------------------------------
NAMES = "there are ISOHALO_MPI, ISOHALO_MPI_REPORT, ISOHALO_MPI_HIERARCHY and ISOHALO_MPI_ALGORITHM"
for name, value, expected in (
        ("ISOHALO_MPI_REPORTS", "1", "no setting ISOHALO_MPI_REPORTS: %s; did you mean ISOHALO_MPI_REPORT?" % NAMES),
        ("ISOHALO_MPI_LAGORITHM", "tree", "no setting ISOHALO_MPI_LAGORITHM: %s; did you mean ISOHALO_MPI_ALGORITHM?" % NAMES),
        ("ISOHALO_MPI_XYZ", "1", "no setting ISOHALO_MPI_XYZ: %s\n" % NAMES),
        ("ISOHALO_MPI", "of", "ISOHALO_MPI=of: there are off and on; did you mean off?"),
        ("ISOHALO_MPI", "", "ISOHALO_MPI=: there are off and on\n"),
        ("ISOHALO_MPI_HIERARCHY", "1x2", None),
        ("ISOHALO_MPI_HIERARCHY", "2y1", 'ISOHALO_MPI_HIERARCHY: the hierarchy "2y1" is no text such as 2x4x2'),
        ("ISOHALO_MPI_ALGORITHM", "fastest", 'ISOHALO_MPI_ALGORITHM: there is no algorithm "fastest": there are flat'),
        ("ISOHALO_MPI", "on", None)):
    code, _, text = run(2, CLIENT, "barriers", 10, **{name: value})
    that(code == 0 and text.count("isohalo: warning:") == (expected is not None) and (expected or "") in text,
         "%s=%s: %s" % (name, value, text[-300:]))

# The number on the node as another launcher tells it.
code, _, text = run(2, "env", "-u", "MPI_LOCALRANKID", "-u", "MPI_LOCALNRANKS", "SLURM_LOCALID=7", CLIENT, "barriers", 10,
                    ISOHALO_MPI_HIERARCHY="1x2")
that(code == 0 and 'the hierarchy "1x2" holds 2 ranks, there are more than 7' in text, "SLURM_LOCALID: %s" % text[-300:])

# --- jobs at once, ranks that are killed or call MPI_Abort ------------------------------------------------------------------
jobs = [subprocess.Popen(command(2, CLIENT, 800 if LONG else 300, k), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        for k in range(1, 5 if LONG else 3)]
for job in jobs:
    error = job.communicate(timeout=300)[1]
    that(job.returncode == 0, "jobs at once: %s" % error[-300:])


def ranks_of(parent):
    """Processes of a client below this one."""
    found, todo = [], [parent]
    while todo:
        p = todo.pop()
        try:
            children = pathlib.Path("/proc/%d/task/%d/children" % (p, p)).read_text().split()
        except OSError:
            continue
        for c in map(int, children):
            todo.append(c)
            try:
                if any(os.path.samefile("/proc/%d/exe" % c, client) for client in (CLIENT, HOSTILE)):
                    found.append(c)
            except OSError:
                pass
    return found


def ends(what, victim, *arguments):
    """On 3 ranks, none of which may be left; rank number `victim` is killed. (The memory has no name and ends with them.)"""
    job = subprocess.Popen(command(3, *arguments), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    ranks, end = [], time.monotonic() + 30
    while len(ranks) < 3 and job.poll() is None and time.monotonic() < end:
        ranks = ranks_of(job.pid) or ranks
        time.sleep(0.01)
    if victim is not None:
        time.sleep(0.5)
        that(len(ranks) == 3, "%s: %d ranks to kill one of" % (what, len(ranks)))
        if ranks:
            os.kill(ranks[victim % len(ranks)], signal.SIGKILL)
    try:
        code = job.wait(timeout=60)
        that(code != 0 if victim is not None else code == 42, "%s: exit code %d" % (what, code))
    except subprocess.TimeoutExpired:
        that(False, "%s: the others go on" % what)
        job.kill()
    left, end = ranks, time.monotonic() + 5
    while left and time.monotonic() < end:
        left = [r for r in ranks if os.path.exists("/proc/%d" % r)]
    that(not left, "%s: ranks are left" % what)


FOREVER = 100000000
ends("a killed rank", -1, CLIENT, FOREVER)
ends("MPI_Abort", None, HOSTILE, "abort")
if LONG:
    for victim in range(3):
        ends("rank %d is killed" % victim, victim, CLIENT, FOREVER)
        ends("rank %d is killed between barriers" % victim, victim, CLIENT, "barriers", FOREVER)
        ends("rank %d is killed among messages" % victim, victim, HOSTILE, "traffic", FOREVER)
        ends("rank %d is killed among communicators" % victim, victim, HOSTILE, "communicators", FOREVER)

print("%d checks, %d failed" % (checks, len(failures)))
sys.exit(1 if failures else 0)
