#!/usr/bin/python3
"""Files of others: what they say cannot act on a terminal or as a program, they lead to no other file, and what they claim
is checked; the verdicts of prove, and what compare is told to ignore.

usage: reading.py ISOHALO MPIEXEC WORK_DIRECTORY [TEST ..]
"""
import json
import os
import pathlib
import shutil
import stat
import subprocess
import sys
import unicodedata

import h5py
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "same_bits"))
from numpy_check import digest  # noqa: E402

from harness import ISOHALO, MPIEXEC, WORK, finish, fresh_work_directory, isohalo, launch, that

INPUT = """
[domain]
shape = [24, 20]
length = [2.0, 1.0]
boundary.low = ["neumann", "periodic"]
boundary.high = [{dirichlet = 1.5}, "periodic"]
[solver]
kind = "heat"
[initial]
kind = "random"
seed = 3
[run]
steps = 12
[output]
checkpoint_every = 6
digest_every = 3
picture_every = 6
"""
BASE = "plain/step_00000012.h5"
RANKS = (1, 2, 3, 4)
EVIL = "\x1b[31m\r\nisohalo: error: forged\n\x07\x9b2J\u202e\u2028\x7f\U0001f600"


def copy(name, change):
    shutil.copy(WORK / BASE, WORK / name)
    with h5py.File(WORK / name, "r+") as f:
        change(f)
    return name


def attribute(path, name, value):
    return lambda f: f[path].attrs.modify(name, value)


# --- text of others ------------------------------------------------------------------------------------------------------

def output(ranks, *arguments):
    """Exit code and what is printed, which must be UTF-8 that moves no cursor and forges no line."""
    command = ([MPIEXEC, "-n", str(ranks)] if ranks else []) + [ISOHALO, *map(str, arguments)]
    r = subprocess.run(command, capture_output=True, timeout=120, cwd=WORK)
    for stream in (r.stdout, r.stderr):
        try:
            text = stream.decode()
        except UnicodeDecodeError as e:
            that(False, "%r prints %s" % (arguments, e))
            continue
        bad = {c for c in text if c != "\n" and unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp")}
        that(not bad, "%r prints %r" % (arguments, bad))
        that(not any(line.startswith("isohalo: error: forged") for line in text.splitlines()), "%r: a forged line: %r" % (arguments, text))
    return r.returncode, r.stdout.decode(errors="replace"), r.stderr.decode(errors="replace")


NAMES = ('__import__("os").system("touch ran") ; u', 'v = open("ran", "w")\n#', "quo\"te's\\back", EVIL, "class", "np", "field_0")


def speaking(f):
    """Everything that a checkpoint says is meant for a terminal, or for Python."""
    for name in NAMES:
        f.copy("fields/u", f["fields"], name)
    for path, name in (("grid", "boundary_low"), ("grid", "boundary_high"), ("reduction", "method"), ("fields/u", "role"), ("fields/u", "units")):
        f[path].attrs.modify(name, np.bytes_(EVIL.encode() + b"\xff"))
    text = f["config/text"][...].tobytes() + ("solver.note = %s\n\x1b[2J = \xe9\n" % EVIL).encode("utf-8") + b"\xff\xfe = 1\n"
    data = np.frombuffer(text, dtype=np.uint8)
    del f["config/text"]
    f["config/text"] = data
    f["config"].attrs.modify("digest", np.bytes_(digest(data)))


def run_lines(file, values):
    """The lines of info --numpy, run in a directory of their own: nothing but the fields is there afterwards."""
    code, lines, _ = output(1, "info", "--numpy", file)
    that(code == 0, "info --numpy %s: %d" % (file, code))
    scratch = WORK / "scratch"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    (scratch / "lines.py").write_text(lines + """
import json
print(json.dumps({repr(k): float(v[0, 0]) for k, v in fields.items() if v.shape == (24, 20)}))
""")
    r = subprocess.run([sys.executable, "lines.py"], capture_output=True, text=True, cwd=scratch, timeout=60)
    that(r.returncode == 0, "the lines do not run: %s\n%s" % (r.stderr, lines))
    that(sorted(p.name for p in scratch.iterdir()) == ["lines.py"], "the lines left %r" % sorted(scratch.iterdir()))
    found = json.loads(r.stdout or "{}")
    that(len(found) == values[0] and set(found.values()) == {values[1]}, "the lines load %r: %s" % (found, lines))


def test_text():
    evil = copy("evil.h5", speaking)
    with h5py.File(WORK / BASE) as f:
        corner = float(f["fields/u"][0, 0])
    run_lines(evil, (8, corner))
    run_lines(copy("one_name.h5", lambda f: f.move("fields/u", "fields/" + NAMES[0])), (1, corner))

    def chunks(f):  # h5py's form of the lines
        for name in list(f["fields"]):
            data, attributes = f["fields"][name][...], dict(f["fields"][name].attrs)
            del f["fields"][name]
            f["fields"].create_dataset(name, data=data, chunks=(8, 8))
            for k, v in attributes.items():
                f["fields"][name].attrs.create(k, v)
    with h5py.File(WORK / shutil.copy(WORK / evil, WORK / "evil_chunks.h5"), "r+") as f:
        chunks(f)
    run_lines("evil_chunks.h5", (8, corner))
    for n in (1, 3):
        code, out, _ = output(n, "info", evil)
        that(code == 0 and "\\x1b[31m\\r\\nisohalo: error: forged\\n\\x07" in out and "\\u202e\\u2028\\x7f" in out, "info: %d %s" % (code, out))
        code, out, _ = output(n, "verify", evil)
        that(code == 1 and out.endswith("not good\n") and 'role is "\\x1b' in out, "verify: %d %s" % (code, out))
        code, out, err = output(n, "compare", BASE, evil)
        that(code == 1 and "must match: reduction method: tree against \\x1b" in out, "compare: %d %s%s" % (code, out, err))
        code, out, _ = output(n, "compare", BASE, evil, "--json")
        that(code == 1 and any("forged" in line for line in json.loads(out)["must_match"]), "compare --json: %s" % out)
        code, _, err = output(n, "run", "input.toml", "output.directory=other", "--restart", evil)
        that(code == 2 and err.startswith("isohalo: error: cannot restart from evil.h5") and err.count("\n") == 1, "restart: %d %s" % (code, err))
    changed = shutil.copy(WORK / evil, WORK / "evil_changed.h5")
    with h5py.File(changed, "r+") as f:
        f["fields"][EVIL][3, 4] += 1
    code, out, err = output(2, "compare", evil, changed)
    that(code == 1 and "isohalo: warning: field \\x1b" in err and "the largest difference is 1" in out, "compare: %s%s" % (out, err))
    shutil.copy(WORK / evil, WORK / "other_evil.h5")
    for name, ranks in (("evil.json", 2), ("other_evil.json", 3)):
        (WORK / name).write_text(json.dumps({"host": EVIL + name, "ranks": ranks, EVIL: name, "config": {EVIL: name}}))
    code, out, _ = output(1, "compare", evil, "other_evil.h5")
    that(code == 0 and "ignored: host: \\x1b" in out, "run metadata: %s" % out)
    (WORK / "evil.txt").write_text("3 \x1b[31mu=%s residual=\x1b]0;x\n" % ("0" * 16))
    (WORK / "other.txt").write_text("3 \x1b[31mu=%s residual=1\n" % ("1" * 16))
    that(output(1, "compare", "evil.txt", "other.txt")[0] == 1, "logs")
    output(1, "compare", "evil.txt", "other.txt", "--json")
    (WORK / "other.txt").write_text("3 \x1b[31mu\n")
    that(output(1, "compare", "evil.txt", "other.txt")[0] == 2, "no log")


def test_names():
    """What the user names himself, or pastes."""
    for name in (EVIL + ".h5", os.fsdecode(b"caf\xe9\x1b.h5")):
        for arguments in (("info", name), ("verify", name), ("compare", name, BASE), ("run", name), ("run", "input.toml", "--restart", name), ("prove", name)):
            code, _, err = output(2 if arguments[0] == "verify" else 0, *arguments)
            that(code == 2 and "\\x1b" in err, "%r: %d %s" % (arguments, code, err))
        shutil.copy(WORK / BASE, WORK / name)
        for arguments in (("info", name), ("info", "--numpy", name), ("verify", name), ("compare", name, BASE)):
            that(output(1, *arguments)[0] == 0, "%r" % (arguments,))
        with open(WORK / name, "ab") as f:
            f.write(b"x")
        that(output(1, "verify", name)[0] == 1, "verify %r" % name)
        input = name.replace(".h5", ".toml")
        shutil.copy(WORK / "input.toml", WORK / input)
        that(output(2, "run", input, "--validate")[0] == 0, "--validate %r" % input)
        # Into out/NAME; ROMIO takes what comes before a colon for a kind of file system.
        input = input.replace(":", "")
        shutil.copy(WORK / "input.toml", WORK / input)
        for more in ((), ("--restart", "auto"), ("--restart", "auto", "run.steps=18")):
            code, out, err = output(1, "run", input, *more)
            that(code == 0 and "checkpoint = out/" in out, "run %r: %d %s%s" % (input, code, out, err))
    for wrong in ("run.\x1b[31mstps=3", "solver.kind=\x1b[31m\u202e", "output.directory.\x1b=3", "run.steps=\x1b", "\x1b", "=\x1b", "initial.kind='\x1b'",
                  "domain.boundary.low=['\x1b', {'\x1b'=1}]", "solver.'\x1b.x'=3", "output.picture_field=\x1b", "parallel.schedule=\x1b", "run.steps='\u202e\n'"):
        code, _, err = output(0, "run", "input.toml", wrong)
        that(code == 2 and "isohalo: error: " in err, "%r: %d %s" % (wrong, code, err))
    (WORK / "words.toml").write_text(INPUT.replace('"heat"', '"\\u001b[31m\\nisohalo: error: forged"') + '"\\u001b\\n" = 3\n["\\u202e"]\nx = 1\n')
    code, _, err = output(3, "run", "words.toml")
    that(code == 2 and err.count("\n") == 3, "several errors are lines: %d %s" % (code, err))
    (WORK / "broken.toml").write_bytes(b"[domain]\n\x1b[31m\xff = 3\n")
    that(output(1, "run", "broken.toml")[0] == 2, "broken.toml")
    for arguments in (("compare", BASE, BASE, "--abs", "\x1b"), ("compare", BASE, BASE, "--abs", "\x1b=1"), ("compare", BASE, BASE, "--ignore", "\x1b"),
                      ("run", "input.toml", "--\x1b"), ("\x1b",), ("schedule", "--ranks", "4", "--simulate", "\x1b"), ("verify", "--break", "\x1b")):
        that(output(1, *arguments)[0] == 2, "%r" % (arguments,))
    command_line = json.loads((WORK / "plain/step_00000012.json").read_bytes().decode("ascii"))["command_line"]
    that("output.directory=plain" in command_line, "the command line %r" % command_line)


# --- other files ---------------------------------------------------------------------------------------------------------

def leading_elsewhere():
    """A file whose datasets lead to others, and how each must be refused."""
    (WORK / "secret.bin").write_bytes(np.full((24, 20), 7.0).tobytes())
    with h5py.File(WORK / "other.h5", "w") as f:
        f["group/data"] = np.full((24, 20), 7.0)
    with h5py.File(WORK / "leading.h5", "w") as f:
        data = np.arange(480.0).reshape(24, 20)
        f["inner/plain"] = data
        f["chunked"] = data
        f.create_dataset("packed", data=data, chunks=(5, 6), compression="gzip", shuffle=True, fletcher32=True)
        f["soft"] = h5py.SoftLink("/inner/plain")
        f["link"] = h5py.ExternalLink("other.h5", "/group/data")
        f["middle"] = h5py.ExternalLink("other.h5", "/group")
        f["soft_link"] = h5py.SoftLink("/link")
        f["soft_middle"] = h5py.SoftLink("/middle/data")
        f["passwd"] = h5py.ExternalLink("/etc/passwd", "/")
        f.create_dataset("external", (24, 20), dtype="f8", external=[("secret.bin", 0, h5py.h5f.UNLIMITED)])
        for name, source in (("virtual", "other.h5"), ("virtual_within", ".")):
            layout = h5py.VirtualLayout((24, 20), "f8")
            layout[...] = h5py.VirtualSource(source, "group/data" if source != "." else "inner/plain", shape=(24, 20))
            f.create_virtual_dataset(name, layout)
    return {"link": 'link to another file, "other.h5"', "middle/data": 'link to another file, "other.h5"', "soft_link": 'link to another file, "other.h5"',
            "soft_middle": 'link to another file, "other.h5"', "passwd": 'link to another file, "/etc/passwd"',
            "external": 'keeps its data in other files, "secret.bin"', "virtual": "is virtual", "virtual_within": "is virtual"}


FROM_FILE = INPUT.replace('kind = "random"\nseed = 3', 'kind = "file"\nfile = "leading.h5"\ndataset = "inner/plain"')


def test_initial_files():
    refused = leading_elsewhere()
    (WORK / "file.toml").write_text(FROM_FILE)
    (WORK / "source.toml").write_text(INPUT.replace('"heat"', '"poisson"') + '[source]\nkind = "file"\nfile = "leading.h5"\ndataset = "inner/plain"\n')
    for n, (name, text) in enumerate(refused.items()):
        for input, table in (("file.toml", "initial"), ("source.toml", "source")):
            for ranks in RANKS if n == 0 else (1 + n % 4,):
                r = isohalo(ranks, "run", input, "output.directory=elsewhere", "--overwrite", "%s.dataset=%s" % (table, name), code=2)
                that(text in r.stderr and r.stderr.count("isohalo: error") == 1, "%s of %s: %s" % (name, input, r.stderr))
    that(not list((WORK / "elsewhere").glob("step_*")), "a refused file left a checkpoint")
    bits = set()
    for name in ("inner/plain", "packed", "soft", "/inner/../inner/plain", "chunked"):
        code = 2 if ".." in name else 0  # HDF5 has no parent
        isohalo(2, "run", "file.toml", "output.directory=fine", "--overwrite", "initial.dataset=" + name, code=code)
        if code == 0:
            bits.add((WORK / "fine/step_00000012.h5").read_bytes())
    that(len(bits) == 1, "plain, packed and linked data differ")
    isohalo(3, "run", "source.toml", "output.directory=fine", "--overwrite", "source.dataset=packed")


def test_plugins():
    """A filter that is none of HDF5's own is not loaded from where the environment says."""
    leading_elsewhere()
    (WORK / "file.toml").write_text(FROM_FILE)
    plugins = WORK / "plugins"
    plugins.mkdir()
    (plugins / "plugin.c").write_text('#include <stdio.h>\n__attribute__((constructor)) static void loaded(void) { fclose(fopen("%s", "w")); }\n'
                                      % (WORK / "loaded"))
    subprocess.run([shutil.which("cc") or "gcc", "-shared", "-fPIC", "-o", plugins / "libplugin.so", plugins / "plugin.c"], check=True)
    with h5py.File(WORK / "leading.h5", "r+") as f:
        creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        creation.set_chunk((24, 20))
        creation.set_filter(32123, h5py.h5z.FLAG_OPTIONAL)
        d = h5py.h5d.create(f.id, b"filtered", h5py.h5t.IEEE_F64LE, h5py.h5s.create_simple((24, 20)), creation)
        d.write_direct_chunk((0, 0), np.zeros((24, 20)).tobytes())
    r = subprocess.run([ISOHALO, "run", "file.toml", "output.directory=filtered", "initial.dataset=filtered"], cwd=WORK, capture_output=True, text=True,
                       env=dict(os.environ, HDF5_PLUGIN_PATH=str(plugins)))
    that(r.returncode == 2 and "filter" in r.stderr, "an unknown filter: %d %s" % (r.returncode, r.stderr))
    that(not (WORK / "loaded").exists(), "a filter is loaded from HDF5_PLUGIN_PATH")


def test_many_fields():
    """HDF5 keeps more than 8 names where the check of the structure does not look."""
    def many(more):
        def change(f):
            for k in range(11):
                f.copy("fields/u", f["fields"], "v%02d" % k)
            more(f)
        return change

    def external(f):
        attributes = dict(f["fields/u"].attrs)
        d = f["fields"].create_dataset("w", (24, 20), dtype="f8", external=[("secret.bin", 0, h5py.h5f.UNLIMITED)])
        for k, v in attributes.items():
            d.attrs.create(k, v)

    def link(f):
        f["fields/w"] = h5py.ExternalLink("other.h5", "/group/data")

    def packed(f):
        d = f["fields"].create_dataset("w", data=np.zeros((24, 20)), compression="gzip")
        for k, v in f["fields/u"].attrs.items():
            d.attrs.create(k, v)
    isohalo(2, "verify", copy("many.h5", many(lambda f: None)))
    for name, change, text in (("external", external, "keeps its data in other files"), ("link", link, "link to another file"),
                               ("packed", packed, "stored through filters")):
        file = copy("many_%s.h5" % name, many(change))
        for arguments in (("info", file), ("info", "--numpy", file), ("verify", file), ("compare", file, file), ("compare", BASE, file),
                          ("run", "input.toml", "output.directory=many", "--restart", file)):
            r = isohalo(2 if name == "link" else 0, *arguments, code=2)
            that(text in r.stderr, "%r: %s" % (arguments, r.stderr))


# --- verify --------------------------------------------------------------------------------------------------------------

def config(old, new):
    def change(f):
        text = f["config/text"][...].tobytes().decode().replace(old, new)
        data = np.frombuffer(text.encode(), dtype=np.uint8)
        del f["config/text"]
        f["config/text"] = data
        f["config"].attrs.modify("digest", np.bytes_(digest(data)))
    return change


def metadata_checksum(data):
    """Bob Jenkins' lookup3, with which HDF5 guards its metadata."""
    def rotated(x, k):
        return (x << k | x >> 32 - k) & 0xffffffff
    v = [(0xdeadbeef + len(data)) & 0xffffffff] * 3
    while data:
        block, data = data[:12].ljust(12, b"\0"), data[12:]
        v = [(x + int.from_bytes(block[4 * k:4 * k + 4], "little")) & 0xffffffff for k, x in enumerate(v)]
        for k, r in enumerate((4, 6, 8, 16, 19, 4) if data else ()):
            x, y, z = k % 3, (k + 1) % 3, (k + 2) % 3
            v[x] = ((v[x] - v[z]) & 0xffffffff) ^ rotated(v[z], r)
            v[z] = (v[z] + v[y]) & 0xffffffff
    for x, y, r in ((2, 1, 14), (0, 2, 11), (1, 0, 25), (2, 1, 16), (0, 2, 4), (1, 0, 14), (2, 1, 24)):
        v[x] = ((v[x] ^ v[y]) - rotated(v[y], r)) & 0xffffffff
    return v[2]


def test_claims():
    with h5py.File(WORK / BASE) as f:
        dt = float(f["time"].attrs["dt"])
    i8, f8 = np.int64, np.float64

    def both(*changes):
        return lambda f: [c(f) for c in changes]
    for change, text in (
            (attribute("reduction", "tile", np.zeros(2, i8)), "tile is [0, 0], its extents should be powers of two"),
            (attribute("reduction", "tile", np.array([16, -16], i8)), "tile is [16, -16]"), (attribute("reduction", "tile", np.array([16, 24], i8)), "tile is [16, 24]"),
            (attribute("reduction", "tile", np.array([8, 32], i8)), "tile is [8, 32], that of tree version 1 is [16, 16]"),
            (attribute("reduction", "method", np.bytes_("sum")), 'method is "sum"'), (attribute("reduction", "tree_version", i8(2)), "tree version 2"),
            (attribute("reduction", "residual_step", i8(14)), "residual_step is 14"),
            (attribute("reduction", "change_sum", f8(-1)), "change_sum is -1"), (attribute("reduction", "change_sum", f8(1)), "/reduction: residual is"),
            (both(attribute("reduction", "change_sum", f8(np.nan)), attribute("reduction", "residual", f8(np.nan))), "change_sum is nan"),
            (attribute("time", "step", i8(13)), "/time: time is"), (attribute("time", "random_counter", i8(-1)), "random_counter is -1"),
            (attribute("time", "random_seed", i8(4)), "random_seed is 4"),
            (both(attribute("time", "step", i8(-12)), attribute("time", "time", f8(-12 * dt)), attribute("reduction", "residual_step", i8(-12))), "step is -12"),
            (both(attribute("time", "dt", f8(-dt)), attribute("time", "time", f8(-12 * dt))), "dt is -"),
            (both(attribute("time", "dt", f8(np.nan)), attribute("time", "time", f8(np.nan))), "dt is nan"),
            (attribute("grid", "spacing", np.array([0.1, 0.05])), "/grid: spacing 0 is"), (attribute("grid", "spacing", np.array([-1.0, 0.05])), "spacing 0 is -1"),
            (attribute("grid", "origin", np.array([0.0, np.nan])), "origin 1 is nan"), (attribute("grid", "origin", np.array([1.0, 0])), "origin 0 is 1"),
            (attribute("grid", "periodic", np.array([1, 1], i8)), 'periodic 0 is 1, boundary_low says ["neumann", "periodic"]'),
            (attribute("grid", "periodic", np.array([0, 2], i8)), "periodic 1 is 2"), (attribute("grid", "periodic", np.array([0, 0], i8)), "periodic 1 is 0"),
            (both(attribute("grid", "boundary_low", np.bytes_('[{open}, "periodic"]')), config('low = ["neumann"', 'low = [{open}')), "is no list of 2 rules"),
            (both(attribute("grid", "boundary_high", np.bytes_('[{dirichlet = 1.5}]')), config('high = [{dirichlet = 1.5}, "periodic"]', "high = [{dirichlet = 1.5}]")),
             "boundary_high [{dirichlet = 1.5}] is no list of 2 rules"),
            (both(attribute("grid", "boundary_high", np.bytes_('[{dirichlet = inf}, "periodic"]')), config("dirichlet = 1.5", "dirichlet = inf")), "is no list of 2 rules"),
            (config('domain.type = "float64"', 'domain.type = "float32"'), "field u is float64, /config says"),
            (config("domain.length = [2, 1]", "domain.length = [2]"), "is no list of 2 numbers"), (config("domain.length = [2, 1]", "domain.length"), "is no line KEY = VALUE"),
            (attribute("fields/u", "nan_count", i8(-1)), "NaN count is -1"),
            (both(attribute("fields/u", "min", f8(2)), attribute("fields/u", "max", f8(-2))), "its max is"),
            (lambda f: f["grid"].attrs.create("note", i8(1)), 'attribute "note" of /grid is none of the schema'),
            (lambda f: f["fields/u"].attrs.create("note", i8(1)), 'attribute "note" of field u'), (lambda f: f.attrs.create("note", i8(1)), 'attribute "note" of /'),
            (lambda f: f["time"].create_group("more"), 'object "more" in /time'), (lambda f: f["config"].__setitem__("more", np.zeros(3)), 'object "more" in /config')):
        r = isohalo(0, "verify", copy("claim.h5", change), code=1)
        that(text in r.stdout and r.stdout.endswith("not good\n"), "verify does not say %r: %s" % (text, r.stdout))
    copy("role.h5", attribute("fields/u", "role", np.bytes_("other")))
    r = isohalo(2, "run", "input.toml", "output.directory=role", "--restart", "role.h5", code=2)
    that('role.h5: field u: its role is "other": it is damaged' in r.stderr, "a restart from an unknown role: " + r.stderr)
    for n, text in zip(RANKS, ("1 byte follows", "2 bytes follow", "3 bytes follow", "4 bytes follow")):
        (WORK / "longer.h5").write_bytes((WORK / BASE).read_bytes() + b"\0" * n)
        r = isohalo(n, "verify", "longer.h5", code=1)
        that(text + " the end of the HDF5 data, at byte %d: " % (WORK / BASE).stat().st_size in r.stdout, "appended bytes: " + r.stdout)
    # The same where the superblock knows of them, and bytes in the gap before the data.
    data = bytearray((WORK / BASE).read_bytes())
    with h5py.File(WORK / BASE) as f:
        gap = f["fields/u"].id.get_offset() - 1
    that(data[gap] == 0, "there is no gap before the data")
    (WORK / "gap.h5").write_bytes(data[:gap] + b"x" + data[gap + 1:])
    r = isohalo(2, "verify", "gap.h5", code=1)
    that("are no part of it and not all zero\n" in r.stdout, "bytes in a gap: " + r.stdout)
    for more in (bytes(640), b"payload " * 100):
        longer = bytearray(data + more)
        longer[28:36] = len(longer).to_bytes(8, "little")
        longer[44:48] = metadata_checksum(bytes(longer[:44])).to_bytes(4, "little")
        (WORK / "longer.h5").write_bytes(longer)
        r = isohalo(1, "verify", "longer.h5", code=1)
        that("%d bytes follow its last structure, at byte %d: no part of it\n" % (len(more), len(data)) in r.stdout, "appended bytes: " + r.stdout)
    # Data that lie at multiples of 64 bytes, with gaps before them.
    access = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
    access.set_alignment(1, 64)
    shutil.copy(WORK / BASE, WORK / "aligned.h5")
    with h5py.File(h5py.h5f.open(bytes(WORK / "aligned.h5"), h5py.h5f.ACC_RDWR, access)) as f:
        f.copy("fields/u", f["fields"], "v")
        that(f["fields/v"].id.get_offset() % 64 == 0, "h5py aligns nothing")
    that(isohalo(2, "verify", "aligned.h5").stdout.endswith("good\n"), "aligned data")
    for options in (("domain.shape=[300]", 'domain.boundary.low=["neumann"]', 'domain.boundary.high=["neumann"]', "domain.length=[1e-3]", "domain.origin=[-0.1]"),
                    ("domain.shape=[9,8,7]", "domain.length=[1,2,3]", *("domain.boundary.%s=[{fixed=-1e-9},{dirichlet=2},'periodic']" % s for s in ("low", "high"))),
                    ("domain.shape=[5,4,3,6]", "domain.length=[1,1,1,1]", *("domain.boundary.%s=['periodic','neumann','periodic','neumann']" % s for s in ("low", "high")),
                     "domain.type=float32"),
                    ("solver.kind=poisson", "solver.method=cg", "parallel.reduction=exact"), ("solver.kind=life", "domain.boundary.high=['neumann','periodic']")):
        isohalo(2, "run", "input.toml", "output.directory=kinds", "--overwrite", "output.picture_every=0", *options)
        r = isohalo(1, "verify", "kinds/latest.h5")
        that(r.stdout.endswith("good\n"), "verify of a good file: " + r.stdout)


# --- prove ---------------------------------------------------------------------------------------------------------------

def launcher(name, harm, ranks=("3",)):
    """An mpiexec whose runs on 3 ranks, or on these, are followed by `harm`, lines of Python that know `directory`."""
    file = WORK / name
    file.write_text("""#!%s
import os, pathlib, subprocess, sys
code = subprocess.call([%r, *sys.argv[1:]])
if sys.argv[2] in %r:
    directory = pathlib.Path([a for a in sys.argv if a.startswith("output.directory=")][0].split("=")[1])
    def change(name, edit):
        data = bytearray((directory / name).read_bytes())
        edit(data)
        (directory / name).write_bytes(data)
%s
sys.exit(code)
""" % (sys.executable, MPIEXEC, ranks, "\n".join("    " + line for line in harm.splitlines())))
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return file


def test_prove():
    small = ("prove", "input.toml", "run.steps=6", "output.checkpoint_every=3")
    r = launch(0, *small, "--ranks", "1,3,2")
    that(r.returncode == 0 and "and 2 checkpoint files and 4 other files byte by byte)" in r.stdout, "prove: %d %s%s" % (r.returncode, r.stdout, r.stderr))
    flip = "def flip(d):\n    d[%s] ^= 1\nchange(%r, flip)"
    for harm, texts in ((flip % (70, "digests.txt"), ("digests.txt differs", "first different byte 70")),
                        (flip % (-40, "step_00000003.xmf"), ("step_00000003.xmf differs",)), (flip % (-20, "u_00000006.png"), ("u_00000006.png differs",)),
                        ('os.remove(directory / "step_00000003.xmf")', ("step_00000003.xmf is missing",)),
                        ('(directory / "step_00000009.h5").write_text("x")', ("step_00000009.h5 is additional",)),
                        ('change("step_00000003.h5", lambda d: d.clear())', ("step_00000003.h5 differs", "ranks_3/step_00000003.h5 is no HDF5 file")),
                        (flip % (70, "step_00000003.h5"), ("step_00000003.h5 differs", "first different byte 70", "on 1 against 3 ranks", "is truncated or damaged")),
                        ('change("step_00000006.h5", lambda d: d.append(7))', ("step_00000006.h5 differs",)),
                        ('os.remove(directory / "latest.h5")\nos.symlink("step_00000003.h5", directory / "latest.h5")', ("latest.h5 leads elsewhere",))):
        r = launch(0, *small, "--ranks", "1,3", "--mpiexec", launcher("liar.py", harm))
        that(r.returncode == 1 and r.stdout.endswith("not proved: the runs on 1, 3 ranks differ\n") and all(t in r.stdout + r.stderr for t in texts),
             "prove does not say %r: %d %s%s" % (texts, r.returncode, r.stdout, r.stderr))
    r = launch(0, *small, "--ranks", "3,1", "--mpiexec", launcher("liar.py", flip % (60, "step_00000003.h5")))
    that(r.returncode == 1 and "step_00000003.h5 differs" in r.stdout, "damage of the first: %d %s%s" % (r.returncode, r.stdout, r.stderr))
    # The same damage everywhere is no proof.
    for harm, text in ((flip % (-40, "step_00000003.h5"), "step_00000003.h5: field u: its digest"), ('os.truncate(directory / "step_00000006.h5", 900)', "step_00000006.h5 cannot be opened")):
        r = launch(0, *small, "--ranks", "1,3", "--mpiexec", launcher("liar.py", harm, ("1", "3")))
        that(r.returncode == 1 and text in r.stdout and r.stdout.endswith("not proved: the runs on 1, 3 ranks leave the same damaged checkpoints\n"),
             "the same damage: %d %s%s" % (r.returncode, r.stdout, r.stderr))
    # A run that fails is no difference.
    for harm, code, text in (("code = 3", 3, ""), ('print("isohalo: error: out of luck", file=sys.stderr)\ncode = 2', 2, "\n  isohalo: error: out of luck\n")):
        r = launch(0, *small, "--ranks", "1,3", "--mpiexec", launcher("liar.py", harm))
        that(r.returncode == code and "nothing is proved: the run on 3 ranks ended with exit code %d\n" % code in r.stderr and text in r.stderr and "differ" not in r.stdout + r.stderr,
             "prove with a failed run: %d %s%s" % (r.returncode, r.stdout, r.stderr))
    r = launch(0, *small, "--ranks", "1,2", "solver.kapa=1")
    that(r.returncode == 2 and "every run failed" in r.stderr and "unknown key solver.kapa" in r.stderr and "proved: the" not in r.stdout, r.stdout + r.stderr)


# --- compare -------------------------------------------------------------------------------------------------------------

def test_compare():
    other = "hotter/step_00000012.h5"
    isohalo(2, "run", "input.toml", "output.directory=hotter", "solver.cfl=0.8")
    with h5py.File(WORK / BASE) as f, h5py.File(WORK / other) as g:
        a, b = f["fields/u"][...], g["fields/u"][...]
    for n in (1, 3):
        isohalo(n, "compare", BASE, other, "--abs", "1e9", code=1)
        r = isohalo(n, "compare", BASE, other, "--abs", "1e9", "--ignore", "config,time")
        that("ignored: config solver.cfl: 0.90000000000000002 against 0.80000000000000004" in r.stdout and "ignored: dt: " in r.stdout and r.stdout.endswith("same within tolerance\n"), r.stdout)
    for ignore in ("config", "time"):
        r = isohalo(1, "compare", BASE, other, "--abs", "1e9", "--ignore", ignore, code=1)
        that("must match: " in r.stdout, r.stdout)
    limit = float(np.sort(np.abs(a - b).ravel())[-6])  # 5 cells are beyond it, if no two are equal
    texts = {}
    for n in RANKS:
        r = isohalo(n, "compare", BASE, other, "--abs", repr(limit), "--ignore", "config", "--ignore", "time", "--json", code=1)
        texts[r.stdout] = json.loads(r.stdout)
    that(len(texts) == 1, "the report depends on the ranks")
    j = next(iter(texts.values()))["fields"][0]
    at = np.unravel_index(np.argmax(np.abs(b - a)), a.shape)
    that((j["max_abs_at"], j["max_abs"], j["max_abs_a"], j["max_abs_b"]) == ([int(k) for k in at], abs(b[at] - a[at]), a[at], b[at]), "the largest: %r" % j)
    beyond = int((np.abs(b - a) > limit).sum())
    that(0 < beyond < 480 and j["cells_beyond_tolerance"] == beyond, "%d cells beyond: %r" % (beyond, j))
    r = isohalo(2, "compare", BASE, other, "--abs", repr(limit), "--ignore", "config,time", code=1)
    that("the largest difference is %.17g, at (%d, %d): %.17g against %.17g" % (abs(b[at] - a[at]), *at, a[at], b[at]) in r.stdout and
         "%d of 480 cells are beyond the tolerance" % beyond in r.stdout, r.stdout)
    # Equal differences: the first cell, on any ranks; none where no two numbers differ.
    def two(f):
        f["fields/u"][20, 3] = a[20, 3] + 512
        f["fields/u"][2, 3] = f["fields/u"][20, 3] = np.inf
    copy("two.h5", two)
    for n in RANKS:
        j = json.loads(isohalo(n, "compare", BASE, "two.h5", "--json", code=1).stdout)["fields"][0]
        that((j["max_abs_at"], j["max_abs"], j["max_abs_b"]) == ([2, 3], "inf", "inf"), "infinities: %r" % j)
    # A field of several pieces, which ranks share.
    large = "large/step_00000001.h5"
    isohalo(2, "run", "input.toml", "output.directory=large", "domain.shape=[300,200]", "run.steps=1", "output.picture_every=0")
    shutil.copy(WORK / large, WORK / "larger.h5")
    with h5py.File(WORK / "larger.h5", "r+") as f:
        u = f["fields/u"][...]
        for k, index in enumerate(((1, 2), (130, 7), (299, 199), (150, 0))):
            f["fields/u"][index] = (8.0, 64.0, 32.0, 16.0)[k]
    for n in RANKS:
        j = json.loads(isohalo(n, "compare", large, "larger.h5", "--json", code=1).stdout)["fields"][0]
        that((j["max_abs_at"], j["max_abs"], j["max_abs_a"], j["max_abs_b"]) == ([130, 7], 64 - u[130, 7], u[130, 7], 64), "shared pieces: %r" % j)
    copy("nan.h5", lambda f: f["fields/u"].__setitem__((5, 5), np.nan))
    r = isohalo(2, "compare", BASE, "nan.h5", code=1)
    that("largest" not in r.stdout, r.stdout)
    for names, change in (("grid", attribute("grid", "origin", np.ones(2))), ("boundary", attribute("grid", "boundary_low", np.bytes_("[]"))),
                          ("step", attribute("time", "step", np.int64(3))), ("random", attribute("time", "random_seed", np.int64(5))),
                          ("reduction", attribute("reduction", "method", np.bytes_("exact"))), ("residual", attribute("reduction", "residual", 3.0)),
                          ("units", attribute("fields/u", "units", np.bytes_("K"))), ("roles", attribute("fields/u", "role", np.bytes_("auxiliary")))):
        copy("one.h5", change)
        isohalo(0, "compare", BASE, "one.h5", code=1)
        isohalo(0, "compare", BASE, "one.h5", "--ignore", names)
    for names in ("times", "config,shape"):
        r = isohalo(3, "compare", BASE, other, "--ignore", names, code=2)
        that("name some of boundary, config, grid, random, reduction, residual, roles, step, time, units" in r.stderr, "--ignore %s: %s" % (names, r.stderr))
    isohalo(1, "compare", "plain/digests.txt", "plain/digests.txt", "--ignore", "config", code=2)


def main():
    fresh_work_directory(INPUT)
    isohalo(2, "run", "input.toml", "output.directory=plain")
    for test in [globals()[n] for n in sys.argv[4:]] or (test_text, test_names, test_initial_files, test_plugins, test_many_fields, test_claims, test_prove, test_compare):
        test()
    finish()


if __name__ == "__main__":
    main()
