#include "apps/common/option_text.hpp"

#include <charconv>
#include <cmath>
#include <cstdlib>

#include "datatypes/error.hpp"

namespace isohalo {

EmulatedLatency parse_latency(const std::string& text) {
  const auto seconds = [&text](const std::string& part) {
    char* end = nullptr;
    const double value = std::strtod(part.c_str(), &end);
    const std::string unit = end;
    const double scale = unit == "s" ? 1 : unit == "ms" ? 1e-3 : unit == "us" ? 1e-6 : 0;
    if (end == part.c_str() || scale == 0 || !(value >= 0 && value * scale <= 10))
      throw UsageError("--emulate " + text + ": \"" + part +
                       "\" is no time of 0 to 10 s: give latency and send time like 2ms,0.2ms");
    return value * scale;
  };
  const std::size_t comma = text.find(',');
  if (comma == std::string::npos)
    throw UsageError("--emulate " + text + ": give latency and send time like 2ms,0.2ms");
  const EmulatedLatency latency{seconds(text.substr(0, comma)), seconds(text.substr(comma + 1))};
  if (latency.pipeline_s == 0) throw UsageError("--emulate " + text + ": the send time must be above 0");
  return latency;
}

void read_topology(const std::string& text, SimulationOptions& options) {
  if (text.empty()) return;
  const auto refuse = [&] {
    throw UsageError(
        "--topology " + text +
        " is not RANKS_PER_NODE or RANKS_PER_NODE:LATENCY,PIPELINE,PER_BYTE (ns, not negative), as 16:100,50,0.1");
  };
  const char *at = text.data(), *const end = at + text.size();
  const auto number = [&](auto& value, char before) {
    if (before && (at == end || *at++ != before)) refuse();
    const auto [next, error] = std::from_chars(at, end, value);
    if (error != std::errc()) refuse();
    at = next;
  };
  number(options.ranks_per_node, '\0');
  if (at != end) {
    const auto time = [&](double& value, char before) {
      number(value, before);
      if (!(value >= 0 && std::isfinite(value))) refuse();
    };
    time(options.on_node.latency_ns, ':');
    time(options.on_node.pipeline_ns, ',');
    time(options.on_node.per_byte_ns, ',');
  }
  if (at != end || options.ranks_per_node < 1) refuse();
}

}  // namespace isohalo
