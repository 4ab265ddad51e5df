#include "framework/run/progress_display.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

namespace isohalo {

std::string duration_text(double seconds) {
  if (seconds < 60) return fmt::format("{:.1f} s", seconds);
  const auto s = static_cast<std::int64_t>(std::llround(seconds));
  return s < 3600 ? fmt::format("{}:{:02d}", s / 60, s % 60)
                  : fmt::format("{}:{:02d}:{:02d}", s / 3600, s / 60 % 60, s % 60);
}

void Pace::stepped(std::int64_t step, double seconds) {
  now_ = {step, seconds};
  if (!from_) from_ = since_ = now_;
  if (seconds - since_->seconds > std::max(1.0, 0.1 * seconds)) from_ = std::exchange(since_, now_);
}

std::optional<double> Pace::seconds_per_step() const {
  if (!from_ || now_.seconds - from_->seconds < kLeast) return std::nullopt;
  return (now_.seconds - from_->seconds) / static_cast<double>(now_.step - from_->step);
}

ProgressDisplay::ProgressDisplay(bool active, std::int64_t first, std::int64_t last, double cells,
                                 bool may_end_early)
    : active_(active),
      terminal_(isatty(STDOUT_FILENO) != 0),
      may_end_early_(may_end_early),
      first_(first),
      last_(last),
      cells_(cells),
      next_(first) {}

/// Wall time to come, "" when nothing is known of it yet.
std::string ProgressDisplay::left_text(const Progress& p) const {
  const auto each = pace_.seconds_per_step();
  if (!each && p.step < last_) return "";
  const double steps_left = static_cast<double>(last_ - p.step);
  const double left = (steps_left > 0 ? *each * steps_left : 0) + p.outputs_left_s;
  return fmt::format("  {}{} left", may_end_early_ && steps_left > 0 ? "at most " : "",
                     duration_text(std::min(left, std::max(0.0, p.limit_left_s))));
}

void ProgressDisplay::show(const Progress& p) {
  if (!active_) return;
  const auto now = Clock::now();
  const double since = std::chrono::duration<double>(now - shown_).count();
  const bool due = terminal_ ? since > 0.1 : p.step >= next_ || since > 10;
  if (!due && p.step != last_) return;
  shown_ = now;
  next_ = p.step + std::max<std::int64_t>(1, (last_ - first_) / 10);
  const double done = static_cast<double>(p.step - first_),
               all = static_cast<double>(std::max<std::int64_t>(1, last_ - first_));
  const double rate = p.stepping_s > 0 ? cells_ * done / p.stepping_s / 1e6 : 0;
  if (terminal_) {
    const int filled = static_cast<int>(30 * done / all);
    fmt::print("\r[{}{}] step {}/{}  residual {:.3e}  {:.1f} M updates/s{}\x1b[K",
               std::string(static_cast<std::size_t>(filled), '='),
               std::string(static_cast<std::size_t>(30 - filled), ' '), p.step, last_, p.residual, rate,
               left_text(p));
    open_ = true;
  } else {
    const std::string time = p.dt > 0 ? fmt::format("  t = {:.6g}  dt = {:.3g}", p.time, p.dt) : "";
    fmt::print("step {}/{}{}  residual = {:.6e}{}  {:.1f} M updates/s{}\n", p.step, last_, time, p.residual,
               p.measure.empty() ? "" : "  " + p.measure, rate, left_text(p));
  }
  std::fflush(stdout);
}

void ProgressDisplay::close() {
  if (open_) fmt::print("\n");
  open_ = false;
}

}  // namespace isohalo
