#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "apps/bench/plot.hpp"
#include "apps/bench/report.hpp"
#include "apps/bench/scaling.hpp"
#include "framework/mpi/whole_file.hpp"
#include "framework/run/machine.hpp"

namespace isohalo {

namespace {

Json json_of(const ScalingPoint& p) {
  return {{"kind", p.kind},       {"shape", p.cut.shape}, {"blocks", p.cut.blocks}, {"threads", p.threads},
          {"sharing", p.sharing}, {"cores", p.cores},     {"residual", p.residual}, {"seconds", p.seconds}};
}

double efficiency(const std::vector<Parts>& all, std::size_t k, bool is_strong) {
  const double more = static_cast<double>(all[k].cut.ranks()) / all[0].cut.ranks();
  return all[0].total() / (is_strong ? more : 1) / all[k].total();
}

Json json_of(const std::vector<Parts>& all, bool is_strong) {
  Json list = Json::array();
  for (std::size_t k = 0; k < all.size(); ++k) {
    const Parts& p = all[k];
    list.push_back({{"ranks", p.cut.ranks()},
                    {"shape", p.cut.shape},
                    {"compute_us", p.compute * 1e6},
                    {"step_us", p.step * 1e6},
                    {"messages_us", p.messages * 1e6},
                    {"bytes_us", p.bytes * 1e6},
                    {"residual_us", p.residual * 1e6},
                    {"sums_us", p.sum * 1e6},
                    {"total_us", p.total() * 1e6},
                    {"efficiency", efficiency(all, k, is_strong)}});
  }
  return list;
}

void print(const std::vector<Parts>& all, bool is_strong, const std::string& what) {
  fmt::print("\n{}\n{:>8} {:>18} {:>11} {:>8} {:>9} {:>9} {:>9} {:>9} {:>11} {:>10}\n", what, "ranks", "blocks",
             "compute us", "step", "messages", "bytes", "residual", "sums", "total us", "efficiency");
  for (std::size_t k = 0; k < all.size(); ++k) {
    const Parts& p = all[k];
    fmt::print("{:>8} {:>18} {:>11.1f} {:>8.2f} {:>9.2f} {:>9.2f} {:>9.2f} {:>9.2f} {:>11.1f} {:>10.2f}\n",
               p.cut.ranks(), shape_string<3>({p.cut.blocks[0], p.cut.blocks[1], p.cut.blocks[2]}), p.compute * 1e6,
               p.step * 1e6, p.messages * 1e6, p.bytes * 1e6, p.residual * 1e6, p.sum * 1e6, p.total() * 1e6,
               efficiency(all, k, is_strong));
  }
}

void print_points(const std::vector<ScalingPoint>& points, const StepCosts& costs) {
  fmt::print(
      "Measured: heat, 7 points, float64, insulated sides, one exchange a step\n{:>7} {:>5} {:>7} {:>15} {:>9} "
      "{:>18} {:>11} {:>11} {:>8}\n",
      "kind", "ranks", "threads", "cells", "residual", "swept from", "us per step", "by model", "error");
  for (const ScalingPoint& p : points) {
    const std::string model = p.fits()
                                  ? fmt::format("{:>11.2f} {:>7.1f}%", costs.seconds(amounts_of(p.work())) * 1e6,
                                                100 * (costs.seconds(amounts_of(p.work())) / p.seconds - 1))
                                  : "more ranks than cores: not fitted";
    fmt::print("{:>7} {:>5} {:>7} {:>15} {:>9} {:>18} {:>11.2f} {}\n", p.kind, p.cut.ranks(), p.threads,
               shape_string<3>(p.cut.shape), p.residual > 0 ? "each step" : "none", p.work().level, p.seconds * 1e6,
               model);
  }
}

void write_plot(const std::string& directory, const std::string& kind, const std::vector<Parts>& all,
                const std::vector<ScalingPoint>& points) {
  Plot plot{
      kind + " scaling: measured up to a few ranks, the rest extrapolated", "ranks", "time of a step [us]", {}};
  const auto series = [&](const std::string& name, double Parts::*part) {
    PlotSeries& s = plot.line(name + ", extrapolated");
    for (const Parts& p : all)
      s.points.push_back({static_cast<double>(p.cut.ranks()), (part ? p.*part : p.total()) * 1e6, 0});
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
  fmt::print("{}\n", machine_text());
  print_points(points, o.fitted);
  fmt::print(
      "\nFitted: time of a step = sum of amount x cost; relative errors {:.1f} % in the mean (root mean square), "
      "{:.1f} % at most\n",
      100 * o.fitted.mean_error, 100 * o.fitted.largest_error);
  for (const auto& term : o.fitted.terms) {
    std::string rate;
    if (term.seconds > 0 && term.name.starts_with("cell"))
      rate = fmt::format("  ({:.0f} M/s)", 1e-6 / term.seconds);
    if (term.seconds > 0 && term.name == "byte") rate = fmt::format("  ({:.1f} GB/s)", 1e-9 / term.seconds);
    fmt::print("  {:45} {:>12.4f} ns{}\n", term.name, term.seconds * 1e9, rate);
  }
  for (const auto& term : o.costs.terms)
    if (term.seconds != o.fitted.of(term.name))
      fmt::print("  {:45} {:>12.4f} ns  given, not fitted: for what is extrapolated\n", term.name,
                 term.seconds * 1e9);
  if (o.weak.empty() && o.strong.empty()) {
    fmt::print("\nNothing to extrapolate from: that takes messages between ranks with a core each.\n");
    return;
  }
  fmt::print(
      "\nEXTRAPOLATED, not measured: beyond the ranks above, with these costs on machines of {} cores, a residual "
      "every {} steps,\nall messages as {}; no contention, no imbalance, no noise of a large machine.\n",
      o.sharing, options.residual_every,
      options.latency_us > 0 || options.gb_per_s > 0 ? "given" : "between ranks of this machine");
  print(o.weak, false,
        fmt::format("Weak scaling, {} cells per rank",
                    shape_string<3>({options.weak_block, options.weak_block, options.weak_block})));
  print(o.strong, true,
        fmt::format("Strong scaling, {} cells in all",
                    shape_string<3>({options.strong_grid, options.strong_grid, options.strong_grid})));
  if (!o.missing.empty())
    fmt::print("\nRanks are left out for want of a cost that was not measured (--block, --grid): {}\n",
               fmt::join(o.missing, "; "));
}

void print_scaling_json(const std::vector<ScalingPoint>& points, const Outlook& o,
                        const BenchScalingOptions& options) {
  Json j = report_of("scaling");
  j["repeats"] = options.repeats;
  j["points"] = Json::array();
  for (const ScalingPoint& p : points) {
    Json one = json_of(p);
    one["ranks"] = p.cut.ranks();
    one["fitted"] = p.fits();
    if (p.fits()) one["by_model_seconds"] = o.fitted.seconds(amounts_of(p.work()));
    j["points"].push_back(one);
  }
  for (const auto& term : o.fitted.terms) j["costs_ns"][term.name] = term.seconds * 1e9;
  j["mean_error"] = o.fitted.mean_error;
  j["largest_error"] = o.fitted.largest_error;
  j["extrapolated"] = {{"residual_every", options.residual_every},
                       {"cores_that_share_memory", o.sharing},
                       {"weak", json_of(o.weak, false)},
                       {"strong", json_of(o.strong, true)},
                       {"not_measured", o.missing}};
  print_json(j);
}

void plot_scaling(const std::vector<ScalingPoint>& points, const Outlook& o, const std::string& directory) {
  std::filesystem::create_directories(directory);
  write_plot(directory, "weak", o.weak, points);
  write_plot(directory, "strong", o.strong, points);
}

}  // namespace isohalo
