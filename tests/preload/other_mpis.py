"""Builds and starts a client of MPI with an MPI that this project is not built with: PREFIX has bin/mpiexec and
lib/libmpi.so*, and bin/mpicc and bin/mpicxx where it can compile.

An MPI without headers or compiler (Intel's run-time package) must have MPICH's binary interface: the client is compiled
with the headers of our MPICH and linked with PREFIX/lib/libmpi.so.12 itself. Setting LD_LIBRARY_PATH for a client of
Debian's mpicc does not do: that one asks for libmpich.so.12, a name that no other MPI has.
"""
import os
import pathlib
import subprocess


class Mpi:
    def __init__(self, name, mpiexec, compilers, include=None, library=None):
        self.name, self.mpiexec, self.compilers, self.include, self.library = name, str(mpiexec), compilers, include, library
        said = subprocess.run([self.mpiexec, "--version"], capture_output=True, text=True, timeout=60)
        # Of the other families we know Open MPI alone.
        self.open = "Open MPI" in said.stdout or "OpenRTE" in said.stdout or "prte" in said.stdout.lower()
        self.same = not self.open

    @classmethod
    def at(cls, name, prefix, our_mpicc):
        prefix = pathlib.Path(prefix).resolve()
        own = [prefix / "bin" / c for c in ("mpicc", "mpicxx")]
        if all(c.exists() for c in own):
            return cls(name, prefix / "bin/mpiexec", [str(c) for c in own])
        shown = subprocess.run([our_mpicc, "-show"], capture_output=True, text=True, check=True).stdout.split()
        return cls(name, prefix / "bin/mpiexec", ["cc", "c++"], [w for w in shown if w.startswith("-I")],
                   prefix / "lib/libmpi.so.12")

    def build(self, source, program, *options):
        compiler = self.compilers[0 if str(source).endswith(".c") else 1]
        words = [compiler, "-O2", *options, *(self.include or []), str(source), "-o", str(program)]
        if self.library:
            words += [str(self.library), "-Wl,-rpath," + str(self.library.parent)]
        made = subprocess.run(words, capture_output=True, text=True)
        if made.returncode != 0:
            raise SystemExit("%s: %s failed: %s" % (self.name, " ".join(words), made.stderr[-1000:]))

    def command(self, ranks, *arguments, preload=None):
        """What starts it. Root may, on as many cores as there are."""
        words = [self.mpiexec, "-n", str(ranks)]
        if self.open:
            words += ["--oversubscribe"] + (["--allow-run-as-root"] if os.geteuid() == 0 else [])
            words += ["-x", "LD_PRELOAD=%s" % preload] if preload else []
        elif preload:
            words += ["-genv", "LD_PRELOAD", str(preload)]
        return words + [str(a) for a in arguments]

    def run(self, ranks, *arguments, preload=None, timeout=300, **settings):
        """Standard streams and the exit code. The environment is ours without what is set for our own library."""
        clean = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD" and not k.startswith("ISOHALO_MPI")}
        return subprocess.run(self.command(ranks, *arguments, preload=preload), capture_output=True, text=True,
                              errors="replace", timeout=timeout, stdin=subprocess.DEVNULL, env={**clean, **settings})
