#pragma once
/// What every rank sends in every stage of a schedule: all that a simulation needs to know of it.

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace isohalo {

/// Of any schedule: an allreduce, a halo exchange, a collective of a neighborhood.
class Traffic {
 public:
  struct Send {
    int to;
    double bytes;
  };
  virtual ~Traffic() = default;
  virtual int ranks() const = 0;
  virtual int stages() const = 0;
  /// Of all ranks in a stage.
  virtual std::int64_t messages(int stage) const = 0;
  /// What `rank` sends in the stage, in this order, and how many messages it awaits before the next.
  virtual void sends_of(int stage, int rank, std::vector<Send>& sends, std::int64_t& awaited) const = 0;
};

/// Traffic that is listed message by message.
class TrafficTable final : public Traffic {
 public:
  TrafficTable(int ranks, int stages)
      : ranks_(ranks),
        stages_(stages),
        sends_(static_cast<std::size_t>(ranks) * static_cast<std::size_t>(stages)),
        awaited_(sends_.size()) {}

  /// After those of `from` in this stage that were added before.
  void add(int stage, int from, int to, double bytes) {
    sends_[at(stage, from)].push_back({to, bytes});
    ++awaited_[at(stage, to)];
  }
  double bytes_sent(int rank) const {
    double sum = 0;
    for (int k = 0; k < stages_; ++k)
      for (const Send& s : sends_[at(k, rank)]) sum += s.bytes;
    return sum;
  }
  std::int64_t messages_sent(int rank) const {
    std::size_t n = 0;
    for (int k = 0; k < stages_; ++k) n += sends_[at(k, rank)].size();
    return static_cast<std::int64_t>(n);
  }

  int ranks() const override { return ranks_; }
  int stages() const override { return stages_; }
  std::int64_t messages(int stage) const override {
    std::size_t n = 0;
    for (int r = 0; r < ranks_; ++r) n += sends_[at(stage, r)].size();
    return static_cast<std::int64_t>(n);
  }
  void sends_of(int stage, int rank, std::vector<Send>& sends, std::int64_t& awaited) const override {
    sends = sends_[at(stage, rank)];
    awaited = awaited_[at(stage, rank)];
  }

 private:
  std::size_t at(int stage, int rank) const {
    return static_cast<std::size_t>(stage) * static_cast<std::size_t>(ranks_) + static_cast<std::size_t>(rank);
  }
  int ranks_, stages_;
  std::vector<std::vector<Send>> sends_;
  std::vector<std::int64_t> awaited_;
};

}  // namespace isohalo
