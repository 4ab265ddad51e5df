#include "framework/neighborhood/list_check.hpp"

namespace isohalo::detail {

ListCheck::ListCheck(std::uint64_t fingerprint, const Meet& meet) {
  const auto number = static_cast<std::int64_t>(fingerprint >> 2);
  std::int64_t values[2] = {number, -number};  // the largest, and minus the smallest
  meet(values);
  equal_ = values[0] == -values[1];
}

/// When a rank is missing, its reason may still be on the way here: it is worth a moment.
bool ListCheck::done() {
  if (!comparison_) return true;
  if (!comparison_->done()) return false;
  if (!missed()) return true;
  constexpr std::chrono::milliseconds moment{200};
  const auto now = std::chrono::steady_clock::now();
  if (missed_since_ == decltype(missed_since_){}) missed_since_ = now;
  return now > missed_since_ + moment;
}

void ListCheck::listen() {
  if (!done()) listen_();
}

ArgumentError ListCheck::error() {
  return {MPI_ERR_TOPOLOGY,
          "neighborhood: the lists of offsets differ between ranks: pass the same list, in the same order, on all "
          "ranks of the communicator (and the cost of a message on all or none)"};
}

void ListCheck::rethrow() {
  if (!done() || equal()) return;
  if (!missed()) throw error();
  listen_();
  throw ArgumentError(MPI_ERR_ARG,
                      "neighborhood: not all ranks take part in its first operation: it was freed on some, or they "
                      "begin another");
}

}  // namespace isohalo::detail
