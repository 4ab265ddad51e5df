#pragma once
/// Options whose values have a form of their own.

#include <string>

#include "apps/bench/emulated_network.hpp"
#include "framework/simulate/simulator.hpp"

namespace isohalo {

/// "2ms,0.2ms": latency and send time. Throws UsageError.
EmulatedLatency parse_latency(const std::string& text);

/// "N" or "N:LATENCY,PIPELINE,PER_BYTE": ranks per node, and the costs within one; "" changes nothing. Throws
/// UsageError.
void read_topology(const std::string& text, SimulationOptions& options);

}  // namespace isohalo
