#include "tests/neighborhood/counters.hpp"

#include <mpi.h>

#include <cstdlib>
#include <new>

namespace isohalo::test {
std::atomic<long> allocations{0};
std::atomic<long> sends{0};
std::atomic<int> largest_tag{0};
}  // namespace isohalo::test

void* operator new(std::size_t n) {
  ++isohalo::test::allocations;
  if (void* p = std::malloc(n ? n : 1)) return p;
  throw std::bad_alloc();
}
void* operator new(std::size_t n, std::align_val_t alignment) {
  ++isohalo::test::allocations;
  const auto a = static_cast<std::size_t>(alignment);
  if (void* p = std::aligned_alloc(a, (n + a - 1) / a * a)) return p;
  throw std::bad_alloc();
}
void* operator new(std::size_t n, const std::nothrow_t&) noexcept {
  ++isohalo::test::allocations;
  return std::malloc(n ? n : 1);
}
void operator delete(void* p) noexcept {
  std::free(p);
}
void operator delete(void* p, std::size_t) noexcept {
  std::free(p);
}
void operator delete(void* p, std::align_val_t) noexcept {
  std::free(p);
}
void operator delete(void* p, std::size_t, std::align_val_t) noexcept {
  std::free(p);
}

#if MPI_VERSION >= 4  // which the library calls (datatypes/large_count.hpp)
extern "C" int MPI_Isend_c(const void* buf, MPI_Count count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
                           MPI_Request* request) {
  ++isohalo::test::sends;
  if (tag > isohalo::test::largest_tag) isohalo::test::largest_tag = tag;
  return PMPI_Isend_c(buf, count, type, dest, tag, comm, request);
}
#else
extern "C" int MPI_Isend(const void* buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
                         MPI_Request* request) {
  ++isohalo::test::sends;
  if (tag > isohalo::test::largest_tag) isohalo::test::largest_tag = tag;
  return PMPI_Isend(buf, count, type, dest, tag, comm, request);
}
#endif
