/// The functions that libisohalo_mpi.so takes over, by their names. The MPI of the program may be another one than
/// that of <mpi.h>, with pointers for handles where <mpi.h> has ints: what comes in is words, and goes on as it
/// came unless the MPI is the one we know. On Linux every argument here is a register or a place on the stack of
/// the size of a word, whatever its type; of a shorter one the rest means nothing.

#include <cstdint>
#include <cstdio>
#include <type_traits>

#include "framework/preload/calls.hpp"
#include "framework/preload/handled.hpp"
#include "framework/preload/process_mpi.hpp"

namespace isohalo::preload {

namespace {

using Word = std::uintptr_t;
template <class>
struct WordFor {
  using type = Word;
};

template <class A>
A from_word(Word word) {
  if constexpr (std::is_pointer_v<A>)
    return reinterpret_cast<A>(word);
  else
    return static_cast<A>(word);
}

int no_mpi(const char* name) {
  std::fprintf(stderr, "isohalo: error: %s was called and the process has no MPI\n", name);
  return MPI_ERR_OTHER;
}

/// A function of MPI of type Mpi, whose counts are ints or large, done by Ours with large counts.
template <class Mpi, auto Ours>
struct Entry;

template <class... A, auto Ours>
struct Entry<int(A...), Ours> {
  static int call(Function function, const char* name, typename WordFor<A>::type... words) {
    static void* const next = next_function(name);
    if (!next) return no_mpi(name);
    if (process_mpi().ours)
      return Ours(from_word<A>(words)...,
                  Pass([&] { return reinterpret_cast<int (*)(A...)>(next)(from_word<A>(words)...); }));
    count_passed_on(function, Reason::foreign);
    return reinterpret_cast<int (*)(typename WordFor<A>::type...)>(next)(words...);
  }
};

}  // namespace

}  // namespace isohalo::preload

using isohalo::preload::Entry;
using isohalo::preload::Function;
using isohalo::preload::Word;
namespace calls = isohalo::preload::calls;

#pragma GCC visibility push(default)
extern "C" {

// MPI's names, which <mpi.h> has declared with its own handles, are given to the linker alone. `words`: all of a
// function's arguments.
#define ISOHALO_ENTRY(function, name, words, ...)                                                              \
  int isohalo_##name words __asm__("MPI_" #name);                                                              \
  int isohalo_##name words {                                                                                   \
    return Entry<decltype(PMPI_##name), calls::function>::call(Function::function, "MPI_" #name, __VA_ARGS__); \
  }
#define ISOHALO_ENTRIES(function, name, words, ...) \
  ISOHALO_ENTRY(function, name, words, __VA_ARGS__) \
  ISOHALO_ENTRY(function, name##_c, words, __VA_ARGS__)

ISOHALO_ENTRY(barrier, Barrier, (Word comm), comm)
ISOHALO_ENTRIES(bcast, Bcast, (Word a, Word b, Word c, Word d, Word e), a, b, c, d, e)
ISOHALO_ENTRIES(reduce, Reduce, (Word a, Word b, Word c, Word d, Word e, Word f, Word g), a, b, c, d, e, f, g)
ISOHALO_ENTRIES(allreduce, Allreduce, (Word a, Word b, Word c, Word d, Word e, Word f), a, b, c, d, e, f)
ISOHALO_ENTRIES(gather, Gather, (Word a, Word b, Word c, Word d, Word e, Word f, Word g, Word h), a, b, c, d, e, f,
                g, h)
ISOHALO_ENTRIES(allgather, Allgather, (Word a, Word b, Word c, Word d, Word e, Word f, Word g), a, b, c, d, e, f, g)
ISOHALO_ENTRIES(scatter, Scatter, (Word a, Word b, Word c, Word d, Word e, Word f, Word g, Word h), a, b, c, d, e,
                f, g, h)
#undef ISOHALO_ENTRIES
#undef ISOHALO_ENTRY

// MPICH's module mpi_f08 calls C's functions by their names where they take data, and PMPI_Barrier: taken over
// here, as other ranks may be in C's.
void isohalo_barrier_f08(const int*, int*) __asm__("mpi_barrier_f08_");
void isohalo_barrier_f08(const int* comm, int* error) {
  static auto* const next =
      reinterpret_cast<void (*)(const int*, int*)>(isohalo::preload::next_function("mpi_barrier_f08_"));
  if (!isohalo::preload::process_mpi().ours && next) return next(comm, error);
  const int code = isohalo_Barrier(static_cast<Word>(*comm));
  if (error) *error = code;
}

int isohalo_finalize() __asm__("MPI_Finalize");
int isohalo_finalize() {
  isohalo::preload::process_mpi();  // a program that has called nothing else hears of its settings
  isohalo::preload::report();
  static auto* const next = reinterpret_cast<int (*)()>(isohalo::preload::next_function("MPI_Finalize"));
  return next ? next() : isohalo::preload::no_mpi("MPI_Finalize");
}

}  // extern "C"
#pragma GCC visibility pop
