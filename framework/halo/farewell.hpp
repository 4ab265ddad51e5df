#pragma once
/// How ranks that wait in a halo exchange learn that another has let go of its part in it. Private to
/// framework/halo.

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "datatypes/error.hpp"
#include "datatypes/mpi_check.hpp"
#include "framework/mpi/notice.hpp"

namespace isohalo::detail {

/// The way from the plans of one exchange on all ranks to each other. A rank whose part of an exchange went wrong
/// may put it right; when its plan goes instead, the ranks that may wait for it are told.
class Farewell {
 public:
  /// Equal on all ranks, and different from all others.
  struct Name {
    int tag;
    std::uint64_t serial;
  };
  /// Collective in order.
  explicit Farewell(const Communicator& comm) : comm_(comm), name_{comm.take_tags(1), comm.take_serial()} {}
  const Name& name() const { return name_; }

  /// Runs something that others may wait for, and notes whether it went wrong.
  template <class Work>
  void attempt(Work&& work) {
    refuse_if_broken();
    try {
      work();
      trouble_.clear();
    } catch (const Error& e) {
      trouble_ = e.what();
      throw;
    }
  }
  /// In such work: it cannot be put right.
  void break_off() { broken_ = true; }
  /// Throws UsageError with what went wrong, once it cannot be put right.
  void refuse_if_broken() const {
    if (broken_) throw UsageError(trouble_);
  }

  /// An exchange has been started. Those of one plan are counted alike on all ranks.
  void count_exchange() { ++exchanges_; }

  /// Tells the peers when something went wrong last, or when this rank owes them a part of the last exchange.
  /// Local; never throws.
  void say(std::span<const int> peers, bool owes) const noexcept {
    if ((trouble_.empty() && !owes) || !mpi_is_active()) return;
    say(comm_, name_, peers, exchanges_ - owes,
        trouble_.empty() ? "it was in the middle of an exchange" : trouble_);
  }
  /// The same for one that has served so many exchanges and is gone already.
  static void say(const Communicator& comm, const Name& name, std::span<const int> peers, std::uint32_t served,
                  const std::string& why) noexcept {
    const std::string text = why.starts_with(kLead) ? why : kLead + std::to_string(comm.rank()) + ": " + why;
    comm.keep();  // messages of the exchange may be under way
    for (int peer : peers)
      send_notice(comm, name.tag, name.serial, peer, {0, MPI_ERR_ARG, static_cast<int>(served), text});
  }
  std::uint32_t exchanges() const { return exchanges_; }

  /// Looks now and then, in a wait.
  class Ear {
   public:
    explicit Ear(Farewell* farewell) : farewell_(farewell) {}
    /// Throws UsageError when a rank has let go before it had served this exchange. Local.
    void listen() {
      if (++misses_ % kPatience == 0 && farewell_) farewell_->listen();
    }

   private:
    static constexpr int kPatience = 256;
    Farewell* farewell_;
    int misses_ = 0;
  };

 private:
  static constexpr const char* kLead = "halo exchange: the plan is gone on rank ";

  void listen() {
    while (auto notice = find_notice(comm_, name_.tag, name_.serial)) heard_.push_back(std::move(*notice));
    for (const Notice& n : heard_)
      if (static_cast<std::int32_t>(exchanges_ - static_cast<std::uint32_t>(n.sent)) > 0) throw UsageError(n.text);
  }

  Communicator comm_;
  Name name_;
  std::uint32_t exchanges_ = 0;
  std::vector<Notice> heard_;  ///< they may be about a later exchange
  std::string trouble_;  ///< of this rank, for which others may wait in vain
  bool broken_ = false;
};

}  // namespace isohalo::detail
