#pragma once
/// Arrays that show what an exchange did: a value of its own in each owned cell, a sentinel in each ghost; and what
/// is exchanged. For checks of transports, in the tests and on a live communicator.

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "framework/domain/cartesian_domain.hpp"
#include "framework/halo/halo_plan.hpp"
#include "framework/shm/shared_memory.hpp"

namespace isohalo::detail {

/// What a probe of type T holds; to be specialised for other types.
template <class T>
struct ProbeValue {
  static_assert(std::is_arithmetic_v<T>);

  static T of(int field, std::int64_t l) { return static_cast<T>(l * 7 + field + 1); }
  static T sentinel() {
    if constexpr (std::is_same_v<T, double>)
      return std::bit_cast<double>(std::uint64_t{0x7ff4000000000123u});  // signalling
    else if constexpr (std::is_same_v<T, float>)
      return std::bit_cast<float>(std::uint32_t{0x7fa00123u});
    else
      return static_cast<T>(-1);
  }
  static bool same(const T& x, const T& y) { return std::memcmp(&x, &y, sizeof x) == 0; }
};

/// `shared`: plain, in memory that the ranks of a compute node share, where neighbors may write ghosts in place.
enum class ProbeLayout { plain, padded, permuted, shared };
inline constexpr int kProbeLayouts = 4;

/// A field in memory of its own, in one of several layouts, as wide as the plan needs of its array `k`, or wider
/// (`padded`).
template <class T, int D>
class ProbeField {
 public:
  ProbeField(const CartesianDomain<D>& domain, const HaloPlan<D>& plan, int number, ProbeLayout layout,
             std::size_t k = 0)
      : global_(domain.global()) {
    const bool padded = layout == ProbeLayout::padded;
    ref_.owned = domain.owned();
    for (int j = 0; j < D; ++j) {
      ref_.ghost_low[j] = plan.ghost_low(k)[j] + (padded ? 1 : 0);
      ref_.ghost_high[j] = plan.ghost_high(k)[j] + (padded ? 2 : 0);
    }
    const Box<D> all = ref_.allocated();
    std::int64_t stride = 1, origin = 0;
    for (int place = D - 1; place >= 0; --place) {
      const int j = layout == ProbeLayout::permuted ? D - 1 - place : place;
      ref_.stride[j] = stride;
      origin += ref_.ghost_low[j] * stride;
      stride *= all.extent(j) + (padded ? 3 : 0);
    }
    const auto cells = static_cast<std::size_t>(stride);
    if (layout == ProbeLayout::shared) shared_.resize(cells);
    if (layout != ProbeLayout::shared) memory_.resize(cells);
    ref_.data = (layout == ProbeLayout::shared ? shared_.data() : memory_.data()) + origin;
    refill(number);
  }

  /// The value that belongs to a cell, given by its unwrapped global index.
  T right(const Index<D>& i) const {
    return ProbeValue<T>::of(number_, linear_index(global_, wrapped(global_, i)));
  }
  const ArrayRef<T, D>& ref() const { return ref_; }

  /// Calls f(cell, expected, found) for every allocated cell that is wrong: owned cells and those for which
  /// `needed(cell)` is true must hold their value, all others the sentinel.
  template <class Needed, class F>
  void for_each_wrong(Needed&& needed, F&& f) const {
    for_each_cell(ref_.allocated(), [&](const Index<D>& i) {
      const bool known = ref_.owned.contains(i) || needed(i);
      const T expected = known ? right(i) : ProbeValue<T>::sentinel();
      if (!ProbeValue<T>::same(ref_.at(i), expected)) f(i, expected, ref_.at(i));
    });
  }

  /// New values in the owned cells, the sentinel in all others, so that a ghost of an earlier exchange is wrong.
  void refill(int number) {
    number_ = number;
    std::fill(memory_.begin(), memory_.end(), ProbeValue<T>::sentinel());
    std::fill(shared_.begin(), shared_.end(), ProbeValue<T>::sentinel());
    for_each_cell(ref_.owned, [&](const Index<D>& i) { ref_.at(i) = right(i); });
  }

 private:
  int number_ = 0;
  Box<D> global_;
  std::vector<T> memory_;
  std::vector<T, SharedAllocator<T>> shared_;  // one of the two is empty
  ArrayRef<T, D> ref_;
};

/// The cells that `steps` steps need, straight from the definition and none of the plans' geometry: what a cell
/// reads, `steps` times over. The block counts.
template <int D>
class NeededCells {
 public:
  NeededCells(const CartesianDomain<D>& domain, const StencilShape<D>& shape, int steps)
      : global_(domain.global()), periodic_(domain.periodic()) {
    Index<D> below, above;
    for (int j = 0; j < D; ++j) below[j] = steps * shape.reach_low()[j], above[j] = steps * shape.reach_high()[j];
    frame_ = domain.owned().grown(below, above);
    std::vector<char> now(static_cast<std::size_t>(frame_.cells()));
    for_each_cell(domain.owned(), [&](const Index<D>& i) { now[at(i)] = 1; });
    for (int s = 0; s < steps; ++s) {
      std::vector<char> next = now;
      for_each_cell(frame_, [&](const Index<D>& i) {
        if (!now[at(i)]) return;
        for (const auto& o : shape.offsets()) {
          Index<D> x;
          for (int j = 0; j < D; ++j) x[j] = i[j] + o[j];
          if (exists(x)) next[at(x)] = 1;
        }
      });
      now = std::move(next);
    }
    marked_ = std::move(now);
  }
  bool operator()(const Index<D>& i) const { return frame_.contains(i) && marked_[at(i)]; }

 private:
  std::size_t at(const Index<D>& i) const { return static_cast<std::size_t>(linear_index(frame_, i)); }
  bool exists(const Index<D>& i) const {
    for (int j = 0; j < D; ++j)
      if (!periodic_[j] && (i[j] < 0 || i[j] >= global_.high[j])) return false;
    return true;
  }

  Box<D> global_, frame_;
  PerDim<bool, D> periodic_;
  std::vector<char> marked_;
};

template <int D>
struct NamedShape {
  std::string name;
  StencilShape<D> shape;
};

/// Moore, von Neumann, star and an asymmetric list that nothing recognises.
template <int D>
std::vector<NamedShape<D>> shapes() {
  Index<D> back{}, ahead{}, skew{};
  back[0] = -2;
  ahead[D - 1] = 1;
  skew[0] = 1;
  if (D > 1) skew[1] = -1;
  return {{"Moore 1", StencilShape<D>::moore(1)},
          {"von Neumann 1", StencilShape<D>::von_neumann(1)},
          {"von Neumann 2", StencilShape<D>::von_neumann(2)},
          {"star 2", StencilShape<D>::star(2)},
          {"custom list", StencilShape<D>::of({back, ahead, skew})}};
}

/// All 2^D choices of periodic dimensions.
template <int D>
std::vector<PerDim<bool, D>> all_periodicities() {
  std::vector<PerDim<bool, D>> all;
  for (int m = 0; m < (1 << D); ++m) {
    PerDim<bool, D> p{};
    for (int j = 0; j < D; ++j) p[j] = m >> j & 1;
    all.push_back(p);
  }
  return all;
}

}  // namespace isohalo::detail
