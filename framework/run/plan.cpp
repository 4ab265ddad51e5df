#include "framework/run/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "datatypes/error.hpp"
#include "framework/halo/halo_schedule.hpp"

namespace isohalo {

namespace {

/// Ranks whose halos are looked at one by one; of more only typical ones are: first, second, middle and last of
/// each dimension.
constexpr int kAllRanks = 2048;

/// What one rank receives in an exchange, by the number of dimensions in which it lies beside the block.
struct HaloLoad {
  std::int64_t messages = 0;
  std::int64_t cells[3] = {0, 0, 0};    ///< face, edge, corner
  std::int64_t regions[3] = {0, 0, 0};  ///< of other ranks
  std::int64_t total() const { return cells[0] + cells[1] + cells[2]; }
};

template <int D>
HaloLoad halo_load(const Decomposition<D>& blocks, const PerDim<int, D>& coords, const StencilShape<D>& shape,
                   int depth, const BoundaryTopology<D>& around) {
  HaloLoad load;
  std::set<int> owners;
  const Box<D> block = blocks.box(coords);
  for (const auto& part : HaloGeometry<D>{blocks, shape, depth, around}.regions(coords)) {
    if (part.owner == coords) continue;  // copied in place
    int beside = 0;
    for (int j = 0; j < D; ++j)
      beside += part.region.box.high[j] <= block.low[j] || part.region.box.low[j] >= block.high[j];
    const std::size_t kind = beside == 1 ? 0 : beside == D ? 2 : 1;
    load.cells[kind] += part.region.cells();
    ++load.regions[kind];
    owners.insert(blocks.rank_at(part.owner));
  }
  load.messages = static_cast<std::int64_t>(owners.size());
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

template <int D>
std::int64_t largest_block(const Decomposition<D>& blocks) {
  std::int64_t n = 1;
  for (int j = 0; j < D; ++j) n *= blocks.largest_extent(j);
  return n;
}

std::string bytes_text(double bytes) {
  const char* const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  int k = 0;
  while (bytes >= 1024 && k < 5) bytes /= 1024, ++k;
  return k == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.1f} {}", bytes, units[k]);
}

std::string ranks_text(int n) {
  return n == 1 ? "1 rank" : fmt::format("{} ranks", n);
}

/// A sentence about a rank count near `ranks` that fits the grid better; empty when there is none.
template <int D>
std::string better_count(const Index<D>& shape, double tolerance, int ranks) {
  const auto at = [&](int n) { return Decomposition<D>(shape, choose_process_grid<D>(shape, n), tolerance); };
  const auto possible = [&](int n, Decomposition<D>& blocks) {
    try {
      blocks = at(n);
    } catch (const UsageError&) {
      return false;
    }
    return true;
  };
  const auto cost = [&](const Decomposition<D>& blocks) { return step_cost<D>(shape, blocks.grid()); };
  const Decomposition<D> here = at(ranks);
  Decomposition<D> other;
  const int near = std::min(std::max(1, ranks / 4), 64);
  int fewest = ranks;
  for (int n = ranks - 1; n >= std::max(1, ranks - near); --n)
    if (possible(n, other) && largest_block(other) <= largest_block(here) && cost(other) <= cost(here)) fewest = n;
  if (fewest < ranks)
    return ranks_text(fewest) + " would be as fast: neither the largest block nor its halo is larger";
  for (int n = ranks + 1; n <= ranks + near; ++n)
    if (possible(n, other) && other.imbalance() + 0.05 < here.imbalance())
      return fmt::format("{} ranks would be used better: imbalance {:.3f}", n, other.imbalance());
  return "";
}

/// How a run on so many ranks divides the grid, and what its exchanges bring.
template <int D>
struct PlannedHalo {
  std::string grid_text;
  Decomposition<D> blocks;
  int depth;
  BoundaryTopology<D> around;
};

template <int D>
PlannedHalo<D> planned_halo(const GridSettings<D>& grid, const ParallelSettings<D>& parallel,
                            const SolverModel<D>& model, int ranks) {
  const PerDim<int, D> process_grid =
      parallel.process_grid ? *parallel.process_grid : choose_process_grid<D>(grid.shape, ranks);
  int product = 1;
  std::string text;
  for (int n : process_grid) product *= n, text += (text.empty() ? "" : " x ") + std::to_string(n);
  if (product != ranks)
    throw UsageError(fmt::format("the process grid {} does not multiply to {}: use another, or \"auto\"", text,
                                 ranks_text(ranks)));
  const Decomposition<D> blocks(grid.shape, process_grid, parallel.alignment_tolerance);
  const int depth = std::min(parallel.halo_depth.value_or(1), model.deepest());
  const BoundaryTopology<D> around{blocks.global(), grid.boundary.periodic(), grid.boundary.mirror_low(),
                                   grid.boundary.mirror_high()};
  refuse_reach_beyond_grid(model.shape(), around);
  refuse_unfit_exchange(parallel.exchange, model.shape());
  return {text, blocks, depth, around};
}

double cell_bytes(ElementType type) {
  return type == ElementType::float64 ? 8 : type == ElementType::float32 ? 4 : 1;
}

}  // namespace

template <int D>
std::vector<HaloTraffic> halo_traffic(const GridSettings<D>& grid, const ParallelSettings<D>& parallel,
                                      const SolverModel<D>& model, int ranks) {
  const auto halo = planned_halo(grid, parallel, model, ranks);
  std::vector<HaloTraffic> list;
  for (const auto& [pattern, name] : {std::pair(HaloPattern::direct, "direct"),
                                      {HaloPattern::coalesced, "coalesced"},
                                      {HaloPattern::slabs, "slabs"}})
    if (pattern != HaloPattern::slabs || slabs_possible(model.shape()))
      list.push_back({name, halo_traffic<D>(pattern, {halo.blocks, model.shape(), halo.depth, halo.around},
                                            cell_bytes(grid.type))});
  return list;
}

template <int D>
std::string plan_text(const GridSettings<D>& grid, const ParallelSettings<D>& parallel, const SolverModel<D>& model,
                      int ranks) {
  const auto [text, blocks, depth, around] = planned_halo(grid, parallel, model, ranks);
  HaloLoad most;
  const auto list = looked_at(blocks);
  for (const auto& coords : list) {
    const HaloLoad load = halo_load(blocks, coords, model.shape(), depth, around);
    if (load.total() > most.total()) most = load;
  }
  Index<D> largest, smallest;
  for (int j = 0; j < D; ++j) largest[j] = blocks.largest_extent(j), smallest[j] = blocks.smallest_extent(j);
  const double cell = cell_bytes(grid.type);
  const double memory = model.memory(largest, depth);
  std::string s = fmt::format("ranks             {}, process grid {}\n", ranks, text);
  s += fmt::format("blocks            {} cells at most, {} at least, imbalance {:.3f}\n", shape_string<D>(largest),
                   shape_string<D>(smallest), blocks.imbalance());
  s += fmt::format("halo depth        {} steps per exchange\n", depth);
  const char* const kinds[3] = {"faces", "edges", "corners"};
  s += fmt::format("halo exchange     the busiest rank receives {} messages, {}; per step {:.3g} messages, {}\n",
                   most.messages, bytes_text(static_cast<double>(most.total()) * cell),
                   static_cast<double>(most.messages) / depth,
                   bytes_text(static_cast<double>(most.total()) * cell / depth));
  for (int k = 0; k < 3; ++k)
    if (most.regions[k])
      s += fmt::format("  {:15} {} regions, {} cells, {}\n", kinds[k], most.regions[k], most.cells[k],
                       bytes_text(static_cast<double>(most.cells[k]) * cell));
  s += fmt::format("memory            {} per rank at most, {} in all\n", bytes_text(memory),
                   bytes_text(memory * ranks));
  s += fmt::format("checkpoint        {}\n",
                   bytes_text(static_cast<double>(blocks.global().cells()) * cell * model.stored_fields() + 8192));
  if (!parallel.process_grid)
    if (const std::string better = better_count<D>(grid.shape, parallel.alignment_tolerance, ranks);
        !better.empty())
      s += "better            " + better + "\n";
  return s;
}

#define ISOHALO_INSTANTIATE(D)                                                                          \
  template std::vector<HaloTraffic> halo_traffic<D>(const GridSettings<D>&, const ParallelSettings<D>&, \
                                                    const SolverModel<D>&, int);                        \
  template std::string plan_text<D>(const GridSettings<D>&, const ParallelSettings<D>&, const SolverModel<D>&, int);
ISOHALO_FOR_EACH_DIMENSION(ISOHALO_INSTANTIATE)
#undef ISOHALO_INSTANTIATE

}  // namespace isohalo
