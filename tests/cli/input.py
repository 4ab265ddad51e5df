#!/usr/bin/python3
"""What an input may hold and what the command says of it: limits, suggestions, numbers and texts, keys that are removed,
--help-input, --validate, unknown commands and options, and a /dev/shm without room.

usage: input.py ISOHALO MPIEXEC WORK_DIRECTORY
"""
import fcntl
import os
import re
import shutil
import subprocess

import h5py
import numpy as np

from harness import ISOHALO, MPIEXEC, WORK, finish, fresh_work_directory, isohalo, launch, that

INPUT = """
[domain]
shape = [12, 10]
[solver]
kind = "heat"
cfl = 0.5
[initial]
kind = "gaussian"
[run]
steps = 4
"""


def errors(*arguments, ranks=0, code=2):
    """The lines of the error that a launch ends with."""
    r = launch(ranks, *arguments)
    that(r.returncode == code, "%.200r on %d ranks: exit code %d: %s" % (arguments, ranks, r.returncode, r.stderr[-600:]))
    return r.stderr.strip().splitlines()


def one(what, text, *arguments, **more):
    """One error of one line, of bounded length, that has `text`."""
    lines = errors(*arguments, **more)
    that(len(lines) == 1 and text in lines[0] and len(lines[0]) < 800, "%s: expected one error with %r, got %.1000r" % (what, text, lines))


def here(key, *arguments, input="input.toml"):
    """The value in force."""
    text = launch(0, "run", input, *arguments, "--help-input").stdout
    found = re.search(r"^  %s +.*?(?:; here (.*))?$" % re.escape(key), text, re.M)
    return (found.group(1) or "") if found else "no such key"


def write(name, text):
    (WORK / name).write_text(text)
    return name


def test_limits():
    n = 60000
    for what, text, problem in (
            ("dotted key", "x." * n + "y = 1", "a key of more than 32 parts"),
            ("table", "[" + "x." * n + "y]", "a key of more than 32 parts"),
            ("quoted parts", '"x" . ' * n + "y = 1", "a key of more than 32 parts"),
            ("dotted key in a table", "a = {b = 1, " + "x." * n + "y = 1}", "a key of more than 32 parts"),
            ("behind strings", "a = '''\"'''\nb = \"\"\"\\\"\"\"\"\"\"\nc = 'it\"s' # it's\n" + "x." * n + "y = 1", "a key of more than 32 parts"),
            ("lists", "a = " + "[" * n, "nested more than 32 deep"),
            ("tables", "a = " + "{a = " * n, "nested more than 32 deep"),
            ("long key", "x" * n + " = 1", "a key of 60000 bytes: none is longer than 256")):
        one(what, "deep.toml:", "run", write("deep.toml", INPUT + text + "\n"), "--validate")
        one(what, problem, "run", "deep.toml", "--validate", ranks=3 if what == "table" else 0)
    for what, override, problem in (
            ("override of many parts", "x." * 40000 + "y=1", "a key of more than 32 parts"),
            ("override with a long key", "x" * 40000 + "=1", "a key of 40000 bytes"),
            ("override without =", "x." * 40000, "is no override"),
            ("override with a deep table", "solver.kind={" + "x." * 40000 + "y=1}", "a key of more than 32 parts"),
            ("override with a deep list", "domain.shape=" + "[" * 40000, "nested more than 32 deep"),
            ("override of two lines", "solver.kind=1\n" + "x." * 40000 + "y=1", "is not one of"),
            ("override with a long value", "solver.kind=" + "x" * 100000, "is not one of")):
        one(what, problem, "run", "input.toml", override, "--validate", ranks=3 if "parts" in what else 0)
    up = "../" * 40 + "tmp"  # dots that are no parts of a key
    that(here("output.directory", "output.directory=" + up).startswith('"../../'), "a path with many dots is no string")
    strings = INPUT + '[output]\ndirectory = "' + "./" * 50 + 'a"  # ' + "." * 50 + "\n"
    isohalo(0, "run", write("strings.toml", strings), "--validate")
    lines = errors("run", write("many.toml", INPUT + "".join("x%d = 1\n" % k for k in range(3000))), "--validate")
    that(len(lines) == 101 and "there are 3000 in all" in lines[-1], "many errors: %d lines, %r" % (len(lines), lines[-1:]))
    one("control characters", "unknown key run.\\x1b[2J", "run", write("escape.toml", INPUT + '"\\u001b[2J" = 1\n'), "--validate")


def test_suggestions():
    for override, text in (("sovler.kappa=1", "unknown table sovler; did you mean solver?"),
                           ("output.dir=x", "unknown key output.dir; did you mean output.directory?"),
                           ("output.keeep=1", "did you mean output.keep?"),
                           ("steps=3", "unknown key steps; did you mean run.steps?"),
                           ("initial.widht=1", "did you mean initial.width?"),
                           ("domain.bondary.low=1", "unknown table domain.bondary; did you mean domain.boundary?"),
                           ("solver.omega=1", 'unknown key solver.omega for solver.kind = "heat": --help-input lists'),
                           ("sorce.kind=sine", "unknown table sorce; did you mean source?"),
                           ("source.kind=sin", "did you mean sine?"), ("source=1", "source is an integer, expected a table"),
                           ("solver.kind=poison", "did you mean poisson?"),
                           ("solver.kind=liffe", "did you mean life?"),
                           ("initial.kind=sin", "did you mean sine?"),
                           ("parallel.exchange=colesced", "did you mean coalesced?"),
                           ("output.picture_field=v", '"v" is not one of "u"'),
                           ('domain.boundary.low=["neuman","periodic"]', "domain.boundary.low has an entry \"neuman\" that is not"),
                           ('domain.boundary.low=["neuman","periodic"]', "did you mean neumann?"),
                           ('domain.boundary.low=["neumann","periodic"]', "periodic on one side only (domain.boundary.high is periodic by default): make both"),
                           ("domain.boundary.low=[neumann,{dirichlet=abc}]", "must be a list of 2 rules, one per dimension (what is no TOML is a string: quote words"),
                           ("domain.boundary.u.low=[]", 'domain.boundary.u: tables by field are for solvers of several fields, and "heat" has one: leave "u." out'),
                           ("source.u.kind=sine", "source.u: tables by field are for solvers of several fields"),
                           ("solver.cfl.kind=file", '"solver.cfl" is no table: if it may be one, remove its value before (solver.cfl=)'),
                           ('domain.boundary.low=[{dirchlet=1},"periodic"]', "did you mean dirichlet?"),
                           ('domain.boundary.low=["dirichlet","periodic"]', "did you mean {dirichlet = VALUE}?"),
                           ("RUN.steps=5", "unknown table RUN; did you mean run?"),
                           ("boundary.low=1", "unknown table boundary; did you mean domain.boundary?"),
                           ("boundry.low=1", "unknown table boundry; did you mean domain.boundary?"),
                           ("domain.solver.kappa=1", "unknown table domain.solver; did you mean solver?"),
                           ("slover=1", "unknown key slover; did you mean solver?"),
                           ("initial.u.width=1", "initial.u.width=1: initial.u and initial.kind are both given: write all keys of the field in one table, [initial.u] or [initial]"),
                           ("parallel.halo_depth=autom", 'parallel.halo_depth is a string, expected an integer or "auto"'),
                           ("parallel.process_grid=autom", 'parallel.process_grid is a string, expected a list of 2 integers or "auto"'),
                           ('domain.boundary.low=[{flux="x"},"periodic"]', "has an entry {flux = ..} that is not"),
                           ("solver=heat", "solver=heat: solver is a string, expected a table"), ("initial=gaussian", "initial is a string, expected a table"),
                           ("run=5", "run is an integer, expected a table"), ("domain=[1]", "domain is a list, expected a table"),
                           ("domain.boundary=3", "domain.boundary is an integer, expected a table"),
                           ("output.folder=x", "unknown key output.folder: --help-input lists"), ("output.solve=1", "unknown key output.solve: --help-input lists"),
                           ("domain.bc=2", "unknown key domain.bc: --help-input lists"), ("domain.n=", "unknown key domain.n: --help-input lists"),
                           ("domain.boundry=3", "unknown key domain.boundry; did you mean domain.boundary?"), ("solver.steps=3", "did you mean run.steps?"),
                           ("initial.type=random", "unknown key initial.type; did you mean initial.kind?"),
                           ("solver.mask=3", "solver.mask is no table: [solver.mask] has the keys of [initial]"),
                           ("solver.mask.low=", 'unknown key solver.mask.low: --help-input lists'),
                           (" run.stepz\t= 3", "unknown key run.stepz; did you mean run.steps?"), (" = 3", '" = 3" is no override'),
                           ("solver.masc.kind=box", "unknown table solver.masc; did you mean solver.mask?"),
                           ("domain.bc.low=[1]", "unknown table domain.bc: this input has the tables"),
                           ('solver.kappa={kind="expression",expression="x+"}', "column 3"),
                           ('solver.kappa={kind="expression",expression="x+1"}', "come from a file or an expression"),
                           ('domain.boundary.low=[{robin={b=1,value=1}},"periodic"]', "a is missing"),
                           ("initial.u.widht=", "unknown key initial.widht; did you mean initial.width?")):
        one(override, text, "run", "input.toml", override, "--validate", ranks=3 if "neuman\"" in override else 0)
    sides = write("sides.toml", INPUT.replace("[solver]", 'boundary.low = ["neumann", "neumann"]\nboundary.high = ["neumann", "neumann"]\n[solver]'))
    one("one side of the file, one of the command line", 'command line: domain.boundary.low=["periodic","neumann"]: dimension 0 is periodic on one side only: make',
        "run", sides, 'domain.boundary.low=["periodic","neumann"]', "--validate")
    one("a box upside down", "initial.low[0] = 0.5 is above initial.high[0] = 0.25: no cell is in the box", "run", "input.toml", "initial=",
        "initial.kind=box", "initial.low=[0.5,0]", "initial.high=[0.25,1]", "--validate")
    one("a source of a solver that has none", "unknown table source: this input has the tables domain, ", "run",
        write("none.toml", INPUT.replace('kind = "heat"\ncfl = 0.5\n', 'kind = "stencil"\noffsets = [[0, 0]]\nweights = [1]\n')), "source.kind=sine", "--validate")
    one("a value for a table", "value.toml:1:1: solver is a string, expected a table",
        "run", write("value.toml", 'solver = "heat"\n' + INPUT.replace('[solver]\nkind = "heat"\ncfl = 0.5\n', "")), "--validate")
    one("misspelt table", "slover.toml:4:1: unknown table slover; did you mean solver?",
        "run", write("slover.toml", INPUT.replace("[solver]", "[slover]")), "--validate")
    one("a table of another level", "level.toml:11:1: unknown table boundary; did you mean domain.boundary?",
        "run", write("level.toml", INPUT + '[boundary]\nlow = ["periodic", "periodic"]\n'), "--validate")
    for table, kind, word in (("initial", 8, "kid"), ("solver", 5, "knd"), ("initial", 8, "Kind")):
        lines = INPUT.splitlines()
        lines[kind - 1] = lines[kind - 1].replace("kind", word)
        one("a misspelt kind", "kind.toml:%d:1: unknown key %s.%s; did you mean %s.kind?" % (kind, table, word, table),
            "run", write("kind.toml", "\n".join(lines) + "\n"), "--validate", ranks=3 if word == "knd" else 0)
    one("the misspelt kind of a field", "kind.toml:8:1: unknown key initial.u.kid; did you mean initial.u.kind?",
        "run", write("kind.toml", INPUT.replace("[initial]\nkind", "[initial.u]\nkid")), "--validate", "initial.u.width=1")
    one("no kind, and a key of one", "required key solver.kind is missing", "run", "input.toml", "solver.kind=", "source.kind=sine", "--validate")
    for field in "TU":
        one("a field of another name", "field.toml:7:1: unknown table initial.%s; did you mean initial?" % field,
            "run", write("field.toml", INPUT.replace("[initial]", "[initial.%s]" % field)), "--validate")
    named = write("own.toml", INPUT.replace("[initial]", "[initial.u]"))
    one("a key of [initial] beside [initial.u]", "unknown key initial.width; did you mean initial.u.width?", "run", named, "--validate", "initial.width=1")
    one("misspelt required key", "did you mean run.steps?", "run", write("step.toml", INPUT.replace("steps =", "step =")), "--validate")
    life = write("life.toml", INPUT.replace('"heat"\ncfl = 0.5', '"life"').replace("gaussian", "constant"))
    one("one rule for both dimensions", "life has no {dirichlet = VALUE}", "run", life, "--validate",
        "domain.boundary.low=[{dirichlet=1},{dirichlet=1}]", 'domain.boundary.high=["neumann","neumann"]')
    one("a kind that is misspelt, types of another", "did you mean life?", "run", life, "--validate", "solver.kind=liffe", "domain.type=uint8")


def test_commands():
    commands = "its commands: run, compare, prove, info, verify, schedule, bench)"
    for arguments, texts in ((["runn"], ['isohalo has no command "runn"; did you mean run?', commands]),
                             (["xyzzy"], ['isohalo has no command "xyzzy" (', commands]),
                             (["bench", "swep"], ['isohalo bench has no command "swep"; did you mean sweep?']),
                             ([], ["isohalo needs a command: run, compare,"]),
                             (["run", "input.toml", "--overwite"], ["isohalo run has no option --overwite; did you mean --overwrite?", "isohalo run --help"]),
                             (["run", "input.toml", "--restrat=auto"], ["has no option --restrat; did you mean --restart?"]),
                             (["run", "input.toml", "--", "run.steps=7", "--restart", "auto"], ['"--restart" is no override: write key.path=value, and options before --']),
                             (["run", "input.toml", "run.steps=7", "--", "--restart", "auto"], ["isohalo run: --restart stands behind --, where no option may be: put it before"]),
                             (["--vresion"], ["isohalo has no option --vresion; did you mean --version?"])):
        for text in texts:
            one(arguments, text, *arguments, ranks=3 if arguments == ["runn"] else 0)


def test_numbers_and_texts():
    for text, value in (("1e3", "1000"), ("1000.0", "1000"), ("12", "12"), ("9007199254740992.0", "9007199254740992")):
        that(here("run.steps", "run.steps=" + text) == value, "run.steps=%s is %s" % (text, here("run.steps", "run.steps=" + text)))
    that(here("domain.shape", "domain.shape=[1.2e1, 10]") == "[12, 10]", "a list of integers as floats")
    one("a fraction", "run.steps = 1.5 is no integer", "run", "input.toml", "run.steps=1.5", "--validate")
    random = ["initial=", "initial.kind=random"]
    for steps in ("1e17", "9223372036854775807", "100000000000000000000", "-100000000000000000000"):
        one("steps beyond 2^53", "run.steps = %s is out of range: 0 .. 2^53" % (steps if len(steps) == 19 else "%.0e" % float(steps)),
            "run", "input.toml", "run.steps=" + steps, "--validate")
    one("a seed that is no integer of 64 bits", "initial.seed = 1e+30 is out of range: an integer has 64 bits with its sign: -9223372036854775808 .. 9223372036854775807",
        "run", "input.toml", *random, "initial.seed=1e30", "--validate")
    one("a seed that is rounded", "initial.seed = 1e+17 is beyond 2^53, up to which a number is exact: write all digits", "run", "input.toml", *random, "initial.seed=1e17", "--validate")
    that(here("initial.seed", *random, "initial.seed=100000000000000000") == "100000000000000000", "all digits of a seed")
    that(here("solver.kappa", "solver.kappa=100000000000000000000") == "1e+20", "many digits of a number")
    that(here("initial.dataset", "initial.kind=file", "initial.dataset=100000000000000000000") == '"100000000000000000000"', "many digits as a text")
    one("infinity", "run.steps is a number, expected an integer", "run", "input.toml", "run.steps=inf", "--validate")
    one("a fraction in a list", "domain.shape entry = 2.5 is no integer", "run", "input.toml", "domain.shape=[2.5,3]", "--validate")
    offsets = ["solver=", "solver.kind=stencil", "solver.weights=[0.5,0.5]"]
    that(here("solver.offsets", *offsets, "solver.offsets=[[1e0,0],[0,0.0]]") == "[[1, 0], [0, 0]]", "offsets as floats")
    # The same configuration, so the same files.
    for name, steps in (("plain", "4"), ("float", "4e0")):
        isohalo(0, "run", "input.toml", "output.directory=" + name, "run.steps=" + steps)
    that((WORK / "plain/step_00000004.h5").read_bytes() == (WORK / "float/step_00000004.h5").read_bytes(), "4e0 steps are not 4 steps")

    words = ["nan", "inf", "1e3", "true", "2026-11-22", "0x10"]
    values = np.arange(120, dtype=float).reshape(12, 10)
    with h5py.File(WORK / "fields.h5", "w") as f:
        for word in words:
            f[word] = values
    for word in words:
        that(here("initial.dataset", "initial.kind=file", "initial.dataset=" + word) == '"%s"' % word, "initial.dataset=%s is no string" % word)
    isohalo(3, "run", "input.toml", "initial.kind=file", "initial.file=fields.h5", "initial.dataset=nan", "run.steps=0", "output.directory=nan")
    one("a number in the file", "initial.dataset is a number, expected a string", "run", write("number.toml", INPUT.replace('"gaussian"', '"file"\nfile = "fields.h5"\ndataset = nan')), "--validate")
    one("a list for a text", "initial.dataset is a list, expected a string", "run", "number.toml", "initial.dataset=[1]", "--validate")

    that(here("solver.cfl") == "0.5" and here("solver.cfl", "solver.cfl=") == "0.9", "solver.cfl= does not remove the key")
    that(here("solver.cfl", "solver.cfl=", "solver.cfl=0.25") == "0.25", "a key that is given again")
    that(here("solver.dt", "solver.cfl=", "solver.dt=1e-4") == "0.0001", "dt instead of cfl")
    that(here("output.keep", "output.keep=") == "0", "removing a key that is not there")
    that(here("output.picture_field", "output=") == '"u"', "removing a table that is not there")
    that(here("initial.width", "initial.u=", "initial.u.width=") == "0.1", "removing by the name of the canonical text")
    one("removing a required key", "required key run.steps is missing", "run", "input.toml", "run.steps=", "--validate")
    one("removing a misspelt key", "unknown key solver.clf; did you mean solver.cfl?", "run", "input.toml", "solver.clf=", "--validate")
    for removed, text in (("slover", "unknown table slover; did you mean solver?"), ("outptu", "unknown table outptu; did you mean output?"),
                          ("slover.cfl", "unknown table slover; did you mean solver?"), ("boundary.low", "unknown table boundary; did you mean domain.boundary?"),
                          ("domain.bondary", "unknown table domain.bondary; did you mean domain.boundary?"), ("steps", "unknown key steps; did you mean run.steps?"),
                          ("solver.kind.x", "unknown key solver.kind.x: --help-input lists"), ("qqqq", "unknown key qqqq: --help-input lists")):
        one("removing " + removed, "command line: %s=: %s" % (removed, text), "run", "input.toml", removed + "=", "--validate")
    one("a key of another kind of source", 'unknown key source.value for source.kind = "sine": --help-input lists', "run", "input.toml", "solver=", "solver.kind=poisson",
        "initial=", "initial.kind=constant", "source.kind=sine", "source.value=", "--validate")
    that(here("run.steps", " run.steps = 7") == "7" and here("output.keep", "\toutput.keep =") == "0", "blanks around an override's key")
    one("an empty name of a file", "initial.file is empty: name a file", "run", "input.toml", "initial.kind=file", 'initial.file=""', "initial.dataset=a", "--validate")
    one("an empty string", "output.directory is empty", "run", "input.toml", 'output.directory=""', "--validate")
    isohalo(0, "run", "input.toml", "solver=", "solver.kind=poisson", "--validate")
    one("a limit that is never tested", "run.stop_residual = 1e-06 is never tested with run.residual_every = 0: set run.residual_every",
        "run", "input.toml", "run.stop_residual=1e-6", "run.residual_every=0", ranks=3)


def test_help():
    every = isohalo(0, "run", "--help-input").stdout
    sections = {s.split("\n", 1)[0]: s for s in every.split("\n\n")}
    for kind, keys in {"linear": "value gradient", "sine": "amplitude modes", "gaussian": "amplitude center width", "random": "seed low high",
                       "box": "low high inside outside", "file": "file dataset"}.items():
        section = sections['[initial] kind = "%s"' % kind]
        listed = re.findall(r"^  initial\.(\S+)", section, re.M)
        that(listed == keys.split(), "--help-input lists %r for %s" % (listed, kind))
    for kind, key in {"heat": "cfl", "life": "rule", "poisson": "method", "stencil": "offsets"}.items():
        that("  solver.%s " % key in sections['[solver] kind = "%s"' % kind], "--help-input lacks solver.%s of %s" % (key, kind))
    for heading, key in {"[solver]": "solver.kind", "[initial] or [initial.FIELD]": "initial.kind", '[domain] of solver.kind = "life"': "domain.type",
                         '[source] of solver.kind = "poisson"': "source.kind"}.items():
        that(re.findall(r"^  (\S+)", sections[heading], re.M) == [key], "--help-input lists under %s: %s" % (heading, sections[heading]))
    markdown = isohalo(3, "run", "--help-input", "--markdown").stdout
    that(re.findall(r"^\| `(\S+)` \|", markdown, re.M) == re.findall(r"^  (\S+)", every, re.M), "--markdown has other keys: " + markdown)
    one("--markdown alone", "--markdown requires --help-input", "run", "--markdown")
    one("--markdown of an input", "INPUT excludes --markdown", "run", "input.toml", "--help-input", "--markdown")
    that("; here" not in every, "--help-input without an input has values")

    text = isohalo(3, "run", "input.toml", "--help-input", "domain.shape=[4,5,6]", "run.steps=7").stdout
    that(text.count("  run.steps ") == 1, "--help-input is printed by several ranks")
    for line in ("domain.shape .*required; here \\[4, 5, 6\\]", "domain.length .*default \\[1, 1, 1\\]; here \\[1, 1, 1\\]",
                 'solver.kind .*; here "heat"', "solver.cfl .*default 0.9; here 0.5", "initial.width .*default 0.1; here 0.1",
                 "run.steps .*required; here 7", 'output.directory .*here "out/input"'):
        that(re.search("^  " + line + "$", text, re.M), "--help-input of an input has no %r" % line)
    that("solver.rule" not in text and "initial.seed" not in text and "solver.offsets" not in text, "--help-input of an input lists others' keys")
    r = launch(0, "run", "input.toml", "--help-input", "solver.kapa=1")
    that(r.returncode == 2 and "  solver.kappa " in r.stdout and "did you mean solver.kappa?" in r.stderr, "--help-input of a wrong input")
    for key, arguments in (("domain.shape", ["domain.shape="]), ("domain.shape", ["domain.shape=[0,3]"]), ("run.steps", ["run.steps=abc"]), ("run.steps", ["run.steps="]),
                           ("initial.low", ["initial.kind=box"]), ("solver.kappa", ["solver.kappa=-1"]), ("output.xdmf", ["output.xdmf=3"]),
                           ("parallel.exchange", ["parallel.exchange=x"]), ("domain.boundary.low", ['domain.boundary.low=["x","y"]'])):
        that(here(key, *arguments) == "", "a value of %s that nobody gave: %s" % (key, here(key, *arguments)))
    cg = ["solver=", "solver.kind=poisson", "solver.method=cg"]
    that(here("solver.omega", *cg) == "no such key" and here("solver.omega", *cg, "solver.method=jacobi") == "1", "solver.omega is no key of cg")
    isohalo(0, "run", "input.toml", *cg, "solver.omega=", "--validate")
    one("a misspelt omega of cg", "unknown key solver.omegas", "run", "input.toml", *cg, "solver.omegas=1", "--validate")
    r = launch(0, "run", "input.toml", "--help-input", "solver.cfl=", "solver.dt=1e-9")
    that(re.search("^  solver.dt .*default solver.cfl \\* limit; here 1e-09$", r.stdout, re.M), "solver.dt is called required: " + r.stdout)
    sub = write("named.toml", INPUT.replace("[initial]", "[initial.u]"))
    that(here("initial.u.kind", input=sub) == '"gaussian"', "--help-input of [initial.u]")


def tree():
    return sorted(str(p) for p in WORK.rglob("*"))


def test_validate():
    with h5py.File(WORK / "fields.h5", "w") as f:
        f["right"] = np.ones((12, 10), dtype=np.float32)
        f["wrong"] = np.zeros((10, 12))
        f["words"] = np.array([[b"a"] * 10] * 12)
    from_file = ["initial=", "initial.kind=file", "initial.file=fields.h5"]
    poisson = ["solver=", "solver.kind=poisson", "initial.kind=constant", "source.kind=file", "source.file=fields.h5"]
    isohalo(0, "run", "input.toml", "output.directory=full")
    isohalo(0, "run", "input.toml", "output.directory=other", "solver.kappa=2", *from_file, "initial.dataset=right")
    shutil.copy(WORK / "full/step_00000004.h5", WORK / "renamed.h5")
    with h5py.File(WORK / "renamed.h5", "r+") as f:
        f.move("fields/u", "fields/w")
    (WORK / "afile").write_text("x")
    (WORK / "busy").mkdir()
    (WORK / "newest/latest.h5").mkdir(parents=True)
    before = tree()
    with open(WORK / "busy" / ".isohalo_lock", "w") as lock:
        before = tree()
        fcntl.flock(lock, fcntl.LOCK_EX)
        for mode in ("--validate", "--plan"):
            for what, text, arguments in (
                    ("no file", "initial.file: none.h5: no such file", ["initial.kind=file", "initial.file=none.h5", "initial.dataset=a"]),
                    ("no dataset", 'has no dataset "a"', from_file + ["initial.dataset=a"]),
                    ("another shape", "has shape 10 x 12, the grid is 12 x 10", from_file + ["initial.dataset=wrong"]),
                    ("no numbers", "holds neither real nor integer numbers", from_file + ["initial.dataset=words"]),
                    ("no source", 'source.file: fields.h5: it has no dataset "a"', poisson + ["source.dataset=a"])):
                one("%s %s" % (mode, what), text, "run", "input.toml", *arguments, mode, ranks=3 if what == "no dataset" else 0)
            isohalo(3, "run", "input.toml", *from_file, "initial.dataset=right", mode)
        for what, text, arguments in (
                ("holds checkpoints", "already holds checkpoints", ["output.directory=full"]),
                ("is a file", "output.directory afile", ["output.directory=afile"]),
                ("below a file", "output.directory afile/below", ["output.directory=afile/below"]),
                ("in /proc", "output.directory /proc/x cannot be made: /proc shows the kernel's state", ["output.directory=/proc/x"]),
                ("/proc", "output.directory /proc cannot be written to (it shows the kernel's state", ["output.directory=/proc", "--overwrite"]),
                ("/sys/kernel", "output.directory /sys/kernel cannot be ", ["output.directory=/sys/kernel", "--overwrite"]),
                ("in use", "in use", ["output.directory=busy"]),
                ("a directory for the link", "its latest.h5 is a directory: remove it", ["output.directory=newest", "--overwrite"]),
                ("in use, to be overwritten", "in use", ["output.directory=busy", "--overwrite"]),
                ("no restart file", "none.h5: no such file", ["--restart", "none.h5"]),
                ("restart from another field", 'renamed.h5: field "u" is missing', ["--restart", "renamed.h5"]),
                ("restart with other physics", "it was computed with other solver.kappa", ["--restart", "full/latest.h5", "solver.kappa=2"]),
                ("automatic restart with other physics", "it was computed with other solver.kappa",
                 ["output.directory=full", "--restart", "auto", "solver.kappa=2"]),
                ("restart into a directory of other physics", "output.directory full holds checkpoints of another run",
                 ["output.directory=full", "--restart", "other/latest.h5", "solver.kappa=2", *from_file, "initial.dataset=right"]),
                ("restart with another reduction", 'parallel.reduction = "tree"', ["--restart", "full/latest.h5", "parallel.reduction=exact"])):
            lines = errors("run", "input.toml", *arguments, "--validate", ranks=3 if "holds" in what else 0)
            that(len(lines) == 1 and text in lines[0], "--validate, %s: expected one error with %r, got %r" % (what, text, lines))
        for arguments in (["output.directory=full", "--overwrite"], ["output.directory=full", "--restart", "auto"],
                          ["--restart", "full/latest.h5"], ["output.directory=new/deeper"]):
            r = isohalo(0, "run", "input.toml", *arguments, "--validate")
            that("input.toml is valid" in r.stdout, "--validate says nothing: " + r.stdout)
            that(re.search(r"^dt = \S+, t = \S+ after 4 steps$", r.stdout, re.M), "--validate says no time: " + r.stdout)
    that(tree() == before, "--validate or --plan left %r" % sorted(set(tree()) ^ set(before)))


def test_foreign_lock():
    """A lock file that may not be opened: --validate says so, as the run does."""
    (WORK / "foreign").mkdir()
    (WORK / "foreign").chmod(0o777)
    (WORK / "foreign/.isohalo_lock").write_text("")
    (WORK / "foreign/.isohalo_lock").chmod(0o600)
    command = [ISOHALO, "run", "input.toml", "output.directory=foreign"]
    def start(*more):
        return subprocess.run(command + list(more), capture_output=True, text=True, timeout=60, cwd=WORK, user=65534, group=65534, extra_groups=[])
    if os.geteuid() != 0 or start("--help-input").returncode != 0:
        print("skipped: another user needs root, and a path that this user may go")
        return
    for more in ([], ["--validate"], ["--validate", "--overwrite"]):
        r = start(*more)
        that(r.returncode == 2 and "output.directory foreign cannot be used: its .isohalo_lock cannot be opened (Permission denied)" in r.stderr,
             "a foreign lock, %s: %d %s" % (more, r.returncode, r.stderr))


def test_shared_memory():
    """A /dev/shm without room is announced before MPI_Init fails for it, and the way out is one."""
    def start(size, ranks, **environment):
        script = 'mount -t tmpfs -o size=%s tmpfs /dev/shm && exec "$@"' % size
        command = ["unshare", "-m", "sh", "-c", script, "sh", MPIEXEC, "-n", str(ranks), ISOHALO, "run", "input.toml", "output.directory=shm", "--overwrite"]
        return subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=120, cwd=WORK, env=dict(os.environ, **environment))
    if os.geteuid() != 0 or subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "/dev/shm"], capture_output=True).returncode != 0:
        print("skipped: a small /dev/shm needs root and unshare")
        return
    warning = "isohalo: warning: /dev/shm has room for 8.0 MiB, but MPI takes 12.3 MiB there to start the 3 ranks of this node"
    r = start("8m", 3)
    that(r.stderr.count(warning) == 1 and r.stderr.count("isohalo: warning") == 1 and "UCX_TLS=^posix" in r.stderr, "8 MiB for 3 ranks: " + r.stderr[:600])
    that(r.returncode != 0, "3 ranks start in 8 MiB: the warning is wrong")
    r = start("8m", 3, UCX_TLS="^posix")
    that(r.returncode == 0 and not r.stderr, "the way out is none: %d %s" % (r.returncode, r.stderr[:600]))
    r = start("64m", 3)
    that(r.returncode == 0 and not r.stderr, "64 MiB for 3 ranks: %d %s" % (r.returncode, r.stderr[:600]))


def main():
    fresh_work_directory(INPUT)
    test_limits()
    test_suggestions()
    test_commands()
    test_numbers_and_texts()
    test_help()
    test_validate()
    test_foreign_lock()
    test_shared_memory()
    finish()


if __name__ == "__main__":
    main()
