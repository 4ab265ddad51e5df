#!/usr/bin/env python3
"""Does device code round every operation as the host does? Reads PTX and refuses what ptxas may contract, or what is not
rounded to nearest: any fma or mad of floating-point numbers, and any add, sub, mul, div, rcp or sqrt of them without .rn (or
with .ftz). Compilers have been seen to leave such in spite of their flags.

usage: ptx.py [--least N] FILE.ptx ..     N: kernels that sweep which there must be at least, for the check to mean anything
"""
import re
import sys

SWEEP = re.compile("PointUpdate|AmendedUpdate|FaceUpdate|CellUpdate")  # in the names of kernels
REAL = re.compile(r"^\s*(?:@!?%\w+\s+)?((fma|mad|add|sub|mul|div|rcp|sqrt)(\.[a-z0-9.]*)?\.(f16|f32|f64|bf16)[a-z0-9.]*)\b")


def bad(instruction, name):
    parts = instruction.split(".")
    return name in ("fma", "mad") or "rn" not in parts or "ftz" in parts


def main():
    args = sys.argv[1:]
    least = int(args.pop(1)) if args[:1] == ["--least"] else 0
    files = args[1:] if least else args
    failed = entries = sweeps = operations = 0
    for file in files:
        kernel, before = "?", entries
        for number, line in enumerate(open(file), 1):
            if ".entry" in line:
                kernel = line.split(".entry")[1].split("(")[0].strip()
                entries += 1
                sweeps += bool(SWEEP.search(kernel))
            found = REAL.match(line)
            if not found:
                continue
            operations += 1
            if bad(found[1], found[2]):
                failed += 1
                if failed <= 10:
                    print("FAILED: %s:%d: %s, in %s" % (file, number, found[1], kernel[:200]))
        if entries == before:
            failed += 1
            print("FAILED: %s has no kernel" % file)
    print("%d files, %d kernels, %d of them sweeps, %d operations, %d not rounded to nearest" % (len(files), entries, sweeps, operations, failed))
    if sweeps < least or (least and not operations):
        print("FAILED: %d sweeps found, at least %d expected: was the right thing compiled?" % (sweeps, least))
        failed += 1
    sys.exit(1 if failed or not files else 0)


if __name__ == "__main__":
    main()
