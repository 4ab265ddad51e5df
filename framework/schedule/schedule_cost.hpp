#pragma once
/// What a schedule costs by the pipelining postal model.
///
/// Source: Ruefenacht, Bull, Booth 2017, section 3, equations (3) and (4).

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

}  // namespace isohalo
