#pragma once
/// The grid of the hand-written opponents: slabs along the slowest dimension, ghost layers, Isend/Irecv of
/// contiguous planes. Arrays are as large-paged as those of our fields, so that kernels are compared and not pages.

#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "framework/domain/cartesian_domain.hpp"
#include "framework/halo/field.hpp"

namespace isohalo {

/// An opponent: what a careful programmer writes.
template <class T, int D>
class HandSteps {
 public:
  virtual ~HandSteps() = default;
  /// Field f of an owned cell; its second time level; constant k.
  virtual T& at(const Index<D>& i, std::size_t f) = 0;
  virtual T& before(const Index<D>& i) { return at(i, 0); }
  virtual T& given(const Index<D>& i, std::size_t) { return at(i, 0); }
  /// To be called when the values are in place. Collective.
  virtual void start() {}
  virtual void advance(std::int64_t steps) = 0;
};

/// Without Isohalo but for the block that this rank owns.
template <class T, int D>
class HandGrid {
 public:
  /// An array of the grid; owns its memory.
  using Array = Field<T, 1>;

  /// `layers` of ghosts. The domain is periodic in all dimensions or in none: then ghosts outside the grid stay as
  /// they are, 0. Local.
  HandGrid(const CartesianDomain<D>& domain, std::int64_t layers)
      : box_(domain.owned()), comm_(domain.comm().get()), layers_(layers), periodic_(domain.periodic()[0]) {
    for (int j = D - 1; j >= 0; --j) {
      stride_[j] = size_;
      size_ *= box_.extent(j) + 2 * layers;
    }
    const int p = domain.size(), r = domain.rank();
    alone_ = p == 1;
    up_ = r + 1 < p ? r + 1 : periodic_ ? 0 : MPI_PROC_NULL;
    down_ = r > 0 ? r - 1 : periodic_ ? p - 1 : MPI_PROC_NULL;
  }

  const Index<D>& stride() const { return stride_; }
  Array array() const { return Array("by hand", box_of_shape<1>({size_}), {}, {}); }
  std::int64_t place(const Index<D>& i) const {
    std::int64_t k = 0;
    for (int j = 0; j < D; ++j) k += (i[j] - box_.low[j] + layers_) * stride_[j];
    return k;
  }

  /// f(k, n, i) for each row: n cells from place k on, the first of which is i.
  template <class F>
  void for_each_row(const F& f) const {
    const std::int64_t n = box_.extent(D - 1);
    isohalo::for_each_row(box_, [&](const Index<D>& i) { f(place(i), n, i); });
  }

  /// Ghosts: the inner dimensions by copies, the slowest by messages of whole planes.
  void exchange(T* const u) const {
    const std::int64_t planes = box_.extent(0), plane = stride_[0], g = layers_;
    if (periodic_)
      for (std::int64_t i = g; i < g + planes; ++i) wrap<1>(u + i * plane);
    T *const low = u + g * plane, *const high = u + planes * plane;  // first owned plane, first of the last g
    if (alone_) {
      if (!periodic_) return;
      std::copy_n(high, g * plane, u);
      std::copy_n(low, g * plane, high + g * plane);
      return;
    }
    MPI_Request r[4];
    const int count = static_cast<int>(g * plane * static_cast<std::int64_t>(sizeof(T)));
    MPI_Irecv(u, count, MPI_BYTE, down_, 1, comm_, &r[0]);
    MPI_Irecv(high + g * plane, count, MPI_BYTE, up_, 2, comm_, &r[1]);
    MPI_Isend(high, count, MPI_BYTE, up_, 1, comm_, &r[2]);
    MPI_Isend(low, count, MPI_BYTE, down_, 2, comm_, &r[3]);
    MPI_Waitall(4, r, MPI_STATUSES_IGNORE);
  }

 private:
  /// The dimensions from J on.
  template <int J>
  void wrap(T* const u) const {
    if constexpr (J < D) {
      const std::int64_t n = box_.extent(J), s = stride_[J], g = layers_;
      for (std::int64_t k = g; k < g + n; ++k) wrap<J + 1>(u + k * s);
      std::copy_n(u + n * s, g * s, u);
      std::copy_n(u + g * s, g * s, u + (g + n) * s);
    }
  }

  Box<D> box_;
  MPI_Comm comm_;
  std::int64_t layers_, size_ = 1;
  bool periodic_, alone_ = true;
  Index<D> stride_{};
  int up_ = 0, down_ = 0;
};

}  // namespace isohalo
