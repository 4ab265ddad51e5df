#pragma once
/// Tile values in the memory of a Kokkos execution space, on their way up the reduction tree to the host.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "stencils/device/device_field.hpp"
#include "stencils/device/device_loops.hpp"
#include "stencils/sweep.hpp"

namespace isohalo {

namespace detail {

/// Combination n of a list of which none needs another.
struct CombineKernel {
  const Combination* list;
  double* values;
  KOKKOS_FUNCTION void operator()(const std::int64_t n) const {
    const Combination c = list[n];
    values[c.into] = values[c.into] + values[c.from];
  }
};

/// to[n] = from[places[n]].
struct GatherKernel {
  const std::int32_t* places;
  const double* from;
  double* to;
  KOKKOS_FUNCTION void operator()(const std::int64_t n) const { to[n] = from[places[n]]; }
};

}  // namespace detail

/// Numbers that kernels write and the host reads.
template <class Space>
struct NumbersForHost {
  NumbersForHost() = default;
  NumbersForHost(const std::string& name, std::int64_t n)
      : there(name, static_cast<std::size_t>(n)), here(name + " (host)", static_cast<std::size_t>(n)) {}
  /// Fences.
  void bring() const { Kokkos::deep_copy(here, there); }
  Kokkos::View<double*, typename Space::memory_space> there;
  Kokkos::View<double*, detail::HostMemory> here;
};

/// The values of tiles that lie in a block, and the lower levels of the tree above them, which are as wide as the
/// grid: kernels combine these, the host the few values that are left.
template <int D, class Space>
class DeviceTree {
 public:
  /// `tiles`: in tile coordinates, of those of `sum`, whose combinations it takes part of: from now on `sum` forms
  /// values by `combine` of this one alone. It must live as long.
  DeviceTree(CellSum<D>& sum, const Box<D>& tiles) : sum_(&sum), tiles_(tiles) {
    const std::int64_t n = tiles.empty() ? 0 : tiles.cells();
    values_ = Doubles("isohalo::tile_values", static_cast<std::size_t>(n));
    std::vector<std::int32_t> there = places_of_tiles();
    take_levels(there);
    left_ = Left(there);
  }

  double* values() const { return values_.data(); }

  /// Once the tile values are there: `sum.combine()` then gives the sum. Fences.
  void combine() {
    if (tiles_.empty()) return;
    if (is_exact(sum_->options().method)) {
      if (!all_) all_.emplace(places_of_tiles());
      return all_->bring(values_.data(), sum_->tile_values());
    }
    for (const List& level : levels_)
      detail::for_each_number_in<Space>("isohalo::upper", static_cast<std::int64_t>(level.extent(0)),
                                        detail::CombineKernel{level.data(), values_.data()});
    left_.bring(values_.data(), sum_->tile_values());
  }

 private:
  using Memory = typename Space::memory_space;
  using Doubles = Kokkos::View<double*, Memory>;
  using List = Kokkos::View<Combination*, Memory>;
  /// A level with fewer is quicker on the host than a kernel is launched.
  static constexpr std::size_t kLeast = 1024;
  static constexpr std::int32_t kNotHere = -1;

  /// Where each tile value of the host stands on the device.
  std::vector<std::int32_t> places_of_tiles() const {
    std::vector<std::int32_t> there(sum_->tile_values().size(), kNotHere);
    std::int32_t next = 0;
    for_each_cell(tiles_, [&](const Index<D>& t) {
      there[static_cast<std::size_t>(linear_index(sum_->tiles(), t))] = next++;
    });
    return there;
  }

  /// Moves combinations of values on the device there, level by level; `there` then lacks those that are done with.
  void take_levels(std::vector<std::int32_t>& there) {
    std::vector<Combination>& all = sum_->combinations();
    std::vector<std::size_t> level_of_value(there.size(), 0), level(all.size(), 0), in_level;
    constexpr std::size_t host = ~std::size_t{0};
    const auto place = [](std::int32_t n) { return static_cast<std::size_t>(n); };
    for (std::size_t c = 0; c < all.size(); ++c) {
      const std::size_t into = place(all[c].into), from = place(all[c].from);
      const bool both = there[into] != kNotHere && there[from] != kNotHere && level_of_value[into] != host &&
                        level_of_value[from] != host;
      level[c] = both ? std::max(level_of_value[into], level_of_value[from]) : host;
      level_of_value[into] = both ? level[c] + 1 : host;
      if (!both) continue;
      in_level.resize(std::max(in_level.size(), level[c] + 1));
      ++in_level[level[c]];
    }
    const auto kept = static_cast<std::size_t>(
        std::find_if(in_level.begin(), in_level.end(), [](std::size_t n) { return n < kLeast; }) -
        in_level.begin());
    std::vector<std::vector<Combination>> taken(kept);
    std::vector<Combination> rest;
    for (std::size_t c = 0; c < all.size(); ++c) {
      if (level[c] >= kept) {
        rest.push_back(all[c]);
        continue;
      }
      const std::size_t from = place(all[c].from);
      taken[level[c]].push_back({there[place(all[c].into)], there[from]});
      there[from] = kNotHere;
    }
    all = std::move(rest);
    for (auto& of_level : taken) {
      std::reverse(of_level.begin(),
                   of_level.end());  // any order will do: where one thread takes them, this one tells
      levels_.push_back(in_space<Space>("isohalo::combinations", of_level));
    }
  }

  /// Values that go to the host.
  class Left {
   public:
    Left() = default;
    /// `there`: where each stands on the device, or kNotHere.
    explicit Left(const std::vector<std::int32_t>& there) {
      std::vector<std::int32_t> from;
      for (std::size_t p = 0; p < there.size(); ++p)
        if (there[p] != kNotHere) to_.push_back(p), from.push_back(there[p]);
      numbers_ = NumbersForHost<Space>("isohalo::values", static_cast<std::int64_t>(to_.size()));
      from_ = in_space<Space>("isohalo::places", from);
    }
    /// Fences.
    void bring(const double* values, std::vector<double>& host) const {
      detail::for_each_number_in<Space>("isohalo::gather", static_cast<std::int64_t>(to_.size()),
                                        detail::GatherKernel{from_.data(), values, numbers_.there.data()});
      numbers_.bring();
      for (std::size_t k = 0; k < to_.size(); ++k) host[to_[k]] = numbers_.here(k);
    }

   private:
    std::vector<std::size_t> to_;
    Kokkos::View<std::int32_t*, Memory> from_;
    NumbersForHost<Space> numbers_;
  };

  CellSum<D>* sum_;
  Box<D> tiles_;
  Doubles values_;
  std::vector<List> levels_;
  Left left_;
  std::optional<Left> all_;  ///< for exact methods, which add tile values
};

}  // namespace isohalo
