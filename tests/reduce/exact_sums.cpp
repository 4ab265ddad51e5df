/// Exact sums of the numbers in a file, one sum a line, numbers as 16 hex digits of their bits; the numbers of a
/// line are dealt out to the ranks. Prints the sums in the same form.

#include <mpi.h>

#include <bit>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <vector>

#include "framework/mpi/progress.hpp"
#include "framework/reduce/exact_sum.hpp"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  {
    const auto comm = isohalo::Communicator::of(MPI_COMM_WORLD);
    isohalo::detail::ExactSum sum(comm);
    sum.use_schedule("auto", {});
    std::ifstream in(argv[1]);
    for (std::string line; std::getline(in, line);) {
      std::istringstream words(line);
      std::vector<double> mine;
      std::size_t k = 0;
      for (std::string w; words >> w; ++k)
        if (k % static_cast<std::size_t>(comm.size()) == static_cast<std::size_t>(comm.rank()))
          mine.push_back(std::bit_cast<double>(static_cast<std::uint64_t>(std::stoull(w, nullptr, 16))));
      sum.start(mine);
      isohalo::wait_until([&] { return sum.test(); }, comm.spins());
      if (comm.rank() == 0) std::printf("%016" PRIx64 "\n", std::bit_cast<std::uint64_t>(sum.value()));
    }
  }
  MPI_Finalize();
  return 0;
}
