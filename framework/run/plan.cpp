#include "framework/run/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "datatypes/error.hpp"
#include "framework/halo/halo_schedule.hpp"
#include "framework/halo/host_threads.hpp"
#include "framework/run/words.hpp"

namespace isohalo {

namespace {

/// Ranks whose halos are looked at one by one; of more only typical ones are: first, second, middle and last of
/// each dimension.
constexpr int kAllRanks = 2048;

/// Most images of the grid in its own ghosts: so many take some seconds to plan, and the time grows with their
/// square.
constexpr double kMostImages = 1 << 17;

/// What one rank receives in an exchange, by the number of dimensions in which it lies beside the block: face,
/// edge, corner.
struct HaloLoad {
  std::int64_t messages = 0;            ///< with all arrays in each
  std::int64_t messages_apart = 0;      ///< each array in messages of its own
  std::int64_t cells[3] = {0, 0, 0};    ///< of the array that gets most
  std::int64_t regions[3] = {0, 0, 0};  ///< of other ranks, of the array that has most
  std::int64_t values[3] = {0, 0, 0};   ///< of all arrays
  std::int64_t total() const { return values[0] + values[1] + values[2]; }
};

/// Adds what `count` arrays receive by this schedule, but for the messages of all arrays.
template <int D>
void add_received(HaloLoad& load, const HaloSchedule<D>& schedule, const Box<D>& block, int count) {
  std::int64_t cells[3] = {0, 0, 0}, regions[3] = {0, 0, 0};
  for (const auto& stage : schedule)
    for (const auto& message : stage.receive) {
      load.messages_apart += count;
      for (const auto& [region, owner, shift, number] : message.regions) {
        int beside = 0;
        for (int j = 0; j < D; ++j)
          beside += region.box.high[j] <= block.low[j] || region.box.low[j] >= block.high[j];
        const std::size_t kind = beside == 1 ? 0 : beside == D ? 2 : 1;
        cells[kind] += region.cells();
        ++regions[kind];
      }
    }
  for (int k = 0; k < 3; ++k) {
    load.cells[k] = std::max(load.cells[k], cells[k]);
    load.regions[k] = std::max(load.regions[k], regions[k]);
    load.values[k] += count * cells[k];
  }
}

template <int D>
HaloLoad halo_load(HaloPattern pattern, const Decomposition<D>& blocks, const BoundaryTopology<D>& around,
                   const ExchangeLoad<D>& exchange, const PerDim<int, D>& coords) {
  HaloLoad load;
  std::vector<HaloSchedule<D>> schedules;
  for (const auto& [need, count] : exchange.arrays) {
    schedules.push_back(halo_receives<D>(pattern, {blocks, need.shape, need.depth, around}, coords));
    add_received<D>(load, schedules.back(), blocks.box(coords), count);
  }
  for (std::size_t k = 0; k < schedules.front().size(); ++k)
    load.messages += static_cast<std::int64_t>(joined<D>(schedules, k, &HaloStage<D>::receive).size());
  return load;
}

template <int D>
std::vector<PerDim<int, D>> looked_at(const Decomposition<D>& blocks) {
  std::vector<PerDim<int, D>> list;
  for (int r = 0; r < blocks.ranks() && blocks.ranks() <= kAllRanks; ++r) list.push_back(blocks.coordinates(r));
  if (!list.empty()) return list;
  PerDim<std::vector<int>, D> typical;
  Box<D> choices;
  for (int j = 0; j < D; ++j) {
    const int n = blocks.blocks(j);
    const std::set<int> some{0, std::min(1, n - 1), n / 2, n - 1};
    typical[j].assign(some.begin(), some.end());
    choices.high[j] = static_cast<std::int64_t>(some.size());
  }
  for_each_cell(choices, [&](const Index<D>& i) {
    PerDim<int, D> c;
    for (int j = 0; j < D; ++j) c[j] = typical[j][static_cast<std::size_t>(i[j])];
    list.push_back(c);
  });
  return list;
}

std::string bytes_text(double bytes) {
  const char* const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  int k = 0;
  while (bytes >= 1024 && k < 5) bytes /= 1024, ++k;
  return k == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.1f} {}", bytes, units[k]);
}

/// A sentence about a rank count near `ranks` that fits the grid better; empty when there is none.
template <int D>
std::string better_count(const Index<D>& shape, double tolerance, int ranks) {
  const auto at = [&](int n) -> std::optional<Decomposition<D>> {
    try {
      return Decomposition<D>(shape, choose_process_grid<D>(shape, n), tolerance);
    } catch (const UsageError&) {
      return std::nullopt;
    }
  };
  const auto cells = [](const Decomposition<D>& blocks) { return box_of_shape<D>(blocks.largest()).cells(); };
  const auto cost = [&](const Decomposition<D>& blocks) { return step_cost<D>(shape, blocks.grid()); };
  const Decomposition<D> here = at(ranks).value();
  const int near = std::min(std::max(1, ranks / 4), 64);
  int fewest = ranks;
  for (int n = ranks - 1; n >= std::max(1, ranks - near); --n)
    if (const auto other = at(n); other && cells(*other) <= cells(here) && cost(*other) <= cost(here)) fewest = n;
  if (fewest < ranks)
    return counted(fewest, "rank") + " would be as fast: neither the largest block nor its halo is larger";
  for (int n = ranks + 1; n <= ranks + near; ++n)
    if (const auto other = at(n); other && other->imbalance() + 0.05 < here.imbalance())
      return fmt::format("{} ranks would be used better: imbalance {:.3f}", n, other->imbalance());
  return "";
}

double cell_bytes(ElementType type) {
  return type == ElementType::float64 ? 8 : type == ElementType::float32 ? 4 : 1;
}

}  // namespace

template <int D>
BoundaryTopology<D> checked_topology(const Input<D>& in) {
  const auto around = in.grid.topology();
  refuse_reach_beyond_grid(in.model->shape(), around);
  refuse_unfit_exchange(in.parallel.exchange, in.model->shape());
  const int depth = std::min(in.parallel.halo_depth.value_or(1), in.model->deepest());
  for (const auto& [need, count] : in.model->exchange_load(depth).arrays)
    if (!fits(in.parallel.exchange, need.shape))
      throw UsageError(fmt::format(
          "parallel.exchange = \"{}\": with one step per exchange a field of this solver travels by a list of "
          "offsets without a name, which slabs may miss: use \"coalesced\", \"auto\" or a larger "
          "parallel.halo_depth",
          exchange_name(in.parallel.exchange)));
  if (!in.parallel.halo_depth) return around;
  const auto images = [&](int steps) {
    return grid_images(in.model->shape(), in.model->exchange_load(steps).arrays.front().need.depth, around);
  };
  if (images(depth) > kMostImages)
    throw UsageError(
        fmt::format("parallel.halo_depth = {}: the ghosts would hold the grid some {:.1g} times; use {} at most",
                    depth, images(depth), std::max(1, largest_depth(images, depth, kMostImages))));
  return around;
}

template <int D>
std::vector<PatternTraffic> traffic_by_pattern(const Input<D>& in, int ranks) {
  const Decomposition<D> blocks = decompose<D>(in.grid.shape, in.domain_options(), ranks);
  const BoundaryTopology<D> around = checked_topology(in);
  const ExchangeLoad<D> load = in.model->exchange_load(in.depths(blocks).front());
  std::vector<HaloGeometry<D>> geometries;
  std::vector<double> bytes;
  bool slabs = slabs_possible(in.model->shape());
  for (const auto& [need, count] : load.arrays) {
    geometries.push_back({blocks, need.shape, need.depth, around});
    bytes.push_back(cell_bytes(in.grid.type) * count);
    slabs = slabs && slabs_possible(need.shape);
  }
  std::vector<PatternTraffic> list;
  for (const auto& [pattern, name] : {std::pair(HaloPattern::direct, "direct"),
                                      {HaloPattern::coalesced, "coalesced"},
                                      {HaloPattern::slabs, "slabs"}})
    if (pattern != HaloPattern::slabs || slabs) list.push_back({name, halo_traffic<D>(pattern, geometries, bytes)});
  return list;
}

template <int D>
std::string time_text(const Input<D>& in) {
  const double dt = in.model->dt();
  return dt > 0 ? fmt::format("dt = {:.6g}, t = {:.6g} after {}", dt, static_cast<double>(in.run.steps) * dt,
                              counted(in.run.steps, "step"))
                : "";
}

template <int D>
std::string plan_text(const Input<D>& in, int ranks) {
  const Decomposition<D> blocks = decompose<D>(in.grid.shape, in.domain_options(), ranks);
  const BoundaryTopology<D> around = checked_topology(in);
  const std::vector<int> depths = in.depths(blocks);
  const int depth = depths.front();
  const ExchangeLoad<D> exchange = in.model->exchange_load(depth);
  int arrays = 0;
  for (const auto& a : exchange.arrays) arrays += a.count;
  HaloLoad most;
  for (const auto& coords : looked_at(blocks)) {
    const HaloLoad load = halo_load<D>(in.parallel.exchange.pattern, blocks, around, exchange, coords);
    if (load.total() > most.total()) most = load;
  }
  const Index<D> largest = blocks.largest(), smallest = blocks.smallest();
  const double value = cell_bytes(in.grid.type), received = static_cast<double>(most.total()) * value;
  // Types send an array where it lies, one after the other; else all are packed, as many bytes again to be sent.
  const bool in_place = in.parallel.exchange.fill == HaloFill::datatypes;
  const std::int64_t messages = in_place ? most.messages_apart : most.messages;
  const double memory = in.memory(largest, depths.back()) + (in_place ? 0 : 2 * received);
  const int threads = Kokkos::is_initialized() ? host_threads() : 1;
  std::string s =
      fmt::format("ranks             {}{}, process grid {}\n", ranks,
                  threads > 1 ? fmt::format(" x {} threads", threads) : "", fmt::join(blocks.grid(), " x "));
  s += fmt::format("blocks            {} cells at most, {} at least, imbalance {:.3f}\n", shape_string<D>(largest),
                   shape_string<D>(smallest), blocks.imbalance());
  s += fmt::format("halo depth        {} steps per exchange{}\n", fmt::join(depths, " or "),
                   depths.size() > 1 ? ", the fastest of the first steps" : "");
  const char* const kinds[3] = {"faces", "edges", "corners"};
  const double per_step = static_cast<double>(exchange.times) / depth;
  s +=
      fmt::format("halo exchange     {}the busiest rank receives {} messages, {}{}; per step {:.3g} messages, {}\n",
                  depths.size() > 1 ? fmt::format("of {}: ", depth) : "", messages, bytes_text(received),
                  arrays > 1 ? fmt::format(" of {} fields", arrays) : "", static_cast<double>(messages) * per_step,
                  bytes_text(received * per_step));
  for (int k = 0; k < 3; ++k)
    if (most.regions[k])
      s += fmt::format("  {:15} {} regions, {} cells, {}\n", kinds[k], most.regions[k], most.cells[k],
                       bytes_text(static_cast<double>(most.values[k]) * value));
  s += fmt::format("memory            {} per rank at most, {} in all\n", bytes_text(memory),
                   bytes_text(memory * ranks));
  s += fmt::format(
      "checkpoint        {}\n",
      bytes_text(static_cast<double>(blocks.global().cells()) * value * in.model->stored_fields() + 8192));
  if (const std::string time = time_text(in); !time.empty()) s += "time              " + time + "\n";
  if (!in.parallel.process_grid)
    if (const std::string better = better_count<D>(in.grid.shape, in.parallel.alignment_tolerance, ranks);
        !better.empty())
      s += "better            " + better + "\n";
  return s;
}

#define ISOHALO_INSTANTIATE(D)                                                      \
  template BoundaryTopology<D> checked_topology<D>(const Input<D>&);                \
  template std::vector<PatternTraffic> traffic_by_pattern<D>(const Input<D>&, int); \
  template std::string time_text<D>(const Input<D>&);                               \
  template std::string plan_text<D>(const Input<D>&, int);
ISOHALO_FOR_EACH_DIMENSION(ISOHALO_INSTANTIATE)
#undef ISOHALO_INSTANTIATE

}  // namespace isohalo
