#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "apps/bench/plot.hpp"
#include "apps/bench/scaling.hpp"
#include "apps/common/report.hpp"
#include "framework/mpi/whole_file.hpp"

namespace isohalo {

namespace {

Json json_of(const ScalingPoint& p) {
  return {{"kind", p.kind},       {"shape", p.cut.shape}, {"blocks", p.cut.blocks}, {"threads", p.threads},
          {"sharing", p.sharing}, {"cores", p.cores},     {"residual", p.residual}, {"seconds", p.seconds}};
}

Json json_of(const std::vector<Parts>& all, bool is_strong) {
  Json list = Json::array();
  for (const Parts& p : all) {
    list.push_back({{"ranks", p.cut.ranks()},
                    {"shape", p.cut.shape},
                    {"compute_us", p.compute * 1e6},
                    {"step_us", p.step * 1e6},
                    {"messages_us", p.messages * 1e6},
                    {"bytes_us", p.bytes * 1e6},
                    {"residual_us", p.residual * 1e6},
                    {"sums_us", p.sum * 1e6},
                    {"total_us", p.total() * 1e6}});
    const double more = is_strong ? static_cast<double>(p.cut.ranks()) / all[0].cut.ranks() : 1;
    if (all.size() > 1) list.back()["efficiency"] = all[0].total() / more / p.total();  // beside the first row
  }
  return list;
}

void write_plot(const std::string& directory, const std::string& kind, const std::vector<Parts>& all,
                const std::vector<ScalingPoint>& points) {
  Plot plot{kind + " scaling", "ranks", "time of a step [us]", {}};
  const auto series = [&](const std::string& name, double Parts::*part) {
    for (const Parts& p : all)
      plot.line(name + ", extrapolated")
          .points.push_back({static_cast<double>(p.cut.ranks()), (part ? p.*part : p.total()) * 1e6, 0});
  };
  series("all", nullptr);
  series("compute", &Parts::compute);
  series("step", &Parts::step);
  series("messages", &Parts::messages);
  series("bytes", &Parts::bytes);
  series("sums", &Parts::sum);
  for (const ScalingPoint& p : points) {
    if (p.kind != kind || p.residual > 0) continue;
    const std::int64_t first = kind == "strong" ? p.cut.shape[0] : p.cut.shape[0] / p.cut.blocks[0];
    const std::string name =
        fmt::format("{}^3{}, measured", first, p.threads > 1 ? fmt::format(", {} threads", p.threads) : "");
    plot.line(name).points.push_back({static_cast<double>(p.cut.ranks()), p.seconds * 1e6, 0});
  }
  write_whole(directory + "/scaling-" + kind + ".svg", to_svg(plot));
}

}  // namespace

void print_scaling(const std::vector<ScalingPoint>& points, const Outlook& o, const BenchScalingOptions& options) {
  Json j = report_of("scaling");
  j["measured"] = "heat, 7 points, float64, insulated sides, one exchange a step";
  j["repeats"] = options.repeats;
  for (const ScalingPoint& p : points) {
    Json one = json_of(p);
    one["ranks"] = p.cut.ranks();
    one["swept_from"] = p.work().level;
    one["fitted"] = p.fits();  // else there are more ranks than cores
    if (p.fits()) one["by_model_seconds"] = o.fitted.seconds(amounts_of(p.work()));
    j["points"].push_back(one);
  }
  for (const auto& term : o.fitted.terms) j["costs_ns"][term.name] = term.seconds * 1e9;
  for (const auto& term : o.costs.terms)
    if (term.seconds != o.fitted.of(term.name)) j["given, not fitted, ns"][term.name] = term.seconds * 1e9;
  j["mean_error"] = o.fitted.mean_error;
  j["largest_error"] = o.fitted.largest_error;
  j["extrapolated"] = {
      {"note", o.weak.empty() && o.strong.empty()
                   ? "nothing to extrapolate from: that takes messages between ranks with a core each"
                   : "EXTRAPOLATED, not measured: no contention, no imbalance, no noise of a large machine"},
      {"residual_every", options.residual_every},
      {"cores_that_share_memory", o.sharing},
      {"weak", json_of(o.weak, false)},
      {"strong", json_of(o.strong, true)},
      {"not_measured", o.missing}};
  print_report(MPI_COMM_SELF, options.json, j, true);
}

void plot_scaling(const std::vector<ScalingPoint>& points, const Outlook& o, const std::string& directory) {
  std::filesystem::create_directories(directory);
  write_plot(directory, "weak", o.weak, points);
  write_plot(directory, "strong", o.strong, points);
}

}  // namespace isohalo
