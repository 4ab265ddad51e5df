#include "framework/halo/exchange.hpp"

#include <cstdio>

#include "datatypes/error.hpp"

namespace isohalo {

const std::vector<std::string>& exchange_names() {
  static const std::vector<std::string> names = {"auto",          "direct",           "coalesced",    "slabs",
                                                 "direct_packed", "coalesced_packed", "slabs_packed", "shared"};
  return names;
}

std::string exchange_name(Exchange exchange) {
  return exchange_names()[static_cast<std::size_t>(exchange)];
}

Exchange exchange_of_name(const std::string& name) {
  std::string known;
  for (std::size_t k = 0; k < exchange_names().size(); ++k) {
    if (exchange_names()[k] == name) return static_cast<Exchange>(k);
    known += (k ? ", " : "") + exchange_names()[k];
  }
  throw UsageError("there is no exchange \"" + name + "\": use one of " + known);
}

std::string ExchangeChoice::text() const {
  std::string t = exchange_name(used);
  for (std::size_t k = 0; k < seconds.size(); ++k) {
    char time[32];
    std::snprintf(time, sizeof time, " %.1f us", seconds[k].second * 1e6);
    t += (k ? ", " : " (measured: ") + exchange_name(seconds[k].first) + time;
  }
  return seconds.empty() ? t : t + ")";
}

HaloPattern pattern_of(Exchange exchange) {
  switch (exchange) {
    case Exchange::direct:
    case Exchange::direct_packed:
      return HaloPattern::direct;
    case Exchange::slabs:
    case Exchange::slabs_packed:
      return HaloPattern::slabs;
    default:
      return HaloPattern::coalesced;
  }
}

void throw_unfit_slabs(Exchange exchange) {
  throw UsageError("exchange \"" + exchange_name(exchange) +
                   "\" works for Moore, von Neumann and star stencils only, because a neighbor need not have what "
                   "another list of offsets reads: use \"coalesced\" or \"auto\"");
}

bool is_packed(Exchange exchange) {
  return exchange >= Exchange::direct_packed;
}

}  // namespace isohalo
