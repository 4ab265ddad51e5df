/// A rank that may no longer read the memory of the others: all go on by slots, with the same result.

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <vector>

#include "framework/shm/collectives.hpp"
#include "tests/mpi_main.hpp"

namespace isohalo {
namespace {

/// From now on, for this process. Nobody can take that back.
bool forbid_reading() {
  sock_filter refuse[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                          BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_process_vm_readv, 0, 1),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program{std::size(refuse), refuse};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

std::size_t left = 0;  // elements that this rank may combine before

constexpr std::size_t kPart = std::size_t{1} << 17;  // of a rank: what it combines before all meet

/// A reduction of two such turns. The last rank is refused to read when it has combined a turn, and so much more.
void check(MPI_Comm comm, std::size_t more) {
  int p = 1, me = 0;
  MPI_Comm_size(comm, &p);
  MPI_Comm_rank(comm, &me);
  const auto c = NodeCollectives::make(comm, {.spins = 5, .hierarchy = Hierarchy(p)});
  ASSERT_TRUE(test::all_ranks_ok(c != nullptr));
  MPI_Op op = MPI_OP_NULL;
  MPI_Op_create(
      [](void* in, void* in_out, int* n, MPI_Datatype*) {
        for (int i = 0; i < *n; ++i) static_cast<double*>(in_out)[i] += static_cast<double*>(in)[i];
        const auto done = static_cast<std::size_t>(*n);
        if (left > 0 && left <= done) {
          EXPECT_TRUE(forbid_reading());
        }
        left -= std::min(left, done);
      },
      1, &op);
  c->copy_once(true);
  const bool allowed = c->copies_once();
  const std::size_t ranks = static_cast<std::size_t>(p), count = 2 * ranks * kPart;
  if (me == p - 1 && p > 1) left = kPart * (ranks - 1) + more;
  const auto value = [](int rank, std::size_t i) {
    return static_cast<double>(i % 1000 * static_cast<std::size_t>(rank + 1));
  };
  std::vector<double> data(count), expected(count);
  for (std::size_t i = 0; i < count; ++i) {
    data[i] = value(me, i);
    for (int r = 0; r < p; ++r) expected[i] += value(r, i);
  }
  auto* const bytes = reinterpret_cast<std::byte*>(data.data());
  c->run(Collective::allreduce(bytes, bytes, count, *Combine::of(MPI_DOUBLE, op)));
  EXPECT_TRUE(data == expected);
  EXPECT_EQ(c->copies_once(), allowed && p == 1);
  MPI_Op_free(&op);
}

TEST(CopiedOnce, GoesOnBySlotsWhenPartsCannotBeRead) {
  check(MPI_COMM_WORLD, 0);
}

TEST(CopiedOnce, GoesOnBySlotsWhenTermsCannotBeRead) {
  MPI_Comm others = MPI_COMM_NULL;  // without the rank that is refused already
  MPI_Comm_split(MPI_COMM_WORLD, test::rank() == test::ranks() - 1, test::rank(), &others);
  check(others, 1);
  MPI_Comm_free(&others);
}

}  // namespace
}  // namespace isohalo
