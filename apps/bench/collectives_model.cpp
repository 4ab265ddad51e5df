/// `isohalo bench collectives --model`: what algorithms of a compute node should cost, beside what they do, and on
/// machines that are larger than this one.

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "apps/bench/benchmarks.hpp"
#include "apps/bench/plot.hpp"
#include "apps/bench/steps_plot.hpp"
#include "apps/bench/timing.hpp"
#include "apps/bench/workloads.hpp"
#include "framework/mpi/whole_file.hpp"
#include "framework/shm/collectives.hpp"

namespace isohalo {

namespace {

using Kind = NodeAlgorithm::Kind;

constexpr const char* kAllreduces = "14 allreduce algorithms";

/// A collective by one algorithm, and the figures of the paper that show it.
struct Variant {
  std::string collective, name;
  NodeSchedule schedule;
  std::vector<std::string> figures;
  bool chosen_from = true;  ///< not only there to be compared with
};

std::vector<Variant> variants_of(const Hierarchy& h) {
  std::vector<Variant> all;
  for (const NodeAlgorithm& a : broadcast_algorithms(h)) {
    const std::string name = a.kind == Kind::tree ? a.text()
                             : a.two_stages       ? "two stages" + a.text().substr(6)
                                                  : "one stage";
    all.push_back({"broadcast", name, broadcast_schedule(a, h, 0), {"10-11 broadcast trees"}});
  }
  for (const int arity : {2, 3, 4, 8}) {
    if (arity > 2 && arity >= h.ranks()) continue;
    const NodeAlgorithm a{.kind = Kind::tree, .arity = arity};
    all.push_back({"reduce", a.text(), reduction_schedule(a, h, 0), {"12 reduction trees"}, arity == 2});
  }
  for (const NodeAlgorithm& a : reduction_algorithms(h, -1)) {
    std::vector<std::string> figures{kAllreduces};
    if (a.kind == Kind::tiled) figures.push_back("13 tiled reductions");
    if (a.kind == Kind::tiled || a.kind == Kind::tree) figures.push_back("18-19 model and measurement");
    all.push_back({"allreduce", a.text(), reduction_schedule(a, h, -1), figures});
  }
  all.push_back(
      {"allreduce", "cyclic", reduction_schedule({.kind = Kind::cyclic}, h, -1), {"13 tiled reductions"}, false});
  return all;
}

/// Microseconds on rank 0 of what `run(times)` does so often, in an unsynchronised loop.
double measured_us(const Communicator& comm, int repeats, const std::function<void(int)>& run) {
  const auto seconds = [&](int times) { return looped_calls(comm, 1, [&] { run(times); }) / times; };
  const int times = calls_in(comm, 0.002, seconds(3), 3000);
  return 1e6 * median_of(repeats, [&] { return seconds(times); });
}

class PaperFigures {
 public:
  void add_mpi(std::size_t bytes, double measured) { point(kAllreduces, "MPI_Allreduce", bytes, measured); }
  void add(const Variant& v, std::size_t bytes, double measured, double predicted) {
    for (const auto& f : v.figures) {
      point(f, v.name, bytes, measured);
      if (f.starts_with("18")) point(f, v.name + ", model", bytes, predicted);
    }
  }
  /// Reduces against OpenMP's, as `bench workloads` reports them.
  void add_openmp(const Json& report) {
    for (const Json& size : report["cases"])
      for (const auto& [key, name] :
           {std::pair("isohalo_us", "reduce"), {"mpi_us", "MPI_Reduce"}, {"openmp_us", "OpenMP"}})
        if (size.contains(key)) point("20 reduce and OpenMP", name, size["bytes"], size[key]);
  }
  void write(const std::string& directory) const {
    std::filesystem::create_directories(directory);
    for (const Plot& p : plots_)
      write_whole(directory + "/figure_" + p.title.substr(0, p.title.find(' ')) + ".svg", to_svg(p));
  }

 private:
  void point(const std::string& figure, const std::string& name, std::size_t bytes, double us) {
    Plot& plot = plot_of(plots_, {figure, "bytes", "time [us]", {}});
    plot.line(name).points.push_back({static_cast<double>(bytes), us, 0});
  }
  std::vector<Plot> plots_;
};

// --- machines that are not here

struct Machine {
  std::string hierarchy, name;
  double near_shared, far_shared;  ///< chosen, such that tree and tiled cost the same where the paper measured it,
                                   ///< and that as many stages of a broadcast are best
};
const Machine kMachines[] = {{"2x6", "2 sockets of 6 cores", 3.5, 3.213},
                             {"4x8", "4 sockets of 8 cores", 1.5, 6.7266},
                             {"8x4x8", "8 nodes of 4 x 8", 1.5, 6.7266},
                             {"16x2x6", "16 nodes of 2 x 6", 3.5, 3.213}};

/// Threads with one heap: latencies of section 3.4; in a socket 4 ns a line for one reader and `near_shared` for
/// each of several, 6 and `far_shared` over a link, 1500 ns, 20 and 20 over the network.
NodeCosts node_costs_of(const Machine& m) {
  return {.reach = {{0, 1.2, 0}, {24.5, 4, m.near_shared}, {99.2, 6, m.far_shared}, {1500, 20, 20}},
          .copies_in = false};
}

/// The steps of the tree, on this machine and on the paper's 2 x 6 cores, for a cache line there with the latencies
/// of its section 3.4 (Figure 16).
void draw_steps(const std::string& directory, const Hierarchy& here, const NodeCosts& costs) {
  std::filesystem::create_directories(directory);
  const auto draw = [&](const std::string& file, const Hierarchy& h, const NodeCosts& c) {
    write_whole(directory + "/" + file, to_svg(reduction_schedule({.kind = Kind::tree}, h, -1), h, c,
                                               "16 steps of the tree on " + h.text(), kLineBytes));
  };
  draw("figure_16.svg", here, costs);
  const NodeCosts paper{.reach = {{0, 1.2, 0}, {0, 28.5, 0}, {0, 105.2, 0}}, .copies_in = false};
  draw("figure_16_2x6.svg", Hierarchy::of_text("2x6", 12), paper);
}

constexpr int kMostSimulated = 1024;

int ranks_of(const std::string& hierarchy) {
  double ranks = 1;
  std::istringstream numbers(hierarchy);
  for (std::string n; std::getline(numbers, n, 'x');) ranks *= std::max(1, std::atoi(n.c_str()));
  return static_cast<int>(std::min(ranks, kMostSimulated + 1.0));
}

Json simulate_machines(std::span<const Machine> machines) {
  Json all;
  for (const Machine& m : machines) {
    const auto h = Hierarchy::of_text(m.hierarchy, ranks_of(m.hierarchy));
    const int sockets = h.levels() - 1, top = std::min(1, sockets);
    const std::pair<const char*, NodeAlgorithm> algorithms[] = {
        {"tree, one stage", {.kind = Kind::tree}},
        {"tree, two stages", {.kind = Kind::tree, .level = top, .two_stages = true}},
        {"dissemination", {.kind = Kind::dissemination}},
        {"tiled, naive", {.kind = Kind::tiled}},
        {"tiled, hierarchical", {.kind = Kind::tiled, .level = sockets}},
        {"tiled, two stages", {.kind = Kind::tiled, .level = sockets, .two_stages = true}}};
    for (const auto& [name, a] : algorithms) {
      const auto schedule = reduction_schedule(a, h, -1);
      Json row{{"algorithm", name}};
      for (const std::size_t bytes : {64, 512, 4096, 16384, 65536, 1 << 20})
        row["us"][std::to_string(bytes)] =
            schedule_ns(schedule, h, node_costs_of(m), static_cast<double>(bytes)) / 1e3;
      all[fmt::format("{} ({}), simulated", m.name, m.hierarchy)].push_back(row);
    }
  }
  return all;
}

}  // namespace

ExitCode bench_collectives_model(MPI_Comm user, const BenchCollectivesOptions& options) {
  const Communicator comm = Communicator::of(user);
  std::string here;  // the hierarchy of these ranks, if it is given
  // Of other ranks than there are: a machine that is not here.
  std::vector<Machine> machines(std::begin(kMachines), std::end(kMachines));
  const int given = options.hierarchy.empty() ? comm.size() : ranks_of(options.hierarchy);
  if (given > kMostSimulated)
    throw UsageError(fmt::format("bench collectives: {} are more than the {} ranks that are simulated",
                                 options.hierarchy, kMostSimulated));
  if (given != comm.size())
    machines = {{Hierarchy::of_text(options.hierarchy, given).text(), fmt::format("{} ranks", given), 1.5, 6.7266}};
  else if (!options.hierarchy.empty())
    here = options.hierarchy;
  const auto node = node_collectives(comm, "bench collectives", here);
  const Hierarchy& h = node->hierarchy();
  const NodeCosts costs = node->measure();
  Json json = report_of("collectives model");
  json.update({{"hierarchy", h.text()}, {"cases", Json::array()}});
  for (const ReachCosts& c : costs.reach)
    json["costs"].push_back(
        {{"latency_ns", c.latency_ns}, {"line_ns", c.line_ns}, {"shared_line_ns", c.shared_line_ns}});
  PaperFigures figures;
  const auto variants = variants_of(h);
  const auto sum = *Combine::of(MPI_DOUBLE, MPI_SUM);
  for (std::size_t bytes = 8; bytes <= std::min(options.largest, NodeCollectives::kSlotData); bytes *= 4) {
    std::vector<std::byte> mine(bytes), result(bytes);
    figures.add_mpi(bytes, measured_us(comm, options.repeats, [&](int times) {
                      for (int k = 0; k < times; ++k)
                        MPI_Allreduce(mine.data(), result.data(), static_cast<int>(bytes / 8), MPI_DOUBLE, MPI_SUM,
                                      comm.get());
                    }));
    for (const char* collective : {"broadcast", "reduce", "allreduce"}) {
      std::string best, fastest;
      double least = 1e300, shortest = 1e300, of_best = 0;
      for (const Variant& v : variants) {
        if (v.collective != collective) continue;
        const double predicted = schedule_ns(v.schedule, h, costs, static_cast<double>(bytes)) / 1e3;
        const double measured = measured_us(comm, options.repeats, [&](int times) {
          node->run(v.schedule, times, mine.data(), result.data(), bytes / 8, &sum);
        });
        figures.add(v, bytes, measured, predicted);
        json["cases"].push_back({{"collective", v.collective},
                                 {"algorithm", v.name},
                                 {"bytes", bytes},
                                 {"predicted_us", predicted},
                                 {"measured_us", measured}});
        if (v.chosen_from && predicted < least) best = v.name, least = predicted, of_best = measured;
        if (v.chosen_from && measured < shortest) fastest = v.name, shortest = measured;
      }
      json["chosen"].push_back({{"collective", collective},
                                {"bytes", bytes},
                                {"chosen", best},
                                {"fastest", fastest},
                                {"over_fastest", of_best / shortest}});
    }
  }
  if (comm.rank() == 0) json["simulated"] = simulate_machines(machines);
  print_report(user, options.json, json, true);
  if (options.plot_directory.empty()) return ExitCode::fine;
  WorkloadSides sides{comm, {comm.get(), node.get()}, {comm.get(), nullptr}, options.repeats};
  BenchWorkloadsOptions reduces;
  reduces.largest = options.largest;
  const Json openmp = run_openmp_reduce(sides, reduces);
  figures.add_openmp(openmp);
  if (comm.rank() == 0) {
    figures.write(options.plot_directory);
    draw_steps(options.plot_directory, h, costs);
  }
  return openmp["right"] ? ExitCode::fine : ExitCode::different;
}

}  // namespace isohalo
