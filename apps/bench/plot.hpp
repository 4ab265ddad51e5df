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
};

/// Both axes are logarithmic; points that are not positive are left out. Where no point has an x, a column each.
std::string to_svg(const Plot& plot);

}  // namespace isohalo
