/// What a program does before it ends: a few messages, some of them never answered, and signals that go on through
/// MPI_Finalize. That it ends at all, with 0, is the test.

#include <gtest/gtest.h>
#include <sys/time.h>

#include <csignal>

#include "framework/mpi/communicator.hpp"
#include "tests/mpi_main.hpp"

namespace isohalo {
namespace {

TEST(Finalize, ComesToAnEndAfterOneSidedTraffic) {
  const Communicator world = Communicator::of(MPI_COMM_WORLD);
  const int me = test::rank(), last = test::ranks() - 1;
  char byte = 0;
  if (me == 0 && last > 0) MPI_Send(&byte, 1, MPI_CHAR, last, 0, world.get());
  if (me == last && last > 0) MPI_Recv(&byte, 1, MPI_CHAR, 0, 0, world.get(), MPI_STATUS_IGNORE);
  EXPECT_EQ(world.min(me), 0);
}

/// The last test, since the timer stays on: without SA_RESTART every read and write may be interrupted.
TEST(Finalize, IsNotConfusedBySignals) {
  struct sigaction action {};
  action.sa_handler = [](int) {};
  ASSERT_EQ(sigaction(SIGALRM, &action, nullptr), 0);
  const itimerval often{{0, 500}, {0, 500}};
  ASSERT_EQ(setitimer(ITIMER_REAL, &often, nullptr), 0);
}

}  // namespace
}  // namespace isohalo
