#pragma once
/// The opponent of `bench cg`: conjugate gradients as a careful programmer writes them, with products of vectors in
/// any order. Three passes an iteration over nine arrays: A p is formed anew where it is needed, which from memory
/// is faster than to write it and read it again.

#include <array>

#include "apps/bench/hand_grid.hpp"
#include "apps/bench/hand_solver_rows.hpp"
#include "datatypes/independent.hpp"

namespace isohalo {

/// -laplace(u) = f from u = 0, outside cells 0.
template <int D>
class HandCg {
 public:
  HandCg(const CartesianDomain<D>& domain, const PerDim<double, D>& q)
      : comm_(domain.comm().get()), grid_(domain, 1), q_(q) {}

  double& source(const Index<D>& i) { return r_.ref().data[grid_.place(i)]; }
  /// Before the first iteration, the source in place.
  void start() {
    rr_ = all(sum_of([&](std::int64_t k, std::int64_t n, Lanes& lanes) {
      double *const r = r_.ref().data + k, *const p = p_.ref().data + k;
      for (std::int64_t x = 0; x < n; ++x) p[x] = r[x];
      add(lanes, n, [r](std::int64_t x) { return r[x] * r[x]; });
    }));
  }
  double u(const Index<D>& i) { return u_.ref().data[grid_.place(i)]; }
  /// (r, r).
  double rr() const { return rr_; }

  void advance(std::int64_t steps) {
    for (std::int64_t s = 0; s < steps; ++s) step();
  }

 private:
  /// Sums in progress, as many as hide the latency of an addition behind vectors of any width.
  static constexpr std::int64_t kLanes = 32;
  using Lanes = std::array<double, kLanes>;

  template <class Value>
  static void add(Lanes& lanes, std::int64_t n, const Value& value) {
    Lanes sum = lanes;
    std::int64_t x = 0;
    for (; x + kLanes <= n; x += kLanes)
      for (std::int64_t k = 0; k < kLanes; ++k) sum[static_cast<std::size_t>(k)] += value(x + k);
    for (; x < n; ++x) sum[0] += value(x);
    lanes = sum;
  }
  /// row(k, n, lanes) for all rows; the sum of the lanes.
  template <class Row>
  double sum_of(const Row& row) const {
    Lanes lanes{};
    grid_.for_each_row([&](std::int64_t k, std::int64_t n, const Index<D>&) { row(k, n, lanes); });
    double sum = 0;
    for (const double lane : lanes) sum += lane;
    return sum;
  }
  double all(double sum) const {
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_SUM, comm_);
    return sum;
  }

  void step() {
    double *const p_all = p_.ref().data, *const u_all = u_.ref().data, *const r_all = r_.ref().data;
    grid_.exchange(p_all);
    const PerDim<double, D> q = q_;
    const Index<D> s = grid_.stride();
    const double curvature = all(sum_of([&](std::int64_t k, std::int64_t n, Lanes& lanes) {
      const double* const p = p_all + k;
      add(lanes, n, [=](std::int64_t x) { return p[x] * -hand_laplace<D>(p + x, q, s); });
    }));
    const double alpha = rr_ / curvature;
    const double rr = all(sum_of([&](std::int64_t k, std::int64_t n, Lanes& lanes) {
      double *const r = r_all + k, *const u = u_all + k;
      const double* const p = p_all + k;
      ISOHALO_INDEPENDENT
      for (std::int64_t x = 0; x < n; ++x) {
        u[x] = u[x] + alpha * p[x];
        r[x] = r[x] - alpha * -hand_laplace<D>(p + x, q, s);
      }
      add(lanes, n, [=](std::int64_t x) { return r[x] * r[x]; });
    }));
    const double beta = rr / rr_;
    rr_ = rr;
    grid_.for_each_row([&](std::int64_t k, std::int64_t n, const Index<D>&) {
      double* const p = p_all + k;
      const double* const r = r_all + k;
      ISOHALO_INDEPENDENT
      for (std::int64_t x = 0; x < n; ++x) p[x] = r[x] + beta * p[x];
    });
  }

  MPI_Comm comm_;
  HandGrid<double, D> grid_;
  PerDim<double, D> q_;
  typename HandGrid<double, D>::Array u_ = grid_.array(), r_ = grid_.array(), p_ = grid_.array();
  double rr_ = 0;
};

}  // namespace isohalo
