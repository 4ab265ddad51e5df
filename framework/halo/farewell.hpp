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

/// The way from the plans of one exchange on all ranks to each other. A rank that was refused to start may put it
/// right; when its plan goes instead, or in the middle of an exchange, the ranks that may wait for it are told.
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

  /// Checks what a start is given: what is wrong with it is noted, because others may wait for this rank.
  template <class Check>
  void attempt(Check&& check) {
    try {
      check();
      trouble_.clear();
    } catch (const Error& e) {
      trouble_ = e.what();
      throw;
    }
  }
  /// An exchange has been started. Those of one plan are counted alike on all ranks.
  void count_exchange() { ++exchanges_; }

  /// The exchange in flight cannot go on, nor can others begin: tells the peers. Local; never throws.
  void break_off(std::span<const int> peers, const Error& error) noexcept {
    trouble_ = error.what();
    broken_ = true;
    say(comm_, name_, peers, exchanges_ - 1, trouble_);
  }
  /// Throws UsageError with what went wrong, once it was broken off.
  void refuse_if_broken() const {
    if (broken_) throw UsageError(trouble_);
  }

  /// The plan goes: tells the peers, unless it was broken off, when a start was refused last, or when this happens
  /// in the middle of an exchange. True when other ranks may go on to use what they share with this one. Local;
  /// never throws.
  bool say(std::span<const int> peers, bool in_flight) const noexcept {
    if ((trouble_.empty() && !in_flight) || peers.empty() || !mpi_is_active()) return false;
    if (!broken_)
      say(comm_, name_, peers, exchanges_ - in_flight,
          trouble_.empty() ? "it was in the middle of an exchange" : trouble_);
    return true;
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

  /// The ranks that do not take part in the exchange in flight, as far as this rank has heard. Local.
  std::vector<int> gone() {
    hear();
    std::vector<int> list;
    for (const Notice& n : heard_)
      if (concerns(n)) list.push_back(n.peer);
    return list;
  }

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

  /// It is about the exchange in flight or an earlier one.
  bool concerns(const Notice& n) const {
    return static_cast<std::int32_t>(exchanges_ - static_cast<std::uint32_t>(n.sent)) > 0;
  }
  void hear() {
    while (auto notice = find_notice(comm_, name_.tag, name_.serial)) heard_.push_back(std::move(*notice));
  }
  void listen() {
    hear();
    for (const Notice& n : heard_)
      if (concerns(n)) throw UsageError(n.text);
  }

  Communicator comm_;
  Name name_;
  std::uint32_t exchanges_ = 0;
  std::vector<Notice> heard_;  ///< they may be about a later exchange
  std::string trouble_;  ///< of this rank, for which others may wait in vain
  bool broken_ = false;
};

}  // namespace isohalo::detail
