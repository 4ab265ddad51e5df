#pragma once
/// The ways in which ghost cells can travel, and their names.

#include <string>
#include <utility>
#include <vector>

#include "framework/halo/halo_schedule.hpp"

namespace isohalo {

/// How messages are filled.
enum class HaloFill {
  automatic,  ///< not settled yet, nor is the pattern: by timing
  datatypes,  ///< by MPI datatypes, a message for each array
  packed,     ///< by our own copies, all arrays in one message
  shared,     ///< so too, through shared memory between ranks of one compute node
};

/// A pattern of messages, and how they are filled.
struct Exchange {
  HaloPattern pattern = HaloPattern::coalesced;
  HaloFill fill = HaloFill::automatic;

  bool operator==(const Exchange&) const = default;

  static const Exchange automatic;  ///< the fastest of the others by timing, the same on all ranks
  static const Exchange direct, coalesced, slabs, direct_packed, coalesced_packed, slabs_packed, shared;
};
inline constexpr Exchange Exchange::automatic{};
inline constexpr Exchange Exchange::direct{HaloPattern::direct, HaloFill::datatypes};
inline constexpr Exchange Exchange::coalesced{HaloPattern::coalesced, HaloFill::datatypes};
inline constexpr Exchange Exchange::slabs{HaloPattern::slabs, HaloFill::datatypes};
inline constexpr Exchange Exchange::direct_packed{HaloPattern::direct, HaloFill::packed};
inline constexpr Exchange Exchange::coalesced_packed{HaloPattern::coalesced, HaloFill::packed};
inline constexpr Exchange Exchange::slabs_packed{HaloPattern::slabs, HaloFill::packed};
inline constexpr Exchange Exchange::shared{HaloPattern::coalesced, HaloFill::shared};

/// "auto", "direct", ..: the words of `parallel.exchange`.
std::string exchange_name(Exchange exchange);
/// All of them, "auto" first.
const std::vector<std::string>& exchange_names();
/// Throws UsageError, with the words there are, for any other.
Exchange exchange_of_name(const std::string& name);

/// What a plan uses, and why.
struct ExchangeChoice {
  Exchange used;                                     ///< automatic: nothing has been exchanged yet
  std::vector<std::pair<Exchange, double>> seconds;  ///< measured, per exchange; none when the way was forced

  /// "coalesced_packed (measured: direct 12.1 us, ..)".
  std::string text() const;
};

/// Can it bring what the shape reads?
template <int D>
bool fits(Exchange exchange, const StencilShape<D>& shape) {
  return exchange.pattern != HaloPattern::slabs || slabs_possible(shape);
}

/// Throws UsageError when it cannot.
template <int D>
void refuse_unfit_exchange(Exchange exchange, const StencilShape<D>& shape);

}  // namespace isohalo
