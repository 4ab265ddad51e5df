#pragma once
/// Checks of the MPI that is there, on the live communicator: what `isohalo verify` does without a file.

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <string>
#include <thread>

#include "framework/mpi/communicator.hpp"

namespace isohalo {

/// What one transport, collective or MPI feature did. Counts are this rank's until `gather`, then of all ranks.
struct LiveRow {
  std::string group, name;
  std::int64_t cases = 0;    ///< the same on all ranks
  std::int64_t checked = 0;  ///< values compared
  std::int64_t wrong = 0;
  std::string first;  ///< the first wrong value: case, rank, place, expected, found
  std::int64_t first_case = std::numeric_limits<std::int64_t>::max();

  /// Counts one value of the current case; `text` describes it, when it is the first that is wrong.
  void check(bool right, const std::function<std::string()>& text) {
    ++checked;
    if (right) return;
    if (wrong++ > 0) return;
    first_case = cases;
    first = text();
  }
};

class LiveReport {
 public:
  /// `broken`: the name of a row whose operations are spoilt on purpose, to see that the check can fail; "" for
  /// none.
  explicit LiveReport(std::string broken) : broken_(std::move(broken)) {}

  /// A new row, which stays where it is.
  LiveRow& add(const std::string& group, const std::string& name);
  bool broken(const std::string& name) const { return name == broken_; }
  const std::deque<LiveRow>& rows() const { return rows_; }
  bool good() const;
  bool has(const std::string& name) const;

  /// Adds up the counts of all ranks and finds each row's first wrong value, of the earliest case and lowest rank.
  /// Collective; the result is the same on all ranks.
  void gather(const Communicator& comm);

 private:
  std::string broken_;
  std::deque<LiveRow> rows_;
};

/// Ends the whole program, with the name of the check under way and exit code 1, unless the result is gone by then:
/// an MPI that loses messages would keep the checks from ending. One rank watches: they end on all ranks together,
/// or on none.
std::jthread watch_deadline(const Communicator& comm, double seconds);

/// Runs `work`; an MPI error in it is thrown on with `place` before it, and the deadline names it.
void naming_place(const std::string& place, const std::function<void()>& work);

/// Every ghost of every word of `parallel.exchange`. Collective over `user`, as the others are.
void check_transports(MPI_Comm user, LiveReport& report);
/// The features of MPI that the library stands on: datatypes in place, message order, probes,
/// reductions of integers.
void check_mpi_features(MPI_Comm user, LiveReport& report);
/// Isomorphic neighborhood collectives by each algorithm.
void check_neighborhoods(MPI_Comm user, LiveReport& report);
/// Global reductions by each method: the same bits as on one rank.
void check_reductions(MPI_Comm user, LiveReport& report);

}  // namespace isohalo
