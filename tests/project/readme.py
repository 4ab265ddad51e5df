#!/usr/bin/python3
"""The words of README and docs are checked against the project: set-up commands exist, shell blocks marked `runs` work,
files that are named or linked are there, no file points to a document that is not in the repository, and users are told
to include public headers alone.

usage: readme.py SOURCE_DIRECTORY WORK_DIRECTORY text|commands
"""
import pathlib
import re
import shutil
import subprocess
import sys

ROOT, WORK, MODE = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
# Where headers lie that users need not name: architecture.md and CONTRIBUTING.md are for who changes isohalo.
PRIVATE = r"(?:datatypes|framework|stencils|apps|tests|internal|isohalo/internal)/"
INCLUDE = re.compile(r"^\s*#\s*include\s*[<\"]%s|\bincluded?\s+`?[<\"]?%s" % (PRIVATE, PRIVATE), re.M | re.I)
failures = []


def blocks(document, marker):
    """Shell blocks that follow a line <!-- marker -->."""
    return re.findall(r"<!-- %s -->\n+```(?:sh|bash)\n(.*?)```" % marker, document.read_text(), re.S)


def check_text():
    setup = "\n".join(blocks(DOCUMENTS[0], "set-up"))
    for command in ("bash apps/quickstart.sh", "bash tests/run.sh"):
        if command not in setup:
            failures.append("README's set-up does not say %r" % command)
    for document in DOCUMENTS:
        text, name = re.sub(r"```.*?```", "", document.read_text(), flags=re.S), document.relative_to(ROOT)
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text):
            if "://" not in target and not (document.parent / target).exists():
                failures.append("%s links to %s, which is not there" % (name, target))
        for path in re.findall(r"`((?:apps|docs|inputs|tests|framework|stencils|datatypes|cmake)/[\w/.-]*)`", text):
            if not (ROOT / path).exists():
                failures.append("%s names %s, which is not there" % (name, path))
        for path, code in re.findall(r"<!-- is ([^ ]+) -->\n+```cpp\n(.*?)```", document.read_text(), re.S):
            if (ROOT / path).read_text() != code:
                failures.append("%s does not show %s as it is" % (name, path))
    examples = [p for folder in ("apps/examples", "python") for p in (ROOT / folder).rglob("*") if p.is_file()]
    for file in [d for d in DOCUMENTS if d.name not in ("architecture.md", "CONTRIBUTING.md")] + examples:
        for words in INCLUDE.findall(file.read_text(errors="replace")):
            failures.append("%s has users include a private header: %s" % (file.relative_to(ROOT), words.strip()))
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True).stdout.split()
    for file in tracked:
        if not file.endswith((".hpp", ".cpp", ".h", ".c", ".py", ".toml", ".cmake", "CMakeLists.txt")):
            continue
        for target in re.findall(r"[\w./-]+\.md\b", (ROOT / file).read_text(errors="replace")):
            if not (ROOT / target).exists() and file != "tests/project/readme.py":
                failures.append("%s points to %s, which is not there" % (file, target))


def run_commands():
    """Each block marked `runs` in a copy of the working directory, with the built program."""
    found = [block for document in DOCUMENTS for block in blocks(document, "runs")]
    if len(blocks(DOCUMENTS[0], "runs")) < 3:
        failures.append("README has fewer than 3 blocks to run")
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    (WORK / "build").symlink_to(ROOT / "build")
    (WORK / "inputs").symlink_to(ROOT / "inputs")
    for block in found:
        r = subprocess.run(["bash", "-euc", block], cwd=WORK, capture_output=True, text=True, timeout=300)
        if r.returncode:
            failures.append("a block fails with %d:\n%s%s%s" % (r.returncode, block, r.stdout[-500:], r.stderr[-1500:]))


{"text": check_text, "commands": run_commands}[MODE]()
for f in failures:
    print("FAILED:", f, file=sys.stderr)
print("documents, %s: %d failed" % (MODE, len(failures)))
sys.exit(1 if failures else 0)
