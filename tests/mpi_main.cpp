#include "tests/mpi_main.hpp"

#ifdef ISOHALO_TEST_KOKKOS  // not where the components that need MPI alone are tested alone
#include <Kokkos_Core.hpp>
#endif
#include <cstdio>
#include <memory>

#include "apps/common/finalize_guard.hpp"
#include "framework/mpi/communicator.hpp"

namespace isohalo::test {

bool all_ranks_ok(bool ok) {
  return Communicator::of(MPI_COMM_WORLD).min(ok ? 1 : 0) == 1;
}

namespace {

/// Prints failures of ranks other than 0, whose normal output is off.
class RankPrinter : public testing::EmptyTestEventListener {
  void OnTestPartResult(const testing::TestPartResult& r) override {
    if (!r.failed()) return;
    std::fprintf(stderr, "rank %d: %s:%d: %s\n", rank(), r.file_name() ? r.file_name() : "?", r.line_number(),
                 r.summary());
  }
};

}  // namespace

}  // namespace isohalo::test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  MPI_Init(&argc, &argv);
  isohalo::guard_finalize();
#ifdef ISOHALO_TEST_KOKKOS
  Kokkos::initialize(argc, argv);
#endif
  auto& listeners = testing::UnitTest::GetInstance()->listeners();
  if (isohalo::test::rank() != 0) {
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new isohalo::test::RankPrinter);
  }
  const bool ok = isohalo::test::all_ranks_ok(RUN_ALL_TESTS() == 0);
#ifdef ISOHALO_TEST_KOKKOS
  Kokkos::finalize();
#endif
  MPI_Finalize();
  return ok ? 0 : 1;
}
