#pragma once
/// Fields with a unique value per field and global cell and a signalling sentinel in every ghost, in several
/// layouts.

#include "apps/common/probe_field.hpp"
#include "framework/halo/halo_plan_access.hpp"
#include "tests/halo/halo_cases.hpp"

namespace isohalo::test {

/// A user's struct, to exchange something that is no number.
struct Pair {
  std::int64_t a;
  double b;
  std::uint8_t c;
};

}  // namespace isohalo::test

template <>
struct isohalo::detail::ProbeValue<isohalo::test::Pair> {
  using Pair = isohalo::test::Pair;
  static Pair of(int field, std::int64_t l) {
    return Pair{l * 7 + field, static_cast<double>(l), static_cast<std::uint8_t>(l)};
  }
  static Pair sentinel() { return Pair{-99, 0, 0}; }
  static bool same(const Pair& x, const Pair& y) { return x.a == y.a && x.b == y.b && x.c == y.c; }
};

namespace isohalo::test {

using Memory = detail::ProbeLayout;
constexpr int kMemories = detail::kProbeLayouts;

template <class T>
bool same(const T& x, const T& y) {
  return detail::ProbeValue<T>::same(x, y);
}

template <class T, int D>
class TestField : public detail::ProbeField<T, D> {
 public:
  using detail::ProbeField<T, D>::ProbeField;

  /// Number of cells that are wrong. `needed`: a set of cells, or detail::NeededCells.
  std::int64_t wrong(const auto& needed) const {
    std::int64_t n = 0;
    const auto known = [&](const Index<D>& i) {
      if constexpr (requires { needed.contains(i); })
        return needed.contains(i);
      else
        return needed(i);
    };
    this->for_each_wrong(known, [&](const Index<D>&, const T&, const T&) { ++n; });
    return n;
  }
};

/// An array on the faces of a dimension, or in cells (-1), its box by the definition.
template <int D>
struct FaceField {
  static constexpr double kSentinel = -77;
  Box<D> all, mine;
  int number;
  PerDim<bool, D> periodic;
  std::vector<double> memory;
  ArrayRef<double, D> u;

  FaceField(const CartesianDomain<D>& domain, int face, std::int64_t width)
      : all(domain.global()), mine(domain.owned()), number(face + 2), periodic(domain.periodic()) {
    if (face >= 0 && !periodic[face]) {
      if (mine.high[face] == all.high[face]) ++mine.high[face];  // the owner of cell N-1 owns face N
      ++all.high[face];
    }
    memory.assign(static_cast<std::size_t>(adopted_size(mine, width)), kSentinel);
    u = adopt(std::span(memory), mine, width);
    for_each_cell(mine, [&](const Index<D>& i) { u.at(i) = value(i); });
  }
  double value(const Index<D>& i) const {
    return static_cast<double>(linear_index(all, wrapped(all, i)) * 8 + number);
  }
  /// `distance(away)`: may an element that lies so far outside the block in each dimension be needed?
  template <class Distance>
  int wrong(Distance&& distance) const {
    int n = 0;
    for_each_cell(u.allocated(), [&](const Index<D>& i) {
      Index<D> away;
      bool exists = true;
      for (int j = 0; j < D; ++j) {
        away[j] = std::max({mine.low[j] - i[j], i[j] - mine.high[j] + 1, std::int64_t{0}});
        exists = exists && (periodic[j] || (i[j] >= 0 && i[j] < all.high[j]));
      }
      n += u.at(i) != (exists && distance(away) ? value(i) : kSentinel);
    });
    return n;
  }
};

template <int D>
std::vector<PerDim<bool, D>> periodicities() {
  return detail::all_periodicities<D>();
}

/// Every way to travel that can be forced and that this shape allows.
template <int D>
std::vector<Exchange> exchanges(const StencilShape<D>& shape) {
  std::vector<Exchange> all;
  for (const auto& name : exchange_names()) {
    const Exchange e = exchange_of_name(name);
    if (e != Exchange::automatic && fits(e, shape)) all.push_back(e);
  }
  return all;
}

/// One exchange by a plan of its own; the number of wrong cells on this rank.
template <class T, int D>
std::int64_t exchange_once(const CartesianDomain<D>& domain, const StencilShape<D>& shape, int depth, Memory memory,
                           Exchange exchange, const auto& needed, HaloMutation<D> mutation = {}) {
  HaloOptions<D> options;
  options.exchange = exchange;
  HaloPlan<D> plan(domain, shape, depth, options);
  detail::HaloPlanAccess::change(plan, std::move(mutation));
  const TestField<T, D> field(domain, plan, 0, memory);
  plan.exchange(field.ref());
  return field.wrong(needed);
}

template <int D>
std::set<Index<D>> needed_on(const CartesianDomain<D>& domain, const StencilShape<D>& shape, int depth) {
  return needed_by_definition(domain.owned(), shape.offsets(), depth,
                              BoundaryTopology<D>{domain.global(), domain.periodic(), {}, {}});
}

}  // namespace isohalo::test
