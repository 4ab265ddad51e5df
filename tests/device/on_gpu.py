#!/usr/bin/env python3
"""The same bits on the host and on a device: runs inputs of the same-bits test with parallel.space = "host" on one rank and
"device" on one and two, which share the device, with one step per exchange and three, and compares all checkpoints byte by byte.

usage: on_gpu.py [--all] [--jobs N] [--own PROGRAM] ISOHALO SOURCE_DIRECTORY WORK_DIRECTORY [MPIEXEC]
  --all     every case that computes on devices, not a sample
  --jobs    cases at a time (default 4)
  --own     the solver of apps/examples/own_solver, whose input is run as well
"""
import argparse
import concurrent.futures
import pathlib
import shutil
import subprocess
import sys


def run_case(words, mpiexec, work):
    """Returns how many runs there were, what is wrong, and which ran on two ranks."""
    name, toml, program, *overrides = words
    files, wrong, runs = {}, [], 0
    device = "parallel.space=device"
    for tag, ranks, more in (("host", 1, ["parallel.space=host"]), ("device", 1, [device, "parallel.halo_depth=1"]),
                             ("device_two", 2, [device, "parallel.halo_depth=1"]),
                             ("device_two_deep", 2, [device, "parallel.halo_depth=3"])):
        out = work / name / tag
        command = [*mpiexec, "-n", str(ranks), program, "run", toml, *overrides, "output.directory=%s" % out, "output.picture_every=0", *more]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        runs += 1
        if done.returncode and "halo depth" in done.stderr and ranks == 2:
            continue  # too deep for these blocks, which is said
        files[tag] = {p.name: p.read_bytes() for p in sorted(out.glob("step_*.h5"))} if done.returncode == 0 else done.stderr
        if not files[tag] or files[tag] != files["host"]:
            wrong.append("%s: %s differs from the host: %s" % (name, tag, files[tag] if isinstance(files[tag], str) else "other bytes"))
    return runs, wrong, {tag for tag in files if "two" in tag}


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1])
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--own")
    parser.add_argument("isohalo")
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("mpiexec", nargs="?", default=shutil.which("mpiexec.mpich") or "mpiexec")
    args = parser.parse_args()
    shutil.rmtree(args.work, ignore_errors=True)
    args.work.mkdir(parents=True)
    subprocess.run([sys.executable, args.source / "tests/same_bits/generate.py", args.source / "inputs", args.work / "cases"], check=True)
    lines = (args.work / "cases" / ("device.txt" if args.all else "device_sample.txt")).read_text().splitlines()
    cases = [[name, toml, args.isohalo, *overrides] for name, toml, _, *overrides in map(str.split, lines)]
    if args.own:
        toml = args.source / "apps/examples/own_solver/brusselator.toml"
        cases.insert(0, ["own", toml, args.own, "run.steps=60", "output.checkpoint_every=30"])
    runs = failed = on_two = deep = 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for more, wrong, two in pool.map(lambda case: run_case(case, args.mpiexec.split(), args.work), cases):
            runs += more
            failed += len(wrong)
            on_two += "device_two" in two
            deep += "device_two_deep" in two
            for text in wrong:
                print("FAILED: " + text)
    print("%d cases, %d runs, %d and %d of them on two ranks with one and three steps per exchange, %d failed" % (len(cases), runs, on_two, deep, failed))
    sys.exit(1 if failed or not on_two or not deep else 0)


if __name__ == "__main__":
    main()
