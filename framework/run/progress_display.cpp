#include "framework/run/progress_display.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace isohalo {

std::string duration_text(double seconds) {
  if (seconds < 60) return fmt::format("{:.1f} s", seconds);
  const auto s = static_cast<std::int64_t>(seconds + 0.5);
  return s < 3600 ? fmt::format("{}:{:02d}", s / 60, s % 60)
                  : fmt::format("{}:{:02d}:{:02d}", s / 3600, s / 60 % 60, s % 60);
}

ProgressDisplay::ProgressDisplay(bool active, std::int64_t first, std::int64_t last, double cells)
    : active_(active),
      terminal_(isatty(STDOUT_FILENO) != 0),
      first_(first),
      last_(last),
      cells_(cells),
      begin_(Clock::now()),
      shown_(begin_),
      next_(first) {}

void ProgressDisplay::show(std::int64_t step, double time, double dt, double residual) {
  if (!active_) return;
  const auto now = Clock::now();
  const double since = std::chrono::duration<double>(now - shown_).count();
  const bool due = terminal_ ? since > 0.1 : step >= next_ || since > 10;
  if (!due && step != last_) return;
  shown_ = now;
  next_ = step + std::max<std::int64_t>(1, (last_ - first_) / 10);
  const double spent = std::chrono::duration<double>(now - begin_).count();
  const double done = static_cast<double>(step - first_),
               all = static_cast<double>(std::max<std::int64_t>(1, last_ - first_));
  const double rate = spent > 0 ? cells_ * done / spent / 1e6 : 0;
  const double left = done > 0 ? spent * (all - done) / done : 0;
  if (terminal_) {
    const int filled = static_cast<int>(30 * done / all);
    fmt::print("\r[{}{}] step {}/{}  residual {:.3e}  {:.1f} M updates/s  {} left   ",
               std::string(static_cast<std::size_t>(filled), '='),
               std::string(static_cast<std::size_t>(30 - filled), ' '), step, last_, residual, rate,
               duration_text(left));
    open_ = true;
  } else {
    fmt::print("step {}/{}  t = {:.6g}  dt = {:.3g}  residual = {:.6e}  {:.1f} M updates/s  {} left\n", step, last_,
               time, dt, residual, rate, duration_text(left));
  }
  std::fflush(stdout);
}

void ProgressDisplay::close() {
  if (open_) fmt::print("\n");
  open_ = false;
}

}  // namespace isohalo
