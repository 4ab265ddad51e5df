#pragma once
/// What do the functions of a solver read, and does its shape have it? They are called with cells that note what is
/// read, and hold values of both signs, small and large, since a function may read by what it has read.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "datatypes/error.hpp"
#include "framework/halo/stencil_shape.hpp"
#include "stencils/cell_row.hpp"

namespace isohalo {

/// A cell that notes what is read. Its values follow from `seed` and the offset: 1, or a mix of -2 to 2, some a
/// thousandth, a thousand or a million times as large.
template <int D>
class ProbeCell {
 public:
  static constexpr int dimensions = D;
  ProbeCell(std::set<Index<D>>& read, std::uint64_t seed) : read_(&read), seed_(seed) {}
  double operator()() const { return near(Index<D>{}); }
  double near(int j, int k) const {
    Index<D> offset{};
    offset[j] = k;
    return near(offset);
  }
  double near(const Index<D>& offset) const {
    read_->insert(offset);
    if (seed_ == 0) return 1.0;
    std::uint64_t z = seed_;
    for (const std::int64_t o : offset) z = (z ^ static_cast<std::uint64_t>(o + 1000)) * 0x9E3779B97F4A7C15;
    constexpr std::array scales{1.0, 1e-3, 1e3, 1e6};
    return (static_cast<double>((z ^ z >> 31) % 5) - 2.0) * scales[z >> 40 & 3];
  }
  double inverse_square(int) const { return 1.0; }
  double inverse(int) const { return 1.0; }

 private:
  std::set<Index<D>>* read_;
  std::uint64_t seed_;
};

namespace detail {

/// Throws UsageError when one of these offsets is not among the known; `what` is read there.
template <int D>
void refuse_offsets(const std::set<Index<D>>& read, const std::set<Index<D>>& known, const std::string& kind,
                    const std::string& what, const std::string& why) {
  for (const Index<D>& o : read)
    if (!known.contains(o))
      throw UsageError(fmt::format("solver {} reads {} at {}, {}", kind, what, to_string<D>(o), why));
}

/// Offsets that one function of the solver reads: of each field, of those at the step's begin or a step before, of
/// each coefficient.
template <class S, int D, int Stage>
[[gnu::cold]] auto reads_of(const S& solver) {
  constexpr std::size_t n = kStateFields<S>, m = kCoefficients<S, D>;
  std::array<std::set<Index<D>>, n + n + m> read;
  std::uint64_t seed = 0;
  const auto probes = [&]<std::size_t First, std::size_t... F>(std::integral_constant<std::size_t, First>,
                                                               std::index_sequence<F...>) {
    return std::array<ProbeCell<D>, sizeof...(F)>{
        ProbeCell<D>(read[First + F], seed == 0 ? 0 : seed * 100 + First + F)...};
  };
  for (seed = 0; seed < 64; ++seed) {
    const auto given = probes(std::integral_constant<std::size_t, n + n>(), std::make_index_sequence<m>());
    new_values<Stage>(solver, probes(std::integral_constant<std::size_t, 0>(), std::make_index_sequence<n>()),
                      probes(std::integral_constant<std::size_t, n>(), std::make_index_sequence<n>()), given, 1.0);
    if constexpr (kTakesSources<S, D>) weight_of_source<Stage>(solver, given, 1.0);
  }
  return read;
}

/// Of each array that the point reads: are neighbors read there?
template <class S, class T, int D, Given kGiven, int Stage>
auto reads_beside(const CellPoint<S, T, D, kGiven, Stage>& point) {
  using Point = CellPoint<S, T, D, kGiven, Stage>;
  const auto read = reads_of<S, D, Stage>(point.solver());
  const auto beside = [&](std::size_t k) {
    return std::any_of(read[k].begin(), read[k].end(), [](const Index<D>& o) { return o != Index<D>{}; });
  };
  std::array<bool, Point::kReads> all{};
  for (std::size_t f = 0; f < Point::kFirst; ++f) all[f] = beside(f);
  for (std::size_t f = Point::kFirst; f < Point::kReads; ++f)
    all[f] = beside(2 * Point::kWrites + f - Point::kFirst);
  return all;
}

/// Throws UsageError when one function of the solver reads what its shape does not have.
template <class S, int D, int Stage>
[[gnu::cold]] void refuse_reads_of(const S& solver, const std::string& kind) {
  constexpr std::size_t n = kStateFields<S>, m = kCoefficients<S, D>;
  const auto read = reads_of<S, D, Stage>(solver);
  const StencilShape<D> shape = solver.template shape<D>();
  std::set<Index<D>> known{Index<D>{}};
  const std::set<Index<D>> own = known;
  for (const Index<D>& o : shape.offsets()) known.insert(o);
  const std::string why = fmt::format("which its shape in {} dimensions does not have", D);
  for (std::size_t f = 0; f < n; ++f) {
    const std::string field = S::fields[f];
    if constexpr (kSaysShapeOf<S, D>) {
      const StencilShape<D> shape_of_field = solver.template shape_of<D>(field);
      std::set<Index<D>> of_field = own;
      for (const Index<D>& o : shape_of_field.offsets()) of_field.insert(o);
      refuse_offsets<D>(read[f], of_field, kind, field,
                        fmt::format("which shape_of(\"{}\") in {} dimensions does not have", field, D));
    } else {
      refuse_offsets<D>(read[f], known, kind, field, why);
    }
    refuse_offsets<D>(read[n + f], own, kind, "the earlier " + field, "of which only the cell itself may be read");
  }
  for (std::size_t c = 0; c < m; ++c)
    refuse_offsets<D>(read[n + n + c], known, kind, coefficients_of<S, D>()[c].name, why);
}

/// The same for all its functions, and for a field whose shape has what that of all has not.
template <class S, int D>
void refuse_other_reads(const S& solver, const std::string& kind) {
  if constexpr (kSaysShapeOf<S, D>) {
    const Offsets<D> all = solver.template shape<D>().offsets();
    for (const char* field : S::fields) {
      const StencilShape<D> of_field = solver.template shape_of<D>(field);
      for (const Index<D>& o : of_field.offsets())
        if (o != Index<D>{} && std::find(all.begin(), all.end(), o) == all.end())
          throw UsageError(
              fmt::format("solver {}: shape_of(\"{}\") has {}, which its shape in {} dimensions does not have",
                          kind, field, to_string<D>(o), D));
    }
  }
  [&]<int... K>(std::integer_sequence<int, K...>) {
    (refuse_reads_of<S, D, K>(solver, kind), ...);
  }
  (std::make_integer_sequence<int, stages_of<S>()>());
  if constexpr (kHasBefore<S>) refuse_reads_of<S, D, kBegin>(solver, kind);
}

}  // namespace detail

}  // namespace isohalo
