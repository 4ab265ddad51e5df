#pragma once
/// What a schedule costs by the pipelining postal model, and which fan-out is best.
///
/// Source: Ruefenacht, Bull, Booth 2017, section 3, equations (3) to (5).

#include <cstdint>

#include "framework/schedule/schedule.hpp"

namespace isohalo {

/// The time a message takes, in nanoseconds. A send occupies its sender for pipeline + bytes x per_byte; the
/// message arrives `latency` later; its receiver spends `compute` on combining it.
struct MessageCosts {
  double latency_ns = 500;   ///< alpha_p: may overlap with further sends
  double pipeline_ns = 100;  ///< alpha_r: may not
  double per_byte_ns = 0.4;  ///< beta
  double compute_ns = 10;    ///< not part of the cost model, only of the simulator

  double send_ns(double bytes) const { return pipeline_ns + bytes * per_byte_ns; }
  /// A stage in which no rank sends more than `most_sends` messages.
  double stage_ns(double most_sends, double bytes) const { return latency_ns + most_sends * send_ns(bytes); }

  friend bool operator==(const MessageCosts&, const MessageCosts&) = default;
};

/// Sum over the stages of alpha_p + b_i (alpha_r + bytes beta), b_i the most messages a rank sends in stage i.
double model_ns(const Schedule& schedule, const MessageCosts& costs, double bytes);

/// The branch W0 of the Lambert W function, x = W e^W, for x >= -1/e. Throws UsageError below.
double lambert_w(double x);

/// b_opt = exp(W((alpha_p - alpha_r) / (e alpha_r)) + 1) - 1, the number of messages per stage that makes the cost
/// of a large allreduce least (equation 5); the best base is one more. Throws UsageError unless alpha_p >= 0 and
/// alpha_r > 0.
double best_fan_out(double latency_ns, double pipeline_ns);

}  // namespace isohalo
