#pragma once
/// The opponent of `bench exchange`: MPI subarray types, every neighbor by messages, MPI_Waitall.

#include <mpi.h>

#include <vector>

#include "datatypes/mpi_check.hpp"
#include "framework/domain/cartesian_domain.hpp"
#include "framework/halo/array_ref.hpp"
#include "framework/halo/stencil_shape.hpp"

namespace isohalo {

/// A periodic grid; ghost boxes as wide as the reach of `depth` steps towards every neighbor of which a step
/// sequence that long reads a cell. The array must stay where it is.
template <int D>
class SubarrayExchange {
 public:
  SubarrayExchange(const CartesianDomain<D>& domain, const ArrayRef<double, D>& a, const StencilShape<D>& shape,
                   int depth)
      : comm_(domain.comm().get()), base_(&a.at(a.allocated().low)) {
    for (const auto& direction : moore<D>(1, Self::leave_out)) {
      int distance = 0;
      std::array<int, D> relative{};
      for (int j = 0; j < D; ++j) {
        relative[static_cast<std::size_t>(j)] = static_cast<int>(direction[j]);
        distance += direction[j] != 0;
      }
      if (shape.kind() != StencilShape<D>::Kind::moore && distance > depth) continue;
      const int tag = static_cast<int>(neighbors_.size());
      Box<D> inner = a.owned, outer = a.owned;
      for (int j = 0; j < D; ++j) {
        const std::int64_t width = shape.radius() * depth;
        if (direction[j] > 0) inner.low[j] = a.owned.high[j] - width, outer.high[j] = a.owned.low[j];
        if (direction[j] > 0) outer.low[j] = a.owned.low[j] - width;
        if (direction[j] < 0) inner.high[j] = a.owned.low[j] + width, outer.low[j] = a.owned.high[j];
        if (direction[j] < 0) outer.high[j] = a.owned.high[j] + width;
      }
      // What goes in a direction comes from the opposite one.
      std::array<int, D> opposite = relative;
      for (int& r : opposite) r = -r;
      neighbors_.push_back({domain.mesh().relative_rank(domain.rank(), relative),
                            domain.mesh().relative_rank(domain.rank(), opposite), tag, type(a, inner),
                            type(a, outer)});
    }
    requests_.resize(2 * neighbors_.size());
  }

  void run() {
    std::size_t r = 0;
    for (const auto& n : neighbors_)
      mpi_check(MPI_Irecv(base_, 1, n.ghosts.get(), n.source, n.tag, comm_, &requests_[r++]), "MPI_Irecv", comm_);
    for (const auto& n : neighbors_)
      mpi_check(MPI_Isend(base_, 1, n.cells.get(), n.target, n.tag, comm_, &requests_[r++]), "MPI_Isend", comm_);
    mpi_check(MPI_Waitall(static_cast<int>(r), requests_.data(), MPI_STATUSES_IGNORE), "MPI_Waitall", comm_);
  }

 private:
  struct Neighbor {
    int target, source, tag;
    Datatype cells, ghosts;
  };

  static Datatype type(const ArrayRef<double, D>& a, const Box<D>& box) {
    std::array<int, D> sizes, extents, starts;
    const Box<D> all = a.allocated();
    for (int j = 0; j < D; ++j) {
      const auto k = static_cast<std::size_t>(j);
      sizes[k] = static_cast<int>(j == 0 ? all.extent(0) : a.stride[j - 1] / a.stride[j]);
      extents[k] = static_cast<int>(box.extent(j));
      starts[k] = static_cast<int>(box.low[j] - all.low[j]);
    }
    MPI_Datatype t = MPI_DATATYPE_NULL;
    mpi_check(MPI_Type_create_subarray(D, sizes.data(), extents.data(), starts.data(), MPI_ORDER_C, MPI_DOUBLE, &t),
              "MPI_Type_create_subarray");
    return Datatype::adopt(t);
  }

  MPI_Comm comm_;
  double* base_;
  std::vector<Neighbor> neighbors_;
  std::vector<MPI_Request> requests_;
};

}  // namespace isohalo
