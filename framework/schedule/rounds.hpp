#pragma once
/// One rank's way through the rounds of a schedule, by messages. Private to framework.

#include <cstddef>
#include <limits>

#include "framework/mpi/progress.hpp"

namespace isohalo::detail {

/// In each round the messages that it awaits arrive, then this rank does its work - it combines, unpacks, packs -
/// and then the round's messages leave. Halo exchanges, tree reductions and allreduces are all of this kind; what
/// their messages and their work are they say in the functions below. Persistent; nothing is allocated here.
class RoundExecutor : public Operation {
 protected:
  /// Have all rounds been entered?
  bool ended() const { return round_ >= rounds(); }

  /// Begins another execution: `begin`, and the first round if it need not wait. Local.
  void launch() {
    begin();
    round_ = 0;
    if (rounds() > 0 && arrived(0)) enter(round_++);
  }

  virtual std::size_t rounds() const = 0;
  /// Before the first round. Receives of later rounds may be posted here.
  virtual void begin() = 0;
  /// Have the messages that this round awaits arrived? Called again and again until true, then not again.
  virtual bool arrived(std::size_t round) = 0;
  /// The work of the round; its messages leave.
  virtual void enter(std::size_t round) = 0;
  /// After the last round: is the memory of all that was sent free again?
  virtual bool left() = 0;

  bool proceed() final {
    for (; round_ < rounds(); ++round_) {
      if (!arrived(round_)) return false;
      enter(round_);
    }
    return left();
  }

 private:
  std::size_t round_ = std::numeric_limits<std::size_t>::max();  ///< the next one; never begun: ended
};

}  // namespace isohalo::detail
