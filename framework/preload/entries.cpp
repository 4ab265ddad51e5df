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

template <auto Ours>
struct Entry;

template <class... A, int (*Ours)(int (*)(A...), A...)>
struct Entry<Ours> {
  static int call(Function function, const char* name, typename WordFor<A>::type... words) {
    static void* const next = next_function(name);
    if (!next) return no_mpi(name);
    if (process_mpi().ours) return Ours(reinterpret_cast<int (*)(A...)>(next), from_word<A>(words)...);
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

// MPI's names, which <mpi.h> has declared with its own handles, are given to the linker alone.
int isohalo_barrier(Word) __asm__("MPI_Barrier");
int isohalo_bcast(Word, Word, Word, Word, Word) __asm__("MPI_Bcast");
int isohalo_bcast_c(Word, Word, Word, Word, Word) __asm__("MPI_Bcast_c");
int isohalo_reduce(Word, Word, Word, Word, Word, Word, Word) __asm__("MPI_Reduce");
int isohalo_reduce_c(Word, Word, Word, Word, Word, Word, Word) __asm__("MPI_Reduce_c");
int isohalo_allreduce(Word, Word, Word, Word, Word, Word) __asm__("MPI_Allreduce");
int isohalo_allreduce_c(Word, Word, Word, Word, Word, Word) __asm__("MPI_Allreduce_c");
int isohalo_gather(Word, Word, Word, Word, Word, Word, Word, Word) __asm__("MPI_Gather");
int isohalo_gather_c(Word, Word, Word, Word, Word, Word, Word, Word) __asm__("MPI_Gather_c");
int isohalo_allgather(Word, Word, Word, Word, Word, Word, Word) __asm__("MPI_Allgather");
int isohalo_allgather_c(Word, Word, Word, Word, Word, Word, Word) __asm__("MPI_Allgather_c");
int isohalo_scatter(Word, Word, Word, Word, Word, Word, Word, Word) __asm__("MPI_Scatter");
int isohalo_scatter_c(Word, Word, Word, Word, Word, Word, Word, Word) __asm__("MPI_Scatter_c");
int isohalo_finalize() __asm__("MPI_Finalize");
// MPICH's module mpi_f08 calls C's functions by their names where they take data, and PMPI_Barrier: taken over
// here, as other ranks may be in C's.
void isohalo_barrier_f08(const int*, int*) __asm__("mpi_barrier_f08_");

int isohalo_barrier(Word comm) {
  return Entry<calls::Barrier>::call(Function::barrier, "MPI_Barrier", comm);
}
int isohalo_bcast(Word a, Word b, Word c, Word d, Word e) {
  return Entry<calls::Bcast>::call(Function::bcast, "MPI_Bcast", a, b, c, d, e);
}
int isohalo_bcast_c(Word a, Word b, Word c, Word d, Word e) {
  return Entry<calls::Bcast_c>::call(Function::bcast, "MPI_Bcast_c", a, b, c, d, e);
}
int isohalo_reduce(Word a, Word b, Word c, Word d, Word e, Word f, Word g) {
  return Entry<calls::Reduce>::call(Function::reduce, "MPI_Reduce", a, b, c, d, e, f, g);
}
int isohalo_reduce_c(Word a, Word b, Word c, Word d, Word e, Word f, Word g) {
  return Entry<calls::Reduce_c>::call(Function::reduce, "MPI_Reduce_c", a, b, c, d, e, f, g);
}
int isohalo_allreduce(Word a, Word b, Word c, Word d, Word e, Word f) {
  return Entry<calls::Allreduce>::call(Function::allreduce, "MPI_Allreduce", a, b, c, d, e, f);
}
int isohalo_allreduce_c(Word a, Word b, Word c, Word d, Word e, Word f) {
  return Entry<calls::Allreduce_c>::call(Function::allreduce, "MPI_Allreduce_c", a, b, c, d, e, f);
}
int isohalo_gather(Word a, Word b, Word c, Word d, Word e, Word f, Word g, Word h) {
  return Entry<calls::Gather>::call(Function::gather, "MPI_Gather", a, b, c, d, e, f, g, h);
}
int isohalo_gather_c(Word a, Word b, Word c, Word d, Word e, Word f, Word g, Word h) {
  return Entry<calls::Gather_c>::call(Function::gather, "MPI_Gather_c", a, b, c, d, e, f, g, h);
}
int isohalo_allgather(Word a, Word b, Word c, Word d, Word e, Word f, Word g) {
  return Entry<calls::Allgather>::call(Function::allgather, "MPI_Allgather", a, b, c, d, e, f, g);
}
int isohalo_allgather_c(Word a, Word b, Word c, Word d, Word e, Word f, Word g) {
  return Entry<calls::Allgather_c>::call(Function::allgather, "MPI_Allgather_c", a, b, c, d, e, f, g);
}
int isohalo_scatter(Word a, Word b, Word c, Word d, Word e, Word f, Word g, Word h) {
  return Entry<calls::Scatter>::call(Function::scatter, "MPI_Scatter", a, b, c, d, e, f, g, h);
}
int isohalo_scatter_c(Word a, Word b, Word c, Word d, Word e, Word f, Word g, Word h) {
  return Entry<calls::Scatter_c>::call(Function::scatter, "MPI_Scatter_c", a, b, c, d, e, f, g, h);
}
void isohalo_barrier_f08(const int* comm, int* error) {
  static auto* const next =
      reinterpret_cast<void (*)(const int*, int*)>(isohalo::preload::next_function("mpi_barrier_f08_"));
  if (!isohalo::preload::process_mpi().ours && next) return next(comm, error);
  const int code = isohalo_barrier(static_cast<Word>(*comm));
  if (error) *error = code;
}
int isohalo_finalize() {
  isohalo::preload::process_mpi();  // a program that has called nothing else hears of its settings
  isohalo::preload::report();
  static auto* const next = reinterpret_cast<int (*)()>(isohalo::preload::next_function("MPI_Finalize"));
  return next ? next() : isohalo::preload::no_mpi("MPI_Finalize");
}

}  // extern "C"
#pragma GCC visibility pop
