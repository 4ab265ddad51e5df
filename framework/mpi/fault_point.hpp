#pragma once
/// Named places at which a test may break the program (tests/faults).
///
/// The hook is null in every program but the tests' own, which is linked from the same objects with one more source
/// that sets it: no option, file or environment variable reaches it otherwise. A null hook costs one comparison,
/// and no place is passed more often than once per phase of a step.

namespace isohalo::detail {

/// Called on whichever rank passes the place; may end the process, throw, or come back.
using FaultHook = void (*)(const char* place);
inline FaultHook fault_hook = nullptr;

inline void fault_point(const char* place) {
  if (fault_hook) fault_hook(place);
}

}  // namespace isohalo::detail
