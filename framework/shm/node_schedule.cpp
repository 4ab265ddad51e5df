#include "framework/shm/node_schedule.hpp"

#include <algorithm>
#include <map>
#include <string>
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

bool reduces_rightly(const NodeSchedule& schedule, const CombiningTree& tree, int root) {
  // A value as text; vectors in as many cells as all parts of the schedule divide.
  int cells = 1;
  for (const auto& mine : schedule.of)
    for (const NodeStage& stage : mine)
      for (const auto* takes : {&stage.fills, &stage.results})
        for (const Take& take : *takes) cells = std::max(cells, take.part.of);
  const auto joined = [](const std::string& a, const std::string& b) { return "(" + a + " " + b + ")"; };
  std::vector<std::string> values;
  for (int r = 0; r < schedule.ranks; ++r) values.push_back(std::to_string(r));
  for (const auto& node : tree.nodes) {
    std::string value = values[static_cast<std::size_t>(node.children[0])];
    for (std::size_t k = 1; k < node.children.size(); ++k)
      value = joined(value, values[static_cast<std::size_t>(node.children[k])]);
    values.push_back(value);
  }
  std::map<std::pair<int, int>, std::vector<std::string>> slot;  // (rank, stage)
  std::map<int, std::vector<std::string>> result;
  bool good = true;
  const auto visit = [&](int rank, int stage, const Take& take, bool fills) {
    if (cells % take.part.of != 0) good = false;
    auto& to = fills ? slot[{rank, stage}] : result[rank];
    to.resize(static_cast<std::size_t>(cells));
    for (int c = take.part.first * cells / take.part.of; c < take.part.last * cells / take.part.of; ++c) {
      std::vector<std::string> registers;
      for (const Source& s : take.sources) {
        const auto cell = static_cast<std::size_t>(c);
        std::string value = std::to_string(rank);
        if (s.stage == kOwn)
          good = good && s.rank == rank;
        else if (auto& from = slot[{s.rank, s.stage}]; from.empty())
          good = false;
        else
          value = from[cell];
        good = good && !value.empty();
        registers.push_back(value);
      }
      std::string value = registers[0];
      for (const Join& j : take.joins) {
        value = joined(registers[static_cast<std::size_t>(j.a)], registers[static_cast<std::size_t>(j.b)]);
        if (j.to < 0) continue;
        if (registers.size() <= static_cast<std::size_t>(j.to))
          registers.resize(static_cast<std::size_t>(j.to) + 1);
        registers[static_cast<std::size_t>(j.to)] = value;
      }
      to[static_cast<std::size_t>(c)] = value;
    }
  };
  good = walk(schedule, visit, [](int, int) {}) && good;
  for (int r = 0; r < schedule.ranks; ++r) {
    if (root >= 0 && r != root) continue;
    for (const std::string& cell : result[r]) good = good && cell == values.back();
    good = good && result[r].size() == static_cast<std::size_t>(cells);
  }
  return good;
}

}  // namespace isohalo
