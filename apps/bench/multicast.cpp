/// `isohalo bench multicast`: one rank sends to k others; the parameters of the cost model from that. Ruefenacht,
/// Bull, Booth 2017, section 5.1: Fig. 8 (times over k, blocking and non-blocking sends) and Table 1.
///
/// All cases are taken in rounds, in random order. The fits use minima and medians as the paper does.

#include "framework/reduce/multicast.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "apps/bench/benchmarks.hpp"
#include "apps/bench/plot.hpp"
#include "apps/bench/statistics.hpp"
#include "apps/bench/timing.hpp"
#include "apps/common/report.hpp"
#include "framework/mpi/agreement.hpp"
#include "framework/mpi/whole_file.hpp"

namespace isohalo {

namespace {

using Statistic = double (*)(std::vector<double>);

constexpr int kFittedMessages = 8;  // as in the paper

double least(std::vector<double> v) {
  return *std::min_element(v.begin(), v.end());
}

std::vector<MulticastTimes> cases_to_time(int ranks) {
  std::vector<MulticastTimes> cases;
  const int most = std::clamp(ranks - 1, kFittedMessages, 16);
  for (const bool blocking : {false, true}) {
    for (int k = 1; k <= most; ++k) cases.push_back({{k, 8, blocking}});
    for (const std::int64_t bytes : {64, 512, 4096, 32768})
      for (const int k : {1, 2, 4, 8}) cases.push_back({{k, bytes, blocking}});
  }
  return cases;
}

/// The parameters of the model.
Json fit(const std::vector<MulticastTimes>& cases, bool blocking, Statistic statistic) {
  std::vector<MulticastPoint> points;
  for (const auto& c : cases)
    if (c.multicast.blocking == blocking && c.multicast.messages <= kFittedMessages)
      points.push_back(
          {static_cast<double>(c.multicast.messages), static_cast<double>(c.multicast.bytes), statistic(c.ns)});
  const MessageCosts costs = fit_costs(points);
  return {
      {"alpha_p_ns", costs.latency_ns}, {"alpha_r_ns", costs.pipeline_ns}, {"beta_ns_per_byte", costs.per_byte_ns}};
}

Json rows(const std::vector<MulticastTimes>& cases) {
  Json list = Json::array();
  for (const auto& c : cases) {
    const Sample s = summarize(c.ns);
    list.push_back({{"messages", c.multicast.messages},
                    {"bytes", c.multicast.bytes},
                    {"sends", c.multicast.blocking ? "blocking" : "non-blocking"},
                    {"samples", s.taken},
                    {"kept", s.kept},
                    {"minimum_us", least(c.ns) * 1e-3},
                    {"median_us", s.median * 1e-3},
                    {"mean_us", s.mean * 1e-3},
                    {"ci95_us", s.ci95 * 1e-3}});
  }
  return list;
}

void write_plots(const std::vector<MulticastTimes>& cases, const std::string& directory) {
  std::filesystem::create_directories(directory);
  Plot over_messages{"multicast of 8 bytes (Fig. 8)", "messages", "time [us], mean and 95 % interval", {}},
      over_bytes{"multicast by size", "bytes of a message", "time [us], mean and 95 % interval", {}};
  const auto add = [](Plot& plot, const std::string& name, double x, const MulticastTimes& c) {
    const Sample s = summarize(c.ns);
    plot.line(name).points.push_back({x, s.mean * 1e-3, s.ci95 * 1e-3});
  };
  for (const auto& c : cases) {
    const auto& [messages, bytes, blocking] = c.multicast;
    const std::string sends = blocking ? "blocking" : "non-blocking";
    if (bytes == 8) add(over_messages, sends, messages, c);
    if (messages == 1 || messages == 8)
      add(over_bytes, fmt::format("{} of {}", messages, sends), static_cast<double>(bytes), c);
  }
  for (const auto& [name, plot] :
       {std::pair("multicast_messages.svg", &over_messages), std::pair("multicast_bytes.svg", &over_bytes)})
    write_whole(directory + "/" + name, to_svg(*plot));
}

}  // namespace

ExitCode bench_multicast(MPI_Comm user, const BenchMulticastOptions& options) {
  const Communicator comm = Communicator::of(user);
  std::vector<int> ranks;
  for (int r = 0; r < comm.size(); ++r) ranks.push_back(r);
  std::vector<MulticastTimes> cases = cases_to_time(comm.size());
  time_multicasts(comm, ranks, {.samples = options.samples, .seconds = options.seconds}, cases);
  Json json = report_of("multicast");
  json["ranks"] = comm.size();
  json["times"] = rows(cases);
  for (const auto& [name, blocking, statistic] : {std::tuple("non-blocking, minimum", false, &least),
                                                  {"non-blocking, median", false, &median},
                                                  {"blocking, minimum", true, &least},
                                                  {"blocking, median", true, &median}})
    json["fits"][name] = fit(cases, blocking, statistic);
  json["paper"] = {{"minimum", {{"alpha_p_us", 1.34}, {"alpha_r_us", 0.34}}},
                   {"median", {{"alpha_p_us", 1.51}, {"alpha_r_us", 0.38}}}};
  agreed(comm, [&] {
    if (comm.rank() == 0 && !options.plot_directory.empty()) write_plots(cases, options.plot_directory);
  });
  return print_report(user, options.json, json, true);
}

}  // namespace isohalo
