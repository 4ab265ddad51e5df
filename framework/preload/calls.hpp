#pragma once
/// MPI's functions as libisohalo_mpi.so does them, in a program whose MPI it was compiled for. Private to
/// framework/preload.

#include <mpi.h>

namespace isohalo::preload {

/// Passes a call on to MPI and returns its code. Refers to a function object of the caller's.
class Pass {
 public:
  template <class F>
  explicit Pass(const F& f)
      : of_(&f), call_([](const void* of) -> int { return (*static_cast<const F*>(of))(); }) {}
  int operator()() const { return call_(of_); }

 private:
  const void* of_;
  int (*call_)(const void*);
};

}  // namespace isohalo::preload

/// As MPI's, of the same names without and with _c. `pass`: what does it when this library does not.
namespace isohalo::preload::calls {

int barrier(MPI_Comm comm, Pass pass);
int bcast(void* address, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm, Pass pass);
int reduce(const void* send, void* receive, MPI_Count count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm,
           Pass pass);
int allreduce(const void* send, void* receive, MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
              Pass pass);
int gather(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* receive, MPI_Count receive_count,
           MPI_Datatype receive_type, int root, MPI_Comm comm, Pass pass);
int allgather(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* receive,
              MPI_Count receive_count, MPI_Datatype receive_type, MPI_Comm comm, Pass pass);
int scatter(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* receive, MPI_Count receive_count,
            MPI_Datatype receive_type, int root, MPI_Comm comm, Pass pass);

}  // namespace isohalo::preload::calls
