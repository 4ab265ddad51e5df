#include "framework/halo/exchange.hpp"

#include <cstdio>

#include "datatypes/error.hpp"

namespace isohalo {

namespace {

constexpr std::pair<const char*, Exchange> kExchanges[] = {{"auto", Exchange::automatic},
                                                           {"direct", Exchange::direct},
                                                           {"coalesced", Exchange::coalesced},
                                                           {"slabs", Exchange::slabs},
                                                           {"direct_packed", Exchange::direct_packed},
                                                           {"coalesced_packed", Exchange::coalesced_packed},
                                                           {"slabs_packed", Exchange::slabs_packed},
                                                           {"shared", Exchange::shared}};

}  // namespace

const std::vector<std::string>& exchange_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const auto& [name, exchange] : kExchanges) list.emplace_back(name);
    return list;
  }();
  return names;
}

std::string exchange_name(Exchange exchange) {
  for (const auto& [word, known] : kExchanges)
    if (known == exchange) return word;
  throw UsageError("no exchange has this pattern with this fill");
}

Exchange exchange_of_name(const std::string& name) {
  std::string known;
  for (const auto& [word, exchange] : kExchanges) {
    if (word == name) return exchange;
    known += (known.empty() ? "" : ", ") + std::string(word);
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

template <int D>
void refuse_unfit_exchange(Exchange exchange, const StencilShape<D>& shape) {
  if (!fits(exchange, shape))
    throw UsageError(
        "exchange \"" + exchange_name(exchange) +
        "\" works for Moore, von Neumann and star stencils only, because a neighbor need not have what "
        "another list of offsets reads: use \"coalesced\" or \"auto\"");
}

#define ISOHALO_INSTANTIATE(D) template void refuse_unfit_exchange<D>(Exchange, const StencilShape<D>&);
ISOHALO_FOR_EACH_DIMENSION(ISOHALO_INSTANTIATE)
#undef ISOHALO_INSTANTIATE

}  // namespace isohalo
