#include "apps/bench/plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace isohalo {

namespace {

constexpr double kWidth = 780, kHeight = 440, kLeft = 80, kRight = 250, kTop = 40, kBottom = 60;
/// Colours that stay apart for the colour-blind (Okabe and Ito).
constexpr const char* kLineColours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                        "#e69f00", "#56b4e9", "#000000"};

/// A logarithmic axis from pixel `from` to `to`.
struct Axis {
  double low = 1e300, high = -1e300, from = 0, to = 1;
  void include(double v) {
    low = std::min(low, v);
    high = std::max(high, v);
  }
  void settle() {
    if (low > high) low = 1, high = 10;
    low = std::pow(10.0, std::floor(std::log10(low)));
    high = std::pow(10.0, std::ceil(std::log10(high)));
    if (high <= low) high = 10 * low;
  }
  double operator()(double v) const {
    const double t = (std::log10(v) - std::log10(low)) / (std::log10(high) - std::log10(low));
    return from + t * (to - from);
  }
};

std::string escaped(const std::string& text) {
  std::string out;
  for (char c : text) out += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
  return out;
}

std::string x_ticks(const Axis& x) {
  std::string svg;
  for (double v = x.low; v <= x.high * 1.001; v *= 10)
    svg += fmt::format(
        "<line x1='{0:.1f}' y1='{1}' x2='{0:.1f}' y2='{2}' stroke='#ddd'/><text x='{0:.1f}' y='{3}' "
        "text-anchor='middle'>{4:g}</text>\n",
        x(v), kTop, kHeight - kBottom, kHeight - kBottom + 18, v);
  return svg;
}

std::string y_ticks(const Axis& y) {
  std::string svg;
  for (double v = y.low; v <= y.high * 1.001; v *= 10)
    svg += fmt::format(
        "<line x1='{1}' y1='{0:.1f}' x2='{2}' y2='{0:.1f}' stroke='#ddd'/><text x='{3}' y='{4:.1f}' "
        "text-anchor='end'>{5:g}</text>\n",
        y(v), kLeft, kWidth - kRight, kLeft - 6, y(v) + 4, v);
  return svg;
}

std::string error_bar(double at, const PlotSeries::Point& p, const char* colour, const Axis& y) {
  return fmt::format("<line x1='{0:.1f}' y1='{1:.1f}' x2='{0:.1f}' y2='{2:.1f}' stroke='{3}'/>\n", at,
                     y(std::max(p.y - p.error, y.low)), y(std::min(p.y + p.error, y.high)), colour);
}

/// The columns of series `k` of `n`: its points stand side by side in its share of the width.
std::string columns(const PlotSeries& s, const char* colour, std::size_t k, std::size_t n, const Axis& y) {
  std::string svg;
  const double share = (kWidth - kRight - kLeft) / static_cast<double>(n);
  const double width = share / (static_cast<double>(s.points.size()) + 1);
  for (std::size_t i = 0; i < s.points.size(); ++i) {
    if (s.points[i].y <= 0) continue;
    const double left = kLeft + share * static_cast<double>(k) + width * (static_cast<double>(i) + 0.5);
    const double top = y(s.points[i].y);
    svg += fmt::format("<rect x='{:.1f}' y='{:.1f}' width='{:.1f}' height='{:.1f}' fill='{}'/>\n", left, top, width,
                       kHeight - kBottom - top, colour);
    svg += error_bar(left + width / 2, s.points[i], "#000000", y);
  }
  return svg;
}

std::string line(const PlotSeries& s, const char* colour, const Axis& x, const Axis& y) {
  std::string path, marks;
  for (const auto& p : s.points) {
    if (p.x <= 0 || p.y <= 0) continue;
    path += fmt::format("{:.1f},{:.1f} ", x(p.x), y(p.y));
    marks += fmt::format("<circle cx='{:.1f}' cy='{:.1f}' r='3' fill='{}'/>\n", x(p.x), y(p.y), colour);
    marks += error_bar(x(p.x), p, colour, y);
  }
  return fmt::format("<polyline fill='none' stroke='{}' stroke-width='1.5' points='{}'/>\n{}", colour, path, marks);
}

}  // namespace

PlotSeries& Plot::line(const std::string& name) {
  for (PlotSeries& s : series)
    if (s.name == name) return s;
  return series.emplace_back(PlotSeries{name, {}});
}

Plot& plot_of(std::vector<Plot>& plots, const Plot& with_its_title) {
  for (Plot& p : plots)
    if (p.title == with_its_title.title) return p;
  return plots.emplace_back(with_its_title);
}

std::string to_svg(const Plot& plot) {
  Axis x, y;
  const auto has_x = [](const PlotSeries& s) {
    return std::any_of(s.points.begin(), s.points.end(), [](const auto& p) { return p.x > 0; });
  };
  const bool lines = std::any_of(plot.series.begin(), plot.series.end(), has_x);
  for (const auto& s : plot.series)
    for (const auto& p : s.points)
      if ((!lines || p.x > 0) && p.y > 0) x.include(p.x), y.include(p.y);
  if (lines) x.settle();
  y.settle();
  x.from = kLeft, x.to = kWidth - kRight;
  y.from = kHeight - kBottom, y.to = kTop;
  std::string svg = fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' width='{0}' height='{1}' viewBox='0 0 {0} {1}' "
      "font-family='sans-serif' font-size='12'>\n<rect width='{0}' height='{1}' fill='white'/>\n"
      "<text x='{2}' y='22' font-size='14'>{3}</text>\n",
      kWidth, kHeight, kLeft, escaped(plot.title));
  svg += (lines ? x_ticks(x) : "") + y_ticks(y);
  svg += fmt::format("<text x='{}' y='{}' text-anchor='middle'>{}</text>\n", (kLeft + kWidth - kRight) / 2,
                     kHeight - 16, escaped(plot.x_label));
  svg += fmt::format("<text transform='translate(18,{}) rotate(-90)' text-anchor='middle'>{}</text>\n",
                     (kTop + kHeight - kBottom) / 2, escaped(plot.y_label));
  for (std::size_t k = 0; k < plot.series.size(); ++k) {
    const char* colour = kLineColours[k % std::size(kLineColours)];
    svg += lines ? line(plot.series[k], colour, x, y) : columns(plot.series[k], colour, k, plot.series.size(), y);
    const double at = kTop + 10 + 18 * static_cast<double>(k);
    svg += fmt::format(
        "<line x1='{0}' y1='{1}' x2='{2}' y2='{1}' stroke='{3}' stroke-width='2'/>"
        "<text x='{4}' y='{5}'>{6}</text>\n",
        kWidth - kRight + 10, at, kWidth - kRight + 30, colour, kWidth - kRight + 36, at + 4,
        escaped(plot.series[k].name));
  }
  return svg + "</svg>\n";
}

}  // namespace isohalo
