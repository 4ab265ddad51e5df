#include "framework/shm/node_schedule.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace isohalo {

namespace {

/// How far each rank has come in `walk`.
struct Progress {
  int stage = 0;
  std::size_t take = 0;  ///< of the stage's fills, then of its results
  bool published = false;
};

}  // namespace

Readers all_readers(const NodeSchedule& schedule) {
  Readers readers(static_cast<std::size_t>(schedule.ranks),
                  std::vector<std::vector<Reader>>(static_cast<std::size_t>(schedule.stages())));
  for (int r = 0; r < schedule.ranks; ++r)
    for (int s = 0; s < schedule.stages(); ++s)
      for (const auto* takes : {&schedule.at(r, s).fills, &schedule.at(r, s).results})
        for (const Take& take : *takes)
          for (const Source& from : take.sources) {
            if (from.rank == r) continue;
            auto& list = readers[static_cast<std::size_t>(from.rank)][static_cast<std::size_t>(from.stage)];
            if (list.empty() || list.back().rank != r) list.push_back({r, s});
            list.back().stage = s;
          }
  return readers;
}

detail::RankSchedule::RankSchedule(const NodeSchedule& schedule, int rank) : meets(schedule.meets) {
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

bool walk(const NodeSchedule& schedule,
          const std::function<void(int rank, int stage, const Take& take, bool fills)>& visit,
          const std::function<void(int rank, int stage)>& publish) {
  const auto readers = all_readers(schedule);
  std::vector<Progress> progress(static_cast<std::size_t>(schedule.ranks));
  const auto of = [&](int rank) -> Progress& { return progress[static_cast<std::size_t>(rank)]; };
  const auto has_published = [&](const Source& s) {
    return of(s.rank).stage > s.stage ? schedule.at(s.rank, s.stage).publishes
                                      : of(s.rank).stage == s.stage && of(s.rank).published;
  };
  const auto slot_is_free = [&](int rank, int stage) {
    for (int before = stage - kNodeSlots; before >= 0; before -= kNodeSlots)
      for (const Reader& r : readers[static_cast<std::size_t>(rank)][static_cast<std::size_t>(before)])
        if (of(r.rank).stage <= r.stage) return false;
    return true;
  };
  const auto is_ready = [&](int rank, int stage, const Take& take, bool fills) {
    if (fills && !slot_is_free(rank, stage)) return false;
    return std::all_of(take.sources.begin(), take.sources.end(),
                       [&](const Source& s) { return s.stage == kOwn || has_published(s); });
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (int r = 0; r < schedule.ranks; ++r) {
      Progress& p = of(r);
      while (p.stage < schedule.stages()) {
        const NodeStage& stage = schedule.at(r, p.stage);
        if (p.take == stage.fills.size() && stage.publishes && !p.published) {
          if (!slot_is_free(r, p.stage)) break;
          publish(r, p.stage);
          p.published = moved = true;
        } else if (p.take == stage.fills.size() + stage.results.size()) {
          p = {p.stage + 1, 0, false};
          moved = true;
        } else {
          const bool fills = p.take < stage.fills.size();
          const Take& take = fills ? stage.fills[p.take] : stage.results[p.take - stage.fills.size()];
          if (!is_ready(r, p.stage, take, fills)) break;
          visit(r, p.stage, take, fills);
          ++p.take;
          moved = true;
        }
      }
    }
  }
  return std::all_of(progress.begin(), progress.end(),
                     [&](const Progress& p) { return p.stage == schedule.stages(); });
}

}  // namespace isohalo
