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
/// One with kStages has stage<S>(u, u_begin, out, n) for three stages a step, which need an array more, K = 1. One
/// with kColours takes (u, f, n, first) twice a step, in place: cells first, first + 2, .. change.
template <int D, class Row, std::size_t N = 1, class T = double, std::size_t K = 0>
class HandWritten final : public HandSteps<T, D> {
 public:
  HandWritten(const CartesianDomain<D>& domain, const std::function<Row(const Index<D>&)>& make)
      : grid_(domain, layers()), row_(make(grid_.stride())) {
    for (std::size_t f = 0; f < N; ++f) u_.push_back(grid_.array()), v_.push_back(grid_.array());
    for (std::size_t k = 0; k < K; ++k) given_.push_back(grid_.array());
  }

  T& at(const Index<D>& i, std::size_t f) override { return u_[f].ref().data[grid_.place(i)]; }
  T& before(const Index<D>& i) override { return v_[0].ref().data[grid_.place(i)]; }
  T& given(const Index<D>& i, std::size_t k) override { return given_[k].ref().data[grid_.place(i)]; }

  void start() override {
    for (auto& g : given_) grid_.exchange(g.ref().data);
  }

  void advance(std::int64_t steps) override {
    for (std::int64_t s = 0; s < steps; ++s) {
      if constexpr (requires { row_.begin_step(); }) row_.begin_step();
      const auto old = pointers<N>(u_), now = pointers<N>(v_);
      const auto given = pointers<K>(given_);
      if constexpr (requires { Row::kStages; }) {
        stage<0>(old[0], old[0], now[0]);
        stage<1>(now[0], old[0], given[0]);
        stage<2>(given[0], old[0], old[0]);  // in place of what it reads in its own cell alone
      } else if constexpr (requires { Row::kColours; }) {
        for (std::int64_t colour = 0; colour < 2; ++colour) {
          grid_.exchange(old[0]);
          grid_.for_each_row([&](std::int64_t k, std::int64_t n, const Index<D>& i) {
            std::int64_t sum = colour;
            for (int j = 0; j < D; ++j) sum += i[j];
            row_(old[0] + k, given[0] + k, n, sum % 2);
          });
        }
      } else {
        for (T* const u : old) grid_.exchange(u);
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
  }

 private:
  /// Of ghosts.
  static constexpr std::int64_t layers() {
    if constexpr (requires { Row::kLayers; })
      return Row::kLayers;
    else
      return 1;
  }
  template <int Stage>
  void stage(T* in, T* begin, T* out) {
    grid_.exchange(in);
    grid_.for_each_row([&](std::int64_t k, std::int64_t n, const Index<D>&) {
      row_.template stage<Stage>(in + k, begin + k, out + k, n);
    });
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

}  // namespace isohalo
