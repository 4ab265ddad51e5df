#pragma once
/// One rank's way through the stages of a schedule, by messages. Private to framework.

#include <cstddef>
#include <limits>

#include "framework/mpi/progress.hpp"

namespace isohalo::detail {

/// To enter a stage a rank awaits what the one before has brought, does its work - it combines, unpacks, packs -
/// and lets the messages of the stage leave. The end, after the last stage, is entered in the same way. Halo
/// exchanges, tree reductions and allreduces are all of this kind; what their messages and their work are the class
/// derived from this says:
///
/// - `std::size_t stages() const`
/// - `void begin()`: before stage 0; receives of all stages may be posted here.
/// - `bool arrived(std::size_t stage)`: has all come that it takes to enter the stage, and left that must have?
///   Called until true, then not again; with stages() for the end.
/// - `void enter(std::size_t stage)`: the work that this takes; the messages of the stage leave.
/// - `bool left()`: in the end, is the memory of all that was sent free again?
///
/// Persistent; nothing is allocated here. (`Self` is that class: calls cost nothing, which a sum within a compute
/// node, of 80 ns, would notice.)
template <class Self>
class StageExecutor : public Operation {
 protected:
  /// Begins another execution: `begin`, and stage 0 if it need not wait. Local.
  void launch() {
    self().begin();
    next_ = 0;
    if (self().arrived(0)) self().enter(next_++);
  }

  /// Has the end been entered?
  bool ended() const { return next_ > static_cast<const Self*>(this)->stages(); }

  bool proceed() final {
    for (; next_ <= self().stages(); ++next_) {
      if (!self().arrived(next_)) return false;
      self().enter(next_);
    }
    return self().left();
  }

 private:
  Self& self() { return static_cast<Self&>(*this); }

  std::size_t next_ = std::numeric_limits<std::size_t>::max();  ///< stage to enter; never begun: ended
};

}  // namespace isohalo::detail
