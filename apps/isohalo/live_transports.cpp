/// Every ghost of every transport on the live communicator: a value of its own in each owned cell, a sentinel in
/// each ghost, exchange, compare all cells.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <vector>

#include "apps/common/probe_field.hpp"
#include "apps/isohalo/live_check.hpp"
#include "datatypes/mix.hpp"
#include "framework/halo/halo_plan_access.hpp"

namespace isohalo {

namespace {

using detail::NeededCells;
using detail::ProbeField;
using detail::ProbeLayout;

constexpr int kRounds = 3;  // the channels in shared memory have two slots
constexpr std::size_t kMostGrids = 3;
constexpr int kAutomaticEvery = 10;  // it times all the others, about 20 ms each time

/// A few process grids, spread over all there are, from slabs in the last dimension to slabs in the first.
template <int D>
std::vector<PerDim<int, D>> some_grids(int ranks) {
  const auto all = all_process_grids<D>(index_of<D>(ranks), ranks);
  std::vector<PerDim<int, D>> some;
  const std::size_t n = std::min(all.size(), kMostGrids);
  for (std::size_t k = 0; k < n; ++k) some.push_back(all[n == 1 ? 0 : k * (all.size() - 1) / (n - 1)]);
  return some;
}

enum class Cut { uneven, one_cell };

/// Blocks of one cell but for the last, or of 3 and 4 cells.
template <int D>
PerDim<std::vector<std::int64_t>, D> cuts_of(const PerDim<int, D>& grid, Cut cut) {
  PerDim<std::vector<std::int64_t>, D> cuts;
  for (int j = 0; j < D; ++j) {
    std::int64_t at = 0;
    for (int c = 0; c < grid[j]; ++c) {
      cuts[j].push_back(at);
      at += cut == Cut::uneven ? 3 + (c + j) % 2 : c + 1 < grid[j] ? 1 : 2 + j;
    }
    cuts[j].push_back(at);
  }
  return cuts;
}

/// Now and then this rank is late.
class Delays {
 public:
  explicit Delays(int rank) : state_(static_cast<std::uint64_t>(rank) + 1) {}
  void maybe() {
    const std::uint64_t z = mix64(state_ += kGolden);
    if (z % 8 == 0) usleep(static_cast<useconds_t>(z / 8 % 200));
  }

 private:
  std::uint64_t state_;
};

template <int D>
struct Setting {
  CartesianDomain<D> domain;
  StencilShape<D> shape;
  std::array<int, 2> depths;  ///< of the two fields
  ProbeLayout layout;         ///< of the second
  std::string text;
};

template <class T, int D>
void check_field(LiveRow& row, const Setting<D>& s, const ProbeField<T, D>& field, const NeededCells<D>& needed,
                 const char* type, int round) {
  const Box<D> all = field.ref().allocated(), &owned = s.domain.owned();
  row.checked += all.cells();
  field.for_each_wrong(needed, [&](const Index<D>& i, const T& expected, const T& found) {
    --row.checked;
    row.check(false, [&] {
      const char* const kind = owned.contains(i) ? "owned cell" : needed(i) ? "ghost" : "unneeded ghost";
      return fmt::format("{}, exchange {}, rank {}, {} field: {} {} should be {:g}, found {:g}", s.text, round + 1,
                         s.domain.rank(), type, kind, to_string<D>(i), static_cast<double>(expected),
                         static_cast<double>(found));
    });
  });
}

/// One plan: three exchanges of two fields of different types, layouts and depths, begun and ended with delays.
template <int D>
void check_one(LiveRow& row, const Setting<D>& s, Exchange exchange, const std::array<NeededCells<D>, 2>& needed,
               bool broken, Delays& delays) {
  HaloOptions<D> options;
  options.exchange = exchange;
  HaloPlan<D> plan(s.domain, {{s.shape, s.depths[0]}, {s.shape, s.depths[1]}}, options);
  if (broken)
    detail::HaloPlanAccess::change<D>(plan, [](std::vector<HaloRegion<D>>& pieces) {
      if (!pieces.empty()) pieces.pop_back();
    });
  ProbeField<double, D> a(s.domain, plan, 0, ProbeLayout::plain);
  ProbeField<float, D> b(s.domain, plan, 1, s.layout, 1);
  for (int round = 0; round < kRounds; ++round) {
    a.refill(2 * round);
    b.refill(2 * round + 1);
    delays.maybe();
    plan.start(a.ref(), b.ref());
    delays.maybe();
    plan.finish();
    check_field(row, s, a, needed[0], "float64", round);
    check_field(row, s, b, needed[1], "float32", round);
  }
  ++row.cases;
}

template <int D>
std::string text_of(const CartesianDomain<D>& domain, Cut cut, const std::string& stencil,
                    const std::array<int, 2>& depths) {
  PerDim<bool, D> periodic = domain.periodic();
  std::string wraps;
  for (int j = 0; j < D; ++j) wraps += fmt::format("{}{}", wraps.empty() ? "" : ", ", periodic[j] ? "yes" : "no");
  Index<D> grid;
  for (int j = 0; j < D; ++j) grid[j] = domain.decomposition().blocks(j);
  return fmt::format("{} cells on {} ranks{}, periodic ({}), {}, depths {} and {}",
                     shape_string<D>(domain.global().high), shape_string<D>(grid),
                     cut == Cut::one_cell ? ", blocks of one cell" : "", wraps, stencil, depths[0], depths[1]);
}

/// A word of parallel.exchange under check.
struct Checked {
  Exchange exchange;
  LiveRow& row;
  bool broken;
};

/// All grids x cuts x stencils x depths, each with the next choice of periodic dimensions.
template <int D>
void check_dimension(MPI_Comm user, const std::vector<Checked>& all, Delays& delays, int& turn) {
  const int ranks = Communicator::of(user).size();
  const auto periodicities = detail::all_periodicities<D>();
  for (const auto& grid : some_grids<D>(ranks))
    for (const Cut cut : {Cut::uneven, Cut::one_cell})
      for (const auto& [name, shape] : detail::shapes<D>())
        for (int depth = 1; depth <= 3; ++depth) {
          DomainOptions<D> options;
          const auto cuts = cuts_of<D>(grid, cut);
          Index<D> extents;
          for (int j = 0; j < D; ++j) extents[j] = cuts[j].back();
          options.cuts = cuts;
          // The last of them is periodic in all dimensions and comes first.
          options.periodic =
              periodicities[periodicities.size() - 1 - static_cast<std::size_t>(turn) % periodicities.size()];
          const CartesianDomain<D> domain(user, extents, options);
          const std::array<int, 2> depths{depth, turn % 4};
          const Setting<D> s{domain, shape, depths, static_cast<ProbeLayout>(turn % detail::kProbeLayouts),
                             text_of<D>(domain, cut, name, depths)};
          const std::array needed{NeededCells<D>(domain, shape, depths[0]),
                                  NeededCells<D>(domain, shape, depths[1])};
          for (const auto& [e, row, broken] : all) {
            if (e == Exchange::automatic ? turn % kAutomaticEvery != 0 : !fits(e, shape)) continue;
            naming_place("exchange \"" + exchange_name(e) + "\": " + s.text,
                         [&, &r = row, x = e, b = broken] { check_one(r, s, x, needed, b, delays); });
          }
          ++turn;
        }
}

}  // namespace

void check_transports(MPI_Comm user, LiveReport& report) {
  std::vector<Checked> all;
  for (const auto& name : exchange_names())
    all.push_back({exchange_of_name(name), report.add("transport", name), report.broken(name)});
  Delays delays(Communicator::of(user).rank());
  int turn = 0;
  check_dimension<1>(user, all, delays, turn);
  check_dimension<2>(user, all, delays, turn);
  check_dimension<3>(user, all, delays, turn);
}

}  // namespace isohalo
