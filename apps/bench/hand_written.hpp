#pragma once
/// The opponent of `bench sweep`: what a careful programmer writes for one case. Slabs along the slowest dimension,
/// one layer of ghosts, Isend/Irecv of contiguous planes, plain loops over rows. Two arrays take turns; a row of a
/// second time level finds the values of a step before where it writes.

#include <mpi.h>

#include <array>
#include <functional>
#include <vector>

#include "framework/domain/cartesian_domain.hpp"

namespace isohalo {

template <int D>
struct HandHeatRow {
  PerDim<double, D> c;
  Index<D> s;
  void operator()(const double* __restrict u, double* __restrict out, std::int64_t n) const {
    if constexpr (D == 2) {
      const double c0 = c[0], c1 = c[1];
      const std::int64_t s0 = s[0];
      for (std::int64_t x = 0; x < n; ++x)
        out[x] = u[x] + (c0 * ((u[x - s0] - 2 * u[x]) + u[x + s0]) + c1 * ((u[x - 1] - 2 * u[x]) + u[x + 1]));
    } else {
      const double c0 = c[0], c1 = c[1], c2 = c[2];
      const std::int64_t s0 = s[0], s1 = s[1];
      for (std::int64_t x = 0; x < n; ++x)
        out[x] = u[x] + ((c0 * ((u[x - s0] - 2 * u[x]) + u[x + s0]) + c1 * ((u[x - s1] - 2 * u[x]) + u[x + s1])) +
                         c2 * ((u[x - 1] - 2 * u[x]) + u[x + 1]));
    }
  }
};

template <int D>
class HandBoxRow {
 public:
  HandBoxRow(const std::vector<double>& w, const Index<D>& s) : s_(s) { std::copy(w.begin(), w.end(), w_.begin()); }
  void operator()(const double* __restrict u, double* __restrict out, std::int64_t n) const {
    const auto w = w_;
    const std::int64_t a = s_[0];
    if constexpr (D == 2) {
      for (std::int64_t x = 0; x < n; ++x)
        out[x] = w[0] * u[x - a - 1] + w[1] * u[x - a] + w[2] * u[x - a + 1] + w[3] * u[x - 1] + w[4] * u[x] +
                 w[5] * u[x + 1] + w[6] * u[x + a - 1] + w[7] * u[x + a] + w[8] * u[x + a + 1];
    } else {
      const std::int64_t b = s_[1];
      const double* p[9] = {u - a - b, u - a, u - a + b, u - b, u, u + b, u + a - b, u + a, u + a + b};
      for (std::int64_t x = 0; x < n; ++x) {
        double sum = w[0] * p[0][x - 1] + w[1] * p[0][x] + w[2] * p[0][x + 1];
        for (int k = 1; k < 9; ++k) {
          sum = sum + w[static_cast<std::size_t>(3 * k)] * p[k][x - 1];
          sum = sum + w[static_cast<std::size_t>(3 * k + 1)] * p[k][x];
          sum = sum + w[static_cast<std::size_t>(3 * k + 2)] * p[k][x + 1];
        }
        out[x] = sum;
      }
    }
  }

 private:
  std::array<double, 27> w_{};
  Index<D> s_;
};

/// The wave equation with constant coefficients; docs/model.md has the order of the operations.
template <int D>
struct HandWaveRow {
  PerDim<double, D> r;
  double c, damping, dt;
  Index<D> s;
  void operator()(const double* __restrict u, double* __restrict out, std::int64_t n) const {
    const double half = 0.5 * (damping * dt), keep = 1 - half, over = 1 + half, dd = dt * dt, cc = c * c;
    const double r0 = r[0], r1 = r[1], r2 = r[D - 1];
    const std::int64_t s0 = s[0], s1 = D == 2 ? 1 : s[1];
    for (std::int64_t x = 0; x < n; ++x) {
      const double twice = 2 * u[x];
      double lap = r0 * ((u[x - s0] - twice) + u[x + s0]) + r1 * ((u[x - s1] - twice) + u[x + s1]);
      if constexpr (D == 3) lap = lap + r2 * ((u[x - 1] - twice) + u[x + 1]);
      out[x] = ((twice - keep * out[x]) + dd * (cc * lap)) / over;
    }
  }
};

/// Two substances that react and diffuse, in the plane.
struct HandGrayScottRow {
  PerDim<double, 2> r;
  double Du, Dv, F, k, dt;
  std::int64_t s;
  void operator()(const double* __restrict u, const double* __restrict v, double* __restrict u_new,
                  double* __restrict v_new, std::int64_t n) const {
    const double r0 = r[0], r1 = r[1], a = Du, b = Dv, f = F, fk = F + k, t = dt;
    const std::int64_t d = s;
    for (std::int64_t x = 0; x < n; ++x) {
      const double u2 = 2 * u[x], v2 = 2 * v[x], uvv = u[x] * (v[x] * v[x]);
      const double lap_u = r0 * ((u[x - d] - u2) + u[x + d]) + r1 * ((u[x - 1] - u2) + u[x + 1]);
      const double lap_v = r0 * ((v[x - d] - v2) + v[x + d]) + r1 * ((v[x - 1] - v2) + v[x + 1]);
      u_new[x] = u[x] + t * ((a * lap_u - uvv) + f * (1 - u[x]));
      v_new[x] = v[x] + t * ((b * lap_v + uvv) - fk * v[x]);
    }
  }
};

/// `Row` takes the row of each of its N fields in the old arrays and then in the new ones.
template <int D, class Row, std::size_t N = 1>
class HandWritten {
 public:
  HandWritten(const CartesianDomain<D>& domain, const std::function<Row(const Index<D>&)>& make)
      : box_(domain.owned()), comm_(domain.comm().get()) {
    std::int64_t stride = 1;
    for (int j = D - 1; j >= 0; --j) {
      stride_[j] = stride;
      stride *= box_.extent(j) + 2;
    }
    for (std::size_t f = 0; f < N; ++f) u_[f].assign(static_cast<std::size_t>(stride), 0.0);
    v_ = u_;
    row_.emplace_back(make(stride_));
    const int p = domain.size();
    up_ = (domain.rank() + 1) % p;
    down_ = (domain.rank() + p - 1) % p;
  }

  /// Field f; its second time level.
  double& at(const Index<D>& i, std::size_t f = 0) { return u_[f][static_cast<std::size_t>(place(i))]; }
  double& before(const Index<D>& i) { return v_[0][static_cast<std::size_t>(place(i))]; }

  void advance(std::int64_t steps) {
    for (std::int64_t s = 0; s < steps; ++s) {
      for (auto& u : u_) exchange(u.data());
      const std::int64_t n = box_.extent(D - 1);
      if constexpr (D == 2) {
        for (std::int64_t i = 1; i <= box_.extent(0); ++i) run_row(i * stride_[0] + 1, n);
      } else {
        for (std::int64_t i = 1; i <= box_.extent(0); ++i)
          for (std::int64_t j = 1; j <= box_.extent(1); ++j) run_row(i * stride_[0] + j * stride_[1] + 1, n);
      }
      std::swap(u_, v_);
    }
  }

 private:
  void run_row(std::int64_t k, std::int64_t n) {
    const Row& row = row_.front();
    if constexpr (N == 1)
      row(u_[0].data() + k, v_[0].data() + k, n);
    else
      row(u_[0].data() + k, u_[1].data() + k, v_[0].data() + k, v_[1].data() + k, n);
  }

  std::int64_t place(const Index<D>& i) const {
    std::int64_t k = 0;
    for (int j = 0; j < D; ++j) k += (i[j] - box_.low[j] + 1) * stride_[j];
    return k;
  }

  /// Periodic ghosts: the inner dimensions by copies, the slowest by messages of whole planes.
  void exchange(double* const u) {
    const std::int64_t planes = box_.extent(0), nx = box_.extent(D - 1);
    for (std::int64_t i = 1; i <= planes; ++i) {
      if constexpr (D == 2) {
        wrap(u + i * stride_[0], nx);
      } else {
        double* plane = u + i * stride_[0];
        const std::int64_t ny = box_.extent(1);
        for (std::int64_t j = 1; j <= ny; ++j) wrap(plane + j * stride_[1], nx);
        std::copy_n(plane + ny * stride_[1], stride_[1], plane);
        std::copy_n(plane + stride_[1], stride_[1], plane + (ny + 1) * stride_[1]);
      }
    }
    const std::int64_t plane = stride_[0];
    int size = 1;
    MPI_Comm_size(comm_, &size);
    if (size == 1) {
      std::copy_n(u + planes * plane, plane, u);
      std::copy_n(u + plane, plane, u + (planes + 1) * plane);
      return;
    }
    MPI_Request r[4];
    const int count = static_cast<int>(plane);
    MPI_Irecv(u, count, MPI_DOUBLE, down_, 1, comm_, &r[0]);
    MPI_Irecv(u + (planes + 1) * plane, count, MPI_DOUBLE, up_, 2, comm_, &r[1]);
    MPI_Isend(u + planes * plane, count, MPI_DOUBLE, up_, 1, comm_, &r[2]);
    MPI_Isend(u + plane, count, MPI_DOUBLE, down_, 2, comm_, &r[3]);
    MPI_Waitall(4, r, MPI_STATUSES_IGNORE);
  }

  static void wrap(double* line, std::int64_t n) {
    line[0] = line[n];
    line[n + 1] = line[1];
  }

  Box<D> box_;
  MPI_Comm comm_;
  Index<D> stride_{};
  std::array<std::vector<double>, N> u_, v_;
  std::vector<Row> row_;
  int up_ = 0, down_ = 0;
};

}  // namespace isohalo
