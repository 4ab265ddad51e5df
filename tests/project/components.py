#!/usr/bin/python3
"""The components halo and reduce where there is nothing but MPI: configured, built, installed; every example of
docs/embedding.md in C, C++ and Fortran compiled against the install (those in Python, by Python), with CMake and with
pkg-config; and isohalo as a part of another project, by add_subdirectory and FetchContent.

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
add_library(client STATIC %s/apps/examples/embed_heat.cpp)
set_target_properties(client PROPERTIES OPTIMIZE_DEPENDENCIES ON)  # isohalo itself is built above
target_link_libraries(client PRIVATE isohalo::halo isohalo::reduce)
"""


def run(*words):
    ran = subprocess.run([str(w) for w in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if ran.returncode:
        sys.exit("%s\nfails:\n%s" % (" ".join(map(str, words)), ran.stdout[-4000:]))
    return ran.stdout


def nothing_else(folder):
    for line in (folder / "CMakeCache.txt").read_text().splitlines():
        if WORDS.search(line) and "DISABLE_FIND_PACKAGE" not in line and not line.startswith(("#", "//", "ISOHALO_")):
            sys.exit("%s: the build looks for more than MPI: %s" % (folder, line))


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
made = run("cmake", "-S", SOURCE, "-B", WORK / "build", "-DISOHALO_COMPONENTS=halo;reduce", "-DISOHALO_TESTS=OFF",
           "-DISOHALO_NATIVE=OFF", "-DISOHALO_APPS=OFF", *HIDDEN)
if "isohalo takes" not in made:
    sys.exit("the MPI that is taken is not said: %s" % made)
nothing_else(WORK / "build")
began, used = time.monotonic(), sum(os.times()[2:4])
run("cmake", "--build", WORK / "build", "-j", "2")
print("built in %.0f s, %.0f s of processor time" % (time.monotonic() - began, sum(os.times()[2:4]) - used))
run("cmake", "--install", WORK / "build", "--prefix", WORK / "prefix")
for needed in ("isohalo.h", "isohalo/halo.hpp", "isohalo/reduce.hpp"):
    if not (WORK / "prefix/include" / needed).exists():
        sys.exit("%s is not installed" % needed)

if len((SOURCE / "apps/examples/embed_heat.cpp").read_text().splitlines()) >= 60:
    sys.exit("docs/embedding.md says that embed_heat.cpp has under 60 lines")
languages = write_examples(WORK / "client")
if languages.count("cpp") < 15 or languages.count("c") < 3 or not {"fortran", "python"} <= set(languages):
    sys.exit("docs/embedding.md has fewer examples than it had: %s" % languages)
(WORK / "client/CMakeLists.txt").write_text(CLIENT % SOURCE)
run("cmake", "-S", WORK / "client", "-B", WORK / "client_build", "-DCMAKE_PREFIX_PATH=%s" % (WORK / "prefix"), *HIDDEN)
nothing_else(WORK / "client_build")
run("cmake", "--build", WORK / "client_build", "-j", "2")
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
expected = run(EXPECTED)
for program in [p for p in (WORK / "client_build/embed_heat", WORK / "by_pkg_config") if p.exists()]:
    for ranks in (1, 3):
        got = run(MPIEXEC, "-n", ranks, program)
        if got != expected:
            sys.exit("%s on %d ranks prints %s, not %s" % (program, ranks, got, expected))

parts = {"subdirectory": "set(ISOHALO_COMPONENTS halo reduce)\nadd_subdirectory(%s isohalo)" % SOURCE,
         "fetched": "set(ISOHALO_COMPONENTS halo reduce)\ninclude(FetchContent)\n"
                    "FetchContent_Declare(isohalo SOURCE_DIR %s)\nFetchContent_MakeAvailable(isohalo)" % SOURCE}
for name, how in parts.items():
    (WORK / name).mkdir()
    (WORK / name / "CMakeLists.txt").write_text(PART % (how, SOURCE))
    run("cmake", "-S", WORK / name, "-B", WORK / name / "build", *HIDDEN)
    nothing_else(WORK / name / "build")
    run("cmake", "--build", WORK / name / "build", "--target", "client")

refused = subprocess.run(["cmake", "-S", SOURCE, "-B", WORK / "refused", "-DISOHALO_COMPONENTS=hallo"],
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
if refused.returncode == 0 or 'names "hallo", which is none of' not in re.sub(r"\s+", " ", refused.stdout):
    sys.exit("a component that does not exist is not refused: %s" % refused.stdout)
# An MPI that is too old: a compiler wrapper that stands first in PATH, and an mpi.h.
old = WORK / "old"
old.mkdir()
(old / "mpi.h").write_text("#define MPI_VERSION 2\n#define MPI_SUBVERSION 2\n#define MPICH_VERSION \"1.4\"\n"
                           "static inline int MPI_Init(int *c, char ***v) { return c && v ? 0 : 1; }\n"
                           "static inline int MPI_Finalize(void) { return 0; }\n")
run("ar", "rc", old / "libmpi.a")
for name, compiler in (("mpicc", "cc"), ("mpicxx", "c++")):
    (old / name).write_text('#!/bin/sh\ncase "$1" in -show) echo %s -I%s -L%s -lmpi; exit ;; esac\n'
                            'exec %s -I%s "$@"\n' % (compiler, old, old, compiler, old))
    (old / name).chmod(0o755)
refused = subprocess.run(["cmake", "-S", SOURCE, "-B", WORK / "too_old", "-DISOHALO_COMPONENTS=halo"],
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                         env={**os.environ, "PATH": "%s:%s" % (old, os.environ["PATH"])})
if refused.returncode == 0 or "isohalo needs an MPI 3.1, but MPICH 1.4" not in re.sub(r"\s+", " ", refused.stdout):
    sys.exit("an MPI 2.2 is not refused: %s" % refused.stdout[-1500:])
refused = subprocess.run(["cmake", "-S", SOURCE, "-B", WORK / "no_home", "-DISOHALO_COMPONENTS=halo", "-DMPI_HOME=%s" % (WORK / "empty")],
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
if refused.returncode == 0 or "isohalo found no MPI in MPI_HOME" not in re.sub(r"\s+", " ", refused.stdout):
    sys.exit("an MPI_HOME without MPI is not refused: %s" % refused.stdout[-1500:])
print("built and installed with MPI alone; %d examples; below two projects" % len(languages))
