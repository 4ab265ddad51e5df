#pragma once
/// Row kernels: the update of one row of cells. `kernel(in, out, n)` writes out[0..n) from the old field, where
/// `in` is the address of the row's first cell in it; `in` and `out` never overlap and share all strides. A kernel
/// that reads other fields as well takes a fourth argument, the global index of the row's first cell. Those whose
/// cells are computed one by one are made of a point kernel (PointRow), which devices take as it is.
///
/// Each cell is one expression, the same on every path, so that no loop order, vector width or thread changes its
/// bits (all code is compiled without contraction).

#include <Kokkos_Macros.hpp>
#include <algorithm>
#include <array>
#include <cstdint>

#include "datatypes/box.hpp"
#include "datatypes/independent.hpp"
#include "framework/halo/array_ref.hpp"
#include "framework/halo/row_kernel.hpp"
#include "stencils/streamed_rows.hpp"
#include "stencils/weighted_row.hpp"

namespace isohalo {

/// lap = t_0 + t_1 + .., t_j = q_j ((u(i-e_j) - 2 u(i)) + u(i+e_j)) (docs/model.md, kind = "poisson").
template <class T, int D>
class Laplacian {
 public:
  Laplacian(const PerDim<T, D>& q, const Index<D>& stride) : q_(q), stride_(stride) {}
  KOKKOS_FUNCTION std::int64_t stride(int j) const { return stride_[j]; }
  /// At the cell whose address is `u`.
  KOKKOS_FUNCTION T operator()(const T* u) const {
    const T twice = T(2) * *u;
    Index<D> s = stride_;
    s[D - 1] = 1;  // rows are contiguous; said as a constant it saves registers, in 3-D a fifth of the time
    T lap = q_[0] * ((u[-s[0]] - twice) + u[s[0]]);
    for (int j = 1; j < D; ++j) lap = lap + q_[j] * ((u[-s[j]] - twice) + u[s[j]]);
    return lap;
  }

 private:
  PerDim<T, D> q_;
  Index<D> stride_;
};

// Point kernels: at(from, x) is the new value of the cell x elements behind `from`, the addresses of the fields
// that it reads.

/// u_new = u + (t_0 + t_1 + ..), the t_j those of a Laplacian with q_j = c_j (docs/model.md, kind = "heat").
template <class T, int D>
struct HeatPoint {
  Laplacian<T, D> laplacian;
  static constexpr std::size_t kReads = 1, kWrites = 1;
  KOKKOS_FUNCTION std::int64_t stride(int j) const { return laplacian.stride(j); }
  KOKKOS_FUNCTION std::array<T, 1> at(const std::array<const T*, 1>& from, std::int64_t x) const {
    return {from[0][x] + laplacian(from[0] + x)};
  }
};

/// u_new = u + (omega r) / D, r = f + lap (docs/model.md, "Jacobi"); from u and f.
template <class T, int D>
struct JacobiPoint {
  Laplacian<T, D> laplacian;
  T omega, diagonal;
  static constexpr std::size_t kReads = 2, kWrites = 1;
  KOKKOS_FUNCTION std::int64_t stride(int j) const { return laplacian.stride(j); }
  KOKKOS_FUNCTION std::array<T, 1> at(const std::array<const T*, 2>& from, std::int64_t x) const {
    const T* const u = from[0] + x;
    const T r = from[1][x] + laplacian(u);
    return {*u + (omega * r) / diagonal};
  }
};

namespace detail {

/// What a kernel takes for a step: the point, or what that says for this one.
template <class Point>
auto of_this_step(const Point& point) {
  if constexpr (requires { point.of_this_step(); })
    return point.of_this_step();
  else
    return point;
}

}  // namespace detail

/// Rows by a point kernel that reads the field; then, if it reads three arrays, the one that it overwrites; then,
/// if it reads two or three, a source with the strides of the field.
template <class T, int D, template <class, int> class PointOf>
class PointRow final : public RowKernel<T, D> {
  using Point = PointOf<T, D>;

 public:
  explicit PointRow(const PointOf<T, D>& point, const ArrayRef<T, D>& source = {})
      : point_(point), source_(source) {}

  [[gnu::flatten]] void run(const T* const* in, std::int64_t at, T* const* out, std::int64_t to,
                            const CellRows& rows, const Index<D>& i) const override {
    const auto point = detail::of_this_step(point_);  // a copy, which no store changes
    std::array<const T*, Point::kReads> from{in[0] + at};
    if constexpr (kReplaces) from[1] = out[0] + to;
    if constexpr (Point::kReads > 1) from[Point::kReads - 1] = &source_.at(i);
    T* const written = out[0] + to;
    const std::int64_t n = rows.cells, apart = rows.apart;
    for (std::int64_t k = 0, row = 0; k < rows.count; ++k, row += apart) {
      ISOHALO_INDEPENDENT
      for (std::int64_t x = row; x < row + n; ++x) written[x] = point.at(from, x)[0];
    }
  }
  bool streams() const override { return true; }
  [[gnu::flatten]] void stream(std::span<T* const> in, std::span<T* const> out, std::int64_t at,
                               const CellRows& rows, const Index<D>& i, const Streaming<T>& how) const override {
    if constexpr (D > 1) {
      const auto point = detail::of_this_step(point_);
      std::array<const T*, Point::kReads> from{in[0] + at};
      if constexpr (kReplaces) from[1] = out[0] + at;
      if constexpr (Point::kReads > 1) from[Point::kReads - 1] = &source_.at(i);
      std::array<std::int64_t, Point::kReads> fetch;
      fetch.fill(how.later);
      fetch[0] += how.lead;
      detail::stream_rows<T>(point, from, std::array<T*, 1>{out[0] + at}, fetch, rows, how, at);
    }
  }
  bool reads_what_it_writes() const override { return kReplaces; }
  bool takes_any_value() const override { return !kReplaces; }
  const T* source_at(const Index<D>& i) const override { return Point::kReads > 1 ? &source_.at(i) : nullptr; }

 private:
  static constexpr bool kReplaces = Point::kReads > 2;

  Point point_;
  ArrayRef<T, D> source_;
};

namespace detail {

/// Rows that are updated in place and add up terms of their cells, such as squared changes, if they are wanted (by
/// `stream` their own ones as well, not squared changes to Streaming::before).
template <class T, int D>
class ChangingKernel : public RowKernel<T, D> {
 public:
  /// As `run`; the terms of the cells of one row after the other are added to sums[0] and on. `first`:
  /// those of the first row are the first ones, and take the place of what is there.
  virtual void run_adding(const T* const* in, std::int64_t at, T* const* out, std::int64_t to, const CellRows& rows,
                          const Index<D>& i, double* sums, bool first) const = 0;
  bool reads_what_it_writes() const override { return true; }
};

/// Each cell by update.values(k), update.store(k, values) and, where there are sums, update.term(k, values), k
/// elements behind the first owned one of the arrays, whose addresses it has.
template <class T, int D, class Update>
class RowsInPlace final : public ChangingKernel<T, D> {
 public:
  explicit RowsInPlace(const Update& update) : update_(update) {}
  [[gnu::flatten]] void run(const T* const*, std::int64_t at, T* const*, std::int64_t, const CellRows& rows,
                            const Index<D>&) const override {
    const Update update = update_;
    for (std::int64_t k = 0; k < rows.count; ++k, at += rows.apart) {
      ISOHALO_INDEPENDENT
      for (std::int64_t x = at; x < at + rows.cells; ++x) update.store(x, update.values(x));
    }
  }
  [[gnu::flatten]] void run_adding(const T* const*, std::int64_t at, T* const*, std::int64_t, const CellRows& rows,
                                   const Index<D>&, double* sums, bool first) const override {
    if constexpr (kSums) {
      const Update update = update_;
      if (first) std::fill_n(sums, rows.cells, -0.0);  // -0 + x is x, whatever x is
      for (std::int64_t k = 0; k < rows.count; ++k, at += rows.apart) {
        ISOHALO_INDEPENDENT
        for (std::int64_t x = 0; x < rows.cells; ++x) {
          const auto values = update.values(at + x);
          sums[x] = sums[x] + update.term(at + x, values);
          update.store(at + x, values);
        }
      }
    }
  }

  bool streams() const override { return true; }
  [[gnu::flatten]] void stream(std::span<T* const> in, std::span<T* const> out, std::int64_t at,
                               const CellRows& rows, const Index<D>&, const Streaming<T>& how) const override {
    if constexpr (D > 1) {
      const Update update = update_;
      if constexpr (kSums)
        if (how.sums) return stream_in_place<true>(update, in, out, at, rows, how);
      stream_in_place<false>(update, in, out, at, rows, how);
    }
  }

 private:
  static constexpr bool kSums = requires(const Update& u, std::int64_t at) { u.term(at, u.values(at)); };

  Update update_;
};

}  // namespace detail

}  // namespace isohalo
