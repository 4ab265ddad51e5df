#!/usr/bin/python3
"""`isohalo schedule` against a simulator written here straight from the definition of the schedules (Ruefenacht, Bull, Booth
2017, section 4, and the semantics of section 6's simulator): finish times, messages, costs, refusals, files.

usage: schedules.py ISOHALO MPIEXEC WORK_DIRECTORY
"""
import itertools
import json
import os
import random
import re
import resource
import time
import xml.etree.ElementTree

from harness import WORK, failures, finish, fresh_work_directory, launch, that


def run(*arguments, ranks=0, timeout=120):
    return launch(ranks, "schedule", *arguments, timeout=timeout)


def check(what, ok, detail=""):
    that(ok, "%s %s" % (what, detail))


# --- the definition ---------------------------------------------------------------------------------------------------------
def sends(text, p):
    """Per stage: {rank: [to, ..]} in the order of sending, and the ranks whose value is replaced."""
    stages, m, virtual = [], 1, list(range(p))
    for stage in text.split(",") if text else []:
        letter, numbers = stage[0], [int(n) for n in re.findall(r"\d+", stage)]
        out, replaced = {r: [] for r in range(p)}, set()
        if letter == "c":
            t, b = numbers
            for r in range(t):
                if r % b != b - 1:
                    out[r].append(r // b * b + b - 1)
            virtual = [r for r in range(p) if r >= t or r % b == b - 1]
        elif letter == "e":
            t, b = numbers
            for r in range(t):
                if r % b != b - 1:
                    out[r // b * b + b - 1].append(r)
                    replaced.add(r)
        elif letter == "d":
            for w, r in enumerate(virtual):
                for i in range(1, numbers[0]):
                    to = virtual[(w + i * m) % len(virtual)]
                    if to != r and to not in out[r]:
                        out[r].append(to)
            m *= numbers[0]
        else:
            b = numbers[-1]
            if letter == "m":
                virtual = list(range(numbers[0], p))
                for q in range(numbers[0]):
                    out[q] = [virtual[q % numbers[1] * b * m + i] for i in range(b * m)]
            for w, r in enumerate(virtual):
                out[r] += [virtual[w // (m * b) * (m * b) + (w + i * m) % (m * b)] for i in range(1, b)]
            if letter == "n":
                for q in range(numbers[0]):
                    replaced.add(q)
                    for w, r in enumerate(virtual):
                        if w % numbers[1] == q % numbers[1]:
                            out[r].append(q)
            m *= b
        stages.append((out, replaced))
    return stages


def simulate(text, p, latency=500.0, pipeline=100.0, per_byte=0.4, compute=10.0, size=8):
    """Finish time of each rank, and how often each contribution arrived."""
    now, held = [0.0] * p, [{r: 1} for r in range(p)]
    for out, replaced in sends(text, p):
        arrivals, after, busy = [[] for _ in range(p)], [{} if r in replaced else dict(held[r]) for r in range(p)], list(now)
        for r in range(p):
            for to in out[r]:
                busy[r] += pipeline + size * per_byte
                arrivals[to].append(busy[r] + latency)
                for q, n in held[r].items():
                    after[to][q] = after[to].get(q, 0) + n
        for r in range(p):
            for t in sorted(arrivals[r]):
                busy[r] = max(busy[r], t) + compute
        now, held = busy, after
    return now, held


def cost(text, p, latency, pipeline, per_byte, size):
    return sum(latency + max(map(len, out.values())) * (pipeline + size * per_byte) for out, _ in sends(text, p))


# --- simulated times --------------------------------------------------------------------------------------------------------
def compare(text, p, extra=(), **network):
    r = run("--ranks", p, "--simulate", text, "--json", *extra)
    if r.returncode:
        return check("%s for %d" % (text, p), False, "ends with %d: %s" % (r.returncode, r.stderr))
    got, (finish, held) = json.loads(r.stdout), simulate(text, p, **network)
    what = "%s for %d" % (text, p)
    near = lambda a, b: abs(a - b) <= 1e-9 * max(1, abs(b))
    check(what, near(got["finish_ns"], max(finish)), "finishes at %r, not %r" % (got["finish_ns"], max(finish)))
    check(what, near(got["first_finish_ns"], min(finish)), "first at %r, not %r" % (got["first_finish_ns"], min(finish)))
    check(what, all(near(a, b) for a, b in zip(got["rank_finish_ns"], finish)) and len(got["rank_finish_ns"]) == p, "has wrong finish times")
    check(what, near(got["skew_ns"], max(finish) - min(finish)))
    messages = sum(len(to) for out, _ in sends(text, p) for to in out.values())
    check(what, got["messages"] == messages, "has %d messages, not %d" % (got["messages"], messages))
    check(what, got["ranks"] == p and got["schedule"] == text and got["stages"] == (text.count(",") + 1 if text else 0))
    sets = "d" in text
    check(what, got["correct"] is True and all(len(h) == p and (sets or set(h.values()) == {1}) for h in held), "is not correct")
    path = got["critical_path"]
    check(what, len(path) == got["stages"] and (not path or near(path[-1]["end_ns"], max(finish))), "has a wrong critical path")
    for a, b in itertools.pairwise(path):
        origin = b["waited_for"] if b["waited_for"] is not None else b["rank"]
        check(what, a["rank"] == origin and a["stage"] + 1 == b["stage"], "has a broken critical path")
    return got


def times():
    cases = [("a2", 2), ("a8", 8), ("a2,a4", 8), ("a2,a2,a2", 8), ("c6m2,a2,a2,e6m2", 7), ("m1g2a3,n1g3a2", 7),
             ("m3g2a2,n3g2a2", 7), ("m5g2a3,a2,n5g6a2", 17), ("m9g3a2,n9g2a3", 15), ("c9m3,a5,e9m3", 11), ("c4m4,e4m4", 4),
             ("d2,d2,d2", 7), ("d3,d3", 8), ("d5,d5", 7), ("", 1), ("a5,a5,a5", 125)]
    results = {text: compare(text, p) for text, p in cases}
    compare("m5g2a3,a2,n5g6a2", 17, ["--latency", 1340, "--pipeline-latency", 340, "--per-byte", 0.25, "--compute", 3, "--bytes", 4096],
            latency=1340, pipeline=340, per_byte=0.25, compute=3, size=4096)
    if failures:
        return
    # What the paper says of its figures.
    finish = {text: r["finish_ns"] for text, r in results.items()}
    skew = {text: r["finish_ns"] - r["first_finish_ns"] for text, r in results.items()}
    check("one message", abs(finish["a2"] - 10 - 603.2) < 1e-9)
    check("Fig. 21", 900 < finish["c6m2,a2,a2,e6m2"] - finish["m1g2a3,n1g3a2"] < 1100)
    check("Fig. 21 skew", 90 < skew["m1g2a3,n1g3a2"] < 130, skew["m1g2a3,n1g3a2"])
    check("Fig. 22 skew", 180 < skew["m3g2a2,n3g2a2"] < 230, skew["m3g2a2,n3g2a2"])
    check("Figs. 18, 19", finish["a8"] + 150 < finish["a2,a4"] and finish["a2,a4"] + 150 < finish["a2,a2,a2"])


def best_and_all():
    network = dict(latency=1340.0, pipeline=340.0, per_byte=0.0, size=8)
    flags = ["--latency", 1340, "--pipeline-latency", 340, "--per-byte", 0]
    for p in (1, 2, 6, 7, 12, 13, 23):
        r = json.loads(run("--ranks", p, "--best", "--enumerate", "--json", *flags).stdout)
        costs = [cost(s["schedule"], p, **network) for s in r["schedules"]]
        check("enumerate %d" % p, all(abs(c - s["model_ns"]) < 1e-6 for c, s in zip(costs, r["schedules"])), "has a wrong cost")
        check("enumerate %d" % p, costs == sorted(costs), "is not in order")
        check("best of %d" % p, abs(r["model_ns"] - costs[0]) < 1e-6, "is %s" % r["schedule"])
        for s in random.Random(p).sample(r["schedules"], min(8, len(costs))):
            finish, _ = simulate(s["schedule"], p, 1340.0, 340.0, 0.0)
            check("enumerate %d" % p, abs(s["finish_ns"] - max(finish)) < 1e-6, s["schedule"])
    table = json.loads(run("--table2", "--json").stdout)
    same = [row["ranks"] for row in table["rows"] if row["same_factors"]]
    check("table 2", same == [4, 6, 12, 16, 24, 32, 128], same)
    for row in table["rows"]:
        for key in ("paper", "best"):
            check("table 2", abs(row[key + "_model_ns"] - cost(row[key + "_schedule"], row["ranks"], **network)) < 1e-6, row)
    text = run("--ranks", 6, "--simulate", "a2,a3", "--best", "--enumerate").stdout
    check("text", all("\n" + line in text for line in ("bytes: 8\n", "enumerated: ", "per_stage\n", "critical_path\n", "best\n", "schedules\n")), text)
    ordered = json.loads(run("--ranks", 23, "--rank-order", "--best", "--json").stdout)["schedule"]
    check("rank order", not re.match(r"m\d+g([2-9]|1\d)", ordered), ordered)
    for text in ("7", "6"):
        r = json.loads(run("--ranks", text, "--elimination", "--json").stdout)
        check("elimination", r["correct"] and r["schedule"].startswith("x") and r["stages"] == 4, r)


def refusals():
    for text, p, said in (("a1,a7", 7, "has base 1; the least is 2"), ("c8m2,a2,a2,e8m2", 7, "threshold 8; the most is the number of ranks, 7"),
                          ("c5m2,a2,a2,e5m2", 7, "no multiple of its base 2"), ("m1g0a3,n1g3a2", 7, "has 0 groups"),
                          ("e6m2", 7, "has no c6m2"), ("n1g3a2", 7, "has no m1gGaB"), ("c2m2,m1g1a2", 7, "second collapse, merge"),
                          ("a2", 6, "lacks the contribution"), ("a2,a3,c2m2,e2m2", 6, "more than once"), ("a4", 6, "do not divide"),
                          ("bogus", 6, "is no stage"), ("a2,", 2, "is no stage"), ("", 2, "lacks the contribution")):
        for ranks in (0, 3):
            r = run("--ranks", p, "--simulate", text, ranks=ranks)
            check("%r for %d" % (text, p), r.returncode == 2 and not r.stdout, "ends with %d" % r.returncode)
            check("%r for %d" % (text, p), r.stderr.count("isohalo: error:") == 1 and said in r.stderr, r.stderr)
    for arguments, said in ((["--ranks", 0], "needs --ranks, 1 at least"), (["--halo", "none.toml", "--ranks", 0], "--halo needs --ranks, 1 at least"),
                            (["--ranks", -3], "there must be 1 to"), (["--best"], "needs --ranks"),
                            (["--ranks", "x"], "--ranks"), (["--ranks", 7, "--model", "exact"], "--model"),
                            (["--ranks", 7, "--latency", -1], "latency"), (["--ranks", 7, "--topology", "4:1"], "--topology 4:1 is not"),
                            (["--ranks", 7, "--topology", "0"], "--topology 0 is not"), (["--ranks", 7, "--svg", "no/such/file.svg"], "cannot write"),
                            (["--ranks", 7, "--noise", "nan"], "noise"), (["--ranks", 7, "--simulate", "a7", "--elimination"], "--elimination"),
                            (["--measure", "--svg", "x.svg"], "--svg"), (["--table2", "--ranks", 7], "--ranks"),
                            (["--ranks", 720, "--enumerate"], "set --max-sends")):
        r = run(*arguments)
        check(arguments, r.returncode == 2 and said in r.stderr and r.stderr.count("error") == 1, "ends with %d: %s" % (r.returncode, r.stderr))


def options():
    schedule = ["--ranks", 24, "--simulate", "a4,a6", "--json"]
    ends = lambda *extra: json.loads(run(*schedule, *extra).stdout)["finish_ns"]
    plain = ends()
    check("seeds", ends("--noise", 300, "--seed", 5) == ends("--noise", 300, "--seed", 5) != ends("--noise", 300, "--seed", 6))
    check("noise", plain < ends("--noise", 300) < plain + 2 * 300)
    check("skew", plain < ends("--skew", 400) < plain + 400)
    # The sender waits for each message to arrive; all the others' have come by then.
    check("postal", abs(ends("--model", "postal") - (8 * 603.2 + 8 * 10)) < 1e-6, ends("--model", "postal"))
    check("loggp", plain < ends("--model", "loggp") < 2 * plain)
    check("topology", ends("--topology", "4:100,50,0.1") < plain)
    within = json.loads(run("--ranks", 2, "--simulate", "a2", "--model", "loggp", "--topology", "2:0,0,0", "--latency", 1000,
                            "--pipeline-latency", 1000, "--json").stdout)
    check("topology of one node alone", within["finish_ns"] == 10, within["finish_ns"])
    best = lambda *extra: json.loads(run("--ranks", 24, "--best", "--json", "--topology", "4:10,1,0", *extra).stdout)
    plain_best, simulated_best = best(), best("--candidates", 1000)
    check("candidates", simulated_best["planned_by"] == "simulation" and simulated_best["finish_ns"] < plain_best["finish_ns"])
    check("congestion", ends("--congestion", 50) > plain)
    r = json.loads(run(*schedule, "--congestion", 1e-9).stdout)
    check("congestion of nothing", abs(r["finish_ns"] - plain) < 1e-6)


def files():
    r = run("--ranks", 7, "--simulate", "m1g2a3,n1g3a2", "--svg", "seven.svg", "--goal", "seven.goal", ranks=3)
    check("files", r.returncode == 0 and r.stdout.count("\nschedule: m1g2a3,n1g3a2\n") == 1, r.stdout + r.stderr)
    svg = xml.etree.ElementTree.parse(WORK / "seven.svg").getroot()
    texts = [t.text for t in svg.iter("{http://www.w3.org/2000/svg}title")]
    stages = sends("m1g2a3,n1g3a2", 7)
    messages = sum(len(to) for out, _ in stages for to in out.values())
    check("svg", sum("sends to" in t for t in texts) == sum("takes from" in t for t in texts) == messages, texts)
    check("svg", sum("finishes at" in t for t in texts) == 7)
    goal = (WORK / "seven.goal").read_text()
    check("goal", goal.startswith("num_ranks 7\n") and goal.count("rank ") == 7 and goal.count("{") == goal.count("}") == 7)
    sent, received = [], []
    for rank, body in re.findall(r"\nrank (\d+) \{\n(.*?)\n\}", goal, re.S):
        labels = set(re.findall(r"^(l\d+):", body, re.M))
        check("goal", all(a in labels and b in labels for a, b in re.findall(r"^(l\d+) requires (l\d+)$", body, re.M)), "has a loose label")
        sent += [(rank, to, tag) for to, tag in re.findall(r": send 8b to (\d+) tag (\d+)$", body, re.M)]
        received += [(origin, rank, tag) for origin, tag in re.findall(r": recv 8b from (\d+) tag (\d+)$", body, re.M)]
    check("goal", sorted(sent) == sorted(received) and len(sent) == messages)
    r = run("--ranks", 1000, "--svg", "many.svg")
    svg = xml.etree.ElementTree.parse(WORK / "many.svg").getroot()
    check("summary", len(list(svg.iter("{http://www.w3.org/2000/svg}circle"))) == int(re.search("^stages: ([0-9]+)$", r.stdout, re.M)[1]) + 1)


def tables():
    entry = {"machine": "here", "ranks": 12, "bytes": 64, "schedule": "a2,a6", "time_ns": 1.5, "method": "timing"}
    (WORK / "table.json").write_text(json.dumps({"isohalo_schedule_table": 1, "entries": [entry]}))
    ask = lambda *extra: json.loads(run("--ranks", 12, "--table", "table.json", "--machine", "here", "--json", *extra).stdout)
    r = ask()
    check("table", (r["schedule"], r["planned_by"]) == ("a2,a6", "table"), r)
    for extra in (["--bytes", 65], ["--machine", "there"]):
        arguments = ["--ranks", 12, "--table", "table.json", "--machine", "here", "--json"]
        for option, value in zip(extra[::2], extra[1::2]):
            arguments = arguments + [option, value] if option not in arguments else [
                value if i and arguments[i - 1] == option else a for i, a in enumerate(arguments)]
        check("table without", json.loads(run(*arguments).stdout)["planned_by"] == "model", extra)
    r = run("--ranks", 12, "--best", "--table", "none.json")
    check("no table", r.returncode == 2 and "schedule table none.json: there is none" in r.stderr, r.stdout + r.stderr)
    entry["schedule"] = "a2,a5"
    (WORK / "table.json").write_text(json.dumps({"isohalo_schedule_table": 1, "entries": [entry]}))
    r = run("--ranks", 12, "--table", "table.json")
    check("bad table", r.returncode == 2 and "schedule table table.json: entry 1: schedule \"a2,a5\" for 12 ranks" in r.stderr, r.stderr)


def measured():
    for ranks in (1, 3, 4):
        table = "measured_%d.json" % ranks
        r = run("--measure", "--bytes", 64, "--candidates", 3, "--table", table, "--machine", "here", "--json", ranks=ranks)
        check("measure", r.returncode == 0, r.stderr)
        if r.returncode:
            continue
        got = json.loads(r.stdout)
        times = {c["schedule"]: c["time_ns"] for c in got["candidates"]}
        check("measure", 1 <= len(times) <= 3 and times[got["schedule"]] == min(times.values()), got)
        check("measure", got["planned_by"] == "timing" and got["ranks"] == ranks and got["time_ns"] == min(times.values()), got)
        check("measure", min(times.values()) > 0 or ranks == 1, got)
        if ranks > 1:
            held = simulate(got["schedule"], ranks)[1]
            check("measure", all(set(h.values()) == {1} and len(h) == ranks for h in held), got["schedule"])
        again = run("--ranks", ranks, "--bytes", 64, "--table", table, "--machine", "here", "--json")
        found = json.loads(again.stdout)
        check("measured table", (found["schedule"], found["planned_by"]) == (got["schedule"], "table"), found)
    r = run("--measure", "--ranks", 5, ranks=2)
    check("measure for others", r.returncode == 2 and "--ranks 5 but this job has 2" in r.stderr and r.stderr.count("error") == 1, r.stderr)
    for arguments, text in ((["--table", "."], "it is a directory; name a file"),
                            (["--table", "latin.json", "--machine", os.fsdecode(b"caf\xe9")], "the name of the machine is not UTF-8")):
        r = run("--measure", *arguments, ranks=2)
        check("measure into", r.returncode == 2 and text in r.stderr and r.stderr.count("error") == 1, r.stderr)
    check("measure into", not (WORK / "latin.json").exists(), "a table with such a name was written")
    r = run("--measure", "--bytes", 0, ranks=2)
    check("measure nothing", r.returncode == 2 and "give 1 to 1e9" in r.stderr, r.stderr)


def large():
    start = time.monotonic()
    r = json.loads(run("--ranks", 1000000, "--simulate", "a10,a10,a10,a10,a10,a10", "--json", timeout=300).stdout)
    elapsed = time.monotonic() - start
    # All ranks do the same: six times nine sends, the last message's latency, and the messages that wait.
    nine = 9 * 103.2 + 500 + 10
    check("10^6 ranks", abs(r["finish_ns"] - 6 * nine) < 1e-6 and r["correct"] and r["messages"] == 54000000, r["finish_ns"])
    check("10^6 ranks", elapsed < 60, "take %.0f s" % elapsed)
    kilobytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    check("10^6 ranks", kilobytes < 8e6, "take %d kB" % kilobytes)


def exchanges():
    """Halos and neighborhoods: every rank of a torus does the same, so a round takes its sends, the latency and one taking."""
    def lines(*arguments):
        return {l["name"]: l for l in json.loads(run(*arguments, "--json", ranks=2).stdout)["exchanges"]}

    def takes(rounds):
        return sum(sum(100 + 0.4 * n for n in sizes) + 500 + 10 for sizes in rounds)
    got = lines("--neighborhood", "moore:1", "--mesh", "4,4,4", "--bytes", "8")
    for name, rounds in (("direct", [[8] * 26]), ("combining", [[72] * 2] * 3)):
        l = got[name]
        check("neighborhood " + name, l["rounds"] == len(rounds) and l["messages"] == 64 * sum(len(r) for r in rounds), l)
        check("neighborhood " + name, l["bytes"] == 64 * sum(sum(r) for r in rounds) and abs(l["finish_ns"] - takes(rounds)) < 1e-6, l)
    (WORK / "halo.toml").write_text("""[domain]
shape = [12, 10]
boundary.low = ["periodic", "periodic"]
boundary.high = ["periodic", "periodic"]
[parallel]
process_grid = [2, 2]
[solver]
kind = "heat"
kappa = 1.0
[initial]
kind = "constant"
[run]
steps = 1
""")
    got = lines("--halo", "halo.toml", "--ranks", "4")  # blocks of 6 x 5 cells, both sides of a dimension with one neighbor
    # Two neighbors, except dimension after dimension: their last messages come at once, and one waits to be taken.
    for name, rounds, waits in (("direct", [[40, 40, 48, 48]], 10), ("coalesced", [[80, 96]], 10), ("slabs", [[80], [96]], 0)):
        l = got[name]
        check("halo " + name, (l["rounds"], l["most_messages"], l["most_bytes"]) == (len(rounds), sum(len(r) for r in rounds), 176), l)
        check("halo " + name, abs(l["finish_ns"] - takes(rounds) - waits) < 1e-6, (l, takes(rounds)))
    for arguments, text in ((["--neighborhood", "moor:1", "--mesh", "4"], "give moore:RADIUS or von_neumann:RADIUS"),
                            (["--neighborhood", "moore:1", "--mesh", "4,0"], "each 1 or more"),
                            (["--halo", "none.toml", "--ranks", "4"], "cannot read the input file none.toml"),
                            (["--halo", "halo.toml", "--ranks", "6"], "does not multiply to the 6 ranks")):
        r = run(*arguments, ranks=2)
        check("exchanges refuse", r.returncode == 2 and text in r.stderr and r.stderr.count("error") == 1, r.stderr)


fresh_work_directory()
for part in (times, best_and_all, refusals, options, files, tables, measured, exchanges, large):
    part()
finish()
