/// Keyed sets for a result on one rank: worked out backwards from what that rank needs.

#include <algorithm>
#include <map>
#include <utility>

#include "framework/reduce/partial_sets.hpp"
#include "framework/schedule/rank_set.hpp"

namespace isohalo {

namespace {

using Nodes = std::vector<std::int32_t>;

std::size_t at(std::int32_t n) {
  return static_cast<std::size_t>(n);
}

/// What one rank needs after a stage, and where it comes from.
struct Needs {
  std::map<int, Nodes> from;  ///< by sender
  Nodes combine;              ///< children first
};

/// Goes through the stages from the last to the first. The nodes that the ranks need at any time are an antichain
/// that covers all leaves, each needed by one rank, so the work is that of one reduction.
class DemandTracer {
 public:
  DemandTracer(const std::vector<FrontierNode>& nodes, const std::vector<int>& leaf_ranks, const Schedule& schedule)
      : nodes_(nodes), leaf_ranks_(leaf_ranks), schedule_(schedule) {
    index_leaves();
  }

  /// Replaces the demands after `stage` by those before it; what each rank does to meet them.
  std::map<int, Needs> step_back(int stage, std::map<int, Nodes>& demands) const {
    std::map<int, Needs> needs;
    std::map<int, Nodes> before;
    for (const auto& [rank, wanted] : demands) {
      std::vector<std::pair<int, RankSet>> sources{{rank, contributions(schedule_, stage, rank)}};
      for (const int peer : schedule_.actions(stage, rank).receive)
        sources.emplace_back(peer, contributions(schedule_, stage, peer));
      Needs& mine = needs[rank];
      for (const std::int32_t n : wanted) satisfy(n, sources, mine, before);
      for (auto& [peer, list] : mine.from) std::sort(list.begin(), list.end());
    }
    demands = std::move(before);
    return needs;
  }

  /// How a rank forms the nodes wanted of it before the first stage, from leaves of its own.
  void form(std::int32_t n, Nodes& combine) const {
    if (leaf_ranks_[at(n)] >= 0) return;
    form(nodes_[at(n)].left, combine);
    form(nodes_[at(n)].right, combine);
    combine.push_back(n);
  }

 private:
  /// The leaves below a node stand in one run.
  void index_leaves() {
    first_.resize(nodes_.size()), last_.resize(nodes_.size());
    std::vector<std::pair<std::int32_t, bool>> todo{{0, false}};
    while (!todo.empty()) {
      const auto [n, done] = todo.back();
      todo.pop_back();
      if (!done) first_[at(n)] = owners_.size();
      if (leaf_ranks_[at(n)] >= 0) {
        owners_.push_back(leaf_ranks_[at(n)]);
      } else if (!done) {
        todo.insert(todo.end(), {{n, true}, {nodes_[at(n)].right, false}, {nodes_[at(n)].left, false}});
        continue;
      }
      last_[at(n)] = owners_.size();
    }
  }

  bool complete(std::int32_t n, const RankSet& known) const {
    return std::all_of(owners_.begin() + static_cast<std::ptrdiff_t>(first_[at(n)]),
                       owners_.begin() + static_cast<std::ptrdiff_t>(last_[at(n)]),
                       [&known](int owner) { return known.contains(owner); });
  }

  /// The rank itself is the first source.
  void satisfy(std::int32_t n, const std::vector<std::pair<int, RankSet>>& sources, Needs& mine,
               std::map<int, Nodes>& before) const {
    const auto source =
        std::find_if(sources.begin(), sources.end(), [&](const auto& s) { return complete(n, s.second); });
    if (source != sources.end()) {
      before[source->first].push_back(n);
      if (source != sources.begin()) mine.from[source->first].push_back(n);
      return;
    }
    satisfy(nodes_[at(n)].left, sources, mine, before);
    satisfy(nodes_[at(n)].right, sources, mine, before);
    mine.combine.push_back(n);
  }

  const std::vector<FrontierNode>& nodes_;
  const std::vector<int>& leaf_ranks_;
  const Schedule& schedule_;
  std::vector<int> owners_;                // of the leaves, in tree order
  std::vector<std::size_t> first_, last_;  // leaves below each node
};

}  // namespace

void append_partial_sets_to(int root, ReduceProgram& program, const std::vector<FrontierNode>& nodes,
                            const std::vector<int>& leaf_ranks, const Schedule& schedule, int rank) {
  const DemandTracer tracer(nodes, leaf_ranks, schedule);
  std::map<int, Nodes> demands{{root, {0}}};
  std::vector<std::map<int, Needs>> needs(static_cast<std::size_t>(schedule.size()));
  for (int s = schedule.size(); s-- > 0;) needs[static_cast<std::size_t>(s)] = tracer.step_back(s, demands);
  if (program.empty()) program.emplace_back();
  for (const std::int32_t n : demands[rank]) tracer.form(n, program.back().combine);
  for (std::map<int, Needs>& stage : needs) {
    for (auto& [to, theirs] : stage)
      if (const auto list = theirs.from.find(rank); list != theirs.from.end())
        program.back().send.push_back({to, list->second});
    ProgramStep step;
    if (const auto mine = stage.find(rank); mine != stage.end()) {
      for (auto& [peer, list] : mine->second.from) step.receive.push_back({peer, std::move(list)});
      step.combine = std::move(mine->second.combine);
    }
    program.push_back(std::move(step));
  }
}

}  // namespace isohalo
