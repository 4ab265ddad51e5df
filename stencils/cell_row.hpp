#pragma once
/// The row kernel of a cell function (cell_solver.hpp says what that is).

#include <array>
#include <type_traits>
#include <utility>

#include "stencils/cell.hpp"
#include "stencils/sweep.hpp"

namespace isohalo {

/// A coefficient: a field that the function reads and that does not change, or a number.
struct Coefficient {
  const char *name, *unit, *help;
  double fallback;
  double min = -1e300, max = 1e300;

  /// The same with a least, or a least and a largest value.
  constexpr Coefficient from(double least, double most = 1e300) const {
    Coefficient c = *this;
    c.min = least;
    c.max = most;
    return c;
  }
};

/// How a kernel is given what does not change.
enum class Given {
  numbers,  ///< coefficients are numbers
  fields,   ///< coefficients are fields
};

namespace detail {

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
class ConstantCell {
 public:
  static constexpr bool kUniform = true;
  KOKKOS_FUNCTION explicit ConstantCell(double value) : value_(value) {}
  KOKKOS_FUNCTION double operator()() const { return value_; }
  KOKKOS_FUNCTION double near(int, int) const { return value_; }
  template <int D>
  KOKKOS_FUNCTION double near(const Index<D>&) const {
    return value_;
  }

 private:
  double value_;
};

/// Which function of a solver is meant: a stage by its number, or what forms the fields a step before the first.
inline constexpr int kBegin = -1;

/// What the solver's function gives at one cell, as an array. `own`: the fields at the step's begin, or a step
/// before, for functions that take them.
template <int Stage, class S, class C, class G, std::size_t N, std::size_t M>
KOKKOS_FUNCTION std::array<double, N> new_values(const S& s, const std::array<C, N>& at,
                                                 const std::array<C, N>& own, const std::array<G, M>& given,
                                                 double dt) {
  return [&]<std::size_t... F>(std::index_sequence<F...>)->std::array<double, N> {
    const auto values = [&] {
      if constexpr (Stage == kBegin) {
        if constexpr (M > 0)
          return s.begin(at[F]..., given, dt);
        else
          return s.begin(at[F]..., dt);
      } else if constexpr (stages_of<S>() > 1) {
        if constexpr (M > 0)
          return s.template stage<Stage>(at[F]..., own[F]..., given, dt);
        else
          return s.template stage<Stage>(at[F]..., own[F]..., dt);
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
    }();
    if constexpr (std::is_arithmetic_v<std::remove_cvref_t<decltype(values)>>) {
      static_assert(N == 1, "a solver of several fields returns cells(..) of as many values");
      return {static_cast<double>(values)};
    } else {
      static_assert(std::tuple_size_v<std::remove_cvref_t<decltype(values)>> == N,
                    "a solver returns one value for each of its fields");
      return values;
    }
  }
  (std::make_index_sequence<N>());
}

/// Reads the fields; then those at the step's begin (stages from 1 on) or a step before; then the coefficients, if
/// they are fields. Writes the fields, which may be those a step before.
template <class S, class T, int D, Given kGiven = Given::numbers, int Stage = 0>
class CellRow {
 public:
  static constexpr std::size_t kWrites = kStateFields<S>, kNumbers = kCoefficients<S, D>;
  static constexpr bool kOwn = Stage > 0 || kHasBefore<S>;
  static constexpr std::size_t kOwnFirst = kOwn ? kWrites : 0;
  static constexpr std::size_t kFirst = kWrites * (kOwn ? 2 : 1);  ///< where the coefficients begin
  static constexpr std::size_t kReads = kFirst + (kGiven == Given::numbers ? 0 : kNumbers);

  CellRow(const S& solver, const CellGeometry<D>& geometry, double dt,
          const std::array<double, kNumbers>& numbers = {})
      : solver_(solver), geometry_(geometry), dt_(dt), numbers_(numbers) {}

  // Not inlined into all that calls it: a call per row costs nothing, its loop is long to compile. All that it
  // calls is inlined: a call that is left, as in functions of many terms, would keep cells from being computed by
  // vectors.
  [[gnu::noinline, gnu::flatten]] void operator()(const std::array<const T*, kReads>& in,
                                                  const std::array<T*, kWrites>& out, std::int64_t n) const {
    // Copies, which the compiler knows that no store changes.
    const S solver = solver_;
    const CellGeometry<D> geometry = geometry_;
    const double dt = dt_;
    const std::array<double, kNumbers> numbers = numbers_;
    const std::array<const T*, kReads> from = in;
    const std::array<T*, kWrites> to = out;
    ISOHALO_INDEPENDENT
    for (std::int64_t x = 0; x < n; ++x) {
      const auto at = cells_from<0, kWrites>(from, x, geometry);
      const auto own = cells_from<kOwnFirst, kWrites>(from, x, geometry);
      std::array<double, kWrites> values;
      if constexpr (kGiven == Given::numbers) {
        const auto given = [&]<std::size_t... K>(std::index_sequence<K...>) {
          return std::array<ConstantCell, kNumbers>{ConstantCell(numbers[K])...};
        }
        (std::make_index_sequence<kNumbers>());
        values = new_values<Stage>(solver, at, own, given, dt);
      } else {
        values = new_values<Stage>(solver, at, own, cells_from<kFirst, kNumbers>(from, x, geometry), dt);
      }
      for (std::size_t f = 0; f < kWrites; ++f) to[f][x] = static_cast<T>(values[f]);
    }
  }
  void operator()(const T* in, T* out, std::int64_t n) const requires(kReads == 1 && kWrites == 1) {
    (*this)(std::array<const T*, 1>{in}, std::array<T*, 1>{out}, n);
  }

 private:
  template <std::size_t First, std::size_t N>
  KOKKOS_FUNCTION static std::array<Cell<T, D>, N> cells_from(const std::array<const T*, kReads>& from,
                                                              std::int64_t x, const CellGeometry<D>& geometry) {
    return [&]<std::size_t... F>(std::index_sequence<F...>)->std::array<Cell<T, D>, N> {
      return {Cell<T, D>(from[First + F] + x, geometry)...};
    }
    (std::make_index_sequence<N>());
  }

  S solver_;
  CellGeometry<D> geometry_;
  double dt_;
  std::array<double, kNumbers> numbers_;
};

/// The same where cells are masked: one more array is read, and where it is not 0 the fields keep their values.
template <class Row, class T>
class MaskedRow {
 public:
  static constexpr std::size_t kWrites = Row::kWrites, kReads = Row::kReads + 1;
  explicit MaskedRow(const Row& row) : row_(row) {}

  void operator()(const std::array<const T*, kReads>& in, const std::array<T*, kWrites>& out,
                  std::int64_t n) const {
    std::array<const T*, Row::kReads> unmasked;
    for (std::size_t f = 0; f < Row::kReads; ++f) unmasked[f] = in[f];
    row_(unmasked, out, n);
    const T* const mask = in[Row::kReads];
    for (std::size_t f = 0; f < kWrites; ++f)
      for (std::int64_t x = 0; x < n; ++x) out[f][x] = mask[x] != T(0) ? in[f][x] : out[f][x];
  }

 private:
  Row row_;
};

}  // namespace detail

}  // namespace isohalo
