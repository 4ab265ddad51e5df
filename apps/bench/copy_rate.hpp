#pragma once
/// What sweeps are held against: the rate at which memory is copied here and now.

#include <cstring>

#include "apps/bench/timing.hpp"
#include "framework/halo/field.hpp"

namespace isohalo {

/// Copies so many bytes from one array to another, by memcpy.
class CopyRate {
 public:
  explicit CopyRate(std::int64_t bytes)
      : from_("from", box_of_shape<1>({bytes}), {}, {}), to_("to", box_of_shape<1>({bytes}), {}, {}) {}
  /// Seconds for one copy, of so many, on all ranks at once. Collective.
  double seconds(const Communicator& comm, std::int64_t times = 1) {
    const double all = timed(comm, [&] {
      for (std::int64_t k = 0; k < times; ++k) {
        std::memcpy(to_.ref().data, from_.ref().data, static_cast<std::size_t>(to_.owned().cells()));
        from_.ref().data[k % to_.owned().cells()] = to_.ref().data[0];  // so that no copy may be left out
      }
    });
    return all / static_cast<double>(times);
  }

 private:
  Field<std::uint8_t, 1> from_, to_;
};

}  // namespace isohalo
