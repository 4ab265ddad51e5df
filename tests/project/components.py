#!/usr/bin/python3
"""The components halo and reduce where there is nothing but MPI: configured, built, installed; no header of another
library read; every example of docs/embedding.md in C, C++ and Fortran compiled against the install (those in Python, by
Python), with CMake and with pkg-config; isohalo as a part of another project, by add_subdirectory and FetchContent; which
MPI is taken, and what is refused.

usage: components.py SOURCE_DIRECTORY WORK_DIRECTORY MPIEXEC EXPECTED_PROGRAM
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

SOURCE, WORK = (pathlib.Path(p).resolve() for p in sys.argv[1:3])
MPIEXEC, EXPECTED = sys.argv[3:5]
OTHERS = ["HDF5", "Kokkos", "fmt", "tomlplusplus", "nlohmann_json", "PNG", "CLI11", "GTest", "OpenMP", "Threads"]
HIDDEN = ["-DCMAKE_DISABLE_FIND_PACKAGE_%s=ON" % p for p in OTHERS]
WORDS = re.compile(r"hdf5|kokkos|tomlplusplus|nlohmann|CLI11|libpng|/fmt", re.I)
HEADERS = re.compile(r"hdf5|/H5\w*\.h$|kokkos|/fmt/|toml\+\+|nlohmann|/CLI/|/png\w*\.h$|libpng|/g(test|mock)/|/omp\.h$",
                     re.I)
# Programs are started by this mpiexec. Debian's MPICH has the suffix where several MPIs are installed.
SAME_MPI = ["-DMPI_EXECUTABLE_SUFFIX=.mpich"] if MPIEXEC.endswith(".mpich") else []
# What the processor time of a build may be: 90 s on two cores.
MOST_S = 180

# What the examples say before; each is compiled in a block of its own, where it may declare these again.
CPP = """#include <isohalo/halo.hpp>
#include <isohalo/reduce.hpp>
#include <cstdio>
#include <utility>
#include <vector>
using namespace isohalo;
void simulate(MPI_Comm comm);
void example_%d(MPI_Comm comm) {
  const CartesianDomain<2> domain(comm, {200, 300}, {.periodic = {true, true}});
  const Box<2> mine = domain.owned();
  std::vector<double> now(adopted_size(mine, 2)), next(now.size()), x(now);
  ArrayRef<double, 2> u = adopt(now.data(), mine, 2), v = adopt(next.data(), mine, 2);
  struct Cell { double density, energy; };
  ArrayRef<Cell, 2> cells;
  HaloPlan<2> halo(domain, StencilShape<2>::von_neumann(1), 2);
  int step = 0;
  double value = 0;
  static_cast<void>(step), static_cast<void>(value);
  {
%s
  }
}
"""
C = """#include <isohalo.h>
#include <mpi.h>
#include <stdlib.h>
void example_%d(MPI_Comm comm) {
  int rank = 0, size = 1, step = 0;
  MPI_Comm cart = comm;
  double *u = NULL, *velocity = NULL, total = 0;
  float *smoke = NULL;
  const long long owned[2] = {0, 0};
  {
%s
  }
}
"""
FORTRAN = """subroutine example_%d()
  use mpi_f08
  use isohalo
  implicit none
  double precision, allocatable, asynchronous :: u(:, :)
  double precision :: squares
%s
end subroutine
"""
FORTRAN_CLIENT = """cmake_minimum_required(VERSION 3.25)
project(client LANGUAGES C Fortran)
find_package(isohalo REQUIRED COMPONENTS fortran)
file(GLOB examples ../client/example_*.f90)
add_library(examples ${examples})
target_link_libraries(examples PRIVATE isohalo::fortran)
"""
CLIENT = """cmake_minimum_required(VERSION 3.25)
project(client LANGUAGES C CXX)
find_package(isohalo REQUIRED COMPONENTS halo reduce)
file(GLOB examples example_*.c example_*.cpp)
add_library(examples ${examples})
target_link_libraries(examples PRIVATE isohalo::halo isohalo::reduce)
add_executable(embed_heat %s/apps/examples/embed_heat.cpp)
target_link_libraries(embed_heat PRIVATE isohalo::halo isohalo::reduce)
"""
PART = """cmake_minimum_required(VERSION 3.25)
project(part LANGUAGES C CXX)
set(before "${CMAKE_CXX_FLAGS}|${CMAKE_CXX_FLAGS_RELEASE}|${CMAKE_CXX_STANDARD}|${CMAKE_BUILD_TYPE}|${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
%s
set(after "${CMAKE_CXX_FLAGS}|${CMAKE_CXX_FLAGS_RELEASE}|${CMAKE_CXX_STANDARD}|${CMAKE_BUILD_TYPE}|${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
if(NOT before STREQUAL after)
  message(FATAL_ERROR "isohalo changes the flags of the project around it: ${before} becomes ${after}")
endif()
foreach(target isohalo_command isohalo_test_main embed_heat isohalo_io)
  if(TARGET ${target})
    message(FATAL_ERROR "isohalo makes ${target} below another project")
  endif()
endforeach()
add_executable(part_heat %s/apps/examples/embed_heat.cpp)
target_link_libraries(part_heat PRIVATE isohalo::halo isohalo::reduce)
"""
# Which MPI is taken, without isohalo around it.
WHICH_MPI = """cmake_minimum_required(VERSION 3.25)
project(which LANGUAGES C CXX)
include(%s/cmake/IsohaloMpi.cmake)
"""


def run(*words, env=None):
    ran = subprocess.run([str(w) for w in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env)
    if ran.returncode:
        sys.exit("%s\nfails:\n%s" % (" ".join(map(str, words)), ran.stdout[-4000:]))
    return ran.stdout


def nothing_else(folder):
    for line in (folder / "CMakeCache.txt").read_text().splitlines():
        if WORDS.search(line) and "DISABLE_FIND_PACKAGE" not in line and not line.startswith(("#", "//", "ISOHALO_")):
            sys.exit("%s: the build looks for more than MPI: %s" % (folder, line))


def headers_alone(folder):
    """Refuses a build that has read a header of the other libraries, wherever it was found; returns how many it read."""
    if (folder / "build.ninja").exists():
        read = re.findall(r"^    (.*)", run("ninja", "-C", folder, "-t", "deps"), re.M)
    else:
        read = " ".join(d.read_text().replace("\\\n", " ") for d in folder.rglob("*.d")).split()
    read = {os.path.normpath(folder / name.rstrip(":")) for name in read}
    if not any(name.endswith("/mpi.h") for name in read):
        sys.exit("%s: what was compiled has left no list of its headers" % folder)
    here = (str(SOURCE) + "/", str(WORK) + "/")
    others = sorted(name for name in read if HEADERS.search(name) and not name.startswith(here))
    if others:
        sys.exit("%s: headers are read that MPI alone does not bring: %s" % (folder, ", ".join(others[:5])))
    return len(read)


def build_timed(what, *words):
    began, used = time.monotonic(), sum(os.times()[2:4])
    run("cmake", "--build", WORK / "build", "-j", "2", *words)
    used = sum(os.times()[2:4]) - used
    print("%s: built in %.0f s, %.0f s of processor time" % (what, time.monotonic() - began, used), flush=True)
    return used


def check_documents(folder):
    """What is installed beside the libraries is there, and the links of documents lead to it."""
    for needed in ("README.md", "LICENSE", "docs/embedding.md", "apps/examples/embed_heat.cpp", "apps/examples/c/neighbors.c",
                   "apps/examples/own_solver/brusselator.cpp", "python/examples/heat.py", "inputs/heat2d.toml"):
        if not (folder / needed).exists():
            sys.exit("%s is not installed" % needed)
    links = 0
    for document in folder.rglob("*.md"):
        text = re.sub(r"```.*?```", "", document.read_text(), flags=re.S)
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text):
            links += 1
            if "://" not in target and not (document.parent / target).exists():
                sys.exit("%s links to %s, which is not installed" % (document, target))
    print("%d links of installed documents lead somewhere" % links)


def write_examples(folder):
    """The blocks of the document, one source each; returns how many."""
    folder.mkdir(parents=True)
    blocks = re.findall(r"^```(cpp|c|fortran|python)\n(.*?)^```", (SOURCE / "docs/embedding.md").read_text(), re.S | re.M)
    for k, (language, text) in enumerate(blocks):
        if language == "python":
            compile(text, "docs/embedding.md", "exec")
        if language == "fortran":
            (folder / ("example_%d.f90" % k)).write_text(FORTRAN % (k, text))
        if language not in ("cpp", "c"):
            continue
        includes = "".join(re.findall(r"^#include.*\n", text, re.M))
        body = re.sub(r"^#include.*\n", "", text, flags=re.M)
        frame = CPP if language == "cpp" else C
        (folder / ("example_%d.%s" % (k, language))).write_text(includes + frame % (k, body))
    return [language for language, _ in blocks]


shutil.rmtree(WORK, ignore_errors=True)
# Without a cache of compilations, which would hide what the build costs.
made = run("cmake", "-S", SOURCE, "-B", WORK / "build", "-DISOHALO_COMPONENTS=halo;reduce", "-DISOHALO_TESTS=OFF",
           "-DISOHALO_NATIVE=OFF", "-DISOHALO_APPS=OFF", "-DCMAKE_CXX_COMPILER_LAUNCHER=", *SAME_MPI, *HIDDEN)
if "isohalo takes" not in made:
    sys.exit("the MPI that is taken is not said: %s" % made)
nothing_else(WORK / "build")
used = build_timed("halo and what it needs", "--target", "isohalo_halo")
if used > MOST_S:
    sys.exit("halo takes %.0f s of processor time to build, more than %d" % (used, MOST_S))
build_timed("the rest")
print("%d headers are read, none of another library" % headers_alone(WORK / "build"))
run("cmake", "--install", WORK / "build", "--prefix", WORK / "prefix")
for needed in ("isohalo.h", "isohalo/halo.hpp", "isohalo/reduce.hpp", "isohalo/neighborhood.hpp", "isohalo/collectives.hpp"):
    if not (WORK / "prefix/include" / needed).exists():
        sys.exit("%s is not installed" % needed)
check_documents(WORK / "prefix/share/doc/isohalo")

if len((SOURCE / "apps/examples/embed_heat.cpp").read_text().splitlines()) >= 60:
    sys.exit("docs/embedding.md says that embed_heat.cpp has under 60 lines")
languages = write_examples(WORK / "client")
if languages.count("cpp") < 15 or languages.count("c") < 3 or not {"fortran", "python"} <= set(languages):
    sys.exit("docs/embedding.md has fewer examples than it had: %s" % languages)
(WORK / "client/example_headers.cpp").write_text("".join(
    "#include <isohalo/%s.hpp>\n" % name for name in ("halo", "reduce", "neighborhood", "collectives")))
(WORK / "client/CMakeLists.txt").write_text(CLIENT % SOURCE)
run("cmake", "-S", WORK / "client", "-B", WORK / "client_build", "-DCMAKE_PREFIX_PATH=%s" % (WORK / "prefix"), *HIDDEN)
nothing_else(WORK / "client_build")
run("cmake", "--build", WORK / "client_build", "-j", "2")
headers_alone(WORK / "client_build")
if (WORK / "prefix/lib/libisohalo_fortran.a").exists():
    (WORK / "client_fortran").mkdir()
    (WORK / "client_fortran/CMakeLists.txt").write_text(FORTRAN_CLIENT)
    run("cmake", "-S", WORK / "client_fortran", "-B", WORK / "fortran_build", "-DCMAKE_PREFIX_PATH=%s" % (WORK / "prefix"))
    run("cmake", "--build", WORK / "fortran_build")
if shutil.which("pkg-config"):
    mpicxx = re.search(r"^MPI_CXX_COMPILER:\w+=(.*)", (WORK / "build/CMakeCache.txt").read_text(), re.M).group(1)
    os.environ["PKG_CONFIG_PATH"] = str(WORK / "prefix/lib/pkgconfig")
    flags = run("pkg-config", "--cflags", "--libs", "isohalo-reduce", "isohalo-halo").split()
    run(mpicxx, "-std=c++20", "-O2", SOURCE / "apps/examples/embed_heat.cpp", *flags, "-o", WORK / "by_pkg_config")
    mpifort = re.search(r"^MPI_Fortran_COMPILER:\w+=(.*)", (WORK / "build/CMakeCache.txt").read_text(), re.M)
    if (WORK / "prefix/lib/libisohalo_fortran.a").exists():
        flags = run("pkg-config", "--cflags", "--libs", "isohalo-fortran").split()
        run(mpifort.group(1), SOURCE / "apps/examples/fortran/heat.f90", *flags, "-o", WORK / "fortran_by_pkg_config")
expected = run(EXPECTED)


def same_residual(program, *numbers):
    for ranks in numbers:
        got = run(MPIEXEC, "-n", ranks, program)
        if got != expected:
            sys.exit("%s on %d ranks prints %s, not %s" % (program, ranks, got, expected))


for program in [p for p in (WORK / "client_build/embed_heat", WORK / "by_pkg_config") if p.exists()]:
    same_residual(program, 1, 3)

# As a part of other projects. A build without a type is not optimised: quick, and of the same bits.
top = subprocess.run(["git", "rev-parse", "--show-toplevel", "HEAD"], cwd=SOURCE, stdout=subprocess.PIPE,
                     stderr=subprocess.DEVNULL, text=True).stdout.split()
fetched = "SOURCE_DIR %s" % SOURCE
if len(top) == 2 and pathlib.Path(top[0]).resolve() == SOURCE:  # what is committed
    fetched = "GIT_REPOSITORY file://%s GIT_TAG %s" % (SOURCE, top[1])
parts = {"subdirectory": "add_subdirectory(%s isohalo EXCLUDE_FROM_ALL)" % SOURCE,
         "fetched": "include(FetchContent)\nFetchContent_Declare(isohalo %s)\nFetchContent_MakeAvailable(isohalo)" % fetched}
for name, how in parts.items():
    (WORK / name).mkdir()
    (WORK / name / "CMakeLists.txt").write_text(PART % ("set(ISOHALO_COMPONENTS halo reduce)\n" + how, SOURCE))
    run("cmake", "-S", WORK / name, "-B", WORK / name / "build", "-DISOHALO_FORTRAN=OFF", *SAME_MPI, *HIDDEN)
    nothing_else(WORK / name / "build")
    target = "part_heat" if name == "subdirectory" else "isohalo_datatypes"
    run("cmake", "--build", WORK / name / "build", "-j", "2", "--target", target)
    headers_alone(WORK / name / "build")
same_residual(WORK / "subdirectory/build/part_heat", 1, 2)
print("by add_subdirectory %s; by FetchContent with %s" % (expected.strip(), fetched), flush=True)
run("cmake", "-S", SOURCE, "-B", WORK / "preload", "-DISOHALO_COMPONENTS=collectives;preload", "-DISOHALO_TESTS=OFF",
    *SAME_MPI, *HIDDEN)
nothing_else(WORK / "preload")
for fortran in ("ON", "OFF"):
    ran = subprocess.run(["cmake", "-S", SOURCE, "-B", WORK / "fortran", "-DISOHALO_COMPONENTS=halo;fortran",
                          "-DISOHALO_TESTS=OFF", "-DISOHALO_FORTRAN=%s" % fortran, *SAME_MPI, *HIDDEN],
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    said = "Fortran module: built with" if ran.returncode == 0 else "ISOHALO_FORTRAN is %s, but" % fortran
    if fortran == "OFF":
        said = "ISOHALO_COMPONENTS names fortran, but ISOHALO_FORTRAN is OFF"
    if said not in re.sub(r"\s+", " ", ran.stdout):
        sys.exit("the component fortran is neither built nor refused in words: %s" % ran.stdout[-1500:])

refused = subprocess.run(["cmake", "-S", SOURCE, "-B", WORK / "refused", "-DISOHALO_COMPONENTS=hallo"],
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
if refused.returncode == 0 or 'names "hallo", which is none of' not in re.sub(r"\s+", " ", refused.stdout):
    sys.exit("a component that does not exist is not refused: %s" % refused.stdout)


def fake_mpi(folder, programs, macros, suffix=""):
    """Compiler wrappers in folder/programs, to stand first in PATH, and an mpi.h in the folder."""
    (folder / programs).mkdir(parents=True, exist_ok=True)
    (folder / "mpi.h").write_text("".join("#define %s\n" % m for m in macros) +
                                  "static inline int MPI_Init(int *c, char ***v) { return c && v ? 0 : 1; }\n"
                                  "static inline int MPI_Finalize(void) { return 0; }\n")
    run("ar", "rc", folder / "libmpi.a")
    for name, compiler in (("mpicc", "cc"), ("mpicxx", "c++")):
        path = folder / programs / (name + suffix)
        path.write_text('#!/bin/sh\ncase "$1" in -show) echo %s -I%s -L%s -lmpi; exit ;; esac\n'
                        'exec %s -I%s "$@"\n' % (compiler, folder, folder, compiler, folder))
        path.chmod(0o755)
    return {**os.environ, "PATH": "%s:%s" % ((folder / programs).resolve(), os.environ["PATH"])}


# Where several MPIs are installed, as on Debian, mpicc is one of them, here another than mpicc.mpich. Only a full build
# takes the latter.
mpich = ["MPI_VERSION 4", "MPI_SUBVERSION 0", 'MPICH_VERSION "4.0.2"']
fake_mpi(WORK / "several/mpich", "../bin", mpich, ".mpich")
first = fake_mpi(WORK / "several/open", "../bin", ["MPI_VERSION 3", "MPI_SUBVERSION 1", "OPEN_MPI 1", "OMPI_MAJOR_VERSION 5",
                                                   "OMPI_MINOR_VERSION 0", "OMPI_RELEASE_VERSION 8"])
(WORK / "which").mkdir()
(WORK / "which/CMakeLists.txt").write_text(WHICH_MPI % SOURCE)
for full, taken, wrapper in (("OFF", "Open MPI 5.0.8, MPI 3.1", "mpicc"), ("ON", "MPICH 4.0.2, MPI 4.0", "mpicc.mpich")):
    made = run("cmake", "-S", WORK / "which", "-B", WORK / "which" / full, "-Disohalo_full=%s" % full, env=first)
    if "isohalo takes %s: %s/several/bin/%s, " % (taken, WORK, wrapper) not in made:
        sys.exit("in a build that %s full %s is not taken: %s" % ("is" if full == "ON" else "is not", wrapper, made))
# An MPI that is too old.
env = fake_mpi(WORK / "old", ".", ["MPI_VERSION 2", "MPI_SUBVERSION 2", 'MPICH_VERSION "1.4"'])
refused = subprocess.run(["cmake", "-S", SOURCE, "-B", WORK / "too_old", "-DISOHALO_COMPONENTS=halo"],
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env)
if refused.returncode == 0 or "isohalo needs an MPI 3.1, but MPICH 1.4" not in re.sub(r"\s+", " ", refused.stdout):
    sys.exit("an MPI 2.2 is not refused: %s" % refused.stdout[-1500:])
refused = subprocess.run(["cmake", "-S", SOURCE, "-B", WORK / "no_home", "-DISOHALO_COMPONENTS=halo", "-DMPI_HOME=%s" % (WORK / "empty")],
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
if refused.returncode == 0 or "isohalo found no MPI in MPI_HOME" not in re.sub(r"\s+", " ", refused.stdout):
    sys.exit("an MPI_HOME without MPI is not refused: %s" % refused.stdout[-1500:])
print("built and installed with MPI alone; %d examples; below two projects" % len(languages))
