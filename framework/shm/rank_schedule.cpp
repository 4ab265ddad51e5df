#include "framework/shm/rank_schedule.hpp"

namespace isohalo::detail {

RankSchedule::RankSchedule(const NodeSchedule& schedule, int rank) : meets(schedule.meets) {
  const auto append = [](auto& to, const auto& from) {
    const int first = static_cast<int>(to.size());
    to.insert(to.end(), from.begin(), from.end());
    return std::pair(first, static_cast<int>(to.size()));
  };
  const Readers all = all_readers(schedule);
  for (int s = 0; s < schedule.stages(); ++s) {
    const NodeStage& stage = schedule.at(rank, s);
    Stage mine{};
    mine.first = static_cast<int>(steps.size());
    mine.publishes = stage.publishes;
    for (const auto* takes : {&stage.fills, &stage.results}) {
      for (const Take& t : *takes) {
        Step step{t.part, t.from_block, t.to_block, t.empty, 0, 0, 0, 0};
        std::tie(step.first_source, step.last_source) = append(sources, t.sources);
        std::tie(step.first_join, step.last_join) = append(joins, t.joins);
        steps.push_back(step);
      }
      (takes == &stage.fills ? mine.fills_end : mine.end) = static_cast<int>(steps.size());
    }
    std::tie(mine.first_reader, mine.last_reader) =
        append(readers, all[static_cast<std::size_t>(rank)][static_cast<std::size_t>(s)]);
    stages.push_back(mine);
  }
}

}  // namespace isohalo::detail
