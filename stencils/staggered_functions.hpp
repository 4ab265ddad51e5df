#pragma once
/// What the functions of a solver with fields on faces see, and its updates of faces and cells by them, for the
/// host's rows and for devices. Values are read as binary64 and results are rounded once to the field's type
/// (docs/model.md, "Solvers with fields on faces").

#include <array>
#include <cstdint>
#include <utility>

#include "framework/halo/array_ref.hpp"
#include "stencils/cell_settings.hpp"
#include "stencils/row_kernels.hpp"

namespace isohalo {

namespace detail {

/// a / h. A division takes as long as tens of other instructions. Devices leave out one by 1. Hosts divide numbers
/// once for a row; there a test in each dimension would double the code of every loop.
KOKKOS_FUNCTION inline double over_spacing(double a, double h) {
#if defined(__CUDA_ARCH__)
  if (h == 1.0) return a;
#endif
  return a / h;
}

}  // namespace detail

/// A field, or a coefficient, in the cell itself.
template <int D>
class HereCell {
 public:
  static constexpr int dimensions = D;
  KOKKOS_FUNCTION explicit HereCell(double value) : value_(value) {}
  KOKKOS_FUNCTION double operator()() const { return value_; }

 private:
  double value_;
};

/// What lies on both sides: of a face in two cells, of a cell on two faces.
class BothSides {
 public:
  KOKKOS_FUNCTION BothSides(double below, double above, double spacing)
      : below_(below), above_(above), spacing_(spacing) {}
  KOKKOS_FUNCTION double below() const { return below_; }
  KOKKOS_FUNCTION double above() const { return above_; }
  /// h_j, of the dimension in which they lie.
  KOKKOS_FUNCTION double spacing() const { return spacing_; }
  /// a / h_j.
  KOKKOS_FUNCTION double over_spacing(double a) const { return detail::over_spacing(a, spacing_); }

 private:
  double below_, above_, spacing_;
};

/// A field on faces in the face itself.
template <int D>
class HereFace {
 public:
  static constexpr int dimensions = D;
  KOKKOS_FUNCTION HereFace(double value, double spacing, int along)
      : value_(value), spacing_(spacing), along_(along) {}
  KOKKOS_FUNCTION double operator()() const { return value_; }
  /// h_j, and j: the dimension that the face is across.
  KOKKOS_FUNCTION double spacing() const { return spacing_; }
  /// a / h_j.
  KOKKOS_FUNCTION double over_spacing(double a) const { return detail::over_spacing(a, spacing_); }
  KOKKOS_FUNCTION int along() const { return along_; }

 private:
  double value_, spacing_;
  int along_;
};

namespace detail {

/// The solver's function with its coefficients, if it has some, and dt behind what it takes.
template <class F, class G, std::size_t M>
KOKKOS_FUNCTION auto with_coefficients(const F& function, const std::array<G, M>& given, double dt) {
  if constexpr (M > 0)
    return function(given, dt);
  else
    return function(dt);
}

/// What both kinds of updates have: the solver, and its coefficients as numbers or as fields of the same strides.
template <class S, class T, int D, Given kGiven>
struct StaggeredParts {
  static constexpr std::size_t kCells = kStateFields<S>, kNumbers = kCoefficients<S, D>;
  S solver;
  double dt;
  std::array<double, kNumbers> numbers;
  std::array<const T*, kNumbers> fields;  ///< where these are fields

  /// f(at) for each coefficient, at(k) being its value at a place.
  template <class Made, class F>
  KOKKOS_FUNCTION std::array<Made, kNumbers> coefficients(const F& f) const {
    return [&]<std::size_t... K>(std::index_sequence<K...>) {
      return std::array<Made, kNumbers>{f([&](std::int64_t k) { return coefficient<K>(k); })...};
    }
    (std::make_index_sequence<kNumbers>());
  }

 private:
  template <std::size_t K>
  KOKKOS_FUNCTION double coefficient([[maybe_unused]] std::int64_t k) const {
    if constexpr (kGiven == Given::fields)
      return static_cast<double>(fields[K][k]);
    else
      return numbers[K];
  }
};

/// The field on the faces of one dimension, k elements behind the first owned one; all arrays have its strides.
template <class S, class T, int D, Given kGiven>
struct FaceUpdate : StaggeredParts<S, T, D, kGiven> {
  using Parts = StaggeredParts<S, T, D, kGiven>;
  T* v;
  std::array<const T*, Parts::kCells> cells;
  std::int64_t below;  ///< elements to the cell below
  double spacing;
  int along;

  using Values = T;
  KOKKOS_FUNCTION T values(const std::int64_t k) const {
    return values_seeing(k, [&](double lower, double upper) { return BothSides(lower, upper, spacing); });
  }
  /// Where the function sees seen(lower, upper) of a field that has these values on both sides.
  template <class Seen>
  KOKKOS_FUNCTION T values_seeing(const std::int64_t k, const Seen& seen) const {
    const auto given = this->template coefficients<BothSides>(
        [&](const auto& at) { return BothSides(at(k - below), at(k), spacing); });
    return [&]<std::size_t... F>(std::index_sequence<F...>) {
      return static_cast<T>(with_coefficients(
          [&](const auto&... rest) {
            return this->solver.face(
                HereFace<D>(static_cast<double>(v[k]), spacing, along),
                seen(static_cast<double>(cells[F][k - below]), static_cast<double>(cells[F][k]))..., rest...);
          },
          given, this->dt));
    }
    (std::make_index_sequence<Parts::kCells>());
  }
  KOKKOS_FUNCTION void store(const std::int64_t k, T to) const { v[k] = to; }
  KOKKOS_FUNCTION double term(const std::int64_t k, T to) const { return squared_change(to, v[k]); }
};

/// A FaceUpdate that heeds a mask: what lies between two masked cells keeps its value; beside one of them, where
/// masks mirror, the function sees the other cell's values on both sides.
template <class T, class Update>
struct MaskedFaces : Update {
  const T* mask;
  bool mirrors;

  KOKKOS_FUNCTION T values(const std::int64_t k) const {
    const bool lower_masked = mask[k - this->below] != T(0), upper_masked = mask[k] != T(0);
    const T to = this->values_seeing(k, [&](double lower, double upper) {
      return BothSides((mirrors & lower_masked) ? upper : lower, (mirrors & upper_masked) ? lower : upper,
                       this->spacing);
    });
    return lower_masked && upper_masked ? this->v[k] : to;
  }
};

/// The fields in cells.
template <class S, class T, int D, Given kGiven>
struct CellUpdate : StaggeredParts<S, T, D, kGiven> {
  using Parts = StaggeredParts<S, T, D, kGiven>;
  std::array<T*, Parts::kCells> cells;
  std::array<const T*, D> v;
  std::array<std::int64_t, D> above;  ///< elements to the face above
  std::array<double, D> spacing;

  using Values = std::array<T, Parts::kCells>;
  KOKKOS_FUNCTION Values values(const std::int64_t k) const {
    const auto now = exact_values(k);
    Values to;
    for (std::size_t f = 0; f < Parts::kCells; ++f) to[f] = static_cast<T>(now[f]);
    return to;
  }
  /// Before they are rounded.
  KOKKOS_FUNCTION std::array<double, Parts::kCells> exact_values(const std::int64_t k) const {
    const auto given = this->template coefficients<HereCell<D>>([&](const auto& at) { return HereCell<D>(at(k)); });
    const auto faces = [&]<std::size_t... J>(std::index_sequence<J...>) {
      return std::array<BothSides, D>{
          BothSides(static_cast<double>(v[J][k]), static_cast<double>(v[J][k + stride<J>()]), spacing[J])...};
    }
    (std::make_index_sequence<D>());
    return [&]<std::size_t... F>(std::index_sequence<F...>) {
      return array_of<Parts::kCells>(with_coefficients(
          [&](const auto&... rest) {
            return this->solver(HereCell<D>(static_cast<double>(cells[F][k]))..., faces, rest...);
          },
          given, this->dt));
    }
    (std::make_index_sequence<Parts::kCells>());
  }
  KOKKOS_FUNCTION void store(const std::int64_t k, const Values& to) const {
    for (std::size_t f = 0; f < Parts::kCells; ++f) cells[f][k] = to[f];
  }
  KOKKOS_FUNCTION double term(const std::int64_t k, const Values& to) const {
    double all = squared_change(to[0], cells[0][k]);
    for (std::size_t f = 1; f < Parts::kCells; ++f) all = all + squared_change(to[f], cells[f][k]);
    return all;
  }

 private:
  /// Rows are contiguous; said as a constant it lets rows be in vectors.
  template <std::size_t J>
  KOKKOS_FUNCTION std::int64_t stride() const {
    if constexpr (J == D - 1)
      return 1;
    else
      return above[J];
  }
};

/// A CellUpdate with sources, or a mask, or both.
template <class T, class Update, bool kSourced>
struct AmendedCells : Update {
  std::array<const T*, Update::kCells> sources;
  const T* mask;  ///< any array where there is none: a branch more would double loops
  bool masked;

  KOKKOS_FUNCTION typename Update::Values values(const std::int64_t k) const {
    auto now = this->exact_values(k);
    typename Update::Values to;
    for (std::size_t f = 0; f < Update::kCells; ++f) {
      if constexpr (kSourced) now[f] = now[f] + this->dt * static_cast<double>(sources[f][k]);
      to[f] = static_cast<T>(now[f]);
      to[f] = static_cast<bool>(masked & (mask[k] != T(0))) ? this->cells[f][k] : to[f];
    }
    return to;
  }
};

/// array(f): the fields of the state in order, then what is given as fields (CellSettings::given).
template <Given kGiven, class T, class S, int D, class ArrayOf>
StaggeredParts<S, T, D, kGiven> staggered_parts(const CellSettings<S, D>& in, const ArrayOf& array) {
  StaggeredParts<S, T, D, kGiven> parts{in.solver, in.dt, in.numbers, {}};
  if constexpr (kGiven == Given::fields)
    for (std::size_t k = 0; k < parts.kNumbers; ++k) parts.fields[k] = array(parts.kCells + D + k).data;
  return parts;
}
template <Given kGiven, class T, class S, int D, class ArrayOf>
FaceUpdate<S, T, D, kGiven> face_update(const CellSettings<S, D>& in, int j, const ArrayOf& array) {
  const ArrayRef<T, D>& v = array(kStateFields<S> + static_cast<std::size_t>(j));
  FaceUpdate<S, T, D, kGiven> update{
      staggered_parts<kGiven, T>(in, array), v.data, {}, v.stride[j], in.grid.spacing[j], j};
  for (std::size_t f = 0; f < kStateFields<S>; ++f) update.cells[f] = array(f).data;
  return update;
}
template <Given kGiven, class T, class S, int D, class ArrayOf>
CellUpdate<S, T, D, kGiven> cell_update(const CellSettings<S, D>& in, const ArrayOf& array) {
  CellUpdate<S, T, D, kGiven> update{staggered_parts<kGiven, T>(in, array), {}, {}, {}, {}};
  for (std::size_t f = 0; f < kStateFields<S>; ++f) update.cells[f] = array(f).data;
  for (std::size_t j = 0; j < D; ++j) {
    update.v[j] = array(kStateFields<S> + j).data;
    update.above[j] = array(0).stride[j];
    update.spacing[j] = in.grid.spacing[j];
  }
  return update;
}

/// f(update) with what the input says of masks, and of sources, besides.
template <class T, class S, int D, class Update, class ArrayOf, class F>
void with_masked(const CellSettings<S, D>& in, const Update& faces, const ArrayOf& array, const F& f) {
  if (!in.has_mask()) return f(faces);
  const T* const mask = array(kStateFields<S> + D + in.place_of_mask()).data;
  f(MaskedFaces<T, Update>{faces, mask, in.mask == Mask::mirror});
}
template <class T, class S, int D, class Update, class ArrayOf, class F>
void with_amended(const CellSettings<S, D>& in, const Update& cells, const ArrayOf& array, const F& f) {
  constexpr std::size_t first = kStateFields<S> + D;
  std::array<const T*, Update::kCells> sources{};
  for (std::size_t k = 0; k < sources.size() && in.sourced; ++k)
    sources[k] = array(first + in.first_source() + k).data;
  const T* const mask = array(in.has_mask() ? first + in.place_of_mask() : 0).data;
  if (in.sourced)
    f(AmendedCells<T, Update, true>{cells, sources, mask, in.has_mask()});
  else if (in.has_mask())
    f(AmendedCells<T, Update, false>{cells, sources, mask, true});
  else
    f(cells);
}

}  // namespace detail

}  // namespace isohalo
