#include "apps/bench/steps_plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace isohalo {

namespace {

constexpr double kStepsLeft = 90, kStepsTop = 70, kColumn = 62, kRow = 74, kBelow = 30;
/// Of distances, colours that stay apart for the colour-blind (Okabe and Ito).
constexpr const char* kStepColours[] = {"#000000", "#0072b2", "#d55e00", "#009e73", "#cc79a7"};

double column(int rank) {
  return kStepsLeft + kColumn * (rank + 0.5);
}
double row(int step) {
  return kStepsTop + kRow * step;
}
const char* colour(int distance) {
  return kStepColours[std::min<std::size_t>(static_cast<std::size_t>(distance), std::size(kStepColours) - 1)];
}

/// Boxes around ranks that share the innermost level, and the ranks' names.
std::string ranks_svg(const Hierarchy& h, double bottom) {
  std::string svg;
  for (const auto& group : h.groups(h.levels() - 1))
    svg += fmt::format("<rect x='{:.1f}' y='{:.1f}' width='{:.1f}' height='{:.1f}' rx='6' fill='#f2f2f2'/>\n",
                       column(group.front()) - 0.46 * kColumn, kStepsTop - 34,
                       kColumn * (group.back() - group.front()) + 0.92 * kColumn, bottom - kStepsTop + 46);
  for (int rank = 0; rank < h.ranks(); ++rank)
    svg += fmt::format("<text x='{:.1f}' y='{:.1f}' text-anchor='middle'>rank {}</text>\n", column(rank),
                       kStepsTop - 16, rank);
  return svg;
}

/// From where `take` was published to who reads it: a result, dashed, when what the same stage fills is there.
std::string arrows_svg(const Hierarchy& h, int rank, int stage, const Take& take, bool fills) {
  std::string svg;
  const int step = fills ? stage : stage + 1;
  for (const Source& from : take.sources) {
    if (from.rank == rank) continue;
    const int distance = h.distance(rank, from.rank);
    svg += fmt::format(
        "<line x1='{:.1f}' y1='{:.1f}' x2='{:.1f}' y2='{:.1f}' stroke='{}' stroke-width='1.5'{} "
        "marker-end='url(#head)'/>\n",
        column(from.rank), row(step) + 8, column(rank), row(step + 1) - 9, colour(distance),
        fills ? "" : " stroke-dasharray='5,3'");
  }
  return svg;
}

std::string legend_svg(const NodeCosts& costs, int distances, double y) {
  std::string svg;
  for (int d = 1; d <= distances; ++d)
    svg += fmt::format("<text x='{:.1f}' y='{:.1f}' fill='{}'>distance {}: {:.1f} ns and {:.2f} ns a line</text>\n",
                       kStepsLeft, y + 18 * d, colour(d), d, costs.at(d).latency_ns, costs.at(d).line_ns);
  return svg +
         fmt::format("<text x='{:.1f}' y='{:.1f}'>solid: combined on the way; dashed: the result is read</text>\n",
                     kStepsLeft, y + 18 * (distances + 1));
}

}  // namespace

std::string to_svg(const NodeSchedule& schedule, const Hierarchy& h, const NodeCosts& costs,
                   const std::string& name, double bytes) {
  const int steps = schedule.stages() + 1;
  const double bottom = row(steps), width = std::max(column(h.ranks()), 480.0);
  const double height = bottom + kBelow + 18 * (h.levels() + 2);
  std::string svg = fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' width='{0:.0f}' height='{1:.0f}' viewBox='0 0 {0:.0f} {1:.0f}' "
      "font-family='sans-serif' font-size='12'>\n<rect width='{0:.0f}' height='{1:.0f}' fill='white'/>\n"
      "<defs><marker id='head' viewBox='0 0 8 8' refX='7' refY='4' markerWidth='7' markerHeight='7' orient='auto'>"
      "<path d='M0,0 L8,4 L0,8 z'/></marker></defs>\n"
      "<text x='{2}' y='22' font-size='14'>{3}, {4:.0f} bytes: {5:.1f} ns</text>\n",
      width, height, kStepsLeft, name, bytes, schedule_ns(schedule, h, costs, bytes));
  svg += ranks_svg(h, bottom);
  for (int step = 0; step < steps; ++step)
    svg += fmt::format("<text x='8' y='{:.1f}'>step {}</text>\n", row(step) + 0.5 * kRow + 4, step);
  walk(
      schedule,
      [&](int rank, int stage, const Take& take, bool fills) { svg += arrows_svg(h, rank, stage, take, fills); },
      [](int, int) {});
  for (int rank = 0; rank < h.ranks(); ++rank)
    for (int step = 0; step <= steps; ++step)
      svg += fmt::format("<circle cx='{:.1f}' cy='{:.1f}' r='4'/>\n", column(rank), row(step));
  return svg + legend_svg(costs, h.levels(), bottom + kBelow - 8) + "</svg>\n";
}

}  // namespace isohalo
