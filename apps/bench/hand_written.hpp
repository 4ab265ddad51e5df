#pragma once
/// The opponents of `bench sweep`: what a careful programmer writes around the rows of hand_rows.hpp and
/// hand_solver_rows.hpp.

#include <array>
#include <functional>
#include <utility>
#include <vector>

#include "apps/bench/hand_grid.hpp"

namespace isohalo {

/// Two arrays of each of N fields take turns. `Row` takes the row of each field in the old arrays and then in the
/// new ones; with K constant arrays (coefficients, a source) it takes these after the old one of its single field.
template <int D, class Row, std::size_t N = 1, class T = double, std::size_t K = 0>
class HandWritten {
 public:
  HandWritten(const CartesianDomain<D>& domain, const std::function<Row(const Index<D>&)>& make)
      : grid_(domain, layers()), row_(make(grid_.stride())) {
    for (std::size_t f = 0; f < N; ++f) u_.push_back(grid_.array()), v_.push_back(grid_.array());
    for (std::size_t k = 0; k < K; ++k) given_.push_back(grid_.array());
  }

  /// Field f; its second time level; constant k.
  T& at(const Index<D>& i, std::size_t f = 0) { return u_[f].ref().data[grid_.place(i)]; }
  T& before(const Index<D>& i) { return v_[0].ref().data[grid_.place(i)]; }
  T& given(const Index<D>& i, std::size_t k) { return given_[k].ref().data[grid_.place(i)]; }

  /// To be called when the constants are in place.
  void start() {
    for (auto& g : given_) grid_.exchange(g.ref().data);
  }

  void advance(std::int64_t steps) {
    for (std::int64_t s = 0; s < steps; ++s) {
      if constexpr (requires { row_.begin_step(); }) row_.begin_step();
      for (auto& u : u_) grid_.exchange(u.ref().data);
      const auto old = pointers<N>(u_), now = pointers<N>(v_);
      const auto given = pointers<K>(given_);
      grid_.for_each_row([&](std::int64_t k, std::int64_t n, const Index<D>&) {
        if constexpr (N == 2)
          row_(old[0] + k, old[1] + k, now[0] + k, now[1] + k, n);
        else if constexpr (K == 0)
          row_(old[0] + k, now[0] + k, n);
        else
          row_(old[0] + k, given, k, now[0] + k, n);
      });
      std::swap(u_, v_);
    }
  }

 private:
  /// Of ghosts.
  static constexpr std::int64_t layers() {
    if constexpr (requires { Row::kLayers; })
      return Row::kLayers;
    else
      return 1;
  }
  using Arrays = std::vector<typename HandGrid<T, D>::Array>;
  template <std::size_t M>
  static std::array<T*, M> pointers(const Arrays& arrays) {
    std::array<T*, M> p{};
    for (std::size_t k = 0; k < M; ++k) p[k] = arrays[k].ref().data;
    return p;
  }

  HandGrid<T, D> grid_;
  Row row_;
  Arrays u_, v_, given_;
};

/// Three stages a step, periodic, two layers of ghosts. `Row` has stage<K>(u, u_begin, out, n).
template <int D, class Row>
class HandStages {
 public:
  HandStages(const CartesianDomain<D>& domain, const std::function<Row(const Index<D>&)>& make)
      : grid_(domain, 2), row_(make(grid_.stride())), u_(grid_.array()), v_(grid_.array()), w_(grid_.array()) {}

  double& at(const Index<D>& i, std::size_t = 0) { return u_.ref().data[grid_.place(i)]; }

  void advance(std::int64_t steps) {
    double *const v = v_.ref().data, *const w = w_.ref().data;
    for (std::int64_t s = 0; s < steps; ++s) {
      double* const u = u_.ref().data;
      stage<0>(u, u, v);
      stage<1>(v, u, w);
      stage<2>(w, u, u);  // in place of what it reads in its own cell alone
    }
  }

 private:
  template <int K>
  void stage(double* in, double* begin, double* out) {
    grid_.exchange(in);
    grid_.for_each_row([&](std::int64_t k, std::int64_t n, const Index<D>&) {
      row_.template stage<K>(in + k, begin + k, out + k, n);
    });
  }

  HandGrid<double, D> grid_;
  Row row_;
  typename HandGrid<double, D>::Array u_, v_, w_;
};

/// Two colours a step, in place, outside cells 0. `Row` takes (u, f, n, first): cells first, first + 2, .. change.
template <int D, class Row>
class HandColours {
 public:
  HandColours(const CartesianDomain<D>& domain, const std::function<Row(const Index<D>&)>& make)
      : grid_(domain, 1), row_(make(grid_.stride())), u_(grid_.array()), f_(grid_.array()) {}

  double& at(const Index<D>& i, std::size_t = 0) { return u_.ref().data[grid_.place(i)]; }
  double& given(const Index<D>& i, std::size_t) { return f_.ref().data[grid_.place(i)]; }
  void start() {}

  void advance(std::int64_t steps) {
    double* const u = u_.ref().data;
    const double* const f = f_.ref().data;
    for (std::int64_t s = 0; s < 2 * steps; ++s) {
      grid_.exchange(u);
      grid_.for_each_row([&](std::int64_t k, std::int64_t n, const Index<D>& i) {
        std::int64_t sum = s;
        for (int j = 0; j < D; ++j) sum += i[j];
        row_(u + k, f + k, n, sum % 2);
      });
    }
  }

 private:
  HandGrid<double, D> grid_;
  Row row_;
  typename HandGrid<double, D>::Array u_, f_;
};

}  // namespace isohalo
