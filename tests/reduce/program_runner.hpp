#pragma once
/// Runs the programs of all ranks of a reduction in process, with real values.

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "framework/reduce/reduce_program.hpp"

namespace isohalo::test {

/// What each rank holds of the frontier tree.
template <class V>
using Holdings = std::vector<std::map<std::int32_t, V>>;

/// Messages that a program sends.
inline std::int64_t messages_sent(const ReduceProgram& program) {
  std::int64_t count = 0;
  for (const ProgramStage& stage : program) count += static_cast<std::int64_t>(stage.send.size());
  return count;
}

/// Runs programs[r] on known[r] as far as messages allow; messages of a pair arrive in order and must name the
/// nodes that the receiver expects. A value that is not there, a message left over or a wait without end is a
/// failure.
template <class V, class Op>
void run_programs(const std::vector<FrontierNode>& nodes, const std::vector<ReduceProgram>& programs,
                  Holdings<V>& known, const Op& op) {
  using Message = std::pair<std::vector<std::int32_t>, std::vector<V>>;
  std::map<std::pair<int, int>, std::deque<Message>> under_way;
  std::vector<std::size_t> at(programs.size());
  const auto can_go_on = [&](int r, const ProgramStage& stage) {
    std::map<int, std::size_t> wanted;
    for (const NodeMessage& m : stage.receive)
      if (under_way[{m.peer, r}].size() < ++wanted[m.peer]) return false;
    return true;
  };
  const auto run_stage = [&](int r, const ProgramStage& stage) {
    auto& mine = known[static_cast<std::size_t>(r)];
    for (const NodeMessage& m : stage.receive) {
      auto& queue = under_way[{m.peer, r}];
      ASSERT_EQ(queue.front().first, m.nodes) << "from " << m.peer << " to " << r;
      for (std::size_t k = 0; k < m.nodes.size(); ++k) mine[m.nodes[k]] = queue.front().second[k];
      queue.pop_front();
    }
    for (std::int32_t n : stage.combine) {
      const FrontierNode& node = nodes[static_cast<std::size_t>(n)];
      ASSERT_TRUE(mine.contains(node.left) && mine.contains(node.right)) << "rank " << r << " node " << n;
      mine[n] = op(mine[node.left], mine[node.right]);
    }
    for (const NodeMessage& m : stage.send) {
      Message message{m.nodes, {}};
      for (std::int32_t n : m.nodes) {
        ASSERT_TRUE(mine.contains(n)) << "rank " << r << " sends node " << n << " that it does not hold";
        message.second.push_back(mine[n]);
      }
      under_way[{r, m.peer}].push_back(std::move(message));
    }
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t r = 0; r < programs.size(); ++r)
      while (at[r] < programs[r].size() && can_go_on(static_cast<int>(r), programs[r][at[r]])) {
        run_stage(static_cast<int>(r), programs[r][at[r]++]);
        if (testing::Test::HasFatalFailure()) return;
        moved = true;
      }
  }
  for (std::size_t r = 0; r < programs.size(); ++r)
    ASSERT_EQ(at[r], programs[r].size()) << "rank " << r << " waits for ever";
  for (const auto& [pair, queue] : under_way)
    ASSERT_TRUE(queue.empty()) << "a message from " << pair.first << " to " << pair.second << " is left over";
}

}  // namespace isohalo::test
