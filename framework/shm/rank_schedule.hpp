#pragma once
/// One rank's part of a schedule, in flat lists. Private to framework/shm.

#include <vector>

#include "framework/shm/node_schedule.hpp"

namespace isohalo::detail {

struct RankSchedule {
  struct Step {
    Part part;
    int from_block, to_block;
    bool empty;
    int first_source, last_source, first_join, last_join;
  };
  struct Stage {
    int first, fills_end, end;  ///< of `steps`
    bool publishes;
    int first_reader, last_reader;
  };
  RankSchedule(const NodeSchedule& schedule, int rank);

  std::vector<Stage> stages;
  std::vector<Step> steps;
  std::vector<Source> sources;
  std::vector<Join> joins;
  std::vector<Reader> readers;
  bool meets;
};

}  // namespace isohalo::detail
