#pragma once
/// Row kernels: the update of one row of cells. `kernel(in, out, n)` writes out[0..n) from the old field, where
/// `in` is the address of the row's first cell in it; `in` and `out` never overlap and share all strides. A kernel
/// that reads other fields as well takes a fourth argument, the global index of the row's first cell.
///
/// Each cell is one expression, the same on every path, so that no loop order, vector width or thread changes its
/// bits (all code is compiled without contraction).

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "datatypes/box.hpp"
#include "framework/halo/array_ref.hpp"
#include "framework/neighborhood/offsets.hpp"
#include "framework/reduce/tile_reducer.hpp"

namespace isohalo {

/// acc = w_0 u(i+o_0); acc = acc + w_1 u(i+o_1); ...; out = acc (docs/model.md, kind = "stencil"). Any number of
/// offsets.
template <class T>
class WeightedRow {
 public:
  template <int D>
  static WeightedRow of(const Offsets<D>& offsets, const std::vector<double>& weights, const Index<D>& stride) {
    WeightedRow r;
    for (std::size_t k = 0; k < offsets.size(); ++k) {
      std::int64_t at = 0;
      for (int j = 0; j < D; ++j) at += offsets[k][j] * stride[j];
      r.at_.push_back(at);
      r.weight_.push_back(static_cast<T>(weights[k]));
    }
    return r;
  }

  void operator()(const T* in, T* out, std::int64_t n) const {
    // Long rows in pieces that stay in the first-level cache while several groups of offsets pass over them.
    const std::int64_t piece = at_.size() <= kGroup ? n : 1024;
    for (std::int64_t x = 0; x < n; x += piece) {
      const std::int64_t m = std::min(piece, n - x);
      for (std::size_t k = 0; k < at_.size(); k += kGroup) group(in + x, out + x, m, k);
    }
  }

 private:
  static constexpr std::size_t kGroup = 9;

  void group(const T* in, T* out, std::int64_t n, std::size_t first) const {
    const std::size_t terms = std::min(kGroup, at_.size() - first);
    dispatch(std::make_index_sequence<kGroup>{}, terms, in, out, n, first);
  }
  template <std::size_t... N>
  void dispatch(std::index_sequence<N...>, std::size_t terms, const T* in, T* out, std::int64_t n,
                std::size_t first) const {
    ((terms == N + 1 ? add_terms<N + 1>(in, out, n, first) : void()), ...);
  }
  template <std::size_t N>
  void add_terms(const T* in, T* out, std::int64_t n, std::size_t first) const {
    first == 0 ? add_terms<N, true>(in, out, n, first) : add_terms<N, false>(in, out, n, first);
  }
  template <std::size_t N, bool First>
  void add_terms(const T* in, T* __restrict out, std::int64_t n, std::size_t first) const {
    std::array<const T*, N> u;
    std::array<T, N> w;
    for (std::size_t k = 0; k < N; ++k) u[k] = in + at_[first + k], w[k] = weight_[first + k];
    for (std::int64_t x = 0; x < n; ++x) {
      T acc = First ? w[0] * u[0][x] : out[x] + w[0] * u[0][x];
      for (std::size_t k = 1; k < N; ++k) acc = acc + w[k] * u[k][x];
      out[x] = acc;
    }
  }

  std::vector<std::int64_t> at_;
  std::vector<T> weight_;
};

/// u_new = u + (t_0 + t_1 + ..), t_j = c_j ((u(i-e_j) - 2 u(i)) + u(i+e_j)) (docs/model.md, kind = "heat").
template <class T, int D>
class HeatRow {
 public:
  HeatRow(const PerDim<T, D>& c, const Index<D>& stride) : c_(c), stride_(stride) {}

  void operator()(const T* in, T* __restrict out, std::int64_t n) const {
    const PerDim<T, D> c = c_;
    Index<D> s = stride_;
    s[D - 1] = 1;  // rows are contiguous; said as a constant it saves registers
    ISOHALO_INDEPENDENT
    for (std::int64_t x = 0; x < n; ++x) {
      const T u = in[x], twice = T(2) * u;
      T a = c[0] * ((in[x - s[0]] - twice) + in[x + s[0]]);
      for (int j = 1; j < D; ++j) a = a + c[j] * ((in[x - s[j]] - twice) + in[x + s[j]]);
      out[x] = u + a;
    }
  }

 private:
  PerDim<T, D> c_;
  Index<D> stride_;
};

/// lap = t_0 + t_1 + .., t_j = q_j ((u(i-e_j) - 2 u(i)) + u(i+e_j)) (docs/model.md, kind = "poisson").
template <class T, int D>
class Laplacian {
 public:
  Laplacian(const PerDim<T, D>& q, const Index<D>& stride) : q_(q), stride_(stride) {}
  /// At the cell whose address is `u`.
  T operator()(const T* u) const {
    const T twice = T(2) * *u;
    Index<D> s = stride_;
    s[D - 1] = 1;  // as in HeatRow: said as a constant it saves registers, in 3-D a fifth of the time
    T lap = q_[0] * ((u[-s[0]] - twice) + u[s[0]]);
    for (int j = 1; j < D; ++j) lap = lap + q_[j] * ((u[-s[j]] - twice) + u[s[j]]);
    return lap;
  }

 private:
  PerDim<T, D> q_;
  Index<D> stride_;
};

/// u_new = u + (omega r) / D, r = f + lap (docs/model.md, "Jacobi").
template <class T, int D>
class JacobiRow {
 public:
  JacobiRow(const Laplacian<T, D>& laplacian, const ArrayRef<T, D>& f, T omega, T diagonal)
      : laplacian_(laplacian), f_(f), omega_(omega), diagonal_(diagonal) {}

  void operator()(const T* in, T* __restrict out, std::int64_t n, const Index<D>& i) const {
    const Laplacian<T, D> laplacian = laplacian_;
    const T omega = omega_, diagonal = diagonal_;
    const T* const f = &f_.at(i);
    for (std::int64_t x = 0; x < n; ++x) {
      const T r = f[x] + laplacian(in + x);
      out[x] = in[x] + (omega * r) / diagonal;
    }
  }

 private:
  Laplacian<T, D> laplacian_;
  ArrayRef<T, D> f_;
  T omega_, diagonal_;
};

/// Conway's game and its relatives: the next state by the number of living neighbors, of the 8 around a cell. Bit n
/// of `born` (`survive`) says whether a dead (living) cell with n of them lives. Cells hold 0 or 1.
class LifeRow {
 public:
  LifeRow(unsigned born, unsigned survive, const Index<2>& stride)
      : born_(born), survive_(survive), stride_(stride[0]) {}

  void operator()(const std::uint8_t* in, std::uint8_t* __restrict out, std::int64_t n) const {
    const std::uint8_t *above = in - stride_, *below = in + stride_;
    const unsigned born = born_, survive = survive_;
    for (std::int64_t x = 0; x < n; ++x) {
      const unsigned living = unsigned{above[x - 1]} + above[x] + above[x + 1] + in[x - 1] + in[x + 1] +
                              below[x - 1] + below[x] + below[x + 1];
      out[x] = static_cast<std::uint8_t>(((in[x] ? survive : born) >> living) & 1u);
    }
  }

 private:
  unsigned born_, survive_;
  std::int64_t stride_;
};

}  // namespace isohalo
