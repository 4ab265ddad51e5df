#pragma once
/// One rank's way through the rounds of a schedule, by messages. Private to framework.

#include <cstddef>
#include <limits>

#include "framework/mpi/progress.hpp"

namespace isohalo::detail {

/// In each round the messages that it awaits arrive, then this rank does its work - it combines, unpacks, packs -
/// and then the round's messages leave. Halo exchanges, tree reductions and allreduces are all of this kind; what
/// their messages and their work are the class derived from this says:
///
/// - `std::size_t rounds() const`
/// - `void begin()`: before the first round; receives of later rounds may be posted here.
/// - `bool arrived(std::size_t round)`: have the messages that it awaits? Called until true, then not again.
/// - `void enter(std::size_t round)`: the work of the round; its messages leave.
/// - `bool left()`: after the last round, is the memory of all that was sent free again?
///
/// Persistent; nothing is allocated here. (`Self` is that class: calls cost nothing, which a sum within a compute
/// node, of 80 ns, would notice.)
template <class Self>
class RoundExecutor : public Operation {
 protected:
  /// Begins another execution: `begin`, and the first round if it need not wait. Local.
  void launch() {
    self().begin();
    round_ = 0;
    if (self().rounds() > 0 && self().arrived(0)) self().enter(round_++);
  }

  /// Have all rounds been entered?
  bool ended() const { return round_ >= static_cast<const Self*>(this)->rounds(); }

  bool proceed() final {
    for (; round_ < self().rounds(); ++round_) {
      if (!self().arrived(round_)) return false;
      self().enter(round_);
    }
    return self().left();
  }

 private:
  Self& self() { return static_cast<Self&>(*this); }

  std::size_t round_ = std::numeric_limits<std::size_t>::max();  ///< the next one; never begun: ended
};

}  // namespace isohalo::detail
