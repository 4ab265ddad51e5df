#include "apps/bench/experiment.hpp"

#include <algorithm>
#include <filesystem>
#include <random>

#include "apps/bench/plot.hpp"
#include "apps/bench/statistics.hpp"
#include "apps/bench/timing.hpp"
#include "datatypes/error.hpp"
#include "framework/mpi/whole_file.hpp"

namespace isohalo {

namespace {

std::string label_of(const Experiment& e) {
  return e.x == 0 ? "" : e.axis == "ranks" ? "ranks" : "block size [bytes]";
}

}  // namespace

void run_experiments(const Communicator& comm, std::vector<Experiment>& experiments, int samples,
                     double seconds_each) {
  std::vector<std::size_t> order;
  for (std::size_t k = 0; k < experiments.size(); ++k) {
    Experiment& e = experiments[k];
    if (e.right) e.correct = comm.min(e.right() ? 1 : 0) == 1;
    if (!e.correct) continue;
    const double once = timed(comm, e.run);
    e.batch = static_cast<int>(std::clamp(seconds_each / samples / std::max(once, 1e-7), 1.0, 200.0));
    const int takes =
        static_cast<int>(std::clamp(seconds_each / std::max(once * e.batch, 1e-7), 5.0, 1.0 * samples));
    order.insert(order.end(), static_cast<std::size_t>(takes), k);
  }
  std::shuffle(order.begin(), order.end(), std::mt19937(2015));  // the same on all ranks
  for (std::size_t k : order) {
    Experiment& e = experiments[k];
    e.run();  // warm again after another experiment
    e.samples.push_back(timed_calls(comm, e.batch, e.run));
  }
}

double ratio_of(const std::vector<Experiment>& all, const std::string& figure, std::int64_t x, const std::string& a,
                const std::string& b) {
  double of_a = -1, of_b = -1;
  for (const auto& e : all) {
    if (e.figure.rfind(figure, 0) != 0 || e.x != x || e.samples.empty()) continue;
    if (e.method == a) of_a = median(e.samples);
    if (e.method == b) of_b = median(e.samples);
  }
  return of_a < 0 || of_b < 0 ? -1 : of_a / of_b;
}

Json json_of(const Experiment& e) {
  const Sample s = summarize(e.samples);
  Json j = {{"figure", e.figure}, {"method", e.method}, {e.axis, e.x}};
  if (e.correct)
    j.update({{"samples", s.taken},
              {"kept", s.kept},
              {"batch", e.batch},
              {"mean_us", s.mean * 1e6},
              {"ci95_us", s.ci95 * 1e6},
              {"median_us", s.median * 1e6}});
  else
    j["wrong_result"] = true;
  return j;
}

void write_plots(const std::vector<Experiment>& all, const std::string& directory) {
  std::filesystem::create_directories(directory);
  std::vector<Plot> plots;
  for (const auto& e : all) {
    if (e.samples.empty()) continue;
    Plot& plot = plot_of(plots, {e.figure, label_of(e), "time [us], mean and 95 % interval", {}});
    const Sample s = summarize(e.samples);
    plot.line(e.method).points.push_back({static_cast<double>(e.x), s.mean * 1e6, s.ci95 * 1e6});
  }
  for (const auto& p : plots) {
    const std::string name = directory + "/" + p.title.substr(0, p.title.find(' ')) + ".svg";
    write_whole(name, to_svg(p));
  }
}

}  // namespace isohalo
