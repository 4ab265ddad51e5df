#pragma once
/// How ranks that wait in a halo exchange learn that another has let go of its part in it. Private to
/// framework/halo.

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "datatypes/error.hpp"
#include "framework/mpi/meeting.hpp"

namespace isohalo::detail {

/// The way from the plans of one exchange on all ranks to each other. A rank that was refused to start may put it
/// right; when its plan goes instead, or in the middle of an exchange, the ranks that may wait for it are told:
/// those with which it exchanges, and those that it meets before an exchange of a new kind.
class Farewell {
 public:
  /// Collective in order.
  explicit Farewell(const Communicator& comm) : comm_(comm), name_(comm) {}

  /// Those that wait for this rank in exchanges, or for which it waits, from now on.
  void set_neighbors(std::vector<int> neighbors) { neighbors_ = std::move(neighbors); }

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
  /// Waits for all ranks before an exchange of a kind that is new to them. Collective. Throws UsageError, and is
  /// broken off, when a rank has let go, or exchanges what it knows while others meet here.
  void meet();
  /// An exchange has been started. Those of one plan are counted alike on all ranks.
  void count_exchange() { ++exchanges_; }

  /// The exchange in flight cannot go on, nor can others begin: tells the others. Local; never throws.
  void break_off(const Error& error) noexcept { break_off(error, exchanges_ - 1); }
  /// Throws UsageError with what went wrong, once it was broken off.
  void refuse_if_broken() const {
    if (broken_) throw UsageError(trouble_);
  }

  /// The plan goes: tells the others, unless it was broken off, when a start was refused last, or when this happens
  /// in the middle of an exchange. True when other ranks may go on to use what they share with this one. Local;
  /// never throws.
  bool say(bool in_flight) const noexcept;

  /// The ranks that do not take part in the exchange in flight, as far as this rank has heard. Local.
  std::vector<int> gone();

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
  friend class FormerFarewell;

  /// `exchange` is the latest one, by number.
  bool concerns(const Notice& notice, std::uint32_t exchange) const;
  bool is_neighbor(int rank) const;
  void break_off(const Error& error, std::uint32_t served) noexcept;
  void hear();
  void listen();

  Communicator comm_;
  ObjectName name_;
  std::vector<int> neighbors_;
  std::uint32_t exchanges_ = 0;
  std::uint32_t met_ = 0;      ///< exchanges before and with the latest for which the ranks have met
  std::vector<Notice> heard_;  ///< they may be about a later exchange
  std::string trouble_;        ///< of this rank, for which others may wait in vain
  bool broken_ = false;
};

/// What is remembered of one whose plan is gone. Does not keep the communicator.
class FormerFarewell {
 public:
  explicit FormerFarewell(const Farewell& farewell);
  /// This rank cannot start again what it has let go of: tells the others. Nothing when the communicator is gone as
  /// well. Local; never throws.
  void say(const Error& error) const noexcept;
  const FormerCommunicator& comm() const { return comm_; }

 private:
  FormerCommunicator comm_;
  ObjectName name_;
  std::vector<int> listeners_;
  std::uint32_t served_;
};

}  // namespace isohalo::detail
