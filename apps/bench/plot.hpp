#pragma once
/// Lines and columns with error bars, as SVG written by the program itself.

#include <string>
#include <vector>

namespace isohalo {

struct PlotSeries {
  struct Point {
    double x = 0, y = 0, error = 0;
  };
  std::string name;
  std::vector<Point> points;
};

struct Plot {
  std::string title, x_label, y_label;
  std::vector<PlotSeries> series;
  /// The one of this name, which is added where there is none yet.
  PlotSeries& line(const std::string& name);
};
/// The same of a plot.
Plot& plot_of(std::vector<Plot>& plots, const Plot& with_its_title);

/// Both axes are logarithmic; points that are not positive are left out. Where no point has an x, a column each.
std::string to_svg(const Plot& plot);

}  // namespace isohalo
