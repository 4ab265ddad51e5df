#pragma once
/// Which schedule a reduction takes when it is left to choose: by the cost model, by measuring or by timing.
/// Never changes a bit of a tree's results.

#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "framework/mpi/communicator.hpp"
#include "framework/reduce/reduce_program.hpp"
#include "framework/schedule/schedule_search.hpp"

namespace isohalo {

enum class PlanBy {
  model,     ///< the cost model with `costs`: no communication
  measured,  ///< the cost model with costs measured on the communicator (about 20 ms)
  timing,    ///< measured, then the best `candidates` by the model are timed in turn (about 20 ms more)
};

/// How schedule = "auto" is chosen. Must be the same on all ranks.
struct Planning {
  PlanBy by = PlanBy::model;
  MessageCosts costs = {};
  int candidates = 6;

  bool operator==(const Planning&) const = default;
};

/// What was chosen, by what, and the times that decided.
struct ScheduleChoice {
  std::string schedule = {};  ///< encoded form; empty: no stages
  /// "model", "measured costs", "timing", "given"; without a schedule "shared memory" or "binary tree".
  std::string by = "model";
  MessageCosts costs = {};  ///< of the model
  std::vector<std::pair<std::string, double>> times =
      {};  ///< schedules and nanoseconds, cheapest by the model first

  /// "a2,a3 by timing (a2,a3 10.2 us, a6 11.0 us)".
  std::string text() const;
};

namespace detail {

/// What is to be chosen for.
struct ChoiceRequest {
  std::vector<int> ranks = {};  ///< that take part, of a communicator, none: all; the schedule is for as many
  PlanOptions plan = {};        ///< its costs are replaced
  std::size_t value_bytes = 8;
  /// What this rank does by a schedule, peers being ranks of the communicator; for timing.
  std::function<ReduceProgram(const Schedule&)> program = {};
};

/// Collective over `comm` unless by the model, then local; the same on all ranks. `tag`: one not in use.
ScheduleChoice choose_schedule(const Communicator& comm, const Planning& planning, const ChoiceRequest& request,
                               int tag);

/// What `rank` does in a plain allreduce, node 0 standing for the one value.
ReduceProgram plain_program(const Schedule& schedule, int rank);

/// 0 .. ranks-1.
std::vector<int> all_ranks(int ranks);

/// Text that differs between different plannings: ranks compare it.
std::string to_text(const Planning& planning);

}  // namespace detail

}  // namespace isohalo
