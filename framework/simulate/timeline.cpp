#include "framework/simulate/timeline.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ostream>
#include <string>

#include "datatypes/error.hpp"

namespace isohalo {

namespace {

std::string number(double x) {
  char text[40];
  std::snprintf(text, sizeof text, "%.1f", x);
  return text;
}

/// Draws lanes over a common axis of time.
class Picture {
 public:
  Picture(std::ostream& out, const std::string& title, double end_ns, int lanes)
      : out_(out), end_ns_(std::max(end_ns, 1.0)), height_(kTop + lanes * kLane + kBottom) {
    out_ << "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " << kWidth << " " << height_ << "\" width=\""
         << kWidth << "\" height=\"" << height_ << "\" font-family=\"sans-serif\" font-size=\"12\">\n"
         << "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n<text x=\"" << kLeft
         << "\" y=\"22\" font-size=\"15\">" << title << "</text>\n";
    axis();
  }
  ~Picture() { out_ << "</svg>\n"; }

  double x(double ns) const { return kLeft + ns / end_ns_ * (kWidth - kLeft - kRight); }
  static double y(int lane) { return kTop + (lane + 0.5) * kLane; }

  void lane(int lane, const std::string& name) {
    out_ << "<text x=\"" << kLeft - 8 << "\" y=\"" << y(lane) + 4 << "\" text-anchor=\"end\">" << name
         << "</text>\n";
    line(0, lane, end_ns_, lane, "#cccccc", 1);
  }
  void bar(int lane, double begin, double end, double half_height, const char* color, const std::string& hint) {
    out_ << "<rect x=\"" << number(x(begin)) << "\" y=\"" << y(lane) - half_height << "\" width=\""
         << number(std::max(x(end) - x(begin), 1.0)) << "\" height=\"" << 2 * half_height << "\" fill=\"" << color
         << "\" stroke=\"white\" stroke-width=\"0.6\"><title>" << hint << "</title></rect>\n";
  }
  void line(double from_ns, int from_lane, double to_ns, int to_lane, const char* color, double width) {
    out_ << "<line x1=\"" << number(x(from_ns)) << "\" y1=\"" << y(from_lane) << "\" x2=\"" << number(x(to_ns))
         << "\" y2=\"" << y(to_lane) << "\" stroke=\"" << color << "\" stroke-width=\"" << width << "\"/>\n";
  }
  void mark(int lane, double ns, const char* color, const std::string& hint) {
    out_ << "<circle cx=\"" << number(x(ns)) << "\" cy=\"" << y(lane) << "\" r=\"3\" fill=\"" << color
         << "\"><title>" << hint << "</title></circle>\n";
  }
  void legend(const std::vector<std::pair<const char*, const char*>>& entries) {
    double at = kLeft;
    for (const auto& [color, text] : entries) {
      out_ << "<rect x=\"" << at << "\" y=\"32\" width=\"12\" height=\"10\" fill=\"" << color << "\"/><text x=\""
           << at + 17 << "\" y=\"41\">" << text << "</text>\n";
      at += 40 + 7 * static_cast<double>(std::string(text).size());
    }
  }

 private:
  static constexpr int kWidth = 1200, kLeft = 90, kRight = 30, kTop = 60, kBottom = 40, kLane = 24;

  void axis() {
    double step = std::pow(10, std::floor(std::log10(end_ns_ / 4)));
    for (double factor : {5.0, 2.0})
      if (end_ns_ / (step * factor) >= 4) {
        step *= factor;
        break;
      }
    const int base = height_ - kBottom + 8;
    for (double t = 0; t <= end_ns_ * (1 + 1e-9); t += step)
      out_ << "<line x1=\"" << number(x(t)) << "\" y1=\"" << kTop - 6 << "\" x2=\"" << number(x(t)) << "\" y2=\""
           << base << "\" stroke=\"#eeeeee\"/><text x=\"" << number(x(t)) << "\" y=\"" << base + 16
           << "\" text-anchor=\"middle\">" << t << (t == 0 ? " ns" : "") << "</text>\n";
  }

  std::ostream& out_;
  double end_ns_;
  int height_;
};

constexpr const char* kPut = "#3b6fb6";
constexpr const char* kFlight = "#9db8dc";
constexpr const char* kCompute = "#d9822b";
constexpr const char* kSleep = "#dddddd";
constexpr const char* kFinish = "#2a7d3f";

void draw_lanes(Picture& picture, const Schedule& schedule, const SimulationResult& result) {
  picture.legend({{kSleep, "not there yet"},
                  {kPut, "send"},
                  {kFlight, "in flight"},
                  {kCompute, "take"},
                  {kFinish, "finished"}});
  for (int r = 0; r < schedule.ranks(); ++r) picture.lane(r, "rank " + std::to_string(r));
  const auto hint = [&](const SimulatedTask& t, const std::string& what) {
    return "rank " + std::to_string(t.rank) + ", stage " + std::to_string(t.stage + 1) + " " +
           to_text(schedule.stages()[static_cast<std::size_t>(t.stage)]) + ": " + what + " " +
           std::to_string(t.peer) + ", " + number(t.begin_ns) + " to " + number(t.end_ns) + " ns";
  };
  for (const auto& t : result.tasks)
    if (t.kind == TaskKind::put) picture.line(t.end_ns, t.rank, t.arrival_ns, t.peer, kFlight, 0.8);
  for (const auto& t : result.tasks) {
    if (t.kind == TaskKind::sleep) picture.bar(t.rank, t.begin_ns, t.end_ns, 3, kSleep, "starts late");
    if (t.kind == TaskKind::put) picture.bar(t.rank, t.begin_ns, t.end_ns, 6, kPut, hint(t, "sends to"));
    if (t.kind == TaskKind::compute) picture.bar(t.rank, t.begin_ns, t.end_ns, 8, kCompute, hint(t, "takes from"));
  }
  for (int r = 0; r < schedule.ranks(); ++r) {
    const double end = result.finish_ns[static_cast<std::size_t>(r)];
    picture.mark(r, end, kFinish, "rank " + std::to_string(r) + " finishes at " + number(end) + " ns");
  }
}

void draw_summary(Picture& picture, const Schedule& schedule, const SimulationResult& result) {
  picture.legend({{kFlight, "all ranks"}, {kPut, "the middle half"}, {kFinish, "median"}});
  for (int s = 0; s <= schedule.size(); ++s) {
    const bool end = s == schedule.size();
    std::vector<double> times = end ? result.finish_ns : result.begin_ns[static_cast<std::size_t>(s)];
    std::sort(times.begin(), times.end());
    const auto quantile = [&](std::size_t quarters) { return times[(times.size() - 1) * quarters / 4]; };
    picture.lane(s, end ? "finish" : to_text(schedule.stages()[static_cast<std::size_t>(s)]));
    const std::string what =
        std::string(end ? "finished" : "entered") + " at " + number(times.front()) + " to " + number(times.back()) +
        " ns, median " + number(quantile(2)) +
        (end ? "" : ", " + std::to_string(result.messages[static_cast<std::size_t>(s)]) + " messages");
    picture.bar(s, times.front(), times.back(), 4, kFlight, what);
    picture.bar(s, quantile(1), quantile(3), 7, kPut, what);
    picture.mark(s, quantile(2), kFinish, what);
  }
}

}  // namespace

void write_svg(std::ostream& out, const Schedule& schedule, const SimulationOptions& options,
               const SimulationResult& result) {
  const std::string model = options.model == NetworkModel::postal       ? "postal"
                            : options.model == NetworkModel::pipelining ? "pipelining postal"
                                                                        : "LogGP";
  const std::string title = schedule.text() + ", " + std::to_string(schedule.ranks()) + " ranks, " + model +
                            " model: " + number(result.last_ns) + " ns";
  const bool lanes = schedule.ranks() <= kTimelineRanks;
  if (lanes && result.tasks.empty()) throw UsageError("a timeline needs a simulation that recorded its tasks");
  Picture picture(out, title, result.last_ns, lanes ? schedule.ranks() : schedule.size() + 1);
  lanes ? draw_lanes(picture, schedule, result) : draw_summary(picture, schedule, result);
}

void write_goal(std::ostream& out, const Schedule& schedule, const SimulationOptions& options) {
  if (schedule.messages() > 20'000'000)
    throw UsageError("GOAL text of " + std::to_string(schedule.messages()) +
                     " messages; the limit is 20000000: take fewer ranks");
  const auto bytes = std::llround(options.bytes), take = std::llround(options.costs.compute_ns);
  out << "num_ranks " << schedule.ranks() << "\n";
  StageActions a;
  for (int r = 0; r < schedule.ranks(); ++r) {
    out << "\nrank " << r << " {\n";
    std::int64_t label = 0, entry = ++label;  // what the operations of a stage require
    out << "l" << entry << ": calc 0\n";
    for (int s = 0; s < schedule.size(); ++s) {
      schedule.actions(s, r, a);
      if (a.send.empty() && a.receive.empty()) continue;
      std::vector<std::int64_t> done;
      for (int to : a.send) {
        done.push_back(++label);
        out << "l" << label << ": send " << bytes << "b to " << to << " tag " << s << "\nl" << label
            << " requires l" << entry << "\n";
      }
      const std::int64_t last_send = a.send.empty() ? 0 : label;
      for (int from : a.receive) {
        out << "l" << label + 1 << ": recv " << bytes << "b from " << from << " tag " << s << "\nl" << label + 1
            << " requires l" << entry << "\nl" << label + 2 << ": calc " << take << "\nl" << label + 2
            << " requires l" << label + 1 << "\n";
        label += 2;
        if (last_send > 0) out << "l" << label << " requires l" << last_send << "\n";  // taken after its own sends
        done.push_back(label);
      }
      out << "l" << ++label << ": calc 0\n";
      for (auto d : done) out << "l" << label << " requires l" << d << "\n";
      entry = label;
    }
    out << "}\n";
  }
}

}  // namespace isohalo
