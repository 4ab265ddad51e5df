#include "framework/reduce/array_reducer.hpp"

#include <string>

#include "datatypes/error.hpp"
#include "datatypes/mpi_check.hpp"

namespace isohalo {

ArrayLayout array_layout(const RangeStarts& starts) {
  ArrayLayout layout{{0}, {}};
  for (std::size_t r = 0; r + 1 < starts.size(); ++r) {
    if (starts[r] == starts[r + 1]) continue;
    layout.cuts.push_back(starts[r + 1]);
    layout.ranks.push_back(static_cast<int>(r));
  }
  if (layout.ranks.empty())
    throw UsageError("a reduction of no numbers has no value: give at least one rank a number");
  return layout;
}

RangeStarts gather_starts(const Communicator& comm, std::int64_t count) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(comm.size()));
  MPI_Request request = MPI_REQUEST_NULL;
  mpi_check(MPI_Iallgather(&count, 1, MPI_INT64_T, counts.data(), 1, MPI_INT64_T, comm.get(), &request),
            "MPI_Iallgather of counts", comm.get());
  comm.wait(request, "counts of an array");
  RangeStarts starts{0};
  for (std::size_t r = 0; r < counts.size(); ++r) {
    if (counts[r] < 0 || counts[r] > (std::int64_t{1} << 53) - starts.back())
      throw UsageError("rank " + std::to_string(r) + " holds " + std::to_string(counts[r]) +
                       " numbers: give 0 or more, and 2^53 together");
    starts.push_back(starts.back() + counts[r]);
  }
  return starts;
}

}  // namespace isohalo
