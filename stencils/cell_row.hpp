#pragma once
/// The row kernel of a cell function (cell_solver.hpp says what that is).

#include <algorithm>
#include <array>
#include <concepts>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "datatypes/independent.hpp"
#include "framework/halo/row_kernel.hpp"
#include "framework/halo/stencil_shape.hpp"
#include "stencils/amended_row.hpp"
#include "stencils/cell.hpp"
#include "stencils/streamed_rows.hpp"

namespace isohalo {

/// A coefficient: a field that the function reads and that does not change, or a number.
struct Coefficient {
  const char *name, *unit, *help;
  double fallback;
  double min = -1e300, max = 1e300;
  bool above_min = false;  ///< is `min` itself out?

  /// The same with a least, or a least and a largest value.
  constexpr Coefficient from(double least, double most = 1e300) const {
    Coefficient c = *this;
    c.min = least;
    c.max = most;
    c.above_min = false;
    return c;
  }
  /// The same where all values must be above this one, and at most the largest.
  constexpr Coefficient above(double bound, double most = 1e300) const {
    Coefficient c = from(bound, most);
    c.above_min = true;
    return c;
  }
};

/// How a kernel is given what does not change.
enum class Given {
  numbers,  ///< coefficients are numbers
  fields,   ///< coefficients are fields
};

namespace detail {

/// x as T holds it. On the host by way of memory: where GCC 12 forms vectors of two numbers, it leaves conversions
/// to float and back out.
template <class T>
KOKKOS_FUNCTION double rounded(double x) {
#if defined(__CUDA_ARCH__)
  return static_cast<double>(static_cast<T>(x));
#else
  const volatile T in_memory = static_cast<T>(x);
  return static_cast<double>(in_memory);
#endif
}

template <class S>
inline constexpr std::size_t kStateFields = S::fields.size();

template <class S>
constexpr int stages_of() {
  if constexpr (requires { S::stages; })
    return S::stages;
  else
    return 1;
}

template <class S>
inline constexpr bool kHasBefore = requires {
  S::before;
};

/// Does it say what is read of single fields?
template <class S, int D>
inline constexpr bool kSaysShapeOf = requires(const S& s, std::string_view field) {
  { s.template shape_of<D>(field) } -> std::convertible_to<StencilShape<D>>;
};

/// Has the solver fields on faces (staggered_functions.hpp)?
template <class S>
inline constexpr bool kHasFaces = requires {
  S::faces;
};

template <class S, int D>
constexpr auto coefficients_of() {
  if constexpr (requires { S::template coefficients<D>(); })
    return S::template coefficients<D>();
  else
    return std::array<Coefficient, 0>{};
}
template <class S, int D>
inline constexpr std::size_t kCoefficients = coefficients_of<S, D>().size();

/// A coefficient that is the same everywhere.
template <int D>
class ConstantCell {
 public:
  static constexpr bool kUniform = true;
  static constexpr int dimensions = D;
  KOKKOS_FUNCTION ConstantCell(double value, const CellGeometry<D>& geometry)
      : value_(value), geometry_(geometry) {}
  KOKKOS_FUNCTION double operator()() const { return value_; }
  KOKKOS_FUNCTION double near(int, int) const { return value_; }
  KOKKOS_FUNCTION double near(const Index<D>&) const { return value_; }
  KOKKOS_FUNCTION double inverse_square(int j) const { return geometry_.inverse_square[j]; }
  KOKKOS_FUNCTION double inverse(int j) const { return geometry_.inverse[j]; }

 private:
  double value_;
  const CellGeometry<D>& geometry_;
};

/// Which function of a solver is meant: a stage by its number, or what forms the fields a step before the first.
inline constexpr int kBegin = -1;

/// What a function of N fields returns, as an array. (On its own: clang 14 compiles both branches in a lambda.)
template <std::size_t N, class V>
KOKKOS_FUNCTION std::array<double, N> array_of(const V& values) {
  if constexpr (std::is_arithmetic_v<V>) {
    static_assert(N == 1, "a solver of several fields returns cells(..) of as many values");
    return {static_cast<double>(values)};
  } else {
    static_assert(std::tuple_size_v<V> == N, "a solver returns one value for each of its fields");
    return values;
  }
}

/// What the solver's function gives at one cell, as an array. `own`: the fields at the step's begin, or a step
/// before, for functions that take them.
template <int Stage, class S, class C, class G, std::size_t N, std::size_t M>
KOKKOS_FUNCTION std::array<double, N> new_values(const S& s, const std::array<C, N>& at,
                                                 const std::array<C, N>& own, const std::array<G, M>& given,
                                                 double dt) {
  return [&]<std::size_t... F>(std::index_sequence<F...>)->std::array<double, N> {
    return array_of<N>([&] {
      if constexpr (Stage == kBegin) {
        if constexpr (M > 0)
          return s.begin(at[F]..., given, dt);
        else
          return s.begin(at[F]..., dt);
      } else if constexpr (stages_of<S>() > 1) {
        if constexpr (M > 0) {
          static_assert(
              requires { s.template stage<Stage>(at[F]..., own[F]..., given, dt); },
              "stage<K> takes all fields, all of them at the step's begin, the coefficients, dt");
          return s.template stage<Stage>(at[F]..., own[F]..., given, dt);
        } else {
          static_assert(
              requires { s.template stage<Stage>(at[F]..., own[F]..., dt); },
              "stage<K> takes all fields, all of them at the step's begin, dt");
          return s.template stage<Stage>(at[F]..., own[F]..., dt);
        }
      } else if constexpr (kHasBefore<S>) {
        if constexpr (M > 0)
          return s(at[F]..., own[F]..., given, dt);
        else
          return s(at[F]..., own[F]..., dt);
      } else {
        if constexpr (M > 0)
          return s(at[F]..., given, dt);
        else
          return s(at[F]..., dt);
      }
    }());
  }
  (std::make_index_sequence<N>());
}

/// How much of a source this function of the solver adds: what the solver says, or the step where it need not.
template <int Stage, class S, class G, std::size_t M>
KOKKOS_FUNCTION double weight_of_source(const S& s, const std::array<G, M>& given, double dt) {
  if constexpr (requires { s.template source_weight<Stage>(given, dt); })
    return s.template source_weight<Stage>(given, dt);
  else if constexpr (requires { s.template source_weight<Stage>(dt); })
    return s.template source_weight<Stage>(dt);
  else
    return dt;
}

/// Does the solver say how much of a source its functions add?
template <class S, int D>
inline constexpr bool kSaysSourceWeight = requires(const S& s,
                                                   const std::array<ConstantCell<D>, kCoefficients<S, D>>& given) {
  s.template source_weight<0>(given, 1.0);
}
|| requires(const S& s) {
  s.template source_weight<0>(1.0);
};

/// Does the solver take sources? One with stages or a second time level says how much of them each function adds.
template <class S, int D>
inline constexpr bool kTakesSources = (stages_of<S>() == 1 && !kHasBefore<S>) || kSaysSourceWeight<S, D>;

/// A solver's function as one of a cell's place, for rows on the host and for devices. Reads the fields; then those
/// at the step's begin (stages from 1 on) or a step before; then the coefficients, if they are fields.
template <class S, class T, int D, Given kGiven = Given::numbers, int Stage = 0>
class CellPoint {
 public:
  using Value = T;
  static constexpr int dimensions = D;
  static constexpr std::size_t kWrites = kStateFields<S>, kNumbers = kCoefficients<S, D>;
  static constexpr bool kBranches = requires { S::branches; };
  static constexpr bool kOwn = Stage > 0 || kHasBefore<S>;
  static constexpr std::size_t kOwnFirst = kOwn ? kWrites : 0;
  static constexpr std::size_t kFirst = kWrites * (kOwn ? 2 : 1);  ///< where the coefficients begin
  static constexpr std::size_t kReads = kFirst + (kGiven == Given::numbers ? 0 : kNumbers);
  using Values = std::array<double, kWrites>;
  using From = std::array<const T*, kReads>;

  CellPoint(const S& solver, const CellGeometry<D>& geometry, double dt,
            const std::array<double, kNumbers>& numbers = {})
      : solver_(solver), geometry_(geometry), dt_(dt), numbers_(numbers) {}

  const S& solver() const { return solver_; }
  KOKKOS_FUNCTION std::int64_t stride(int j) const { return geometry_.stride[j]; }
  /// The new values of the cell x elements behind those at `from`.
  KOKKOS_FUNCTION Values at(const From& from, std::int64_t x) const {
    using C = Cell<T, D>;
    return new_values<Stage>(solver_, cells_from<C, 0, kWrites>(from, x),
                             cells_from<C, kOwnFirst, kWrites>(from, x), given_by<C>(from, x), dt_);
  }
  /// N of them, `step` elements from each other, of a function that branches and reads a star of radius 1 at most,
  /// by offsets that are constants: a device loads nothing beyond a branch before it has come there, so all is
  /// loaded first. Layers alone: with a sum along rows there are no registers left (H200, a wave: 1.6 instead
  /// of 1.05 steps).
  template <int along, int N>
  KOKKOS_FUNCTION void several(const From& from, std::int64_t x, std::int64_t step,
                               std::array<T, kWrites> (&to)[N]) const requires(kBranches&& along == 0) {
    using C = Loaded;
    [&]<std::size_t... E>(std::index_sequence<E...>) {
      const Seen<C> seen[]{seen_at<C>(from, x + static_cast<std::int64_t>(E) * step)...};
      for (int e = 0; e < N; ++e) {
        const Values values = new_values<Stage>(solver_, seen[e].now, seen[e].own, seen[e].given, dt_);
        for (std::size_t f = 0; f < kWrites; ++f) to[e][f] = static_cast<T>(values[f]);
      }
    }
    (std::make_index_sequence<static_cast<std::size_t>(N)>());
  }
  /// The same where masked cells mirror.
  KOKKOS_FUNCTION Values mirrored(const From& from, const T* mask, std::int64_t x) const {
    const auto cells = [&]<std::size_t First, std::size_t... F>(std::integral_constant<std::size_t, First>,
                                                                std::index_sequence<F...>) {
      return std::array<MirrorCell<T, D>, kWrites>{MirrorCell<T, D>(from[First + F] + x, mask + x, geometry_)...};
    };
    constexpr std::make_index_sequence<kWrites> all;
    return new_values<Stage>(solver_, cells(std::integral_constant<std::size_t, 0>(), all),
                             cells(std::integral_constant<std::size_t, kOwnFirst>(), all),
                             given_by<Cell<T, D>>(from, x), dt_);
  }
  /// How much of a source the cell gets.
  KOKKOS_FUNCTION double source_weight(const From& from, std::int64_t x) const {
    return weight_of_source<Stage>(solver_, given_by<Cell<T, D>>(from, x), dt_);
  }

 private:
#if defined(__CUDA_ARCH__)
  using Loaded = LoadedCell<T, D>;
#else
  using Loaded = Cell<T, D>;  // a host need not leave out what is not used
#endif
  /// What the function sees of a cell, by a type of cells.
  template <class C>
  using CoefficientCell = std::conditional_t<kGiven == Given::fields, C, ConstantCell<D>>;
  template <class C>
  struct Seen {
    std::array<C, kWrites> now, own;
    std::array<CoefficientCell<C>, kNumbers> given;
  };
  template <class C>
  KOKKOS_FUNCTION Seen<C> seen_at(const From& from, std::int64_t x) const {
    return {cells_from<C, 0, kWrites>(from, x), cells_from<C, kOwnFirst, kWrites>(from, x), given_by<C>(from, x)};
  }
  template <class C>
  KOKKOS_FUNCTION std::array<CoefficientCell<C>, kNumbers> given_by(const From& from, std::int64_t x) const {
    if constexpr (kGiven == Given::fields) {
      return cells_from<C, kFirst, kNumbers>(from, x);
    } else {
      return [&]<std::size_t... K>(std::index_sequence<K...>) {
        return std::array<ConstantCell<D>, kNumbers>{ConstantCell<D>(numbers_[K], geometry_)...};
      }
      (std::make_index_sequence<kNumbers>());
    }
  }

  template <class C, std::size_t First, std::size_t N>
  KOKKOS_FUNCTION std::array<C, N> cells_from(const From& from, std::int64_t x) const {
    return [&]<std::size_t... F>(std::index_sequence<F...>)->std::array<C, N> {
      return {C(from[First + F] + x, geometry_)...};
    }
    (std::make_index_sequence<N>());
  }

  S solver_;
  CellGeometry<D> geometry_;
  double dt_;
  std::array<double, kNumbers> numbers_;
};

/// The row kernel of a cell function. Writes the fields, which may be those a step before.
template <class Point>
class CellRow final : public AmendableKernel<typename Point::Value, Point::dimensions, Point::kWrites> {
 public:
  static constexpr int D = Point::dimensions;
  using T = typename Point::Value;
  /// `beside`: of each array that the function reads, does it read neighbors there? A false one costs speed.
  CellRow(const Point& point, const std::array<bool, Point::kReads>& beside) : point_(point), beside_(beside) {}

  // All that it calls is inlined: a call that is left, as in functions of many terms, would keep cells from being
  // computed by vectors.
  [[gnu::flatten]] void run(const T* const* in, std::int64_t at, T* const* out, std::int64_t to,
                            const CellRows& rows, const Index<D>&) const override {
    // Copies, which the compiler knows that no store changes.
    const Point point = point_;
    const typename Point::From from = rows_at(in, at);
    std::array<T*, Point::kWrites> written;
    for (std::size_t f = 0; f < Point::kWrites; ++f) written[f] = out[f] + to;
    const std::int64_t n = rows.cells, apart = rows.apart;
    for (std::int64_t k = 0, row = 0; k < rows.count; ++k, row += apart) {
      ISOHALO_INDEPENDENT
      for (std::int64_t x = row; x < row + n; ++x) {
        const typename Point::Values values = point.at(from, x);
        for (std::size_t f = 0; f < Point::kWrites; ++f) written[f][x] = static_cast<T>(values[f]);
      }
    }
  }

  bool streams() const override { return true; }
  [[gnu::flatten]] void stream(std::span<T* const> in, std::span<T* const> out, std::int64_t at,
                               const CellRows& rows, const Index<D>&, const Streaming<T>& how) const override {
    if constexpr (D > 1) {
      const Point point = point_;
      std::array<T*, Point::kWrites> written;
      for (std::size_t f = 0; f < Point::kWrites; ++f) written[f] = out[f] + at;
      std::array<std::int64_t, Point::kReads> fetch;
      for (std::size_t f = 0; f < Point::kReads; ++f) fetch[f] = how.later + (beside_[f] ? how.lead : 0);
      stream_rows<T>(point, rows_at(in.data(), at), written, fetch, rows, how, at);
    }
  }

  bool reads_beside(std::size_t k) const override { return beside_[k]; }

  std::size_t reads() const override { return Point::kReads; }
  typename Point::Values mirrored(const T* const* in, const T* mask, std::int64_t at) const override {
    return point_.mirrored(rows_at(in, at), mask, 0);
  }
  void source_weights(const T* const* in, std::int64_t at, std::int64_t n, double* weights) const override {
    const typename Point::From from = rows_at(in, at);
    for (std::int64_t x = 0; x < n; ++x) weights[x] = point_.source_weight(from, x);
  }

 private:
  static typename Point::From rows_at(const T* const* in, std::int64_t at) {
    typename Point::From from;
    for (std::size_t f = 0; f < Point::kReads; ++f) from[f] = in[f] + at;
    return from;
  }

  Point point_;
  std::array<bool, Point::kReads> beside_;
};

}  // namespace detail

}  // namespace isohalo
