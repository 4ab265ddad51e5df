/// Exact sums of the numbers in a file, one sum a line, numbers as 16 hex digits of their bits; the numbers of a
/// line are dealt out to the ranks. Prints the sums in the same form.

#include <mpi.h>

#include <bit>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "datatypes/superaccumulator.hpp"
#include "framework/reduce/allreduce.hpp"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  {
    const auto comm = isohalo::Communicator::of(MPI_COMM_WORLD);
    isohalo::Superaccumulator sum;
    isohalo::ScheduledAllreduce limbs(comm.get(), static_cast<int>(sum.words().size()), MPI_INT64_T, MPI_SUM);
    std::ifstream in(argv[1]);
    for (std::string line; std::getline(in, line);) {
      std::istringstream words(line);
      sum.clear();
      std::size_t k = 0;
      for (std::string w; words >> w; ++k)
        if (k % static_cast<std::size_t>(comm.size()) == static_cast<std::size_t>(comm.rank()))
          sum.add(std::bit_cast<double>(static_cast<std::uint64_t>(std::stoull(w, nullptr, 16))));
      sum.settle();
      limbs.reduce(sum.words().data());
      if (comm.rank() == 0) std::printf("%016" PRIx64 "\n", std::bit_cast<std::uint64_t>(sum.value()));
    }
  }
  MPI_Finalize();
  return 0;
}
