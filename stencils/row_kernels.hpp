#pragma once
/// Row kernels: the update of one row of cells. `kernel(in, out, n)` writes out[0..n) from the old field, where
/// `in` is the address of the row's first cell in it; `in` and `out` never overlap and share all strides. A kernel
/// that reads other fields as well takes a fourth argument, the global index of the row's first cell.
///
/// Each cell is one expression, the same on every path, so that no loop order, vector width or thread changes its
/// bits (all code is compiled without contraction).

#include <Kokkos_Macros.hpp>
#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "datatypes/box.hpp"
#include "datatypes/independent.hpp"
#include "framework/halo/array_ref.hpp"
#include "stencils/vectors.hpp"
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

/// u_new = u + (t_0 + t_1 + ..), the t_j those of a Laplacian with q_j = c_j (docs/model.md, kind = "heat").
template <class T, int D>
class HeatRow {
 public:
  HeatRow(const PerDim<T, D>& c, const Index<D>& stride) : laplacian_(c, stride) {}

  void operator()(const T* in, T* __restrict out, std::int64_t n) const {
    const Laplacian<T, D> laplacian = laplacian_;
    ISOHALO_INDEPENDENT
    for (std::int64_t x = 0; x < n; ++x) out[x] = in[x] + laplacian(in + x);
  }

 private:
  Laplacian<T, D> laplacian_;
};

/// u_new = u + (omega r) / D, r = f + lap (docs/model.md, "Jacobi"), at the cell whose address is `u`.
template <class T, int D>
struct JacobiAt {
  Laplacian<T, D> laplacian;
  T omega, diagonal;
  KOKKOS_FUNCTION T operator()(const T* u, T f) const {
    const T r = f + laplacian(u);
    return *u + (omega * r) / diagonal;
  }
};

template <class T, int D>
class JacobiRow {
 public:
  JacobiRow(const JacobiAt<T, D>& at, const ArrayRef<T, D>& f) : at_(at), f_(f) {}

  void operator()(const T* in, T* __restrict out, std::int64_t n, const Index<D>& i) const {
    const JacobiAt<T, D> at = at_;
    const T* const f = &f_.at(i);
    ISOHALO_INDEPENDENT
    for (std::int64_t x = 0; x < n; ++x) out[x] = at(in + x, f[x]);
  }
  const ArrayRef<T, D>& source() const { return f_; }

 private:
  JacobiAt<T, D> at_;
  ArrayRef<T, D> f_;
};

/// Conway's game and its relatives, at the cell whose address is `u` in rows so far apart. Bit n of `born`
/// (`survive`) says whether a dead (living) cell with n living neighbors, of the 8 around it, lives. Cells hold 0
/// or 1.
struct LifeAt {
  unsigned born, survive;
  std::int64_t row;
  KOKKOS_FUNCTION std::uint8_t operator()(const std::uint8_t* u) const {
    const std::uint8_t *const above = u - row, *const below = u + row;
    const int living = above[-1] + above[0] + above[1] + u[-1] + u[1] + below[-1] + below[0] + below[1];
    return static_cast<std::uint8_t>((*u ? survive : born) >> living & 1u);
  }
};

/// Rows of it, in vectors of bytes. A count that makes no cell live costs nothing, any other one a comparison.
template <int Bytes = detail::kVectorBytes>
class LifeRow {
 public:
  LifeRow(unsigned born, unsigned survive, const Index<2>& stride) : at_{born, survive, stride[0]} {
    for (unsigned n = 0; n <= 8; ++n) {
      const auto dead = static_cast<std::uint8_t>(born >> n & 1u),
                 alive = static_cast<std::uint8_t>(survive >> n & 1u);
      if (dead || alive)
        counts_[used_++] = {static_cast<std::uint8_t>(n), dead, static_cast<std::uint8_t>(dead ^ alive)};
    }
  }

  void operator()(const std::uint8_t* in, std::uint8_t* out, std::int64_t n) const {
    [&]<std::size_t... N>(std::index_sequence<N...>) {
      (void)((used_ == N ? (row<N>(in, out, n), true) : false) || ...);
    }
    (std::make_index_sequence<10>());
  }

 private:
  using Vector = detail::VectorOf<std::uint8_t, Bytes>;
  using V = typename Vector::Type;
  /// With n living neighbors the next state is `dead`, in a living cell with the bit `flip` changed.
  struct Count {
    std::uint8_t n, dead, flip;
  };

  template <std::size_t N>
  void row(const std::uint8_t* in, std::uint8_t* out, std::int64_t n) const {
    if (n < Bytes) {
      for (std::int64_t x = 0; x < n; ++x) out[x] = at_(in + x);
      return;
    }
    const std::array<Count, 9> counts = counts_;
    const std::int64_t s = at_.row;
    for (std::int64_t x = 0; x < n; x += Bytes) {
      x = std::min(x, n - Bytes);  // some cells of the last vector are computed again
      const std::uint8_t *const u = in + x, *const above = u - s, *const below = u + s;
      const V left = at(above - 1) + at(u - 1) + at(below - 1), right = at(above + 1) + at(u + 1) + at(below + 1);
      const V living = left + right + (at(above) + at(below)), state = at(u);
      V next = Vector::filled(0);
      for (std::size_t k = 0; k < N; ++k)
        next |= static_cast<V>(living == counts[k].n) & (counts[k].dead ^ (counts[k].flip & state));
      Vector::store(out + x, next);
    }
  }
  static V at(const std::uint8_t* p) { return Vector::load(p); }

  LifeAt at_;
  std::array<Count, 9> counts_{};
  std::size_t used_ = 0;
};

}  // namespace isohalo
