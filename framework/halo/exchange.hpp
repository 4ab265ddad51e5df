#pragma once
/// The names of the ways in which ghost cells can travel.

#include <string>
#include <utility>
#include <vector>

#include "framework/halo/halo_schedule.hpp"

namespace isohalo {

/// A pattern of messages, and how they are filled: by MPI datatypes (no name) or by our own copies ("packed").
enum class Exchange {
  automatic,         ///< the fastest of the others by timing, the same on all ranks
  direct,            ///< a message per region and array
  coalesced,         ///< a message per rank and array
  slabs,             ///< dimension after dimension, a message per rank and array
  direct_packed,     ///< a message per region
  coalesced_packed,  ///< a message per rank
  slabs_packed,      ///< dimension after dimension, a message per rank
  shared,            ///< as coalesced_packed, through shared memory between ranks of one node
};

/// "auto", "direct", ..: the words of `parallel.exchange`.
std::string exchange_name(Exchange exchange);
/// All of them, "auto" first.
const std::vector<std::string>& exchange_names();
/// Throws UsageError, with the words there are, for any other.
Exchange exchange_of_name(const std::string& name);

/// What a plan uses, and why.
struct ExchangeChoice {
  Exchange used = Exchange::automatic;               ///< automatic: nothing has been exchanged yet
  std::vector<std::pair<Exchange, double>> seconds;  ///< measured, per exchange; none when the way was forced

  /// "coalesced_packed (measured: direct 12.1 us, ..)".
  std::string text() const;
};

[[noreturn]] void throw_unfit_slabs(Exchange exchange);
HaloPattern pattern_of(Exchange exchange);
bool is_packed(Exchange exchange);

/// Throws UsageError when `exchange` cannot bring what the shape reads.
template <int D>
void refuse_unfit_exchange(Exchange exchange, const StencilShape<D>& shape) {
  if (exchange != Exchange::automatic && pattern_of(exchange) == HaloPattern::slabs && !slabs_possible(shape))
    throw_unfit_slabs(exchange);
}

}  // namespace isohalo
